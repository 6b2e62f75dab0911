// The formulas of docs/spec.md, sections 2 to 5, one output element at a time. Written to be
// compared with that page line by line: six index equations, three sums, extent relations and
// auto_pad. It does not know how the library computes, and shares no code with it.
#include "tools/formula.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace convgrad::tools {
namespace {

constexpr int64_t kMaxS64 = std::numeric_limits<int64_t>::max();
constexpr size_t kSerializedListLength = 12;  // how oneDNN writes a list that was not given

Status Refuse(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Term Nowhere() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return Term{nan, nan, 0};
}

void AddProduct(double product, Term* sum) {
  sum->value += product;
  sum->magnitude += std::abs(product);
  ++sum->count;
}

Int128 FloorDivide(Int128 numerator, Int128 positive) {
  const Int128 quotient = numerator / positive;
  return numerator % positive < 0 ? quotient - 1 : quotient;
}

bool IsConvTranspose(OpKind kind) {
  return kind == OpKind::kConvTranspose || kind == OpKind::kConvTransposeBackwardData ||
         kind == OpKind::kConvTransposeBackwardWeights;
}

bool IsForward(OpKind kind) {
  return kind == OpKind::kConvolution || kind == OpKind::kConvTranspose;
}

bool IsBackwardWeights(OpKind kind) {
  return kind == OpKind::kConvolutionBackwardWeights ||
         kind == OpKind::kConvTransposeBackwardWeights;
}

template <class T>
T LoadBits(const unsigned char* from) {
  T bits;
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}

// Where `letter` of a format such as "NXC" lies among the tensor's axes; X stands for `rank` axes.
int AxisOf(std::string_view format, char letter, int rank) {
  int axis = 0;
  for (const char c : format) {
    if (c == letter) break;
    axis += c == 'X' ? rank : 1;
  }
  return axis;
}

Result<std::string> TextOf(const Operation& operation, const std::string& name,
                           const std::vector<std::string>& choices, bool any_case) {
  const AttributeValue* value = operation.attributes.Find(name);
  if (value == nullptr) return choices.front();
  if (value->text() == nullptr) return Refuse(name + " is not a string");
  std::string text = *value->text();
  if (any_case) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const std::string& choice : choices) {
    if (text == choice) return text;
  }
  return Refuse(name + " is '" + text + "', which is not one of its values");
}

// Absent optional lists, and lists that say "not given", read as zeros.
Result<Dims> ListOf(const Operation& operation, const std::string& name, int rank, int64_t least,
                    bool required) {
  const AttributeValue* value = operation.attributes.Find(name);
  const auto length = static_cast<size_t>(rank);
  if (value == nullptr) {
    if (required) return Refuse(name + " is required");
    return Dims(length, 0);
  }
  if (value->list() == nullptr) return Refuse(name + " is not a list");
  Dims list = *value->list();
  if (list.size() == kSerializedListLength &&
      std::all_of(list.begin() + rank, list.end(), [](int64_t entry) { return entry == 0; })) {
    list.resize(length);
  }
  if (list.empty() && least == 0) list.assign(length, 0);
  if (list.size() != length) {
    return Refuse(name + " has " + std::to_string(list.size()) + " entries, expected " +
                  std::to_string(rank));
  }
  for (const int64_t entry : list) {
    if (entry < least) {
      return Refuse(name + " has the entry " + std::to_string(entry) + ", expected at least " +
                    std::to_string(least));
    }
  }
  return list;
}

// Offsets of all elements, in bytes, fit s64.
bool IsAddressable(const std::array<int64_t, 5>& extents, const std::array<int64_t, 5>& strides,
                   int64_t element_size) {
  Int128 reach = 0;
  for (size_t a = 0; a < extents.size(); ++a) {
    if (extents[a] == 0) return true;
    const Int128 stride = strides[a];
    reach += Int128{extents[a] - 1} * (stride < 0 ? -stride : stride);
    if (reach > kMaxS64 / element_size) return false;
  }
  return true;
}

