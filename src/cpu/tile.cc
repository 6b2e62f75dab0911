// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/tile.cc"
#include "hwy/foreach_target.h"
#include "cpu/tile.h"
#include "cpu/tile_operand.h"
#include "cpu/vectors-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int kRows>
inline constexpr bool kLeavesOutRows = (kRows == 12 && CONVGRAD_LEAVES_OUT_ROWS);

constexpr bool HasRow(TileRows some, int row, int rows) { return some >> 4 * row / rows & 1; }

constexpr int RowsBefore(TileRows some, int row, int rows) {
  int count = 0;
  for (int r = 0; r < row; ++r) count += HasRow(some, r, rows);
  return count;
}

// Segments of which some do not have all rows: two phases of one axis are halves, of two axes
// quarters, and a tap meets one or both of each axis.
template <class A, class B, int kRows, int kVectors>
HWY_INLINE void MultiplySegments(A a, B b, const TileTerms& terms, V (&sums)[kRows][kVectors]);

#if CONVGRAD_MULTIPLIES_BY_LANES

// NEON multiplies by a lane of a register for free, so a comes in vectors. The operands of the next
// k are loaded as soon as the registers of this one are free; loaded together before their use,
// they cost a cycle of seven (of 83.2 GFLOP/s: 74 that way, 79 with four k in a turn of the loop,
// 82 like this).
//
// Four rows of one column of vectors:
template <int kRow, int kColumn, int kRows, int kVectors>
HWY_INLINE void MultiplyFour(V a, V b, V (&sums)[kRows][kVectors]) {
  sums[kRow][kColumn] = hn::MulAdd(hn::Broadcast<0>(a), b, sums[kRow][kColumn]);
  sums[kRow + 1][kColumn] = hn::MulAdd(hn::Broadcast<1>(a), b, sums[kRow + 1][kColumn]);
  sums[kRow + 2][kColumn] = hn::MulAdd(hn::Broadcast<2>(a), b, sums[kRow + 2][kColumn]);
  sums[kRow + 3][kColumn] = hn::MulAdd(hn::Broadcast<3>(a), b, sums[kRow + 3][kColumn]);
}

// One k from (row, column) on, column by column; with kLoads, the next k follows into the
// registers.
template <bool kLoads, int kRow, int kColumn, class A, class B, int kRows, int kVectors>
HWY_INLINE void MultiplyFrom(V (&a)[kRows / 4], V (&b)[kVectors], A next_a, B next_b,
                             V (&sums)[kRows][kVectors]) {
  if constexpr (kColumn < kVectors) {
    MultiplyFour<kRow, kColumn>(a[kRow / 4], b[kColumn], sums);
    if constexpr (kLoads && kColumn + 1 == kVectors) {
      a[kRow / 4] = hn::LoadU(D(), next_a.Vector(kRow / 4));
    }
    if constexpr (kRow + 4 < kRows) {
      MultiplyFrom<kLoads, kRow + 4, kColumn, A, B, kRows>(a, b, next_a, next_b, sums);
    } else {
      if constexpr (kLoads) b[kColumn] = hn::LoadU(D(), next_b.Vector(kColumn));
      MultiplyFrom<kLoads, 0, kColumn + 1, A, B, kRows>(a, b, next_a, next_b, sums);
    }
  }
}

// One k, of some rows from kRow on.
template <TileRows kSome, int kRow, int kRows, int kVectors>
HWY_INLINE void MultiplyRows(const V (&a)[kRows / 4], const V (&b)[kVectors],
                             V (&sums)[kRows][kVectors]) {
  if constexpr (kRow < kRows) {
    if constexpr (HasRow(kSome, kRow, kRows)) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        sums[kRow][j] = hn::MulAdd(hn::Broadcast<kRow % 4>(a[kRow / 4]), b[j], sums[kRow][j]);
      }
    }
    MultiplyRows<kSome, kRow + 1>(a, b, sums);
  }
}

