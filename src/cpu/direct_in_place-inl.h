// Lines of the direct kernel that are read and written where they are. Step 6 of the story: tables
// of positions.
#if defined(CONVGRAD_CPU_DIRECT_IN_PLACE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_IN_PLACE_INL_H_
#undef CONVGRAD_CPU_DIRECT_IN_PLACE_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_IN_PLACE_INL_H_
#endif

#include <algorithm>
#include <cstdlib>

#include "cpu/direct.h"
#include "cpu/direct_in_place.h"
#include "cpu/direct_task-inl.h"
#include "cpu/element.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

template <class T, class U, class W = T>
class LinesInPlace : public DirectTaskOf<T, U, LinesInPlace<T, U, W>, W> {
  using Base = DirectTaskOf<T, U, LinesInPlace, W>;
  friend Base;
  using Base::Bias, Base::Chain, Base::Weights;
  using Base::blocks_, Base::c_, Base::columns_, Base::finite_, Base::last_, Base::memory_,
      Base::o_count_, Base::t_, Base::terms_, Base::w_plane_, Base::work_;

 public:
  LinesInPlace(const DirectWork& work, const DirectTask& task, float* memory)
      : Base(work, task, memory),
        sums_(PickedSumsInPlace(kTypeOf<T>)),
        slides_(last_.taps > 1 && std::abs(last_.tap_step) == last_.pixel_step),
        one_line_(sums_.line_pixels > 0 && slides_ && c_.axes[0].taps * c_.axes[1].taps == 1),
        zeros_(memory),
        nowhere_(memory + memory_.zero_floats / 2),
        carry_(memory_.carry_floats > 0 && one_line_ ? memory + memory_.zero_floats : nullptr) {
    std::fill(zeros_, zeros_ + memory_.zero_floats, 0.0f);
  }

 private:
  static constexpr int64_t kLongRowBytes = int64_t{16} << 10;

  // Lines of taps; those outside, which have no effect if the other factors are finite, only if
  // they are not. visit(number of the line, its first position or null)
  template <class Visit>
  HWY_INLINE void ForEachLine(int64_t image, int64_t line, bool finite, const Visit& visit) const {
    if (last_.taps == 0) return;
    const GatherAxis &axis0 = c_.axes[0], &axis1 = c_.axes[1];
    const int64_t depth = line / axis1.pixels, height = line % axis1.pixels;
    for (int64_t d = 0, i = 0; d < axis0.taps; ++d) {
      const int64_t at0 = axis0.first + depth * axis0.pixel_step + d * axis0.tap_step;
      for (int64_t h = 0; h < axis1.taps; ++h, ++i) {
        const int64_t at1 = axis1.first + height * axis1.pixel_step + h * axis1.tap_step;
        const bool inside = at0 >= 0 && at0 < axis0.limit && at1 >= 0 && at1 < axis1.limit;
        if (inside) {
          visit(i, this->LineOfG(image, at0, at1));
        } else if (!finite) {
          visit(i, static_cast<const T*>(nullptr));
        }
      }
    }
  }

  // `count` positions from `first` on.
  void SetPlaces(const T* line, int64_t first, int64_t step, int64_t count, const void** at) const {
    if (line == nullptr) return std::fill(at, at + count, zeros_);
    for (int64_t i = 0; i < count; ++i, first += step) {
      at[i] = first >= 0 && first < last_.limit
                  ? static_cast<const void*>(line + first * c_.g.at[2])
                  : zeros_;
    }
  }

  // Those of `taps` taps at `pixels` pixels: as the sums want them. Says how many.
  int64_t SetPlacesOfTaps(const T* line, int64_t first, int64_t pixels, int64_t taps,
                          const void** at) const {
    if (slides_) {
      SetPlaces(line, first, last_.tap_step, pixels + taps - 1, at);
      return pixels + taps - 1;
    }
    for (int64_t t = 0; t < taps; ++t, at += pixels) {
      SetPlaces(line, first + t * last_.tap_step, last_.pixel_step, pixels, at);
    }
    return taps * pixels;
  }

  // Elements over so many pixels, steps apart; 0: out of all memory.
  static int64_t Distance(int64_t pixels, int64_t step, int64_t stride) {
    constexpr int64_t kMost = int64_t{1} << 40;
    int64_t positions = 0, elements = 0;
    const bool overflows = __builtin_mul_overflow(pixels, step, &positions) ||
                           __builtin_mul_overflow(positions, stride, &elements);
    return overflows || std::abs(elements) > kMost ? 0 : elements;
  }

