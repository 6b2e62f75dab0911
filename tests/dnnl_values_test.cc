// The numbers of the binary interface: every enumerator in C and C++, the layout of structs, names.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "dnnl.h"
#include "dnnl.hpp"
#include "dnnl_config.h"
#include "dnnl_debug.h"
#include "dnnl_graph.h"
#include "dnnl_graph.hpp"
#include "dnnl_types.h"
#include "dnnl_version.h"
#include "oneapi/dnnl/dnnl_graph.hpp"

namespace {

using dnnl::engine;
using dnnl::fpmath_mode;
using dnnl::stream;
using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::partition;

template <class Enum>
constexpr int Number(Enum value) {
  return static_cast<int>(value);
}

#define SAME(cpp, c, number) static_assert(Number(cpp) == (number) && Number(c) == (number))
#define KIND(cpp, c, number) SAME(op::kind::cpp, dnnl_graph_op_##c, number)
#define ATTR(name, number) SAME(op::attr::name, dnnl_graph_op_attr_##name, number)

KIND(Abs, abs, 0);
KIND(AbsBackward, abs_backward, 1);
KIND(Add, add, 2);
KIND(AvgPool, avg_pool, 3);
KIND(AvgPoolBackward, avg_pool_backward, 4);
KIND(BatchNormTrainingBackward, batch_norm_backward, 5);
KIND(BatchNormForwardTraining, batch_norm_forward_training, 6);
KIND(BatchNormInference, batch_norm_inference, 7);
KIND(BiasAdd, bias_add, 8);
KIND(BiasAddBackward, bias_add_backward, 9);
KIND(Clamp, clamp, 10);
KIND(ClampBackward, clamp_backward, 11);
KIND(Concat, concat, 12);
KIND(Convolution, convolution, 13);
KIND(ConvolutionBackwardData, convolution_backward_data, 14);
KIND(ConvolutionBackwardWeights, convolution_backward_weights, 15);
KIND(ConvTranspose, conv_transpose, 16);
KIND(ConvTransposeBackwardData, conv_transpose_backward_data, 17);
KIND(ConvTransposeBackwardWeights, conv_transpose_backward_weights, 18);
KIND(Dequantize, dequantize, 19);
KIND(Divide, divide, 20);
KIND(DynamicDequantize, dynamic_dequantize, 21);
KIND(DynamicQuantize, dynamic_quantize, 22);
KIND(Elu, elu, 23);
KIND(EluBackward, elu_backward, 24);
KIND(End, end, 25);
KIND(Exp, exp, 26);
KIND(GELU, gelu, 27);
KIND(GELUBackward, gelu_backward, 28);
KIND(HardSwish, hard_swish, 29);
KIND(HardSwishBackward, hard_swish_backward, 30);
KIND(Interpolate, interpolate, 31);
KIND(InterpolateBackward, interpolate_backward, 32);
KIND(LayerNorm, layer_norm, 33);
KIND(LayerNormBackward, layer_norm_backward, 34);
KIND(LeakyReLU, leaky_relu, 35);
KIND(Log, log, 36);
KIND(LogSoftmax, log_softmax, 37);
KIND(LogSoftmaxBackward, log_softmax_backward, 38);
KIND(MatMul, matmul, 39);
KIND(Maximum, maximum, 40);
KIND(MaxPool, max_pool, 41);
KIND(MaxPoolBackward, max_pool_backward, 42);
KIND(Minimum, minimum, 43);
KIND(Mish, mish, 44);
KIND(MishBackward, mish_backward, 45);
KIND(Multiply, multiply, 46);
KIND(PReLU, prelu, 47);
KIND(PReLUBackward, prelu_backward, 48);
KIND(Quantize, quantize, 49);
KIND(Reciprocal, reciprocal, 50);
KIND(ReduceL1, reduce_l1, 51);
KIND(ReduceL2, reduce_l2, 52);
KIND(ReduceMax, reduce_max, 53);
KIND(ReduceMean, reduce_mean, 54);
KIND(ReduceMin, reduce_min, 55);
KIND(ReduceProd, reduce_prod, 56);
KIND(ReduceSum, reduce_sum, 57);
KIND(ReLU, relu, 58);
KIND(ReLUBackward, relu_backward, 59);
KIND(Reorder, reorder, 60);
KIND(Round, round, 61);
KIND(Sigmoid, sigmoid, 62);
KIND(SigmoidBackward, sigmoid_backward, 63);
KIND(SoftMax, softmax, 64);
KIND(SoftMaxBackward, softmax_backward, 65);
KIND(SoftPlus, softplus, 66);
KIND(SoftPlusBackward, softplus_backward, 67);
KIND(Sqrt, sqrt, 68);
KIND(SqrtBackward, sqrt_backward, 69);
KIND(Square, square, 70);
KIND(SquaredDifference, squared_difference, 71);
KIND(StaticReshape, static_reshape, 72);
KIND(StaticTranspose, static_transpose, 73);
KIND(Subtract, subtract, 74);
KIND(Tanh, tanh, 75);
KIND(TanhBackward, tanh_backward, 76);
KIND(TypeCast, type_cast, 77);
KIND(Wildcard, wildcard, 78);
KIND(HardSigmoid, hard_sigmoid, 79);
KIND(HardSigmoidBackward, hard_sigmoid_backward, 80);
KIND(Select, select, 81);
KIND(Pow, pow, 82);
KIND(GroupNorm, group_norm, 83);
KIND(GenIndex, gen_index, 84);
KIND(GreaterEqual, greater_equal, 85);
KIND(RMSNorm, rms_norm, 86);
KIND(Dropout, dropout, 87);
KIND(LastSymbol, last_symbol, 88);

ATTR(undef, 0x0);
ATTR(alpha, 0x1);
ATTR(beta, 0x2);
ATTR(epsilon, 0x3);
ATTR(max, 0x4);
ATTR(min, 0x5);
ATTR(momentum, 0x6);
ATTR(scales, 0x20);
ATTR(axis, 0x30);
ATTR(begin_norm_axis, 0x31);
ATTR(groups, 0x32);
ATTR(axes, 0x40);
ATTR(dilations, 0x41);
ATTR(dst_shape, 0x42);
ATTR(kernel, 0x43);
ATTR(order, 0x44);
ATTR(output_padding, 0x45);
ATTR(pads_begin, 0x46);
ATTR(pads_end, 0x47);
ATTR(shape, 0x48);
ATTR(sizes, 0x49);
ATTR(src_shape, 0x4a);
ATTR(strides, 0x4b);
ATTR(weights_shape, 0x4c);
ATTR(zps, 0x4d);
ATTR(group_shape, 0x4e);
ATTR(exclude_pad, 0x60);
ATTR(keep_dims, 0x61);
ATTR(keep_stats, 0x62);
ATTR(per_channel_broadcast, 0x63);
ATTR(special_zero, 0x64);
ATTR(transpose_a, 0x65);
ATTR(transpose_b, 0x66);
ATTR(use_affine, 0x67);
ATTR(use_dst, 0x68);
ATTR(auto_broadcast, 0x80);
ATTR(auto_pad, 0x81);
ATTR(coordinate_transformation_mode, 0x82);
ATTR(data_format, 0x83);
ATTR(mode, 0x84);
ATTR(qtype, 0x85);
ATTR(rounding_type, 0x86);
ATTR(weights_format, 0x87);
ATTR(accumulation_mode, 0x88);
ATTR(end, 0xff);

SAME(dnnl::graph::status::success, dnnl_success, 0);
SAME(dnnl::graph::status::out_of_memory, dnnl_out_of_memory, 1);
SAME(dnnl::graph::status::invalid_arguments, dnnl_invalid_arguments, 2);
SAME(dnnl::graph::status::unimplemented, dnnl_unimplemented, 3);
SAME(dnnl::graph::status::last_impl_reached, dnnl_last_impl_reached, 4);
SAME(dnnl::graph::status::runtime_error, dnnl_runtime_error, 5);
SAME(dnnl::graph::status::not_required, dnnl_not_required, 6);
SAME(dnnl::graph::status::invalid_graph, dnnl_invalid_graph, 7);
SAME(dnnl::graph::status::invalid_graph_op, dnnl_invalid_graph_op, 8);
SAME(dnnl::graph::status::invalid_shape, dnnl_invalid_shape, 9);
SAME(dnnl::graph::status::invalid_data_type, dnnl_invalid_data_type, 10);

SAME(logical_tensor::data_type::undef, dnnl_data_type_undef, 0);
SAME(logical_tensor::data_type::f16, dnnl_f16, 1);
SAME(logical_tensor::data_type::bf16, dnnl_bf16, 2);
SAME(logical_tensor::data_type::f32, dnnl_f32, 3);
SAME(logical_tensor::data_type::s32, dnnl_s32, 4);
SAME(logical_tensor::data_type::s8, dnnl_s8, 5);
SAME(logical_tensor::data_type::u8, dnnl_u8, 6);
SAME(logical_tensor::data_type::boolean, dnnl_boolean, 8);
SAME(logical_tensor::data_type::f8_e5m2, dnnl_f8_e5m2, 9);
SAME(logical_tensor::data_type::f8_e4m3, dnnl_f8_e4m3, 10);
SAME(logical_tensor::data_type::s4, dnnl_s4, 11);
SAME(logical_tensor::data_type::u4, dnnl_u4, 12);
SAME(logical_tensor::data_type::s64, dnnl_s64, 16);
static_assert(dnnl_f64 == 7 && dnnl_e8m0 == 13 && dnnl_f4_e2m1 == 14 && dnnl_f4_e3m0 == 15);

SAME(logical_tensor::layout_type::undef, dnnl_graph_layout_type_undef, 0);
SAME(logical_tensor::layout_type::any, dnnl_graph_layout_type_any, 1);
SAME(logical_tensor::layout_type::strided, dnnl_graph_layout_type_strided, 2);
SAME(logical_tensor::layout_type::opaque, dnnl_graph_layout_type_opaque, 3);

SAME(logical_tensor::property_type::undef, dnnl_graph_tensor_property_undef, 0);
SAME(logical_tensor::property_type::variable, dnnl_graph_tensor_property_variable, 1);
SAME(logical_tensor::property_type::constant, dnnl_graph_tensor_property_constant, 2);
SAME(logical_tensor::property_type::host_scalar, dnnl_graph_tensor_property_host_scalar, 3);

SAME(fpmath_mode::strict, dnnl_fpmath_mode_strict, 0);
SAME(fpmath_mode::bf16, dnnl_fpmath_mode_bf16, 1);
SAME(fpmath_mode::f16, dnnl_fpmath_mode_f16, 2);
SAME(fpmath_mode::any, dnnl_fpmath_mode_any, 3);
SAME(fpmath_mode::tf32, dnnl_fpmath_mode_tf32, 4);

SAME(engine::kind::any, dnnl_any_engine, 0);
SAME(engine::kind::cpu, dnnl_cpu, 1);
SAME(engine::kind::gpu, dnnl_gpu, 2);
SAME(stream::flags::in_order, dnnl_stream_in_order, 1);
SAME(stream::flags::out_of_order, dnnl_stream_out_of_order, 2);
SAME(stream::flags::default_flags, dnnl_stream_default_flags, 1);
SAME(partition::policy::fusion, dnnl_graph_partition_policy_fusion, 1);
SAME(partition::policy::debug, dnnl_graph_partition_policy_debug, 2);
SAME(dnnl::graph::graph_dump_mode::none, dnnl_graph_dump_mode_none, 0);
SAME(dnnl::graph::graph_dump_mode::subgraph, dnnl_graph_dump_mode_subgraph, 1);
SAME(dnnl::graph::graph_dump_mode::graph, dnnl_graph_dump_mode_graph, 2);
SAME(dnnl::cpu_isa::isa_default, dnnl_cpu_isa_default, 0);
SAME(dnnl::cpu_isa::sse41, dnnl_cpu_isa_sse41, 0x1);
SAME(dnnl::cpu_isa::avx, dnnl_cpu_isa_avx, 0x3);
SAME(dnnl::cpu_isa::avx2, dnnl_cpu_isa_avx2, 0x7);
SAME(dnnl::cpu_isa::avx2_vnni, dnnl_cpu_isa_avx2_vnni, 0xf);
SAME(dnnl::cpu_isa::avx2_vnni_2, dnnl_cpu_isa_avx2_vnni_2, 0x1f);
SAME(dnnl::cpu_isa::avx512_core, dnnl_cpu_isa_avx512_core, 0x27);
SAME(dnnl::cpu_isa::avx512_core_vnni, dnnl_cpu_isa_avx512_core_vnni, 0x67);
SAME(dnnl::cpu_isa::avx512_core_bf16, dnnl_cpu_isa_avx512_core_bf16, 0xe7);
SAME(dnnl::cpu_isa::avx512_core_fp16, dnnl_cpu_isa_avx512_core_fp16, 0x1ef);
SAME(dnnl::cpu_isa::avx512_core_amx, dnnl_cpu_isa_avx512_core_amx, 0xfef);
SAME(dnnl::cpu_isa::avx512_core_amx_fp16, dnnl_cpu_isa_avx512_core_amx_fp16, 0x1fef);
SAME(dnnl::cpu_isa::avx10_1_512, dnnl_cpu_isa_avx10_1_512, 0x1ef);
SAME(dnnl::cpu_isa::avx10_1_512_amx, dnnl_cpu_isa_avx10_1_512_amx, 0xfef);
SAME(dnnl::cpu_isa::avx10_1_512_amx_fp16, dnnl_cpu_isa_avx10_1_512_amx_fp16, 0x1fef);
SAME(dnnl::cpu_isa::avx10_2, dnnl_cpu_isa_avx10_2, 0x201ff);
SAME(dnnl::cpu_isa::avx10_2_512, dnnl_cpu_isa_avx10_2_512, 0x201ff);
SAME(dnnl::cpu_isa::avx10_2_amx_2, dnnl_cpu_isa_avx10_2_amx_2, 0x22fff);
SAME(dnnl::cpu_isa::avx10_2_512_amx_2, dnnl_cpu_isa_avx10_2_512_amx_2, 0x22fff);
SAME(dnnl::cpu_isa::avx10_2_ace, dnnl_cpu_isa_avx10_2_ace, 0xa03ff);
SAME(dnnl::cpu_isa_hints::no_hints, dnnl_cpu_isa_no_hints, 0);
SAME(dnnl::cpu_isa_hints::prefer_ymm, dnnl_cpu_isa_prefer_ymm, 1);

static_assert(Number(dnnl::memory::format_tag::undef) == 0);
static_assert(Number(dnnl::memory::format_tag::any) == 1);
static_assert(Number(dnnl::memory::format_tag::a) == 2);
static_assert(Number(dnnl::memory::format_tag::ab) == 3);
static_assert(Number(dnnl::memory::format_tag::abc) == 4);
static_assert(Number(dnnl::memory::format_tag::abcd) == 5);
static_assert(Number(dnnl::memory::format_tag::abcde) == 6);
static_assert(Number(dnnl::memory::format_tag::abcdef) == 7);
static_assert(Number(dnnl::memory::format_tag::ba) == 14);
static_assert(Number(dnnl::memory::format_tag::acb) == 15);
static_assert(Number(dnnl::memory::format_tag::abdc) == 20);
static_assert(Number(dnnl::memory::format_tag::acdb) == 22);
static_assert(Number(dnnl::memory::format_tag::acdeb) == 33);

static_assert(DNNL_MAX_NDIMS == 12 && DNNL_GRAPH_UNKNOWN_NDIMS == -1);
static_assert(DNNL_GRAPH_UNKNOWN_DIM == INT64_MIN);
static_assert(DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP && DNNL_GPU_RUNTIME == DNNL_RUNTIME_NONE);

// On a 64-bit machine.
using Tensor = dnnl_graph_logical_tensor_t;
static_assert(offsetof(Tensor, id) == 0 && offsetof(Tensor, ndims) == 8);
static_assert(offsetof(Tensor, dims) == 16 && offsetof(Tensor, data_type) == 112);
static_assert(offsetof(Tensor, property) == 116 && offsetof(Tensor, layout_type) == 120);
static_assert(offsetof(Tensor, layout) == 128 && sizeof(Tensor) == 224);
static_assert(sizeof(dnnl_graph_inplace_pair_t) == 16 && sizeof(dnnl_dims_t) == 96);
static_assert(sizeof(dnnl_version_t) == 32 && offsetof(dnnl_version_t, hash) == 16);
static_assert(sizeof(logical_tensor) == sizeof(Tensor));
static_assert(std::is_trivially_copyable_v<logical_tensor>);
static_assert(std::is_same_v<logical_tensor::dim, int64_t>);
static_assert(std::is_same_v<oneapi::dnnl::engine, dnnl::graph::engine>);

// The value of an attribute is exactly of one of six types.
template <class T>
concept Settable = requires(op& o, const T& value) {
  o.set_attr<T>(op::attr::mode, value);
};
static_assert(Settable<int64_t> && Settable<float> && Settable<bool> && Settable<std::string>);
static_assert(Settable<std::vector<int64_t>> && Settable<std::vector<float>>);
static_assert(!Settable<int> && !Settable<double> && !Settable<const char*>);

TEST(DnnlValues, AllocateIsAllOnes) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(DNNL_MEMORY_ALLOCATE), UINTPTR_MAX);
  const void* none = DNNL_MEMORY_NONE;
  EXPECT_EQ(none, nullptr);
}

