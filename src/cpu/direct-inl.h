// Loops over the lines of a task of the direct kernel. Step 6 of the story: copies lines, sums,
// stores. Tasks share nothing.
#if defined(CONVGRAD_CPU_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_INL_H_
#undef CONVGRAD_CPU_DIRECT_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "cpu/direct.h"
#include "cpu/direct_group_pixels-inl.h"
#include "cpu/direct_in_place-inl.h"
#include "cpu/direct_lines-inl.h"
#include "cpu/direct_pixels-inl.h"
#include "cpu/direct_sums.h"
#include "cpu/direct_taps-inl.h"
#include "cpu/direct_task-inl.h"
#include "cpu/direct_turned-inl.h"
#include "cpu/live.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Lines of g are copied, and kept for the lines of v that follow.
template <class T, class U>
class CopiedLines : public DirectTaskOf<T, U, CopiedLines<T, U>> {
  using Base = DirectTaskOf<T, U, CopiedLines>;
  friend Base;
  using Base::Bias, Base::Block, Base::Chain, Base::LanesOf, Base::Weights;
  using Base::blocks_, Base::c_, Base::chunks_, Base::columns_, Base::finite_, Base::last_,
      Base::memory_, Base::o_count_, Base::o_first_, Base::t_, Base::tap_floats_, Base::terms_,
      Base::w_plane_, Base::work_;

 public:
  CopiedLines(const DirectWork& work, const DirectTask& task, float* memory)
      : Base(work, task, memory),
        sums_(PickedDirectSums()),
        group_sums_(PickedGroupSums()),
        slots_(memory_.slots),
        fours_(HasFours(c_, kLanes)),
        spread_(c_.channels, c_.o),
        position_floats_(fours_ ? kLanes : tap_floats_),
        g_plane_(slots_.span * position_floats_),
        v_plane_(columns_ * kLanes),
        v_line_(columns_ * t_.lanes),
        reach_(slots_.sparse ? 0 : std::min<int64_t>(0, (last_.taps - 1) * last_.tap_step)),
        tap_step_((slots_.by_pixels ? 1
                   : slots_.sparse  ? columns_
                                    : last_.tap_step) *
                  position_floats_),
        pixel_step_((slots_.by_pixels ? last_.taps
                     : slots_.sparse  ? 1
                                      : last_.pixel_step) *
                    position_floats_),
        zero_line_(memory),
        tags_(reinterpret_cast<int64_t*>(memory + slots_.line_floats)) {
    std::fill(zero_line_, zero_line_ + slots_.line_floats, 0.0f);
    Forget();
  }

 private:
  float* LineAt(int64_t b, int64_t slot) const { return Block(b) + slot * slots_.line_floats; }
  float* Line(int64_t b) const { return LineAt(b, slots_.count()); }
  BlockLines Blocks(float* first, int64_t plane) const {
    return {first, memory_.block_floats, plane};
  }
  // No line is there.
  void Forget() { std::fill(tags_, tags_ + slots_.count(), -1); }

  int64_t ChannelsOf(int64_t b) const { return LanesOf(b) / c_.o * c_.channels; }
  // Channels of a block of g are its lanes, one by one.
  bool is_plain() const {
    return (c_.o == 1 && c_.channels == 1) ||
           (fours_ && t_.used == kBlockLanes && c_.o == c_.channels);
  }

  // Line (depth, height) of g, of all blocks, as the columns from `column` on read it.
  void PackLine(int64_t image, int64_t depth, int64_t height, int64_t column, int64_t slot) {
    const int64_t first = last_.first + column * last_.pixel_step;
    const auto pack = [&](int64_t position, int64_t step, int64_t count, int64_t at) {
      PackPositions(image, depth, height, position, step, count, slot, at);
    };
    if (!slots_.sparse) return pack(first + reach_, 1, slots_.span, 0);
    if (slots_.by_pixels) {
      const int64_t pixels = std::min(columns_, last_.pixels - column);
      for (int64_t p = 0; p < pixels; ++p) {
        pack(first + p * last_.pixel_step, last_.tap_step, last_.taps, p * last_.taps);
      }
      return;
    }
    for (int64_t t = 0; t < last_.taps; ++t) {
      pack(first + t * last_.tap_step, last_.pixel_step, columns_, t * columns_);
    }
  }

