// What bf16 and f16 make of single values, on every instruction set: every bit pattern there is,
// sums that are exact in f32 and rounded once to their type, wherever a result is stored, and
// infinities.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "core/text.h"
#include "tests/instruction_set.h"
// After the choice of instruction sets.
#include "cpu/engine.h"
#include "tests/in_order.h"

namespace convgrad::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DataType kTypes[] = {DataType::kBF16, DataType::kF16};
constexpr Layout kLayouts[] = {{false, false}, {true, true}, {false, true}, {true, false}};

void OnEveryInstructionSet(const std::function<void()>& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    body();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Whether products are the CPU's instruction's, which counts subnormals as zeros: of few channels
// they are not.
bool Flushes(BitsCase& item) {
  const VectorUnit unit = PickedVectorUnit(DataType::kBF16);
  if (unit.terms_each == 1) return false;
  const Result<Plan> plan = item.MakePlan({.threads = 1});
  return plan.ok() && plan->Explain().find(Join(", ", unit.bf16_instruction)) != std::string::npos;
}

double FlushedTo0(double value) { return std::abs(value) < 0x1p-126 ? 0 : value; }

bool IsF32(double value) {
  return std::isnan(value) || static_cast<double>(static_cast<float>(value)) == value;
}

// A sum, and whether f32 and f64 have had every step of it exactly.
struct ExactSum {
  double value = 0;
  bool exact = true;

  void Add(double term) {
    const double sum = value + term;
    exact = exact && IsF32(sum) &&
            (!std::isfinite(sum) || (sum - value == term && sum - term == value));
    value = sum;
  }
};

// A zero that meets an infinity is one of the products, padding too.
struct ExactSums {
  bool flushes = false;

  template <class Term>
  ExactSum Of(int64_t outer, int64_t inner, const Term& term) const {
    ExactSum sum;
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t j = 0; j < inner; ++j) {
        const Factors factors = term(i, j);
        const double a = factors.a, b = factors.b;
        sum.Add(flushes ? FlushedTo0(FlushedTo0(a) * FlushedTo0(b)) : a * b);
      }
    }
    if (flushes) sum.value = FlushedTo0(sum.value);
    return sum;
  }
  template <class Term>
  ExactSum OfChannelsAndTaps(int64_t channels, int64_t taps, int64_t, const Term& term) const {
    return Of(channels, taps, term);
  }
  template <class Term>
  ExactSum OfImagesAndPixels(int64_t images, int64_t pixels, int64_t, const Term& term) const {
    return Of(images, pixels, term);
  }
};

ExactSum SumAt(const InOrder& in_order, ExactSums sums, const Volume& volume, int64_t flat) {
  const int64_t outer = flat / volume.pixels();
  return in_order.Element(sums, outer / volume.channels, outer % volume.channels,
                          volume.PixelAt(flat % volume.pixels()));
}

uint16_t BitsAt(const tools::TensorBuffer& buffer, int64_t flat) {
  return LoadAt<uint16_t>(buffer.data(), buffer.OffsetAt(flat));
}

// Bits of the nearest number of the type.
uint16_t BitsOf(DataType type, double value) {
  return type == DataType::kBF16 ? Narrow<BF16>(value).bits : Narrow<F16>(value).bits;
}
bool IsNaNBits(DataType type, uint16_t bits) {
  return (bits & 0x7fff) > (type == DataType::kBF16 ? 0x7f80 : 0x7c00);
}

// ---- Every pattern ----

constexpr int64_t kPatterns = 1 << 16;

void FillWithOnes(tools::TensorBuffer& buffer) {
  for (int64_t i = 0; i < buffer.elements(); ++i) buffer.Set(i, 1);
}

void SetPatterns(tools::TensorBuffer& buffer) {  // the first channel, or all there are
  for (int64_t i = 0; i < kPatterns; ++i) {
    StoreAt(buffer.data(), buffer.OffsetAt(i), static_cast<uint16_t>(i));
  }
}

// As it was, but for the sign of a zero and the payload of a NaN.
void ExpectPatterns(DataType type, const tools::TensorBuffer& got, bool flushes) {
  const uint16_t least_normal = type == DataType::kBF16 ? 0x0080 : 0x0400;
  ASSERT_EQ(got.elements(), kPatterns);
  for (int64_t i = 0; i < kPatterns; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i), magnitude = bits & 0x7fff;
    if (IsNaNBits(type, bits)) {
      ASSERT_TRUE(std::isnan(got.At(i))) << i;
    } else if (magnitude == 0 || (flushes && magnitude < least_normal)) {
      ASSERT_EQ(got.At(i), 0) << i;
    } else {
      const double expected = type == DataType::kBF16 ? Widen(BF16{bits}) : Widen(F16{bits});
      ASSERT_EQ(got.At(i), expected) << i;
      ASSERT_FALSE(got.desc().type == type && BitsAt(got, i) != bits) << i;
    }
  }
}

