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

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Sums in registers: chains, as many as hide the latency of a multiply-add (12 of them: 60 % of the
// peak of Neoverse-V1, 18: 80 %). A position of g is used for two terms, or two pixels, of which
// the second comes so many sums later, for the first to be done.
constexpr int kMostSums = kRegisters == 32 ? 18 : 8;
constexpr int kTilePixels = kRegisters == 32 ? 16 : 8;
constexpr int kLag = kRegisters == 32 ? 8 : 3;
constexpr int kMostTerms = kRegisters == 32 ? 8 : 4;

// A value that the compiler cannot take apart: it would compute a base and an index for every load,
// and no two would be one instruction.
template <class T>
HWY_INLINE T* Whole(T* pointer) {
#if defined(__GNUC__)
  asm("" : "+r"(pointer));
#endif
  return pointer;
}

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
      for (; kRegisters == 32 && (t == 3 || t > 4); t -= 3, g += 3 * kStep, w += 3 * kLanes) {
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
  constexpr int kPlanes = std::clamp(kTilePixels / kPixels, 1, 4);
  const int64_t planes = CeilDiv(lanes, kLanes);
  int64_t i = 0;
  for (; i + kPlanes <= planes; i += kPlanes) {
    SumTapsOfPlanes<kPixels, kPlanes, kSlide>(all, i, add, c);
  }
  for (; i < planes; ++i) SumTapsOfPlanes<kPixels, 1, kSlide>(all, i, add, c);
}

// 16, 8, 4, 2 and 1 pixels.
template <int kSlide>
void SumTapsOfLine(const TermRuns& all, int64_t lanes, int64_t pixels, bool add, float* c) {
  for (int64_t at = 0, count = 0; at < pixels; at += count) {
    const int64_t rest = pixels - at;
    float* const to = c + at * kLanes;
    if (rest >= kTilePixels) {
      SumTapsTile<kTilePixels, kSlide>(all, lanes, add, to);
      count = kTilePixels;
    } else if (kTilePixels > 8 && rest >= 8) {
      SumTapsTile<8, kSlide>(all, lanes, add, to);
      count = 8;
    } else if (rest >= 4) {
      SumTapsTile<4, kSlide>(all, lanes, add, to);
      count = 4;
    } else if (rest >= 2) {
      SumTapsTile<2, kSlide>(all, lanes, add, to);
      count = 2;
    } else {
      SumTapsTile<1, kSlide>(all, lanes, add, to);
      count = 1;
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
  constexpr int kPlanes = 4 * kEach <= kMostSums ? 4 : 2 * kEach <= kMostSums ? 2 : 1;
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
constexpr int kTermsOfThreeLines = kRegisters == 32 ? 3 : 2;

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

// Groups of fours.

// As many pixels as there are registers for their sums and their channels.
constexpr int kMostGroupPixels = kRegisters == 32 ? 14 : 6;
constexpr int kMostPixelsOfTwo = kRegisters == 32 ? 8 : 4;
constexpr int kMostGroupTaps = kRegisters == 32 ? 6 : 3;
constexpr int kTapsOfTwoGroupLines = kRegisters == 32 ? 3 : 1;

// Channel i of four.
template <int i, bool kOfBlocks>
HWY_INLINE V Channel(const float* g, V four) {
#if HWY_TARGET == HWY_SCALAR
  (void)four;
  return hn::Set(D(), g[i]);
#else
  if constexpr (kOfBlocks || CONVGRAD_MULTIPLIES_BY_LANES) {
    return hn::Broadcast<i>(four);
  } else {
    return hn::Set(D(), g[i]);
  }
#endif
}

// The first channel of the group of plane `plane` of o, or of its first group.
inline int64_t FirstChannel(const GroupShape& shape, int64_t plane) {
  return plane * kLanes / shape.o * shape.all_channels;
}

// In a position of g.
HWY_INLINE int64_t OffsetOf(int64_t channel, int64_t g_plane) {
  return channel / kLanes * g_plane + channel % kLanes;
}

template <bool kOfBlocks>
constexpr bool kLoadsFours = kOfBlocks || CONVGRAD_MULTIPLIES_BY_LANES;

// Fours of channels of a group, run by run; the last one stays.
class FoursOfRuns {
 public:
  FoursOfRuns(const TermRuns& all, const GroupShape& shape, int64_t plane)
      : all_(all),
        channels_(shape.channels),
        first_(FirstChannel(shape, plane) + shape.first),
        offset_(OffsetOf(first_, all.g_plane)),
        plane_(plane * all.w_plane) {
    StartRun();
  }

  const float* g() const { return g_; }
  const float* w() const { return w_; }

  HWY_INLINE void Next() {
    if (four_ + 4 < channels_) {
      four_ += 4;
      const bool next_plane = (first_ + four_) % kLanes == 0;
      g_ = Whole(next_plane ? g_ + all_.g_plane - std::max(kLanes - 4, 0) : g_ + 4);
      w_ = Whole(w_ + 4 * kLanes);
    } else if (run_ + 1 < all_.count) {
      ++run_;
      StartRun();
    }
  }

 private:
  HWY_INLINE void StartRun() {
    four_ = 0;
    g_ = Whole(all_.runs[run_].g + offset_);
    w_ = Whole(all_.runs[run_].w + plane_);
  }

  const TermRuns& all_;
  const int64_t channels_, first_, offset_, plane_;
  int64_t run_ = 0, four_ = 0;
  const float *g_, *w_;
};

// Channel i of four.
template <int i, bool kOfBlocks, int kPixels, int kPlanes>
HWY_INLINE void AddChannel(const float* g, int64_t pixel, const V (&x)[kPixels],
                           const V (&factor)[kPlanes], V (&sum)[kPlanes][kPixels]) {
#pragma GCC unroll 2
  for (int k = 0; k < kPlanes; ++k) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      sum[k][p] = FusedMulAdd(Channel<i, kOfBlocks>(g + p * pixel, x[p]), factor[k], sum[k][p]);
    }
  }
}

// Weights of two channels, kPlanes of one group.
template <int kPlanes>
HWY_INLINE void LoadTwo(const float* w, int64_t w_plane, V (&first)[kPlanes],
                        V (&second)[kPlanes]) {
#pragma GCC unroll 2
  for (int k = 0; k < kPlanes; ++k) {
    first[k] = hn::LoadU(D(), w + k * w_plane);
    second[k] = hn::LoadU(D(), w + k * w_plane + kLanes);
  }
}

// kNear: pixels are positions that are next to each other. What the next four need is loaded while
// the last of these are multiplied.
template <int kPixels, int kPlanes, bool kOfBlocks, bool kNear>
HWY_INLINE void SumGroupTapsOfPlanes(const TermRuns& all, const GroupShape& shape, int64_t plane,
                                     bool add, float* c) {
  const D d;
  V sum[kPlanes][kPixels];
#pragma GCC unroll 2
  for (int k = 0; k < kPlanes; ++k) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) sum[k][p] = hn::Zero(d);
  }
  const int64_t pixel = kNear ? kLanes : all.pixel;
  const int64_t count = all.count * (shape.channels / 4);
  if (count > 0) {
    FoursOfRuns fours(all, shape, plane);
    V x[kPixels], w0[kPlanes], w1[kPlanes], w2[kPlanes], w3[kPlanes];
    const auto load = [&](int p) HWY_ATTR {
      x[p] = kLoadsFours<kOfBlocks> ? hn::LoadU(d, fours.g() + p * pixel) : hn::Zero(d);
    };
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) load(p);
    LoadTwo(fours.w(), all.w_plane, w0, w1);
    for (int64_t i = 0; i < count; ++i) {
      const float* const g = fours.g();
      LoadTwo(fours.w() + 2 * kLanes, all.w_plane, w2, w3);
      fours.Next();
      AddChannel<0, kOfBlocks>(g, pixel, x, w0, sum);
      AddChannel<1, kOfBlocks>(g, pixel, x, w1, sum);
      LoadTwo(fours.w(), all.w_plane, w0, w1);
      AddChannel<2, kOfBlocks>(g, pixel, x, w2, sum);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const V last = Channel<3, kOfBlocks>(g + p * pixel, x[p]);
#pragma GCC unroll 2
        for (int k = 0; k < kPlanes; ++k) sum[k][p] = FusedMulAdd(last, w3[k], sum[k][p]);
        load(p);
      }
    }
  }
