// Logical tensors: how they are made, what memory they need, and whether two are equal. A negative
// extent or stride is one that is not known.
#include "onednn/dnnl_logical_tensor.h"

#include <algorithm>

#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {
namespace {

constexpr int64_t kUnknown = DNNL_GRAPH_UNKNOWN_DIM;

size_t BitsOf(dnnl_data_type_t type) {
  switch (type) {
    case dnnl_s4:
    case dnnl_u4:
    case dnnl_f4_e2m1:
    case dnnl_f4_e3m0:
      return 4;
    case dnnl_s8:
    case dnnl_u8:
    case dnnl_boolean:
    case dnnl_f8_e5m2:
    case dnnl_f8_e4m3:
    case dnnl_e8m0:
      return 8;
    case dnnl_f16:
    case dnnl_bf16:
      return 16;
    case dnnl_f32:
    case dnnl_s32:
      return 32;
    case dnnl_f64:
    case dnnl_s64:
      return 64;
    default:
      return 0;
  }
}

// What a tensor with the property host_scalar must be.
bool IsScalar(int32_t ndims, dnnl_data_type_t type) {
  return ndims == 0 && (type == dnnl_s32 || type == dnnl_f32 || type == dnnl_s64);
}

dnnl_status_t CheckNew(int32_t least_rank, int32_t ndims, dnnl_data_type_t type,
                       dnnl_graph_tensor_property_t property) {
  if (ndims < least_rank || ndims > DNNL_MAX_NDIMS) {
    return Refuse(dnnl_invalid_arguments, "ndims is " + std::to_string(ndims) + ", expected " +
                                              std::to_string(least_rank) + " to 12");
  }
  if (property == dnnl_graph_tensor_property_host_scalar && !IsScalar(ndims, type)) {
    return Refuse(dnnl_invalid_arguments, "a host scalar has no axes and is s32, s64 or f32");
  }
  return dnnl_success;
}

// Extents and strides are known, or are not needed: an axis of one element has no use for a stride.
bool IsKnown(const dnnl_graph_logical_tensor_t& tensor) {
  if (tensor.layout_type != dnnl_graph_layout_type_strided) return false;
  if (tensor.ndims < 0 || tensor.ndims > DNNL_MAX_NDIMS) return false;
  for (int axis = 0; axis < tensor.ndims; ++axis) {
    if (tensor.dims[axis] < 0) return false;
    if (tensor.dims[axis] > 1 && tensor.layout.strides[axis] < 0) return false;
  }
  return true;
}

bool IsEmpty(const dnnl_graph_logical_tensor_t& tensor) {
  return std::any_of(tensor.dims, tensor.dims + tensor.ndims, [](int64_t n) { return n == 0; });
}

__extension__ using Wide = unsigned __int128;

size_t BytesOf(Wide elements, dnnl_data_type_t type) {
  constexpr size_t kMostElements = kUnknownBytes / 64;
  if (elements > kMostElements) return kUnknownBytes;
  return (static_cast<size_t>(elements) * BitsOf(type) + 7) / 8;
}

Wide Product(int64_t a, int64_t b) { return static_cast<Wide>(a) * static_cast<Wide>(b); }

}  // namespace

bool IsHostScalar(const dnnl_graph_logical_tensor_t& tensor) {
  return tensor.property == dnnl_graph_tensor_property_host_scalar &&
         IsScalar(tensor.ndims, tensor.data_type);
}

std::optional<LogicalTensor> ModelOf(const dnnl_graph_logical_tensor_t& tensor) {
  if (tensor.ndims > DNNL_MAX_NDIMS) return std::nullopt;
  LogicalTensor model;
  model.id = tensor.id;
  model.type = static_cast<ElementType>(tensor.data_type);
  model.layout = static_cast<LayoutType>(tensor.layout_type);
  model.property = static_cast<PropertyType>(tensor.property);
  const size_t rank = static_cast<size_t>(std::max(tensor.ndims, 0));
  if (tensor.ndims >= 0) model.extents = Dims(tensor.dims, tensor.dims + rank);
  if (model.layout == LayoutType::kStrided) {
    model.strides.assign(tensor.layout.strides, tensor.layout.strides + rank);
  }
  if (model.layout == LayoutType::kOpaque) model.layout_id = tensor.layout.layout_id;
  return model;
}

