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
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

constexpr int kBlock = static_cast<int>(LanesOfBlock(kLanes));
constexpr int kTilePixels = kUnrolledRegisters == 32 ? 8 : 4;
constexpr int kTapPiece = kUnrolledRegisters == 32 ? 4 : 2;
constexpr int kPixelPiece = kUnrollsLines ? 7 : 2;
static_assert(kPixelPiece < SumsInPlace::kMostPieceTaps);
// Vectors of a cache line of floats (half a line of 16 bits), if that is more than a tile has:
// four.
constexpr int kLineVectors = kLanes == 4 && kUnrolledRegisters == 32 ? 4 : 0;
// Pixels of a tile that is a cache line wide.
constexpr int kLinePixels = kLineVectors == 0 ? 0 : kTilePixels / 2;
static_assert(SumsInPlace::Carries(kLanes) == (kLinePixels > 0));
static_assert(kLinePixels == 0 || kTapPiece == SumsInPlace::kMostCarriedTaps);

template <class Float>
HWY_INLINE Float* VectorAt(const VectorsOfBlocks<Float>& of, int64_t channel) {
  return of.first + channel / kBlock * of.block + channel % kBlock / kLanes * of.plane;
}

// Whole vectors before the first line of the cache that starts with one. Large blocks of malloc
// start 16 bytes after a page, and tiles across lines take longer (18.2 ms, so 17.0, as below).
template <class T>
HWY_INLINE int64_t ChannelsToLine(const void* first) {
  constexpr uintptr_t kLine = 64, kVector = kLanes * sizeof(T);
  return static_cast<int64_t>((0 - reinterpret_cast<uintptr_t>(first)) % kLine / kVector) * kLanes;
}

// Bytes from the first channel to the vectors of a tile: each in a register of its own, so that a
// load adds it to a position. One load of two vectors would need the sum first: three cycles more
// before a multiply-add can start, which a queue of 16 (Neoverse-N1) does not hide.
template <int kVectors>
struct VectorOffsets {
  int64_t at[kVectors];

  template <class T>
  static HWY_INLINE VectorOffsets Of(int64_t channel) {
    VectorOffsets offsets;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      offsets.at[v] = Whole((channel + v * kLanes) * static_cast<int64_t>(sizeof(T)));
    }
    return offsets;
  }
};

template <class T>
HWY_INLINE T* Moved(T* pointer, int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(pointer) + bytes);
}

// Two vectors of 16 bits are one access to memory, which needs the sum of position and offset once.
// Not where pixels are summed: there all positions of a pixel stay in registers (Neoverse-N1,
// 3x3x3, 64 channels: 7.7 ms, so 8.6).
template <class T, int kVectors>
constexpr bool kInTwos = sizeof(T) < sizeof(float) && kVectors % 2 == 0;

// sum[pixel] += at[pixel + tap] * w[tap], or at[tap * kPixels + pixel], of kVectors vectors from
// kFirst on. A position is loaded once where taps slide over it, two before its turn. Where it
// fetches, the next tile's are fetched: a tile that is a cache line wide leaves them in L2, since
// those that it reads now may be all that their set of L1 holds.
template <class T, int kPixels, int kFirst, int kVectors, int kTaps, bool kSlides, bool kFetches,
          bool kCarries, int kAll>