// One segment of them.
template <TileRows kSome, class A, class B, int kRows, int kVectors>
HWY_INLINE void MultiplySegment(A& a, B& b, int64_t length, V (&sums)[kRows][kVectors]) {
#pragma GCC unroll 2
  for (int64_t k = 0; k < length; ++k, a.Next(), b.Next()) {
    V a_row[kRows / 4], b_row[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kRows / 4; ++i) {
      if (HasRow(kSome, 4 * i, kRows) || HasRow(kSome, 4 * i + 3, kRows)) {
        a_row[i] = hn::LoadU(D(), a.Vector(i));
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) b_row[j] = hn::LoadU(D(), b.Vector(j));
    MultiplyRows<kSome, 0>(a_row, b_row, sums);
  }
}

using Two = hn::Vec<hn::Half<D>>;

// Floats from anywhere. GCC would load each of its own, as a factor, were it not for the asm.
HWY_INLINE Two LoadTwo(const float* from) {
  float32x2_t two = vreinterpret_f32_u8(vld1_u8(reinterpret_cast<const uint8_t*>(from)));
#ifdef __GNUC__
  asm("" : "+w"(two));
#endif
  return Two(two);
}

template <int kTerm>
HWY_INLINE V MulAddTerm(Two a, V b, V sum) {
  return V(vfmaq_lane_f32(sum.raw, b.raw, a.raw, kTerm));
}

// Two k from a row on, of rows that are anywhere: one register has both k of a row. a0 and a1 are
// of this row and the next.
template <int kRow, int kRows, int kVectors>
HWY_INLINE void MultiplyTwoTerms(const float* const (&rows)[kRows], int64_t k, Two a0, Two a1,
                                 const V (&b)[2][kVectors], V (&sums)[kRows][kVectors]) {
  if constexpr (kRow < kRows) {
    Two next0 = a0, next1 = a1;
    if constexpr (kRow + 2 < kRows) {
      next0 = LoadTwo(rows[kRow + 2] + k);
      next1 = LoadTwo(rows[kRow + 3] + k);
    }
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      sums[kRow][j] = MulAddTerm<0>(a0, b[0][j], sums[kRow][j]);
      sums[kRow + 1][j] = MulAddTerm<0>(a1, b[0][j], sums[kRow + 1][j]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      sums[kRow][j] = MulAddTerm<1>(a0, b[1][j], sums[kRow][j]);
      sums[kRow + 1][j] = MulAddTerm<1>(a1, b[1][j], sums[kRow + 1][j]);
    }
    MultiplyTwoTerms<kRow + 2>(rows, k, next0, next1, b, sums);
  }
}

// Rows of a tensor as they are: nothing is packed, and nothing turned. They are asked for two cache
// lines ahead (16 channels of 112x112 pixels to 96, Neoverse-N1: packed 12.5 ms, so 10.8, and asked
// for ahead 10.3).
template <class B, int kRows, int kVectors>
HWY_INLINE void MultiplyInPlace(const float* a, B b, const TileTerms& terms,
                                V (&sums)[kRows][kVectors]) {
  constexpr int64_t kLine = 16, kAhead = 2 * kLine;
  const float* rows[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) rows[r] = a + r * terms.row_step;
  const int64_t count = terms.length;
  int64_t k = 0;
  for (; k + 2 <= count; k += 2) {
    if (k % kLine == 0) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) hwy::Prefetch(rows[r] + k + kAhead);
    }
    V b_rows[2][kVectors];
#pragma GCC unroll 2
    for (auto& row : b_rows) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(D(), b.Vector(j));
      b.Next();
    }
    MultiplyTwoTerms<0>(rows, k, LoadTwo(rows[0] + k), LoadTwo(rows[1] + k), b_rows, sums);
  }
  if (k == count) return;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const V factor = hn::Set(D(), LoadAt<float>(rows[r], k));
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      sums[r][j] = hn::MulAdd(factor, hn::LoadU(D(), b.Vector(j)), sums[r][j]);
    }
  }
}

