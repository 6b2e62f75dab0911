// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_sums.cc"
#include "hwy/foreach_target.h"
#include "cpu/direct.h"
#include "cpu/direct_sums.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

constexpr int kBlock = static_cast<int>(LanesOfBlock(kLanes));
// Sums in registers, of two vectors each: as many chains as hide the latency of a multiply-add (4
// cycles, 4 at a time on Neoverse-V1), with room for the factors.
constexpr int kMostPixels = kRegisters == 32 ? 12 : 5;
constexpr int kMostTerms = kRegisters == 32 ? 8 : 5;

template <int kPixels>
constexpr int kTermsAtOnce = kRegisters != 32 ? 1 : kPixels <= 10 ? 3 : 2;

// sum[p] += g[p + t] * w[t], term by term: a position of g is loaded once for kTerms terms. kSign:
// where the next term is.
template <int kPixels, int kVectors, int kTerms, int kSign>
HWY_INLINE void AddSlidingTerms(const float* g, const float* w, V (&sum)[kPixels][kVectors]) {
  const D d;
  V factor[kTerms][kVectors];
#pragma GCC unroll 8
  for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) factor[t][v] = hn::LoadU(d, w + t * kBlock + v * kLanes);
  }
  if (kSign < 0) g -= (kTerms - 1) * kBlock;
#pragma GCC unroll 16
  for (int i = 0; i < kPixels + kTerms - 1; ++i) {
    const int u = kSign > 0 ? i : kPixels + kTerms - 2 - i;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V x = hn::LoadU(d, g + u * kBlock + v * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kTerms; ++t) {
        const int p = kSign > 0 ? u - t : u - (kTerms - 1 - t);
        if (p >= 0 && p < kPixels) sum[p][v] = FusedMulAdd(x, factor[t][v], sum[p][v]);
      }
    }
  }
}

// kSlide: terms and pixels are both one position, of one block, apart.
template <int kPixels, int kVectors, int kSlide>
HWY_NOINLINE void SumTapsTile(const TermRuns& all, bool add, float* c) {
  const D d;
  V sum[kPixels][kVectors];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::Zero(d);
  }
  for (const TermRun* run = all.runs; run < all.runs + all.count; ++run) {
    const float *g = run->g, *w = run->w;
    if constexpr (kSlide != 0) {
      constexpr int kTerms = kTermsAtOnce<kPixels>;
      int64_t t = all.terms;
      for (; t >= kTerms; t -= kTerms, g += kTerms * kSlide * kBlock, w += kTerms * kBlock) {
        AddSlidingTerms<kPixels, kVectors, kTerms, kSlide>(g, w, sum);
      }
      if (kTerms > 2 && t == 2) AddSlidingTerms<kPixels, kVectors, 2, kSlide>(g, w, sum);
      if (kTerms > 1 && t == 1) AddSlidingTerms<kPixels, kVectors, 1, kSlide>(g, w, sum);
    } else {
      for (int64_t t = 0; t < all.terms; ++t, g += all.term, w += kBlock) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const V factor = hn::LoadU(d, w + v * kLanes);
#pragma GCC unroll 16
          for (int p = 0; p < kPixels; ++p) {
            sum[p][v] =
                FusedMulAdd(hn::LoadU(d, g + p * all.pixel + v * kLanes), factor, sum[p][v]);
          }
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* const to = c + p * kBlock + v * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sum[p][v]) : sum[p][v], d, to);
    }
  }
}

using SumTapsFunction = void (*)(const TermRuns& runs, bool add, float* c);

// One of each number of pixels.
template <int kVectors, int kSlide, class Sizes = std::make_integer_sequence<int, kMostPixels>>
struct TapsTiles;
template <int kVectors, int kSlide, int... kPixels>
struct TapsTiles<kVectors, kSlide, std::integer_sequence<int, kPixels...>> {
  static constexpr SumTapsFunction kOf[] = {SumTapsTile<kPixels + 1, kVectors, kSlide>...};
};

template <int kVectors>
const SumTapsFunction* TapsTilesFor(const TermRuns& all) {
  if (all.pixel == kBlock && all.terms > 1) {
    if (all.term == kBlock) return TapsTiles<kVectors, 1>::kOf;
    if (all.term == -kBlock) return TapsTiles<kVectors, -1>::kOf;
  }
  return TapsTiles<kVectors, 0>::kOf;
}

// As even tiles as can be.
void SumTapsHere(const TermRuns& all, int vectors, int64_t pixels, bool add, float* c) {
  const SumTapsFunction* const of = vectors == 2 ? TapsTilesFor<2>(all) : TapsTilesFor<1>(all);
  const int64_t tiles = CeilDiv(pixels, kMostPixels);
  for (int64_t i = 0, at = 0; i < tiles; ++i) {
    const int64_t count = (pixels - at) / (tiles - i);
    of[count - 1](all, add, c + at * kBlock);
    at += count;
    for (int64_t r = 0; r < all.count; ++r) all.runs[r].g += count * all.pixel;
  }
}