HWY_INLINE void AddVectors(const void* const* at, const VectorOffsets<kAll>& offsets,
                           const float* w, int64_t plane, int64_t ahead, float* carry,
                           V (&sum)[kPixels][kAll]) {
  const D d;
  constexpr int kPlaces = kSlides ? kPixels + kTaps - 1 : kPixels * kTaps;
  constexpr int kFresh = kSlides ? kTaps - 1 : 0;  // those before it are this tile's too
  constexpr int kAhead = 2;
  V x[kAhead + 1][kVectors];
  const auto load = [&](int place) HWY_ATTR {
    if (kCarries && place < kTaps - 1) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        x[place % (kAhead + 1)][v] =
            hn::LoadU(d, carry + ((kFirst + v) * (kTaps - 1) + place) * kLanes);
      }
      return;
    }
    const T* const here = Whole(static_cast<const T*>(at[place]));
    if (kFetches && place >= kFresh && place < kFresh + kPixels) {
      __builtin_prefetch(Moved(here, ahead), 0, kAll == kLineVectors ? 2 : 3);
    }
    V fresh[kVectors];
    if constexpr (kInTwos<T, kVectors>) {
      LoadBoth(Moved(here, offsets.at[kFirst]), fresh[0], fresh[1]);
    }
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (!kInTwos<T, kVectors>) {
        fresh[v] = LoadBytes(d, Moved(here, offsets.at[kFirst + v]));
      }
      x[place % (kAhead + 1)][v] = fresh[v];
      if (kCarries && place >= kPixels) {
        hn::StoreU(x[place % (kAhead + 1)][v], d,
                   carry + ((kFirst + v) * (kTaps - 1) + place - kPixels) * kLanes);
      }
    }
  };
  load(0);
  if constexpr (kPlaces > 1) load(1);
  V factor[kVectors][kTaps];
  w += kFirst * plane;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) factor[v][t] = hn::LoadU(d, w + v * plane + t * kLanes);
  }
#pragma GCC unroll 32
  for (int place = 0; place < kPlaces; ++place) {
    if (place + kAhead < kPlaces) load(place + kAhead);
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) {
      const int p = kSlides ? place - t : place - t * kPixels;
      if (p < 0 || p >= kPixels) continue;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        V& to = sum[p][kFirst + v];
        const V from = x[place % (kAhead + 1)][v];
        // All that a first product differs from its sum with zero is a -0, which the bias ends.
        to = kCarries && t == 0 ? hn::Mul(from, factor[v][t]) : FusedMulAdd(from, factor[v][t], to);
      }
    }
  }
}

// Two vectors at a time, whose factors registers have room for.
template <class T, int kPixels, int kVectors, int kTaps, bool kSlides, bool kFetches,
          bool kCarries = false>
HWY_INLINE void AddPiece(const void* const* at, const VectorOffsets<kVectors>& offsets,
                         const float* w, int64_t plane, int64_t ahead, V (&sum)[kPixels][kVectors],
                         float* carry = nullptr) {
  constexpr int kSome = std::min(kVectors, 2);
  AddVectors<T, kPixels, 0, kSome, kTaps, kSlides, kFetches, kCarries>(at, offsets, w, plane, ahead,
                                                                       carry, sum);
  if constexpr (kVectors > kSome) {
    AddVectors<T, kPixels, kSome, kSome, kTaps, kSlides, false, kCarries>(at, offsets, w, plane,
                                                                          ahead, carry, sum);
  }
}

// A -0 of beta * out becomes +0, see LoadScaled.
template <class T, bool kAccumulates, int kPixels, int kVectors>
HWY_INLINE void StoreTile(void* const* out, const VectorOffsets<kVectors>& offsets, const V* bias,
                          V beta, V (&sum)[kPixels][kVectors]) {
  const D d;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    T* const pixel = Whole(static_cast<T*>(out[p]));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      T* const to = Moved(pixel, offsets.at[v]);
      V c = sum[p][v];
      if constexpr (kAccumulates) {
        c = hn::Add(hn::Add(hn::Mul(beta, LoadBytes(d, to)), hn::Zero(d)), c);
      }
      c = hn::Add(c, bias[v]);
      if constexpr (kInTwos<T, kVectors>) {
        if (v % 2 == 1) StoreBoth(sum[p][v - 1], c, Moved(pixel, offsets.at[v - 1]));
        sum[p][v] = c;
      } else {
        StoreBytes(c, d, to);
      }
    }
  }
}

