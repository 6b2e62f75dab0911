// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_pixels.cc"
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

void SetEdge(const GatherAxis& axis, int64_t pixel, int64_t fresh, PixelColumns::Edge& edge) {
  edge.pixel = pixel;
  edge.fresh = fresh;
  for (int64_t t = 0; t < axis.taps; ++t) {
    const int64_t position = axis.first + axis.pixel_step * pixel + t * axis.tap_step;
    SetEdgeTap(position, axis.pixel_step, axis.limit, t, edge);
  }
}

void SetEdges(const GatherAxis& axis, PixelColumns& columns) {
  const int64_t inside_end = columns.inside + (4 * columns.fours + 2 * columns.twos) * kLanes;
  int edges = 0;
  for (int64_t pixel = 0; pixel < axis.pixels; pixel += kLanes) {
    if (pixel == columns.inside) pixel = inside_end;
    if (pixel >= axis.pixels) break;
    const int64_t fresh = std::min<int64_t>(kLanes, axis.pixels - pixel);
    SetEdge(axis, pixel + fresh - kLanes, fresh, columns.edge[edges++]);
  }
}

// Lines of v of one channel, kLines at once.
template <class T, int kTaps, int kRows, int kLines, int kStride, bool kOnce>
class PixelSums {
 public:
  // Copies: nothing that is stored to is one of them.
  HWY_INLINE PixelSums(const TapsAlongPixels& taps, const LinesOfPixels& lines)
      : taps_(taps),
        lines_(lines),
        bias_(hn::Set(D(), lines.bias)),
        beta_(hn::Set(D(), taps.beta)),
        scales_(taps.beta != 0),
        rows_(lines.rows) {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) first_[t] = taps.columns->first[t];
    if constexpr (kOnce) once_.LoadFactors(lines.w);
  }

  HWY_INLINE void Run() {
    const PixelColumns& columns = *taps_.columns;
    const int64_t begin = columns.inside, fours_end = begin + columns.fours * 4 * kLanes;
    const int64_t end = fours_end + columns.twos * 2 * kLanes;
    T* v = static_cast<T*>(lines_.v);
    for (int64_t left = lines_.count; left > 0; left -= kLines) {
      wanted_ = static_cast<int>(std::min<int64_t>(left, kLines));
      turned_ = kLines > 1 && wanted_ == kLines && lines_.second < 0;
      first_v_ = turned_ ? v + (kLines - 1) * lines_.second : v;
      v_step_ = turned_ ? -lines_.second : lines_.second;
      if constexpr (kOnce) once_.LoadRows(lines_.g, rows_, taps_.zeros);
      constexpr int kMost =
          kLines == 4 ? 2 : 4;  // of more, sums and vectors of g fill the registers
      for (int64_t pixel = begin; pixel < fours_end; pixel += kMost * kLanes) {
        SumInside<kMost>(pixel);
      }
      for (int64_t pixel = fours_end; pixel < end; pixel += 2 * kLanes) SumInside<2>(pixel);
      int e = 0;
      for (; e + 2 <= columns.edges; e += 2) SumEdges<2>(columns.edge + e);
      if (e < columns.edges) SumEdges<1>(columns.edge + e);
      rows_ += lines_.row_step;
      v += lines_.v_step;
    }
  }

 private:
  template <int kColumns>
  HWY_INLINE void SumInside(int64_t pixel) {
    V sum[kLines][kColumns], odd[kColumns];
    SumColumns(
        [&](const float* g, int tap, V(&x)[kColumns]) HWY_ATTR {
#pragma GCC unroll 4
          for (int c = 0; c < kColumns; ++c) {
            const float* const at = g + kStride * (pixel + c * kLanes) + first_[tap];
            x[c] = kStride == 1 ? LoadBytes(D(), at) : LoadSecond(at, tap, odd[c]);
          }
        },
        sum);
    PutLowerFirst(sum);
#pragma GCC unroll 4
    for (int l = 0; l < kLines; ++l) {
      if (l >= wanted_) break;
      T* const to = first_v_ + l * v_step_ + pixel;
      if (scales_) {
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) sum[l][c] = WithOut(sum[l][c], beta_, to + c * kLanes);
      }
#pragma GCC unroll 2
      for (int c = 0; c < kColumns; c += 2) {
        StoreBoth(hn::Add(sum[l][c], bias_), hn::Add(sum[l][c + 1], bias_), to + c * kLanes);
      }
    }
  }

  template <int kColumns>
  HWY_INLINE void SumEdges(const PixelColumns::Edge* edges) {
    V sum[kLines][kColumns];
    SumColumns(
        [&](const float* g, int tap, V(&x)[kColumns]) HWY_ATTR {
#pragma GCC unroll 2
          for (int c = 0; c < kColumns; ++c) x[c] = LoadEdge<kStride>(g, edges[c], tap);
        },
        sum);
    PutLowerFirst(sum);
#pragma GCC unroll 4
    for (int l = 0; l < kLines; ++l) {
      if (l >= wanted_) break;
#pragma GCC unroll 2
      for (int c = 0; c < kColumns; ++c) {
        StoreEdge(sum[l][c], edges[c].fresh, first_v_ + l * v_step_ + edges[c].pixel);
      }
    }
  }

  // Lines are stored as they lie in memory: the other way takes a quarter more time (Neoverse-N1).
  template <int kColumns>
  HWY_INLINE void PutLowerFirst(V (&sum)[kLines][kColumns]) const {
    if (!turned_) return;
#pragma GCC unroll 2
    for (int l = 0; l < kLines / 2; ++l) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) std::swap(sum[l][c], sum[kLines - 1 - l][c]);
    }
  }

  template <int kColumns, class LoadTap>
  HWY_INLINE void SumColumns(const LoadTap& load, V (&sum)[kLines][kColumns]) {
    if constexpr (kOnce) {
      once_.template AddTo<true>(sum, load);
    } else {
      SumTerms<kTaps, kRows, kLines>(taps_, lines_, rows_, lines_.w, load, sum);
    }
  }

  // Of a pair of taps both: even lanes for the first one, then odd ones.
  HWY_INLINE static V LoadSecond(const float* at, int tap, V& odd) {
    if (tap % 2 == 1) return odd;
    V even;
    LoadPair(at, even, odd);
    return even;
  }

  HWY_INLINE void StoreEdge(V sum, int64_t fresh, T* out) const {
    const D d;
    const V value = hn::Add(scales_ ? WithOut(sum, beta_, out) : sum, bias_);
    if (fresh == kLanes || !scales_) return StoreBytes(value, d, out);
    T lanes[kLanes];
    StoreBytes(value, d, lanes);
    for (int64_t l = kLanes - fresh; l < kLanes; ++l) StoreAt(out, l, lanes[l]);
  }

  const TapsAlongPixels taps_;
  const LinesOfPixels lines_;
  const V bias_, beta_;
  const bool scales_;
  const int64_t* rows_;
  T* first_v_ = nullptr;  // of the lines that are summed at once, the lowest in memory
  int64_t v_step_ = 0;
  int wanted_ = kLines;
  bool turned_ = false;
  int64_t first_[kTaps];
  Terms<kTaps, kRows, kLines> once_;
};