#pragma GCC unroll 2
  for (int k = 0; k < kPlanes; ++k) {
    float* const to = Whole(c + (plane + k) * all.c_plane);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      float* const at = to + p * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, at), sum[k][p]) : sum[k][p], d, at);
    }
  }
}

// Two planes of a group share its channels; a group of four has one.
template <int kPixels, int kPlanes>
HWY_NOINLINE void SumGroupTapsTile(const TermRuns& all, const GroupShape& shape, int64_t lanes,
                                   bool add, float* c) {
  for (int64_t i = 0; i * kLanes < lanes; i += kPlanes) {
    if (kPlanes == 1 && shape.o == 4) {
      all.pixel == kLanes
          ? SumGroupTapsOfPlanes<kPixels, kPlanes, kPlanes == 1, true>(all, shape, i, add, c)
          : SumGroupTapsOfPlanes<kPixels, kPlanes, kPlanes == 1, false>(all, shape, i, add, c);
    } else {
      all.pixel == kLanes
          ? SumGroupTapsOfPlanes<kPixels, kPlanes, false, true>(all, shape, i, add, c)
          : SumGroupTapsOfPlanes<kPixels, kPlanes, false, false>(all, shape, i, add, c);
    }
  }
}

using SumGroupTapsFunction = void (*)(const TermRuns& all, const GroupShape& shape, int64_t lanes,
                                      bool add, float* c);
