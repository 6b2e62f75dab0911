// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_group_sums.cc"
#include "hwy/foreach_target.h"
#include "cpu/direct_group_blocks-inl.h"
#include "cpu/direct_stores-inl.h"
#include "cpu/direct_sums.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <utility>

#include "core/window.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// As many pixels as there are registers for their sums and their channels.
constexpr int kMostGroupPixels = kUnrolledRegisters == 32 ? 14 : 6;
constexpr int kMostPixelsOfTwo = kUnrolledRegisters == 32 ? 8 : 4;
constexpr int kMostGroupTaps = kUnrolledRegisters == 32 ? 6 : 3;
constexpr int kTapsOfTwoGroupLines = kUnrolledRegisters == 32 ? 3 : 1;

// Channels are taken from lanes of a vector of four, or each from memory.
constexpr bool kLoadsFours = CONVGRAD_MULTIPLIES_BY_LANES;

// Channel i of four.
template <int i>
HWY_INLINE V Channel(const float* g, V four) {
#if HWY_TARGET == HWY_SCALAR
  (void)four;
  return hn::Set(D(), g[i]);
#else
  if constexpr (kLoadsFours) {
    return hn::Broadcast<i>(four);
  } else {
    return hn::Set(D(), g[i]);
  }
#endif
}

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
template <int i, int kPixels, int kPlanes>
HWY_INLINE void AddChannel(const float* g, int64_t pixel, const V (&x)[kPixels],
                           const V (&factor)[kPlanes], V (&sum)[kPlanes][kPixels]) {
#pragma GCC unroll 2
  for (int k = 0; k < kPlanes; ++k) {
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      sum[k][p] = FusedMulAdd(Channel<i>(g + p * pixel, x[p]), factor[k], sum[k][p]);
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
template <int kPixels, int kPlanes, bool kNear>
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
      x[p] = kLoadsFours ? hn::LoadU(d, fours.g() + p * pixel) : hn::Zero(d);
    };
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) load(p);
    LoadTwo(fours.w(), all.w_plane, w0, w1);
    for (int64_t i = 0; i < count; ++i) {
      const float* const g = fours.g();
      LoadTwo(fours.w() + 2 * kLanes, all.w_plane, w2, w3);
      fours.Next();
      AddChannel<0>(g, pixel, x, w0, sum);
      AddChannel<1>(g, pixel, x, w1, sum);
      LoadTwo(fours.w(), all.w_plane, w0, w1);
      AddChannel<2>(g, pixel, x, w2, sum);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const V last = Channel<3>(g + p * pixel, x[p]);
#pragma GCC unroll 2
        for (int k = 0; k < kPlanes; ++k) sum[k][p] = FusedMulAdd(last, w3[k], sum[k][p]);
        load(p);
      }
    }
  }
#pragma GCC unroll 2
  for (int k = 0; k < kPlanes; ++k) {
    if (StoresLines(kLanes) && all.bias != nullptr) {
      StorePixels<kPixels, 1>(all, plane + k, sum[k], c);
      continue;
    }
    float* const to = Whole(c + (plane + k) * all.c_plane);
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p) {
      float* const at = to + p * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, at), sum[k][p]) : sum[k][p], d, at);
    }
  }
}

// Two planes of a group share its channels.
template <int kPixels, int kPlanes>
HWY_NOINLINE void SumGroupTapsTile(const TermRuns& all, const GroupShape& shape, int64_t lanes,
                                   bool add, float* c) {
#if CONVGRAD_SHUFFLES_GROUPS
  if constexpr (kPlanes == 1) {
    if (shape.o < kLanes) return SumGroupBlocks<kPixels>(all, shape, lanes, add, c);
  }
#endif
  for (int64_t i = 0; i * kLanes < lanes; i += kPlanes) {
    all.pixel == kLanes ? SumGroupTapsOfPlanes<kPixels, kPlanes, true>(all, shape, i, add, c)
                        : SumGroupTapsOfPlanes<kPixels, kPlanes, false>(all, shape, i, add, c);
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
    of[count - 1](all, shape, lanes, add, c + at * StepOfC(all));
    at += count;
    for (int64_t r = 0; r < all.count; ++r) all.runs[r].g += count * all.pixel;
  }
}

// Bytes further.
HWY_INLINE const float* Further(const float* from, int64_t bytes) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(from) + bytes);
}

