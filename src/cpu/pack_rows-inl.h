// Packing for CPUs that multiply by a float of memory for free: a by rows, [row, k], kRowPitch
// floats from row to row. Where k is contiguous in the tensor, which channels-last data is along
// channels and channels-first data along pixels, a row is copied and not turned.
#if defined(CONVGRAD_CPU_PACK_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PACK_ROWS_INL_H_
#undef CONVGRAD_CPU_PACK_ROWS_INL_H_
#else
#define CONVGRAD_CPU_PACK_ROWS_INL_H_
#endif

#include <algorithm>

#include "cpu/lines.h"
#include "cpu/pack-inl.h"
#include "cpu/tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE void CopyRun(const T* from, int64_t stride, int64_t count, float* to) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (stride == 1) i = CopyVectors<1>(from, count, count, to);
  // The last vector would read one beyond the last element.
  if (stride == 2) i = CopyVectors<2>(from, count, count - 1, to);
#endif
  for (; i < count; ++i) to[i] = Widen(LoadAt<T>(from, i * stride));
}

#if HWY_TARGET != HWY_SCALAR
// Terms of one row; the last element is filled up.
template <class T, class E>
HWY_INLINE void CopyElements(const T* from, int64_t stride, int64_t count, E* to) {
  uint16_t* const terms = to->terms;
  CopyTerms(from, stride, count, terms);
  for (int64_t k = count; k % kTermsOf<E> != 0; ++k) terms[k] = 0;
}
template <class T>
HWY_INLINE void CopyRun(const T* from, int64_t stride, int64_t count, Quad* to) {
  CopyElements(from, stride, count, to);
}
template <class T>
HWY_INLINE void CopyRun(const T* from, int64_t stride, int64_t count, Pair* to) {
  CopyElements(from, stride, count, to);
}
#endif

// Some pixels of a run through one tap. `row`: of the first of them.
template <class T, class E>
HWY_INLINE void PackTapByRows(const T* g, const TapView& view, Range pixels, Range channels,
                              E* row) {
  const int64_t terms = channels.size(), depth = CeilDiv(terms, kTermsOf<E>);
  const int64_t begin = std::clamp(view.begin, pixels.begin, pixels.end);
  const int64_t end = std::clamp(view.end, begin, pixels.end);
  for (int64_t i = pixels.begin; i < begin; ++i, row += kRowPitch) ZeroRow(row, depth);
  for (int64_t i = begin; i < end; ++i, row += kRowPitch) {
    CopyRun(g + (view.offset + (i - view.begin) * view.stride + channels.begin), 1, terms, row);
  }
  for (int64_t i = end; i < pixels.end; ++i, row += kRowPitch) ZeroRow(row, depth);
}

// a of fprop and dgrad, of channels that are next to each other: [pixel, (tap, channel)].
template <class T, class E>
void PackPixelsByRows(const Contraction& c, const T* g, Range pixels, const Chunk& chunk, E* to) {
  const Range channels = chunk.outer, taps = chunk.inner;
  const int64_t depth = CeilDiv(channels.size(), kTermsOf<E>);
  const int64_t taps1 = c.axes[1].taps, taps2 = c.axes[2].taps;
  ForEachPixelRun(c, pixels, [&](int64_t image, const Walk3& pixel, int64_t done, int64_t count) {
    Walk3 tap(taps.begin, taps1, taps2);
    for (int64_t t = taps.begin, k0 = 0; t < taps.end; ++t, k0 += depth) {
      const TapView view = ViewThroughTap(c, image, pixel, count, tap);
      PackTapByRows(g, view, {0, count}, channels, to + done * kRowPitch + k0);
      if (++tap.at[2] == taps2) tap.NextRun(taps1);
    }
  });
}

