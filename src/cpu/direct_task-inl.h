// What the tasks of the direct kernel have in common: weights, bias and sums in memory, and the
// order of chunks. Step 6 of the story.
#if defined(CONVGRAD_CPU_DIRECT_TASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_TASK_INL_H_
#undef CONVGRAD_CPU_DIRECT_TASK_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_TASK_INL_H_
#endif

#include <algorithm>

#include "cpu/direct.h"
#include "cpu/direct_lines-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// T: of the tensors that are read; U: of the one that is written; W: of weights that are read.
// Lines is what derives from it: it computes lines of v from those of g, or of sums from both.
template <class T, class U, class Lines, class W = T>
class DirectTaskOf {
 public:
  DirectTaskOf(const DirectWork& work, const DirectTask& task, float* memory)
      : work_(work),
        c_(*work.c),
        t_(*work.t),
        task_(task),
        chunks_(MakeChunks(c_)),
        last_(c_.axes[kAxes - 1]),
        columns_(std::min(t_.columns, last_.pixels)),
        memory_(MemoryOf(c_, t_)),
        line_terms_(TermsOfLine(c_, t_)),
        terms_(c_.axes[0].taps * c_.axes[1].taps * line_terms_),
        lane_step_(std::min<int64_t>(kLanes, t_.lanes)),
        sum_floats_(SumFloatsOf(c_, t_)),
        blocks_(task.blocks.size()),
        o_first_(task.blocks.begin * t_.used),
        o_count_(std::min(task.blocks.end * t_.used, work.groups * c_.o) - o_first_),
        tap_floats_(c_.channels * lane_step_),
        w_plane_((terms_ + 1) * lane_step_),
        first_block_(memory + memory_.shared_floats()) {
    // Lanes that do not exist are zero, or copies of others.
    for (int64_t b = 0; b < blocks_; ++b) {
      if (LanesOf(b) < t_.lanes) std::fill(Block(b), Block(b + 1), 0.0f);
    }
  }

  // v = g w: the lines and columns of the task.
  void SumTaps() {
    PackWeights();
    SumTapsOfImages(task_.images);
  }

  void PackWeights() {
    for (int64_t b = 0; b < blocks_; ++b) PackWeights(b);
  }

  void SumTapsOfImages(const Range& images) {
    for (int64_t at = task_.columns.begin; at < task_.columns.end; at += columns_) {
      const Range columns{at, std::min(at + columns_, task_.columns.end)};
      lines().Forget();
      for (int64_t image = images.begin; image < images.end; ++image) {
        for (int64_t line = task_.lines.begin; line < task_.lines.end; ++line) {
          lines().SumTapsOfLine(image, line, columns);
        }
      }
    }
  }

  // w = g^T v: the chunks of the task. begin(image) comes before its pixels.
  void SumPixels() {
    SumPixels([](int64_t) {});
  }
  template <class Begin>
  void SumPixels(const Begin& begin) {
    if (work_.slabs == nullptr) LoadSums();
    for (int64_t i = task_.chunks.begin; i < task_.chunks.end; ++i) {
      for (int64_t b = 0; b < blocks_; ++b) BeginChunk(b);
      SumChunk(ChunkAt(chunks_, i), begin);
      for (int64_t b = 0; b < blocks_; ++b) EndChunk(i, b);
    }
    if (work_.slabs == nullptr) StoreSums();
  }

  void AddSlabs() {
    LoadSums();
    for (int64_t b = 0; b < blocks_; ++b) {
      for (int64_t i = 0; i < chunks_.count(); ++i) AddSums(Slab(i, b), Sums(b));
    }
    StoreSums();
  }

 protected:
  static constexpr bool kSumsSeveral = false;  // lines at once, of a weight gradient

