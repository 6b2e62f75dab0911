// Memory of oneDNN's primitive API, which utilities of C clients name: a tensor of the graph API
// without an id.
#include <algorithm>

#include "oneapi/dnnl/dnnl.h"
#include "onednn/dnnl_logical_tensor.h"
#include "onednn/dnnl_objects.h"

struct dnnl_memory_desc {
  dnnl_graph_logical_tensor_t tensor;
};

struct dnnl_memory {
  dnnl_memory_desc desc;
  dnnl_graph_tensor_t tensor = nullptr;

  dnnl_memory() = default;
  dnnl_memory(const dnnl_memory&) = delete;
  dnnl_memory& operator=(const dnnl_memory&) = delete;
  ~dnnl_memory() { dnnl_graph_tensor_destroy(tensor); }
};

using convgrad::onednn::AnyNull;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseNull;

dnnl_status_t dnnl_memory_desc_create_with_strides(dnnl_memory_desc_t* memory_desc, int ndims,
                                                   const dnnl_dims_t dims,
                                                   dnnl_data_type_t data_type,
                                                   const dnnl_dims_t strides) try {
  if (memory_desc == nullptr) return RefuseNull(__func__);
  auto made = std::make_unique<dnnl_memory_desc>();
  constexpr auto kAny = dnnl_graph_tensor_property_undef;
  const dnnl_status_t status =
      strides != nullptr
          ? dnnl_graph_logical_tensor_init_with_strides(&made->tensor, 0, data_type, ndims, dims,
                                                        strides, kAny)
          : dnnl_graph_logical_tensor_init_with_dims(&made->tensor, 0, data_type, ndims, dims,
                                                     dnnl_graph_layout_type_strided, kAny);
  if (status == dnnl_success) *memory_desc = made.release();
  return status;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_memory_desc_destroy(dnnl_memory_desc_t memory_desc) {
  delete memory_desc;
  return dnnl_success;
}

size_t dnnl_memory_desc_get_size(const_dnnl_memory_desc_t memory_desc) {
  if (memory_desc == nullptr) return 0;
  const size_t bytes = std::max(convgrad::onednn::MemoryBytes(memory_desc->tensor),
                                convgrad::onednn::SpanBytes(memory_desc->tensor));
  return bytes == convgrad::onednn::kUnknownBytes ? 0 : bytes;
}

dnnl_status_t dnnl_memory_create(dnnl_memory_t* memory, const_dnnl_memory_desc_t memory_desc,
                                 dnnl_engine_t engine, void* handle) try {
  if (AnyNull(memory, memory_desc, engine)) return RefuseNull(__func__);
  auto made = std::make_unique<dnnl_memory>();
  made->desc = *memory_desc;
  const dnnl_status_t status =
      dnnl_graph_tensor_create(&made->tensor, &memory_desc->tensor, engine, handle);
  if (status == dnnl_success) *memory = made.release();
  return status;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_memory_destroy(dnnl_memory_t memory) {
  delete memory;
  return dnnl_success;
}

dnnl_status_t dnnl_memory_get_memory_desc(const_dnnl_memory_t memory,
                                          const_dnnl_memory_desc_t* memory_desc) {
  if (AnyNull(memory, memory_desc)) return RefuseNull(__func__);
  *memory_desc = &memory->desc;
  return dnnl_success;
}

dnnl_status_t dnnl_memory_get_engine(const_dnnl_memory_t memory, dnnl_engine_t* engine) {
  if (AnyNull(memory, engine)) return RefuseNull(__func__);
  return dnnl_graph_tensor_get_engine(memory->tensor, engine);
}

dnnl_status_t dnnl_memory_get_data_handle(const_dnnl_memory_t memory, void** handle) {
  if (AnyNull(memory, handle)) return RefuseNull(__func__);
  return dnnl_graph_tensor_get_data_handle(memory->tensor, handle);
}

dnnl_status_t dnnl_memory_set_data_handle(dnnl_memory_t memory, void* handle) {
  if (memory == nullptr) return RefuseNull(__func__);
  return dnnl_graph_tensor_set_data_handle(memory->tensor, handle);
}

dnnl_status_t dnnl_memory_map_data(const_dnnl_memory_t memory, void** mapped_ptr) {
  if (AnyNull(memory, mapped_ptr)) return RefuseNull(__func__);
  return dnnl_graph_tensor_get_data_handle(memory->tensor, mapped_ptr);
}

dnnl_status_t dnnl_memory_unmap_data(const_dnnl_memory_t memory, void*) {
  return memory == nullptr ? RefuseNull(__func__) : dnnl_success;
}
