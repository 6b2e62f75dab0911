// Operations: kinds and attributes by their names, for graph_model.h, and the values of attributes.
#include "onednn/dnnl_logical_tensor.h"
#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {
namespace {

// By the number of the kind.
constexpr std::string_view kKindNames[] = {
    "Abs",
    "AbsBackward",
    "Add",
    "AvgPool",
    "AvgPoolBackward",
    "BatchNormTrainingBackward",
    "BatchNormForwardTraining",
    "BatchNormInference",
    "BiasAdd",
    "BiasAddBackward",
    "Clamp",
    "ClampBackward",
    "Concat",
    "Convolution",
    "ConvolutionBackwardData",
    "ConvolutionBackwardWeights",
    "ConvTranspose",
    "ConvTransposeBackwardData",
    "ConvTransposeBackwardWeights",
    "Dequantize",
    "Divide",
    "DynamicDequantize",
    "DynamicQuantize",
    "Elu",
    "EluBackward",
    "End",
    "Exp",
    "GELU",
    "GELUBackward",
    "HardSwish",
    "HardSwishBackward",
    "Interpolate",
    "InterpolateBackward",
    "LayerNorm",
    "LayerNormBackward",
    "LeakyReLU",
    "Log",
    "LogSoftmax",
    "LogSoftmaxBackward",
    "MatMul",
    "Maximum",
    "MaxPool",
    "MaxPoolBackward",
    "Minimum",
    "Mish",
    "MishBackward",
    "Multiply",
    "PReLU",
    "PReLUBackward",
    "Quantize",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReLU",
    "ReLUBackward",
    "Reorder",
    "Round",
    "Sigmoid",
    "SigmoidBackward",
    "SoftMax",
    "SoftMaxBackward",
    "SoftPlus",
    "SoftPlusBackward",
    "Sqrt",
    "SqrtBackward",
    "Square",
    "SquaredDifference",
    "StaticReshape",
    "StaticTranspose",
    "Subtract",
    "Tanh",
    "TanhBackward",
    "TypeCast",
    "Wildcard",
    "HardSigmoid",
    "HardSigmoidBackward",
    "Select",
    "Pow",
    "GroupNorm",
    "GenIndex",
    "GreaterEqual",
    "RMSNorm",
    "Dropout",
};
static_assert(std::size(kKindNames) == dnnl_graph_op_last_symbol);

struct AttributeName {
  dnnl_graph_op_attr_t attribute;
  std::string_view name;
};
constexpr AttributeName kAttributeNames[] = {
    {dnnl_graph_op_attr_alpha, "alpha"},
    {dnnl_graph_op_attr_beta, "beta"},
    {dnnl_graph_op_attr_epsilon, "epsilon"},
    {dnnl_graph_op_attr_max, "max"},
    {dnnl_graph_op_attr_min, "min"},
    {dnnl_graph_op_attr_momentum, "momentum"},
    {dnnl_graph_op_attr_scales, "scales"},
    {dnnl_graph_op_attr_axis, "axis"},
    {dnnl_graph_op_attr_begin_norm_axis, "begin_norm_axis"},
    {dnnl_graph_op_attr_groups, "groups"},
    {dnnl_graph_op_attr_axes, "axes"},
    {dnnl_graph_op_attr_dilations, "dilations"},
    {dnnl_graph_op_attr_dst_shape, "dst_shape"},
    {dnnl_graph_op_attr_kernel, "kernel"},
    {dnnl_graph_op_attr_order, "order"},
    {dnnl_graph_op_attr_output_padding, "output_padding"},
    {dnnl_graph_op_attr_pads_begin, "pads_begin"},
    {dnnl_graph_op_attr_pads_end, "pads_end"},
    {dnnl_graph_op_attr_shape, "shape"},
    {dnnl_graph_op_attr_sizes, "sizes"},
    {dnnl_graph_op_attr_src_shape, "src_shape"},
    {dnnl_graph_op_attr_strides, "strides"},
    {dnnl_graph_op_attr_weights_shape, "weights_shape"},
    {dnnl_graph_op_attr_zps, "zps"},
    {dnnl_graph_op_attr_group_shape, "group_shape"},
    {dnnl_graph_op_attr_exclude_pad, "exclude_pad"},
    {dnnl_graph_op_attr_keep_dims, "keep_dims"},
    {dnnl_graph_op_attr_keep_stats, "keep_stats"},
    {dnnl_graph_op_attr_per_channel_broadcast, "per_channel_broadcast"},
    {dnnl_graph_op_attr_special_zero, "special_zero"},
    {dnnl_graph_op_attr_transpose_a, "transpose_a"},
    {dnnl_graph_op_attr_transpose_b, "transpose_b"},
    {dnnl_graph_op_attr_use_affine, "use_affine"},
    {dnnl_graph_op_attr_use_dst, "use_dst"},
    {dnnl_graph_op_attr_auto_broadcast, "auto_broadcast"},
    {dnnl_graph_op_attr_auto_pad, "auto_pad"},
    {dnnl_graph_op_attr_coordinate_transformation_mode, "coordinate_transformation_mode"},
    {dnnl_graph_op_attr_data_format, "data_format"},
    {dnnl_graph_op_attr_mode, "mode"},
    {dnnl_graph_op_attr_qtype, "qtype"},
    {dnnl_graph_op_attr_rounding_type, "rounding_type"},
    {dnnl_graph_op_attr_weights_format, "weights_format"},
    {dnnl_graph_op_attr_accumulation_mode, "accumulation_mode"},
};

std::string NameOf(dnnl_graph_op_attr_t attribute) {
  for (const AttributeName& row : kAttributeNames) {
    if (row.attribute == attribute) return std::string(row.name);
  }
  return "attribute " + std::to_string(static_cast<int>(attribute));
}

void SetAttribute(GraphOp& op, dnnl_graph_op_attr_t attribute, GraphValue value) {
  std::string name = NameOf(attribute);
  for (auto& [key, old] : op.attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  op.attributes.emplace_back(std::move(name), std::move(value));
}

// A number's attribute is one value; from any other, a list is read.
bool IsF32(dnnl_graph_op_attr_t attribute) {
  return attribute >= dnnl_graph_op_attr_alpha && attribute < dnnl_graph_op_attr_scales;
}
bool IsS64(dnnl_graph_op_attr_t attribute) {
  return attribute >= dnnl_graph_op_attr_axis && attribute < dnnl_graph_op_attr_axes;
}

// A null pointer is what an empty std::vector has.
dnnl_status_t RefuseNoValues(dnnl_graph_op_attr_t attribute) {
  return Refuse(dnnl_invalid_arguments,
                "attribute " + NameOf(attribute) +
                    " has no values: a null pointer, an empty list or an empty string");
}

// A negative number that became a size.
bool IsTooLong(size_t values) { return values > size_t{1} << 32; }

dnnl_status_t RefuseLength(dnnl_graph_op_attr_t attribute, size_t values) {
  return Refuse(dnnl_invalid_arguments, "attribute " + NameOf(attribute) + " has " +
                                            std::to_string(values) +
                                            " values, more than any list has");
}

dnnl_status_t AddTensor(const dnnl_graph_logical_tensor_t& tensor,
                        std::vector<LogicalTensor>& tensors) {
  std::optional<LogicalTensor> model = ModelOf(tensor);
  if (!model) {
    return Refuse(dnnl_invalid_arguments, "tensor " + std::to_string(tensor.id) + " has rank " +
                                              std::to_string(tensor.ndims) + ", at most 12");
  }
  tensors.push_back(*std::move(model));
  return dnnl_success;
}

}  // namespace

std::optional<ValueKind> ValueKindOf(std::string_view attribute) {
  for (const AttributeName& row : kAttributeNames) {
    if (row.name != attribute) continue;
    if (IsF32(row.attribute)) return ValueKind::kF32;
    if (row.attribute < dnnl_graph_op_attr_axis) return ValueKind::kF32List;
    if (IsS64(row.attribute)) return ValueKind::kS64;
    if (row.attribute < dnnl_graph_op_attr_exclude_pad) return ValueKind::kS64List;
    return row.attribute < dnnl_graph_op_attr_auto_broadcast ? ValueKind::kBool
                                                             : ValueKind::kString;
  }
  return std::nullopt;
}

}  // namespace convgrad::onednn