  // Memory of a block: its lines of g, a line of v, w or chains and sums, bias.
  float* Block(int64_t b) const { return first_block_ + b * memory_.block_floats; }
  float* Weights(int64_t b) const { return Block(b) + memory_.weights_at; }
  float* Bias(int64_t b) const { return Weights(b) + terms_ * lane_step_; }  // as one more term
  int64_t SumFloats() const { return sum_floats_; }
  float* Chain(int64_t b) const { return Weights(b); }
  // Of a block, those that exist.
  int64_t LanesOf(int64_t b) const { return std::min(t_.used, o_count_ - b * t_.used); }

  // Of the first o of the task.
  const T* LineOfG(int64_t image, int64_t depth, int64_t height) const {
    return static_cast<const T*>(work_.g) + c_.g.first + image * c_.g.image +
           o_first_ / c_.o * c_.channels * c_.g.channel + depth * c_.g.at[0] + height * c_.g.at[1];
  }
  int64_t PixelOfV(int64_t image, int64_t line, int64_t column) const {
    const int64_t depth = line / c_.axes[1].pixels, height = line % c_.axes[1].pixels;
    return c_.v.first + image * c_.v.image + depth * c_.v.at[0] + height * c_.v.at[1] +
           column * c_.v.at[2] + o_first_ * c_.v.o;
  }

  void BeginChunk(int64_t b) const {
    if (!chunks_.chained) std::fill(Chain(b), Chain(b) + SumFloats(), 0.0f);
  }

  // A chain that goes on is a sum, too: -0 becomes +0.
  void EndChunk(int64_t i, int64_t b) const {
    float* const chain = Chain(b);
    if (chunks_.chained) {
      for (int64_t k = 0; k < SumFloats(); ++k) chain[k] += 0.0f;
    } else if (work_.slabs != nullptr) {
      std::copy(chain, chain + SumFloats(), Slab(i, b));
    } else {
      AddSums(chain, Sums(b));
    }
  }

  // beta * out; a chain goes on from its very bits.
  void LoadSums() const {
    const float zero = chunks_.chained && chunks_.count() > 0 ? -0.0f : 0.0f;
    const auto scaled = [&](const void* from, int64_t offset) {
      return work_.beta * Widen(LoadAt<U>(from, offset)) + zero;
    };
    for (int64_t b = 0; b < blocks_; ++b) {
      float* const to = chunks_.chained ? Chain(b) : Sums(b);
      std::fill(to, to + SumFloats(), 0.0f);
      if (work_.beta == 0) continue;
      ForEachWeight(b, [&](int64_t at, int64_t offset) { to[at] = scaled(work_.out, offset); });
      ForEachBias(b, [&](int64_t at, int64_t offset) { to[at] = scaled(work_.bias_out, offset); });
    }
  }

  void StoreSums() const {
    for (int64_t b = 0; b < blocks_; ++b) {
      const float* const sums = chunks_.chained ? Chain(b) : Sums(b);
      ForEachWeight(b, [&](int64_t at, int64_t offset) {
        StoreAt(work_.out, offset, NarrowSum(sums[at], U()));
      });
      ForEachBias(b, [&](int64_t at, int64_t offset) {
        StoreAt(work_.bias_out, offset, NarrowSum(sums[at], U()));
      });
    }
  }

  const DirectWork& work_;
  const Contraction& c_;
  const DirectTiling& t_;
  const DirectTask& task_;
  const Chunks chunks_;
  const GatherAxis& last_;
  const int64_t columns_;
  const DirectMemory memory_;
  const int64_t line_terms_;  // of a line of taps
  const int64_t terms_;
  const int64_t lane_step_;   // floats from term to term, of each lane
  const int64_t sum_floats_;  // of a block, those of the bias, too
  const int64_t blocks_;
  const int64_t o_first_, o_count_;  // of all groups
  const int64_t tap_floats_;         // of w and of sums, in a plane
  const int64_t w_plane_;
  float* const first_block_;
  bool finite_ = true;  // all weights

