// How sums become elements of 16 bits, and elements floats (cpu/vectors-inl.h), on every
// instruction set: one vector and two at a time, against core/numerics.h. bf16 from every upper
// half of a float with the lower ones that rounding can tell apart.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/conversions_test.cc"
#include "hwy/foreach_target.h"
#include "cpu/bf16_instructions.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <bit>
#include <cstdint>
#include <vector>

#include "core/numerics.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// The count is a multiple of 32.
template <class T>
void NarrowAll(const float* from, int64_t count, T* ones, T* twos) {
  const D d;
  for (int64_t i = 0; i < count; i += kLanes) StoreBytes(hn::LoadU(d, from + i), d, ones + i);
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    StoreBoth(hn::LoadU(d, from + i), hn::LoadU(d, from + i + kLanes), twos + i);
  }
}

template <class T>
void WidenAll(const T* from, int64_t count, float* ones, float* twos) {
  const D d;
  for (int64_t i = 0; i < count; i += kLanes) hn::StoreU(LoadBytes(d, from + i), d, ones + i);
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    V first, second;
    LoadBoth(from + i, first, second);
    hn::StoreU(first, d, twos + i);
    hn::StoreU(second, d, twos + i + kLanes);
  }
}

void NarrowHere(const float* from, int64_t count, BF16* ones, BF16* twos) {
#if CONVGRAD_MULTIPLIES_BY_LANES
  if (Bf16TermsEach() == kTermsOf<Quad>) {
    return NarrowAll(from, count, static_cast<NativeBF16*>(ones), static_cast<NativeBF16*>(twos));
  }
#endif
  NarrowAll(from, count, ones, twos);
}
void NarrowToF16Here(const float* from, int64_t count, F16* ones, F16* twos) {
  NarrowAll(from, count, ones, twos);
}
void WidenHere(const BF16* from, int64_t count, float* ones, float* twos) {
  WidenAll(from, count, ones, twos);
}
void WidenF16Here(const F16* from, int64_t count, float* ones, float* twos) {
  WidenAll(from, count, ones, twos);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <random>

#include "tests/instruction_set.h"

namespace convgrad {

HWY_EXPORT(NarrowHere);
HWY_EXPORT(NarrowToF16Here);
HWY_EXPORT(WidenHere);
HWY_EXPORT(WidenF16Here);

namespace tests {
namespace {

constexpr int64_t kPatterns = 1 << 16;

template <class Body>
void OnEveryInstructionSet(const Body& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    body();
    if (testing::Test::HasFailure()) return;
  }
}

// All upper halves, each with this lower one, or with any; odd and even ones of the same lane in
// vectors next to each other.
std::vector<float> FloatsWith(int64_t lower) {
  static std::mt19937 random(3);
  std::vector<float> floats(kPatterns);
  for (int64_t i = 0; i < kPatterns; ++i) {
    const int64_t upper = i ^ i >> 2 ^ i >> 3 ^ i >> 4;
    const uint32_t low = lower >= 0 ? static_cast<uint32_t>(lower) : random() & 0xffff;
    floats[i] = std::bit_cast<float>(static_cast<uint32_t>(upper << 16) | low);
  }
  return floats;
}
constexpr int64_t kLowerHalves[] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x2000, 0x7ffe, 0x7fff,
                                    0x8000, 0x8001, 0xefff, 0xf000, 0xfffe, 0xffff, -1,     -1};

// A NaN that sums of products of bf16 can be: quiet, nothing in its lower half.
bool IsNaNOfSums(uint32_t bits) { return (bits & 0x40ffff) == 0x400000; }

TEST(Conversions, SumsBecomeTheNearestBf16) {
  OnEveryInstructionSet([] {
    std::vector<BF16> ones(kPatterns), twos(kPatterns);
    for (const int64_t lower : kLowerHalves) {
      const std::vector<float> floats = FloatsWith(lower);
      HWY_DYNAMIC_DISPATCH(NarrowHere)(floats.data(), kPatterns, ones.data(), twos.data());
      int64_t nans = 0;
      for (int64_t i = 0; i < kPatterns; ++i) {
        const uint32_t bits = std::bit_cast<uint32_t>(floats[i]);
        if (floats[i] != floats[i] && !IsNaNOfSums(bits)) continue;
        nans += floats[i] != floats[i];
        const uint16_t nearest = Narrow<BF16>(floats[i]).bits;
        ASSERT_EQ(ones[i].bits, nearest) << std::hex << bits;
        ASSERT_EQ(twos[i].bits, nearest) << std::hex << bits;
      }
      ASSERT_EQ(nans, lower == 0 ? 2 * 64 : 0);
    }
  });
}

TEST(Conversions, SumsBecomeTheNearestF16) {
  const auto is_nan = [](F16 value) { return (value.bits & 0x7fff) > 0x7c00; };
  OnEveryInstructionSet([&] {
    std::vector<F16> ones(kPatterns), twos(kPatterns);
    for (const int64_t lower : kLowerHalves) {
      const std::vector<float> floats = FloatsWith(lower);
      HWY_DYNAMIC_DISPATCH(NarrowToF16Here)(floats.data(), kPatterns, ones.data(), twos.data());
      for (int64_t i = 0; i < kPatterns; ++i) {
        const uint32_t bits = std::bit_cast<uint32_t>(floats[i]);
        const F16 nearest = Narrow<F16>(floats[i]);
        if (floats[i] != floats[i]) {
          ASSERT_TRUE(is_nan(ones[i]) && is_nan(twos[i])) << std::hex << bits;
          continue;
        }
        ASSERT_EQ(ones[i].bits, nearest.bits) << std::hex << bits;
        ASSERT_EQ(twos[i].bits, nearest.bits) << std::hex << bits;
      }
    }
  });
}

template <class T, class WidenThem>
void ExpectWidened(const WidenThem& widen) {
  std::vector<T> all(kPatterns);
  for (int64_t i = 0; i < kPatterns; ++i) all[i] = {static_cast<uint16_t>(i)};
  std::vector<float> ones(kPatterns), twos(kPatterns);
  widen(all.data(), kPatterns, ones.data(), twos.data());
  for (int64_t i = 0; i < kPatterns; ++i) {
    const float wide = Widen(all[i]);
    for (const float got : {ones[i], twos[i]}) {
      if (wide != wide) {
        ASSERT_TRUE(got != got) << std::hex << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(wide)) << std::hex << i;
      }
    }
  }
}

TEST(Conversions, EveryElementIsWidenedExactly) {
  OnEveryInstructionSet([] {
    ExpectWidened<BF16>([](auto... args) { HWY_DYNAMIC_DISPATCH(WidenHere)(args...); });
    ExpectWidened<F16>([](auto... args) { HWY_DYNAMIC_DISPATCH(WidenF16Here)(args...); });
  });
}

}  // namespace
}  // namespace tests
}  // namespace convgrad
#endif  // HWY_ONCE
