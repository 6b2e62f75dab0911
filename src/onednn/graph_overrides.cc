#include "onednn/graph_overrides.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "onednn/graph_operation.h"
#include "onednn/graph_order.h"
#include "onednn/graph_shapes.h"

namespace convgrad::onednn {
namespace {

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

std::string Quoted(std::string_view text) { return "'" + std::string(text.substr(0, 60)) + "'"; }

bool IsFloat(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kBF16 || type == ElementType::kF16;
}

// Numbers separated by x. A list of one is also how a single number is given.
template <class T>
std::optional<std::vector<T>> ParseList(std::string_view text) {
  std::vector<T> numbers;
  while (true) {
    const size_t end = std::min(text.find('x'), text.size());
    T number{};
    const auto [last, error] = std::from_chars(text.data(), text.data() + end, number);
    if (error != std::errc() || last != text.data() + end || end == 0) return std::nullopt;
    numbers.push_back(number);
    if (end == text.size()) return numbers;
    text.remove_prefix(end + 1);
  }
}

// The type of an attribute that the graph does not have: by its name where convgrad's operations
// have it, else by the looks of its value.
GraphValue TypedLike(std::string_view name, std::string_view text) {
  for (std::string_view known : {"auto_pad", "data_format", "weights_format", "filter_format"}) {
    if (name == known) return std::string();
  }
  for (std::string_view known : {"strides", "pads_begin", "pads_end", "dilations", "output_padding",
                                 "weights_shape", "filter_shape", "dst_shape", "output_shape"}) {
    if (name == known) return std::vector<int64_t>();
  }
  if (name == "groups") return int64_t{0};
  const auto list = ParseList<int64_t>(text);
  if (!list) {
    const auto reals = ParseList<float>(text);
    if (!reals) return std::string();
    return reals->size() == 1 ? GraphValue(0.0f) : GraphValue(std::vector<float>());
  }
  return list->size() == 1 ? GraphValue(int64_t{0}) : GraphValue(std::vector<int64_t>());
}

std::optional<bool> ParseBool(std::string_view text) {
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return std::nullopt;
}

// The text as a value of the type that `value` has now; nothing: it is none.
std::optional<GraphValue> ParseAs(const GraphValue& value, std::string_view text) {
  if (std::holds_alternative<std::string>(value)) return std::string(text);
  if (std::holds_alternative<bool>(value)) return ParseBool(text);
  if (std::holds_alternative<std::vector<int64_t>>(value)) return ParseList<int64_t>(text);
  const auto integers = ParseList<int64_t>(text);
  const auto reals = ParseList<float>(text);
  if (reals && !std::ranges::all_of(*reals, [](float real) { return std::isfinite(real); })) {
    return std::nullopt;  // a graph's text has no such number
  }
  if (std::holds_alternative<std::vector<float>>(value)) return reals;
  if (std::holds_alternative<int64_t>(value)) {
    if (!integers || integers->size() != 1) return std::nullopt;
    return integers->front();
  }
  if (!reals || reals->size() != 1) return std::nullopt;
  return reals->front();
}

class Rewriter {
 public:
  Rewriter(const SerializedGraph& graph, const GraphEdges& edges, const GraphOverrides& overrides)
      : before_(graph), graph_(graph), edges_(edges), overrides_(overrides) {
    for (GraphOp& op : graph_.ops) {
      ops_by_id_.emplace(op.id, &op);
      for (auto* tensors : {&op.inputs, &op.outputs}) {
        for (LogicalTensor& tensor : *tensors) tensors_[tensor.id].push_back(&tensor);
      }
      for (const LogicalTensor& input : op.inputs) ++reads_[input.id];
    }
  }