  void Forget() {}

  void SumTapsOfLine(int64_t image, int64_t line, const Range& columns) const {
    const bool back = last_.tap_step < 0;
    if (carry_ != nullptr && FillCarry(image, line, back ? columns.end - 1 : columns.begin)) {
      const int64_t tile = sums_.line_pixels;
      for (int64_t at = 0; at < columns.size(); at += tile) {
        const int64_t begin = back ? columns.end - at - tile : columns.begin + at;
        SumTapsOfTile(image, line, columns, begin, tile, carry_);
      }
      return;
    }
    const int64_t tile = one_line_ ? sums_.line_pixels : sums_.tile_pixels;
    for (int64_t at = columns.begin; at < columns.end; at += tile) {
      const bool half = columns.end - at <= tile / 2 && !one_line_;
      SumTapsOfTile(image, line, columns, at, half ? tile / 2 : tile, nullptr);
    }
  }

  // The positions that the first tile reads and that would be those of one before it. Where taps go
  // back, so do tiles: what a tile has in common with the one before are its first positions.
  // False: there are none, since the line is outside.
  bool FillCarry(int64_t image, int64_t line, int64_t column) const {
    const void* places[SumsInPlace::kMostPixels];
    bool inside = false;
    ForEachLine(image, line, true, [&](int64_t, const T* from) {
      inside = true;
      SetPlaces(from, last_.first + column * last_.pixel_step, last_.tap_step, last_.taps - 1,
                places);
    });
    if (!inside) return false;
    const D d;
    float* to = carry_;
    for (int64_t c = 0; c < o_count_; c += kLanes) {
      for (int64_t i = 0; i + 1 < last_.taps; ++i, to += kLanes) {
        hn::StoreU(LoadBytes(d, static_cast<const T*>(places[i]) + c), d, to);
      }
    }
    return true;
  }

  // Of `pixels` pixels from `begin` on, those that are in `columns`.
  void SumTapsOfTile(int64_t image, int64_t line, const Range& columns, int64_t begin,
                     int64_t pixels, float* carry) const {
    const void* places[DirectTiling::kMostTapsInPlace * SumsInPlace::kMostPixels];
    int64_t terms[DirectTiling::kMostTapsInPlace];
    const void** at = places;
    // Where taps go back, so do pixels.
    const bool back = slides_ && last_.tap_step < 0;
    const int64_t first = last_.first + (begin + (back ? pixels - 1 : 0)) * last_.pixel_step;
    // The positions of the next tile that this one does not have are after its last `pixels`
    // places, backwards before its first ones.
    const int64_t next = carry != nullptr ? (back ? -pixels : pixels)
                         : back           ? pixels + last_.taps - 1
                                          : pixels;
    const int64_t newest = NewestLine();
    const bool reads_first = ReadsFirst();
    int64_t count = 0;
    ForEachLine(image, line, finite_, [&](int64_t i, const T* from) {
      terms[count++] = i * last_.taps;
      if (i == newest) FetchNextLine(from, begin, pixels);
      if (reads_first && IsNew(i)) FetchPlaces(from, first, pixels);
      at += SetPlacesOfTaps(from, first, pixels, last_.taps, at);
    });
    void* out[SumsInPlace::kMostPixels];
    for (int64_t p = 0, v = this->PixelOfV(image, line, begin); p < pixels; ++p, v += c_.v.at[2]) {
      const bool exists = begin + p >= columns.begin && begin + p < columns.end;
      out[back ? pixels - 1 - p : p] =
          exists ? static_cast<void*>(static_cast<U*>(work_.out) + v) : nowhere_;
    }
    // A row of channels that is long is fetched by the CPU as it is read; a prefetch for each line
    // of it costs more (12288 channels: 18.2 ms, with it 20.3).
    const int64_t out_ahead = OutAhead(image, line, columns, {begin, begin + pixels});
    const bool fetches = carry == nullptr
                             ? (count > 1 && !reads_first) || one_line_ || out_ahead != 0
                             : o_count_ * int64_t{sizeof(T)} <= kLongRowBytes;
    const int64_t pieces = std::max<int64_t>(1, CeilDiv(last_.taps, sums_.tap_piece));
    const int64_t taps = std::max<int64_t>(1, CeilDiv(last_.taps, pieces));
    const int64_t shorter = pieces * taps - last_.taps;
    sums_.sum_taps({.at = places,
                    .places = slides_ ? pixels + last_.taps - 1 : pixels * last_.taps,
                    .terms = terms,
                    .lines = count,
                    .taps = static_cast<int>(taps),
                    .long_pieces = pieces - shorter,
                    .short_pieces = shorter,
                    .slides = slides_,
                    .channels = o_count_,
                    .w = {Weights(0), memory_.block_floats, w_plane_},
                    .bias = terms_,
                    .out = out,
                    .beta = work_.beta,
                    .ahead = fetches ? Distance(next, last_.pixel_step, c_.g.at[2]) : 0,
                    .out_ahead = out_ahead,
                    .carry = carry},
                   static_cast<int>(pixels));
  }

