// Rectangles of a strided tensor of 16-bit terms into panels whose elements are several terms, next
// to each other along k: what rect-inl.h does for floats. Nothing is converted, bits are moved.
#if defined(CONVGRAD_CPU_RECT_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_RECT_ELEMENTS_INL_H_
#undef CONVGRAD_CPU_RECT_ELEMENTS_INL_H_
#else
#define CONVGRAD_CPU_RECT_ELEMENTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/element.h"
#include "cpu/rect-inl.h"
#include "cpu/tiling.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

using D8 = hn::FixedTag<uint16_t, 8>;
using V8 = hn::Vec<D8>;

// Up to an element of terms, `stride` apart.
template <class E, class T>
HWY_INLINE E GatherElement(const T* from, int64_t stride, int64_t count) {
  constexpr int64_t kEach = kTermsOf<E>;
  E element{};
  if (count >= kEach) {
    for (int i = 0; i < kEach; ++i) element.terms[i] = LoadAt<T>(from, i * stride).bits;
    return element;
  }
  for (int64_t i = 0; i < count; ++i) element.terms[i] = LoadAt<T>(from, i * stride).bits;
  return element;
}

template <class T>
HWY_INLINE void SetElement(const T* from, int64_t stride, int64_t count, Quad& element) {
  element = GatherElement<Quad>(from, stride, count);
}
template <class T>
HWY_INLINE void SetElement(const T* from, int64_t stride, int64_t count, Pair& element) {
  element = GatherElement<Pair>(from, stride, count);
}

// Eight or four rows, one or two terms apart; with 2, one more is read.
template <int kStride, class T>
HWY_INLINE V8 LoadRows(const T* at) {
  const D8 d;
  if constexpr (kStride == 1) {
    return LoadBits(d, at);
  } else {
    const hn::Repartition<uint32_t, D8> pairs;
    const hn::Half<D8> half;
    const auto low = hn::TruncateTo(half, LoadBits(pairs, at));
    return hn::Combine(d, hn::TruncateTo(half, LoadBits(pairs, at + 8)), low);
  }
}
template <int kStride, class T>
HWY_INLINE V8 LoadHalfOfRows(const T* at) {
  const D8 d;
  const hn::Half<D8> half;
  if constexpr (kStride == 1) {
    return hn::ZeroExtendVector(d, LoadBits(half, at));
  } else {
    const hn::Repartition<uint32_t, D8> pairs;
    return hn::ZeroExtendVector(d, hn::TruncateTo(half, LoadBits(pairs, at)));
  }
}

// Terms that are `stride` apart.
template <class T>
HWY_INLINE void CopyTerms(const T* from, int64_t stride, int64_t count, uint16_t* to) {
  const D8 d;
  const hn::Half<D8> half;
  int64_t i = 0;
  if (stride == 1) {
    for (; i + 8 <= count; i += 8) hn::StoreU(LoadBits(d, from + i), d, to + i);
    if (i < count && count >= 8) {  // the last eight again
      hn::StoreU(LoadBits(d, from + count - 8), d, to + count - 8);
      return;
    }
    if (count >= 4) {
      hn::StoreU(LoadBits(half, from), half, to);
      hn::StoreU(LoadBits(half, from + count - 4), half, to + count - 4);
      return;
    }
  } else if (stride == 2) {  // the last vector would read one beyond the last element
    for (; i + 9 <= count; i += 8) hn::StoreU(LoadRows<2>(from + 2 * i), d, to + i);
  }
  for (; i < count; ++i) to[i] = LoadAt<T>(from, i * stride).bits;
}

HWY_INLINE void ZeroTerms(uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = 0;
}

template <class E>
HWY_INLINE void StoreElements(V8 elements, E* to) {
  hn::StoreU(elements, D8(), to->terms);
}

