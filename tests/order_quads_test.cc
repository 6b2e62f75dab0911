// The order of a sum of bf16 where a CPU sums four products at once, written down a second time:
// quads of terms, each added by two additions that round to odd. What the library computes must
// have the same bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "cpu/bf16_instructions.h"
#include "cpu/element.h"
#include "tests/bits_table.h"
#include "tests/in_order.h"

namespace convgrad::tests {
namespace {

// ---- The arithmetic of BFMMLA ----

constexpr float kLeastNormal = 0x1p-126f;

float Flushed(float value) {
  return std::abs(value) < kLeastNormal ? std::copysign(0.0f, value) : value;
}

// Truncated, and the last bit set where something was lost; beyond the range, an infinity.
float RoundedToOdd(double value) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return static_cast<float>(value);
  if (std::abs(value) >= 0x1p128) {
    return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value));
  }
  if (std::abs(value) < static_cast<double>(kLeastNormal)) {
    return value < 0 ? -0.0f : 0.0f;
  }
  constexpr uint64_t kLost = (uint64_t{1} << 29) - 1;  // 52 fraction bits, 23 of them are left
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const double truncated = std::bit_cast<double>(bits & ~kLost);
  const uint32_t odd = (bits & kLost) != 0 ? 1 : 0;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(truncated)) | odd);
}

// Two floats can be farther apart than a double is long. What it loses, the error of the sum (two
// sums, Knuth), makes it odd, which rounding it to odd once more respects.
float Add(float x, float y) {
  const double a = x, b = y, sum = a + b;
  if (std::isnan(sum) || std::isinf(sum)) return static_cast<float>(sum);
  const double of_b = sum - a, error = (a - (sum - of_b)) + (b - of_b);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error != 0 && bits % 2 == 0) (error > 0) == (sum > 0) ? ++bits : --bits;
  return RoundedToOdd(std::bit_cast<double>(bits));
}

// Of two bf16, which is exact but at the ends of the range.
float Product(float x, float y) {
  return RoundedToOdd(static_cast<double>(Flushed(x)) * static_cast<double>(Flushed(y)));
}

// A chain of quads. What is left of the last is filled up with zeros.
class QuadChain {
 public:
  explicit QuadChain(float from) : sum_(from) {}

  void Append(Factors factors) {
    products_[count_++] = Product(factors.a, factors.b);
    if (count_ == 4) EndQuad();
  }
  void FillUp() {
    if (count_ > 0) EndQuad();
  }
  float sum() const { return sum_; }

 private:
  void EndQuad() {
    for (; count_ < 4; ++count_) products_[count_] = 0;
    sum_ = Add(sum_, Add(products_[0], products_[1]));
    sum_ = Add(sum_, Add(products_[2], products_[3]));
    count_ = 0;
  }

  float sum_;
  float products_[4];
  int count_ = 0;
};

// ---- The order ----

struct QuadSums {
  static constexpr int64_t kLongest = 864;
  static constexpr int64_t kTinyImage = 64;

  float from = 0;  // what the element was, times beta

  // The channels of a tap are whole quads. With one channel, or more taps than there are quads in a
  // chunk, bf16 is widened.
  template <class Term>
  float OfChannelsAndTaps(int64_t channels, int64_t taps, int64_t most_taps,
                          const Term& term) const {
    if (channels == 1 || most_taps > kLongest / 4) {
      return FusedSums{from}.OfChannelsAndTaps(channels, taps, most_taps, term);
    }
    const int64_t most = kLongest / std::max<int64_t>(taps, 1);
    const int64_t evenly = RoundedUp(EvenBlock(channels, most), 4) * 4;
    const int64_t block = std::min(evenly, most / 4 * 4);
    float sum = from;
    for (int64_t c0 = 0; taps > 0 && c0 < channels; c0 += block) {
      QuadChain chain(0);
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t c = c0; c < std::min(channels, c0 + block); ++c) chain.Append(term(c, t));
        chain.FillUp();
      }
      sum += chain.sum();
    }
    return sum;
  }

  // Whole lines where one is no longer than a chunk. Several tiny images are one chunk.
  template <class Term>
  float OfImagesAndPixels(int64_t images, int64_t pixels, int64_t line, const Term& term) const {
    const bool tiny = pixels < kTinyImage;
    const int64_t block = line <= kLongest ? line * EvenBlock(pixels / line, kLongest / line)
                                           : EvenBlock(pixels, kLongest);
    const int64_t together = tiny ? EvenBlock(images, kLongest / pixels) : 1;
    float sum = from;
    for (int64_t n0 = 0; n0 < images; n0 += together) {
      for (int64_t p0 = 0; p0 < pixels; p0 += block) {
        QuadChain chain(tiny ? sum : 0.0f);
        for (int64_t n = n0; n < std::min(images, n0 + together); ++n) {
          for (int64_t p = p0; p < std::min(pixels, p0 + block); ++p) chain.Append(term(n, p));
        }
        chain.FillUp();
        sum = tiny ? chain.sum() : sum + chain.sum();
      }
    }
    return sum;
  }
};

