// Engines, streams, allocators, logical tensors, tensors and operations of the dnnl::graph API:
// every function with its errors, copies and moved-from objects.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "convgrad_dnnl.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "oneapi/dnnl/dnnl_graph.hpp"

namespace {

using dnnl::engine;
using dnnl::stream;
using dnnl::graph::allocator;
using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::tensor;
using Layout = logical_tensor::layout_type;
using Property = logical_tensor::property_type;
using Type = logical_tensor::data_type;
using Dims = logical_tensor::dims;

template <class Body>
dnnl_status_t StatusOf(Body&& body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    EXPECT_STREQ(error.what(), error.message);
    return error.status;
  }
  return dnnl_success;
}

TEST(DnnlEngine, ThereIsOneCpu) {
  EXPECT_EQ(engine::get_count(engine::kind::cpu), 1u);
  EXPECT_EQ(engine::get_count(engine::kind::gpu), 0u);
  EXPECT_EQ(engine::get_count(engine::kind::any), 0u);
  EXPECT_EQ(engine(engine::kind::cpu, 0).get_kind(), engine::kind::cpu);
  EXPECT_EQ(StatusOf([] { engine(engine::kind::cpu, 1); }), dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([] { engine(engine::kind::gpu, 0); }), dnnl_invalid_arguments);
  dnnl_engine_kind_t kind;
  EXPECT_EQ(dnnl_engine_create(nullptr, dnnl_cpu, 0), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_engine_get_kind(nullptr, &kind), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_engine_destroy(nullptr), dnnl_success);
}

TEST(DnnlEngine, HandlesAreShared) {
  engine first(engine::kind::cpu, 0);
  const engine copy = first;
  EXPECT_TRUE(first == copy);
  EXPECT_TRUE(first != engine(engine::kind::cpu, 0));
  engine moved = std::move(first);
  EXPECT_TRUE(moved == copy);
  EXPECT_FALSE(static_cast<bool>(first));  // NOLINT: a moved-from handle is empty
  EXPECT_EQ(first.get(true), nullptr);
  EXPECT_EQ(StatusOf([&] { first.get(); }), dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([&] { first.get_kind(); }), dnnl_invalid_arguments);
  first = moved;
  EXPECT_EQ(first.get_kind(), engine::kind::cpu);
  engine weak(moved.get(), true);
  weak.reset(copy.get(), true);
  EXPECT_TRUE(weak == copy);
}

TEST(DnnlStream, KeepsItsEngine) {
  auto made = std::make_unique<engine>(engine::kind::cpu, 0);
  stream s(*made, stream::flags::out_of_order);
  const dnnl_engine_t raw = made->get();
  made.reset();
  EXPECT_EQ(s.get_engine().get(), raw);
  EXPECT_EQ(s.get_engine().get_kind(), engine::kind::cpu);
  EXPECT_EQ(&s.wait(), &s);

  const engine e(engine::kind::cpu, 0);
  dnnl_stream_t handle = nullptr;
  dnnl_engine_t of = nullptr;
  EXPECT_EQ(dnnl_stream_create(nullptr, e.get(), 1), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_stream_create(&handle, nullptr, 1), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_stream_create(&handle, e.get(), 0x4), dnnl_unimplemented);  // profiling: of a GPU
  EXPECT_EQ(dnnl_stream_get_engine(nullptr, &of), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_stream_wait(nullptr), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_stream_destroy(nullptr), dnnl_success);
  EXPECT_EQ(StatusOf([] { stream{engine()}; }), dnnl_invalid_arguments);
}

