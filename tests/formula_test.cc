// The yardstick itself, held against numbers worked out by hand and against identities that the
// specification implies. Knows nothing of the library: it is built from tools/formula.cc alone.
#include "tools/formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace convgrad::tools {
namespace {

using enum OpKind;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Attributes Ncx(Dims strides, Dims pads_begin, Dims pads_end, Dims dilations) {
  return Attributes({{"strides", std::move(strides)},
                     {"pads_begin", std::move(pads_begin)},
                     {"pads_end", std::move(pads_end)},
                     {"dilations", std::move(dilations)},
                     {"data_format", "NCX"}});
}

Attributes Line(int64_t stride, int64_t pad_begin = 0, int64_t pad_end = 0, int64_t dilation = 1) {
  return Ncx({stride}, {pad_begin}, {pad_end}, {dilation});
}

TensorDesc Out(Dims extents) { return TensorDesc{DataType::kF32, std::move(extents), {}, {}}; }

int64_t NumElements(const Dims& extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

Dims IndexOf(int64_t element, const Dims& extents) {
  Dims index(extents.size());
  for (size_t a = extents.size(); a-- > 0; element /= extents[a]) index[a] = element % extents[a];
  return index;
}

// All elements of output 0, last axis fastest; empty, with a failure, where Make refuses.
Doubles Evaluate(OpKind kind, const Attributes& attributes, std::vector<ConstTensorView> inputs,
                 const Dims& extents) {
  const Result<Formula> formula =
      Formula::Make(Operation{kind, attributes}, std::move(inputs), Out(extents));
  if (!formula.ok()) {
    ADD_FAILURE() << formula.status().message();
    return {};
  }
  Doubles values;
  for (int64_t e = 0; e < NumElements(extents); ++e) {
    values.push_back(formula->At(IndexOf(e, extents)).value);
  }
  return values;
}

// One batch, one channel, one spatial axis.
ConstTensorView Row(const Floats& data) {
  return ConstTensorView(data.data(), {1, 1, static_cast<int64_t>(data.size())});
}

// For the six kinds of this generation.
Doubles EvaluateRow(OpKind kind, const Attributes& attributes, const Floats& in0, const Floats& in1,
                    int64_t extent) {
  const bool transposed = kind == kConvTranspose || kind == kConvTransposeBackwardData ||
                          kind == kConvTransposeBackwardWeights;
  Attributes all = attributes;
  all.Set("weights_format", transposed ? "IOX" : "OIX");
  return Evaluate(kind, all, {Row(in0), Row(in1)}, {1, 1, extent});
}

// Small integers, so that every sum is exact whatever its order.
Floats Integers(int64_t count, uint32_t seed) {
  Floats data(static_cast<size_t>(count));
  for (float& value : data) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(seed >> 24) % 7 - 3);
  }
  return data;
}

double Dot(const Floats& a, const Doubles& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t e = 0; e < a.size() && e < b.size(); ++e) sum += a[e] * b[e];
  return sum;
}

TEST(FormulaByHand, SixKindsOnOneRow) {
  EXPECT_EQ(EvaluateRow(kConvolution, Line(1), {1, 2, 3}, {1, 10}, 2), (Doubles{21, 32}));
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardData, Line(1), {1, 2}, {1, 10}, 3),
            (Doubles{1, 12, 20}));
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardWeights, Line(1), {1, 2, 3}, {1, 2}, 2),
            (Doubles{5, 8}));
  EXPECT_EQ(EvaluateRow(kConvTranspose, Line(2), {1, 2}, {1, 10}, 4), (Doubles{1, 10, 2, 20}));
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardData, Line(2), {1, 2, 3, 4}, {1, 10}, 2),
            (Doubles{21, 43}));
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardWeights, Line(2), {1, 2}, {1, 2, 3, 4}, 2),
            (Doubles{7, 10}));
}

TEST(FormulaByHand, FirstGenerationOfConvolutionKeepsItsFilterAxes) {
  // Two channels in, one out, one pixel: the O axis comes first in OIX, last in XIO.
  const Floats input{1, 10}, delta{3}, filter{5, 7};
  Attributes attributes = Line(1).Set("filter_format", "OIX");
  EXPECT_EQ(Evaluate(kConvolutionBackpropFilters, attributes,
                     {{input.data(), {1, 2, 1}}, {delta.data(), {1, 1, 1}}}, {1, 2, 1}),
            (Doubles{3, 30}));
  EXPECT_EQ(Evaluate(kConvolutionBackpropData, attributes,
                     {{delta.data(), {1, 1, 1}}, {filter.data(), {1, 2, 1}}}, {1, 2, 1}),
            (Doubles{15, 21}));
  EXPECT_EQ(Evaluate(kConvolutionBackpropData, Line(1),
                     {{delta.data(), {1, 1, 1}}, {filter.data(), {1, 2, 1}}}, {1, 2, 1}),
            (Doubles{15, 21}));
}

