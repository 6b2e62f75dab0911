// Where a tile's loop reads an operand: a panel, lines that several terms share, or, by pointers,
// anywhere. Elements are E.
#ifndef CONVGRAD_CPU_TILE_OPERAND_H_
#define CONVGRAD_CPU_TILE_OPERAND_H_

#include <cstdint>

#include "cpu/tile.h"

#define CONVGRAD_ALWAYS_INLINE inline __attribute__((always_inline))

namespace convgrad {

// An operand at one k: `kWidth` elements, in vectors of kUnit.
template <class E, int kWidth, int kUnit>
struct PanelAt {
  static constexpr bool kLeaps = false;
  const E* __restrict at;

  PanelAt(const E* first, const TileTerms&) : at(first) {}
  CONVGRAD_ALWAYS_INLINE void Next() { at += kWidth; }
  CONVGRAD_ALWAYS_INLINE void Leap(int64_t) {}
  CONVGRAD_ALWAYS_INLINE const E* Vector(int i) const { return at + i * kUnit; }
  CONVGRAD_ALWAYS_INLINE const E* FactorAt(int r) const { return at + r; }
};

// By rows: kPitch elements from row to row.
template <class E, int64_t kPitch>
struct RowsAt {
  static constexpr bool kLeaps = false;
  const E* __restrict at;

  RowsAt(const E* first, const TileTerms&) : at(first) {}
  CONVGRAD_ALWAYS_INLINE void Next() { ++at; }
  CONVGRAD_ALWAYS_INLINE void Leap(int64_t) {}
  CONVGRAD_ALWAYS_INLINE const E* FactorAt(int r) const { return at + r * kPitch; }
};

// Runs of kRun elements are of one line. kPitch: elements from position to position.
template <class E, int kWidth, int kUnit, int kRun = kUnit, int64_t kPitch = 1>
struct LinesAt {
  static constexpr bool kLeaps = true;
  static constexpr int kCount = kWidth / kRun;
  const int64_t* const begins;
  const int64_t step;
  const E* first[kCount];          // of runs, of a segment that begins at 0
  const E* __restrict at[kCount];  // of runs

  LinesAt(const E* lines, const TileTerms& terms)
      : begins(terms.begins), step(kPitch == 1 ? terms.step : 1) {
#pragma GCC unroll 6
    for (int i = 0; i < kCount; ++i) {
      first[i] = lines + kPitch * (i * kRun + (i * kRun < terms.turn ? 0 : terms.gap));
    }
  }
  CONVGRAD_ALWAYS_INLINE void Next() {
#pragma GCC unroll 6
    for (int i = 0; i < kCount; ++i) at[i] += step;
  }
  CONVGRAD_ALWAYS_INLINE void Leap(int64_t segment) {
    const int64_t begin = begins[segment];
#pragma GCC unroll 6
    for (int i = 0; i < kCount; ++i) at[i] = first[i] + begin;
  }
  CONVGRAD_ALWAYS_INLINE const E* Vector(int i) const {
    return at[i * kUnit / kRun] + i * kUnit % kRun;
  }
  CONVGRAD_ALWAYS_INLINE const E* FactorAt(int r) const {
    return at[r / kRun] + kPitch * (r % kRun);
  }
};

// Terms that are anywhere; rows are contiguous.
template <class E>
struct PointersAt {
  static constexpr bool kLeaps = false;
  const uint64_t* at;
  const E* rows = nullptr;  // of this k

  PointersAt(const void* pointers, const TileTerms&) : at(static_cast<const uint64_t*>(pointers)) {}
  CONVGRAD_ALWAYS_INLINE void Arrive() {
    rows = reinterpret_cast<const E*>(static_cast<uintptr_t>(*at));
  }
  CONVGRAD_ALWAYS_INLINE void Next() { ++at; }
  CONVGRAD_ALWAYS_INLINE void Leap(int64_t) {}
  CONVGRAD_ALWAYS_INLINE const E* FactorAt(int r) const { return rows + r; }
};

}  // namespace convgrad

#endif  // CONVGRAD_CPU_TILE_OPERAND_H_
