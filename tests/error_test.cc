// Every sentence that needs no geometry: the operation, its arguments, attributes and options, the
// pointers of a run, and memory that is not there. Shapes are in error_shape_test. Each case is a
// legal request with one thing made wrong, and the whole sentence is compared: it is the interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "convgrad/convgrad.hpp"
#include "tests/watched_allocations.h"

namespace convgrad {
namespace {

using enum OpKind;
using enum StatusCode;
using Bytes = std::vector<uint8_t>;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
const Bytes kUntouched(4096, 0xA5);  // what an output holds before a run that fails, and after

struct Request {
  OpKind kind;
  Attributes attributes;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  Options options = {};

  Result<Plan> Make() const { return Plan::Make({kind, attributes}, inputs, outputs, options); }
  Request& Set(std::string name, AttributeValue value) {
    attributes.Set(std::move(name), std::move(value));
    return *this;
  }
  Request& Without(std::string_view name) {
    Attributes kept;
    for (const auto& [key, value] : attributes.entries()) {
      if (key != name) kept.Set(key, value);
    }
    attributes = kept;
    return *this;
  }
  Request& Input(size_t index, TensorDesc desc) {
    inputs[index] = std::move(desc);
    return *this;
  }
  Request& Inputs(size_t count) {
    inputs.resize(count);
    return *this;
  }
  Request& Outputs(std::vector<TensorDesc> descs) {
    outputs = std::move(descs);
    return *this;
  }
};

TensorDesc F32(Dims extents) { return {DataType::kF32, std::move(extents), {}, {}}; }
TensorDesc ShapeTensor(Dims values) {
  return {DataType::kS32, {static_cast<int64_t>(values.size())}, {}, std::move(values)};
}
Attributes Window(int64_t stride, const char* format_name, const char* format) {
  return {{"strides", {stride, stride}}, {"pads_begin", {1, 1}}, {"pads_end", {1, 1}},
          {"dilations", {1, 1}},         {"groups", 2},          {"data_format", "NCX"},
          {format_name, format}};
}

// N 2, IC 4, OC 6, groups 2, a 3x3 kernel over 5x6.
Request Conv() {
  return {kConvolution,
          Window(1, "weights_format", "OIX"),
          {F32({2, 4, 5, 6}), F32({6, 2, 3, 3}), F32({6})},
          {}};
}
Request ConvData() {
  return {kConvolutionBackwardData,
          Window(1, "weights_format", "OIX"),
          {F32({2, 6, 5, 6}), F32({6, 2, 3, 3}), ShapeTensor({2, 4, 5, 6})},
          {}};
}
Request ConvWeights() {
  return {kConvolutionBackwardWeights,
          Window(1, "weights_format", "OIX"),
          {F32({2, 4, 5, 6}), F32({2, 6, 5, 6}), ShapeTensor({6, 2, 3, 3})},
          {F32({6, 2, 3, 3}), F32({6})}};
}
Request ConvT() {
  return {kConvTranspose,
          Window(2, "weights_format", "IOX"),
          {F32({2, 4, 5, 6}), F32({4, 3, 3, 3}), F32({6})},
          {}};
}
Request ConvTData() {
  return {kConvTransposeBackwardData,
          Window(2, "weights_format", "IOX"),
          {F32({2, 6, 9, 11}), F32({4, 3, 3, 3})},
          {}};
}
Request ConvTFilters() {
  return {kConvTransposeBackpropFilters,
          Window(2, "filter_format", "OIX"),
          {F32({2, 4, 5, 6}), F32({2, 6, 9, 11}), ShapeTensor({3, 4, 3, 3})},
          {}};
}

TEST(Errors, StartFromLegalRequests) {
  for (const Request& request :
       {Conv(), ConvData(), ConvWeights(), ConvT(), ConvTData(), ConvTFilters()}) {
    EXPECT_TRUE(request.Make().ok()) << request.Make().status().message();
  }
}

// convgrad::Run must say the same as Plan::Make and leave the output as it was.
void ExpectRunError(const Request& request, StatusCode code, const std::string& sentence) {
  const std::vector<float> zeros(4096);
  Bytes output = kUntouched;
  std::vector<std::vector<int32_t>> shapes(request.inputs.size());
  std::vector<ConstTensorView> inputs;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const TensorDesc& desc = request.inputs[i];
    const bool is_shape = !IsFloat(desc.type) && !desc.values.empty();
    shapes[i].assign(desc.values.begin(), desc.values.end());
    inputs.emplace_back();
    inputs.back().data = is_shape ? static_cast<const void*>(shapes[i].data()) : zeros.data();
    inputs.back().desc = desc;
  }
  std::vector<TensorView> outputs(std::max<size_t>(1, request.outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < request.outputs.size()) outputs[i].desc = request.outputs[i];
    outputs[i].data = output.data();
  }
  const Status status = Run({request.kind, request.attributes}, inputs, outputs, request.options);
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(status.message(), sentence);
  EXPECT_EQ(output, kUntouched);
}

void ExpectMakeError(const Request& request, StatusCode code, const std::string& sentence) {
  SCOPED_TRACE(sentence);
  const Result<Plan> plan = request.Make();
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), code);
  EXPECT_EQ(plan.status().message(), sentence);
}

