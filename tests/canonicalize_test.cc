// The translation of step 3: the table of operations and passes, formats as strides, groups, ranks.
#include "spec/canonicalize.h"

#include <gtest/gtest.h>

#include "core/problem_text.h"

namespace convgrad {
namespace {

// N 2, IC 6, OC 4, G 2, src 9x8; Convolution with 3x2 taps, stride 2x1, pads 1x0.
Attributes ConvolutionAttributes(const char* data, const char* weights, const char* weights_name) {
  return {{"strides", {2, 1}},    {"pads_begin", {1, 0}}, {"pads_end", {1, 0}},
          {"dilations", {1, 2}},  {"groups", 2},          {"data_format", data},
          {weights_name, weights}};
}

Problem Translate(OpKind kind, const Attributes& attributes, std::vector<Dims> inputs,
                  Dims output) {
  std::vector<TensorDesc> descs;
  for (Dims& extents : inputs) descs.push_back({DataType::kF32, std::move(extents), {}, {}});
  const std::vector<TensorDesc> outputs = {{DataType::kF32, std::move(output), {}, {}}};
  Result<CheckedOperation> checked = Check({kind, attributes}, descs, outputs);
  EXPECT_TRUE(checked.ok()) << checked.status().message();
  return checked.ok() ? Canonicalize(*checked) : Problem();
}

const Dims kSrc = {2, 6, 9, 8}, kDst = {2, 4, 5, 6}, kWeights = {4, 3, 3, 2};
const char kGeometry[] = " f32 g2 n2 ci3 co2 in1x9x8 taps1x3x2 out1x5x6 s1x2x1 d1x1x2 p0x1x0";

TEST(Canonicalize, ConvolutionIsOneProblemInThreePasses) {
  const Attributes a = ConvolutionAttributes("NCX", "OIX", "weights_format");
  EXPECT_EQ(ToText(Translate(OpKind::kConvolution, a, {kSrc, kWeights}, kDst)),
            std::string("fprop") + kGeometry);
  EXPECT_EQ(ToText(Translate(OpKind::kConvolutionBackwardData, a, {kDst, kWeights}, kSrc)),
            std::string("dgrad") + kGeometry);
  EXPECT_EQ(ToText(Translate(OpKind::kConvolutionBackwardWeights, a, {kSrc, kDst}, kWeights)),
            std::string("wgrad") + kGeometry);
}

// With src and dst exchanged, and IOX weights where the convolution has OIX, ConvTranspose is the
// same problem, its strides included.
TEST(Canonicalize, ConvTransposeIsTheSameProblemExchanged) {
  const Attributes a = ConvolutionAttributes("NCX", "IOX", "weights_format");
  EXPECT_EQ(ToText(Translate(OpKind::kConvTranspose, a, {kDst, kWeights}, kSrc)),
            std::string("dgrad") + kGeometry);
  EXPECT_EQ(ToText(Translate(OpKind::kConvTransposeBackwardData, a, {kSrc, kWeights}, kDst)),
            std::string("fprop") + kGeometry);
  EXPECT_EQ(ToText(Translate(OpKind::kConvTransposeBackwardWeights, a, {kDst, kSrc}, kWeights)),
            std::string("wgrad") + kGeometry);
}

TEST(Canonicalize, FirstGenerationNamesAreTheSameProblems) {
  const Attributes a = ConvolutionAttributes("NCX", "OIX", "filter_format");
  EXPECT_EQ(ToText(Translate(OpKind::kConvolutionBackpropData, a, {kDst, kWeights}, kSrc)),
            std::string("dgrad") + kGeometry);
  EXPECT_EQ(ToText(Translate(OpKind::kConvolutionBackpropFilters, a, {kSrc, kDst}, kWeights)),
            std::string("wgrad") + kGeometry);
}

// w[g, co, ci, tap] at its place in memory, for each way to hold grouped ConvTranspose weights:
// here co are the 4 input channels and ci the 6 output channels of the transposed convolution.
TEST(Canonicalize, GroupedConvTransposeWeights) {
  struct Way {
    OpKind kind;
    const char* name;
    const char* format;
    Dims extents;
    WeightStrides strides;  // g, co, ci, {d, h, w}
  };
  for (const Way& way : {
           // (IC, OC / G, K): the group is the slow part of IC.
           Way{OpKind::kConvTransposeBackwardWeights,
               "weights_format",
               "IOX",
               {4, 3, 3, 2},
               {36, 18, 6, {6, 2, 1}}},
           // (IC / G, OC, K), as the documents say: the group is the slow part of OC.
           Way{OpKind::kConvTransposeBackwardWeights,
               "weights_format",
               "IOX",
               {2, 6, 3, 2},
               {18, 36, 6, {6, 2, 1}}},
           Way{OpKind::kConvTransposeBackwardWeights,
               "weights_format",
               "XOI",
               {3, 2, 3, 4},
               {2, 1, 4, {6, 24, 12}}},
           Way{OpKind::kConvTransposeBackwardWeights,
               "weights_format",
               "XOI",
               {3, 2, 6, 2},
               {6, 1, 2, {6, 24, 12}}},
           // "-1": (OC / G, IC, K) and (K, IC, OC / G).
           Way{OpKind::kConvTransposeBackpropFilters,
               "filter_format",
               "OIX",
               {3, 4, 3, 2},
               {12, 6, 24, {6, 2, 1}}},
           Way{OpKind::kConvTransposeBackpropFilters,
               "filter_format",
               "XIO",
               {3, 2, 4, 3},
               {6, 3, 1, {6, 24, 12}}},
       }) {
    const Problem p = Translate(way.kind, ConvolutionAttributes("NCX", way.format, way.name),
                                {kDst, kSrc}, way.extents);
    WeightStrides expected = way.strides;
    expected.s[0] = p.w.s[0];  // of an axis of extent 1
    EXPECT_EQ(p.w, expected) << way.format << " " << way.extents[0];
    EXPECT_EQ(p.groups, 2);
    EXPECT_EQ(p.co, 2);
    EXPECT_EQ(p.ci, 3);
  }
}

TEST(Canonicalize, FormatsAreStrides) {
  const Problem p =
      Translate(OpKind::kConvolution, ConvolutionAttributes("NXC", "XIO", "weights_format"),
                {{2, 9, 8, 6}, {3, 2, 3, 4}}, {2, 5, 6, 4});
  EXPECT_EQ(p.x.n, 9 * 8 * 6);
  EXPECT_EQ(p.x.c, 1);
  EXPECT_EQ(p.x.s[1], 8 * 6);
  EXPECT_EQ(p.x.s[2], 6);
  EXPECT_EQ(p.y.c, 1);
  EXPECT_EQ(p.y.s[2], 4);
  EXPECT_EQ(p.w.g, 2);  // two output channels further
  EXPECT_EQ(p.w.co, 1);
  EXPECT_EQ(p.w.ci, 4);
  EXPECT_EQ(p.w.s[2], 12);
  EXPECT_EQ(p.w.s[1], 24);
}

TEST(Canonicalize, LowerRanksHaveUnitAxes) {
  const Attributes one = {{"strides", {3}},   {"pads_begin", {2}},    {"pads_end", {0}},
                          {"dilations", {1}}, {"data_format", "NCX"}, {"weights_format", "OIX"}};
  const Problem p = Translate(OpKind::kConvolution, one, {{1, 2, 10}, {5, 2, 3}}, {1, 5, 4});
  EXPECT_EQ(p.axes[0], Axis());
  EXPECT_EQ(p.axes[1], Axis());
  EXPECT_EQ(p.axes[2], (Axis{10, 4, 3, 3, 1, 2}));
}

TEST(Canonicalize, BiasGradientSumsTheGradientOfDst) {
  for (bool transposed : {false, true}) {
    const std::vector<TensorDesc> inputs = {{DataType::kF32, transposed ? kDst : kSrc, {}, {}},
                                            {DataType::kF32, transposed ? kSrc : kDst, {}, {}}};
    const std::vector<TensorDesc> outputs = {{DataType::kF32, kWeights, {}, {}},
                                             {DataType::kF32, {transposed ? 6 : 4}, {3}, {}}};
    Result<CheckedOperation> checked = Check(
        {transposed ? OpKind::kConvTransposeBackwardWeights : OpKind::kConvolutionBackwardWeights,
         ConvolutionAttributes("NCX", transposed ? "IOX" : "OIX", "weights_format")},
        inputs, outputs);
    ASSERT_TRUE(checked.ok()) << checked.status().message();
    EXPECT_EQ(Canonicalize(*checked).bias, (Bias{true, transposed, 3}));
  }
}

}  // namespace
}  // namespace convgrad
