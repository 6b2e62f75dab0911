// Packing without padding: of a panel of pixels, fprop or dgrad, the taps through which any of them
// reads inside, a range along each axis. Of a kernel that covers its image every pixel meets most
// taps outside. Step 6 of the story.
#if defined(CONVGRAD_CPU_PACK_BOXES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PACK_BOXES_INL_H_
#undef CONVGRAD_CPU_PACK_BOXES_INL_H_
#else
#define CONVGRAD_CPU_PACK_BOXES_INL_H_
#endif

#include <algorithm>

#include "cpu/live.h"
#include "cpu/pack-inl.h"
#include "cpu/tile.h"
#include "cpu/tiling.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// The pixels of a panel and their box.
struct PixelBox {
  static constexpr int kMostPixels = Tiling::kMostRowsOfSingles;

  struct Run {
    int64_t image;
    Walk3 pixel{0, 1, 1};
    int64_t done, count;
  };
  Run runs[kMostPixels];
  int64_t count = 0;
  Range taps[kAxes] = {};

  PixelBox(const Contraction& c, Range pixels) {
    ForEachPixelRun(c, pixels, [&](int64_t image, const Walk3& pixel, int64_t done, int64_t some) {
      runs[count++] = {image, pixel, done, some};
      if (count > 1 && some == 1 && IsAt(runs[count - 2].pixel, pixel)) return;  // another image
      for (int a = 0; a < kAxes; ++a) {
        const int64_t last = a + 1 < kAxes ? pixel.at[a] : pixel.at[a] + some - 1;
        Add(c.axes[a], pixel.at[a], last, taps[a]);
      }
    });
  }

  bool is_empty() const {
    return taps[0].size() == 0 || taps[1].size() == 0 || taps[2].size() == 0;
  }
  // Lines of taps.
  int64_t lines() const { return is_empty() ? 0 : taps[0].size() * taps[1].size(); }

 private:
  static bool IsAt(const Walk3& a, const Walk3& b) {
    return a.at[2] == b.at[2] && a.at[1] == b.at[1] && a.at[0] == b.at[0];
  }

  // Those of pixels from `first` to `last`.
  static void Add(const GatherAxis& axis, int64_t first, int64_t last, Range& taps) {
    if (axis.taps == 1 && axis.limit == axis.pixels && axis.first == 0) {
      taps = {0, 1};  // an axis of images or without a kernel: no divisions
      return;
    }
    const int64_t at = axis.first + first * axis.pixel_step;
    const int64_t end = axis.first + last * axis.pixel_step;
    const Range more = StepsInside(at, end, axis.tap_step, axis.taps, axis.limit);
    if (more.size() == 0) return;
    taps = taps.size() == 0 ? more
                            : Range{std::min(taps.begin, more.begin), std::max(taps.end, more.end)};
  }
};

// The terms of a tile: each line of taps is a segment of b, which begins anywhere in a panel of
// `width` columns; a has no others. `begins`: memory for them.
inline TileTerms TermsOfBox(const Contraction& c, const PixelBox& box, int64_t channels,
                            int64_t width, int64_t* begins) {
  for (int64_t i = 0; i < box.lines(); ++i) {
    const int64_t z = box.taps[0].begin + i / box.taps[1].size();
    const int64_t y = box.taps[1].begin + i % box.taps[1].size();
    const int64_t tap = (z * c.axes[1].taps + y) * c.axes[2].taps + box.taps[2].begin;
    begins[i] = tap * channels * width;
  }
  return {.length = box.taps[2].size() * channels,
          .segments = box.lines(),
          .begins = begins,
          .step = width,
          .turn = width,
          .gap = 0};
}

// What a run reads through a tap, from k0 on. Zeros where it is outside.
template <class T>
HWY_INLINE void PackRunOfTap(const Contraction& c, const T* g, const PixelBox::Run& run,
                             const Walk3& tap, Range channels, const Panels<float>& panel,
                             int64_t k0) {
  const TapView view = ViewThroughTap(c, run.image, run.pixel, run.count, tap);
  const int64_t terms = channels.size();
  if (view.begin > 0) ZeroRect(panel, k0, run.done, view.begin, terms);
  if (view.begin < view.end) {
    PackRect(g + (view.offset + channels.begin * c.g.channel),
             {view.end - view.begin, view.stride, terms, c.g.channel}, panel, k0,
             run.done + view.begin);
  }
  if (view.end < run.count) ZeroRect(panel, k0, run.done + view.end, run.count - view.end, terms);
}

// Pointers to the channels of each pixel, or to zeros.
template <class T>
HWY_INLINE void FindPixels(const Contraction& c, const T* g, const PixelBox& box, const Walk3& tap,
                           const T** pixels) {
  for (int64_t r = 0; r < box.count; ++r) {
    const PixelBox::Run& run = box.runs[r];
    const TapView view = ViewThroughTap(c, run.image, run.pixel, run.count, tap);
    const T** at = pixels + run.done;
    for (int64_t i = 0; i < run.count; ++i) {
      const bool inside = i >= view.begin && i < view.end;
      at[i] = inside ? g + (view.offset + (i - view.begin) * view.stride)
                     : reinterpret_cast<const T*>(kZeros);
    }
  }
}

// Calls each(tap, k0) for the taps of a box in order.
template <class Each>
HWY_INLINE void ForEachTap(const PixelBox& box, int64_t terms, const Each& each) {
  if (box.is_empty()) return;
  int64_t k0 = 0;
  Walk3 tap(0, 1, 1);
  for (tap.at[0] = box.taps[0].begin; tap.at[0] < box.taps[0].end; ++tap.at[0]) {
    for (tap.at[1] = box.taps[1].begin; tap.at[1] < box.taps[1].end; ++tap.at[1]) {
      for (tap.at[2] = box.taps[2].begin; tap.at[2] < box.taps[2].end; ++tap.at[2], k0 += terms) {
        each(tap, k0);
      }
    }
  }
}

// a: [(tap of the box, channel), pixel], one panel.
template <class T>
void PackBox(const Contraction& c, const T* g, const PixelBox& box, int64_t pixels, Range channels,
             int64_t width, float* to) {
  const int64_t terms = channels.size();
  const int64_t depth = box.lines() * box.taps[2].size() * terms;
  const Panels<float> panel{to, width, depth};
  if (pixels < width) ZeroRect(panel, 0, pixels, width - pixels, depth);
  ForEachTap(box, terms, [&](const Walk3& tap, int64_t k0) {
    if (c.g.channel == 1) {
      const T* at[PixelBox::kMostPixels];
      FindPixels(c, g + channels.begin, box, tap, at);
      return TurnRows(at, pixels, terms, to + k0 * width, width);
    }
    for (int64_t r = 0; r < box.count; ++r) {
      PackRunOfTap(c, g, box.runs[r], tap, channels, panel, k0);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
