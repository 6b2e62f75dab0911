// A rectangle of a strided tensor into a panel: panel[k, r] = source[r * row_stride + k *
// k_stride], widened to f32. Everything that packing does to memory is here. Compiled once per
// instruction set.
#if defined(CONVGRAD_CPU_RECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_RECT_INL_H_
#undef CONVGRAD_CPU_RECT_INL_H_
#else
#define CONVGRAD_CPU_RECT_INL_H_
#endif

#include <cstdint>

#include "core/numerics.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Rect {
  int64_t rows = 0, row_stride = 0;
  int64_t depth = 0, k_stride = 0;
};

template <class T>
void GatherRect(const T* source, const Rect& rect, float* HWY_RESTRICT panel, int64_t pitch) {
  for (int64_t r = 0; r < rect.rows; ++r) {
    for (int64_t k = 0; k < rect.depth; ++k) {
      panel[k * pitch + r] = Widen(LoadAt<T>(source, r * rect.row_stride + k * rect.k_stride));
    }
  }
}

template <class T>
void PackRect(const T* source, const Rect& rect, float* HWY_RESTRICT panel, int64_t pitch) {
  GatherRect(source, rect, panel, pitch);
}

inline void ZeroRect(float* HWY_RESTRICT panel, int64_t pitch, int64_t rows, int64_t depth) {
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t r = 0; r < rows; ++r) panel[k * pitch + r] = 0.0f;
  }
}

#if HWY_TARGET != HWY_SCALAR
// 128-bit vectors: packing is bound by loads and stores of short runs, not by their width.
using D4 = hn::FixedTag<float, 4>;
using V4 = hn::Vec<D4>;

// Rows are contiguous: one copy per k.
inline void CopyRows(const float* source, const Rect& rect, float* HWY_RESTRICT panel,
                     int64_t pitch) {
  const D4 d;
  for (int64_t k = 0; k < rect.depth; ++k) {
    const float* from = source + k * rect.k_stride;
    float* to = panel + k * pitch;
    int64_t r = 0;
    for (; r + 4 <= rect.rows; r += 4) hn::StoreU(hn::LoadU(d, from + r), d, to + r);
    for (; r < rect.rows; ++r) to[r] = LoadAt<float>(from, r);
  }
}

// k is contiguous: four rows by four k at a time, turned in registers.
inline void TurnFourRows(const float* source, int64_t row_stride, int64_t depth,
                         float* HWY_RESTRICT panel, int64_t pitch) {
  const D4 d;
  const hn::Repartition<double, D4> dd;
  const float *s0 = source, *s1 = s0 + row_stride, *s2 = s1 + row_stride, *s3 = s2 + row_stride;
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const V4 a0 = hn::LoadU(d, s0 + k), a1 = hn::LoadU(d, s1 + k);
    const V4 a2 = hn::LoadU(d, s2 + k), a3 = hn::LoadU(d, s3 + k);
    const auto b0 = hn::BitCast(dd, hn::InterleaveLower(d, a0, a1));
    const auto b1 = hn::BitCast(dd, hn::InterleaveLower(d, a2, a3));
    const auto b2 = hn::BitCast(dd, hn::InterleaveUpper(d, a0, a1));
    const auto b3 = hn::BitCast(dd, hn::InterleaveUpper(d, a2, a3));
    float* to = panel + k * pitch;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, b0, b1)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, b0, b1)), d, to + pitch);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, b2, b3)), d, to + 2 * pitch);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, b2, b3)), d, to + 3 * pitch);
  }
  for (; k < depth; ++k) {
    float* to = panel + k * pitch;
    to[0] = LoadAt<float>(s0, k);
    to[1] = LoadAt<float>(s1, k);
    to[2] = LoadAt<float>(s2, k);
    to[3] = LoadAt<float>(s3, k);
  }
}

template <>
inline void PackRect<float>(const float* source, const Rect& rect, float* HWY_RESTRICT panel,
                            int64_t pitch) {
  if (rect.row_stride == 1) return CopyRows(source, rect, panel, pitch);
  if (rect.k_stride != 1) return GatherRect(source, rect, panel, pitch);
  int64_t r = 0;
  for (; r + 4 <= rect.rows; r += 4) {
    TurnFourRows(source + r * rect.row_stride, rect.row_stride, rect.depth, panel + r, pitch);
  }
  const Rect rest{rect.rows - r, rect.row_stride, rect.depth, rect.k_stride};
  GatherRect(source + r * rect.row_stride, rest, panel + r, pitch);
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