// Weights of a one and zeros: of one channel bf16 is widened whatever the CPU has, of two by most.
TEST(Values16Bit, EveryPatternComesBack) {
  OnEveryInstructionSet([] {
    for (const DataType type : kTypes) {
      for (const int64_t channels : {1, 2, 34}) {
        if (channels > 2 && PickedVectorUnit(type).terms_each == 1) continue;
        for (const Layout layout : kLayouts) {
          SCOPED_TRACE(std::string(NameOf(type)) + (layout.channels_last ? " NXC" : " NCX"));
          const BitsProblem fprop{"patterns", 1, 1, channels, 1, {kPatterns}, {1}, {1}, {1}, {0}};
          BitsCase forward(fprop, OpKind::kConvolution, type, layout, false);
          FillWithOnes(forward.x().buffer);
          FillWithOnes(forward.w().buffer);
          for (int64_t c = 1; c < channels; ++c) forward.w().buffer.Set(c, 0);
          SetPatterns(forward.x().buffer);
          ASSERT_NE(forward.Run({.threads = 1}), 0u);
          ExpectPatterns(type, forward.y().buffer, Flushes(forward));
          const int64_t widened = PickedVectorUnit(type).k_unit > 1 ? 2 : 1;
          ASSERT_EQ(Flushes(forward), PickedVectorUnit(type).terms_each > 1 && channels > widened);
          const BitsProblem dgrad{"patterns", 1, 1, 1, channels, {kPatterns}, {1}, {1}, {1}, {0}};
          BitsCase backward(dgrad, OpKind::kConvolutionBackwardData, type, layout, false);
          FillWithOnes(backward.y().buffer);
          FillWithOnes(backward.w().buffer);
          for (int64_t c = 1; c < channels; ++c) backward.w().buffer.Set(c, 0);
          SetPatterns(backward.y().buffer);
          ASSERT_NE(backward.Run({.threads = 1}), 0u);
          ExpectPatterns(type, backward.x().buffer, Flushes(backward));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

// As a weight gradient of one pixel, which is a one: in the type itself, and widened to f32.
TEST(Values16Bit, EveryPatternIsAGradient) {
  OnEveryInstructionSet([] {
    const BitsProblem problem{"patterns", 1, 1, kPatterns, 1, {1}, {1}, {1}, {1}, {0}};
    for (const DataType type : kTypes) {
      for (const DataType out : {type, DataType::kF32}) {
        for (const Layout layout : kLayouts) {
          SCOPED_TRACE(std::string(NameOf(type)) + " to " + std::string(NameOf(out)));
          BitsCase item(problem, OpKind::kConvolutionBackwardWeights, type, layout, false, out);
          FillWithOnes(item.y().buffer);
          SetPatterns(item.x().buffer);
          ASSERT_NE(item.Run({.threads = 1}), 0u);
          ExpectPatterns(type, item.w().buffer, Flushes(item));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

// The bias gradient sums no products: nothing is flushed.
TEST(Values16Bit, EveryPatternIsABiasGradient) {
  OnEveryInstructionSet([] {
    const BitsProblem problem{"patterns", 1, 1, 1, kPatterns, {1}, {1}, {1}, {1}, {0}};
    for (const DataType type : kTypes) {
      for (const DataType out : {type, DataType::kF32}) {
        SCOPED_TRACE(std::string(NameOf(type)) + " to " + std::string(NameOf(out)));
        BitsCase item(problem, OpKind::kConvolutionBackwardWeights, type, {}, true, out);
        SetPatterns(item.y().buffer);
        ASSERT_NE(item.Run({.threads = 1}), 0u);
        ExpectPatterns(type, item.bias(), false);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// ---- One rounding ----

struct Pair {
  double a, b;
};

// Sums of two numbers of the type at its borders: ties to even, down and up, and next to them; ones
// that carry into the exponent; the last before infinity; subnormals; what is not a number.
std::vector<Pair> BorderPairs(DataType type) {
  const bool bf16 = type == DataType::kBF16;
  const double ulp = bf16 ? 0x1p-7 : 0x1p-10;  // of one
  const double largest = bf16 ? 0x1.fep127 : 65504, half_of_last = bf16 ? 0x1p119 : 16;
  const double least = bf16 ? 0x1p-133 : 0x1p-24, normal = bf16 ? 0x1p-126 : 0x1p-14;
  std::vector<Pair> pairs = {{1, ulp / 2},
                             {1 + ulp, ulp / 2},
                             {1 + 2 * ulp, ulp / 2 - ulp / 8},
                             {1 + 2 * ulp, ulp / 2 + ulp / 8},
                             {1 + ulp, ulp / 2 - ulp / 8},
                             {2 - ulp, ulp / 2},
                             {2 - ulp, ulp / 4},
                             {4 - 2 * ulp, ulp},
                             {1, -ulp / 4},
                             {1, -ulp / 8},
                             {1, -1},
                             {largest, half_of_last},
                             {largest, half_of_last / 2},
                             {largest, half_of_last * 1.5},
                             {largest, largest / 4},
                             {least, least},
                             {least, -3 * least},
                             {normal, -least},
                             {normal, least},
                             {normal - least, least},
                             {kInfinity, 1},
                             {kInfinity, -kInfinity},
                             {kNaN, 1},
                             {1, kNaN}};
  for (size_t i = 0, count = pairs.size(); i < count; ++i) {
    pairs.push_back({-pairs[i].a, -pairs[i].b});
  }
  return pairs;
}

// Two numbers of the type whose sum has a few bits more.
Pair RandomPair(DataType type, std::mt19937_64& random) {
  const auto significand = [&] {
    return (1 + static_cast<double>(random() % 1024) / 1024) * (random() % 2 == 0 ? 1 : -1);
  };
  const int scale = static_cast<int>(random() % 30) - 20;
  const int apart = static_cast<int>(random() % (type == DataType::kBF16 ? 12 : 9));
  return {std::ldexp(significand(), scale), std::ldexp(significand(), scale - apart)};
}

Pair PairAt(DataType type, const std::vector<Pair>& borders, size_t i, std::mt19937_64& random) {
  return i < borders.size() ? borders[i] : RandomPair(type, random);
}

// Channels {a, b} of the data, and small powers of two as weights.
void FillPairs(DataType type, tools::TensorBuffer& data, tools::TensorBuffer& weights,
               bool channels_are_o) {
  std::mt19937_64 random(7);
  const std::vector<Pair> borders = BorderPairs(type);
  const Dims& extents = data.desc().extents;
  const int64_t pixels = data.elements() / (extents[0] * 2);
  for (int64_t p = 0; p < pixels; ++p) {
    const Pair pair = PairAt(type, borders, static_cast<size_t>(p), random);
    data.Set(p, pair.a);
    data.Set(pixels + p, pair.b);
  }
  for (int64_t i = 0; i < weights.elements(); ++i) {
    const Dims at = weights.IndexOf(i);
    const int64_t of = channels_are_o ? at[1] : at[0];
    weights.Set(i, of % 3 == 0 ? 1 : of % 3 == 1 ? -2 : 0.5);
  }
}

// Two pixels of y are ones, all others zeros, and each line of x is pairs.
void FillPairsOfPixels(DataType type, tools::TensorBuffer& x, tools::TensorBuffer& y) {
  std::mt19937_64 random(8);
  const std::vector<Pair> borders = BorderPairs(type);
  const int64_t width = x.desc().extents[3];
  for (int64_t i = 0; i < x.elements(); i += width) {
    for (int64_t j = 0; j + 1 < width; j += 2) {
      Pair pair = PairAt(type, borders, static_cast<size_t>(i / 2 + j / 2) % 90, random);
      // Everywhere else they meet zeros.
      if (!std::isfinite(pair.a) || !std::isfinite(pair.b)) pair = {3, 0.25};
      x.Set(i + j, pair.a);
      x.Set(i + j + 1, pair.b);
    }
    if (width % 2 == 1) x.Set(i + width - 1, 1);
  }
  const int64_t pixels = y.desc().extents[2] * y.desc().extents[3];
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t o = i / pixels, at = i % pixels;
    y.Set(i, at < 2 ? (o % 2 == 0 ? 1 : -2) : 0);
  }
}

struct Compared {
  int64_t equal = 0, inexact = 0;
};

// Every element whose sum is exact in f32 at every step: old + sum, then + bias.
void ExpectRoundedOnce(const BitsProblem& p, OpKind kind, BitsCase& item, float beta,
                       Compared& compared) {
  const DataType type = item.output().buffer.desc().type;
  const tools::TensorBuffer old = item.output().buffer;
  const InOrder in_order(p, kind, item);
  const ExactSums sums{Flushes(item)};
  const std::vector<float> bias = item.BiasValues();
  const bool with_bias = item.InputDescs().size() > 2;
  ASSERT_NE(item.Run({.threads = 1, .beta = beta}), 0u);
  const tools::TensorBuffer& got = item.output().buffer;
  const Volume volume(got);
  for (int64_t i = 0; i < got.elements(); ++i) {
    ExactSum sum = SumAt(in_order, sums, volume, i);
    if (beta != 0) sum.Add(static_cast<double>(beta) * old.At(i));
    const int64_t channel = i / volume.pixels() % volume.channels;
    if (with_bias) sum.Add(bias[static_cast<size_t>(channel)]);
    const double all = sum.value;
    if (!sum.exact) {
      ++compared.inexact;
      continue;
    }
    ++compared.equal;
    if (std::isnan(all)) {
      ASSERT_TRUE(std::isnan(got.At(i))) << p.name << " element " << i << ": " << got.At(i);
    } else if (all == 0) {
      ASSERT_EQ(got.At(i), 0) << p.name << " element " << i;
    } else {
      ASSERT_EQ(BitsAt(got, i), BitsOf(type, all))
          << p.name << " element " << i << ": " << got.At(i) << " of " << all;
    }
  }
}

// Each layout, with and without bias and beta.
template <class Fill>
void ExpectRounding(const BitsProblem& problem, OpKind kind, const Fill& fill, Compared& compared) {
  for (const DataType type : kTypes) {
    for (const Layout layout : kLayouts) {
      for (const bool with_bias : {false, true}) {
        for (const float beta : {0.0f, 1.0f}) {
          SCOPED_TRACE(std::string(NameOf(kind)) + " " + std::string(NameOf(type)) +
                       (layout.channels_last ? " NXC" : " NCX") +
                       (layout.weights_taps_first ? ", taps first" : ", taps last") +
                       (with_bias ? ", bias" : "") + (beta != 0 ? ", beta" : ""));
          BitsCase item(problem, kind, type, layout, with_bias);
          tools::FillReals(item.output().buffer, 5);
          fill(type, item);
          ExpectRoundedOnce(problem, kind, item, beta, compared);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Values16Bit, SumsOfTwoChannelsAreRoundedOnce) {
  OnEveryInstructionSet([] {
    Compared compared;
    for (int64_t o = 1; o <= 26; ++o) {
      const BitsProblem problem{
          std::to_string(o) + " channels", 1, 1, 2, o, {8, 15}, {1, 1}, {1, 1}, {1, 1}, {0, 0}};
      ExpectRounding(
          problem, OpKind::kConvolution,
          [](DataType type, BitsCase& item) {
            FillPairs(type, item.x().buffer, item.w().buffer, false);
          },
          compared);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(compared.equal, 3 * compared.inexact);
  });
}

// A kernel of two with a stride of two: each position meets one tap. The two phases are stored
// together, or, of up to eight channels, are columns of one result. ConvTranspose has the bias.
TEST(Values16Bit, SumsOfStridesAreRoundedOnce) {
  OnEveryInstructionSet([] {
    Compared compared;
    for (int64_t channels = 1; channels <= 26; ++channels) {
      const BitsProblem problem{std::to_string(channels) + " channels",
                                1,
                                1,
                                channels,
                                2,
                                {12, 22},
                                {2, 2},
                                {2, 2},
                                {1, 1},
                                {0, 0}};
      for (const OpKind kind : {OpKind::kConvolutionBackwardData, OpKind::kConvTranspose}) {
        ExpectRounding(
            problem, kind,
            [](DataType type, BitsCase& item) {
              FillPairs(type, item.y().buffer, item.w().buffer, true);
            },
            compared);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    EXPECT_GT(compared.equal, 3 * compared.inexact);
  });
}

// Nine taps: four are stored at a time where they are next to each other.
TEST(Values16Bit, GradientsOfWeightsAreRoundedOnce) {
  OnEveryInstructionSet([] {
    Compared compared;
    for (int64_t o = 1; o <= 26; ++o) {
      for (const Dims& in : {Dims{3, 4}, Dims{10, 12}}) {  // images of 2 pixels and of 80
        const BitsProblem problem{
            std::to_string(o) + " channels", 1, 1, 7, o, in, {3, 3}, {1, 1}, {1, 1}, {0, 0}};
        ExpectRounding(
            problem, OpKind::kConvolutionBackwardWeights,
            [](DataType type, BitsCase& item) {
              FillPairsOfPixels(type, item.x().buffer, item.y().buffer);
              // A result that is not there yet may be anything.
              tools::FillReals(item.w().buffer, 6);
            },
            compared);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    EXPECT_GT(compared.equal, 3 * compared.inexact);
  });
}

// ---- Infinities ----

// What kind of number each element is. Products with padding count, as everywhere.
void ExpectKinds(const BitsProblem& p, OpKind kind, DataType type, Layout layout,
                 const std::function<void(BitsCase&)>& spoil, int64_t least_nans,
                 int64_t least_infinities) {
  BitsCase item(p, kind, type, layout, false);
  for (IndexedTensor* tensor : {&item.x(), &item.w(), &item.y()}) {
    tools::FillIntegers(tensor->buffer, 2, 3);
    for (int64_t i = 0; i < tensor->buffer.elements(); ++i) {
      tensor->buffer.Set(i, std::abs(tensor->buffer.At(i)) + 1);
    }
  }
  spoil(item);
  const InOrder in_order(p, kind, item);
  ASSERT_NE(item.Run({.threads = 1}), 0u);
  const Volume volume(item.output().buffer);
  int64_t nans = 0, infinities = 0;
  for (size_t i = 0; i < volume.values.size(); ++i) {
    const double want = SumAt(in_order, {}, volume, static_cast<int64_t>(i)).value;
    const double got = volume.values[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i << ": " << got;
    } else {
      const double rounded =
          type == DataType::kBF16 ? Widen(Narrow<BF16>(want)) : Widen(Narrow<F16>(want));
      ASSERT_EQ(got, rounded) << i;
    }
    nans += std::isnan(want);
    infinities += std::isinf(want);
  }
  EXPECT_GE(nans, least_nans);
  EXPECT_GE(infinities, least_infinities);
}

// In the middle of an image, which no window with padding reads: infinities where a window has it,
// NaNs where its weight is a zero, and exact numbers everywhere else.
TEST(Values16Bit, AnInfinityStaysWhereItIs) {
  const BitsProblem p{"infinity", 2, 1, 5, 6, {11, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  OnEveryInstructionSet([&] {
    for (const DataType type : kTypes) {
      for (const Layout layout : kLayouts) {
        SCOPED_TRACE(std::string(NameOf(type)) + (layout.channels_last ? " NXC" : " NCX"));
        const auto set = [](tools::TensorBuffer& buffer, const Dims& at, double value) {
          int64_t flat = 0;
          for (size_t a = 0; a < at.size(); ++a) flat = flat * buffer.desc().extents[a] + at[a];
          buffer.Set(flat, value);
        };
        ExpectKinds(
            p, OpKind::kConvolution, type, layout,
            [&](BitsCase& item) {
              set(item.x().buffer, {0, 2, 5, 6}, kInfinity);
              set(item.w().buffer, {3, 2, 1, 1}, 0);
            },
            1, 9 * 6 - 1);
        ExpectKinds(
            p, OpKind::kConvolutionBackwardData, type, layout,
            [&](BitsCase& item) {
              set(item.y().buffer, {1, 4, 5, 6}, -kInfinity);
              set(item.w().buffer, {4, 0, 0, 2}, 0);
            },
            1, 9 * 5 - 1);
        // Of x in the middle, and of y there, where it meets no padding.
        ExpectKinds(
            p, OpKind::kConvolutionBackwardWeights, type, layout,
            [&](BitsCase& item) {
              set(item.x().buffer, {0, 2, 5, 6}, kInfinity);
              set(item.y().buffer, {0, 1, 5, 6}, 0);
              set(item.y().buffer, {1, 4, 4, 7}, kInfinity);
            },
            1, 6 * 9 - 1);
        // Of taps and of lines that meet padding.
        ExpectKinds(
            p, OpKind::kConvolution, type, layout,
            [&](BitsCase& item) {
              set(item.w().buffer, {2, 3, 0, 1}, kInfinity);
            },
            2 * 13, 2 * 10 * 13);
        ExpectKinds(
            p, OpKind::kConvolutionBackwardData, type, layout,
            [&](BitsCase& item) {
              set(item.w().buffer, {2, 3, 0, 1}, kInfinity);
            },
            2 * 13, 2 * 10 * 13);
        ExpectKinds(
            p, OpKind::kConvolutionBackwardWeights, type, layout,
            [&](BitsCase& item) {
              set(item.y().buffer, {1, 5, 0, 4}, kInfinity);
            },
            5 * 3, 5 * 6);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

}  // namespace
}  // namespace convgrad::tests
