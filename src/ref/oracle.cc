// Each output element is one f64 sum in one fixed order, so the result does not depend on threads.
// About 0.5 multiply-adds per ns and core (Neoverse-V1, 2.6 GHz): the sum is a chain of f64 adds.
#include "ref/oracle.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "core/numerics.h"
#include "core/parallel.h"

namespace convgrad {
namespace {

using Point = std::array<int64_t, kAxes>;

int64_t Offset(const PixelStrides& strides, int64_t n, int64_t c, const Point& at) {
  return n * strides.n + c * strides.c + at[0] * strides.s[0] + at[1] * strides.s[1] +
         at[2] * strides.s[2];
}

int64_t Offset(const WeightStrides& strides, int64_t g, int64_t co, int64_t ci, const Point& tap) {
  return g * strides.g + co * strides.co + ci * strides.ci + tap[0] * strides.s[0] +
         tap[1] * strides.s[1] + tap[2] * strides.s[2];
}

// sum over i of a[i * a_step] * b[i * b_step], from element offsets a_at and b_at.
template <class T>
double Dot(const void* a, int64_t a_at, int64_t a_step, const void* b, int64_t b_at, int64_t b_step,
           int64_t count, double sum) {
  for (int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(Widen(LoadAt<T>(a, a_at + i * a_step))) *
           static_cast<double>(Widen(LoadAt<T>(b, b_at + i * b_step)));
  }
  return sum;
}

// y[n, g, co, out] = sum over taps and ci of x[n, g, ci, in] * w[g, co, ci, tap]
template <class T>
double FpropElement(const Problem& p, const Operands& a, int64_t n, int64_t g, int64_t co,
                    const Point& out) {
  const Range taps[] = {TapsInside(p.axes[0], out[0]), TapsInside(p.axes[1], out[1]),
                        TapsInside(p.axes[2], out[2])};
  double sum = 0;
  Point tap, in;
  for (tap[0] = taps[0].begin; tap[0] < taps[0].end; ++tap[0]) {
    in[0] = InIndex(p.axes[0], out[0], tap[0]);
    for (tap[1] = taps[1].begin; tap[1] < taps[1].end; ++tap[1]) {
      in[1] = InIndex(p.axes[1], out[1], tap[1]);
      for (tap[2] = taps[2].begin; tap[2] < taps[2].end; ++tap[2]) {
        in[2] = InIndex(p.axes[2], out[2], tap[2]);
        sum = Dot<T>(a.x, Offset(p.x, n, g * p.ci, in), p.x.c,  //
                     a.w, Offset(p.w, g, co, 0, tap), p.w.ci, p.ci, sum);
      }
    }
  }
  return sum;
}

// x[n, g, ci, in] = sum over taps and co of y[n, g, co, out] * w[g, co, ci, tap], where out is the
// position, if any, at which the tap reads in
template <class T>
double DgradElement(const Problem& p, const Operands& a, int64_t n, int64_t g, int64_t ci,
                    const Point& in) {
  double sum = 0;
  Point tap;
  for (tap[0] = 0; tap[0] < p.axes[0].taps; ++tap[0]) {
    const auto out0 = OutIndex(p.axes[0], in[0], tap[0]);
    if (!out0) continue;
    for (tap[1] = 0; tap[1] < p.axes[1].taps; ++tap[1]) {
      const auto out1 = OutIndex(p.axes[1], in[1], tap[1]);
      if (!out1) continue;
      for (tap[2] = 0; tap[2] < p.axes[2].taps; ++tap[2]) {
        const auto out2 = OutIndex(p.axes[2], in[2], tap[2]);
        if (!out2) continue;
        sum = Dot<T>(a.y, Offset(p.y, n, g * p.co, {*out0, *out1, *out2}), p.y.c,  //
                     a.w, Offset(p.w, g, 0, ci, tap), p.w.co, p.co, sum);
      }
    }
  }
  return sum;
}

// Sums over batch and pixels are taken for up to kTogether neighbouring output elements, kStretch
// pixels at a time, so that a cache line of channels-last data serves all the channels in it. Each
// element's own order of adding, image by image and pixel by pixel, stays as if it were alone.
constexpr int64_t kTogether = 1024;
constexpr int64_t kStretch = 16;

// Calls add(n, first pixel, count) for stretches of each row of `outs`, in order.
template <class Add>
void ForEachStretch(int64_t batch, const std::array<Range, kAxes>& outs, const Add& add) {
  Point out;
  for (int64_t n = 0; n < batch; ++n) {
    for (out[0] = outs[0].begin; out[0] < outs[0].end; ++out[0]) {
      for (out[1] = outs[1].begin; out[1] < outs[1].end; ++out[1]) {
        for (out[2] = outs[2].begin; out[2] < outs[2].end; out[2] += kStretch) {
          add(n, out, std::min(kStretch, outs[2].end - out[2]));
        }
      }
    }
  }
}

// An index of w: [g, co, ci, taps...].
using WeightIndex = std::array<int64_t, 6>;

Point TapOf(const WeightIndex& i) { return {i[3], i[4], i[5]}; }

// w[g, co, ci, tap] = sum over n and out of x[n, g, ci, in] * y[n, g, co, out], for each of
// `elements`
template <class T>
void WgradSums(const Problem& p, const Operands& a, std::span<const WeightIndex> elements,
               std::span<double> sums) {
  // Elements of one tap, by its number, meet the same pixels.
  std::array<std::pair<int64_t, size_t>, kTogether> order;
  const auto end = order.begin() + static_cast<ptrdiff_t>(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    const Point tap = TapOf(elements[i]);
    order[i] = {(tap[0] * p.axes[1].taps + tap[1]) * p.axes[2].taps + tap[2], i};
  }
  std::sort(order.begin(), end);
  for (auto first = order.begin(); first != end;) {
    const Point tap = TapOf(elements[first->second]);
    const auto last =
        std::find_if(first, end, [&](const auto& i) { return i.first != first->first; });
    const std::array<Range, kAxes> outs = {OutsInside(p.axes[0], tap[0]),
                                           OutsInside(p.axes[1], tap[1]),
                                           OutsInside(p.axes[2], tap[2])};
    // Neighbouring windows inside the input are less than its extent apart; where there is only
    // one, the product could overflow.
    const int64_t x_step = outs[2].size() > 1 ? p.x.s[2] * p.axes[2].stride : 0;
    ForEachStretch(p.batch, outs, [&](int64_t n, const Point& out, int64_t count) {
      const Point in = {InIndex(p.axes[0], out[0], tap[0]), InIndex(p.axes[1], out[1], tap[1]),
                        InIndex(p.axes[2], out[2], tap[2])};
      const int64_t x_at = Offset(p.x, n, 0, in), y_at = Offset(p.y, n, 0, out);
      for (auto i = first; i != last; ++i) {
        const auto& [g, co, ci, t0, t1, t2] = elements[i->second];
        double& sum = sums[i->second];
        sum = Dot<T>(a.x, x_at + (g * p.ci + ci) * p.x.c, x_step,  //
                     a.y, y_at + (g * p.co + co) * p.y.c, p.y.s[2], count, sum);
      }
    });
    first = last;
  }
}

// The sums of channels of x or y over batch and pixels.
template <class T>
void ChannelSums(int64_t batch, const Point& pixels, const PixelStrides& strides, const void* data,
                 std::span<const std::array<int64_t, 1>> channels, std::span<double> sums) {
  const std::array<Range, kAxes> all = {{{0, pixels[0]}, {0, pixels[1]}, {0, pixels[2]}}};
  ForEachStretch(batch, all, [&](int64_t n, const Point& at, int64_t count) {
    const int64_t pixel = Offset(strides, n, 0, at);
    for (size_t i = 0; i < channels.size(); ++i) {
      const int64_t from = pixel + channels[i][0] * strides.c;
      for (int64_t k = 0; k < count; ++k) {
        sums[i] += static_cast<double>(Widen(LoadAt<T>(data, from + k * strides.s[2])));
      }
    }
  });
}

// An output: its extents, and its strides in elements.
template <size_t kRank>
struct Output {
  std::array<int64_t, kRank> extents;
  std::array<int64_t, kRank> strides;
};

// Where an index stands, and how to get to the next one. Elements are visited in the order of
// memory, whatever the layout: with 12288 channels last this is 4 times faster than the order of
// the axes.
template <size_t kRank>
class Walk {
 public:
  Walk(const Output<kRank>& output, int64_t flat) : output_(output) {
    for (size_t a = 0; a < kRank; ++a) order_[a] = a;
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      const int64_t stride_a = std::abs(output_.strides[a]),
                    stride_b = std::abs(output_.strides[b]);
      return stride_a != stride_b ? stride_a < stride_b : a > b;
    });
    for (size_t a : order_) {
      index_[a] = flat % output_.extents[a];
      flat /= output_.extents[a];
      offset_ += index_[a] * output_.strides[a];
    }
  }

