// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_in_place.cc"
#include "hwy/foreach_target.h"
#include "cpu/bf16_instructions.h"
#include "cpu/direct.h"
#include "cpu/direct_in_place.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

constexpr int kBlock = static_cast<int>(LanesOfBlock(kLanes));
constexpr int kTilePixels = kRegisters == 32 ? 8 : 4;
constexpr int kTapPiece = kRegisters == 32 ? 4 : 2;
constexpr int kPixelPiece = 7;

// May be outside of the tensor.
template <class T>
HWY_INLINE const void* Ahead(const T* here, int64_t elements) {
  return reinterpret_cast<const void*>(
      reinterpret_cast<uintptr_t>(here) +
      static_cast<uintptr_t>(elements * static_cast<int64_t>(sizeof(T))));
}

template <class Float>
HWY_INLINE Float* VectorAt(const VectorsOfBlocks<Float>& of, int64_t channel) {
  return of.first + channel / kBlock * of.block + channel % kBlock / kLanes * of.plane;
}

// sum[pixel] += at[pixel + tap] * w[tap], or at[tap * kPixels + pixel]. A position is loaded once
// where taps slide over it. The next tile's are fetched, half of them at a time: two calls are a
// cache line of channels (0: the first half, 1: the second; -1: none).
template <class T, int kPixels, int kVectors, int kTaps, bool kSlides, int kHalf>
HWY_INLINE void AddPiece(const void* const* at, int64_t channel, const float* w, int64_t plane,
                         int64_t ahead, V (&sum)[kPixels][kVectors]) {
  const D d;
  constexpr int kPlaces = kSlides ? kPixels + kTaps - 1 : kPixels * kTaps;
  V factor[kVectors][kTaps];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) factor[v][t] = hn::LoadU(d, w + v * plane + t * kLanes);
  }
#pragma GCC unroll 32
  for (int i = 0; i < kPlaces; i += 2) {
    const T* from[2];
    from[0] = static_cast<const T*>(at[i]);
    from[1] = static_cast<const T*>(at[i + 1 < kPlaces ? i + 1 : i]);
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const int place = i + k;
      if (place >= kPlaces) continue;
      const T* const here = Whole(from[k] + channel);
      if (kHalf == place / (kPixels / 2)) __builtin_prefetch(Ahead(here, ahead));
      V x[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) x[v] = LoadBytes(d, here + v * kLanes);
#pragma GCC unroll 4
      for (int t = 0; t < kTaps; ++t) {
        const int p = kSlides ? place - t : place - t * kPixels;
        if (p < 0 || p >= kPixels) continue;
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[p][v] = FusedMulAdd(x[v], factor[v][t], sum[p][v]);
      }
    }
  }
}

template <class T, int kPixels, int kVectors>
HWY_INLINE void StoreTile(const TapsInPlace& tile, int64_t channel, const float* w,
                          V (&sum)[kPixels][kVectors]) {
  const D d;
  V bias[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    bias[v] = hn::LoadU(d, w + v * tile.w.plane + tile.bias * kLanes);
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    T* const to = Whole(static_cast<T*>(tile.out[p]) + channel);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      V c = sum[p][v];
      // A -0 of beta * out becomes +0, see LoadScaled.
      if (tile.beta != 0) {
        c = hn::Add(
            hn::Add(hn::Mul(hn::Set(d, tile.beta), LoadBytes(d, to + v * kLanes)), hn::Zero(d)), c);
      }
      StoreBytes(hn::Add(c, bias[v]), d, to + v * kLanes);
    }
  }
}

