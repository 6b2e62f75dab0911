// Loops over the lines of a task of the direct kernel. Step 6 of the story: copies lines, sums,
// stores. Tasks share nothing.
#if defined(CONVGRAD_CPU_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_INL_H_
#undef CONVGRAD_CPU_DIRECT_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_INL_H_
#endif

#include <algorithm>

#include "cpu/direct.h"
#include "cpu/direct_lines-inl.h"
#include "cpu/direct_sums-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// T: of the tensors that are read; U: of the one that is written.
template <class T, class U>
class DirectLines {
 public:
  DirectLines(const DirectWork& work, const DirectTask& task, float* memory)
      : work_(work),
        c_(*work.c),
        t_(*work.t),
        task_(task),
        chunks_(MakeChunks(c_)),
        last_(c_.axes[kAxes - 1]),
        columns_(c_.sum_pixels ? ColumnsOfPart() : task.columns.size()),
        slots_(SlotsOf(c_, t_, columns_)),
        position_floats_(c_.channels * kBlockLanes),
        reach_(std::min<int64_t>(0, (last_.taps - 1) * last_.tap_step)),
        terms_(c_.taps() * c_.channels) {
    block_floats_ = slots_.floats() + FloatsBesideLines(c_, t_);
    zero_line_ = memory;
    line_ = zero_line_ + slots_.line_floats;
    blocks_ = line_ + columns_ * kBlockLanes;
    std::fill(zero_line_, zero_line_ + slots_.line_floats, 0.0f);
  }

  // v = g w: the lines and columns of the task.
  void SumTaps() {
    for (int64_t b = 0; b < task_.blocks.size(); ++b) {
      StartBlock(b);
      PackWeights(b);
    }
    for (int64_t line = task_.lines.begin; line < task_.lines.end; ++line) {
      for (int64_t b = 0; b < task_.blocks.size(); ++b) SumTapsOfLine(b, line);
    }
  }

  // w = g^T v: the chunks of the task.
  void SumPixels() {
    for (int64_t b = 0; b < task_.blocks.size(); ++b) {
      StartBlock(b);
      if (work_.slabs == nullptr) LoadSums(b, Sums(b));
    }
    for (int64_t i = task_.chunks.begin; i < task_.chunks.end; ++i) {
      for (int64_t b = 0; b < task_.blocks.size(); ++b) {
        if (chunks_.chained) continue;
        std::fill(Chain(b), Chain(b) + SumFloats(), 0.0f);
      }
      SumChunk(ChunkAt(chunks_, i));
      for (int64_t b = 0; b < task_.blocks.size(); ++b) {
        if (chunks_.chained) continue;
        float* const to = work_.slabs == nullptr ? Sums(b) : Slab(i, b);
        AddSums(Chain(b), work_.slabs == nullptr, to);
      }
    }
    if (work_.slabs != nullptr) return;
    for (int64_t b = 0; b < task_.blocks.size(); ++b) StoreSums(b, chunks_.chained ? Chain(b) : Sums(b));
  }

  void AddSlabs() {
    for (int64_t b = 0; b < task_.blocks.size(); ++b) {
      LoadSums(b, Sums(b));
      for (int64_t i = 0; i < chunks_.count(); ++i) AddSums(Slab(i, b), true, Sums(b));
      StoreSums(b, Sums(b));
    }
  }

 private:
  struct Lanes {
    int64_t first;  // o, of all groups
    int64_t count;
  };

  Lanes LanesOf(int64_t b) const {
    const int64_t first = (task_.blocks.begin + b) * t_.used;
    return {first, std::min(t_.used, work_.groups * c_.o - first)};
  }

  int64_t ColumnsOfPart() const { return CeilDiv(last_.pixels, t_.column_parts); }

