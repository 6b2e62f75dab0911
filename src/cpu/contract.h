// One block of a contraction, for one element type, on the instruction set of this CPU.
#ifndef CONVGRAD_CPU_CONTRACT_H_
#define CONVGRAD_CPU_CONTRACT_H_

#include "cpu/contraction.h"
#include "cpu/tiling.h"

namespace convgrad {

struct BlockOperands {
  const void* g = nullptr;
  const void* other = nullptr;  // w, or v where w is written
  void* out = nullptr;
  const void* bias = nullptr;
  int64_t bias_stride = 1;
  // wgrad: the sums of v, for each o, of out's type; bias_stride apart. Blocks that have the first
  // rows write them, if chunks are not summed side by side and an element is one term. Null: no.
  void* bias_out = nullptr;
  float beta = 0;
  bool f32_out = false;  // out is f32, whatever the others are
};

// What is done to a block: all of it, or, where its chunks are summed side by side, one step.
struct BlockStep {
  enum Kind { kWhole, kLoad, kChunk, kStore };

  Kind kind = kWhole;
  int64_t chunk = 0;
  float* c = nullptr;  // what kLoad and kChunk write and kStore reads: [mb, nb] in tiles
  const Contraction* odd = nullptr;  // kWhole: the other of two that are zipped
};

// Rows m and columns n of the result. memory: slot_floats floats, or null.
using RunBlockFunction = void (*)(const Contraction& contraction, const Tiling& tiling,
                                  const BlockOperands& operands, Range m, Range n, float* memory,
                                  const BlockStep& step);

void RunBlockF32(const Contraction& contraction, const Tiling& tiling,
                 const BlockOperands& operands, Range m, Range n, float* memory,
                 const BlockStep& step);
void RunBlockBF16(const Contraction& contraction, const Tiling& tiling,
                  const BlockOperands& operands, Range m, Range n, float* memory,
                  const BlockStep& step);
void RunBlockF16(const Contraction& contraction, const Tiling& tiling,
                 const BlockOperands& operands, Range m, Range n, float* memory,
                 const BlockStep& step);

}  // namespace convgrad

#endif  // CONVGRAD_CPU_CONTRACT_H_
