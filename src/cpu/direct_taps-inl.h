// Lines of the direct kernel whose lanes are taps. Step 6 of the story: which lines of g each line
// of taps reads, and where these are.
#if defined(CONVGRAD_CPU_DIRECT_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_TAPS_INL_H_
#undef CONVGRAD_CPU_DIRECT_TAPS_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_TAPS_INL_H_
#endif

#include <algorithm>

#include "cpu/direct.h"
#include "cpu/direct_taps.h"
#include "cpu/direct_task-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

class LinesAlongTaps : public DirectTaskOf<float, float, LinesAlongTaps> {
  using Base = DirectTaskOf<float, float, LinesAlongTaps>;
  friend Base;
  using Base::blocks_, Base::c_, Base::chunks_, Base::columns_, Base::last_, Base::line_terms_,
      Base::memory_, Base::task_, Base::work_;
  using Base::Chain;

 public:
  LinesAlongTaps(const DirectWork& work, const DirectTask& task, float* memory)
      : Base(work, task, memory),
        sums_(PickedSumsAlongTaps()),
        strips_of_line_(line_terms_ / kTaps),
        tap_lines_(c_.axes[0].taps * c_.axes[1].taps),
        zeros_(memory + TapEdges::kEnd) {
    std::fill(memory, memory + memory_.tap_line_floats, 0.0f);
  }

  // w = g^T v: the chunks of the task, channel by channel, so that each is read in its order.
  void SumPixels() {
    if (work_.slabs == nullptr) LoadSums();
    const int64_t together = SumsAlongTaps::ChannelsOf(tap_lines_);
    for (int64_t b = 0, channels = 0; b < blocks_; b += channels) {
      channels = blocks_ - b < together ? 1 : together;
      for (int64_t i = task_.chunks.begin; i < task_.chunks.end; ++i) {
        for (int64_t k = 0; k < channels; ++k) BeginChunk(b + k);
        SumChunk(b, channels, ChunkAt(chunks_, i));
        for (int64_t k = 0; k < channels; ++k) EndChunk(i, b + k);
      }
    }
    if (work_.slabs == nullptr) StoreSums();
  }

 private:
  static constexpr int64_t kTaps = TapStrips::kTaps;

  // Whole lines, as many as are summed at once, and what is left of a line at either end.
  void SumChunk(int64_t b, int64_t channels, const Chunk& chunk) {
    for (int64_t image = chunk.outer.begin; image < chunk.outer.end; ++image) {
      for (int64_t pixel = chunk.inner.begin; pixel < chunk.inner.end;) {
        const int64_t line = pixel / last_.pixels, column = pixel % last_.pixels;
        const int64_t left = chunk.inner.end - pixel;
        const int64_t end = std::min((column / columns_ + 1) * columns_, last_.pixels);
        const int64_t pixels = std::min(end - column, left);
        const int64_t lines = pixels < last_.pixels ? 1 : LinesFrom(line, left / pixels);
        SumLines(b, channels, image, line, column, lines, pixels);
        pixel += lines * pixels;
      }
    }
  }

  // Lines of v from `line` on, of one depth and at most `most`, of which each line of taps is
  // inside at all or at none.
  int64_t LinesFrom(int64_t line, int64_t most) const {
    const GatherAxis& axis = c_.axes[1];
    const int64_t height = line % axis.pixels;
    most = std::min(most, axis.pixels - height);
    int64_t at = axis.first + height * axis.pixel_step;
    for (int64_t h = 0; h < axis.taps; ++h, at += axis.tap_step) {
      if (at >= axis.limit) break;
      most = std::min(most, CeilDiv((at < 0 ? 0 : axis.limit) - at, axis.pixel_step));
    }
    return most;
  }

