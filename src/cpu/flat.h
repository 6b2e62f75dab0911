// The flat kernel: fprop and dgrad of few o, whatever the shape. Its lanes are pixels of lines,
// planes and images alike.
//
// What a chunk of channels reads is copied into planes of floats, with zeros for padding: any
// layout, type and stride is absorbed there. In a plane one line follows the other, so that a tap
// is a constant distance for all pixels, and a vector has pixels of several short lines. Where
// zeros end a line and zeros begin the next one, they are the same zeros. With a step of several
// positions from pixel to pixel, each residue that taps read is a plane of its own.
//
// Sums have the order of the contraction (contraction.h), so the bits are the same. Steps 5 and 6
// of the story.
#ifndef CONVGRAD_CPU_FLAT_H_
#define CONVGRAD_CPU_FLAT_H_

#include <array>
#include <cstdint>
#include <string>

#include "core/parallel.h"
#include "core/problem.h"
#include "cpu/contraction.h"

namespace convgrad {

constexpr int kFlatAxes = kAxes + 1;  // images, too: the first axis, or the last one

struct FlatAxis {
  GatherAxis axis;
  int64_t g_step = 0, v_step = 0;  // of the tensors, from position to position, pixel to pixel
};
using FlatAxes = std::array<FlatAxis, kFlatAxes>;

FlatAxes FlatAxesOf(const Contraction& c, bool images_last);

// One axis of the planes. Residue r of the step has the positions first(r) + j * step.
struct FlatExtent {
  int64_t residues = 1;  // that taps read
  int64_t span = 1;      // positions of a residue that pixels read
};

struct TapPlace {
  int64_t residue, j;  // what the tap reads for the first pixel
};

FlatExtent ExtentOf(const GatherAxis& axis);
TapPlace PlaceOfTap(const GatherAxis& axis, int64_t tap);
int64_t FirstOfResidue(const GatherAxis& axis, int64_t residue);
// Of a residue, those j that are inside the tensor.
Range InsideOfResidue(const GatherAxis& axis, int64_t residue, int64_t span);

// A block of pixels, and the planes that they read.
struct FlatLayout {
  std::array<FlatExtent, kFlatAxes> extents;
  std::array<int64_t, kFlatAxes> pitch{};  // floats from j to j + 1
  int64_t plane = 0;                       // floats, of one residue of each axis
  int64_t planes = 1;
  // Pixels of the last axes, as many as make the fewest vectors, are one run of lanes.
  int run_axes = 1;
  int64_t run_vectors = 1, runs = 1;

  int64_t channel_floats() const { return planes * plane; }
  int64_t vectors() const { return runs * run_vectors; }
};
FlatLayout LayoutOf(const FlatAxes& axes, int lanes);

struct FlatTiling {
  static constexpr int64_t kStackFloats = 20 << 10;
  static constexpr int64_t kMostOuts = 64;

  int lanes = 4;
  bool images_last = false;
  std::array<int64_t, kFlatAxes> parts{1, 1, 1, 1};  // tasks of a group, along each axis
  std::array<int64_t, kFlatAxes> block{1, 1, 1, 1};  // most pixels at a time
  int64_t g_floats = 0, c_floats = 0, w_floats = 0, pixel_floats = 0;  // memory of a task
  int64_t slots = 1;                                                   // tasks at a time
  bool on_stack = false;

  int64_t tasks() const { return parts[0] * parts[1] * parts[2] * parts[3]; }
  int64_t task_floats() const { return g_floats + c_floats + w_floats + pixel_floats; }
  int64_t workspace_bytes() const {
    return on_stack ? 0 : (slots * task_floats() + 16) * int64_t{sizeof(float)};
  }
};

// With blocks for which the memory is enough, for a phase of fewer taps, and more channels in a
// chunk, than the largest one.
FlatTiling OfPhase(const Contraction& c, FlatTiling t);

struct FlatWork {
  const Contraction* c = nullptr;  // of a phase, of the first group
  const FlatTiling* t = nullptr;
  const void* g = nullptr;  // of a group
  const void* w = nullptr;
  void* out = nullptr;
  const void* bias = nullptr;
  int64_t bias_stride = 1;
  float beta = 0;
};

// Pixels along each axis.
using FlatPixels = std::array<Range, kFlatAxes>;

// One task. memory: t.task_floats() floats, or null: on the stack.
using RunFlatFunction = void (*)(const FlatWork& work, const FlatPixels& pixels, float* memory);
void RunFlatF32(const FlatWork& work, const FlatPixels& pixels, float* memory);
void RunFlatBF16(const FlatWork& work, const FlatPixels& pixels, float* memory);
void RunFlatF16(const FlatWork& work, const FlatPixels& pixels, float* memory);

// Empty: it can run the problem.
std::string FlatRefusal(const Problem& problem, int threads, int64_t workspace_limit);
FlatTiling FlatTilingOf(const Problem& problem, int threads, int64_t workspace_limit);
std::string FlatText(const Problem& problem, int threads, int64_t workspace_limit);
double FlatSeconds(const Problem& problem, int threads);
void RunFlat(const Problem& problem, const Operands& operands, float beta, const Team& team,
             void* workspace, int64_t workspace_bytes);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_FLAT_H_
