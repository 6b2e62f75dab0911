// A table of pointers into the user's tensor, for tiles that read a of a weight gradient where it
// is (Tiling::a_in_place): part of step 6 of the story, in the place of packing. Padding is a
// pointer to zeros. Compiled once per instruction set.
#if defined(CONVGRAD_CPU_PIXEL_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PIXEL_TABLE_INL_H_
#undef CONVGRAD_CPU_PIXEL_TABLE_INL_H_
#else
#define CONVGRAD_CPU_PIXEL_TABLE_INL_H_
#endif

#include <algorithm>
#include <iterator>

#include "cpu/pack-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Where each pixel of a chunk reads its channels, from one on, through a tap.
template <bool kUsed>
struct PixelTable {
  int64_t tap = -1, channel = 0;
  const float* pixels[kUsed ? Chunks::kLongest : 1];

  bool Has(const RowPlace& place, int64_t rows) const {
    // A pointer to zeros must have as many.
    constexpr int64_t kMost = static_cast<int64_t>(std::size(kZeros));
    return place.tap == tap && place.channel >= channel && place.channel + rows <= channel + kMost;
  }

  void Fill(const Contraction& c, const float* g, const RowPlace& place, const Chunk& chunk) {
    const Walk3 walk(place.tap, c.axes[1].taps, c.axes[2].taps);
    const float** to = pixels;
    tap = place.tap;
    channel = place.channel;
    for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
      const Range range{i * c.pixels() + chunk.inner.begin, i * c.pixels() + chunk.inner.end};
      ForEachPixelRun(c, range, [&](int64_t image, const Walk3& pixel, int64_t, int64_t count) {
        const TapView view = ViewThroughTap(c, image, pixel, count, walk);
        const float* const from = g + (view.offset + channel);
        std::fill(to, to + count, &kZeros[0]);
        for (int64_t k = view.begin; k < view.end; ++k) {
          to[k] = from + (k - view.begin) * view.stride;
        }
        to += count;
      });
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
