// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_pixels.cc"
#include "hwy/foreach_target.h"
#include "cpu/bf16_instructions.h"
#include "cpu/direct_pixels.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

static_assert(kLanes <= PixelColumns::kMostLanes);

// A lane as Moved wants it: NEON's table has bytes, four of a lane.
constexpr int32_t PlaceOf(int64_t lane) {
#if CONVGRAD_MULTIPLIES_BY_LANES
  return static_cast<int32_t>(0x03020100 + 0x04040404 * lane);
#else
  return static_cast<int32_t>(lane);
#endif
}

// Lanes of x at these places, zeros where they are < 0.
HWY_INLINE V Moved(V x, const int32_t* places) {
  const D d;
  const hn::RebindToSigned<D> integers;
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

void SetEdge(const GatherAxis& axis, int64_t pixel, int64_t fresh, PixelColumns::Edge& edge) {
  edge.pixel = pixel;
  edge.fresh = fresh;
  for (int64_t t = 0; t < axis.taps; ++t) {
    const int64_t position = axis.first + pixel + t * axis.tap_step;
    const int64_t from = std::clamp<int64_t>(position, 0, axis.limit - kLanes);
    edge.from[t] = from;
    for (int64_t l = 0; l < kLanes; ++l) {
      const int64_t lane = position + l - from;
      edge.places[t][l] = lane >= 0 && lane < kLanes ? PlaceOf(lane) : -1;
    }
  }
}

bool CutColumns(const GatherAxis& axis, PixelColumns& columns) {
  if (axis.pixel_step != 1 || axis.taps > PixelColumns::kMostTaps || axis.pixels < kLanes ||
      axis.limit < kLanes) {
    return false;
  }
  columns.taps = static_cast<int>(axis.taps);
  for (int64_t t = 0; t < axis.taps; ++t) columns.first[t] = axis.first + t * axis.tap_step;
  // Pixels [begin, end) have all their taps inside.
  const int64_t reach = (axis.taps - 1) * axis.tap_step;
  const int64_t lowest = axis.first + std::min<int64_t>(0, reach);
  const int64_t highest = axis.first + std::max<int64_t>(0, reach);
  const int64_t begin = std::max<int64_t>(0, -lowest);
  const int64_t end = std::min(axis.pixels, axis.limit - highest);
  columns.inside = std::min(CeilDiv(begin, kLanes) * kLanes, axis.pixels);
  columns.pairs = std::max<int64_t>(0, end - columns.inside) / (2 * kLanes);
  columns.edges = 0;
  const int64_t pair_end = columns.inside + columns.pairs * 2 * kLanes;
  for (int64_t pixel = 0; pixel < axis.pixels; pixel += kLanes) {
    if (pixel == columns.inside && columns.pairs > 0) pixel = pair_end;
    if (pixel >= axis.pixels) break;
    if (columns.edges == PixelColumns::kMostEdges) return false;
    const int64_t fresh = std::min<int64_t>(kLanes, axis.pixels - pixel);
    SetEdge(axis, pixel + fresh - kLanes, fresh, columns.edge[columns.edges++]);
  }
  return true;
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

// Lines of v that are summed at once: of the lines of g that one reads, the other reads all but
// one.
template <int kRows>
constexpr int kLinesOf = kRows > 1 ? 2 : 1;

// Lines of taps that are unrolled, and the lines of g that they meet.
template <class T, int kTaps, int kRows>
struct Terms {
  static constexpr int kLines = kLinesOf<kRows>;
  static constexpr int64_t kWeights = SumsAlongPixels::WeightsOf(kTaps);

  const T* g[kRows + kLines - 1];
  TapFactors<kTaps> w[kRows];

  HWY_INLINE Terms() {}
  HWY_INLINE void LoadRows(const T* first, const int64_t* rows, const T* zeros) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows + kLines - 1; ++r) {
      g[r] = rows[r] == LinesOfPixels::kOutside ? zeros : first + rows[r];
    }
  }
  HWY_INLINE void LoadFactors(const float* from) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) w[r].Load(from + r * kWeights);
  }

  // load(line of g, tap, x): of vectors next to each other.
  template <int kColumns, class LoadTap>
  HWY_INLINE void AddTo(V (&sum)[kLines][kColumns], const LoadTap& load) {
    if constexpr (kTaps * kRows > 9) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) w[r].Keep();
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows + kLines - 1; ++r) AddTaps<0>(r, sum, load);
  }

 private:
  template <int kTap, int kColumns, class LoadTap>
  HWY_INLINE void AddTaps(int r, V (&sum)[kLines][kColumns], const LoadTap& load) const {
    V x[kColumns];
    load(g[r], kTap, x);
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
      if (r - l < 0 || r - l >= kRows) continue;
      const V factor = w[r - l].template Of<kTap>();
#pragma GCC unroll 2
      for (int c = 0; c < kColumns; ++c) sum[l][c] = FusedMulAdd(x[c], factor, sum[l][c]);
    }
    if constexpr (kTap + 1 < kTaps) AddTaps<kTap + 1>(r, sum, load);
  }
};

