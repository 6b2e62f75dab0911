// Packing of positions that all taps of a weight gradient share: see positions.h. Compiled once per
// instruction set.
#if defined(CONVGRAD_CPU_PACK_POSITIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PACK_POSITIONS_INL_H_
#undef CONVGRAD_CPU_PACK_POSITIONS_INL_H_
#else
#define CONVGRAD_CPU_PACK_POSITIONS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

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
  const int64_t count = positions.width;
  const int64_t begin = std::clamp<int64_t>(-positions.first, 0, count);
  const int64_t end = std::clamp(x_axis.limit - positions.first, begin, count);
  int64_t k0 = 0;
  // Some of the channels of one line.
  const auto pack_line = [&](int64_t image, int64_t z, int64_t y, Range some) {
    const int64_t r0 = some.begin - channels.begin, rows = some.size();
    if (z < 0 || z >= z_axis.limit || y < 0 || y >= y_axis.limit || begin == end) {
      return ZeroRect(panels, k0, r0, rows, count);
    }
    const int64_t at = c.g.first + image * c.g.image + z * c.g.at[0] + y * c.g.at[1] +
                       (positions.first + begin) * c.g.at[2] + some.begin * c.g.channel;
    if (begin > 0) ZeroRect(panels, k0, r0, rows, begin);
    PackRect(g + at, {rows, c.g.channel, end - begin, c.g.at[2]}, panels, k0 + begin, r0);
    if (end < count) ZeroRect(panels, k0 + end, r0, rows, count - end);
  };
  // In the order of memory: all channels of a line, or all lines of the channels of a panel.
  const int64_t at_once = c.g.channel == 1 ? channels.size() : panels.width;
  for (int64_t tap = 0; tap < z_axis.taps; ++tap) {
    ForEachPart(c, chunk, [&](int64_t image, int64_t plane, Range lines) {
      const int64_t z = z_axis.first + plane * z_axis.pixel_step + tap * z_axis.tap_step;
      const int64_t y = y_axis.first + lines.begin * y_axis.pixel_step;
      const int64_t part = k0;
      for (int64_t i = channels.begin; i < channels.end; i += at_once) {
        k0 = part;
        for (int64_t l = 0; l < PositionsAlong(y_axis, lines.size()); ++l, k0 += count) {
          pack_line(image, z, y + l, {i, std::min(i + at_once, channels.end)});
        }
      }
    });
  }
}

// Where the first tap reads each pixel of a chunk, of positions that are `width` floats apart:
// bytes from the first position.
inline void PlacePixels(const Contraction& c, const Positions& positions, const Chunk& chunk,
                        int64_t width, int64_t* to) {
  const int64_t pixels1 = c.axes[1].pixels, pixels2 = c.axes[2].pixels;
  const int64_t position = width * static_cast<int64_t>(sizeof(float));
  const int64_t pixel_step = c.axes[2].pixel_step * position, line = positions.width * position;
  int64_t part = 0;
  ForEachPart(c, chunk, [&](int64_t, int64_t plane, Range lines) {
    for (int64_t y = lines.begin; y < lines.end; ++y) {
      const int64_t pixel = (plane * pixels1 + y) * pixels2;
      const Range x = Common(chunk.inner, {pixel, pixel + pixels2});
      // Of one line only those of the chunk are packed.
      const int64_t first = c.axes[2].first + x.begin * c.axes[2].pixel_step - positions.first;
      const int64_t at = part + (y - lines.begin) * c.axes[1].pixel_step * line + first * position;
      for (int64_t i = 0; i < x.size(); ++i) *to++ = at + i * pixel_step;
    }
    part += PositionsAlong(c.axes[1], lines.size()) * line;
  });
}

// As addresses, for a tile.
HWY_INLINE void PointFrom(const float* first, const int64_t* bytes, int64_t count,
                          uint64_t* addresses) {
  const hn::ScalableTag<uint64_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint64_t base = reinterpret_cast<uintptr_t>(first);
  const auto from = hn::Set(d, base);
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) {
    const auto at = hn::LoadU(d, reinterpret_cast<const uint64_t*>(bytes + k));
    hn::StoreU(hn::Add(from, at), d, addresses + k);
  }
  for (; k < count; ++k) addresses[k] = base + static_cast<uint64_t>(bytes[k]);
}

// Of one block of channels, and of one chunk.
template <bool kUsed>
class PackedPositions {
 public:
  void Forget() { block_ = -1; }

  // Of the pixels of a chunk, for mr rows from `place` on, all of one tap. `to`: memory of
  // positions.
  template <class T>
  HWY_INLINE const uint64_t* AddressesOf(const Contraction& c, const T* g, const RowPlace& place,
                                         int64_t mr, const Chunk& chunk, float* to) {
    const int64_t block = place.channel / c.row_block * c.row_block, row = place.channel - block;
    if (block != block_) {
      block_ = block;
      Pack(c, g, {block, std::min(block + c.row_block, c.channels)}, mr, chunk, to);
    }
    const int64_t first = row / width_ * depth_ + positions_.ShiftOfTap(c, place.tap);
    PointFrom(to + first * width_ + row % width_, pixels_, chunk.terms(), addresses_);
    return addresses_;
  }

 private:
  template <class T>
  HWY_NOINLINE void Pack(const Contraction& c, const T* g, Range channels, int64_t mr,
                         const Chunk& chunk, float* to) {
    positions_ = PositionsOf(c, chunk);
    // Panels of a tile's rows, if no tap begins within one.
    width_ = channels.size() % mr == 0 ? mr : channels.size();
    depth_ = c.axes[0].taps * positions_.lines * positions_.width;
    PackPositions(c, positions_, g, channels, chunk, Panels<float>{to, width_, depth_});
    PlacePixels(c, positions_, chunk, width_, pixels_);
  }

  Positions positions_;
  int64_t block_ = -1;  // first channel; -1: none
  int64_t width_ = 1, depth_ = 0;
  int64_t pixels_[kUsed ? Chunks::kLongest : 1];  // from PlacePixels
  uint64_t addresses_[kUsed ? Chunks::kLongest : 1];
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
