// Sums of the direct kernel along pixels: depthwise, the pixels of a line next to each other in
// both tensors. Step 7 of the story. Lanes are pixels, nothing is copied or turned: a tap is a load
// that is one position further. (Lines of 16 bits are widened first, each once: where it is loaded,
// each tap would have to.) Two lines of v are summed at once, since all lines of g but two are
// the same for both. At the ends of a line, where taps are outside, a vector is loaded from inside
// and moved by a table. (Neoverse-N1, 144 channels, 3x3, 56x56: half the time of lines that are
// copied and turned so that lanes are channels.)
#ifndef CONVGRAD_CPU_DIRECT_PIXELS_H_
#define CONVGRAD_CPU_DIRECT_PIXELS_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "convgrad/types.h"
#include "cpu/contraction.h"

namespace convgrad {

// How the vectors of a line of v lie in it, and where its taps read a line of g: the same for all
// lines.
struct PixelColumns {
  // What is unrolled; and edges that a line of 30 pixels has, all of them NEON's: of more, most
  // products are with padding, or taps are far apart.
  static constexpr int kMostTaps = 7;
  static constexpr int kMostEdges = 8;
  static constexpr int kMostLanes = 16;

  // One vector, of which some taps are outside, or that has no neighbour.
  struct Edge {
    int64_t pixel;            // its first
    int64_t fresh;            // lanes at its end that no vector before it has
    int64_t from[kMostTaps];  // a position inside, for each tap
    alignas(64) int32_t places[kMostTaps][kMostLanes];  // of the lanes from there; < 0: outside
  };

  int taps = 0;
  int64_t first[kMostTaps] = {};  // position that a tap reads at the first pixel
  // Pixels from which on so many fours, and then twos, of vectors have all their taps inside.
  int64_t inside = 0;
  int64_t fours = 0, twos = 0;
  int64_t edges = 0;
  Edge edge[kMostEdges];

  // All but the edges themselves; false: vectors of so many lanes do not fit, or there are too many
  // edges.
  bool Cut(const GatherAxis& axis, int64_t lanes) {
    if (axis.pixel_step != 1 || axis.taps < 1 || axis.taps > kMostTaps || axis.pixels < lanes ||
        axis.limit < lanes) {
      return false;
    }
    taps = static_cast<int>(axis.taps);
    for (int64_t t = 0; t < axis.taps; ++t) first[t] = axis.first + t * axis.tap_step;
    // Pixels [begin, end) have all their taps inside.
    const int64_t begin = std::max<int64_t>(0, -std::min(first[0], first[taps - 1]));
    const int64_t end = std::min(axis.pixels, axis.limit - std::max(first[0], first[taps - 1]));
    inside = std::min(CeilDiv(begin, lanes) * lanes, axis.pixels);
    const int64_t vectors = std::max<int64_t>(0, end - inside) / lanes;
    fours = vectors / 4;
    twos = vectors % 4 / 2;
    const int64_t inside_end = inside + vectors / 2 * 2 * lanes;
    edges = CeilDiv(inside, lanes) + CeilDiv(axis.pixels - inside_end, lanes);
    return edges <= kMostEdges;
  }
};

// What the lines of v of all channels have in common. Taps are summed depth by depth; of a depth,
// as many lines of taps at a time as are unrolled.
struct TapsAlongPixels {
  struct Steps {
    int64_t count;
    int64_t rows;     // from step to step, in the table of lines of g
    int64_t weights;  // floats
  };

  const PixelColumns* columns;
  int unrolled;  // lines of taps, for two lines of v at once; 1: for one line of v
  Steps depths, lines;
  const float* zeros;  // a line of g that is outside
  float beta;
};

// Some lines of v of one channel. A line reads the lines of g that the table has from its row on;
// where two are summed at once, the second one from one row further.
struct LinesOfPixels {
  static constexpr int64_t kOutside = INT64_MIN;

  const float* g;
  const int64_t* rows;  // floats from g
  int64_t row_step;     // from line to line, or from two to two
  const float* w;
  float bias;
  void* v;
  int64_t second;  // elements from a line to the one that is summed with it
  int64_t v_step;
  int64_t count;
};

struct SumsAlongPixels {
  // Lines of taps, 7x7x7; and rows of the table of lines of g: 8 KiB, so that it stays in the
  // first-level cache.
  static constexpr int64_t kMostLines = 49;
  static constexpr int64_t kMostRows = 1024;
  // Lines of 16 bits that are widened at a time stay in the first-level cache.
  static constexpr int64_t kWidenedFloats = 8 << 10;
  // Lines of g from the first to the last that a line of v reads, and one more for its neighbour.
  static int64_t RowsOf(const GatherAxis& height) {
    return (std::max<int64_t>(height.taps, 1) - 1) * std::abs(height.tap_step) + 2;
  }
  // Those that there are, of all depths: the fewest that can be widened at a time.
  static int64_t FewestRows(const GatherAxis& depth, const GatherAxis& height) {
    return std::max<int64_t>(1, depth.taps * std::min(RowsOf(height), height.limit));
  }
  // Floats of the weights of a line of taps.
  static constexpr int64_t WeightsOf(int64_t taps) { return CeilDiv(taps, 4) * 4; }

  void (*set_edges)(const GatherAxis& axis, PixelColumns& columns);
  // Lines of taps that it can unroll, or 1.
  int (*unrolled)(int64_t lines, int64_t taps);
  void (*sum_lines)(const TapsAlongPixels& taps, const LinesOfPixels& lines);
};

// Writing tensors of this type, on the instruction set of this CPU.
const SumsAlongPixels& PickedSumsAlongPixels(DataType type);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_PIXELS_H_