  // Memory of a block: lines, what is known of them, w or chains and sums.
  float* Block(int64_t b) const { return blocks_ + b * block_floats_; }
  float* LineAt(int64_t b, int64_t slot) const { return Block(b) + slot * slots_.line_floats; }
  int64_t* Tags(int64_t b) const {
    return reinterpret_cast<int64_t*>(Block(b) + slots_.count() * slots_.line_floats);
  }
  float* Weights(int64_t b) const { return Block(b) + slots_.floats(); }
  int64_t SumFloats() const { return (terms_ + 1) * kBlockLanes; }  // those of the bias, too
  float* Chain(int64_t b) const { return Weights(b); }
  float* Sums(int64_t b) const { return Chain(b) + SumFloats(); }
  float* Slab(int64_t chunk, int64_t b) const {
    return work_.slabs + (chunk * t_.blocks + task_.blocks.begin + b) * SumFloats();
  }

  void StartBlock(int64_t b) const {
    std::fill(Tags(b), Tags(b) + slots_.count(), -1);
    // Lanes that do not exist are never written.
    if (LanesOf(b).count < kBlockLanes) {
      std::fill(Block(b), Block(b) + slots_.count() * slots_.line_floats, 0.0f);
    }
  }

  int64_t WeightOffset(int64_t o, int64_t tap, int64_t channel) const {
    const int64_t taps2 = c_.axes[2].taps, taps1 = c_.axes[1].taps;
    return c_.w.first + o / c_.o * work_.w_group + o % c_.o * c_.w.o + channel * c_.w.channel +
           tap % taps2 * c_.w.at[2] + tap / taps2 % taps1 * c_.w.at[1] +
           tap / taps2 / taps1 * c_.w.at[0];
  }

  template <class Visit>
  void ForEachWeight(int64_t b, const Visit& visit) const {
    const Lanes lanes = LanesOf(b);
    int64_t at = 0;
    for (int64_t tap = 0; tap < c_.taps(); ++tap) {
      for (int64_t ci = 0; ci < c_.channels; ++ci, at += kBlockLanes) {
        for (int64_t l = 0; l < lanes.count; ++l) {
          visit(at + l, WeightOffset(lanes.first + l, tap, ci));
        }
      }
    }
  }

  void PackWeights(int64_t b) {
    float* const to = Weights(b);
    std::fill(to, to + terms_ * kBlockLanes, 0.0f);
    const T* const w = static_cast<const T*>(work_.other);
    ForEachWeight(b, [&](int64_t at, int64_t offset) { to[at] = Widen(LoadAt<T>(w, offset)); });
    finite_ = (b == 0 || finite_) && AllFinite(to, terms_ * kBlockLanes);
  }

  // Line (depth, height) of g from `position` on, or zeros where it is outside.
  void PackLine(int64_t b, int64_t image, int64_t depth, int64_t height, int64_t position,
                float* to) {
    const int64_t inside = std::clamp<int64_t>(-position, 0, slots_.span);
    const int64_t end = std::clamp<int64_t>(last_.limit - position, inside, slots_.span);
    std::fill(to, to + inside * position_floats_, 0.0f);
    std::fill(to + end * position_floats_, to + slots_.span * position_floats_, 0.0f);
    if (inside == end) return;
    const Lanes lanes = LanesOf(b);
    const int64_t groups = CeilDiv(lanes.count, c_.o), channels = groups * c_.channels;
    TensorLine<const T> line{
        static_cast<const T*>(work_.g) + c_.g.first + image * c_.g.image +
            lanes.first / c_.o * c_.channels * c_.g.channel + depth * c_.g.at[0] +
            height * c_.g.at[1] + (position + inside) * c_.g.at[2],
        c_.g.at[2], c_.g.channel};
    to += inside * position_floats_;
    if (c_.o == 1 && c_.channels == 1) {
      return LoadLine(line, end - inside, channels, to, kBlockLanes);
    }
    constexpr int64_t kFloats = 2048;
    float plain[kFloats];
    const int64_t most = std::max<int64_t>(1, kFloats / channels);
    for (int64_t i = inside; i < end; i += most) {
      const int64_t count = std::min(most, end - i);
      LoadLine(line, count, channels, plain, channels);
      SpreadChannels(plain, channels, count, c_.channels, c_.o, lanes.count, to);
      line.first += count * line.step;
      to += count * position_floats_;
    }
  }

