// The shapes of a graph, from its inputs on: each operation that convgrad runs is planned in the
// order of the graph, what it writes gets the extents and strides of the plan, and what reads that
// gets them too. Says of every operation whether it runs, and if not, why. Runs nothing.
#ifndef CONVGRAD_ONEDNN_GRAPH_SHAPES_H_
#define CONVGRAD_ONEDNN_GRAPH_SHAPES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "convgrad/operation.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "onednn/graph_model.h"
#include "onednn/graph_order.h"
#include "onednn/memory_tag.h"

namespace convgrad::onednn {

enum class OpState {
  kRuns,
  kOtherKind,    // no operation of convgrad
  kUnsupported,  // of a type or a layout that convgrad does not have
  kUnknown,      // the shape of an input, or the values of a shape tensor, cannot be told
  kIllegal,      // breaks a rule of the specification, or contradicts the rest of the graph
};

struct ShapedOp {
  OpState state = OpState::kOtherKind;
  Status why;  // of any state but kRuns
  // Of kRuns: what Plan::Make takes, all outputs complete. Values of shape tensors are filled in.
  Operation operation;
  std::vector<TensorDesc> inputs, outputs;
};

struct ShapedGraph {
  std::vector<GraphOp> ops;         // with the shapes that were inferred
  std::vector<ShapedOp> decisions;  // one for each
};

// The order of the axes in memory, by tensor id, for outputs whose strides are to be made.
using AxisOrders = std::unordered_map<size_t, AxisOrder>;

// An input that no running operation writes needs a known shape. Where an operation of another kind
// writes it, its output has the shape that the graph states, unless that follows from its inputs:
// as element-wise operations, normalizations and binary operations with broadcasting have it.
// `before` is the graph as it was before it was rewritten: where inputs of an operation of another
// kind had other shapes there, the stated shapes of its outputs hold no longer. Empty: `ops`.
ShapedGraph InferShapes(std::span<const GraphOp> ops, const GraphEdges& edges,
                        const AxisOrders& orders = {}, std::span<const GraphOp> before = {});

// The axes by falling strides: the order that dense strides of other extents should have.
AxisOrder OrderOf(const Dims& strides);

// The tensor with other extents, dense in the order that its axes had, else the last one fastest.
LogicalTensor Reshaped(const LogicalTensor& tensor, const Dims& extents);

bool IsFullyKnown(const std::optional<Dims>& extents);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_SHAPES_H_
