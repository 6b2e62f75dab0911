// The direct kernel: groups of few channels, depthwise above all, where a contraction of one group
// fills no tile. Lanes of its vectors are o of neighbouring groups; nothing is multiplied but what
// is needed. Its sums have the order of the contraction (contraction.h), so the bits are the same.
//
// Lines of g are copied into memory: any layout, type and padding is absorbed there. (Few taps of
// channels, or of pixels, that are next to each other need no copy: direct_in_place.h, and
// direct_pixels.h, whose lanes are pixels; those of direct_taps.h are taps.) A line of v is
// then summed from the lines that its kernel meets, and stored; or, where pixels are summed, a line
// of g and one of v give a line of taps. Each o of a group has a lane; its factors of g are copied
// for each of them, or, of groups of fours, taken from a lane of a vector of channels.
#ifndef CONVGRAD_CPU_DIRECT_H_
#define CONVGRAD_CPU_DIRECT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/parallel.h"
#include "core/problem.h"
#include "cpu/contraction.h"
#include "cpu/direct_taps.h"
#include "cpu/tiling.h"

namespace convgrad {

// Lanes of a block of o: a cache line of floats, and two vectors at least.
constexpr int64_t LanesOfBlock(int vector_lanes) {
  return vector_lanes > 8 ? 2 * int64_t{vector_lanes} : 16;
}

// Whether the channels of a line of g can stay as they are: fours of them in a vector, each of
// which is a factor of one vector of o, or, of groups of four, and of eight in vectors of 16 lanes,
// of their own o. And no chunk cuts them.
inline bool HasFours(const Contraction& c, int vector_lanes) {
  const bool fours = c.channels % 4 == 0 && c.o % 4 == 0 && vector_lanes >= 4;
  const bool eights = c.channels == 8 && c.o == 8 && vector_lanes == 16;
  const bool blocks = (c.channels == 4 && c.o == 4) || eights;
  return fours && (blocks || c.o % vector_lanes == 0) &&
         (c.sum_pixels || MakeChunks(c).outer_block % (eights ? 8 : 4) == 0);
}

// The cut of one problem into tasks. A task has some blocks of o, some images and a part of their
// lines and columns; where pixels are summed, some chunks.
struct DirectTiling {
  static constexpr int64_t kStackFloats = 20 << 10;
  static constexpr int64_t kMostLines = Chunks::kLongest;  // of taps
  static constexpr int64_t kMostTapsInPlace = 64;
  static constexpr int64_t kMostColumnsInPlace = 64;

  int vector_lanes = 4;
  // Decided for the phase, or the part, of the most taps; the others obey, so that none needs more
  // memory than it does.
  bool in_place = false;             // nothing is copied: see direct_in_place.h
  bool carries = false;              // in place, positions from tile to tile
  bool far_out = false;              // in place: what is written is in no cache
  std::optional<bool> sparse;        // copied lines have only positions that are read
  bool turned = false;               // planes, and then in place: see direct_turned.h
  bool along_pixels = false;         // lanes are pixels, a block is a channel: see direct_pixels.h
  bool pairs = false;                // and two phases of a dgrad are computed together
  bool groups_along_pixels = false;  // a block is a group: see direct_group_pixels.h
  bool along_taps = false;           // lanes are taps, a block is a channel: see direct_taps.h
  int64_t lanes = 16;                // of a block of o
  int64_t used = 16;                 // of them: whole groups
  int64_t blocks = 1;                // of all groups
  int64_t blocks_each = 1;           // of a task
  int64_t block_tasks = 1;
  int64_t image_tasks = 1;
  int64_t bands = 1;         // of lines
  int64_t columns = 1;       // of a line that are computed at once
  int64_t lines_each = 1;    // of a weight gradient, whole lines of v that are summed at once
  int64_t column_tasks = 1;  // of each band
  int64_t chunk_parts = 1;   // of chunks that are summed side by side
  int64_t tap_parts = 1;     // of more taps than fit into the memory of a task, and their taps
  std::array<int64_t, kAxes> part_taps{};
  int64_t line_floats = 0;      // of lines that are kept, of a block, or of a line of zeros
  int64_t most_lines = 0;       // that are kept
  int64_t plane_width = 0;      // turned: floats from position to position
  int64_t plane_positions = 0;  // of x and of y, of a channel
  int64_t task_floats = 0;      // memory of a task
  int64_t slots = 1;            // tasks at a time
  bool on_stack = false;        // their memory
  int64_t slab_floats = 0;      // the sums of all chunks, where they are side by side

