// The second translator: x, w, y -> the three matrices of a contraction. Step 6 of the story starts
// here.
//
//   g  gathered: [pixel, (tap, channel)]   fprop, wgrad: x through its windows; dgrad: y
//   w  weights:  [(tap, channel), o]
//   v  values:   [pixel, o]                fprop, wgrad: y; dgrad: x, one stride phase of it
//
// fprop and dgrad write v = g * w and sum over (tap, channel); wgrad writes w = g^T * v and sums
// over pixels. A strided dgrad is one dense contraction for each phase of the stride.
#ifndef CONVGRAD_CPU_CONTRACTION_H_
#define CONVGRAD_CPU_CONTRACTION_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/problem.h"

namespace convgrad {

// One axis of g: the position read for (pixel, tap) is first + pixel * pixel_step + tap * tap_step;
// outside [0, limit) there is a zero.
struct GatherAxis {
  int64_t pixels = 1;
  int64_t taps = 1;
  int64_t first = 0;
  int64_t pixel_step = 1;
  int64_t tap_step = 1;
  int64_t limit = 1;

  bool operator==(const GatherAxis&) const = default;
};

// Strides of a matrix in elements, and where its first element is.
struct Strides {
  int64_t first = 0;
  int64_t image = 0;                // g, v
  int64_t channel = 0;              // g, w
  int64_t o = 0;                    // w, v
  std::array<int64_t, kAxes> at{};  // g: positions; v: pixels; w: taps
};

// Phases of a strided dgrad with few channels as columns of one contraction, so that g is packed
// once for all of them: column o of the result is (phase, channel). Along an axis, phase f meets
// tap (base + f + stride * t) of w through tap t of g, if w has such a tap, and is written to
// position f + stride * pixel.
struct PhaseColumns {
  int64_t channels = 0;  // of a phase; 0: o is no phase
  std::array<int64_t, kAxes> phases{1, 1, 1};
  std::array<int64_t, kAxes> base{}, stride{1, 1, 1}, taps{};
  std::array<int64_t, kAxes> v_step{}, w_step{};  // from phase to phase
  std::array<int64_t, kAxes> last{1, 1, 1};       // phases that the last pixel has

  // Whether w has the tap that a phase would meet through this tap of g.
  bool HasTap(const int64_t (&phase)[kAxes], const int64_t (&tap)[kAxes]) const {
    bool has = true;
    for (int a = 0; a < kAxes; ++a) {
      const int64_t of_w = base[a] + phase[a] + stride[a] * tap[a];
      has = has && of_w >= 0 && of_w < taps[a];
    }
    return has;
  }
};

struct Contraction {
  bool sum_pixels = false;  // wgrad
  int64_t images = 1;
  int64_t channels = 1;
  int64_t o = 1;
  std::array<GatherAxis, kAxes> axes;
  Strides g, w, v;
  PhaseColumns columns;

  // dgrad with a stride of two along pixels that are next to each other: one of two phases, of even
  // and of odd positions, whose results lie between each other. A task computes both and writes
  // whole lines.
  bool zipped = false;
  bool twins = false;  // and both read the same of g: an even number of taps, such as 2x2

  // wgrad: rows of the result are blocks of so many channels; in a block, tap by tap.
  int64_t row_block = 1;

  // Terms that are summed at once, as one element of a panel: see element.h. The order of a sum
  // depends on it.
  int64_t terms_each = 1;

  // Pixels of the last axis that do not exist: with them, lines are whole vectors (lines.h). They
  // are computed and not stored.
  int64_t beyond = 0;

  // Pixels of a line. Where axes are merged, which depends on strides, the last one has several.
  int64_t line = 1;

  // The outermost axis, if taps read outside along it: products with padding can be skipped there.
  // -1: no.
  int skipped_axis = -1;
  // fprop, dgrad: pixels go line by line, the same line of all images together; or, with one pixel
  // at a time, position by position. Of small images, a tile then has pixels of one line, or
  // position, and whole taps of it are padding. 0: no, else a line's pixels or 1.
  int64_t images_inside = 0;

  // fprop, dgrad: so much of the rest is padding, too, that it is left out along every axis: a tile
  // meets the box of taps through which its pixels read inside.
  bool boxes = false;

  // Of the largest of several phases: the work of one of them, on average, as a share of its own.
  double share = 1;
  // Zipped: the work of the largest pair, as a multiple of its own.
  double largest_pair = 1;

