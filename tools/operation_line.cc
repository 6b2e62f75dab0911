#include "tools/operation_line.h"

#include <charconv>

#include "core/text.h"
#include "spec/schema.h"

namespace convgrad::tools {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Result<int64_t> ParseNumber(std::string_view what, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Invalid(Join(what, " is '", text, "', expected a whole number of 64 bits"));
  }
  return number;
}

// "2,3" with ','; empty text is an empty list.
Result<Dims> ParseNumbers(std::string_view what, std::string_view text, char separator) {
  Dims numbers;
  if (text.empty()) return numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    Result<int64_t> number = ParseNumber(what, text.substr(at, end - at));
    if (!number.ok()) {
      return Invalid(Join(what, " is '", text,
                          "', expected whole numbers of 64 bits separated by '", separator, "'"));
    }
    numbers.push_back(*number);
    at = end + 1;
  }
  return numbers;
}

Result<AttributeValue> ParseAttribute(const AttributeSchema& schema, const std::string& text) {
  const std::string what = Join("--", schema.name);
  if (schema.type == AttributeType::kString) return AttributeValue(text);
  if (schema.type == AttributeType::kS64List) {
    Result<Dims> list = ParseNumbers(what, text, ',');
    return list.ok() ? Result<AttributeValue>(AttributeValue(*list)) : list.status();
  }
  Result<int64_t> number = ParseNumber(what, text);
  return number.ok() ? Result<AttributeValue>(AttributeValue(*number)) : number.status();
}

template <class Range, class Name>
std::string ListNames(const Range& range, const Name& name) {
  std::vector<std::string_view> names;
  for (const auto& item : range) names.push_back(name(item));
  return JoinWords(names, ", ");
}

// Any operation's attribute: that it is not this one's is for the library to say.
const AttributeSchema* FindAnywhere(std::string_view attribute) {
  for (const OperationSchema& schema : Operations()) {
    if (const AttributeSchema* found = schema.Find(attribute); found != nullptr) return found;
  }
  return nullptr;
}

class Parser {
 public:
  explicit Parser(const OperationSchema& schema) : schema_(schema) {
    line_.operation.kind = schema.kind;
    line_.schema = &schema;
    line_.inputs.resize(schema_.inputs.size());
    line_.outputs.resize(schema_.outputs.size());
  }

  Status AcceptArgument(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    std::string* slot = nullptr;
    for (size_t i = 0; i < schema_.inputs.size(); ++i) {
      if (schema_.inputs[i].name == name) slot = &line_.inputs[i];
    }
    for (size_t i = 0; i < schema_.outputs.size(); ++i) {
      if (schema_.outputs[i].name == name) slot = &line_.outputs[i];
    }
    if (slot == nullptr || equals == std::string_view::npos) {
      const auto argument_name = [](const ArgumentSchema& a) { return a.name; };
      return Invalid(Join("argument '", word, "' is not name=value with a name of ", schema_.name,
                          ": ", ListNames(schema_.inputs, argument_name), ", ",
                          ListNames(schema_.outputs, argument_name)));
    }
    if (!slot->empty()) return Invalid(Join("argument '", name, "' is given twice"));
    if (equals + 1 == word.size()) return Invalid(Join("argument '", name, "' has no value"));
    *slot = word.substr(equals + 1);
    return {};
  }

  // `name` without its dashes.
  Status AcceptAttribute(std::string_view name, const std::string* value) {
    const AttributeSchema* attribute = schema_.Find(name);
    if (attribute == nullptr) attribute = FindAnywhere(name);
    if (attribute == nullptr) {
      return Invalid(
          Join("option '--", name, "' is unknown, ", schema_.name, " has the attributes ",
               ListNames(schema_.attributes, [](const AttributeSchema* a) { return a->name; })));
    }
    if (value == nullptr) return Invalid(Join("option '--", name, "' has no value"));
    if (line_.operation.attributes.Find(name) != nullptr) {
      return Invalid(Join("option '--", name, "' is given twice"));
    }
    Result<AttributeValue> parsed = ParseAttribute(*attribute, *value);
    if (!parsed.ok()) return parsed.status();
    line_.operation.attributes.Set(std::string(name), *parsed);
    return {};
  }

  OperationLine Take() { return std::move(line_); }

 private:
  const OperationSchema& schema_;
  OperationLine line_;
};

// extents[@strides]
Result<TensorDesc> ParseTensor(std::string_view name, std::string_view text, DataType type) {
  TensorDesc desc;
  desc.type = type;
  const size_t at = text.find('@');
  Result<Dims> extents = ParseNumbers(name, text.substr(0, at), 'x');
  if (!extents.ok()) return extents.status();
  desc.extents = *extents;
  if (at == std::string_view::npos) return desc;
  Result<Dims> strides = ParseNumbers(Join("strides of ", name), text.substr(at + 1), ',');
  if (!strides.ok()) return strides.status();
  desc.strides = *strides;
  return desc;
}

Result<TensorDesc> ParseArgument(const ArgumentSchema& schema, const std::string& text,
                                 DataType type) {
  if (schema.role != Role::kShape) return ParseTensor(schema.name, text, type);
  Result<Dims> values = ParseNumbers(schema.name, text, 'x');
  if (!values.ok()) return values.status();
  TensorDesc desc;
  desc.type = DataType::kS64;
  desc.extents = {static_cast<int64_t>(values->size())};
  desc.values = *values;
  return desc;
}

