#include "tools/graph_run.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/text.h"
#include "onednn/graph_operation.h"
#include "onednn/graph_order.h"
#include "onednn/graph_shapes.h"
#include "spec/schema.h"
#include "tools/available_memory.h"
#include "tools/tensor_file.h"

namespace convgrad::tools {
namespace {

using onednn::GraphOp;
using onednn::LogicalTensor;
using onednn::OpState;
using onednn::ShapedOp;

// On average so many of the terms of a sum are not zero where weights are sparse: fewer would leave
// many outputs zero, more would let numbers grow.
constexpr double kSparseTerms = 2;

// Of the elements and what lies between them.
double StoredElements(const TensorDesc& desc) {
  double reach = 1;
  for (size_t axis = 0; axis < desc.extents.size(); ++axis) {
    if (desc.extents[axis] == 0) return 0;
    const double stride = desc.strides.empty() ? 0 : static_cast<double>(desc.strides[axis]);
    const double extent = static_cast<double>(desc.extents[axis]);
    reach = desc.strides.empty() ? reach * extent : reach + (extent - 1) * std::abs(stride);
  }
  return reach;
}

// The tensors, what the oracle writes, and magnitudes of all in f32.
double BytesToCheck(const ShapedOp& op) {
  double bytes = 0;
  for (const TensorDesc& desc : op.inputs) {
    bytes += StoredElements(desc) * static_cast<double>(SizeOf(desc.type) + 4);
  }
  for (const TensorDesc& desc : op.outputs) {
    bytes += StoredElements(desc) * static_cast<double>(2 * SizeOf(desc.type) + 4);
  }
  return bytes;
}

// `held`: bytes of it that are taken already.
Status CheckMemory(const GraphOp& op, const ShapedOp& shaped, double held) {
  const double needed = BytesToCheck(shaped) - held, available = AvailableMemory();
  if (needed <= available) return {};
  const auto megabytes = [](double bytes) { return static_cast<int64_t>(bytes / (1 << 20)); };
  return {StatusCode::kOutOfMemory,
          Join("operation ", op.id, " (", op.kind, ") needs ", megabytes(needed),
               " MiB to run and to be checked, and ", megabytes(available), " MiB are available")};
}

std::string ListTensors(std::span<const ArgumentSchema> arguments,
                        const std::vector<LogicalTensor>& tensors,
                        const std::vector<TensorDesc>& descs) {
  std::string text;
  for (size_t i = 0; i < descs.size() && i < arguments.size(); ++i) {
    if (!descs[i].given()) continue;
    if (!text.empty()) text += ", ";
    text += Join(arguments[i].name, " ", tensors[i].id, ":", JoinNumbers(descs[i].extents, "x"));
  }
  return text;
}

bool SameLayout(const TensorDesc& a, const TensorDesc& b) {
  return a.extents == b.extents && a.strides == b.strides;
}

class GraphRunner {
 public:
  GraphRunner(const std::vector<GraphOp>& ops, const GraphRunRequest& request)
      : request_(request), stated_(ops) {}

  Status Prepare() {
    Result<onednn::GraphEdges> edges = onednn::ConnectOperations(stated_);
    if (!edges.ok()) return edges.status();
    edges_ = *std::move(edges);
    graph_ = onednn::InferShapes(stated_, edges_);
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const ShapedOp& shaped = graph_.decisions[i];
      if (shaped.state == OpState::kIllegal && !request_.skip_illegal) {
        return {shaped.why.code(), Join("operation ", graph_.ops[i].id, " (", graph_.ops[i].kind,
                                        "): ", shaped.why.message())};
      }
      if (shaped.state != OpState::kRuns) continue;
      if (Status s = CheckMemory(graph_.ops[i], shaped, 0); !s.ok()) {
        if (!request_.skip_illegal) return s;
        graph_.decisions[i] = {OpState::kUnsupported, std::move(s), {}, {}, {}};
        continue;
      }
      if (Status s = TryKernel(shaped); !s.ok()) {
        refused_.insert(i);
        graph_.decisions[i] = {OpState::kUnsupported, std::move(s), {}, {}, {}};
        continue;
      }
      for (const LogicalTensor& input : graph_.ops[i].inputs) ++readers_[input.id];
    }
    return {};
  }

