// The table. Rows follow the documents of the oneDNN Graph specification, second generation, with
// the names of the first ("-1") after them.
#include "spec/schema.h"

#include "core/text.h"

namespace convgrad {
namespace {

constexpr std::string_view kAutoPads[] = {"none", "same_upper", "same_lower", "valid"};
constexpr std::string_view kDataFormats[] = {"NXC", "NCX"};
constexpr std::string_view kConvolutionFormats[] = {"XIO", "OIX"};
constexpr std::string_view kConvTransposeFormats[] = {"XOI", "IOX"};

constexpr AttributeSchema kStrides{.name = "strides",
                                   .type = AttributeType::kS64List,
                                   .required = true,
                                   .default_text = "",
                                   .least = 1,
                                   .meaning = "step of the window along each spatial axis"};
constexpr AttributeSchema kPadsBegin{.name = "pads_begin",
                                     .type = AttributeType::kS64List,
                                     .required = true,
                                     .default_text = "",
                                     .empty_is_zeros = true,
                                     .meaning = "zeros before each spatial axis"};
constexpr AttributeSchema kPadsEnd{.name = "pads_end",
                                   .type = AttributeType::kS64List,
                                   .required = true,
                                   .default_text = "",
                                   .empty_is_zeros = true,
                                   .meaning = "zeros after each spatial axis"};
constexpr AttributeSchema kDilations{.name = "dilations",
                                     .type = AttributeType::kS64List,
                                     .required = true,
                                     .default_text = "",
                                     .least = 1,
                                     .meaning = "distance of neighbouring taps, 1 is dense"};
constexpr AttributeSchema kAutoPad{
    .name = "auto_pad",
    .type = AttributeType::kString,
    .required = false,
    .default_text = "none",
    .values = kAutoPads,
    .any_case = true,
    .meaning = "how pads are found; unless none, the pads are ignored"};
constexpr AttributeSchema kOutputPadding{
    .name = "output_padding",
    .type = AttributeType::kS64List,
    .required = false,
    .default_text = "zeros",
    .empty_is_zeros = true,
    .meaning = "extra elements at the end of the larger tensor"};
constexpr AttributeSchema kGroups{.name = "groups",
                                  .type = AttributeType::kS64,
                                  .required = false,
                                  .default_text = "1",
                                  .least = 1,
                                  .meaning = "groups of channels that do not mix"};
constexpr AttributeSchema kDataFormat{.name = "data_format",
                                      .type = AttributeType::kString,
                                      .required = false,
                                      .default_text = "NXC",
                                      .values = kDataFormats,
                                      .meaning = "axis order of src and dst"};
constexpr AttributeSchema kConvolutionFormat{.name = "weights_format",
                                             .type = AttributeType::kString,
                                             .required = false,
                                             .default_text = "XIO",
                                             .values = kConvolutionFormats,
                                             .meaning = "axis order of weights"};
constexpr AttributeSchema kConvTransposeFormat{.name = "weights_format",
                                               .type = AttributeType::kString,
                                               .required = false,
                                               .default_text = "XOI",
                                               .values = kConvTransposeFormats,
                                               .meaning = "axis order of weights"};
constexpr AttributeSchema kFilterFormat{.name = "filter_format",
                                        .type = AttributeType::kString,
                                        .required = false,
                                        .default_text = "XIO",
                                        .values = kConvolutionFormats,
                                        .meaning = "axis order of the filter"};
constexpr AttributeSchema kWeightsShape{.name = "weights_shape",
                                        .type = AttributeType::kS64List,
                                        .required = false,
                                        .default_text = "",
                                        .length = ListLength::kTensor,
                                        .meaning = "shape of diff_weights in weights_format"};
constexpr AttributeSchema kFilterShape{.name = "filter_shape",
                                       .type = AttributeType::kS64List,
                                       .required = false,
                                       .default_text = "",
                                       .length = ListLength::kTensor,
                                       .meaning = "shape of filter_delta in filter_format"};
constexpr AttributeSchema kDstShape{.name = "dst_shape",
                                    .type = AttributeType::kS64List,
                                    .required = false,
                                    .default_text = "",
                                    .length = ListLength::kTensor,
                                    .meaning = "shape of diff_src in data_format"};
constexpr AttributeSchema kOutputShape{.name = "output_shape",
                                       .type = AttributeType::kS64List,
                                       .required = false,
                                       .default_text = "",
                                       .length = ListLength::kTensor,
                                       .meaning = "shape of input_delta in data_format"};

#define WINDOW_ATTRIBUTES &kStrides, &kPadsBegin, &kPadsEnd, &kDilations, &kAutoPad
using AttributeRef = const AttributeSchema*;
constexpr AttributeRef kConvolutionAttributes[] = {WINDOW_ATTRIBUTES, &kGroups, &kDataFormat,
                                                   &kConvolutionFormat};
constexpr AttributeRef kConvolutionDataAttributes[] = {
    WINDOW_ATTRIBUTES, &kOutputPadding, &kGroups, &kDataFormat, &kConvolutionFormat, &kDstShape};
constexpr AttributeRef kConvolutionWeightsAttributes[] = {WINDOW_ATTRIBUTES, &kGroups, &kDataFormat,
                                                          &kConvolutionFormat, &kWeightsShape};
constexpr AttributeRef kConvTransposeAttributes[] = {WINDOW_ATTRIBUTES, &kOutputPadding, &kGroups,
                                                     &kDataFormat, &kConvTransposeFormat};
constexpr AttributeRef kConvTransposeWeightsAttributes[] = {
    WINDOW_ATTRIBUTES, &kOutputPadding,       &kGroups,
    &kDataFormat,      &kConvTransposeFormat, &kWeightsShape};
constexpr AttributeRef kConvolutionDataAttributes1[] = {
    WINDOW_ATTRIBUTES, &kOutputPadding, &kGroups, &kDataFormat, &kFilterFormat, &kOutputShape};
constexpr AttributeRef kConvolutionFiltersAttributes1[] = {
    WINDOW_ATTRIBUTES, &kGroups, &kDataFormat, &kFilterFormat, &kFilterShape};
constexpr AttributeRef kConvTransposeDataAttributes1[] = {WINDOW_ATTRIBUTES, &kOutputPadding,
                                                          &kGroups, &kDataFormat, &kFilterFormat};
constexpr AttributeRef kConvTransposeFiltersAttributes1[] = {
    WINDOW_ATTRIBUTES, &kOutputPadding, &kGroups, &kDataFormat, &kFilterFormat, &kFilterShape};
#undef WINDOW_ATTRIBUTES

constexpr ArgumentSchema kForwardInputs[] = {
    {"src", Role::kSrc, true}, {"weights", Role::kWeights, true}, {"bias", Role::kBias, false}};
constexpr ArgumentSchema kForwardOutputs[] = {{"dst", Role::kDst, true}};
constexpr ArgumentSchema kConvolutionDataInputs[] = {{"diff_dst", Role::kDst, true},
                                                     {"weights", Role::kWeights, true},
                                                     {"dst_shape", Role::kShape, false}};
constexpr ArgumentSchema kConvTransposeDataInputs[] = {{"diff_dst", Role::kDst, true},
                                                       {"weights", Role::kWeights, true}};
constexpr ArgumentSchema kDataOutputs[] = {{"diff_src", Role::kSrc, true}};
constexpr ArgumentSchema kWeightsInputs[] = {{"src", Role::kSrc, true},
                                             {"diff_dst", Role::kDst, true},
                                             {"weights_shape", Role::kShape, false}};
constexpr ArgumentSchema kWeightsOutputs[] = {{"diff_weights", Role::kWeights, true},
                                              {"diff_bias", Role::kBias, false, true}};
constexpr ArgumentSchema kConvolutionDataInputs1[] = {{"output_delta", Role::kDst, true},
                                                      {"filter", Role::kWeights, true},
                                                      {"output_shape", Role::kShape, false}};
constexpr ArgumentSchema kConvTransposeDataInputs1[] = {{"output_delta", Role::kDst, true},
                                                        {"filter", Role::kWeights, true}};
constexpr ArgumentSchema kDataOutputs1[] = {{"input_delta", Role::kSrc, true}};
constexpr ArgumentSchema kFiltersInputs1[] = {{"input_forward", Role::kSrc, true},
                                              {"output_delta", Role::kDst, true},
                                              {"filter_shape", Role::kShape, false}};
constexpr ArgumentSchema kFiltersOutputs1[] = {{"filter_delta", Role::kWeights, true},
                                               {"bias_delta", Role::kBias, false, true}};

constexpr auto kConv = Family::kConvolution;
constexpr auto kConvT = Family::kConvTranspose;
constexpr OperationSchema kOperations[] = {
    {OpKind::kConvolution, "Convolution", OpKind::kConvolution, kConv, kForwardInputs,
     kForwardOutputs, kConvolutionAttributes},
    {OpKind::kConvolutionBackwardData, "ConvolutionBackwardData", OpKind::kConvolutionBackwardData,
     kConv, kConvolutionDataInputs, kDataOutputs, kConvolutionDataAttributes},
    {OpKind::kConvolutionBackwardWeights, "ConvolutionBackwardWeights",
     OpKind::kConvolutionBackwardWeights, kConv, kWeightsInputs, kWeightsOutputs,
     kConvolutionWeightsAttributes},
    {OpKind::kConvTranspose, "ConvTranspose", OpKind::kConvTranspose, kConvT, kForwardInputs,
     kForwardOutputs, kConvTransposeAttributes},
    {OpKind::kConvTransposeBackwardData, "ConvTransposeBackwardData",
     OpKind::kConvTransposeBackwardData, kConvT, kConvTransposeDataInputs, kDataOutputs,
     kConvTransposeAttributes},
    {OpKind::kConvTransposeBackwardWeights, "ConvTransposeBackwardWeights",
     OpKind::kConvTransposeBackwardWeights, kConvT, kWeightsInputs, kWeightsOutputs,
     kConvTransposeWeightsAttributes},
    {OpKind::kConvolutionBackpropData, "ConvolutionBackpropData", OpKind::kConvolutionBackwardData,
     kConv, kConvolutionDataInputs1, kDataOutputs1, kConvolutionDataAttributes1},
    {OpKind::kConvolutionBackpropFilters, "ConvolutionBackpropFilters",
     OpKind::kConvolutionBackwardWeights, kConv, kFiltersInputs1, kFiltersOutputs1,
     kConvolutionFiltersAttributes1},
    {OpKind::kConvTransposeBackpropData, "ConvTransposeBackpropData",
     OpKind::kConvTransposeBackwardData, kConvT, kConvTransposeDataInputs1, kDataOutputs1,
     kConvTransposeDataAttributes1},
    {OpKind::kConvTransposeBackpropFilters, "ConvTransposeBackpropFilters",
     OpKind::kConvTransposeBackwardWeights, kConvT, kFiltersInputs1, kFiltersOutputs1,
     kConvTransposeFiltersAttributes1},
};

constexpr ArgumentSchema kBackwardInputs[] = {
    {"src", Role::kSrc, true}, {"weights", Role::kWeights, true}, {"diff_dst", Role::kDst, true}};
constexpr ArgumentSchema kBackwardOutputs[] = {{"diff_src", Role::kSrc, false, true},
                                               {"diff_weights", Role::kWeights, false, true},
                                               {"diff_bias", Role::kBias, false, true}};
constexpr OperationSchema kBackwardOperations[] = {
    {OpKind::kConvolution, "ConvolutionBackward", OpKind::kConvolution, kConv, kBackwardInputs,
     kBackwardOutputs, kConvolutionAttributes},
    {OpKind::kConvTranspose, "ConvTransposeBackward", OpKind::kConvTranspose, kConvT,
     kBackwardInputs, kBackwardOutputs, kConvTransposeAttributes},
};

constexpr bool RowsFollowEnum() {
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (static_cast<size_t>(kOperations[i].kind) != i) return false;
  }
  return true;
}
static_assert(RowsFollowEnum(), "SchemaOf indexes the table by OpKind");

}  // namespace

