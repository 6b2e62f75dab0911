// Blocks of a contraction: which side is the vector side, the tile of registers, the block of one
// task and its memory. Decides speed and workspace, never a result.
#ifndef CONVGRAD_CPU_TILING_H_
#define CONVGRAD_CPU_TILING_H_

#include <algorithm>
#include <cstdint>

#include "cpu/contraction.h"
#include "cpu/tile.h"

namespace convgrad {

// What a CPU offers for a type.
struct VectorUnit {
  const char* name = "";
  int lanes = 4;           // of a vector of f32
  int registers = 32;      // of vectors
  bool a_by_rows = false;  // tiles can read a by rows or by pointers
  int64_t l2_bytes = 1 << 20;
  int64_t terms_each = 1;  // of an element of a and b, see element.h
  int64_t k_unit = 1;      // elements that are multiplied at once: tiles of AMX
  const char* bf16_instruction = "";
};

// c[m, n] = sum over k of a[k, m] * b[k, n]. o is n or m.
struct Tiling {
  // Without workspace a, b and c of a task are on the stack: 21 KiB (56 of pairs), 56 and 24.
  static constexpr int64_t kStackB = 14 << 10;
  static constexpr int64_t kStackC = 6 << 10;
  static constexpr int64_t kAlign = 16;          // floats of a cache line
  static constexpr int kMostRows = 32;           // of a tile
  static constexpr int kMostRowsOfSingles = 12;  // of elements that are one term
  static constexpr int kMostColumns = 1024;      // of a block

  bool o_is_n = true;
  int mr = 8;                // rows of a tile
  int vectors = 3;           // columns of a tile, in vectors
  int nr = 12;               // vectors * lanes
  int64_t mb = 0;            // rows of a block, a multiple of mr
  int64_t nb = 0;            // columns of a block, a multiple of nr
  int64_t tail_from = -1;    // rows, of the side that is not o, from here on; -1: none
  int64_t tail_rows = 0;     // are cut into blocks of so many instead
  int64_t terms_each = 1;    // of an element of a and b
  int64_t k_unit = 1;        // depths of panels are multiples of it
  int64_t kc = 0;            // depth of a block: terms of the longest chunk
  int64_t kc_floats = 0;     // and the memory that its elements take
  bool stores_last = false;  // after all chunks, column panel by column panel
  bool keeps_c = false;      // c is kept between chunks
  int results = 1;           // c of a task: 2 where two phases are zipped
  bool twins = false;        // a is packed once for both; b has the columns of both
  int64_t slots = 1;         // blocks that are worked on at a time
  int64_t slot_floats = 0;   // workspace of each; 0: what fits on the stack

  // A small result of a long sum, which has too few blocks for the threads: so many chunks at a
  // time are summed side by side, each into a slab of its own, and the slabs are added in order. 0:
  // no. The result is one block; a task has so many rows of it.
  int64_t slabs = 0;
  int64_t part_rows = 0;

  int a_panels = 4;    // of a that are packed at once
  bool boxes = false;  // of a panel of a, the taps that its pixels meet

  bool a_by_rows = false;  // a is packed [row, k]
  // Panels of rows of one tap are read in positions that all taps share (positions.h): so many of a
  // chunk at most. 0: no.
  int64_t positions = 0;
  int64_t position_floats = 0;  // memory of them
  // Rows that share them: a block of fewer packs as many. 0: none do.
  int64_t position_rows = 0;

  // Blocks of more rows are multiples of it.
  int64_t row_unit(int64_t rows) const {
    return rows > position_rows ? std::max<int64_t>(mr, position_rows) : mr;
  }

  int64_t a_step() const { return a_by_rows ? kRowPitch : kc_floats; }  // floats for each row
  int64_t panel_floats() const { return a_panels * mr * a_step(); }
  // Positions begin a cache line.
  int64_t positions_at() const { return (panel_floats() + kAlign - 1) / kAlign * kAlign; }
  int64_t a_floats() const {
    return positions > 0 ? positions_at() + position_floats : panel_floats();
  }
  int64_t b_floats() const { return (twins ? 2 : 1) * kc_floats * nb; }
  int64_t c_floats() const { return keeps_c ? results * mb * nb : 0; }
  int64_t slab_floats() const { return mb * nb; }
  int64_t workspace_bytes() const {
    const int64_t shared = slabs > 0 ? kAlign + (slabs + 1) * slab_floats() : 0;  // c, too
    return (slots * slot_floats + shared) * int64_t{sizeof(float)};
  }
};

// What the contractions of a problem make of the terms that a unit sums at once: the same for all
// phases and for every layout. Their sums depend on it.
int64_t TermsEach(const Problem& problem, const Contraction& largest, const VectorUnit& unit);
int64_t TermsEach(const Problem& problem, const VectorUnit& unit);

// Whether so much is padding that a panel of pixels is packed with the box of taps that they meet.
// `largest`: without boxes. Decides speed, never a result.
bool HasBoxes(const Problem& problem, const Contraction& largest, const VectorUnit& unit);

// For the largest phase of a group. `limit` in bytes, -1: none. Called again with the workspace
// that came out as the limit, it gives the same tiling.
Tiling MakeTiling(const Contraction& contraction, int64_t copies, int threads, int64_t limit,
                  const VectorUnit& unit);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_TILING_H_
