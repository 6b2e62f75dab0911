// The sums of the direct kernel, in registers: step 7 of the story. Knows lines of floats only.
#if defined(CONVGRAD_CPU_DIRECT_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_SUMS_INL_H_
#undef CONVGRAD_CPU_DIRECT_SUMS_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_SUMS_INL_H_
#endif

#include <cstdint>

#include "cpu/direct.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

constexpr int kBlockLanes = static_cast<int>(LanesOfBlock(kLanes));
constexpr int kMostPixels = kRegisters == 32 ? 8 : 5;  // two vectors of each in registers
constexpr int kMostTerms = kMostPixels;

// Terms that follow each other in g and in w.
struct TermRun {
  const float* g;
  const float* w;
};

// Of all runs of a chunk.
struct RunSteps {
  int64_t count;  // terms of a run
  int64_t term;   // floats of g from term to term; of w, a block of lanes
  int64_t pixel;  // floats of g from pixel to pixel
};

// sum[p] += g[p + t] * w[t], term by term: each position of g is loaded once for kTerms terms.
// kSign: where the next term is.
template <int kPixels, int kVectors, int kTerms, int kSign>
HWY_INLINE void AddSlidingTerms(const float* g, const float* w, V (&sum)[kPixels][kVectors]) {
  const D d;
  V factor[kTerms][kVectors];
#pragma GCC unroll 8
  for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) factor[t][v] = hn::LoadU(d, w + t * kBlockLanes + v * kLanes);
  }
  if (kSign < 0) g -= (kTerms - 1) * kBlockLanes;
#pragma GCC unroll 16
  for (int i = 0; i < kPixels + kTerms - 1; ++i) {
    const int u = kSign > 0 ? i : kPixels + kTerms - 2 - i;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V x = hn::LoadU(d, g + u * kBlockLanes + v * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kTerms; ++t) {
        const int p = kSign > 0 ? u - t : u - (kTerms - 1 - t);
        if (p >= 0 && p < kPixels) sum[p][v] = FusedMulAdd(x, factor[t][v], sum[p][v]);
      }
    }
  }
}

// c[pixel] = chunk, or += it. kSlide: terms and pixels are both one position apart.
template <int kPixels, int kVectors, int kSlide>
HWY_NOINLINE void SumRuns(const TermRun* runs, int64_t run_count, RunSteps steps, bool add,
                          float* c) {
  const D d;
  V sum[kPixels][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::Zero(d);
  }
  for (const TermRun* run = runs; run < runs + run_count; ++run) {
    const float *g = run->g, *w = run->w;
    if constexpr (kSlide != 0) {
      constexpr int64_t kStep = kSlide * kBlockLanes;
      int64_t t = steps.count;
      for (; t >= 3; t -= 3, g += 3 * kStep, w += 3 * kBlockLanes) {
        AddSlidingTerms<kPixels, kVectors, 3, kSlide>(g, w, sum);
      }
      if (t == 2) AddSlidingTerms<kPixels, kVectors, 2, kSlide>(g, w, sum);
      if (t == 1) AddSlidingTerms<kPixels, kVectors, 1, kSlide>(g, w, sum);
    } else {
      for (int64_t t = 0; t < steps.count; ++t, g += steps.term, w += kBlockLanes) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const V factor = hn::LoadU(d, w + v * kLanes);
#pragma GCC unroll 8
          for (int p = 0; p < kPixels; ++p) {
            sum[p][v] =
                FusedMulAdd(hn::LoadU(d, g + p * steps.pixel + v * kLanes), factor, sum[p][v]);
          }
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* const to = c + p * kBlockLanes + v * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sum[p][v]) : sum[p][v], d, to);
    }
  }
}

using SumRunsFunction = void (*)(const TermRun* runs, int64_t run_count, RunSteps steps, bool add,
                                 float* c);

// One of each number of pixels.
template <int kVectors, int kSlide, int... kPixels>
struct SumRunsTable {
  static constexpr SumRunsFunction kOf[] = {SumRuns<kPixels, kVectors, kSlide>...};
};
#if HWY_TARGET == HWY_AVX2
template <int kVectors, int kSlide>
constexpr const SumRunsFunction* kSumRuns = SumRunsTable<kVectors, kSlide, 1, 2, 3, 4, 5>::kOf;
#else
template <int kVectors, int kSlide>
constexpr const SumRunsFunction* kSumRuns =
    SumRunsTable<kVectors, kSlide, 1, 2, 3, 4, 5, 6, 7, 8>::kOf;
#endif