  // `count` positions from `position` on, every step-th, zeros where it is outside; in memory, from
  // place `at` on.
  void PackPositions(int64_t image, int64_t depth, int64_t height, int64_t position, int64_t step,
                     int64_t count, int64_t slot, int64_t at) {
    const int64_t inside = std::clamp<int64_t>(CeilDiv(-position, step), 0, count);
    const int64_t end = std::clamp<int64_t>(CeilDiv(last_.limit - position, step), inside, count);
    for (int64_t b = 0; b < blocks_; ++b) {
      const int64_t lanes = fours_ ? ChannelsOf(b) : LanesOf(b);
      for (int64_t l = 0; l < lanes; l += kLanes) {
        float* const to = LineAt(b, slot) + l / kLanes * g_plane_ + at * position_floats_;
        std::fill(to, to + inside * position_floats_, 0.0f);
        std::fill(to + end * position_floats_, to + count * position_floats_, 0.0f);
      }
    }
    if (inside == end) return;
    newest_ = this->LineOfG(image, depth, height);
    const TensorLine<const T> line{
        this->LineOfG(image, depth, height) + (position + inside * step) * c_.g.at[2],
        end - inside > 1 ? step * c_.g.at[2] : 0, c_.g.channel,
        2 * c_.axes[1].pixel_step * c_.g.at[1],
        c_.g.channel == 1 && c_.g.at[2] == work_.groups * c_.channels};
    at += inside;
    if (is_plain()) {
      return LoadBlocks(line, end - inside, o_count_,
                        Blocks(LineAt(0, slot) + at * kLanes, g_plane_));
    }
    for (int64_t b = 0; b < blocks_; ++b) {
      TensorLine<const T> own = line;
      own.first += b * ChannelsOf(0) * line.channel_step;
      float* const to = LineAt(b, slot) + at * position_floats_;
      fours_ ? LoadBlock(own, end - inside, ChannelsOf(b), to, g_plane_)
             : SpreadLine(b, own, end - inside, to);
    }
  }

  // The channels of the groups of a block, for each o of a group.
  void SpreadLine(int64_t b, TensorLine<const T> line, int64_t positions, float* to) const {
    constexpr int64_t kFloats = 2048;
    float channels_of[kFloats + kBeyondPlain];
    const int64_t lanes = LanesOf(b), channels = ChannelsOf(b);
    const int64_t most = kFloats / channels;
    for (int64_t i = 0; i < positions; i += most) {
      const int64_t count = std::min(most, positions - i);
      LoadPlain(line, count, channels, channels_of);
      SpreadChannels(channels_of, count, spread_, lanes, to, g_plane_);
      line.first += count * line.step;
      to += count * position_floats_;
    }
  }

  // The slots of the lines of g that each line of taps reads at line (depth, height) of v; -1:
  // outside, and of no effect if the other factors are finite.
  // And the taps of a line that meet any of `pixels` columns from there.
  void FindLines(int64_t image, int64_t line, int64_t column, int64_t pixels, int64_t i = 0) {
    const int64_t lowest = last_.first + column * last_.pixel_step;
    taps_ = StepsInside(lowest, lowest + (pixels - 1) * last_.pixel_step, last_.tap_step,
                        last_.taps, last_.limit);
    const int64_t lines = c_.axes[0].taps * c_.axes[1].taps;
    FindLinesFrom(image, line, c_.sum_pixels ? column / columns_ * columns_ : column,
                  found_ + i * lines);
  }

