// Packing of lines that taps share: see lines.h. Compiled once per instruction set.
#if defined(CONVGRAD_CPU_PACK_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PACK_LINES_INL_H_
#undef CONVGRAD_CPU_PACK_LINES_INL_H_
#else
#define CONVGRAD_CPU_PACK_LINES_INL_H_
#endif

#include <algorithm>
#include <cstdlib>

#include "cpu/lines.h"
#include "cpu/pack-inl.h"
#include "cpu/pack_rows-inl.h"
#include "cpu/tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Channels that are next to each other: turned, four positions at a time, with a few after those
// that are read.
template <class T, class E>
HWY_NOINLINE void TurnLine(const T* from, const TapView& view, int64_t count, int64_t depth, E* to,
                           int64_t width) {
  const T* const zeros = reinterpret_cast<const T*>(kZeros);
  const T* sources[4];
  for (int64_t i = 0; i < count; i += 4, to += 4) {
    const int64_t rows = std::min<int64_t>(4, count - i);
    if (i >= view.begin && i + rows <= view.end) {
      const T* source = from + (i - view.begin) * view.stride;
      for (int64_t j = 0; j < rows; ++j) sources[j] = source + j * view.stride;
    } else {
      for (int64_t j = 0; j < rows; ++j) {
        const bool inside = i + j >= view.begin && i + j < view.end;
        sources[j] = inside ? from + (i + j - view.begin) * view.stride : zeros;
      }
    }
    TurnRows(sources, rows, depth, to, width);
  }
}

// A run of pixels through one tap.
template <class T, class E>
HWY_INLINE void PackLine(const Contraction& c, const Lines& lines, const T* g, const TapView& view,
                         int64_t pixels, Range channels, const Panels<E>& group, int64_t k0,
                         int64_t at) {
  const int64_t terms = channels.size(), depth = CeilDiv(terms, kTermsOf<E>);
  const int64_t count = pixels + lines.extra;
  const T* from = g + (view.offset + channels.begin * c.g.channel);
  if (c.g.channel == 1 && terms >= 4) {
    return TurnLine(from, view, pixels + lines.gap, terms, group.first + k0 * group.width + at,
                    group.width);
  }
  if (view.begin > 0) ZeroRect(group, k0, at, view.begin, depth);
  if (view.begin < view.end) {
    PackRect(from, {view.end - view.begin, view.stride, terms, c.g.channel}, group, k0,
             at + view.begin);
  }
  if (view.end < count) ZeroRect(group, k0, at + view.end, count - view.end, depth);
}

// Calls line(view, pixels, k0, at) for all lines of a group of pixels, through one tap of each
// class: terms from k0 on, positions from `at` on.
template <class Line>
HWY_INLINE void ForEachLine(const Contraction& c, const Lines& lines, Range pixels, int64_t depth,
                            const Line& line) {
  const GatherAxis& axis = c.axes[kAxes - 1];
  const int64_t taps1 = c.axes[1].taps, terms = DepthOfLines(c, lines, depth);
  int64_t at = 0;
  ForEachPixelRun(c, pixels, [&](int64_t image, const Walk3& first, int64_t, int64_t count) {
    Walk3 tap(0, taps1, axis.taps);
    for (int64_t k0 = 0; k0 < terms; tap.NextRun(taps1)) {
      for (; tap.at[2] < lines.classes; ++tap.at[2], k0 += depth) {
        Walk3 pixel = first;
        pixel.at[2] += lines.least - ShiftOfTap(axis, tap.at[2]);
        line(ViewThroughTap(c, image, pixel, count + lines.extra, tap), count, k0, at);
      }
    }
    at += count + lines.gap;
  });
}

// The same where taps across lines share them, too: each line that any of them reads. Calls
// line(view, count, k0, at), of `count` lines that follow each other, all inside or one outside.
template <class Line>
HWY_INLINE void ForEachLineOfPlanes(const Contraction& c, const Lines& lines, Range pixels,
                                    int64_t depth, const Line& line) {
  const GatherAxis &axis = c.axes[kAxes - 1], &across = c.axes[kAxes - 2];
  const int64_t planes = c.axes[0].pixels, plane_lines = across.pixels;
  const int64_t end = (pixels.end - 1) / lines.pixels + 1;
  int64_t at = 0;
  for (int64_t first = pixels.begin / lines.pixels, rest = 0; first < end; first += rest) {
    const int64_t plane = first / plane_lines, y = first % plane_lines;
    rest = std::min(end - first, plane_lines - y);
    for (int64_t i = 0, count = 0; i < rest + lines.halo; i += count, at += count * lines.pitch()) {
      const int64_t position = across.first + y + i + lines.least_line;
      const bool inside = position >= 0 && position < across.limit;
      count = inside ? std::min(rest + lines.halo - i, across.limit - position) : 1;
      int64_t k0 = 0;
      for (Walk3 tap(0, 1, axis.taps); tap.at[0] < c.axes[0].taps; tap.NextRun(1)) {
        for (; tap.at[2] < lines.classes; ++tap.at[2], k0 += depth) {
          Walk3 pixel(0, 1, 1);
          pixel.at[0] = plane % planes;
          pixel.at[1] = y + i + lines.least_line;
          pixel.at[2] = lines.least - ShiftOfTap(axis, tap.at[2]);
          line(ViewThroughTap(c, plane / planes, pixel, lines.pixels + lines.extra, tap), count, k0,
               at);
        }
      }
    }
  }
}