int allocations = 0;
void* Allocate(size_t size, size_t alignment) {
  ++allocations;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void Free(void* pointer) {
  --allocations;
  std::free(pointer);
}

TEST(DnnlAllocator, ServesTensorsThatOutliveIt) {
  const logical_tensor lt(0, Type::f32, Dims{5, 3}, Layout::strided);
  tensor t;
  {
    const allocator a(Allocate, Free);
    const engine e = make_engine_with_allocator(engine::kind::cpu, 0, a);
    t = tensor(lt, e);
  }
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.get_data_handle()) % 64, 0u);
  EXPECT_EQ(t.get_engine().get_kind(), engine::kind::cpu);
  float other[15];
  t.set_data_handle(other);  // gives the library's memory back
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(t.get_data_handle(), other);

  dnnl_graph_allocator_t half = nullptr;  // one function is as good as none
  EXPECT_EQ(dnnl_graph_allocator_create(&half, Allocate, nullptr), dnnl_success);
  dnnl_engine_t e = nullptr;
  EXPECT_EQ(dnnl_graph_make_engine_with_allocator(&e, dnnl_cpu, 0, half), dnnl_success);
  EXPECT_EQ(dnnl_graph_allocator_destroy(half), dnnl_success);
  { const tensor default_memory(lt, engine(e)); }
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(dnnl_graph_allocator_create(nullptr, Allocate, Free), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_allocator_destroy(nullptr), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_make_engine_with_allocator(&e, dnnl_cpu, 0, nullptr),
            dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([] { make_engine_with_allocator(engine::kind::gpu, 0, allocator()); }),
            dnnl_invalid_arguments);
}

TEST(DnnlAllocator, ThatThrowsIsAStatusAndASentence) {
  const auto throws = [](size_t, size_t) -> void* { throw std::runtime_error("no luck today"); };
  const engine e = make_engine_with_allocator(engine::kind::cpu, 0, allocator(throws, Free));
  const logical_tensor lt(0, Type::f32, Dims{5, 3}, Layout::strided);
  EXPECT_EQ(StatusOf([&] { tensor(lt, e); }), dnnl_runtime_error);
  EXPECT_STREQ(convgrad_dnnl_last_error(), "no luck today");
}

TEST(DnnlLogicalTensor, UnknownShapes) {
  const logical_tensor nothing(3, Type::f32);
  EXPECT_EQ(nothing.get_id(), 3u);
  EXPECT_EQ(nothing.get_layout_type(), Layout::undef);
  EXPECT_EQ(nothing.get_property_type(), Property::undef);
  EXPECT_EQ(nothing.get_mem_size(), SIZE_MAX);
  EXPECT_EQ(StatusOf([&] { nothing.get_dims(); }), dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([&] { nothing.get_strides(); }), dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([&] { nothing.get_layout_id(); }), dnnl_invalid_arguments);
  const logical_tensor ranked(4, Type::f16, 2, Layout::strided, Property::constant);
  EXPECT_EQ(ranked.get_dims(), (Dims{INT64_MIN, INT64_MIN}));
  EXPECT_EQ(ranked.get_strides(), (Dims{INT64_MIN, INT64_MIN}));
  EXPECT_EQ(ranked.get_property_type(), Property::constant);
  EXPECT_EQ(ranked.get_mem_size(), SIZE_MAX);
  const logical_tensor partly(5, Type::f32, Dims{2, -1}, Layout::strided);
  EXPECT_EQ(partly.get_strides(), (Dims{INT64_MIN, INT64_MIN}));
  const logical_tensor strided_without_rank(6, Type::f32, Layout::strided);
  EXPECT_EQ(StatusOf([&] { strided_without_rank.get_strides(); }), dnnl_invalid_arguments);
}

TEST(DnnlLogicalTensor, SizesOfMemory) {
  EXPECT_EQ(logical_tensor(0, Type::f32, Dims{2, 3, 4}, Layout::strided).get_mem_size(), 96u);
  EXPECT_EQ(logical_tensor(0, Type::bf16, Dims{2, 3}, Dims{8, 1}).get_mem_size(), 32u);
  EXPECT_EQ(logical_tensor(0, Type::f32, Dims{1, 3}, Dims{100, 1}).get_mem_size(), 12u);
  EXPECT_EQ(logical_tensor(0, Type::f32, Dims{0, 3}, Layout::strided).get_mem_size(), 0u);
  EXPECT_EQ(logical_tensor(0, Type::s64, Dims{}, Layout::strided).get_mem_size(), 8u);
  EXPECT_EQ(logical_tensor(0, Type::s4, Dims{3}, Layout::strided).get_mem_size(), 2u);
  EXPECT_EQ(logical_tensor(0, Type::f32, Dims{2, 3}, Layout::any).get_mem_size(), SIZE_MAX);
  EXPECT_EQ(logical_tensor(0, Type::f32, Dims{2, 3}, size_t{7}).get_mem_size(), SIZE_MAX);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(logical_tensor(0, Type::f32, Dims{huge, huge, huge}, Layout::strided).get_mem_size(),
            SIZE_MAX);
}

