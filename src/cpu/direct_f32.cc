// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_f32.cc"
#include "hwy/foreach_target.h"
#include "cpu/direct-inl.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

void RunDirectF32Here(const DirectWork& work, const DirectTask& task, float* memory) {
  RunDirectHere<float>(work, task, memory);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(RunDirectF32Here);

void RunDirectF32(const DirectWork& work, const DirectTask& task, float* memory) {
  HWY_DYNAMIC_DISPATCH(RunDirectF32Here)(work, task, memory);
}

}  // namespace convgrad
#endif  // HWY_ONCE
