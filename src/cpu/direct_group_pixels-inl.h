// Small groups of the direct kernel along pixels, of vectors of 16 lanes. Steps 6 and 7 of the
// story: a line of g is read through a mask for each tap, and meets several o of its group and
// several vectors of pixels, whose sums stay in registers. Nothing is turned or padded, and nothing
// copied but elements of 16 bits, which are widened once for all taps and o that read them.
#if defined(CONVGRAD_CPU_DIRECT_GROUP_PIXELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_GROUP_PIXELS_INL_H_
#undef CONVGRAD_CPU_DIRECT_GROUP_PIXELS_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_GROUP_PIXELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "cpu/direct.h"
#include "cpu/direct_group_pixels.h"
#include "cpu/element.h"
#include "cpu/live.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

#if CONVGRAD_HAS_AVX512
static_assert(kLanes == GroupPixels::kLanes);

template <class T>
class GroupsAlongPixels {
 public:
  // `memory`: of the weights of a group, and of what is widened.
  GroupsAlongPixels(const DirectWork& work, const DirectTask& task, float* memory)
      : work_(work),
        c_(*work.c),
        task_(task),
        line_(c_.axes[kAxes - 1]),
        rows_each_(c_.axes[0].taps * c_.axes[1].taps),
        chunks_(MakeChunks(c_)),
        vectors_(CeilDiv(line_.pixels, kLanes)),
        outs_(GroupPixels::OutsOf(c_.o)),
        weights_(memory),
        widened_(memory + GroupPixels::kMostWeights) {
    for (int64_t i = 0; i < vectors_; ++i) {
      for (int64_t t = 0; t < line_.taps; ++t) {
        const int64_t first = line_.first + i * kLanes + t * line_.tap_step;
        masks_[i * line_.taps + t] = MaskOf(-first, line_.limit - first);
      }
    }
  }

  void SumTaps() {
    const int64_t most = GroupPixels::LinesOf(rows_each_, vectors_);
    for (int64_t group = task_.blocks.begin; group < task_.blocks.end; ++group) {
      LoadGroup(group);
      for (Range lines{task_.lines.begin, 0}; lines.begin < task_.lines.end;
           lines.begin = lines.end) {
        lines.end = std::min(lines.begin + most, task_.lines.end);
        if (kWidens) lines.end = std::min(lines.end, lines.begin + LinesOfRoom(lines.begin));
        FindColumns(lines);
        for (int64_t image = task_.images.begin; image < task_.images.end; ++image) {
          SumGroup(image, group);
        }
      }
    }
  }

 private:
  static constexpr bool kWidens = sizeof(T) != sizeof(float);
  // Of the memory of a task, and a vector that is read beyond the last line.
  static_assert(std::max(GroupPixels::kMostOfFew,
                         GroupPixels::kMostWeights + GroupPixels::kWidened + GroupPixels::kLanes) <=
                DirectTiling::kStackFloats);

  // A vector of pixels of one line of v.
  struct Column {
    const int64_t* rows;    // of g, one for each line of taps
    const uint16_t* masks;  // one for each tap of a line
    int64_t g, v;           // where its first one is, and what its first tap reads of a line of g
    uint16_t fresh;         // pixels that exist
  };

  // Lanes from `begin` to `end`, those of them that there are.
  static uint16_t MaskOf(int64_t begin, int64_t end) {
    const auto below = [](int64_t lane) {
      return (uint32_t{1} << std::clamp<int64_t>(lane, 0, kLanes)) - 1;
    };
    return static_cast<uint16_t>(below(end) & ~below(begin));
  }

  // [o / outs_, chunk of channels, (tap, channel), o % outs_], zeros for an o that does not exist.
  void LoadGroup(int64_t group) {
    const T* const w = static_cast<const T*>(work_.other) + c_.w.first + group * work_.w_group;
    float* to = weights_;
    for (int64_t first = 0; first < c_.o; first += outs_) {
      for (int64_t i = 0; i < chunks_.count(); ++i) {
        to = LoadChunk(w + first * c_.w.o, c_.o - first, ChunkAt(chunks_, i).outer, to);
      }
    }
    const D d;
    V zero = hn::Zero(d);  // or NaN
    for (const float* from = weights_; from < to; from += kLanes) {
      const auto some = hn::FirstN(d, static_cast<size_t>(to - from));
      zero = FusedMulAdd(hn::MaskedLoad(some, d, from), hn::Zero(d), zero);
    }
    finite_ = hn::AllTrue(d, hn::Eq(zero, hn::Zero(d)));
    for (int64_t o = 0; o < c_.o; ++o) {
      bias_[o] = 0;
      const int64_t at = (group * c_.o + o) * work_.bias_stride;
      if (work_.bias != nullptr) bias_[o] += Widen(LoadAt<T>(work_.bias, at));
    }
  }

