/* The graph API in C: operations are added to a graph, the graph gives partitions, a partition is
 * compiled for concrete tensors, what was compiled is executed. Functions return a status and never
 * throw; an object may be destroyed as soon as the caller does not need it any more, in any order,
 * and null may be destroyed. C99.
 *
 * Objects may be used from several threads as long as none changes them; a compiled partition may
 * be executed by several threads at the same time. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_H_

#include "oneapi/dnnl/dnnl_common.h"
#include "oneapi/dnnl/dnnl_config.h"
#include "oneapi/dnnl/dnnl_graph_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocators. Unless both functions are given, memory comes from the C library. An engine keeps the
 * functions, not the allocator; to destroy a null allocator is an error. */
DNNL_API dnnl_status_t dnnl_graph_allocator_create(dnnl_graph_allocator_t* allocator,
                                                   dnnl_graph_host_allocate_f host_malloc,
                                                   dnnl_graph_host_deallocate_f host_free);
DNNL_API dnnl_status_t dnnl_graph_allocator_destroy(dnnl_graph_allocator_t allocator);
DNNL_API dnnl_status_t dnnl_graph_make_engine_with_allocator(dnnl_engine_t* engine,
                                                             dnnl_engine_kind_t kind, size_t index,
                                                             const_dnnl_graph_allocator_t alloc);

/* Logical tensors. init leaves extents unknown; init_with_dims makes dense strides where the layout
 * is strided and all extents are known. */
DNNL_API dnnl_status_t dnnl_graph_logical_tensor_init(dnnl_graph_logical_tensor_t* logical_tensor,
                                                      size_t tid, dnnl_data_type_t dtype,
                                                      int32_t ndims, dnnl_graph_layout_type_t ltype,
                                                      dnnl_graph_tensor_property_t ptype);
DNNL_API dnnl_status_t dnnl_graph_logical_tensor_init_with_dims(
    dnnl_graph_logical_tensor_t* logical_tensor, size_t tid, dnnl_data_type_t dtype, int32_t ndims,
    const dnnl_dims_t dims, dnnl_graph_layout_type_t ltype, dnnl_graph_tensor_property_t ptype);
DNNL_API dnnl_status_t dnnl_graph_logical_tensor_init_with_strides(
    dnnl_graph_logical_tensor_t* logical_tensor, size_t tid, dnnl_data_type_t dtype, int32_t ndims,
    const dnnl_dims_t dims, const dnnl_dims_t strides, dnnl_graph_tensor_property_t ptype);
/* Bytes: the largest product of an extent and its stride; (size_t)-1 where the layout does not say.
 */
DNNL_API dnnl_status_t dnnl_graph_logical_tensor_get_mem_size(
    const dnnl_graph_logical_tensor_t* logical_tensor, size_t* size);
DNNL_API dnnl_status_t dnnl_graph_logical_tensor_is_equal(const dnnl_graph_logical_tensor_t* lt1,
                                                          const dnnl_graph_logical_tensor_t* lt2,
                                                          uint8_t* is_equal);

/* Tensors: a logical tensor with data, which is the caller's; DNNL_MEMORY_ALLOCATE asks for memory
 * of the engine's allocator. A scalar's value is copied. */
DNNL_API dnnl_status_t dnnl_graph_tensor_create(dnnl_graph_tensor_t* tensor,
                                                const dnnl_graph_logical_tensor_t* logical_tensor,
                                                dnnl_engine_t engine, void* handle);
DNNL_API dnnl_status_t dnnl_graph_tensor_create_scalar(
    dnnl_graph_tensor_t* tensor, const dnnl_graph_logical_tensor_t* logical_tensor, void* handle);
DNNL_API dnnl_status_t dnnl_graph_tensor_destroy(dnnl_graph_tensor_t tensor);
DNNL_API dnnl_status_t dnnl_graph_tensor_get_data_handle(const_dnnl_graph_tensor_t tensor,
                                                         void** handle);
DNNL_API dnnl_status_t dnnl_graph_tensor_set_data_handle(dnnl_graph_tensor_t tensor, void* handle);
/* The caller does not own the engine; a scalar has none. */
DNNL_API dnnl_status_t dnnl_graph_tensor_get_engine(const_dnnl_graph_tensor_t tensor,
                                                    dnnl_engine_t* engine);
