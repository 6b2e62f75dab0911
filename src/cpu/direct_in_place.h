// Sums of the direct kernel without copies: depthwise, channels next to each other in both tensors.
// Step 7 of the story. Positions are found through tables of pointers; one that is outside points
// to zeros, a pixel that does not exist to memory that nobody reads. So every tile is whole, and
// any stride, dilation and padding is in the tables. Worth it for few taps: copying lines in and
// out takes 40 % of the time of a 3x3 layer, but copies are read faster.
#ifndef CONVGRAD_CPU_DIRECT_IN_PLACE_H_
#define CONVGRAD_CPU_DIRECT_IN_PLACE_H_

#include <cstdint>

#include "convgrad/types.h"

namespace convgrad {

// Vectors of w and of sums, as the blocks of a task have them (direct.h): a plane for each vector
// of a block, in which terms follow each other.
template <class Float>
struct VectorsOfBlocks {
  Float* first;   // term of the first block
  int64_t block;  // floats from block to block
  int64_t plane;
};

// A tile of v: a few pixels, all channels.
struct TapsInPlace {
  // Where lines of taps read g, one line after the other, `places` of each. Sliding, tap t of pixel
  // p is at [p + t]; else at [t * pixels + p].
  const void* const* at;
  int64_t places;
  const int64_t* terms;  // of each line the first one, in w
  int64_t lines;
  // A line of taps in pieces, as many as registers allow: first those of `taps` taps, then those of
  // one less.
  int taps;
  int64_t long_pieces, short_pieces;
  bool slides;
  int64_t channels;
  VectorsOfBlocks<const float> w;
  int64_t bias;  // its term
  void* const* out;
  float beta;
  int64_t ahead;      // elements from a position to the one that the next tile reads; 0: unknown
  int64_t out_ahead;  // from a pixel to that of the next tile, as well
  // One line of at most tap_piece taps, sliding: the first taps - 1 positions, which are the last
  // ones of the tile before, widened, [vector of channels][taps - 1][lanes]; those of the next tile
  // take their place. Null: all are read from g.
  float* carry;
};

// Pixels of a line of v and a few taps of a line of taps.
struct PixelsInPlace {
  // Sliding, tap t of pixel p is at [p + t]; else at [t * pixels + p].
  const void* const* at;
  const void* v;
  int64_t v_step;  // elements
  int64_t pixels;
  int taps;
  bool slides;
  int64_t channels;
  VectorsOfBlocks<float> sums;
  // Elements from a position of g and from a pixel of v to those of the next run; 0: unknown.
  int64_t g_ahead, v_ahead;
  // What else the next run reads, pixel by pixel, each fetched after one that this one reads. Null:
  // nothing.
  const void* fetch;
  int64_t fetch_step;  // elements
  float* carry;        // as that of taps; then pixels are line_pixels
};

struct SumsInPlace {
  static constexpr int kMostPixels = 8;
  static constexpr int kMostPieceTaps = 8;  // where pixels are summed
  // Whether tiles of one line of taps have positions that are carried: of NEON.
  static constexpr bool Carries(int lanes) { return lanes == 4; }
  static constexpr int64_t kMostCarriedTaps = 4;

  int tile_pixels;  // or half of them
  int line_pixels;  // of a tile for one line of taps; 0: as others
  int tap_piece;    // taps of a piece, at most
  void (*sum_taps)(const TapsInPlace& tile, int pixels);
  int pixel_piece;
  void (*sum_pixels)(const PixelsInPlace& run);
};

// Of tensors of this type, on the instruction set of this CPU.
const SumsInPlace& PickedSumsInPlace(DataType type);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_IN_PLACE_H_
