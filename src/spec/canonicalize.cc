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

// An axis of one element has no use for its stride, whatever the caller gave: it keeps the dense
// one that is there already, as the unit axes of lower ranks do.
void SetStride(const TensorDesc& tensor, int axis, int64_t& stride) {
  if (tensor.extents[static_cast<size_t>(axis)] > 1) {
    stride = tensor.strides[static_cast<size_t>(axis)];
  }
}

void SetPixelStrides(const TensorDesc& tensor, const DataLayout& layout, int spatial,
                     PixelStrides& strides) {
  SetStride(tensor, layout.n, strides.n);
  SetStride(tensor, layout.c, strides.c);
  for (int a = 0; a < spatial; ++a) {
    SetStride(tensor, layout.x + a, strides.s[static_cast<size_t>(kAxes - spatial + a)]);
  }
}

// The channels of y (co) are the O of a Convolution and the I of a ConvTranspose.
void SetWeightStrides(const CheckedOperation& op, Problem& p) {
  const TensorDesc& tensor = op.tensor(Role::kWeights);
  const WeightsLayout layout = WeightsLayoutOf(op);
  const bool transposed = op.schema->family == Family::kConvTranspose;
  WeightStrides& strides = p.w;
  SetStride(tensor, layout.o, transposed ? strides.ci : strides.co);
  SetStride(tensor, layout.i, transposed ? strides.co : strides.ci);
  // The group is the slow part of the axis that counts all groups.
  const bool groups_on_co = op.group_axis == (transposed ? 'I' : 'O');
  strides.g = groups_on_co ? strides.co * p.co : strides.ci * p.ci;
  for (int a = 0; a < op.spatial; ++a) {
    SetStride(tensor, layout.x + a, strides.s[static_cast<size_t>(kAxes - op.spatial + a)]);
  }
}

}  // namespace

Problem Canonicalize(const CheckedOperation& op) {
  const DataLayout data = DataLayoutOf(op.attributes.data_format, op.spatial);
  const WeightsLayout weights = WeightsLayoutOf(op);
  const TensorDesc& x = op.tensor(RoleOfX(op));
  const TensorDesc& y = op.tensor(RoleOfY(op));
  const TensorDesc& w = op.tensor(Role::kWeights);
  Problem p;
  p.pass = PassOf(op);
  p.type = op.tensor(op.schema->inputs[0].role).type;
  p.out_type = op.tensor(op.schema->outputs[0].role).type;
  p.batch = x.extents[static_cast<size_t>(data.n)];
  p.groups = op.attributes.groups;
  p.ci = x.extents[static_cast<size_t>(data.c)] / p.groups;
  p.co = y.extents[static_cast<size_t>(data.c)] / p.groups;
  for (int a = 0; a < op.spatial; ++a) {
    const size_t i = static_cast<size_t>(a);
    Axis& axis = p.axes[static_cast<size_t>(kAxes - op.spatial + a)];
    axis = {.in = x.extents[static_cast<size_t>(data.x + a)],
            .out = y.extents[static_cast<size_t>(data.x + a)],
            .taps = w.extents[static_cast<size_t>(weights.x + a)],
            .stride = op.attributes.strides[i],
            .dilation = op.attributes.dilations[i],
            .pad = op.attributes.pads_begin[i]};
    // One window has no step, one tap no distance: equal problems read equal.
    if (axis.out == 1) axis.stride = 1;
    if (axis.taps == 1) axis.dilation = 1;
  }
  const TensorDesc& bias = op.tensor(Role::kBias);
  if (bias.given()) {
    p.bias = {true, p.pass == Pass::kWgrad && RoleOfX(op) == Role::kDst, 1, op.bias_alone};
  }
  p.per_sample.present = op.per_sample;
  SetDenseStrides(p);
  SetPixelStrides(x, data, op.spatial, p.x);
  SetPixelStrides(y, data, op.spatial, p.y);
  SetWeightStrides(op, p);
  if (bias.given()) SetStride(bias, op.per_sample ? 1 : 0, p.bias.stride);
  if (op.per_sample) {
    SetStride(w, 0, p.per_sample.w);
    if (bias.given()) SetStride(bias, 0, p.per_sample.bias);
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
  if (outputs.size() > 1) operands.bias_out = outputs[1];
  return operands;
}

}  // namespace convgrad
