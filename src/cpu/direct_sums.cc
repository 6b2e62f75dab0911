// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_sums.cc"
#include "hwy/foreach_target.h"
#include "cpu/direct.h"
#include "cpu/direct_stores-inl.h"
#include "cpu/direct_sums.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Sums in registers: chains, as many as hide the latency of a multiply-add (12 of them: 60 % of the
// peak of Neoverse-V1, 18: 80 %). A position of g is used for two terms, or two pixels, of which
// the second comes so many sums later, for the first to be done.
constexpr int kMostSums = kUnrolledRegisters == 32 ? 18 : 8;
constexpr int kTilePixels = kUnrolledRegisters == 32 ? 16 : 8;
constexpr int kLag = kUnrolledRegisters == 32 ? 8 : 3;
constexpr int kMostTerms = kUnrolledRegisters == 32 ? 8 : 4;
// Planes of a block, or as many of them as sums are for.
constexpr int kMostPlanes = std::min<int>(4, LanesOfBlock(kLanes) / kLanes);

// sum[i] += x(i) * first(i), then sum[i] += x(i + 1) * second(i). Sums are in rows of kRow; x(i +
// 1) of the last of a row is beyond(row). Loads come in twos, which are one instruction where they
// are neighbours: a Neoverse-V1 reads five instructions in a cycle.
template <int kSums, int kRow, class X, class Beyond, class Factors>
HWY_INLINE void AddTwice(V (&sum)[kSums], const X& x, const Beyond& beyond, const Factors& first,
                         const Factors& second) {
  V kept[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums + kLag; ++i) {
    if (i < kSums) {
      if (i % kRow % 2 == 0) {
        kept[i] = x(i);
        if (i % kRow + 1 < kRow) kept[i + 1] = x(i + 1);
      }
      sum[i] = FusedMulAdd(kept[i], first[i / kRow], sum[i]);
    }
    const int j = i - kLag;
    if (j < 0) continue;
    const V next = (j + 1) % kRow == 0 ? beyond(j / kRow) : kept[(j + 1) % kSums];
    sum[j] = FusedMulAdd(next, second[j / kRow], sum[j]);
  }
}

// sum[i] += x(i) * factor(i)
template <int kSums, int kRow, class X, class Factors>
HWY_INLINE void AddOnce(V (&sum)[kSums], const X& x, const Factors& factor) {
#pragma GCC unroll 32
  for (int i = 0; i < kSums; i += 2) {
    const V x0 = x(i), x1 = x(i + 1 < kSums ? i + 1 : i);
    sum[i] = FusedMulAdd(x0, factor[i / kRow], sum[i]);
    if (i + 1 < kSums) sum[i + 1] = FusedMulAdd(x1, factor[(i + 1) / kRow], sum[i + 1]);
  }
}

// sum[p] += x(p + t) * factor[t], t by t for each p: every position is loaded once, by twos.
template <int kTerms, int kPixels, class X>
HWY_INLINE void AddSliding(V* HWY_RESTRICT sum, const X& x, const V (&factor)[kTerms]) {
  constexpr int kPlaces = kPixels + kTerms - 1;
  V loaded[kPlaces + 1];
#pragma GCC unroll 32
  for (int i = 0; i < kPlaces; ++i) {
    if (i % 2 == 0) {
      loaded[i] = x(i);
      if (i + 1 < kPlaces) loaded[i + 1] = x(i + 1);
    }
#pragma GCC unroll 4
    for (int t = 0; t < kTerms; ++t) {
      if (i - t >= 0 && i - t < kPixels) {
        sum[i - t] = FusedMulAdd(loaded[i], factor[t], sum[i - t]);
      }
    }
  }
}

