// Every sentence about shapes: channels and groups, batch, bias, the extents of an axis, an output
// that disagrees, sizes beyond 63 bits, strides and overlap. The rest is in error_test. Overflow
// cases are here too: they must end in a sentence or in the right answer, never in undefined
// behaviour, so this file is worth running under -fsanitize=address,undefined.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "convgrad/convgrad.hpp"

namespace convgrad {
namespace {

using enum OpKind;
using enum StatusCode;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

constexpr int64_t Power(int exponent) { return int64_t{1} << exponent; }

struct Request {
  OpKind kind;
  Attributes attributes;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;

  Result<Plan> Make() const { return Plan::Make({kind, attributes}, inputs, outputs); }
  Request& Set(std::string name, AttributeValue value) {
    attributes.Set(std::move(name), std::move(value));
    return *this;
  }
  Request& Input(size_t index, TensorDesc desc) {
    inputs[index] = std::move(desc);
    return *this;
  }
  Request& Outputs(std::vector<TensorDesc> descs) {
    outputs = std::move(descs);
    return *this;
  }
};

TensorDesc F32(Dims extents, Dims strides = {}) {
  return {DataType::kF32, std::move(extents), std::move(strides), {}};
}
Attributes Window(int64_t stride, int64_t groups) {
  return {{"strides", {stride, stride}}, {"pads_begin", {1, 1}}, {"pads_end", {1, 1}},
          {"dilations", {1, 1}},         {"groups", groups},     {"data_format", "NCX"}};
}

// N 2, IC 4, OC 6, groups 2, a 3x3 kernel over 5x6; stride 2 for ConvTranspose.
Request Conv() {
  return Request{kConvolution, Window(1, 2), {F32({2, 4, 5, 6}), F32({6, 2, 3, 3})}, {}}.Set(
      "weights_format", "OIX");
}
Request ConvData() {
  return Request{kConvolutionBackwardData, Window(1, 2), {F32({2, 6, 5, 6}), F32({6, 2, 3, 3})}, {}}
      .Set("weights_format", "OIX")
      .Set("dst_shape", {2, 4, 5, 6});
}
Request ConvWeights() {
  return Request{
      kConvolutionBackwardWeights, Window(1, 2), {F32({2, 4, 5, 6}), F32({2, 6, 5, 6})}, {}}
      .Set("weights_format", "OIX")
      .Set("weights_shape", {6, 2, 3, 3});
}
Request ConvT() {
  return Request{kConvTranspose, Window(2, 2), {F32({2, 4, 5, 6}), F32({4, 3, 3, 3})}, {}}.Set(
      "weights_format", "IOX");
}
Request ConvTData() {
  return Request{
      kConvTransposeBackwardData, Window(2, 2), {F32({2, 6, 9, 11}), F32({4, 3, 3, 3})}, {}}
      .Set("weights_format", "IOX");
}
Request ConvTWeights() {
  return Request{
      kConvTransposeBackwardWeights, Window(2, 2), {F32({2, 4, 5, 6}), F32({2, 6, 9, 11})}, {}}
      .Set("weights_format", "IOX")
      .Set("weights_shape", {4, 3, 3, 3});
}

TEST(ShapeErrors, StartFromLegalRequests) {
  for (const Request& request :
       {Conv(), ConvData(), ConvWeights(), ConvT(), ConvTData(), ConvTWeights()}) {
    EXPECT_TRUE(request.Make().ok()) << request.Make().status().message();
  }
}

void ExpectError(const Request& request, const std::string& sentence) {
  SCOPED_TRACE(sentence);
  const Result<Plan> plan = request.Make();
  ASSERT_FALSE(plan.ok()) << "it was planned";
  EXPECT_EQ(plan.status().code(), kInvalidShape);
  EXPECT_EQ(plan.status().message(), sentence);
}

struct Wrong {
  Request request;
  std::string sentence;
};

void ExpectEach(const std::vector<Wrong>& wrongs) {
  for (const Wrong& wrong : wrongs) ExpectError(wrong.request, wrong.sentence);
}

TEST(ChannelErrors, NotAMultipleOfGroups) {
  ExpectEach(
      {{Conv().Input(0, F32({2, 5, 5, 6})), "src has 5 channels, not a multiple of groups 2"},
       {ConvWeights().Input(1, F32({2, 7, 5, 6})),
        "diff_dst has 7 channels, not a multiple of groups 2"},
       {ConvData().Set("dst_shape", {2, 3, 5, 6}),
        "dst_shape has 3 channels, not a multiple of groups 2"},
       // Where dst is the output, its channels are those of the weights.
       {Conv().Input(1, F32({7, 2, 3, 3})), "weights dim 0 is 7, expected a multiple of groups 2"},
       {Conv().Set("groups", kMax),
        "src has 4 channels, not a multiple of groups 9223372036854775807"}});
}

TEST(ChannelErrors, WeightsDoNotFit) {
  ExpectEach(
      {{Conv().Input(1, F32({6, 4, 3, 3})),
        "weights dim 1 is 4, expected src channels 4 / groups 2 = 2"},
       {ConvData().Input(1, F32({8, 2, 3, 3})), "weights dim 0 is 8, expected diff_dst channels 6"},
       {ConvWeights().Set("weights_shape", {6, 3, 3, 3}),
        "weights_shape dim 1 is 3, expected src channels 4 / groups 2 = 2"},
       {ConvWeights().Set("weights_shape", {4, 2, 3, 3}),
        "weights_shape dim 0 is 4, expected diff_dst channels 6"},
       // XIO: the same channels are dims 2 and 3.
       {Conv().Set("weights_format", "XIO").Input(1, F32({3, 3, 4, 6})),
        "weights dim 2 is 4, expected src channels 4 / groups 2 = 2"}});
}

// Two shapes are legal for a grouped ConvTranspose, so the sentence has to mention both.
TEST(ChannelErrors, ConvTransposeWeightsDoNotFit) {
  ExpectEach({{ConvT().Input(1, F32({5, 4, 3, 3})),
               "weights dim 0 is 5, expected src channels 4; and with O counting the channels of "
               "all groups, weights dim 0 is 5, expected src channels 4 / groups 2 = 2"},
              {ConvT().Input(1, F32({2, 3, 3, 3})),  // (IC / groups, OC), but OC 3 is odd
               "weights dim 0 is 2, expected src channels 4; and with O counting the channels of "
               "all groups, weights dim 1 is 3, expected a multiple of groups 2"},
              {ConvTWeights().Set("weights_shape", {4, 6, 3, 3}),
               "weights_shape dim 1 is 6, expected diff_dst channels 6 / groups 2 = 3; and with O "
               "counting the channels of all groups, weights_shape dim 0 is 4, expected src "
               "channels 4 / groups 2 = 2"},
              {ConvTData().Input(1, F32({3, 3, 3, 3})),
               "weights dim 0 is 3, expected a multiple of groups 2; and with O counting the "
               "channels of all groups, weights dim 1 is 3, expected diff_dst channels 6"},
              // Without groups there is one shape only.
              {ConvT().Set("groups", 1).Input(1, F32({5, 3, 3, 3})),
               "weights dim 0 is 5, expected src channels 4"}});
  // The first generation has one shape, (OC / groups, IC) in OIX; the others are refused.
  Request filters = ConvTWeights();
  filters.kind = kConvTransposeBackpropFilters;
  filters.attributes = Window(2, 2);
  filters.Set("filter_format", "OIX");
  filters.Set("filter_shape", {3, 4, 3, 3});
  EXPECT_TRUE(filters.Make().ok()) << filters.Make().status().message();
  ExpectEach({{filters.Set("filter_shape", {6, 2, 3, 3}),
               "filter_shape dim 0 is 6, expected output_delta channels 6 / groups 2 = 3"},
              {filters.Set("filter_shape", {3, 2, 3, 3}),
               "filter_shape dim 1 is 2, expected input_forward channels 4"}});
}

TEST(ChannelErrors, TooMany) {
  ExpectError(
      ConvT().Input(1, F32({4, Power(62), 3, 3})),
      "weights dim 1 is 4611686018427387904 in each of 2 groups, more than 2^63 - 1 channels");
}

TEST(ShapeErrors, BatchAndBias) {
  ExpectEach({{ConvWeights().Input(1, F32({3, 6, 5, 6})),
               "diff_dst dim 0 is 3, expected the batch 2 of src"},
              {ConvData().Set("dst_shape", {1, 4, 5, 6}),
               "dst_shape dim 0 is 1, expected the batch 2 of diff_dst"},
              {ConvWeights().Outputs({{}, F32({4})}),
               "diff_bias dim 0 is 4, expected diff_dst channels 6"}});
  Request request = Conv();
  request.inputs.push_back(F32({4}));
  ExpectError(request, "bias dim 0 is 4, expected dst channels 6");
}

TEST(ShapeErrors, ShapeIsNeeded) {
  const auto sentence = [](std::string shape, std::string operation, int dim, std::string output) {
    return shape + " is needed: " + operation + " cannot infer dim " + std::to_string(dim) +
           " of " + output + "; give it as input, as attribute or as the output's own shape";
  };
  const Dims not_given(12, 0);
  const Request weights = ConvWeights().Set("weights_shape", not_given);
  const Request data = ConvData().Set("dst_shape", not_given);
  const std::string of_weights = "ConvolutionBackwardWeights";
  ExpectEach(
      {{weights, sentence("weights_shape", of_weights, 2, "diff_weights")},
       {Request(weights).Outputs({F32({6, 2, 3, -1})}),
        sentence("weights_shape", of_weights, 3, "diff_weights")},
       {Request(weights).Outputs({F32({3, -1, 2, 6})}).Set("weights_format", "XIO"),
        sentence("weights_shape", of_weights, 1, "diff_weights")},
       {data, sentence("dst_shape", "ConvolutionBackwardData", 2, "diff_src")},
       // output_padding would say which extent is meant; the specification asks for it anyway.
       {Request(data).Set("output_padding", {0, 0}).Outputs({F32({2, 4, kMin, 6})}),
        sentence("dst_shape", "ConvolutionBackwardData", 2, "diff_src")}});
  // Values that are known only when it runs are no shape to plan with.
  Request late = weights;
  late.inputs.push_back({DataType::kS32, {4}, {}, {}});
  ExpectError(late, sentence("weights_shape", of_weights, 2, "diff_weights"));
}

TEST(ShapeErrors, OutputDisagrees) {
  ExpectEach(
      {{Conv().Outputs({F32({2, 6, 5, 5})}),
        "dst dim 3 is 5, expected 6: dst is 2x6x5x5, it must be 2x6x5x6"},
       {ConvT().Outputs({F32({2, -1, 9, 12})}),  // legal for a gradient, not for the forward one
        "dst dim 3 is 12, expected 11: dst is 2x-1x9x12, it must be 2x6x9x11"},
       {ConvTData().Outputs({F32({1, 4, 5, 6})}),
        "diff_src dim 0 is 1, expected 2: diff_src is 1x4x5x6, it must be 2x4x5x6"},
       {ConvWeights().Outputs({F32({6, 2, 3, 2})}),
        "diff_weights dim 3 is 2, expected 3 as weights_shape says: diff_weights is 6x2x3x2, it "
        "must be 6x2x3x3"},
       {ConvData().Outputs({F32({2, 4, 5, 7})}),
        "diff_src dim 3 is 7, expected 6 as dst_shape says: diff_src is 2x4x5x7, it must be "
        "2x4x5x6"}});
}

TEST(AxisErrors, KernelDoesNotFit) {
  ExpectEach({{Conv().Input(1, F32({6, 2, 3, 9})),
               "kernel span 9 (9 taps, dilation 1) of weights dim 3 is larger than src dim 3 (6) + "
               "pads_begin 1 + pads_end 1"},
              {Conv().Set("dilations", {4, 1}),
               "kernel span 9 (3 taps, dilation 4) of weights dim 2 is larger than src dim 2 (5) + "
               "pads_begin 1 + pads_end 1"},
              {ConvTData().Input(0, F32({2, 6, 9, 1})).Set("auto_pad", "valid"),
               "kernel span 3 (3 taps, dilation 1) of weights dim 3 is larger than diff_dst dim 3 "
               "(1) + pads_begin 0 + pads_end 0 (from auto_pad)"},
              // All padding is legal for a Convolution, but `same` gives 0 / stride outputs.
              {Conv().Input(0, F32({2, 4, 0, 6})).Set("auto_pad", "same_upper"),
               "kernel span 3 (3 taps, dilation 1) of weights dim 2 is larger than src dim 2 (0) + "
               "pads_begin 1 + pads_end 1 (from auto_pad)"}});
}

TEST(AxisErrors, ExtentsDoNotRelate) {
  ExpectEach({{ConvWeights().Input(1, F32({2, 6, 5, 7})),
               "diff_dst dim 3 is 7, expected floor((src dim 3 (6) + pads_begin 1 + pads_end 1 - "
               "kernel span 3 (3 taps, dilation 1) of weights_shape dim 3) / stride 1) + 1 = 6"},
              {ConvData().Set("dst_shape", {2, 4, 6, 6}),
               "diff_dst dim 2 is 5, expected floor((dst_shape dim 2 (6) + pads_begin 1 + pads_end "
               "1 - kernel span 3 (3 taps, dilation 1) of weights dim 2) / stride 1) + 1 = 6"},
              {ConvTWeights().Input(1, F32({2, 6, 8, 11})),
               "src dim 2 is 5, expected floor((diff_dst dim 2 (8) + pads_begin 1 + pads_end 1 - "
               "kernel span 3 (3 taps, dilation 1) of weights_shape dim 2) / stride 2) + 1 = 4"},
              {ConvTWeights().Input(1, F32({2, 6, 9, 14})).Set("output_padding", {0, 1}),
               "src dim 3 is 6, expected floor((diff_dst dim 3 (14) + pads_begin 1 + pads_end 1 - "
               "kernel span 3 (3 taps, dilation 1) of weights_shape dim 3 - output_padding 1) / "
               "stride 2) + 1 = 7"}});
}

TEST(AxisErrors, OutputPaddingDoesNotFit) {
  ExpectEach({{ConvTData().Set("output_padding", {0, 1}),
               "output_padding 1 at entry 1 does not fit diff_dst dim 3 (11) + pads_begin 1 + "
               "pads_end 1 - kernel span 3 = 10 with stride 2"},
              {ConvTWeights().Set("output_padding", {9, 0}),
               "output_padding 9 at entry 0 does not fit diff_dst dim 2 (9) + pads_begin 1 + "
               "pads_end 1 - kernel span 3 = 8 with stride 2"}});
}

TEST(AxisErrors, TooSmall) {
  ExpectEach({{Conv().Input(1, F32({6, 2, 0, 3})), "weights dim 2 is 0, expected at least 1"},
              {ConvWeights().Set("weights_shape", {6, 2, 3, 0}),
               "weights_shape dim 3 is 0, expected at least 1"},
              {ConvData().Input(0, F32({2, 6, 5, 0})), "diff_dst dim 3 is 0, expected at least 1"},
              {ConvT().Input(0, F32({2, 4, 0, 6})), "src dim 2 is 0, expected at least 1"},
              {ConvTData().Input(0, F32({2, 6, 9, 0})), "diff_dst dim 3 is 0, expected at least 1"},
              {ConvT().Set("pads_begin", {6, 1}).Set("pads_end", {5, 1}),
               "dst dim 2 = stride 2 * (src dim 2 (5) - 1) + kernel span 3 - pads_begin 6 - "
               "pads_end 5 + output_padding 0 = 0, expected at least 1"}});
}

// Sizes ------------------------------------------------------------------------------------------

// One channel, one spatial axis: the smallest request that carries an extreme number.
Request Line(OpKind kind, Dims in0, Dims in1) {
  const bool transposed = kind == kConvTranspose || kind == kConvTransposeBackwardData ||
                          kind == kConvTransposeBackwardWeights;
  return Request{kind,
                 {{"strides", {1}},
                  {"pads_begin", {0}},
                  {"pads_end", {0}},
                  {"dilations", {1}},
                  {"data_format", "NCX"},
                  {"weights_format", transposed ? "IOX" : "OIX"}},
                 {F32(std::move(in0)), F32(std::move(in1))},
                 {}};
}

TEST(SizeErrors, MoreBytesThanAddresses) {
  const auto sentence = [](std::string name, std::string extents) {
    return name + " of " + extents + " f32 has more than 2^63 - 1 bytes";
  };
  const std::string big = std::to_string(Power(62)), half = std::to_string(Power(31));
  ExpectEach({{Line(kConvolution, {1, 1, Power(62)}, {1, 1, 1}), sentence("src", "1x1x" + big)},
              {Line(kConvolution, {Power(62), 1, 1}, {1, 1, 1}), sentence("src", big + "x1x1")},
              {Line(kConvolution, {Power(31), 1, Power(31)}, {1, 1, 1}),
               sentence("src", half + "x1x" + half)},
              // An empty axis does not hide the others: their strides would not fit.
              {Line(kConvolution, {0, 1, Power(62)}, {1, 1, 1}), sentence("src", "0x1x" + big)},
              {Line(kConvolution, {1, 1, Power(60)}, {4, 1, 1}),
               sentence("dst", "1x4x" + std::to_string(Power(60)))},
              {Line(kConvolution, {1, 1, 1}, {1, 1, Power(61)}).Set("pads_end", {Power(61)}),
               sentence("weights", "1x1x" + std::to_string(Power(61)))}});
  EXPECT_TRUE(Line(kConvolution, {1, 1, Power(61) - 1}, {1, 1, 1}).Make().ok());
  Request half_size = Line(kConvolution, {1, 1, Power(61)}, {1, 1, 1});
  for (TensorDesc& desc : half_size.inputs) desc.type = DataType::kBF16;
  EXPECT_TRUE(half_size.Make().ok()) << half_size.Make().status().message();
}

TEST(SizeErrors, StridesReachBeyondAddresses) {
  const auto sentence = [](std::string name, Dims strides) {
    std::string list;
    for (const int64_t stride : strides) list += (list.empty() ? "" : ",") + std::to_string(stride);
    return name + " of 1x2x3 with strides " + list + " spans more than 2^63 - 1 bytes";
  };
  const Request base = Line(kConvolution, {1, 2, 3}, {2, 2, 1});
  for (const Dims& strides : {Dims{6, kMax, 1},
                              {6, kMin, 1},
                              {6, 3, Power(60)},
                              {6, Power(61), 1},
                              {6, -Power(60), -Power(60)}}) {
    ExpectError(Request(base).Input(0, F32({1, 2, 3}, strides)), sentence("src", strides));
    ExpectError(Request(base).Outputs({F32({1, 2, 3}, strides)}), sentence("dst", strides));
  }
  // The stride of an axis of one element is never used.
  EXPECT_TRUE(Request(base).Outputs({F32({1, 2, 3}, {kMin, 3, 1})}).Make().ok());
  EXPECT_TRUE(Request(base).Outputs({F32({1, 2, 3}, {kMax, 3, 1})}).Make().ok());
}

TEST(SizeErrors, WindowDoesNotFit) {
  const std::string max = std::to_string(kMax);
  const Request conv = Line(kConvolution, {1, 1, 5}, {1, 1, 2});
  const Request transposed = Line(kConvTranspose, {1, 1, 2}, {1, 1, 2});
  ExpectEach(
      {{Request(conv).Set("dilations", {kMax}),
        "weights dim 2 is 2 with dilation " + max + ": the kernel's span does not fit in 64 bits"},
       {Request(transposed).Set("dilations", {kMax}),
        "weights dim 2 is 2 with dilation " + max + ": the kernel's span does not fit in 64 bits"},
       {Request(conv).Set("pads_begin", {kMax}),
        "src dim 2 (5) + pads_begin " + max + " + pads_end 0 does not fit in 64 bits"},
       {Request(conv).Set("pads_begin", {Power(62)}).Set("pads_end", {Power(62)}),
        "src dim 2 (5) + pads_begin 4611686018427387904 + pads_end 4611686018427387904 does not "
        "fit in 64 bits"},
       // `same` pads of a span of 2^63 - 1.
       {Request(conv).Set("dilations", {kMax - 1}).Set("auto_pad", "same_lower"),
        "src dim 2 (5) + pads_begin 4611686018427387903 + pads_end 4611686018427387903 (from "
        "auto_pad) does not fit in 64 bits"},
       {Request(transposed).Set("strides", {kMax}),
        "dst dim 2 = stride " + max +
            " * (src dim 2 (2) - 1) + kernel span 2 - pads_begin 0 - pads_end 0 + output_padding 0 "
            "does not fit in "
            "64 bits"},
       {Line(kConvTranspose, {1, 1, 3}, {1, 1, 2}).Set("strides", {Power(62)}),
        "dst dim 2 = stride 4611686018427387904 * (src dim 2 (3) - 1) + kernel span 2 - pads_begin "
        "0 - pads_end 0 + output_padding 0 does not fit in 64 bits"},
       {Request(transposed).Set("output_padding", {kMax}),
        "dst dim 2 = stride 1 * (src dim 2 (2) - 1) + kernel span 2 - pads_begin 0 - pads_end 0 + "
        "output_padding " +
            max + " does not fit in 64 bits"},
       {Request(transposed).Set("pads_begin", {kMax}).Set("pads_end", {kMax}),
        "dst dim 2 = stride 1 * (src dim 2 (2) - 1) + kernel span 2 - pads_begin " + max +
            " - pads_end " + max + " + output_padding 0 does not fit in 64 bits"}});
}

// Strides, dilations and pads that are absurd but legal: the extents are small.
TEST(Sizes, HugeAttributesOfASmallProblem) {
  const auto extent = [](const Request& request) {
    const Result<Plan> plan = request.Make();
    if (!plan.ok()) ADD_FAILURE() << plan.status().message();
    return plan.ok() ? plan->output().extents[2] : -1;
  };
  const Request conv = Line(kConvolution, {1, 1, 5}, {1, 1, 2});
  EXPECT_EQ(extent(Request(conv).Set("strides", {kMax})), 1);
  EXPECT_EQ(extent(Request(conv).Set("strides", {kMax}).Set("auto_pad", "same_upper")), 1);
  EXPECT_EQ(extent(Request(conv).Input(1, F32({1, 1, 1})).Set("dilations", {kMax})), 5);
  // The second tap is 2^62 away: one window, whose first tap lies 2^62 - 4 before src.
  EXPECT_EQ(extent(Request(conv).Set("dilations", {Power(62)}).Set("pads_begin", {Power(62) - 4})),
            1);
  EXPECT_EQ(extent(Line(kConvTranspose, {1, 1, 1}, {1, 1, 2}).Set("strides", {kMax})), 2);
  EXPECT_EQ(extent(Line(kConvTransposeBackwardData, {1, 1, 5}, {1, 1, 2}).Set("strides", {kMax})),
            1);
}

// 16 taps at 2^60 positions: more multiply-adds than fit in 63 bits.
TEST(Sizes, WorkBeyond64BitsIsCounted) {
  const Result<Plan> plan = Line(kConvolution, {1, 1, Power(60) + 15}, {1, 1, 16}).Make();
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->output().extents, (Dims{1, 1, Power(60)}));
  EXPECT_DOUBLE_EQ(plan->flops(), 2 * 16 * std::pow(2.0, 60));
}

// No channels divide evenly into any number of groups.
TEST(Sizes, ManyGroupsOfNoChannels) {
  const Request request = Line(kConvolution, {2, 0, 3}, {0, 0, 3}).Set("groups", Power(62));
  const Result<Plan> plan = request.Make();
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->output().extents, (Dims{2, 0, 1}));
  float untouched = 7;
  EXPECT_TRUE(plan->Run({&untouched, &untouched}, &untouched).ok());
  EXPECT_EQ(untouched, 7);
}

