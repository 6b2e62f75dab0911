// Part of dnnl_graph.hpp, which clients include: handles, allocators, logical tensors and tensors.
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_TENSOR_HPP_
#define CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_TENSOR_HPP_

#include <cstdint>
#include <type_traits>
#include <vector>

#include "oneapi/dnnl/dnnl_common.hpp"
#include "oneapi/dnnl/dnnl_graph.h"

namespace dnnl {
namespace graph {

using engine = dnnl::engine;
using stream = dnnl::stream;
using fpmath_mode = dnnl::fpmath_mode;

template <typename T>
struct graph_handle_traits : public dnnl::handle_traits<T> {};

#define CONVGRAD_DNNL_GRAPH_HANDLE(name)                            \
  template <>                                                       \
  struct graph_handle_traits<dnnl_graph_##name##_t> {               \
    static dnnl_status_t destructor(dnnl_graph_##name##_t object) { \
      return dnnl_graph_##name##_destroy(object);                   \
    }                                                               \
  };                                                                \
  using name##_handle =                                             \
      dnnl::handle<dnnl_graph_##name##_t, graph_handle_traits<dnnl_graph_##name##_t>>

CONVGRAD_DNNL_GRAPH_HANDLE(allocator);
CONVGRAD_DNNL_GRAPH_HANDLE(graph);
CONVGRAD_DNNL_GRAPH_HANDLE(op);
CONVGRAD_DNNL_GRAPH_HANDLE(tensor);
CONVGRAD_DNNL_GRAPH_HANDLE(compiled_partition);
CONVGRAD_DNNL_GRAPH_HANDLE(partition);
#undef CONVGRAD_DNNL_GRAPH_HANDLE

template <bool B>
using req = typename std::enable_if<B, bool>::type;

enum class status {
  success = dnnl_success,
  out_of_memory = dnnl_out_of_memory,
  invalid_arguments = dnnl_invalid_arguments,
  unimplemented = dnnl_unimplemented,
  last_impl_reached = dnnl_last_impl_reached,
  runtime_error = dnnl_runtime_error,
  not_required = dnnl_not_required,
  invalid_graph = dnnl_invalid_graph,
  invalid_graph_op = dnnl_invalid_graph_op,
  invalid_shape = dnnl_invalid_shape,
  invalid_data_type = dnnl_invalid_data_type,
};

// Where tensors and scratchpads come from. An engine keeps what it needs of it.
class allocator : public allocator_handle {
 public:
  using allocator_handle::handle;

  allocator() : allocator(nullptr, nullptr) {}
  allocator(dnnl_graph_host_allocate_f host_malloc, dnnl_graph_host_deallocate_f host_free) {
    dnnl_graph_allocator_t made = nullptr;
    error::wrap_c_api(dnnl_graph_allocator_create(&made, host_malloc, host_free),
                      "could not create an allocator");
    reset(made);
  }
};

inline engine make_engine_with_allocator(engine::kind kind, size_t index, const allocator& alloc) {
  dnnl_engine_t made = nullptr;
  error::wrap_c_api(
      dnnl_graph_make_engine_with_allocator(&made, convert_to_c(kind), index, alloc.get()),
      "could not make an engine with an allocator");
  return engine(made);
}

// Type, extents, layout and id of a tensor: a value without data.
class logical_tensor {
  friend class op;
  friend class tensor;
  friend class partition;

 public:
  using dim = dnnl_dim_t;
  using dims = std::vector<dim>;

  enum class data_type {
    undef = dnnl_data_type_undef,
    f16 = dnnl_f16,
    bf16 = dnnl_bf16,
    f32 = dnnl_f32,
    s32 = dnnl_s32,
    s8 = dnnl_s8,
    u8 = dnnl_u8,
    boolean = dnnl_boolean,
    f8_e5m2 = dnnl_f8_e5m2,
    f8_e4m3 = dnnl_f8_e4m3,
    s4 = dnnl_s4,
    u4 = dnnl_u4,
    s64 = dnnl_s64,
  };

  enum class layout_type {
    undef = dnnl_graph_layout_type_undef,
    any = dnnl_graph_layout_type_any,
    strided = dnnl_graph_layout_type_strided,
    opaque = dnnl_graph_layout_type_opaque,
  };

  enum class property_type {
    undef = dnnl_graph_tensor_property_undef,
    variable = dnnl_graph_tensor_property_variable,
    constant = dnnl_graph_tensor_property_constant,
    host_scalar = dnnl_graph_tensor_property_host_scalar,
  };

  logical_tensor() = default;
  explicit logical_tensor(const dnnl_graph_logical_tensor_t& c_data) : data(c_data) {}

  // Of known rank, or of none (DNNL_GRAPH_UNKNOWN_NDIMS), and unknown extents.
  logical_tensor(size_t tid, data_type dtype, int32_t ndims, layout_type ltype,
                 property_type ptype = property_type::undef) {
    init(tid, dtype, ndims, ltype, ptype);
  }
  logical_tensor(size_t tid, data_type dtype, layout_type ltype = layout_type::undef)
      : logical_tensor(tid, dtype, DNNL_GRAPH_UNKNOWN_NDIMS, ltype) {}

