// convgrad_dnnl_last_error(): every call that fails, in C or in the C++ headers, leaves a sentence
// of its own, never an older one.
#include <cstdlib>
#include <cstring>
#include <functional>

#include "convgrad_dnnl.h"
#include "dnnl_problem.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace convgrad::tests {
namespace {

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A failure that nothing else here has.
void LeaveOlderSentence() {
  ASSERT_EQ(dnnl_graph_set_dump_mode(static_cast<dnnl_graph_dump_mode_t>(64)),
            dnnl_invalid_arguments);
  ASSERT_STREQ(convgrad_dnnl_last_error(), "dump mode is 64, which is not a legal value");
}

// A client's object that is destroyed after those of its thread.
struct LastUser {
  ~LastUser() {
    dnnl_stream_wait(nullptr);
    constexpr char kSentence[] = "dnnl_stream_wait was given a null pointer";
    if (std::strcmp(convgrad_dnnl_last_error(), kSentence) != 0) std::_Exit(3);
  }
} last_user;

dnnl_status_t StatusOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const dnnl::error& error) {
    return error.status;
  }
  return dnnl_success;
}

// The call fails and its sentence has this in it.
void ExpectSentence(const std::function<void()>& call, dnnl_status_t status,
                    const std::string& part) {
  LeaveOlderSentence();
  EXPECT_EQ(StatusOf(call), status) << part;
  const std::string sentence = convgrad_dnnl_last_error();
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence << " has no " << part;
}

#define NAMED(function, ...)                        \
  {                                                 \
#function, [] { return function(__VA_ARGS__); } \
  }