TEST(FormulaByHand, FirstGenerationOfConvTransposeHasTheOtherChannelOrder) {
  // Two channels in, three out: filter_delta[i, o] = input[i] * delta[o].
  const Floats input{1, 10}, delta{1, 2, 3};
  const std::vector<ConstTensorView> inputs{{input.data(), {1, 2, 1}}, {delta.data(), {1, 3, 1}}};
  Attributes oix = Line(1).Set("filter_format", "OIX");
  EXPECT_EQ(Evaluate(kConvTransposeBackpropFilters, oix, inputs, {3, 2, 1}),
            (Doubles{1, 10, 2, 20, 3, 30}));
  EXPECT_EQ(Evaluate(kConvTransposeBackpropFilters, Line(1), inputs, {1, 2, 3}),
            (Doubles{1, 2, 3, 10, 20, 30}));
  Attributes iox = Line(1).Set("weights_format", "IOX");
  EXPECT_EQ(Evaluate(kConvTransposeBackwardWeights, iox, inputs, {2, 3, 1}),
            (Doubles{1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(Evaluate(kConvTransposeBackwardWeights, Line(1), inputs, {1, 3, 2}),
            (Doubles{1, 10, 2, 20, 3, 30}));

  // input_delta[i] = sum_o delta[o] * filter: 1*1 + 2*100 + 3*10000 and 1*2 + 2*200 + 3*20000.
  const Floats filter{1, 2, 100, 200, 10000, 20000};
  EXPECT_EQ(
      Evaluate(kConvTransposeBackpropData, oix, {inputs[1], {filter.data(), {3, 2, 1}}}, {1, 2, 1}),
      (Doubles{30201, 60402}));
}

TEST(FormulaByHand, TermsCountOnlyProductsAndIncludeBias) {
  const Floats src{1, -2, 3}, weights{1, 10}, bias{-5};
  Attributes attributes = Line(1, 1).Set("weights_format", "OIX");
  const Result<Formula> formula =
      Formula::Make(Operation{kConvolution, attributes},
                    {Row(src), Row(weights), {bias.data(), {1}}}, Out({1, 1, 3}));
  ASSERT_TRUE(formula.ok()) << formula.status().message();
  const Term edge = formula->At(Dims{0, 0, 0});
  EXPECT_EQ(edge.value, 5);
  EXPECT_EQ(edge.magnitude, 15);
  EXPECT_EQ(edge.count, 1);
  const Term inside = formula->At(Dims{0, 0, 1});
  EXPECT_EQ(inside.value, -24);
  EXPECT_EQ(inside.magnitude, 26);
  EXPECT_EQ(inside.count, 2);
  EXPECT_TRUE(std::isnan(formula->At(Dims{0, 0, 3}).value));
  EXPECT_TRUE(std::isnan(formula->At(Dims{0, 0, -1}).value));
  EXPECT_TRUE(std::isnan(formula->At(Dims{0, 0}).value));
  EXPECT_TRUE(std::isnan(formula->BiasAt(0).value));
}

TEST(FormulaByHand, ConvTransposeAddsBiasToEveryPixel) {
  const Floats src{1, 2}, weights{1, 10}, bias{100};
  EXPECT_EQ(Evaluate(kConvTranspose, Line(3).Set("weights_format", "IOX"),
                     {Row(src), Row(weights), {bias.data(), {1}}}, {1, 1, 5}),
            (Doubles{101, 110, 100, 102, 120}));
}

TEST(FormulaByHand, DiffBiasSumsBatchAndPixels) {
  // NXC, the default: (2 images, 2 pixels, 2 channels).
  const Floats src(4, 1.0f), diff_dst{1, -10, 2, 20, 3, 30, 4, 40};
  const Attributes attributes(
      {{"strides", {1}}, {"pads_begin", {0}}, {"pads_end", {0}}, {"dilations", {1}}});
  for (const OpKind kind : {kConvolutionBackwardWeights, kConvTransposeBackwardWeights,
                            kConvolutionBackpropFilters, kConvTransposeBackpropFilters}) {
    const Dims extents = kind == kConvTransposeBackwardWeights ? Dims{1, 2, 1} : Dims{1, 1, 2};
    const Result<Formula> formula =
        Formula::Make(Operation{kind, attributes},
                      {{src.data(), {2, 2, 1}}, {diff_dst.data(), {2, 2, 2}}}, Out(extents));
    ASSERT_TRUE(formula.ok()) << formula.status().message();
    EXPECT_EQ(formula->BiasAt(0).value, 10);
    EXPECT_EQ(formula->BiasAt(1).value, 80);
    EXPECT_EQ(formula->BiasAt(1).magnitude, 100);
    EXPECT_EQ(formula->BiasAt(1).count, 4);
    EXPECT_TRUE(std::isnan(formula->BiasAt(2).value));
  }
}

TEST(FormulaByHand, TwoAndThreeSpatialAxes) {
  const Floats src{1, 2, 3, 4, 5, 6, 7, 8, 9}, weights{1, 10, 100, 1000};
  Attributes plane = Ncx({1, 1}, {0, 0}, {0, 0}, {1, 1}).Set("weights_format", "OIX");
  EXPECT_EQ(Evaluate(kConvolution, plane,
                     {{src.data(), {1, 1, 3, 3}}, {weights.data(), {1, 1, 2, 2}}}, {1, 1, 2, 2}),
            (Doubles{5421, 6532, 8754, 9865}));
  // Rows: stride 2, no padding. Columns: stride 1, one pixel of padding in front.
  plane = Ncx({2, 1}, {0, 1}, {0, 0}, {1, 1}).Set("weights_format", "OIX");
  EXPECT_EQ(Evaluate(kConvolution, plane,
                     {{src.data(), {1, 1, 3, 3}}, {weights.data(), {1, 1, 1, 2}}}, {1, 1, 2, 3}),
            (Doubles{10, 21, 32, 70, 87, 98}));
  Attributes volume = Ncx({1, 1, 1}, {}, {}, {1, 1, 1}).Set("weights_format", "OIX");
  EXPECT_EQ(
      Evaluate(kConvolution, volume,
               {{src.data(), {1, 1, 2, 2, 2}}, {weights.data(), {1, 1, 2, 1, 1}}}, {1, 1, 1, 2, 2}),
      (Doubles{51, 62, 73, 84}));
}

TEST(FormulaPads, SameAndValidOfConvolution) {
  const auto dst = [](const char* auto_pad, int64_t stride, const Floats& src, int64_t extent) {
    return EvaluateRow(kConvolution, Line(stride, 7, 7).Set("auto_pad", auto_pad), src, {1, 10},
                       extent);
  };
  EXPECT_EQ(dst("same_upper", 1, {1, 2, 3, 4}, 4), (Doubles{21, 32, 43, 4}));
  EXPECT_EQ(dst("same_lower", 1, {1, 2, 3, 4}, 4), (Doubles{10, 21, 32, 43}));
  EXPECT_EQ(dst("valid", 1, {1, 2, 3, 4}, 3), (Doubles{21, 32, 43}));
  // 5 mod 2 = 1: one pixel of padding; 4 mod 2 = 0: none.
  EXPECT_EQ(dst("SAME_UPPER", 2, {1, 2, 3, 4, 5}, 3), (Doubles{21, 43, 5}));
  EXPECT_EQ(dst("Same_Lower", 2, {1, 2, 3, 4, 5}, 3), (Doubles{10, 32, 54}));
  EXPECT_EQ(dst("SAME_LOWER", 2, {1, 2, 3, 4}, 2), (Doubles{21, 43}));
}

TEST(FormulaPads, SameOfConvolutionGradientsTakesTheExtentOfSrc) {
  const Attributes lower = Line(2).Set("auto_pad", "same_lower");
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardData, lower, {1, 2, 3}, {1, 10}, 5),
            (Doubles{10, 2, 20, 3, 30}));
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardData, lower, {1, 2, 3}, {1, 10}, 6),
            (Doubles{1, 10, 2, 20, 3, 30}));
  // Tap 0 reads src at -1, 1, 3 and tap 1 at 0, 2, 4.
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardWeights, lower, {1, 2, 3, 4, 5}, {1, 10, 100}, 2),
            (Doubles{420, 531}));
}