  // Copied from column `column` on.
  void FindLinesFrom(int64_t image, int64_t line, int64_t column, int32_t* found) {
    const GatherAxis &axis0 = c_.axes[0], &axis1 = c_.axes[1];
    const int64_t part = column / columns_, parts = CeilDiv(last_.pixels, columns_);
    const int64_t depth = line / axis1.pixels, height = line % axis1.pixels;
    for (int64_t d = 0; d < axis0.taps; ++d) {
      const int64_t at0 = axis0.first + depth * axis0.pixel_step + d * axis0.tap_step;
      const int64_t plane = slots_.keeps_planes ? at0 % slots_.depth : d;
      for (int64_t h = 0; h < axis1.taps; ++h, ++found) {
        const int64_t at1 = axis1.first + height * axis1.pixel_step + h * axis1.tap_step;
        *found = -1;
        if (at0 < 0 || at0 >= axis0.limit || at1 < 0 || at1 >= axis1.limit) continue;
        const int64_t slot =
            plane * slots_.height + (slots_.keeps_planes  ? at1
                                     : slots_.keeps_lines ? at1 & (slots_.height - 1)
                                                          : h);
        const int64_t tag = ((image * axis0.limit + at0) * axis1.limit + at1) * parts + part;
        *found = static_cast<int32_t>(slot);
        if (tags_[slot] == tag) continue;
        tags_[slot] = tag;
        PackLine(image, at0, at1, column, slot);
      }
    }
  }

  // Runs of a chunk. The first position of a line is where the last tap of a dgrad reads.
  int64_t CollectRuns(int64_t b, bool whole_lines, const Chunk& chunk, TermRun* runs) const {
    const int64_t lines = c_.axes[0].taps * c_.axes[1].taps, taps = last_.taps;
    const float* const w = Weights(b);
    int64_t count = 0;
    for (int64_t i = 0, tap = 0; i < lines; ++i, tap += taps) {
      if (found_[i] < 0 && finite_) continue;
      const float* const first =
          (found_[i] < 0 ? zero_line_ : LineAt(b, found_[i])) - reach_ * position_floats_;
      const Range live = finite_ ? taps_ : Range{0, taps};
      if (whole_lines) {
        runs[count++] = {first + live.begin * tap_step_, w + (tap + live.begin) * tap_floats_};
        continue;
      }
      const int64_t channel = chunk.outer.begin * kLanes, g_channel = fours_ ? 0 : channel;
      const Range inside{std::max(tap + live.begin, chunk.inner.begin),
                         std::min(tap + live.end, chunk.inner.end)};
      for (int64_t t = inside.begin; t < inside.end; ++t) {
        runs[count++] = {first + (t - tap) * tap_step_ + g_channel, w + t * tap_floats_ + channel};
      }
    }
    return count;
  }

  void SumTapsOfLine(int64_t image, int64_t line, const Range& columns) {
    const TensorLine<U> out{static_cast<U*>(work_.out) + this->PixelOfV(image, line, columns.begin),
                            c_.v.at[2], c_.v.o, c_.v.at[1]};
    // Blocks that are not full are each other's neighbours in no tensor.
    const bool full = t_.used == kBlockLanes;
    const auto for_blocks = [&](const auto& visit) {
      if (full) return visit(out, o_count_, int64_t{0});
      for (int64_t b = 0; b < blocks_; ++b) {
        const TensorLine<U> own{out.first + b * t_.used * c_.v.o, out.step, out.channel_step, 0};
        visit(own, LanesOf(b), b);
      }
    };
    FindLines(image, line, columns.begin, columns.size());
    const bool scales = work_.beta != 0;
    if (scales) {
      for_blocks([&](const TensorLine<U>& to, int64_t lanes, int64_t b) {
        LoadScaledBlocks(to, columns.size(), lanes, work_.beta, Blocks(Line(b), v_plane_));
      });
    }
    if constexpr (StoresLines(kLanes) && std::is_same_v<U, float>) {
      if (SumsAreResults()) {
        for (int64_t b = 0; b < blocks_; ++b) {
          float* const c = out.first + b * kBlockLanes;
          SumChunkOfBlock(b, 0, columns.size(), false, Bias(b), c, out.step);
        }
        return;
      }
    }
    for (int64_t b = 0; b < blocks_; ++b) SumTapsOfBlock(b, columns.size(), scales);
    for_blocks([&](const TensorLine<U>& to, int64_t lanes, int64_t b) {
      StoreBlocks(to, columns.size(), lanes, Blocks(Line(b), v_plane_), Blocks(Bias(b), w_plane_));
    });
  }

  // As they are in registers, of whole vectors that lie in the tensor as in blocks.
  bool SumsAreResults() const {
    return work_.beta == 0 && c_.v.o == 1 && chunks_.count() == 1 && t_.used == kBlockLanes &&
           o_count_ % kLanes == 0;
  }

