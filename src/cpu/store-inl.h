// The store: c to the user's tensor, with beta, bias, rounding and any strides. Step 8 of the
// story.
#if defined(CONVGRAD_CPU_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_STORE_INL_H_
#undef CONVGRAD_CPU_STORE_INL_H_
#else
#define CONVGRAD_CPU_STORE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/numerics.h"
#include "cpu/pack-inl.h"
#include "cpu/tiling.h"
#include "cpu/vectors-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// One side of a block of c: where its rows or columns stand in the result. Offsets of both sides
// add up.
template <int kSize>
struct Edge {
  int64_t offsets[kSize];
  float bias[kSize];  // only on the side of o
  // Of phases as columns: the axes along which a pixel is the last one, and those along which the
  // last pixel has no such phase. And whether a pixel is beyond the last, which has no o at all.
  // What both sides have in common is not there.
  uint8_t ends[kSize];
};

constexpr uint8_t kBeyond = 1 << kAxes;

inline bool AnyBeyond(const uint8_t* ends, int64_t count) {
  return std::any_of(ends, ends + count, [](uint8_t end) { return (end & kBeyond) != 0; });
}

// The distance of neighbours; 0 where there is not one for all.
inline int64_t StepOf(const int64_t* offsets, int64_t count) {
  const int64_t step = count > 1 ? offsets[1] - offsets[0] : 1;
  for (int64_t i = 2; i < count; ++i) {
    if (offsets[i] != offsets[i - 1] + step) return 0;
  }
  return step;
}

template <class Edge>
void FillRowEdge(const Contraction& c, Range rows, Edge& edge) {
  int64_t* const offsets = edge.offsets;
  if (c.sum_pixels) {  // (tap, channel)
    for (int64_t i = 0; i < rows.size(); ++i) {
      const RowPlace place = PlaceOfRow(c, rows.begin + i);
      const Walk3 tap(place.tap, c.axes[1].taps, c.axes[2].taps);
      offsets[i] = c.w.first + place.channel * c.w.channel + tap.at[0] * c.w.at[0] +
                   tap.at[1] * c.w.at[1] + tap.at[2] * c.w.at[2];
    }
    return;
  }
  ForEachPixelRun(c, rows, [&](int64_t image, const Walk3& pixel, int64_t done, int64_t count) {
    const int64_t first = c.v.first + image * c.v.image + pixel.at[0] * c.v.at[0] +
                          pixel.at[1] * c.v.at[1] + pixel.at[2] * c.v.at[2];
    const bool last0 = pixel.at[0] + 1 == c.axes[0].pixels;
    const bool last1 = pixel.at[1] + 1 == c.axes[1].pixels;
    const int64_t pixels = c.axes[2].pixels - c.beyond;
    for (int64_t i = 0; i < count; ++i) {
      const bool last2 = pixel.at[2] + i + 1 == pixels, beyond = pixel.at[2] + i >= pixels;
      offsets[done + i] = first + i * c.v.at[2];
      edge.ends[done + i] =
          static_cast<uint8_t>(last0 | last1 << 1 | last2 << 2 | (beyond ? kBeyond : 0));
    }
  });
}

template <class T, class Edge>
void FillOEdge(const Contraction& c, Range o, const T* bias, int64_t bias_stride, Edge& edge) {
  const int64_t stride = c.sum_pixels ? c.w.o : c.v.o;
  const PhaseColumns& columns = c.columns;
  for (int64_t i = 0; i < o.size(); ++i) {
    int64_t channel = o.begin + i, offset = 0;
    edge.ends[i] = kBeyond;
    if (columns.channels > 0) {
      const Walk3 phase(channel / columns.channels, columns.phases[1], columns.phases[2]);
      for (int a = 0; a < kAxes; ++a) {
        offset += phase.at[a] * columns.v_step[a];
        edge.ends[i] |= static_cast<uint8_t>((phase.at[a] >= columns.last[a]) << a);
      }
      channel %= columns.channels;
    }
    edge.offsets[i] = offset + channel * stride;
    edge.bias[i] = bias == nullptr ? 0.0f : Widen(LoadAt<T>(bias, channel * bias_stride));
  }
}

// The rows and columns of a tile that exist.
struct TileEdges {
  int64_t rows;
  const int64_t* row_offsets;
  const float* row_bias;  // null but on the side of o
  int64_t columns;
  const int64_t* column_offsets;
  const float* column_bias;
  int64_t column_step;  // from StepOf
  const uint8_t* row_ends;
  const uint8_t* column_ends;  // null: everything exists

  bool all_exist() const {
    if (column_ends == nullptr) return true;
    uint8_t row = 0, column = 0;
    for (int64_t r = 0; r < rows; ++r) row |= row_ends[r];
    for (int64_t j = 0; j < columns; ++j) column |= column_ends[j];
    return (row & column) == 0;
  }

