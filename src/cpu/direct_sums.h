// The sums of the direct kernel, in registers: step 7 of the story. Knows lines of floats only. A
// block of lanes (direct.h) is a plane for each of its vectors; in a plane, a position of a line is
// a vector, or several, one for each channel of a group. Neighbours are then next to each other:
// loads that are a cache line apart meet in one bank of Neoverse-V1's first-level cache (half the
// speed).
#ifndef CONVGRAD_CPU_DIRECT_SUMS_H_
#define CONVGRAD_CPU_DIRECT_SUMS_H_

#include <cstdint>

namespace convgrad {

// Terms that follow each other in g and in w.
struct TermRun {
  const float* g;
  const float* w;
};

// The runs of a chunk.
struct TermRuns {
  TermRun* runs;
  int64_t count;
  int64_t terms;  // of a run
  int64_t term;   // floats of g from term to term; of w, a vector
  int64_t pixel;  // floats of g from pixel to pixel; of c, a vector, but see c_pixel
  int64_t g_plane, w_plane, c_plane;
  // c is the tensor itself (StoresLines), and this is added to its sums, of the first plane and
  // w_plane apart; or null.
  const float* bias = nullptr;
  int64_t c_pixel = 0;  // then, floats of c from pixel to pixel; of planes, a vector
};

// Whether vectors that are whole cache lines go from registers to the tensor: what is stored line
// by line afterwards waits for memory, which so has the time of the next tile's sums. (Parts of
// lines would be written one by one.)
constexpr bool StoresLines(int vector_lanes) { return vector_lanes >= 16; }

// A line of v and the lines of g that it meets, for the sums of as many lines of taps.
struct PixelRun {
  static constexpr int kMostLines = 3;

  const float* g[kMostLines];
  float* sums[kMostLines];
  const float* v;
  int64_t pixels;
  int64_t terms;  // sums of a line of taps
  int64_t term;   // floats of g from term to term; of the sums, a vector
  int64_t pixel;  // floats of g from pixel to pixel; of v, a vector
  int64_t g_plane, v_plane, sum_plane;
};

// Lines of v one after the other and, of each, the lines of g that it meets, for the sums of as
// many lines of taps: these are loaded and stored once.
struct PixelRows {
  static constexpr int kMost = 8;
  static constexpr int kMostLines = 2;

  struct Row {
    const float* v;
    const float* g[kMostLines];
    // What is in memory and copied next, where channels are next to each other: asked for while
    // sums are computed, a position for each pixel. (Of channels that are not, a line of the cache
    // for each pixel: no gain.) Or anything, and no steps.
    const char* next;
  };
  const Row* rows;
  int64_t count;
  float* sums[kMostLines];
  int64_t pixels;
  int64_t terms;  // taps of a line
  int64_t term;   // floats of g from tap to tap
  int64_t pixel;  // floats of g from pixel to pixel; of v, a vector
  int64_t g_plane, v_plane, sum_plane;
  int64_t next_step, next_plane;  // bytes from position to position, and from plane to plane
};

// Groups of fours of channels (direct.h): a position of g is a vector of channels. A term is one of
// them, and a run one tap: channels [first, first + channels) of a group of `all_channels`.
struct GroupShape {
  int64_t all_channels;
  int64_t o;
  int64_t first, channels;
};

// Of the first lanes of a block.
struct DirectSums {
  // c[pixel] = chunk, or += it, or, in the tensor, chunk + bias. The runs move to the end of the
  // line.
  void (*sum_taps)(const TermRuns& runs, int64_t lanes, int64_t pixels, bool add, float* c);
  // The chains of sums go on over the pixels of `lines` lines.
  void (*sum_pixels)(const PixelRun& run, int64_t lanes, int lines);
  // Lines whose sums are in registers together.
  int (*lines_together)(int64_t terms);
};

// The same of groups of fours, of several lines of v.
struct GroupSums {
  void (*sum_taps)(const TermRuns& runs, const GroupShape& shape, int64_t lanes, int64_t pixels,
                   bool add, float* c);
  void (*sum_pixels)(const PixelRows& run, const GroupShape& shape, int64_t lanes, int lines);
  int (*lines_together)(int64_t taps);
};

// On the instruction set of this CPU.
const DirectSums& PickedDirectSums();
const GroupSums& PickedGroupSums();

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_SUMS_H_
