// The sums of the flat kernel: vectors of pixels by a few o, in registers. Step 7 of the story.
// Knows floats in memory and where they are, no tensor and no axis.
#ifndef CONVGRAD_CPU_FLAT_SUMS_H_
#define CONVGRAD_CPU_FLAT_SUMS_H_

#include <cstdint>

namespace convgrad {

// The terms of a chunk: of a vector of pixels, tap t of channel c is g[pixels + offsets[t] + c *
// channel_step + lane].
struct FlatTerms {
  const int64_t* offsets;  // [taps]
  int64_t taps;
  int64_t channels;
  int64_t channel_step;
};

struct FlatSums {
  static constexpr int kMostOfTile = 8;

  // So many of `o` at once, of which each vector of g is loaded for all.
  static constexpr int64_t OutsOf(int64_t o) {
    const int64_t parts = (o + kMostOfTile - 1) / kMostOfTile, each = (o + parts - 1) / parts;
    return each <= 4 ? each : each <= 6 ? 6 : 8;
  }

  // c[o, pixels, lane] = the chain of a chunk, or c + that. pixels: [count], where vectors begin in
  // g; w: [taps, channels, outs].
  void (*sum)(const FlatTerms& terms, const float* g, const int64_t* pixels, int64_t count,
              const float* w, int64_t outs, bool add, float* c);
};

const FlatSums& PickedFlatSums();

}  // namespace convgrad

#endif  // CONVGRAD_CPU_FLAT_SUMS_H_