void ExpectError(const Request& request, StatusCode code, const std::string& sentence) {
  ExpectMakeError(request, code, sentence);
  SCOPED_TRACE("convgrad::Run: " + sentence);
  if (!request.Make().ok()) ExpectRunError(request, code, sentence);
}

struct Wrong {
  Request request;
  std::string sentence;
};

void ExpectEach(StatusCode code, const std::vector<Wrong>& wrongs) {
  for (const Wrong& wrong : wrongs) ExpectError(wrong.request, code, wrong.sentence);
}

TEST(OperationErrors, KindOutsideTheTable) {
  for (const int kind : {10, -1, 1 << 30}) {
    ExpectError({static_cast<OpKind>(kind), {}, {}, {}}, kInvalidArgument,
                "operation kind " + std::to_string(kind) + " is unknown, expected 0 to 9");
  }
}

TEST(ArgumentErrors, TooMany) {
  ExpectEach(
      kInvalidArgument,
      {{ConvTData().Inputs(3),  // it has no shape tensor, not even an empty one
        "ConvTransposeBackwardData was given 3 inputs, it has at most 2"},
       {ConvTData().Outputs({F32({2, 4, 5, 6}), F32({4})}),
        "ConvTransposeBackwardData was given 2 outputs, it has at most 1"},
       {ConvWeights().Inputs(4), "ConvolutionBackwardWeights was given 4 inputs, it has at most 3"},
       {ConvWeights().Outputs({{}, {}, {}}),
        "ConvolutionBackwardWeights was given 3 outputs, it has at most 2"}});
}

TEST(ArgumentErrors, RequiredOneIsMissing) {
  const std::string rule = "' is missing, ConvTransposeBackpropFilters requires it";
  ExpectEach(kInvalidArgument,
             {{Conv().Inputs(0), "input 0 'src' is missing, Convolution requires it"},
              {Conv().Inputs(1), "input 1 'weights' is missing, Convolution requires it"},
              {Conv().Input(1, {}), "input 1 'weights' is missing, Convolution requires it"},
              {ConvTData().Inputs(0),
               "input 0 'diff_dst' is missing, ConvTransposeBackwardData requires it"},
              {ConvTFilters().Input(0, {}), "input 0 'input_forward" + rule},
              {ConvTFilters().Input(1, {}), "input 1 'output_delta" + rule}});
}

TEST(ArgumentErrors, InputIsUnknown) {
  ExpectEach(
      kInvalidShape,
      {{Conv().Input(0, F32({2, -1, 5, 6})), "src dim 1 is unknown (-1), inputs must be known"},
       {Conv().Input(1, F32({6, 2, 3, kMin})),
        "weights dim 3 is unknown (-9223372036854775808), inputs must be known"},
       {Conv().Input(2, F32({-7})), "bias dim 0 is unknown (-7), inputs must be known"},
       {ConvData().Input(2, {DataType::kS32, {-1}, {}, {}}),
        "dst_shape dim 0 is unknown (-1), inputs must be known"}});
}

