// The vectors of an instruction set, and how they come from and go to the user's tensors, whose
// elements may lie at any byte.
#if defined(CONVGRAD_CPU_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_VECTORS_INL_H_
#undef CONVGRAD_CPU_VECTORS_INL_H_
#else
#define CONVGRAD_CPU_VECTORS_INL_H_
#endif

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/numerics.h"
#include "cpu/element.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
// NEON, whatever a version of Highway calls its targets, takes a factor from a lane of a register
// for free; x86 from memory.
#undef CONVGRAD_MULTIPLIES_BY_LANES
#define CONVGRAD_MULTIPLIES_BY_LANES (HWY_ARCH_ARM_A64 && HWY_TARGET != HWY_SCALAR)
// Better targets have smaller numbers.
#undef CONVGRAD_HAS_AVX512
#define CONVGRAD_HAS_AVX512 (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
// Tiles of 12 rows leave out halves or quarters of them (tile.h): six rows of two vectors of
// AVX-512 still have more sums than there are multiply-adds under way, three rows three of four;
// both are enough for Neoverse-N1, which adds to a sum every second cycle (Neoverse-V1, which has
// twice the units, was not measured). SCALAR, so that tests run it everywhere.
#undef CONVGRAD_LEAVES_OUT_ROWS
#define CONVGRAD_LEAVES_OUT_ROWS \
  (CONVGRAD_HAS_AVX512 || CONVGRAD_MULTIPLIES_BY_LANES || HWY_TARGET == HWY_SCALAR)
#if HWY_TARGET == HWY_AVX2
constexpr int kRegisters = 16;
#else
constexpr int kRegisters = 32;
#endif
// What the direct kernel unrolls for. SCALAR only checks the other targets: larger tiles are not
// worth the time to compile them.
constexpr int kUnrolledRegisters = HWY_TARGET == HWY_SCALAR ? 16 : kRegisters;
// Nor are loops over lines of taps that know how many there are: with them, lines along pixels took
// longer to compile for SCALAR, and had more code, than for AVX2 or AVX-512.
constexpr bool kUnrollsLines = HWY_TARGET != HWY_SCALAR;

// Whether the direct kernel asks for what it copies next while it sums. (Not measured elsewhere.)
constexpr bool kAsksForNext = CONVGRAD_HAS_AVX512;

// A value that the compiler cannot take apart: it would compute a base and an index for every load,
// and no two would be one instruction.
template <class T>
HWY_INLINE T Whole(T value) {
#if defined(__GNUC__)
  asm("" : "+r"(value));
#endif
  return value;
}

// sum + x * y, rounded once, on every CPU.
HWY_INLINE V FusedMulAdd(V x, V y, V sum) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::fma(x.raw, y.raw, sum.raw));
#else
  return hn::MulAdd(x, y, sum);
#endif
}

// The same, in the register that has the sum. Where GCC would rather copy sums from register to
// register, a chain waits four cycles for each copy and two for a multiply-add (Neoverse-N1: nine
// chains over four pixels took 29 cycles, so 20). Not where many loads come first: GCC finds fewer
// registers for them (16 channels of a group: 7.4 ms, so 8.6).
HWY_INLINE V FusedMulAddThere(V x, V y, V sum) {
  V next = FusedMulAdd(x, y, sum);
#if CONVGRAD_MULTIPLIES_BY_LANES && defined(__GNUC__)
  asm("" : "+w"(next.raw));
#endif
  return next;
}

// Zero in a register that nobody shares. MOVI costs no slot of the vector unit (Neoverse-N1); the
// copies of one zero that GCC makes for many sums do.
HWY_INLINE V OwnZero() {
#if CONVGRAD_MULTIPLIES_BY_LANES && defined(__GNUC__)
  float32x4_t zero;
  asm volatile("movi %0.4s, #0" : "=w"(zero));
  return V(zero);
#else
  return hn::Zero(D());
#endif
}

// Whether none of the floats is an infinity or NaN: zero times those is NaN.
inline bool AllFinite(const float* floats, int64_t count) {
  const D d;
  V zeros[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      zeros[v] = FusedMulAdd(hn::LoadU(d, floats + i + v * kLanes), hn::Zero(d), zeros[v]);
    }
  }
  float rest = 0;
  for (; i < count; ++i) rest += floats[i] * 0.0f;
  const V sum = hn::Add(hn::Add(zeros[0], zeros[1]), hn::Add(zeros[2], zeros[3]));
  return rest == 0 && hn::AllTrue(d, hn::Eq(sum, hn::Zero(d)));
}

