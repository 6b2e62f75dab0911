// The order of these lines is Highway's way to compile a file once per instruction set.
// clang-format off
#include "cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/direct_taps.cc"
#include "hwy/foreach_target.h"
#include "cpu/direct_taps.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"
// clang-format on

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
void SumStripsHere(const TapStrips&, int, int) {}  // never planned: vectors have one lane
#else

using Taps = hn::FixedTag<float, TapStrips::kTaps>;
using VTaps = hn::Vec<Taps>;

// Pixel k of four, as a factor of all lanes.
template <int k>
HWY_INLINE VTaps Factor(VTaps four, const float* from) {
#if CONVGRAD_MULTIPLIES_BY_LANES
  static_cast<void>(from);
  return hn::Broadcast<k>(four);
#else
  static_cast<void>(four);
  return hn::Set(Taps(), LoadAt<float>(from, k));
#endif
}

// sum[strip] += g[pixel * step] * v[pixel], pixel by pixel; the bias is a strip of ones.
template <int kChannels, int kStrips, bool kBias>
class StripSums {
 public:
  explicit HWY_INLINE StripSums(const TapStrips& run) : run_(run) {}

  HWY_INLINE void Sum() {
    const Taps d;
    Sums sum;
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sum[i] = hn::LoadU(d, SumsAt(i));
#pragma GCC unroll 16
    for (int i = 0; i < kOfTaps; ++i) g_[i] = run_.g[i];
#pragma GCC unroll 4
    for (int k = 0; k < kChannels; ++k) v_[k] = run_.v[k];
    const int64_t step = run_.step;
    for (int64_t line = 0; line < run_.lines; ++line) {
      for (int64_t e = 0; e < run_.before; ++e) AddEdge(e, sum);
      int64_t p = run_.inside;
      const int64_t end = p + 4 * run_.fours;
#if CONVGRAD_MULTIPLIES_BY_LANES
      if (step == 1) p = AddNeighbours(p, end, sum);
#endif
      for (; p < end; p += 4) AddFour(p, step, sum);
      for (int64_t e = run_.before; e < run_.before + run_.after; ++e) AddEdge(e, sum);
#pragma GCC unroll 16
      for (int i = 0; i < kOfTaps; ++i) g_[i] += run_.g_line[i];
#pragma GCC unroll 4
      for (int k = 0; k < kChannels; ++k) v_[k] += run_.v_line;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) hn::StoreU(sum[i], d, SumsAt(i));
  }

 private:
  static constexpr int kOfTaps = kChannels * kStrips, kSums = kOfTaps + (kBias ? kChannels : 0);
  using Sums = VTaps[kSums];
  using Windows = VTaps[kOfTaps];

  HWY_INLINE float* SumsAt(int i) const {
    if (i >= kOfTaps) return run_.bias + (i - kOfTaps) * run_.sum_channel;
    return run_.sums + i / kStrips * run_.sum_channel + i % kStrips * run_.sum_strip;
  }