// kSlide: terms and pixels are both one position, of one vector, apart; where terms go back, so do
// pixels here.
template <int kPixels, int kPlanes, int kSlide>
HWY_INLINE void SumTapsOfPlanes(const TermRuns& all, int64_t plane, bool add, float* c) {
  const D d;
  constexpr int64_t kStep = (kSlide < 0 ? -1 : 1) * kLanes;
  constexpr int kSums = kPixels * kPlanes;
  V sum[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) sum[i] = hn::Zero(d);
  for (const TermRun* run = all.runs; run < all.runs + all.count; ++run) {
    const float *g = run->g + plane * all.g_plane, *w = run->w + plane * all.w_plane;
    int64_t t = all.terms;
    V factor[kPlanes], second[kPlanes];
    if constexpr (kSlide != 0) {
      if (kSlide < 0) g += (kPixels - 1) * kLanes;
      // By threes, but four are twice two.
      for (; kUnrolledRegisters == 32 && (t == 3 || t > 4);
           t -= 3, g += 3 * kStep, w += 3 * kLanes) {
#pragma GCC unroll 4
        for (int i = 0; i < kPlanes; ++i) {
          V three[3];
#pragma GCC unroll 3
          for (int k = 0; k < 3; ++k) three[k] = hn::LoadU(d, w + i * all.w_plane + k * kLanes);
          AddSliding<3, kPixels>(
              sum + i * kPixels,
              [&](int p) HWY_ATTR { return hn::LoadU(d, g + i * all.g_plane + p * kStep); }, three);
        }
      }
      for (; t >= 2; t -= 2, g += 2 * kStep, w += 2 * kLanes) {
#pragma GCC unroll 4
        for (int i = 0; i < kPlanes; ++i) {
          factor[i] = hn::LoadU(d, w + i * all.w_plane);
          second[i] = hn::LoadU(d, w + i * all.w_plane + kLanes);
        }
        const auto load = [&](int i, int p)
                              HWY_ATTR { return hn::LoadU(d, g + i * all.g_plane + p * kStep); };
        AddTwice<kSums, kPixels>(
            sum, [&](int i) HWY_ATTR { return load(i / kPixels, i % kPixels); },
            [&](int i) HWY_ATTR { return load(i, kPixels); }, factor, second);
      }
    }
    const int64_t step = kSlide != 0 ? kStep : all.pixel;
    for (; t > 0; --t, g += all.term, w += kLanes) {
#pragma GCC unroll 4
      for (int i = 0; i < kPlanes; ++i) factor[i] = hn::LoadU(d, w + i * all.w_plane);
      AddOnce<kSums, kPixels>(
          sum,
          [&](int i)
              HWY_ATTR { return hn::LoadU(d, g + i / kPixels * all.g_plane + i % kPixels * step); },
          factor);
    }
  }
  if (StoresLines(kLanes) && all.bias != nullptr) {
    constexpr int kOrder = kSlide < 0 ? -1 : 1;
#pragma GCC unroll 4
    for (int i = 0; i < kPlanes; ++i) {
      StorePixels<kPixels, kOrder>(all, plane + i, sum + i * kPixels, c);
    }
    return;
  }
  c += plane * all.c_plane + (kSlide < 0 ? (kPixels - 1) * kLanes : 0);
#if defined(__GNUC__)
  asm("" : "+r"(c));  // GCC would add it to each of the offsets that follow
#endif
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) {
    float* const to = c + i / kPixels * all.c_plane + i % kPixels * kStep;
    hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sum[i]) : sum[i], d, to);
  }
}

// Two or four planes at a time where one has too few chains.
template <int kPixels, int kSlide>
HWY_NOINLINE void SumTapsTile(const TermRuns& all, int64_t lanes, bool add, float* c) {
  constexpr int kPlanes = std::clamp(kTilePixels / kPixels, 1, kMostPlanes);
  const int64_t planes = CeilDiv(lanes, kLanes);
  int64_t i = 0;
  for (; i + kPlanes <= planes; i += kPlanes) {
    SumTapsOfPlanes<kPixels, kPlanes, kSlide>(all, i, add, c);
  }
  for (; i < planes; ++i) SumTapsOfPlanes<kPixels, 1, kSlide>(all, i, add, c);
}

// Of so many pixels that are left: 16, 8, 4, 2 or 1; of wide vectors 14 of 28 and of 14, since
// after 16 of 28 tiles of 8 and of 4 have too few chains (7x7 on 28x28, Cascade Lake: 0.88 of the
// time).
constexpr int PixelsOfTile(int64_t rest) {
  if (kLanes == 16 && (rest == 28 || rest == 14)) return 14;
  if (rest >= kTilePixels) return kTilePixels;
  return rest >= 8 ? 8 : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
}

template <int kSlide>
void SumTapsOfLine(const TermRuns& all, int64_t lanes, int64_t pixels, bool add, float* c) {
  for (int64_t at = 0, count = 0; at < pixels; at += count) {
    float* const to = c + at * StepOfC(all);
    count = PixelsOfTile(pixels - at);
    if (count == kTilePixels) {
      SumTapsTile<kTilePixels, kSlide>(all, lanes, add, to);
    } else if (count == 8) {
      SumTapsTile<8, kSlide>(all, lanes, add, to);
    } else if (count == 4) {
      SumTapsTile<4, kSlide>(all, lanes, add, to);
    } else if (count == 2) {
      SumTapsTile<2, kSlide>(all, lanes, add, to);
    } else if (count == 1) {
      SumTapsTile<1, kSlide>(all, lanes, add, to);
    } else {
      if constexpr (kLanes == 16) SumTapsTile<14, kSlide>(all, lanes, add, to);
    }
    for (int64_t r = 0; r < all.count; ++r) all.runs[r].g += count * all.pixel;
  }
}

void SumTapsHere(const TermRuns& all, int64_t lanes, int64_t pixels, bool add, float* c) {
  const bool slides = all.pixel == kLanes && all.terms > 1;
  if (slides && all.term == kLanes) return SumTapsOfLine<1>(all, lanes, pixels, add, c);
  if (slides && all.term == -kLanes) return SumTapsOfLine<-1>(all, lanes, pixels, add, c);
  SumTapsOfLine<0>(all, lanes, pixels, add, c);
}