// All terms of some vectors; `once` if there are no more.
template <bool kOnce, class T, int kTaps, int kRows, int kColumns, class LoadTap>
HWY_INLINE void SumColumns(const TapsAlongPixels& taps, const LinesOfPixels& lines,
                           const int64_t* rows, Terms<T, kTaps, kRows>& once, const LoadTap& load,
                           V (&sum)[kLinesOf<kRows>][kColumns]) {
#pragma GCC unroll 2
  for (int l = 0; l < kLinesOf<kRows>; ++l) {
#pragma GCC unroll 2
    for (int c = 0; c < kColumns; ++c) sum[l][c] = hn::Zero(D());
  }
  if constexpr (kOnce) return once.AddTo(sum, load);
  const float* w = lines.w;
  for (int64_t d = 0; d < taps.depths.count; ++d) {
    const int64_t* row = rows;
    const float* factors = w;
    for (int64_t h = 0; h < taps.lines.count; ++h) {
      Terms<T, kTaps, kRows> terms;
      terms.LoadRows(static_cast<const T*>(lines.g), row, static_cast<const T*>(taps.zeros));
      terms.LoadFactors(factors);
      terms.AddTo(sum, load);
      row += taps.lines.rows;
      factors += taps.lines.weights;
    }
    rows += taps.depths.rows;
    w += taps.depths.weights;
  }
}

// A -0 of beta * out becomes +0, see LoadScaled.
template <class T>
HWY_INLINE V WithOut(V sum, V bias, V beta, bool accumulates, const T* out) {
  const D d;
  if (accumulates) {
    sum = hn::Add(hn::Add(hn::Mul(beta, LoadBytes(d, out)), hn::Zero(d)), sum);
  }
  return hn::Add(sum, bias);
}

template <class T>
HWY_INLINE void StoreEdge(V sum, V bias, V beta, bool accumulates, int64_t fresh, T* out) {
  const D d;
  const V value = WithOut(sum, bias, beta, accumulates, out);
  if (fresh == kLanes || !accumulates) return StoreBytes(value, d, out);
  T lanes[kLanes];
  StoreBytes(value, d, lanes);
  for (int64_t l = kLanes - fresh; l < kLanes; ++l) StoreAt(out, l, lanes[l]);
}

