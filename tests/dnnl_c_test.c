/* The graph API from C99: the functions that the C++ tests do not reach, their errors, and one
 * convolution from the operation to the numbers. */
#include <stdio.h>
#include <string.h>

#include "convgrad_dnnl.h"
#include "dnnl.h"
#include "dnnl_debug.h"
#include "dnnl_graph.h"

static int failures = 0;

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) {                                       \
      printf("line %d: %s is false\n", __LINE__, #condition); \
      ++failures;                                             \
    }                                                         \
  } while (0)

#define EXPECT_STATUS(call, expected)                                                       \
  do {                                                                                      \
    const dnnl_status_t status_of_call = (call);                                            \
    if (status_of_call != (expected)) {                                                     \
      printf("line %d: %s gave %s: %s\n", __LINE__, #call, dnnl_status2str(status_of_call), \
             convgrad_dnnl_last_error());                                                   \
      ++failures;                                                                           \
    }                                                                                       \
  } while (0)

static dnnl_graph_logical_tensor_t Tensor(size_t id, int rank, const int64_t* dims) {
  dnnl_graph_logical_tensor_t lt;
  EXPECT_STATUS(dnnl_graph_logical_tensor_init_with_dims(&lt, id, dnnl_f32, rank, dims,
                                                         dnnl_graph_layout_type_strided,
                                                         dnnl_graph_tensor_property_variable),
                dnnl_success);
  return lt;
}

/* 1x1x3 with a window of two taps. */
static const int64_t kSrc[] = {1, 1, 3}, kWeights[] = {1, 1, 2}, kOne[] = {1}, kZero[] = {0};

static dnnl_graph_op_t Convolution(void) {
  dnnl_graph_op_t op = NULL;
  dnnl_graph_logical_tensor_t src = Tensor(1, 3, kSrc), weights = Tensor(2, 3, kWeights), dst;
  EXPECT_STATUS(
      dnnl_graph_logical_tensor_init(&dst, 3, dnnl_f32, DNNL_GRAPH_UNKNOWN_NDIMS,
                                     dnnl_graph_layout_type_any, dnnl_graph_tensor_property_undef),
      dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_create(&op, 10, dnnl_graph_op_convolution, "conv"), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_add_input(op, &src), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_add_input(op, &weights), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_add_output(op, &dst), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_strides, kOne, 1), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_dilations, kOne, 1),
                dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_pads_begin, kZero, 1),
                dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_pads_end, kZero, 1),
                dnnl_success);
  /* The length of a number is not looked at, that of a string only has to be more than 0. */
  EXPECT_STATUS(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_groups, kOne, 99), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_set_attr_str(op, dnnl_graph_op_attr_data_format, "NCX", 1),
                dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_set_attr_str(op, dnnl_graph_op_attr_weights_format, "OIX", 1),
                dnnl_success);
  return op;
}