TEST(DnnlLogicalTensor, LayoutsAndEquality) {
  const logical_tensor dense(1, Type::f32, Dims{2, 0, 4}, Layout::strided);
  EXPECT_EQ(dense.get_strides(), (Dims{4, 4, 1}));  // an extent of 0 counts as 1
  const logical_tensor opaque(1, Type::f32, Dims{2, 3}, size_t{42}, Property::variable);
  EXPECT_EQ(opaque.get_layout_id(), 42u);
  EXPECT_EQ(opaque.get_layout_type(), Layout::opaque);
  EXPECT_EQ(logical_tensor(1, Type::f32, Dims{}, size_t{42}).get_layout_id(), 42u);
  const logical_tensor a(1, Type::f32, Dims{2, 3}, Layout::strided);
  EXPECT_TRUE(a.is_equal(logical_tensor(1, Type::f32, Dims{2, 3}, Dims{3, 1})));
  EXPECT_FALSE(a.is_equal(logical_tensor(2, Type::f32, Dims{2, 3}, Layout::strided)));
  EXPECT_FALSE(a.is_equal(logical_tensor(1, Type::f16, Dims{2, 3}, Layout::strided)));
  EXPECT_FALSE(a.is_equal(logical_tensor(1, Type::f32, Dims{2, 3, 1}, Layout::strided)));
  EXPECT_FALSE(a.is_equal(logical_tensor(1, Type::f32, Dims{2, 4}, Layout::strided)));
  EXPECT_FALSE(a.is_equal(logical_tensor(1, Type::f32, Dims{2, 3}, Dims{4, 1})));
  EXPECT_FALSE(a.is_equal(logical_tensor(1, Type::f32, Dims{2, 3}, Layout::any)));
  EXPECT_FALSE(
      a.is_equal(logical_tensor(1, Type::f32, Dims{2, 3}, Layout::strided, Property::constant)));
  const logical_tensor copy = a;  // NOLINT: a copy on purpose
  EXPECT_TRUE(copy.is_equal(a));
}