  Result<SerializedGraph> Run() {
    for (auto step :
         {&Rewriter::RewriteInputs, &Rewriter::RewriteAttributes, &Rewriter::RewriteBatch,
          &Rewriter::RewriteKinds, &Rewriter::RewriteTypes, &Rewriter::ForgetInferred}) {
      if (Status status = (this->*step)(); !status.ok()) return status;
    }
    graph_.ops = InferShapes(graph_.ops, edges_, orders_, before_.ops).ops;
    return std::move(graph_);
  }

 private:
  bool IsWritten(size_t tensor) const { return edges_.writers.contains(tensor); }

  template <class Apply>
  Status Change(size_t id, std::string_view option, const Apply& apply) {
    const auto found = tensors_.find(id);
    if (found == tensors_.end()) {
      return Invalid(std::string(option) + ": the graph has no tensor " + std::to_string(id));
    }
    for (LogicalTensor* tensor : found->second) apply(*tensor);
    return {};
  }

  Status RewriteInputs() {
    for (const auto& [id, change] : overrides_.tensors) {
      const auto found = tensors_.find(id);
      if (found == tensors_.end()) {
        return Invalid("--in-shapes: the graph has no tensor " + std::to_string(id));
      }
      if (IsWritten(id) && reads_.contains(id)) {
        return Invalid("--in-shapes: tensor " + std::to_string(id) +
                       " is between operations, expected an input or an output of the graph");
      }
      LogicalTensor changed = *found->second.front();
      if (Status s = ChangeShape(change, changed); !s.ok()) return s;
      for (LogicalTensor* tensor : found->second) *tensor = changed;
    }
    return {};
  }

  Status ChangeShape(const TensorOverride& change, LogicalTensor& tensor) {
    const std::string name = "--in-shapes: tensor " + std::to_string(tensor.id);
    const std::optional<Dims> extents = change.extents ? change.extents : tensor.extents;
    if (!IsFullyKnown(extents)) {
      if (!IsWritten(tensor.id)) return Invalid(name + " has no known shape to give strides to");
      if (!change.tag.empty()) orders_[tensor.id] = OrderOfTag(change.tag);
      return {};
    }
    const size_t rank = extents->size();
    const size_t given = change.tag.empty() ? change.strides.size() : change.tag.size();
    if (given != 0 && given != rank) {
      return Invalid(name + " has " + std::to_string(rank) + " axes, and its strides or tag " +
                     std::to_string(given));
    }
    AxisOrder order = OrderOfTag(change.tag);
    if (change.tag.empty()) order = OrderOf(Dims(rank, 1));
    const Result<Dims> dense = StridesOf(order, *extents);
    if (!dense.ok()) return Invalid(name + ": " + dense.status().message());
    tensor.extents = extents;
    tensor.layout = LayoutType::kStrided;
    tensor.strides = change.strides.empty() ? *dense : change.strides;
    if (IsWritten(tensor.id)) orders_[tensor.id] = OrderOf(tensor.strides);
    return {};
  }

  // graph_options.h has checked that it is a permutation.
  static AxisOrder OrderOfTag(std::string_view tag) {
    AxisOrder order;
    for (char letter : tag) order.push_back(letter - 'a');
    return order;
  }

  Status RewriteAttributes() {
    for (const auto& [id, changes] : overrides_.attributes) {
      const auto op = ops_by_id_.find(id);
      if (op == ops_by_id_.end()) {
        return Invalid("--op-attrs: the graph has no operation " + std::to_string(id));
      }
      for (const auto& [name, text] : changes) {
        auto& attributes = op->second->attributes;
        auto place = std::ranges::find_if(
            attributes, [&, &key = name](const auto& attribute) { return attribute.first == key; });
        const GraphValue like =
            place == attributes.end() ? TypedLike(name, text) : GraphValue(place->second);
        std::optional<GraphValue> value = ParseAs(like, text);
        if (!value) {
          return Invalid("--op-attrs: " + Quoted(text) + " is no value for " + Quoted(name) +
                         " of operation " + std::to_string(id));
        }
        if (place == attributes.end()) place = attributes.insert(place, {name, {}});
        place->second = *std::move(value);
      }
    }
    return {};
  }