// Stores a tile, and asks for what the next one writes, if that is known.
template <class T, bool kFetches, int kPixels, int kVectors>
HWY_INLINE void EndTile(const TapsInPlace& tile, int64_t channel, const float* bias, int64_t plane,
                        const VectorOffsets<kVectors>& offsets, V (&sum)[kPixels][kVectors]) {
  const D d;
  void* const* const out = tile.out;
  if (kFetches && tile.out_ahead != 0) {
    const int64_t ahead = (channel + tile.out_ahead) * static_cast<int64_t>(sizeof(T));
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      __builtin_prefetch(Moved(static_cast<T*>(out[p]), ahead), 1, 3);
    }
  }
  V added[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) added[v] = hn::LoadU(d, bias + v * plane);
  if (tile.beta == 0) {
    StoreTile<T, false>(out, offsets, added, hn::Zero(d), sum);
  } else {
    StoreTile<T, true>(out, offsets, added, hn::Set(d, tile.beta), sum);
  }
}

template <class T, int kPixels, int kVectors, int kTaps, bool kSlides, bool kFetches>
HWY_INLINE void SumTapsOfVectors(const TapsInPlace& tile, int64_t channel) {
  V sum[kPixels][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[p][v] = OwnZero();
  }
  const auto offsets = VectorOffsets<kVectors>::template Of<T>(channel);
  const int64_t ahead = (channel + tile.ahead) * static_cast<int64_t>(sizeof(T));
  const int64_t plane = tile.w.plane;
  const float* const first = VectorAt(tile.w, channel);
  const void* const* at = tile.at;
  const int64_t* const end = tile.terms + tile.lines;
  if (tile.long_pieces + tile.short_pieces == 1) {
    constexpr int kPlaces = kSlides ? kPixels + kTaps - 1 : kPixels * kTaps;
    for (const int64_t* term = tile.terms; term < end; ++term, at += kPlaces) {
      AddPiece<T, kPixels, kVectors, kTaps, kSlides, kFetches>(at, offsets, first + *term * kLanes,
                                                               plane, ahead, sum);
    }
  } else {
    for (const int64_t* term = tile.terms; term < end; ++term, at += tile.places) {
      const void* const* from = at;
      const float* w = first + *term * kLanes;
      for (int64_t i = 0; i < tile.long_pieces; ++i) {
        AddPiece<T, kPixels, kVectors, kTaps, kSlides, kFetches>(from, offsets, w, plane, ahead,
                                                                 sum);
        from += kTaps * (kSlides ? 1 : kPixels);
        w += kTaps * kLanes;
      }
      if constexpr (kTaps > 1) {
        for (int64_t i = 0; i < tile.short_pieces; ++i) {
          AddPiece<T, kPixels, kVectors, kTaps - 1, kSlides, kFetches>(from, offsets, w, plane,
                                                                       ahead, sum);
          from += (kTaps - 1) * (kSlides ? 1 : kPixels);
          w += (kTaps - 1) * kLanes;
        }
      }
    }
  }
  EndTile<T, kFetches>(tile, channel, first + tile.bias * kLanes, plane, offsets, sum);
}

// The positions that the tile before has read come from the carry: of 12288 channels, 48 KiB apart,
// all are in one set of four lines of the first-level cache, and seven streams of them, each again
// from the second level, took 24.4 ms where four of new positions take 15.8 (Neoverse-N1, 4 taps,
// 2048 pixels; a copy 6.3).
template <class T, int kPixels, int kVectors, int kTaps, bool kFetches>
HWY_INLINE void SumTapsWithCarry(const TapsInPlace& tile, int64_t channel) {
  static_assert(kTaps - 1 <= kPixels);
  constexpr int64_t kPlane = (kTaps + 1) * kLanes;  // its bias is one more term
  V sum[kPixels][kVectors];
  const auto offsets = VectorOffsets<kVectors>::template Of<T>(channel);
  const int64_t ahead = (channel + tile.ahead) * static_cast<int64_t>(sizeof(T));
  const float* const first = tile.w.first + channel * (kTaps + 1);  // planes follow each other
  AddPiece<T, kPixels, kVectors, kTaps, true, kFetches, true>(
      tile.at, offsets, first, kPlane, ahead, sum, tile.carry + channel * (kTaps - 1));
  EndTile<T, kFetches>(tile, channel, first + kTaps * kLanes, kPlane, offsets, sum);
}

