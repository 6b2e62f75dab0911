// Lines of the direct kernel whose lanes are pixels. Step 6 of the story: which lines of g each
// line of v reads.
#if defined(CONVGRAD_CPU_DIRECT_PIXELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_PIXELS_INL_H_
#undef CONVGRAD_CPU_DIRECT_PIXELS_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_PIXELS_INL_H_
#endif

#include <algorithm>
#include <cstdlib>

#include "cpu/direct.h"
#include "cpu/direct_pixels.h"
#include "cpu/live.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

template <class T>
class LinesAlongPixels {
 public:
  LinesAlongPixels(const DirectWork& work, const DirectTask& task, float* memory)
      : work_(work),
        c_(*work.c),
        task_(task),
        height_(c_.axes[1]),
        sums_(PickedSumsAlongPixels(kType)),
        zeros_(reinterpret_cast<const T*>(memory)) {
    std::fill(memory, memory + MemoryOf(c_, *work.t).zero_floats, 0.0f);
    sums_.cut_columns(c_.axes[kAxes - 1], columns_);
    const int64_t step = std::abs(height_.tap_step), pixel_step = height_.pixel_step;
    const bool shared = step == pixel_step;
    const int unrolled = shared ? sums_.unrolled(height_.taps, columns_.taps) : 1;
    const int64_t weights = SumsAlongPixels::WeightsOf(columns_.taps);
    // As many as there is room for.
    const int64_t span = SumsAlongPixels::RowsOf(height_), depths = c_.axes[0].taps;
    const int64_t room = SumsAlongPixels::kMostRows / std::max<int64_t>(1, depths);
    lines_each_ = std::min((room - span) / pixel_step + 1, height_.pixels);
    taps_ = {.columns = &columns_,
             .unrolled = unrolled,
             .depths = {depths, span + (lines_each_ - 1) * pixel_step, height_.taps * weights},
             .lines = {height_.taps / unrolled, step, weights},
             .bias = 0,
             .beta = work.beta};
  }

  // v = g w
  void SumTaps() {
    for (int64_t image = task_.images.begin; image < task_.images.end; ++image) {
      for (int64_t o = task_.blocks.begin; o < task_.blocks.end; ++o) {
        LoadWeights(o);
        SumLinesOf(image, o);
      }
    }
  }

 private:
  static constexpr DataType kType = sizeof(T) == sizeof(float)   ? DataType::kF32
                                    : std::is_base_of_v<BF16, T> ? DataType::kBF16
                                                                 : DataType::kF16;
  static constexpr int64_t kMostLines = SumsAlongPixels::kMostLines;

  void LoadWeights(int64_t o) {
    const T* const w = static_cast<const T*>(work_.other) + c_.w.first + o * work_.w_group;
    float* to = weights_;
    finite_ = true;
    for (int64_t d = 0; d < c_.axes[0].taps; ++d) {
      for (int64_t h = 0; h < height_.taps; ++h, to += taps_.lines.weights) {
        const T* const line = w + d * c_.w.at[0] + h * c_.w.at[1];
        for (int64_t t = 0; t < columns_.taps; ++t) {
          to[t] = Widen(LoadAt<T>(line, t * c_.w.at[2]));
          finite_ = finite_ && to[t] * 0.0f == 0;
        }
      }
    }
    taps_.bias = 0;
    if (work_.bias != nullptr) taps_.bias += Widen(LoadAt<T>(work_.bias, o * work_.bias_stride));
  }

  // Depth by depth, and of a depth so many lines as the table of lines of g has room for.
  void SumLinesOf(int64_t image, int64_t o) {
    const T* const g =
        static_cast<const T*>(work_.g) + c_.g.first + image * c_.g.image + o * c_.g.channel;
    T* const v = static_cast<T*>(work_.out) + c_.v.first + image * c_.v.image + o * c_.v.o;
    for (int64_t line = task_.lines.begin; line < task_.lines.end;) {
      const int64_t depth = line / height_.pixels, height = line % height_.pixels;
      const int64_t count =
          std::min({lines_each_, height_.pixels - height, task_.lines.end - line});
      SumLinesOfDepth(g, v + depth * c_.v.at[0], depth, {height, height + count});
      line += count;
    }
  }

  void SumLinesOfDepth(const T* g, T* v, int64_t depth, const Range& lines) {
    // Depths outside have no effect if the weights are finite.
    const GatherAxis& axis0 = c_.axes[0];
    const int64_t at0 = axis0.first + depth * axis0.pixel_step;
    const Range depths = finite_ ? StepsInside(at0, at0, axis0.tap_step, axis0.taps, axis0.limit)
                                 : Range{0, axis0.taps};
    const int64_t first = FindRows(g, at0, depths, lines);
    const bool back = height_.tap_step < 0;
    const float* const w = weights_ + depths.begin * taps_.depths.weights;
    taps_.depths.count = depths.size();
    for (int64_t y = lines.begin; y < lines.end;) {
      T* a = v + y * c_.v.at[1];
      const bool two = taps_.unrolled > 1 && y + 1 < lines.end;
      T* b = two ? a + c_.v.at[1] : nullptr;
      // Where taps go back, so do lines.
      if (back && two) std::swap(a, b);
      const int64_t position = height_.first + (y + (back && two ? 1 : 0)) * height_.pixel_step;
      sums_.sum_lines(taps_, rows_ + (back ? first - position : position - first), w, a, b);
      y += two ? 2 : 1;
    }
  }

  // The lines of g that these lines of v read, those of one depth of taps after those of the other;
  // in the order of taps. They are found before any is used: a CPU that loads two pointers at once
  // cannot take them from two stores that are on their way (half the speed). Says the position of
  // the first.
  int64_t FindRows(const T* g, int64_t at0, const Range& depths, const Range& lines) {
    const int64_t step = height_.tap_step < 0 ? -1 : 1;
    const int64_t first =
        height_.first + (step > 0 ? lines.begin : lines.end - 1) * height_.pixel_step;
    for (int64_t d = depths.begin; d < depths.end; ++d) {
      const int64_t depth = at0 + d * c_.axes[0].tap_step;
      const bool inside = depth >= 0 && depth < c_.axes[0].limit;
      const T* const plane = g + (inside ? depth : 0) * c_.g.at[0];
      const void** const to = rows_ + (d - depths.begin) * taps_.depths.rows;
      for (int64_t i = 0, at = first; i < taps_.depths.rows; ++i, at += step) {
        to[i] = inside && at >= 0 && at < height_.limit ? plane + at * c_.g.at[1] : zeros_;
      }
    }
    return first;
  }

  const DirectWork& work_;
  const Contraction& c_;
  const DirectTask& task_;
  const GatherAxis& height_;
  const SumsAlongPixels& sums_;
  const T* const zeros_;
  PixelColumns columns_;
  TapsAlongPixels taps_;
  int64_t lines_each_;  // of v, whose lines of g are found together
  bool finite_ = true;  // the weights
  float weights_[kMostLines * SumsAlongPixels::WeightsOf(PixelColumns::kMostTaps)];
  const void* rows_[SumsAlongPixels::kMostRows];
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
