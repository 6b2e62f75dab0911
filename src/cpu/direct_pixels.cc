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
template <int kTaps, int kRows>
struct Terms {
  static constexpr int kLines = kLinesOf<kRows>;
  static constexpr int64_t kWeights = SumsAlongPixels::WeightsOf(kTaps);

  const float* g[kRows + kLines - 1];
  TapFactors<kTaps> w[kRows];

  HWY_INLINE Terms() {}
  HWY_INLINE void LoadRows(const float* first, const int64_t* rows, const float* zeros) {
#pragma GCC unroll 8
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
#pragma GCC unroll 8
    for (int r = 0; r < kRows + kLines - 1; ++r) AddTaps<kFirst, 0>(r, sum, load);
  }

 private:
  template <bool kFirst, int kTap, int kColumns, class LoadTap>
  HWY_INLINE void AddTaps(int r, V (&sum)[kLines][kColumns], const LoadTap& load) const {
    V x[kColumns];
    load(g[r], kTap, x);
#pragma GCC unroll 2
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

// Lines of v of one channel.
template <class T, int kTaps, int kRows, bool kOnce>
class PixelSums {
  static constexpr int kLines = kLinesOf<kRows>;

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
      wanted_ = left < kLines ? 1 : kLines;
      turned_ = wanted_ == 2 && lines_.second < 0;
      low_ = turned_ ? v + lines_.second : v;
      high_ = turned_ ? v : v + lines_.second;
      if constexpr (kOnce) once_.LoadRows(lines_.g, rows_, taps_.zeros);
      for (int64_t pixel = begin; pixel < fours_end; pixel += 4 * kLanes) SumInside<4>(pixel);
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
    V sum[kLines][kColumns];
    SumColumns(
        [&](const float* g, int tap, V(&x)[kColumns]) HWY_ATTR {
#pragma GCC unroll 4
          for (int c = 0; c < kColumns; ++c) {
            x[c] = LoadBytes(D(), g + pixel + first_[tap] + c * kLanes);
          }
        },
        sum);
    PutLowerFirst(sum);
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
      if (l >= wanted_) break;
      T* const to = (l == 0 ? low_ : high_) + pixel;
      if (scales_) {
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) sum[l][c] = WithOut(sum[l][c], to + c * kLanes);
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
          for (int c = 0; c < kColumns; ++c) {
            x[c] = Moved(LoadBytes(D(), g + edges[c].from[tap]), edges[c].places[tap]);
          }
        },
        sum);
    PutLowerFirst(sum);
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
      if (l >= wanted_) break;
#pragma GCC unroll 2
      for (int c = 0; c < kColumns; ++c) {
        StoreEdge(sum[l][c], edges[c].fresh, (l == 0 ? low_ : high_) + edges[c].pixel);
      }
    }
  }

  // Lines are stored as they lie in memory: the other way takes a quarter more time (Neoverse-N1).
  template <int kColumns>
  HWY_INLINE void PutLowerFirst(V (&sum)[kLines][kColumns]) const {
    if (kLines == 1 || !turned_) return;
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) std::swap(sum[0][c], sum[kLines - 1][c]);
  }

  // All terms of some vectors.
  template <int kColumns, class LoadTap>
  HWY_INLINE void SumColumns(const LoadTap& load, V (&sum)[kLines][kColumns]) {
    if constexpr (kOnce) return once_.template AddTo<true>(sum, load);
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) sum[l][c] = OwnZero();
    }
    const float* w = lines_.w;
    const int64_t* rows = rows_;
    for (int64_t d = 0; d < taps_.depths.count; ++d) {
      const int64_t* row = rows;
      const float* factors = w;
      for (int64_t h = 0; h < taps_.lines.count; ++h) {
        Terms<kTaps, kRows> terms;
        terms.LoadRows(lines_.g, row, taps_.zeros);
        terms.LoadFactors(factors);
        terms.template AddTo<false>(sum, load);
        row += taps_.lines.rows;
        factors += taps_.lines.weights;
      }
      rows += taps_.depths.rows;
      w += taps_.depths.weights;
    }
  }

  // A -0 of beta * out becomes +0, see LoadScaled.
  HWY_INLINE V WithOut(V sum, const T* out) const {
    const D d;
    return hn::Add(hn::Add(hn::Mul(beta_, LoadBytes(d, out)), hn::Zero(d)), sum);
  }

  HWY_INLINE void StoreEdge(V sum, int64_t fresh, T* out) const {
    const D d;
    const V value = hn::Add(scales_ ? WithOut(sum, out) : sum, bias_);
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
  T* low_ = nullptr;
  T* high_ = nullptr;
  int wanted_ = kLines;
  bool turned_ = false;
  int64_t first_[kTaps];
  Terms<kTaps, kRows> once_;
};

template <class T, int kTaps, int kRows, bool kOnce>
HWY_NOINLINE void SumLinesOf(const TapsAlongPixels& taps, const LinesOfPixels& lines) {
  PixelSums<T, kTaps, kRows, kOnce>(taps, lines).Run();
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
  static constexpr SumsAlongPixels kSums{SetEdges, Unrolled, SumLines<T>};
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
