// Kahn's order, with the smallest index first so that a sorted graph keeps its order.
#include "onednn/graph_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_set>

namespace convgrad::onednn {
namespace {

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

std::string OpText(const GraphOp& op) { return "operation " + std::to_string(op.id); }

Status FindWriters(std::span<const GraphOp> ops, GraphEdges* edges) {
  std::unordered_set<size_t> ids;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!ids.insert(ops[i].id).second) {
      return Invalid("two operations have the id " + std::to_string(ops[i].id) +
                     ", and each operation needs its own");
    }
    for (size_t output = 0; output < ops[i].outputs.size(); ++output) {
      const size_t id = ops[i].outputs[output].id;
      const auto [writer, is_new] = edges->writers.try_emplace(id, TensorWriter{i, output});
      if (is_new) continue;
      const GraphOp& other = ops[writer->second.op];
      return Invalid("tensor " + std::to_string(id) + " is an output of " + OpText(other) +
                     (other.id == ops[i].id ? " twice" : " and of " + OpText(ops[i])) +
                     ", and a tensor can be written once");
    }
  }
  return {};
}

// Of operations that all wait for another one of them: a chain back to itself.
std::string DescribeCycle(std::span<const GraphOp> ops, const GraphEdges& edges,
                          const std::vector<size_t>& waiting_for, size_t start) {
  const auto before = [&](size_t at) {
    for (const LogicalTensor& input : ops[at].inputs) {
      const auto writer = edges.writers.find(input.id);
      if (writer != edges.writers.end() && waiting_for[writer->second.op] > 0) {
        return writer->second.op;
      }
    }
    return at;
  };
  std::vector<size_t> path;
  std::vector<bool> seen(ops.size());
  for (size_t at = start; !seen[at]; at = before(at)) {
    seen[at] = true;
    path.push_back(at);
  }
  path.erase(path.begin(), std::ranges::find(path, before(path.back())));
  if (path.size() == 1) return OpText(ops[path[0]]) + " reads a tensor that it writes itself";
  constexpr size_t kShown = 8;
  std::string ids;
  for (size_t i = 0; i < std::min(path.size(), kShown); ++i) {
    ids += (i == 0 ? "" : ", ") + std::to_string(ops[path[path.size() - 1 - i]].id);
  }
  if (path.size() > kShown) ids += " and " + std::to_string(path.size() - kShown) + " more";
  return "operations " + ids + " wait for each other's outputs in a cycle";
}

}  // namespace

Result<GraphEdges> ConnectOperations(std::span<const GraphOp> ops) {
  GraphEdges edges;
  if (Status status = FindWriters(ops, &edges); !status.ok()) return status;
  std::vector<std::vector<size_t>> readers(ops.size());
  std::vector<size_t> waiting_for(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const LogicalTensor& input : ops[i].inputs) {
      const auto writer = edges.writers.find(input.id);
      if (writer == edges.writers.end()) continue;
      readers[writer->second.op].push_back(i);
      ++waiting_for[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (waiting_for[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    edges.order.push_back(next);
    for (size_t reader : readers[next]) {
      if (--waiting_for[reader] == 0) ready.push(reader);
    }
  }
  if (edges.order.size() == ops.size()) return edges;
  const auto stuck = std::ranges::find_if(waiting_for, [](size_t count) { return count > 0; });
  const size_t start = static_cast<size_t>(stuck - waiting_for.begin());
  return Invalid(DescribeCycle(ops, edges, waiting_for, start));
}

}  // namespace convgrad::onednn