  // Elements from a pixel of a tile to that of the next one, where a write that waits for memory
  // takes longer than sums do: few taps, and tensors that are far larger than L2; else 0.
  // (Neoverse-N1, 3x3 of stride two, dgrad, 96 channels, 112x112: 10.8 ms, so 7.4; 1x3, 144
  // channels, 56x56 4.3 and 2.2. But 3x3 3.9 and 4.3, and of tensors in L3 up to 1.2 times.)
  int64_t OutAhead(int64_t image, int64_t line, const Range& columns, const Range& tile) const {
    constexpr int64_t kMostTaps = 6;
    const bool back = carry_ != nullptr && last_.tap_step < 0;
    if (!t_.far_out || back || c_.taps() > kMostTaps) return 0;
    if (o_count_ * int64_t{sizeof(T)} > kLongRowBytes) return 0;
    const int64_t here = this->PixelOfV(image, line, tile.begin);
    if (tile.end < columns.end) return this->PixelOfV(image, line, tile.end) - here;
    if (line + 1 == this->task_.lines.end) return 0;
    return this->PixelOfV(image, line + 1, columns.begin) - here;
  }

  void SumPixelsOfLine(int64_t image, int64_t line, int64_t column, int64_t pixels) const {
    if (carry_ != nullptr && pixels >= sums_.line_pixels && FillCarry(image, line, column)) {
      const int64_t whole = pixels / sums_.line_pixels * sums_.line_pixels;
      SumPixelsWithCarry(image, line, {column, column + whole});
      column += whole;
      pixels -= whole;
    }
    constexpr int64_t kMost = DirectTiling::kMostColumnsInPlace;
    for (; pixels > 0; column += kMost, pixels -= kMost) {
      SumSomePixels(image, line, column, std::min(pixels, kMost));
    }
  }

  void SumPixelsWithCarry(int64_t image, int64_t line, const Range& columns) const {
    const int64_t pixels = sums_.line_pixels;
    const bool fetches = o_count_ * int64_t{sizeof(T)} <= kLongRowBytes;
    const T* v = static_cast<const T*>(work_.other) + this->PixelOfV(image, line, columns.begin);
    const void* places[2 * SumsInPlace::kMostPixels];
    ForEachLine(image, line, true, [&](int64_t, const T* from) {
      for (int64_t at = columns.begin; at < columns.end; at += pixels, v += pixels * c_.v.at[2]) {
        if (work_.bias_out != nullptr) AddToBias(v, pixels);
        SetPlacesOfTaps(from, last_.first + at * last_.pixel_step, pixels, last_.taps, places);
        sums_.sum_pixels({.at = places,
                          .v = v,
                          .v_step = c_.v.at[2],
                          .pixels = pixels,
                          .taps = static_cast<int>(last_.taps),
                          .slides = true,
                          .channels = o_count_,
                          .sums = {Chain(0), memory_.block_floats, w_plane_},
                          .g_ahead = fetches ? Distance(pixels, last_.pixel_step, c_.g.at[2]) : 0,
                          .v_ahead = fetches ? Distance(pixels, 1, c_.v.at[2]) : 0,
                          .fetch = nullptr,
                          .fetch_step = 0,
                          .carry = carry_});
      }
    });
  }