template <class T, int kTaps, int kRows, bool kOnce>
HWY_NOINLINE void SumLinesOf(const TapsAlongPixels& all_taps, const LinesOfPixels& all_lines) {
  const D d;
  constexpr int kLines = kLinesOf<kRows>;
  // Copies: nothing that is stored to is one of them.
  const TapsAlongPixels taps = all_taps;
  const LinesOfPixels lines = all_lines;
  const V bias = hn::Set(d, lines.bias), beta = hn::Set(d, taps.beta);
  const bool accumulates = taps.beta != 0;
  const PixelColumns& columns = *taps.columns;
  const int64_t begin = columns.inside, end = begin + columns.pairs * 2 * kLanes;
  int64_t first[kTaps];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) first[t] = columns.first[t];
  Terms<T, kTaps, kRows> once;
  if constexpr (kOnce) once.LoadFactors(lines.w);
  const int64_t* rows = lines.rows;
  T* v = static_cast<T*>(lines.v);
  for (int64_t left = lines.count; left > 0; left -= kLines) {
    const int wanted = left < kLines ? 1 : kLines;
    if constexpr (kOnce) {
      once.LoadRows(static_cast<const T*>(lines.g), rows, static_cast<const T*>(taps.zeros));
    }
    for (int64_t pixel = begin; pixel < end; pixel += 2 * kLanes) {
      V sum[kLines][2];
      SumColumns<kOnce>(
          taps, lines, rows, once,
          [&](const T* g, int tap, V(&x)[2]) HWY_ATTR {
            x[0] = LoadBytes(d, g + pixel + first[tap]);
            x[1] = LoadBytes(d, g + pixel + first[tap] + kLanes);
          },
          sum);
#pragma GCC unroll 2
      for (int l = 0; l < kLines; ++l) {
        if (l >= wanted) break;
#pragma GCC unroll 2
        for (int c = 0; c < 2; ++c) {
          T* const to = v + l * lines.second + pixel + c * kLanes;
          StoreBytes(WithOut(sum[l][c], bias, beta, accumulates, to), d, to);
        }
      }
    }
    for (const PixelColumns::Edge *e = columns.edge, *last = e + columns.edges; e < last; ++e) {
      V sum[kLines][1];
      SumColumns<kOnce>(
          taps, lines, rows, once,
          [&](const T* g, int tap, V(&x)[1])
              HWY_ATTR { x[0] = Moved(LoadBytes(d, g + e->from[tap]), e->places[tap]); },
          sum);
#pragma GCC unroll 2
      for (int l = 0; l < kLines; ++l) {
        if (l >= wanted) break;
        StoreEdge(sum[l][0], bias, beta, accumulates, e->fresh, v + l * lines.second + e->pixel);
      }
    }
    rows += lines.row_step;
    v += lines.v_step;
  }
}

int Unrolled(int64_t lines, int64_t taps) {
  const bool square = lines == taps && (lines == 3 || lines == 5 || lines == 7);
  return square ? static_cast<int>(lines) : 1;
}

template <class T>
void SumLines(const TapsAlongPixels& taps, const LinesOfPixels& lines) {
  const auto sum = [&]<int kTaps, int kRows>(std::integer_sequence<int, kTaps, kRows>) {
    taps.depths.count == 1 && taps.lines.count == 1
        ? SumLinesOf<T, kTaps, kRows, true>(taps, lines)
        : SumLinesOf<T, kTaps, kRows, false>(taps, lines);
  };
  switch (taps.columns->taps + (taps.unrolled > 1 ? 10 : 0)) {
    case 1:
      return sum(std::integer_sequence<int, 1, 1>());
    case 2:
      return sum(std::integer_sequence<int, 2, 1>());
    case 3:
      return sum(std::integer_sequence<int, 3, 1>());
    case 4:
      return sum(std::integer_sequence<int, 4, 1>());
    case 5:
      return sum(std::integer_sequence<int, 5, 1>());
    case 6:
      return sum(std::integer_sequence<int, 6, 1>());
    case 7:
      return sum(std::integer_sequence<int, 7, 1>());
    case 13:
      return sum(std::integer_sequence<int, 3, 3>());
    case 15:
      return sum(std::integer_sequence<int, 5, 5>());
    default:
      return sum(std::integer_sequence<int, 7, 7>());
  }
}

template <class T>
const SumsAlongPixels& SumsOf() {
  static constexpr SumsAlongPixels kSums{kLanes, CutColumns, Unrolled, SumLines<T>};
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
