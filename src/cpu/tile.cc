// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/tile.cc"
#include "hwy/foreach_target.h"
#include "cpu/tile.h"
#include "cpu/vectors-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
template <bool kLoads, int kRow, int kColumn, int kRows, int kVectors>
HWY_INLINE void MultiplyFrom(V (&a)[kRows / 4], V (&b)[kVectors], const float* HWY_RESTRICT next_a,
                             const float* HWY_RESTRICT next_b, V (&sums)[kRows][kVectors]) {
  if constexpr (kColumn < kVectors) {
    MultiplyFour<kRow, kColumn>(a[kRow / 4], b[kColumn], sums);
    if constexpr (kLoads && kColumn + 1 == kVectors) a[kRow / 4] = hn::LoadU(D(), next_a + kRow);
    if constexpr (kRow + 4 < kRows) {
      MultiplyFrom<kLoads, kRow + 4, kColumn, kRows>(a, b, next_a, next_b, sums);
    } else {
      if constexpr (kLoads) b[kColumn] = hn::LoadU(D(), next_b + 4 * kColumn);
      MultiplyFrom<kLoads, 0, kColumn + 1, kRows>(a, b, next_a, next_b, sums);
    }
  }
}

template <bool kByRows, int kRows, int kVectors>
HWY_INLINE void MultiplyPanels(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                               int64_t terms, V (&sums)[kRows][kVectors]) {
  static_assert(!kByRows);
  if (terms == 0) return;
  V a_row[kRows / 4], b_row[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kRows / 4; ++i) a_row[i] = hn::LoadU(D(), a + 4 * i);
#pragma GCC unroll 8
  for (int j = 0; j < kVectors; ++j) b_row[j] = hn::LoadU(D(), b + 4 * j);
#pragma GCC unroll 2
  for (int64_t k = 1; k < terms; ++k) {
    a += kRows;
    b += 4 * kVectors;
    MultiplyFrom<true, 0, 0, kRows>(a_row, b_row, a, b, sums);
  }
  MultiplyFrom<false, 0, 0, kRows>(a_row, b_row, a, b, sums);
}

#else

// x86 broadcasts from memory for free. A panel of b (55 KiB with AVX-512) does not stay in L1: it
// is asked for eight k ahead (AVX-512: 83 to 88 % of the peak without, 92 to 94 % with).
template <bool kByRows, int kRows, int kVectors>
HWY_INLINE void MultiplyPanels(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                               int64_t terms, V (&sums)[kRows][kVectors]) {
  const D d;
  constexpr int64_t kRowStep = kByRows ? kRowPitch : 1, kStep = kByRows ? 1 : kRows;
#pragma GCC unroll 4
  for (int64_t k = 0; k < terms; ++k, a += kStep, b += kVectors * kLanes) {
    V b_row[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      b_row[j] = hn::LoadU(d, b + j * kLanes);
      if (j * kLanes % 16 == 0) hwy::Prefetch(b + (8 * kVectors + j) * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a[r * kRowStep]);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sums[r][j] = FusedMulAdd(x, b_row[j], sums[r][j]);
    }
  }
}

#endif

template <bool kByRows, int kRows, int kVectors>
void MultiplyTile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t terms,
                  const float* c, ChunkJoin join, float* to, const int64_t* to_rows) {
  const D d;
  constexpr int kWidth = kVectors * kLanes;
  V sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(d);
  }
  if (join == ChunkJoin::kChain) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::LoadU(d, c + r * kWidth + j * kLanes);
    }
  }
  MultiplyPanels<kByRows>(a, b, terms, sums);
  const bool add = join == ChunkJoin::kAdd;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      if (join != ChunkJoin::kAlone) {
        const V before = add ? hn::LoadU(d, c + r * kWidth + j * kLanes) : hn::Zero(d);
        sums[r][j] = hn::Add(before, sums[r][j]);
      }
      StoreBytes(sums[r][j], d, to + to_rows[r] + j * kLanes);
    }
  }
}

template <bool kByRows>
TileFunction OfShape(int rows, int vectors) {
#if HWY_TARGET == HWY_AVX2
  if (rows == 6 && vectors == 2) return MultiplyTile<kByRows, 6, 2>;
  if (rows == 4 && vectors == 3) return MultiplyTile<kByRows, 4, 3>;
  return MultiplyTile<kByRows, 2, 6>;
#else
  if (rows == 12 && vectors == 2) return MultiplyTile<kByRows, 12, 2>;
  if (rows == 8 && vectors == 3) return MultiplyTile<kByRows, 8, 3>;
  return MultiplyTile<kByRows, 4, 6>;
#endif
}

TileFunction TileFunctionHere(int rows, int vectors, [[maybe_unused]] bool a_by_rows) {
#if !CONVGRAD_MULTIPLIES_BY_LANES
  if (a_by_rows) return OfShape<true>(rows, vectors);
#endif
  return OfShape<false>(rows, vectors);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(TileFunctionHere);

TileFunction TileFunctionOf(int rows, int vectors, bool a_by_rows) {
  return HWY_DYNAMIC_DISPATCH(TileFunctionHere)(rows, vectors, a_by_rows);
}

}  // namespace convgrad
#endif  // HWY_ONCE