TEST(FormulaPads, SameOfConvTransposeDependsOnSpanAndStrideAlone) {
  const Attributes upper = Line(2).Set("auto_pad", "same_upper");
  const Attributes lower = Line(2).Set("auto_pad", "same_lower");
  EXPECT_EQ(EvaluateRow(kConvTranspose, upper, {1, 2}, {1, 10, 100}, 4), (Doubles{1, 10, 102, 20}));
  EXPECT_EQ(EvaluateRow(kConvTranspose, lower, {1, 2}, {1, 10, 100}, 4),
            (Doubles{10, 102, 20, 200}));
  // Neither 3 nor 7 is a multiple of the stride; PB is 1 all the same: diff_dst at 2x + k - 1.
  const Floats ramp{1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardData, lower, ramp, {1, 10, 100, 1000}, 3),
            (Doubles{3210, 5432, 7654}));
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardWeights, lower, {1, 10, 100}, ramp, 4),
            (Doubles{420, 531, 642, 753}));
}

TEST(FormulaPads, SerializedAndEmptyLists) {
  const Dims none(12, 0);
  Dims ones(12, 0);
  ones[0] = 1;
  EXPECT_EQ(EvaluateRow(kConvolution, Ncx(ones, none, {}, ones), {1, 2, 3}, {1, 10}, 2),
            (Doubles{21, 32}));
  EXPECT_EQ(EvaluateRow(kConvolution, Ncx({1}, ones, none, {1}), {1, 2, 3}, {1, 10}, 3),
            (Doubles{10, 21, 32}));
}