TEST(DnnlValues, Version) {
  const dnnl_version_t* version = dnnl_version();
  EXPECT_EQ(version->major, DNNL_VERSION_MAJOR);
  EXPECT_EQ(version->minor, DNNL_VERSION_MINOR);
  EXPECT_EQ(version->patch, DNNL_VERSION_PATCH);
  EXPECT_EQ(version->major, 3);
  EXPECT_EQ(std::string(version->hash).substr(0, 8), "convgrad");
  EXPECT_EQ(version->cpu_runtime, DNNL_RUNTIME_OMP);
  EXPECT_EQ(version->gpu_runtime, DNNL_RUNTIME_NONE);
}

TEST(DnnlValues, Names) {
  EXPECT_STREQ(dnnl_status2str(dnnl_invalid_graph_op), "invalid_graph_op");
  EXPECT_STREQ(dnnl_status2str(static_cast<dnnl_status_t>(15)), "unknown");
  EXPECT_STREQ(dnnl_dt2str(dnnl_bf16), "bf16");
  EXPECT_STREQ(dnnl_dt2str(dnnl_data_type_undef), "undef");
  EXPECT_STREQ(dnnl_engine_kind2str(dnnl_cpu), "cpu");
  EXPECT_STREQ(dnnl_fpmath_mode2str(dnnl_fpmath_mode_tf32), "tf32");
  EXPECT_STREQ(dnnl_accumulation_mode2str(dnnl_accumulation_mode_relaxed), "relaxed");
  EXPECT_STREQ(dnnl_runtime2str(DNNL_CPU_RUNTIME), "OpenMP");
}

TEST(DnnlValues, FlagsAreASet) {
  stream::flags flags = stream::flags::in_order | stream::flags::out_of_order;
  EXPECT_EQ(Number(flags), 3);
  flags &= ~stream::flags::in_order;
  EXPECT_EQ(flags, stream::flags::out_of_order);
  flags ^= stream::flags::in_order;
  flags |= stream::flags::in_order;
  EXPECT_EQ(Number(flags & stream::flags::in_order), 1);
  EXPECT_EQ(Number(flags ^ flags), 0);
}

}  // namespace
