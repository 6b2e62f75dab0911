// The micro-kernel: a tile of c in registers, which goes to rows of any place: c again, or the
// result. Step 7 of the story, the only hot loop. Knows panels of a, [terms, mr], and b, [terms,
// nr]; nothing about tensors.
#if defined(CONVGRAD_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_TILE_INL_H_
#undef CONVGRAD_CPU_TILE_INL_H_
#else
#define CONVGRAD_CPU_TILE_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "cpu/bytes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
#if HWY_TARGET == HWY_AVX2
constexpr int kRegisters = 16;
#else
constexpr int kRegisters = 32;
#endif

// How a chunk joins the c of the chunks before it.
enum class Join {
  kAlone,  // c = sum
  kFirst,  // c = 0 + sum
  kAdd,    // c = c + sum
  kChain,  // the sum starts from c
};

// sum + x * y, rounded once, on every CPU.
HWY_INLINE V FusedMulAdd(V x, V y, V sum) {
#if HWY_TARGET == HWY_SCALAR
  return V(std::fma(x.raw, y.raw, sum.raw));
#else
  return hn::MulAdd(x, y, sum);
#endif
}

// One k of one row of the tile and of all below it. NEON multiplies by a lane of a register for
// free, so a comes in vectors there; x86 broadcasts from memory for free.
template <int kRow, int kRows, int kVectors>
HWY_INLINE void MultiplyRows(const float* HWY_RESTRICT a, const V* HWY_RESTRICT a_vectors,
                             const V (&b)[kVectors], V (&sums)[kRows][kVectors]) {
  if constexpr (kRow < kRows) {
#if HWY_TARGET == HWY_NEON
    const V x = hn::Broadcast<kRow % 4>(a_vectors[kRow / 4]);
#else
    const V x = hn::Set(D(), a[kRow]);
#endif
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) sums[kRow][j] = FusedMulAdd(x, b[j], sums[kRow][j]);
    MultiplyRows<kRow + 1, kRows, kVectors>(a, a_vectors, b, sums);
  }
}

template <int kRows, int kVectors>
void MultiplyTile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t terms,
                  const float* c, Join join, float* to, const int64_t* to_rows) {
  const D d;
  constexpr int kWidth = kVectors * kLanes;
  V sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(d);
  }
  if (join == Join::kChain) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::LoadU(d, c + r * kWidth + j * kLanes);
    }
  }
#pragma GCC unroll 4  // a taken branch costs: 74, 76, 79 and 79 GFLOP/s of 83 for 1, 2, 4 and 8
  for (int64_t k = 0; k < terms; ++k) {
    V b_row[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) b_row[j] = hn::LoadU(d, b + j * kLanes);
#if HWY_TARGET == HWY_NEON
    V a_row[(kRows + 3) / 4];
#pragma GCC unroll 4
    for (int r = 0; r < kRows / 4; ++r) a_row[r] = hn::LoadU(d, a + r * 4);
#else
    const V* a_row = nullptr;
#endif
    MultiplyRows<0, kRows, kVectors>(a, a_row, b_row, sums);
    a += kRows;
    b += kWidth;
  }
  const bool add = join == Join::kAdd;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      if (join != Join::kAlone) {
        const V before = add ? hn::LoadU(d, c + r * kWidth + j * kLanes) : hn::Zero(d);
        sums[r][j] = hn::Add(before, sums[r][j]);
      }
      StoreBytes(sums[r][j], d, to + to_rows[r] + j * kLanes);
    }
  }
}

using TileFunction = void (*)(const float* a, const float* b, int64_t terms, const float* c,
                              Join join, float* to, const int64_t* to_rows);

inline TileFunction TileFunctionOf(int rows, int vectors) {
#if HWY_TARGET == HWY_AVX2
  if (rows == 6 && vectors == 2) return MultiplyTile<6, 2>;
  if (rows == 4 && vectors == 3) return MultiplyTile<4, 3>;
  return MultiplyTile<2, 6>;
#else
  if (rows == 12 && vectors == 2) return MultiplyTile<12, 2>;
  if (rows == 8 && vectors == 3) return MultiplyTile<8, 3>;
  return MultiplyTile<4, 6>;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