  // The line of g that the lines of taps (d, h) read at line (depth, height) of v; null: outside,
  // and of no effect if the other factors are finite.
  const float* LineOf(int64_t b, int64_t image, int64_t depth, int64_t height, int64_t d, int64_t h,
                      int64_t column_part, int64_t column) {
    const GatherAxis &axis0 = c_.axes[0], &axis1 = c_.axes[1];
    const int64_t at0 = axis0.first + depth * axis0.pixel_step + d * axis0.tap_step;
    const int64_t at1 = axis1.first + height * axis1.pixel_step + h * axis1.tap_step;
    if (at0 < 0 || at0 >= axis0.limit || at1 < 0 || at1 >= axis1.limit) return nullptr;
    const int64_t slot = (slots_.keeps_planes ? at0 % slots_.depth : d) * slots_.height +
                         (slots_.keeps_lines ? at1 % slots_.height : h);
    const int64_t tag =
        ((image * axis0.limit + at0) * axis1.limit + at1) * t_.column_parts + column_part;
    float* const line = LineAt(b, slot);
    if (Tags(b)[slot] != tag) {
      Tags(b)[slot] = tag;
      PackLine(b, image, at0, at1, last_.first + column * last_.pixel_step + reach_, line);
    }
    return line;
  }

  // Runs of a chunk, of the line that starts at `first` with the taps `tap` and on.
  void AddRuns(const float* first, int64_t b, int64_t tap, const Chunk& chunk) {
    const int64_t tap_step = last_.tap_step * position_floats_;
    const float* const w = Weights(b);
    first -= reach_ * position_floats_;
    if (whole_lines_) {
      runs_[run_count_++] = {first, w + tap * c_.channels * kBlockLanes};
      return;
    }
    for (int64_t t = 0; t < last_.taps; ++t) {
      if (tap + t < chunk.inner.begin || tap + t >= chunk.inner.end) continue;
      const int64_t channel = chunk.outer.begin;
      runs_[run_count_++] = {first + t * tap_step + channel * kBlockLanes,
                             w + ((tap + t) * c_.channels + channel) * kBlockLanes};
    }
  }

  void CollectRuns(int64_t b, int64_t depth, int64_t height, const Chunk& chunk) {
    run_count_ = 0;
    int64_t tap = 0;
    for (int64_t d = 0; d < c_.axes[0].taps; ++d) {
      for (int64_t h = 0; h < c_.axes[1].taps; ++h, tap += last_.taps) {
        if (tap + last_.taps <= chunk.inner.begin || tap >= chunk.inner.end) continue;
        const float* line =
            LineOf(b, task_.image, depth, height, d, h, 0, task_.columns.begin);
        if (line == nullptr && !finite_) line = zero_line_;
        if (line != nullptr) AddRuns(line, b, tap, chunk);
      }
    }
  }

  void SumTapsOfLine(int64_t b, int64_t line) {
    const int64_t depth = line / c_.axes[1].pixels, height = line % c_.axes[1].pixels;
    const Lanes lanes = LanesOf(b);
    TensorLine<U> out{static_cast<U*>(work_.out) + c_.v.first + task_.image * c_.v.image +
                          depth * c_.v.at[0] + height * c_.v.at[1] +
                          task_.columns.begin * c_.v.at[2] + lanes.first * c_.v.o,
                      c_.v.at[2], c_.v.o};
    const bool scales = work_.beta != 0;
    if (scales) LoadScaledLine(out, columns_, lanes.count, work_.beta, line_);
    const int64_t chunks = chunks_.count(), tap_step = last_.tap_step * position_floats_;
    if (chunks == 0 && !scales) std::fill(line_, line_ + columns_ * kBlockLanes, 0.0f);
    for (int64_t i = 0; i < chunks; ++i) {
      const Chunk chunk = ChunkAt(chunks_, i);
      whole_lines_ = chunk.terms() == terms_ &&
                     (c_.channels == 1 || last_.taps == 1 || tap_step == position_floats_);
      CollectRuns(b, depth, height, chunk);
      const RunSteps steps{
          whole_lines_ ? last_.taps * c_.channels : chunk.outer.size(),
          whole_lines_ && c_.channels == 1 ? tap_step : kBlockLanes,
          last_.pixel_step * position_floats_};
      const bool add = scales || i > 0;
      for (int64_t l = 0; l < lanes.count; l += 2 * kLanes) {
        for (int64_t r = 0; r < run_count_; ++r) {
          moved_[r] = {runs_[r].g + l, runs_[r].w + l};
        }
        lanes.count - l > kLanes ? SumLine<2>(moved_, run_count_, steps, columns_, add, line_ + l)
                                 : SumLine<1>(moved_, run_count_, steps, columns_, add, line_ + l);
      }
    }
    float bias[kBlockLanes] = {};
    if (work_.bias != nullptr) LoadBias(lanes, bias);
    StoreLine(out, columns_, lanes.count, line_, bias);
  }

