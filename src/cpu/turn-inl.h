// Rows to columns and back, turned in registers, four by four elements: on NEON in a vector, on x86
// in each 128 bits of one, so that the columns of as many rows as it has lanes are whole vectors.
// Knows memory alone: what rows and columns are is for those who pack, copy and store (step 6).
#if defined(CONVGRAD_CPU_TURN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_TURN_INL_H_
#undef CONVGRAD_CPU_TURN_INL_H_
#else
#define CONVGRAD_CPU_TURN_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/element.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

#undef CONVGRAD_TURNS_VECTORS
#define CONVGRAD_TURNS_VECTORS (HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR)

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
using D4 = hn::FixedTag<float, 4>;
using V4 = hn::Vec<D4>;

template <class Vec>
struct FourOf {
  Vec k0, k1, k2, k3;
};
using FourRows = FourOf<V4>;

// Rows to columns, of each 128 bits.
template <class Tag, class Vec = hn::Vec<Tag>>
HWY_INLINE FourOf<Vec> TurnBlocks(Tag d, Vec a0, Vec a1, Vec a2, Vec a3) {
  const hn::Repartition<double, Tag> dd;
  const auto b0 = hn::BitCast(dd, hn::InterleaveLower(d, a0, a1));
  const auto b1 = hn::BitCast(dd, hn::InterleaveLower(d, a2, a3));
  const auto b2 = hn::BitCast(dd, hn::InterleaveUpper(d, a0, a1));
  const auto b3 = hn::BitCast(dd, hn::InterleaveUpper(d, a2, a3));
  return {hn::BitCast(d, hn::InterleaveLower(dd, b0, b1)),
          hn::BitCast(d, hn::InterleaveUpper(dd, b0, b1)),
          hn::BitCast(d, hn::InterleaveLower(dd, b2, b3)),
          hn::BitCast(d, hn::InterleaveUpper(dd, b2, b3))};
}
HWY_INLINE FourRows Turn(V4 a0, V4 a1, V4 a2, V4 a3) { return TurnBlocks(D4(), a0, a1, a2, a3); }
#endif

#if CONVGRAD_TURNS_VECTORS
constexpr int kBlocks = kLanes / 4;

// kLanes rows, `step` elements apart; (block, i): row 4 * block + i.
template <class T>
struct StridedRows {
  const T* first[kBlocks];
  int64_t step;

  StridedRows(const T* from, int64_t row_step) : step(row_step) {
    for (int i = 0; i < kBlocks; ++i) first[i] = from + 4 * i * row_step;
  }
  HWY_INLINE const T* operator()(int block, int i) const { return first[block] + i * step; }
  HWY_INLINE void Advance(int64_t elements) {
#pragma GCC unroll 4
    for (int i = 0; i < kBlocks; ++i) first[i] += elements;
  }
};

// Up to kLanes rows from anywhere; the last one in place of those that there are not.
template <class T>
struct RowTable {
  const T* rows[kLanes];
  int64_t at = 0;

  RowTable(const T* const* from, int64_t count) {
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = from[std::min(i, count - 1)];
  }
  HWY_INLINE const T* operator()(int block, int i) const { return rows[4 * block + i] + at; }
  HWY_INLINE void Advance(int64_t elements) { at += elements; }
};

// 128 bits of each of a vector's blocks: of(block).
template <class Tag, class Of>
HWY_INLINE hn::Vec<Tag> FromBlocks(Tag d, const Of& of) {
#if CONVGRAD_HAS_AVX512
  const hn::RebindToSigned<Tag> bits;
  const auto block = [&](int i)
                         HWY_ATTR { return hn::BitCast(hn::FixedTag<int32_t, 4>(), of(i)).raw; };
  __m512i all = _mm512_castsi128_si512(block(0));  // inserted from memory: no shuffle
  all = _mm512_inserti32x4(all, block(1), 1);
  all = _mm512_inserti32x4(all, block(2), 2);
  all = _mm512_inserti32x4(all, block(3), 3);
  return hn::BitCast(d, hn::Vec<decltype(bits)>{all});
#else
  return hn::Combine(d, of(1), of(0));
#endif
}

// store(i, column) of the next four of all rows.
template <class Rows, class Store>
HWY_INLINE void TurnFourOf(const Rows& rows, const Store& store) {
  const auto load = [&](int i) HWY_ATTR {
    return FromBlocks(D(), [&](int block) HWY_ATTR { return LoadBytes(D4(), rows(block, i)); });
  };
  const FourOf<V> turned = TurnBlocks(D(), load(0), load(1), load(2), load(3));
  store(0, turned.k0);
  store(1, turned.k1);
  store(2, turned.k2);
  store(3, turned.k3);
}