// Eight rows of an element's k: those of rows 0 to 3 go to `low`, the others to `high`.
HWY_INLINE void StoreInterleaved(const V8 (&k)[4], Quad* low, Quad* high) {
  const D8 d;
  const hn::Repartition<uint32_t, D8> dd;
  const auto lower01 = hn::BitCast(dd, hn::InterleaveLower(d, k[0], k[1]));
  const auto lower23 = hn::BitCast(dd, hn::InterleaveLower(d, k[2], k[3]));
  StoreElements(hn::BitCast(d, hn::InterleaveLower(dd, lower01, lower23)), low);
  StoreElements(hn::BitCast(d, hn::InterleaveUpper(dd, lower01, lower23)), low + 2);
  if (high == nullptr) return;
  const auto upper01 = hn::BitCast(dd, hn::InterleaveUpper(d, k[0], k[1]));
  const auto upper23 = hn::BitCast(dd, hn::InterleaveUpper(d, k[2], k[3]));
  StoreElements(hn::BitCast(d, hn::InterleaveLower(dd, upper01, upper23)), high);
  StoreElements(hn::BitCast(d, hn::InterleaveUpper(dd, upper01, upper23)), high + 2);
}
HWY_INLINE void StoreInterleaved(const V8 (&k)[2], Pair* low, Pair* high) {
  const D8 d;
  StoreElements(hn::InterleaveLower(d, k[0], k[1]), low);
  if (high != nullptr) StoreElements(hn::InterleaveUpper(d, k[0], k[1]), high);
}

// Rows of an element's k, each contiguous or every other term. Without `more`, nothing follows the
// last.
template <int kStride, class E, class T>
HWY_INLINE void InterleaveRows(const T* const* k, int64_t rows, bool more, E* to) {
  constexpr int kEach = static_cast<int>(kTermsOf<E>);
  const int64_t vectors = kStride == 1 || more ? rows : rows - 1;
  int64_t r = 0;
  V8 loaded[kEach];
  for (; r + 8 <= vectors; r += 8) {
#pragma GCC unroll 4
    for (int i = 0; i < kEach; ++i) loaded[i] = LoadRows<kStride>(k[i] + r * kStride);
    StoreInterleaved(loaded, to + r, to + r + 4);
  }
  const auto four = [&](int64_t first) {
#pragma GCC unroll 4
    for (int i = 0; i < kEach; ++i) loaded[i] = LoadHalfOfRows<kStride>(k[i] + first * kStride);
    StoreInterleaved(loaded, to + first, nullptr);
  };
  if (r + 4 <= vectors) {
    four(r);
    r += 4;
  }
  if (r < rows && vectors >= 4 && kStride == 1) {  // the last four again
    four(rows - 4);
    return;
  }
  for (; r < rows; ++r) {
    for (int i = 0; i < kEach; ++i) to[r].terms[i] = LoadAt<T>(k[i], r * kStride).bits;
  }
}

// Rows to columns, 16 bits each.
HWY_INLINE void TurnEightByEight(V8 (&v)[8]) {
  const D8 d;
  const hn::Repartition<uint32_t, D8> d2;
  const hn::Repartition<uint64_t, D8> d4;
  hn::Vec<decltype(d2)> x[8];
  hn::Vec<decltype(d4)> y[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    x[i] = hn::BitCast(d2, hn::InterleaveLower(d, v[i], v[i + 1]));
    x[i + 1] = hn::BitCast(d2, hn::InterleaveUpper(d, v[i], v[i + 1]));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    y[i] = hn::BitCast(d4, hn::InterleaveLower(d2, x[i], x[i + 2]));
    y[i + 1] = hn::BitCast(d4, hn::InterleaveUpper(d2, x[i], x[i + 2]));
    y[i + 2] = hn::BitCast(d4, hn::InterleaveLower(d2, x[i + 1], x[i + 3]));
    y[i + 3] = hn::BitCast(d4, hn::InterleaveUpper(d2, x[i + 1], x[i + 3]));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = hn::BitCast(d, hn::InterleaveLower(d4, y[i], y[i + 4]));
    v[2 * i + 1] = hn::BitCast(d, hn::InterleaveUpper(d4, y[i], y[i + 4]));
  }
}

// Panels that are one row wide: rows next to each other in the sources, one for each k, become rows
// that are contiguous along k.
template <class E, class T>
void TurnNeighbours(const T* const* sources, int64_t terms, int64_t rows, const Panels<E>& panels,
                    int64_t k0, int64_t r0) {
  const D8 d;
  for (int64_t r = 0; r < rows; r += 8) {
    const int64_t count = std::min<int64_t>(8, rows - r);
    uint16_t* const to = panels.At(k0, r0 + r)->terms;
    const int64_t pitch = panels.depth * kTermsOf<E>;
    int64_t k = 0;
    for (; count == 8 && k + 8 <= terms; k += 8) {
      V8 v[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) v[i] = LoadBits(d, sources[k + i] + r);
      TurnEightByEight(v);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) hn::StoreU(v[i], d, to + i * pitch + k);
    }
    for (; k < terms; ++k) {
      for (int64_t i = 0; i < count; ++i) to[i * pitch + k] = LoadAt<T>(sources[k], r + i).bits;
    }
  }
}

