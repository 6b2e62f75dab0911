// One task of a contraction: a block with its whole sum, two of zipped phases, or a step of one.
// Finds their memory, on the stack where there is no workspace.
#if defined(CONVGRAD_CPU_RUN_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_RUN_BLOCK_INL_H_
#undef CONVGRAD_CPU_RUN_BLOCK_INL_H_
#else
#define CONVGRAD_CPU_RUN_BLOCK_INL_H_
#endif

#include "cpu/contract-inl.h"
#include "cpu/contract.h"
#include "cpu/tile_amx.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// One of two that are zipped, or the only one. Apart, so that a block, of 64 KiB, is on the stack
// once.
template <class T, class E, class U>
HWY_NOINLINE void RunFirst(const Contraction& contraction, const Tiling& tiling,
                           const BlockOperands& operands, Range m, Range n, E* a, E* b, float* c,
                           const BlockStep& step) {
  Block<T, E, U> block(contraction, tiling, operands);
  block.Start(m, n, a, b);
  if (step.kind != BlockStep::kWhole) return block.RunStep(step);
  block.RunWhole(c);
  if (step.odd == nullptr) block.StoreLast(c);
}

template <class T, class E, class U>
HWY_NOINLINE void RunOdd(const Tiling& tiling, const BlockOperands& operands, Range m, Range n,
                         E* a, E* b, float* c, const BlockStep& step) {
  Block<T, E, U> odd(*step.odd, tiling, operands);
  float* const odd_c = c + tiling.mb * tiling.nb;
  odd.Start(m, n, a, b);
  odd.RunWhole(odd_c);
  odd.StoreWithEven(c, odd_c);
}

// Both at once.
template <class T, class E, class U>
HWY_NOINLINE void RunTwins(const Contraction& contraction, const Tiling& tiling,
                           const BlockOperands& operands, Range m, Range n, E* a, E* b, float* c,
                           const BlockStep& step) {
  Block<T, E, U> block(contraction, tiling, operands, step.odd);
  block.Start(m, n, a, b);
  block.RunWhole(c);
  block.StoreTwins(c);
}

template <class T, class E, class U>
void RunIn(const Contraction& contraction, const Tiling& tiling, const BlockOperands& operands,
           Range m, Range n, float* a_memory, float* b_memory, float* c, const BlockStep& step) {
  E *const a = reinterpret_cast<E*>(a_memory), *const b = reinterpret_cast<E*>(b_memory);
  const AmxTiles tiles(tiling.k_unit > 1);
  if (tiling.twins) {
    return RunTwins<T, E, U>(contraction, tiling, operands, m, n, a, b, c, step);
  }
  RunFirst<T, E, U>(contraction, tiling, operands, m, n, a, b, c, step);
  if (step.kind == BlockStep::kWhole && step.odd != nullptr) {
    RunOdd<T, E, U>(tiling, operands, m, n, a, b, c, step);
  }
}

// Apart from RunBlock, so that only a run without workspace needs that much stack.
template <class T, class E, class U>
HWY_NOINLINE void RunOnStack(const Contraction& contraction, const Tiling& tiling,
                             const BlockOperands& operands, Range m, Range n,
                             const BlockStep& step) {
  constexpr int64_t kRows = kTermsOf<E> == 2 ? Tiling::kMostRows : 12;
  alignas(64) float a[kRowPitch * kRows], b[Tiling::kStackB], c[Tiling::kStackC];
  RunIn<T, E, U>(contraction, tiling, operands, m, n, a, b, c, step);
}

template <class T, class E, class U>
void RunBlock(const Contraction& contraction, const Tiling& tiling, const BlockOperands& operands,
              Range m, Range n, float* memory, const BlockStep& step) {
  if (memory == nullptr) return RunOnStack<T, E, U>(contraction, tiling, operands, m, n, step);
  float* const b = memory + tiling.a_floats();
  RunIn<T, E, U>(contraction, tiling, operands, m, n, memory, b, b + tiling.b_floats(), step);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