template <class T, int kPixels, int kTaps>
HWY_NOINLINE void SumTapsTileWithCarry(const TapsInPlace& tile) {
  constexpr int64_t kEach = kLineVectors * kLanes;
  const int64_t lead = std::min(ChannelsToLine<T>(tile.out[0]), tile.channels);
  int64_t channel = 0;
  for (; channel < lead; channel += kLanes) {
    SumTapsWithCarry<T, kPixels, 1, kTaps, false>(tile, channel);
  }
  for (; tile.ahead != 0 && channel + kEach <= tile.channels; channel += kEach) {
    SumTapsWithCarry<T, kPixels, kLineVectors, kTaps, true>(tile, channel);
  }
  for (; channel + kEach <= tile.channels; channel += kEach) {
    SumTapsWithCarry<T, kPixels, kLineVectors, kTaps, false>(tile, channel);
  }
  for (; channel < tile.channels; channel += kLanes) {
    SumTapsWithCarry<T, kPixels, 1, kTaps, false>(tile, channel);
  }
}

template <class T, int kPixels, int kTaps, bool kSlides>
HWY_NOINLINE void SumTapsTile(const TapsInPlace& tile) {
  int64_t channel = 0;
  // Of one line of taps, most of the time goes to memory, and a line of the cache that is written
  // in two parts costs twice (Neoverse-N1, 2048 channels, 4 taps: 9.8 ms, so 6.5). More lines of
  // taps take longer than memory does, and longer tiles need fewer loads.
  if constexpr (kPixels == kLinePixels) {
    if constexpr (kSlides) {
      if (tile.carry != nullptr) return SumTapsTileWithCarry<T, kPixels, kTaps>(tile);
    }
    for (; tile.lines == 1 && tile.ahead != 0 && channel + kLineVectors * kLanes <= tile.channels;
         channel += kLineVectors * kLanes) {
      SumTapsOfVectors<T, kPixels, kLineVectors, kTaps, kSlides, true>(tile, channel);
    }
  }
  if (tile.ahead != 0 || tile.out_ahead != 0) {
    for (; channel + 4 * kLanes <= tile.channels; channel += 4 * kLanes) {
      SumTapsOfVectors<T, kPixels, 2, kTaps, kSlides, true>(tile, channel);  // of a cache line
      SumTapsOfVectors<T, kPixels, 2, kTaps, kSlides, false>(tile, channel + 2 * kLanes);
    }
  }
  for (; channel + 2 * kLanes <= tile.channels; channel += 2 * kLanes) {
    SumTapsOfVectors<T, kPixels, 2, kTaps, kSlides, false>(tile, channel);
  }
  if (channel < tile.channels) {
    SumTapsOfVectors<T, kPixels, 1, kTaps, kSlides, false>(tile, channel);
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
// Where it fetches, what the next run reads comes to L2.
template <class T, int kVectors, int kTaps, bool kSlides, int kFetches>
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
  const T* from = static_cast<const T*>(run.v);
  const auto offsets = VectorOffsets<kVectors>::template Of<T>(channel);
  const int64_t g_ahead = (channel + run.g_ahead) * static_cast<int64_t>(sizeof(T));
  const int64_t v_ahead = (channel + run.v_ahead) * static_cast<int64_t>(sizeof(T));
  const T* fetch = static_cast<const T*>(run.fetch);
  V x[kTaps][kVectors];
  const auto load = [&](const void* place, V(&to)[kVectors]) HWY_ATTR {
    const T* const here = Whole(static_cast<const T*>(place));
    if (kFetches == 1) __builtin_prefetch(Moved(here, g_ahead), 0, 2);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) to[v] = LoadBytes(d, Moved(here, offsets.at[v]));
  };
  // The first tap reads x[first]; those that follow, round.
  const auto add = [&](int first) HWY_ATTR {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V factor = LoadBytes(d, Moved(from, offsets.at[v]));
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        sum[t][v] = FusedMulAddThere(x[(first + t) % kTaps][v], factor, sum[t][v]);
      }
    }
    if (kFetches == 1) __builtin_prefetch(Moved(from, v_ahead), 0, 2);
    if (kFetches == 2) {
      __builtin_prefetch(Moved(fetch, offsets.at[0]), 0, 2);
      fetch = Whole(fetch + run.fetch_step);
    }
    from = Whole(from + run.v_step);
  };
  int64_t p = 0;
  if constexpr (kSlides) {
#pragma GCC unroll 8
    for (int t = 0; t + 1 < kTaps; ++t) load(at[t], x[t]);
    for (; p + kTaps <= run.pixels; p += kTaps) {
#pragma GCC unroll 8
      for (int i = 0; i < kTaps; ++i) {
        load(at[p + i + kTaps - 1], x[(i + kTaps - 1) % kTaps]);
        add(i);
      }
    }
  }
  // What is left of a sliding run loads all its taps again: if it went on with those in registers,
  // GCC would copy them there in every turn of the loop above (2.7 cycles for three multiply-adds,
  // not 1.9; Neoverse-N1).
  for (; p < run.pixels; ++p) {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) load(at[kSlides ? p + t : p + t * run.pixels], x[t]);
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