using convgrad::onednn::AnyNull;
using convgrad::onednn::GraphValue;
using convgrad::onednn::IsTooLong;
using convgrad::onednn::Refuse;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseLength;
using convgrad::onednn::RefuseNoValues;
using convgrad::onednn::RefuseNull;

dnnl_status_t dnnl_graph_op_create(dnnl_graph_op_t* op, size_t id, dnnl_graph_op_kind_t kind,
                                   const char* verbose_name) try {
  if (AnyNull(op, verbose_name)) return RefuseNull(__func__);
  if (kind < 0 || kind >= dnnl_graph_op_last_symbol) {
    return Refuse(dnnl_invalid_arguments, "op kind " + std::to_string(static_cast<int>(kind)) +
                                              " is not known, expected 0 to 87");
  }
  auto made = std::make_unique<dnnl_graph_op>();
  made->added.kind = kind;
  made->added.op.id = id;
  made->added.op.kind = convgrad::onednn::kKindNames[kind];
  made->added.op.name =
      *verbose_name != '\0' ? verbose_name : made->added.op.kind + "_" + std::to_string(id);
  *op = made.release();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_op_destroy(dnnl_graph_op_t op) {
  delete op;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_op_add_input(dnnl_graph_op_t op,
                                      const dnnl_graph_logical_tensor_t* input) try {
  if (AnyNull(op, input)) return RefuseNull(__func__);
  return convgrad::onednn::AddTensor(*input, op->added.op.inputs);
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_op_add_output(dnnl_graph_op_t op,
                                       const dnnl_graph_logical_tensor_t* output) try {
  if (AnyNull(op, output)) return RefuseNull(__func__);
  return convgrad::onednn::AddTensor(*output, op->added.op.outputs);
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_op_set_attr_f32(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                         const float* value, size_t value_len) try {
  if (op == nullptr) return RefuseNull(__func__);
  if (value == nullptr) return RefuseNoValues(name);
  if (IsTooLong(value_len)) return RefuseLength(name, value_len);
  convgrad::onednn::SetAttribute(op->added.op, name,
                                 convgrad::onednn::IsF32(name)
                                     ? GraphValue(*value)
                                     : GraphValue(std::vector<float>(value, value + value_len)));
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_op_set_attr_bool(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                          const uint8_t* value, size_t value_len) try {
  if (op == nullptr) return RefuseNull(__func__);
  if (value == nullptr) return RefuseNoValues(name);
  if (value_len != 1) {
    return Refuse(dnnl_invalid_arguments,
                  "a bool attribute has one value, not a list of " + std::to_string(value_len));
  }
  convgrad::onednn::SetAttribute(op->added.op, name, *value != 0);
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_op_set_attr_s64(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                         const int64_t* value, size_t value_len) try {
  if (op == nullptr) return RefuseNull(__func__);
  if (value == nullptr) return RefuseNoValues(name);
  if (IsTooLong(value_len)) return RefuseLength(name, value_len);
  convgrad::onednn::SetAttribute(op->added.op, name,
                                 convgrad::onednn::IsS64(name)
                                     ? GraphValue(*value)
                                     : GraphValue(std::vector<int64_t>(value, value + value_len)));
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_op_set_attr_str(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                         const char* value, size_t value_len) try {
  if (op == nullptr) return RefuseNull(__func__);
  if (value == nullptr) return RefuseNoValues(name);
  if (value_len == 0) return RefuseNoValues(name);
  if (IsTooLong(value_len)) return RefuseLength(name, value_len);
  convgrad::onednn::SetAttribute(op->added.op, name, std::string(value));
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_op_get_id(const_dnnl_graph_op_t op, size_t* id) {
  if (AnyNull(op, id)) return RefuseNull(__func__);
  *id = op->added.op.id;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_op_get_kind(const_dnnl_graph_op_t op, dnnl_graph_op_kind_t* kind) {
  if (AnyNull(op, kind)) return RefuseNull(__func__);
  *kind = op->added.kind;
  return dnnl_success;
}