  // Which inputs have the batch as their first axis.
  static bool HasBatch(const GraphOp& op, size_t input) {
    if (input == 0) return true;
    if (IsSupportedKind(op)) {
      const bool two = op.kind.find("BackwardWeights") != std::string::npos ||
                       op.kind.find("BackpropFilters") != std::string::npos;
      return two && input == 1;
    }
    const auto &first = op.inputs[0].extents, &other = op.inputs[input].extents;
    return first && other && !first->empty() && first->size() == other->size() &&
           first->front() == other->front();
  }

  Status RewriteBatch() {
    if (overrides_.batch == 0) return {};
    std::unordered_map<size_t, bool> batched;
    for (const GraphOp& op : graph_.ops) {
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        const LogicalTensor& input = op.inputs[i];
        if (IsWritten(input.id)) continue;
        const bool has = HasBatch(op, i) && IsFullyKnown(input.extents) && !input.extents->empty();
        const auto [entry, is_new] = batched.try_emplace(input.id, has);
        if (!is_new) entry->second = entry->second && has;
      }
    }
    bool any = false;
    for (const auto& [id, has] : batched) {
      if (!has) continue;
      any = true;
      for (LogicalTensor* tensor : tensors_[id]) {
        Dims extents = *tensor->extents;
        extents[0] = overrides_.batch;
        // The outermost axis may have any extent under the same strides.
        const std::optional<AxisOrder> order = KnownOrder(*tensor);
        if (order && order->front() == 0) {
          tensor->extents = extents;
        } else {
          *tensor = Reshaped(*tensor, extents);
        }
      }
    }
    if (!any) return Invalid("--mb: no input of the graph has a batch that could be changed");
    RewriteBatchOfShapes();
    return {};
  }

  // Gradients of data are told their shape.
  void RewriteBatchOfShapes() {
    for (GraphOp& op : graph_.ops) {
      for (auto& [name, value] : op.attributes) {
        auto* list = std::get_if<std::vector<int64_t>>(&value);
        const bool is_shape = name == "dst_shape" || name == "output_shape";
        if (is_shape && list != nullptr && !list->empty() && list->back() >= 0 &&
            std::ranges::any_of(*list, [](int64_t extent) { return extent != 0; })) {
          list->front() = overrides_.batch;
        }
      }
      if (NeedsShape(op) && op.kind.find("Data") != std::string::npos && !op.outputs.empty() &&
          IsFullyKnown(op.outputs[0].extents) && !op.outputs[0].extents->empty()) {
        Dims extents = *op.outputs[0].extents;
        extents[0] = overrides_.batch;
        op.outputs[0] = Reshaped(op.outputs[0], extents);
      }
    }
  }

  Status RewriteKinds() {
    for (const auto& [id, kind] : overrides_.kinds) {
      const auto op = ops_by_id_.find(id);
      if (op == ops_by_id_.end()) {
        return Invalid("--op-kind: the graph has no operation " + std::to_string(id));
      }
      if (kind == "undef") {
        return Invalid("--op-kind: operation " + std::to_string(id) +
                       " cannot be taken out of the graph here");
      }
      op->second->kind = kind;
    }
    return {};
  }

  Status RewriteTypes() {
    if (overrides_.type != ElementType::kUndef) {
      for (GraphOp& op : graph_.ops) {
        for (std::string_view kind :
             {"TypeCast", "Quantize", "Dequantize", "DynamicQuantize", "DynamicDequantize"}) {
          if (op.kind == kind) {
            return Invalid("--dt: the graph has the operation " + op.kind +
                           ", whose inputs and outputs need different types");
          }
        }
        // Means, variances and scales stay f32.
        const bool normalizes = op.kind.find("Norm") != std::string::npos;
        for (auto* tensors : {&op.inputs, &op.outputs}) {
          for (size_t i = 0; i < tensors->size(); ++i) {
            LogicalTensor& tensor = (*tensors)[i];
            if (!IsFloat(tensor.type)) continue;
            if (normalizes && tensor.extents && tensor.extents->size() < 2) continue;
            tensor.type = overrides_.type;
          }
        }
      }
    }
    for (const auto& [id, type] : overrides_.types) {
      const ElementType other = type;
      Status s = Change(id, "--dt", [&](LogicalTensor& tensor) { tensor.type = other; });
      if (!s.ok()) return s;
    }
    for (const auto& [id, property] : overrides_.properties) {
      const PropertyType other = property;
      Status s =
          Change(id, "--tensor-property", [&](LogicalTensor& tensor) { tensor.property = other; });
      if (!s.ok()) return s;
    }
    return {};
  }