dnnl_graph_logical_tensor_t StructOf(const LogicalTensor& tensor) {
  dnnl_graph_logical_tensor_t result{};
  result.id = tensor.id;
  result.ndims = tensor.extents ? static_cast<int>(tensor.extents->size()) : -1;
  result.data_type = static_cast<dnnl_data_type_t>(tensor.type);
  result.property = static_cast<dnnl_graph_tensor_property_t>(tensor.property);
  result.layout_type = static_cast<dnnl_graph_layout_type_t>(tensor.layout);
  if (result.ndims != 0) std::ranges::fill(result.layout.strides, kUnknown);
  if (tensor.extents) {
    std::ranges::copy(*tensor.extents, result.dims);
  } else {
    std::ranges::fill(result.dims, kUnknown);
  }
  std::ranges::copy(tensor.strides, result.layout.strides);
  if (tensor.layout == LayoutType::kOpaque) result.layout.layout_id = tensor.layout_id;
  return result;
}

size_t MemoryBytes(const dnnl_graph_logical_tensor_t& tensor) {
  if (!IsKnown(tensor)) return kUnknownBytes;
  if (IsEmpty(tensor)) return 0;
  Wide elements = 1;  // a scalar's
  for (int axis = 0; axis < tensor.ndims; ++axis) {
    const int64_t extent = tensor.dims[axis];
    elements = std::max(elements, Product(extent, extent == 1 ? 1 : tensor.layout.strides[axis]));
  }
  return BytesOf(elements, tensor.data_type);
}

size_t SpanBytes(const dnnl_graph_logical_tensor_t& tensor) {
  if (!IsKnown(tensor)) return kUnknownBytes;
  if (IsEmpty(tensor)) return 0;
  Wide last = 0;  // twelve products of 126 bits would not fit: stop at the first that is too large
  for (int axis = 0; axis < tensor.ndims && last < kUnknownBytes; ++axis) {
    const int64_t steps = tensor.dims[axis] - 1;
    if (steps > 0) last += Product(steps, tensor.layout.strides[axis]);
  }
  return BytesOf(last + 1, tensor.data_type);
}

bool IsTooLarge(const dnnl_graph_logical_tensor_t& tensor) {
  constexpr Wide kMostBits = Wide{std::numeric_limits<int64_t>::max()} * 8;
  Wide bits = BitsOf(tensor.data_type);
  for (int axis = 0; axis < tensor.ndims; ++axis) {
    if (tensor.dims[axis] < 0) return false;
    // An empty axis must not hide the others, whose strides do not fit either.
    if (bits <= kMostBits) bits *= static_cast<Wide>(std::max<int64_t>(tensor.dims[axis], 1));
  }
  return bits > kMostBits;
}

std::string WhyNoSize(const dnnl_graph_logical_tensor_t& tensor) {
  const auto any_unknown = [&](const int64_t* numbers) {
    return std::any_of(numbers, numbers + tensor.ndims, [](int64_t n) { return n < 0; });
  };
  if (tensor.ndims < 0) return "has an unknown rank";
  if (tensor.ndims > DNNL_MAX_NDIMS) return "has more than 12 axes";
  if (any_unknown(tensor.dims)) return "has unknown extents";
  if (tensor.layout_type != dnnl_graph_layout_type_strided) return "has no strides";
  if (!IsTooLarge(tensor) && !IsKnown(tensor)) return "has unknown strides";
  return "has more than 2^63 - 1 bytes";
}

}  // namespace convgrad::onednn

using convgrad::onednn::AnyNull;
using convgrad::onednn::CheckNew;
using convgrad::onednn::kUnknown;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseNull;