// sum[plane][line][term] += g[pixel + term] * v[pixel], pixel by pixel. Each line of each plane has
// a pointer of its own, so that all else is constants.
template <int kLines, int kTerms, int kPlanes, bool kSlides>
HWY_INLINE void SumPixelsOfPlanes(const PixelRun& run, int64_t first, int64_t plane) {
  const D d;
  constexpr int kRows = kPlanes * kLines, kSums = kRows * kTerms;
  V sum[kSums];
  const float *g[kRows], *v[kPlanes];
  float* sums[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const int64_t of_plane = plane + i / kLines;
    g[i] = Whole(run.g[i % kLines] + first * run.term + of_plane * run.g_plane);
    sums[i] = Whole(run.sums[i % kLines] + first * kLanes + of_plane * run.sum_plane);
    v[i / kLines] = Whole(run.v + of_plane * run.v_plane);
#pragma GCC unroll 8
    for (int t = 0; t < kTerms; ++t) sum[i * kTerms + t] = hn::LoadU(d, sums[i] + t * kLanes);
  }
  const auto load = [&](int i, int64_t term) HWY_ATTR { return hn::LoadU(d, g[i] + term); };
  const auto advance = [&](int64_t step, int64_t pixels) HWY_ATTR {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) g[i] = Whole(g[i] + step);
#pragma GCC unroll 4
    for (int k = 0; k < kPlanes; ++k) v[k] = Whole(v[k] + pixels * kLanes);
  };
  // For each line of each plane.
  V factor[kRows], second[kRows];
  int64_t p = 0;
  if constexpr (kSlides) {
    for (; p + 2 <= run.pixels; p += 2) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        factor[i] = hn::LoadU(d, v[i / kLines]);
        second[i] = hn::LoadU(d, v[i / kLines] + kLanes);
      }
      AddTwice<kSums, kTerms>(
          sum, [&](int i) HWY_ATTR { return load(i / kTerms, i % kTerms * kLanes); },
          [&](int i) HWY_ATTR { return load(i, kTerms * kLanes); }, factor, second);
      advance(2 * kLanes, 2);
    }
  }
  for (; p < run.pixels; ++p) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) factor[i] = hn::LoadU(d, v[i / kLines]);
    const int64_t step = kSlides ? kLanes : run.term;
    AddOnce<kSums, kTerms>(
        sum, [&](int i) HWY_ATTR { return load(i / kTerms, i % kTerms * step); }, factor);
    advance(run.pixel, 1);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int t = 0; t < kTerms; ++t) hn::StoreU(sum[i * kTerms + t], d, sums[i] + t * kLanes);
  }
}

template <int kLines, int kTerms, bool kSlides>
HWY_NOINLINE void SumPixelsTile(const PixelRun& run, int64_t first, int64_t lanes) {
  constexpr int kEach = kLines * kTerms;
  constexpr int kPlanes = std::min(kMostPlanes, 4 * kEach <= kMostSums   ? 4
                                                : 2 * kEach <= kMostSums ? 2
                                                                         : 1);
  const int64_t planes = CeilDiv(lanes, kLanes);
  int64_t i = 0;
  for (; i + kPlanes <= planes; i += kPlanes) {
    SumPixelsOfPlanes<kLines, kTerms, kPlanes, kSlides>(run, first, i);
  }
  for (; i < planes; ++i) SumPixelsOfPlanes<kLines, kTerms, 1, kSlides>(run, first, i);
}

using SumPixelsFunction = void (*)(const PixelRun& run, int64_t first, int64_t lanes);

// One of each number of terms.
template <int kLines, bool kSlides, class Sizes>
struct PixelTiles;
template <int kLines, bool kSlides, int... kTerms>
struct PixelTiles<kLines, kSlides, std::integer_sequence<int, kTerms...>> {
  static constexpr SumPixelsFunction kOf[] = {SumPixelsTile<kLines, kTerms + 1, kSlides>...};
};
template <int kLines, int kMost, bool kSlides>
constexpr const SumPixelsFunction* kPixelTiles =
    PixelTiles<kLines, kSlides, std::make_integer_sequence<int, kMost>>::kOf;

constexpr int kTermsOfTwoLines = 4;
constexpr int kTermsOfThreeLines = kUnrolledRegisters == 32 ? 3 : 2;

int LinesTogetherHere(int64_t terms) {
  return terms <= kTermsOfThreeLines ? 3 : terms <= kTermsOfTwoLines ? 2 : 1;
}

template <bool kSlides>
const SumPixelsFunction* PixelTilesFor(int lines) {
  if (lines == 3) return kPixelTiles<3, kTermsOfThreeLines, kSlides>;
  if (lines == 2) return kPixelTiles<2, kTermsOfTwoLines, kSlides>;
  return kPixelTiles<1, kMostTerms, kSlides>;
}

void SumPixelsHere(const PixelRun& run, int64_t lanes, int lines) {
  const bool slides = run.term == kLanes && run.pixel == kLanes;
  const SumPixelsFunction* const of =
      slides ? PixelTilesFor<true>(lines) : PixelTilesFor<false>(lines);
  const int64_t tiles = CeilDiv(run.terms, lines == 1 ? kMostTerms : run.terms);
  for (int64_t i = 0, first = 0; i < tiles; ++i) {
    const int64_t count = (run.terms - first) / (tiles - i);
    of[count - 1](run, first, lanes);
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
