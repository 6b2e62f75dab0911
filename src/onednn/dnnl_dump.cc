#include "onednn/dnnl_dump.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <unordered_set>

#include "oneapi/dnnl/dnnl_debug.h"
#include "onednn/dnnl_logical_tensor.h"
#include "onednn/serialized_graph.h"

namespace convgrad::onednn {
namespace {

// Names between commas; others are passed over.
unsigned FirstModes() {
  const std::string names = "," + Environment("GRAPH_DUMP") + ",";
  const auto bits = [&](const char* name, dnnl_graph_dump_mode_t mode) {
    return names.find(name) == std::string::npos ? 0U : static_cast<unsigned>(mode);
  };
  return bits(",graph,", dnnl_graph_dump_mode_graph) |
         bits(",subgraph,", dnnl_graph_dump_mode_subgraph);
}

std::atomic<unsigned>& DumpModes() {
  static std::atomic<unsigned> modes{FirstModes()};
  return modes;
}

bool IsDumped(dnnl_graph_dump_mode_t mode) { return (DumpModes() & mode) != 0; }

// Of the tensors that only one of two lists has, in order and each once: what goes into a graph,
// or comes out of it.
std::vector<size_t> IdsWithout(const std::vector<GraphOp>& ops,
                               std::vector<LogicalTensor> GraphOp::*wanted,
                               std::vector<LogicalTensor> GraphOp::*others) {
  std::unordered_set<size_t> seen;
  for (const GraphOp& op : ops) {
    for (const LogicalTensor& tensor : op.*others) seen.insert(tensor.id);
  }
  std::vector<size_t> ids;
  for (const GraphOp& op : ops) {
    for (const LogicalTensor& tensor : op.*wanted) {
      if (seen.insert(tensor.id).second) ids.push_back(tensor.id);
    }
  }
  return ids;
}

std::string TextOf(std::vector<GraphOp> ops, dnnl_engine_kind_t kind, dnnl_fpmath_mode_t mode,
                   bool applies_to_int) {
  SerializedGraph graph;
  graph.version = std::to_string(DNNL_VERSION_MAJOR) + "." + std::to_string(DNNL_VERSION_MINOR) +
                  "." + std::to_string(DNNL_VERSION_PATCH);
  graph.engine_kind = dnnl_engine_kind2str(kind);
  graph.fpmath_mode = dnnl_fpmath_mode2str(mode);
  graph.fpmath_mode_apply_to_int = applies_to_int ? "true" : "false";
  graph.input_ports = IdsWithout(ops, &GraphOp::inputs, &GraphOp::outputs);
  graph.output_ports = IdsWithout(ops, &GraphOp::outputs, &GraphOp::inputs);
  graph.ops = std::move(ops);
  return WriteSerializedGraph(graph);
}

void WriteFile(size_t id, const std::string& suffix, const std::string& text) {
  std::ofstream("graph-" + std::to_string(id) + suffix + ".json", std::ios::binary) << text;
}

uint64_t Fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

void Describe(const Structs& given, std::vector<LogicalTensor>& tensors) {
  for (LogicalTensor& tensor : tensors) {
    const auto found = std::ranges::find(given, tensor.id, &dnnl_graph_logical_tensor_t::id);
    if (found == given.end()) continue;
    if (std::optional<LogicalTensor> model = ModelOf(*found)) tensor = *std::move(model);
  }
}

}  // namespace

void SetDumpModes(unsigned modes) { DumpModes() = modes; }

void DumpGraph(const dnnl_graph_graph& graph) noexcept try {
  if (!IsDumped(dnnl_graph_dump_mode_graph)) return;
  const auto write = [&](const std::string& suffix, const std::vector<GraphOp>& ops) {
    WriteFile(graph.id, suffix,
              TextOf(ops, graph.engine_kind, graph.fpmath_mode, graph.fpmath_applies_to_int));
  };
  std::vector<GraphOp> ops;
  for (const auto& added : graph.ops) ops.push_back(added->op);
  write("", ops);
  for (size_t i = 0; i < graph.partitions.size(); ++i) {
    auto& attributes = ops[graph.order[i]].attributes;
    attributes.emplace_back("partition_id", std::to_string(graph.partitions[i].id));
    attributes.emplace_back("backend", std::string("convgrad"));
  }
  write("-partitioning", ops);
} catch (...) {
  // no memory for a file: there is none
}

void DumpSubgraph(const dnnl_graph_partition& partition, const Structs& inputs,
                  const Structs& outputs) noexcept try {
  if (!IsDumped(dnnl_graph_dump_mode_subgraph)) return;
  GraphOp op = partition.added->op;
  Describe(inputs, op.inputs);
  Describe(outputs, op.outputs);
  const std::string text = TextOf({std::move(op)}, partition.engine_kind, partition.fpmath_mode,
                                  partition.fpmath_applies_to_int);
  WriteFile(partition.id, "-" + std::to_string(Fnv1a(text)), text);
} catch (...) {
  // as above
}

}  // namespace convgrad::onednn