  void SumTapsOfBlock(int64_t b, int64_t pixels, bool scales) const {
    const int64_t chunks = chunks_.count();
    float* const c = Line(b);
    if (chunks == 0 && !scales) std::fill(c, c + columns_ * kBlockLanes, 0.0f);
    for (int64_t i = 0; i < chunks; ++i) {
      SumChunkOfBlock(b, i, pixels, scales || i > 0, nullptr, c);
    }
  }

  // With a bias, c is the tensor.
  void SumChunkOfBlock(int64_t b, int64_t i, int64_t pixels, bool add, const float* bias, float* c,
                       int64_t c_pixel = 0) const {
    const Chunk chunk = ChunkAt(chunks_, i);
    TermRun runs[Chunks::kLongest];
    const bool whole_lines = !fours_ && chunk.terms() == terms_ &&
                             (c_.channels == 1 || last_.taps == 1 || tap_step_ == position_floats_);
    const TermRuns all{
        runs,
        CollectRuns(b, whole_lines, chunk, runs),
        whole_lines ? (finite_ ? taps_.size() : last_.taps) * c_.channels : chunk.outer.size(),
        whole_lines && c_.channels == 1 ? tap_step_ : kLanes,
        pixel_step_,
        g_plane_,
        w_plane_,
        v_plane_,
        bias,
        c_pixel};
    if (fours_) {
      const GroupShape shape{c_.channels, c_.o, chunk.outer.begin, chunk.outer.size()};
      return group_sums_.sum_taps(all, shape, LanesOf(b), pixels, add, c);
    }
    sums_.sum_taps(all, LanesOf(b), pixels, add, c);
  }

  static constexpr bool kSumsSeveral = true;

  void SumPixelsOfLine(int64_t image, int64_t line, int64_t column, int64_t pixels) {
    SumPixelsOfLines(image, line, 1, column, pixels);
  }
  // `count` lines: several are whole.
  void SumPixelsOfLines(int64_t image, int64_t line, int64_t count, int64_t column,
                        int64_t pixels) {
    for (int64_t i = 0; i < count; ++i) {
      LoadLineOfV(image, line + i, column, pixels, i * v_line_);
      FindLines(image, line + i, column, pixels, i);
    }
    if (kAsksForNext) FindNext(image, line, count);
    const int64_t first = column % columns_ * pixel_step_ - reach_ * position_floats_;
    for (int64_t b = 0; b < blocks_; ++b) {
      for (int64_t i = 0; i < count && work_.bias_out != nullptr; ++i) {
        AddToBias(b, Line(b) + i * v_line_, pixels);
      }
      fours_ ? SumRowsOfBlock(b, first, pixels, count) : SumPixelsOfBlock(b, first, pixels);
    }
  }

  // `at` floats after where the first one is.
  void LoadLineOfV(int64_t image, int64_t line, int64_t column, int64_t pixels, int64_t at) const {
    const TensorLine<const T> v{
        static_cast<const T*>(work_.other) + this->PixelOfV(image, line, column), c_.v.at[2],
        c_.v.o, c_.v.at[1], c_.v.o == 1 && c_.v.at[2] == work_.groups * c_.o};
    if (t_.used == kBlockLanes) {
      return LoadBlocks(v, pixels, o_count_, Blocks(Line(0) + at, v_plane_));
    }
    for (int64_t b = 0; b < blocks_; ++b) {
      LoadBlock(
          TensorLine<const T>{v.first + b * t_.used * c_.v.o, v.step, v.channel_step, v.ahead},
          pixels, LanesOf(b), Line(b) + at, v_plane_);
    }
  }

  // What the lines of v after these are summed with. Beyond an image is the next one, where tensors
  // are dense.
  void FindNext(int64_t image, int64_t line, int64_t count) {
    constexpr int64_t kSize = sizeof(T);
    const auto next = [](const void* from, int64_t ahead, int64_t step, int64_t to_line) {
      const auto at = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(ahead * kSize);
      return NextLines{reinterpret_cast<const char*>(at), step * kSize, to_line * kSize};
    };
    next_g_ = next_v_ = {};
    if (columns_ < last_.pixels || !is_plain()) return;
    if (c_.v.o == 1) {
      const int64_t offset = this->PixelOfV(image, line, 0) + count * c_.v.at[1];
      next_v_ = next(work_.other, offset, c_.v.at[2], c_.v.at[1]);
    }
    if (c_.g.channel != 1 || last_.pixel_step > 1 || newest_ == nullptr) return;
    const int64_t to_line = c_.axes[1].pixel_step * c_.g.at[1];
    next_g_ = next(newest_, to_line, c_.g.at[2], to_line);
  }

