// The micro-kernel: a tile of c in registers, which goes to rows of any place: c again, or the
// result. Step 7 of the story, the only hot loop. Knows panels of a, [terms, rows] or, by rows,
// [rows, terms], and b, [terms, columns], and lines that several terms share.
#ifndef CONVGRAD_CPU_TILE_H_
#define CONVGRAD_CPU_TILE_H_

#include <cstdint>

namespace convgrad {

// How a chunk joins the c of the chunks before it.
enum class ChunkJoin {
  kAlone,  // c = sum
  kFirst,  // c = 0 + sum
  kAdd,    // c = c + sum
  kChain,  // the sum starts from c
};

// Elements from row to row of a that is packed by rows. A constant, so that one register addresses
// all rows; 28 cache lines, so that they fall into different sets of L1.
inline constexpr int64_t kRowPitch = 448;
// The same for lines, whose positions have half of the terms at most.
inline constexpr int64_t kLinePitch = kRowPitch / 2;

// Where a and b are.
enum class TileSource {
  kPanels,
  kRows,       // a by rows
  kALines,     // a is lines, read from another place for each segment of the terms
  kARowLines,  // the same by rows, [positions, terms]
  kBLines,
  kAPointers,  // an address (uint64_t) for each term of a, of rows next to each other
  kAInPlace,   // rows of a tensor (in_place.h)
};

inline constexpr int kInPlaceRows = 12;

// So few terms that a tile does not ask for what it writes.
inline constexpr int64_t kFewTerms = 64;

// The quarters of the rows of a that a segment of the terms has, a bit for each; those of the
// others are zeros there.
using TileRows = uint8_t;
inline constexpr TileRows kAllRows = 0b1111;

// The elements of a tile along k, in segments of the same length. Those of a panel follow each
// other; those of lines are `step` apart, and a segment begins anywhere. Vectors of four (a) or of
// the CPU's length (b) from `turn` on are `gap` positions further.
struct TileTerms {
  int64_t length;  // of a segment
  int64_t segments;
  const int64_t* begins;
  int64_t step, turn, gap;
  const TileRows* rows = nullptr;  // of segments, of TileSource::kBLines; nullptr: all
  int64_t row_step = 0;            // from row to row, of TileSource::kAInPlace
};

using TileFunction = void (*)(const void* a, const void* b, const TileTerms& terms, const float* c,
                              ChunkJoin join, void* to, const int64_t* to_rows);

// For one of the shapes of tiling.cc, on the instruction set of this CPU. terms_each: of an element
// of a and b, see element.h.
TileFunction TileFunctionOf(int rows, int vectors, TileSource source, int64_t terms_each);

// The same where an element is several terms of bf16: on a CPU that multiplies them at once.
// `rounds`: what goes to rows is bf16, not f32.
TileFunction Bf16TileOf(int rows, TileSource source, bool rounds);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_TILE_H_