std::string ToText(std::string_view name, const TensorDesc& desc) {
  if (!desc.values.empty()) return Join(" ", name, "=", JoinNumbers(desc.values, "x"));
  return Join(" ", name, "=", JoinNumbers(desc.extents, "x"), desc.strides.empty() ? "" : "@",
              JoinNumbers(desc.strides, ","));
}

}  // namespace

Result<DataType> ParseDataType(std::string_view name) {
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    if (NameOf(type) == name) return type;
  }
  return Invalid(Join("type '", name, "' is unknown, expected f32, bf16 or f16"));
}

Result<OperationLine> ParseOperationLine(std::span<const std::string> words) {
  if (words.empty()) return Invalid("no operation is given, such as ConvolutionBackwardWeights");
  const OperationSchema* schema = FindBackward(words[0]);
  if (schema == nullptr) {
    Result<OpKind> kind = ParseOpKind(words[0]);
    if (!kind.ok()) {
      return Status(kind.status().code(),
                    Join(kind.status().message(),
                         ", or for all gradients ConvolutionBackward, ConvTransposeBackward"));
    }
    schema = &SchemaOf(*kind);
  }
  Parser parser(*schema);
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      if (Status status = parser.AcceptArgument(word); !status.ok()) return status;
      continue;
    }
    const size_t equals = word.find('=');
    if (equals != std::string::npos) {
      const std::string value = word.substr(equals + 1);
      Status status = parser.AcceptAttribute(word.substr(2, equals - 2), &value);
      if (!status.ok()) return status;
      continue;
    }
    const std::string* value = i + 1 < words.size() ? &words[i + 1] : nullptr;
    if (value != nullptr && value->starts_with("--")) value = nullptr;
    Status status = parser.AcceptAttribute(word.substr(2), value);
    if (!status.ok()) return status;
    ++i;
  }
  return parser.Take();
}

Result<Case> ParseCase(std::span<const std::string> words) {
  std::vector<std::string> rest;
  DataType type = DataType::kF32, out_type = DataType::kUndef;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const size_t equals = word.find('=');
    const std::string_view option = word.substr(0, equals);
    if (option != "--dtype" && option != "--out_dtype") {
      rest.push_back(words[i]);
      continue;
    }
    const bool separate = equals == std::string_view::npos;
    if (separate && i + 1 == words.size()) {
      return Invalid(Join("option '", option, "' has no value"));
    }
    Result<DataType> parsed =
        ParseDataType(separate ? std::string_view(words[++i]) : word.substr(equals + 1));
    if (!parsed.ok()) return parsed.status();
    (option == "--dtype" ? type : out_type) = *parsed;
  }
  Result<OperationLine> line = ParseOperationLine(rest);
  if (!line.ok()) return line.status();
  Case result{JoinWords(words, " "), {words.begin(), words.end()}, line->operation, {}, {}};
  const OperationSchema& schema = *line->schema;
  const bool backward = FindBackward(schema.name) != nullptr;
  const auto parse = [&](std::span<const ArgumentSchema> arguments,
                         const std::vector<std::string>& texts, DataType data_type,
                         std::vector<TensorDesc>& descs) {
    for (size_t i = 0; i < texts.size(); ++i) {
      descs.emplace_back();
      if (texts[i].empty()) continue;
      const bool data = backward && arguments[i].role == Role::kSrc;  // diff_src, as src
      Result<TensorDesc> desc = ParseArgument(arguments[i], texts[i], data ? type : data_type);
      if (!desc.ok()) return desc.status();
      descs.back() = *desc;
    }
    return Status();
  };
  if (Status s = parse(schema.inputs, line->inputs, type, result.inputs); !s.ok()) return s;
  const DataType written = out_type == DataType::kUndef ? type : out_type;
  if (Status s = parse(schema.outputs, line->outputs, written, result.outputs); !s.ok()) return s;
  // An output whose shape is inferred still has the type that was asked for.
  if (!backward && !result.outputs[0].given()) result.outputs[0].type = out_type;
  return result;
}

std::string ToText(const Operation& operation, std::span<const TensorDesc> inputs,
                   std::span<const TensorDesc> outputs) {
  const OperationSchema& schema = SchemaOf(operation.kind);
  std::string text(schema.name);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].given()) text += ToText(schema.inputs[i].name, inputs[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].given() && !outputs[i].extents.empty()) {
      text += ToText(schema.outputs[i].name, outputs[i]);
    }
  }
  for (const auto& [name, value] : operation.attributes.entries()) {
    text += Join(" --", name, "=");
    if (value.list() != nullptr) text += JoinNumbers(*value.list(), ",");
    if (value.text() != nullptr) text += *value.text();
    if (value.s64() != nullptr) text += std::to_string(*value.s64());
  }
  if (!inputs.empty()) text += Join(" --dtype=", NameOf(inputs[0].type));
  if (!inputs.empty() && !outputs.empty() && outputs[0].given() &&
      outputs[0].type != inputs[0].type) {
    text += Join(" --out_dtype=", NameOf(outputs[0].type));
  }
  return text;
}

}  // namespace convgrad::tools