TEST(ArgumentErrors, Rank) {
  ExpectEach(kInvalidShape,
             {{Conv().Input(0, F32({})), "src has rank 0, expected 3, 4 or 5"},
              {Conv().Input(0, F32({2, 4})), "src has rank 2, expected 3, 4 or 5"},
              {Conv().Input(0, F32({2, 4, 5, 6, 7, 8})), "src has rank 6, expected 3, 4 or 5"},
              {Conv().Input(1, F32({6, 2, 3})), "weights has rank 3, expected 4"},
              {Conv().Input(2, F32({6, 1})), "bias has rank 2, expected 1"},
              {Conv().Outputs({F32({2, 6, 5})}), "dst has rank 3, expected 4"},
              {ConvWeights().Input(1, F32({2, 6, 5, 6, 1})), "diff_dst has rank 5, expected 4"},
              {ConvWeights().Outputs({F32({6})}), "diff_weights has rank 1, expected 4"},
              {ConvWeights().Outputs({{}, F32({6, 1})}), "diff_bias has rank 2, expected 1"}});
}

TEST(ArgumentErrors, Type) {
  const auto of = [](DataType type, Dims extents) {
    return TensorDesc{type, std::move(extents), {}, {}};
  };
  using enum DataType;
  ExpectEach(
      kInvalidType,
      {{Conv().Input(0, of(kS32, {2, 4, 5, 6})), "src has type s32, expected f32, bf16 or f16"},
       {Conv().Input(0, of(kS64, {2, 4, 5, 6})), "src has type s64, expected f32, bf16 or f16"},
       {Conv().Input(1, of(kBF16, {6, 2, 3, 3})), "weights has type bf16, expected f32 as src has"},
       {Conv().Input(0, of(kF16, {2, 4, 5, 6})), "weights has type f32, expected f16 as src has"},
       {Conv().Input(2, of(kS64, {6})), "bias has type s64, expected f32 as src has"},
       {Conv().Outputs({of(kBF16, {})}), "dst has type bf16, expected f32 as src has"},
       {ConvWeights().Outputs({of(kF16, {6, 2, 3, 3})}),
        "diff_weights has type f16, expected f32 as src has"},
       {ConvWeights().Outputs({{}, of(kS32, {6})}),
        "diff_bias has type s32, expected f32 as src has"},
       {ConvTData().Input(1, of(kF16, {4, 3, 3, 3})),
        "weights has type f16, expected f32 as diff_dst has"},
       {ConvWeights().Input(2, of(kF32, {4})), "weights_shape has type f32, expected s32 or s64"}});
}

TEST(ArgumentErrors, ShapeTensor) {
  const std::string rule = ", expected one axis of 4, one number for each axis of the output";
  const Dims values = {6, 2, 3, 3};
  constexpr DataType s32 = DataType::kS32;
  ExpectEach(
      kInvalidShape,
      {{ConvWeights().Input(2, ShapeTensor({6, 2, 3})), "weights_shape has shape (3)" + rule},
       {ConvWeights().Input(2, {s32, {2, 2}, {}, values}), "weights_shape has shape (2, 2)" + rule},
       {ConvWeights().Input(2, {s32, {4, 1}, {}, values}), "weights_shape has shape (4, 1)" + rule},
       {ConvWeights().Input(2, {s32, {4}, {2}, values}),
        "weights_shape has stride 2, a shape tensor is dense"},
       {ConvWeights().Input(2, ShapeTensor({6, -2, 3, 3})),
        "weights_shape is -2 at entry 1, expected at least 0"}});
  // convgrad::Run takes as many values as there are elements, so only a plan can see this one.
  ExpectMakeError(ConvData().Input(2, {s32, {4}, {}, {2, 4, 5}}), kInvalidShape,
                  "dst_shape has 3 values, expected 4");
}