// Pixels of a line: as even tiles as can be. The runs move along with them.
template <int kVectors>
HWY_INLINE void SumLine(TermRun* runs, int64_t run_count, const RunSteps& steps, int64_t pixels,
                        bool add, float* c) {
  const int slide = steps.pixel != kBlockLanes || steps.count == 1 ? 0
                    : steps.term == kBlockLanes                     ? 1
                    : steps.term == -kBlockLanes                    ? -1
                                                                    : 0;
  const SumRunsFunction* const of = slide == 0  ? kSumRuns<kVectors, 0>
                                    : slide > 0 ? kSumRuns<kVectors, 1>
                                                : kSumRuns<kVectors, -1>;
  const int64_t tiles = CeilDiv(pixels, kMostPixels);
  for (int64_t i = 0, at = 0; i < tiles; ++i) {
    const int64_t count = (pixels - at) / (tiles - i);
    of[count - 1](runs, run_count, steps, add, c + at * kBlockLanes);
    at += count;
    for (int64_t r = 0; r < run_count; ++r) runs[r].g += count * steps.pixel;
  }
}

// sum[t] += g[pixel + t] * v[pixel], pixel by pixel, for terms one position apart.
template <int kTerms, int kVectors, int kPixels, int kSign>
HWY_INLINE void AddSlidingPixels(const float* g, const float* v0, V (&sum)[kTerms][kVectors]) {
  const D d;
  V factor[kPixels][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      factor[p][v] = hn::LoadU(d, v0 + p * kBlockLanes + v * kLanes);
    }
  }
#pragma GCC unroll 16
  for (int u = 0; u < kTerms + kPixels - 1; ++u) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V x = hn::LoadU(d, g + u * kBlockLanes + v * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kTerms; ++t) {
        if (u - t >= 0 && u - t < kPixels) sum[t][v] = FusedMulAdd(x, factor[u - t][v], sum[t][v]);
      }
    }
  }
}

// sums[term] goes on over the pixels of a line.
template <int kTerms, int kVectors, int kSlide>
HWY_NOINLINE void SumPixels(const float* g, const float* v0, int64_t pixels, int64_t term_step,
                            int64_t pixel_step, float* sums) {
  const D d;
  V sum[kTerms][kVectors];
#pragma GCC unroll 8
  for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[t][v] = hn::LoadU(d, sums + t * kBlockLanes + v * kLanes);
  }
  int64_t p = 0;
  if constexpr (kSlide != 0) {
    for (; p + 3 <= pixels; p += 3, g += 3 * kBlockLanes, v0 += 3 * kBlockLanes) {
      AddSlidingPixels<kTerms, kVectors, 3, 1>(g, v0, sum);
    }
  }
  for (; p < pixels; ++p, g += pixel_step, v0 += kBlockLanes) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V factor = hn::LoadU(d, v0 + v * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kTerms; ++t) {
        sum[t][v] = FusedMulAdd(hn::LoadU(d, g + t * term_step + v * kLanes), factor, sum[t][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[t][v], d, sums + t * kBlockLanes + v * kLanes);
  }
}

using SumPixelsFunction = void (*)(const float* g, const float* v0, int64_t pixels,
                                   int64_t term_step, int64_t pixel_step, float* sums);
template <int kVectors, int kSlide, int... kTerms>
struct SumPixelsTable {
  static constexpr SumPixelsFunction kOf[] = {SumPixels<kTerms, kVectors, kSlide>...};
};
#if HWY_TARGET == HWY_AVX2
template <int kVectors, int kSlide>
constexpr const SumPixelsFunction* kSumPixels = SumPixelsTable<kVectors, kSlide, 1, 2, 3, 4, 5>::kOf;
#else
template <int kVectors, int kSlide>
constexpr const SumPixelsFunction* kSumPixels =
    SumPixelsTable<kVectors, kSlide, 1, 2, 3, 4, 5, 6, 7, 8>::kOf;
#endif

// `terms` sums, as even tiles as can be.
template <int kVectors>
HWY_INLINE void SumTerms(const float* g, const float* v0, int64_t pixels, int64_t terms,
                         int64_t term_step, int64_t pixel_step, float* sums) {
  const bool slides = term_step == kBlockLanes && pixel_step == kBlockLanes;
  const SumPixelsFunction* const of = slides ? kSumPixels<kVectors, 1> : kSumPixels<kVectors, 0>;
  const int64_t tiles = CeilDiv(terms, kMostTerms);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t count = terms / (tiles - i);
    of[count - 1](g, v0, pixels, term_step, pixel_step, sums);
    g += count * term_step;
    sums += count * kBlockLanes;
    terms -= count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