template <int kPlanes, class Sizes>
struct GroupTapsTiles;
template <int kPlanes, int... kPixels>
struct GroupTapsTiles<kPlanes, std::integer_sequence<int, kPixels...>> {
  static constexpr SumGroupTapsFunction kOf[] = {SumGroupTapsTile<kPixels + 1, kPlanes>...};
};
template <int kPlanes, int kMost>
constexpr const SumGroupTapsFunction* kGroupTapsTiles =
    GroupTapsTiles<kPlanes, std::make_integer_sequence<int, kMost>>::kOf;

void SumGroupTapsHere(const TermRuns& all, const GroupShape& shape, int64_t lanes, int64_t pixels,
                      bool add, float* c) {
  const bool two = shape.o % (2 * kLanes) == 0;
  const SumGroupTapsFunction* const of =
      two ? kGroupTapsTiles<2, kMostPixelsOfTwo> : kGroupTapsTiles<1, kMostGroupPixels>;
  const int64_t tiles = CeilDiv(pixels, two ? kMostPixelsOfTwo : kMostGroupPixels);
  for (int64_t i = 0, at = 0; i < tiles; ++i) {
    const int64_t count = (pixels - at) / (tiles - i);
    of[count - 1](all, shape, lanes, add, c + at * kLanes);
    at += count;
    for (int64_t r = 0; r < all.count; ++r) all.runs[r].g += count * all.pixel;
  }
}

// Bytes further.
HWY_INLINE const float* Further(const float* from, int64_t bytes) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(from) + bytes);
}

// sum[line][tap][channel of four] += g[pixel + tap] * v[pixel].
template <int kLines, int kTaps, bool kOfBlocks>
HWY_INLINE void SumGroupPixelsOfPlane(const PixelRun& run, const GroupShape& shape, int64_t tap,
                                      int64_t plane, int64_t four) {
  const D d;
  V sum[kLines][kTaps][4];
  const float* g[kLines];
  float* sums[kLines];
  const int64_t tap_sums = shape.all_channels * kLanes;
  const int64_t first = tap * run.term + OffsetOf(FirstChannel(shape, plane) + four, run.g_plane);
#pragma GCC unroll 2
  for (int l = 0; l < kLines; ++l) {
    g[l] = run.g[l] + first;
    sums[l] = run.sums[l] + tap * tap_sums + four * kLanes + plane * run.sum_plane;
    const float* from = sums[l];
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t, from = Whole(from + tap_sums)) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sum[l][t][i] = hn::LoadU(d, from + i * kLanes);
    }
  }
  const float* v = run.v + plane * run.v_plane;
  constexpr int64_t kFloat = sizeof(float);
  int64_t taps[kTaps];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) taps[t] = t * run.term * kFloat;
  for (int64_t p = 0; p < run.pixels; ++p, v += kLanes) {
    const V factor = hn::LoadU(d, v);
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        const float* const from = Further(g[l], taps[t]);
        const V x = kLoadsFours<kOfBlocks> ? hn::LoadU(d, from) : hn::Zero(d);
        sum[l][t][0] = FusedMulAdd(Channel<0, kOfBlocks>(from, x), factor, sum[l][t][0]);
        sum[l][t][1] = FusedMulAdd(Channel<1, kOfBlocks>(from, x), factor, sum[l][t][1]);
        sum[l][t][2] = FusedMulAdd(Channel<2, kOfBlocks>(from, x), factor, sum[l][t][2]);
        sum[l][t][3] = FusedMulAdd(Channel<3, kOfBlocks>(from, x), factor, sum[l][t][3]);
      }
      g[l] = Whole(g[l] + run.pixel);
    }
  }