// sum[line][tap][channel of four] += g[pixel + tap] * v[pixel].
template <int kLines, int kTaps>
HWY_INLINE void SumGroupPixelsOfPlane(const PixelRows& run, const GroupShape& shape, int64_t tap,
                                      int64_t plane, int64_t four) {
  const D d;
  V sum[kLines][kTaps][4];
  float* sums[kLines];
  const int64_t tap_sums = shape.all_channels * kLanes;
  const int64_t first = tap * run.term + OffsetOf(FirstChannel(shape, plane) + four, run.g_plane);
#pragma GCC unroll 2
  for (int l = 0; l < kLines; ++l) {
    sums[l] = run.sums[l] + tap * tap_sums + four * kLanes + plane * run.sum_plane;
    const float* from = sums[l];
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t, from = Whole(from + tap_sums)) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sum[l][t][i] = hn::LoadU(d, from + i * kLanes);
    }
  }
  constexpr int64_t kFloat = sizeof(float);
  int64_t taps[kTaps];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) taps[t] = t * run.term * kFloat;
  for (int64_t r = 0; r < run.count; ++r) {
    const PixelRows::Row& row = run.rows[r];
    const float *v = row.v + plane * run.v_plane, *g[kLines];
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) g[l] = row.g[l] + first;
    for (int64_t p = 0; p < run.pixels; ++p, v += kLanes) {
      AskForNext(run, row, plane, p);
      const V factor = hn::LoadU(d, v);
#pragma GCC unroll 2
      for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
        for (int t = 0; t < kTaps; ++t) {
          const float* const from = Further(g[l], taps[t]);
          const V x = kLoadsFours ? hn::LoadU(d, from) : hn::Zero(d);
          sum[l][t][0] = FusedMulAdd(Channel<0>(from, x), factor, sum[l][t][0]);
          sum[l][t][1] = FusedMulAdd(Channel<1>(from, x), factor, sum[l][t][1]);
          sum[l][t][2] = FusedMulAdd(Channel<2>(from, x), factor, sum[l][t][2]);
          sum[l][t][3] = FusedMulAdd(Channel<3>(from, x), factor, sum[l][t][3]);
        }
        g[l] = Whole(g[l] + run.pixel);
      }
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
struct TwoFours {
  PixelRows run;
  PixelRows::Row rows[PixelRows::kMost];

  TwoFours(const TwoFours&) = delete;  // `run` points to `rows`
  TwoFours(const PixelRows& of, const GroupShape& shape, int64_t plane, int64_t four) : run(of) {
    const int64_t channel = FirstChannel(shape, plane) + four;
    const int64_t second = OffsetOf(channel + 4, of.g_plane) - OffsetOf(channel, of.g_plane);
    for (int64_t r = 0; r < of.count; ++r) {
      rows[r] = of.rows[r];
      rows[r].g[1] = rows[r].g[0] + second;
    }
    run.rows = rows;
    run.sums[1] = of.sums[0] + 4 * kLanes;
  }
};

#if CONVGRAD_SHUFFLES_GROUPS
template <int kLines, int kTaps>
void SumSlidingPixels(const PixelRows& run, const GroupShape& shape, int64_t tap, int64_t lanes) {
  constexpr int kFours = kLines == 1 && kTaps <= kTapsOfTwoGroupLines ? 2 : 1;
  const int fours = static_cast<int>(shape.all_channels / 4);
  for (int64_t i = 0; i * kLanes < lanes; ++i) {
    int four = 0;
    for (; kFours == 2 && four + 2 <= fours; four += 2) {
      SumBlockPixelsOfPlane<2, kTaps, kLanes, true>(TwoFours(run, shape, i, 4 * four).run, shape,
                                                    tap, i, four);
    }
    for (; four < fours; ++four) {
      SumBlockPixelsOfPlane<kLines, kTaps, kLanes, true>(run, shape, tap, i, four);
    }
  }
}
#endif

template <int kLines, int kTaps>
HWY_NOINLINE void SumGroupPixelsTile(const PixelRows& run, const GroupShape& shape, int64_t tap,
                                     int64_t lanes) {
#if CONVGRAD_SHUFFLES_GROUPS
  if (shape.o < kLanes) return SumBlockPixels<kLines, kTaps>(run, shape, tap, lanes);
  // A factor is loaded once for all taps that slide, not once for each multiply-add.
  if (kTaps > 1 && run.term == run.pixel && run.pixels >= kTaps) {
    return SumSlidingPixels<kLines, kTaps>(run, shape, tap, lanes);
  }
#endif
  for (int64_t i = 0; i * kLanes < lanes; ++i) {
    int64_t four = 0;
    if constexpr (kLines == 1 && kTaps <= kTapsOfTwoGroupLines) {
      for (; four + 8 <= shape.all_channels && shape.o != 4; four += 8) {
        SumGroupPixelsOfPlane<2, kTaps>(TwoFours(run, shape, i, four).run, shape, tap, i, four);
      }
    }
    for (; four < shape.all_channels; four += 4) {
      SumGroupPixelsOfPlane<kLines, kTaps>(run, shape, tap, i, four);
    }
  }
}

using SumGroupPixelsFunction = void (*)(const PixelRows& run, const GroupShape& shape, int64_t tap,
                                        int64_t lanes);
template <int kLines, class Sizes>
struct GroupPixelTiles;
template <int kLines, int... kTaps>
struct GroupPixelTiles<kLines, std::integer_sequence<int, kTaps...>> {
  static constexpr SumGroupPixelsFunction kOf[] = {SumGroupPixelsTile<kLines, kTaps + 1>...};
};

void SumGroupPixelsHere(const PixelRows& run, const GroupShape& shape, int64_t lanes, int lines) {
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

const GroupSums& GroupSumsHere() {
  static constexpr GroupSums kSums{SumGroupTapsHere, SumGroupPixelsHere, GroupLinesTogetherHere};
  return kSums;
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(GroupSumsHere);

const GroupSums& PickedGroupSums() { return HWY_DYNAMIC_DISPATCH(GroupSumsHere)(); }

}  // namespace convgrad
#endif  // HWY_ONCE