// Rows that are next to each other, r0 and the width of panels multiples of four: so many of them
// have one place.
template <class E, class T>
void InterleaveNeighbours(const T* const* sources, int64_t terms, int64_t rows,
                          const Panels<E>& panels, int64_t k0, int64_t r0) {
  constexpr int kEach = static_cast<int>(kTermsOf<E>);
  E* places[Tiling::kMostColumns / 4];
  for (int64_t r = 0; r < rows; r += 4) places[r / 4] = panels.At(k0, r0 + r);
  const D8 d;
  for (int64_t k = 0; k < terms; k += kEach) {
    const T* from[kEach];
    for (int i = 0; i < kEach; ++i) from[i] = sources[k + i];
    const int64_t at = k / kEach * panels.width;
    E* const* place = places;
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8, place += 2) {
      V8 loaded[kEach];
#pragma GCC unroll 4
      for (int i = 0; i < kEach; ++i) loaded[i] = LoadBits(d, from[i] + r);
      StoreInterleaved(loaded, place[0] + at, place[1] + at);
    }
    for (; r < rows; r += 4, ++place) {
      const T* rest[kEach];
      for (int i = 0; i < kEach; ++i) rest[i] = from[i] + r;
      InterleaveRows<1>(rest, std::min<int64_t>(4, rows - r), true, *place + at);
    }
  }
}

// Rows that are contiguous along k. Eight terms of two rows are two quads of each.
template <int kRows, class T>
HWY_INLINE void TurnEight(const T* const* sources, int64_t k, Quad* to, int64_t width) {
  const D8 d;
  const hn::Repartition<uint64_t, D8> dd;
#pragma GCC unroll 4
  for (int r = 0; r + 2 <= kRows; r += 2) {
    const auto x = hn::BitCast(dd, LoadBits(d, sources[r] + k));
    const auto y = hn::BitCast(dd, LoadBits(d, sources[r + 1] + k));
    StoreElements(hn::BitCast(d, hn::InterleaveLower(dd, x, y)), to + r);
    StoreElements(hn::BitCast(d, hn::InterleaveUpper(dd, x, y)), to + width + r);
  }
  if (kRows == 1) {
    to[0] = GatherElement<Quad>(sources[0] + k, 1, 4);
    to[width] = GatherElement<Quad>(sources[0] + k + 4, 1, 4);
  }
}
// Of four rows they are four pairs of each.
template <int kRows, class T>
HWY_INLINE void TurnEight(const T* const* sources, int64_t k, Pair* to, int64_t width) {
  if constexpr (kRows == 4) {
    const D8 d;
    const D4 four;
    const auto load = [&](int r) { return hn::BitCast(four, LoadBits(d, sources[r] + k)); };
    const FourRows turned = Turn(load(0), load(1), load(2), load(3));
    StoreElements(hn::BitCast(d, turned.k0), to);
    StoreElements(hn::BitCast(d, turned.k1), to + width);
    StoreElements(hn::BitCast(d, turned.k2), to + 2 * width);
    StoreElements(hn::BitCast(d, turned.k3), to + 3 * width);
  } else {
    for (int i = 0; i < 4; ++i, to += width) {
      for (int r = 0; r < kRows; ++r) to[r] = GatherElement<Pair>(sources[r] + k + 2 * i, 1, 2);
    }
  }
}

template <int kRows, class E, class T>
HWY_INLINE void TurnSomeRows(const T* const* sources, int64_t depth, E* to, int64_t width) {
  constexpr int64_t kEach = kTermsOf<E>;
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8, to += 8 / kEach * width) TurnEight<kRows>(sources, k, to, width);
  for (; k < depth; k += kEach, to += width) {
    for (int r = 0; r < kRows; ++r) to[r] = GatherElement<E>(sources[r] + k, 1, depth - k);
  }
}

// Up to a panel of rows that are contiguous along k, from anywhere; `width` elements from one k to
// the next.
template <class E, class T>
HWY_INLINE void TurnElements(const T* const* sources, int64_t rows, int64_t depth, E* to,
                             int64_t width) {
  if (width == 1) {  // one row
    CopyTerms(sources[0], 1, depth, to->terms);
    for (int64_t k = depth; k % kTermsOf<E> != 0; ++k) to->terms[k] = 0;
    return;
  }
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) TurnSomeRows<4>(sources + r, depth, to + r, width);
  for (; r + 2 <= rows; r += 2) TurnSomeRows<2>(sources + r, depth, to + r, width);
  if (r < rows) TurnSomeRows<1>(sources + r, depth, to + r, width);
}
template <class T>
HWY_INLINE void TurnRows(const T* const* sources, int64_t rows, int64_t depth, Quad* to,
                         int64_t width) {
  TurnElements(sources, rows, depth, to, width);
}
template <class T>
HWY_INLINE void TurnRows(const T* const* sources, int64_t rows, int64_t depth, Pair* to,
                         int64_t width) {
  TurnElements(sources, rows, depth, to, width);
}