TEST(DnnlLogicalTensor, Refusals) {
  dnnl_graph_logical_tensor_t lt;
  const dnnl_dims_t dims = {2, 3};
  const auto strided = dnnl_graph_layout_type_strided;
  const auto undef = dnnl_graph_tensor_property_undef;
  const auto scalar = dnnl_graph_tensor_property_host_scalar;
  const auto bad = dnnl_invalid_arguments;
  EXPECT_EQ(dnnl_graph_logical_tensor_init(nullptr, 0, dnnl_f32, 2, strided, undef), bad);
  EXPECT_EQ(dnnl_graph_logical_tensor_init(&lt, 0, dnnl_f32, 13, strided, undef), bad);
  EXPECT_EQ(dnnl_graph_logical_tensor_init(&lt, 0, dnnl_f32, 1, strided, scalar), bad);
  EXPECT_EQ(dnnl_graph_logical_tensor_init(&lt, 0, dnnl_f16, 0, strided, scalar), bad);
  EXPECT_EQ(dnnl_graph_logical_tensor_init(&lt, 0, dnnl_f32, 0, strided, scalar), dnnl_success);
  EXPECT_EQ(lt.dims[0], 0);
  EXPECT_EQ(dnnl_graph_logical_tensor_init(&lt, 0, dnnl_f32, -1, strided, undef), dnnl_success);
  EXPECT_EQ(lt.dims[11], INT64_MIN);
  const auto with_dims = dnnl_graph_logical_tensor_init_with_dims;
  EXPECT_EQ(with_dims(nullptr, 0, dnnl_f32, 2, dims, strided, undef), bad);
  EXPECT_EQ(with_dims(&lt, 0, dnnl_f32, 2, nullptr, strided, undef), bad);
  EXPECT_EQ(with_dims(&lt, 0, dnnl_f32, -1, dims, strided, undef), bad);
  EXPECT_EQ(with_dims(&lt, 0, dnnl_f32, 13, dims, strided, undef), bad);
  const auto with_strides = dnnl_graph_logical_tensor_init_with_strides;
  EXPECT_EQ(with_strides(nullptr, 0, dnnl_f32, 2, dims, dims, undef), bad);
  EXPECT_EQ(with_strides(&lt, 0, dnnl_f32, 2, nullptr, dims, undef), bad);
  EXPECT_EQ(with_strides(&lt, 0, dnnl_f32, 2, dims, nullptr, undef), bad);
  EXPECT_EQ(with_strides(&lt, 0, dnnl_f32, 13, dims, dims, undef), bad);
  size_t size = 0;
  uint8_t equal = 0;
  EXPECT_EQ(dnnl_graph_logical_tensor_get_mem_size(nullptr, &size), bad);
  EXPECT_EQ(dnnl_graph_logical_tensor_get_mem_size(&lt, nullptr), bad);
  EXPECT_EQ(dnnl_graph_logical_tensor_is_equal(nullptr, &lt, &equal), bad);
  EXPECT_EQ(dnnl_graph_logical_tensor_is_equal(&lt, &lt, nullptr), bad);
  EXPECT_EQ(StatusOf([] { logical_tensor(0, Type::f32, Dims{2, 3}, Dims{1}); }), bad);
  EXPECT_EQ(StatusOf([] { logical_tensor(0, Type::f32, Dims(13, 1), Layout::strided); }), bad);
  EXPECT_NE(std::string(convgrad_dnnl_last_error()), "");
}

TEST(DnnlTensor, ReferToMemory) {
  const engine e(engine::kind::cpu, 0);
  const logical_tensor lt(9, Type::f32, Dims{2, 2}, Layout::strided);
  float data[4] = {}, other[4] = {};
  tensor t(lt, e, data);
  const tensor copy = t;
  EXPECT_EQ(t.get_data_handle(), data);
  t.set_data_handle(other);
  EXPECT_EQ(copy.get_data_handle(), other) << "copies share one tensor";
  EXPECT_TRUE(t.get_engine() == e);
  EXPECT_TRUE(t.get_logical_tensor().is_equal(lt));
  const tensor moved = std::move(t);
  EXPECT_EQ(StatusOf([&] { t.get_data_handle(); }), dnnl_invalid_arguments);  // NOLINT: moved from
  EXPECT_EQ(moved.get_data_handle(), other);
  EXPECT_EQ(StatusOf([] { tensor().get_engine(); }), dnnl_invalid_arguments);

  const tensor empty(logical_tensor(0, Type::f32, Dims{0, 3}, Layout::strided), e);
  EXPECT_EQ(empty.get_data_handle(), nullptr);
  const tensor unknown(logical_tensor(0, Type::f32), e, nullptr);
  EXPECT_EQ(unknown.get_data_handle(), nullptr);
  EXPECT_EQ(StatusOf([&] { tensor(logical_tensor(0, Type::f32), e); }), dnnl_invalid_arguments);

  dnnl_graph_logical_tensor_t c_lt;
  dnnl_graph_tensor_t handle = nullptr;
  void* pointer = nullptr;
  dnnl_engine_t of = nullptr;
  dnnl_graph_logical_tensor_init(&c_lt, 0, dnnl_f32, 1, dnnl_graph_layout_type_any,
                                 dnnl_graph_tensor_property_undef);
  EXPECT_EQ(dnnl_graph_tensor_create(nullptr, &c_lt, e.get(), data), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_create(&handle, nullptr, e.get(), data), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_create(&handle, &c_lt, nullptr, data), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_get_data_handle(nullptr, &pointer), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_get_data_handle(moved.get(), nullptr), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_set_data_handle(nullptr, data), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_get_engine(nullptr, &of), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_get_logical_tensor(nullptr, &c_lt), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_tensor_destroy(nullptr), dnnl_success);
}