Dims DenseStrides(const Dims& extents) {
  Dims strides(extents.size(), 1);
  Int128 stride = 1;
  for (size_t a = extents.size(); a-- > 0;) {
    // Saturated: IsAddressable refuses it unless nothing is ever read through it.
    strides[a] = static_cast<int64_t>(std::min<Int128>(stride, kMaxS64));
    stride = Int128{strides[a]} * std::max<int64_t>(extents[a], 1);
  }
  return strides;
}

Status CheckDesc(const std::string& name, const TensorDesc& desc, size_t num_axes) {
  if (desc.extents.size() != num_axes) {
    return Refuse(name + " has rank " + std::to_string(desc.extents.size()) + ", expected " +
                  std::to_string(num_axes));
  }
  for (const int64_t extent : desc.extents) {
    if (extent < 0) return Refuse(name + " has the extent " + std::to_string(extent));
  }
  return Status();
}

// What the addresses of an input need, beyond its extents.
Status CheckReadable(const std::string& name, const ConstTensorView& view) {
  const TensorDesc& desc = view.desc;
  if (!IsFloat(desc.type)) {
    return Refuse(name + " is " + std::string(NameOf(desc.type)) + ", expected f32, bf16 or f16");
  }
  if (!desc.strides.empty() && desc.strides.size() != desc.extents.size()) {
    return Refuse(name + " has " + std::to_string(desc.strides.size()) + " strides, expected " +
                  std::to_string(desc.extents.size()));
  }
  const bool empty = std::find(desc.extents.begin(), desc.extents.end(), 0) != desc.extents.end();
  if (view.data == nullptr && !empty) return Refuse(name + " has no data");
  return Status();
}

template <class Matches, class Body>
void ForEachMatch(const Matches& matches, Body body) {
  for (const auto& m0 : matches[0]) {
    for (const auto& m1 : matches[1]) {
      for (const auto& m2 : matches[2]) body(m0, m1, m2);
    }
  }
}

}  // namespace

double WidenBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

double WidenF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  double value = 0;
  if (exponent == 0x1f) {
    value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return std::copysign(value, (bits & 0x8000) != 0 ? -1.0 : 1.0);
}

