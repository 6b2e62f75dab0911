// Sums of groups that are blocks of a vector's lanes: step 7 of the story, where a factor of a
// block is a shuffle (x86). Shuffles take one of the two units that multiply, so taps that slide
// share them: three taps of four channels take 4 shuffles and 12 multiply-adds, not 12 and 12.
// Knows floats in memory only, and where in a position of g a plane's channels are.
#if defined(CONVGRAD_CPU_DIRECT_GROUP_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_GROUP_BLOCKS_INL_H_
#undef CONVGRAD_CPU_DIRECT_GROUP_BLOCKS_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_GROUP_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu/direct_stores-inl.h"
#include "cpu/direct_sums.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

#undef CONVGRAD_SHUFFLES_GROUPS
#define CONVGRAD_SHUFFLES_GROUPS (HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR)

#undef CONVGRAD_INLINED
#define CONVGRAD_INLINED __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// The first channel of the group of plane `plane` of o, or of its first group.
inline int64_t FirstChannel(const GroupShape& shape, int64_t plane) {
  return plane * kLanes / shape.o * shape.all_channels;
}

HWY_INLINE void AskForNext(const PixelRows& run, const PixelRows::Row& row, int64_t plane,
                           int64_t pixel) {
  if (kAsksForNext) __builtin_prefetch(row.next + plane * run.next_plane + pixel * run.next_step);
}

// In a position of g.
HWY_INLINE int64_t OffsetOf(int64_t channel, int64_t g_plane) {
  return channel / kLanes * g_plane + channel % kLanes;
}

#if CONVGRAD_SHUFFLES_GROUPS

// visit(k, channel 4 * first + k of each group in all its lanes), of a vector of groups of kBlock
// channels: kFours fours of them.
template <int kBlock, int kFours, class Visit>
HWY_INLINE void ForEachChannel(V channels, int first, const Visit& visit) {
  const auto four = [&](V of_four, int k) HWY_ATTR {
    visit(k, hn::Broadcast<0>(of_four));
    visit(k + 1, hn::Broadcast<1>(of_four));
    visit(k + 2, hn::Broadcast<2>(of_four));
    visit(k + 3, hn::Broadcast<3>(of_four));
  };
  if constexpr (kBlock == 4) {
    four(channels, 0);
  } else {
    static_assert(kBlock == 8);
    const V turned = hn::SwapAdjacentBlocks(channels);
    if (kFours == 2 || first == 0) four(hn::OddEvenBlocks(turned, channels), 0);
    if (kFours == 2 || first == 1) four(hn::OddEvenBlocks(channels, turned), 4 * (kFours - 1));
  }
}

// The same of channel 4 * four + k of one group, where o are a vector or more: from memory, without
// a shuffle.
template <int kBlock, class Visit>
HWY_INLINE void ForEachOfFour(const float* g, int four, const Visit& visit) {
  if constexpr (kBlock < kLanes) {
    ForEachChannel<kBlock, 1>(hn::LoadU(D(), g), four, visit);
  } else {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) visit(k, hn::Set(D(), g[k]));
  }
}

// sum[p] += channels(p + t) * w[t], tap by tap for each p.
template <int kTaps, int kBlock, int kPixels>
HWY_INLINE void AddBlockTaps(const float* g, int64_t step, const float* w, V (&sum)[kPixels]) {
  const D d;
#pragma GCC unroll 16
  for (int q = 0; q < kPixels + kTaps - 1; ++q, g += step) {
    ForEachChannel<kBlock, kBlock / 4>(hn::LoadU(d, g), 0, [&](int k, V channel) HWY_ATTR {
#pragma GCC unroll 3
      for (int t = 0; t < kTaps; ++t) {
        const int p = q - t;
        if (p < 0 || p >= kPixels) continue;
        sum[p] = FusedMulAdd(channel, hn::LoadU(d, w + (t * kBlock + k) * kLanes), sum[p]);
      }
    });
  }
}

// Pixels in the order in which a tap after another reads their positions, so that a dgrad, whose
// taps go back, begins with the last one.
template <int kPixels, int kBlock>
HWY_INLINE void SumBlocksOfPlane(const TermRuns& all, const GroupShape& shape, int64_t plane,
                                 bool add, float* c) {
  const D d;
  V sum[kPixels];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) sum[p] = hn::Zero(d);
  const TermRun* const end = all.runs + all.count;
  const bool back = all.count > 1 && all.runs[1].g < all.runs[0].g;
  const int64_t step = back ? -all.pixel : all.pixel;
  const int64_t first =
      OffsetOf(FirstChannel(shape, plane), all.g_plane) + (back ? (kPixels - 1) * all.pixel : 0);
  const auto slides = [&](const TermRun* run) {
    return run + 1 < end && run[1].g - run[0].g == step && run[1].w - run[0].w == kBlock * kLanes;
  };
  for (const TermRun* run = all.runs; run < end;) {
    const float *const g = run->g + first, *const w = run->w + plane * all.w_plane;
    if (!slides(run)) {
      AddBlockTaps<1, kBlock>(g, step, w, sum);
      run += 1;
    } else if (!slides(run + 1)) {
      AddBlockTaps<2, kBlock>(g, step, w, sum);
      run += 2;
    } else {
      AddBlockTaps<3, kBlock>(g, step, w, sum);
      run += 3;
    }
  }
  StorePixels(all, plane, back, add, sum, c);
}

