// Serialized graphs: what oneDNN dumps and its graph driver reads, as text and as a model.
// Reading checks the form alone: whether operations fit together is in graph_order.h, whether
// convgrad runs them in graph_shapes.h. Reads and writes no files.
#ifndef CONVGRAD_ONEDNN_SERIALIZED_GRAPH_H_
#define CONVGRAD_ONEDNN_SERIALIZED_GRAPH_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/status.h"
#include "onednn/graph_model.h"

namespace convgrad::onednn {

// A field that the text does not have is empty here, and is not written.
struct SerializedGraph {
  std::string version;                   // "3.14.0"
  std::string engine_kind;               // "cpu"
  std::string fpmath_mode;               // "strict"
  std::string fpmath_mode_apply_to_int;  // "true", "false"
  std::optional<std::vector<size_t>> input_ports;
  std::optional<std::vector<size_t>> output_ports;
  std::vector<GraphOp> ops;

  friend bool operator==(const SerializedGraph&, const SerializedGraph&) = default;
};

// Every version from 0.6 to 3.14, and later ones that keep the schema: unknown keys are passed
// over. The error names the line and column, or the place: graph[0].inputs[1].shape[2]. A layout of
// undef with strides is strided, as the driver reads it; strides of another layout are not kept.
Result<SerializedGraph> ReadSerializedGraph(std::string_view text);

// In the order, the indentation and the words of oneDNN; numbers of f32 with as many digits as tell
// them apart. Needs no JSON library.
std::string WriteSerializedGraph(const SerializedGraph& graph);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_SERIALIZED_GRAPH_H_