TEST(AttributeErrors, NotOfThisOperation) {
  const std::string is_not = "' is not an attribute of ";
  const std::string has = ", which has strides, pads_begin, pads_end, dilations, auto_pad, ";
  ExpectEach(
      kInvalidArgument,
      {{Conv().Set("output_padding", {0, 0}), "attribute 'output_padding" + is_not + "Convolution" +
                                                  has + "groups, data_format, weights_format"},
       {Conv().Set("Strides", {1, 1}), "attribute 'Strides" + is_not + "Convolution" + has +
                                           "groups, data_format, weights_format"},
       {ConvTData().Set("filter_format", "OIX"),
        "attribute 'filter_format" + is_not + "ConvTransposeBackwardData" + has +
            "output_padding, groups, data_format, weights_format"},
       {ConvTFilters().Set("weights_shape", {3, 4, 3, 3}),
        "attribute 'weights_shape" + is_not + "ConvTransposeBackpropFilters" + has +
            "output_padding, groups, data_format, filter_format, filter_shape"}});
}

TEST(AttributeErrors, Type) {
  ExpectEach(kInvalidArgument,
             {{Conv().Set("strides", 1), "attribute 'strides' has type s64, expected s64[]"},
              {Conv().Set("groups", {2}), "attribute 'groups' has type s64[], expected s64"},
              {Conv().Set("pads_end", "1"), "attribute 'pads_end' has type string, expected s64[]"},
              {Conv().Set("auto_pad", 0), "attribute 'auto_pad' has type s64, expected string"}});
}

TEST(AttributeErrors, RequiredOneIsMissing) {
  for (const std::string name : {"strides", "pads_begin", "pads_end", "dilations"}) {
    const std::string missing = "attribute '" + name + "' is missing, ";
    ExpectEach(kInvalidArgument, {{Conv().Without(name), missing + "Convolution requires it"},
                                  // auto_pad ignores the pads, and still they are required.
                                  {ConvTData().Without(name).Set("auto_pad", "same_upper"),
                                   missing + "ConvTransposeBackwardData requires it"}});
  }
  // Twelve zeros are how oneDNN writes a list that was not given.
  ExpectEach(kInvalidArgument, {{Conv().Set("strides", Dims(12, 0)),
                                 "attribute 'strides' is missing, Convolution requires it"},
                                {Conv().Set("dilations", Dims(12, 0)),
                                 "attribute 'dilations' is missing, Convolution requires it"}});
}

