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
#include "cpu/element.h"
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
        sums_(PickedSumsAlongPixels(kTypeOf<T>)),
        pair_sums_(PickedPairsAlongPixels(kTypeOf<T>)),
        phases_(work.t->pairs ? 2 : 1),
        widened_(memory + work.t->line_floats) {
    std::fill(memory, widened_, 0.0f);
    // Lines of v that are as far from each other as taps are have lines of g in common.
    const int64_t step = std::abs(height_.tap_step);
    const bool shared = step == height_.pixel_step;
    unit_ = shared ? step : 1;
    row_step_ = height_.pixel_step / unit_;
    const int64_t span = SumsAlongPixels::RowsOf(height_, kLanes), depths = c_.axes[0].taps;
    lines_each_ = std::min(MostLines(span, depths), height_.pixels);
    depth_rows_ = span + (lines_each_ - 1) * row_step_;
    CutColumns();
    const int unrolled = step == unit_ ? UnrolledLines(shared) : 1;
    const int64_t pixels = c_.axes[kAxes - 1].pixels;
    const bool alone = phases_ == 2 || columns_[0].stride == 2;
    const int together = alone ? 1 : SumsAlongPixels::TogetherOf(kLanes, unrolled, pixels);
    for (int i = 0; i < phases_; ++i) {
      const int64_t weights = SumsAlongPixels::WeightsOf(columns_[i].taps);
      weights_at_[i] = i == 0 ? 0 : depths * pair_.taps[0].depths.weights;
      pair_.taps[i] = {.columns = &columns_[i],
                       .unrolled = unrolled,
                       .together = together,
                       .depths = {depths, depth_rows_, height_.taps * weights},
                       .lines = {height_.taps / unrolled, step / unit_, weights},
                       .zeros = memory,
                       .beta = work.beta};
    }
  }

  // v = g w. Weights are loaded one channel ahead: a vector cannot be loaded from floats whose
  // stores are on their way, and waits until these, and those of the sums before them, are done
  // (Neoverse-N1, 7x7: 1.4 times the time).
  void SumTaps() {
    for (int64_t image = task_.images.begin; image < task_.images.end; ++image) {
      LoadChannel(task_.blocks.begin);
      for (int64_t o = task_.blocks.begin; o < task_.blocks.end; ++o) {
        if (o + 1 < task_.blocks.end) LoadChannel(o + 1);
        SumLinesOf(image, o);
      }
    }
  }

 private:
  static constexpr bool kWidens = sizeof(T) != sizeof(float);

  void CutColumns() {
    const GatherAxis last = c_.axes[kAxes - 1];
    if (phases_ == 1) {
      columns_[0].Cut(last, kLanes, PixelColumns::InsideOf(last));
      return sums_.set_edges(last, columns_[0]);
    }
    GatherAxis second = work_.c[1].axes[kAxes - 1];
    PhasePair::Cut(last, second, kLanes, columns_);
    pair_.odd = second.pixels < last.pixels;
    second.pixels = last.pixels;
    sums_.set_edges(last, columns_[0]);
    sums_.set_edges(second, columns_[1]);
  }

  // Of taps. `shared`: lines of v at once have lines of g in common.
  int UnrolledLines(bool shared) const {
    if (phases_ == 2) {
      const bool all = c_.axes[0].taps == 1 &&
                       pair_sums_.unrolls(height_.taps, columns_[0].taps, columns_[1].taps);
      return all ? static_cast<int>(height_.taps) : 1;
    }
    return shared || columns_[0].stride == 2 ? sums_.unrolled(height_.taps, columns_[0]) : 1;
  }

  // Of v, for whose lines of g there is room.
  int64_t MostLines(int64_t span, int64_t depths) const {
    depths = std::max<int64_t>(1, depths);
    const auto lines = [&](int64_t rows) { return (rows / depths - span) / row_step_ + 1; };
    const int64_t all = lines(SumsAlongPixels::kMostRows);
    if (!kWidens || c_.axes[0].taps == 0) return all;  // of a phase without taps, no line is read
    const int64_t rows = std::max(SumsAlongPixels::kWidenedFloats / c_.axes[kAxes - 1].limit,
                                  SumsAlongPixels::FewestRows(c_.axes[0], height_, kLanes));
    return rows >= depths * height_.limit ? all : std::min(all, lines(rows));
  }

  struct Channel {
    alignas(16) float w[SumsAlongPixels::kMostLines *
                        SumsAlongPixels::WeightsOf(PixelColumns::kMostTaps)];
    float bias;
    bool finite;  // weights
  };
  Channel& ChannelOf(int64_t o) { return channels_[o % 2]; }

  void LoadChannel(int64_t o) {
    Channel& channel = ChannelOf(o);
    float zero = 0;  // or NaN
    for (int i = 0; i < phases_; ++i) {
      const Strides& of = work_.c[i].w;
      const T* const w = static_cast<const T*>(work_.other) + of.first + o * work_.w_group;
      float* to = channel.w + weights_at_[i];
      for (int64_t d = 0; d < c_.axes[0].taps; ++d) {
        for (int64_t h = 0; h < height_.taps; ++h, to += pair_.taps[i].lines.weights) {
          const T* const line = w + d * of.at[0] + h * of.at[1];
          for (int64_t t = 0; t < columns_[i].taps; ++t) {
            to[t] = Widen(LoadAt<T>(line, t * of.at[2]));
            zero += to[t] * 0.0f;
          }
        }
      }
    }
    channel.finite = zero == 0;
    channel.bias = 0;
    if (work_.bias != nullptr) channel.bias += Widen(LoadAt<T>(work_.bias, o * work_.bias_stride));
  }

  // Depth by depth, and of a depth so many lines as the table of lines of g has room for.
  void SumLinesOf(int64_t image, int64_t o) {
    T* const v = static_cast<T*>(work_.out) + c_.v.first + image * c_.v.image + o * c_.v.o;
    for (int64_t line = task_.lines.begin; line < task_.lines.end;) {
      const int64_t depth = line / height_.pixels, height = line % height_.pixels;
      const int64_t count =
          std::min({lines_each_, height_.pixels - height, task_.lines.end - line});
      FindRows(depth, {height, height + count}, ChannelOf(o).finite);
      const T* const g =
          static_cast<const T*>(work_.g) + c_.g.first + image * c_.g.image + o * c_.g.channel;
      SumFoundLines(FloatsOf(g), ChannelOf(o), v + depth * c_.v.at[0] + height * c_.v.at[1]);
      line += count;
    }
  }

  // What rows_ has, as floats. Lines that follow each other in the tensor are one run.
  const float* FloatsOf(const T* g) {
    if constexpr (kWidens) {
      const int64_t limit = c_.axes[kAxes - 1].limit, step = height_.tap_step < 0 ? -limit : limit;
      const int64_t all = depths_.size() * depth_rows_;
      for (int64_t i = 0, end = 0; i < all; i = end) {
        end = i + 1;
        if (rows_[i] == LinesOfPixels::kOutside) continue;
        while (end < all && rows_[end] == rows_[end - 1] + step &&
               from_[end] == from_[end - 1] + step) {
          ++end;
        }
        const int64_t first = step < 0 ? end - 1 : i;
        WidenRun(g + from_[first], (end - i) * limit, widened_ + rows_[first]);
      }
      return widened_;
    } else {
      return g;
    }
  }

  // A vector of elements, or more.
  HWY_INLINE static void WidenRun(const T* from, int64_t count, float* to) {
    const D d;
    int64_t at = 0;
    for (; at + 2 * kLanes <= count; at += 2 * kLanes) {
      V first, second;
      LoadBoth(from + at, first, second);
      hn::StoreU(first, d, to + at);
      hn::StoreU(second, d, to + at + kLanes);
    }
    for (; at < count; at += kLanes) {  // the last ones again
      const int64_t first = std::min(at, count - kLanes);
      hn::StoreU(LoadBytes(d, from + first), d, to + first);
    }
  }

  // From v on.
  void SumFoundLines(const float* g, const Channel& channel, T* v) {
    const int64_t step = c_.v.at[1], count = lines_.size();
    const int64_t each = pair_.taps[0].together;
    const auto sum = [&](const LinesOfPixels& some) {
      phases_ == 2 ? pair_sums_.sum_lines(pair_, some) : sums_.sum_lines(pair_.taps[0], some);
    };
    LinesOfPixels lines{.g = g,
                        .rows = rows_,
                        .row_step = each * row_step_,
                        .w = channel.w + (phases_ == 1 ? pair_.weights[0] : 0),
                        .bias = channel.bias,
                        .v = v,
                        .second = step,
                        .v_step = each * step,
                        .count = count};
    if (height_.tap_step > 0) return sum(lines);
    // Taps go back, and with them the rows; of lines that are summed at once, the last one comes
    // first.
    const int64_t whole = count / each * each;
    lines.row_step = -lines.row_step;
    lines.second = -step;
    if (whole > 0) {
      lines.rows = rows_ + (count - each) * row_step_;
      lines.v = v + (each - 1) * step;
      lines.count = whole;
      sum(lines);
    }
    if (whole == count) return;
    lines.rows = rows_;
    lines.v = v + (count - 1) * step;
    lines.count = count - whole;
    sum(lines);
  }

  // The lines of g that these lines of v read: those of one depth of taps after those of another,
  // in the order of taps. Depths outside have no effect if the weights are finite. All channels
  // have the same.
  void FindRows(int64_t depth, const Range& lines, bool finite) {
    if (depth == depth_ && lines == lines_ && finite == finite_) return;
    depth_ = depth;
    lines_ = lines;
    finite_ = finite;
    const GatherAxis& axis0 = c_.axes[0];
    const int64_t at0 = axis0.first + depth * axis0.pixel_step;
    depths_ = finite ? StepsInside(at0, at0, axis0.tap_step, axis0.taps, axis0.limit)
                     : Range{0, axis0.taps};
    for (int i = 0; i < phases_; ++i) {
      TapsAlongPixels::Steps& of = pair_.taps[i].depths;
      of.count = depths_.size();
      pair_.weights[i] = weights_at_[i] + depths_.begin * of.weights;
    }
    const int64_t step = height_.tap_step < 0 ? -unit_ : unit_;
    const int64_t first =
        height_.first + (step > 0 ? lines.begin : lines.end - 1) * height_.pixel_step;
    int64_t found = 0;
    for (int64_t d = depths_.begin; d < depths_.end; ++d) {
      const int64_t plane = at0 + d * axis0.tap_step;
      const bool inside = plane >= 0 && plane < axis0.limit;
      const int64_t before = found, row = (d - depths_.begin) * depth_rows_;
      for (int64_t i = row, at = first; i < row + depth_rows_; ++i, at += step) {
        rows_[i] = LinesOfPixels::kOutside;
        if (!inside || at < 0 || at >= height_.limit) continue;
        from_[i] = plane * c_.g.at[0] + at * c_.g.at[1];
        rows_[i] = kWidens ? found++ * c_.axes[kAxes - 1].limit : from_[i];
      }
      // Widened lines lie as those of the tensor do.
      for (int64_t i = row; kWidens && step < 0 && i < row + depth_rows_; ++i) {
        if (rows_[i] == LinesOfPixels::kOutside) continue;
        rows_[i] = (before + found - 1) * c_.axes[kAxes - 1].limit - rows_[i];
      }
    }
  }

  const DirectWork& work_;
  const Contraction& c_;
  const DirectTask& task_;
  const GatherAxis& height_;
  const SumsAlongPixels& sums_;
  const PairsAlongPixels& pair_sums_;
  const int phases_;  // whose pixels lie between each other
  PixelColumns columns_[2];
  PhasePair pair_{};  // or the first one of it
  int64_t weights_at_[2];
  int64_t unit_;        // positions from row to row of the table
  int64_t row_step_;    // rows from line to line of v
  int64_t lines_each_;  // of v, whose lines of g are found together
  int64_t depth_rows_;  // of the table, for each depth of taps
  Channel channels_[2];
  // What was found last.
  int64_t depth_ = -1;
  Range lines_{};
  bool finite_ = false;
  Range depths_{};  // of taps
  float* const widened_;
  int64_t rows_[SumsAlongPixels::kMostRows];  // as the sums want them
  int64_t from_[SumsAlongPixels::kMostRows];  // elements of the tensor
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