template <class T, int kTaps, bool kSlides, int kFetches>
HWY_NOINLINE void SumPixelsTile(const PixelsInPlace& run) {
  constexpr int kMost = kUnrolledRegisters == 32 ? 4 : 2;
  constexpr int kVectors = std::min(kTaps <= 3 ? kMost : kMost / 2, kBlock / kLanes);
  constexpr int64_t kEach = kVectors * kLanes;
  constexpr bool kWholeLine = kEach >= 16;  // of the cache
  int64_t channel = 0;
  for (; kFetches != 0 && channel + 2 * kEach <= run.channels; channel += 2 * kEach) {
    SumPixelsOfVectors<T, kVectors, kTaps, kSlides, kFetches>(run, channel);
    SumPixelsOfVectors<T, kVectors, kTaps, kSlides, kWholeLine ? kFetches : 0>(run,
                                                                               channel + kEach);
  }
  for (; channel + kEach <= run.channels; channel += kEach) {
    SumPixelsOfVectors<T, kVectors, kTaps, kSlides, kFetches>(run, channel);
  }
  for (; channel < run.channels; channel += kLanes) {
    SumPixelsOfVectors<T, 1, kTaps, kSlides, 0>(run, channel);
  }
}

// Positions that the run before has read come from the carry, as those of tiles do.
template <class T, int kVectors, int kTaps, bool kFetches>
HWY_INLINE void SumPixelsWithCarry(const PixelsInPlace& run, int64_t channel) {
  const D d;
  float* sums[kVectors];
  V sum[kTaps][kVectors], x[kTaps][kVectors];
  float* const carry = run.carry + channel * (kTaps - 1);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = VectorAt(run.sums, channel + v * kLanes);
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) sum[t][v] = hn::LoadU(d, sums[v] + t * kLanes);
#pragma GCC unroll 4
    for (int t = 0; t + 1 < kTaps; ++t) {
      x[t][v] = hn::LoadU(d, carry + (v * (kTaps - 1) + t) * kLanes);
    }
  }
  const auto offsets = VectorOffsets<kVectors>::template Of<T>(channel);
  const int64_t g_ahead = (channel + run.g_ahead) * static_cast<int64_t>(sizeof(T));
  const int64_t v_ahead = (channel + run.v_ahead) * static_cast<int64_t>(sizeof(T));
  const T* from = static_cast<const T*>(run.v);
