/* The gradient of weights of a grouped, dilated ConvTranspose through oneDNN Graph's C functions,
 * from an operation to numbers, and the same numbers from three loops. Exit status 0: equal.
 *
 *   gcc conv_transpose_gradient.c $(pkg-config --cflags --libs convgrad_dnnl) -o gradient */
#include <stdio.h>
#include <stdlib.h>

#include "oneapi/dnnl/dnnl_graph.h"

enum { kGroups = 2, kIn = 2, kOut = 3, kSrc = 5, kTaps = 3, kStride = 2, kDilation = 2 };
enum { kDst = (kSrc - 1) * kStride + (kTaps - 1) * kDilation + 1 };
enum { kSrcId = 0, kDiffDstId = 1, kDiffWeightsId = 2 };

static void Check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  fprintf(stderr, "%s gave status %d\n", what, (int)status);
  exit(1);
}
#define CHECK(call) Check(call, #call)

static dnnl_graph_logical_tensor_t Tensor(size_t id, int64_t n, int64_t c, int64_t x) {
  dnnl_graph_logical_tensor_t lt;
  const dnnl_dims_t dims = {n, c, x};
  CHECK(dnnl_graph_logical_tensor_init_with_dims(&lt, id, dnnl_f32, 3, dims,
                                                 dnnl_graph_layout_type_strided,
                                                 dnnl_graph_tensor_property_variable));
  return lt;
}

static dnnl_graph_op_t Gradient(const dnnl_graph_logical_tensor_t* src,
                                const dnnl_graph_logical_tensor_t* diff_dst,
                                const dnnl_graph_logical_tensor_t* diff_weights) {
  const int64_t stride = kStride, dilation = kDilation, none = 0, groups = kGroups;
  dnnl_graph_op_t op;
  CHECK(dnnl_graph_op_create(&op, 0, dnnl_graph_op_conv_transpose_backward_weights, "gradient"));
  CHECK(dnnl_graph_op_add_input(op, src));
  CHECK(dnnl_graph_op_add_input(op, diff_dst));
  CHECK(dnnl_graph_op_add_output(op, diff_weights));
  CHECK(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_strides, &stride, 1));
  CHECK(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_dilations, &dilation, 1));
  CHECK(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_pads_begin, &none, 1));
  CHECK(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_pads_end, &none, 1));
  CHECK(dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_groups, &groups, 1));
  CHECK(dnnl_graph_op_set_attr_str(op, dnnl_graph_op_attr_data_format, "NCX", 3));
  CHECK(dnnl_graph_op_set_attr_str(op, dnnl_graph_op_attr_weights_format, "IOX", 3));
  return op;
}

/* diff_weights[g, i, o, k] = sum over x of src[g, i, x] * diff_dst[g, o, x * stride + k * dilation]
 */
static int CountDifferences(const float* src, const float* diff_dst, const float* diff_weights) {
  int row, o, k, x, differences = 0;
  for (row = 0; row < kGroups * kIn; ++row) {
    for (o = 0; o < kOut; ++o) {
      for (k = 0; k < kTaps; ++k) {
        const float* dst = diff_dst + (row / kIn * kOut + o) * kDst + k * kDilation;
        float sum = 0;
        for (x = 0; x < kSrc; ++x) sum += src[row * kSrc + x] * dst[x * kStride];
        differences += sum != diff_weights[(row * kOut + o) * kTaps + k];
      }
    }
  }
  return differences;
}

int main(void) {
  float src[kGroups * kIn * kSrc], diff_dst[kGroups * kOut * kDst];
  float diff_weights[kGroups * kIn * kOut * kTaps];
  const dnnl_graph_logical_tensor_t src_lt = Tensor(kSrcId, 1, kGroups * kIn, kSrc);
  const dnnl_graph_logical_tensor_t diff_dst_lt = Tensor(kDiffDstId, 1, kGroups * kOut, kDst);
  const dnnl_graph_logical_tensor_t weights_lt = Tensor(kDiffWeightsId, kGroups * kIn, kOut, kTaps);
  const dnnl_graph_logical_tensor_t* inputs[] = {&src_lt, &diff_dst_lt};
  const dnnl_graph_logical_tensor_t* outputs[] = {&weights_lt};
  const_dnnl_graph_tensor_t in[2], out[1];
  dnnl_graph_op_t op = Gradient(&src_lt, &diff_dst_lt, &weights_lt);
  dnnl_graph_tensor_t tensors[3];
  dnnl_graph_partition_t partition;
  dnnl_graph_compiled_partition_t compiled;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  int i, differences;
  for (i = 0; i < kGroups * kIn * kSrc; ++i) src[i] = (float)(i % 7 - 3);
  for (i = 0; i < kGroups * kOut * kDst; ++i) diff_dst[i] = (float)(i % 5 - 2);

  CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
  CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
  CHECK(dnnl_graph_partition_create_with_op(&partition, op, dnnl_cpu));
  CHECK(dnnl_graph_op_destroy(op));
  CHECK(dnnl_graph_compiled_partition_create(&compiled, partition));
  CHECK(dnnl_graph_partition_compile(partition, compiled, 2, inputs, 1, outputs, engine));
  CHECK(dnnl_graph_partition_destroy(partition));

  CHECK(dnnl_graph_tensor_create(&tensors[0], &src_lt, engine, src));
  CHECK(dnnl_graph_tensor_create(&tensors[1], &diff_dst_lt, engine, diff_dst));
  CHECK(dnnl_graph_tensor_create(&tensors[2], &weights_lt, engine, diff_weights));
  in[0] = tensors[0];
  in[1] = tensors[1];
  out[0] = tensors[2];
  CHECK(dnnl_graph_compiled_partition_execute(compiled, stream, 2, in, 1, out));
  CHECK(dnnl_stream_wait(stream));

  for (i = 0; i < 3; ++i) CHECK(dnnl_graph_tensor_destroy(tensors[i]));
  CHECK(dnnl_graph_compiled_partition_destroy(compiled));
  CHECK(dnnl_stream_destroy(stream));
  CHECK(dnnl_engine_destroy(engine));
  differences = CountDifferences(src, diff_dst, diff_weights);
  printf("%d of %d gradients differ\n", differences, kGroups * kIn * kOut * kTaps);
  return differences == 0 ? 0 : 1;
}