// Every function of C that can fail on a null pointer: its sentence names it.
TEST(DnnlLastError, NamesTheFunctionThatWasGivenNull) {
  constexpr dnnl_graph_op_attr_t kAttr = dnnl_graph_op_attr_groups;
  struct Row {
    const char* function;
    dnnl_status_t (*call)();
  };
  const Row rows[] = {
      NAMED(dnnl_engine_create, nullptr, dnnl_cpu, 0),
      NAMED(dnnl_engine_get_kind, nullptr, nullptr),
      NAMED(dnnl_stream_create, nullptr, nullptr, 1),
      NAMED(dnnl_stream_get_engine, nullptr, nullptr),
      NAMED(dnnl_stream_wait, nullptr),
      NAMED(dnnl_get_default_fpmath_mode, nullptr),
      NAMED(dnnl_get_primitive_cache_capacity, nullptr),
      NAMED(dnnl_graph_allocator_create, nullptr, nullptr, nullptr),
      NAMED(dnnl_graph_allocator_destroy, nullptr),
      NAMED(dnnl_graph_make_engine_with_allocator, nullptr, dnnl_cpu, 0, nullptr),
      NAMED(dnnl_graph_logical_tensor_init, nullptr, 0, dnnl_f32, 2, dnnl_graph_layout_type_any,
            dnnl_graph_tensor_property_undef),
      NAMED(dnnl_graph_logical_tensor_init_with_dims, nullptr, 0, dnnl_f32, 2, nullptr,
            dnnl_graph_layout_type_any, dnnl_graph_tensor_property_undef),
      NAMED(dnnl_graph_logical_tensor_init_with_strides, nullptr, 0, dnnl_f32, 2, nullptr, nullptr,
            dnnl_graph_tensor_property_undef),
      NAMED(dnnl_graph_logical_tensor_get_mem_size, nullptr, nullptr),
      NAMED(dnnl_graph_logical_tensor_is_equal, nullptr, nullptr, nullptr),
      NAMED(dnnl_graph_tensor_create, nullptr, nullptr, nullptr, nullptr),
      NAMED(dnnl_graph_tensor_create_scalar, nullptr, nullptr, nullptr),
      NAMED(dnnl_graph_tensor_get_data_handle, nullptr, nullptr),
      NAMED(dnnl_graph_tensor_set_data_handle, nullptr, nullptr),
      NAMED(dnnl_graph_tensor_get_engine, nullptr, nullptr),
      NAMED(dnnl_graph_tensor_get_logical_tensor, nullptr, nullptr),
      NAMED(dnnl_graph_op_create, nullptr, 0, dnnl_graph_op_relu, "relu"),
      NAMED(dnnl_graph_op_add_input, nullptr, nullptr),
      NAMED(dnnl_graph_op_add_output, nullptr, nullptr),
      NAMED(dnnl_graph_op_set_attr_f32, nullptr, kAttr, nullptr, 1),
      NAMED(dnnl_graph_op_set_attr_bool, nullptr, kAttr, nullptr, 1),
      NAMED(dnnl_graph_op_set_attr_s64, nullptr, kAttr, nullptr, 1),
      NAMED(dnnl_graph_op_set_attr_str, nullptr, kAttr, nullptr, 1),
      NAMED(dnnl_graph_op_get_id, nullptr, nullptr),
      NAMED(dnnl_graph_op_get_kind, nullptr, nullptr),
      NAMED(dnnl_graph_partition_create_with_op, nullptr, nullptr, dnnl_cpu),
      NAMED(dnnl_graph_partition_get_op_num, nullptr, nullptr),
      NAMED(dnnl_graph_partition_get_ops, nullptr, 1, nullptr),
      NAMED(dnnl_graph_partition_get_id, nullptr, nullptr),
      NAMED(dnnl_graph_partition_compile, nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr),
      NAMED(dnnl_graph_partition_get_input_ports_num, nullptr, nullptr),
      NAMED(dnnl_graph_partition_get_input_ports, nullptr, 0, nullptr),
      NAMED(dnnl_graph_partition_get_output_ports_num, nullptr, nullptr),
      NAMED(dnnl_graph_partition_get_output_ports, nullptr, 0, nullptr),
      NAMED(dnnl_graph_partition_is_supported, nullptr, nullptr),
      NAMED(dnnl_graph_partition_get_engine_kind, nullptr, nullptr),
      NAMED(dnnl_graph_compiled_partition_create, nullptr, nullptr),
      NAMED(dnnl_graph_compiled_partition_execute, nullptr, nullptr, 0, nullptr, 0, nullptr),
      NAMED(dnnl_graph_compiled_partition_execute_v2, nullptr, nullptr, 0, nullptr, 0, nullptr,
            nullptr),
      NAMED(dnnl_graph_compiled_partition_query_logical_tensor, nullptr, 0, nullptr),
      NAMED(dnnl_graph_compiled_partition_get_inplace_ports, nullptr, nullptr, nullptr),
      NAMED(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor, nullptr, nullptr),
      NAMED(dnnl_graph_graph_create, nullptr, dnnl_cpu),
      NAMED(dnnl_graph_graph_create_with_fpmath_mode, nullptr, dnnl_cpu, dnnl_fpmath_mode_strict),
      NAMED(dnnl_graph_graph_set_fpmath_mode, nullptr, dnnl_fpmath_mode_strict, 0),
      NAMED(dnnl_graph_graph_get_fpmath_mode, nullptr, nullptr, nullptr),
      NAMED(dnnl_graph_add_op, nullptr, nullptr),
      NAMED(dnnl_graph_graph_finalize, nullptr),
      NAMED(dnnl_graph_graph_is_finalized, nullptr, nullptr),
      NAMED(dnnl_graph_graph_filter, nullptr, dnnl_graph_partition_policy_fusion),
      NAMED(dnnl_graph_graph_get_partition_num, nullptr, nullptr),
      NAMED(dnnl_graph_graph_get_partitions, nullptr, 1, nullptr),
      NAMED(dnnl_graph_get_compiled_partition_cache_capacity, nullptr),
      NAMED(dnnl_graph_get_constant_tensor_cache, nullptr),
      NAMED(dnnl_graph_get_constant_tensor_cache_capacity, dnnl_cpu, nullptr),
  };
  for (const Row& row : rows) {
    LeaveOlderSentence();
    EXPECT_NE(row.call(), dnnl_success) << row.function;
    EXPECT_EQ(convgrad_dnnl_last_error(), std::string(row.function) + " was given a null pointer");
  }
}

TEST(DnnlLastError, OfValuesThatAreNone) {
  struct Row {
    const char* sentence;
    dnnl_status_t (*call)();
  };
  const Row rows[] = {
      {"mode is 9",
       [] { return dnnl_set_default_fpmath_mode(static_cast<dnnl_fpmath_mode_t>(9)); }},
      {"level is 7", [] { return dnnl_set_verbose(7); }},
      {"capacity is -1", [] { return dnnl_graph_set_compiled_partition_cache_capacity(-1); }},
      {"capacity is -2", [] { return dnnl_set_primitive_cache_capacity(-2); }},
      {"flag is -1", [] { return dnnl_graph_set_constant_tensor_cache(-1); }},
      {"engine kind is 0",
       [] { return dnnl_graph_set_constant_tensor_cache_capacity(dnnl_any_engine, 1); }},
      {"isa is 12345", [] { return dnnl_set_max_cpu_isa(static_cast<dnnl_cpu_isa_t>(12345)); }},
      {"isa_hints is 9",
       [] { return dnnl_set_cpu_isa_hints(static_cast<dnnl_cpu_isa_hints_t>(9)); }},
  };
  for (const Row& row : rows) {
    LeaveOlderSentence();
    EXPECT_NE(row.call(), dnnl_success) << row.sentence;
    EXPECT_EQ(std::string(convgrad_dnnl_last_error()).find(row.sentence), 0U)
        << convgrad_dnnl_last_error();
  }
}