TEST(DnnlTensor, Scalars) {
  const engine e(engine::kind::cpu, 0);
  const logical_tensor lt(0, Type::s64, 0, Layout::strided, Property::host_scalar);
  int64_t value = 7;
  tensor t = tensor::make_scalar_tensor(lt, &value);
  EXPECT_EQ(t.get_data_handle(), nullptr);
  EXPECT_FALSE(static_cast<bool>(t.get_engine()));
  EXPECT_EQ(StatusOf([&] { t.set_data_handle(&value); }), dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([&] { tensor(lt, e, &value); }), dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([&] { tensor::make_scalar_tensor(lt, nullptr); }), dnnl_invalid_arguments);
  const logical_tensor plain(0, Type::s64, 0, Layout::strided);
  EXPECT_EQ(StatusOf([&] { tensor::make_scalar_tensor(plain, &value); }), dnnl_invalid_arguments);

  // A struct that no init function made: a type that is none of a scalar's, or axes.
  dnnl_graph_logical_tensor_t made{};
  made.property = dnnl_graph_tensor_property_host_scalar;
  made.layout_type = dnnl_graph_layout_type_strided;
  for (dnnl_data_type_t type : {dnnl_f16, dnnl_u8, dnnl_data_type_undef, dnnl_f64}) {
    made.data_type = type;
    dnnl_graph_tensor_t handle = nullptr;
    EXPECT_EQ(dnnl_graph_tensor_create_scalar(&handle, &made, &value), dnnl_invalid_arguments);
  }
  made.data_type = dnnl_s32;
  for (int rank : {-1, 1}) {
    made.ndims = rank;
    dnnl_graph_tensor_t handle = nullptr;
    EXPECT_EQ(dnnl_graph_tensor_create_scalar(&handle, &made, &value), dnnl_invalid_arguments);
  }
}

TEST(DnnlOp, IdentityAndAttributes) {
  op o(17, op::kind::ReLU, "relu");
  size_t id = 0;
  dnnl_graph_op_kind_t kind;
  EXPECT_EQ(dnnl_graph_op_get_id(o.get(), &id), dnnl_success);
  EXPECT_EQ(id, 17u);
  EXPECT_EQ(dnnl_graph_op_get_kind(o.get(), &kind), dnnl_success);
  EXPECT_EQ(kind, dnnl_graph_op_relu);
  op& chained = o.set_attr<float>(op::attr::alpha, 1.0f)
                    .set_attr<bool>(op::attr::use_dst, true)
                    .set_attr<int64_t>(op::attr::axis, 1)
                    .set_attr<std::string>(op::attr::mode, "x")
                    .set_attr<std::vector<float>>(op::attr::scales, {1.0f})
                    .set_attr<std::vector<int64_t>>(op::attr::axes, {1, 2});
  EXPECT_EQ(&chained, &o);
  EXPECT_EQ(StatusOf([&] { o.set_attr<std::string>(op::attr::mode, ""); }), dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([&] { o.set_attr<std::vector<int64_t>>(op::attr::axes, {}); }),
            dnnl_invalid_arguments);  // its data is a null pointer

  const auto bad = dnnl_invalid_arguments;
  dnnl_graph_op_t handle = nullptr;
  EXPECT_EQ(dnnl_graph_op_create(nullptr, 0, dnnl_graph_op_relu, ""), bad);
  EXPECT_EQ(dnnl_graph_op_create(&handle, 0, dnnl_graph_op_relu, nullptr), bad);
  EXPECT_EQ(dnnl_graph_op_create(&handle, 0, dnnl_graph_op_last_symbol, ""), bad);
  EXPECT_EQ(dnnl_graph_op_add_input(o.get(), nullptr), bad);
  EXPECT_EQ(dnnl_graph_op_add_output(nullptr, nullptr), bad);
  const float f = 1;
  const uint8_t b[2] = {1, 0};
  const int64_t i = 1;
  EXPECT_EQ(dnnl_graph_op_set_attr_f32(nullptr, dnnl_graph_op_attr_alpha, &f, 1), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_f32(o.get(), dnnl_graph_op_attr_alpha, nullptr, 1), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_bool(o.get(), dnnl_graph_op_attr_use_dst, nullptr, 1), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_bool(o.get(), dnnl_graph_op_attr_use_dst, b, 2), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_s64(nullptr, dnnl_graph_op_attr_axis, &i, 1), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_s64(o.get(), dnnl_graph_op_attr_axis, nullptr, 1), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_s64(o.get(), dnnl_graph_op_attr_axis, &i, 0), dnnl_success);
  const auto negative = static_cast<size_t>(-3);
  EXPECT_EQ(dnnl_graph_op_set_attr_s64(o.get(), dnnl_graph_op_attr_strides, &i, negative), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_f32(o.get(), dnnl_graph_op_attr_scales, &f, negative), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_str(o.get(), dnnl_graph_op_attr_auto_pad, "none", negative),
            bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_str(o.get(), dnnl_graph_op_attr_mode, nullptr, 1), bad);
  EXPECT_EQ(dnnl_graph_op_set_attr_str(o.get(), dnnl_graph_op_attr_mode, "x", 0), bad);
  EXPECT_EQ(dnnl_graph_op_get_id(nullptr, &id), bad);
  EXPECT_EQ(dnnl_graph_op_get_kind(o.get(), nullptr), bad);
  EXPECT_EQ(dnnl_graph_op_destroy(nullptr), dnnl_success);
}

