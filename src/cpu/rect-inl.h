// Rectangles of a strided tensor into panels, widened to f32. Everything that packing does to
// memory is here. Compiled once per instruction set.
#if defined(CONVGRAD_CPU_RECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_RECT_INL_H_
#undef CONVGRAD_CPU_RECT_INL_H_
#else
#define CONVGRAD_CPU_RECT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/numerics.h"
#include "cpu/tiling.h"
#include "cpu/turn-inl.h"
#include "cpu/vectors-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Panels next to each other: element (k, r) is in panel r / width, at [k, r % width] of it.
template <class E>
struct Panels {
  E* first = nullptr;
  int64_t width = 0;
  int64_t depth = 0;  // k of a panel

  E* At(int64_t k, int64_t r) const {
    return first + r / width * (depth * width) + k * width + r % width;
  }
};

// Rows of zeros, for pixels that a tap reads outside: as many as a chunk has terms, and 1024 of 16
// bits.
inline constexpr float kZeros[512] = {};
static_assert(Chunks::kLongest <= 512 && Chunks::kLongestOfElements <= 1024 &&
              Tiling::kMostColumns <= 1024);

// panels[k0 + k, r0 + r] = source[r * row_stride + k * k_stride].
struct Rect {
  int64_t rows = 0, row_stride = 0;
  int64_t depth = 0, k_stride = 0;
};

// Calls piece(first row, rows, where it goes) for the part of the rows that lies in each panel.
template <class E, class Piece>
HWY_INLINE void ForEachPiece(const Panels<E>& panels, int64_t k0, int64_t r0, int64_t rows,
                             const Piece& piece) {
  for (int64_t r = 0; r < rows;) {
    const int64_t count = std::min(rows - r, panels.width - (r0 + r) % panels.width);
    piece(r, count, panels.At(k0, r0 + r));
    r += count;
  }
}

template <class E>
HWY_INLINE void ZeroRow(E* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = {};
}

// A few floats: a call of memset, which the compiler would make of a loop, costs more than they do.
HWY_INLINE void ZeroRow(float* to, int64_t count) {
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; count >= 4; count -= 4, to += 4) hn::StoreU(hn::Zero(d), d, to);
#else
  for (; count >= 4; count -= 4, to += 4) to[0] = to[1] = to[2] = to[3] = 0.0f;
#endif
  if (count > 0) to[0] = 0.0f;
  if (count > 1) to[1] = 0.0f;
  if (count > 2) to[2] = 0.0f;
}

template <class E>
void ZeroRect(const Panels<E>& panels, int64_t k0, int64_t r0, int64_t rows, int64_t depth) {
  ForEachPiece(panels, k0, r0, rows, [&](int64_t, int64_t count, E* to) {
    for (int64_t k = 0; k < depth; ++k, to += panels.width) ZeroRow(to, count);
  });
}

// The element that starts with a term; `count` terms, `stride` apart, are there.
template <class T>
HWY_INLINE void SetElement(const T* from, int64_t, int64_t, float& element) {
  element = Widen(LoadAt<T>(from, 0));
}

// Four rows at a time: row by row, each k is a line of the panel for one float (0.7 of the time).
template <class T>
HWY_INLINE void GatherPiece(const T* source, const Rect& rect, int64_t rows, float* to,
                            int64_t width) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T *s0 = source + r * rect.row_stride, *s1 = s0 + rect.row_stride,
            *s2 = s1 + rect.row_stride, *s3 = s2 + rect.row_stride;
    float* at = to + r;
    for (int64_t k = 0; k < rect.depth; ++k, at += width) {
      const int64_t i = k * rect.k_stride;
      at[0] = Widen(LoadAt<T>(s0, i));
      at[1] = Widen(LoadAt<T>(s1, i));
      at[2] = Widen(LoadAt<T>(s2, i));
      at[3] = Widen(LoadAt<T>(s3, i));
    }
  }
  for (; r < rows; ++r) {
    for (int64_t k = 0; k < rect.depth; ++k) {
      to[k * width + r] = Widen(LoadAt<T>(source, r * rect.row_stride + k * rect.k_stride));
    }
  }
}