  void LoadBias(const Lanes& lanes, float* bias) const {
    for (int64_t l = 0; l < lanes.count; ++l) {
      bias[l] = Widen(LoadAt<T>(work_.bias, (lanes.first + l) * work_.bias_stride)) + 0.0f;
    }
  }

  // Pixels of a chunk, line by line, cut where parts of columns are.
  void SumChunk(const Chunk& chunk) {
    const int64_t part = ColumnsOfPart();
    for (int64_t image = chunk.outer.begin; image < chunk.outer.end; ++image) {
      for (int64_t pixel = chunk.inner.begin; pixel < chunk.inner.end;) {
        const int64_t line = pixel / last_.pixels, column = pixel % last_.pixels;
        const int64_t end = std::min((column / part + 1) * part, last_.pixels);
        const int64_t count = std::min(end - column, chunk.inner.end - pixel);
        for (int64_t b = 0; b < task_.blocks.size(); ++b) SumRun(b, image, line, column, count);
        pixel += count;
      }
    }
  }

  void SumRun(int64_t b, int64_t image, int64_t line, int64_t column, int64_t pixels) {
    const int64_t depth = line / c_.axes[1].pixels, height = line % c_.axes[1].pixels;
    const int64_t part = column / columns_, at = column % columns_;
    const Lanes lanes = LanesOf(b);
    const TensorLine<const T> v{static_cast<const T*>(work_.other) + c_.v.first +
                                    image * c_.v.image + depth * c_.v.at[0] +
                                    height * c_.v.at[1] + column * c_.v.at[2] +
                                    lanes.first * c_.v.o,
                                c_.v.at[2], c_.v.o};
    if (lanes.count < kBlockLanes) std::fill(line_, line_ + pixels * kBlockLanes, 0.0f);
    LoadLine(v, pixels, lanes.count, line_, kBlockLanes);
    if (work_.bias_out != nullptr) AddToBias(pixels, Chain(b) + terms_ * kBlockLanes);
    const int64_t tap_step = last_.tap_step * position_floats_;
    const int64_t pixel_step = last_.pixel_step * position_floats_;
    // Terms of a line of taps that are as far from each other as their neighbours.
    const bool even = c_.channels == 1 || tap_step == position_floats_;
    const int64_t runs = even ? 1 : last_.taps, terms = last_.taps * c_.channels / runs;
    const int64_t step = c_.channels == 1 ? tap_step : kBlockLanes;
    float* sums = Chain(b);
    int finite = -1;  // not known
    for (int64_t d = 0; d < c_.axes[0].taps; ++d) {
      for (int64_t h = 0; h < c_.axes[1].taps; ++h, sums += last_.taps * position_floats_) {
        const float* g = LineOf(b, image, depth, height, d, h, part, part * columns_);
        if (g == nullptr) {
          if (finite < 0) finite = AllFinite(line_, pixels * kBlockLanes);
          if (finite) continue;
          g = zero_line_;
        }
        g += at * pixel_step - reach_ * position_floats_;
        for (int64_t l = 0; l < lanes.count; l += 2 * kLanes) {
          for (int64_t r = 0; r < runs; ++r) {
            float* const to = sums + r * position_floats_ + l;
            const float* const from = g + r * tap_step + l;
            lanes.count - l > kLanes
                ? SumTerms<2>(from, line_ + l, pixels, terms, step, pixel_step, to)
                : SumTerms<1>(from, line_ + l, pixels, terms, step, pixel_step, to);
          }
        }
      }
    }
  }