static dnnl_graph_partition_t Partition(void) {
  dnnl_graph_graph_t graph = NULL;
  dnnl_graph_partition_t partition = NULL, two[2];
  dnnl_graph_op_t op = Convolution();
  uint8_t flag = 7;
  size_t num = 7;
  EXPECT_STATUS(dnnl_graph_graph_create(NULL, dnnl_cpu), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_create(&graph, dnnl_cpu), dnnl_success);
  EXPECT_STATUS(dnnl_graph_add_op(graph, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_add_op(NULL, op), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_add_op(graph, op), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_destroy(op), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_is_finalized(graph, &flag), dnnl_success);
  EXPECT(flag == 0);
  EXPECT_STATUS(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion),
                dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_filter(NULL, dnnl_graph_partition_policy_fusion),
                dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_finalize(NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_finalize(graph), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_is_finalized(graph, &flag), dnnl_success);
  EXPECT(flag == 1);
  EXPECT_STATUS(dnnl_graph_graph_is_finalized(graph, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_get_partition_num(graph, &num), dnnl_success);
  EXPECT(num == 0); /* not before they are made */
  EXPECT_STATUS(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_debug), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_get_partition_num(graph, &num), dnnl_success);
  EXPECT(num == 1);
  EXPECT_STATUS(dnnl_graph_graph_get_partition_num(NULL, &num), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(graph, 0, &partition), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(graph, 2, two), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(graph, 1, NULL), dnnl_invalid_graph);
  EXPECT_STATUS(dnnl_graph_graph_get_partitions(graph, 1, &partition), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_set_fpmath_mode(NULL, dnnl_fpmath_mode_any, 0),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_get_fpmath_mode(NULL, NULL, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_graph_destroy(graph), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_destroy(NULL), dnnl_success);
  EXPECT_STATUS(dnnl_graph_graph_create_with_fpmath_mode(NULL, dnnl_cpu, dnnl_fpmath_mode_any),
                dnnl_invalid_arguments);
  return partition;
}

static void TestPartition(dnnl_graph_partition_t partition) {
  dnnl_graph_partition_t single = NULL;
  dnnl_graph_logical_tensor_t ports[2];
  dnnl_engine_kind_t kind = dnnl_any_engine;
  dnnl_graph_op_t op = Convolution();
  size_t num = 0, id = 0;
  uint8_t flag = 0;
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(NULL, op, dnnl_cpu), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(&single, NULL, dnnl_cpu),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_create_with_op(&single, op, dnnl_cpu), dnnl_success);
  EXPECT_STATUS(dnnl_graph_op_destroy(op), dnnl_success);
  EXPECT_STATUS(dnnl_graph_partition_get_op_num(single, &num), dnnl_success);
  EXPECT(num == 1);
  EXPECT_STATUS(dnnl_graph_partition_get_ops(single, 1, &id), dnnl_success);
  EXPECT(id == 10);
  EXPECT_STATUS(dnnl_graph_partition_get_ops(single, 2, &id), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_ops(single, 1, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_op_num(NULL, &num), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_id(single, &id), dnnl_success);
  EXPECT_STATUS(dnnl_graph_partition_get_id(partition, &num), dnnl_success);
  EXPECT(id != num);
  EXPECT_STATUS(dnnl_graph_partition_get_id(single, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports_num(single, &num), dnnl_success);
  EXPECT(num == 2);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports_num(NULL, &num), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports(single, 2, ports), dnnl_success);
  EXPECT(ports[0].id == 1 && ports[1].id == 2 && ports[1].dims[2] == 2);
  EXPECT(ports[0].property == dnnl_graph_tensor_property_variable);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports(single, 1, ports), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_input_ports(single, 2, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports_num(single, &num), dnnl_success);
  EXPECT(num == 1);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports_num(single, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports(single, 1, ports), dnnl_success);
  EXPECT(ports[0].id == 3 && ports[0].ndims == -1 && ports[0].dims[0] == DNNL_GRAPH_UNKNOWN_DIM);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports(single, 2, ports), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_is_supported(single, &flag), dnnl_success);
  EXPECT(flag == 1);
  EXPECT_STATUS(dnnl_graph_partition_is_supported(NULL, &flag), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_get_engine_kind(single, &kind), dnnl_success);
  EXPECT(kind == dnnl_cpu);
  EXPECT_STATUS(dnnl_graph_partition_get_engine_kind(single, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_destroy(single), dnnl_success);
  EXPECT_STATUS(dnnl_graph_partition_destroy(NULL), dnnl_success);
}

/* What a compiled partition answers before it is compiled: an error, never a crash. */
static void TestUncompiled(const_dnnl_graph_compiled_partition_t compiled, dnnl_stream_t stream,
                           const_dnnl_graph_tensor_t* tensors) {
  dnnl_graph_logical_tensor_t lt;
  const dnnl_graph_inplace_pair_t* pairs = NULL;
  size_t num = 0;
  EXPECT_STATUS(dnnl_graph_compiled_partition_execute(compiled, stream, 2, tensors, 1, tensors),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_query_logical_tensor(compiled, 3, &lt),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_inplace_ports(compiled, &num, &pairs),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(compiled, &lt),
                dnnl_invalid_arguments);
  EXPECT(strlen(convgrad_dnnl_last_error()) > 0);
}

static void TestExecution(dnnl_graph_partition_t partition) {
  float src[] = {1, 2, 3}, weights[] = {10, 1}, dst[] = {0, 0};
  dnnl_engine_t engine = NULL;
  dnnl_stream_t stream = NULL;
  dnnl_graph_compiled_partition_t compiled = NULL;
  dnnl_graph_logical_tensor_t src_lt = Tensor(1, 3, kSrc), weights_lt = Tensor(2, 3, kWeights);
  dnnl_graph_logical_tensor_t dst_lt, pad_lt;
  const dnnl_graph_logical_tensor_t* inputs[] = {&src_lt, &weights_lt};
  const dnnl_graph_logical_tensor_t* outputs[] = {&dst_lt};
  const dnnl_graph_logical_tensor_t* nothing[] = {NULL, NULL};
  const dnnl_graph_inplace_pair_t* pairs = NULL;
  dnnl_graph_tensor_t made[3];
  const_dnnl_graph_tensor_t in[2], out[1];
  size_t num = 9;

  EXPECT_STATUS(dnnl_engine_create(&engine, dnnl_cpu, 0), dnnl_success);
  EXPECT_STATUS(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), dnnl_success);
  EXPECT_STATUS(dnnl_graph_compiled_partition_create(NULL, partition), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_create(&compiled, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_create(&compiled, partition), dnnl_success);
  EXPECT_STATUS(dnnl_graph_partition_get_output_ports(partition, 1, &dst_lt), dnnl_success);
  EXPECT_STATUS(dnnl_graph_tensor_create(&made[0], &src_lt, engine, src), dnnl_success);
  EXPECT_STATUS(dnnl_graph_tensor_create(&made[1], &weights_lt, engine, weights), dnnl_success);
  in[0] = made[0];
  in[1] = made[1];
  TestUncompiled(compiled, stream, in);

  EXPECT_STATUS(dnnl_graph_partition_compile(partition, compiled, 2, NULL, 1, outputs, engine),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_compile(partition, compiled, 2, nothing, 1, outputs, engine),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_compile(partition, compiled, 2, inputs, 1, outputs, NULL),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_compile(partition, NULL, 2, inputs, 1, outputs, engine),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_partition_compile(partition, compiled, 2, inputs, 1, outputs, engine),
                dnnl_success);
  EXPECT_STATUS(dnnl_graph_partition_destroy(partition), dnnl_success);
  EXPECT_STATUS(dnnl_graph_compiled_partition_query_logical_tensor(compiled, 3, &dst_lt),
                dnnl_success);
  EXPECT(dst_lt.ndims == 3 && dst_lt.dims[2] == 2);
  EXPECT(dst_lt.layout_type == dnnl_graph_layout_type_strided && dst_lt.layout.strides[2] == 1);
  EXPECT_STATUS(dnnl_graph_compiled_partition_query_logical_tensor(compiled, 3, NULL),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_inplace_ports(compiled, &num, &pairs),
                dnnl_success);
  EXPECT(num == 0);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_inplace_ports(compiled, NULL, &pairs),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(compiled, &pad_lt),
                dnnl_success);
  EXPECT(pad_lt.data_type == dnnl_u8 && pad_lt.ndims == 1);

  EXPECT_STATUS(dnnl_graph_tensor_create(&made[2], &dst_lt, engine, dst), dnnl_success);
  out[0] = made[2];
  EXPECT_STATUS(dnnl_graph_compiled_partition_execute(compiled, NULL, 2, in, 1, out),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_execute(compiled, stream, 2, NULL, 1, out),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_compiled_partition_execute(compiled, stream, 2, in, 1, out),
                dnnl_success);
  EXPECT_STATUS(dnnl_stream_wait(stream), dnnl_success);
  EXPECT(dst[0] == 12 && dst[1] == 23);
  dst[0] = dst[1] = 0;
  EXPECT_STATUS(dnnl_graph_compiled_partition_execute_v2(compiled, stream, 2, in, 1, out, NULL),
                dnnl_success);
  EXPECT(dst[0] == 12 && dst[1] == 23);

  EXPECT_STATUS(dnnl_graph_compiled_partition_destroy(compiled), dnnl_success);
  EXPECT_STATUS(dnnl_graph_compiled_partition_destroy(NULL), dnnl_success);
  EXPECT_STATUS(dnnl_engine_destroy(engine), dnnl_success);
  EXPECT_STATUS(dnnl_stream_destroy(stream), dnnl_success);
  for (num = 0; num < 3; ++num) EXPECT_STATUS(dnnl_graph_tensor_destroy(made[num]), dnnl_success);
}

static void TestSettings(void) {
  int number = -1;
  size_t size = 7;
  EXPECT(dnnl_engine_get_count(dnnl_cpu) == 1);
  EXPECT(dnnl_engine_get_count(dnnl_gpu) == 0);
  EXPECT(dnnl_engine_get_count((dnnl_engine_kind_t)42) == 0);
  EXPECT_STATUS(dnnl_graph_set_compiled_partition_cache_capacity(-1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_set_compiled_partition_cache_capacity(3), dnnl_success);
  EXPECT_STATUS(dnnl_graph_get_compiled_partition_cache_capacity(&number), dnnl_success);
  EXPECT(number == 3);
  EXPECT_STATUS(dnnl_graph_set_constant_tensor_cache(-1), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_set_constant_tensor_cache(1), dnnl_success);
  EXPECT_STATUS(dnnl_graph_get_constant_tensor_cache(&number), dnnl_success);
  EXPECT(number == 1);
  EXPECT_STATUS(dnnl_graph_set_constant_tensor_cache_capacity((dnnl_engine_kind_t)42, 1),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, 5), dnnl_success);
  EXPECT_STATUS(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &size), dnnl_success);
  EXPECT(size == 5);
  EXPECT_STATUS(dnnl_graph_set_dump_mode(dnnl_graph_dump_mode_graph), dnnl_success);
  EXPECT_STATUS(dnnl_graph_set_dump_mode(dnnl_graph_dump_mode_none), dnnl_success);
  EXPECT_STATUS(dnnl_graph_set_dump_mode((dnnl_graph_dump_mode_t)8), dnnl_invalid_arguments);
}