  Status Run() {
    for (size_t index : edges_.order) {
      ShapedOp& shaped = graph_.decisions[index];
      if (shaped.state == OpState::kRuns) {
        Status s = CheckMemory(graph_.ops[index], shaped, HeldBytes(graph_.ops[index]));
        if (!s.ok() && !request_.skip_illegal) return s;
        if (!s.ok()) shaped = {OpState::kUnsupported, std::move(s), {}, {}, {}};
      }
      if (shaped.state == OpState::kRuns) {
        if (Status status = RunOp(index); !status.ok()) return status;
        continue;
      }
      OpReport report;
      report.op = &graph_.ops[index];
      report.reason = shaped.why.message();
      if (refused_.contains(index)) report.verdict = Verdict::kRefused;
      if (request_.report) request_.report(report);
    }
    return {};
  }

  std::map<size_t, TensorBuffer> TakeTensors() {
    if (!request_.keep_tensors) return {};
    return {std::make_move_iterator(buffers_.begin()), std::make_move_iterator(buffers_.end())};
  }

 private:
  // A kernel that is asked for by name may refuse an operation; what reads its results then reads
  // what they are filled with.
  Status TryKernel(const ShapedOp& shaped) const {
    if (request_.options.kernel.empty()) return {};
    return Plan::Make(shaped.operation, shaped.inputs, shaped.outputs, request_.options).status();
  }

  // Whether an operation that runs here writes the tensor; null where none does at all.
  const GraphOp* WriterOf(size_t tensor, bool* runs) const {
    const auto writer = edges_.writers.find(tensor);
    *runs = false;
    if (writer == edges_.writers.end()) return nullptr;
    *runs = graph_.decisions[writer->second.op].state == OpState::kRuns;
    return &graph_.ops[writer->second.op];
  }

  double HeldBytes(const GraphOp& op) const {
    double bytes = 0;
    for (const LogicalTensor& input : op.inputs) {
      const auto buffer = buffers_.find(input.id);
      if (buffer == buffers_.end()) continue;
      const TensorDesc& desc = buffer->second.desc();
      bytes += static_cast<double>(buffer->second.stored() * SizeOf(desc.type));
    }
    return bytes;
  }

  OpReport Describe(const GraphOp& op, const ShapedOp& shaped) const {
    OpReport report;
    report.op = &op;
    const OperationSchema& schema = SchemaOf(shaped.operation.kind);
    report.shapes = Join(ListTensors(schema.inputs, op.inputs, shaped.inputs), " -> ",
                         ListTensors(schema.outputs, op.outputs, shaped.outputs), " ",
                         NameOf(shaped.inputs[0].type));
    if (shaped.outputs[0].type != shaped.inputs[0].type) {
      report.shapes += Join(" to ", NameOf(shaped.outputs[0].type));
    }
    for (const LogicalTensor& input : op.inputs) {
      bool runs = false;
      const GraphOp* writer = WriterOf(input.id, &runs);
      if (writer == nullptr || runs) continue;
      report.notes.push_back(
          Join("tensor ", input.id, " is filled like an input of the graph: ", "operation ",
               writer->id, " (", writer->kind, "), which writes it, does not run here"));
    }
    return report;
  }

  Status RunOp(size_t index) {
    const GraphOp& op = graph_.ops[index];
    const ShapedOp& shaped = graph_.decisions[index];
    OpReport report = Describe(op, shaped);
    const Case item{report.shapes, {}, shaped.operation, shaped.inputs, shaped.outputs};
    if (Status s = FillInputs(op, item); !s.ok()) return s;
    std::vector<TensorBuffer> inputs = LendInputs(op, item), outputs;
    CheckRequest check;
    check.options = request_.options;
    check.tamper = request_.tamper;
    report.check = CheckOnInputs(item, check, inputs, !request_.reals, &outputs);
    report.verdict = report.check.passed ? Verdict::kPassed : Verdict::kFailed;
    report.reason = report.check.failure;
    ReturnInputs(op, item, inputs);
    for (size_t i = 0; i < outputs.size() && i < op.outputs.size(); ++i) {
      const size_t id = op.outputs[i].id;
      if (request_.keep_tensors || readers_[id] > 0) buffers_[id] = std::move(outputs[i]);
    }
    for (const LogicalTensor& input : op.inputs) {
      if (--readers_[input.id] == 0 && !request_.keep_tensors) buffers_.erase(input.id);
    }
    if (request_.report) request_.report(report);
    return {};
  }