  void Advance() {
    for (size_t a : order_) {
      offset_ += output_.strides[a];
      if (++index_[a] < output_.extents[a]) return;
      offset_ -= index_[a] * output_.strides[a];
      index_[a] = 0;
    }
  }

  const std::array<int64_t, kRank>& index() const { return index_; }
  int64_t offset() const { return offset_; }

 private:
  const Output<kRank>& output_;
  std::array<size_t, kRank> order_;
  std::array<int64_t, kRank> index_;
  int64_t offset_ = 0;
};

// out[index] = round(beta * out[index] + sum of index) for every index, in parallel.
// add_sums(indexes, sums) adds to each of up to kTogether sums, which are 0.
template <class Out, size_t kRank, class AddSums>
void ForEachOutput(const Output<kRank>& output, void* out, float beta, const Team& team,
                   const AddSums& add_sums) {
  // Beside an extent of 0 the others may be anything: their product could overflow.
  if (std::count(output.extents.begin(), output.extents.end(), 0) > 0) return;
  int64_t count = 1;
  for (int64_t extent : output.extents) count *= extent;
  const int64_t grain = std::clamp<int64_t>(count / (int64_t{8} * team.threads), 1, kTogether);
  ForRanges(team, count, grain, [&](int, int64_t begin, int64_t end) {
    Walk<kRank> at(output, begin);
    while (begin < end) {
      const size_t together = static_cast<size_t>(std::min(kTogether, end - begin));
      std::array<std::array<int64_t, kRank>, kTogether> indexes;
      std::array<int64_t, kTogether> offsets;
      std::array<double, kTogether> sums;
      for (size_t i = 0; i < together; ++i, at.Advance()) {
        indexes[i] = at.index();
        offsets[i] = at.offset();
        sums[i] = 0;
      }
      add_sums(std::span(indexes).first(together), std::span(sums).first(together));
      for (size_t i = 0; i < together; ++i) {
        if (beta != 0) {
          sums[i] +=
              static_cast<double>(beta) * static_cast<double>(Widen(LoadAt<Out>(out, offsets[i])));
        }
        StoreAt(out, offsets[i], Narrow<Out>(sums[i]));
      }
      begin += static_cast<int64_t>(together);
    }
  });
}

