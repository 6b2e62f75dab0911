// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_pairs.cc"
#include "hwy/foreach_target.h"
#include "cpu/bf16_instructions.h"
#include "cpu/direct_pixels.h"
#include "cpu/pixel_terms-inl.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Lines of v of one channel: both phases in registers, so that memory is written in its order and
// once. (Lines of each phase in memory first took twice as long: what is written then is read from
// memory before.)
template <class T, int kTapsA, int kTapsB, int kRows, bool kOnce>
class PairSums {
 public:
  HWY_INLINE PairSums(const PhasePair& pair, const LinesOfPixels& lines)
      : pair_(pair),
        lines_(lines),
        bias_(hn::Set(D(), lines.bias)),
        beta_(hn::Set(D(), pair.taps[0].beta)),
        scales_(pair.taps[0].beta != 0),
        rows_(lines.rows) {
#pragma GCC unroll 4
    for (int t = 0; t < kTapsA; ++t) first_a_[t] = pair.taps[0].columns->first[t];
#pragma GCC unroll 4
    for (int t = 0; t < kTapsB; ++t) first_b_[t] = pair.taps[1].columns->first[t];
    if constexpr (kOnce) {
      once_a_.LoadFactors(lines.w + pair.weights[0]);
      once_b_.LoadFactors(lines.w + pair.weights[1]);
    }
  }

  HWY_INLINE void Run() {
    const PixelColumns &a = *pair_.taps[0].columns, &b = *pair_.taps[1].columns;
    const int64_t begin = a.inside, fours_end = begin + a.fours * 4 * kLanes;
    const int64_t end = fours_end + a.twos * 2 * kLanes;
    v_ = static_cast<T*>(lines_.v);
    for (int64_t left = lines_.count; left > 0; --left) {
      if constexpr (kOnce) {
        once_a_.LoadRows(lines_.g, rows_, pair_.taps[0].zeros);
        once_b_.LoadRows(lines_.g, rows_, pair_.taps[1].zeros);
      }
      if (left > 1) PrefetchLine(v_ + lines_.v_step, 2 * end);
      for (int64_t pixel = begin; pixel < fours_end; pixel += 4 * kLanes) SumInside<4>(pixel);
      for (int64_t pixel = fours_end; pixel < end; pixel += 2 * kLanes) SumInside<2>(pixel);
      for (int e = 0; e < a.edges; ++e) SumEdge(a.edge[e], b.edge[e], e + 1 == a.edges);
      rows_ += lines_.row_step;
      v_ += lines_.v_step;
    }
  }

 private:
  // Where the next line will be written, if it is short. (Neoverse-N1, 3x3: 112x112 8.4 ms, so 6.0;
  // 448x448 34.7 and 28.6; lines of 4000 7.7 and 8.7.)
  HWY_INLINE static void PrefetchLine(const T* line, int64_t count) {
    constexpr int64_t kCacheLine = 64, kMostBytes = 2 << 10;
    if (count * int64_t{sizeof(T)} > kMostBytes) return;
    for (int64_t i = 0; i < count; i += kCacheLine / int64_t{sizeof(T)}) {
      __builtin_prefetch(line + i, 1);
    }
  }

