// Changes to a graph before it runs, as the options of benchdnn's graph driver make them: other
// shapes and layouts of its inputs, other attributes, types, kinds and batch. Everything that
// follows from them is inferred again. Reads no text; graph_options.h does.
#ifndef CONVGRAD_ONEDNN_GRAPH_OVERRIDES_H_
#define CONVGRAD_ONEDNN_GRAPH_OVERRIDES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/status.h"
#include "onednn/graph_model.h"
#include "onednn/serialized_graph.h"

namespace convgrad::onednn {

struct TensorOverride {
  std::optional<Dims> extents;  // none: as in the graph
  Dims strides;                 // empty: by the tag, or dense with the last axis fastest
  std::string tag;              // "acdb"
};

struct GraphOverrides {
  std::map<size_t, TensorOverride> tensors;  // graph inputs and outputs, by id
  // By operation: names and values as text, whose type is that of the attribute.
  std::map<size_t, std::vector<std::pair<std::string, std::string>>> attributes;
  std::map<size_t, std::string> kinds;  // by operation
  std::map<size_t, PropertyType> properties;
  std::map<size_t, ElementType> types;
  ElementType type = ElementType::kUndef;  // of all floating-point tensors; undef: their own
  int64_t batch = 0;                       // 0: the graph's own

  bool empty() const {
    return tensors.empty() && attributes.empty() && kinds.empty() && properties.empty() &&
           types.empty() && type == ElementType::kUndef && batch == 0;
  }
};

// Fails where an id is not in the graph, a value does not fit its attribute, or nothing has a
// batch. Without overrides the graph as it is; else all shapes that can be inferred are, and
// outputs are dense: in the order of axes of input 0 where --in-shapes changed a tensor, else in
// the order that they had.
Result<SerializedGraph> Rewrite(const SerializedGraph& graph, const GraphOverrides& overrides);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_OVERRIDES_H_
