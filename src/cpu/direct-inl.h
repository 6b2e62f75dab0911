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
#include "cpu/direct_sums.h"
#include "cpu/live.h"
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
        sums_(PickedDirectSums()),
        chunks_(MakeChunks(c_)),
        last_(c_.axes[kAxes - 1]),
        columns_(std::min(t_.columns, last_.pixels)),
        memory_(MemoryOf(c_, t_)),
        slots_(memory_.slots),
        terms_(c_.taps() * c_.channels),
        blocks_(task.blocks.size()),
        o_first_(task.blocks.begin * t_.used),
        o_count_(std::min(task.blocks.end * t_.used, work.groups * c_.o) - o_first_),
        fours_(HasFours(c_, kLanes)),
        tap_floats_(c_.channels * kLanes),
        position_floats_(fours_ ? kLanes : tap_floats_),
        g_plane_(slots_.span * position_floats_),
        v_plane_(columns_ * kLanes),
        w_plane_((terms_ + 1) * kLanes),
        reach_(slots_.sparse ? 0 : std::min<int64_t>(0, (last_.taps - 1) * last_.tap_step)),
        tap_step_((slots_.sparse ? columns_ : last_.tap_step) * position_floats_),
        pixel_step_((slots_.sparse ? 1 : last_.pixel_step) * position_floats_),
        zero_line_(memory),
        tags_(reinterpret_cast<int64_t*>(memory + slots_.line_floats)),
        first_block_(memory + slots_.line_floats + memory_.tag_floats) {
    std::fill(zero_line_, zero_line_ + slots_.line_floats, 0.0f);
    std::fill(tags_, tags_ + slots_.count(), -1);
    // Lanes that do not exist are zero, or copies of others.
    for (int64_t b = 0; b < blocks_; ++b) {
      if (LanesOf(b) < kBlockLanes) std::fill(Block(b), Block(b + 1), 0.0f);
    }
  }

  // v = g w: the lines and columns of the task.
  void SumTaps() {
    for (int64_t b = 0; b < blocks_; ++b) PackWeights(b);
    for (int64_t at = task_.columns.begin; at < task_.columns.end; at += columns_) {
      const Range columns{at, std::min(at + columns_, task_.columns.end)};
      std::fill(tags_, tags_ + slots_.count(), -1);
      for (int64_t image = task_.images.begin; image < task_.images.end; ++image) {
        for (int64_t line = task_.lines.begin; line < task_.lines.end; ++line) {
          SumTapsOfLine(image, line, columns);
        }
      }
    }
  }

  // w = g^T v: the chunks of the task.
  void SumPixels() {
    if (work_.slabs == nullptr) LoadSums();
    for (int64_t i = task_.chunks.begin; i < task_.chunks.end; ++i) {
      for (int64_t b = 0; b < blocks_ && !chunks_.chained; ++b) {
        std::fill(Chain(b), Chain(b) + SumFloats(), 0.0f);
      }
      SumChunk(ChunkAt(chunks_, i));
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

 private:
  // Memory of a block: its lines of g, a line of v, w or chains and sums, bias.
  float* Block(int64_t b) const { return first_block_ + b * memory_.block_floats; }
  float* LineAt(int64_t b, int64_t slot) const { return Block(b) + slot * slots_.line_floats; }
  float* Line(int64_t b) const { return LineAt(b, slots_.count()); }
  float* Weights(int64_t b) const { return Line(b) + columns_ * kBlockLanes; }
  float* Bias(int64_t b) const { return Weights(b) + terms_ * kLanes; }  // as one more term
  int64_t SumFloats() const { return (terms_ + 1) * kBlockLanes; }       // those of the bias, too
  float* Chain(int64_t b) const { return Weights(b); }
  float* Sums(int64_t b) const { return Chain(b) + SumFloats(); }
  float* Slab(int64_t chunk, int64_t b) const {
    return work_.slabs + (chunk * t_.blocks + task_.blocks.begin + b) * SumFloats();
  }
  BlockLines Blocks(float* first, int64_t plane) const {
    return {first, memory_.block_floats, plane};
  }
  // In a block's weights or sums.
  int64_t PlaceOf(int64_t lane, int64_t term) const {
    return lane / kLanes * w_plane_ + term * kLanes + lane % kLanes;
  }

  // Of a block, those that exist.
  int64_t LanesOf(int64_t b) const { return std::min(t_.used, o_count_ - b * t_.used); }
  int64_t ChannelsOf(int64_t b) const { return LanesOf(b) / c_.o * c_.channels; }
  // Channels of a block of g are its lanes, one by one.
  bool is_plain() const {
    return (c_.o == 1 && c_.channels == 1) ||
           (fours_ && t_.used == kBlockLanes && c_.o == c_.channels);
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
            for (int64_t ci = 0; ci < c_.channels; ++ci, at += kLanes) {
              visit(at, offset + ci * c_.w.channel);
            }
          }
        }
      }
    }
  }

  void PackWeights(int64_t b) {
    float* const to = Weights(b);
    std::fill(to, to + SumFloats(), 0.0f);
    const T* const w = static_cast<const T*>(work_.other);
    ForEachWeight(b, [&](int64_t at, int64_t offset) { to[at] = Widen(LoadAt<T>(w, offset)); });
    finite_ = finite_ && AllFinite(to, SumFloats());
    for (int64_t l = 0; l < LanesOf(b) && work_.bias != nullptr; ++l) {
      const int64_t o = o_first_ + b * t_.used + l;
      to[PlaceOf(l, terms_)] = Widen(LoadAt<T>(work_.bias, o * work_.bias_stride)) + 0.0f;
    }
  }

  // Line (depth, height) of g, of all blocks, as the columns from `column` on read it.
  void PackLine(int64_t image, int64_t depth, int64_t height, int64_t column, int64_t slot) {
    const int64_t first = last_.first + column * last_.pixel_step;
    if (!slots_.sparse) return PackPositions(image, depth, height, first + reach_, 1, slot, 0);
    for (int64_t t = 0; t < last_.taps; ++t) {
      PackPositions(image, depth, height, first + t * last_.tap_step, last_.pixel_step, slot,
                    t * columns_);
    }
  }

  // From `position` on, every step-th, zeros where it is outside; in memory, from place `at` on.
  void PackPositions(int64_t image, int64_t depth, int64_t height, int64_t position, int64_t step,
                     int64_t slot, int64_t at) {
    const int64_t count = slots_.sparse ? columns_ : slots_.span;
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
    const TensorLine<const T> line{
        static_cast<const T*>(work_.g) + c_.g.first + image * c_.g.image +
            o_first_ / c_.o * c_.channels * c_.g.channel + depth * c_.g.at[0] +
            height * c_.g.at[1] + (position + inside * step) * c_.g.at[2],
        end - inside > 1 ? step * c_.g.at[2] : 0, c_.g.channel,
        2 * c_.axes[1].pixel_step * c_.g.at[1]};
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
    float channels_of[kFloats];
    const int64_t lanes = LanesOf(b), channels = ChannelsOf(b);
    const int64_t most = kFloats / channels;
    for (int64_t i = 0; i < positions; i += most) {
      const int64_t count = std::min(most, positions - i);
      LoadPlain(line, count, channels, channels_of);
      SpreadChannels(channels_of, count, c_.channels, c_.o, lanes, to, g_plane_);
      line.first += count * line.step;
      to += count * position_floats_;
    }
  }

  // The slots of the lines of g that each line of taps reads at line (depth, height) of v; -1:
  // outside, and of no effect if the other factors are finite.
  // And the taps of a line that meet any of `pixels` columns from there.
  void FindLines(int64_t image, int64_t line, int64_t column, int64_t pixels) {
    const int64_t lowest = last_.first + column * last_.pixel_step;
    taps_ = StepsInside(lowest, lowest + (pixels - 1) * last_.pixel_step, last_.tap_step,
                        last_.taps, last_.limit);
    FindLinesFrom(image, line, c_.sum_pixels ? column / columns_ * columns_ : column);
  }

  // Copied from column `column` on.
  void FindLinesFrom(int64_t image, int64_t line, int64_t column) {
    const GatherAxis &axis0 = c_.axes[0], &axis1 = c_.axes[1];
    const int64_t part = column / columns_, parts = CeilDiv(last_.pixels, columns_);
    const int64_t depth = line / axis1.pixels, height = line % axis1.pixels;
    int32_t* found = found_;
    for (int64_t d = 0; d < axis0.taps; ++d) {
      const int64_t at0 = axis0.first + depth * axis0.pixel_step + d * axis0.tap_step;
      for (int64_t h = 0; h < axis1.taps; ++h, ++found) {
        const int64_t at1 = axis1.first + height * axis1.pixel_step + h * axis1.tap_step;
        *found = -1;
        if (at0 < 0 || at0 >= axis0.limit || at1 < 0 || at1 >= axis1.limit) continue;
        const int64_t slot = (slots_.keeps_planes ? at0 & (slots_.depth - 1) : d) * slots_.height +
                             (slots_.keeps_lines ? at1 & (slots_.height - 1) : h);
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
    const int64_t depth = line / c_.axes[1].pixels, height = line % c_.axes[1].pixels;
    const TensorLine<U> out{static_cast<U*>(work_.out) + c_.v.first + image * c_.v.image +
                                depth * c_.v.at[0] + height * c_.v.at[1] +
                                columns.begin * c_.v.at[2] + o_first_ * c_.v.o,
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
    for (int64_t b = 0; b < blocks_; ++b) SumTapsOfBlock(b, columns.size(), scales);
    for_blocks([&](const TensorLine<U>& to, int64_t lanes, int64_t b) {
      StoreBlocks(to, columns.size(), lanes, Blocks(Line(b), v_plane_), Blocks(Bias(b), w_plane_));
    });
  }

  void SumTapsOfBlock(int64_t b, int64_t pixels, bool scales) const {
    const int64_t chunks = chunks_.count();
    float* const c = Line(b);
    if (chunks == 0 && !scales) std::fill(c, c + columns_ * kBlockLanes, 0.0f);
    TermRun runs[Chunks::kLongest];
    for (int64_t i = 0; i < chunks; ++i) {
      const Chunk chunk = ChunkAt(chunks_, i);
      const bool whole_lines =
          !fours_ && chunk.terms() == terms_ &&
          (c_.channels == 1 || last_.taps == 1 || tap_step_ == position_floats_);
      const TermRuns all{
          runs,
          CollectRuns(b, whole_lines, chunk, runs),
          whole_lines ? (finite_ ? taps_.size() : last_.taps) * c_.channels : chunk.outer.size(),
          whole_lines && c_.channels == 1 ? tap_step_ : kLanes,
          pixel_step_,
          g_plane_,
          w_plane_,
          v_plane_};
      if (fours_) {
        const GroupShape shape{c_.channels, c_.o, chunk.outer.begin, chunk.outer.size()};
        sums_.sum_group_taps(all, shape, LanesOf(b), pixels, scales || i > 0, c);
        continue;
      }
      sums_.sum_taps(all, LanesOf(b), pixels, scales || i > 0, c);
    }
  }

  // Pixels of a chunk, line by line, cut where parts of columns are.
  void SumChunk(const Chunk& chunk) {
    for (int64_t image = chunk.outer.begin; image < chunk.outer.end; ++image) {
      for (int64_t pixel = chunk.inner.begin; pixel < chunk.inner.end;) {
        const int64_t line = pixel / last_.pixels, column = pixel % last_.pixels;
        const int64_t end = std::min((column / columns_ + 1) * columns_, last_.pixels);
        const int64_t count = std::min(end - column, chunk.inner.end - pixel);
        SumPixelsOfLine(image, line, column, count);
        pixel += count;
      }
    }
  }

  void SumPixelsOfLine(int64_t image, int64_t line, int64_t column, int64_t pixels) {
    const int64_t depth = line / c_.axes[1].pixels, height = line % c_.axes[1].pixels;
    const TensorLine<const T> v{static_cast<const T*>(work_.other) + c_.v.first +
                                    image * c_.v.image + depth * c_.v.at[0] + height * c_.v.at[1] +
                                    column * c_.v.at[2] + o_first_ * c_.v.o,
                                c_.v.at[2], c_.v.o, c_.v.at[1]};
    if (t_.used == kBlockLanes) {
      LoadBlocks(v, pixels, o_count_, Blocks(Line(0), v_plane_));
    } else {
      for (int64_t b = 0; b < blocks_; ++b) {
        LoadBlock(
            TensorLine<const T>{v.first + b * t_.used * c_.v.o, v.step, v.channel_step, v.ahead},
            pixels, LanesOf(b), Line(b), v_plane_);
      }
    }
    FindLines(image, line, column, pixels);
    const int64_t first = column % columns_ * pixel_step_ - reach_ * position_floats_;
    for (int64_t b = 0; b < blocks_; ++b) {
      if (work_.bias_out != nullptr) AddToBias(b, pixels);
      SumPixelsOfBlock(b, first, pixels);
    }
  }

  // From `first` on in each line of g.
  void SumPixelsOfBlock(int64_t b, int64_t first, int64_t pixels) const {
    // Terms of a line of taps that are as far from each other as their neighbours.
    const bool even =
        fours_ || c_.channels == 1 || last_.taps == 1 || tap_step_ == position_floats_;
    int finite = taps_.size() < last_.taps ? IsFinite(b, pixels) : -1;  // -1: not known
    const Range live = finite == 1 ? taps_ : Range{0, last_.taps};
    const int64_t parts = even ? 1 : live.size();
    if (live.size() == 0) return;
    PixelRun run{.g = {},
                 .sums = {},
                 .v = Line(b),
                 .pixels = pixels,
                 .terms = fours_ ? live.size() : live.size() * c_.channels / parts,
                 .term = fours_ || c_.channels == 1 ? tap_step_ : kLanes,
                 .pixel = pixel_step_,
                 .g_plane = g_plane_,
                 .v_plane = v_plane_,
                 .sum_plane = w_plane_};
    const int together =
        fours_ ? sums_.group_lines_together(run.terms) : sums_.lines_together(run.terms);
    const int64_t lines = c_.axes[0].taps * c_.axes[1].taps;
    int count = 0;
    for (int64_t i = 0; i < lines; ++i) {
      const float* g = found_[i] < 0 ? zero_line_ : LineAt(b, found_[i]);
      if (found_[i] < 0) {
        if (finite < 0) finite = IsFinite(b, pixels);
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
    if (fours_) {
      const GroupShape shape{c_.channels, c_.o, 0, c_.channels};
      return sums_.sum_group_pixels(run, shape, LanesOf(b), count);
    }
    for (int64_t part = 0; part < parts; ++part) {
      sums_.sum_pixels(run, LanesOf(b), count);
      for (int i = 0; i < count; ++i) {
        run.g[i] += tap_step_;
        run.sums[i] += tap_floats_;
      }
    }
  }

  bool IsFinite(int64_t b, int64_t pixels) const {
    bool finite = true;
    for (int64_t l = 0; l < LanesOf(b); l += kLanes) {
      finite = finite && AllFinite(Line(b) + l / kLanes * v_plane_, pixels * kLanes);
    }
    return finite;
  }

  // A chain of multiply-adds with one.
  void AddToBias(int64_t b, int64_t pixels) const {
    const D d;
    for (int64_t l = 0; l < LanesOf(b); l += kLanes) {
      const float* const line = Line(b) + l / kLanes * v_plane_;
      float* const to = Bias(b) + l / kLanes * w_plane_;
      V sum = hn::LoadU(d, to);
      for (int64_t p = 0; p < pixels; ++p) sum = hn::Add(sum, hn::LoadU(d, line + p * kLanes));
      hn::StoreU(sum, d, to);
    }
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

  // beta * out; a chain goes on from its very bits.
  void LoadSums() const {
    const float zero = chunks_.chained ? -0.0f : 0.0f;
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
  const DirectSums& sums_;
  const Chunks chunks_;
  const GatherAxis& last_;
  const int64_t columns_;
  const DirectMemory memory_;
  const LineSlots& slots_;
  const int64_t terms_;
  const int64_t blocks_;
  const int64_t o_first_, o_count_;  // of all groups
  const bool fours_;
  const int64_t tap_floats_;       // of w and of sums, in a plane
  const int64_t position_floats_;  // of g, in a plane
  const int64_t g_plane_, v_plane_, w_plane_;
  const int64_t reach_;                  // of the taps of a line, before its first position
  const int64_t tap_step_, pixel_step_;  // floats of a line in memory
  float* const zero_line_;
  int64_t* const tags_;
  float* const first_block_;
  bool finite_ = true;
  Range taps_;
  int32_t found_[DirectTiling::kMostLines];
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