TEST(FormulaExtents, OutputPadding) {
  const auto padded = [](int64_t stride, int64_t extra) {
    return Line(stride).Set("output_padding", {extra});
  };
  const Doubles remainder{1, 10, 2, 20, 0};
  EXPECT_EQ(EvaluateRow(kConvTranspose, padded(3, 2), {1, 2}, {1, 10}, 7),
            (Doubles{1, 10, 0, 2, 20, 0, 0}));
  EXPECT_EQ(EvaluateRow(kConvTranspose, padded(1, 2), {1, 2}, {1, 10}, 5),
            (Doubles{1, 12, 20, 0, 0}));
  // Pixels that the padding adds may be reached by taps that PE would have cut off.
  EXPECT_EQ(EvaluateRow(kConvTranspose, Line(2, 0, 1).Set("output_padding", {1}), {1, 2},
                        {1, 10, 100}, 5),
            (Doubles{1, 10, 102, 20, 200}));
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardData, padded(1, 2), {1, 2, 3, 4, 5}, {1, 10}, 2),
            (Doubles{21, 32}));
  EXPECT_EQ(
      EvaluateRow(kConvTransposeBackwardWeights, padded(3, 2), {1, 2}, {1, 2, 3, 4, 5, 6, 7}, 2),
      (Doubles{9, 12}));
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardData, padded(2, 1), {1, 2}, {1, 10}, 5), remainder);
  // Without the attribute a gradient accepts every remainder.
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardData, Line(2), {1, 2}, {1, 10}, 5), remainder);
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardData, Line(2), {1, 2, 3, 4, 5}, {1, 10}, 2),
            (Doubles{21, 43}));
}

TEST(FormulaExtents, DilationWithStride) {
  const Attributes wide = Line(2, 0, 0, 3);
  const Floats ramp{1, 2, 3, 4, 5, 6, 7, 8};
  const Doubles gathered{41, 63, 85}, scattered{1, 0, 2, 10, 3, 20, 0, 30};
  EXPECT_EQ(EvaluateRow(kConvolution, wide, ramp, {1, 10}, 3), gathered);
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardData, wide, {1, 2, 3}, {1, 10}, 8), scattered);
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardWeights, wide, ramp, {1, 10, 100}, 2),
            (Doubles{531, 864}));
  EXPECT_EQ(EvaluateRow(kConvTranspose, wide, {1, 2, 3}, {1, 10}, 8), scattered);
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardData, wide, ramp, {1, 10}, 3), gathered);
  EXPECT_EQ(EvaluateRow(kConvTransposeBackwardWeights, wide, {1, 10, 100}, ramp, 2),
            (Doubles{531, 864}));
}

TEST(FormulaExtents, LegalCorners) {
  // A window wholly inside the padding; a stride larger than the kernel.
  EXPECT_EQ(EvaluateRow(kConvolution, Line(2, 3, 2), {1, 2}, {1, 10}, 3), (Doubles{0, 10, 2}));
  EXPECT_EQ(EvaluateRow(kConvolution, Line(3), {1, 2, 3, 4}, {10}, 2), (Doubles{10, 40}));
  // A filter larger than the unpadded input, two of whose taps touch no data.
  EXPECT_EQ(EvaluateRow(kConvolution, Line(1, 1, 1), {5}, {1, 10, 100}, 1), (Doubles{50}));
  EXPECT_EQ(EvaluateRow(kConvolutionBackwardWeights, Line(1, 1, 1), {5}, {3}, 3),
            (Doubles{0, 15, 0}));
  const ConstTensorView no_images(nullptr, DataType::kF32, {0, 1, 3});
  Attributes attributes = Line(1, 1, 1).Set("weights_format", "OIX");
  EXPECT_EQ(Evaluate(kConvolutionBackwardWeights, attributes, {no_images, no_images}, {1, 1, 3}),
            (Doubles{0, 0, 0}));
}

