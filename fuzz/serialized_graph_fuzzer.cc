// Any text is a graph or an error; a graph comes back the same from what is written of it, and its
// order can be asked for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "onednn/graph_order.h"
#include "onednn/serialized_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convgrad::onednn;
  const auto graph = ReadSerializedGraph({reinterpret_cast<const char*>(data), size});
  if (!graph.ok()) {
    const std::string sentence = graph.status().message();
    if (sentence.empty() || sentence.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const std::string text = WriteSerializedGraph(*graph);
  const auto again = ReadSerializedGraph(text);
  if (!again.ok() || !(*again == *graph) || WriteSerializedGraph(*again) != text) std::abort();
  (void)ConnectOperations(graph->ops).ok();
  return 0;
}
