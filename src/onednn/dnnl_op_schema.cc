// What dnnl_graph_add_op checks: the operations of the convolution family against a table of their
// tensors and attributes. Of other kinds, which convgrad does not run, attributes must have values
// of their kind. What needs extents is checked when a partition is compiled.
#include <algorithm>
#include <cctype>
#include <span>

#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {
namespace {

constexpr std::string_view kValueKindNames[] = {"f32", "f32[]", "s64", "s64[]", "bool", "string"};

struct AttributeRow {
  std::string_view name;
  ValueKind kind;
  bool required = false;
  std::span<const std::string_view> values{};  // strings: the legal ones
  bool any_case = false;                       // then the values are in lower case
};

enum class ThirdInput { kNone, kBias, kShape };

struct OpRow {
  dnnl_graph_op_kind_t kind;
  ThirdInput third;
  std::span<const AttributeRow> attributes;
};

constexpr std::string_view kAutoPads[] = {"none", "same_upper", "same_lower", "valid"};
constexpr std::string_view kDataFormats[] = {"NXC", "NCX"};
constexpr std::string_view kConvolutionFormats[] = {"XIO", "OIX"};
constexpr std::string_view kConvTransposeFormats[] = {"XOI", "IOX"};

constexpr AttributeRow kStrides{"strides", ValueKind::kS64List, true};
constexpr AttributeRow kPadsBegin{"pads_begin", ValueKind::kS64List, true};
constexpr AttributeRow kPadsEnd{"pads_end", ValueKind::kS64List, true};
constexpr AttributeRow kDilations{"dilations", ValueKind::kS64List, true};
constexpr AttributeRow kAutoPad{"auto_pad", ValueKind::kString, false, kAutoPads, true};
constexpr AttributeRow kGroups{"groups", ValueKind::kS64};
constexpr AttributeRow kDataFormat{"data_format", ValueKind::kString, false, kDataFormats};
constexpr AttributeRow kConvolutionFormat{"weights_format", ValueKind::kString, false,
                                          kConvolutionFormats};
constexpr AttributeRow kConvTransposeFormat{"weights_format", ValueKind::kString, false,
                                            kConvTransposeFormats};
constexpr AttributeRow kOutputPadding{"output_padding", ValueKind::kS64List};
constexpr AttributeRow kDstShape{"dst_shape", ValueKind::kS64List};
constexpr AttributeRow kWeightsShape{"weights_shape", ValueKind::kS64List};

#define WINDOW_ROWS kStrides, kPadsBegin, kPadsEnd, kDilations, kAutoPad, kGroups, kDataFormat
constexpr AttributeRow kConvolution[] = {WINDOW_ROWS, kConvolutionFormat};
constexpr AttributeRow kConvolutionData[] = {WINDOW_ROWS, kConvolutionFormat, kOutputPadding,
                                             kDstShape};
constexpr AttributeRow kConvolutionWeights[] = {WINDOW_ROWS, kConvolutionFormat, kWeightsShape};
constexpr AttributeRow kConvTranspose[] = {WINDOW_ROWS, kConvTransposeFormat, kOutputPadding};
constexpr AttributeRow kConvTransposeWeights[] = {WINDOW_ROWS, kConvTransposeFormat, kOutputPadding,
                                                  kWeightsShape};
#undef WINDOW_ROWS

constexpr OpRow kOps[] = {
    {dnnl_graph_op_convolution, ThirdInput::kBias, kConvolution},
    {dnnl_graph_op_convolution_backward_data, ThirdInput::kShape, kConvolutionData},
    {dnnl_graph_op_convolution_backward_weights, ThirdInput::kShape, kConvolutionWeights},
    {dnnl_graph_op_conv_transpose, ThirdInput::kBias, kConvTranspose},
    {dnnl_graph_op_conv_transpose_backward_data, ThirdInput::kNone, kConvTranspose},
    {dnnl_graph_op_conv_transpose_backward_weights, ThirdInput::kShape, kConvTransposeWeights},
};

const OpRow* FindRow(dnnl_graph_op_kind_t kind) {
  for (const OpRow& row : kOps) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

dnnl_status_t RefuseOp(const GraphOp& op, const std::string& why) {
  return Refuse(dnnl_invalid_graph_op, op.kind + " with id " + std::to_string(op.id) + ": " + why);
}

dnnl_status_t CheckValueKind(const GraphOp& op, std::string_view name, const GraphValue& value,
                             ValueKind expected) {
  const size_t kind = static_cast<size_t>(expected);
  if (value.index() == kind) return dnnl_success;
  return RefuseOp(op, "attribute " + std::string(name) + " is of " +
                          std::string(kValueKindNames[value.index()]) + ", expected " +
                          std::string(kValueKindNames[kind]));
}

// Checks one operation; the reasons name it.
class Verifier {
 public:
  Verifier(const GraphOp& op, const OpRow& row) : op_(op), row_(row) {}

  dnnl_status_t Verify() const {
    for (auto step : {&Verifier::CheckCounts, &Verifier::CheckTypes, &Verifier::CheckRequired,
                      &Verifier::CheckAttributes}) {
      if (dnnl_status_t s = (this->*step)(); s != dnnl_success) return s;
    }
    return dnnl_success;
  }

 private:
  dnnl_status_t No(const std::string& why) const { return RefuseOp(op_, why); }

  dnnl_status_t CheckCounts() const {
    const size_t inputs = op_.inputs.size(), outputs = op_.outputs.size();
    const size_t most = row_.third == ThirdInput::kNone ? 2 : 3;
    if (inputs < 2 || inputs > most) {
      return No("it has " + std::to_string(inputs) + " inputs, expected 2" +
                (most == 3 ? " or 3" : ""));
    }
    if (outputs != 1) return No("it has " + std::to_string(outputs) + " outputs, expected 1");
    return dnnl_success;
  }

  dnnl_status_t CheckTypes() const {
    const ElementType type = op_.inputs[0].type;
    if (type != ElementType::kF32 && type != ElementType::kBF16 && type != ElementType::kF16) {
      return No("input 0 has type " + std::string(NameOf(type)) + ", expected f32, bf16 or f16");
    }
    for (size_t i = 1; i < op_.inputs.size(); ++i) {
      const ElementType own = op_.inputs[i].type;
      if (i == 2 && row_.third == ThirdInput::kShape) {
        if (own == ElementType::kS32 || own == ElementType::kS64) continue;
        return No("input 2 has type " + std::string(NameOf(own)) + ", expected s32 or s64");
      }
      if (own != type) return WrongType("input " + std::to_string(i), own, type);
    }
    return op_.outputs[0].type == type ? dnnl_success
                                       : WrongType("output 0", op_.outputs[0].type, type);
  }

  dnnl_status_t WrongType(const std::string& which, ElementType own, ElementType expected) const {
    return No(which + " has type " + std::string(NameOf(own)) + ", expected " +
              std::string(NameOf(expected)) + " as input 0 has");
  }

  dnnl_status_t CheckRequired() const {
    for (const AttributeRow& row : row_.attributes) {
      if (!row.required || op_.Find(row.name) != nullptr) continue;
      return No("attribute " + std::string(row.name) + " is missing");
    }
    return dnnl_success;
  }

  dnnl_status_t CheckAttributes() const {
    for (const auto& [name, value] : op_.attributes) {
      const auto row = std::ranges::find(row_.attributes, name, &AttributeRow::name);
      if (row == row_.attributes.end()) return No("it has no attribute " + name);
      if (dnnl_status_t s = CheckValue(*row, value); s != dnnl_success) return s;
    }
    return dnnl_success;
  }

  dnnl_status_t CheckValue(const AttributeRow& row, const GraphValue& value) const {
    const std::string name(row.name);
    if (auto s = CheckValueKind(op_, row.name, value, row.kind); s != dnnl_success) return s;
    if (const auto* text = std::get_if<std::string>(&value)) {
      std::string word = *text;
      if (row.any_case) {
        std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
      }
      if (std::ranges::find(row.values, word) == row.values.end()) {
        return No("attribute " + name + " is '" + *text + "', which is not one of its values");
      }
    }
    if (row.name == kPadsBegin.name || row.name == kPadsEnd.name) {
      for (int64_t pad : std::get<std::vector<int64_t>>(value)) {
        if (pad < 0) return No("attribute " + name + " is " + std::to_string(pad) + ", at least 0");
      }
    }
    return dnnl_success;
  }

  const GraphOp& op_;
  const OpRow& row_;
};

}  // namespace

bool IsSupported(const AddedOp& added, dnnl_engine_kind_t engine_kind) {
  return engine_kind == dnnl_cpu && FindRow(added.kind) != nullptr;
}

dnnl_status_t VerifyOp(const AddedOp& added) {
  const OpRow* row = FindRow(added.kind);
  if (row != nullptr) return Verifier(added.op, *row).Verify();
  if (added.kind == dnnl_graph_op_wildcard) return dnnl_success;  // it stands for anything
  for (const auto& [name, value] : added.op.attributes) {
    const std::optional<ValueKind> kind = ValueKindOf(name);
    if (!kind) continue;
    if (auto s = CheckValueKind(added.op, name, value, *kind); s != dnnl_success) return s;
  }
  return dnnl_success;
}

}  // namespace convgrad::onednn
