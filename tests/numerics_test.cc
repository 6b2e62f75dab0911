// bf16 and f16 over all 65 536 patterns, and rounding at every boundary between two of them.
#include "core/numerics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace convgrad {
namespace {

// The value of a pattern from the definition of the format, by arithmetic instead of bits.
double Decode(uint32_t bits, int fraction_bits, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int exponent = static_cast<int>((bits >> fraction_bits) & ((1u << exponent_bits) - 1));
  const double sign = (bits >> (fraction_bits + exponent_bits)) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1u << fraction_bits), exponent - bias - fraction_bits);
}

template <class T>
struct Format;
template <>
struct Format<BF16> {
  static constexpr int kFraction = 7, kExponent = 8;
};
template <>
struct Format<F16> {
  static constexpr int kFraction = 10, kExponent = 5;
};

template <class T>
double Decode(uint32_t bits) {
  return Decode(bits, Format<T>::kFraction, Format<T>::kExponent);
}

template <class T>
class NumericsTest : public testing::Test {};
using Types = testing::Types<BF16, F16>;
TYPED_TEST_SUITE(NumericsTest, Types);

TYPED_TEST(NumericsTest, WidensEveryPattern) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float wide = Widen(TypeParam{static_cast<uint16_t>(bits)});
    const double expected = Decode<TypeParam>(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
    } else {
      ASSERT_EQ(wide, expected) << bits;
      ASSERT_EQ(std::signbit(wide), std::signbit(expected)) << bits;
    }
  }
}

TYPED_TEST(NumericsTest, NarrowsEveryPatternToItself) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double value = Decode<TypeParam>(bits);
    const uint16_t narrowed = Narrow<TypeParam>(value).bits;
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(Widen(TypeParam{narrowed}))) << bits;
    } else {
      ASSERT_EQ(narrowed, bits) << value;
    }
  }
}

TYPED_TEST(NumericsTest, KeepsTheSignOfANaN) {
  const double nan = std::bit_cast<double>(uint64_t{0xfff1000000000001});
  EXPECT_TRUE(std::isnan(Widen(Narrow<TypeParam>(nan))));
  EXPECT_NE(Narrow<TypeParam>(nan).bits >> 15, 0);
}

// Between every two neighbours: the middle goes to the even one, anything beside it to the nearer.
TYPED_TEST(NumericsTest, RoundsToNearestEvenEverywhere) {
  const uint32_t infinity = ((1u << Format<TypeParam>::kExponent) - 1)
                            << Format<TypeParam>::kFraction;
  for (uint32_t sign : {0u, 0x8000u}) {
    for (uint32_t low = 0; low < infinity; ++low) {
      const uint32_t high = low + 1;
      const double a = Decode<TypeParam>(low);
      // Beyond the largest finite number the middle is where the next one would have been.
      const double b =
          high == infinity ? a + (a - Decode<TypeParam>(low - 1)) : Decode<TypeParam>(high);
      const double middle = (a + b) / 2;  // exact: f64 has more bits
      const double factor = sign != 0 ? -1 : 1;
      const auto narrow = [&](double v) { return Narrow<TypeParam>(factor * v).bits; };
      ASSERT_EQ(narrow(middle), sign | (low % 2 == 0 ? low : high)) << middle;
      ASSERT_EQ(narrow(std::nextafter(middle, 0)), sign | low) << middle;
      ASSERT_EQ(narrow(std::nextafter(middle, INFINITY)), sign | high) << middle;
    }
  }
}

TEST(Numerics, RoundsOnceFromF64) {
  // 1 + 2^-8 is the middle of two bf16 numbers; a little more must go up. By way of f32 the little
  // is lost, and the middle goes down to the even one.
  const double value = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(Widen(Narrow<BF16>(value)), 1 + 0x1p-7f);
  EXPECT_EQ(Widen(Narrow<BF16>(static_cast<float>(value))), 1.0f);
}

TEST(Numerics, TinyValuesKeepTheirSign) {
  EXPECT_EQ(Narrow<F16>(-1e-300).bits, 0x8000);
  EXPECT_EQ(Narrow<F16>(1e-320).bits, 0);
  EXPECT_EQ(Narrow<BF16>(-1e-60).bits, 0x8000);
  EXPECT_EQ(Narrow<F16>(65519.999).bits, 0x7bff);
  EXPECT_EQ(Narrow<F16>(65520.0).bits, 0x7c00);
}

TEST(Numerics, LoadsAndStoresAtAnyAddress) {
  alignas(8) char bytes[32] = {};
  StoreAt<float>(bytes + 1, 2, 3.5f);
  EXPECT_EQ(LoadAt<float>(bytes + 1, 2), 3.5f);
  EXPECT_EQ(LoadAt<float>(bytes + 9, 0), 3.5f);
  StoreRounded(DataType::kF16, bytes + 1, 5, 0.1);
  EXPECT_EQ(LoadWidened(DataType::kF16, bytes + 1, 5), Decode<F16>(0x2e66));
}

}  // namespace
}  // namespace convgrad