  int64_t workspace_bytes() const {
    const int64_t floats = (on_stack ? 0 : slots * task_floats) + slab_floats;
    return floats == 0 ? 0 : (floats + 16) * int64_t{sizeof(float)};
  }
};

// The lines of g that are in memory, of a block of o.
struct LineSlots {
  int64_t span = 1;        // positions of a line
  bool sparse = false;     // only those that are read: for each tap, the columns
  bool by_pixels = false;  // or, for each column, the taps
  int64_t line_floats = 0;
  bool keeps_planes = false;  // whole planes, which stay for the next depth
  bool keeps_lines = false;   // lines stay for the next line of v
  // Planes are in turns. Of lines that are kept without planes, a power of two: a line's slot is
  // its low bits.
  int64_t depth = 1, height = 1;

  int64_t count() const { return depth * height; }
  int64_t floats() const { return count() * line_floats; }
};

// The memory of a task: a line of zeros, which line each slot has, or positions that are carried;
// and for each block of o its
// lines of g, a line of v, and its weights and bias, or two of its sums.
struct DirectMemory {
  LineSlots slots;
  int64_t tag_floats = 0;
  int64_t zero_floats = 0;  // in place: as many as channels, twice
  int64_t carry_floats = 0;
  int64_t tap_line_floats = 0;  // along taps, a line of zeros
  int64_t block_floats = 0;
  int64_t weights_at = 0;  // in a block

  int64_t shared_floats() const {
    return slots.line_floats + tag_floats + zero_floats + carry_floats + tap_line_floats;
  }
  int64_t floats(int64_t blocks) const { return shared_floats() + blocks * block_floats; }
};

struct DirectWork {
  const Problem* problem = nullptr;  // turned: with planes
  const Contraction* c = nullptr;    // of the first group, or two phases; turned: of lines, or none
  const DirectTiling* t = nullptr;
  int64_t groups = 1;
  int64_t w_group = 0;  // from group to group
  const void* g = nullptr;
  const void* other = nullptr;
  void* out = nullptr;
  const void* bias = nullptr;
  int64_t bias_stride = 1;
  void* bias_out = nullptr;
  float beta = 0;
  bool f32_out = false;
  float* slabs = nullptr;
};

struct DirectTask {
  Range blocks{};
  Range images{};
  Range lines{};    // of v, of all depths
  Range columns{};  // of a line
  Range chunks{};   // where pixels are summed
  bool adds_slabs = false;
};

// Of w or of its sums: a line of taps, and all of it with the bias. Along taps, whole strips.
inline int64_t TermsOfLine(const Contraction& c, const DirectTiling& t) {
  constexpr int64_t kTaps = TapStrips::kTaps;
  return t.along_taps ? CeilDiv(c.axes[2].taps, kTaps) * kTaps : c.axes[2].taps * c.channels;
}
inline int64_t SumFloatsOf(const Contraction& c, const DirectTiling& t) {
  const int64_t bias = t.along_taps ? TapStrips::kTaps : 1;
  return (c.axes[0].taps * c.axes[1].taps * TermsOfLine(c, t) + bias) * t.lanes;
}

// Part `i` of the taps of a wgrad, or all taps. The first one has the most.
Contraction OfTaps(Contraction c, const DirectTiling& t, int64_t i);
DirectMemory MemoryOf(const Contraction& c, const DirectTiling& t);

// Whether sums are along pixels, of a problem with lines; whether phases of a dgrad are computed by
// twos then; and floats of a line of g where there is none, 0: there always is.
bool IsAlongPixels(const Contraction& c, const Problem& p);
bool HasPairs(const Problem& p);
int64_t FloatsOfZeroLine(const Contraction& c, const Problem& p);

// Whether sums are along taps; and such a tiling, without the cut into tasks.
bool IsAlongTaps(const Contraction& c, const Problem& p);
DirectTiling AlongTapsTiling(const Contraction& c, const Problem& p);

using RunDirectFunction = void (*)(const DirectWork& work, const DirectTask& task, float* memory);
void RunDirectF32(const DirectWork& work, const DirectTask& task, float* memory);
void RunDirectBF16(const DirectWork& work, const DirectTask& task, float* memory);
void RunDirectF16(const DirectWork& work, const DirectTask& task, float* memory);

// Empty: it can run the problem.
std::string DirectRefusal(const Problem& problem, int threads, int64_t workspace_limit);
DirectTiling DirectTilingOf(const Problem& problem, int threads, int64_t workspace_limit);
std::string DirectText(const Problem& problem, int threads, int64_t workspace_limit);
double DirectSeconds(const Problem& problem, int threads);
void RunDirect(const Problem& problem, const Operands& operands, float beta, const Team& team,
               void* workspace, int64_t workspace_bytes);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_H_