TEST(DnnlSettings, AreKept) {
  using namespace dnnl::graph;  // NOLINT: free functions
  EXPECT_EQ(get_compiled_partition_cache_capacity(), 1024);
  set_compiled_partition_cache_capacity(5);
  EXPECT_EQ(get_compiled_partition_cache_capacity(), 5);
  EXPECT_EQ(StatusOf([] { set_compiled_partition_cache_capacity(-1); }), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_get_compiled_partition_cache_capacity(nullptr), dnnl_invalid_arguments);
  EXPECT_EQ(get_constant_tensor_cache(), 0);
  set_constant_tensor_cache(1);
  EXPECT_EQ(get_constant_tensor_cache(), 1);
  EXPECT_EQ(StatusOf([] { set_constant_tensor_cache(-1); }), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache(nullptr), dnnl_invalid_arguments);
  set_constant_tensor_cache_capacity(engine::kind::cpu, 64);
  EXPECT_EQ(get_constant_tensor_cache_capacity(engine::kind::cpu), 64u);
  set_constant_tensor_cache_capacity(engine::kind::cpu, SIZE_MAX);
  EXPECT_EQ(get_constant_tensor_cache_capacity(engine::kind::cpu), SIZE_MAX >> 20);
  EXPECT_EQ(StatusOf([] { get_constant_tensor_cache_capacity(engine::kind::any); }),
            dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, nullptr),
            dnnl_invalid_arguments);
  EXPECT_EQ(set_dump_mode(graph_dump_mode::graph | graph_dump_mode::subgraph), status::success);
  EXPECT_EQ(set_dump_mode(static_cast<graph_dump_mode>(4)), status::invalid_arguments);
  EXPECT_EQ(set_dump_mode(graph_dump_mode::none), status::success);

  dnnl_fpmath_mode_t mode;
  EXPECT_EQ(dnnl_get_default_fpmath_mode(&mode), dnnl_success);
  EXPECT_EQ(mode, dnnl_fpmath_mode_strict);
  EXPECT_EQ(dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_bf16), dnnl_success);
  bool to_int = true;
  dnnl::fpmath_mode of_graph = dnnl::fpmath_mode::any;
  graph(engine::kind::cpu).get_fpmath_mode(of_graph, to_int);
  EXPECT_EQ(of_graph, dnnl::fpmath_mode::bf16);
  EXPECT_FALSE(to_int);
  EXPECT_EQ(dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict), dnnl_success);
  EXPECT_EQ(dnnl_set_default_fpmath_mode(static_cast<dnnl_fpmath_mode_t>(7)),
            dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_get_default_fpmath_mode(nullptr), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_set_verbose(2), dnnl_success);
  EXPECT_EQ(dnnl_set_verbose(0), dnnl_success);
  EXPECT_EQ(dnnl_set_verbose(3), dnnl_invalid_arguments);
}

