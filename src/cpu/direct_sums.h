// The sums of the direct kernel, in registers: step 7 of the story. Knows lines of floats only: a
// position of a line is a block of lanes (direct.h), or several, one for each channel of a group.
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
  int64_t term;   // floats of g from term to term; of w, a block of lanes
  int64_t pixel;  // floats of g from pixel to pixel
};

// A line of v and the lines of g that it meets, for the sums of as many lines of taps.
struct PixelRun {
  static constexpr int kMostLines = 3;

  const float* g[kMostLines];
  float* sums[kMostLines];
  const float* v;
  int64_t pixels;
  int64_t terms;  // sums of a line of taps
  int64_t term;   // floats of g from term to term; of the sums, a block of lanes
  int64_t pixel;  // floats of g from pixel to pixel; of v, a block of lanes
};

// `vectors` of a block's lanes, 1 or 2.
struct DirectSums {
  // c[pixel] = chunk, or += it. The runs move to the end of the line.
  void (*sum_taps)(const TermRuns& runs, int vectors, int64_t pixels, bool add, float* c);
  // The chains of sums go on over the pixels of `lines` lines.
  void (*sum_pixels)(const PixelRun& run, int vectors, int lines);
  // Lines whose sums are in registers together.
  int (*lines_together)(int64_t terms);
};

// On the instruction set of this CPU.
const DirectSums& PickedDirectSums();

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_SUMS_H_