  float* LoadChunk(const T* w, int64_t outs, Range channels, float* to) const {
    for (int64_t row = 0; row < rows_each_; ++row) {
      const T* const line =
          w + row / c_.axes[1].taps * c_.w.at[0] + row % c_.axes[1].taps * c_.w.at[1];
      for (int64_t t = 0; t < line_.taps; ++t) {
        for (int64_t channel = channels.begin; channel < channels.end; ++channel, to += outs_) {
          const T* const from = line + t * c_.w.at[2] + channel * c_.w.channel;
          for (int64_t o = 0; o < outs_; ++o) {
            to[o] = o < outs ? Widen(LoadAt<T>(from, o * c_.w.o)) : 0.0f;
          }
        }
      }
    }
    return to;
  }

  // Lines of v from here on, of one depth, whose lines of g there is room for when they are
  // widened.
  int64_t LinesOfRoom(int64_t line) const {
    const GatherAxis& heights = c_.axes[1];
    const int64_t left = heights.pixels - line % heights.pixels;
    const int64_t rows = GroupPixels::RowsOfRoom(c_), span = GroupPixels::SpanOf(heights);
    return rows >= heights.limit ? left : std::min(left, (rows - span) / heights.pixel_step + 1);
  }

  // What these lines of v, of one depth, read.
  void FindWidened(const Range& lines) {
    const GatherAxis &depths = c_.axes[0], &heights = c_.axes[1];
    const int64_t at0 = depths.first + lines.begin / heights.pixels * depths.pixel_step;
    planes_ = StepsInside(at0, at0, depths.tap_step, depths.taps, depths.limit);
    first_plane_ = at0;
    const int64_t first = heights.first + lines.begin % heights.pixels * heights.pixel_step;
    const int64_t last = first + (lines.size() - 1) * heights.pixel_step;
    const int64_t far = (std::max<int64_t>(heights.taps, 1) - 1) * heights.tap_step;
    const auto within = [&](int64_t at) { return std::clamp<int64_t>(at, 0, heights.limit); };
    lines_of_g_ = {within(first + std::min<int64_t>(far, 0)),
                   within(last + std::max<int64_t>(far, 0) + 1)};
    channel_step_ = planes_.size() * lines_of_g_.size() * line_.limit;
  }

  // Where line x of plane y, which is tap d, is.
  int64_t OffsetOfLine(int64_t d, int64_t y, int64_t x) const {
    if (!kWidens) return y * c_.g.at[0] + x * c_.g.at[1];
    return ((d - planes_.begin) * lines_of_g_.size() + x - lines_of_g_.begin) * line_.limit;
  }