// panels[t * channels + c, r] = source[r * row_stride + c * channel_stride + t]
struct TapRect {
  int64_t rows = 0, row_stride = 0;
  int64_t channels = 0, channel_stride = 0;
  int64_t taps = 0;
};

// Calls kernels(from, rows, to) for each channel of each panel, in the order of memory: against it,
// 512 channels of 256 rows took 1.3 to 1.8 times as long (Neoverse-N1).
template <class T, class Kernels>
HWY_INLINE void ForEachChannel(const T* source, const TapRect& rect, const Panels<float>& panels,
                               const Kernels& kernels) {
  const auto some = [&](int64_t p, int64_t c) {
    kernels(source + (p * rect.row_stride + c * rect.channel_stride),
            std::min(panels.width, rect.rows - p), panels.At(c, p));
  };
  if (rect.row_stride > rect.channel_stride) {
    for (int64_t p = 0; p < rect.rows; p += panels.width) {
      for (int64_t c = 0; c < rect.channels; ++c) some(p, c);
    }
    return;
  }
  for (int64_t c = 0; c < rect.channels; ++c) {
    for (int64_t p = 0; p < rect.rows; p += panels.width) some(p, c);
  }
}

// panels[t * channels + c, r] = source[r * row_stride + c * channel_stride + offsets[t]]: the taps
// of one stride phase, of kernels whose taps are next to each other. A kernel is a cache line or
// so; tap by tap over all kernels it would be fetched again for each.
template <class T>
void PackScatteredTaps(const T* source, const TapRect& rect, const int64_t* offsets,
                       const Panels<float>& panels) {
  const int64_t width = panels.width;
  ForEachChannel(source, rect, panels, [&](const T* from, int64_t rows, float* to) {
    for (int64_t t = 0; t < rect.taps; ++t, to += rect.channels * width) {
      for (int64_t r = 0; r < rows; ++r) {
        to[r] = Widen(LoadAt<T>(from, r * rect.row_stride + offsets[t]));
      }
    }
  });
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
void PackTapRect(const T* source, const TapRect& rect, const Panels<float>& panels) {
  for (int64_t r = 0; r < rect.rows; ++r) {
    float* to = panels.At(0, r);
    for (int64_t c = 0; c < rect.channels; ++c) {
      for (int64_t t = 0; t < rect.taps; ++t) {
        to[(t * rect.channels + c) * panels.width] =
            Widen(LoadAt<T>(source, r * rect.row_stride + c * rect.channel_stride + t));
      }
    }
  }
}

template <class T>
void PackRect(const T* source, const Rect& rect, const Panels<float>& panels, int64_t k0,
              int64_t r0) {
  ForEachPiece(panels, k0, r0, rect.rows, [&](int64_t r, int64_t count, float* to) {
    GatherPiece(source + r * rect.row_stride, rect, count, to, panels.width);
  });
}

// Up to a panel of rows that are contiguous along k, from anywhere; `width` floats from one k to
// the next.
template <class T>
void TurnRows(const T* const* sources, int64_t rows, int64_t depth, float* to, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < depth; ++k) to[k * width + r] = Widen(LoadAt<T>(sources[r], k));
  }
}

#else
// 128-bit vectors where rows are few: packing is bound by loads and stores of short runs, not by
// their width.

// Elements 0, s, 2s and 3s from `at`, for a stride s of 1 or 2; with 2, one more is read.
template <int kStride, class T>
HWY_INLINE V4 LoadFour(const T* at) {
  const D4 d;
  if constexpr (kStride == 1) {
    return LoadBytes(d, at);
  } else if constexpr (sizeof(T) == sizeof(float)) {
    return hn::ConcatEven(d, LoadBytes(d, at + 4), LoadBytes(d, at));
  } else {
    const auto pairs = LoadBits(hn::Rebind<uint32_t, D4>(), at);
    return WidenBits(d, hn::TruncateTo(hn::Rebind<uint16_t, D4>(), pairs), T());
  }
}