TEST(FormulaExtents, ExtremeAttributesDoNotOverflow) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(EvaluateRow(kConvolution, Line(kHuge, 0, kHuge, kHuge), {3}, {1, 10}, 1), (Doubles{3}));
  EXPECT_EQ(EvaluateRow(kConvolution, Line(kHuge, kHuge, 0, kHuge), {3}, {1, 10}, 1),
            (Doubles{30}));
  EXPECT_EQ(
      EvaluateRow(kConvolutionBackwardData, Line(kHuge, kHuge, kHuge, kHuge), {3, 5}, {1, 10}, 1),
      (Doubles{35}));
  EXPECT_EQ(EvaluateRow(kConvTranspose, Line(kHuge, kHuge, 0, 1), {3, 5}, {10}, 1), (Doubles{50}));
  // E is beyond s64, and so is the padding that it asks for: taps at -E/2 and +E/2.
  const Attributes same = Line(1, 0, 0, kHuge).Set("auto_pad", "same_upper");
  EXPECT_EQ(EvaluateRow(kConvolution, same, {3}, {1, 10, 100}, 1), (Doubles{30}));
  EXPECT_EQ(EvaluateRow(kConvTranspose, same, {3}, {1, 10, 100}, 1), (Doubles{30}));
}

TEST(FormulaGroups, EachGroupSeesItsOwnChannels) {
  // Two groups, two channels in and one out each: weights (OC 2, ICg 2, 1).
  const Floats src{1, 2, 3, 4}, weights{1, 10, 100, 1000}, diff_dst{1, 2};
  Attributes attributes = Line(1).Set("weights_format", "OIX").Set("groups", 2);
  const ConstTensorView src_view(src.data(), {1, 4, 1}), weights_view(weights.data(), {2, 2, 1}),
      diff_dst_view(diff_dst.data(), {1, 2, 1});
  EXPECT_EQ(Evaluate(kConvolution, attributes, {src_view, weights_view}, {1, 2, 1}),
            (Doubles{21, 4300}));
  EXPECT_EQ(
      Evaluate(kConvolutionBackwardData, attributes, {diff_dst_view, weights_view}, {1, 4, 1}),
      (Doubles{1, 10, 200, 2000}));
  EXPECT_EQ(Evaluate(kConvolutionBackwardWeights, attributes, {src_view, diff_dst_view}, {2, 2, 1}),
            (Doubles{1, 2, 6, 8}));
}

TEST(FormulaGroups, ConvTransposeByHandInAllItsShapes) {
  // Two groups, one channel in and two out each: dst[g*2 + o] = src[g] * w[g, o].
  const Floats src{3, 5}, by_group{1, 10, 100, 1000};
  const ConstTensorView src_view(src.data(), {1, 2, 1});
  const Doubles expected{3, 30, 500, 5000};
  Attributes iox = Line(1).Set("weights_format", "IOX").Set("groups", 2);
  Attributes xoi = Line(1).Set("weights_format", "XOI").Set("groups", 2);
  const auto dst = [&](const Attributes& attributes, const Floats& weights, const Dims& extents) {
    return Evaluate(kConvTranspose, attributes, {src_view, {weights.data(), extents}}, {1, 4, 1});
  };
  EXPECT_EQ(dst(iox, by_group, {2, 2, 1}), expected);            // (IC, OCg, K)
  EXPECT_EQ(dst(iox, by_group, {1, 4, 1}), expected);            // (ICg, OC, K)
  EXPECT_EQ(dst(xoi, {1, 100, 10, 1000}, {1, 2, 2}), expected);  // (K, OCg, IC)
  EXPECT_EQ(dst(xoi, by_group, {1, 4, 1}), expected);            // (K, OC, ICg)
}

// w[g, i, o] of the shape (IC, OCg) = (4, 3), two groups, each entry `taps` values, as (ICg, OC).
Floats GroupsToColumns(const Floats& rows, size_t taps) {
  Floats columns(rows.size());
  for (size_t e = 0; e < rows.size(); ++e) {
    const size_t ic = e / (3 * taps), rest = e % (3 * taps);
    columns[((ic % 2) * 2 + ic / 2) * 3 * taps + rest] = rows[e];
  }
  return columns;
}

TEST(FormulaGroups, BothShapesOfConvTransposeWeightsGiveTheSameNumbers) {
  const Floats src = Integers(2 * 4 * 3, 1), diff_dst = Integers(2 * 6 * 6, 2);
  const Floats rows = Integers(4 * 3 * 2, 3), columns = GroupsToColumns(rows, 2);
  const Dims rows_shape{4, 3, 2}, columns_shape{2, 6, 2};
  const ConstTensorView src_view(src.data(), {2, 4, 3}), diff_dst_view(diff_dst.data(), {2, 6, 6});
  Attributes attributes = Line(2).Set("weights_format", "IOX").Set("groups", 2);
  for (const auto& [kind, in0, out] :
       {std::tuple{kConvTranspose, src_view, Dims{2, 6, 6}},
        std::tuple{kConvTransposeBackwardData, diff_dst_view, Dims{2, 4, 3}}}) {
    EXPECT_EQ(Evaluate(kind, attributes, {in0, {rows.data(), rows_shape}}, out),
              Evaluate(kind, attributes, {in0, {columns.data(), columns_shape}}, out));
  }
  const Doubles from_rows =
      Evaluate(kConvTransposeBackwardWeights, attributes, {src_view, diff_dst_view}, rows_shape);
  const Doubles from_columns =
      Evaluate(kConvTransposeBackwardWeights, attributes, {src_view, diff_dst_view}, columns_shape);
  const Floats permuted = GroupsToColumns(Floats(from_rows.begin(), from_rows.end()), 2);
  EXPECT_EQ(from_columns, Doubles(permuted.begin(), permuted.end()));
}

