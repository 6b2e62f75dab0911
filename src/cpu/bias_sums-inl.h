// The bias gradient beside a weight gradient: columns of v are summed as they lie packed for it, so
// that v is read once. Part of step 6. The sums are those of a contraction whose g is one
// everywhere (MakeBiasContraction), in the same order: adding v is multiplying it by one and
// adding.
#if defined(CONVGRAD_CPU_BIAS_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_BIAS_SUMS_INL_H_
#undef CONVGRAD_CPU_BIAS_SUMS_INL_H_
#else
#define CONVGRAD_CPU_BIAS_SUMS_INL_H_
#endif

#include <cstdint>

#include "cpu/contract.h"
#include "cpu/tile.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// c[j] joins the sum over k of panel[k, j], for kVectors vectors of columns of a panel that is
// `width` wide.
template <int kVectors, class Tag>
HWY_INLINE void SumVectors(Tag d, const float* panel, int64_t depth, int width, ChunkJoin join,
                           float* c) {
  constexpr int kEach = static_cast<int>(hn::MaxLanes(Tag()));
  hn::Vec<Tag> sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = join == ChunkJoin::kChain ? hn::LoadU(d, c + v * kEach) : hn::Zero(d);
  }
  for (int64_t k = 0; k < depth; ++k, panel += width) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = hn::Add(sums[v], hn::LoadU(d, panel + v * kEach));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    if (join == ChunkJoin::kAdd) sums[v] = hn::Add(hn::LoadU(d, c + v * kEach), sums[v]);
    if (join == ChunkJoin::kChain) sums[v] = hn::Add(hn::Zero(d), sums[v]);  // no -0, as in a tile
    hn::StoreU(sums[v], d, c + v * kEach);
  }
}

// From column j on, as many as whole vectors have; three at a time, whose additions do not wait for
// each other. The first column that is left.
template <class Tag>
HWY_INLINE int SumColumns(Tag d, const float* panel, int64_t depth, int width, int j,
                          ChunkJoin join, float* c) {
  constexpr int kEach = static_cast<int>(hn::MaxLanes(Tag()));
  for (; j + 3 * kEach <= width; j += 3 * kEach) {
    SumVectors<3>(d, panel + j, depth, width, join, c + j);
  }
  for (; j + 2 * kEach <= width; j += 2 * kEach) {
    SumVectors<2>(d, panel + j, depth, width, join, c + j);
  }
  for (; j + kEach <= width; j += kEach) {
    SumVectors<1>(d, panel + j, depth, width, join, c + j);
  }
  return j;
}

// A sum that starts from +0 is never -0: ChunkJoin::kFirst need not add one.
inline void SumPanel(const float* panel, int64_t depth, int width, ChunkJoin join, float* c) {
  int j = SumColumns(D(), panel, depth, width, 0, join, c);
  j = SumColumns(hn::CappedTag<float, 4>(), panel, depth, width, j, join, c);
  SumColumns(hn::CappedTag<float, 1>(), panel, depth, width, j, join, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
