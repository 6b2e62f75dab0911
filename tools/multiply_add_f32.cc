// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include <atomic>
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/multiply_add_f32.cc"
#include "hwy/foreach_target.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
#include "tools/multiply_add_loop.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Sums that wait for nobody but themselves. A multiply-add takes 4 cycles on 2 units (x86) to 4
// (Neoverse-V1, where it forwards its sum in 2): 8 to 16 must be under way. 24 of 32 registers, 12
// of AVX2's 16, leave two for the factors.
constexpr int kChains = kRegisters == 16 ? 12 : 24;
static_assert((kChains + 2) * kLanes <= tools::kMultiplyAddFloats);

void MultiplyAddHere(int rounds, float* floats) {
  V sums[kChains];  // in registers, since every loop over it is unrolled
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) sums[c] = hn::LoadU(D(), floats + c * kLanes);
  // The factors last, as in a kernel, which loads them all the time. A Neoverse-V1 runs the same
  // loop at half its rate, 41.6 instead of 83.2 GFLOP/s, when both were loaded before the sums.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const V x = hn::LoadU(D(), floats + kChains * kLanes);
  const V y = hn::LoadU(D(), floats + (kChains + 1) * kLanes);
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) sums[c] = FusedMulAdd(x, y, sums[c]);
  }
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) hn::StoreU(sums[c], D(), floats + c * kLanes);
}

// A pointer, and not a call through the table of targets, so that a round costs nothing else.
tools::MultiplyAddLoop F32LoopHere() {
  const char* name = HWY_TARGET == HWY_NEON     ? "fmla 4 x f32"
                     : HWY_TARGET == HWY_SCALAR ? "std::fma"
                     : kLanes == 16             ? "vfmadd231ps 16 x f32"
                                                : "vfmadd231ps 8 x f32";
  return {name, &MultiplyAddHere, 2.0 * kChains * kLanes};
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(F32LoopHere);

namespace tools {
MultiplyAddLoop F32Loop() { return HWY_DYNAMIC_DISPATCH(F32LoopHere)(); }
}  // namespace tools

}  // namespace convgrad
#endif  // HWY_ONCE
