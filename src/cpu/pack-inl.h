// Packing: panels of a and b straight from the user's tensors. Absorbs layout, stride, dilation,
// padding, tails and type; the micro-kernel sees [k, width] of elements E and nothing else. A panel
// is a sequence of rectangles: a run of pixels along the last axis by a run of channels, seen
// through one tap.
#if defined(CONVGRAD_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PACK_INL_H_
#undef CONVGRAD_CPU_PACK_INL_H_
#else
#define CONVGRAD_CPU_PACK_INL_H_
#endif

#include <algorithm>

#include "cpu/contraction.h"
#include "cpu/element.h"
#include "cpu/rect-inl.h"
#include "cpu/rect_elements-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// A flat index over three axes, the last fastest.
struct Walk3 {
  int64_t at[kAxes];

  Walk3(int64_t flat, int64_t extent1, int64_t extent2) {
    at[2] = flat % extent2;
    flat /= extent2;
    at[1] = flat % extent1;
    at[0] = flat / extent1;
  }
  // To the start of the next run along the last axis.
  void NextRun(int64_t extent1) {
    at[2] = 0;
    if (++at[1] == extent1) {
      at[1] = 0;
      ++at[0];
    }
  }
};

// Calls run(image, first pixel, offset in the range, count) for runs along the last axis.
template <class Run>
HWY_INLINE void ForEachPixelRun(const Contraction& c, Range pixels, const Run& run) {
  const int64_t pixels1 = c.axes[1].pixels, pixels2 = c.axes[2].pixels, image_pixels = c.pixels();
  int64_t image = pixels.begin / image_pixels, first = pixels.begin % image_pixels;
  const int64_t each = c.images_inside;
  if (each > 0) {
    const int64_t some = pixels.begin / each;
    image = some % c.images;
    first = some / c.images * each + pixels.begin % each;
  }
  Walk3 pixel(first, pixels1, pixels2);
  for (int64_t done = 0; done < pixels.size();) {
    const int64_t left = each == 1 ? 1 : pixels2 - pixel.at[2];
    const int64_t count = std::min(pixels.size() - done, left);
    run(image, pixel, done, count);
    done += count;
    if (each > 0 && image + 1 < c.images) {
      ++image;
      if (each > 1) pixel.at[2] = 0;
      continue;
    }
    if (each > 0) image = 0;
    if (each == 1 && ++pixel.at[2] < pixels2) continue;
    pixel.NextRun(pixels1);
    if (pixel.at[0] == c.axes[0].pixels) {
      pixel.at[0] = 0;
      ++image;
    }
  }
}

// What a run of pixels along the last axis reads through a tap: [begin, end) of the run are inside.
struct TapView {
  int64_t begin = 0, end = 0;
  int64_t offset = 0;  // in g, of pixel `begin`
  int64_t stride = 0;  // from pixel to pixel, where there are two
};

HWY_INLINE TapView ViewThroughTap(const Contraction& c, int64_t image, const Walk3& pixel,
                                  int64_t count, const Walk3& tap) {
  TapView view;
  int64_t at[kAxes];
  for (int a = 0; a < kAxes; ++a) {
    const GatherAxis& axis = c.axes[a];
    at[a] = axis.first + pixel.at[a] * axis.pixel_step + tap.at[a] * axis.tap_step;
  }
  if (at[0] < 0 || at[0] >= c.axes[0].limit || at[1] < 0 || at[1] >= c.axes[1].limit) return view;
  const int64_t step = c.axes[2].pixel_step, limit = c.axes[2].limit;
  if (at[2] >= 0 && at[2] + (count - 1) * step < limit) {  // the common case, without a division
    view.end = count;
  } else {
    view.begin = at[2] >= 0 ? 0 : std::min(count, CeilDiv(-at[2], step));
    view.end =
        at[2] >= limit ? view.begin : std::clamp(CeilDiv(limit - at[2], step), view.begin, count);
  }
  if (view.begin == view.end) return view;
  view.offset = c.g.first + image * c.g.image + at[0] * c.g.at[0] + at[1] * c.g.at[1] +
                (at[2] + view.begin * step) * c.g.at[2];
  // The distance of pixels that do not both exist may be more than can be counted.
  view.stride = view.end - view.begin > 1 ? step * c.g.at[2] : 0;
  return view;
}