TEST(Sizes, HugeStrideRuns) {
  Request request = Line(kConvolutionBackwardWeights, {1, 5, 2}, {1, 1, 1})
                        .Set("data_format", "NXC")
                        .Set("strides", {kMax})
                        .Set("weights_shape", {1, 2, 3});
  const Result<Plan> plan = request.Make();
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::vector<float> src = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, diff_dst = {2};
  std::vector<float> diff_weights(6);
  std::vector<uint8_t> workspace(static_cast<size_t>(plan->workspace_bytes()));
  const Status status =
      plan->Run({src.data(), diff_dst.data()}, diff_weights.data(), workspace.data());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(diff_weights, (std::vector<float>{2, 6, 10, 4, 8, 12}));  // [i, k]
}

// An axis of one element is never stepped along, so its stride may be any number.
TEST(Sizes, UnusedStridesRun) {
  const Result<Plan> plan =
      Line(kConvolution, {1, 1, 5}, {1, 1, 1}).Outputs({F32({1, 1, 5}, {kMax, kMin, 1})}).Make();
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::vector<float> src = {1, 2, 3, 4, 5}, weights = {2};
  std::vector<float> dst(5);
  std::vector<uint8_t> workspace(static_cast<size_t>(plan->workspace_bytes()));
  const Status status = plan->Run({src.data(), weights.data()}, dst.data(), workspace.data());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(dst, (std::vector<float>{2, 4, 6, 8, 10}));
}

