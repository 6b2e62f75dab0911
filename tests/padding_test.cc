// Products with padding: whether they are computed or left out must not show. An infinity that
// meets a zero of the padding makes a NaN, in every layout, for every number of threads, workspace
// and CPU alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/numerics.h"
#include "tests/bits_table.h"
#include "tests/instruction_set.h"

namespace convgrad::tests {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// 66 pixels: enough for an image to be a chunk of its own.
constexpr int64_t kHeight = 11, kWidth = 6, kTaps = 3;

// Stride 1 and padding 1: x and y have the same pixels.
BitsProblem PaddedProblem(int64_t batch, int64_t channels) {
  return {"padded",          batch,          1,      channels, 6,
          {kHeight, kWidth}, {kTaps, kTaps}, {1, 1}, {1, 1},   {1, 1}};
}

int64_t Flat(const tools::TensorBuffer& buffer, Dims at) {
  int64_t offset = 0;
  for (size_t a = 0; a < at.size(); ++a) offset += at[a] * buffer.desc().strides[a];
  return offset;
}

float& At(tools::TensorBuffer& buffer, const Dims& at) {
  return static_cast<float*>(buffer.data())[Flat(buffer, at)];
}

// x, or zero outside.
float Padded(tools::TensorBuffer& buffer, int64_t n, int64_t c, int64_t y, int64_t x) {
  const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
  return inside ? At(buffer, {n, c, y, x}) : 0.0f;
}

// The sum with every product of padding in it, in f64; only what kind of number it is counts.
double SumAt(BitsCase& of, OpKind kind, const Dims& at) {
  tools::TensorBuffer &x = of.x().buffer, &w = of.w().buffer, &y = of.y().buffer;
  const int64_t batch = x.desc().extents[0], channels = x.desc().extents[1],
                o = y.desc().extents[1];
  double sum = 0;
  if (kind == OpKind::kConvolutionBackwardWeights) {
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t p = 0; p < kHeight * kWidth; ++p) {
        const int64_t i = p / kWidth, j = p % kWidth;
        sum += double{Padded(x, n, at[1], i + at[2] - 1, j + at[3] - 1)} * At(y, {n, at[0], i, j});
      }
    }
    return sum;
  }
  const bool dgrad = kind == OpKind::kConvolutionBackwardData;
  for (int64_t c = 0; c < (dgrad ? o : channels); ++c) {
    for (int64_t t = 0; t < kTaps * kTaps; ++t) {
      const int64_t i = t / kTaps, j = t % kTaps;
      sum +=
          dgrad
              ? double{Padded(y, at[0], c, at[2] + 1 - i, at[3] + 1 - j)} * At(w, {c, at[1], i, j})
              : double{Padded(x, at[0], c, at[2] + i - 1, at[3] + j - 1)} * At(w, {at[1], c, i, j});
    }
  }
  return sum;
}

void Spoil(BitsCase& of, OpKind kind) {
  if (kind == OpKind::kConvolutionBackwardWeights) {
    At(of.y().buffer, {0, 1, 0, 2}) = kInfinity;   // the first line: meets padding above it
    At(of.y().buffer, {0, 4, 3, 0}) = -kInfinity;  // the first column
  } else {
    At(of.w().buffer, {2, 3, 0, 1}) = kInfinity;  // a tap of the first row
    At(of.w().buffer, {5, 0, 1, 1}) = kInfinity;  // the centre, which never meets padding
  }
}

void ExpectKinds(OpKind kind, int64_t batch, int64_t channels, Layout layout,
                 const Options& options) {
  BitsCase of(PaddedProblem(batch, channels), kind, DataType::kF32, layout, false);
  Spoil(of, kind);
  ASSERT_NE(of.Run(options), 0u);
  tools::TensorBuffer& out = of.output().buffer;
  const Dims& extents = out.desc().extents;
  int64_t nans = 0, infinities = 0;
  for (int64_t e = 0; e < out.elements(); ++e) {
    Dims at(4);
    for (int64_t a = 3, rest = e; a >= 0; --a) {
      at[static_cast<size_t>(a)] = rest % extents[static_cast<size_t>(a)];
      rest /= extents[static_cast<size_t>(a)];
    }
    const double want = SumAt(of, kind, at), got = At(out, at);
    ASSERT_EQ(std::isnan(got), std::isnan(want)) << e;
    ASSERT_EQ(std::isinf(got), std::isinf(want)) << e;
    nans += std::isnan(want);
    infinities += std::isinf(want);
  }
  EXPECT_GT(nans, 0);
  EXPECT_GT(infinities, 0);
}

// The elements that are NaN (1) or infinite (2), in the order of their indices.
std::vector<int> KindsOf(BitsCase& of, const Options& options) {
  EXPECT_NE(of.Run(options), 0u);
  const tools::TensorBuffer& out = of.output().buffer;
  std::vector<int> kinds;
  tools::ForEachOffset(out.desc().extents, out.desc().strides, [&](int64_t offset) {
    const float value = static_cast<const float*>(out.data())[offset];
    kinds.push_back(std::isnan(value) ? 1 : std::isinf(value) ? 2 : 0);
  });
  return kinds;
}

std::vector<int> Kinds(const BitsProblem& problem, OpKind kind, Layout layout,
                       const Options& options) {
  BitsCase of(problem, kind, DataType::kF32, layout, false);
  At(of.w().buffer, {0, 0, 0, 0}) = kInfinity;
  return KindsOf(of, options);
}

