// Tensors of the graph API: a logical tensor, an engine and a pointer, of the caller or of the
// engine's allocator.
#include <algorithm>
#include <cstring>

#include "onednn/dnnl_logical_tensor.h"
#include "onednn/dnnl_objects.h"

using convgrad::onednn::AnyNull;
using convgrad::onednn::EngineMemory;
using convgrad::onednn::EngineUse;
using convgrad::onednn::Refuse;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseNull;

namespace convgrad::onednn {
namespace {

// As much as the client expects (get_mem_size), and as the elements reach. An empty tensor has no
// memory: its data is null.
dnnl_status_t Allocate(dnnl_graph_tensor& tensor) {
  const size_t bytes =
      std::max(MemoryBytes(tensor.logical_tensor), SpanBytes(tensor.logical_tensor));
  if (bytes == kUnknownBytes) {
    return Refuse(dnnl_invalid_arguments, "tensor " + std::to_string(tensor.logical_tensor.id) +
                                              " " + WhyNoSize(tensor.logical_tensor) +
                                              ", and cannot be allocated");
  }
  if (bytes == 0) return dnnl_success;
  tensor.own_memory = EngineMemory(tensor.engine, bytes);
  tensor.data = tensor.own_memory.data();
  if (tensor.data != nullptr) return dnnl_success;
  return Refuse(dnnl_out_of_memory,
                "the allocator has no " + std::to_string(bytes) + " bytes for a tensor");
}

}  // namespace
}  // namespace convgrad::onednn

dnnl_status_t dnnl_graph_tensor_create(dnnl_graph_tensor_t* tensor,
                                       const dnnl_graph_logical_tensor_t* logical_tensor,
                                       dnnl_engine_t engine, void* handle) try {
  if (AnyNull(tensor, logical_tensor, engine)) return RefuseNull(__func__);
  if (logical_tensor->property == dnnl_graph_tensor_property_host_scalar) {
    return Refuse(dnnl_invalid_arguments,
                  "a host scalar has no engine: dnnl_graph_tensor_create_scalar makes one");
  }
  auto made =
      std::unique_ptr<dnnl_graph_tensor>(new dnnl_graph_tensor{*logical_tensor, EngineUse(engine)});
  if (handle == DNNL_MEMORY_ALLOCATE) {
    if (auto s = convgrad::onednn::Allocate(*made); s != dnnl_success) return s;
  } else {
    made->data = handle;
  }
  *tensor = made.release();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_tensor_create_scalar(dnnl_graph_tensor_t* tensor,
                                              const dnnl_graph_logical_tensor_t* logical_tensor,
                                              void* handle) try {
  if (AnyNull(tensor, logical_tensor, handle)) return RefuseNull(__func__);
  if (!convgrad::onednn::IsHostScalar(*logical_tensor) || handle == DNNL_MEMORY_ALLOCATE) {
    return Refuse(dnnl_invalid_arguments,
                  "a scalar tensor has the property host_scalar, no axes, the type s32, s64 or f32 "
                  "and a value");
  }
  auto made =
      std::unique_ptr<dnnl_graph_tensor>(new dnnl_graph_tensor{*logical_tensor, EngineUse()});
  std::memcpy(&made->scalar, handle, logical_tensor->data_type == dnnl_s64 ? 8 : 4);
  *tensor = made.release();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_tensor_destroy(dnnl_graph_tensor_t tensor) {
  delete tensor;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_data_handle(const_dnnl_graph_tensor_t tensor, void** handle) {
  if (AnyNull(tensor, handle)) return RefuseNull(__func__);
  *handle = tensor->data;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_set_data_handle(dnnl_graph_tensor_t tensor, void* handle) try {
  if (tensor == nullptr) return RefuseNull(__func__);
  if (tensor->is_scalar() || handle == DNNL_MEMORY_ALLOCATE) {
    return Refuse(dnnl_invalid_arguments, "the data of a tensor is a pointer, a scalar has none");
  }
  tensor->own_memory = EngineMemory();
  tensor->data = handle;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_tensor_get_engine(const_dnnl_graph_tensor_t tensor,
                                           dnnl_engine_t* engine) {
  if (AnyNull(tensor, engine)) return RefuseNull(__func__);
  *engine = tensor->engine.get();
  return dnnl_success;
}

dnnl_status_t dnnl_graph_tensor_get_logical_tensor(const_dnnl_graph_tensor_t tensor,
                                                   dnnl_graph_logical_tensor_t* logical_tensor) {
  if (AnyNull(tensor, logical_tensor)) return RefuseNull(__func__);
  *logical_tensor = tensor->logical_tensor;
  return dnnl_success;
}