bool HasBfmmla() { return Bf16TermsEach() == kTermsOf<Quad>; }

std::string NoBfmmla() { return HasBfmmla() ? "" : "this CPU has no BFMMLA"; }

// Several groups of at most 16 channels are widened.
bool IsWidened(const BitsProblem& p) {
  return p.groups > 1 && p.channels / p.groups <= 16 && p.o / p.groups <= 16;
}

template <class Sums>
void ExpectOrder(const BitsProblem& problem) {
  for (const OpKind kind : kSixNames) {
    for (const DataType out : {DataType::kBF16, DataType::kF32}) {
      if (out == DataType::kF32 && !WritesWeights(kind)) continue;
      for (const bool last : {false, true}) {
        SCOPED_TRACE(last ? "NXC" : "NCX");
        BitsCase item(problem, kind, DataType::kBF16, {last, last}, true, out);
        ExpectInOrder<Sums>(problem, kind, item);
        BitsCase plain(problem, kind, DataType::kBF16, {last, last}, false, out);
        ExpectRestInOrder<Sums>(problem, kind, plain);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

void ExpectQuads(const BitsProblem& problem) {
  IsWidened(problem) ? ExpectOrder<FusedSums>(problem) : ExpectOrder<QuadSums>(problem);
}

TEST(QuadOrder, IsTheOneThatIsWrittenDown) {
  if (!HasBfmmla()) GTEST_SKIP() << NoBfmmla();
  for (const BitsRow& row : kBitsTable) {
    ExpectQuads(row.problem);
    if (HasFatalFailure()) return;
  }
}

TEST(QuadOrder, OfLongSumsIsTheOneThatIsWrittenDown) {
  if (!HasBfmmla()) GTEST_SKIP() << NoBfmmla();
  for (const BitsProblem& problem : kLongSums) {
    ExpectQuads(problem);
    if (HasFatalFailure()) return;
  }
}

// Without the instruction, bf16 has the order of f32.
TEST(QuadOrder, IsThatOfF32WithoutInstructions) {
  if (Bf16TermsEach() > 1) GTEST_SKIP() << "this CPU has instructions for bf16";
  for (const BitsRow& row : kBitsTable) {
    for (const OpKind kind : kSixNames) {
      BitsCase item(row.problem, kind, DataType::kBF16, {}, true);
      ExpectInOrder<FusedSums>(row.problem, kind, item);
      BitsCase plain(row.problem, kind, DataType::kBF16, {}, false);
      ExpectRestInOrder<FusedSums>(row.problem, kind, plain);
      if (HasFatalFailure()) return;
    }
  }
}

// So that the tests above can fail: on such data the two orders differ, in many elements of every
// pass, and so do the rests in bf16 of some.
TEST(QuadOrder, IsNotThatOfF32) {
  const BitsProblem& problem = kLongSums[0];
  for (const OpKind kind : kSixNames) {
    BitsCase item(problem, kind, DataType::kBF16, {}, false);
    const InOrder in_order(problem, kind, item);
    int elements = 0, differ = 0, rests_differ = 0;
    using At = std::array<int64_t, 3>;
    ForSomeElements(
        item.output().buffer, [&](int64_t, int64_t first, int64_t second, const At& at) {
          const auto element = [&](auto sums) { return in_order.Element(sums, first, second, at); };
          const float sum = element(QuadSums{});
          const float from = -RoundedTo(DataType::kBF16, sum);
          const float quads = element(QuadSums{from}), fused = element(FusedSums{from});
          ++elements;
          differ += sum != element(FusedSums{}) ? 1 : 0;
          rests_differ +=
              RoundedTo(DataType::kBF16, quads) != RoundedTo(DataType::kBF16, fused) ? 1 : 0;
        });
    EXPECT_GT(differ, elements / 4) << NameOf(kind);
    EXPECT_GT(rests_differ, 5) << NameOf(kind);
  }
}

// ---- Any bits ----

// Bits of bf16: of every kind there is, or, half of them, from a narrow range of exponents, so that
// sums lose a few bits.
BF16 RandomBits(std::mt19937_64& random) {
  const uint16_t bits = static_cast<uint16_t>(random());
  if (random() % 2 == 0) return {bits};
  const uint16_t exponent = static_cast<uint16_t>(112 + random() % 31);
  return {static_cast<uint16_t>((bits & 0x807f) | exponent << 7)};
}

void ExpectSameNumber(float got, float expected, int64_t element) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(got)) << element << ": " << got;
    return;
  }
  ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected))
      << element << ": " << got << ", not " << expected;
}