// The part of the primitive API that there is.
TEST(DnnlSettings, OfThePrimitiveApi) {
  EXPECT_EQ(dnnl::get_primitive_cache_capacity(), 1024);
  dnnl::set_primitive_cache_capacity(0);
  EXPECT_EQ(dnnl::get_primitive_cache_capacity(), 0);
  EXPECT_EQ(StatusOf([] { dnnl::set_primitive_cache_capacity(-1); }), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl_get_primitive_cache_capacity(nullptr), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl::set_default_fpmath_mode(dnnl::fpmath_mode::f16), dnnl::status::success);
  EXPECT_EQ(dnnl::get_default_fpmath_mode(), dnnl::fpmath_mode::f16);
  EXPECT_EQ(dnnl::set_default_fpmath_mode(dnnl::fpmath_mode::strict), dnnl::status::success);
  EXPECT_EQ(dnnl::set_verbose(-1), dnnl::status::invalid_arguments);
  EXPECT_EQ(dnnl::version()->major, 3);
}

// What clients ask before they use bf16 or f16.
TEST(DnnlSettings, LevelsOfTheCpu) {
  using dnnl::cpu_isa;
  const cpu_isa detected = dnnl::get_effective_cpu_isa();
#if defined(__x86_64__)
  EXPECT_EQ(__builtin_cpu_supports("avx2") != 0, detected >= cpu_isa::avx2);
  EXPECT_EQ(__builtin_cpu_supports("avx512vl") != 0, detected >= cpu_isa::avx512_core);
#else
  EXPECT_EQ(detected, cpu_isa::isa_default);
#endif
  EXPECT_EQ(dnnl::set_max_cpu_isa(cpu_isa::sse41), dnnl::status::success);
  EXPECT_EQ(dnnl::get_effective_cpu_isa(), detected < cpu_isa::sse41 ? detected : cpu_isa::sse41);
  EXPECT_EQ(dnnl::set_max_cpu_isa(static_cast<cpu_isa>(2)), dnnl::status::invalid_arguments);
  EXPECT_EQ(dnnl::set_max_cpu_isa(cpu_isa::avx10_2_ace), dnnl::status::success);
  EXPECT_EQ(dnnl::set_max_cpu_isa(cpu_isa::isa_default), dnnl::status::success);
  EXPECT_EQ(dnnl::get_effective_cpu_isa(), detected);
  EXPECT_EQ(dnnl::get_cpu_isa_hints(), dnnl::cpu_isa_hints::no_hints);
  EXPECT_EQ(dnnl::set_cpu_isa_hints(dnnl::cpu_isa_hints::prefer_ymm), dnnl::status::success);
  EXPECT_EQ(dnnl::get_cpu_isa_hints(), dnnl::cpu_isa_hints::prefer_ymm);
  EXPECT_EQ(dnnl_set_cpu_isa_hints(static_cast<dnnl_cpu_isa_hints_t>(9)), dnnl_invalid_arguments);
  EXPECT_EQ(dnnl::set_jit_dump(1), dnnl::status::success);
  EXPECT_EQ(dnnl::set_jit_profiling_flags(1u), dnnl::status::success);
  EXPECT_EQ(dnnl::set_jit_profiling_jitdumpdir("/tmp"), dnnl::status::success);
}