// a or b of fprop and dgrad: [(tap, channel), pixel]. Channels are contiguous: for each tap, a
// pointer to the channels of each pixel, and to zeros where it reads outside.
template <class T, class E>
void PackPixelRows(const Contraction& c, const T* g, Range pixels, const Chunk& chunk,
                   const Panels<E>& panels) {
  const Range channels = chunk.outer, taps = chunk.inner;
  const int64_t depth = CeilDiv(channels.size(), kTermsOf<E>);
  const int64_t taps1 = c.axes[1].taps, taps2 = c.axes[2].taps;
  constexpr int64_t kMost = 64;  // pixels at a time
  const T* sources[kMost];
  const int64_t at_once = kMost / panels.width * panels.width;
  for (int64_t p = 0; p < pixels.size(); p += at_once) {
    const Range some{pixels.begin + p, std::min(pixels.begin + p + at_once, pixels.end)};
    const Panels<E> to{panels.first + p * panels.depth, panels.width, panels.depth};
    Walk3 tap(taps.begin, taps1, taps2);
    for (int64_t t = taps.begin, k0 = 0; t < taps.end; ++t, k0 += depth) {
      ForEachPixelRun(c, some, [&](int64_t image, const Walk3& pixel, int64_t done, int64_t count) {
        const TapView view = ViewThroughTap(c, image, pixel, count, tap);
        const int64_t offset = view.offset + channels.begin;
        const T** at = sources + done;
        for (int64_t i = 0; i < view.begin; ++i) at[i] = reinterpret_cast<const T*>(kZeros);
        for (int64_t i = view.begin; i < view.end; ++i) {
          at[i] = g + (offset + (i - view.begin) * view.stride);
        }
        for (int64_t i = view.end; i < count; ++i) at[i] = reinterpret_cast<const T*>(kZeros);
      });
      E* panel = to.first + k0 * to.width;
      for (int64_t r = 0; r < some.size(); r += to.width, panel += to.depth * to.width) {
        TurnRows(sources + r, std::min(to.width, some.size() - r), channels.size(), panel,
                 to.width);
      }
      if (++tap.at[2] == taps2) tap.NextRun(taps1);
    }
  }
}

template <class T, class E>
void PackPixels(const Contraction& c, const T* g, Range pixels, const Chunk& chunk,
                const Panels<E>& panels) {
  if (c.g.channel == 1 && chunk.outer.size() >= 4 && panels.width <= 64) {
    return PackPixelRows(c, g, pixels, chunk, panels);
  }
  const Range channels = chunk.outer, taps = chunk.inner;
  const int64_t terms = channels.size(), depth = CeilDiv(terms, kTermsOf<E>);
  const int64_t taps1 = c.axes[1].taps, taps2 = c.axes[2].taps;
  ForEachPixelRun(c, pixels, [&](int64_t image, const Walk3& pixel, int64_t done, int64_t count) {
    Walk3 tap(taps.begin, taps1, taps2);
    for (int64_t t = taps.begin, k0 = 0; t < taps.end; ++t, k0 += depth) {
      const TapView view = ViewThroughTap(c, image, pixel, count, tap);
      if (view.begin > 0) ZeroRect(panels, k0, done, view.begin, depth);
      if (view.begin < view.end) {
        const T* from = g + (view.offset + channels.begin * c.g.channel);
        PackRect(from, {view.end - view.begin, view.stride, terms, c.g.channel}, panels, k0,
                 done + view.begin);
      }
      if (view.end < count) ZeroRect(panels, k0, done + view.end, count - view.end, depth);
      if (++tap.at[2] == taps2) tap.NextRun(taps1);
    }
  });
}

// What rows of wgrad, (tap, channel), read of the pixels of a chunk: `rows` of them, `done` rows
// into the range, from (tap, channel) on, along `count` pixels from k0 on.
struct TapRun {
  int64_t done, rows, channel;
  int64_t k0, count;
  int64_t image;
  Walk3 pixel, tap;

  TapView View(const Contraction& c) const { return ViewThroughTap(c, image, pixel, count, tap); }
};

// With `tap_lines`, a run has rows of several taps along the last axis; else of one.
template <class Run>
HWY_INLINE void ForEachTapRun(const Contraction& c, Range rows, const Chunk& chunk, bool tap_lines,
                              const Run& run) {
  const int64_t taps2 = c.axes[2].taps;
  for (int64_t done = 0; done < rows.size();) {
    const RowPlace place = PlaceOfRow(c, rows.begin + done);
    const Walk3 tap(place.tap, c.axes[1].taps, taps2);
    const int64_t more = tap_lines ? (taps2 - 1 - tap.at[2]) * c.channels : 0;
    const int64_t width = std::min(rows.size() - done, place.run + more);
    int64_t k0 = 0;
    for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
      const Range pixels{i * c.pixels() + chunk.inner.begin, i * c.pixels() + chunk.inner.end};
      ForEachPixelRun(c, pixels, [&](int64_t image, const Walk3& pixel, int64_t, int64_t count) {
        run(TapRun{done, width, place.channel, k0, count, image, pixel, tap});
        k0 += count;
      });
    }
    done += width;
  }
}

