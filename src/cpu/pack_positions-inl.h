// Packing of positions that all taps of a weight gradient share: see positions.h. Compiled once per
// instruction set.
#if defined(CONVGRAD_CPU_PACK_POSITIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PACK_POSITIONS_INL_H_
#undef CONVGRAD_CPU_PACK_POSITIONS_INL_H_
#else
#define CONVGRAD_CPU_PACK_POSITIONS_INL_H_
#endif

#include <algorithm>

#include "cpu/live.h"
#include "cpu/pack-inl.h"
#include "cpu/positions.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Some channels of all positions of a chunk, [position, channel], in panels.
template <class T>
void PackPositions(const Contraction& c, const Positions& positions, const T* g, Range channels,
                   const Chunk& chunk, const Panels<float>& panels) {
  const GatherAxis &z_axis = c.axes[0], &y_axis = c.axes[1], &x_axis = c.axes[2];
  const int64_t rows = channels.size(), count = positions.width;
  const int64_t begin = std::clamp<int64_t>(-positions.first, 0, count);
  const int64_t end = std::clamp(x_axis.limit - positions.first, begin, count);
  int64_t k0 = 0;
  const auto pack_line = [&](int64_t image, int64_t z, int64_t y) {
    if (z < 0 || z >= z_axis.limit || y < 0 || y >= y_axis.limit || begin == end) {
      return ZeroRect(panels, k0, 0, rows, count);
    }
    const int64_t at = c.g.first + image * c.g.image + z * c.g.at[0] + y * c.g.at[1] +
                       (positions.first + begin) * c.g.at[2] + channels.begin * c.g.channel;
    if (begin > 0) ZeroRect(panels, k0, 0, rows, begin);
    PackRect(g + at, {rows, c.g.channel, end - begin, c.g.at[2]}, panels, k0 + begin, 0);
    if (end < count) ZeroRect(panels, k0 + end, 0, rows, count - end);
  };
  for (int64_t tap = 0; tap < z_axis.taps; ++tap) {
    ForEachPart(c, chunk, [&](int64_t image, int64_t plane, Range lines) {
      const int64_t z = z_axis.first + plane * z_axis.pixel_step + tap * z_axis.tap_step;
      const int64_t y = y_axis.first + lines.begin * y_axis.pixel_step;
      for (int64_t i = 0; i < PositionsAlong(y_axis, lines.size()); ++i, k0 += count) {
        pack_line(image, z, y + i);
      }
    });
  }
}

// Where the first tap reads each pixel of a chunk, of positions that are `width` floats apart.
inline void PointToPositions(const Contraction& c, const Positions& positions, const Chunk& chunk,
                             const float* packed, int64_t width, const float** to) {
  const int64_t pixels1 = c.axes[1].pixels, pixels2 = c.axes[2].pixels;
  const int64_t pixel_step = c.axes[2].pixel_step * width, line = positions.width * width;
  ForEachPart(c, chunk, [&](int64_t, int64_t plane, Range lines) {
    for (int64_t y = lines.begin; y < lines.end; ++y) {
      const int64_t pixel = (plane * pixels1 + y) * pixels2;
      const Range x = Common(chunk.inner, {pixel, pixel + pixels2});
      // Of one line only those of the chunk are packed.
      const float* from =
          packed + (y - lines.begin) * c.axes[1].pixel_step * line +
          (c.axes[2].first + x.begin * c.axes[2].pixel_step - positions.first) * width;
      for (int64_t i = 0; i < x.size(); ++i) *to++ = from + i * pixel_step;
    }
    packed += PositionsAlong(c.axes[1], lines.size()) * line;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