template <class T>
double BiasAt(const Problem& p, const Operands& a, int64_t channel) {
  if (!p.bias.present) return 0;
  return static_cast<double>(Widen(LoadAt<T>(a.bias, channel * p.bias.stride)));
}

// [batch, groups, channels, pixels...]
Output<6> PixelOutput(const Problem& p, int64_t channels, const Point& pixels,
                      const PixelStrides& s) {
  return {{p.batch, p.groups, channels, pixels[0], pixels[1], pixels[2]},
          {s.n, channels * s.c, s.c, s.s[0], s.s[1], s.s[2]}};
}

Point InExtents(const Problem& p) { return {p.axes[0].in, p.axes[1].in, p.axes[2].in}; }
Point OutExtents(const Problem& p) { return {p.axes[0].out, p.axes[1].out, p.axes[2].out}; }

template <class T>
void RunFprop(const Problem& p, const Operands& a, float beta, const Team& team) {
  const Output<6> y = PixelOutput(p, p.co, OutExtents(p), p.y);
  ForEachOutput<T>(y, a.out, beta, team, [&](auto indexes, auto sums) {
    for (size_t e = 0; e < sums.size(); ++e) {
      const auto& [n, g, co, out0, out1, out2] = indexes[e];
      sums[e] =
          FpropElement<T>(p, a, n, g, co, {out0, out1, out2}) + BiasAt<T>(p, a, g * p.co + co);
    }
  });
}