TEST(AttributeErrors, ListLength) {
  const std::string spatial = " entries, expected 2, one for each spatial axis";
  for (const std::string name : {"strides", "pads_begin", "pads_end", "dilations"}) {
    for (const size_t length : {1u, 3u, 11u, 13u}) {
      ExpectError(ConvT().Set(name, Dims(length, 1)), kInvalidArgument,
                  "attribute '" + name + "' has " + std::to_string(length) + spatial);
    }
  }
  const std::string whole = " entries, expected 4, one for each axis of the output";
  ExpectEach(
      kInvalidArgument,
      {{ConvT().Set("strides", Dims{}), "attribute 'strides' has 0" + spatial},
       {ConvT().Set("output_padding", {1}), "attribute 'output_padding' has 1" + spatial},
       // Twelve entries of which the third, past the rank, is not zero.
       {ConvT().Set("strides", {2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
        "attribute 'strides' has 12" + spatial},
       {ConvWeights().Set("weights_shape", {6, 2, 3}), "attribute 'weights_shape' has 3" + whole},
       {ConvData().Set("dst_shape", {2, 4, 5, 6, 1}), "attribute 'dst_shape' has 5" + whole}});
}

TEST(AttributeErrors, ListValue) {
  const std::string positive = ", expected at least 1", natural = ", expected at least 0";
  ExpectEach(
      kInvalidArgument,
      {{ConvT().Set("strides", {2, 0}), "attribute 'strides' is 0 at entry 1" + positive},
       {ConvT().Set("strides", {kMin, 1}),
        "attribute 'strides' is -9223372036854775808 at entry 0" + positive},
       {ConvT().Set("dilations", {0, 1}), "attribute 'dilations' is 0 at entry 0" + positive},
       {ConvT().Set("dilations", {1, -3}), "attribute 'dilations' is -3 at entry 1" + positive},
       {ConvT().Set("pads_begin", {-1, 0}), "attribute 'pads_begin' is -1 at entry 0" + natural},
       {ConvT().Set("pads_end", {0, -2}), "attribute 'pads_end' is -2 at entry 1" + natural},
       {ConvT().Set("pads_end", {0, -2}).Set("auto_pad", "valid"),
        "attribute 'pads_end' is -2 at entry 1" + natural},
       {ConvT().Set("output_padding", {0, -1}),
        "attribute 'output_padding' is -1 at entry 1" + natural},
       // A shape attribute holds numbers: negative means unknown only for an output.
       {ConvWeights().Set("weights_shape", {6, -1, 3, 3}),
        "attribute 'weights_shape' is -1 at entry 1" + natural}});
}

TEST(AttributeErrors, GroupsAndWords) {
  ExpectEach(
      kInvalidArgument,
      {{Conv().Set("groups", 0), "attribute 'groups' is 0, expected at least 1"},
       {Conv().Set("groups", -2), "attribute 'groups' is -2, expected at least 1"},
       {Conv().Set("auto_pad", "Same"),
        "attribute 'auto_pad' is 'Same', expected one of none, same_upper, same_lower, valid"},
       {Conv().Set("data_format", "ncx"),
        "attribute 'data_format' is 'ncx', expected one of NXC, NCX"},
       {Conv().Set("weights_format", "IOX"),
        "attribute 'weights_format' is 'IOX', expected one of XIO, OIX"},
       {ConvT().Set("weights_format", "OIX"),
        "attribute 'weights_format' is 'OIX', expected one of XOI, IOX"},
       {ConvTFilters().Set("filter_format", "IOX"),
        "attribute 'filter_format' is 'IOX', expected one of XIO, OIX"}});
}

TEST(OptionErrors, NameTheOption) {
  std::string names;
  for (const KernelInfo& kernel : Kernels()) {
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  }
  const auto with = [](auto Options::*option, auto value) {
    Request request = Conv();
    request.options.*option = value;
    return request;
  };
  ExpectEach(kInvalidArgument,
             {{with(&Options::threads, -1), "option threads is -1, expected 0 (all) or more"},
              {with(&Options::workspace_limit, -2),
               "option workspace_limit is -2, expected -1 (no limit), 0 or more bytes"},
              {with(&Options::beta, NAN), "option beta is nan, expected a finite number"},
              {with(&Options::beta, -INFINITY), "option beta is -inf, expected a finite number"},
              {with(&Options::kernel, "Oracle"),  // names are exact
               "kernel 'Oracle' is unknown, expected one of " + names}});
}

// A kernel may refuse a problem when it is asked for by name; the planner then names its reason.
TEST(OptionErrors, RefusalGivesTheReason) {
  int refusals = 0;
  Request wide = Conv();  // groups of more channels than the direct kernel takes
  wide.inputs = {F32({2, 40, 5, 6}), F32({60, 20, 3, 3}), F32({60})};
  for (const KernelInfo& kernel : Kernels()) {
    for (Request request : {Conv(), ConvData(), ConvWeights(), wide}) {
      request.options.kernel = kernel.name;
      const Result<Plan> plan = request.Make();
      if (plan.ok()) {
        EXPECT_EQ(plan->kernel(), kernel.name);
        continue;
      }
      ++refusals;
      const std::string start =
          "kernel '" + std::string(kernel.name) + "' cannot run this problem: ";
      EXPECT_EQ(plan.status().message().substr(0, start.size()), start);
      EXPECT_GT(plan.status().message().size(), start.size());
    }
  }
  EXPECT_GT(refusals, 0);
}

// Runs a plan with a wrong set of pointers; the outputs must keep every byte.
class RunErrors : public testing::Test {
 protected:
  void Expect(const Plan& plan, std::vector<const void*> inputs, size_t outputs,
              const std::string& sentence, StatusCode code = kInvalidArgument,
              bool null_output = false) {
    SCOPED_TRACE(sentence);
    Bytes bytes = kUntouched;
    const std::vector<void*> pointers(outputs, null_output ? nullptr : bytes.data());
    Bytes workspace(static_cast<size_t>(plan.workspace_bytes()));
    const Status status = plan.Run(inputs, pointers, workspace.data());
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), sentence);
    EXPECT_EQ(bytes, kUntouched);
  }

  static Plan Made(const Request& request) {
    const Result<Plan> plan = request.Make();
    if (!plan.ok()) ADD_FAILURE() << plan.status().message();
    return *plan;
  }

  std::vector<float> zeros_ = std::vector<float>(4096);
  const void* const data_ = zeros_.data();
};