// The same of all channels, where the taps of a line are one run of memory: copied together for
// the pixels where all of them are inside, tap by tap for those at the ends of the line.
template <class T>
void PackTapRunsByRows(const Contraction& c, const T* g, Range pixels, Range taps, float* to) {
  const int64_t taps1 = c.axes[1].taps, taps2 = c.axes[2].taps, channels = c.channels;
  ForEachPixelRun(c, pixels, [&](int64_t image, const Walk3& pixel, int64_t done, int64_t count) {
    float* row = to + done * kRowPitch;
    Walk3 tap(taps.begin, taps1, taps2);
    for (int64_t t = taps.begin; t < taps.end;) {
      const int64_t more = std::min(taps2 - tap.at[2], taps.end - t);
      const TapView view = ViewThroughTap(c, image, pixel, count, tap);
      Walk3 last = tap;
      last.at[2] += more - 1;
      const TapView last_view = ViewThroughTap(c, image, pixel, count, last);
      const int64_t begin = std::max(view.begin, last_view.begin);
      const int64_t end = std::max(begin, std::min(view.end, last_view.end));
      for (int64_t i = begin; i < end; ++i) {
        const T* const from = g + (view.offset + (i - view.begin) * view.stride);
        CopyRun(from, 1, more * channels, row + i * kRowPitch);
      }
      for (int64_t i = 0; i < more; ++i, ++t, ++tap.at[2], row += channels) {
        if (end - begin == count) continue;
        const TapView one = ViewThroughTap(c, image, pixel, count, tap);
        PackTapByRows(g, one, {0, begin}, {0, channels}, row);
        PackTapByRows(g, one, {end, count}, {0, channels}, row + end * kRowPitch);
      }
      if (tap.at[2] == taps2) tap.NextRun(taps1);
    }
  });
}

// a of wgrad: [(tap, channel), pixel].
template <class T>
void PackTapsByRows(const Contraction& c, const T* g, Range rows, const Chunk& chunk, float* to) {
  ForEachTapRun(c, rows, chunk, false, [&](const TapRun& run) {
    const TapView view = run.View(c);
    float* row = to + run.done * kRowPitch + run.k0;
    for (int64_t r = 0; r < run.rows; ++r, row += kRowPitch) {
      ZeroRow(row, view.begin);
      CopyRun(g + (view.offset + (run.channel + r) * c.g.channel), view.stride,
              view.end - view.begin, row + view.begin);
      ZeroRow(row + view.end, run.count - view.end);
    }
  });
}

#if HWY_TARGET != HWY_SCALAR
// A run may begin within an element.
template <class T, class E>
void PackTapsByRows(const Contraction& c, const T* g, Range rows, const Chunk& chunk, E* to) {
  constexpr int64_t kEach = kTermsOf<E>;
  ForEachTapRun(c, rows, chunk, false, [&](const TapRun& run) {
    const TapView view = run.View(c);
    uint16_t* row = to[run.done * kRowPitch].terms + run.k0;
    for (int64_t r = 0; r < run.rows; ++r, row += kEach * kRowPitch) {
      ZeroTerms(row, view.begin);
      if (view.begin < view.end) {
        CopyTerms(g + (view.offset + (run.channel + r) * c.g.channel), view.stride,
                  view.end - view.begin, row + view.begin);
      }
      ZeroTerms(row + view.end, run.count - view.end);
    }
  });
  const int64_t terms = chunk.terms();
  for (int64_t r = 0; r < rows.size() && terms % kEach != 0; ++r) {
    ZeroTerms(to[r * kRowPitch].terms + terms, kEach - terms % kEach);
  }
}
#endif

// A range of the side that is not o; what is left of its last tile is zero.
template <class T, class E>
void PackByRows(const Contraction& c, const T* g, Range side, const Chunk& chunk, int64_t mr,
                E* to) {
  const int64_t end = CeilDiv(side.size(), mr) * mr, depth = ElementsOf(c, chunk, kTermsOf<E>);
  for (int64_t r = side.size(); r < end; ++r) ZeroRow(to + r * kRowPitch, depth);
  if (c.sum_pixels) return PackTapsByRows(c, g, side, chunk, to);
  if constexpr (kTermsOf<E> == 1) {
    if (CopiesTapRuns(c) && chunk.outer.size() == c.channels) {
      return PackTapRunsByRows(c, g, side, chunk.inner, to);
    }
  }
  PackPixelsByRows(c, g, side, chunk, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