  void SumSomePixels(int64_t image, int64_t line, int64_t column, int64_t pixels) const {
    const T* const v = static_cast<const T*>(work_.other) + this->PixelOfV(image, line, column);
    if (work_.bias_out != nullptr) AddToBias(v, pixels);
    // Of several lines of taps, the next run's pixels while the first of them is summed, its new
    // positions while a last one is: reading them before took 4.95 ms, so 4.6 (Neoverse-N1, 3x3,
    // 144 channels; 3x3x3, 64 channels 7.4, so 6.7). Short runs, which many channels make, have no
    // time for it (384 channels: 4.0 ms, so 4.9).
    constexpr int64_t kLongRun = 24;
    const bool fetches = slides_ && last_.tap_step == 1 && !one_line_ && sums_.line_pixels > 0 &&
                         columns_ >= kLongRun;
    if (!fetches) Fetch(v, c_.v.at[2], pixels);
    const void* places[SumsInPlace::kMostPieceTaps * DirectTiling::kMostColumnsInPlace];
    const int64_t pieces = std::max<int64_t>(1, CeilDiv(last_.taps, sums_.pixel_piece));
    const int64_t first = last_.first + column * last_.pixel_step;
    ForEachLine(image, line, IsFinite(line, v, pixels), [&](int64_t i, const T* from) {
      if (!fetches && IsLast(i)) FetchPlaces(from, first, pixels);
      const T* fetch = nullptr;
      int64_t fetch_step = 0;
      if (fetches && i == 0) {
        fetch = v + pixels * c_.v.at[2];
        fetch_step = c_.v.at[2];
      } else if (fetches && from != nullptr && i % c_.axes[1].taps == c_.axes[1].taps - 1) {
        fetch = from + Distance(first + pixels + last_.taps - 1, 1, c_.g.at[2]);
        fetch_step = c_.g.at[2];
      }
      for (int64_t piece = 0, tap = 0; piece < pieces; ++piece) {
        const int64_t taps = (last_.taps - tap) / (pieces - piece);
        SetPlacesOfTaps(from, first + tap * last_.tap_step, pixels, taps, places);
        sums_.sum_pixels(
            {.at = places,
             .v = v,
             .v_step = c_.v.at[2],
             .pixels = pixels,
             .taps = static_cast<int>(taps),
             .slides = slides_,
             .channels = o_count_,
             .sums = {Chain(0) + (i * last_.taps + tap) * kLanes, memory_.block_floats, w_plane_},
             // Also where they were fetched: 4 to 12 % faster, more lines of taps 4 % slower.
             .g_ahead = one_line_ ? Distance(pixels, last_.pixel_step, c_.g.at[2]) : 0,
             .v_ahead = one_line_ ? Distance(pixels, 1, c_.v.at[2]) : 0,
             .fetch = fetch,
             .fetch_step = fetch_step,
             .carry = nullptr});
        tap += taps;
      }
    });
  }

  // Reads `pixels` pixels, one after the other, before sums read them channel by channel: so far
  // from each other, no CPU fetches what is next, and each waits for memory (Neoverse-N1, 144
  // channels, 3x3: 9.6 ms, so 5.3; with prefetch instructions instead of loads 8.4).
  void Fetch(const T* from, int64_t step, int64_t pixels) const {
    constexpr int64_t kCacheLine = 64 / sizeof(T);
    for (int64_t p = 0; p < pixels; ++p, from += step) {
      for (int64_t c = 0; c < o_count_; c += kCacheLine) {
        static_cast<void>(*reinterpret_cast<const volatile char*>(from + c));
      }
    }
  }

  // Whether line `i` of the taps of a plane is the last one, or reads what no line of pixels before
  // this one has read.
  bool IsLast(int64_t i) const { return i % c_.axes[1].taps == c_.axes[1].taps - 1; }
  bool IsNew(int64_t i) const {
    const GatherAxis& axis = c_.axes[1];
    return (axis.taps - 1 - i % axis.taps) * axis.tap_step < axis.pixel_step;
  }

  // The positions of taps on `pixels` pixels, from `first` on. Positions that are skipped are not
  // worth their time.
  void FetchPlaces(const T* line, int64_t first, int64_t pixels) const {
    if (line == nullptr) return;
    if (last_.tap_step != 1 || last_.pixel_step > last_.taps) return;
    const int64_t begin = std::max<int64_t>(0, first);
    const int64_t end = std::min(last_.limit, first + (pixels - 1) * last_.pixel_step + last_.taps);
    if (begin < end) Fetch(line + begin * c_.g.at[2], c_.g.at[2], end - begin);
  }