  void SumLines(int64_t b, int64_t channels, int64_t image, int64_t line, int64_t column,
                int64_t lines, int64_t pixels) {
    TapStrips run;
    run.lines = lines;
    run.step = last_.pixel_step;
    run.sum_strip = line_terms_;
    run.sum_channel = memory_.block_floats;
    run.bias = work_.bias_out != nullptr ? Bias(b) : nullptr;
    SetEdges(last_.first + column * last_.pixel_step, pixels);
    run.edges = edges_;
    run.before = before_;
    run.after = after_;
    run.inside = inside_;
    run.fours = fours_;
    for (int64_t k = 0; k < channels; ++k) SetPixels(k, b + k, image, line, column, pixels, run);
    const GatherAxis &axis0 = c_.axes[0], &axis1 = c_.axes[1];
    const Lines at{.image = image,
                   .depth = axis0.first + line / axis1.pixels * axis0.pixel_step,
                   .height = axis1.first + line % axis1.pixels * axis1.pixel_step,
                   .first = last_.first + column * last_.pixel_step};
    const int64_t pieces = CeilDiv(tap_lines_, TapStrips::kMost);
    for (int64_t s = 0; s < strips_of_line_; ++s) {
      run.moved = moved_[s];
      for (int64_t piece = 0, first = 0; piece < pieces; ++piece) {
        const int64_t count = (tap_lines_ - first) / (pieces - piece);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t d = (first + i) / axis1.taps, h = (first + i) % axis1.taps;
          for (int64_t k = 0; k < channels; ++k) {
            SetStrip(at, d, h, b + k, s * kTaps, k * count + i, run);
          }
        }
        run.sums = Chain(b) + first * run.sum_strip + s * kTaps;
        sums_.sum(run, static_cast<int>(channels), static_cast<int>(count));
        run.bias = nullptr;
        first += count;
      }
    }
  }

  // What the first tap of a run of lines of v reads in g.
  struct Lines {
    int64_t image, depth, height, first;
  };

  // The strip of line h of the taps of depth d, from tap `tap` on, as number i of a run.
  void SetStrip(const Lines& at, int64_t d, int64_t h, int64_t b, int64_t tap, int64_t i,
                TapStrips& run) const {
    const GatherAxis &axis0 = c_.axes[0], &axis1 = c_.axes[1];
    const int64_t depth = at.depth + d * axis0.tap_step;
    const int64_t height = at.height + h * axis1.tap_step;
    run.g[i] = zeros_ + tap;
    run.g_line[i] = 0;
    if (depth < 0 || depth >= axis0.limit || height < 0 || height >= axis1.limit) return;
    run.g[i] = LineOfG(at.image, depth, height) + b * c_.g.channel + at.first + tap;
    run.g_line[i] = axis1.pixel_step * c_.g.at[1];
  }

  // Fewer than four are copied: an edge reads four.
  void SetPixels(int64_t k, int64_t b, int64_t image, int64_t line, int64_t column, int64_t pixels,
                 TapStrips& run) {
    const float* const from =
        static_cast<const float*>(work_.other) + PixelOfV(image, line, column) + b * c_.v.o;
    run.v[k] = from;
    run.v_line = c_.v.at[1];
    if (pixels >= kTaps) return;
    float* const to = few_ + k * kTaps;
    for (int64_t p = 0; p < kTaps; ++p) to[p] = p < pixels ? LoadAt<float>(from, p) : 0.0f;
    run.v[k] = to;
  }

  // The edges of so many pixels of which the first tap reads positions from `first` on.
  void SetEdges(int64_t first, int64_t pixels) {
    if (first == edge_first_ && pixels == edge_pixels_) return;
    edge_first_ = first;
    edge_pixels_ = pixels;
    before_ = after_ = inside_ = fours_ = 0;
    const int64_t step = last_.pixel_step;
    const int64_t begin = std::min(pixels, CeilDiv(std::max<int64_t>(0, -first), step));
    const int64_t beyond = first + (pixels - 1) * step + line_terms_ - last_.limit;
    const int64_t end = pixels - CeilDiv(std::max<int64_t>(0, beyond), step);
    for (int64_t p = 0; p < pixels;) {
      if (p >= begin && p + kTaps <= end) {
        inside_ = p;
        fours_ = (end - p) / kTaps;
        p += fours_ * kTaps;
        continue;
      }
      const int64_t pixel = std::max<int64_t>(0, std::min(p, pixels - kTaps));
      SetEdge(pixel, {p, std::min(pixel + kTaps, pixels)}, first, before_ + after_);
      ++(fours_ == 0 ? before_ : after_);
      p = pixel + kTaps;
    }
  }

  // Number e, of four pixels from `pixel` on, which sums those of `summed`.
  void SetEdge(int64_t pixel, const Range& summed, int64_t first, int64_t e) {
    edges_[e].pixel = pixel;
    for (int64_t k = 0; k < kTaps; ++k) {
      const bool kept = pixel + k >= summed.begin && pixel + k < summed.end;
      edges_[e].kept[k] = kept ? ~uint32_t{0} : 0;
      for (int64_t s = 0; s < strips_of_line_; ++s) {
        SetMoved(pixel + k, kept, first, s, k, moved_[s][e]);
      }
    }
  }

  // What strip s reads at `pixel`.
  void SetMoved(int64_t pixel, bool kept, int64_t first, int64_t s, int64_t k,
                TapStrips::Moved& moved) const {
    const int64_t position = first + pixel * last_.pixel_step + s * kTaps;
    const int64_t near = std::clamp<int64_t>(position, 0, last_.limit - kTaps);
    moved.at[k] = near - first - s * kTaps;
    for (int64_t byte = 0; byte < 16; ++byte) {
      const int64_t lane = byte / 4 + position - near;
      const bool inside = kept && lane >= 0 && lane < kTaps;
      moved.from[k][byte] = static_cast<uint8_t>(inside ? lane * 4 + byte % 4 : 255);
    }
  }

  const SumsAlongTaps& sums_;
  const int64_t strips_of_line_;
  const int64_t tap_lines_;
  const float* const zeros_;
  int64_t edge_first_ = 0, edge_pixels_ = 0;  // of what follows
  int64_t before_ = 0, after_ = 0, inside_ = 0, fours_ = 0;
  TapStrips::Edge edges_[TapEdges::kMost];
  TapStrips::Moved moved_[TapEdges::kMostStrips][TapEdges::kMost];
  float few_[TapStrips::kMostChannels * TapStrips::kTaps];  // pixels of a line
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