// What the C++ headers refuse without a call of C.
TEST(DnnlLastError, OfTheHeaders) {
  const Problem problem = MakeProblem({});
  graph g(dnnl::engine::kind::cpu);
  g.add_op(MakeOp(problem));
  ExpectSentence([&] { g.get_partitions(); }, dnnl_invalid_graph, "the graph is not finalized");
  op relu(7, op::kind::ReLU, {Unknown(1, ElementType::f32)}, {Unknown(2, ElementType::f32)}, "r");
  const partition unsupported(relu, dnnl::engine::kind::cpu);
  ExpectSentence([&] { unsupported.compile({}, {}, Cpu()); }, dnnl_invalid_arguments, "ReLU");
  const partition of_gpu(MakeOp(problem), dnnl::engine::kind::gpu);
  ExpectSentence([&] { of_gpu.compile({}, {}, Cpu()); }, dnnl_invalid_arguments, "gpu");

  const char* const empty = "object is not initialized";
  const dnnl::engine no_engine;
  const partition no_partition;
  const compiled_partition no_compiled;
  const tensor no_tensor;
  ExpectSentence([&] { no_engine.get_kind(); }, dnnl_invalid_arguments, empty);
  ExpectSentence([&] { dnnl::stream made(no_engine); }, dnnl_invalid_arguments, empty);
  ExpectSentence([&] { no_partition.get_id(); }, dnnl_invalid_arguments, empty);
  ExpectSentence([&] { no_compiled.get_inplace_ports(); }, dnnl_invalid_arguments, empty);
  ExpectSentence([&] { no_tensor.get_data_handle(); }, dnnl_invalid_arguments, empty);

  const logical_tensor any(3, ElementType::f32, Layout::any);
  const logical_tensor no_rank(3, ElementType::f32, Layout::strided);
  ExpectSentence([&] { any.get_dims(); }, dnnl_invalid_arguments, "rank");
  ExpectSentence([&] { any.get_strides(); }, dnnl_invalid_arguments, "strides");
  ExpectSentence([&] { no_rank.get_strides(); }, dnnl_invalid_arguments, "rank");
  ExpectSentence([&] { any.get_layout_id(); }, dnnl_invalid_arguments, "opaque");
  ExpectSentence(
      [&] {
        logical_tensor(1, ElementType::f32, Dims{2, 3}, Dims{1});
      },
      dnnl_invalid_arguments, "stride");
}

TEST(DnnlLastError, OfMemoryAndReorder) {
  using dnnl::memory;
  using Type = memory::data_type;
  const memory none;
  const memory f32({{2, 3}, Type::f32, memory::format_tag::ab}, Cpu());
  const memory longer({{2, 4}, Type::f32, memory::format_tag::ab}, Cpu());
  const memory boolean({{2, 3}, Type::boolean, memory::format_tag::ab}, Cpu());
  ExpectSentence(
      [&] {
        memory::desc({2, 3}, Type::f32, memory::dims{1});
      },
      dnnl_invalid_arguments, "stride");
  ExpectSentence(
      [&] {
        memory::desc({2, 3}, Type::f32, memory::format_tag::abc);
      },
      dnnl_invalid_arguments, "rank");
  ExpectSentence([&] { none.set_data_handle(nullptr); }, dnnl_invalid_arguments, "initialized");
  ExpectSentence([&] { dnnl::reorder(f32, longer); }, dnnl_invalid_arguments, "extents");
  ExpectSentence([&] { dnnl::reorder(f32, boolean); }, dnnl_unimplemented, "type");
}

// What passes an empty list passes a null pointer: the sentence is about the list.
TEST(DnnlLastError, OfEmptyLists) {
  const Problem problem = MakeProblem({});
  const compiled_partition compiled = Compile(problem, Cpu());
  dnnl::stream stream(Cpu());
  ExpectSentence([&] { compiled.execute(stream, {}, {}); }, dnnl_invalid_arguments,
                 "input tensor 0 is missing: 0 are given, 2 were compiled");
  std::vector<Bytes> data = InputData(problem);
  ExpectSentence([&] { compiled.execute(stream, TensorsOf(problem, data, Cpu()), {}); },
                 dnnl_invalid_arguments, "output tensor 0 is missing: 0 are given");
  op convolution = MakeOp(problem);
  ExpectSentence([&] { convolution.set_attr<Dims>(op::attr::pads_begin, {}); },
                 dnnl_invalid_arguments, "attribute pads_begin has no values");
  ExpectSentence([&] { convolution.set_attr<std::string>(op::attr::auto_pad, ""); },
                 dnnl_invalid_arguments, "attribute auto_pad has no values");
  ExpectSentence([] { dnnl::engine(dnnl::engine::kind::gpu, 0); }, dnnl_invalid_arguments,
                 "engine 0 of kind gpu is not there");
}