template <int kStride, class E, class T>
void InterleaveRect(const T* source, const Rect& rect, const Panels<E>& panels, int64_t k0,
                    int64_t r0) {
  constexpr int kEach = static_cast<int>(kTermsOf<E>);
  ForEachPiece(panels, k0, r0, rect.rows, [&](int64_t r, int64_t count, E* to) {
    constexpr int64_t kMost = 256;  // rows for which there are zeros
    for (int64_t done = 0, some = 0; done < count; done += some) {
      some = std::min(kMost, count - done);
      const bool more = r + done + some < rect.rows;
      const T* from = source + (r + done) * kStride;
      const T* sources[kEach];
      for (int64_t k = 0; k < rect.depth; k += kEach) {
        for (int i = 0; i < kEach; ++i) {
          sources[i] = k + i < rect.depth ? from + (k + i) * rect.k_stride
                                          : reinterpret_cast<const T*>(kZeros);
        }
        InterleaveRows<kStride>(sources, some, more, to + done + k / kEach * panels.width);
      }
    }
  });
}

// Rows next to each other, of several panels: a few up to a multiple of four, then in eights.
template <class E, class T>
void InterleaveLongRect(const T* source, const Rect& rect, const Panels<E>& panels, int64_t k0,
                        int64_t r0) {
  const bool turns = panels.width == 1 && rect.rows >= 8;
  const int64_t first = turns ? 0 : (4 - r0 % 4) % 4;
  const int64_t least = first == 0 ? panels.width : 2 * panels.width;
  if (rect.rows <= least || rect.rows > Tiling::kMostColumns || (!turns && panels.width % 4 != 0)) {
    return InterleaveRect<1>(source, rect, panels, k0, r0);
  }
  if (first > 0) {
    InterleaveRect<1>(source, Rect{first, 1, rect.depth, rect.k_stride}, panels, k0, r0);
  }
  const T* sources[Chunks::kLongestOfElements + kTermsOf<E> - 1];
  const int64_t terms = CeilDiv(rect.depth, kTermsOf<E>) * kTermsOf<E>;
  for (int64_t k = 0; k < rect.depth; ++k) sources[k] = source + (first + k * rect.k_stride);
  for (int64_t k = rect.depth; k < terms; ++k) sources[k] = reinterpret_cast<const T*>(kZeros);
  if (turns) return TurnNeighbours(sources, terms, rect.rows, panels, k0, r0);
  InterleaveNeighbours(sources, terms, rect.rows - first, panels, k0, r0 + first);
}

template <class T, class E>
void PackRect(const T* source, const Rect& rect, const Panels<E>& panels, int64_t k0, int64_t r0) {
  if (rect.row_stride == 1) return InterleaveLongRect(source, rect, panels, k0, r0);
  if (rect.row_stride == 2) return InterleaveRect<2>(source, rect, panels, k0, r0);
  constexpr int64_t kEach = kTermsOf<E>;
  const int64_t step = rect.row_stride, width = panels.width;
  ForEachPiece(panels, k0, r0, rect.rows, [&](int64_t r, int64_t count, E* to) {
    const T* from = source + r * step;
    if (rect.k_stride == 1) {
      for (int64_t i = 0; i < count; i += 4) {
        const T* sources[4];
        const int64_t some = std::min<int64_t>(4, count - i);
        for (int64_t j = 0; j < some; ++j) sources[j] = from + (i + j) * step;
        TurnElements(sources, some, rect.depth, to + i, width);
      }
      return;
    }
    for (int64_t k = 0; k < rect.depth; k += kEach, to += width) {
      for (int64_t i = 0; i < count; ++i) {
        to[i] =
            GatherElement<E>(from + i * step + k * rect.k_stride, rect.k_stride, rect.depth - k);
      }
    }
  });
}

