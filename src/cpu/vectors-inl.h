// The vectors of an instruction set, and how they come from and go to the user's tensors, whose
// elements may lie at any byte.
#if defined(CONVGRAD_CPU_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_VECTORS_INL_H_
#undef CONVGRAD_CPU_VECTORS_INL_H_
#else
#define CONVGRAD_CPU_VECTORS_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "core/numerics.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
#if HWY_TARGET == HWY_AVX2
constexpr int kRegisters = 16;
#else
constexpr int kRegisters = 32;
#endif

// sum + x * y, rounded once, on every CPU.
HWY_INLINE V FusedMulAdd(V x, V y, V sum) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::fma(x.raw, y.raw, sum.raw));
#else
  return hn::MulAdd(x, y, sum);
#endif
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadBytes(Tag d, const float* from) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, LoadAt<float>(from, 0));
#else
  const hn::Repartition<uint8_t, Tag> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)));
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

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
