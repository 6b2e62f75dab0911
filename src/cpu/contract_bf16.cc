// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/contract_bf16.cc"
#include "hwy/foreach_target.h"
#include <type_traits>

#include "cpu/run_block-inl.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

void RunBlockBF16Here(const Contraction& contraction, const Tiling& tiling,
                      const BlockOperands& operands, Range m, Range n, float* memory,
                      const BlockStep& step) {
#if CONVGRAD_MULTIPLIES_BY_LANES || CONVGRAD_HAS_AVX512
  using E = std::conditional_t<CONVGRAD_MULTIPLIES_BY_LANES, Quad, Pair>;
  if (tiling.terms_each > 1) {
    return operands.f32_out
               ? RunBlock<NativeBF16, E, float>(contraction, tiling, operands, m, n, memory, step)
               : RunBlock<NativeBF16, E, NativeBF16>(contraction, tiling, operands, m, n, memory,
                                                     step);
  }
#endif
  operands.f32_out ? RunBlock<BF16, float, float>(contraction, tiling, operands, m, n, memory, step)
                   : RunBlock<BF16, float, BF16>(contraction, tiling, operands, m, n, memory, step);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(RunBlockBF16Here);

void RunBlockBF16(const Contraction& contraction, const Tiling& tiling,
                  const BlockOperands& operands, Range m, Range n, float* memory,
                  const BlockStep& step) {
  HWY_DYNAMIC_DISPATCH(RunBlockBF16Here)(contraction, tiling, operands, m, n, memory, step);
}

}  // namespace convgrad
#endif  // HWY_ONCE
