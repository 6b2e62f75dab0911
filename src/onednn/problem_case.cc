// Descriptor + choice -> operation + tensors. A tag becomes a format of the specification with
// dense strides where one says exactly that, so that suites exercise the formats themselves, and
// explicit strides under NCX, OIX or IOX everywhere else.
#include "onednn/problem_case.h"

#include <array>
#include <limits>
#include <optional>

#include "onednn/memory_tag.h"

namespace convgrad::onednn {
namespace {

struct Layout {
  std::string format;
  TensorDesc desc;
};

Status Prefixed(std::string_view option, std::string_view tag, const Status& status) {
  return Status(status.code(),
                std::string(option) + "=" + std::string(tag) + ": " + status.message());
}

// --- data ---------------------------------------------------------------------------------------

// `strides` as --strides has them for one tensor of these extents.
Status CheckStrides(std::string_view tensor, const Dims& strides, std::string_view tag,
                    const Dims& extents) {
  const std::string option = "--strides for " + std::string(tensor);
  const size_t axes = extents.size();
  if (tag != "any") {
    return Status(StatusCode::kInvalidArgument, option + " must not be given beside its tag " +
                                                    std::string(tag) +
                                                    ": one of the two says where the elements lie");
  }
  if (strides.size() != axes) {
    return Status(StatusCode::kInvalidShape, option + " has " + std::to_string(strides.size()) +
                                                 " numbers, and must have one for each of " +
                                                 std::to_string(axes) + " axes");
  }
  __extension__ using Wide = __int128;
  Wide reach = 0;  // two numbers of at most kLargestNumber each: no sum of a few products wraps
  for (size_t a = 0; a < axes; ++a) reach += Wide{extents[a]} * strides[a];
  if (reach <= std::numeric_limits<int64_t>::max() / 8) return {};
  return Status(StatusCode::kInvalidShape,
                option + " makes a tensor of more bytes than 64 bits can count");
}

struct DataTensor {
  AxisOrder order;  // empty where explicit strides say it
  Dims extents;     // n, c, spatial
  Dims strides;     // of the same axes
};

Result<DataTensor> ReadDataTag(std::string_view option, std::string_view tag, Dims extents,
                               const Dims& explicit_strides) {
  DataTensor tensor;
  if (!explicit_strides.empty()) {
    const std::string_view name = option == "--stag" ? "src" : "dst";
    if (Status status = CheckStrides(name, explicit_strides, tag, extents); !status.ok()) {
      return status;
    }
    tensor.extents = std::move(extents);
    tensor.strides = explicit_strides;
    return tensor;
  }
  Result<AxisOrder> order = DataOrder(tag, static_cast<int>(extents.size()) - 2);
  if (!order.ok()) return Prefixed(option, tag, order.status());
  Result<Dims> strides = StridesOf(*order, extents);
  if (!strides.ok()) return Prefixed(option, tag, strides.status());
  tensor.order = *std::move(order);
  tensor.extents = std::move(extents);
  tensor.strides = *std::move(strides);
  return tensor;
}

bool IsChannelsLast(const DataTensor& tensor) {
  AxisOrder expected{0};
  for (size_t axis = 2; axis < tensor.extents.size(); ++axis) {
    expected.push_back(static_cast<int>(axis));
  }
  expected.push_back(1);
  return tensor.order == expected;
}

bool IsChannelsFirst(const DataTensor& tensor) {
  if (tensor.order.empty()) return false;
  for (size_t axis = 0; axis < tensor.order.size(); ++axis) {
    if (tensor.order[axis] != static_cast<int>(axis)) return false;
  }
  return true;
}

// data_format is one attribute for both tensors, so `channels_last` is too.
TensorDesc DescOf(const DataTensor& tensor, DataType type, bool channels_last) {
  TensorDesc desc;
  desc.type = type;
  desc.extents = tensor.extents;
  if (channels_last) {
    desc.extents.erase(desc.extents.begin() + 1);
    desc.extents.push_back(tensor.extents[1]);
  } else if (!IsChannelsFirst(tensor)) {
    desc.strides = tensor.strides;
  }
  return desc;
}

// --- weights ------------------------------------------------------------------------------------

// The axes of weights as WeightsOrder numbers them.
enum WeightsAxis { kG, kO, kI, kFirstSpatial };

// A weights shape of the specification: the format, its axes from the outermost, and the channel
// axis of which the groups are the slow part.
struct PublicShape {
  std::string_view format;
  bool spatial_first;
  std::array<int, 2> channels;  // the order of the two channel axes
  int grouped;
};

constexpr std::array<PublicShape, 2> kConvolutionShapes = {{
    {"OIX", false, {kO, kI}, kO},
    {"XIO", true, {kI, kO}, kO},
}};
constexpr std::array<PublicShape, 4> kConvTransposeShapes = {{
    {"IOX", false, {kI, kO}, kI},
    {"XOI", true, {kO, kI}, kI},
    {"IOX", false, {kI, kO}, kO},
    {"XOI", true, {kO, kI}, kO},
}};

std::vector<PublicShape> PublicShapes(bool transposed) {
  if (transposed) return {kConvTransposeShapes.begin(), kConvTransposeShapes.end()};
  return {kConvolutionShapes.begin(), kConvolutionShapes.end()};
}

// The axes of `shape` from the outermost, with the g before the channel that it belongs to.
AxisOrder OrderOf(const PublicShape& shape, int rank, bool with_g) {
  AxisOrder spatial, order;
  for (int axis = 0; axis < rank; ++axis) spatial.push_back(kFirstSpatial + axis);
  if (shape.spatial_first) order = spatial;
  for (int channel : shape.channels) {
    if (with_g && channel == shape.grouped) order.push_back(kG);
    order.push_back(channel);
  }
  if (!shape.spatial_first) order.insert(order.end(), spatial.begin(), spatial.end());
  return order;
}

struct WeightsTensor {
  AxisOrder order;  // empty where explicit strides say it
  Dims extents;     // g, o, i, spatial
  Dims strides;     // of the same axes