// One sum, rounded once.
HWY_INLINE float NarrowSum(float value, float) { return value; }
HWY_INLINE BF16 NarrowSum(float value, BF16) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
HWY_INLINE F16 NarrowSum(float value, F16) {
#if defined(__aarch64__)
  return {std::bit_cast<uint16_t>(static_cast<__fp16>(value))};
#elif HWY_TARGET == HWY_SCALAR
  return Narrow<F16>(value);
#else
  const hn::FixedTag<float, 4> d;
  const auto halves = hn::DemoteTo(hn::Rebind<hwy::float16_t, decltype(d)>(), hn::Set(d, value));
  return {hn::GetLane(hn::BitCast(hn::Rebind<uint16_t, decltype(d)>(), halves))};
#endif
}

// Lanes of f32 from elements next to each other, widened.
template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadBytes(Tag d, const float* from) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, LoadAt<float>(from, 0));
#else
  const hn::Repartition<uint8_t, Tag> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)));
#endif
}

#if HWY_TARGET != HWY_SCALAR
// 16-bit elements as bits.
template <class Tag, class T>
HWY_INLINE hn::Vec<Tag> LoadBits(Tag d, const T* from) {
  static_assert(sizeof(T) == sizeof(uint16_t));
  const hn::Repartition<uint8_t, Tag> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)));
}

#if CONVGRAD_MULTIPLIES_BY_LANES
// Between zeros: a zip, of which a Neoverse-N1 starts two in a cycle, where it starts one shift
// (SHLL); Highway 1.0 needs two instructions.
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> WidenBits(hn::FixedTag<float, 4>,
                                                     hn::Vec<hn::FixedTag<uint16_t, 4>> bits,
                                                     BF16) {
  float32x4_t wide;
  asm("zip1 %0.8h, %2.8h, %1.8h" : "=w"(wide) : "w"(bits.raw), "w"(vdupq_n_u16(0)));
  return hn::Vec<hn::FixedTag<float, 4>>(wide);
}
#endif
template <class Tag, class Bits>
HWY_INLINE hn::Vec<Tag> WidenBits(Tag d, Bits bits, BF16) {
  const hn::RebindToUnsigned<Tag> wide;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
template <class Tag, class Bits>
HWY_INLINE hn::Vec<Tag> WidenBits(Tag d, Bits bits, F16) {
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, Tag>(), bits));
}
#endif

template <class Tag, class T>
HWY_INLINE hn::Vec<Tag> LoadBytes(Tag d, const T* from) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, Widen(LoadAt<T>(from, 0)));
#else
  return WidenBits(d, LoadBits(hn::Rebind<uint16_t, Tag>(), from), T());
#endif
}

template <class Tag>
HWY_INLINE void StoreBytes(hn::Vec<Tag> value, Tag, float* to) {
#if HWY_TARGET == HWY_SCALAR
  StoreAt(to, 0, value.raw);
#else
  const hn::Repartition<uint8_t, Tag> bytes;
  hn::StoreU(hn::BitCast(bytes, value), bytes, reinterpret_cast<uint8_t*>(to));
#endif
}

#if HWY_TARGET != HWY_SCALAR
// Rounded once, to nearest even, as Narrow() does. A NaN is that of a sum of products of bf16: one
// of theirs, quiet, or the CPU's own, so that its lower half is zero, and rounding leaves it alone.
// (Looking for any other took as many instructions as rounding; beta is finite.)
template <class Tag>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, Tag>> NarrowBits(Tag, hn::Vec<Tag> sum, BF16) {
  const hn::RebindToUnsigned<Tag> wide;
  const auto bits = hn::BitCast(wide, sum), one = hn::Set(wide, 1);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), one);
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fff)));
  return hn::TruncateTo(hn::Rebind<uint16_t, Tag>(), hn::ShiftRight<16>(rounded));
}
#if CONVGRAD_MULTIPLIES_BY_LANES
// The same in three instructions, no shift among them: odd is -1 where it is, and so subtracted.
struct RoundedBF16 {
  uint32x4_t raised, odd;

