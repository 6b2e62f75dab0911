// Which sums of bf16 a CPU's instruction takes: the order of a sum depends on it, so that it must
// not depend on a layout.
#include <gtest/gtest.h>

#include <random>

#include "cpu/tiling.h"
#include "tests/random_problem.h"

namespace convgrad::tests {
namespace {

constexpr VectorUnit kWidens = {"AVX3", 16, 32, true};
constexpr VectorUnit kPairs = {"AVX3 with AMX", 16, 32, true, 1 << 20, 2, 16};
constexpr VectorUnit kDotProducts = {"AVX3 with AVX512-BF16", 16, 32, true, 1 << 20, 2};
constexpr VectorUnit kQuads = {"NEON with BFMMLA", 4, 32, false, 1 << 20, 4};

Problem Layer(Pass pass, int64_t ci, int64_t co, int64_t taps, int64_t stride, bool last,
              int64_t groups = 1) {
  Problem p;
  p.pass = pass;
  p.type = p.out_type = DataType::kBF16;
  p.batch = 2;
  p.groups = groups;
  p.ci = ci;
  p.co = co;
  for (size_t a = 1; a < kAxes; ++a) {
    p.axes[a] = {.in = 12 * stride, .out = 12, .taps = taps, .stride = stride, .pad = taps / 2};
  }
  SetDenseStrides(p);
  if (last) ToChannelsLast(p);
  return p;
}

// With the same bits for every layout.
int64_t TermsOf(Pass pass, int64_t ci, int64_t co, int64_t taps, int64_t stride,
                const VectorUnit& unit = kPairs, int64_t groups = 1) {
  const int64_t first = TermsEach(Layer(pass, ci, co, taps, stride, false, groups), unit);
  EXPECT_EQ(TermsEach(Layer(pass, ci, co, taps, stride, true, groups), unit), first)
      << ci << " to " << co << ", " << taps << " taps, stride " << stride;
  return first;
}

TEST(TermsEach, OfFewOutputsOrChannelsAreWidenedWherePairsAreNotFaster) {
  using enum Pass;
  struct Row {
    Pass pass;
    int64_t ci, co, taps, stride, pairs;
  };
  constexpr Row kRows[] = {// To few outputs, of up to 32 channels.
                           {kFprop, 2, 1, 3, 1, 1},
                           {kFprop, 32, 4, 3, 1, 1},
                           {kFprop, 33, 4, 3, 1, 2},
                           {kFprop, 32, 5, 3, 1, 2},
                           {kFprop, 32, 4, 3, 2, 1},
                           {kFprop, 32, 4, 1, 1, 1},
                           // Of few channels, to up to 16 outputs.
                           {kFprop, 4, 16, 3, 1, 1},
                           {kFprop, 4, 17, 3, 1, 2},
                           {kFprop, 5, 16, 3, 1, 2},
                           {kFprop, 4, 16, 3, 2, 2},
                           {kFprop, 4, 16, 1, 1, 1},
                           // The sums of a gradient of data are over co.
                           {kDgrad, 4, 32, 3, 1, 1},
                           {kDgrad, 4, 33, 3, 1, 2},
                           {kDgrad, 16, 4, 3, 1, 1},
                           {kDgrad, 17, 4, 3, 1, 2},
                           {kDgrad, 5, 32, 3, 1, 2},
                           // Phases of a stride are outputs: four of one channel, eight of two.
                           {kDgrad, 1, 32, 4, 2, 1},
                           {kDgrad, 2, 32, 4, 2, 2},
                           {kDgrad, 2, 4, 4, 2, 1},
                           // Sums over pixels.
                           {kWgrad, 1, 1, 3, 1, 2},
                           {kWgrad, 32, 4, 3, 1, 2},
                           {kWgrad, 4, 16, 3, 1, 2}};
  for (const Row& r : kRows) {
    EXPECT_EQ(TermsOf(r.pass, r.ci, r.co, r.taps, r.stride), r.pairs)
        << static_cast<int>(r.pass) << ", " << r.ci << " to " << r.co << ", " << r.taps
        << " taps, stride " << r.stride;
    EXPECT_EQ(TermsOf(r.pass, r.ci, r.co, r.taps, r.stride, kWidens), 1);
    EXPECT_EQ(TermsOf(r.pass, r.ci, r.co, r.taps, r.stride, kQuads), 4);
    EXPECT_EQ(TermsOf(r.pass, r.ci, r.co, r.taps, r.stride, kDotProducts), 2);
  }
}

TEST(TermsEach, AreNoneOfOneChannelOfManyTapsAndOfSmallGroups) {
  for (const VectorUnit& unit : {kPairs, kQuads}) {
    EXPECT_EQ(TermsOf(Pass::kFprop, 1, 64, 3, 1, unit), 1);
    EXPECT_EQ(TermsOf(Pass::kDgrad, 64, 1, 3, 1, unit), 1);
    EXPECT_EQ(TermsOf(Pass::kFprop, 64, 64, 14, 1, unit), unit.terms_each);
    EXPECT_EQ(TermsOf(Pass::kFprop, 64, 64, 15, 1, unit), 1);
    EXPECT_EQ(TermsOf(Pass::kWgrad, 64, 64, 15, 1, unit), unit.terms_each);
    for (const Pass pass : {Pass::kFprop, Pass::kDgrad, Pass::kWgrad}) {
      EXPECT_EQ(TermsOf(pass, 16, 16, 3, 1, unit, 2), 1);
      EXPECT_EQ(TermsOf(pass, 17, 16, 3, 1, unit, 2), unit.terms_each);
      EXPECT_EQ(TermsOf(pass, 32, 4, 3, 1, unit, 2), unit.terms_each);
    }
  }
}

TEST(TermsEach, DoNotDependOnStrides) {
  int64_t widened = 0, pairs = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    Problem p = RandomProblem(random, 20);
    p.ci = Between(random, 1, 6);
    p.co = Between(random, 1, 40);
    if (seed % 2 == 0) {  // axes that may be merged
      for (Axis& axis : p.axes) axis = {.in = axis.out, .out = axis.out};
    }
    SetDenseStrides(p);
    const int64_t dense = TermsEach(p, kPairs);
    (dense == 1 ? widened : pairs) += 1;
    for (PixelStrides* strides : {&p.x, &p.y}) {
      strides->s[1] += 2 * strides->s[2];
      strides->s[0] = 1000 * strides->s[1];
    }
    ASSERT_EQ(TermsEach(p, kPairs), dense) << seed;
  }
  EXPECT_GT(widened, 500);
  EXPECT_GT(pairs, 500);
}

}  // namespace
}  // namespace convgrad::tests