TEST(FormulaLayouts, FormatsAreOnlyOrdersOfAxes) {
  // NCX (2, 4, 3, 5) data, its NXC transpose by strides, and OIX weights read as XIO by strides.
  const Floats src = Integers(2 * 4 * 3 * 5, 1), weights = Integers(6 * 2 * 2 * 3, 2);
  Attributes ncx = Ncx({1, 2}, {1, 0}, {0, 1}, {1, 1}).Set("groups", 2);
  ncx.Set("weights_format", "OIX");
  Attributes nxc = ncx;
  nxc.Set("data_format", "NXC").Set("weights_format", "XIO");
  const Doubles by_ncx =
      Evaluate(kConvolution, ncx, {{src.data(), {2, 4, 3, 5}}, {weights.data(), {6, 2, 2, 3}}},
               {2, 6, 3, 2});
  const Result<Formula> by_nxc = Formula::Make(
      Operation{kConvolution, nxc},
      {{src.data(), {2, 3, 5, 4}, {60, 5, 1, 15}}, {weights.data(), {2, 3, 2, 6}, {3, 1, 6, 12}}},
      Out({2, 3, 2, 6}));
  ASSERT_TRUE(by_nxc.ok()) << by_nxc.status().message();
  for (size_t e = 0; e < by_ncx.size(); ++e) {
    const Dims at = IndexOf(static_cast<int64_t>(e), {2, 6, 3, 2});
    EXPECT_EQ(by_nxc->At(Dims{at[0], at[2], at[3], at[1]}).value, by_ncx[e]);
  }
}

TEST(FormulaLayouts, NegativeZeroAndUnalignedStrides) {
  const Floats reversed{3, 2, 1}, weights{1, 10}, seven{7};
  Attributes attributes = Line(1).Set("weights_format", "OIX");
  EXPECT_EQ(Evaluate(kConvolution, attributes,
                     {{reversed.data() + 2, {1, 1, 3}, {0, 0, -1}}, Row(weights)}, {1, 1, 2}),
            (Doubles{21, 32}));
  EXPECT_EQ(Evaluate(kConvolution, attributes, {{seven.data(), {1, 1, 3}, {0, 0, 0}}, Row(weights)},
                     {1, 1, 2}),
            (Doubles{77, 77}));
  std::vector<unsigned char> bytes(1 + 3 * sizeof(float));
  const Floats src{1, 2, 3};
  std::memcpy(bytes.data() + 1, src.data(), 3 * sizeof(float));
  EXPECT_EQ(Evaluate(kConvolution, attributes,
                     {{bytes.data() + 1, DataType::kF32, {1, 1, 3}}, Row(weights)}, {1, 1, 2}),
            (Doubles{21, 32}));
}

struct AdjointCase {
  const char* name;
  Attributes attributes;
  Dims src, weights, dst;  // of the Convolution; weights as OIX
};

// How far src reaches beyond the last window of spatial axis `a`.
int64_t Remainder(const AdjointCase& c, size_t a) {
  const auto entry = [&](const char* name) { return (*c.attributes.Find(name)->list())[a]; };
  const int64_t span = (c.weights[2 + a] - 1) * entry("dilations") + 1;
  return c.src[2 + a] + entry("pads_begin") + entry("pads_end") -
         ((c.dst[2 + a] - 1) * entry("strides") + span);
}

std::vector<AdjointCase> AdjointCases() {
  const Attributes row = Line(2, 1, 2, 3);
  const Attributes plane = Ncx({1, 3}, {0, 2}, {1, 0}, {2, 1}).Set("groups", 2);
  const Attributes volume = Ncx({2, 1, 2}, {1, 1, 0}, {1, 0, 2}, {1, 2, 1});
  const Attributes same = Ncx({2, 3}, {}, {}, {1, 1}).Set("auto_pad", "same_lower");
  return {
      {"row", row, {2, 2, 9}, {3, 2, 3}, {2, 3, 3}},
      {"plane", plane, {2, 4, 4, 7}, {6, 2, 2, 3}, {2, 6, 3, 3}},
      {"volume", volume, {1, 2, 5, 4, 3}, {2, 2, 3, 2, 2}, {1, 2, 3, 3, 2}},
      {"same", same, {1, 1, 5, 6}, {2, 1, 2, 4}, {1, 2, 3, 2}},
  };
}