static void TestScalar(void) {
  float value = 2;
  dnnl_graph_tensor_t tensor = NULL;
  dnnl_graph_logical_tensor_t lt;
  EXPECT_STATUS(dnnl_graph_logical_tensor_init(&lt, 0, dnnl_f32, 0, dnnl_graph_layout_type_strided,
                                               dnnl_graph_tensor_property_host_scalar),
                dnnl_success);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(NULL, &lt, &value), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&tensor, NULL, &value), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&tensor, &lt, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&tensor, &lt, DNNL_MEMORY_ALLOCATE),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&tensor, &lt, &value), dnnl_success);
  EXPECT_STATUS(dnnl_graph_tensor_destroy(tensor), dnnl_success);
  lt.data_type = dnnl_f16; /* no init function gives this */
  EXPECT_STATUS(dnnl_graph_tensor_create_scalar(&tensor, &lt, &value), dnnl_invalid_arguments);
}

/* What is no tensor is not equal to anything. */
static void TestEquality(void) {
  uint8_t equal = 1;
  dnnl_graph_logical_tensor_t one = Tensor(1, 3, kSrc), other = Tensor(2, 3, kSrc);
  EXPECT_STATUS(dnnl_graph_logical_tensor_is_equal(&one, &other, &equal), dnnl_success);
  EXPECT(equal == 0);
  EXPECT_STATUS(dnnl_graph_logical_tensor_is_equal(&one, &one, &equal), dnnl_success);
  EXPECT(equal == 1);
  one.ndims = other.ndims = 13;
  EXPECT_STATUS(dnnl_graph_logical_tensor_is_equal(&one, &other, &equal), dnnl_success);
  EXPECT(equal == 0);
}