  // No extents: a scalar.
  logical_tensor(size_t tid, data_type dtype, const dims& adims, layout_type ltype,
                 property_type ptype = property_type::undef) {
    init_with_dims(tid, dtype, adims, ltype, ptype);
  }
  logical_tensor(size_t tid, data_type dtype, const dims& adims, const dims& strides,
                 property_type ptype = property_type::undef) {
    if (adims.size() != strides.size()) {
      convgrad_dnnl_error(dnnl_invalid_arguments,
                          "a logical_tensor needs a stride for each extent");
    }
    error::wrap_c_api(
        dnnl_graph_logical_tensor_init_with_strides(
            &data, tid, static_cast<dnnl_data_type_t>(dtype), static_cast<int32_t>(adims.size()),
            adims.data(), strides.data(), static_cast<dnnl_graph_tensor_property_t>(ptype)),
        "could not create a logical_tensor with strides");
  }
  // Opaque.
  logical_tensor(size_t tid, data_type dtype, const dims& adims, size_t lid,
                 property_type ptype = property_type::undef) {
    init_with_dims(tid, dtype, adims, layout_type::opaque, ptype);
    data.layout.layout_id = lid;
  }

  dims get_dims() const {
    check(data.ndims >= 0, "a logical_tensor of unknown rank has no extents");
    return dims(data.dims, data.dims + data.ndims);
  }
  size_t get_id() const { return data.id; }
  data_type get_data_type() const { return static_cast<data_type>(data.data_type); }
  property_type get_property_type() const { return static_cast<property_type>(data.property); }
  layout_type get_layout_type() const { return static_cast<layout_type>(data.layout_type); }
  size_t get_layout_id() const {
    check(get_layout_type() == layout_type::opaque, "only an opaque layout has an id");
    return data.layout.layout_id;
  }
  dims get_strides() const {
    check(get_layout_type() == layout_type::strided, "only a strided layout has strides");
    check(data.ndims >= 0, "a logical_tensor of unknown rank has no strides");
    return dims(data.layout.strides, data.layout.strides + data.ndims);
  }
  size_t get_mem_size() const {
    size_t size = 0;
    error::wrap_c_api(dnnl_graph_logical_tensor_get_mem_size(&data, &size),
                      "could not get the size of a logical_tensor");
    return size;
  }
  bool is_equal(const logical_tensor& lt) const {
    uint8_t equal = 0;
    error::wrap_c_api(dnnl_graph_logical_tensor_is_equal(&data, &lt.data, &equal),
                      "could not compare two logical_tensors");
    return equal != 0;
  }

 private:
  static void check(bool holds, const char* text) {
    if (!holds) convgrad_dnnl_error(dnnl_invalid_arguments, text);
  }
  void init(size_t tid, data_type dtype, int32_t ndims, layout_type ltype, property_type ptype) {
    error::wrap_c_api(
        dnnl_graph_logical_tensor_init(&data, tid, static_cast<dnnl_data_type_t>(dtype), ndims,
                                       static_cast<dnnl_graph_layout_type_t>(ltype),
                                       static_cast<dnnl_graph_tensor_property_t>(ptype)),
        "could not create a logical_tensor");
  }
  void init_with_dims(size_t tid, data_type dtype, const dims& adims, layout_type ltype,
                      property_type ptype) {
    if (adims.empty()) return init(tid, dtype, 0, ltype, ptype);
    error::wrap_c_api(
        dnnl_graph_logical_tensor_init_with_dims(&data, tid, static_cast<dnnl_data_type_t>(dtype),
                                                 static_cast<int32_t>(adims.size()), adims.data(),
                                                 static_cast<dnnl_graph_layout_type_t>(ltype),
                                                 static_cast<dnnl_graph_tensor_property_t>(ptype)),
        "could not create a logical_tensor with extents");
  }

  dnnl_graph_logical_tensor_t data;
};

// A logical_tensor with data. Without a handle, the library allocates and frees.
class tensor : public tensor_handle {
 public:
  using tensor_handle::handle;

  tensor() = default;
  tensor(const logical_tensor& lt, const engine& aengine, void* memory) {
    dnnl_graph_tensor_t made = nullptr;
    error::wrap_c_api(dnnl_graph_tensor_create(&made, &lt.data, aengine.get(), memory),
                      "could not create a tensor");
    reset(made);
  }
  tensor(const logical_tensor& lt, const engine& aengine)
      : tensor(lt, aengine, DNNL_MEMORY_ALLOCATE) {}

  static tensor make_scalar_tensor(const logical_tensor& lt, void* scalar) {
    dnnl_graph_tensor_t made = nullptr;
    error::wrap_c_api(dnnl_graph_tensor_create_scalar(&made, &lt.data, scalar),
                      "could not create a scalar tensor");
    return tensor(made);
  }

  void* get_data_handle() const {
    void* memory = nullptr;
    error::wrap_c_api(dnnl_graph_tensor_get_data_handle(get(), &memory),
                      "could not get the data handle of a tensor");
    return memory;
  }
  void set_data_handle(void* memory) {
    error::wrap_c_api(dnnl_graph_tensor_set_data_handle(get(), memory),
                      "could not set the data handle of a tensor");
  }
  engine get_engine() const {
    dnnl_engine_t own = nullptr;
    error::wrap_c_api(dnnl_graph_tensor_get_engine(get(), &own),
                      "could not get the engine of a tensor");
    return engine(own, true);
  }
  logical_tensor get_logical_tensor() const {
    dnnl_graph_logical_tensor_t own;
    error::wrap_c_api(dnnl_graph_tensor_get_logical_tensor(get(), &own),
                      "could not get the logical_tensor of a tensor");
    return logical_tensor(own);
  }
};

}  // namespace graph
}  // namespace dnnl

#endif  // CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_TENSOR_HPP_