  // Pixel k of four in each channel, with what x(strip) is.
  template <int k, class X>
  HWY_INLINE static void Add(const X& x, const VTaps (&four)[kChannels],
                             const float* const (&from)[kChannels], Sums& sum) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      const int channel = i < kOfTaps ? i / kStrips : i - kOfTaps;
      const VTaps factor = Factor<k>(four[channel], from[channel]);
      sum[i] = i < kOfTaps ? hn::MulAdd(x(i), factor, sum[i]) : hn::Add(sum[i], factor);
    }
  }

  HWY_INLINE void LoadPixels(int64_t p, VTaps (&four)[kChannels],
                             const float* (&from)[kChannels]) const {
#pragma GCC unroll 4
    for (int k = 0; k < kChannels; ++k) {
      from[k] = v_[k] + p;
      four[k] = LoadBytes(Taps(), from[k]);
    }
  }

  // What strips read at pixel k of an edge.
  HWY_INLINE auto Moved(const TapStrips::Moved& moved, int k) const {
    const hn::Repartition<uint8_t, Taps> bytes;
    const auto from = hn::LoadU(bytes, moved.from[k]);
    const int64_t at = moved.at[k];
    return [this, from, at](int i) HWY_ATTR {
      const hn::Repartition<uint8_t, Taps> d;
      const auto near = hn::LoadU(d, reinterpret_cast<const uint8_t*>(g_[i] + at));
      return hn::BitCast(Taps(), hn::TableLookupBytesOr0(near, from));
    };
  }

  HWY_INLINE void AddEdge(int64_t e, Sums& sum) const {
    const Taps d;
    const TapStrips::Edge& edge = run_.edges[e];
    const auto kept = hn::BitCast(d, hn::LoadU(hn::Rebind<uint32_t, Taps>(), edge.kept));
    VTaps four[kChannels];
    const float* from[kChannels];
    LoadPixels(edge.pixel, four, from);
    alignas(16) float pixels[kChannels][TapStrips::kTaps];
#pragma GCC unroll 4
    for (int k = 0; k < kChannels; ++k) {
      four[k] = hn::And(four[k], kept);
#if !CONVGRAD_MULTIPLIES_BY_LANES
      hn::StoreU(four[k], d, pixels[k]);
#endif
      from[k] = pixels[k];
    }
    const TapStrips::Moved& moved = run_.moved[e];
    Add<0>(Moved(moved, 0), four, from, sum);
    Add<1>(Moved(moved, 1), four, from, sum);
    Add<2>(Moved(moved, 2), four, from, sum);
    Add<3>(Moved(moved, 3), four, from, sum);
  }

  HWY_INLINE auto From(int64_t position) const {
    return [this, position](int i) HWY_ATTR { return LoadBytes(Taps(), g_[i] + position); };
  }

  HWY_INLINE void AddFour(int64_t p, int64_t step, Sums& sum) const {
    VTaps four[kChannels];
    const float* from[kChannels];
    LoadPixels(p, four, from);
    Add<0>(From(p * step), four, from, sum);
    Add<1>(From((p + 1) * step), four, from, sum);
    Add<2>(From((p + 2) * step), four, from, sum);
    Add<3>(From((p + 3) * step), four, from, sum);
  }

  // Of step one, eights of pixels: what is read at every fourth is kept, and what is read after it
  // comes from both. Else loads are the limit: a line of 56 pixels and three strips took 144 cycles
  // of Neoverse-N1, so 132; of many strips, every other one. The last four, after which nothing
  // need be inside, are left.
  HWY_INLINE int64_t AddNeighbours(int64_t p, int64_t end, Sums& sum) const {
    if (p + 8 >= end) return p;
    Windows near, far;
#pragma GCC unroll 16
    for (int i = 0; i < kOfTaps; ++i) near[i] = From(p)(i);
    for (; p + 8 < end; p += 8) {
      AddFourNeighbours(p, near, far, sum);
      AddFourNeighbours(p + 4, far, near, sum);
    }
    return p;
  }

  HWY_INLINE void AddFourNeighbours(int64_t p, const Windows& near, Windows& far, Sums& sum) const {
    VTaps four[kChannels];
    const float* from[kChannels];
    LoadPixels(p, four, from);
#pragma GCC unroll 16
    for (int i = 0; i < kOfTaps; ++i) far[i] = From(p + 4)(i);
    Add<0>([&](int i) HWY_ATTR { return near[i]; }, four, from, sum);
    Add<1>(
        [&](int i) HWY_ATTR {
          const bool both = kOfTaps <= 4 || i % 2 == 0;
          return both ? hn::CombineShiftRightLanes<1>(Taps(), far[i], near[i]) : From(p + 1)(i);
        },
        four, from, sum);
    Add<2>(From(p + 2), four, from, sum);
    Add<3>(From(p + 3), four, from, sum);
  }

  const TapStrips& run_;
  const float* g_[kOfTaps];
  const float* v_[kChannels];
};

template <int kChannels, int kStrips>
HWY_NOINLINE void SumStrips(const TapStrips& run) {
  run.bias == nullptr ? StripSums<kChannels, kStrips, false>(run).Sum()
                      : StripSums<kChannels, kStrips, true>(run).Sum();
}

using SumStripsFunction = void (*)(const TapStrips& run);

template <int... kStrips>
SumStripsFunction OneChannel(int strips, std::integer_sequence<int, kStrips...>) {
  static constexpr SumStripsFunction kOf[] = {SumStrips<1, kStrips + 1>...};
  return kOf[strips - 1];
}

void SumStripsHere(const TapStrips& run, int channels, int strips) {
  if (channels == 4) return SumStrips<4, 1>(run);
  if (channels == 2) return SumStrips<2, 2>(run);
  OneChannel(strips, std::make_integer_sequence<int, TapStrips::kMost>())(run);
}
#endif

const SumsAlongTaps& SumsAlongTapsHere() {
  static constexpr SumsAlongTaps kSums{SumStripsHere};
  return kSums;
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convgrad {

HWY_EXPORT(SumsAlongTapsHere);

const SumsAlongTaps& PickedSumsAlongTaps() { return HWY_DYNAMIC_DISPATCH(SumsAlongTapsHere)(); }

}  // namespace convgrad
#endif  // HWY_ONCE