// Two columns in each 128 bits, widened: bf16 between zeros; f16 of two vectors, whose columns a
// conversion wants next to each other.
template <class Bits, class Store>
HWY_INLINE void StoreColumns(Bits low, Bits high, int i, const Store& store, BF16) {
  const hn::Repartition<uint16_t, D> halves;
  const auto zero = hn::Zero(halves);
  const auto widened = [&](auto bits) HWY_ATTR { return hn::BitCast(D(), bits); };
  const auto first = hn::BitCast(halves, low), second = hn::BitCast(halves, high);
  store(i, widened(hn::InterleaveLower(halves, zero, first)));
  store(i + 1, widened(hn::InterleaveUpper(halves, zero, first)));
  store(i + 2, widened(hn::InterleaveLower(halves, zero, second)));
  store(i + 3, widened(hn::InterleaveUpper(halves, zero, second)));
}
template <class Bits, class Store>
HWY_INLINE void StoreColumns(Bits low, Bits high, int i, const Store& store, F16) {
  const hn::Repartition<uint64_t, D> fours;
  const hn::Half<decltype(fours)> half;
  const hn::Rebind<uint16_t, D> bits;
  const auto first = hn::BitCast(fours, low), second = hn::BitCast(fours, high);
  const auto even = hn::ConcatEven(fours, second, first);
  const auto odd = hn::ConcatOdd(fours, second, first);
  const auto widened = [&](auto of)
                           HWY_ATTR { return WidenBits(D(), hn::BitCast(bits, of), F16()); };
  store(i, widened(hn::LowerHalf(half, even)));
  store(i + 1, widened(hn::LowerHalf(half, odd)));
  store(i + 2, widened(hn::UpperHalf(half, even)));
  store(i + 3, widened(hn::UpperHalf(half, odd)));
}

// The same of eight of 16 bits, which are turned before they are widened.
template <class T, class Rows, class Store>
HWY_INLINE void TurnEightOf(const Rows& rows, const Store& store) {
  const hn::Repartition<uint16_t, D> halves;
  const hn::Repartition<uint32_t, D> pairs;
  const auto load = [&](int i) HWY_ATTR {
    return FromBlocks(halves, [&](int block) HWY_ATTR {
      return LoadBits(hn::FixedTag<uint16_t, 8>(), rows(block, i));
    });
  };
  const auto r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
  const auto a0 = hn::BitCast(pairs, hn::InterleaveLower(halves, r0, r1));
  const auto a1 = hn::BitCast(pairs, hn::InterleaveLower(halves, r2, r3));
  const auto b0 = hn::BitCast(pairs, hn::InterleaveUpper(halves, r0, r1));
  const auto b1 = hn::BitCast(pairs, hn::InterleaveUpper(halves, r2, r3));
  StoreColumns(hn::InterleaveLower(pairs, a0, a1), hn::InterleaveUpper(pairs, a0, a1), 0, store,
               T());
  StoreColumns(hn::InterleaveLower(pairs, b0, b1), hn::InterleaveUpper(pairs, b0, b1), 4, store,
               T());
}

// store(k, column k) of rows of at least four; the last ones again.
template <class T, class Rows, class Store>
HWY_INLINE void TurnColumns(Rows rows, int64_t depth, const Store& store) {
  int64_t k = 0;
  const auto to = [&](int i, V column) HWY_ATTR { store(k + i, column); };
  const auto advance = [&](int64_t by) HWY_ATTR {
    rows.Advance(by);
    k += by;
  };
  if constexpr (sizeof(T) == sizeof(uint16_t)) {
    for (; k + 8 <= depth; advance(8)) TurnEightOf<T>(rows, to);
    if (k < depth && depth >= 8) {
      advance(depth - 8 - k);
      return TurnEightOf<T>(rows, to);
    }
  }
  for (; k + 4 <= depth; advance(4)) TurnFourOf(rows, to);
  if (k == depth) return;
  advance(depth - 4 - k);
  TurnFourOf(rows, to);
}

// kLanes rows that are `step` apart; `width` floats from one k to the next.
template <class T>
HWY_INLINE void TurnVectorOfRows(const T* from, int64_t step, int64_t depth, float* to,
                                 int64_t width) {
  TurnColumns<T>(StridedRows<T>(from, step), depth,
                 [&](int64_t k, V column) HWY_ATTR { hn::StoreU(column, D(), to + k * width); });
}

// Four of each of some rows, `step` apart.
HWY_INLINE void StoreFours(V rows, float* to, int64_t step) {
#if CONVGRAD_HAS_AVX512
  StoreBytes(V4(_mm512_castps512_ps128(rows.raw)), D4(), to);
  StoreBytes(V4(_mm512_extractf32x4_ps(rows.raw, 1)), D4(), to + step);
  StoreBytes(V4(_mm512_extractf32x4_ps(rows.raw, 2)), D4(), to + 2 * step);
  StoreBytes(V4(_mm512_extractf32x4_ps(rows.raw, 3)), D4(), to + 3 * step);
#else
  StoreBytes(hn::LowerHalf(D4(), rows), D4(), to);
  StoreBytes(hn::UpperHalf(D4(), rows), D4(), to + step);
#endif
}
template <class T>
HWY_INLINE void StoreFours(V rows, T* to, int64_t step) {
  T all[kLanes];
  StoreBytes(rows, D(), all);
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i) {
    std::memcpy(static_cast<void*>(to + i * step), all + 4 * i, 4 * sizeof(T));
  }
}

// And back: column(p) of kLanes rows, for at least four p; rows are `step` apart.
template <class T, class Column>
HWY_INLINE void TurnBack(int64_t count, const Column& column, T* to, int64_t step) {
  const auto turn = [&](int64_t p) HWY_ATTR {
    const FourOf<V> turned =
        TurnBlocks(D(), column(p), column(p + 1), column(p + 2), column(p + 3));
    StoreFours(turned.k0, to + p, 4 * step);
    StoreFours(turned.k1, to + p + step, 4 * step);
    StoreFours(turned.k2, to + p + 2 * step, 4 * step);
    StoreFours(turned.k3, to + p + 3 * step, 4 * step);
  };
  int64_t p = 0;
  for (; p + 4 <= count; p += 4) turn(p);
  if (p < count) turn(count - 4);  // the last four again
}
#endif  // CONVGRAD_TURNS_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