// Strides ----------------------------------------------------------------------------------------

// A 1x1 convolution of one channel writes an output of any shape; only its strides are in question.
Status WriteTo(const Dims& extents, const Dims& strides) {
  const size_t rank = extents.size();
  const Dims ones(rank - 2, 1), zeros(rank - 2, 0);
  Dims src = extents, weights(rank, 1);
  src[1] = 1;
  weights[0] = extents[1];
  return Request{kConvolution,
                 {{"strides", ones},
                  {"pads_begin", zeros},
                  {"pads_end", zeros},
                  {"dilations", ones},
                  {"data_format", "NCX"},
                  {"weights_format", "OIX"}},
                 {F32(src), F32(weights)},
                 {F32(extents, strides)}}
      .Make()
      .status();
}

std::string Text(const Dims& numbers, const std::string& separator) {
  std::string text;
  for (const int64_t n : numbers) text += (text.empty() ? "" : separator) + std::to_string(n);
  return text;
}

TEST(StrideErrors, Count) {
  ExpectEach({{Conv().Outputs({F32({2, 6, 5, 6}, {180, 30, 6})}),
               "dst has 3 strides (180,30,6), expected 4, one for each axis"},
              {Conv().Input(1, F32({6, 2, 3, 3}, {1})),
               "weights has 1 strides (1), expected 4, one for each axis"},
              {Conv().Outputs({F32({}, {1, 2, 3, 4, 5})}),
               "dst has 5 strides (1,2,3,4,5), expected 4, one for each axis"},
              {ConvWeights().Outputs({{}, F32({6}, {1, 1})}),
               "diff_bias has 2 strides (1,1), expected 1, one for each axis"}});
}