  int rank() const { return static_cast<int>(extents.size()) - kFirstSpatial; }
};

// The stride of the public axis that joins g and `channel`, if there is one.
std::optional<int64_t> JoinedStride(const WeightsTensor& weights, int channel) {
  const int64_t stride = weights.strides[static_cast<size_t>(channel)];
  const int64_t extent = weights.extents[static_cast<size_t>(channel)];
  if (weights.extents[kG] == 1) return stride;
  if (extent == 1 || weights.strides[kG] == extent * stride) {
    return extent == 1 ? weights.strides[kG] : stride;
  }
  return std::nullopt;
}

Layout Publish(const WeightsTensor& weights, const PublicShape& shape, int64_t joined_stride,
               bool dense) {
  Layout layout;
  layout.format = std::string(shape.format);
  for (int axis : OrderOf(shape, weights.rank(), false)) {
    const size_t index = static_cast<size_t>(axis);
    const bool joined = axis == shape.grouped;
    layout.desc.extents.push_back(weights.extents[index] * (joined ? weights.extents[kG] : 1));
    if (!dense) {
      layout.desc.strides.push_back(joined ? joined_stride : weights.strides[index]);
    }
  }
  return layout;
}

// Fills order and strides, which the extents are there for.
Status ReadWeightsTag(const ProblemDescriptor& descriptor, const CaseChoice& choice,
                      WeightsTensor* weights) {
  const std::string_view tag = choice.weights_tag;
  if (const Dims& given = choice.strides.weights; !given.empty()) {
    // One group may be an axis, too.
    const bool with_g = descriptor.groups > 1 || given.size() == weights->extents.size();
    const Dims extents(weights->extents.begin() + (with_g ? 0 : 1), weights->extents.end());
    if (Status status = CheckStrides("wei", given, tag, extents); !status.ok()) return status;
    weights->strides = given;
    if (!with_g) weights->strides.insert(weights->strides.begin(), 0);
    return {};
  }
  Result<AxisOrder> order =
      WeightsOrder(tag, descriptor.rank(), descriptor.groups, choice.transposed);
  if (!order.ok()) return Prefixed("--wtag", tag, order.status());
  Result<Dims> strides = StridesOf(*order, weights->extents);
  if (!strides.ok()) return Prefixed("--wtag", tag, strides.status());
  weights->order = *std::move(order);
  weights->strides = *std::move(strides);
  return {};
}

Result<Layout> WeightsLayout(const ProblemDescriptor& descriptor, const CaseChoice& choice) {
  const bool with_g = descriptor.groups > 1;
  WeightsTensor weights;
  weights.extents = {descriptor.groups, descriptor.out_channels / descriptor.groups,
                     descriptor.in_channels / descriptor.groups};
  for (const ProblemAxis& axis : descriptor.axes) weights.extents.push_back(axis.kernel);
  if (Status status = ReadWeightsTag(descriptor, choice, &weights); !status.ok()) return status;

  const std::vector<PublicShape> shapes = PublicShapes(choice.transposed);
  for (const PublicShape& shape : shapes) {
    if (weights.order == OrderOf(shape, weights.rank(), with_g)) {
      return Publish(weights, shape, 0, true);
    }
  }
  for (const PublicShape& shape : shapes) {
    if (shape.spatial_first) continue;
    if (const auto stride = JoinedStride(weights, shape.grouped)) {
      return Publish(weights, shape, *stride, false);
    }
  }
  const std::string option =
      weights.order.empty() ? "--strides for wei" : "--wtag=" + choice.weights_tag;
  return Status(StatusCode::kInvalidShape, option + ": with g " +
                                               std::to_string(descriptor.groups) +
                                               " the groups must lie directly outside " +
                                               (choice.transposed ? "i or o" : "o") +
                                               ", or no weights_format can describe the weights");
}

// --- operation ----------------------------------------------------------------------------------

OpKind KindOf(bool transposed, Direction direction) {
  switch (direction) {
    case Direction::kFwdD:
    case Direction::kFwdB:
    case Direction::kFwdI:
      break;
    case Direction::kBwdD:
      return transposed ? OpKind::kConvTransposeBackwardData : OpKind::kConvolutionBackwardData;
    case Direction::kBwdW:
    case Direction::kBwdWB:
      return transposed ? OpKind::kConvTransposeBackwardWeights
                        : OpKind::kConvolutionBackwardWeights;
  }
  return transposed ? OpKind::kConvTranspose : OpKind::kConvolution;
}

Attributes AttributesOf(const ProblemDescriptor& descriptor) {
  Dims strides, pads_begin, pads_end, dilations, output_padding;
  bool has_output_padding = false;
  for (const ProblemAxis& axis : descriptor.axes) {
    strides.push_back(axis.stride);
    pads_begin.push_back(axis.pad_begin);
    pads_end.push_back(axis.pad_end);
    dilations.push_back(axis.dilation + 1);
    output_padding.push_back(axis.output_padding);
    has_output_padding |= axis.output_padding != 0;
  }
  Attributes attributes;
  attributes.Set("strides", strides).Set("pads_begin", pads_begin).Set("pads_end", pads_end);
  attributes.Set("dilations", dilations);
  if (descriptor.groups > 1) attributes.Set("groups", descriptor.groups);
  if (has_output_padding) attributes.Set("output_padding", output_padding);
  return attributes;
}

void SetOperands(const CaseChoice& choice, const TensorDesc& src, const TensorDesc& weights,
                 const TensorDesc& dst, const TensorDesc& bias, ProblemCase* result) {
  Attributes& attributes = result->operation.attributes;
  switch (choice.direction) {
    case Direction::kFwdD:
    case Direction::kFwdB:
    case Direction::kFwdI:
      result->inputs = {src, weights};
      if (choice.direction == Direction::kFwdB) result->inputs.push_back(bias);
      result->outputs = {dst};
      break;
    case Direction::kBwdD:
      result->inputs = {dst, weights};
      result->outputs = {src};
      if (!choice.transposed) attributes.Set("dst_shape", src.extents);
      break;
    case Direction::kBwdW:
    case Direction::kBwdWB:
      result->inputs = {src, dst};
      result->outputs = {weights};
      if (choice.direction == Direction::kBwdWB) result->outputs.push_back(bias);
      attributes.Set("weights_shape", weights.extents);
      break;
  }
}

// One type, or three as src:wei:dst.
std::string TextOf(const CaseTypes& types) {
  const std::string data(NameOf(types.data));
  if (types.weights == types.data) return data;
  return data + ":" + std::string(NameOf(types.weights)) + ":" + data;
}

Status CheckTypes(const CaseChoice& choice) {
  const bool written =
      choice.direction == Direction::kBwdW || choice.direction == Direction::kBwdWB;
  if (written || choice.types.weights == choice.types.data) return {};
  return Status(StatusCode::kInvalidType,
                "--dt=" + TextOf(choice.types) +
                    ": with --dir=" + std::string(NameOf(choice.direction)) +
                    " src, wei and dst must have one type, only the gradient of weights, BWD_W or "
                    "BWD_WB, may be f32 beside them");
}

// With a blank before it; nothing where no tensor has strides.
std::string TextOf(const CaseStrides& strides) {
  if (strides.src.empty() && strides.weights.empty() && strides.dst.empty()) return "";
  std::string text = " --strides=";
  for (const Dims* list : {&strides.src, &strides.weights, &strides.dst}) {
    for (size_t i = 0; i < list->size(); ++i) {
      text += (i > 0 ? "x" : "") + std::to_string((*list)[i]);
    }
    if (list != &strides.dst) text += ':';
  }
  return text;
}

std::string TextOf(const CaseChoice& choice, const std::string& descriptor) {
  std::string text = choice.transposed ? "--deconv" : "--conv";
  text += " --dir=" + std::string(NameOf(choice.direction));
  text += " --dt=" + TextOf(choice.types);
  text += " --stag=" + choice.src_tag;
  text += " --wtag=" + choice.weights_tag;
  text += " --dtag=" + choice.dst_tag;
  text += TextOf(choice.strides);
  return text + " " + descriptor;
}

}  // namespace

std::string OptionsText(const CaseChoice& choice) {
  std::string text;
  const auto append = [&](const char* key, const std::string& value, const char* usual) {
    if (value != usual) text += key + value + " ";
  };
  append("--dir=", std::string(NameOf(choice.direction)), "FWD_B");
  append("--dt=", TextOf(choice.types), "f32");
  append("--stag=", choice.src_tag, "any");
  append("--wtag=", choice.weights_tag, "any");
  append("--dtag=", choice.dst_tag, "any");
  const std::string strides = TextOf(choice.strides);
  return strides.empty() ? text : text + strides.substr(1) + " ";
}

std::string_view NameOf(Direction direction) {
  switch (direction) {
    case Direction::kFwdD:
      return "FWD_D";
    case Direction::kFwdB:
      return "FWD_B";
    case Direction::kFwdI:
      return "FWD_I";
    case Direction::kBwdD:
      return "BWD_D";
    case Direction::kBwdW:
      return "BWD_W";
    case Direction::kBwdWB:
      break;
  }
  return "BWD_WB";
}

Result<ProblemCase> MakeCase(const ProblemDescriptor& descriptor, const CaseChoice& choice) {
  if (Status status = CheckTypes(choice); !status.ok()) return status;
  Dims src_extents = {descriptor.batch, descriptor.in_channels};
  Dims dst_extents = {descriptor.batch, descriptor.out_channels};
  for (const ProblemAxis& axis : descriptor.axes) {
    src_extents.push_back(axis.in);
    dst_extents.push_back(axis.out);
  }
  const auto src =
      ReadDataTag("--stag", choice.src_tag, std::move(src_extents), choice.strides.src);
  if (!src.ok()) return src.status();
  const auto dst =
      ReadDataTag("--dtag", choice.dst_tag, std::move(dst_extents), choice.strides.dst);
  if (!dst.ok()) return dst.status();
  Result<Layout> weights = WeightsLayout(descriptor, choice);
  if (!weights.ok()) return weights.status();
  weights->desc.type = choice.types.weights;
  const bool channels_last = IsChannelsLast(*src) && IsChannelsLast(*dst);
  TensorDesc bias;
  bias.type = choice.types.weights;
  bias.extents = {descriptor.out_channels};

  ProblemCase result;
  const std::string line = ToString(descriptor);
  result.text = TextOf(choice, line);
  result.name = descriptor.name.empty() ? line : descriptor.name;
  result.operation.kind = KindOf(choice.transposed, choice.direction);
  result.operation.attributes = AttributesOf(descriptor);
  result.operation.attributes.Set("data_format", channels_last ? "NXC" : "NCX");
  result.operation.attributes.Set("weights_format", weights->format);
  SetOperands(choice, DescOf(*src, choice.types.data, channels_last), weights->desc,
              DescOf(*dst, choice.types.data, channels_last), bias, &result);
  return result;
}

}  // namespace convgrad::onednn