  // Whether only the shape of the output says what the gradient's is.
  static bool NeedsShape(const GraphOp& op) {
    const bool told = op.kind.find("BackwardWeights") != std::string::npos ||
                      op.kind.find("BackpropFilters") != std::string::npos ||
                      op.kind.starts_with("ConvolutionBackwardData") ||
                      op.kind.starts_with("ConvolutionBackpropData");
    if (!told) return false;
    for (std::string_view name : {"weights_shape", "filter_shape", "dst_shape", "output_shape"}) {
      const GraphValue* value = op.Find(name);
      const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(value);
      if (list != nullptr && std::ranges::any_of(*list, [](int64_t e) { return e != 0; })) {
        return false;
      }
    }
    return true;
  }

  // What the rest of the graph says of shapes held before the changes.
  Status ForgetInferred() {
    for (GraphOp& op : graph_.ops) {
      for (LogicalTensor& input : op.inputs) {
        if (IsWritten(input.id)) input = Forgotten(input);
      }
    }
    for (size_t index : edges_.order) {
      GraphOp& op = graph_.ops[index];
      if (!IsSupportedKind(op)) continue;
      for (LogicalTensor& output : op.outputs) {
        if (overrides_.tensors.contains(output.id)) continue;
        if (const std::optional<AxisOrder> order = OrderOfOutput(op, output)) {
          orders_.emplace(output.id, *order);
        }
        if (!NeedsShape(op)) output = Forgotten(output);
      }
    }
    return {};
  }

  static LogicalTensor Forgotten(LogicalTensor tensor) {
    tensor.extents.reset();
    tensor.strides.clear();
    return tensor;
  }

  std::optional<AxisOrder> OrderOfOutput(const GraphOp& op, const LogicalTensor& output) const {
    if (!overrides_.tensors.empty() && !op.inputs.empty()) {
      const LogicalTensor& first = op.inputs[0];
      const auto order = orders_.find(first.id);
      if (order != orders_.end()) return order->second;
      if (!IsWritten(first.id)) return KnownOrder(first);
    }
    return KnownOrder(output);
  }

  static std::optional<AxisOrder> KnownOrder(const LogicalTensor& tensor) {
    if (tensor.layout != LayoutType::kStrided || tensor.strides.empty() ||
        std::ranges::count(tensor.strides, kUnknownExtent) > 0) {
      return std::nullopt;
    }
    return OrderOf(tensor.strides);
  }

  const SerializedGraph& before_;
  SerializedGraph graph_;
  const GraphEdges& edges_;
  const GraphOverrides& overrides_;
  std::unordered_map<size_t, GraphOp*> ops_by_id_;
  std::unordered_map<size_t, std::vector<LogicalTensor*>> tensors_;
  std::unordered_map<size_t, int> reads_;
  AxisOrders orders_;
};

}  // namespace

Result<SerializedGraph> Rewrite(const SerializedGraph& graph, const GraphOverrides& overrides) {
  if (overrides.empty()) return graph;
  const Result<GraphEdges> edges = ConnectOperations(graph.ops);
  if (!edges.ok()) return edges.status();
  return Rewriter(graph, *edges, overrides).Run();
}

}  // namespace convgrad::onednn
