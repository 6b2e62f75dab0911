#include "spec/check.h"

#include "core/text.h"
#include "spec/arguments.h"
#include "spec/channels.h"
#include "spec/extent.h"
#include "spec/geometry.h"
#include "spec/layout.h"

namespace convgrad {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidShape, std::move(message)}; }

// Fills checked.tensors from what the arguments say, one kind of knowledge after the other: the
// output's shape where it must be given, batch, channels, pixels, strides.
class Checker {
 public:
  Checker(const OperationSchema& schema, Arguments arguments, AttributeSet attributes,
          const Extensions& extensions)
      : arguments_(std::move(arguments)) {
    checked_.per_sample = extensions.per_sample;
    checked_.bias_alone = extensions.bias_alone;
    checked_.schema = &schema;
    checked_.attributes = std::move(attributes);
    checked_.spatial = arguments_.rank - 2;
    data_ = DataLayoutOf(checked_.attributes.data_format, checked_.spatial);
    weights_ = WeightsLayoutOf(checked_);
    for (Role role : {Role::kSrc, Role::kWeights, Role::kDst, Role::kBias, Role::kShape}) {
      const Argument& argument = arguments_.at(role);
      checked_.tensor(role) = argument.desc;
      names_[static_cast<size_t>(role)] = argument.name;
      Dims& extents = checked_.tensor(role).extents;
      if (!argument.is_output || role == Role::kBias) continue;
      extents.assign(static_cast<size_t>(arguments_.rank + images()), kUnknown);
    }
  }

  Status TakeOutputShape();
  Status CheckBatch();
  Status CheckChannels();
  Status CheckPixels();
  Status CheckBias();
  Status CheckSamples();
  Status CheckOutputAgrees() const;
  Status CheckMemory();

  CheckedOperation Take() { return std::move(checked_); }

 private:
  int64_t& extent(Role role, int dim) {
    return checked_.tensor(role).extents[static_cast<size_t>(dim)];
  }
  std::string_view name(Role role) const { return names_[static_cast<size_t>(role)]; }
  // A shape from elsewhere is that of the weights, without N.
  std::string NameDim(Role role, int dim) const {
    const bool shifted = role == Role::kWeights && name(role) != arguments_.at(role).name;
    return Join(name(role), " dim ", shifted ? dim - images() : dim);
  }
  int images() const { return checked_.per_sample ? 1 : 0; }  // axes before those of the weights
  bool is_output(Role role) const { return arguments_.at(role).is_output; }

  Arguments arguments_;
  CheckedOperation checked_;
  std::array<std::string_view, 5> names_;  // by Role; the output's is that of its shape's source
  DataLayout data_;
  WeightsLayout weights_;
};

// Shape tensor over attribute over the caller's output, whose unknown extents stay unknown.
Status Checker::TakeOutputShape() {
  const AttributeSchema* attribute = checked_.schema->shape_attribute();
  if (attribute == nullptr) return {};
  const Role role = arguments_.output;
  Dims& extents = checked_.tensor(role).extents;
  const Argument& output = arguments_.at(role);
  const auto take = [&](const Dims& shape) {
    extents.resize(static_cast<size_t>(images()));
    extents.insert(extents.end(), shape.begin(), shape.end());
  };
  if (const Dims& values = arguments_.at(Role::kShape).desc.values; !values.empty()) {
    take(values);
  } else if (checked_.attributes.shape) {
    take(*checked_.attributes.shape);
  } else {
    if (!output.desc.extents.empty()) extents = output.desc.extents;
    const int x = role == Role::kWeights ? weights_.x : data_.x;
    for (int a = 0; a < checked_.spatial; ++a) {
      if (extent(role, x + a) >= 0) continue;
      return Invalid(Join(attribute->name, " is needed: ", checked_.schema->name,
                          " cannot infer dim ", x + a, " of ", output.name,
                          "; give it as input, as attribute or as the output's own shape"));
    }
    for (int64_t& e : extents) e = std::max(e, kUnknown);
    return {};
  }
  names_[static_cast<size_t>(role)] = attribute->name;
  return {};
}