template <class T>
void RunDgrad(const Problem& p, const Operands& a, float beta, const Team& team) {
  const Output<6> x = PixelOutput(p, p.ci, InExtents(p), p.x);
  ForEachOutput<T>(x, a.out, beta, team, [&](auto indexes, auto sums) {
    for (size_t e = 0; e < sums.size(); ++e) {
      const auto& [n, g, ci, in0, in1, in2] = indexes[e];
      sums[e] = DgradElement<T>(p, a, n, g, ci, {in0, in1, in2}) + BiasAt<T>(p, a, g * p.ci + ci);
    }
  });
}

// Out: what is written, T or f32.
template <class T, class Out>
void RunWgrad(const Problem& p, const Operands& a, float beta, const Team& team) {
  const Output<6> w = {{p.groups, p.co, p.ci, p.axes[0].taps, p.axes[1].taps, p.axes[2].taps},
                       {p.w.g, p.w.co, p.w.ci, p.w.s[0], p.w.s[1], p.w.s[2]}};
  if (!p.bias.alone) {
    ForEachOutput<Out>(w, a.out, beta, team,
                       [&](auto indexes, auto sums) { WgradSums<T>(p, a, indexes, sums); });
  }
  if (!p.bias.present) return;
  const bool x = p.bias.sums_x;
  const Output<1> bias = {{p.groups * (x ? p.ci : p.co)}, {p.bias.stride}};
  ForEachOutput<Out>(bias, a.bias_out, beta, team, [&](auto channels, auto sums) {
    return x ? ChannelSums<T>(p.batch, InExtents(p), p.x, a.x, channels, sums)
             : ChannelSums<T>(p.batch, OutExtents(p), p.y, a.y, channels, sums);
  });
}

const void* Plus(const void* data, int64_t elements, DataType type) {
  return data == nullptr ? nullptr : static_cast<const char*>(data) + elements * SizeOf(type);
}
void* Plus(void* data, int64_t elements, DataType type) {
  return data == nullptr ? nullptr : static_cast<char*>(data) + elements * SizeOf(type);
}

}  // namespace

void RunOracle(const Problem& problem, const Operands& operands, float beta, const Team& team) {
  if (problem.per_sample.present) {  // each image is a problem of its own
    Problem one = problem;
    one.batch = 1;
    one.per_sample = {};
    for (int64_t n = 0; n < problem.batch; ++n) {
      Operands at;
      at.x = Plus(operands.x, n * problem.x.n, problem.type);
      at.y = Plus(operands.y, n * problem.y.n, problem.type);
      at.out = Plus(operands.out, n * problem.per_sample.w, problem.out_type);
      at.bias_out = Plus(operands.bias_out, n * problem.per_sample.bias, problem.out_type);
      RunOracle(one, at, beta, team);
    }
    return;
  }
  VisitFloat(problem.type, [&](auto zero) {
    using T = decltype(zero);
    switch (problem.pass) {
      case Pass::kFprop:
        return RunFprop<T>(problem, operands, beta, team);
      case Pass::kDgrad:
        return RunDgrad<T>(problem, operands, beta, team);
      case Pass::kWgrad:
        return problem.out_type == problem.type ? RunWgrad<T, T>(problem, operands, beta, team)
                                                : RunWgrad<T, float>(problem, operands, beta, team);
    }
  });
}

}  // namespace convgrad