TEST(FormulaAdjoint, ThreePassesOfConvolutionAgree) {
  for (const AdjointCase& c : AdjointCases()) {
    SCOPED_TRACE(c.name);
    const Floats src = Integers(NumElements(c.src), 1), dst = Integers(NumElements(c.dst), 2);
    const Floats weights = Integers(NumElements(c.weights), 3);
    const ConstTensorView s(src.data(), c.src), w(weights.data(), c.weights), d(dst.data(), c.dst);
    Attributes attributes = c.attributes;
    attributes.Set("weights_format", "OIX");
    const double product = Dot(dst, Evaluate(kConvolution, attributes, {s, w}, c.dst));
    EXPECT_NE(product, 0);
    EXPECT_EQ(Dot(src, Evaluate(kConvolutionBackwardData, attributes, {d, w}, c.src)), product);
    EXPECT_EQ(Dot(weights, Evaluate(kConvolutionBackwardWeights, attributes, {s, d}, c.weights)),
              product);
  }
}

// A ConvTranspose of the same geometry exchanges src and dst, and its IOX weights are the OIX ones.
TEST(FormulaAdjoint, ThreePassesOfConvTransposeAgree) {
  for (const AdjointCase& c : AdjointCases()) {
    if (c.attributes.Find("auto_pad") != nullptr) continue;  // other pads in the two families
    SCOPED_TRACE(c.name);
    const Floats src = Integers(NumElements(c.dst), 1), dst = Integers(NumElements(c.src), 2);
    const Floats weights = Integers(NumElements(c.weights), 3);
    const ConstTensorView s(src.data(), c.dst), w(weights.data(), c.weights), d(dst.data(), c.src);
    Attributes attributes = c.attributes;
    attributes.Set("weights_format", "IOX");
    Dims extra(c.src.size() - 2);
    for (size_t a = 0; a < extra.size(); ++a) extra[a] = Remainder(c, a);
    attributes.Set("output_padding", extra);
    const Doubles forward = Evaluate(kConvTranspose, attributes, {s, w}, c.src);
    const double product = Dot(dst, forward);
    EXPECT_NE(product, 0);
    EXPECT_EQ(Dot(src, Evaluate(kConvTransposeBackwardData, attributes, {d, w}, c.dst)), product);
    EXPECT_EQ(Dot(weights, Evaluate(kConvTransposeBackwardWeights, attributes, {s, d}, c.weights)),
              product);
    attributes.Set("weights_format", "OIX").Set("output_padding", Dims());
    EXPECT_EQ(forward, Evaluate(kConvolutionBackwardData, attributes, {s, w}, c.src));
  }
}

TEST(FormulaTypes, Bf16SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(WidenBf16(0x3f80), 1.0);
  EXPECT_EQ(WidenBf16(0xc049), -3.140625);
  EXPECT_EQ(WidenBf16(0x0000), 0.0);
  EXPECT_TRUE(std::signbit(WidenBf16(0x8000)));
  EXPECT_EQ(WidenBf16(0x0001), std::ldexp(1.0, -133));
  EXPECT_EQ(WidenBf16(0x807f), -std::ldexp(127.0, -133));
  EXPECT_EQ(WidenBf16(0x0080), std::ldexp(1.0, -126));
  EXPECT_EQ(WidenBf16(0x7f7f), std::ldexp(255.0, 120));
  EXPECT_EQ(WidenBf16(0x7f80), infinity);
  EXPECT_EQ(WidenBf16(0xff80), -infinity);
  EXPECT_TRUE(std::isnan(WidenBf16(0x7fc0)));
  EXPECT_TRUE(std::isnan(WidenBf16(0xff81)));
}