TEST(StrideErrors, OutputElementsShareMemory) {
  const std::pair<Dims, Dims> shared[] = {
      {{1, 2, 3}, {6, 2, 1}},         // the rows overlap by one
      {{1, 2, 3}, {6, 3, 0}},         // a broadcast axis
      {{2, 2, 3}, {0, 3, 1}},         // and an outer one
      {{1, 2, 3}, {6, 0, 0}},         //
      {{1, 2, 3}, {6, -2, 1}},        // 0 1 2 and -2 -1 0
      {{1, 3, 3}, {9, 1, 1}},         // a Hankel view
      {{1, 3, 4}, {0, 3, 2}},         // 3 * 2 == 2 * 3
      {{2, 2, 2}, {3, 2, 1}},         // 3 == 2 + 1
      {{1, 2, 2, 2}, {0, 5, 3, 2}},   // 5 == 3 + 2
      {{2, 2, 3, 3}, {17, 9, 3, 1}},  // the batch begins one early
      {{1, 2, Power(40)}, {0, Power(40) - 1, 1}},
  };
  for (const auto& [extents, strides] : shared) {
    const Status status = WriteTo(extents, strides);
    EXPECT_EQ(status.code(), kInvalidShape);
    EXPECT_EQ(status.message(), "dst of " + Text(extents, "x") + " with strides " +
                                    Text(strides, ",") +
                                    " has elements that share memory, an output must not");
  }
  ExpectError(ConvWeights().Outputs({{}, F32({6}, {0})}),
              "diff_bias of 6 with strides 0 has elements that share memory, an output must not");
}