// The arithmetic alone: f32 gradients of images of a few pixels, which are a quad or three.
TEST(QuadArithmetic, IsTheInstructions) {
  if (!HasBfmmla()) GTEST_SKIP() << NoBfmmla();
  std::mt19937_64 random(20261115);
  for (const int64_t pixels : {1, 2, 3, 4, 5, 8, 12}) {
    const BitsProblem problem{"quads", 1, 1, 300, 250, {pixels}, {1}, {1}, {1}, {0}};
    BitsCase item(problem, OpKind::kConvolutionBackwardWeights, DataType::kBF16, {}, false,
                  DataType::kF32);
    for (IndexedTensor* tensor : {&item.x(), &item.y()}) {
      for (int64_t i = 0; i < tensor->buffer.elements(); ++i) {
        StoreAt(tensor->buffer.data(), i, RandomBits(random));
      }
    }
    ASSERT_NE(item.Run({.threads = 1}), 0u);
    const InOrder in_order(problem, OpKind::kConvolutionBackwardWeights, item);
    const tools::TensorBuffer& got = item.w().buffer;
    for (int64_t i = 0; i < got.elements(); ++i) {
      const float sum =
          in_order.Wgrad(QuadSums{}, i / problem.channels, i % problem.channels, {0, 0, 0});
      ExpectSameNumber(LoadAt<float>(got.data(), i), sum, i);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(QuadArithmetic, RoundsToOdd) {
  EXPECT_EQ(Add(1, 0x1p-23f), 1 + 0x1p-23f);
  EXPECT_EQ(Add(1, 0x1p-24f), 1 + 0x1p-23f);             // inexact: odd
  EXPECT_EQ(Add(1 + 0x1p-23f, 0x1p-24f), 1 + 0x1p-23f);  // odd already
  EXPECT_EQ(Add(1, -0x1p-60f), 1 - 0x1p-24f);            // truncated, and odd already
  EXPECT_EQ(Add(1, 0x1p-100f), 1 + 0x1p-23f);            // farther than a double is long
  EXPECT_EQ(Add(0x1p-126f, -0x1.8p-126f), 0.0f);         // a subnormal
  EXPECT_TRUE(std::signbit(Add(0x1p-126f, -0x1.8p-126f)));
  EXPECT_EQ(Add(0x1p127f, 0x1p127f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Product(0x1p-127f, 0x1p100f), 0.0f);  // a subnormal factor
  EXPECT_EQ(Product(0x1p-64f, 0x1p-63f), 0.0f);   // a subnormal product
}

}  // namespace
}  // namespace convgrad::tests