  // Of several lines of v: for each line of taps, or two of them, the lines that meet both, one
  // after the other, and those that meet one of them.
  void SumRowsOfBlock(int64_t b, int64_t first, int64_t pixels, int64_t count) const {
    int finite = taps_.size() < last_.taps ? AreFinite(b, pixels, count) : -1;  // -1: not known
    const Range live = finite == 1 ? taps_ : Range{0, last_.taps};
    if (live.size() == 0) return;
    const int64_t lines = c_.axes[0].taps * c_.axes[1].taps;
    const auto line_of_g = [&](int64_t line, int64_t i) -> const float* {
      const int32_t slot = found_[i * lines + line];
      if (slot < 0 && finite < 0) finite = AreFinite(b, pixels, count);
      if (slot < 0 && finite == 1) return nullptr;
      return (slot < 0 ? zero_line_ : LineAt(b, slot)) + first + live.begin * tap_step_;
    };
    const int64_t plane = kLanes * int64_t{sizeof(T)},
                  of_block = b * (kBlockLanes / kLanes) * plane;
    PixelRows::Row rows[PixelRows::kMost];
    PixelRows run{.rows = rows,
                  .count = 0,
                  .sums = {},
                  .pixels = pixels,
                  .terms = live.size(),
                  .term = tap_step_,
                  .pixel = pixel_step_,
                  .g_plane = g_plane_,
                  .v_plane = v_plane_,
                  .sum_plane = w_plane_,
                  .next_step = 0,
                  .next_plane = 0};
    const int64_t together = group_sums_.lines_together(run.terms);
    const GroupShape shape{c_.channels, c_.o, 0, c_.channels};
    for (int64_t line = 0; line < lines; line += together) {
      // With the first lines of taps what a block has next of g, with the second of v.
      const NextLines next = line == 0 ? next_g_ : line == together ? next_v_ : NextLines{};
      run.next_step = next.step;
      run.next_plane = next.first == nullptr ? 0 : plane;
      int of_rows = 0;  // lines of taps
      const auto sum = [&] {
        if (run.count > 0) group_sums_.sum_pixels(run, shape, LanesOf(b), of_rows);
        run.count = 0;
      };
      for (int64_t i = 0; i < count; ++i) {
        const float* const v = Line(b) + i * v_line_;
        PixelRows::Row row{v, {}, reinterpret_cast<const char*>(v)};
        if (next.first != nullptr) row.next = next.first + i * next.line + of_block;
        int found = 0;
        float* sums[PixelRows::kMostLines] = {};
        for (int64_t t = line; t < std::min(line + together, lines); ++t) {
          const float* const g = line_of_g(t, i);
          if (g == nullptr) continue;
          row.g[found] = g;
          sums[found++] = Chain(b) + (t * last_.taps + live.begin) * tap_floats_;
        }
        if (found != of_rows || sums[0] != run.sums[0]) sum();
        if (found == 0) continue;
        of_rows = found;
        std::copy(sums, sums + PixelRows::kMostLines, run.sums);
        rows[run.count++] = row;
      }
      sum();
    }
  }