#if CONVGRAD_HAS_AVX512
// Up to a vector, of floats that are one or two apart: masks read nothing else.
template <int kStride>
HWY_INLINE void CopyFew(const float* from, int64_t count, float* to) {
  const D d;
  const auto load = [&](int64_t first) {
    const int64_t read = std::clamp<int64_t>(kStride * (count - 1) + 1 - first, 0, kLanes);
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(read)), d, from + first);
  };
  V values = load(0);
  if constexpr (kStride == 2) values = hn::ConcatEven(d, load(kLanes), values);
  hn::BlendedStore(values, hn::FirstN(d, static_cast<size_t>(count)), d, to);
}
#endif

// Of `count` elements that are kStride apart, as many as vectors can copy: those that begin so many
// before `vectors` as they have lanes (with a stride of 2 they read one element beyond their last),
// and, with masks, the rest. Returns how many.
template <int kStride, class T>
HWY_INLINE int64_t CopyVectors(const T* from, [[maybe_unused]] int64_t count, int64_t vectors,
                               float* to) {
  const D d;
  const D4 four;
  int64_t i = 0;
  if constexpr (kLanes > 4 && (kStride == 1 || sizeof(T) == sizeof(float))) {
    for (; i + kLanes <= vectors; i += kLanes) {
      const T* const at = from + i * kStride;
      if constexpr (kStride == 1) {
        hn::StoreU(LoadBytes(d, at), d, to + i);
      } else {
        hn::StoreU(hn::ConcatEven(d, LoadBytes(d, at + kLanes), LoadBytes(d, at)), d, to + i);
      }
    }
  }
#if CONVGRAD_HAS_AVX512
  if constexpr (sizeof(T) == sizeof(float)) {
    if (i < count) CopyFew<kStride>(from + i * kStride, count - i, to + i);
    return count;
  }
#endif
  for (; i + 4 <= vectors; i += 4) {
    hn::StoreU(LoadFour<kStride>(from + i * kStride), four, to + i);
  }
  return i;
}

// Rows that are next to each other into whole panels, kVectors vectors wide each: whole cache lines
// are read where the rows go to several panels.
template <int kVectors, class Tag, class T>
HWY_INLINE void CopyWholePanels(Tag d, const T* source, const Rect& rect, float* first,
                                int64_t panel_floats) {
  constexpr int kStep = static_cast<int>(hn::MaxLanes(Tag()));
  for (int64_t k = 0; k < rect.depth; ++k, source += rect.k_stride, first += kStep * kVectors) {
    const T* from = source;
    float* to = first;
    for (int64_t r = 0; r < rect.rows; r += kStep * kVectors) {
#pragma GCC unroll 6
      for (int i = 0; i < kVectors; ++i) {
        hn::StoreU(LoadBytes(d, from + kStep * i), d, to + kStep * i);
      }
      from += kStep * kVectors;
      to += panel_floats;
    }
  }
}

// Of the widths that tiles have; false for others.
template <class T>
bool CopyPanels(const T* source, const Rect& rect, float* first, int64_t width,
                int64_t panel_floats) {
  const D whole;
  const D4 four;
  if (width == 2 * kLanes)
    CopyWholePanels<2>(whole, source, rect, first, panel_floats);
  else if (width == 3 * kLanes)
    CopyWholePanels<3>(whole, source, rect, first, panel_floats);
  else if (width == 6 * kLanes)
    CopyWholePanels<6>(whole, source, rect, first, panel_floats);
  else if (width == 12)
    CopyWholePanels<3>(four, source, rect, first, panel_floats);
  else if (width == 8)
    CopyWholePanels<2>(four, source, rect, first, panel_floats);
  else if (width == 4)
    CopyWholePanels<1>(four, source, rect, first, panel_floats);
  else
    return false;
  return true;
}

