// Pointers into the user's tensor, for tiles that read a where it is: a weight gradient of channels
// that are next to each other, on a CPU that multiplies by a float of memory for free. Nothing
// would be turned there, and each value is copied once for each tap: with AVX-512, 22 to 32 % of
// the time of 64 -> 64 channels. Padding is a pointer to zeros. Compiled once per instruction set.
#if defined(CONVGRAD_CPU_IN_PLACE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_IN_PLACE_INL_H_
#undef CONVGRAD_CPU_IN_PLACE_INL_H_
#else
#define CONVGRAD_CPU_IN_PLACE_INL_H_
#endif

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "cpu/pack-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// With more channels a tile finds its values in more lines than the sets of L1 that they fall into
// hold, and with more columns a copy is read more often: 256 channels were 3 to 7 % slower, 256
// columns 1 to 4 %, up to 128 of both 2 to 13 % faster.
inline bool ReadsInPlace(const Contraction& c) {
  constexpr int64_t kMost = 128;
  return c.sum_pixels && c.g.channel == 1 && std::abs(c.g.at[kAxes - 1]) <= kMost && c.o <= kMost;
}

// Where each pixel of a chunk reads its channels, from one on, through a tap.
template <class T>
struct PixelTable {
  int64_t tap = -1, channel = 0;
  const T* pixels[Chunks::kLongest];

  bool Has(const RowPlace& place, int64_t rows) const {
    // A pointer to zeros must have as many.
    constexpr int64_t kMost = static_cast<int64_t>(std::size(kZeros));
    return place.tap == tap && place.channel >= channel && place.channel + rows <= channel + kMost;
  }

  void Fill(const Contraction& c, const T* g, const RowPlace& place, const Chunk& chunk) {
    const Walk3 walk(place.tap, c.axes[1].taps, c.axes[2].taps);
    const T** to = pixels;
    tap = place.tap;
    channel = place.channel;
    for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
      const Range range{i * c.pixels() + chunk.inner.begin, i * c.pixels() + chunk.inner.end};
      ForEachPixelRun(c, range, [&](int64_t image, const Walk3& pixel, int64_t, int64_t count) {
        const TapView view = ViewThroughTap(c, image, pixel, count, walk);
        const T* const from = g + (view.offset + channel);
        std::fill(to, to + count, reinterpret_cast<const T*>(kZeros));
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
