// Rectangles of a strided tensor of 16-bit elements into panels of quads, four terms along k next
// to each other: what rect-inl.h does for floats. Nothing is converted, bits are moved.
#if defined(CONVGRAD_CPU_RECT_QUADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_RECT_QUADS_INL_H_
#undef CONVGRAD_CPU_RECT_QUADS_INL_H_
#else
#define CONVGRAD_CPU_RECT_QUADS_INL_H_
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

// Up to four terms, `stride` apart.
template <class T>
HWY_INLINE Quad GatherQuad(const T* from, int64_t stride, int64_t count) {
  Quad quad{};
  if (count >= 4) {
    for (int i = 0; i < 4; ++i) quad.terms[i] = LoadAt<T>(from, i * stride).bits;
    return quad;
  }
  for (int64_t i = 0; i < count; ++i) quad.terms[i] = LoadAt<T>(from, i * stride).bits;
  return quad;
}

template <class T>
HWY_INLINE void SetElement(const T* from, int64_t stride, int64_t count, Quad& element) {
  element = GatherQuad(from, stride, count);
}

// Eight or four rows, one or two elements apart; with 2, one more is read.
template <int kStride, class T>
HWY_INLINE V8 LoadRows(const T* at) {
  const D8 d;
  if constexpr (kStride == 1) return LoadBits(d, at);
  return hn::ConcatEven(d, LoadBits(d, at + 8), LoadBits(d, at));
}
template <int kStride, class T>
HWY_INLINE V8 LoadHalfOfRows(const T* at) {
  const D8 d;
  const hn::Half<D8> half;
  if constexpr (kStride == 1) return hn::ZeroExtendVector(d, LoadBits(half, at));
  const V8 pairs = LoadBits(d, at);
  return hn::ConcatEven(d, pairs, pairs);
}

struct QuadRows {
  V8 r01, r23, r45, r67;  // rows, two in each
};

// Rows of four k.
HWY_INLINE QuadRows Interleave(V8 k0, V8 k1, V8 k2, V8 k3) {
  const D8 d;
  const hn::Repartition<uint32_t, D8> dd;
  const auto lower01 = hn::BitCast(dd, hn::InterleaveLower(d, k0, k1));
  const auto lower23 = hn::BitCast(dd, hn::InterleaveLower(d, k2, k3));
  const auto upper01 = hn::BitCast(dd, hn::InterleaveUpper(d, k0, k1));
  const auto upper23 = hn::BitCast(dd, hn::InterleaveUpper(d, k2, k3));
  return {hn::BitCast(d, hn::InterleaveLower(dd, lower01, lower23)),
          hn::BitCast(d, hn::InterleaveUpper(dd, lower01, lower23)),
          hn::BitCast(d, hn::InterleaveLower(dd, upper01, upper23)),
          hn::BitCast(d, hn::InterleaveUpper(dd, upper01, upper23))};
}

HWY_INLINE void StoreTwo(V8 rows, Quad* to) { hn::StoreU(rows, D8(), to->terms); }

// Rows of four k, each contiguous or every other element. Without `more`, nothing follows the last.
template <int kStride, class T>
HWY_INLINE void InterleaveRows(const T* const* k, int64_t rows, bool more, Quad* to) {
  const int64_t vectors = kStride == 1 || more ? rows : rows - 1;
  int64_t r = 0;
  for (; r + 8 <= vectors; r += 8) {
    const int64_t at = r * kStride;
    const QuadRows quads = Interleave(LoadRows<kStride>(k[0] + at), LoadRows<kStride>(k[1] + at),
                                      LoadRows<kStride>(k[2] + at), LoadRows<kStride>(k[3] + at));
    StoreTwo(quads.r01, to + r);
    StoreTwo(quads.r23, to + r + 2);
    StoreTwo(quads.r45, to + r + 4);
    StoreTwo(quads.r67, to + r + 6);
  }
  const auto four = [&](int64_t first) {
    const int64_t at = first * kStride;
    const QuadRows quads =
        Interleave(LoadHalfOfRows<kStride>(k[0] + at), LoadHalfOfRows<kStride>(k[1] + at),
                   LoadHalfOfRows<kStride>(k[2] + at), LoadHalfOfRows<kStride>(k[3] + at));
    StoreTwo(quads.r01, to + first);
    StoreTwo(quads.r23, to + first + 2);
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
    for (int i = 0; i < 4; ++i) to[r].terms[i] = LoadAt<T>(k[i], r * kStride).bits;
  }
}

