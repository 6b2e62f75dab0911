// Graphs: operations are collected, checked against each other, put in order, and each becomes a
// partition.
#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "onednn/dnnl_dump.h"
#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {
namespace {

using Ops = std::vector<std::shared_ptr<const AddedOp>>;

// A tensor id with its first description.
class TensorTable {
 public:
  dnnl_status_t Add(const LogicalTensor& tensor) {
    const auto [entry, first] = tensors_.emplace(tensor.id, &tensor);
    if (first || *entry->second == tensor) return dnnl_success;
    return Refuse(dnnl_invalid_graph,
                  "tensor " + std::to_string(tensor.id) +
                      " is described in two ways: its type, extents, layout or property differ");
  }

 private:
  std::unordered_map<size_t, const LogicalTensor*> tensors_;
};

dnnl_status_t CheckTensors(const Ops& ops) {
  TensorTable table;
  for (const auto& added : ops) {
    for (const auto* tensors : {&added->op.inputs, &added->op.outputs}) {
      for (const LogicalTensor& tensor : *tensors) {
        if (dnnl_status_t s = table.Add(tensor); s != dnnl_success) return s;
      }
    }
  }
  return dnnl_success;
}

// By tensor id, the place of the operation that writes it.
dnnl_status_t FindProducers(const Ops& ops, std::unordered_map<size_t, size_t>* producers) {
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const LogicalTensor& tensor : ops[i]->op.outputs) {
      if (producers->emplace(tensor.id, i).second) continue;
      return Refuse(dnnl_invalid_graph,
                    "tensor " + std::to_string(tensor.id) + " is the output of two ops");
    }
  }
  return dnnl_success;
}

}  // namespace

dnnl_status_t OrderOps(const Ops& ops, std::vector<size_t>* order) {
  if (dnnl_status_t s = CheckTensors(ops); s != dnnl_success) return s;
  std::unordered_map<size_t, size_t> producers;
  if (dnnl_status_t s = FindProducers(ops, &producers); s != dnnl_success) return s;
  std::vector<std::vector<size_t>> users(ops.size());
  std::vector<size_t> waits_for(ops.size(), 0);
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const LogicalTensor& tensor : ops[i]->op.inputs) {
      const auto producer = producers.find(tensor.id);
      if (producer == producers.end()) continue;
      users[producer->second].push_back(i);
      ++waits_for[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  order->clear();
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order->push_back(next);
    for (size_t user : users[next]) {
      if (--waits_for[user] == 0) ready.push(user);
    }
  }
  if (order->size() == ops.size()) return dnnl_success;
  return Refuse(dnnl_invalid_graph, "an op needs its own result: the graph has a cycle");
}

}  // namespace convgrad::onednn

using convgrad::onednn::AnyNull;
using convgrad::onednn::CheckKind;
using convgrad::onednn::CheckMode;
using convgrad::onednn::Refuse;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseNull;

dnnl_status_t dnnl_graph_graph_create(dnnl_graph_graph_t* graph,
                                      dnnl_engine_kind_t engine_kind) try {
  if (graph == nullptr) return RefuseNull(__func__);
  dnnl_fpmath_mode_t mode;
  if (auto s = dnnl_get_default_fpmath_mode(&mode); s != dnnl_success) return s;
  return dnnl_graph_graph_create_with_fpmath_mode(graph, engine_kind, mode);
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_graph_create_with_fpmath_mode(dnnl_graph_graph_t* graph,
                                                       dnnl_engine_kind_t engine_kind,
                                                       dnnl_fpmath_mode_t mode) try {
  if (graph == nullptr) return RefuseNull(__func__);
  if (auto s = CheckKind(engine_kind); s != dnnl_success) return s;
  if (auto s = CheckMode(mode); s != dnnl_success) return s;
  *graph = new dnnl_graph_graph{convgrad::onednn::NextId(), engine_kind, mode};
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_graph_destroy(dnnl_graph_graph_t graph) {
  delete graph;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t mode,
                                               int apply_to_int) try {
  if (graph == nullptr) return RefuseNull(__func__);
  if (graph->finalized) return Refuse(dnnl_invalid_graph, "the graph is finalized");
  if (auto s = CheckMode(mode); s != dnnl_success) return s;
  graph->fpmath_mode = mode;
  graph->fpmath_applies_to_int = apply_to_int != 0;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t* mode,
                                               int* apply_to_int) {
  if (graph == nullptr) return RefuseNull(__func__);
  if (mode != nullptr) *mode = graph->fpmath_mode;
  if (apply_to_int != nullptr) *apply_to_int = graph->fpmath_applies_to_int ? 1 : 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_add_op(dnnl_graph_graph_t graph, dnnl_graph_op_t op) try {
  if (AnyNull(graph, op)) return RefuseNull(__func__);
  if (graph->finalized) return Refuse(dnnl_invalid_graph, "the graph is finalized");
  const bool known = std::ranges::any_of(
      graph->ops, [&](const auto& added) { return added->op.id == op->added.op.id; });
  if (known) return dnnl_success;
  if (auto s = convgrad::onednn::VerifyOp(op->added); s != dnnl_success) return s;
  graph->ops.push_back(std::make_shared<const convgrad::onednn::AddedOp>(op->added));
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_graph_finalize(dnnl_graph_graph_t graph) try {
  if (graph == nullptr) return RefuseNull(__func__);
  if (graph->finalized) return dnnl_success;
  if (auto s = convgrad::onednn::OrderOps(graph->ops, &graph->order); s != dnnl_success) return s;
  graph->finalized = true;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_graph_is_finalized(dnnl_graph_graph_t graph, uint8_t* finalized) {
  if (AnyNull(graph, finalized)) return RefuseNull(__func__);
  *finalized = graph->finalized ? 1 : 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_graph_filter(dnnl_graph_graph_t graph,
                                      dnnl_graph_partition_policy_t policy) try {
  if (graph == nullptr) return RefuseNull(__func__, dnnl_invalid_graph);
  if (!graph->finalized) return Refuse(dnnl_invalid_graph, "the graph is not finalized");
  if (policy != dnnl_graph_partition_policy_fusion && policy != dnnl_graph_partition_policy_debug) {
    return convgrad::onednn::RefuseValue("policy", policy);
  }
  std::vector<dnnl_graph_partition> partitions;
  for (size_t place : graph->order) {
    partitions.push_back({graph->ops[place], graph->engine_kind, convgrad::onednn::NextId(),
                          graph->fpmath_mode, graph->fpmath_applies_to_int});
  }
  graph->partitions = std::move(partitions);
  convgrad::onednn::DumpGraph(*graph);
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_graph_get_partition_num(const_dnnl_graph_graph_t graph, size_t* num) try {
  if (AnyNull(graph, num)) return RefuseNull(__func__, dnnl_invalid_graph);
  *num = graph->partitions.size();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_graph_get_partitions(dnnl_graph_graph_t graph, size_t num,
                                              dnnl_graph_partition_t* partitions) try {
  if (AnyNull(graph, partitions)) return RefuseNull(__func__, dnnl_invalid_graph);
  if (num == 0 || num != graph->partitions.size()) {
    return Refuse(dnnl_invalid_graph, "num is " + std::to_string(num) + ", the graph has " +
                                          std::to_string(graph->partitions.size()) + " partitions");
  }
  std::vector<std::unique_ptr<dnnl_graph_partition>> made;
  for (const dnnl_graph_partition& partition : graph->partitions) {
    made.push_back(std::make_unique<dnnl_graph_partition>(partition));
  }
  for (size_t i = 0; i < num; ++i) partitions[i] = made[i].release();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}
