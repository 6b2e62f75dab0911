// Sums of the direct kernel along taps: depthwise weight gradients of f32, the pixels of a line
// next to each other in both tensors. Step 7 of the story. Lanes are neighbouring taps of a line:
// what they read at a pixel is one load of g, one position further than at the pixel before, and
// the pixel of v is a factor of all of them. So nothing is copied or turned, and the chain of each
// sum is that of the other kernels. At the ends of a line, where taps are outside, a vector is
// loaded from inside and moved by a table. (Neoverse-N1, 1536 channels of 2048 pixels, 4 taps:
// lines turned so that lanes are channels 5.7 ms, so 2.8.)
#ifndef CONVGRAD_CPU_DIRECT_TAPS_H_
#define CONVGRAD_CPU_DIRECT_TAPS_H_

#include <cstdint>

#include "cpu/contraction.h"

namespace convgrad {

// Some lines of v, of one channel or more, and the strips of taps that are summed over them: four
// neighbours of a line of taps each.
struct TapStrips {
  static constexpr int kTaps = 4;
  static constexpr int kMost = 9;  // whose sums are in registers
  static constexpr int kMostChannels = 4;

  // Four pixels of a line of which not all strips are inside, or some were summed before.
  struct Edge {
    int64_t pixel;                     // the first
    alignas(16) uint32_t kept[kTaps];  // all bits of those that are summed here
  };
  // What a strip reads at each of them: a vector that is inside, moved.
  struct Moved {
    int64_t at[kTaps];  // floats from where it reads at the first pixel of the line
    alignas(16) uint8_t from[kTaps][16];  // bytes; > 127: zero
  };

  // Of each strip, channel by channel: where it reads g at the first pixel of the first line, and
  // how far it is to the next line.
  const float* g[kMost];
  int64_t g_line[kMost];
  const float* v[kMostChannels];
  int64_t v_line;
  int64_t lines;
  // Of a line: some edges, so many fours of pixels from `inside` on, and the other edges. All
  // strips are the same one of their line of taps.
  const Edge* edges;
  const Moved* moved;
  int64_t before, after;
  int64_t inside, fours;
  int64_t step;  // positions of g from pixel to pixel
  // From strip to strip and from channel to channel; those of the bias, four times the same, or
  // null.
  float* sums;
  int64_t sum_strip, sum_channel;
  float* bias;
};

struct SumsAlongTaps {
  // Channels at once of so few strips that their chains would wait for each other.
  static constexpr int64_t ChannelsOf(int64_t strips) {
    return strips == 1 ? 4 : strips == 2 ? 2 : 1;
  }

  // ChannelsOf(strips) channels or one.
  void (*sum)(const TapStrips& run, int channels, int strips);
};

// On the instruction set of this CPU.
const SumsAlongTaps& PickedSumsAlongTaps();

// Of a line of g.
struct TapEdges {
  static constexpr int64_t kMost = 6;
  static constexpr int64_t kMostTaps = 8;  // of a line
  static constexpr int64_t kMostStrips = kMostTaps / TapStrips::kTaps;
  static constexpr int64_t kMostStep = 4;  // positions from pixel to pixel
  // A line of zeros has ends, which edges read: kMost fours of pixels, and a vector.
  static constexpr int64_t kEnd = (kMost * kMostStep + 1) * TapStrips::kTaps;
};

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_TAPS_H_