// Some of the pixels of a run, all of one tap.
template <class T>
HWY_INLINE void PackTapPixels(const Contraction& c, const T* g, const TapRun& run, Range pixels,
                              const Panels<float>& panels) {
  const TapView view = run.View(c);
  const int64_t begin = std::clamp(view.begin, pixels.begin, pixels.end);
  const int64_t end = std::clamp(view.end, begin, pixels.end);
  if (begin > pixels.begin) {
    ZeroRect(panels, run.k0 + pixels.begin, run.done, run.rows, begin - pixels.begin);
  }
  if (begin < end) {
    const T* from =
        g + (view.offset + (begin - view.begin) * view.stride + run.channel * c.g.channel);
    PackRect(from, {run.rows, c.g.channel, end - begin, view.stride}, panels, run.k0 + begin,
             run.done);
  }
  if (end < pixels.end) ZeroRect(panels, run.k0 + end, run.done, run.rows, pixels.end - end);
}

// Rows of several taps are one run of memory: copied together for the pixels where all of them are
// inside, tap by tap for those at the ends of the line.
template <class T>
HWY_INLINE void PackTapLine(const Contraction& c, const T* g, const TapRun& run,
                            const Panels<float>& panels) {
  TapRun last = run;
  last.tap.at[2] += (run.channel + run.rows - 1) / c.channels;
  const TapView view = run.View(c), last_view = last.View(c);
  const int64_t begin = std::max(view.begin, last_view.begin);
  const int64_t end = std::max(begin, std::min(view.end, last_view.end));
  if (begin < end) {
    const T* from = g + (view.offset + (begin - view.begin) * view.stride + run.channel);
    PackRect(from, {run.rows, 1, end - begin, view.stride}, panels, run.k0 + begin, run.done);
  }
  if (end - begin == run.count) return;
  TapRun one = run;
  for (int64_t done = 0; done < run.rows; done += one.rows, one.channel = 0, ++one.tap.at[2]) {
    one.done = run.done + done;
    one.rows = std::min(c.channels - one.channel, run.rows - done);
    if (begin > 0) PackTapPixels(c, g, one, {0, begin}, panels);
    if (end < run.count) PackTapPixels(c, g, one, {end, run.count}, panels);
  }
}

// a or b of wgrad: [pixel, (tap, channel)]; pixels of all images of the chunk.
template <class T>
void PackTaps(const Contraction& c, const T* g, Range rows, const Chunk& chunk,
              const Panels<float>& panels) {
  const bool tap_lines = HasTapRuns(c) && c.row_block == c.channels;
  ForEachTapRun(c, rows, chunk, tap_lines, [&](const TapRun& run) {
    tap_lines ? PackTapLine(c, g, run, panels) : PackTapPixels(c, g, run, {0, run.count}, panels);
  });
}

// A row of PackPhaseWeights: where it is in w without a tap, and its phase.
struct PhaseRow {
  int64_t at;
  Walk3 phase;

  PhaseRow(const Contraction& c, int64_t o)
      : at(c.w.first + o % c.columns.channels * c.w.o),
        phase(o / c.columns.channels, c.columns.phases[1], c.columns.phases[2]) {
    for (int a = 0; a < kAxes; ++a) at += phase.at[a] * c.columns.w_step[a];
  }
};

// As PackWeights, where o is (phase, channel). w is small: every element by itself.
template <class T, class E>
void PackPhaseWeights(const Contraction& c, const T* w, Range o, const Chunk& chunk,
                      const Panels<E>& panels) {
  const Range channels = chunk.outer, taps = chunk.inner;
  const int64_t depth = CeilDiv(channels.size(), kTermsOf<E>), step = kTermsOf<E> * c.w.channel;
  for (int64_t r = 0; r < o.size(); ++r) {
    const PhaseRow row(c, o.begin + r);
    Walk3 tap(taps.begin, c.axes[1].taps, c.axes[2].taps);
    E* to = panels.At(0, r);
    for (int64_t t = taps.begin; t < taps.end; ++t) {
      if (c.columns.HasTap(row.phase.at, tap.at)) {
        const T* from = w + row.at + tap.at[0] * c.w.at[0] + tap.at[1] * c.w.at[1] +
                        tap.at[2] * c.w.at[2] + channels.begin * c.w.channel;
        for (int64_t i = 0; i < depth; ++i, to += panels.width) {
          SetElement(from + i * step, c.w.channel, channels.size() - i * kTermsOf<E>, *to);
        }
      } else {
        for (int64_t i = 0; i < depth; ++i, to += panels.width) *to = E{};
      }
      if (++tap.at[2] == c.axes[2].taps) tap.NextRun(c.axes[1].taps);
    }
  }
}

