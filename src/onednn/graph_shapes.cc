#include "onednn/graph_shapes.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "convgrad/plan.h"
#include "onednn/graph_dialect.h"
#include "onednn/graph_operation.h"

namespace convgrad::onednn {
namespace {

constexpr size_t kSerializedListLength = 12;  // of a list that was never set: zeros

constexpr std::array<std::string_view, 4> kShapeAttributes = {"weights_shape", "filter_shape",
                                                              "dst_shape", "output_shape"};

// Output 0 has the extents of input 0.
constexpr std::string_view kSameShape[] = {"Abs",
                                           "AbsBackward",
                                           "BatchNormForwardTraining",
                                           "BatchNormInference",
                                           "BatchNormTrainingBackward",
                                           "BiasAdd",
                                           "Clamp",
                                           "ClampBackward",
                                           "Dequantize",
                                           "Dropout",
                                           "DynamicDequantize",
                                           "DynamicQuantize",
                                           "Elu",
                                           "EluBackward",
                                           "Exp",
                                           "GELU",
                                           "GELUBackward",
                                           "GroupNorm",
                                           "HardSigmoid",
                                           "HardSigmoidBackward",
                                           "HardSwish",
                                           "HardSwishBackward",
                                           "LayerNorm",
                                           "LayerNormBackward",
                                           "LeakyReLU",
                                           "Log",
                                           "LogSoftmax",
                                           "LogSoftmaxBackward",
                                           "Mish",
                                           "MishBackward",
                                           "Pow",
                                           "PReLU",
                                           "PReLUBackward",
                                           "Quantize",
                                           "Reciprocal",
                                           "ReLU",
                                           "ReLUBackward",
                                           "Reorder",
                                           "RMSNorm",
                                           "Round",
                                           "Sigmoid",
                                           "SigmoidBackward",
                                           "SoftMax",
                                           "SoftMaxBackward",
                                           "SoftPlus",
                                           "SoftPlusBackward",
                                           "Sqrt",
                                           "SqrtBackward",
                                           "Square",
                                           "Tanh",
                                           "TanhBackward",
                                           "TypeCast"};

constexpr std::string_view kBroadcast[] = {"Add",      "Divide",   "Maximum",          "Minimum",
                                           "Multiply", "Subtract", "SquaredDifference"};

std::string ExtentsText(const std::optional<Dims>& extents) {
  if (!extents) return "of unknown rank";
  std::string text;
  for (int64_t extent : *extents) {
    if (!text.empty()) text += "x";
    text += extent < 0 ? "?" : std::to_string(extent);
  }
  return text.empty() ? "a scalar" : text;
}

std::string OpText(const GraphOp& op) {
  return "operation " + std::to_string(op.id) + " (" + op.kind.substr(0, 60) + ")";
}

template <class Values, class Value>
bool Contains(const Values& values, const Value& value) {
  return std::ranges::find(values, value) != std::ranges::end(values);
}

std::optional<Dims> Broadcast(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (const Dims* extents : {&a, &b}) {
    const size_t skipped = result.size() - extents->size();
    for (size_t i = 0; i < extents->size(); ++i) {
      int64_t& extent = result[skipped + i];
      if (extent == (*extents)[i] || (*extents)[i] == 1) continue;
      if (extent != 1) return std::nullopt;
      extent = (*extents)[i];
    }
  }
  return result;
}

class ShapeInference {
 public:
  ShapeInference(std::span<const GraphOp> ops, const GraphEdges& edges, const AxisOrders& orders,
                 std::span<const GraphOp> before)
      : before_(before), edges_(edges), orders_(orders) {
    graph_.ops.assign(ops.begin(), ops.end());
    graph_.decisions.resize(ops.size());
  }

  ShapedGraph Run() {
    for (size_t index : edges_.order) {
      Status agreement = TakeKnownShapes(graph_.ops[index]);
      ShapedOp& decision = graph_.decisions[index];
      if (!IsSupportedKind(graph_.ops[index])) {
        decision.why = Status(StatusCode::kInvalidArgument,
                              "convgrad has no operation " + graph_.ops[index].kind.substr(0, 60));
        InferOther(index);
      } else if (!agreement.ok()) {
        decision = {OpState::kIllegal, std::move(agreement), {}, {}, {}};
      } else {
        decision = Decide(graph_.ops[index]);
      }
    }
    return std::move(graph_);
  }

