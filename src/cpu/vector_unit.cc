// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/vector_unit.cc"
#include "hwy/foreach_target.h"
#include "cpu/bf16_instructions.h"
#include "cpu/cache.h"
#include "cpu/engine.h"
#include "cpu/tile_amx.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

VectorUnit UnitHere(DataType type) {
  VectorUnit unit{hwy::TargetName(HWY_TARGET), kLanes, kRegisters, !CONVGRAD_MULTIPLIES_BY_LANES,
                  SecondLevelCacheBytes()};
  const bool multiplies_bf16 = CONVGRAD_MULTIPLIES_BY_LANES || CONVGRAD_HAS_AVX512;
  if (multiplies_bf16 && type == DataType::kBF16) {
    unit.terms_each = Bf16TermsEach();
    unit.bf16_instruction = Bf16Instruction();
    if (HasAmx()) unit.k_unit = kAmxPairs;
  }
  return unit;
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(UnitHere);

VectorUnit PickedVectorUnit(DataType type) { return HWY_DYNAMIC_DISPATCH(UnitHere)(type); }

}  // namespace convgrad
#endif  // HWY_ONCE
