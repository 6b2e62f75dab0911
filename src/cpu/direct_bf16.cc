// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_bf16.cc"
#include "hwy/foreach_target.h"
#include "cpu/bf16_instructions.h"
#include "cpu/direct-inl.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

void RunDirectBF16Here(const DirectWork& work, const DirectTask& task, float* memory) {
#if CONVGRAD_MULTIPLIES_BY_LANES
  if (Bf16TermsEach() == kTermsOf<Quad>) return RunDirectHere<NativeBF16>(work, task, memory);
#endif
  RunDirectHere<BF16>(work, task, memory);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(RunDirectBF16Here);

void RunDirectBF16(const DirectWork& work, const DirectTask& task, float* memory) {
  HWY_DYNAMIC_DISPATCH(RunDirectBF16Here)(work, task, memory);
}

}  // namespace convgrad
#endif  // HWY_ONCE