// Rows fewer than a vector has lanes, next to each other.
template <int kRows, class T>
HWY_INLINE void CopyFewRows(const T* from, const Rect& rect, float* to, int64_t width) {
  for (int64_t k = 0; k < rect.depth; ++k, from += rect.k_stride, to += width) {
#pragma GCC unroll 3
    for (int i = 0; i < kRows; ++i) to[i] = Widen(LoadAt<T>(from, i));
  }
}

// A part of one panel; the rows are one or two elements apart. With `last`, nothing follows them.
template <int kStride, class T>
HWY_INLINE void CopyPiece(const T* from, const Rect& rect, bool last, float* to, int64_t width) {
  const D4 four;
  const int64_t count = rect.rows, vectors = kStride == 1 || !last ? count : count - 1;
  if constexpr (kStride == 1 && !(CONVGRAD_HAS_AVX512 && sizeof(T) == sizeof(float))) {
    if (count == 3) return CopyFewRows<3>(from, rect, to, width);
    if (count == 2) return CopyFewRows<2>(from, rect, to, width);
    if (count == 1) return CopyFewRows<1>(from, rect, to, width);
  }
  for (int64_t k = 0; k < rect.depth; ++k, from += rect.k_stride, to += width) {
    int64_t i = CopyVectors<kStride>(from, count, vectors, to);
    if (kStride == 1 && i < count && count >= 4) {  // the last four again
      hn::StoreU(LoadBytes(four, from + count - 4), four, to + count - 4);
      continue;
    }
    for (; i < count; ++i) to[i] = Widen(LoadAt<T>(from, i * kStride));
  }
}

// Rows are one or two elements apart: one copy per k. What is left of a panel first, then whole
// panels.
template <int kStride, class T>
void CopyRows(const T* source, const Rect& rect, const Panels<float>& panels, int64_t k0,
              int64_t r0) {
  const int64_t width = panels.width;
  for (int64_t r = 0; r < rect.rows;) {
    const int64_t free = width - (r0 + r) % width, rest = rect.rows - r;
    int64_t count = std::min(free, rest);
    const T* from = source + r * kStride;
    float* to = panels.At(k0, r0 + r);
    if (kStride == 1 && free == width && rest >= width) {
      count = rest - rest % width;
      if (CopyPanels(from, {count, 1, rect.depth, rect.k_stride}, to, width,
                     panels.depth * width)) {
        r += count;
        continue;
      }
      count = width;
    }
    CopyPiece<kStride>(from, {count, kStride, rect.depth, rect.k_stride}, r + count == rect.rows,
                       to, width);
    r += count;
  }
}

// Four rows whose k are one or two elements apart: four by four at a time, turned in registers.
// `width` floats from one k to the next.
template <int kStride = 1, class T>
HWY_INLINE void TurnFourRows(const T* s0, const T* s1, const T* s2, const T* s3, int64_t depth,
                             float* HWY_RESTRICT to, int64_t width) {
  const D4 d;
  int64_t k = 0;
  // With a stride of 2 the last vector would read one beyond the last element.
  const int64_t vectors = kStride == 1 ? depth : depth - 1;
  for (; k + 4 <= vectors; k += 4, to += 4 * width) {
    const int64_t at = k * kStride;
    const FourRows turned = Turn(LoadFour<kStride>(s0 + at), LoadFour<kStride>(s1 + at),
                                 LoadFour<kStride>(s2 + at), LoadFour<kStride>(s3 + at));
    hn::StoreU(turned.k0, d, to);
    hn::StoreU(turned.k1, d, to + width);
    hn::StoreU(turned.k2, d, to + 2 * width);
    hn::StoreU(turned.k3, d, to + 3 * width);
  }
  for (; k < depth; ++k, to += width) {
    to[0] = Widen(LoadAt<T>(s0, k * kStride));
    to[1] = Widen(LoadAt<T>(s1, k * kStride));
    to[2] = Widen(LoadAt<T>(s2, k * kStride));
    to[3] = Widen(LoadAt<T>(s3, k * kStride));
  }
}

