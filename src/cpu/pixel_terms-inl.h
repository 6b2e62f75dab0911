// Terms of sums along pixels: their factors, and lines of g. Step 7 of the story.
#if defined(CONVGRAD_CPU_PIXEL_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PIXEL_TERMS_INL_H_
#undef CONVGRAD_CPU_PIXEL_TERMS_INL_H_
#else
#define CONVGRAD_CPU_PIXEL_TERMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "cpu/direct_pixels.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

static_assert(kLanes <= PixelColumns::kMostLanes);

// AVX-512 reads what is inside through a mask, which may lie across the end of a tensor: one access
// where a table takes six instructions. (Cascade Lake, lines of 28 pixels, which are edges alone:
// 7x7 3.35 ms, so 3.08; 3x3x3 4.4 and 3.9. Where the next page is not there, such an access takes
// 320 cycles; that is one vector of a tensor or two.) Others move what they load from inside by a
// table: of AVX2's masks, AMD does not say that they keep from such a page.
#undef CONVGRAD_LOADS_THROUGH_MASKS
#define CONVGRAD_LOADS_THROUGH_MASKS CONVGRAD_HAS_AVX512

// Where lanes of a table come from: NEON's has bytes, four of a lane.
constexpr int32_t PlaceOf(int64_t lane) {
#if CONVGRAD_MULTIPLIES_BY_LANES
  return static_cast<int32_t>(0x03020100 + 0x04040404 * lane);
#else
  return static_cast<int32_t>(lane);
#endif
}

#if CONVGRAD_LOADS_THROUGH_MASKS
// Lanes whose places are < 0, zeros elsewhere.
HWY_INLINE V LoadPlaces(const float* from, const int32_t* places) {
  const D d;
  const hn::RebindToSigned<D> integers;
  return hn::MaskedLoad(hn::MaskFromVec(hn::BitCast(d, hn::LoadU(integers, places))), d, from);
}
#else
// Lanes at these places, zeros where they are < 0.
HWY_INLINE V LoadPlaces(const float* from, const int32_t* places) {
  const D d;
  const hn::RebindToSigned<D> integers;
  const V x = LoadBytes(d, from);
  const auto at = hn::LoadU(integers, places);
#if CONVGRAD_MULTIPLIES_BY_LANES
  const hn::Repartition<uint8_t, D> bytes;
  return hn::BitCast(d, hn::TableLookupBytesOr0(hn::BitCast(bytes, x), hn::BitCast(bytes, at)));
#else
  const auto outside = hn::RebindMask(d, hn::Lt(at, hn::Zero(integers)));
  const auto lane = hn::And(at, hn::Set(integers, kLanes - 1));
  return hn::IfThenZeroElse(outside, hn::TableLookupLanes(x, hn::IndicesFromVec(d, lane)));
#endif
}
#endif

// Tap `tap` of an edge, of a line of g whose taps are so far apart.
inline void SetEdgeTap(int64_t position, int64_t step, int64_t limit, int64_t tap,
                       PixelColumns::Edge& edge) {
#if CONVGRAD_LOADS_THROUGH_MASKS
  (void)step;
  bool any = false;
  for (int64_t l = 0; l < 2 * kLanes; ++l) {
    const bool inside = position + l >= 0 && position + l < limit;
    edge.places[tap][l / kLanes][l % kLanes] = inside ? -1 : 0;
    any = any || inside;
  }
  edge.from[tap] = any ? position : 0;
#else
  // Of a stride of two, from the same place as the first tap of a pair.
  const int64_t near = step == 2 ? position - tap % 2 : position;
  edge.from[tap] = std::clamp<int64_t>(near, 0, limit - step * kLanes);
  for (int64_t l = 0; l < kLanes; ++l) {
    const int64_t lane = position + step * l - edge.from[tap];
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t own = lane - half * kLanes;
      edge.places[tap][half][l] = own >= 0 && own < kLanes ? PlaceOf(own) : -1;
    }
  }
#endif
}

template <int kStride>
HWY_INLINE V LoadEdge(const float* g, const PixelColumns::Edge& edge, int tap) {
  const float* const at = g + edge.from[tap];
  const V first = LoadPlaces(at, edge.places[tap][0]);
  if constexpr (kStride == 1) {
    return first;
  } else {
    const V second = LoadPlaces(at + kLanes, edge.places[tap][1]);
#if CONVGRAD_LOADS_THROUGH_MASKS
    return hn::ConcatEven(D(), second, first);
#else
    return hn::Or(first, second);
#endif
  }
}

// The factors of a line of taps. NEON takes them from lanes of registers, others from memory.
template <int kTaps>
struct TapFactors {
  HWY_INLINE TapFactors() {}
#if CONVGRAD_MULTIPLIES_BY_LANES
  V fours[(kTaps + 3) / 4];