// Rows that are next to each other, r0 and the width of panels multiples of four: so many of them
// have one place.
template <class T>
void InterleaveNeighbours(const T* const* sources, int64_t terms, int64_t rows,
                          const Panels<Quad>& panels, int64_t k0, int64_t r0) {
  Quad* places[Tiling::kMostColumns / 4];
  for (int64_t r = 0; r < rows; r += 4) places[r / 4] = panels.At(k0, r0 + r);
  const D8 d;
  for (int64_t k = 0; k < terms; k += 4) {
    const T *const s0 = sources[k], *const s1 = sources[k + 1], *const s2 = sources[k + 2],
                   *const s3 = sources[k + 3];
    const int64_t at = k / 4 * panels.width;
    Quad* const* place = places;
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8, place += 2) {
      const QuadRows quads = Interleave(LoadBits(d, s0 + r), LoadBits(d, s1 + r),
                                        LoadBits(d, s2 + r), LoadBits(d, s3 + r));
      StoreTwo(quads.r01, place[0] + at);
      StoreTwo(quads.r23, place[0] + at + 2);
      StoreTwo(quads.r45, place[1] + at);
      StoreTwo(quads.r67, place[1] + at + 2);
    }
    for (; r < rows; r += 4, ++place) {
      const T* const four[] = {s0 + r, s1 + r, s2 + r, s3 + r};
      InterleaveRows<1>(four, std::min<int64_t>(4, rows - r), true, *place + at);
    }
  }
}

// Rows that are contiguous along k: eight terms of two of them are two quads of each.
template <int kRows, class T>
HWY_INLINE void TurnSomeRows(const T* const* sources, int64_t depth, Quad* to, int64_t width) {
  const D8 d;
  const hn::Repartition<uint64_t, D8> dd;
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8, to += 2 * width) {
#pragma GCC unroll 4
    for (int r = 0; r + 2 <= kRows; r += 2) {
      const auto x = hn::BitCast(dd, LoadBits(d, sources[r] + k));
      const auto y = hn::BitCast(dd, LoadBits(d, sources[r + 1] + k));
      StoreTwo(hn::BitCast(d, hn::InterleaveLower(dd, x, y)), to + r);
      StoreTwo(hn::BitCast(d, hn::InterleaveUpper(dd, x, y)), to + width + r);
    }
    if (kRows == 1) {
      to[0] = GatherQuad(sources[0] + k, 1, 4);
      to[width] = GatherQuad(sources[0] + k + 4, 1, 4);
    }
  }
  for (; k < depth; k += 4, to += width) {
    for (int r = 0; r < kRows; ++r) to[r] = GatherQuad(sources[r] + k, 1, depth - k);
  }
}

// Up to a panel of rows that are contiguous along k, from anywhere; `width` quads from one k to the
// next.
template <class T>
HWY_INLINE void TurnRows(const T* const* sources, int64_t rows, int64_t depth, Quad* to,
                         int64_t width) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) TurnSomeRows<4>(sources + r, depth, to + r, width);
  for (; r + 2 <= rows; r += 2) TurnSomeRows<2>(sources + r, depth, to + r, width);
  if (r < rows) TurnSomeRows<1>(sources + r, depth, to + r, width);
}

template <int kStride, class T>
void InterleaveRect(const T* source, const Rect& rect, const Panels<Quad>& panels, int64_t k0,
                    int64_t r0) {
  ForEachPiece(panels, k0, r0, rect.rows, [&](int64_t r, int64_t count, Quad* to) {
    constexpr int64_t kMost = 256;  // rows for which there are zeros
    for (int64_t done = 0, some = 0; done < count; done += some) {
      some = std::min(kMost, count - done);
      const bool more = r + done + some < rect.rows;
      const T* from = source + (r + done) * kStride;
      const T* sources[4];
      for (int64_t k = 0; k < rect.depth; k += 4) {
        for (int i = 0; i < 4; ++i) {
          sources[i] = k + i < rect.depth ? from + (k + i) * rect.k_stride
                                          : reinterpret_cast<const T*>(kZeros);
        }
        InterleaveRows<kStride>(sources, some, more, to + done + k / 4 * panels.width);
      }
    }
  });
}

// Rows next to each other, of several panels: a few up to a multiple of four, then in eights.
template <class T>
void InterleaveRect(const T* source, Rect rect, const Panels<Quad>& panels, int64_t k0,
                    int64_t r0) {
  const int64_t first = (4 - r0 % 4) % 4;
  const int64_t least = first == 0 ? panels.width : 2 * panels.width;
  if (rect.rows <= least || rect.rows > Tiling::kMostColumns || panels.width % 4 != 0) {
    return InterleaveRect<1>(source, rect, panels, k0, r0);
  }
  if (first > 0) InterleaveRect<1>(source, {first, 1, rect.depth, rect.k_stride}, panels, k0, r0);
  const T* sources[Chunks::kLongestOfElements + 3];
  const int64_t terms = CeilDiv(rect.depth, 4) * 4;
  for (int64_t k = 0; k < rect.depth; ++k) sources[k] = source + (first + k * rect.k_stride);
  for (int64_t k = rect.depth; k < terms; ++k) sources[k] = reinterpret_cast<const T*>(kZeros);
  InterleaveNeighbours(sources, terms, rect.rows - first, panels, k0, r0 + first);
}