Status Checker::CheckBatch() {
  int64_t& src = extent(Role::kSrc, data_.n);
  int64_t& dst = extent(Role::kDst, data_.n);
  if (src == kUnknown) src = dst;
  if (dst == kUnknown) dst = src;
  if (src == dst) return {};
  const Role wrong = is_output(Role::kSrc) ? Role::kSrc : Role::kDst;
  const Role other = wrong == Role::kSrc ? Role::kDst : Role::kSrc;
  return Invalid(Join(NameDim(wrong, data_.n), " is ", extent(wrong, data_.n),
                      ", expected the batch ", extent(other, data_.n), " of ", name(other)));
}

Status Checker::CheckChannels() {
  const int64_t groups = checked_.attributes.groups;
  int64_t& ic = extent(Role::kSrc, data_.c);
  int64_t& oc = extent(Role::kDst, data_.c);
  int64_t& o = extent(Role::kWeights, weights_.o);
  int64_t& i = extent(Role::kWeights, weights_.i);
  const bool own = name(Role::kWeights) == arguments_.at(Role::kWeights).name;
  Result<Channels> channels = ResolveChannels(
      {checked_.schema, groups, ic, oc, name(Role::kSrc), name(Role::kDst), name(Role::kWeights)},
      own ? weights_ : WeightsLayoutOf(checked_.attributes.weights_format, checked_.spatial), o, i);
  if (!channels.ok()) return channels.status();
  checked_.group_axis = channels->group_axis;
  ic = channels->ic;
  oc = channels->oc;
  if (o == kUnknown) o = channels->group_axis == 'O' ? oc : oc / groups;
  if (i == kUnknown) i = channels->group_axis == 'I' ? ic : ic / groups;
  return {};
}

Status Checker::CheckPixels() {
  const Family family = checked_.schema->family;
  AttributeSet& attributes = checked_.attributes;
  const Role wide = family == Family::kConvolution ? Role::kSrc : Role::kDst;
  const Role narrow = family == Family::kConvolution ? Role::kDst : Role::kSrc;
  for (int a = 0; a < checked_.spatial; ++a) {
    const size_t i = static_cast<size_t>(a);
    SpatialAxis axis{.wide = extent(wide, data_.x + a),
                     .narrow = extent(narrow, data_.x + a),
                     .taps = extent(Role::kWeights, weights_.x + a),
                     .stride = attributes.strides[i],
                     .dilation = attributes.dilations[i],
                     .pad_begin = attributes.pads_begin[i],
                     .pad_end = attributes.pads_end[i],
                     .output_padding = attributes.output_padding[i]};
    const SpatialNames names{NameDim(wide, data_.x + a), NameDim(narrow, data_.x + a),
                             NameDim(Role::kWeights, weights_.x + a), a,
                             attributes.auto_pad == AutoPad::kNone ? "" : " (from auto_pad)"};
    if (Status s = ResolveAxis(family, attributes.auto_pad, names, axis); !s.ok()) return s;
    extent(wide, data_.x + a) = axis.wide;
    extent(narrow, data_.x + a) = axis.narrow;
    attributes.pads_begin[i] = axis.pad_begin;
    attributes.pads_end[i] = axis.pad_end;
  }
  return {};
}

Status Checker::CheckBias() {
  TensorDesc& bias = checked_.tensor(Role::kBias);
  if (!bias.given()) return {};
  const int64_t channels = extent(Role::kDst, data_.c);
  const size_t at = static_cast<size_t>(images());
  if (is_output(Role::kBias) && bias.extents.empty()) bias.extents.assign(at + 1, kUnknown);
  if (is_output(Role::kBias) && bias.extents[at] < 0) bias.extents[at] = channels;
  if (bias.extents[at] == channels) return {};
  return Invalid(Join(NameDim(Role::kBias, images()), " is ", bias.extents[at], ", expected ",
                      name(Role::kDst), " channels ", channels));
}