template <class A, class B, int kRows, int kVectors>
HWY_INLINE void MultiplyPanels(A a, B b, const TileTerms& terms, V (&sums)[kRows][kVectors]) {
  if constexpr (kLeavesOutRows<kRows> && B::kLeaps) {
    if (terms.rows != nullptr) return MultiplySegments(a, b, terms, sums);
  }
  const int64_t length = terms.length, count = terms.segments * length;
  if (count == 0) return;
  a.Leap(0);
  b.Leap(0);
  V a_row[kRows / 4], b_row[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kRows / 4; ++i) a_row[i] = hn::LoadU(D(), a.Vector(i));
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) b_row[j] = hn::LoadU(D(), b.Vector(j));
  [[maybe_unused]] int64_t left = length, segment = 0;
#pragma GCC unroll 2
  for (int64_t k = 1; k < count; ++k) {
    a.Next();
    b.Next();
    if constexpr (A::kLeaps || B::kLeaps) {
      if (--left == 0) {
        left = length;
        ++segment;
        a.Leap(segment);
        b.Leap(segment);
      }
    }
    MultiplyFrom<true, 0, 0, A, B, kRows>(a_row, b_row, a, b, sums);
  }
  MultiplyFrom<false, 0, 0, A, B, kRows>(a_row, b_row, a, b, sums);
}

#else

HWY_INLINE V MulAddFrom(const float* factor, V b, V sum) {
  return FusedMulAdd(hn::Set(D(), *factor), b, sum);
}

// The same in one instruction; GCC would load the float into a register for all its uses.
HWY_INLINE V MulAddInMemory(const float* factor, V b, V sum) {
#if CONVGRAD_HAS_AVX512 && !HWY_IS_ASAN  // which does not see what asm reads
  asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum.raw) : "v"(b.raw), "m"(*factor));
  return sum;
#else
  return MulAddFrom(factor, b, sum);
#endif
}

// x86 broadcasts from memory for free. A panel of b (55 KiB with AVX-512) does not stay in L1: it
// is asked for eight k ahead (AVX-512: 83 to 88 % of the peak without, 92 to 94 % with). Lines are
// read three times or more: asking for them took 5 %.
//
// One segment, of some rows.
template <TileRows kSome, class A, class B, int kRows, int kVectors>
HWY_INLINE void MultiplySegment(A& a, B& b, int64_t length, V (&sums)[kRows][kVectors]) {
  const D d;
  // Rows whose factor is read once for each vector, and not once and then from a register (AVX-512;
  // AVX2 cannot): of two vectors 36 instructions a term, not 40, which a core that two programs
  // share is short of, but 20 reads, not 16, in the 12 cycles of two ports. (None, 4 or 8 of 12
  // rows like that, GFLOP/s: Cascade Lake 150, 144, 134; Sapphire Rapids, busy, 145, 150, 153.)
  constexpr int kInMemory = kVectors == 2 ? RowsBefore(kSome, kRows, kRows) / 3 : 0;
#pragma GCC unroll 4
  for (int64_t k = 0; k < length; ++k, a.Next(), b.Next()) {
    if constexpr (requires { a.Arrive(); }) a.Arrive();
    V b_row[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      b_row[j] = hn::LoadU(d, b.Vector(j));
      if (!B::kLeaps && j * kLanes % 16 == 0) hwy::Prefetch(b.Vector(j) + 8 * kVectors * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      if (!HasRow(kSome, r, kRows)) continue;
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        sums[r][j] = RowsBefore(kSome, r, kRows) < kInMemory
                         ? MulAddInMemory(a.FactorAt(r), b_row[j], sums[r][j])
                         : MulAddFrom(a.FactorAt(r), b_row[j], sums[r][j]);
      }
    }
  }
}