 private:
  // The tensor as the operation has it that writes it, or that reads it first.
  struct Mention {
    const LogicalTensor* tensor;
    std::string by;
  };
  Mention FirstMention(const GraphOp& op, const LogicalTensor& input) {
    const auto writer = edges_.writers.find(input.id);
    if (writer != edges_.writers.end()) {
      const GraphOp& source = graph_.ops[writer->second.op];
      return {&source.outputs[writer->second.output], OpText(source) + " writes it"};
    }
    if (!IsFullyKnown(input.extents)) return {&input, {}};
    const auto entry = first_readers_.try_emplace(input.id, &op, &input).first->second;
    return {entry.second, OpText(*entry.first) + " reads it"};
  }

  // One tensor has one shape: all that mention it must agree on what they know.
  Status TakeKnownShapes(GraphOp& op) {
    Status status;
    for (LogicalTensor& input : op.inputs) {
      const auto [known, by] = FirstMention(op, input);
      const std::string tensor = "tensor " + std::to_string(input.id) + " is ";
      if (known->type != input.type) {
        status = Status(StatusCode::kInvalidType, tensor + std::string(NameOf(known->type)) +
                                                      " where " + by + ", and " +
                                                      std::string(NameOf(input.type)) + " here");
      } else if (IsFullyKnown(known->extents) && IsFullyKnown(input.extents) &&
                 known->extents != input.extents) {
        status = Status(StatusCode::kInvalidShape, tensor + ExtentsText(known->extents) +
                                                       " where " + by + ", and " +
                                                       ExtentsText(input.extents) + " here");
      }
      if (IsFullyKnown(known->extents) && known != &input) input = *known;
    }
    return status;
  }

  // The outputs of an operation that does not run here.
  void InferOther(size_t index) {
    GraphOp& op = graph_.ops[index];
    if (op.inputs.empty() || op.outputs.empty()) return;
    std::optional<Dims> extents;
    if (Contains(kSameShape, op.kind)) {
      extents = op.inputs[0].extents;
    } else if (Contains(kBroadcast, op.kind) && op.inputs.size() == 2 &&
               IsFullyKnown(op.inputs[0].extents) && IsFullyKnown(op.inputs[1].extents)) {
      extents = Broadcast(*op.inputs[0].extents, *op.inputs[1].extents);
    }
    if (IsFullyKnown(extents)) {
      if (op.outputs[0].extents != extents) op.outputs[0] = Reshaped(op.outputs[0], *extents);
      return;
    }
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const std::optional<Dims>& stated = before_[index].inputs[i].extents;
      if (!IsFullyKnown(stated) || op.inputs[i].extents == stated) continue;
      for (LogicalTensor& output : op.outputs) {  // of inputs that the graph did not have
        output.extents.reset();
        output.layout = LayoutType::kUndef;
        output.strides.clear();
      }
    }
  }

  Status CheckInputs(const GraphOp& op) const {
    for (const LogicalTensor& input : op.inputs) {
      if (input.type == ElementType::kUndef || IsFullyKnown(input.extents)) continue;
      const auto writer = edges_.writers.find(input.id);
      std::string message =
          "the shape of tensor " + std::to_string(input.id) + " is " + ExtentsText(input.extents);
      if (writer != edges_.writers.end()) {
        message += ", and what " + OpText(graph_.ops[writer->second.op]) +
                   " makes of its inputs is not known here";
      }
      return Status(StatusCode::kInvalidShape, std::move(message));
    }
    return {};
  }

  // The values of a shape tensor, which a graph does not have: those of the attribute, else of the
  // output.
  static std::optional<Dims> ShapeOf(const GraphOp& op) {
    for (const auto& [name, value] : op.attributes) {
      const auto* list = std::get_if<Dims>(&value);
      if (list == nullptr || !Contains(kShapeAttributes, name)) continue;
      Dims shape = *list;
      if (shape.size() == kSerializedListLength && !op.inputs.empty() && op.inputs[0].extents) {
        shape.resize(op.inputs[0].extents->size());
      }
      if (std::ranges::any_of(shape, [](int64_t extent) { return extent != 0; })) return shape;
    }
    if (!op.outputs.empty() && IsFullyKnown(op.outputs[0].extents)) return op.outputs[0].extents;
    return std::nullopt;
  }

  static Status FillShapeTensor(const GraphOp& op, std::vector<TensorDesc>& inputs) {
    for (size_t i = 2; i < inputs.size(); ++i) {
      if (inputs[i].type != DataType::kS32 && inputs[i].type != DataType::kS64) continue;
      const std::optional<Dims> shape = ShapeOf(op);
      if (!shape) {
        return Status(StatusCode::kInvalidShape,
                      "the values of the shape tensor " + std::to_string(op.inputs[i].id) +
                          " are not in the graph, nor are the attribute and the output's shape "
                          "that would tell them");
      }
      inputs[i].values = *shape;
    }
    return {};
  }

