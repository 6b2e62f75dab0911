// The micro-kernel of bf16 on Arm. BFMMLA multiplies 2 rows of a by 2 columns of b, four terms of
// each, and adds to 2 x 2 sums: elements of a panel are four terms, vectors two elements. Compiled
// for CPUs that have the instruction, so nothing here may be shared with other files.
#include "cpu/element.h"
#include "cpu/tile.h"
#include "cpu/tile_operand.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

#include <arm_neon.h>

#include <type_traits>

namespace convgrad {
namespace {

CONVGRAD_ALWAYS_INLINE bfloat16x8_t LoadTwo(const Quad* at) {
  return vreinterpretq_bf16_u16(vld1q_u16(at->terms));
}

// 24 registers of sums leave 8. One side stays in registers for a step along k; the vectors of the
// other take turns in two (or more) of them, loaded that many vectors before their use. 12 x 8:
// 93 % of the rate without any loads, 8 x 12 with a held 84 %.
template <int kA, int kB>
struct Held {
  static constexpr bool kIsA = kA >= kB || kA <= 2;
  static constexpr int kCount = kIsA ? kA : kB;      // vectors that stay
  static constexpr int kOthers = kIsA ? kB : kA;     // vectors that take turns
  static constexpr int kTurns = kCount > 2 ? 2 : 4;  // in so many registers
};

// One step along k. `next` is where its successor reads; with kLoads, it comes into the registers
// as they become free.
template <bool kLoads, int kA, int kB, class Stay, class Turn>
CONVGRAD_ALWAYS_INLINE void MultiplyStep(bfloat16x8_t (&held)[Held<kA, kB>::kCount],
                                         bfloat16x8_t (&turns)[Held<kA, kB>::kTurns], Turn turn_now,
                                         Turn turn_next, Stay stay_next,
                                         float32x4_t (&sums)[kA][kB]) {
  using H = Held<kA, kB>;
#pragma GCC unroll 16
  for (int j = 0; j < H::kOthers; ++j) {
    bfloat16x8_t& other = turns[j % H::kTurns];
#pragma GCC unroll 16
    for (int i = 0; i < H::kCount; ++i) {
      if constexpr (H::kIsA) {
        sums[i][j] = vbfmmlaq_f32(sums[i][j], held[i], other);
      } else {
        sums[j][i] = vbfmmlaq_f32(sums[j][i], other, held[i]);
      }
      if (kLoads && j + 1 == H::kOthers) held[i] = LoadTwo(stay_next.Vector(i));
    }
    const int ahead = j + H::kTurns;
    if (ahead < H::kOthers) {
      other = LoadTwo(turn_now.Vector(ahead));
    } else if (kLoads) {
      other = LoadTwo(turn_next.Vector(ahead - H::kOthers));
    }
  }
}

template <int kA, int kB, class Stay, class Turn>
CONVGRAD_ALWAYS_INLINE void MultiplyAll(Stay stay, Turn turn, const TileTerms& terms,
                                        float32x4_t (&sums)[kA][kB]) {
  using H = Held<kA, kB>;
  static_assert(H::kOthers % H::kTurns == 0);
  if (terms.length == 0 || terms.segments == 0) return;
  stay.Leap(0);
  turn.Leap(0);
  bfloat16x8_t held[H::kCount], turns[H::kTurns];
#pragma GCC unroll 16
  for (int i = 0; i < H::kCount; ++i) held[i] = LoadTwo(stay.Vector(i));
#pragma GCC unroll 16
  for (int i = 0; i < H::kTurns; ++i) turns[i] = LoadTwo(turn.Vector(i));
  for (int64_t segment = 1;; ++segment) {
#pragma GCC unroll 2
    for (int64_t left = terms.length - 1; left > 0; --left) {
      const Turn now = turn;
      stay.Next();
      turn.Next();
      MultiplyStep<true, kA, kB>(held, turns, now, turn, stay, sums);
    }
    if (segment == terms.segments) break;
    const Turn now = turn;
    stay.Next();
    turn.Next();
    stay.Leap(segment);
    turn.Leap(segment);
    MultiplyStep<true, kA, kB>(held, turns, now, turn, stay, sums);
  }
  MultiplyStep<false, kA, kB>(held, turns, turn, turn, stay, sums);
}

// Two sums of a row next to two others of it.
CONVGRAD_ALWAYS_INLINE float32x4_t Low(float32x4_t x, float32x4_t y) {
  return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)));
}
CONVGRAD_ALWAYS_INLINE float32x4_t High(float32x4_t x, float32x4_t y) {
  return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)));
}