template <class T>
void TurnRows(const T* const* sources, int64_t rows, int64_t depth, float* to, int64_t width) {
  const D4 d;
  int64_t r = 0;
#if CONVGRAD_HAS_AVX512
  // Of more than half a vector, those that there are.
  for (; 2 * (rows - r) > kLanes && depth >= 4; r += kLanes) {
    const auto some = hn::FirstN(D(), static_cast<size_t>(rows - r));
    TurnColumns<T>(RowTable<T>(sources + r, rows - r), depth, [&](int64_t k, V column) HWY_ATTR {
      hn::BlendedStore(column, some, D(), to + k * width + r);
    });
  }
  if (r >= rows) return;
#endif
  if (rows >= 8 && rows <= 12) {
    // All of a panel side by side: more of them are on their way from memory at a time (12 rows of
    // 64 floats, 512 bytes apart, Neoverse-N1: 1.6 cycles for each float, so 1.1).
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      for (r = 0; r + 4 <= rows; r += 4) {
        float* const at = to + k * width + r;
        const FourRows turned =
            Turn(LoadFour<1>(sources[r] + k), LoadFour<1>(sources[r + 1] + k),
                 LoadFour<1>(sources[r + 2] + k), LoadFour<1>(sources[r + 3] + k));
        hn::StoreU(turned.k0, d, at);
        hn::StoreU(turned.k1, d, at + width);
        hn::StoreU(turned.k2, d, at + 2 * width);
        hn::StoreU(turned.k3, d, at + 3 * width);
      }
    }
    for (; k < depth; ++k) {
      for (int64_t i = 0; i < r; ++i) to[k * width + i] = Widen(LoadAt<T>(sources[i], k));
    }
    if (depth < 4) r = 0;  // none turned yet
  }
  for (; r + 4 <= rows; r += 4) {
    TurnFourRows(sources[r], sources[r + 1], sources[r + 2], sources[r + 3], depth, to + r, width);
  }
  for (; r < rows; ++r) {
    for (int64_t k = 0; k < depth; ++k) to[k * width + r] = Widen(LoadAt<T>(sources[r], k));
  }
}

// Four rows whose channels and taps are one contiguous run.
template <class T>
void TurnFourKernels(const T* source, int64_t step, const TapRect& rect, float* to, int64_t width) {
  const D4 d;
  const int64_t run = rect.channels * rect.taps, tap_floats = rect.channels * width;
  int64_t tap = 0;
  float* at = to;  // of (tap, channel)
  const auto next = [&] {
    float* const here = at;
    at += tap_floats;
    if (++tap == rect.taps) {
      tap = 0;
      to += width;
      at = to;
    }
    return here;
  };
  int64_t e = 0;
  for (; e + 4 <= run; e += 4) {
    const T* from = source + e;
    const FourRows turned = Turn(LoadBytes(d, from), LoadBytes(d, from + step),
                                 LoadBytes(d, from + 2 * step), LoadBytes(d, from + 3 * step));
    hn::StoreU(turned.k0, d, next());
    hn::StoreU(turned.k1, d, next());
    hn::StoreU(turned.k2, d, next());
    hn::StoreU(turned.k3, d, next());
  }
  for (; e < run; ++e) {
    float* const here = next();
    for (int r = 0; r < 4; ++r) here[r] = Widen(LoadAt<T>(source, r * step + e));
  }
}

// Four rows of two or three taps, one contiguous run.
HWY_INLINE void TurnFourRuns(const float* source, int64_t taps, float* to, int64_t tap_floats) {
  const D4 d;
  V4 v0, v1, v2;
  if (taps == 2) {
    hn::LoadInterleaved2(d, source, v0, v1);
  } else {
    hn::LoadInterleaved3(d, source, v0, v1, v2);
    hn::StoreU(v2, d, to + 2 * tap_floats);
  }
  hn::StoreU(v0, d, to);
  hn::StoreU(v1, d, to + tap_floats);
}