// Five numbers and no Place: an array for each product would be a fifth of a sanitized check's
// time.
inline double Formula::Tensor::Load(int64_t n, int64_t channel, int64_t x0, int64_t x1,
                                    int64_t x2) const {
  const int64_t offset =
      n * strides[0] + channel * strides[1] + x0 * strides[2] + x1 * strides[3] + x2 * strides[4];
  const unsigned char* from = data + offset * SizeOf(type);
  switch (type) {
    case DataType::kF32:
      return LoadBits<float>(from);
    case DataType::kBF16:
      return WidenBf16(LoadBits<uint16_t>(from));
    case DataType::kF16:
      return WidenF16(LoadBits<uint16_t>(from));
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

std::optional<int64_t> Formula::Window::Image(int64_t position, int64_t tap, int64_t extent) const {
  const Int128 image = Int128{position} * stride + Int128{tap} * dilation - pad_begin;
  if (image < 0 || image >= extent) return std::nullopt;
  return static_cast<int64_t>(image);
}

std::optional<int64_t> Formula::Window::Preimage(int64_t position, int64_t tap,
                                                 int64_t extent) const {
  const Int128 distance = position + pad_begin - Int128{tap} * dilation;
  if (distance < 0 || distance % stride != 0 || distance / stride >= extent) return std::nullopt;
  return static_cast<int64_t>(distance / stride);
}

Result<Formula> Formula::Make(const Operation& operation, std::vector<ConstTensorView> inputs,
                              TensorDesc output) {
  Formula formula;
  formula.first_generation_ = true;
  switch (operation.kind) {
    case OpKind::kConvolution:
    case OpKind::kConvolutionBackwardData:
    case OpKind::kConvolutionBackwardWeights:
    case OpKind::kConvTranspose:
    case OpKind::kConvTransposeBackwardData:
    case OpKind::kConvTransposeBackwardWeights:
      formula.kind_ = operation.kind;
      formula.first_generation_ = false;
      break;
    case OpKind::kConvolutionBackpropData:
      formula.kind_ = OpKind::kConvolutionBackwardData;
      break;
    case OpKind::kConvolutionBackpropFilters:
      formula.kind_ = OpKind::kConvolutionBackwardWeights;
      break;
    case OpKind::kConvTransposeBackpropData:
      formula.kind_ = OpKind::kConvTransposeBackwardData;
      break;
    case OpKind::kConvTransposeBackpropFilters:
      formula.kind_ = OpKind::kConvTransposeBackwardWeights;
      break;
    default:
      return Refuse("the operation kind is none of the ten");
  }
  Status status = formula.ReadTensors(operation, inputs, output);
  if (status.ok()) status = formula.ReadGroups(operation);
  if (status.ok()) status = formula.ReadBias(inputs);
  if (status.ok()) status = formula.ReadWindows(operation);
  if (!status.ok()) return status;
  return formula;
}

Status Formula::ReadTensors(const Operation& operation, const std::vector<ConstTensorView>& inputs,
                            const TensorDesc& output) {
  if (inputs.size() < 2 || !inputs[0].desc.given() || !inputs[1].desc.given()) {
    return Refuse("inputs 0 and 1 are required");
  }
  const size_t num_axes = inputs[0].desc.extents.size();
  if (num_axes < 3 || num_axes > 5) {
    return Refuse("input 0 has rank " + std::to_string(num_axes) + ", expected 3, 4 or 5");
  }
  rank_ = static_cast<int>(num_axes) - 2;

  const Result<std::string> data = TextOf(operation, "data_format", {"NXC", "NCX"}, false);
  if (!data.ok()) return data.status();
  const Result<std::string> filter =
      first_generation_        ? TextOf(operation, "filter_format", {"XIO", "OIX"}, false)
      : IsConvTranspose(kind_) ? TextOf(operation, "weights_format", {"XOI", "IOX"}, false)
                               : TextOf(operation, "weights_format", {"XIO", "OIX"}, false);
  if (!filter.ok()) return filter.status();

  // The roles of in 0, in 1 and out 0, as the table of the family lists them.
  const ConstTensorView out(nullptr, output.type, output.extents);
  const bool weights_out = IsBackwardWeights(kind_);
  const bool forward = IsForward(kind_);
  const ConstTensorView& src = forward || weights_out ? inputs[0] : out;
  const ConstTensorView& weights = weights_out ? out : inputs[1];
  const ConstTensorView& dst = forward ? out : weights_out ? inputs[1] : inputs[0];

  Status status = ReadTensor("src", src, &src == &out, *data, "NC", &src_);
  if (status.ok()) {
    status = ReadTensor("weights", weights, &weights == &out, *filter, "OI", &weights_);
  }
  if (status.ok()) status = ReadTensor("dst", dst, &dst == &out, *data, "NC", &dst_);
  if (!status.ok()) return status;
  if (src_.extents[0] != dst_.extents[0]) {
    return Refuse("src has the batch " + std::to_string(src_.extents[0]) + ", dst has " +
                  std::to_string(dst_.extents[0]));
  }
  return Status();
}

Status Formula::ReadTensor(const std::string& name, const ConstTensorView& view, bool is_output,
                           const std::string& format, std::string_view letters,
                           Tensor* tensor) const {
  Status status = CheckDesc(name, view.desc, static_cast<size_t>(rank_) + 2);
  if (status.ok() && !is_output) status = CheckReadable(name, view);
  if (!status.ok()) return status;
  tensor->axis[0] = AxisOf(format, letters[0], rank_);
  tensor->axis[1] = AxisOf(format, letters[1], rank_);
  for (int a = 0; a < rank_; ++a) tensor->axis[2 + a] = AxisOf(format, 'X', rank_) + a;
  const Dims strides =
      view.desc.strides.empty() ? DenseStrides(view.desc.extents) : view.desc.strides;
  for (size_t a = 0; a < tensor->axis.size(); ++a) {
    if (tensor->axis[a] < 0) continue;
    tensor->extents[a] = view.desc.extents[static_cast<size_t>(tensor->axis[a])];
    tensor->strides[a] = strides[static_cast<size_t>(tensor->axis[a])];
  }
  if (is_output) return Status();
  tensor->data = static_cast<const unsigned char*>(view.data);
  tensor->type = view.desc.type;
  if (!IsAddressable(tensor->extents, tensor->strides, SizeOf(tensor->type))) {
    return Refuse(name + " has a byte size beyond s64");
  }
  return Status();
}

Status Formula::ReadGroups(const Operation& operation) {
  const AttributeValue* groups = operation.attributes.Find("groups");
  if (groups != nullptr) {
    if (groups->s64() == nullptr) return Refuse("groups is not an s64");
    groups_ = *groups->s64();
  }
  const int64_t ic = src_.extents[1], oc = dst_.extents[1];
  if (groups_ < 1 || ic % groups_ != 0 || oc % groups_ != 0) {
    return Refuse("groups is " + std::to_string(groups_) + ", expected a positive divisor of " +
                  std::to_string(ic) + " and " + std::to_string(oc) + " channels");
  }
  ic_per_group_ = ic / groups_;
  oc_per_group_ = oc / groups_;

  const int64_t o = weights_.extents[0], i = weights_.extents[1];
  const bool all_o = o == oc && i == ic_per_group_;
  const bool all_i = i == ic && o == oc_per_group_;
  // Convolution has (OC, ICg), "-1" ConvTranspose (OCg, IC), ConvTranspose either.
  const bool all_o_allowed = !IsConvTranspose(kind_) || !first_generation_;
  const bool all_i_allowed = IsConvTranspose(kind_);
  if (!(all_o && all_o_allowed) && !(all_i && all_i_allowed)) {
    return Refuse("weights have " + std::to_string(o) + " output and " + std::to_string(i) +
                  " input channels, which do not fit src channels " + std::to_string(ic) +
                  ", dst channels " + std::to_string(oc) + " and groups " +
                  std::to_string(groups_));
  }
  groups_on_o_ = all_o && all_o_allowed;
  return Status();
}

Status Formula::ReadBias(const std::vector<ConstTensorView>& inputs) {
  if (!IsForward(kind_) || inputs.size() < 3 || !inputs[2].desc.given()) return Status();
  const ConstTensorView& view = inputs[2];
  Status status = CheckDesc("bias", view.desc, 1);
  if (status.ok()) status = CheckReadable("bias", view);
  if (!status.ok()) return status;
  if (view.desc.extents[0] != dst_.extents[1]) {
    return Refuse("bias has " + std::to_string(view.desc.extents[0]) + " entries, expected " +
                  std::to_string(dst_.extents[1]));
  }
  bias_.data = static_cast<const unsigned char*>(view.data);
  bias_.type = view.desc.type;
  bias_.extents[1] = view.desc.extents[0];
  bias_.strides[1] = view.desc.strides.empty() ? 1 : view.desc.strides[0];
  if (!IsAddressable(bias_.extents, bias_.strides, SizeOf(bias_.type))) {
    return Refuse("bias has a byte size beyond s64");
  }
  return Status();
}

Status Formula::ReadWindows(const Operation& operation) {
  const Result<Dims> strides = ListOf(operation, "strides", rank_, 1, true);
  const Result<Dims> dilations = ListOf(operation, "dilations", rank_, 1, true);
  const Result<Dims> pads_begin = ListOf(operation, "pads_begin", rank_, 0, true);
  const Result<Dims> pads_end = ListOf(operation, "pads_end", rank_, 0, true);
  const Result<Dims> extra_dst = ListOf(operation, "output_padding", rank_, 0, false);
  for (const Result<Dims>* list : {&strides, &dilations, &pads_begin, &pads_end, &extra_dst}) {
    if (!list->ok()) return list->status();
  }
  const Result<std::string> auto_pad =
      TextOf(operation, "auto_pad", {"none", "same_upper", "same_lower", "valid"}, true);
  if (!auto_pad.ok()) return auto_pad.status();

  for (int axis = 0; axis < rank_; ++axis) {
    const auto a = static_cast<size_t>(axis);
    if (weights_.extents[2 + a] < 1) return Refuse("the kernel extent is 0, expected at least 1");
    Window& window = windows_[a];
    window.src = src_.extents[2 + a];
    window.dst = dst_.extents[2 + a];
    window.kernel = weights_.extents[2 + a];
    window.stride = (*strides)[a];
    window.dilation = (*dilations)[a];
    window.extra_dst = (*extra_dst)[a];
    if (*auto_pad == "none") {
      window.pad_begin = (*pads_begin)[a];
      window.pad_end = (*pads_end)[a];
    } else if (*auto_pad != "valid") {
      const int64_t rest = IsConvTranspose(kind_) ? 0 : window.src % window.stride;
      const Int128 covered = rest == 0 ? window.stride : rest;
      const Int128 total = std::max<Int128>(0, window.Span() - covered);
      const bool upper = *auto_pad == "same_upper";
      window.pad_begin = upper ? total / 2 : total - total / 2;
      window.pad_end = total - window.pad_begin;
    }
    const Status status = CheckExtents(axis);
    if (!status.ok()) return status;
  }
  return Status();
}

Status Formula::CheckExtents(int axis) const {
  const Window& window = windows_[static_cast<size_t>(axis)];
  const Int128 pads = window.pad_begin + window.pad_end;
  // `wide` is the tensor that the kernel slides over, `narrow` has one position for each stop.
  const bool transposed = IsConvTranspose(kind_);
  const int64_t wide = transposed ? window.dst : window.src;
  const int64_t narrow = transposed ? window.src : window.dst;
  // Convolution and its weights gradient have no output_padding.
  const bool padded_output =
      window.extra_dst != 0 && (transposed || kind_ == OpKind::kConvolutionBackwardData);
  bool fits = false;
  if (padded_output || kind_ == OpKind::kConvTranspose) {
    fits = wide >= 1 && wide == Int128{window.stride} * (Int128{narrow} - 1) + window.Span() -
                                    pads + window.extra_dst;
  } else {
    const Int128 room = wide + pads - window.Span();
    fits = room >= 0 && narrow == FloorDivide(room, window.stride) + 1;
  }
  if (fits) return Status();
  return Refuse("src extent " + std::to_string(window.src) + " and dst extent " +
                std::to_string(window.dst) + " of spatial axis " + std::to_string(axis) +
                " do not satisfy the extent formula");
}

const Formula::Tensor& Formula::Output() const {
  if (IsForward(kind_)) return dst_;
  return IsBackwardWeights(kind_) ? weights_ : src_;
}

Term Formula::At(std::span<const int64_t> index) const {
  const Tensor& output = Output();
  if (index.size() != static_cast<size_t>(rank_) + 2) return Nowhere();
  Place place{0, 0, 0, 0, 0};
  for (size_t a = 0; a < place.size(); ++a) {
    if (output.axis[a] < 0) continue;
    place[a] = index[static_cast<size_t>(output.axis[a])];
    if (place[a] < 0 || place[a] >= output.extents[a]) return Nowhere();
  }
  // Their memory is used again: half the time of a check was spent on it.
  thread_local Matches matches;
  for (size_t a = 0; a < matches.size(); ++a) FindMatches(windows_[a], place[2 + a], matches[a]);
  if (IsForward(kind_)) return DstAt(place, matches);
  return IsBackwardWeights(kind_) ? WeightsAt(place, matches) : SrcAt(place, matches);
}

Term Formula::BiasAt(int64_t channel) const {
  if (!IsBackwardWeights(kind_) || channel < 0 || channel >= dst_.extents[1]) return Nowhere();
  Term sum;
  Place at{0, channel, 0, 0, 0};
  for (at[0] = 0; at[0] < dst_.extents[0]; ++at[0]) {
    for (at[2] = 0; at[2] < dst_.extents[2]; ++at[2]) {
      for (at[3] = 0; at[3] < dst_.extents[3]; ++at[3]) {
        for (at[4] = 0; at[4] < dst_.extents[4]; ++at[4]) {
          AddProduct(dst_.Load(at[0], at[1], at[2], at[3], at[4]), &sum);
        }
      }
    }
  }
  return sum;
}

void Formula::FindMatches(const Window& window, int64_t at, std::vector<Match>& matches) const {
  matches.clear();
  switch (kind_) {
    case OpKind::kConvolution:  // src at y*S + k*D - PB
      for (int64_t k = 0; k < window.kernel; ++k) {
        if (const auto x = window.Image(at, k, window.src)) matches.push_back({k, *x, at});
      }
      break;
    case OpKind::kConvolutionBackwardData:  // k, y: y*S + k*D - PB = x
      for (int64_t k = 0; k < window.kernel; ++k) {
        if (const auto y = window.Preimage(at, k, window.dst)) matches.push_back({k, at, *y});
      }
      break;
    case OpKind::kConvolutionBackwardWeights:  // y; src at y*S + k*D - PB
      for (int64_t y = 0; y < window.dst; ++y) {
        if (const auto x = window.Image(y, at, window.src)) matches.push_back({at, *x, y});
      }
      break;
    case OpKind::kConvTranspose:  // k, x: x*S + k*D - PB = y
      for (int64_t k = 0; k < window.kernel; ++k) {
        if (const auto x = window.Preimage(at, k, window.src)) matches.push_back({k, *x, at});
      }
      break;
    case OpKind::kConvTransposeBackwardData:  // diff_dst at x*S + k*D - PB
      for (int64_t k = 0; k < window.kernel; ++k) {
        if (const auto y = window.Image(at, k, window.dst)) matches.push_back({k, at, *y});
      }
      break;
    case OpKind::kConvTransposeBackwardWeights:  // x; diff_dst at x*S + k*D - PB
      for (int64_t x = 0; x < window.src; ++x) {
        if (const auto y = window.Image(x, at, window.dst)) matches.push_back({at, x, *y});
      }
      break;
    default:
      break;
  }
}

Formula::Place Formula::WeightsPlace(int64_t group, int64_t o, int64_t i) const {
  if (groups_on_o_) return {group * oc_per_group_ + o, i, 0, 0, 0};
  return {o, group * ic_per_group_ + i, 0, 0, 0};
}

Term Formula::DstAt(const Place& place, const Matches& matches) const {
  const int64_t group = place[1] / oc_per_group_, o = place[1] % oc_per_group_;
  Term sum;
  for (int64_t i = 0; i < ic_per_group_; ++i) {
    const int64_t ic = group * ic_per_group_ + i;
    const Place w = WeightsPlace(group, o, i);
    ForEachMatch(matches, [&](const Match& m0, const Match& m1, const Match& m2) {
      AddProduct(src_.Load(place[0], ic, m0.src, m1.src, m2.src) *
                     weights_.Load(w[0], w[1], m0.tap, m1.tap, m2.tap),
                 &sum);
    });
  }
  if (bias_.data != nullptr) {
    const double bias = bias_.Load(0, place[1], 0, 0, 0);
    sum.value += bias;
    sum.magnitude += std::abs(bias);
  }
  return sum;
}

Term Formula::SrcAt(const Place& place, const Matches& matches) const {
  const int64_t group = place[1] / ic_per_group_, i = place[1] % ic_per_group_;
  Term sum;
  for (int64_t o = 0; o < oc_per_group_; ++o) {
    const int64_t oc = group * oc_per_group_ + o;
    const Place w = WeightsPlace(group, o, i);
    ForEachMatch(matches, [&](const Match& m0, const Match& m1, const Match& m2) {
      AddProduct(dst_.Load(place[0], oc, m0.dst, m1.dst, m2.dst) *
                     weights_.Load(w[0], w[1], m0.tap, m1.tap, m2.tap),
                 &sum);
    });
  }
  return sum;
}

Term Formula::WeightsAt(const Place& place, const Matches& matches) const {
  const int64_t group = groups_on_o_ ? place[0] / oc_per_group_ : place[1] / ic_per_group_;
  const int64_t oc = groups_on_o_ ? place[0] : group * oc_per_group_ + place[0];
  const int64_t ic = groups_on_o_ ? group * ic_per_group_ + place[1] : place[1];
  Term sum;
  for (int64_t n = 0; n < src_.extents[0]; ++n) {
    ForEachMatch(matches, [&](const Match& m0, const Match& m1, const Match& m2) {
      AddProduct(
          src_.Load(n, ic, m0.src, m1.src, m2.src) * dst_.Load(n, oc, m0.dst, m1.dst, m2.dst),
          &sum);
    });
  }
  return sum;
}

}  // namespace convgrad::tools
