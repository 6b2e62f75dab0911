// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/contract_f16.cc"
#include "hwy/foreach_target.h"
#include "cpu/run_block-inl.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

void RunBlockF16Here(const Contraction& contraction, const Tiling& tiling,
                     const BlockOperands& operands, Range m, Range n, float* memory,
                     const BlockStep& step) {
  operands.f32_out ? RunBlock<F16, float, float>(contraction, tiling, operands, m, n, memory, step)
                   : RunBlock<F16, float, F16>(contraction, tiling, operands, m, n, memory, step);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(RunBlockF16Here);

void RunBlockF16(const Contraction& contraction, const Tiling& tiling,
                 const BlockOperands& operands, Range m, Range n, float* memory,
                 const BlockStep& step) {
  HWY_DYNAMIC_DISPATCH(RunBlockF16Here)(contraction, tiling, operands, m, n, memory, step);
}

}  // namespace convgrad
#endif  // HWY_ONCE