  HWY_INLINE void Load(const float* w) {
#pragma GCC unroll 2
    for (int i = 0; i < (kTaps + 3) / 4; ++i) fours[i] = hn::LoadU(D(), w + 4 * i);
  }
  // So that no compiler makes a vector of each lane before the loop: there are not as many
  // registers.
  HWY_INLINE void Keep() {
#pragma GCC unroll 2
    for (int i = 0; i < (kTaps + 3) / 4; ++i) asm volatile("" : "+w"(fours[i].raw));
  }
  template <int kTap>
  HWY_INLINE V Of() const {
    return hn::Broadcast<kTap % 4>(fours[kTap / 4]);
  }
#else
  const float* w;

  HWY_INLINE void Load(const float* from) { w = from; }
  HWY_INLINE void Keep() {}
  template <int kTap>
  HWY_INLINE V Of() const {
    return hn::Set(D(), w[kTap]);
  }
#endif
};

// Lines of taps that are unrolled, and the lines of g that they meet. Of lines of v that are summed
// at once, each reads all lines of g that the one before it reads but one.
template <int kTaps, int kRows, int kLines>
struct Terms {
  static constexpr int64_t kWeights = SumsAlongPixels::WeightsOf(kTaps);

  const float* g[kRows + kLines - 1];
  TapFactors<kTaps> w[kRows];

  HWY_INLINE Terms() {}
  HWY_INLINE void LoadRows(const float* first, const int64_t* rows, const float* zeros) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows + kLines - 1; ++r) {
      g[r] = rows[r] == LinesOfPixels::kOutside ? zeros : first + rows[r];
    }
  }
  HWY_INLINE void LoadFactors(const float* from) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) w[r].Load(from + r * kWeights);
  }

  // load(line of g, tap, x): of vectors next to each other. kFirst: a sum is its first product,
  // which differs from its sum with zero by the sign of a zero alone: the bias, never -0, ends it.
  template <bool kFirst, int kColumns, class LoadTap>
  HWY_INLINE void AddTo(V (&sum)[kLines][kColumns], const LoadTap& load) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) w[r].Keep();
#pragma GCC unroll 16
    for (int r = 0; r < kRows + kLines - 1; ++r) AddTaps<kFirst, 0>(r, sum, load);
  }

 private:
  template <bool kFirst, int kTap, int kColumns, class LoadTap>
  HWY_INLINE void AddTaps(int r, V (&sum)[kLines][kColumns], const LoadTap& load) const {
    V x[kColumns];
    load(g[r], kTap, x);
#pragma GCC unroll 4
    for (int l = 0; l < kLines; ++l) {
      if (r - l < 0 || r - l >= kRows) continue;
      const V factor = w[r - l].template Of<kTap>();
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        sum[l][c] = kFirst && kTap == 0 && r == l ? hn::Mul(x[c], factor)
                                                  : FusedMulAdd(x[c], factor, sum[l][c]);
      }
    }
    if constexpr (kTap + 1 < kTaps) AddTaps<kFirst, kTap + 1>(r, sum, load);
  }
};

// All terms of some vectors, of unrolled lines of taps after each other.
template <int kTaps, int kRows, int kLines, int kColumns, class LoadTap>
HWY_INLINE void SumTerms(const TapsAlongPixels& taps, const LinesOfPixels& lines,
                         const int64_t* rows, const float* w, const LoadTap& load,
                         V (&sum)[kLines][kColumns]) {
#pragma GCC unroll 4
  for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) sum[l][c] = OwnZero();
  }
  for (int64_t d = 0; d < taps.depths.count; ++d) {
    const int64_t* row = rows;
    const float* factors = w;
    for (int64_t h = 0; h < taps.lines.count; ++h) {
      Terms<kTaps, kRows, kLines> terms;
      terms.LoadRows(lines.g, row, taps.zeros);
      terms.LoadFactors(factors);
      terms.template AddTo<false>(sum, load);
      row += taps.lines.rows;
      factors += taps.lines.weights;
    }
    rows += taps.depths.rows;
    w += taps.depths.weights;
  }
}

// Lanes that lie between each other in memory, and back. (NEON's own instructions for it take 6
// times as long to store a plane of 112x112: 10.6 us, so 1.7, Neoverse-N1.)
HWY_INLINE void LoadPair(const float* from, V& even, V& odd) {
  const D d;
#if CONVGRAD_MULTIPLIES_BY_LANES
  const V low = LoadBytes(d, from), high = LoadBytes(d, from + kLanes);
  even = hn::ConcatEven(d, high, low);
  odd = hn::ConcatOdd(d, high, low);
#else
  hn::LoadInterleaved2(d, from, even, odd);
#endif
}

HWY_INLINE void JoinPair(V even, V odd, V& low, V& high) {
  const D d;
#if CONVGRAD_MULTIPLIES_BY_LANES
  low = hn::InterleaveLower(d, even, odd);
  high = hn::InterleaveUpper(d, even, odd);
#else
  alignas(64) float both[2 * kLanes];
  hn::StoreInterleaved2(even, odd, d, both);
  low = hn::Load(d, both);
  high = hn::Load(d, both + kLanes);
#endif
}

// c = beta * out + sum; a -0 of beta * out becomes +0, see LoadScaled.
template <class T>
HWY_INLINE V WithOut(V sum, V beta, const T* out) {
  const D d;
  return hn::Add(hn::Add(hn::Mul(beta, LoadBytes(d, out)), hn::Zero(d)), sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