template <class T, int kPixels, int kVectors, int kTaps, bool kSlides, int kHalf>
HWY_INLINE void SumTapsOfVectors(const TapsInPlace& tile, int64_t channel) {
  V sum[kPixels][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::Zero(D());
  }
  const float* const first = VectorAt(tile.w, channel);
  const LineInPlace* const end = tile.lines + tile.count;
  if (tile.long_pieces + tile.short_pieces == 1) {
    for (const LineInPlace* line = tile.lines; line < end; ++line) {
      AddPiece<T, kPixels, kVectors, kTaps, kSlides, kHalf>(
          line->at, channel, first + line->term * kLanes, tile.w.plane, tile.ahead, sum);
    }
    return StoreTile<T>(tile, channel, first, sum);
  }
  for (const LineInPlace* line = tile.lines; line < end; ++line) {
    const void* const* at = line->at;
    const float* w = first + line->term * kLanes;
    for (int64_t i = 0; i < tile.long_pieces; ++i) {
      AddPiece<T, kPixels, kVectors, kTaps, kSlides, kHalf>(at, channel, w, tile.w.plane,
                                                            tile.ahead, sum);
      at += kTaps * (kSlides ? 1 : kPixels);
      w += kTaps * kLanes;
    }
    if constexpr (kTaps > 1) {
      for (int64_t i = 0; i < tile.short_pieces; ++i) {
        AddPiece<T, kPixels, kVectors, kTaps - 1, kSlides, kHalf>(at, channel, w, tile.w.plane,
                                                                  tile.ahead, sum);
        at += (kTaps - 1) * (kSlides ? 1 : kPixels);
        w += (kTaps - 1) * kLanes;
      }
    }
  }
  StoreTile<T>(tile, channel, first, sum);
}

template <class T, int kPixels, int kTaps, bool kSlides>
HWY_NOINLINE void SumTapsTile(const TapsInPlace& tile) {
  int64_t channel = 0;
  if (tile.ahead != 0) {
    for (; channel + 4 * kLanes <= tile.channels; channel += 4 * kLanes) {
      SumTapsOfVectors<T, kPixels, 2, kTaps, kSlides, 0>(tile, channel);
      SumTapsOfVectors<T, kPixels, 2, kTaps, kSlides, 1>(tile, channel + 2 * kLanes);
    }
  }
  for (; channel + 2 * kLanes <= tile.channels; channel += 2 * kLanes) {
    SumTapsOfVectors<T, kPixels, 2, kTaps, kSlides, -1>(tile, channel);
  }
  if (channel < tile.channels) {
    SumTapsOfVectors<T, kPixels, 1, kTaps, kSlides, -1>(tile, channel);
  }
}

template <class T, int kPixels, bool kSlides>
void SumTapsOfPixels(const TapsInPlace& tile) {
  if (tile.taps == 1) return SumTapsTile<T, kPixels, 1, false>(tile);  // the tables are the same
  if (tile.taps == 2) return SumTapsTile<T, kPixels, 2, kSlides>(tile);
  if constexpr (kTapPiece > 2) {
    tile.taps == 3 ? SumTapsTile<T, kPixels, 3, kSlides>(tile)
                   : SumTapsTile<T, kPixels, 4, kSlides>(tile);
  }
}

template <class T>
void SumTaps(const TapsInPlace& tile, int pixels) {
  const bool whole = pixels == kTilePixels;
  if (tile.slides) {
    return whole ? SumTapsOfPixels<T, kTilePixels, true>(tile)
                 : SumTapsOfPixels<T, kTilePixels / 2, true>(tile);
  }
  whole ? SumTapsOfPixels<T, kTilePixels, false>(tile)
        : SumTapsOfPixels<T, kTilePixels / 2, false>(tile);
}

