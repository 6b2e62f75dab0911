// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/flat_task.cc"
#include "hwy/foreach_target.h"
#include "cpu/flat-inl.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

void RunFlatF32Here(const FlatWork& work, const FlatPixels& pixels, float* memory) {
  RunFlatHere<float>(work, pixels, memory);
}
void RunFlatBF16Here(const FlatWork& work, const FlatPixels& pixels, float* memory) {
  RunFlatHere<BF16>(work, pixels, memory);
}
void RunFlatF16Here(const FlatWork& work, const FlatPixels& pixels, float* memory) {
  RunFlatHere<F16>(work, pixels, memory);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(RunFlatF32Here);
HWY_EXPORT(RunFlatBF16Here);
HWY_EXPORT(RunFlatF16Here);

void RunFlatF32(const FlatWork& work, const FlatPixels& pixels, float* memory) {
  HWY_DYNAMIC_DISPATCH(RunFlatF32Here)(work, pixels, memory);
}
void RunFlatBF16(const FlatWork& work, const FlatPixels& pixels, float* memory) {
  HWY_DYNAMIC_DISPATCH(RunFlatBF16Here)(work, pixels, memory);
}
void RunFlatF16(const FlatWork& work, const FlatPixels& pixels, float* memory) {
  HWY_DYNAMIC_DISPATCH(RunFlatF16Here)(work, pixels, memory);
}

}  // namespace convgrad
#endif  // HWY_ONCE