#pragma GCC unroll 4
  for (int p = 0; p < kLinePixels; ++p) {
    const int place = p + kTaps - 1;
    const T* const here = Whole(static_cast<const T*>(run.at[place]));
    if (kFetches) __builtin_prefetch(Moved(here, g_ahead), 0, 2);
    if (kFetches) __builtin_prefetch(Moved(from, v_ahead), 0, 2);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V fresh = LoadBytes(d, Moved(here, offsets.at[v]));
      x[place % kTaps][v] = fresh;
      if (place < kLinePixels) continue;
      hn::StoreU(fresh, d, carry + (v * (kTaps - 1) + place - kLinePixels) * kLanes);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V factor = LoadBytes(d, Moved(from, offsets.at[v]));
#pragma GCC unroll 4
      for (int t = 0; t < kTaps; ++t) {
        sum[t][v] = FusedMulAdd(x[(p + t) % kTaps][v], factor, sum[t][v]);
      }
    }
    from = Whole(from + run.v_step);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) hn::StoreU(sum[t][v], d, sums[v] + t * kLanes);
  }
}

template <class T, int kTaps>
HWY_NOINLINE void SumPixelsTileWithCarry(const PixelsInPlace& run) {
  constexpr int kVectors = kTaps <= 3 ? kLineVectors : kLineVectors / 2;
  constexpr int64_t kEach = kVectors * kLanes, kLine = kLineVectors * kLanes;
  const int64_t lead = std::min(ChannelsToLine<T>(run.v), run.channels);
  int64_t channel = 0;
  for (; channel < lead; channel += kLanes) {
    SumPixelsWithCarry<T, 1, kTaps, false>(run, channel);
  }
  for (; run.v_ahead != 0 && channel + kLine <= run.channels; channel += kLine) {
    SumPixelsWithCarry<T, kVectors, kTaps, true>(run, channel);
    if constexpr (kEach < kLine) {
      SumPixelsWithCarry<T, kVectors, kTaps, false>(run, channel + kEach);
    }
  }
  for (; channel + kEach <= run.channels; channel += kEach) {
    SumPixelsWithCarry<T, kVectors, kTaps, false>(run, channel);
  }
  for (; channel < run.channels; channel += kLanes) {
    SumPixelsWithCarry<T, 1, kTaps, false>(run, channel);
  }
}

template <class T, bool kSlides, int kFetches>
void SumPixelsOfManyTaps(const PixelsInPlace& run) {
  switch (run.taps) {
    case 3:
      return SumPixelsTile<T, 3, kSlides, kFetches>(run);
    case 4:
      return SumPixelsTile<T, 4, kSlides, kFetches>(run);
    case 5:
      return SumPixelsTile<T, 5, kSlides, kFetches>(run);
    case 6:
      return SumPixelsTile<T, 6, kSlides, kFetches>(run);
    default:
      return SumPixelsTile<T, 7, kSlides, kFetches>(run);
  }
}

template <class T, bool kSlides, int kFetches>
void SumPixelsOfTaps(const PixelsInPlace& run) {
  static_assert(kPixelPiece == 2 || kPixelPiece == 7);
  if (run.taps == 1) return SumPixelsTile<T, 1, false, kFetches>(run);
  if (run.taps == 2) return SumPixelsTile<T, 2, kSlides, kFetches>(run);
  if constexpr (kPixelPiece == 7) SumPixelsOfManyTaps<T, kSlides, kFetches>(run);
}

template <class T>
void SumPixels(const PixelsInPlace& run) {
  if constexpr (kLinePixels > 0) {
    if (run.carry != nullptr) {
      return run.taps == 2   ? SumPixelsTileWithCarry<T, 2>(run)
             : run.taps == 3 ? SumPixelsTileWithCarry<T, 3>(run)
                             : SumPixelsTileWithCarry<T, 4>(run);
    }
    if (run.slides && run.v_ahead != 0) return SumPixelsOfTaps<T, true, 1>(run);
    if (run.slides && run.fetch != nullptr) return SumPixelsOfTaps<T, true, 2>(run);
  }
  run.slides ? SumPixelsOfTaps<T, true, 0>(run) : SumPixelsOfTaps<T, false, 0>(run);
}

template <class T>
const SumsInPlace& SumsOf() {
  static constexpr SumsInPlace kSums{kTilePixels, kLinePixels, kTapPiece,
                                     SumTaps<T>,  kPixelPiece, SumPixels<T>};
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