template <class T, int kTaps, int kRows, int kLines, int kStride, bool kOnce>
HWY_NOINLINE void SumLinesOf(const TapsAlongPixels& taps, const LinesOfPixels& lines) {
  PixelSums<T, kTaps, kRows, kLines, kStride, kOnce>(taps, lines).Run();
}

int Unrolled(int64_t lines, const PixelColumns& columns) {
  if (!kUnrollsLines) return 1;
  const int64_t most = columns.stride == 1 ? 7 : 3;
  const bool square = lines == columns.taps && lines >= 3 && lines <= most && lines % 2 == 1;
  return square ? static_cast<int>(lines) : 1;
}

// So many lines at once as the taps say; where that is four, one or two that are left by twos.
template <class T, int kTaps, int kRows, bool kOnce>
void SumLinesTogether(const TapsAlongPixels& taps, LinesOfPixels lines) {
  constexpr int kMost = SumsAlongPixels::MostTogether(kLanes);
  if constexpr (kMost > 2) {
    const int64_t rest = lines.count % kMost;
    const int64_t left = taps.together == 2 ? lines.count : rest > 2 ? 0 : rest;
    const int64_t steps = (lines.count - left) / kMost;
    if (left < lines.count) {
      LinesOfPixels most = lines;
      most.count -= left;
      SumLinesOf<T, kTaps, kRows, kMost, 1, kOnce>(taps, most);
    }
    lines.rows += steps * lines.row_step;
    lines.v = static_cast<T*>(lines.v) + steps * lines.v_step;
    lines.count = left;
  }
  if (lines.count > 0) SumLinesOf<T, kTaps, kRows, 2, 1, kOnce>(taps, lines);
}

