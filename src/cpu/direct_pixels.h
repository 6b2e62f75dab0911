// Sums of the direct kernel along pixels: depthwise, the pixels of a line next to each other in
// both tensors. Step 7 of the story. Lanes are pixels, nothing is copied or turned: a tap is a load
// that is one position further. (Lines of 16 bits are widened first, each once: where it is loaded,
// each tap would have to.) Two or four lines of v are summed at once, since most lines of g are the
// same for them. At the ends of a line, where taps are outside, a vector is loaded through a mask
// (AVX-512), or from inside and moved by a table. (Neoverse-N1, 144 channels, 3x3, 56x56: half the
// time of lines that are copied and turned so that lanes are channels.)
//
// Of a stride of two along lines, every second lane of two vectors is taken, if there are few taps;
// of a dgrad, both phases are summed in registers and their lanes stored between each other. (96
// channels, 3x3, 112x112: 7.3 ms, so 4.9; dgrad 17.2 and 5.9. Of 7x7, and of 16 bits but for the
// dgrad, lines that are turned are faster: 7x7 9.7 ms and 17.8, bf16 3x3 6.5 and 6.7.)
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
  static constexpr int kMostOfStrideTwo = 4;
  static constexpr int kMostEdges = 8;
  static constexpr int kMostLanes = 16;

  // One vector, of which some taps are outside, or that has no neighbour.
  struct Edge {
    int64_t pixel;            // its first
    int64_t fresh;            // lanes at its end that no vector before it has
    int64_t from[kMostTaps];  // the position that a vector is loaded from, for each tap
    // Lanes of it, and, of a stride of two, of the next vector: see LoadPlaces.
    alignas(64) int32_t places[kMostTaps][2][kMostLanes];
  };

  int taps = 0;
  int stride = 1;
  int64_t first[kMostTaps] = {};  // position that a tap reads at the first pixel
  // Pixels from which on so many fours, and then twos, of vectors have all their taps inside.
  int64_t inside = 0;
  int64_t fours = 0, twos = 0;
  int64_t edges = 0;
  Edge edge[kMostEdges];

  // Pixels all of whose taps are inside. Of a stride of two, taps are loaded by pairs.
  static Range InsideOf(const GatherAxis& axis) {
    const int64_t far = (axis.taps - 1) * axis.tap_step;
    const int64_t lowest = axis.first + std::min<int64_t>(0, far);
    const int64_t highest =
        axis.pixel_step == 2 ? lowest + CeilDiv(axis.taps, 2) * 2 - 1 : lowest + std::abs(far);
    const int64_t begin = std::max<int64_t>(0, CeilDiv(-lowest, axis.pixel_step));
    const int64_t left = axis.limit - 1 - highest;
    return {begin, left < 0 ? 0 : std::min(axis.pixels, left / axis.pixel_step + 1)};
  }

  // All but the edges themselves; false: vectors of so many lanes do not fit, or there are too many
  // edges. `whole`: pixels all of whose taps are inside.
  bool Cut(const GatherAxis& axis, int64_t lanes, const Range& whole) {
    if (axis.taps < 1 || axis.taps > kMostTaps || axis.pixels < lanes ||
        axis.limit < lanes * axis.pixel_step) {
      return false;
    }
    taps = static_cast<int>(axis.taps);
    stride = static_cast<int>(axis.pixel_step);
    for (int64_t t = 0; t < axis.taps; ++t) first[t] = axis.first + t * axis.tap_step;
    const int64_t begin = whole.begin, end = whole.end;
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
  int unrolled;  // lines of taps
  int together;  // lines of v
  Steps depths, lines;
  const float* zeros;  // a line of g that is outside
  float beta;
};

// Some lines of v of one channel. A line reads the lines of g that the table has from its row on;
// where several are summed at once, each from one row further than the one before it.
struct LinesOfPixels {
  static constexpr int64_t kOutside = INT64_MIN;

  const float* g;
  const int64_t* rows;  // floats from g
  int64_t row_step;     // from line to line, or to the next ones that are summed at once
  const float* w;
  float bias;
  void* v;
  int64_t second;  // elements from a line to the next one that is summed with it, if any
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
  // Lines of v that are summed at once. Of short lines AVX-512 has so few vectors that the sums of
  // two lines wait for each other: four (Cascade Lake, 192 channels, 28x28, 7x7: 3.04 ms, so 2.29).
  // Of lines that are longer than that, two are faster (112x112, 3x3: 1.9 ms, four 2.2 to 2.6; 7x7
  // four: 5.1 ms, so 4.4).
  static constexpr int MostTogether(int64_t lanes) { return lanes >= 16 ? 4 : 2; }
  static int TogetherOf(int64_t lanes, int unrolled, int64_t pixels) {
    if (unrolled == 1) return 1;
    return pixels <= unrolled * lanes ? MostTogether(lanes) : 2;
  }
  // Lines of g from the first to the last that lines of v at once read.
  static int64_t RowsOf(const GatherAxis& height, int64_t lanes) {
    return (std::max<int64_t>(height.taps, 1) - 1) * std::abs(height.tap_step) +
           MostTogether(lanes);
  }
  // Those that there are, of all depths: the fewest that can be widened at a time.
  static int64_t FewestRows(const GatherAxis& depth, const GatherAxis& height, int64_t lanes) {
    return std::max<int64_t>(1, depth.taps * std::min(RowsOf(height, lanes), height.limit));
  }
  // Floats of the weights of a line of taps.
  static constexpr int64_t WeightsOf(int64_t taps) { return CeilDiv(taps, 4) * 4; }

  void (*set_edges)(const GatherAxis& axis, PixelColumns& columns);
  // Lines of taps that it can unroll, or 1.
  int (*unrolled)(int64_t lines, const PixelColumns& columns);
  void (*sum_lines)(const TapsAlongPixels& taps, const LinesOfPixels& lines);
};

// The two phases of a dgrad whose pixels lie between each other.
struct PhasePair {
  static constexpr int64_t kMostTaps = 3;  // of a phase

  TapsAlongPixels taps[2];  // columns of both have the same edges
  int64_t weights[2];       // where those of a phase are
  bool odd;                 // the second one has one pixel less

  // The second axis may have one pixel less: the last one of both is part of an edge then.
  static bool Cut(const GatherAxis& a, GatherAxis b, int64_t lanes, PixelColumns (&columns)[2]) {
    if (a.taps > kMostTaps || b.taps > kMostTaps || std::abs(a.taps - b.taps) > 1 ||
        (a.taps == b.taps && a.taps == kMostTaps)) {
      return false;
    }
    const Range of_a = PixelColumns::InsideOf(a), of_b = PixelColumns::InsideOf(b);
    const Range whole{std::max(of_a.begin, of_b.begin), std::min(of_a.end, of_b.end)};
    b.pixels = a.pixels;
    return columns[0].Cut(a, lanes, whole) && columns[1].Cut(b, lanes, whole);
  }
};

struct PairsAlongPixels {
  // Whether it has all lines of taps at once.
  bool (*unrolls)(int64_t lines, int64_t taps_a, int64_t taps_b);
  void (*sum_lines)(const PhasePair& pair, const LinesOfPixels& lines);
};

// Writing tensors of this type, on the instruction set of this CPU.
const SumsAlongPixels& PickedSumsAlongPixels(DataType type);
const PairsAlongPixels& PickedPairsAlongPixels(DataType type);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_PIXELS_H_