dnnl_status_t dnnl_graph_logical_tensor_init(dnnl_graph_logical_tensor_t* logical_tensor,
                                             size_t tid, dnnl_data_type_t dtype, int32_t ndims,
                                             dnnl_graph_layout_type_t ltype,
                                             dnnl_graph_tensor_property_t ptype) try {
  if (logical_tensor == nullptr) return RefuseNull(__func__);
  const int32_t any_rank = std::min(ndims, 0);
  if (auto s = CheckNew(any_rank, ndims, dtype, ptype); s != dnnl_success) return s;
  *logical_tensor = {};
  logical_tensor->id = tid;
  logical_tensor->ndims = ndims;
  logical_tensor->data_type = dtype;
  logical_tensor->layout_type = ltype;
  logical_tensor->property = ptype;
  if (ndims != 0) {
    std::ranges::fill(logical_tensor->dims, kUnknown);
    std::ranges::fill(logical_tensor->layout.strides, kUnknown);
  }
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_dims(dnnl_graph_logical_tensor_t* logical_tensor,
                                                       size_t tid, dnnl_data_type_t dtype,
                                                       int32_t ndims, const dnnl_dims_t dims,
                                                       dnnl_graph_layout_type_t ltype,
                                                       dnnl_graph_tensor_property_t ptype) try {
  if (logical_tensor == nullptr) return RefuseNull(__func__);
  if (auto s = CheckNew(0, ndims, dtype, ptype); s != dnnl_success) return s;
  if (ndims > 0 && dims == nullptr) return RefuseNull(__func__);
  dnnl_graph_logical_tensor_t made{};
  made.id = tid;
  made.ndims = ndims;
  made.data_type = dtype;
  made.layout_type = ltype;
  made.property = ptype;
  if (ndims > 0) {
    std::copy(dims, dims + ndims, made.dims);
    const bool known = std::all_of(dims, dims + ndims, [](int64_t extent) { return extent >= 0; });
    if (known && ltype == dnnl_graph_layout_type_strided) {
      int64_t stride = 1;
      for (int axis = ndims - 1; axis >= 0; --axis) {
        made.layout.strides[axis] = stride;
        // A number that does not fit is found where the tensor is used.
        if (__builtin_mul_overflow(stride, std::max<int64_t>(dims[axis], 1), &stride)) {
          stride = kUnknown;
        }
      }
    } else {
      std::ranges::fill(made.layout.strides, kUnknown);
    }
  }
  *logical_tensor = made;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_strides(
    dnnl_graph_logical_tensor_t* logical_tensor, size_t tid, dnnl_data_type_t dtype, int32_t ndims,
    const dnnl_dims_t dims, const dnnl_dims_t strides, dnnl_graph_tensor_property_t ptype) try {
  if (logical_tensor == nullptr) return RefuseNull(__func__);
  if (auto s = CheckNew(0, ndims, dtype, ptype); s != dnnl_success) return s;
  if (ndims > 0 && AnyNull(dims, strides)) return RefuseNull(__func__);
  dnnl_graph_logical_tensor_t made{};
  made.id = tid;
  made.ndims = ndims;
  made.data_type = dtype;
  made.layout_type = dnnl_graph_layout_type_strided;
  made.property = ptype;
  if (ndims > 0) {
    std::copy(dims, dims + ndims, made.dims);
    std::copy(strides, strides + ndims, made.layout.strides);
  }
  *logical_tensor = made;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_logical_tensor_get_mem_size(
    const dnnl_graph_logical_tensor_t* logical_tensor, size_t* size) {
  if (AnyNull(logical_tensor, size)) return RefuseNull(__func__);
  *size = convgrad::onednn::MemoryBytes(*logical_tensor);
  return dnnl_success;
}

dnnl_status_t dnnl_graph_logical_tensor_is_equal(const dnnl_graph_logical_tensor_t* lt1,
                                                 const dnnl_graph_logical_tensor_t* lt2,
                                                 uint8_t* is_equal) try {
  if (AnyNull(lt1, lt2, is_equal)) return RefuseNull(__func__);
  const auto first = convgrad::onednn::ModelOf(*lt1), second = convgrad::onednn::ModelOf(*lt2);
  *is_equal = first && second && *first == *second ? 1 : 0;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}