// Up to a panel of rows, of one channel.
template <class T>
HWY_INLINE void TurnKernelsOfChannel(const T* from, const TapRect& rect, int64_t rows, float* to,
                                     int64_t width) {
  const int64_t step = rect.row_stride, taps = rect.taps, tap_floats = rect.channels * width;
  [[maybe_unused]] const bool runs = step == taps && (taps == 2 || taps == 3) &&
                                     reinterpret_cast<uintptr_t>(from) % alignof(float) == 0;
  for (; rows >= 4; rows -= 4, from += 4 * step, to += 4) {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (runs) {
        TurnFourRuns(from, taps, to, tap_floats);
        continue;
      }
    }
    TurnFourRows(from, from + step, from + 2 * step, from + 3 * step, taps, to, tap_floats);
  }
  for (; rows > 0; --rows, from += step, ++to) {
    for (int64_t t = 0; t < taps; ++t) to[t * tap_floats] = Widen(LoadAt<T>(from, t));
  }
}

template <class T>
void PackTapRect(const T* source, const TapRect& rect, const Panels<float>& panels) {
  const int64_t width = panels.width;
  if (rect.channel_stride != rect.taps) {
    return ForEachChannel(source, rect, panels, [&](const T* from, int64_t rows, float* to) {
      TurnKernelsOfChannel(from, rect, rows, to, width);
    });
  }
  float* panel = panels.first;
  for (int64_t p = 0; p < rect.rows; p += width, panel += panels.depth * width) {
    const T* from = source + p * rect.row_stride;
    const int64_t count = std::min(width, rect.rows - p);
    int64_t r = 0;
    for (; r + 4 <= count; r += 4, from += 4 * rect.row_stride) {
      TurnFourKernels(from, rect.row_stride, rect, panel + r, width);
    }
    for (int64_t c = 0; c < rect.channels; ++c) {
      TurnKernelsOfChannel(from + c * rect.taps, rect, count - r, panel + c * width + r, width);
    }
  }
}

template <class T>
void PackRect(const T* source, const Rect& rect, const Panels<float>& panels, int64_t k0,
              int64_t r0) {
  if (rect.row_stride == 1) return CopyRows<1>(source, rect, panels, k0, r0);
  if (rect.row_stride == 2) return CopyRows<2>(source, rect, panels, k0, r0);
  ForEachPiece(panels, k0, r0, rect.rows, [&](int64_t r, int64_t count, float* to) {
    const T* from = source + r * rect.row_stride;
    const int64_t step = rect.row_stride, width = panels.width;
    constexpr int64_t kRowsAhead = 8;
#if CONVGRAD_TURNS_VECTORS
    for (; rect.k_stride == 1 && rect.depth >= 4 && count >= kLanes; count -= kLanes) {
      for (int64_t i = kLanes; i < 2 * kLanes; ++i) hwy::Prefetch(from + i * step);
      TurnVectorOfRows(from, step, rect.depth, to, width);
      from += kLanes * step;
      to += kLanes;
    }
#endif
    if (rect.k_stride == 1 || rect.k_stride == 2) {
      for (; count >= 4; count -= 4, from += 4 * step, to += 4) {
        // Rows that are far apart begin where no CPU expects it (25 taps of 16 channels of a chunk,
        // channels last, Neoverse-N1: 60 ms, so 53).
        for (int64_t i = kRowsAhead; i < kRowsAhead + 4; ++i) hwy::Prefetch(from + i * step);
        rect.k_stride == 1 ? TurnFourRows<1>(from, from + step, from + 2 * step, from + 3 * step,
                                             rect.depth, to, width)
                           : TurnFourRows<2>(from, from + step, from + 2 * step, from + 3 * step,
                                             rect.depth, to, width);
      }
    }
    GatherPiece(from, rect, count, to, width);
  });
}
#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
