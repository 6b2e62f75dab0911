// The loops that the limit of the vector units is measured with: multiply-adds in registers, into
// sums of f32, and nothing else. Know neither threads nor clocks.
#ifndef CONVGRAD_TOOLS_MULTIPLY_ADD_LOOP_H_
#define CONVGRAD_TOOLS_MULTIPLY_ADD_LOOP_H_

#include <string>

#include "convgrad/types.h"

namespace convgrad::tools {

// 24 sums and two factors of 64 bytes, or six and two of 16 times that (AMX).
constexpr int kMultiplyAddFloats = (6 + 2) * 256;

struct MultiplyAddLoop {
  std::string instruction;  // what is measured
  // Takes sums and factors from `floats`, which has kMultiplyAddFloats of them, and leaves the sums
  // there; between, it stays in registers. All 0 stays 0.
  void (*run)(int rounds, float* floats) = nullptr;
  double flops = 0;  // of one round; a multiply-add counts as two
};

// Products of f32, by the widest instruction set that the library's kernels are compiled for.
MultiplyAddLoop F32Loop();

// Products of f32, bf16 or f16: by the CPU's own instruction for the type where it has one that
// sums in f32, else F32Loop(), whose rate is the limit once the data are widened.
MultiplyAddLoop LoopFor(DataType type);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_MULTIPLY_ADD_LOOP_H_