TEST_F(RunErrors, Inputs) {
  const Plan plan = Made(Conv());
  Expect(plan, {data_, data_, data_, data_}, 1, "Convolution was given 4 inputs, it has at most 3");
  Expect(plan, {}, 1, "input 0 'src' is a null pointer");
  Expect(plan, {data_}, 1, "input 1 'weights' is a null pointer");
  Expect(plan, {data_, nullptr, data_}, 1, "input 1 'weights' is a null pointer");
  Expect(plan, {data_, data_}, 1, "input 2 'bias' is a null pointer");
  Expect(Made(Conv().Inputs(2)), {data_, data_, data_}, 1,
         "input 2 'bias' is given, but the plan was made without it");
}

TEST_F(RunErrors, Outputs) {
  const Plan plan = Made(ConvWeights());
  const std::vector<int32_t> shape = {6, 2, 3, 3};
  const std::vector<const void*> inputs = {data_, data_, shape.data()};
  const std::string given = "ConvolutionBackwardWeights was given ";
  Expect(plan, inputs, 0, given + "0 outputs, the plan was made for 2");
  Expect(plan, inputs, 1, given + "1 outputs, the plan was made for 2");
  Expect(plan, inputs, 3, given + "3 outputs, the plan was made for 2");
  Expect(plan, inputs, 2, "output 0 'diff_weights' is a null pointer", kInvalidArgument, true);
  Bytes bytes = kUntouched;
  const std::vector<void*> second_is_null = {bytes.data(), nullptr};
  const Status status = plan.Run(inputs, second_is_null);
  EXPECT_EQ(status.message(), "output 1 'diff_bias' is a null pointer");
  EXPECT_EQ(bytes, kUntouched);
}

TEST_F(RunErrors, ShapeTensorDiffers) {
  const std::vector<int32_t> wrong = {6, 2, 3, 4};
  Expect(Made(ConvWeights().Input(2, {DataType::kS32, {4}, {}, {}})), {data_, data_, wrong.data()},
         2, "weights_shape is 6x2x3x4, the plan was made for 6x2x3x3", kInvalidShape);
  const std::vector<int64_t> wide = {6, 2, (int64_t{1} << 32) + 3, 3};  // 3 in its low half
  Expect(Made(ConvWeights().Input(2, {DataType::kS64, {4}, {}, {}})), {data_, data_, wide.data()},
         2, "weights_shape is 6x2x4294967299x3, the plan was made for 6x2x3x3", kInvalidShape);
  // Known values too: the caller may have changed them since.
  const std::vector<int32_t> negative = {2, 4, 5, -6};
  Expect(Made(ConvData()), {data_, data_, negative.data()}, 1,
         "dst_shape is 2x4x5x-6, the plan was made for 2x4x5x6", kInvalidShape);
}

// A shape tensor without a pointer would go unchecked: plan.h promises that Run fails on a missing
// pointer, and values that were not known when planning have to come from somewhere.
TEST_F(RunErrors, LateShapeTensorIsMissing) {
  Expect(Made(ConvWeights().Input(2, {DataType::kS32, {4}, {}, {}})), {data_, data_}, 2,
         "input 2 'weights_shape' is a null pointer");
}

TEST_F(RunErrors, Workspace) {
  int needing = 0;
  for (const KernelInfo& kernel : Kernels()) {
    Request request = Conv().Input(0, F32({2, 400, 50, 60})).Input(1, F32({600, 200, 3, 3}));
    request.Input(2, F32({600})).options.kernel = kernel.name;
    const Result<Plan> plan = request.Make();
    if (!plan.ok() || plan->workspace_bytes() == 0) continue;
    ++needing;
    Bytes bytes = kUntouched;
    const Status status = plan->Run({data_, data_, data_}, bytes.data(), nullptr);
    EXPECT_EQ(status.code(), kInvalidArgument);
    EXPECT_EQ(status.message(), "workspace is a null pointer, this plan needs " +
                                    std::to_string(plan->workspace_bytes()) + " bytes");
    EXPECT_EQ(bytes, kUntouched);
  }
  EXPECT_GT(needing, 0);
}