template <class A, class B, int kRows, int kVectors>
HWY_INLINE void MultiplyPanels(A a, B b, const TileTerms& terms, V (&sums)[kRows][kVectors]) {
  if constexpr (kLeavesOutRows<kRows> && B::kLeaps) {
    if (terms.rows != nullptr) return MultiplySegments(a, b, terms, sums);
  }
  for (int64_t segment = 0; segment < terms.segments; ++segment) {
    a.Leap(segment);
    b.Leap(segment);
    MultiplySegment<kAllRows>(a, b, terms.length, sums);
  }
}

#endif

template <class A, class B, int kRows, int kVectors>
HWY_INLINE void MultiplySegments(A a, B b, const TileTerms& terms, V (&sums)[kRows][kVectors]) {
  for (int64_t segment = 0; segment < terms.segments; ++segment) {
    a.Leap(segment);
    b.Leap(segment);
    switch (terms.rows[segment]) {
#define CONVGRAD_MULTIPLY_ROWS(some)                 \
  case some:                                         \
    MultiplySegment<some>(a, b, terms.length, sums); \
    break;
      CONVGRAD_MULTIPLY_ROWS(0b0001)
      CONVGRAD_MULTIPLY_ROWS(0b0010)
      CONVGRAD_MULTIPLY_ROWS(0b0100)
      CONVGRAD_MULTIPLY_ROWS(0b1000)
      CONVGRAD_MULTIPLY_ROWS(0b0011)
      CONVGRAD_MULTIPLY_ROWS(0b1100)
      CONVGRAD_MULTIPLY_ROWS(0b0101)
      CONVGRAD_MULTIPLY_ROWS(0b1010)
#undef CONVGRAD_MULTIPLY_ROWS
      default:
        MultiplySegment<kAllRows>(a, b, terms.length, sums);
    }
  }
}

template <TileSource kSource, int kRows, int kVectors>
HWY_INLINE void MultiplyFromSource(const void* from, const float* b, const TileTerms& terms,
                                   V (&sums)[kRows][kVectors]) {
  [[maybe_unused]] const float* const a = static_cast<const float*>(from);
  using APanel = PanelAt<float, kRows, 4>;
  using BPanel = PanelAt<float, kVectors * kLanes, kLanes>;
  constexpr int kUnit = kRows % 4 == 0 ? 4 : 2;  // of rows of one line
  if constexpr (kSource == TileSource::kPanels) {
    MultiplyPanels(APanel(a, terms), BPanel(b, terms), terms, sums);
  } else if constexpr (kSource == TileSource::kALines) {
    MultiplyPanels(LinesAt<float, kRows, kUnit>(a, terms), BPanel(b, terms), terms, sums);
  } else if constexpr (kSource == TileSource::kBLines) {
    MultiplyPanels(APanel(a, terms), LinesAt<float, kVectors * kLanes, kLanes>(b, terms), terms,
                   sums);
  } else {
#if CONVGRAD_MULTIPLIES_BY_LANES
    static_assert(kSource == TileSource::kAInPlace);
    MultiplyInPlace(a, BPanel(b, terms), terms, sums);
#else
    const BPanel panel(b, terms);
    if constexpr (kSource == TileSource::kRows) {
      MultiplyPanels(RowsAt<float, kRowPitch>(a, terms), panel, terms, sums);
    } else if constexpr (kSource == TileSource::kARowLines) {
      MultiplyPanels(LinesAt<float, kRows, kUnit, kUnit, kLinePitch>(a, terms), panel, terms, sums);
    } else {
      MultiplyPanels(PointersAt<float>(from, terms), panel, terms, sums);
    }
#endif
  }
}

// What is not finite makes a NaN of its product with zero.
template <int kRows, int kVectors>
HWY_INLINE bool AreFinite(const V (&sums)[kRows][kVectors]) {
  V zeros = hn::Zero(D());
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) zeros = hn::MulAdd(sums[r][j], hn::Zero(D()), zeros);
  }
  return hn::AllTrue(D(), hn::Eq(zeros, zeros));
}

