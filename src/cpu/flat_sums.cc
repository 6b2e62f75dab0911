// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/flat_sums.cc"
#include "hwy/foreach_target.h"
#include "cpu/flat_sums.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Vectors of pixels at once: with the sums, those of g and one weight fit into the registers. One o
// loads a vector for each multiply-add, which takes both ports of x86 where it is not aligned.
constexpr int VectorsOf(int outs) {
  constexpr bool kMany = kUnrolledRegisters == 32;
  return outs == 1   ? 8
         : outs == 2 ? (kMany ? 8 : 5)
         : outs == 3 ? (kMany ? 6 : 4)
         : outs == 4 ? (kMany ? 6 : 3)
         : outs == 6 ? (kMany ? 4 : 2)
                     : (kMany ? 3 : 1);
}

// Tap by tap, and of a tap channel by channel: one chain for each lane.
template <int kOuts, int kVectors>
HWY_INLINE void SumTerms(const FlatTerms& terms, const float* const (&g)[kVectors], const float* w,
                         V (&sum)[kOuts][kVectors]) {
#pragma GCC unroll 8
  for (int k = 0; k < kOuts; ++k) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) sum[k][i] = hn::Zero(D());
  }
  for (int64_t t = 0; t < terms.taps; ++t) {
    int64_t at = terms.offsets[t];
    for (int64_t channel = 0; channel < terms.channels; ++channel, w += kOuts) {
      V x[kVectors];
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) x[i] = hn::LoadU(D(), g[i] + at);
#pragma GCC unroll 8
      for (int k = 0; k < kOuts; ++k) {
        const V factor = hn::Set(D(), w[k]);
#pragma GCC unroll 8
        for (int i = 0; i < kVectors; ++i) sum[k][i] = FusedMulAdd(x[i], factor, sum[k][i]);
      }
      at += terms.channel_step;
    }
  }
}

// In place of vectors beyond the last one, the last one again.
template <int kOuts>
HWY_NOINLINE void SumOuts(const FlatTerms& terms, const float* g, const int64_t* pixels,
                          int64_t count, const float* w, bool add, float* c) {
  constexpr int kVectors = VectorsOf(kOuts);
  const D d;
  for (int64_t first = 0; first < count; first += kVectors) {
    const int64_t wanted = std::min<int64_t>(kVectors, count - first);
    const float* from[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      from[i] = g + pixels[first + std::min<int64_t>(i, wanted - 1)];
    }
    V sum[kOuts][kVectors];
    SumTerms<kOuts, kVectors>(terms, from, w, sum);
    float* to = c + first * kLanes;
#pragma GCC unroll 8
    for (int k = 0; k < kOuts; ++k, to += count * kLanes) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        if (i >= wanted) break;
        float* const at = to + i * kLanes;
        hn::StoreU(add ? hn::Add(hn::LoadU(d, at), sum[k][i]) : sum[k][i], d, at);
      }
    }
  }
}

void SumFlatHere(const FlatTerms& terms, const float* g, const int64_t* pixels, int64_t count,
                 const float* w, int64_t outs, bool add, float* c) {
  const auto of = outs == 1   ? SumOuts<1>
                  : outs == 2 ? SumOuts<2>
                  : outs == 3 ? SumOuts<3>
                  : outs == 4 ? SumOuts<4>
                  : outs == 6 ? SumOuts<6>
                              : SumOuts<8>;
  of(terms, g, pixels, count, w, add, c);
}

const FlatSums& FlatSumsHere() {
  static constexpr FlatSums kSums{SumFlatHere};
  return kSums;
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(FlatSumsHere);

const FlatSums& PickedFlatSums() { return HWY_DYNAMIC_DISPATCH(FlatSumsHere)(); }

}  // namespace convgrad
#endif  // HWY_ONCE