  // A chain of multiply-adds with one.
  void AddToBias(int64_t pixels, float* sums) const {
    const D d;
    constexpr int kVectors = kBlockLanes / kLanes;
    V sum[kVectors];
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(d, sums + v * kLanes);
    for (int64_t p = 0; p < pixels; ++p) {
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::Add(sum[v], hn::LoadU(d, line_ + p * kBlockLanes + v * kLanes));
      }
    }
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, sums + v * kLanes);
  }

  void AddSums(const float* from, bool add, float* to) const {
    for (int64_t i = 0; i < SumFloats(); ++i) to[i] = add ? to[i] + from[i] : from[i];
  }

  // sums = beta * out; a chain goes on from its very bits.
  void LoadSums(int64_t b, float* sums) const {
    std::fill(sums, sums + SumFloats(), 0.0f);
    if (chunks_.chained) std::fill(Chain(b), Chain(b) + SumFloats(), 0.0f);
    if (work_.beta == 0) return;
    const float zero = chunks_.chained ? -0.0f : 0.0f;
    float* const to = chunks_.chained ? Chain(b) : sums;
    const U* const w = static_cast<const U*>(work_.out);
    const auto scale = [&](const U* from, int64_t offset) {
      return work_.beta * Widen(LoadAt<U>(from, offset)) + zero;
    };
    ForEachWeight(b, [&](int64_t at, int64_t offset) { to[at] = scale(w, offset); });
    if (work_.bias_out == nullptr) return;
    const Lanes lanes = LanesOf(b);
    for (int64_t l = 0; l < lanes.count; ++l) {
      to[terms_ * kBlockLanes + l] = scale(static_cast<const U*>(work_.bias_out),
                                           (lanes.first + l) * work_.bias_stride);
    }
  }

  void StoreSums(int64_t b, const float* sums) const {
    U* const w = static_cast<U*>(work_.out);
    ForEachWeight(b, [&](int64_t at, int64_t offset) {
      StoreAt(w, offset, NarrowSum(sums[at], U()));
    });
    if (work_.bias_out == nullptr) return;
    const Lanes lanes = LanesOf(b);
    for (int64_t l = 0; l < lanes.count; ++l) {
      StoreAt(static_cast<U*>(work_.bias_out), (lanes.first + l) * work_.bias_stride,
              NarrowSum(sums[terms_ * kBlockLanes + l], U()));
    }
  }

  const DirectWork& work_;
  const Contraction& c_;
  const DirectTiling& t_;
  const DirectTask& task_;
  const Chunks chunks_;
  const GatherAxis& last_;
  const int64_t columns_;
  const LineSlots slots_;
  const int64_t position_floats_;
  const int64_t reach_;  // of the taps of a line, before its first position
  const int64_t terms_;
  int64_t block_floats_ = 0;
  float *zero_line_ = nullptr, *line_ = nullptr, *blocks_ = nullptr;
  bool finite_ = true, whole_lines_ = true;
  int64_t run_count_ = 0;
  TermRun runs_[Chunks::kLongest], moved_[Chunks::kLongest];
};

template <class T, class U>
HWY_NOINLINE void RunDirectTask(const DirectWork& work, const DirectTask& task, float* memory) {
  DirectLines<T, U> lines(work, task, memory);
  if (!work.c->sum_pixels) return lines.SumTaps();
  task.adds_slabs ? lines.AddSlabs() : lines.SumPixels();
}

template <class T, class U>
HWY_NOINLINE void RunDirectOnStack(const DirectWork& work, const DirectTask& task) {
  alignas(64) float memory[DirectTiling::kStackFloats];
  RunDirectTask<T, U>(work, task, memory);
}

template <class T>
void RunDirectHere(const DirectWork& work, const DirectTask& task, float* memory) {
  if (sizeof(T) != sizeof(float) && work.f32_out) {
    return memory == nullptr ? RunDirectOnStack<T, float>(work, task)
                             : RunDirectTask<T, float>(work, task, memory);
  }
  return memory == nullptr ? RunDirectOnStack<T, T>(work, task)
                           : RunDirectTask<T, T>(work, task, memory);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