template <TileSource kSource, int kRows, int kVectors>
void MultiplyTile(const void* a, const void* b, const TileTerms& terms, const float* c,
                  ChunkJoin join, void* to, const int64_t* to_rows) {
  const D d;
  constexpr int kWidth = kVectors * kLanes;
  V sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(d);
  }
  // What is written at the end is asked for now. A store waits for its line, and what follows it
  // for the store: of AVX-512, 64 terms and 256 columns, 9 % of the time, of 432 terms 2 %; of
  // Neoverse-N1, 64 terms and 256 columns, 7 %. Of rows that are near each other, which it writes
  // without reading them first, asking took 5 to 7 %.
  constexpr int64_t kFar = 64;
  const bool asks =
      CONVGRAD_HAS_AVX512 || (CONVGRAD_MULTIPLIES_BY_LANES && to_rows[1] - to_rows[0] >= kFar &&
                              terms.length * terms.segments >= kFewTerms);
  if (asks) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kWidth; j += 16) hwy::Prefetch(static_cast<float*>(to) + to_rows[r] + j);
    }
  }
  if (join == ChunkJoin::kChain) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::LoadU(d, c + r * kWidth + j * kLanes);
    }
  }
  MultiplyFromSource<kSource>(a, static_cast<const float*>(b), terms, sums);
  // A row that was left out would be NaN where its zeros meet what is not finite, and then so is,
  // or infinite, a row that was not: both read the same b. (So may be columns of b that are no
  // pixels, where anything may lie: no matter, all of it is only computed again.)
  if constexpr (kLeavesOutRows<kRows> && kSource == TileSource::kBLines) {
    if (terms.rows != nullptr && !AreFinite(sums)) {
      TileTerms all = terms;
      all.rows = nullptr;
      return MultiplyTile<kSource, kRows, kVectors>(a, b, all, c, join, to, to_rows);
    }
  }
  const bool add = join == ChunkJoin::kAdd;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      if (join != ChunkJoin::kAlone) {
        const V before = add ? hn::LoadU(d, c + r * kWidth + j * kLanes) : hn::Zero(d);
        sums[r][j] = hn::Add(before, sums[r][j]);
      }
      StoreBytes(sums[r][j], d, static_cast<float*>(to) + to_rows[r] + j * kLanes);
    }
  }
}

template <TileSource kSource>
TileFunction OfShape(int rows, int vectors) {
#if HWY_TARGET == HWY_AVX2
  if (rows == 6 && vectors == 2) return MultiplyTile<kSource, 6, 2>;
  if (rows == 4 && vectors == 3) return MultiplyTile<kSource, 4, 3>;
  return MultiplyTile<kSource, 2, 6>;
#else
  if (rows == 12 && vectors == 2) return MultiplyTile<kSource, 12, 2>;
  if (rows == 8 && vectors == 3) return MultiplyTile<kSource, 8, 3>;
  return MultiplyTile<kSource, 4, 6>;
#endif
}

TileFunction TileFunctionHere(int rows, int vectors, TileSource source) {
#if CONVGRAD_MULTIPLIES_BY_LANES
  if (source == TileSource::kAInPlace) return MultiplyTile<TileSource::kAInPlace, 12, 2>;
#else
  if (source == TileSource::kRows) return OfShape<TileSource::kRows>(rows, vectors);
  if (source == TileSource::kARowLines) return OfShape<TileSource::kARowLines>(rows, vectors);
  if (source == TileSource::kAPointers) return OfShape<TileSource::kAPointers>(rows, vectors);
#endif
  if (source == TileSource::kALines) return OfShape<TileSource::kALines>(rows, vectors);
  if (source == TileSource::kBLines) return OfShape<TileSource::kBLines>(rows, vectors);
  return OfShape<TileSource::kPanels>(rows, vectors);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(TileFunctionHere);

TileFunction TileFunctionOf(int rows, int vectors, TileSource source, int64_t terms_each) {
  if (terms_each > 1) return Bf16TileOf(rows, source, false);
  return HWY_DYNAMIC_DISPATCH(TileFunctionHere)(rows, vectors, source);
}

}  // namespace convgrad
#endif  // HWY_ONCE