TEST_F(RunErrors, OneCallReportsPointers) {
  const Request r = Conv();
  std::vector<float> dst(360, 7.0f);
  const auto run = [&](const void* weights, void* output) {
    return convgrad::Run(
        {r.kind, r.attributes},
        {{data_, DataType::kF32, {2, 4, 5, 6}}, {weights, DataType::kF32, {6, 2, 3, 3}}},
        {{output, DataType::kF32, {2, 6, 5, 6}}});
  };
  EXPECT_EQ(run(nullptr, dst.data()).message(), "input 1 'weights' is a null pointer");
  EXPECT_EQ(run(data_, nullptr).message(), "output 0 'dst' is a null pointer");
  EXPECT_EQ(dst, std::vector<float>(360, 7.0f));
  EXPECT_TRUE(run(data_, dst.data()).ok());  // so that the two above fail for their reason
  EXPECT_EQ(dst, std::vector<float>(360, 0.0f));
}

// Calls `body` with room for 0, 1, 2... allocations until it succeeds; counts the failures.
int ExpectOutOfMemoryUntilOk(const std::function<Status()>& body) {
  for (int room = 0; room < 1000; ++room) {
    allocations_left = room;
    const Status status = body();
    allocations_left = -1;
    if (status.ok()) return room;
    EXPECT_EQ(status.code(), kOutOfMemory) << status.message();
    EXPECT_EQ(status.message(), "out of memory");
  }
  ADD_FAILURE() << "never succeeded";
  return 0;
}

TEST(OutOfMemory, Make) {
  const Request r = ConvWeights();
  const Operation operation{r.kind, r.attributes};
  const int failures =
      ExpectOutOfMemoryUntilOk([&] { return Plan::Make(operation, r.inputs, r.outputs).status(); });
  EXPECT_GT(failures, 10);
}

TEST(OutOfMemory, OneCall) {
  const Request r = Conv();
  const std::vector<float> zeros(240);
  std::vector<float> dst(360, 7.0f);
  const std::vector<ConstTensorView> inputs = {{zeros.data(), {2, 4, 5, 6}},
                                               {zeros.data(), {6, 2, 3, 3}}};
  const std::vector<TensorView> outputs = {{dst.data(), {2, 6, 5, 6}}};
  const Operation operation{r.kind, r.attributes};
  bool untouched = true;
  const int failures = ExpectOutOfMemoryUntilOk([&] {
    untouched = untouched && std::count(dst.begin(), dst.end(), 7.0f) == 360;
    return convgrad::Run(operation, inputs, outputs);
  });
  EXPECT_GT(failures, 10);
  EXPECT_TRUE(untouched) << "a run that failed has written";
  EXPECT_EQ(dst, std::vector<float>(360, 0.0f));
}

// plan.h: a run never allocates on success. A request that may fail quietly counts as well.
TEST(OutOfMemory, RunNeedsNoneUnlessItHasToComplain) {
  Request conv = Conv();
  conv.options.threads = CONVGRAD_TEST_THREADS;  // 1 where threads are std::thread's
  const Result<Plan> plan = conv.Make();
  ASSERT_TRUE(plan.ok());
  const std::vector<float> zeros(240);
  std::vector<float> dst(360, 7.0f);
  Bytes workspace(static_cast<size_t>(plan->workspace_bytes()));
  const auto run = [&](const float* weights) {
    allocations_left = 0;
    allocations_refused = 0;
    Status status = plan->Run({zeros.data(), weights, zeros.data()}, dst.data(), workspace.data());
    allocations_left = -1;
    return status;
  };
  const Status good = run(zeros.data());
  EXPECT_TRUE(good.ok()) << good.message();
  EXPECT_EQ(allocations_refused, 0);
  EXPECT_EQ(dst, std::vector<float>(360, 0.0f));
  const Status bad = run(nullptr);
  EXPECT_EQ(bad.code(), kOutOfMemory);
  EXPECT_EQ(bad.message(), "out of memory");
}

}  // namespace
}  // namespace convgrad