template <class T>
void PackRect(const T* source, const Rect& rect, const Panels<Quad>& panels, int64_t k0,
              int64_t r0) {
  if (rect.row_stride == 1) return InterleaveRect(source, rect, panels, k0, r0);
  if (rect.row_stride == 2) return InterleaveRect<2>(source, rect, panels, k0, r0);
  const int64_t step = rect.row_stride, width = panels.width;
  ForEachPiece(panels, k0, r0, rect.rows, [&](int64_t r, int64_t count, Quad* to) {
    const T* from = source + r * step;
    if (rect.k_stride == 1) {
      for (int64_t i = 0; i < count; i += 4) {
        const T* sources[4];
        const int64_t some = std::min<int64_t>(4, count - i);
        for (int64_t j = 0; j < some; ++j) sources[j] = from + (i + j) * step;
        TurnRows(sources, some, rect.depth, to + i, width);
      }
      return;
    }
    for (int64_t k = 0; k < rect.depth; k += 4, to += width) {
      for (int64_t i = 0; i < count; ++i) {
        to[i] = GatherQuad(from + i * step + k * rect.k_stride, rect.k_stride, rect.depth - k);
      }
    }
  });
}

// See rect-inl.h; channels of a tap are in quads.
template <class T>
void PackScatteredTaps(const T* source, const TapRect& rect, const int64_t* offsets,
                       const Panels<Quad>& panels) {
  const int64_t width = panels.width, tap_quads = CeilDiv(rect.channels, 4) * width;
  for (int64_t p = 0; p < rect.rows; p += width) {
    const int64_t count = std::min(width, rect.rows - p);
    for (int64_t c = 0; c < rect.channels; c += 4) {
      const T* from = source + (p * rect.row_stride + c * rect.channel_stride);
      Quad* to = panels.At(c / 4, p);
      for (int64_t t = 0; t < rect.taps; ++t, to += tap_quads) {
        for (int64_t r = 0; r < count; ++r) {
          to[r] = GatherQuad(from + r * rect.row_stride + offsets[t], rect.channel_stride,
                             rect.channels - c);
        }
      }
    }
  }
}

// Taps next to each other: eight or four of four channels at a time.
template <class T>
HWY_INLINE void TurnKernels(const T* from, int64_t channel_stride, int64_t taps, Quad* to,
                            int64_t tap_quads) {
  const D8 d;
  const T *const c1 = from + channel_stride, *const c2 = c1 + channel_stride,
                 *const c3 = c2 + channel_stride;
  const auto store = [&](V8 two) {
    alignas(16) uint16_t quads[8];
    hn::Store(two, d, quads);
    std::memcpy(to->terms, quads, sizeof(Quad));
    std::memcpy((to + tap_quads)->terms, quads + 4, sizeof(Quad));
    to += 2 * tap_quads;
  };
  int64_t t = 0;
  for (; t + 8 <= taps; t += 8) {
    const QuadRows rows = Interleave(LoadBits(d, from + t), LoadBits(d, c1 + t),
                                     LoadBits(d, c2 + t), LoadBits(d, c3 + t));
    store(rows.r01);
    store(rows.r23);
    store(rows.r45);
    store(rows.r67);
  }
  for (; t + 4 <= taps; t += 4) {
    const QuadRows rows = Interleave(LoadHalfOfRows<1>(from + t), LoadHalfOfRows<1>(c1 + t),
                                     LoadHalfOfRows<1>(c2 + t), LoadHalfOfRows<1>(c3 + t));
    store(rows.r01);
    store(rows.r23);
  }
  for (; t < taps; ++t, to += tap_quads) *to = GatherQuad(from + t, channel_stride, 4);
}

template <class T>
void PackTapRect(const T* source, const TapRect& rect, const Panels<Quad>& panels) {
  const int64_t width = panels.width, tap_quads = CeilDiv(rect.channels, 4) * width;
  for (int64_t p = 0; p < rect.rows; p += width) {
    const int64_t count = std::min(width, rect.rows - p);
    for (int64_t c = 0; c < rect.channels; c += 4) {
      const T* from = source + (p * rect.row_stride + c * rect.channel_stride);
      Quad* to = panels.At(c / 4, p);
      for (int64_t r = 0; r < count; ++r, from += rect.row_stride, ++to) {
        if (c + 4 <= rect.channels) {
          TurnKernels(from, rect.channel_stride, rect.taps, to, tap_quads);
          continue;
        }
        for (int64_t t = 0; t < rect.taps; ++t) {
          to[t * tap_quads] = GatherQuad(from + t, rect.channel_stride, rect.channels - c);
        }
      }
    }
  }
}

// Whether none of the terms is an infinity or NaN.
inline bool AllFinite(const Quad* quads, int64_t count) {
  const D8 d;
  const V8 exponent = hn::Set(d, 0x7f80);
  auto special = hn::Zero(d);
  const uint16_t* const terms = quads->terms;
  int64_t i = 0;
  for (; i + 8 <= 4 * count; i += 8) {
    const V8 bits = hn::And(hn::LoadU(d, terms + i), exponent);
    special = hn::Or(special, hn::VecFromMask(d, hn::Eq(bits, exponent)));
  }
  bool finite = hn::AllTrue(d, hn::Eq(special, hn::Zero(d)));
  for (; i < 4 * count; ++i) finite = finite && (terms[i] & 0x7f80) != 0x7f80;
  return finite;
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