// kVectors of a row, to any byte.
template <int kVectors>
CONVGRAD_ALWAYS_INLINE void Store(const float32x4_t (&sums)[kVectors], float* to) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    vst1q_u8(reinterpret_cast<uint8_t*>(to + 4 * v), vreinterpretq_u8_f32(sums[v]));
  }
}
template <int kVectors>
CONVGRAD_ALWAYS_INLINE void Store(const float32x4_t (&sums)[kVectors], NativeBF16* to) {
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; v += 2) {
    uint8_t* const at = reinterpret_cast<uint8_t*>(to + 4 * v);
    const bfloat16x8_t low = vcvtq_low_bf16_f32(sums[v]);
    if (v + 1 < kVectors) {
      vst1q_u8(at, vreinterpretq_u8_bf16(vcvtq_high_bf16_f32(low, sums[v + 1])));
    } else {
      vst1_u8(at, vget_low_u8(vreinterpretq_u8_bf16(low)));
    }
  }
}

// to = before(row, column) + sums
template <int kA, int kB, class To, class Before>
CONVGRAD_ALWAYS_INLINE void StoreSums(const float32x4_t (&sums)[kA][kB], To* to,
                                      const int64_t* to_rows, const Before& before) {
#pragma GCC unroll 16
  for (int i = 0; i < kA; ++i) {
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      float32x4_t row[kB / 2];
#pragma GCC unroll 16
      for (int v = 0; v < kB / 2; ++v) {
        const float32x4_t x = sums[i][2 * v], y = sums[i][2 * v + 1];
        row[v] = vaddq_f32(before(2 * i + r, 4 * v), r == 0 ? Low(x, y) : High(x, y));
      }
      Store(row, to + to_rows[2 * i + r]);
    }
  }
}

template <TileSource kSource, class To, int kRows, int kColumns>
void MultiplyTile(const void* a, const void* b, const TileTerms& terms, const float* c,
                  ChunkJoin join, void* to, const int64_t* to_rows) {
  constexpr int kA = kRows / 2, kB = kColumns / 2;
  using A = std::conditional_t<kSource == TileSource::kALines, LinesAt<Quad, kRows, 2, 4>,
                               PanelAt<Quad, kRows, 2>>;
  using B = std::conditional_t<kSource == TileSource::kBLines, LinesAt<Quad, kColumns, 2, 4>,
                               PanelAt<Quad, kColumns, 2>>;
  float32x4_t sums[kA][kB];
#pragma GCC unroll 16
  for (int i = 0; i < kA; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kB; ++j) sums[i][j] = vdupq_n_f32(0);
  }
  if (join == ChunkJoin::kChain) {
#pragma GCC unroll 16
    for (int i = 0; i < kA; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < kB; j += 2) {
        const float* at = c + 2 * i * kColumns + 2 * j;
        const float32x4_t x = vld1q_f32(at), y = vld1q_f32(at + kColumns);
        sums[i][j] = Low(x, y);
        sums[i][j + 1] = High(x, y);
      }
    }
  }
  const A of_a(static_cast<const Quad*>(a), terms);
  const B of_b(static_cast<const Quad*>(b), terms);
  if constexpr (Held<kA, kB>::kIsA) {
    MultiplyAll<kA, kB>(of_a, of_b, terms, sums);
  } else {
    MultiplyAll<kA, kB>(of_b, of_a, terms, sums);
  }
  if (join == ChunkJoin::kAdd) {
    StoreSums(sums, static_cast<To*>(to), to_rows,
              [&](int r, int column) { return vld1q_f32(c + r * kColumns + column); });
  } else {  // what is added to -0 stays what it is
    const float32x4_t zero = vdupq_n_f32(join == ChunkJoin::kFirst ? 0.0f : -0.0f);
    StoreSums(sums, static_cast<To*>(to), to_rows, [&](int, int) { return zero; });
  }
}

template <TileSource kSource, class To>
TileFunction OfShape(int rows) {
  if (rows == 12) return MultiplyTile<kSource, To, 12, 8>;
  if (rows == 8) return MultiplyTile<kSource, To, 8, 12>;
  return MultiplyTile<kSource, To, 4, 24>;
}

template <class To>
TileFunction TileOf(int rows, TileSource source) {
  if (source == TileSource::kALines) return OfShape<TileSource::kALines, To>(rows);
  if (source == TileSource::kBLines) return OfShape<TileSource::kBLines, To>(rows);
  return OfShape<TileSource::kPanels, To>(rows);
}

}  // namespace

TileFunction Bf16TileOf(int rows, TileSource source, bool rounds) {
  return rounds ? TileOf<NativeBF16>(rows, source) : TileOf<float>(rows, source);
}

}  // namespace convgrad

#elif !defined(__x86_64__)

namespace convgrad {

TileFunction Bf16TileOf(int, TileSource, bool) { return nullptr; }

}  // namespace convgrad

#endif
