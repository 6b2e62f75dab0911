// From a JSON tree to a graph. Each function reads one kind of value at one place; the first value
// that is not what its place needs is the error.
#include "onednn/serialized_graph.h"

#include <cmath>
#include <limits>
#include <utility>

#include "onednn/json_tree.h"

namespace convgrad::onednn {
namespace {

// Far above any operation's: reading them into convgrad's attributes compares each with all others.
constexpr size_t kMostAttributes = 256;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Status Unexpected(const JsonPlace& place, const JsonValue& value, const std::string& expected) {
  const std::string path = place.Text();
  return Invalid((path.empty() ? "the top level" : path) + " is " + value.Describe() +
                 ", expected " + expected);
}

Status Missing(const JsonPlace& place, std::string_view key) {
  return Invalid(place.Member(key).Text() + " is missing");
}

Status Read(const JsonValue& value, const JsonPlace& place, std::string* out) {
  const auto* text = value.As<std::string>();
  if (text == nullptr) return Unexpected(place, value, "a string");
  *out = *text;
  return {};
}

Status Read(const JsonValue& value, const JsonPlace& place, int64_t* out) {
  const auto* number = value.As<int64_t>();
  if (number == nullptr) return Unexpected(place, value, "a whole number that s64 has");
  *out = *number;
  return {};
}

Status Read(const JsonValue& value, const JsonPlace& place, size_t* out) {
  const auto* number = value.As<int64_t>();
  const auto* large = value.As<uint64_t>();
  if (large == nullptr && (number == nullptr || *number < 0)) {
    return Unexpected(place, value, "a whole number from 0 to 18446744073709551615");
  }
  *out = large != nullptr ? size_t{*large} : static_cast<size_t>(*number);
  return {};
}

Status Read(const JsonValue& value, const JsonPlace& place, float* out) {
  double number = 0;
  if (const auto* whole = value.As<int64_t>()) {
    number = static_cast<double>(*whole);
  } else if (const auto* large = value.As<uint64_t>()) {
    number = static_cast<double>(*large);
  } else if (const auto* real = value.As<double>()) {
    number = *real;
  } else {
    return Unexpected(place, value, "a number");
  }
  // What rounds to infinity is not a number of f32, either.
  if (!(std::abs(number) < 0x1.ffffffp127))
    return Unexpected(place, value, "a number that f32 has");
  *out = static_cast<float>(number);
  return {};
}

// oneDNN writes 0 and 1.
Status Read(const JsonValue& value, const JsonPlace& place, bool* out) {
  const auto* truth = value.As<bool>();
  const auto* number = value.As<int64_t>();
  if (truth == nullptr && (number == nullptr || (*number != 0 && *number != 1))) {
    return Unexpected(place, value, "true, false, 1 or 0");
  }
  *out = truth != nullptr ? *truth : *number == 1;
  return {};
}

Status Read(const JsonValue& value, const JsonPlace& place, LogicalTensor* tensor);
Status Read(const JsonValue& value, const JsonPlace& place, GraphOp* op);

template <class T>
Status Read(const JsonValue& value, const JsonPlace& place, std::vector<T>* out) {
  const auto* list = value.As<JsonValue::List>();
  if (list == nullptr) return Unexpected(place, value, "a list");
  for (size_t i = 0; i < list->size(); ++i) {
    if (Status s = Read((*list)[i], place.Item(i), &out->emplace_back()); !s.ok()) return s;
  }
  return {};
}

// A member that must be there, and one that need not.
template <class T>
Status ReadMember(const JsonValue& object, const JsonPlace& place, std::string_view key, T* out) {
  const JsonValue* member = object.Find(key);
  if (member == nullptr) return Missing(place, key);
  return Read(*member, place.Member(key), out);
}

template <class T>
Status ReadOptional(const JsonValue& object, const JsonPlace& place, std::string_view key, T* out) {
  const JsonValue* member = object.Find(key);
  return member == nullptr ? Status() : Read(*member, place.Member(key), out);
}

template <class Enum, class Parse>
Status ReadName(const JsonValue& object, const JsonPlace& place, std::string_view key, Parse parse,
                const char* expected, Enum* out) {
  const JsonValue* member = object.Find(key);
  if (member == nullptr) return {};
  std::string name;
  if (Status s = Read(*member, place.Member(key), &name); !s.ok()) return s;
  const std::optional<Enum> value = parse(name);
  if (!value) return Unexpected(place.Member(key), *member, expected);
  *out = *value;
  return {};
}

bool IsUnknown(const Dims& numbers) { return numbers.size() == 1 && numbers[0] < 0; }

// Any negative number is unknown: INT64_MIN now, -1 in older versions.
Dims WithUnknowns(Dims numbers) {
  for (int64_t& number : numbers) {
    if (number < 0) number = kUnknownExtent;
  }
  return numbers;
}

Status ReadLayout(const JsonValue& value, const JsonPlace& place, LogicalTensor* tensor) {
  Status s = ReadName(value, place, "layout_type", ParseLayoutType, "undef, any, strided or opaque",
                      &tensor->layout);
  if (!s.ok()) return s;
  Dims shape, strides;
  if (s = ReadMember(value, place, "shape", &shape); !s.ok()) return s;
  if (shape.size() > kLargestRank) {
    return Unexpected(place.Member("shape"), *value.Find("shape"),
                      "at most " + std::to_string(kLargestRank));
  }
  if (!IsUnknown(shape)) tensor->extents = WithUnknowns(std::move(shape));
  const bool has_strides = value.Find("stride") != nullptr;
  if (s = ReadOptional(value, place, "stride", &strides); !s.ok()) return s;
  const bool known = has_strides && !IsUnknown(strides);
  if (tensor->layout == LayoutType::kUndef && known) tensor->layout = LayoutType::kStrided;
  if (tensor->layout != LayoutType::kStrided || !tensor->extents) return {};
  const size_t rank = tensor->extents->size();
  if (known && strides.size() != rank) {
    return Unexpected(place.Member("stride"), *value.Find("stride"),
                      "as many as shape has, " + std::to_string(rank));
  }
  tensor->strides = known ? WithUnknowns(std::move(strides)) : Dims(rank, kUnknownExtent);
  return {};
}

Status Read(const JsonValue& value, const JsonPlace& place, LogicalTensor* tensor) {
  if (value.As<JsonValue::Object>() == nullptr) return Unexpected(place, value, "an object");
  Status s = ReadMember(value, place, "id", &tensor->id);
  if (!s.ok()) return s;
  s = ReadName(value, place, "dtype", ParseElementType,
               "a type of oneDNN such as f32, bf16, f16 or s32", &tensor->type);
  if (!s.ok()) return s;
  if (value.Find("dtype") == nullptr) return Missing(place, "dtype");
  if (s = ReadLayout(value, place, tensor); !s.ok()) return s;
  return ReadName(value, place, "property_type", ParsePropertyType,
                  "undef, variable, constant or host_scalar", &tensor->property);
}

template <class T>
Status ReadValue(const JsonValue& object, const JsonPlace& place, GraphValue* out) {
  T value{};
  Status status = ReadMember(object, place, "value", &value);
  *out = std::move(value);
  return status;
}

Status Read(const JsonValue& value, const JsonPlace& place, GraphValue* out) {
  if (value.As<JsonValue::Object>() == nullptr) {
    return Unexpected(place, value, "an object with type and value");
  }
  std::string type;
  if (Status s = ReadMember(value, place, "type", &type); !s.ok()) return s;
  if (type == "string") return ReadValue<std::string>(value, place, out);
  if (type == "bool") return ReadValue<bool>(value, place, out);
  if (type == "s64") return ReadValue<int64_t>(value, place, out);
  if (type == "s64[]") return ReadValue<std::vector<int64_t>>(value, place, out);
  if (type == "f32") return ReadValue<float>(value, place, out);
  if (type == "f32[]") return ReadValue<std::vector<float>>(value, place, out);
  return Unexpected(place.Member("type"), *value.Find("type"),
                    "string, bool, s64, s64[], f32 or f32[]");
}

Status ReadAttributes(const JsonValue& value, const JsonPlace& place, GraphOp* op) {
  const auto* members = value.As<JsonValue::Object>();
  if (members == nullptr) return Unexpected(place, value, "an object");
  if (members->size() > kMostAttributes) {
    return Invalid(place.Text() + " has " + std::to_string(members->size()) +
                   " attributes, expected at most " + std::to_string(kMostAttributes));
  }
  for (const JsonMember& member : *members) {
    auto& [name, attribute] = op->attributes.emplace_back();
    name = member.key;
    Status s = Read(member.value, place.Member(member.key), &attribute);
    if (!s.ok()) return s;
  }
  return {};
}

Status Read(const JsonValue& value, const JsonPlace& place, GraphOp* op) {
  if (value.As<JsonValue::Object>() == nullptr) return Unexpected(place, value, "an object");
  Status s = ReadMember(value, place, "id", &op->id);
  if (s.ok()) s = ReadOptional(value, place, "name", &op->name);
  if (s.ok()) s = ReadMember(value, place, "kind", &op->kind);
  if (const JsonValue* attributes = value.Find("attrs"); s.ok() && attributes != nullptr) {
    s = ReadAttributes(*attributes, place.Member("attrs"), op);
  }
  if (s.ok()) s = ReadMember(value, place, "inputs", &op->inputs);
  if (s.ok()) s = ReadMember(value, place, "outputs", &op->outputs);
  return s;
}

Status ReadPorts(const JsonValue& top, std::string_view key,
                 std::optional<std::vector<size_t>>* ports) {
  if (top.Find(key) == nullptr) return {};
  return ReadMember(top, JsonPlace(), key, &ports->emplace());
}

}  // namespace

Result<SerializedGraph> ReadSerializedGraph(std::string_view text) {
  const Result<JsonValue> tree = ParseJson(text);
  if (!tree.ok()) return tree.status();
  const JsonPlace top;
  if (tree->As<JsonValue::Object>() == nullptr) return Unexpected(top, *tree, "an object");
  SerializedGraph graph;
  Status s = ReadOptional(*tree, top, "version", &graph.version);
  if (s.ok()) s = ReadOptional(*tree, top, "engine_kind", &graph.engine_kind);
  if (s.ok()) s = ReadOptional(*tree, top, "fpmath_mode", &graph.fpmath_mode);
  if (s.ok()) {
    s = ReadOptional(*tree, top, "fpmath_mode_apply_to_int", &graph.fpmath_mode_apply_to_int);
  }
  if (s.ok()) s = ReadPorts(*tree, "input_ports", &graph.input_ports);
  if (s.ok()) s = ReadPorts(*tree, "output_ports", &graph.output_ports);
  if (s.ok()) s = ReadMember(*tree, top, "graph", &graph.ops);
  if (s.ok() && graph.ops.empty()) s = Invalid("graph has no operation");
  if (!s.ok()) return s;
  return graph;
}

}  // namespace convgrad::onednn
