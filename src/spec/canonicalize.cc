#include "spec/canonicalize.h"

#include "spec/layout.h"

namespace convgrad {
namespace {

// Which role plays x and which y: a transposed convolution exchanges src and dst.
Role RoleOfX(const CheckedOperation& op) {
  return op.schema->family == Family::kConvolution ? Role::kSrc : Role::kDst;
}
Role RoleOfY(const CheckedOperation& op) {
  return op.schema->family == Family::kConvolution ? Role::kDst : Role::kSrc;
}

Pass PassOf(const CheckedOperation& op) {
  const Role output = op.schema->outputs[0].role;
  if (output == Role::kWeights) return Pass::kWgrad;
  return output == RoleOfY(op) ? Pass::kFprop : Pass::kDgrad;
}

// Unit axes that a lower rank does not have keep the stride that `strides` had.
void SetPixelStrides(const TensorDesc& tensor, const DataLayout& layout, int spatial,
                     PixelStrides& strides) {
  strides.n = tensor.strides[static_cast<size_t>(layout.n)];
  strides.c = tensor.strides[static_cast<size_t>(layout.c)];
  for (int a = 0; a < spatial; ++a) {
    strides.s[static_cast<size_t>(kAxes - spatial + a)] =
        tensor.strides[static_cast<size_t>(layout.x + a)];
  }
}

// The channels of y (co) are the O of a Convolution and the I of a ConvTranspose.
void SetWeightStrides(const CheckedOperation& op, Problem& p) {
  const TensorDesc& tensor = op.tensor(Role::kWeights);
  const WeightsLayout layout = WeightsLayoutOf(op.attributes.weights_format, op.spatial);
  const int64_t o = tensor.strides[static_cast<size_t>(layout.o)];
  const int64_t i = tensor.strides[static_cast<size_t>(layout.i)];
  const bool transposed = op.schema->family == Family::kConvTranspose;
  WeightStrides& strides = p.w;
  strides.co = transposed ? i : o;
  strides.ci = transposed ? o : i;
  // The group is the slow part of the axis that counts all groups.
  const bool groups_on_co = op.group_axis == (transposed ? 'I' : 'O');
  strides.g = groups_on_co ? strides.co * p.co : strides.ci * p.ci;
  for (int a = 0; a < op.spatial; ++a) {
    strides.s[static_cast<size_t>(kAxes - op.spatial + a)] =
        tensor.strides[static_cast<size_t>(layout.x + a)];
  }
}

}  // namespace

Problem Canonicalize(const CheckedOperation& op) {
  const DataLayout data = DataLayoutOf(op.attributes.data_format, op.spatial);
  const WeightsLayout weights = WeightsLayoutOf(op.attributes.weights_format, op.spatial);
  const TensorDesc& x = op.tensor(RoleOfX(op));
  const TensorDesc& y = op.tensor(RoleOfY(op));
  const TensorDesc& w = op.tensor(Role::kWeights);
  Problem p;
  p.pass = PassOf(op);
  p.type = x.type;
  p.batch = x.extents[static_cast<size_t>(data.n)];
  p.groups = op.attributes.groups;
  p.ci = x.extents[static_cast<size_t>(data.c)] / p.groups;
  p.co = y.extents[static_cast<size_t>(data.c)] / p.groups;
  for (int a = 0; a < op.spatial; ++a) {
    const size_t i = static_cast<size_t>(a);
    p.axes[static_cast<size_t>(kAxes - op.spatial + a)] = {
        .in = x.extents[static_cast<size_t>(data.x + a)],
        .out = y.extents[static_cast<size_t>(data.x + a)],
        .taps = w.extents[static_cast<size_t>(weights.x + a)],
        .stride = op.attributes.strides[i],
        .dilation = op.attributes.dilations[i],
        .pad = op.attributes.pads_begin[i]};
  }
  SetDenseStrides(p);
  SetPixelStrides(x, data, op.spatial, p.x);
  SetPixelStrides(y, data, op.spatial, p.y);
  SetWeightStrides(op, p);
  const TensorDesc& bias = op.tensor(Role::kBias);
  if (bias.given()) {
    p.bias = {true, p.pass == Pass::kWgrad && RoleOfX(op) == Role::kDst, bias.strides[0]};
  }
  return p;
}

Operands CanonicalOperands(const CheckedOperation& op, std::span<const void* const> inputs,
                           std::span<void* const> outputs) {
  Operands operands;
  for (size_t i = 0; i < op.schema->inputs.size() && i < inputs.size(); ++i) {
    const Role role = op.schema->inputs[i].role;
    if (role == RoleOfX(op)) operands.x = inputs[i];
    if (role == RoleOfY(op)) operands.y = inputs[i];
    if (role == Role::kWeights) operands.w = inputs[i];
    if (role == Role::kBias) operands.bias = inputs[i];
  }
  operands.out = outputs[0];
  if (outputs.size() > 1) operands.diff_bias = outputs[1];
  return operands;
}

}  // namespace convgrad