  template <int kColumns>
  HWY_INLINE void SumInside(int64_t pixel) {
    V a[1][kColumns], b[1][kColumns];
    const auto load = [&](const int64_t* first) HWY_ATTR {
      return [pixel, first](const float* g, int tap, V(&x)[kColumns]) HWY_ATTR {
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) {
          x[c] = LoadBytes(D(), g + pixel + first[tap] + c * kLanes);
        }
      };
    };
    SumBoth(load(first_a_), load(first_b_), a, b);
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      T* const to = v_ + 2 * (pixel + c * kLanes);
      V low, high;
      JoinPair(a[0][c], b[0][c], low, high);
      if (scales_) {
        low = WithOut(low, beta_, to);
        high = WithOut(high, beta_, to + kLanes);
      }
      StoreBoth(hn::Add(low, bias_), hn::Add(high, bias_), to);
    }
  }

  HWY_INLINE void SumEdge(const PixelColumns::Edge& of_a, const PixelColumns::Edge& of_b,
                          bool last) {
    V a[1][1], b[1][1];
    const auto load = [](const PixelColumns::Edge& edge) HWY_ATTR {
      return [&edge](const float* g, int tap, V(&x)[1])
                 HWY_ATTR { x[0] = LoadEdge<1>(g, edge, tap); };
    };
    SumBoth(load(of_a), load(of_b), a, b);
    V low, high;
    JoinPair(a[0][0], b[0][0], low, high);
    T* const to = v_ + 2 * of_a.pixel;
    const bool odd = last && pair_.odd;
    if (!scales_ && !odd) return StoreBoth(hn::Add(low, bias_), hn::Add(high, bias_), to);
    StoreSome(low, high, {2 * (kLanes - of_a.fresh), 2 * kLanes - (odd ? 1 : 0)}, to);
  }

  // Those lanes of both that are there, and are not scaled yet.
  HWY_INLINE void StoreSome(V low, V high, const Range& lanes, T* to) const {
    T both[2 * kLanes] = {};
    if (scales_) {
      for (int64_t l = lanes.begin; l < lanes.end; ++l) both[l] = LoadAt<T>(to, l);
      low = WithOut(low, beta_, both);
      high = WithOut(high, beta_, both + kLanes);
    }
    StoreBoth(hn::Add(low, bias_), hn::Add(high, bias_), both);
    for (int64_t l = lanes.begin; l < lanes.end; ++l) StoreAt(to, l, both[l]);
  }

  template <int kColumns, class LoadA, class LoadB>
  HWY_INLINE void SumBoth(const LoadA& load_a, const LoadB& load_b, V (&a)[1][kColumns],
                          V (&b)[1][kColumns]) {
    if constexpr (kOnce) {
      once_a_.template AddTo<true>(a, load_a);
      once_b_.template AddTo<true>(b, load_b);
    } else {
      const float* const w = lines_.w;
      SumTerms<kTapsA, kRows, 1>(pair_.taps[0], lines_, rows_, w + pair_.weights[0], load_a, a);
      SumTerms<kTapsB, kRows, 1>(pair_.taps[1], lines_, rows_, w + pair_.weights[1], load_b, b);
    }
  }

  const PhasePair pair_;
  const LinesOfPixels lines_;
  const V bias_, beta_;
  const bool scales_;
  const int64_t* rows_;
  T* v_ = nullptr;
  int64_t first_a_[kTapsA], first_b_[kTapsB];
  Terms<kTapsA, kRows, 1> once_a_;
  Terms<kTapsB, kRows, 1> once_b_;
};

// Lines of taps of 3x3 and 5x5 with a stride of two, of either phase.
bool Unrolls(int64_t lines, int64_t taps_a, int64_t taps_b) {
  const int64_t taps = taps_a + taps_b;
  if (!kUnrollsLines) return false;
  return (taps == 3 && (lines == 1 || lines == 2)) || (taps == 5 && (lines == 2 || lines == 3));
}

template <class T, int kTapsA, int kTapsB>
HWY_NOINLINE void SumPairsOf(const PhasePair& pair, const LinesOfPixels& lines) {
  const TapsAlongPixels& taps = pair.taps[0];
  const bool once = kUnrollsLines && taps.depths.count == 1 && taps.lines.count == 1;
  if constexpr (kUnrollsLines && kTapsA + kTapsB == 3) {
    if (once && taps.unrolled == 1) return PairSums<T, kTapsA, kTapsB, 1, true>(pair, lines).Run();
  }
  if constexpr (kUnrollsLines && (kTapsA + kTapsB == 3 || kTapsA + kTapsB == 5)) {
    if (once && taps.unrolled == 2) return PairSums<T, kTapsA, kTapsB, 2, true>(pair, lines).Run();
  }
  if constexpr (kUnrollsLines && kTapsA + kTapsB == 5) {
    if (once && taps.unrolled == 3) return PairSums<T, kTapsA, kTapsB, 3, true>(pair, lines).Run();
  }
  PairSums<T, kTapsA, kTapsB, 1, false>(pair, lines).Run();
}

template <class T>
void SumPairs(const PhasePair& pair, const LinesOfPixels& lines) {
  switch (10 * pair.taps[0].columns->taps + pair.taps[1].columns->taps) {
    case 11:
      return SumPairsOf<T, 1, 1>(pair, lines);
    case 12:
      return SumPairsOf<T, 1, 2>(pair, lines);
    case 21:
      return SumPairsOf<T, 2, 1>(pair, lines);
    case 22:
      return SumPairsOf<T, 2, 2>(pair, lines);
    case 23:
      return SumPairsOf<T, 2, 3>(pair, lines);
    default:
      return SumPairsOf<T, 3, 2>(pair, lines);
  }
}

template <class T>
const PairsAlongPixels& PairsOf() {
  static constexpr PairsAlongPixels kPairs{Unrolls, SumPairs<T>};
  return kPairs;
}

const PairsAlongPixels& PairsAlongPixelsHere(DataType type) {
  if (type == DataType::kF32) return PairsOf<float>();
  if (type == DataType::kF16) return PairsOf<F16>();
#if CONVGRAD_MULTIPLIES_BY_LANES
  if (Bf16TermsEach() == kTermsOf<Quad>) return PairsOf<NativeBF16>();
#endif
  return PairsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(PairsAlongPixelsHere);

const PairsAlongPixels& PickedPairsAlongPixels(DataType type) {
  return HWY_DYNAMIC_DISPATCH(PairsAlongPixelsHere)(type);
}

}  // namespace convgrad
#endif  // HWY_ONCE