  ShapedOp Decide(GraphOp& op) const {
    if (op.outputs.empty()) {
      return {OpState::kIllegal, {StatusCode::kInvalidArgument, "it has no output"}, {}, {}, {}};
    }
    const GraphOp current = InCurrentWords(op);
    Result<std::vector<TensorDesc>> inputs = DescsOf(current.inputs);
    Result<std::vector<TensorDesc>> outputs = DescsOf(current.outputs);
    for (const auto* descs : {&inputs, &outputs}) {
      if (!descs->ok()) return {OpState::kUnsupported, descs->status(), {}, {}, {}};
    }
    if (Status s = CheckInputs(op); !s.ok()) return {OpState::kUnknown, std::move(s), {}, {}, {}};
    if (Status s = FillShapeTensor(current, *inputs); !s.ok()) {
      return {OpState::kUnknown, std::move(s), {}, {}, {}};
    }
    Result<Operation> operation = OperationOf(current);
    if (!operation.ok()) return {OpState::kIllegal, operation.status(), {}, {}, {}};
    ShapedOp decision{
        OpState::kRuns, {}, *std::move(operation), *std::move(inputs), *std::move(outputs)};
    if (Status s = Complete(op, decision); !s.ok()) {
      if (HasNegativePadsEnd(op) && !HasNegativePadsEnd(current) &&
          current.inputs[0] == op.inputs[0] && op.kind != "Convolution") {
        s = Status(s.code(),
                   "pads_end is negative, which " + op.kind + " here cannot have: " + s.message());
        return {OpState::kUnsupported, std::move(s), {}, {}, {}};
      }
      return {OpState::kIllegal, std::move(s), {}, {}, {}};
    }
    return decision;
  }

  // What the plan infers becomes the outputs' shape, in the decision and in the graph.
  Status Complete(GraphOp& op, ShapedOp& decision) const {
    Result<Plan> plan = Plan::Make(decision.operation, decision.inputs, decision.outputs);
    if (!plan.ok()) return plan.status();
    bool reordered = false;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const auto order = orders_.find(op.outputs[i].id);
      TensorDesc& desc = decision.outputs[i];
      if (!desc.given()) continue;
      desc = plan->output(static_cast<int>(i));
      if (order == orders_.end() || order->second.size() != desc.extents.size()) continue;
      Result<Dims> strides = StridesOf(order->second, desc.extents);
      if (!strides.ok()) return strides.status();
      desc.strides = *std::move(strides);
      reordered = true;
    }
    if (reordered) {
      plan = Plan::Make(decision.operation, decision.inputs, decision.outputs);
      if (!plan.ok()) return plan.status();
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (!decision.outputs[i].given()) continue;
      op.outputs[i] = Completed(op.outputs[i], decision.outputs[i]);
    }
    return {};
  }

  std::span<const GraphOp> before_;
  const GraphEdges& edges_;
  const AxisOrders& orders_;
  ShapedGraph graph_;
  // By tensor id, of those that come from outside.
  std::unordered_map<size_t, std::pair<const GraphOp*, const LogicalTensor*>> first_readers_;
};

}  // namespace

ShapedGraph InferShapes(std::span<const GraphOp> ops, const GraphEdges& edges,
                        const AxisOrders& orders, std::span<const GraphOp> before) {
  return ShapeInference(ops, edges, orders, before.empty() ? ops : before).Run();
}

AxisOrder OrderOf(const Dims& strides) {
  AxisOrder order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](int axis) { return strides[static_cast<size_t>(axis)]; });
  return order;
}

LogicalTensor Reshaped(const LogicalTensor& tensor, const Dims& extents) {
  LogicalTensor reshaped = tensor;
  const bool has_order = tensor.layout == LayoutType::kStrided &&
                         tensor.strides.size() == extents.size() &&
                         !Contains(tensor.strides, kUnknownExtent);
  reshaped.extents = extents;
  reshaped.layout = LayoutType::kStrided;
  const Result<Dims> strides =
      StridesOf(OrderOf(has_order ? tensor.strides : Dims(extents.size(), 1)), extents);
  // Too many elements for strides: what reads the tensor is refused.
  reshaped.strides = strides.ok() ? *strides : Dims(extents.size(), kUnknownExtent);
  return reshaped;
}

bool IsFullyKnown(const std::optional<Dims>& extents) {
  return extents && std::ranges::none_of(*extents, [](int64_t extent) { return extent < 0; });
}

}  // namespace convgrad::onednn