// Calls kernels(from, channels, count, to) for the channels of an element, up to as many as are
// left, of the `count` rows of each panel.
template <class T, class E, class Kernels>
HWY_INLINE void ForEachChannels(const T* source, const TapRect& rect, const Panels<E>& panels,
                                const Kernels& kernels) {
  constexpr int64_t kEach = kTermsOf<E>;
  const auto some = [&](int64_t p, int64_t c) {
    kernels(source + (p * rect.row_stride + c * rect.channel_stride), rect.channels - c,
            std::min(panels.width, rect.rows - p), panels.At(c / kEach, p));
  };
  // In the order of memory.
  if (rect.row_stride > rect.channel_stride) {
    for (int64_t p = 0; p < rect.rows; p += panels.width) {
      for (int64_t c = 0; c < rect.channels; c += kEach) some(p, c);
    }
    return;
  }
  for (int64_t c = 0; c < rect.channels; c += kEach) {
    for (int64_t p = 0; p < rect.rows; p += panels.width) some(p, c);
  }
}

// See rect-inl.h; an element has channels of one tap.
template <class T, class E>
void PackScatteredTaps(const T* source, const TapRect& rect, const int64_t* offsets,
                       const Panels<E>& panels) {
  const int64_t tap_step = CeilDiv(rect.channels, kTermsOf<E>) * panels.width;
  ForEachChannels(source, rect, panels, [&](const T* from, int64_t channels, int64_t count, E* to) {
    for (int64_t t = 0; t < rect.taps; ++t, to += tap_step) {
      for (int64_t r = 0; r < count; ++r) {
        to[r] = GatherElement<E>(from + r * rect.row_stride + offsets[t], rect.channel_stride,
                                 channels);
      }
    }
  });
}

// Taps next to each other of an element's channels: eight or four at a time.
template <class E, class T>
HWY_INLINE void TurnKernels(const T* from, int64_t channel_stride, int64_t taps, E* to,
                            int64_t tap_step) {
  constexpr int kEach = static_cast<int>(kTermsOf<E>);
  const D8 d;
  E elements[8];
  V8 loaded[kEach];
  const auto store = [&](int count) {
    for (int i = 0; i < count; ++i, to += tap_step) *to = elements[i];
  };
  int64_t t = 0;
  for (; t + 8 <= taps; t += 8) {
#pragma GCC unroll 4
    for (int i = 0; i < kEach; ++i) loaded[i] = LoadBits(d, from + i * channel_stride + t);
    StoreInterleaved(loaded, elements, elements + 4);
    store(8);
  }
  for (; t + 4 <= taps; t += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < kEach; ++i) loaded[i] = LoadHalfOfRows<1>(from + i * channel_stride + t);
    StoreInterleaved(loaded, elements, nullptr);
    store(4);
  }
  for (; t < taps; ++t, to += tap_step) *to = GatherElement<E>(from + t, channel_stride, kEach);
}

template <class T, class E>
void PackTapRect(const T* source, const TapRect& rect, const Panels<E>& panels) {
  const int64_t tap_step = CeilDiv(rect.channels, kTermsOf<E>) * panels.width;
  ForEachChannels(source, rect, panels, [&](const T* from, int64_t channels, int64_t count, E* to) {
    for (int64_t r = 0; r < count; ++r, from += rect.row_stride, ++to) {
      if (channels >= kTermsOf<E>) {
        TurnKernels(from, rect.channel_stride, rect.taps, to, tap_step);
        continue;
      }
      for (int64_t t = 0; t < rect.taps; ++t) {
        to[t * tap_step] = GatherElement<E>(from + t, rect.channel_stride, channels);
      }
    }
  });
}

// Whether none of the terms, of bf16, is an infinity or NaN.
template <class E>
bool AllFiniteElements(const E* elements, int64_t count) {
  const D8 d;
  const V8 exponent = hn::Set(d, 0x7f80);
  auto special = hn::Zero(d);
  const uint16_t* const terms = elements->terms;
  int64_t i = 0;
  for (; i + 8 <= kTermsOf<E> * count; i += 8) {
    const V8 bits = hn::And(hn::LoadU(d, terms + i), exponent);
    special = hn::Or(special, hn::VecFromMask(d, hn::Eq(bits, exponent)));
  }
  bool finite = hn::AllTrue(d, hn::Eq(special, hn::Zero(d)));
  for (; i < kTermsOf<E> * count; ++i) finite = finite && (terms[i] & 0x7f80) != 0x7f80;
  return finite;
}
inline bool AllFinite(const Quad* quads, int64_t count) { return AllFiniteElements(quads, count); }
inline bool AllFinite(const Pair* pairs, int64_t count) { return AllFiniteElements(pairs, count); }

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