TEST(DnnlMemory, DescribesAndConverts) {
  using memory = dnnl::memory;
  using Tag = memory::format_tag;
  const memory::desc nchw({2, 3, 4, 5}, memory::data_type::f32, Tag::nchw);
  EXPECT_EQ(nchw.get_strides(), (Dims{60, 20, 5, 1}));
  const memory::desc nhwc({2, 3, 4, 5}, memory::data_type::f16, Tag::nhwc);
  EXPECT_EQ(nhwc.get_strides(), (Dims{60, 1, 15, 3}));
  EXPECT_EQ(nhwc.get_size(), 240u);
  const memory::desc crossed({3, 2}, memory::data_type::f32, Dims{2, 3});  // 0, 3, 2, 5, 4, 7
  EXPECT_EQ(crossed.get_size(), 32u);
  EXPECT_TRUE(nchw != nhwc && nhwc.get_ndims() == 4 && memory::desc().is_zero());
  EXPECT_EQ(StatusOf([] {
              memory::desc({2, 3}, memory::data_type::f32, Tag::abc);
            }),
            dnnl_invalid_arguments);
  EXPECT_EQ(StatusOf([] {
              memory::desc({2, 3}, memory::data_type::f32, Dims{1});
            }),
            dnnl_invalid_arguments);

  const engine e(engine::kind::cpu, 0);
  const stream s(e);
  float numbers[] = {1.0f, -2.5f, 65504.0f, 1e6f, 1.00048828125f, 6e-8f, 0.0f, 300.7f};
  const auto converted = [&](memory::data_type type) {
    const memory from({{8}, memory::data_type::f32, Tag::a}, e, numbers);
    const memory to({{8}, type, Tag::a}, e);
    dnnl::reorder(from, to).execute(s, from, to);
    return to;
  };
  const memory f16 = converted(memory::data_type::f16);
  const uint16_t f16_bits[] = {0x3c00, 0xc100, 0x7bff, 0x7c00, 0x3c00, 0x0001, 0x0000, 0x5cb3};
  EXPECT_EQ(std::memcmp(f16.get_data_handle(), f16_bits, sizeof f16_bits), 0);
  const memory bf16 = converted(memory::data_type::bf16);
  const uint16_t bf16_bits[] = {0x3f80, 0xc020, 0x4780, 0x4974, 0x3f80, 0x3381, 0x0000, 0x4396};
  EXPECT_EQ(std::memcmp(bf16.get_data_handle(), bf16_bits, sizeof bf16_bits), 0);
  const memory s8 = converted(memory::data_type::s8);
  const int8_t s8_values[] = {1, -2, 127, 127, 1, 0, 0, 127};
  EXPECT_EQ(std::memcmp(s8.get_data_handle(), s8_values, sizeof s8_values), 0);

  float back[8] = {};
  const memory f32({{8}, memory::data_type::f32, Tag::a}, e, back);
  dnnl::reorder(f16, f32).execute(s, f16, f32);
  EXPECT_EQ(back[1], -2.5f);
  EXPECT_EQ(back[5], 0x1p-24f);
  EXPECT_TRUE(std::isinf(back[3]));

  float rows[] = {1, 2, 3, 4, 5, 6}, columns[6] = {};
  const memory row_major({{2, 3}, memory::data_type::f32, Tag::ab}, e, rows);
  const memory column_major({{2, 3}, memory::data_type::f32, Tag::ba}, e, columns);
  dnnl::reorder(row_major, column_major).execute(s, row_major, column_major);
  EXPECT_EQ(columns[1], 4);
  EXPECT_EQ(columns[2], 2);
  const memory other({{3, 2}, memory::data_type::f32, Tag::ab}, e);
  EXPECT_EQ(StatusOf([&] { dnnl::reorder(row_major, other); }), dnnl_invalid_arguments);
  const memory wide({{2, 3}, memory::data_type::f64, Tag::ab}, e);
  EXPECT_EQ(StatusOf([&] { dnnl::reorder(row_major, wide); }), dnnl_unimplemented);
  memory copy = other;
  copy.set_data_handle(rows);
  EXPECT_EQ(other.map_data<float>(), rows);
  copy.unmap_data(rows);
  EXPECT_EQ(copy.get_engine().get(), e.get());
  EXPECT_EQ(StatusOf([] { memory().set_data_handle(nullptr); }), dnnl_invalid_arguments);
}

}  // namespace