  bool exists(int64_t r, int64_t j) const {
    return column_ends == nullptr || (row_ends[r] & column_ends[j]) == 0;
  }

  int64_t offset(int64_t r, int64_t j) const { return row_offsets[r] + column_offsets[j]; }
};

// zero: +0 turns a -0 into a +0, to which a zero that is left out does not matter; -0 leaves it.
template <class T>
void LoadScaled(const TileEdges& at, const T* out, float beta, float zero, float* tile,
                int64_t width) {
  for (int64_t r = 0; r < at.rows; ++r) {
    for (int64_t j = 0; j < at.columns; ++j) {
      if (!at.exists(r, j)) continue;
      tile[r * width + j] = beta * Widen(LoadAt<T>(out, at.offset(r, j))) + zero;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Columns j to j + 3 of a tile: four rows that are next to each other are turned in registers.
template <class T>
HWY_INLINE void StoreFourColumns(const TileEdges& at, const float* tile, int64_t width, int64_t j,
                                 T* out) {
  const D4 d;
  const V4 add = at.column_bias == nullptr ? hn::Zero(d) : hn::LoadU(d, at.column_bias + j);
  const auto load = [&](int64_t r) {
    const V4 value = hn::LoadU(d, tile + r * width + j);
    return at.column_bias == nullptr ? value : hn::Add(value, add);
  };
  for (int64_t r = 0; r < at.rows;) {
    const int64_t* const to = at.row_offsets + r;
    if (r + 4 <= at.rows && to[1] == to[0] + 1 && to[2] == to[0] + 2 && to[3] == to[0] + 3) {
      const FourRows turned = Turn(load(r), load(r + 1), load(r + 2), load(r + 3));
      StoreBytes(turned.k0, d, out + at.offset(r, j));
      StoreBytes(turned.k1, d, out + at.offset(r, j + 1));
      StoreBytes(turned.k2, d, out + at.offset(r, j + 2));
      StoreBytes(turned.k3, d, out + at.offset(r, j + 3));
      r += 4;
      continue;
    }
    float values[4];
    hn::StoreU(load(r), d, values);
    for (int i = 0; i < 4; ++i) StoreAt(out, at.offset(r, j + i), NarrowSum(values[i], T()));
    ++r;
  }
}
#endif

// Rows inside columns: where neighbouring rows are nearer in memory than columns are, as in the
// weights of wgrad, whose columns can be pages apart.
template <class T>
void StoreTileByColumns(const TileEdges& at, const float* tile, int64_t width, T* out) {
  const int64_t step = StepOf(at.row_offsets, at.rows);
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  if (step <= 1 && at.row_bias == nullptr) {
    for (; j + 4 <= at.columns; j += 4) StoreFourColumns(at, tile, width, j, out);
  }
#endif
  for (; j < at.columns; ++j) {
    if (step != 0 && at.row_bias == nullptr && at.column_bias == nullptr) {
      T* to = out + at.offset(0, j);
      for (int64_t r = 0; r < at.rows; ++r)
        StoreAt(to, r * step, NarrowSum(tile[r * width + j], T()));
      continue;
    }
    for (int64_t r = 0; r < at.rows; ++r) {
      float value = tile[r * width + j];
      if (at.row_bias != nullptr) value += at.row_bias[r];
      if (at.column_bias != nullptr) value += at.column_bias[j];
      StoreAt(out, at.offset(r, j), NarrowSum(value, T()));
    }
  }
}

// Phases as columns, or pixels that are not there: one element at a time.
template <class T>
void StoreThoseThatExist(const TileEdges& at, const float* tile, int64_t width, T* out) {
  for (int64_t r = 0; r < at.rows; ++r) {
    for (int64_t j = 0; j < at.columns; ++j) {
      if (!at.exists(r, j)) continue;
      float value = tile[r * width + j];
      if (at.row_bias != nullptr) value += at.row_bias[r];
      if (at.column_bias != nullptr) value += at.column_bias[j];
      StoreAt(out, at.offset(r, j), NarrowSum(value, T()));
    }
  }
}

// A block of wgrad into weights whose taps are next to each other, as in OIX. Rows of the block go
// tap by tap, `channels` rows each; four taps of four columns are turned in registers and written
// as four runs. One float at a time this took 14 % of a 512-512 3x3 on 7x7.
struct KernelRows {
  static constexpr int kMost = Tiling::kMostColumns;

  int64_t count = 0;
  int32_t at[kMost];        // of each row in c
  int32_t channels[kMost];  // of a row that starts four taps; 0: a row for itself; -1: not first of
                            // four
};

// Rows m of c, which is cut into tiles of mr x nr, `row_tiles` floats for mr rows.
inline void FillKernelRows(const Contraction& c, Range m, const int64_t* offsets, int mr, int nr,
                           int64_t row_tiles, KernelRows& rows) {
  rows.count = m.size();
  std::fill(rows.channels, rows.channels + rows.count, 0);
  for (int64_t r = 0; r < rows.count;) {
    const RowPlace place = PlaceOfRow(c, m.begin + r);
    const int64_t first = place.channel / c.row_block * c.row_block;
    const int64_t width = std::min(c.row_block, c.channels - first);
    const int64_t end = std::min(r + place.run, rows.count);
    for (; r < end; ++r) {
      rows.at[r] = static_cast<int32_t>(r / mr * row_tiles + r % mr * nr);
      if (rows.channels[r] != 0 || place.tap + 3 >= c.taps() || r + 3 * width >= rows.count ||
          offsets[r + width] != offsets[r] + 1 || offsets[r + 2 * width] != offsets[r] + 2 ||
          offsets[r + 3 * width] != offsets[r] + 3) {
        continue;
      }
      rows.channels[r] = static_cast<int32_t>(width);
      for (int64_t t = 1; t < 4; ++t) rows.channels[r + t * width] = -1;
    }
  }
}

// Columns of one panel of c, four at a time: their kernels are four runs of memory, which stay in
// L1 until they are whole. (Row by row, all columns at once, they were 32 places in one or two sets
// of L1 where channels are a power of two: 7 % of 512 -> 512 on 7x7 with AVX-512, 1 % on
// Neoverse-N1.)
template <class T>
void StoreKernels(const KernelRows& rows, const int64_t* row_offsets, const float* c,
                  const int64_t* column_offsets, int64_t columns, T* out) {
  for (int64_t j = 0; j < columns; j += 4, c += 4, column_offsets += 4) {
    const int64_t count = std::min<int64_t>(4, columns - j);
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t step = rows.channels[r];
      if (step < 0) continue;
      T* const to = out + row_offsets[r];
#if HWY_TARGET != HWY_SCALAR
      if (step > 0 && count == 4) {
        const D4 d;
        const FourRows turned =
            Turn(hn::LoadU(d, c + rows.at[r]), hn::LoadU(d, c + rows.at[r + step]),
                 hn::LoadU(d, c + rows.at[r + 2 * step]), hn::LoadU(d, c + rows.at[r + 3 * step]));
        StoreBytes(turned.k0, d, to + column_offsets[0]);
        StoreBytes(turned.k1, d, to + column_offsets[1]);
        StoreBytes(turned.k2, d, to + column_offsets[2]);
        StoreBytes(turned.k3, d, to + column_offsets[3]);
        continue;
      }
#endif
      for (int64_t t = 0; t < (step > 0 ? 4 : 1); ++t) {
        const float* from = c + rows.at[r + t * step];
        for (int64_t i = 0; i < count; ++i) {
          StoreAt(to, column_offsets[i] + t, NarrowSum(from[i], T()));
        }
      }
    }
  }
}

// Rows of c, in tiles of mr x nr, `row_tiles` floats for mr rows: pixels of two zipped phases, and
// where the even ones go.
struct ZippedRows {
  const int64_t* offsets;
  int32_t at[Tiling::kMostColumns];

  ZippedRows(int64_t rows, int mr, int nr, int64_t row_tiles, const int64_t* to) : offsets(to) {
    for (int64_t r = 0; r < rows; ++r) {
      at[r] = static_cast<int32_t>(r / mr * row_tiles + r % mr * nr);
    }
  }
};

// Up to four columns: out[row + column] = even, out[row + column + 1] = odd. On AVX2 mr may be 6 or
// 2: four rows may be of two tiles.
template <class T>
void StoreZipped(const ZippedRows& rows, Range some, const float* even, const float* odd,
                 int64_t columns, const int64_t* column_offsets, const float* bias, T* out) {
  for (int64_t r = some.begin; r < some.end;) {
    const int64_t* const to = rows.offsets + r;
#if HWY_TARGET != HWY_SCALAR
    if (columns == 4 && r + 4 <= some.end && to[1] == to[0] + 2 && to[2] == to[0] + 4 &&
        to[3] == to[0] + 6) {
      const D4 d;
      const int32_t* const at = rows.at + r;
      const V4 add = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias);
      const auto load = [&](const float* c, int i) {
        return hn::Add(hn::LoadU(d, c + at[i]), add);
      };
      const FourRows x = Turn(load(even, 0), load(even, 1), load(even, 2), load(even, 3));
      const FourRows y = Turn(load(odd, 0), load(odd, 1), load(odd, 2), load(odd, 3));
      const auto store = [&](int i, V4 a, V4 b) {
        T* const at_column = out + to[0] + column_offsets[i];
        StoreBytes(hn::InterleaveLower(d, a, b), d, at_column);
        StoreBytes(hn::InterleaveUpper(d, a, b), d, at_column + 4);
      };
      store(0, x.k0, y.k0);
      store(1, x.k1, y.k1);
      store(2, x.k2, y.k2);
      store(3, x.k3, y.k3);
      r += 4;
      continue;
    }
#endif
    const int64_t at = rows.at[r];
    for (int64_t j = 0; j < columns; ++j) {
      const float add = bias == nullptr ? 0.0f : bias[j];
      StoreAt(out, to[0] + column_offsets[j], NarrowSum(even[at + j] + add, T()));
      StoreAt(out, to[0] + column_offsets[j] + 1, NarrowSum(odd[at + j] + add, T()));
    }
    ++r;
  }
}

inline bool GoesByColumns(const TileEdges& at) {
  return at.column_step != 1 && at.rows > 1 && at.columns > 1 &&
         std::abs(at.row_offsets[1] - at.row_offsets[0]) <
             std::abs(at.column_offsets[1] - at.column_offsets[0]);
}

// Asks for what a tile will be stored to by columns, each of which is part of a line or two.
template <class T>
HWY_INLINE void FetchColumns(const TileEdges& at, const T* out) {
  for (int64_t j = 0; j < at.columns; ++j) {
    hwy::Prefetch(out + at.offset(0, j));
    hwy::Prefetch(out + at.offset(at.rows - 1, j));
  }
}

// Asks for what the tiles after these will write, if their rows are near each other. Tiles of few
// terms have no time to ask for their own, and write half of a cache line at a time.
template <class T>
HWY_INLINE void AskForRowsAfter(const int64_t* offsets, int64_t rows, int64_t columns, T* first) {
  constexpr int64_t kNear = 1024, kLine = 64 / int64_t{sizeof(T)};
  const int64_t step = offsets[1] - offsets[0];
  if (step < columns || step > kNear) return;
  T* row = first + offsets[rows - 1] + step;
  for (int64_t r = 0; r < rows; ++r, row += step) {
    for (int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(row + j, 1, 3);
  }
}

template <class T>
void StoreTile(const TileEdges& at, const float* tile, int64_t width, T* out) {
  if (!at.all_exist()) return StoreThoseThatExist(at, tile, width, out);
  if (GoesByColumns(at)) return StoreTileByColumns(at, tile, width, out);
  const D d;
  const int64_t vectors = at.column_step == 1 ? at.columns - at.columns % kLanes : 0;
  const bool plain = at.row_bias == nullptr && at.column_bias == nullptr;
  for (int64_t r = 0; r < at.rows; ++r) {
    const float* from = tile + r * width;
    int64_t j = 0;
    for (T* to = out + at.offset(r, 0); plain && j + 2 * kLanes <= vectors; j += 2 * kLanes) {
      StoreBoth(hn::LoadU(d, from + j), hn::LoadU(d, from + j + kLanes), to + j);
    }
    for (T* to = out + at.offset(r, 0); j < vectors; j += kLanes) {
      V value = hn::LoadU(d, from + j);
      if (at.row_bias != nullptr) value = hn::Add(value, hn::Set(d, at.row_bias[r]));
      if (at.column_bias != nullptr) value = hn::Add(value, hn::LoadU(d, at.column_bias + j));
      StoreBytes(value, d, to + j);
    }
    if (at.column_step != 0 && plain) {
      T* to = out + at.offset(r, 0);
      for (; j < at.columns; ++j) StoreAt(to, j * at.column_step, NarrowSum(from[j], T()));
    }
    for (; j < at.columns; ++j) {
#if HWY_TARGET != HWY_SCALAR
      // Of several short lines, four pixels of one. (4096 images of lines of 6, f16, on a
      // Neoverse-N1: 0.96 of the time.)
      const D4 four;
      if (j + 4 <= at.columns && at.column_offsets[j + 3] == at.column_offsets[j] + 3 &&
          at.column_offsets[j + 1] == at.column_offsets[j] + 1 &&
          at.column_offsets[j + 2] == at.column_offsets[j] + 2) {
        V4 value = hn::LoadU(four, from + j);
        if (at.row_bias != nullptr) value = hn::Add(value, hn::Set(four, at.row_bias[r]));
        if (at.column_bias != nullptr) {
          value = hn::Add(value, hn::LoadU(four, at.column_bias + j));
        }
        StoreBytes(value, four, out + at.offset(r, j));
        j += 3;
        continue;
      }
#endif
      float value = from[j];
      if (at.row_bias != nullptr) value += at.row_bias[r];
      if (at.column_bias != nullptr) value += at.column_bias[j];
      StoreAt(out, at.offset(r, j), NarrowSum(value, T()));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