// Of a stride of two, one line of v at a time: neighbours have few lines of g in common.
template <class T, int kTaps, int kRows, int kStride = 1>
void SumLinesAs(const TapsAlongPixels& taps, const LinesOfPixels& lines) {
  if constexpr (kRows > 1 && kStride == 1 && kUnrollsLines) {
    const bool once = taps.depths.count == 1 && taps.lines.count == 1;
    return once ? SumLinesTogether<T, kTaps, kRows, true>(taps, lines)
                : SumLinesTogether<T, kTaps, kRows, false>(taps, lines);
  } else if constexpr (kUnrollsLines || kRows == 1) {
    if constexpr (kUnrollsLines) {
      if (taps.depths.count == 1 && taps.lines.count == 1) {
        return SumLinesOf<T, kTaps, kRows, 1, kStride, true>(taps, lines);
      }
    }
    SumLinesOf<T, kTaps, kRows, 1, kStride, false>(taps, lines);
  }
}

template <class T>
void SumLines(const TapsAlongPixels& taps, const LinesOfPixels& lines) {
  switch (taps.columns->taps + (taps.unrolled > 1 ? 10 : 0)) {
    case 1:
      return SumLinesAs<T, 1, 1>(taps, lines);
    case 2:
      return SumLinesAs<T, 2, 1>(taps, lines);
    case 3:
      return SumLinesAs<T, 3, 1>(taps, lines);
    case 4:
      return SumLinesAs<T, 4, 1>(taps, lines);
    case 5:
      return SumLinesAs<T, 5, 1>(taps, lines);
    case 6:
      return SumLinesAs<T, 6, 1>(taps, lines);
    case 7:
      return SumLinesAs<T, 7, 1>(taps, lines);
    case 13:
      return SumLinesAs<T, 3, 3>(taps, lines);
    case 15:
      return SumLinesAs<T, 5, 5>(taps, lines);
    default:
      return SumLinesAs<T, 7, 7>(taps, lines);
  }
}

void SumLinesOfStrideTwo(const TapsAlongPixels& taps, const LinesOfPixels& lines) {
  switch (taps.columns->taps + (taps.unrolled > 1 ? 10 : 0)) {
    case 1:
      return SumLinesAs<float, 1, 1, 2>(taps, lines);
    case 2:
      return SumLinesAs<float, 2, 1, 2>(taps, lines);
    case 3:
      return SumLinesAs<float, 3, 1, 2>(taps, lines);
    case 4:
      return SumLinesAs<float, 4, 1, 2>(taps, lines);
    default:
      return SumLinesAs<float, 3, 3, 2>(taps, lines);
  }
}

void SumLinesOfFloats(const TapsAlongPixels& taps, const LinesOfPixels& lines) {
  taps.columns->stride == 2 ? SumLinesOfStrideTwo(taps, lines) : SumLines<float>(taps, lines);
}

template <class T>
const SumsAlongPixels& SumsOf() {
  static constexpr SumsAlongPixels kSums{SetEdges, Unrolled, SumLines<T>};
  return kSums;
}

template <>
const SumsAlongPixels& SumsOf<float>() {
  static constexpr SumsAlongPixels kSums{SetEdges, Unrolled, SumLinesOfFloats};
  return kSums;
}

const SumsAlongPixels& SumsAlongPixelsHere(DataType type) {
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

HWY_EXPORT(SumsAlongPixelsHere);

const SumsAlongPixels& PickedSumsAlongPixels(DataType type) {
  return HWY_DYNAMIC_DISPATCH(SumsAlongPixelsHere)(type);
}

}  // namespace convgrad
#endif  // HWY_ONCE