// A tensor that differs is named, not one of those that agree.
TEST(DnnlLastError, NamesTheTensorOfAnotherType) {
  const Problem problem = MakeProblem({});
  const partition p = OnlyPartition(MakeOp(problem));
  const std::vector<logical_tensor> in = InputTensors(problem);
  const logical_tensor bf16(1, ElementType::bf16, problem.inputs[1], Layout::strided);
  for (ElementType output : {ElementType::f32, ElementType::bf16}) {
    ExpectSentence(
        [&] {
          p.compile({in[0], bf16}, {logical_tensor(kOutputId, output, Layout::any)}, Cpu());
        },
        dnnl_invalid_data_type, "tensor 1 has type bf16, expected f32 as tensor 0 has");
  }
  ExpectSentence(
      [&] { p.compile(in, {logical_tensor(kOutputId, ElementType::bf16, Layout::any)}, Cpu()); },
      dnnl_invalid_data_type, "tensor 100 has type bf16, expected f32 as tensor 0 has");
}

// Too large is not unknown: dense strides that do not fit, and given ones that reach too far.
TEST(DnnlLastError, OfTensorsThatAreTooLarge) {
  constexpr int64_t kHalf = int64_t{1} << 32;
  const Problem problem = MakeProblem({});
  const partition p = OnlyPartition(MakeOp(problem));
  const std::vector<logical_tensor> in = InputTensors(problem);
  const logical_tensor out(kOutputId, ElementType::f32, Layout::any);
  const Dims extents = {kHalf, kHalf, kHalf, kHalf};
  const std::string too_large = "more than 2^63 - 1 bytes";
  for (Layout layout : {Layout::strided, Layout::any}) {
    const logical_tensor src(0, ElementType::f32, extents, layout);
    ExpectSentence([&] { p.compile({src, in[1]}, {out}, Cpu()); }, dnnl_invalid_shape, too_large);
  }
  const logical_tensor dst(kOutputId, ElementType::f32, extents, Layout::strided);
  ExpectSentence([&] { p.compile(in, {dst}, Cpu()); }, dnnl_invalid_shape, too_large);
  const logical_tensor dense(3, ElementType::f32, extents, Layout::strided);
  const logical_tensor far(3, ElementType::f32, Dims{2, 2}, Dims{INT64_MAX, 1});
  ExpectSentence([&] { tensor(dense, Cpu()); }, dnnl_invalid_arguments, too_large);
  ExpectSentence([&] { tensor(far, Cpu()); }, dnnl_invalid_arguments, too_large);
}

TEST(DnnlLastError, SaysWhatIsUnknown) {
  const auto allocate = [](const logical_tensor& lt, const std::string& part) {
    ExpectSentence([&] { tensor(lt, Cpu()); }, dnnl_invalid_arguments, part);
  };
  constexpr ElementType f32 = ElementType::f32;
  allocate(logical_tensor(3, f32, Dims{2, 3}, Layout::any), "tensor 3 has no strides");
  allocate(logical_tensor(3, f32, Layout::strided), "tensor 3 has an unknown rank");
  allocate(logical_tensor(3, f32, Dims{2, -1}, Layout::strided), "tensor 3 has unknown extents");
  allocate(logical_tensor(3, f32, Dims{2, 3}, Dims{-1, -1}), "tensor 3 has unknown strides");
  const Problem problem = MakeProblem({});
  const partition p = OnlyPartition(MakeOp(problem));
  const std::vector<logical_tensor> in = InputTensors(problem);
  const auto compile = [&](const logical_tensor& out, const std::string& part) {
    ExpectSentence([&] { p.compile(in, {out}, Cpu()); }, dnnl_invalid_arguments, part);
  };
  compile(logical_tensor(kOutputId, f32, Layout::undef), "tensor 100 has no layout");
  compile(logical_tensor(kOutputId, ElementType::undef, Layout::any), "tensor 100 has no type");
}

// A sentence has its first 2047 characters.
TEST(DnnlLastError, LongSentencesEnd) {
  const std::string longer(5000, 'x');
  EXPECT_EQ(convgrad_dnnl_refuse(dnnl_unimplemented, longer.c_str()), dnnl_unimplemented);
  EXPECT_EQ(convgrad_dnnl_last_error(), longer.substr(0, 2047));
}

}  // namespace
}  // namespace convgrad::tests
