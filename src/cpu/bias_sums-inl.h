// The bias gradient beside a weight gradient: columns of v are summed as they lie packed for it, so
// that v is read once; or alone, where they lie. Part of step 6. The sums are those of a
// contraction whose g is one everywhere (MakeBiasContraction), in the same order: adding v is
// multiplying it by one and adding.
#if defined(CONVGRAD_CPU_BIAS_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_BIAS_SUMS_INL_H_
#undef CONVGRAD_CPU_BIAS_SUMS_INL_H_
#else
#define CONVGRAD_CPU_BIAS_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "cpu/contract.h"
#include "cpu/pack-inl.h"
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

// sums[c] += from[p * step + c] over the pixels p, for kVectors vectors of channels.
template <int kVectors, class T>
HWY_INLINE void AddPixels(const T* from, int64_t step, int64_t pixels, float* sums) {
  const D d;
  V sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(d, sums + v * kLanes);
  for (int64_t p = 0; p < pixels; ++p, from += step) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], LoadBytes(d, from + v * kLanes));
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, sums + v * kLanes);
}

// The same of channels next to each other that are not packed for anything else: a copy takes
// longer than the sum. A few pixels at a time, in the order of memory. `dense`: from one pixel to
// the next there is nothing but elements of the tensor, so that the last vector may read on into
// them. `sums` has room for whole vectors. (Neoverse-N1, ConvTranspose of 3 channels, with its
// weights: 197 ms, so 91; of 9, 73, so 50.)
template <class T>
void SumChannels(const T* from, int64_t step, int64_t pixels, int64_t channels, bool dense,
                 float* sums) {
  constexpr int64_t kStrip = 4 * kLanes;
  const int64_t at_once = channels > kStrip ? 8 : std::max<int64_t>(pixels, 1);
  const int64_t whole = channels / kLanes * kLanes;
  // Pixels whose last vector ends before the last pixel does.
  const int64_t last = dense ? pixels - CeilDiv(whole + kLanes - channels, step) : 0;
  for (int64_t p = 0; p < pixels; p += at_once, from += at_once * step) {
    const int64_t some = std::min(at_once, pixels - p);
    int64_t c = 0;
    for (; c + kStrip <= whole; c += kStrip) AddPixels<4>(from + c, step, some, sums + c);
    for (; c + 2 * kLanes <= whole; c += 2 * kLanes) AddPixels<2>(from + c, step, some, sums + c);
    for (; c < whole; c += kLanes) AddPixels<1>(from + c, step, some, sums + c);
    if (c == channels) continue;
    const int64_t over = std::clamp<int64_t>(last - p, 0, some);
    AddPixels<1>(from + c, step, over, sums + c);
    for (int64_t i = over; i < some; ++i) {
      for (int64_t k = c; k < channels; ++k) sums[k] += Widen(LoadAt<T>(from, i * step + k));
    }
  }
}

// Of a chunk of pixels of v.
template <class T>
void SumValues(const Contraction& c, const T* v, Range o, const Chunk& chunk, float* sums) {
  const int64_t step = c.v.at[kAxes - 1];
  const bool dense = step == c.o, one_run = PixelsAreOneRun(c);
  for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
    const T* const image = v + (c.v.first + i * c.v.image + o.begin);
    const auto sum = [&](int64_t first, int64_t count) HWY_ATTR {
      SumChannels(image + first, step, count, o.size(), dense, sums);
    };
    if (one_run) {
      sum(chunk.inner.begin * step, chunk.inner.size());
      continue;
    }
    const Range pixels{i * c.pixels() + chunk.inner.begin, i * c.pixels() + chunk.inner.end};
    ForEachPixelRun(c, pixels, [&](int64_t, const Walk3& at, int64_t, int64_t count) {
      sum(at.at[0] * c.v.at[0] + at.at[1] * c.v.at[1] + at.at[2] * step, count);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