/* As utilities of C clients read and write memory. */
static void TestMemory(void) {
  const dnnl_dims_t dims = {2, 3}, strides = {4, 1};
  float values[8] = {0};
  dnnl_memory_desc_t desc = NULL;
  const_dnnl_memory_desc_t asked = NULL;
  dnnl_memory_t memory = NULL;
  dnnl_engine_t engine = NULL, same = NULL;
  void *data = NULL, *mapped = NULL;
  EXPECT_STATUS(dnnl_engine_create(&engine, dnnl_cpu, 0), dnnl_success);
  EXPECT_STATUS(dnnl_memory_desc_create_with_strides(NULL, 2, dims, dnnl_f32, strides),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_memory_desc_create_with_strides(&desc, 13, dims, dnnl_f32, strides),
                dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_memory_desc_create_with_strides(&desc, 2, dims, dnnl_f32, NULL), dnnl_success);
  EXPECT(dnnl_memory_desc_get_size(desc) == 24);
  EXPECT_STATUS(dnnl_memory_desc_destroy(desc), dnnl_success);
  EXPECT_STATUS(dnnl_memory_desc_create_with_strides(&desc, 2, dims, dnnl_f32, strides),
                dnnl_success);
  EXPECT(dnnl_memory_desc_get_size(desc) == 32);
  EXPECT(dnnl_memory_desc_get_size(NULL) == 0);
  EXPECT_STATUS(dnnl_memory_create(&memory, desc, NULL, values), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_ALLOCATE), dnnl_success);
  EXPECT_STATUS(dnnl_memory_desc_destroy(desc), dnnl_success);
  EXPECT_STATUS(dnnl_memory_get_memory_desc(memory, &asked), dnnl_success);
  EXPECT(dnnl_memory_desc_get_size(asked) == 32);
  EXPECT_STATUS(dnnl_memory_get_engine(memory, &same), dnnl_success);
  EXPECT(same == engine);
  EXPECT_STATUS(dnnl_memory_get_data_handle(memory, &data), dnnl_success);
  EXPECT(data != NULL);
  memset(data, 1, 32);
  EXPECT_STATUS(dnnl_memory_map_data(memory, &mapped), dnnl_success);
  EXPECT(mapped == data);
  EXPECT_STATUS(dnnl_memory_unmap_data(memory, mapped), dnnl_success);
  EXPECT_STATUS(dnnl_memory_unmap_data(NULL, mapped), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_memory_set_data_handle(memory, values), dnnl_success);
  EXPECT_STATUS(dnnl_memory_get_data_handle(memory, &data), dnnl_success);
  EXPECT(data == values);
  EXPECT_STATUS(dnnl_memory_get_data_handle(memory, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_memory_get_engine(NULL, &same), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_memory_get_memory_desc(memory, NULL), dnnl_invalid_arguments);
  EXPECT_STATUS(dnnl_memory_destroy(memory), dnnl_success);
  EXPECT_STATUS(dnnl_engine_destroy(engine), dnnl_success);
}

int main(void) {
  dnnl_graph_partition_t partition = Partition();
  TestSettings();
  TestScalar();
  TestEquality();
  TestMemory();
  TestPartition(partition);
  TestExecution(partition);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
