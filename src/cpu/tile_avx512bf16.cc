// The micro-kernel of bf16 on x86. VDPBF16PS multiplies two terms of each of 16 columns and adds
// them to 16 sums, one after the other: elements of a panel are two terms. Compiled for CPUs that
// have the instruction, so nothing here may be shared with other files.
#include "cpu/element.h"
#include "cpu/tile.h"
#include "cpu/tile_amx.h"
#include "cpu/tile_operand.h"

#if defined(__x86_64__)

#include <type_traits>

#if defined(__AVX512BF16__)
#include <bit>

#include "cpu/round_bf16-inl.h"
#endif

namespace convgrad {

#if defined(__AVX512BF16__)
namespace {

constexpr int kLanes = 16;

CONVGRAD_ALWAYS_INLINE __m512bh LoadPairs(const Pair* at) {
  return std::bit_cast<__m512bh>(_mm512_loadu_si512(at));
}

// As in tile.cc: a is broadcast from memory, b asked for eight k ahead.
template <class A, class B, int kRows, int kVectors>
CONVGRAD_ALWAYS_INLINE void MultiplyPanels(A a, B b, const TileTerms& terms,
                                           __m512 (&sums)[kRows][kVectors]) {
  for (int64_t segment = 0; segment < terms.segments; ++segment) {
    a.Leap(segment);
    b.Leap(segment);
#pragma GCC unroll 4
    for (int64_t k = 0; k < terms.length; ++k, a.Next(), b.Next()) {
      __m512bh b_row[kVectors];
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        b_row[j] = LoadPairs(b.Vector(j));
        _mm_prefetch(reinterpret_cast<const char*>(b.Vector(j) + 8 * kVectors * kLanes),
                     _MM_HINT_T0);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const auto x =
            std::bit_cast<__m512bh>(_mm512_set1_epi32(std::bit_cast<int32_t>(*a.FactorAt(r))));
#pragma GCC unroll 8
        for (int j = 0; j < kVectors; ++j) sums[r][j] = _mm512_dpbf16_ps(sums[r][j], x, b_row[j]);
      }
    }
  }
}

template <TileSource kSource, class To, int kRows, int kVectors>
void MultiplyTile(const void* a, const void* b, const TileTerms& terms, const float* c,
                  ChunkJoin join, void* to, const int64_t* to_rows) {
  constexpr int kWidth = kVectors * kLanes;
  using A = std::conditional_t<
      kSource == TileSource::kRows, RowsAt<Pair, kRowPitch>,
      std::conditional_t<kSource == TileSource::kARowLines, LinesAt<Pair, kRows, 4, 4, kLinePitch>,
                         std::conditional_t<kSource == TileSource::kALines, LinesAt<Pair, kRows, 4>,
                                            PanelAt<Pair, kRows, 4>>>>;
  using B = std::conditional_t<kSource == TileSource::kBLines, LinesAt<Pair, kWidth, kLanes>,
                               PanelAt<Pair, kWidth, kLanes>>;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      sums[r][j] = join == ChunkJoin::kChain ? _mm512_loadu_ps(c + r * kWidth + j * kLanes)
                                             : _mm512_setzero_ps();
    }
  }
  MultiplyPanels(A(static_cast<const Pair*>(a), terms), B(static_cast<const Pair*>(b), terms),
                 terms, sums);
  // What is added to -0 stays what it is.
  const __m512 zero = _mm512_set1_ps(join == ChunkJoin::kFirst ? 0.0f : -0.0f);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      const __m512 before =
          join == ChunkJoin::kAdd ? _mm512_loadu_ps(c + r * kWidth + j * kLanes) : zero;
      Store(_mm512_add_ps(before, sums[r][j]), static_cast<To*>(to) + to_rows[r] + j * kLanes);
    }
  }
}

template <TileSource kSource, class To>
TileFunction OfShape(int rows) {
  if (rows == 12) return MultiplyTile<kSource, To, 12, 2>;
  if (rows == 8) return MultiplyTile<kSource, To, 8, 3>;
  return MultiplyTile<kSource, To, 4, 6>;
}

template <class To>
TileFunction TileOf(int rows, TileSource source) {
  switch (source) {
    case TileSource::kRows:
      return OfShape<TileSource::kRows, To>(rows);
    case TileSource::kALines:
      return OfShape<TileSource::kALines, To>(rows);
    case TileSource::kARowLines:
      return OfShape<TileSource::kARowLines, To>(rows);
    case TileSource::kBLines:
      return OfShape<TileSource::kBLines, To>(rows);
    default:
      return OfShape<TileSource::kPanels, To>(rows);
  }
}

}  // namespace

TileFunction Bf16TileOf(int rows, TileSource source, bool rounds) {
  if (rows >= 16) return AmxTileOf(rows, rounds);
  return rounds ? TileOf<NativeBF16>(rows, source) : TileOf<float>(rows, source);
}

#else

TileFunction Bf16TileOf(int, TileSource, bool) { return nullptr; }

#endif

}  // namespace convgrad

#endif
