#include "onednn/graph_operation.h"

#include <algorithm>
#include <string>
#include <utility>

namespace convgrad::onednn {
namespace {

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

Result<DataType> DataTypeOf(const LogicalTensor& tensor) {
  switch (tensor.type) {
    case ElementType::kF32:
      return DataType::kF32;
    case ElementType::kBF16:
      return DataType::kBF16;
    case ElementType::kF16:
      return DataType::kF16;
    case ElementType::kS32:
      return DataType::kS32;
    case ElementType::kS64:
      return DataType::kS64;
    default:
      return Status(StatusCode::kInvalidType, "tensor " + std::to_string(tensor.id) + " is of " +
                                                  std::string(NameOf(tensor.type)) +
                                                  ", expected f32, bf16, f16, or s32 or s64 for "
                                                  "a shape tensor");
  }
}

// Strides of dense elements, the last axis fastest; an empty tensor's are those of extents 1.
Dims DenseStrides(const Dims& extents) {
  Dims strides(extents.size());
  int64_t stride = 1;
  for (size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(extents[axis], 1);
  }
  return strides;
}

}  // namespace

bool IsSupportedKind(const GraphOp& op) { return ParseOpKind(op.kind).ok(); }

Result<Operation> OperationOf(const GraphOp& op) {
  const Result<OpKind> kind = ParseOpKind(op.kind);
  if (!kind.ok()) return kind.status();
  Operation operation{*kind, {}};
  for (const auto& [name, value] : op.attributes) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      operation.attributes.Set(name, *number);
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      operation.attributes.Set(name, *list);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      operation.attributes.Set(name, *text);
    } else {
      return Status(StatusCode::kInvalidArgument,
                    "attribute " + Quoted(name) + " of " + op.kind +
                        " is a number of f32 or a bool, expected s64, s64[] or string");
    }
  }
  return operation;
}

Result<TensorDesc> DescOf(const LogicalTensor& tensor) {
  const Result<DataType> type = DataTypeOf(tensor);
  if (!type.ok()) return type.status();
  if (tensor.layout == LayoutType::kOpaque) {
    return Status(StatusCode::kInvalidArgument,
                  "tensor " + std::to_string(tensor.id) + " has the opaque layout " +
                      std::to_string(tensor.layout_id) +
                      ", but no layout of convgrad is opaque: expected strided or any");
  }
  TensorDesc desc;
  desc.type = *type;
  if (tensor.extents.has_value()) desc.extents = *tensor.extents;
  if (tensor.layout != LayoutType::kStrided) return desc;
  const auto is_unknown = [](int64_t stride) { return stride < 0; };
  const auto unknown = std::ranges::count_if(tensor.strides, is_unknown);
  if (unknown == 0) {
    desc.strides = tensor.strides;
  } else if (unknown != std::ssize(tensor.strides)) {
    return Status(StatusCode::kInvalidArgument,
                  "tensor " + std::to_string(tensor.id) + " has " + std::to_string(unknown) +
                      " unknown (negative) strides of " + std::to_string(tensor.strides.size()) +
                      ", expected all or none");
  }
  return desc;
}

Result<std::vector<TensorDesc>> DescsOf(const std::vector<LogicalTensor>& tensors) {
  std::vector<TensorDesc> descs;
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.type == ElementType::kUndef) {
      descs.emplace_back();
      continue;
    }
    Result<TensorDesc> desc = DescOf(tensor);
    if (!desc.ok()) return desc.status();
    descs.push_back(*std::move(desc));
  }
  return descs;
}

LogicalTensor Completed(const LogicalTensor& tensor, const TensorDesc& desc) {
  LogicalTensor completed = tensor;
  completed.extents = desc.extents;
  completed.layout = LayoutType::kStrided;
  completed.strides = desc.strides.empty() ? DenseStrides(desc.extents) : desc.strides;
  return completed;
}

}  // namespace convgrad::onednn