TEST(FormulaTypes, F16SpecialValues) {
  EXPECT_EQ(WidenF16(0x3c00), 1.0);
  EXPECT_EQ(WidenF16(0xc248), -3.140625);
  EXPECT_TRUE(std::signbit(WidenF16(0x8000)));
  EXPECT_EQ(WidenF16(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(WidenF16(0x83ff), -std::ldexp(1023.0, -24));
  EXPECT_EQ(WidenF16(0x0400), std::ldexp(1.0, -14));
  EXPECT_EQ(WidenF16(0x7bff), 65504.0);
  EXPECT_EQ(WidenF16(0x7c00), std::numeric_limits<double>::infinity());
  EXPECT_EQ(WidenF16(0xfc00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(WidenF16(0x7c01)));
  EXPECT_TRUE(std::isnan(WidenF16(0xfe00)));
  // Neighbours are one unit in the last place apart, from 0 to the largest.
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double step = std::ldexp(1.0, std::max(bits >> 10, 1) - 25);
    ASSERT_EQ(WidenF16(static_cast<uint16_t>(bits + 1)) - WidenF16(static_cast<uint16_t>(bits)),
              step);
  }
}

TEST(FormulaTypes, TensorsOfBf16AndF16) {
  Attributes attributes = Line(1).Set("weights_format", "OIX");
  const auto dst = [&](DataType type, std::vector<uint16_t> src, std::vector<uint16_t> weights) {
    return Evaluate(kConvolution, attributes,
                    {{src.data(), type, {1, 1, 3}}, {weights.data(), type, {1, 1, 2}}}, {1, 1, 2});
  };
  EXPECT_EQ(dst(DataType::kBF16, {0x3f80, 0x4000, 0x4040}, {0x3f80, 0x4120}), (Doubles{21, 32}));
  EXPECT_EQ(dst(DataType::kF16, {0x3c00, 0x4000, 0x4200}, {0x3c00, 0x4900}), (Doubles{21, 32}));
}

TEST(FormulaRefusals, IllegalOperationsGiveASentence) {
  const Floats data(64, 1.0f);
  const auto view = [&](Dims extents) { return ConstTensorView(data.data(), std::move(extents)); };
  const auto refused = [&](OpKind kind, const Attributes& attributes,
                           std::vector<ConstTensorView> inputs, Dims output) {
    const Result<Formula> formula =
        Formula::Make(Operation{kind, attributes}, std::move(inputs), Out(std::move(output)));
    return !formula.ok() && formula.status().code() == StatusCode::kInvalidArgument &&
           !formula.status().message().empty();
  };
  const Attributes legal = Line(1).Set("weights_format", "OIX");
  const auto with = [&](const char* name, AttributeValue value) {
    Attributes attributes = legal;
    return attributes.Set(name, std::move(value));
  };
  const OpKind conv = kConvolution;
  const std::vector<ConstTensorView> row{view({1, 1, 4}), view({1, 1, 2})};
  ASSERT_FALSE(refused(conv, legal, row, {1, 1, 3}));
  for (const Attributes& attributes :
       {with("strides", {0}), with("strides", {1, 1}), with("strides", "1"),
        with("dilations", {-1}), with("strides", Dims(12, 0)), with("pads_begin", {-1}),
        with("pads_end", 1), with("groups", 0), with("groups", 2), with("groups", "2"),
        with("auto_pad", "sama"), with("auto_pad", 1), with("data_format", "nxc"),
        with("weights_format", "IOX"), with("pads_begin", {1}), Attributes()}) {
    EXPECT_TRUE(refused(conv, attributes, row, {1, 1, 3}));
  }
  EXPECT_TRUE(refused(conv, legal, row, {1, 1, 4}));
  EXPECT_TRUE(refused(conv, legal, row, {1, 1, -1}));
  EXPECT_TRUE(refused(conv, legal, row, {2, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, row, {}));
  EXPECT_TRUE(refused(conv, legal, {}, {1, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, {row[0], {}}, {1, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, {row[0], view({1, 1, 2, 1})}, {1, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, {row[0], view({1, 1, 0})}, {1, 1, 5}));
  EXPECT_TRUE(refused(conv, legal, {row[0], view({1, 1, 5})}, {1, 1, 0}));
  EXPECT_TRUE(refused(conv, legal, {view({4}), view({2})}, {3}));
  EXPECT_TRUE(refused(conv, legal, {row[0], row[1], view({2})}, {1, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, {{data.data(), {1, 1, 4}, {1}}, row[1]}, {1, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, {{data.data(), DataType::kS32, {1, 1, 4}}, row[1]}, {1, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, {{nullptr, DataType::kF32, {1, 1, 4}}, row[1]}, {1, 1, 3}));
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(refused(conv, legal, {{data.data(), {1, 1, 4}, {0, 0, kHuge}}, row[1]}, {1, 1, 3}));
  EXPECT_TRUE(refused(conv, legal, {view({kHuge, kHuge, 4}), row[1]}, {kHuge, 1, 3}));
  EXPECT_TRUE(refused(static_cast<OpKind>(99), legal, row, {1, 1, 3}));

  Attributes padded = Line(2).Set("weights_format", "IOX").Set("output_padding", {1});
  EXPECT_TRUE(refused(kConvTranspose, padded, row, {1, 1, 8}));
  EXPECT_TRUE(refused(kConvTranspose, padded.Set("pads_end", {9}), row, {1, 1, 0}));
  EXPECT_FALSE(refused(kConvTranspose, padded.Set("pads_end", {0}), row, {1, 1, 9}));
  // A "-1" filter has the shape (OCg, IC, K) only.
  Attributes grouped = Line(1).Set("filter_format", "OIX").Set("groups", 2);
  const std::vector<ConstTensorView> pair{view({1, 2, 1}), view({1, 4, 1})};
  EXPECT_FALSE(refused(kConvTransposeBackpropFilters, grouped, pair, {2, 2, 1}));
  EXPECT_TRUE(refused(kConvTransposeBackpropFilters, grouped, pair, {4, 1, 1}));
}

}  // namespace
}  // namespace convgrad::tools