  // The line of taps that reads what no line of pixels before this one has read, where fetching
  // the next tile's is not enough: backwards (Neoverse-N1: 2.9 ms, with the next line's 2.1), and
  // in several planes; -1: none. For one line of taps it is enough.
  int64_t NewestLine() const {
    const bool back = last_.tap_step < 0;
    const int64_t planes = c_.axes[0].taps, lines = c_.axes[1].taps;
    if (!slides_ || last_.pixel_step != 1 || one_line_ || (!back && planes == 1)) return -1;
    return c_.axes[1].tap_step < 0 ? 0 : planes * lines - 1;
  }

  // Whether a tile reads what is new in the order of memory before it is summed, channels after
  // channels, as sums of pixels do: of a stride, prefetches for the next tile leave most of its
  // lines of the cache out. (Neoverse-N1, 3x3 of stride two, f32: 96 channels, 112x112 9.7 ms, so
  // 6.5; 144, 56x56 4.0 and 2.4; 64 5.9 and 4.9. But 32 channels 2.0 and 2.5, bf16 5.3 and 5.6.
  // Cascade Lake gained nothing.)
  bool ReadsFirst() const {
    constexpr int64_t kLeastChannels = 64;
    const bool is_gathered = last_.pixel_step > 1 && last_.pixel_step <= last_.taps &&
                             last_.tap_step == 1 && c_.axes[1].taps > 1;
    return kLanes == 4 && sizeof(T) == sizeof(float) && is_gathered && !t_.turned &&
           o_count_ >= kLeastChannels;
  }

  // What the next line of pixels reads there, in the order of memory, to L2. Beyond the last line
  // nothing is read. Inline: GCC takes a call that only prefetches for one without effect.
  HWY_INLINE void FetchNextLine(const T* line, int64_t begin, int64_t pixels) const {
    if (line == nullptr || o_count_ * int64_t{sizeof(T)} > kLongRowBytes) return;
    constexpr int64_t kCacheLine = 64 / sizeof(T);
    const int64_t first =
        last_.first + begin + std::max<int64_t>(0, (last_.taps - 1) * last_.tap_step);
    const int64_t end = std::min(last_.limit, first + pixels);
    const T* const next = line + Distance(1, c_.axes[1].pixel_step, c_.g.at[1]);
    for (int64_t p = std::max<int64_t>(0, first); p < end; ++p) {
      const T* const from = next + p * c_.g.at[2];
      for (int64_t c = 0; c < o_count_; c += kCacheLine) __builtin_prefetch(from + c, 0, 2);
    }
  }

  // Or need not be: no line of taps is outside.
  bool IsFinite(int64_t line, const T* v, int64_t pixels) const {
    bool inside = true;
    for (int a = 0; a < 2; ++a) {
      const GatherAxis& axis = c_.axes[a];
      const int64_t at =
          axis.first +
          (a == 0 ? line / c_.axes[1].pixels : line % c_.axes[1].pixels) * axis.pixel_step;
      inside = inside && at >= 0 && at + (axis.taps - 1) * axis.tap_step < axis.limit;
    }
    if (inside) return true;
    const D d;
    V zero = hn::Zero(d);
    for (int64_t p = 0; p < pixels; ++p, v += c_.v.at[2]) {
      for (int64_t c = 0; c < o_count_; c += kLanes) {
        zero = FusedMulAdd(LoadBytes(d, v + c), hn::Zero(d), zero);
      }
    }
    return hn::AllTrue(d, hn::Eq(zero, hn::Zero(d)));
  }

  // A chain of multiply-adds with one.
  void AddToBias(const T* v, int64_t pixels) const {
    const D d;
    for (int64_t c = 0; c < o_count_; c += kLanes) {
      float* const to = Bias(c / kBlockLanes) + c % kBlockLanes / kLanes * w_plane_;
      V sum = hn::LoadU(d, to);
      for (int64_t p = 0; p < pixels; ++p) {
        sum = hn::Add(sum, LoadBytes(d, v + p * c_.v.at[2] + c));
      }
      hn::StoreU(sum, d, to);
    }
  }

  const SumsInPlace& sums_;
  const bool slides_;
  const bool one_line_;  // of taps, in tiles of line_pixels
  float* const zeros_;   // of all channels, and as many that nobody reads
  float* const nowhere_;
  float* const carry_;  // of positions, if tiles have one
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