// Phases of a stride: one contraction each, two written together, or, of few channels, columns of
// one.
TEST(Padding, MakesTheSameNaNsInAllPhases) {
  for (const int64_t channels : {3, 24}) {
    const BitsProblem problem{"strided", 20,     1,      channels, 24,
                              {12, 12},  {3, 3}, {2, 2}, {1, 1},   {1, 1}};
    const auto kinds = [&](bool channels_last, const Options& options) {
      return Kinds(problem, OpKind::kConvolutionBackwardData, {channels_last, false}, options);
    };
    const std::vector<int> expected = kinds(true, {.threads = 1});
    EXPECT_GT(std::count(expected.begin(), expected.end(), 1), 0);
    EXPECT_GT(std::count(expected.begin(), expected.end(), 2), 0);
    EXPECT_EQ(kinds(false, {.threads = 1}), expected);
    EXPECT_EQ(kinds(false, {.threads = 4}), expected);
    EXPECT_EQ(kinds(true, {.threads = 4, .workspace_limit = 0}), expected);
    EXPECT_EQ(kinds(false, {.threads = 3, .workspace_limit = 0}), expected);
  }
}

// Taps that a phase does not have are products with zero, too; a tile whose rows are phases leaves
// them out. 3 channels in 4 phases are the 12 rows of a tile of AVX-512 and of NEON. Of 7 and 5
// taps one phase misses its first, of 6 and 4 the other its last as well.
TEST(Padding, OfMissingTapsMeetsInfinitiesOfPixels) {
  for (const int64_t taps : {7, 6, 5, 4}) {
    const BitsProblem problem{"first layer", 1,      1,      3,     64, {24, 160},
                              {taps, taps},  {2, 2}, {1, 1}, {3, 3}};
    std::vector<int> expected;
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const InstructionSet set(target);
      for (const Layout layout : {Layout{false, false}, Layout{true, true}}) {
        BitsCase of(problem, OpKind::kConvolutionBackwardData, DataType::kF32, layout, false);
        At(of.y().buffer, {0, 11, 5, 40}) = kInfinity;
        At(of.y().buffer, {0, 60, 9, 3}) = std::numeric_limits<float>::quiet_NaN();
        const std::vector<int> kinds = KindsOf(of, {.threads = 1});
        if (expected.empty()) expected = kinds;
        EXPECT_EQ(kinds, expected) << taps << (layout.channels_last ? " NXC" : " NCX");
      }
    }
    // Each phase of every position that a tap of any phase leads to.
    const int64_t reach = taps / 2 + 1;
    EXPECT_GE(std::count(expected.begin(), expected.end(), 1), 3 * 4 * reach * reach);
    EXPECT_GT(std::count(expected.begin(), expected.end(), 2), 0);
  }
}

TEST(Padding, MakesTheSameNaNsEverywhere) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                              OpKind::kConvolutionBackwardWeights}) {
      for (const Layout layout : {Layout{false, false}, Layout{true, true}}) {
        for (const int64_t batch : {1, 60}) {  // the second is enough work for four threads
          ExpectKinds(kind, batch, 5, layout, {.threads = 1});
          ExpectKinds(kind, batch, 5, layout, {.threads = 4, .workspace_limit = 0});
        }
        ExpectKinds(kind, 1, 29, layout, {.threads = 1});  // read in place where it can be
      }
    }
  }
}

// A kernel that covers its image: of each position all taps but one are padding, and left out in
// boxes, unless an infinity of the weights meets it. One position of each image has a product with
// it, and all others a zero.
TEST(Padding, OfAKernelThatCoversImagesMeetsInfinities) {
  constexpr int64_t kBatch = 9, kPositions = 49;
  const BitsProblem problem{"covers", kBatch, 1, 24, 20, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {0, 0}};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    for (const Layout layout : {Layout{false, false}, Layout{true, true}}) {
      for (const Options& options : {Options{.threads = 1}, Options{.threads = 4},
                                     Options{.threads = 2, .workspace_limit = 0}}) {
        const std::vector<int> kinds =
            Kinds(problem, OpKind::kConvolutionBackwardData, layout, options);
        EXPECT_EQ(std::count(kinds.begin(), kinds.end(), 2), kBatch);
        EXPECT_EQ(std::count(kinds.begin(), kinds.end(), 1), kBatch * (kPositions - 1));
      }
    }
  }
}

// Lines as wide as any tile and channels of several: where infinities among many weights meet
// padding is the same whichever side is which, in whatever panels.
TEST(Padding, OfWideLinesMeetsInfinitiesOfEveryChannel) {
  const BitsProblem problem{"wide", 2, 1, 28, 57, {6, 68}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    for (const OpKind kind : {OpKind::kConvolution, OpKind::kConvolutionBackwardData}) {
      for (const int64_t o : {0, 31, 40, 56}) {
        std::vector<int64_t> expected;
        for (const Layout layout : {Layout{false, false}, Layout{true, true}}) {
          for (const Options& options :
               {Options{.threads = 1}, Options{.threads = 16}, Options{.workspace_limit = 0}}) {
            BitsCase item(problem, kind, type, layout, false);
            tools::TensorBuffer& w = item.w().buffer;
            StoreRounded(type, w.data(), Flat(w, {o, 3, 0, 1}), double{kInfinity});
            ASSERT_NE(item.Run(options), 0u);
            std::vector<int64_t> nans;
            const tools::TensorBuffer& out = item.output().buffer;
            for (int64_t i = 0; i < out.elements(); ++i) {
              if (std::isnan(out.At(i))) nans.push_back(i);
            }
            EXPECT_FALSE(nans.empty());
            if (expected.empty()) expected = nans;
            EXPECT_EQ(nans, expected)
                << NameOf(type) << " " << NameOf(kind) << " channel " << o
                << (layout.channels_last ? " NXC " : " NCX ") << options.threads << " threads";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