// One gradient for each image.
Status Checker::CheckSamples() {
  if (!checked_.per_sample) return {};
  const int64_t batch = extent(Role::kSrc, data_.n);
  for (Role role : {Role::kWeights, Role::kBias}) {
    const Argument& output = arguments_.at(role);
    if (!checked_.tensor(role).given()) continue;
    const int64_t given = output.desc.extents.empty() ? kUnknown : output.desc.extents[0];
    if (given >= 0 && given != batch) {
      return Invalid(Join(output.name, " dim 0 is ", given, ", expected the batch ", batch, " of ",
                          name(Role::kSrc), ", as per_sample asks for a gradient of each image"));
    }
    extent(role, 0) = batch;
  }
  return {};
}

// A shape that came from elsewhere, or was inferred, against what the caller's output says.
Status Checker::CheckOutputAgrees() const {
  const Argument& output = arguments_.at(arguments_.output);
  const Dims& extents = checked_.tensor(arguments_.output).extents;
  for (size_t a = 0; a < output.desc.extents.size(); ++a) {
    const int64_t given = output.desc.extents[a];
    if (given < 0 || given == extents[a]) continue;
    const std::string_view source = name(arguments_.output);
    return Invalid(Join(output.name, " dim ", a, " is ", given, ", expected ", extents[a],
                        source == output.name ? "" : Join(" as ", source, " says"), ": ",
                        output.name, " is ", JoinNumbers(output.desc.extents, "x"), ", it must be ",
                        JoinNumbers(extents, "x")));
  }
  return {};
}

Status Checker::CheckMemory() {
  for (Role role : {Role::kSrc, Role::kWeights, Role::kDst, Role::kBias}) {
    TensorDesc& tensor = checked_.tensor(role);
    if (!tensor.given()) continue;
    const std::string_view own_name = arguments_.at(role).name;
    if (Status s = CompleteStrides(own_name, tensor); !s.ok()) return s;
    if (!is_output(role)) continue;
    if (Status s = CheckNoOverlap(own_name, tensor); !s.ok()) return s;
  }
  return {};
}

}  // namespace

WeightsLayout WeightsLayoutOf(const CheckedOperation& op) {
  const WeightsLayout one = WeightsLayoutOf(op.attributes.weights_format, op.spatial);
  return op.per_sample ? AfterImages(one) : one;
}

Result<CheckedOperation> Check(const Operation& operation, std::span<const TensorDesc> inputs,
                               std::span<const TensorDesc> outputs, const Extensions& extensions) {
  if (static_cast<size_t>(operation.kind) >= Operations().size()) {
    return Status(StatusCode::kInvalidArgument,
                  Join("operation kind ", static_cast<int64_t>(operation.kind),
                       " is unknown, expected 0 to ", Operations().size() - 1));
  }
  return Check(SchemaOf(operation.kind), operation.attributes, inputs, outputs, extensions);
}

Result<CheckedOperation> Check(const OperationSchema& schema, const Attributes& given,
                               std::span<const TensorDesc> inputs,
                               std::span<const TensorDesc> outputs, const Extensions& extensions) {
  if (extensions.per_sample && schema.outputs[0].role != Role::kWeights) {
    return Status(StatusCode::kInvalidArgument,
                  Join("option per_sample is set, ", schema.name,
                       " does not have it: only gradients of weights are sums over images"));
  }
  Result<Arguments> arguments =
      CollectArguments(schema, inputs, outputs, extensions.per_sample ? 1 : 0);
  if (!arguments.ok()) return arguments.status();
  Result<AttributeSet> attributes = ReadAttributes(schema, given, arguments->rank - 2);
  if (!attributes.ok()) return attributes.status();
  Checker checker(schema, *std::move(arguments), *std::move(attributes), extensions);
  for (auto step : {&Checker::TakeOutputShape, &Checker::CheckBatch, &Checker::CheckChannels,
                    &Checker::CheckPixels, &Checker::CheckBias, &Checker::CheckSamples}) {
    if (Status status = (checker.*step)(); !status.ok()) return status;
  }
  if (Status status = checker.CheckOutputAgrees(); !status.ok()) return status;
  if (Status status = checker.CheckMemory(); !status.ok()) return status;
  return checker.Take();
}

}  // namespace convgrad