  explicit HWY_INLINE RoundedBF16(float32x4_t sum)
      : raised(vaddq_u32(vreinterpretq_u32_f32(sum), vdupq_n_u32(0x7fff))),
        odd(vtstq_u32(vreinterpretq_u32_f32(sum), vdupq_n_u32(0x10000))) {}
};
HWY_INLINE hn::Vec<hn::FixedTag<uint16_t, 4>> NarrowBits(hn::FixedTag<float, 4>,
                                                         hn::Vec<hn::FixedTag<float, 4>> sum,
                                                         BF16) {
  const RoundedBF16 rounded(sum.raw);
  return hn::Vec<hn::FixedTag<uint16_t, 4>>(vsubhn_u32(rounded.raised, rounded.odd));
}
#endif
#if CONVGRAD_MULTIPLIES_BY_LANES
HWY_INLINE hn::Vec<hn::FixedTag<uint16_t, 4>> NarrowBits(hn::FixedTag<float, 4>,
                                                         hn::Vec<hn::FixedTag<float, 4>> value,
                                                         NativeBF16) {
  uint16x4_t bits;
  asm(".arch_extension bf16\n\tbfcvtn %0.4h, %1.4s" : "=w"(bits) : "w"(value.raw));
  return hn::Vec<hn::FixedTag<uint16_t, 4>>(bits);
}
#endif
template <class Tag>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, Tag>> NarrowBits(Tag, hn::Vec<Tag> value, F16) {
  const hn::Rebind<uint16_t, Tag> bits;
  return hn::BitCast(bits, hn::DemoteTo(hn::Rebind<hwy::float16_t, Tag>(), value));
}
#endif

template <class Tag, class T>
HWY_INLINE void StoreBytes(hn::Vec<Tag> value, Tag d, T* to) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  StoreAt(to, 0, NarrowSum(value.raw, T()));
#else
  const hn::Rebind<uint16_t, Tag> half;
  const hn::Repartition<uint8_t, decltype(half)> bytes;
  hn::StoreU(hn::BitCast(bytes, NarrowBits(d, value, T())), bytes, reinterpret_cast<uint8_t*>(to));
#endif
}

// Two vectors of neighbours: one access to memory where NEON has elements of 16 bits.
template <class T>
HWY_INLINE void LoadBoth(const T* from, V& first, V& second) {
  first = LoadBytes(D(), from);
  second = LoadBytes(D(), from + kLanes);
}
template <class T>
HWY_INLINE void StoreBoth(V first, V second, T* to) {
  StoreBytes(first, D(), to);
  StoreBytes(second, D(), to + kLanes);
}
#if CONVGRAD_MULTIPLIES_BY_LANES
HWY_INLINE uint16x8_t NarrowBoth(V first, V second, BF16) {
  const RoundedBF16 low(first.raw), high(second.raw);
  return vsubhn_high_u32(vsubhn_u32(low.raised, low.odd), high.raised, high.odd);
}
HWY_INLINE uint16x8_t NarrowBoth(V first, V second, NativeBF16) {
  uint16x8_t bits;
  asm(".arch_extension bf16\n\tbfcvtn %0.4h, %1.4s\n\tbfcvtn2 %0.8h, %2.4s"
      : "=&w"(bits)
      : "w"(first.raw), "w"(second.raw));
  return bits;
}
HWY_INLINE uint16x8_t NarrowBoth(V first, V second, F16) {
  return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(first.raw), second.raw));
}
HWY_INLINE void WidenBoth(uint16x8_t bits, V& first, V& second, BF16) {
  const uint16x8_t zero = vdupq_n_u16(0);
  first = V(vreinterpretq_f32_u16(vzip1q_u16(zero, bits)));
  second = V(vreinterpretq_f32_u16(vzip2q_u16(zero, bits)));
}
HWY_INLINE void WidenBoth(uint16x8_t bits, V& first, V& second, F16) {
  const float16x8_t halves = vreinterpretq_f16_u16(bits);
  first = V(vcvt_f32_f16(vget_low_f16(halves)));
  second = V(vcvt_high_f32_f16(halves));
}

template <class T>
requires(sizeof(T) == sizeof(uint16_t)) HWY_INLINE
    void LoadBoth(const T* from, V& first, V& second) {
  const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(from));
  WidenBoth(vreinterpretq_u16_u8(bytes), first, second, T());
}
template <class T>
requires(sizeof(T) == sizeof(uint16_t)) HWY_INLINE void StoreBoth(V first, V second, T* to) {
  const uint8x16_t bytes = vreinterpretq_u8_u16(NarrowBoth(first, second, T()));
  vst1q_u8(reinterpret_cast<uint8_t*>(to), bytes);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