// The other side of fprop and dgrad: [(tap, channel), o].
template <class T, class E>
void PackWeights(const Contraction& c, const T* w, Range o, const Chunk& chunk,
                 const Panels<E>& panels) {
  const Range channels = chunk.outer, taps = chunk.inner;
  const int64_t taps1 = c.axes[1].taps, taps2 = c.axes[2].taps;
  if (c.columns.channels > 0) return PackPhaseWeights(c, w, o, chunk, panels);
  const T* from = w + (c.w.first + o.begin * c.w.o + channels.begin * c.w.channel);
  // All taps of a kernel next to each other, as in OIX: read them together.
  const bool dense_taps = c.w.at[2] == 1 && (taps1 == 1 || c.w.at[1] == taps2) &&
                          (c.axes[0].taps == 1 || c.w.at[0] == taps1 * taps2);
  if (dense_taps && taps.size() == c.taps() && taps.size() >= 2) {
    return PackTapRect(from, {o.size(), c.w.o, channels.size(), c.w.channel, taps.size()}, panels);
  }
  Walk3 tap(taps.begin, taps1, taps2);
  const auto next = [&] {
    const int64_t at = tap.at[0] * c.w.at[0] + tap.at[1] * c.w.at[1] + tap.at[2] * c.w.at[2];
    if (++tap.at[2] == taps2) tap.NextRun(taps1);
    return at;
  };
  if (std::min(c.w.o, c.w.channel) > 1 && taps.size() > 1) {
    int64_t offsets[Chunks::kLongest];
    for (int64_t t = 0; t < taps.size(); ++t) offsets[t] = next();
    return PackScatteredTaps(from, {o.size(), c.w.o, channels.size(), c.w.channel, taps.size()},
                             offsets, panels);
  }
  const int64_t depth = CeilDiv(channels.size(), kTermsOf<E>);
  for (int64_t t = 0, k0 = 0; t < taps.size(); ++t, k0 += depth) {
    PackRect(from + next(), {o.size(), c.w.o, channels.size(), c.w.channel}, panels, k0, 0);
  }
}

// Of v: the pixels of an image are one distance apart.
inline bool PixelsAreOneRun(const Contraction& c) {
  const auto& axes = c.axes;
  return c.v.at[1] == c.v.at[2] * axes[2].pixels &&
         (axes[0].pixels == 1 || c.v.at[0] == c.v.at[1] * axes[1].pixels);
}

// The other side of wgrad: [pixel, o].
template <class T>
void PackValues(const Contraction& c, const T* v, Range o, const Chunk& chunk,
                const Panels<float>& panels) {
  const bool one_run = PixelsAreOneRun(c);
  int64_t k0 = 0;
  for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
    const int64_t image_at = c.v.first + i * c.v.image + o.begin * c.v.o;
    if (one_run) {
      const T* from = v + (image_at + chunk.inner.begin * c.v.at[2]);
      PackRect(from, {o.size(), c.v.o, chunk.inner.size(), c.v.at[2]}, panels, k0, 0);
      k0 += chunk.inner.size();
      continue;
    }
    const Range pixels{i * c.pixels() + chunk.inner.begin, i * c.pixels() + chunk.inner.end};
    ForEachPixelRun(c, pixels, [&](int64_t, const Walk3& pixel, int64_t, int64_t count) {
      const T* from = v + (image_at + pixel.at[0] * c.v.at[0] + pixel.at[1] * c.v.at[1] +
                           pixel.at[2] * c.v.at[2]);
      PackRect(from, {o.size(), c.v.o, count, c.v.at[2]}, panels, k0, 0);
      k0 += count;
    });
  }
}

// A range of one side of the contraction; what is left of its last panel is zero.
template <class T, class E>
void PackSide(const Contraction& c, bool o_side, const T* g, const T* other, Range side,
              const Chunk& chunk, const Panels<E>& panels) {
  const int64_t rest = CeilDiv(side.size(), panels.width) * panels.width - side.size();
  if (rest > 0) ZeroRect(panels, 0, side.size(), rest, panels.depth);
  const int64_t depth = ElementsOf(c, chunk, kTermsOf<E>);
  if (depth < panels.depth && panels.width > 1) {
    ZeroRect(panels, depth, 0, side.size(), panels.depth - depth);
  }
  if (o_side) {
    return c.sum_pixels ? PackValues(c, other, side, chunk, panels)
                        : PackWeights(c, other, side, chunk, panels);
  }
  return c.sum_pixels ? PackTaps(c, g, side, chunk, panels) : PackPixels(c, g, side, chunk, panels);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
