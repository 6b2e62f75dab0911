// How the operations of a graph hang together: who writes a tensor, and an order in which
// everything is written before it is read. Knows ids, no shapes and no kinds.
#ifndef CONVGRAD_ONEDNN_GRAPH_ORDER_H_
#define CONVGRAD_ONEDNN_GRAPH_ORDER_H_

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "convgrad/status.h"
#include "onednn/graph_model.h"

namespace convgrad::onednn {

struct TensorWriter {
  size_t op = 0;      // an index into the operations, not an id
  size_t output = 0;  // of that operation
};

struct GraphEdges {
  std::vector<size_t> order;  // indices; of those that could run next, the first of the graph does
  std::unordered_map<size_t, TensorWriter> writers;  // by tensor id; the others come from outside
};

// Fails where two operations have one id, where a tensor is written twice, and where operations
// wait for each other.
Result<GraphEdges> ConnectOperations(std::span<const GraphOp> ops);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_ORDER_H_