  Status FillInputs(const GraphOp& op, const Case& item) {
    const OperationSchema& schema = SchemaOf(item.operation.kind);
    double most = 0;
    bool follows = false;  // reads what an operation of the graph has written
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      most = std::max(most, StoredElements(item.inputs[i]));
      bool runs = false;
      WriterOf(op.inputs[i].id, &runs);
      follows = follows || runs;
    }
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      const size_t id = op.inputs[i].id;
      if (!item.inputs[i].given() || buffers_.contains(id)) continue;
      const Result<TensorDesc> desc = onednn::DescOf(op.inputs[i]);
      if (!desc.ok()) return desc.status();
      TensorBuffer buffer(*desc);
      const uint64_t seed = request_.seed * 0x9e3779b97f4a7c15u + id;
      if (!item.inputs[i].values.empty()) {
        FillShape(buffer, item.inputs[i].values);
      } else if (request_.reals) {
        FillReals(buffer, seed);
      } else if (follows && schema.inputs[i].role == Role::kWeights) {
        FillSparse(buffer, kSparseTerms / std::max(TermsOf(item), 1.0), seed);
      } else {
        FillIntegers(buffer, ExactRange(most), seed);
      }
      buffers_.emplace(id, std::move(buffer));
    }
    return {};
  }

  // Products in the sum of an output element, on average.
  double TermsOf(const Case& item) const {
    const Result<Plan> plan = Plan::Make(item.operation, item.inputs, item.outputs);
    double elements = 1;
    for (int64_t extent : item.outputs[0].extents) elements *= static_cast<double>(extent);
    return plan.ok() && elements > 0 ? plan->flops() / 2 / elements : 1;
  }

  // A tensor may be two inputs of one operation: the second gets a copy.
  std::vector<TensorBuffer> LendInputs(const GraphOp& op, const Case& item) {
    std::vector<TensorBuffer> inputs;
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      if (!item.inputs[i].given()) {
        inputs.emplace_back();
        continue;
      }
      TensorBuffer& buffer = buffers_[op.inputs[i].id];
      TensorDesc desc = item.inputs[i];
      desc.values.clear();
      if (desc.strides.empty()) desc.strides = DenseStrides(desc.extents);
      if (SameLayout(desc, buffer.desc()) && LastUse(op, i)) {
        inputs.push_back(std::exchange(buffer, TensorBuffer()));
      } else {
        inputs.push_back(SameLayout(desc, buffer.desc()) ? buffer : buffer.Relabeled(desc));
      }
    }
    return inputs;
  }

  static bool LastUse(const GraphOp& op, size_t input) {
    for (size_t i = input + 1; i < op.inputs.size(); ++i) {
      if (op.inputs[i].id == op.inputs[input].id) return false;
    }
    return true;
  }

  void ReturnInputs(const GraphOp& op, const Case& item, std::vector<TensorBuffer>& inputs) {
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      if (!item.inputs[i].given()) continue;
      TensorBuffer& buffer = buffers_[op.inputs[i].id];
      if (!buffer.desc().given()) buffer = std::move(inputs[i]);
    }
  }

  const GraphRunRequest& request_;
  const std::vector<GraphOp>& stated_;
  onednn::GraphEdges edges_;
  onednn::ShapedGraph graph_;
  std::unordered_map<size_t, TensorBuffer> buffers_;
  std::unordered_set<size_t> refused_;       // indices of operations
  std::unordered_map<size_t, int> readers_;  // that have yet to run
};

}  // namespace

Result<std::map<size_t, TensorBuffer>> RunGraph(const std::vector<GraphOp>& ops,
                                                const GraphRunRequest& request) {
  GraphRunner runner(ops, request);
  if (Status status = runner.Prepare(); !status.ok()) return status;
  if (request.opened) request.opened();
  if (Status status = runner.Run(); !status.ok()) return status;
  return runner.TakeTensors();
}

}  // namespace convgrad::tools