#pragma GCC unroll 2
  for (int l = 0; l < kLines; ++l) {
    float* to = sums[l];
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t, to = Whole(to + tap_sums)) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) hn::StoreU(sum[l][t][i], d, to + i * kLanes);
    }
  }
}

// One line has too few chains: two fours of its channels, as if they were of two lines.
template <int kTaps>
HWY_INLINE void SumTwoFours(PixelRun run, const GroupShape& shape, int64_t tap, int64_t plane,
                            int64_t four) {
  const int64_t channel = FirstChannel(shape, plane) + four;
  run.g[1] = run.g[0] + OffsetOf(channel + 4, run.g_plane) - OffsetOf(channel, run.g_plane);
  run.sums[1] = run.sums[0] + 4 * kLanes;
  SumGroupPixelsOfPlane<2, kTaps, false>(run, shape, tap, plane, four);
}

template <int kLines, int kTaps>
HWY_NOINLINE void SumGroupPixelsTile(const PixelRun& run, const GroupShape& shape, int64_t tap,
                                     int64_t lanes) {
  for (int64_t i = 0; i * kLanes < lanes; ++i) {
    int64_t four = 0;
    if constexpr (kLines == 1 && kTaps <= kTapsOfTwoGroupLines) {
      for (; four + 8 <= shape.all_channels && shape.o != 4; four += 8) {
        SumTwoFours<kTaps>(run, shape, tap, i, four);
      }
    }
    for (; four < shape.all_channels; four += 4) {
      shape.o == 4 ? SumGroupPixelsOfPlane<kLines, kTaps, true>(run, shape, tap, i, four)
                   : SumGroupPixelsOfPlane<kLines, kTaps, false>(run, shape, tap, i, four);
    }
  }
}

using SumGroupPixelsFunction = void (*)(const PixelRun& run, const GroupShape& shape, int64_t tap,
                                        int64_t lanes);
template <int kLines, class Sizes>
struct GroupPixelTiles;
template <int kLines, int... kTaps>
struct GroupPixelTiles<kLines, std::integer_sequence<int, kTaps...>> {
  static constexpr SumGroupPixelsFunction kOf[] = {SumGroupPixelsTile<kLines, kTaps + 1>...};
};

void SumGroupPixelsHere(const PixelRun& run, const GroupShape& shape, int64_t lanes, int lines) {
  const int64_t most = lines == 2 ? kTapsOfTwoGroupLines : kMostGroupTaps;
  const SumGroupPixelsFunction* const of =
      lines == 2 ? GroupPixelTiles<2, std::make_integer_sequence<int, kTapsOfTwoGroupLines>>::kOf
                 : GroupPixelTiles<1, std::make_integer_sequence<int, kMostGroupTaps>>::kOf;
  const int64_t tiles = CeilDiv(run.terms, most);
  for (int64_t i = 0, tap = 0; i < tiles; ++i) {
    const int64_t count = (run.terms - tap) / (tiles - i);
    of[count - 1](run, shape, tap, lanes);
    tap += count;
  }
}

int GroupLinesTogetherHere(int64_t taps) { return taps <= kTapsOfTwoGroupLines ? 2 : 1; }

const DirectSums& DirectSumsHere() {
  static constexpr DirectSums kSums{SumTapsHere,      SumPixelsHere,      LinesTogetherHere,
                                    SumGroupTapsHere, SumGroupPixelsHere, GroupLinesTogetherHere};
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