// sum[l][t] += g[l][pixel + t] * v[pixel], pixel by pixel: a position of g is loaded once for
// kPixels pixels.
template <int kLines, int kTerms, int kVectors, int kPixels>
HWY_INLINE void AddSlidingPixels(const float* const (&g)[kLines], int64_t at, const float* v0,
                                 V (&sum)[kLines][kTerms][kVectors]) {
  const D d;
  V factor[kPixels][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) factor[p][v] = hn::LoadU(d, v0 + p * kBlock + v * kLanes);
  }
#pragma GCC unroll 16
  for (int u = 0; u < kTerms + kPixels - 1; ++u) {
#pragma GCC unroll 4
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const V x = hn::LoadU(d, g[l] + at + u * kBlock + v * kLanes);
#pragma GCC unroll 8
        for (int t = 0; t < kTerms; ++t) {
          if (u - t < 0 || u - t >= kPixels) continue;
          sum[l][t][v] = FusedMulAdd(x, factor[u - t][v], sum[l][t][v]);
        }
      }
    }
  }
}

template <int kLines, int kTerms, int kVectors, bool kSlides>
HWY_NOINLINE void SumPixelsTile(const PixelRun& run, int64_t first) {
  const D d;
  V sum[kLines][kTerms][kVectors];
  const float* g[kLines];
#pragma GCC unroll 4
  for (int l = 0; l < kLines; ++l) {
    g[l] = run.g[l] + first * run.term;
#pragma GCC unroll 8
    for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[l][t][v] = hn::LoadU(d, run.sums[l] + (first + t) * kBlock + v * kLanes);
      }
    }
  }
  int64_t p = 0, at = 0;
  const float* v0 = run.v;
  if constexpr (kSlides) {
    constexpr int kPixels = kRegisters == 32 ? 3 : 1;
    for (; p + kPixels <= run.pixels; p += kPixels, at += kPixels * kBlock) {
      AddSlidingPixels<kLines, kTerms, kVectors, kPixels>(g, at, v0, sum);
      v0 += kPixels * kBlock;
    }
  }
  for (; p < run.pixels; ++p, at += run.pixel, v0 += kBlock) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V factor = hn::LoadU(d, v0 + v * kLanes);
#pragma GCC unroll 4
      for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
        for (int t = 0; t < kTerms; ++t) {
          sum[l][t][v] = FusedMulAdd(hn::LoadU(d, g[l] + at + t * run.term + v * kLanes), factor,
                                     sum[l][t][v]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
    for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(sum[l][t][v], d, run.sums[l] + (first + t) * kBlock + v * kLanes);
      }
    }
  }
}

using SumPixelsFunction = void (*)(const PixelRun& run, int64_t first);

// One of each number of terms.
template <int kLines, int kVectors, bool kSlides, class Sizes>
struct PixelTiles;
template <int kLines, int kVectors, bool kSlides, int... kTerms>
struct PixelTiles<kLines, kVectors, kSlides, std::integer_sequence<int, kTerms...>> {
  static constexpr SumPixelsFunction kOf[] = {
      SumPixelsTile<kLines, kTerms + 1, kVectors, kSlides>...};
};
template <int kLines, int kMost, int kVectors, bool kSlides>
constexpr const SumPixelsFunction* kPixelTiles =
    PixelTiles<kLines, kVectors, kSlides, std::make_integer_sequence<int, kMost>>::kOf;

constexpr int kTermsOfTwoLines = kMostTerms / 2 + (kRegisters == 32);
constexpr int kTermsOfThreeLines = kRegisters == 32 ? 3 : 1;

int LinesTogetherHere(int64_t terms) {
  return terms <= kTermsOfThreeLines ? 3 : terms <= kTermsOfTwoLines ? 2 : 1;
}

template <int kVectors, bool kSlides>
const SumPixelsFunction* PixelTilesFor(int lines) {
  if (lines == 3) return kPixelTiles<3, kTermsOfThreeLines, kVectors, kSlides>;
  if (lines == 2) return kPixelTiles<2, kTermsOfTwoLines, kVectors, kSlides>;
  return kPixelTiles<1, kMostTerms, kVectors, kSlides>;
}

void SumPixelsHere(const PixelRun& run, int vectors, int lines) {
  const bool slides = run.term == kBlock && run.pixel == kBlock;
  const SumPixelsFunction* const of =
      vectors == 2 ? (slides ? PixelTilesFor<2, true>(lines) : PixelTilesFor<2, false>(lines))
                   : (slides ? PixelTilesFor<1, true>(lines) : PixelTilesFor<1, false>(lines));
  const int64_t tiles = CeilDiv(run.terms, lines == 1 ? kMostTerms : run.terms);
  for (int64_t i = 0, first = 0; i < tiles; ++i) {
    const int64_t count = (run.terms - first) / (tiles - i);
    of[count - 1](run, first);
    first += count;
  }
}

const DirectSums& DirectSumsHere() {
  static constexpr DirectSums kSums{SumTapsHere, SumPixelsHere, LinesTogetherHere};
  return kSums;
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(DirectSumsHere);

const DirectSums& PickedDirectSums() { return HWY_DYNAMIC_DISPATCH(DirectSumsHere)(); }

}  // namespace convgrad
#endif  // HWY_ONCE