 private:
  Lines& lines() { return static_cast<Lines&>(*this); }
  float* Sums(int64_t b) const { return Chain(b) + SumFloats(); }
  float* Slab(int64_t chunk, int64_t b) const {
    return work_.slabs + (chunk * t_.blocks + task_.blocks.begin + b) * SumFloats();
  }
  // In a block's weights or sums.
  int64_t PlaceOf(int64_t lane, int64_t term) const {
    return lane / lane_step_ * w_plane_ + term * lane_step_ + lane % lane_step_;
  }

  // Of the first tap and channel.
  int64_t WeightOffset(int64_t o) const {
    return c_.w.first + o / c_.o * work_.w_group + o % c_.o * c_.w.o;
  }

  // Of a block: visit(place in it, offset in w).
  template <class Visit>
  void ForEachWeight(int64_t b, const Visit& visit) const {
    for (int64_t l = 0; l < LanesOf(b); ++l) {
      const int64_t first = WeightOffset(o_first_ + b * t_.used + l);
      int64_t at = PlaceOf(l, 0);
      for (int64_t t0 = 0; t0 < c_.axes[0].taps; ++t0) {
        for (int64_t t1 = 0; t1 < c_.axes[1].taps; ++t1) {
          int64_t offset = first + t0 * c_.w.at[0] + t1 * c_.w.at[1];
          for (int64_t t2 = 0; t2 < c_.axes[2].taps; ++t2, offset += c_.w.at[2]) {
            for (int64_t ci = 0; ci < c_.channels; ++ci, at += lane_step_) {
              visit(at, offset + ci * c_.w.channel);
            }
          }
          at += (line_terms_ - c_.axes[2].taps * c_.channels) * lane_step_;
        }
      }
    }
  }

  void PackWeights(int64_t b) {
    float* const to = Weights(b);
    std::fill(to, to + SumFloats(), 0.0f);
    const W* const w = static_cast<const W*>(work_.other);
    ForEachWeight(b, [&](int64_t at, int64_t offset) { to[at] = Widen(LoadAt<W>(w, offset)); });
    finite_ = finite_ && AllFinite(to, SumFloats());
    for (int64_t l = 0; l < LanesOf(b) && work_.bias != nullptr; ++l) {
      const int64_t o = o_first_ + b * t_.used + l;
      to[PlaceOf(l, terms_)] = Widen(LoadAt<W>(work_.bias, o * work_.bias_stride)) + 0.0f;
    }
  }

  // Pixels of a chunk, line by line, cut where parts of columns are.
  template <class Begin>
  void SumChunk(const Chunk& chunk, const Begin& begin) {
    for (int64_t image = chunk.outer.begin; image < chunk.outer.end; ++image) {
      begin(image);
      for (int64_t pixel = chunk.inner.begin; pixel < chunk.inner.end;) {
        const int64_t line = pixel / last_.pixels, column = pixel % last_.pixels;
        if constexpr (Lines::kSumsSeveral) {
          const int64_t left = std::min((chunk.inner.end - pixel) / last_.pixels,
                                        c_.axes[1].pixels - line % c_.axes[1].pixels);
          if (column == 0 && std::min(left, t_.lines_each) > 1) {
            const int64_t some = std::min(left, t_.lines_each);
            lines().SumPixelsOfLines(image, line, some, 0, last_.pixels);
            pixel += some * last_.pixels;
            continue;
          }
        }
        const int64_t end = std::min((column / columns_ + 1) * columns_, last_.pixels);
        const int64_t count = std::min(end - column, chunk.inner.end - pixel);
        lines().SumPixelsOfLine(image, line, column, count);
        pixel += count;
      }
    }
  }

  void AddSums(const float* from, float* to) const {
    for (int64_t i = 0; i < SumFloats(); ++i) to[i] += from[i];
  }

  // visit(place in the sums of block b, offset in bias_out)
  template <class Visit>
  void ForEachBias(int64_t b, const Visit& visit) const {
    for (int64_t l = 0; l < LanesOf(b) && work_.bias_out != nullptr; ++l) {
      visit(PlaceOf(l, terms_), (o_first_ + b * t_.used + l) * work_.bias_stride);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