DNNL_API dnnl_status_t dnnl_graph_tensor_get_logical_tensor(
    const_dnnl_graph_tensor_t tensor, dnnl_graph_logical_tensor_t* logical_tensor);

/* Operations. Attributes are checked when the operation is added to a graph. A string runs to its
 * NUL; value_len counts for lists alone. */
DNNL_API dnnl_status_t dnnl_graph_op_create(dnnl_graph_op_t* op, size_t id,
                                            dnnl_graph_op_kind_t kind, const char* verbose_name);
DNNL_API dnnl_status_t dnnl_graph_op_destroy(dnnl_graph_op_t op);
DNNL_API dnnl_status_t dnnl_graph_op_add_input(dnnl_graph_op_t op,
                                               const dnnl_graph_logical_tensor_t* input);
DNNL_API dnnl_status_t dnnl_graph_op_add_output(dnnl_graph_op_t op,
                                                const dnnl_graph_logical_tensor_t* output);
DNNL_API dnnl_status_t dnnl_graph_op_set_attr_f32(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                                  const float* value, size_t value_len);
DNNL_API dnnl_status_t dnnl_graph_op_set_attr_bool(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                                   const uint8_t* value, size_t value_len);
DNNL_API dnnl_status_t dnnl_graph_op_set_attr_s64(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                                  const int64_t* value, size_t value_len);
DNNL_API dnnl_status_t dnnl_graph_op_set_attr_str(dnnl_graph_op_t op, dnnl_graph_op_attr_t name,
                                                  const char* value, size_t value_len);
DNNL_API dnnl_status_t dnnl_graph_op_get_id(const_dnnl_graph_op_t op, size_t* id);
DNNL_API dnnl_status_t dnnl_graph_op_get_kind(const_dnnl_graph_op_t op, dnnl_graph_op_kind_t* kind);

/* Partitions: of one operation each. The six of the convolution family are supported on the CPU. */
DNNL_API dnnl_status_t dnnl_graph_partition_create_with_op(dnnl_graph_partition_t* partition,
                                                           const_dnnl_graph_op_t op,
                                                           dnnl_engine_kind_t ekind);
DNNL_API dnnl_status_t dnnl_graph_partition_destroy(dnnl_graph_partition_t partition);
DNNL_API dnnl_status_t dnnl_graph_partition_get_op_num(const_dnnl_graph_partition_t partition,
                                                       size_t* num);
DNNL_API dnnl_status_t dnnl_graph_partition_get_ops(dnnl_graph_partition_t partition, size_t num,
                                                    size_t* ids);
DNNL_API dnnl_status_t dnnl_graph_partition_get_id(const_dnnl_graph_partition_t partition,
                                                   size_t* id);
/* Matches tensors to the operation's by their ids and ignores the others. Inputs are known; what is
 * unknown of an output is inferred. */
DNNL_API dnnl_status_t dnnl_graph_partition_compile(
    dnnl_graph_partition_t partition, dnnl_graph_compiled_partition_t compiled_partition,
    size_t in_num, const dnnl_graph_logical_tensor_t** inputs, size_t out_num,
    const dnnl_graph_logical_tensor_t** outputs, dnnl_engine_t engine);
DNNL_API dnnl_status_t
dnnl_graph_partition_get_input_ports_num(const_dnnl_graph_partition_t partition, size_t* num);
DNNL_API dnnl_status_t dnnl_graph_partition_get_input_ports(const_dnnl_graph_partition_t partition,
                                                            size_t num,
                                                            dnnl_graph_logical_tensor_t* inputs);
DNNL_API dnnl_status_t
dnnl_graph_partition_get_output_ports_num(const_dnnl_graph_partition_t partition, size_t* num);
DNNL_API dnnl_status_t dnnl_graph_partition_get_output_ports(const_dnnl_graph_partition_t partition,
                                                             size_t num,
                                                             dnnl_graph_logical_tensor_t* outputs);
DNNL_API dnnl_status_t dnnl_graph_partition_is_supported(const_dnnl_graph_partition_t partition,
                                                         uint8_t* is_supported);
DNNL_API dnnl_status_t dnnl_graph_partition_get_engine_kind(const_dnnl_graph_partition_t partition,
                                                            dnnl_engine_kind_t* kind);

/* Compiled partitions. Tensors are executed in the order of the lists that were compiled. */
DNNL_API dnnl_status_t dnnl_graph_compiled_partition_create(
    dnnl_graph_compiled_partition_t* compiled_partition, dnnl_graph_partition_t partition);
