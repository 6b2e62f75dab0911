// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/contract_f32.cc"
#include "hwy/foreach_target.h"
#include "cpu/run_block-inl.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

void RunBlockF32Here(const Contraction& contraction, const Tiling& tiling,
                     const BlockOperands& operands, Range m, Range n, float* memory,
                     const BlockStep& step) {
  RunBlock<float, float, float>(contraction, tiling, operands, m, n, memory, step);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(RunBlockF32Here);

void RunBlockF32(const Contraction& contraction, const Tiling& tiling,
                 const BlockOperands& operands, Range m, Range n, float* memory,
                 const BlockStep& step) {
  HWY_DYNAMIC_DISPATCH(RunBlockF32Here)(contraction, tiling, operands, m, n, memory, step);
}

}  // namespace convgrad
#endif  // HWY_ONCE