const AttributeSchema* OperationSchema::Find(std::string_view attribute) const {
  for (const AttributeSchema* schema : attributes) {
    if (schema->name == attribute) return schema;
  }
  return nullptr;
}

const AttributeSchema& OperationSchema::weights_format() const {
  const AttributeSchema* schema = Find("weights_format");
  return schema != nullptr ? *schema : *Find("filter_format");
}

const AttributeSchema* OperationSchema::shape_attribute() const {
  for (const AttributeSchema* schema : attributes) {
    if (schema->length == ListLength::kTensor) return schema;
  }
  return nullptr;
}

std::span<const OperationSchema> Operations() { return kOperations; }

const OperationSchema* FindBackward(std::string_view name) {
  for (const OperationSchema& schema : kBackwardOperations) {
    if (schema.name == name) return &schema;
  }
  return nullptr;
}

const OperationSchema& SchemaOf(OpKind kind) { return kOperations[static_cast<size_t>(kind)]; }

std::string_view NameOf(AttributeType type) {
  return type == AttributeType::kS64 ? "s64" : type == AttributeType::kString ? "string" : "s64[]";
}

std::string_view NameOf(OpKind kind) noexcept {
  return static_cast<size_t>(kind) < std::size(kOperations) ? SchemaOf(kind).name : "unknown";
}

Result<OpKind> ParseOpKind(std::string_view name) noexcept try {
  for (const OperationSchema& schema : kOperations) {
    if (name == schema.name) return schema.kind;
    if (schema.first_generation() && name == Join(schema.name, "-1")) return schema.kind;
  }
  std::string names;
  for (const OperationSchema& schema : kOperations) {
    names += Join(names.empty() ? "" : ", ", schema.name);
  }
  return Status(StatusCode::kInvalidArgument,
                Join("operation '", name, "' is unknown, expected one of ", names));
} catch (...) {  // the sentence could not be made
  return Status(StatusCode::kOutOfMemory, "out of memory");
}

}  // namespace convgrad