// The positions that the taps of a pixel read stay in registers: the next pixel needs one more.
template <class T, int kVectors, int kTaps, bool kSlides>
HWY_INLINE void SumPixelsOfVectors(const PixelsInPlace& run, int64_t channel) {
  const D d;
  float* const sums = VectorAt(run.sums, channel);
  V sum[kTaps][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      sum[t][v] = hn::LoadU(d, sums + v * run.sums.plane + t * kLanes);
    }
  }
  const void* const* at = run.at;
  const T* from = static_cast<const T*>(run.v) + channel;
  V x[kTaps][kVectors];
  const auto load = [&](const void* place, V(&to)[kVectors]) HWY_ATTR {
    const T* const here = Whole(static_cast<const T*>(place) + channel);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) to[v] = LoadBytes(d, here + v * kLanes);
  };
  // The first tap reads x[first]; those that follow, round.
  const auto add = [&](int first) HWY_ATTR {
    V factor[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) factor[v] = LoadBytes(d, from + v * kLanes);
    from = Whole(from + run.v_step);
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[t][v] = FusedMulAdd(x[(first + t) % kTaps][v], factor[v], sum[t][v]);
      }
    }
  };
  int64_t p = 0;
  if constexpr (kSlides) {
#pragma GCC unroll 8
    for (int t = 0; t + 1 < kTaps; ++t) load(at[t], x[t]);
    at += kTaps - 1;
    for (; p + kTaps <= run.pixels; p += kTaps, at += kTaps) {
#pragma GCC unroll 8
      for (int i = 0; i < kTaps; ++i) {
        load(at[i], x[(i + kTaps - 1) % kTaps]);
        add(i);
      }
    }
    for (; p < run.pixels; ++p, ++at) {
      load(*at, x[kTaps - 1]);
      add(0);
#pragma GCC unroll 8
      for (int t = 0; t + 1 < kTaps; ++t) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) x[t][v] = x[t + 1][v];
      }
    }
  }
  for (; p < run.pixels; ++p, ++at) {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) load(at[t * run.pixels], x[t]);
    add(0);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      hn::StoreU(sum[t][v], d, sums + v * run.sums.plane + t * kLanes);
    }
  }
}

template <class T, int kTaps, bool kSlides>
HWY_NOINLINE void SumPixelsTile(const PixelsInPlace& run) {
  constexpr int kMost = kRegisters == 32 ? 4 : 2;
  constexpr int kVectors = std::min(kTaps <= 3 ? kMost : kMost / 2, kBlock / kLanes);
  int64_t channel = 0;
  for (; channel + kVectors * kLanes <= run.channels; channel += kVectors * kLanes) {
    SumPixelsOfVectors<T, kVectors, kTaps, kSlides>(run, channel);
  }
  for (; channel < run.channels; channel += kLanes) {
    SumPixelsOfVectors<T, 1, kTaps, kSlides>(run, channel);
  }
}

template <class T, bool kSlides>
void SumPixelsOfTaps(const PixelsInPlace& run) {
  static_assert(kPixelPiece == 7);
  switch (run.taps) {
    case 1:
      return SumPixelsTile<T, 1, false>(run);
    case 2:
      return SumPixelsTile<T, 2, kSlides>(run);
    case 3:
      return SumPixelsTile<T, 3, kSlides>(run);
    case 4:
      return SumPixelsTile<T, 4, kSlides>(run);
    case 5:
      return SumPixelsTile<T, 5, kSlides>(run);
    case 6:
      return SumPixelsTile<T, 6, kSlides>(run);
    default:
      return SumPixelsTile<T, 7, kSlides>(run);
  }
}

template <class T>
void SumPixels(const PixelsInPlace& run) {
  run.slides ? SumPixelsOfTaps<T, true>(run) : SumPixelsOfTaps<T, false>(run);
}

template <class T>
const SumsInPlace& SumsOf() {
  static constexpr SumsInPlace kSums{kTilePixels, kTapPiece, SumTaps<T>, kPixelPiece, SumPixels<T>};
  return kSums;
}

const SumsInPlace& SumsInPlaceHere(DataType type) {
  if (type == DataType::kF32) return SumsOf<float>();
  if (type == DataType::kF16) return SumsOf<F16>();
#if CONVGRAD_MULTIPLIES_BY_LANES
  if (Bf16TermsEach() == kTermsOf<Quad>) return SumsOf<NativeBF16>();
#endif
  return SumsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(SumsInPlaceHere);

const SumsInPlace& PickedSumsInPlace(DataType type) {
  return HWY_DYNAMIC_DISPATCH(SumsInPlaceHere)(type);
}

}  // namespace convgrad
#endif  // HWY_ONCE