  int64_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  int64_t pixels() const { return axes[0].pixels * axes[1].pixels * axes[2].pixels; }  // one image
  // The side of the result that is not o.
  int64_t rows() const { return sum_pixels ? taps() * channels : images * pixels(); }
};

// Whether what the taps of a line of the kernel read for a pixel is one run of memory, channels
// included: channels last, as first layers have few of them.
inline bool HasTapRuns(const Contraction& c) {
  const GatherAxis& axis = c.axes[kAxes - 1];
  return axis.taps > 1 && c.channels <= 8 && (c.g.channel == 1 || c.channels == 1) &&
         axis.tap_step <= 8 && c.g.at[kAxes - 1] * axis.tap_step == c.channels;
}

// wgrad: where a row of the result is, and how many rows from it on have the same tap.
struct RowPlace {
  int64_t tap, channel, run;
};

inline RowPlace PlaceOfRow(const Contraction& c, int64_t row) {
  const int64_t block_rows = c.row_block * c.taps(), first = row / block_rows * c.row_block;
  const int64_t width = std::min(c.row_block, c.channels - first), at = row % block_rows;
  return {at / width, first + at % width, width - at % width};
}

// Stride phases of the problem, each a contraction of its own: 1 but for dgrad. Two that are zipped
// count once.
int64_t CountPhases(const Problem& problem);

// Of those that follow each other, as many as write between each other along lines of x, near
// enough for a cache line to have positions of several.
int64_t CountPhasesOfLine(const Problem& problem);

// The i-th of them: along each axis, without dilation, those with more taps first, so that the last
// tasks of a run are short.
int64_t PhaseInOrder(const Problem& problem, int64_t i);

// `odd`: the second of two that are zipped.
// `boxes`: of all phases or of none.
Contraction MakeContraction(const Problem& problem, int64_t group, int64_t phase, bool odd = false,
                            bool boxes = false);

// Groups of so few channels that one of them fills no tile: several share a vector, see direct.h.
// Their sums are widened, whatever the CPU has for bf16.
bool IsSmallGroup(const Problem& problem);  // each of them
bool HasSmallGroups(const Problem& problem);

// One group of as few channels, whose sums have the same order in both kernels: no phase is a
// column. (Nor may elements have several terms, which depends on the CPU.)
bool HasOneSmallGroup(const Problem& problem);

// fprop, and dgrad of one phase, of one channel to one: images share nothing but the weights, as
// groups do not even. They, too, can share vectors. (The order of a sum may not depend on how many
// there are: phases as columns are other sums than phases alone.)
bool HasGroupsOfImages(const Problem& problem);

// Of the first group, with the axes of the problem: nothing merged, moved, zipped or skipped.
int64_t CountPlainPhases(const Problem& problem);
Contraction MakePlainContraction(const Problem& problem, int64_t phase);
Contraction MakeLargestPlainContraction(const Problem& problem);

// The same, with phases as columns where the order of the sum has them.
int64_t CountUnmergedPhases(const Problem& problem);
Contraction MakeUnmergedContraction(const Problem& problem, int64_t phase);
Contraction MakeLargestUnmergedContraction(const Problem& problem);

// fprop, wgrad: the taps through which any output position reads inside x. No contraction has the
// others, so that a wgrad leaves them to FillDeadTaps.
std::array<Range, kAxes> LiveTaps(const Problem& problem);

// As many pixels and as many taps as any phase has.
Contraction MakeLargestContraction(const Problem& problem, bool boxes = false);

// fprop, dgrad: pairs of a pixel and a tap along the axes within the outermost one, of which the
// rest is left out anyway, as a multiple of those that read inside. 1 where there can be no boxes:
// a chunk must have all taps of its channels.
double PaddedMultiple(const Problem& problem);

// The bias gradient is a weight gradient too: of a gathered matrix that is one everywhere.
Contraction MakeBiasContraction(const Problem& problem);

// The order of a sum, part one: its chunks. A chunk is one chain of fused multiply-adds from zero;
// chunks are added to the result in order. Nothing here depends on layout, threads or workspace; on
// the CPU only how many terms are summed at once. See docs/numerics.md.
//
// fprop, dgrad: a block of channels, all its taps (or, for many taps, a range of them); in it, tap
// by tap, channel by channel.
//
// wgrad: pixels of one image in order. Images of fewer than kTinyImage pixels are not worth a chunk
// each: there the chain runs on through all images.
struct Chunks {
  static constexpr int64_t kLongest = 432;
  // Of elements of several terms, which take half the memory and less than half the time: what it
  // costs to end a chunk stays the same.
  static constexpr int64_t kLongestOfElements = 2 * kLongest;
  static constexpr int64_t kTinyImage = 64;

  // Channels and taps (fprop, dgrad) or images and pixels (wgrad), and how many of each a chunk
  // has.
  int64_t outer = 0, outer_block = 1;
  int64_t inner = 0, inner_block = 1;
  bool chained = false;  // a chunk continues the chain of the one before

  int64_t inner_count() const { return CeilDiv(inner, inner_block); }
  int64_t count() const { return CeilDiv(outer, outer_block) * inner_count(); }
  int64_t longest() const { return outer_block * inner_block; }
};

Chunks MakeChunks(const Contraction& contraction);

struct Chunk {
  Range outer;
  Range inner;

  int64_t terms() const { return outer.size() * inner.size(); }
};

inline Chunk ChunkAt(const Chunks& chunks, int64_t i) {
  const int64_t outer = i / chunks.inner_count() * chunks.outer_block;
  const int64_t inner = i % chunks.inner_count() * chunks.inner_block;
  return {{outer, std::min(outer + chunks.outer_block, chunks.outer)},
          {inner, std::min(inner + chunks.inner_block, chunks.inner)}};
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_CONTRACTION_H_
