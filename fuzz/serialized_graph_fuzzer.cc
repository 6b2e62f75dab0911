// Any text is a graph or an error; a graph comes back the same from what is written of it, and its
// order can be asked for. Any last line is an option of graphs, or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "onednn/graph_options.h"
#include "onednn/graph_order.h"
#include "onednn/serialized_graph.h"

namespace {

// Options beside graphs: what applies them plans operations, which takes the whole library.
void ReadOption(std::string_view token) {
  using namespace convgrad::onednn;
  GraphOptions options;
  const bool read = options.Set(token).ok();
  GraphOptions refused;
  refused.SetOrRefuse(token, "file:1");
  if (options.NumChoices() > 10'000 || refused.NumChoices() > 10'000) return;
  bool any = false;
  for (const GraphChoice& choice : refused.Choices()) any = any || !choice.refusal.empty();
  if (any == read || options.Choices().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convgrad::onednn;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  ReadOption(input.substr(input.rfind('\n') + 1));
  const auto graph = ReadSerializedGraph(input);
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