  // From `first` on in each line of g.
  void SumPixelsOfBlock(int64_t b, int64_t first, int64_t pixels) const {
    // Terms of a line of taps that are as far from each other as their neighbours.
    const bool even = c_.channels == 1 || last_.taps == 1 || tap_step_ == position_floats_;
    int finite = taps_.size() < last_.taps ? AreFinite(b, pixels, 1) : -1;  // -1: not known
    const Range live = finite == 1 ? taps_ : Range{0, last_.taps};
    const int64_t parts = even ? 1 : live.size();
    if (live.size() == 0) return;
    PixelRun run{.g = {},
                 .sums = {},
                 .v = Line(b),
                 .pixels = pixels,
                 .terms = live.size() * c_.channels / parts,
                 .term = c_.channels == 1 ? tap_step_ : kLanes,
                 .pixel = pixel_step_,
                 .g_plane = g_plane_,
                 .v_plane = v_plane_,
                 .sum_plane = w_plane_};
    const int together = sums_.lines_together(run.terms);
    const int64_t lines = c_.axes[0].taps * c_.axes[1].taps;
    int count = 0;
    for (int64_t i = 0; i < lines; ++i) {
      const float* g = found_[i] < 0 ? zero_line_ : LineAt(b, found_[i]);
      if (found_[i] < 0) {
        if (finite < 0) finite = AreFinite(b, pixels, 1);
        if (finite == 1) g = nullptr;
      }
      if (g != nullptr) {
        run.g[count] = g + first + live.begin * tap_step_;
        run.sums[count++] = Chain(b) + (i * last_.taps + live.begin) * tap_floats_;
      }
      if (count == 0 || (count < together && i + 1 < lines)) continue;
      SumPixelsOfParts(b, run, count, parts);
      count = 0;
    }
  }

  void SumPixelsOfParts(int64_t b, PixelRun run, int count, int64_t parts) const {
    for (int64_t part = 0; part < parts; ++part) {
      sums_.sum_pixels(run, LanesOf(b), count);
      for (int i = 0; i < count; ++i) {
        run.g[i] += tap_step_;
        run.sums[i] += tap_floats_;
      }
    }
  }

  // Those lines of v.
  bool AreFinite(int64_t b, int64_t pixels, int64_t count) const {
    bool finite = true;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t l = 0; l < LanesOf(b); l += kLanes) {
        const float* const line = Line(b) + i * v_line_ + l / kLanes * v_plane_;
        finite = finite && AllFinite(line, pixels * kLanes);
      }
    }
    return finite;
  }

  // A chain of multiply-adds with one.
  void AddToBias(int64_t b, const float* of, int64_t pixels) const {
    const D d;
    for (int64_t l = 0; l < LanesOf(b); l += kLanes) {
      const float* const line = of + l / kLanes * v_plane_;
      float* const to = Bias(b) + l / kLanes * w_plane_;
      V sum = hn::LoadU(d, to);
      for (int64_t p = 0; p < pixels; ++p) sum = hn::Add(sum, hn::LoadU(d, line + p * kLanes));
      hn::StoreU(sum, d, to);
    }
  }

  const DirectSums& sums_;
  const GroupSums& group_sums_;
  const LineSlots& slots_;
  const bool fours_;
  const SpreadShape spread_;
  const int64_t position_floats_;  // of g, in a plane
  const int64_t g_plane_, v_plane_, v_line_;
  const int64_t reach_;                  // of the taps of a line, before its first position
  const int64_t tap_step_, pixel_step_;  // floats of a line in memory
  float* const zero_line_;
  // What is copied next, or nothing: bytes from position to position, and to the line after it.
  struct NextLines {
    const char* first = nullptr;
    int64_t step = 0, line = 0;
  };
  const T* newest_ = nullptr;  // line of g that was copied
  NextLines next_g_{}, next_v_{};
  int64_t* const tags_;
  Range taps_;
  int32_t found_[DirectTiling::kMostLines];
};

template <class T, class U>
HWY_NOINLINE void RunDirectTask(const DirectWork& work, const DirectTask& task, float* memory) {
  if (work.t->turned) return RunTurnedTask<T, U>(work, task, memory);
  const auto sum_pixels = [&](auto&& lines) {
    task.adds_slabs ? lines.AddSlabs() : lines.SumPixels();
  };
  const auto run = [&](auto&& lines) { work.c->sum_pixels ? sum_pixels(lines) : lines.SumTaps(); };
  if constexpr (sizeof(T) == sizeof(U)) {
    if (work.t->along_pixels) return LinesAlongPixels<T>(work, task, memory).SumTaps();
#if CONVGRAD_HAS_AVX512
    if (work.t->groups_along_pixels) return GroupsAlongPixels<T>(work, task, memory).SumTaps();
#endif
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    if (work.t->along_taps) return sum_pixels(LinesAlongTaps(work, task, memory));
  }
  work.t->in_place ? run(LinesInPlace<T, U>(work, task, memory))
                   : run(CopiedLines<T, U>(work, task, memory));
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