template <int kPixels>
HWY_INLINE void SumGroupBlocks(const TermRuns& all, const GroupShape& shape, int64_t lanes,
                               bool add, float* c) {
  for (int64_t i = 0; i * kLanes < lanes; ++i) {
    if constexpr (kLanes == 16) {
      if (shape.o == 8) {
        SumBlocksOfPlane<kPixels, 8>(all, shape, i, add, c);
        continue;
      }
    }
    SumBlocksOfPlane<kPixels, 4>(all, shape, i, add, c);
  }
}

// sum[line][tap][k of four] += channel k(pixel + tap) * v[pixel]. kSlides: taps and pixels are both
// one position apart, so that a position is shuffled, or broadcast from memory, once for all taps.
// kBlock: kLanes, if a group has as many o, or more; then k of `four` are where that channel is.
template <int kLines, int kTaps, int kBlock, bool kSlides>
HWY_INLINE void SumBlockPixelsOfPlane(const PixelRows& run, const GroupShape& shape, int64_t tap,
                                      int64_t plane, int four) {
  const D d;
  V sum[kLines][kTaps][4];
  const int64_t tap_sums = shape.all_channels * kLanes;
  const int64_t channel = FirstChannel(shape, plane) + (kBlock < kLanes ? 0 : 4 * four);
  const int64_t first = tap * run.term + OffsetOf(channel, run.g_plane);
  const auto for_each_sum = [&](const auto& what) HWY_ATTR CONVGRAD_INLINED {
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
      float* const line = run.sums[l] + tap * tap_sums + 4 * four * kLanes + plane * run.sum_plane;
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) what(sum[l][t][k], line + t * tap_sums + k * kLanes);
      }
    }
  };
  for_each_sum([&](V& value, const float* at) HWY_ATTR { value = hn::LoadU(d, at); });
  const float *v, *g[kLines];
  // Position q of a line, for taps [begin, end): of pixels q - t.
  const auto add = [&](int64_t q, int begin, int end) HWY_ATTR CONVGRAD_INLINED {
    V factor[kTaps];
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      if (t >= begin && t < end) factor[t] = hn::LoadU(d, v + (q - t) * kLanes);
    }
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
      ForEachOfFour<kBlock>(g[l] + q * run.pixel, four, [&](int k, V x) HWY_ATTR {
#pragma GCC unroll 8
        for (int t = 0; t < kTaps; ++t) {
          if (t < begin || t >= end) continue;
          sum[l][t][k] = FusedMulAdd(x, factor[t], sum[l][t][k]);
        }
      });
    }
  };
  const int64_t pixels = run.pixels;
  for (int64_t r = 0; r < run.count; ++r) {
    const PixelRows::Row& row = run.rows[r];
    v = row.v + plane * run.v_plane;
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) g[l] = row.g[l] + first;
    if constexpr (kSlides) {
      // At least kTaps pixels. The first and the last positions are met by some of the taps.
#pragma GCC unroll 8
      for (int q = 0; q < kTaps - 1; ++q) add(q, 0, q + 1);
      for (int64_t q = kTaps - 1; q < pixels; ++q) {
        AskForNext(run, row, plane, q);
        add(q, 0, kTaps);
      }
#pragma GCC unroll 8
      for (int q = 0; q < kTaps - 1; ++q) add(pixels + q, q + 1, kTaps);
      continue;
    }
    for (int64_t p = 0; p < pixels; ++p) {
      AskForNext(run, row, plane, p);
      const V factor = hn::LoadU(d, v + p * kLanes);
#pragma GCC unroll 2
      for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
        for (int t = 0; t < kTaps; ++t) {
          ForEachOfFour<kBlock>(
              g[l] + t * run.term + p * run.pixel, four,
              [&](int k, V x) HWY_ATTR { sum[l][t][k] = FusedMulAdd(x, factor, sum[l][t][k]); });
        }
      }
    }
  }
  for_each_sum([&](V value, float* at) HWY_ATTR { hn::StoreU(value, d, at); });
}

template <int kLines, int kTaps>
HWY_INLINE void SumBlockPixels(const PixelRows& run, const GroupShape& shape, int64_t tap,
                               int64_t lanes) {
  const auto sum = [&](auto block, int64_t plane, int four) HWY_ATTR {
    constexpr int kBlock = decltype(block)::value;
    const bool slides = kTaps > 1 && run.term == run.pixel && run.pixels >= kTaps;
    slides ? SumBlockPixelsOfPlane<kLines, kTaps, kBlock, (kTaps > 1)>(run, shape, tap, plane, four)
           : SumBlockPixelsOfPlane<kLines, kTaps, kBlock, false>(run, shape, tap, plane, four);
  };
  for (int64_t i = 0; i * kLanes < lanes; ++i) {
    if constexpr (kLanes == 16) {
      if (shape.o == 8) {
        sum(std::integral_constant<int, 8>(), i, 0);
        sum(std::integral_constant<int, 8>(), i, 1);
        continue;
      }
    }
    sum(std::integral_constant<int, 4>(), i, 0);
  }
}

#endif  // CONVGRAD_SHUFFLES_GROUPS

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