  // Of these lines of v: the lines of g that each reads, and its vectors. All groups have the same.
  void FindColumns(const Range& lines) {
    if (lines == lines_) return;
    lines_ = lines;
    if (kWidens) FindWidened(lines);
    int64_t* row = rows_;
    count_ = 0;
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      const GatherAxis &depths = c_.axes[0], &heights = c_.axes[1];
      const int64_t depth = line / heights.pixels, height = line % heights.pixels;
      const int64_t at0 = depths.first + depth * depths.pixel_step;
      const int64_t at1 = heights.first + height * heights.pixel_step;
      for (int64_t i = 0; i < vectors_; ++i) {
        const int64_t pixel = i * kLanes;
        columns_[count_++] = {row, masks_ + i * line_.taps, line_.first + pixel,
                              depth * c_.v.at[0] + height * c_.v.at[1] + pixel,
                              MaskOf(0, line_.pixels - pixel)};
      }
      for (int64_t d = 0; d < depths.taps; ++d) {
        for (int64_t h = 0; h < heights.taps; ++h, ++row) {
          const int64_t y = at0 + d * depths.tap_step, x = at1 + h * heights.tap_step;
          const bool inside = y >= 0 && y < depths.limit && x >= 0 && x < heights.limit;
          *row = inside ? OffsetOfLine(d, y, x) : GroupPixels::kOutside;
        }
      }
    }
  }

  void SumGroup(int64_t image, int64_t group) const {
    const float* const g = FloatsOf(static_cast<const T*>(work_.g) + c_.g.first +
                                    image * c_.g.image + group * c_.channels * c_.g.channel);
    T* const v =
        static_cast<T*>(work_.out) + c_.v.first + image * c_.v.image + group * c_.o * c_.v.o;
    const bool fours = c_.channels == 4;
    if (outs_ == 1) return SumGroupOf<1, 8, 0>(g, v);
    if (outs_ == 2) return SumGroupOf<2, 8, 0>(g, v);
    if (outs_ == 4) return fours ? SumGroupOf<4, 4, 4>(g, v) : SumGroupOf<4, 4, 0>(g, v);
    SumGroupOf<8, 2, 0>(g, v);
  }

  // The lines that were found, of all channels of a group.
  const float* FloatsOf(const T* g) const {
    if constexpr (kWidens) {
      const int64_t lines = lines_of_g_.size(), limit = line_.limit;
      const bool together = c_.g.at[1] == limit;
      float* to = widened_;
      for (int64_t channel = 0; channel < c_.channels; ++channel, g += c_.g.channel) {
        for (int64_t d = planes_.begin; d < planes_.end; ++d) {
          const int64_t plane = first_plane_ + d * c_.axes[0].tap_step;
          const T* const from = g + plane * c_.g.at[0] + lines_of_g_.begin * c_.g.at[1];
          if (together) WidenRun(from, lines * limit, to);
          for (int64_t i = 0; i < lines && !together; ++i) {
            WidenRun(from + i * c_.g.at[1], limit, to + i * limit);
          }
          to += lines * limit;
        }
      }
      return widened_;
    } else {
      return g;
    }
  }

  // Whole vectors are written: there is room for one more, and what is next to them comes later.
  HWY_INLINE static void WidenRun(const T* from, int64_t count, float* to) {
    const D d;
    for (int64_t at = 0; at < count; at += kLanes) {
      const int64_t left = count - at;
      hn::StoreU(left >= kLanes ? LoadBytes(d, from + at) : LoadSome(MaskOf(0, left), from + at), d,
                 to + at);
    }
  }

  // kChannels: 0, any.
  template <int kOuts, int kColumns, int kChannels>
  void SumGroupOf(const float* g, T* v) const {
    const int64_t floats = rows_each_ * line_.taps * c_.channels * kOuts;
    for (int64_t i = 0; i < count_; i += kColumns) {
      const int64_t wanted = std::min<int64_t>(kColumns, count_ - i);
      const float* w = weights_;
      for (int64_t o = 0; o < c_.o; o += kOuts, w += floats) {
        if (chunks_.count() > 1) {
          SumColumnsOfChunks<kOuts, kColumns>(columns_ + i, wanted, g, w, o, v);
        } else {
          SumColumns<kOuts, kColumns, kChannels>(columns_ + i, wanted, g, w, o, v);
        }
      }
    }
  }

  // The last of the wanted columns takes the place of those beyond.
  template <int kOuts, int kColumns, int kChannels>
  HWY_NOINLINE void SumColumns(const Column* columns, int64_t wanted, const float* g,
                               const float* w, int64_t o, T* v) const {
    const Column* column[kColumns];
#pragma GCC unroll 8
    for (int i = 0; i < kColumns; ++i) column[i] = columns + std::min<int64_t>(i, wanted - 1);
    V sum[kOuts][kColumns];
    SumTerms<kOuts, kColumns, kChannels>(column, g, w, c_.channels, sum);
    const int64_t outs = std::min<int64_t>(kOuts, c_.o - o);
    T* to = v + o * c_.v.o;
    if (wanted == kColumns && outs == kOuts && work_.beta == 0) {
#pragma GCC unroll 8
      for (int k = 0; k < kOuts; ++k, to += c_.v.o) {
        const V bias = hn::Set(D(), bias_[o + k]);
#pragma GCC unroll 8
        for (int i = 0; i < kColumns; ++i) {
          Store(hn::Add(sum[k][i], bias), *column[i], to);
        }
      }
      return;
    }
    const V beta = hn::Set(D(), work_.beta);
#pragma GCC unroll 8
    for (int k = 0; k < kOuts; ++k, to += c_.v.o) {
      if (k >= outs) break;
      const V bias = hn::Set(D(), bias_[o + k]);
#pragma GCC unroll 8
      for (int i = 0; i < kColumns; ++i) {
        if (i >= wanted) break;
        V value = sum[k][i];
        if (work_.beta != 0) value = hn::Add(Scaled(beta, *column[i], to), value);
        Store(hn::Add(value, bias), *column[i], to);
      }
    }
  }

  // A -0 of beta * out becomes +0, see LoadScaled.
  static HWY_INLINE V Scaled(V beta, const Column& column, const T* out) {
    return hn::Add(hn::Mul(beta, LoadSome(column.fresh, out + column.v)), hn::Zero(D()));
  }

  // The same of several chunks, whose sums are added up in memory.
  template <int kOuts, int kColumns>
  HWY_NOINLINE void SumColumnsOfChunks(const Column* columns, int64_t wanted, const float* g,
                                       const float* w, int64_t o, T* v) const {
    const D d;
    const Column* column[kColumns];
    for (int i = 0; i < kColumns; ++i) column[i] = columns + std::min<int64_t>(i, wanted - 1);
    HWY_ALIGN float totals[kOuts * kColumns * kLanes];
    const int64_t outs = std::min<int64_t>(kOuts, c_.o - o);
    const auto for_each = [&](const auto& what) HWY_ATTR {
      T* to = v + o * c_.v.o;
      for (int64_t k = 0; k < outs; ++k, to += c_.v.o) {
        for (int64_t i = 0; i < wanted; ++i) what(k, to, i, totals + (k * kColumns + i) * kLanes);
      }
    };
    for (int i = 0; i < kOuts * kColumns; ++i) hn::Store(hn::Zero(d), d, totals + i * kLanes);
    if (work_.beta != 0) {
      const V beta = hn::Set(d, work_.beta);
      for_each([&](int64_t, const T* out, int64_t i, float* total)
                   HWY_ATTR { hn::Store(Scaled(beta, *column[i], out), d, total); });
    }
    for (int64_t n = 0; n < chunks_.count(); ++n) {
      const Range channels = ChunkAt(chunks_, n).outer;
      V sum[kOuts][kColumns];
      SumTerms<kOuts, kColumns, 0>(column, g + channels.begin * channel_step_, w, channels.size(),
                                   sum);
#pragma GCC unroll 8
      for (int k = 0; k < kOuts; ++k) {
#pragma GCC unroll 8
        for (int i = 0; i < kColumns; ++i) {
          float* const total = totals + (k * kColumns + i) * kLanes;
          hn::Store(hn::Add(hn::Load(d, total), sum[k][i]), d, total);
        }
      }
      w += rows_each_ * line_.taps * channels.size() * kOuts;
    }
    for_each([&](int64_t k, T* out, int64_t i, const float* total) HWY_ATTR {
      Store(hn::Add(hn::Load(d, total), hn::Set(d, bias_[o + k])), *column[i], out);
    });
  }

  static HWY_INLINE void Store(V value, const Column& column, float* to) {
    hn::BlendedStore(value, MaskFrom(column.fresh), D(), to + column.v);
  }
  template <class Half>
  static HWY_INLINE void Store(V value, const Column& column, Half* to) {
    const hn::Rebind<uint16_t, D> bits;
    hn::BlendedStore(NarrowBits(D(), value, Half()), hn::Mask<decltype(bits)>{column.fresh}, bits,
                     reinterpret_cast<uint16_t*>(to + column.v));
  }
  static HWY_INLINE V LoadSome(uint16_t lanes, const float* from) {
    return hn::MaskedLoad(MaskFrom(lanes), D(), from);
  }
  template <class Half>
  static HWY_INLINE V LoadSome(uint16_t lanes, const Half* from) {
    const hn::Rebind<uint16_t, D> bits;
    return WidenBits(D(),
                     hn::MaskedLoad(hn::Mask<decltype(bits)>{lanes}, bits,
                                    reinterpret_cast<const uint16_t*>(from)),
                     Half());
  }
  static HWY_INLINE hn::Mask<D> MaskFrom(uint16_t bits) { return hn::Mask<D>{bits}; }

  // Tap by tap, and of a tap channel by channel. What is outside of all columns has no effect on
  // finite weights but for the sign of a zero: the bias, never -0, ends it.
  template <int kOuts, int kColumns, int kChannels>
  HWY_INLINE void SumTerms(const Column* const (&column)[kColumns], const float* g, const float* w,
                           int64_t channels, V (&sum)[kOuts][kColumns]) const {
    static constexpr uint16_t kNone = 0;
    const int64_t tap_floats = channels * kOuts;
#pragma GCC unroll 8
    for (int k = 0; k < kOuts; ++k) {
#pragma GCC unroll 8
      for (int i = 0; i < kColumns; ++i) sum[k][i] = hn::Zero(D());
    }
    const int64_t rows = rows_each_, taps = line_.taps, tap_step = line_.tap_step;
    for (int64_t row = 0; row < rows; ++row) {
      const float* from[kColumns];
      const uint16_t* masks[kColumns];
      int64_t mask_step[kColumns];
      bool any = false;
#pragma GCC unroll 8
      for (int i = 0; i < kColumns; ++i) {
        const int64_t at = column[i]->rows[row];
        const bool inside = at != GroupPixels::kOutside;
        from[i] = g + (inside ? at : 0) + column[i]->g;
        masks[i] = inside ? column[i]->masks : &kNone;
        mask_step[i] = inside ? 1 : 0;
        any = any || inside;
      }
      if (!any && finite_) {
        w += taps * tap_floats;
        continue;
      }
      for (int64_t t = 0; t < taps; ++t, w += tap_floats) {
        uint32_t lanes = 0;
        hn::Mask<D> mask[kColumns];
        const float* at[kColumns];
#pragma GCC unroll 8
        for (int i = 0; i < kColumns; ++i) {
          const uint16_t of = *masks[i];
          masks[i] += mask_step[i];
          at[i] = from[i];
          from[i] += tap_step;
          lanes |= of;
          mask[i] = MaskFrom(of);
        }
        if (lanes == 0 && finite_) continue;
        AddChannels<kOuts, kColumns>(at, mask, w, kChannels > 0 ? kChannels : channels, sum);
      }
    }
  }

  template <int kOuts, int kColumns>
  HWY_INLINE void AddChannels(const float* (&at)[kColumns], const hn::Mask<D> (&mask)[kColumns],
                              const float* w, int64_t channels, V (&sum)[kOuts][kColumns]) const {
    const int64_t step = channel_step_;
    int64_t from = 0;
#pragma GCC unroll 4
    for (int64_t channel = 0; channel < channels; ++channel, from += step, w += kOuts) {
      V x[kColumns];
#pragma GCC unroll 8
      for (int i = 0; i < kColumns; ++i) x[i] = hn::MaskedLoad(mask[i], D(), at[i] + from);
#pragma GCC unroll 8
      for (int k = 0; k < kOuts; ++k) {
        const V factor = hn::Set(D(), w[k]);
#pragma GCC unroll 8
        for (int i = 0; i < kColumns; ++i) sum[k][i] = FusedMulAdd(x[i], factor, sum[k][i]);
      }
    }
  }

  const DirectWork& work_;
  const Contraction& c_;
  const DirectTask& task_;
  const GatherAxis& line_;
  const int64_t rows_each_;  // lines of taps
  const Chunks chunks_;      // of channels
  const int64_t vectors_;    // of a line of v
  const int64_t outs_;       // whose sums are in registers at once
  float *const weights_, *const widened_;
  // Of what is widened: taps along depth, the first one's plane, and lines of each plane.
  Range planes_{}, lines_of_g_{};
  int64_t first_plane_ = 0;
  int64_t channel_step_ = c_.g.channel;  // of floats that are read
  bool finite_ = true;
  float bias_[GroupPixels::kMostOuts];
  uint16_t masks_[GroupPixels::kMostMasks];
  int64_t rows_[GroupPixels::kMostRows];
  Column columns_[GroupPixels::kMostColumns];
  int64_t count_ = 0;
  Range lines_{};  // of the columns
};
#endif  // CONVGRAD_HAS_AVX512

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