DNNL_API dnnl_status_t dnnl_graph_compiled_partition_execute(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_stream_t stream,
    size_t num_inputs, const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
    const_dnnl_graph_tensor_t* outputs);
/* `scratchpad` may be null: memory then comes from the allocator of the engine, for this call. */
DNNL_API dnnl_status_t dnnl_graph_compiled_partition_execute_v2(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_stream_t stream,
    size_t num_inputs, const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
    const_dnnl_graph_tensor_t* outputs, const_dnnl_graph_tensor_t scratchpad);
DNNL_API dnnl_status_t
dnnl_graph_compiled_partition_destroy(dnnl_graph_compiled_partition_t compiled_partition);
/* Complete. An id that was not compiled gives a tensor without type and rank, and of id SIZE_MAX.
 */
DNNL_API dnnl_status_t dnnl_graph_compiled_partition_query_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, size_t tid,
    dnnl_graph_logical_tensor_t* lt);
/* The pairs, of which there are none, live as long as the compiled partition. */
DNNL_API dnnl_status_t dnnl_graph_compiled_partition_get_inplace_ports(
    const_dnnl_graph_compiled_partition_t compiled_partition, size_t* num_inplace_pairs,
    const dnnl_graph_inplace_pair_t** inplace_pairs);
/* Bytes: u8, one axis, id SIZE_MAX. */
DNNL_API dnnl_status_t dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_graph_logical_tensor_t* lt);

/* Graphs. Operations are copied; one with an id that is there already is ignored. */
DNNL_API dnnl_status_t dnnl_graph_graph_create(dnnl_graph_graph_t* graph,
                                               dnnl_engine_kind_t engine_kind);
DNNL_API dnnl_status_t dnnl_graph_graph_create_with_fpmath_mode(dnnl_graph_graph_t* graph,
                                                                dnnl_engine_kind_t engine_kind,
                                                                dnnl_fpmath_mode_t mode);
DNNL_API dnnl_status_t dnnl_graph_graph_destroy(dnnl_graph_graph_t graph);
DNNL_API dnnl_status_t dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t graph,
                                                        dnnl_fpmath_mode_t mode, int apply_to_int);
DNNL_API dnnl_status_t dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t graph,
                                                        dnnl_fpmath_mode_t* mode,
                                                        int* apply_to_int);
DNNL_API dnnl_status_t dnnl_graph_add_op(dnnl_graph_graph_t graph, dnnl_graph_op_t op);
DNNL_API dnnl_status_t dnnl_graph_graph_finalize(dnnl_graph_graph_t graph);
DNNL_API dnnl_status_t dnnl_graph_graph_is_finalized(dnnl_graph_graph_t graph, uint8_t* finalized);
DNNL_API dnnl_status_t dnnl_graph_graph_filter(dnnl_graph_graph_t graph,
                                               dnnl_graph_partition_policy_t policy);
DNNL_API dnnl_status_t dnnl_graph_graph_get_partition_num(const_dnnl_graph_graph_t graph,
                                                          size_t* num);
/* In topological order. Each partition is the caller's to destroy. */
DNNL_API dnnl_status_t dnnl_graph_graph_get_partitions(dnnl_graph_graph_t graph, size_t num,
                                                       dnnl_graph_partition_t* partitions);

/* Settings of caches that convgrad does not have: kept as numbers. */
DNNL_API dnnl_status_t dnnl_graph_get_compiled_partition_cache_capacity(int* capacity);
DNNL_API dnnl_status_t dnnl_graph_set_compiled_partition_cache_capacity(int capacity);
DNNL_API dnnl_status_t dnnl_graph_set_constant_tensor_cache(int flag);
DNNL_API dnnl_status_t dnnl_graph_get_constant_tensor_cache(int* flag);
DNNL_API dnnl_status_t dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind,
                                                                     size_t size);
DNNL_API dnnl_status_t dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind,
                                                                     size_t* size);

/* Any of the modes together. `graph`: files of a graph when its partitions are made; `subgraph`:
 * one of each partition that is compiled. In the current directory, without a word where that
 * fails. */
DNNL_API dnnl_status_t dnnl_graph_set_dump_mode(dnnl_graph_dump_mode_t modes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_H_ */
