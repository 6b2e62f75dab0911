// Where sums in registers go: to the tensor itself, step 8 of the story, for vectors that are whole
// cache lines of channels; all others to memory first, which direct_lines-inl.h stores. Does not
// know groups or taps.
#if defined(CONVGRAD_CPU_DIRECT_STORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_STORES_INL_H_
#undef CONVGRAD_CPU_DIRECT_STORES_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_STORES_INL_H_
#endif

#include <cstdint>

#include "cpu/direct_sums.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Floats of c from pixel to pixel, to memory or to the tensor.
HWY_INLINE int64_t StepOfC(const TermRuns& all) {
  return StoresLines(kLanes) && all.bias != nullptr ? all.c_pixel : kLanes;
}

// The sums of kPixels pixels of a plane, the last one first where kSlide is -1. A bias of +0 makes
// a -0 the +0 that it is where it is added to zero.
template <int kPixels, int kSlide>
HWY_INLINE void StorePixels(const TermRuns& all, int64_t plane, const V* HWY_RESTRICT sum,
                            float* c) {
  const D d;
  const V bias = hn::LoadU(d, all.bias + plane * all.w_plane);
  float* to = c + plane * kLanes + (kSlide < 0 ? (kPixels - 1) * all.c_pixel : 0);
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p, to += kSlide * all.c_pixel) {
    StoreBytes(hn::Add(sum[p], bias), d, to);
  }
}

// To the tensor or to memory; `back`: the last one first.
template <int kPixels>
HWY_INLINE void StorePixels(const TermRuns& all, int64_t plane, bool back, bool add,
                            const V (&sum)[kPixels], float* c) {
  if (StoresLines(kLanes) && all.bias != nullptr) {
    return back ? StorePixels<kPixels, -1>(all, plane, sum, c)
                : StorePixels<kPixels, 1>(all, plane, sum, c);
  }
  const D d;
  const int64_t step = back ? -kLanes : kLanes;
  float* to = c + plane * all.c_plane + (back ? (kPixels - 1) * kLanes : 0);
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p, to += step) {
    hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sum[p]) : sum[p], d, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
