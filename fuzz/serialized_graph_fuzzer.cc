// Any text is a graph or an error; a graph comes back the same from what is written of it, its
// order can be asked for, and its shapes are inferred. A last line that begins with - has options
// of graphs: each is read or an error, and what they make of the graph holds the same. Nothing
// runs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.h"
#include "onednn/graph_options.h"
#include "onednn/graph_order.h"
#include "onednn/graph_overrides.h"
#include "onednn/graph_shapes.h"
#include "onednn/serialized_graph.h"

namespace {

using namespace convgrad::onednn;
using convgrad::fuzz::Require;
using convgrad::fuzz::RequireSentence;

// Plans take a while, and combinations of options multiply.
constexpr int64_t kMostChoices = 16;
constexpr size_t kMostOperations = 64;

void ReadOption(std::string_view token, GraphOptions* options) {
  GraphOptions alone;
  const bool read = alone.Set(token).ok();
  GraphOptions refused;
  refused.SetOrRefuse(token, "file:1");
  (void)options->Set(token).ok();
  if (alone.NumChoices() > 10'000 || refused.NumChoices() > 10'000) return;
  bool any = false;
  for (const GraphChoice& choice : refused.Choices()) any = any || !choice.refusal.empty();
  Require(any != read && !alone.Choices().empty(), "an option is read or refused");
}

void RequireSame(const SerializedGraph& graph) {
  const std::string text = WriteSerializedGraph(graph);
  const auto again = ReadSerializedGraph(text);
  Require(again.ok(), "what is written can be read");
  Require(*again == graph, "what is written is the graph");
  Require(WriteSerializedGraph(*again) == text, "what is written has one form");
}

void Infer(const SerializedGraph& graph) {
  const auto edges = ConnectOperations(graph.ops);
  if (!edges.ok()) return RequireSentence(edges.status());
  const ShapedGraph shaped = InferShapes(graph.ops, *edges);
  Require(shaped.ops.size() == graph.ops.size() && shaped.decisions.size() == graph.ops.size(),
          "every operation has a decision");
  for (const ShapedOp& decision : shaped.decisions) {
    if (decision.state != OpState::kRuns) {
      Require(!decision.why.ok(), "what does not run has a reason");
      RequireSentence(decision.why);
      continue;
    }
    Require(!decision.outputs.empty(), "what runs writes something");
    for (const convgrad::TensorDesc& output : decision.outputs) {
      Require(output.extents.size() == output.strides.size(), "outputs are complete");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  GraphOptions options;
  std::string_view line = input.substr(input.rfind('\n') + 1);
  if (line.starts_with('-')) {
    input.remove_suffix(line.size());
    while (!line.empty()) {
      const size_t end = std::min(line.find(' '), line.size());
      ReadOption(line.substr(0, end), &options);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
  }
  const auto graph = ReadSerializedGraph(input);
  if (!graph.ok()) {
    RequireSentence(graph.status());
    return 0;
  }
  RequireSame(*graph);
  if (graph->ops.size() > kMostOperations) return 0;
  Infer(*graph);
  if (options.NumChoices() > kMostChoices) return 0;
  for (const GraphChoice& choice : options.Choices()) {
    const auto rewritten = Rewrite(*graph, choice.overrides);
    if (!rewritten.ok()) {
      RequireSentence(rewritten.status());
      continue;
    }
    if (choice.overrides.empty()) Require(*rewritten == *graph, "without options it is the graph");
    RequireSame(*rewritten);
    Infer(*rewritten);
  }
  return 0;
}