// So many lines of a plane through one tap, channel by channel: those of a channel follow each
// other in both memories.
template <class T>
void PackPlane(const Contraction& c, const Lines& lines, const T* g, const TapView& view,
               int64_t count, Range channels, float* to, int64_t channel_floats) {
  const int64_t width = lines.pixels + lines.extra;
  // The distance of lines that do not both exist may be more than can be counted.
  const int64_t step = count > 1 ? c.g.at[kAxes - 2] : 0;
  for (int64_t k = channels.begin; k < channels.end; ++k, to += channel_floats) {
    const T* from = g + (view.offset + k * c.g.channel);
    const Panels<float> plane{to, lines.pitch(), count};
    if (view.begin > 0) ZeroRect(plane, 0, 0, view.begin, count);
    if (view.begin < view.end) {
      PackRect(from, {view.end - view.begin, view.stride, count, step}, plane, 0, view.begin);
    }
    if (view.end < width) ZeroRect(plane, 0, view.end, width - view.end, count);
  }
}

// All groups of a range of pixels.
template <class T, class E>
void PackLines(const Contraction& c, const Lines& lines, const T* g, Range pixels,
               const Chunk& chunk, E* to) {
  const int64_t depth = CeilDiv(chunk.outer.size(), kTermsOf<E>),
                terms = DepthOfLines(c, lines, depth);
  for (int64_t p = pixels.begin; p < pixels.end; p += lines.group, to += terms * lines.width) {
    const Range some{p, std::min(p + lines.group, pixels.end)};
    const Panels<E> group{to, lines.width, terms};
    const auto pack = [&](const TapView& view, int64_t count, int64_t k0, int64_t at) {
      PackLine(c, lines, g, view, count, chunk.outer, group, k0, at);
    };
    if (lines.planes) {
      // What a panel reads beyond its pixels is whatever is there, and not stored.
      const int64_t across = c.g.at[kAxes - 2];
      ForEachLineOfPlanes(c, lines, some, depth,
                          [&](const TapView& view, int64_t count, int64_t k0, int64_t at) {
                            if constexpr (kTermsOf<E> == 1) {
                              if (std::abs(c.g.channel) > std::abs(across)) {
                                return PackPlane(c, lines, g, view, count, chunk.outer,
                                                 to + k0 * lines.width + at, lines.width);
                              }
                            }
                            for (int64_t i = 0; i < count; ++i) {
                              TapView line = view;
                              line.offset += i * across;
                              pack(line, lines.pixels, k0, at + i * lines.pitch());
                            }
                          });
      continue;
    }
    if (some.size() < lines.group) ZeroRow(to, terms * lines.width);
    ForEachLine(c, lines, some, depth, pack);
  }
}

// One group, [position, (tap, channel)], of channels that are next to each other.
template <class T, class E>
void PackLinesByRows(const Contraction& c, const Lines& lines, const T* g, Range pixels,
                     const Chunk& chunk, E* to) {
  const int64_t terms = chunk.outer.size(), depth = CeilDiv(terms, kTermsOf<E>);
  if (pixels.size() < lines.group) ZeroRow(to, lines.width * kLinePitch);
  ForEachLine(c, lines, pixels, depth,
              [&](const TapView& view, int64_t count, int64_t k0, int64_t at) {
                E* row = to + at * kLinePitch + k0;
                const T* from = g + (view.offset + chunk.outer.begin);
                for (int64_t i = 0; i < count + lines.extra; ++i, row += kLinePitch) {
                  if (i < view.begin || i >= view.end) {
                    ZeroRow(row, depth);
                  } else {
                    CopyRun(from + (i - view.begin) * view.stride, 1, terms, row);
                  }
                }
              });
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