TEST(Strides, OutputElementsAreDistinct) {
  const std::pair<Dims, Dims> distinct[] = {
      {{1, 2, 3}, {6, 3, 1}},     // dense
      {{1, 2, 3}, {8, 4, 1}},     // padded rows
      {{2, 2, 3}, {6, 1, 2}},     // channels last
      {{1, 2, 3}, {6, 3, 2}},     // interleaved: 0 2 4 and 3 5 7
      {{1, 3, 2}, {0, 2, 3}},     //
      {{1, 2, 3}, {6, -3, 1}},    // from the end
      {{2, 2, 3}, {-6, -3, -1}},  //
      {{1, 1, 3}, {0, 0, 1}},     // unused strides may be anything
      {{1, 1, 1}, {0, 0, 0}},     //
      {{0, 2, 3}, {0, 0, 0}},     // no elements at all
      {{1, 3, 3}, {0, 3, 2}},     // 3 * 2 == 2 * 3 would need a fourth element
      {{2, 2, 2}, {7, 2, 1}},     //
      {{1, 2, Power(40)}, {0, Power(40), 1}},
  };
  for (const auto& [extents, strides] : distinct) {
    const Status status = WriteTo(extents, strides);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Every verdict on small tensors against a list of all offsets.
TEST(Strides, OverlapIsExact) {
  std::mt19937 random(20240229);
  std::uniform_int_distribution<int64_t> extent(1, 4), stride(-9, 9);
  int shared = 0, distinct = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Dims extents = {extent(random), extent(random), extent(random)};
    const Dims strides = {stride(random), stride(random), stride(random)};
    std::unordered_set<int64_t> offsets;
    for (int64_t i = 0; i < extents[0]; ++i) {
      for (int64_t j = 0; j < extents[1]; ++j) {
        for (int64_t k = 0; k < extents[2]; ++k) {
          offsets.insert(i * strides[0] + j * strides[1] + k * strides[2]);
        }
      }
    }
    const bool ok = static_cast<int64_t>(offsets.size()) == extents[0] * extents[1] * extents[2];
    ++(ok ? distinct : shared);
    EXPECT_EQ(WriteTo(extents, strides).ok(), ok)
        << Text(extents, "x") << " strides " << Text(strides, ",");
  }
  EXPECT_GT(shared, 500);  // both answers were tried
  EXPECT_GT(distinct, 500);
}

// The exact search has a limit, and what cannot be shown in reasonable time is refused with its own
// sentence. These elements are distinct: with M = 10^7 an overlap needs M * (a + b + c) + 1009 * b
// + 2003 * c == 0 for some |a|, |b|, |c| < 400, so a + b + c == 0 and 2003 divides b.
TEST(StrideErrors, InterleavedTooDeeply) {
  const Dims extents = {400, 400, 400}, strides = {10000000, 10001009, 10002003};
  const Status status = WriteTo(extents, strides);
  EXPECT_EQ(status.code(), kInvalidShape);
  EXPECT_EQ(status.message(),
            "dst of 400x400x400 with strides 10000000,10001009,10002003 interleaves its axes too "
            "deeply to show that no elements share memory, expected an output whose axes nest");
}

TEST(Strides, InputElementsMayShareMemory) {
  EXPECT_TRUE(Conv().Input(0, F32({2, 4, 5, 6}, {0, 0, 0, 0})).Make().ok());
  EXPECT_TRUE(Conv().Input(1, F32({6, 2, 3, 3}, {0, 1, 1, 1})).Make().ok());
  EXPECT_TRUE(ConvWeights().Input(1, F32({2, 6, 5, 6}, {0, 1, 0, 0})).Make().ok());
  Request request = Conv();
  request.inputs.push_back(F32({6}, {0}));
  EXPECT_TRUE(request.Make().ok());
}

// convgrad::Run reads a shape tensor before it is known to be dense; one that repeats a single
// element must not be read past it (AddressSanitizer sees it).
TEST(StrideErrors, ShapeTensorIsNotReadBeyondItsElement) {
  const Request r = ConvWeights();
  const std::vector<int32_t> one = {6};
  const std::vector<float> zeros(360);
  std::vector<float> diff(108, 7.0f);
  const Status status = convgrad::Run({r.kind, r.attributes},
                                      {{zeros.data(), DataType::kF32, {2, 4, 5, 6}},
                                       {zeros.data(), DataType::kF32, {2, 6, 5, 6}},
                                       {one.data(), DataType::kS32, {4}, {0}}},
                                      {{diff.data(), DataType::kF32, {6, 2, 3, 3}}});
  EXPECT_EQ(status.code(), kInvalidShape);
  EXPECT_EQ(status.message(), "weights_shape has stride 0, a shape tensor is dense");
  EXPECT_EQ(diff, std::vector<float>(108, 7.0f));
}

}  // namespace
}  // namespace convgrad
