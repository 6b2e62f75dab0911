// Lines between the tensors and the memory of the direct kernel: any type and strides on one side,
// floats in blocks of lanes on the other. Parts of steps 6 and 8 of the story.
#if defined(CONVGRAD_CPU_DIRECT_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_LINES_INL_H_
#undef CONVGRAD_CPU_DIRECT_LINES_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_LINES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/direct.h"
#include "cpu/rect-inl.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

constexpr int kBlockLanes = static_cast<int>(LanesOfBlock(kLanes));

// A line of a tensor: elements at position * step + channel * channel_step. Channels are those of
// one block of lanes after the other.
template <class T>
struct TensorLine {
  T* first;
  int64_t step;
  int64_t channel_step;
  int64_t ahead;  // to the line that will be needed after the next one
  // From one position to the next there is nothing but elements of the tensor: the last vector of
  // channels may read on into them.
  bool dense = false;
};

// Lines of blocks of lanes, `step` floats from block to block; each is a plane for each of its
// vectors, [position, kLanes].
struct BlockLines {
  float* first;
  int64_t step;
  int64_t plane;
};

// Positions whose last vector of channels ends before the last position does. (3 channels one by
// one took as long as 12.)
template <class T>
int64_t PositionsBefore(const TensorLine<T>& line, int64_t positions) {
  return positions - CeilDiv(kLanes - 1, std::max<int64_t>(line.step, 1));
}

// Channels of one position, `plane` floats from vector to vector. `over`: the last vector is whole.
template <class T>
HWY_INLINE void LoadChannels(const T* from, int64_t channels, float* to, int64_t plane,
                             bool over = false) {
  const D d;
  int64_t c = 0;
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes, to += 2 * plane) {
    V first, second;
    LoadBoth(from + c, first, second);
    hn::StoreU(first, d, to);
    hn::StoreU(second, d, to + plane);
  }
  for (; c + kLanes <= channels; c += kLanes, to += plane) {
    hn::StoreU(LoadBytes(d, from + c), d, to);
  }
  if (over && c + 1 < channels) return hn::StoreU(LoadBytes(d, from + c), d, to);
  for (int64_t i = 0; c < channels; ++c, ++i) to[i] = Widen(LoadAt<T>(from, c));
}

#if CONVGRAD_MULTIPLIES_BY_LANES
// Four rows of eight elements of 16 bits: turned as they are, then widened, in as many instructions
// as four rows of four floats take, twice.
template <class T>
HWY_INLINE void TurnEight(const T* from, int64_t row, float* to, int64_t width) {
  const auto load = [&](int64_t r) HWY_ATTR {
    return vreinterpretq_u16_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(from + r * row)));
  };
  const uint16x8_t r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
  const uint16x8_t even[2] = {vzip1q_u16(r0, r2), vzip2q_u16(r0, r2)};
  const uint16x8_t odd[2] = {vzip1q_u16(r1, r3), vzip2q_u16(r1, r3)};
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half, to += 4 * width) {
    V columns[4];
    WidenBoth(vzip1q_u16(even[half], odd[half]), columns[0], columns[1], T());
    WidenBoth(vzip2q_u16(even[half], odd[half]), columns[2], columns[3], T());
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) hn::StoreU(columns[i], D(), to + i * width);
  }
}

// And back: eight positions of four lanes, rounded, then turned.
template <class T>
HWY_INLINE void StoreEightTurned(const float* from, int64_t width, V add, T* to, int64_t row) {
  const auto load = [&](int p) HWY_ATTR { return hn::Add(hn::LoadU(D(), from + p * width), add); };
  const auto two = [&](int p) HWY_ATTR { return NarrowBoth(load(p), load(p + 1), T()); };
  const auto store = [&](uint16x8_t bits, int64_t r) HWY_ATTR {
    vst1q_u8(reinterpret_cast<uint8_t*>(to + r * row), vreinterpretq_u8_u16(bits));
  };
  const uint16x8_t p0 = two(0), p2 = two(2), p4 = two(4), p6 = two(6);
  const uint16x8_t even[2] = {vuzp1q_u16(p0, p2), vuzp1q_u16(p4, p6)};
  const uint16x8_t odd[2] = {vuzp2q_u16(p0, p2), vuzp2q_u16(p4, p6)};
  store(vuzp1q_u16(even[0], even[1]), 0);
  store(vuzp1q_u16(odd[0], odd[1]), 1);
  store(vuzp2q_u16(even[0], even[1]), 2);
  store(vuzp2q_u16(odd[0], odd[1]), 3);
}
#endif

// A block: to[vector * plane + position * kLanes + lane].
template <class T>
HWY_INLINE void LoadBlock(const TensorLine<const T>& line, int64_t positions, int64_t channels,
                          float* to, int64_t plane) {
  if (line.channel_step == 1) {
    for (int64_t i = 0; i < positions; ++i) {
      LoadChannels(line.first + i * line.step, channels, to + i * kLanes, plane);
    }
    return;
  }
  int64_t c = 0;
#if CONVGRAD_TURNS_VECTORS
  for (; line.step == 1 && positions >= 4 && c + kLanes <= channels; c += kLanes) {
    const T* const from = line.first + c * line.channel_step;
    for (int k = 0; k < kLanes; ++k) {
      const T* const next = from + k * line.channel_step + line.ahead;
      for (int64_t i = 0; i < positions; i += 64 / sizeof(T)) __builtin_prefetch(next + i);
    }
    TurnVectorOfRows(from, line.channel_step, positions, to + c / kLanes * plane, kLanes);
  }
#endif
#if HWY_TARGET != HWY_SCALAR
  if (line.step == 1) {
    for (; c + 4 <= channels; c += 4) {
      const T* const from = line.first + c * line.channel_step;
      for (int k = 0; k < 4; ++k) {
        const T* const next = from + k * line.channel_step + line.ahead;
        for (int64_t i = 0; i < positions; i += 64 / sizeof(T)) __builtin_prefetch(next + i);
      }
      const int64_t step = line.channel_step;
      float* const at = to + c / kLanes * plane + c % kLanes;
      const auto turn = [&](const T* first, int64_t count, float* to_first) HWY_ATTR {
        TurnFourRows(first, first + step, first + 2 * step, first + 3 * step, count, to_first,
                     kLanes);
      };
      // The last four again: some of them are there already. (In TurnFourRows itself, dense layers
      // would be slower by up to 3 %.)
      const int64_t whole = positions < 4 ? positions : positions / 4 * 4;
      int64_t done = 0;
#if CONVGRAD_MULTIPLIES_BY_LANES
      if constexpr (sizeof(T) == sizeof(uint16_t)) {
        for (; done + 8 <= whole; done += 8)
          TurnEight(from + done, step, at + done * kLanes, kLanes);
      }
#endif
      turn(from + done, whole - done, at + done * kLanes);
      if (whole < positions) turn(from + positions - 4, 4, at + (positions - 4) * kLanes);
    }
  }
#endif
  for (; c < channels; ++c) {
    const T* const from = line.first + c * line.channel_step;
    float* const at = to + c / kLanes * plane + c % kLanes;
    for (int64_t i = 0; i < positions; ++i) at[i * kLanes] = Widen(LoadAt<T>(from, i * line.step));
  }
}

// Where channels are next to each other, position by position, so that memory is read in its order:
// block by block, no CPU sees the next cache line coming (1.5 times the time).
template <class T>
void LoadBlocks(const TensorLine<const T> line, int64_t positions, int64_t channels,
                const BlockLines to) {
  if (line.channel_step != 1) {
    for (int64_t c = 0, b = 0; c < channels; c += kBlockLanes, ++b) {
      LoadBlock(TensorLine<const T>{line.first + c * line.channel_step, line.step,
                                    line.channel_step, line.ahead},
                positions, std::min<int64_t>(kBlockLanes, channels - c), to.first + b * to.step,
                to.plane);
    }
    return;
  }
  const int64_t over = line.dense ? PositionsBefore(line, positions) : 0;
  int64_t i = 0;
  if (channels < kLanes) {
    const D d;
    for (; i < over; ++i) {
      hn::StoreU(LoadBytes(d, line.first + i * line.step), d, to.first + i * kLanes);
    }
  }
  for (; i < positions; ++i) {
    const T* from = line.first + i * line.step;
    float* at = to.first + i * kLanes;
    int64_t c = 0;
    for (; c + kBlockLanes <= channels; c += kBlockLanes, at += to.step) {
      LoadChannels(from + c, kBlockLanes, at, to.plane);
    }
    LoadChannels(from + c, channels - c, at, to.plane, i < over);
  }
}

// The first of a vector's lanes.
template <class T>
HWY_INLINE void StoreFew(V value, int64_t lanes, T* to) {
  T all[kLanes];
  StoreBytes(value, D(), all);
  const auto copy = [&](int64_t first, auto count) HWY_ATTR {
    std::memcpy(static_cast<void*>(to + first), all + first, count() * sizeof(T));
  };
  int64_t first = 0;
  if constexpr (kLanes > 8) {
    if (lanes & 8) copy(first, std::integral_constant<size_t, 8>());
    first += lanes & 8;
  }
  if constexpr (kLanes > 4) {
    if (lanes & 4) copy(first, std::integral_constant<size_t, 4>());
    first += lanes & 4;
  }
  if constexpr (kLanes > 1) {
    if (lanes & 2) copy(first, std::integral_constant<size_t, 2>());
    first += lanes & 2;
    if (lanes & 1) copy(first, std::integral_constant<size_t, 1>());
  }
}

// `over`: the last vector is whole. What it writes beyond is written again, by later positions.
template <class T>
HWY_INLINE void StoreChannels(const float* from, int64_t plane, const float* bias,
                              int64_t bias_plane, int64_t channels, T* to, bool over = false) {
  const D d;
  int64_t c = 0;
  const auto ended = [&](const float* sum, const float* add)
                         HWY_ATTR { return hn::Add(hn::LoadU(d, sum), hn::LoadU(d, add)); };
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes, from += 2 * plane, bias += 2 * bias_plane) {
    StoreBoth(ended(from, bias), ended(from + plane, bias + bias_plane), to + c);
  }
  for (; c + kLanes <= channels; c += kLanes, from += plane, bias += bias_plane) {
    StoreBytes(hn::Add(hn::LoadU(d, from), hn::LoadU(d, bias)), d, to + c);
  }
  if (c == channels) return;
  if (c + 1 == channels) return StoreAt(to, c, NarrowSum(from[0] + bias[0], T()));
  const V last = hn::Add(hn::LoadU(d, from), hn::LoadU(d, bias));
  over ? StoreBytes(last, d, to + c) : StoreFew(last, channels - c, to + c);
}

#if HWY_TARGET != HWY_SCALAR
// `step` elements apart.
template <class T>
HWY_INLINE void StoreFour(V4 value, T* to, int64_t step) {
  const D4 d;
  if (step == 1) return StoreBytes(value, d, to);
  T lanes[4];
  StoreBytes(value, d, lanes);
  for (int i = 0; i < 4; ++i) StoreAt(to, i * step, lanes[i]);
}

// Four positions of four lanes at a time, turned back; at least four positions.
template <class T>
HWY_INLINE void StoreTurned(const TensorLine<T>& line, int64_t positions, const float* from,
                            const float* bias) {
  const D4 d;
  const V4 add = hn::LoadU(d, bias);
  const auto store = [&](int64_t first) HWY_ATTR {
    const float* const at = from + first * kLanes;
    const auto load = [&](int p) HWY_ATTR { return hn::Add(hn::LoadU(d, at + p * kLanes), add); };
    const FourRows turned = Turn(load(0), load(1), load(2), load(3));
    T* const to = line.first + first * line.step;
    StoreFour(turned.k0, to, line.step);
    StoreFour(turned.k1, to + line.channel_step, line.step);
    StoreFour(turned.k2, to + 2 * line.channel_step, line.step);
    StoreFour(turned.k3, to + 3 * line.channel_step, line.step);
  };
  int64_t i = 0;
#if CONVGRAD_MULTIPLIES_BY_LANES
  if constexpr (sizeof(T) == sizeof(uint16_t)) {
    for (; line.step == 1 && i + 8 <= positions; i += 8) {
      StoreEightTurned(from + i * kLanes, kLanes, add, line.first + i, line.channel_step);
    }
  }
#endif
  for (; i + 4 <= positions; i += 4) store(i);
  if (i < positions) store(positions - 4);  // the last four again
}
#endif

template <class T>
HWY_INLINE void StoreApart(const TensorLine<T>& line, int64_t positions, int64_t channels,
                           const BlockLines& from, const BlockLines& bias) {
  int64_t c = 0;
#if CONVGRAD_TURNS_VECTORS
  for (; line.step == 1 && positions >= 4 && c + kLanes <= channels; c += kLanes) {
    const float* const sums = from.first + c / kLanes * from.plane;
    const V add = hn::LoadU(D(), bias.first + c / kLanes * bias.plane);
    const auto column = [&](int64_t p)
                            HWY_ATTR { return hn::Add(hn::LoadU(D(), sums + p * kLanes), add); };
    TurnBack(positions, column, line.first + c * line.channel_step, line.channel_step);
  }
#endif
#if HWY_TARGET != HWY_SCALAR
  for (; c + 4 <= channels && positions >= 4; c += 4) {
    StoreTurned<T>({line.first + c * line.channel_step, line.step, line.channel_step, line.ahead},
                   positions, from.first + c / kLanes * from.plane + c % kLanes,
                   bias.first + c / kLanes * bias.plane + c % kLanes);
  }
#endif
  for (; c < channels; ++c) {
    T* const to = line.first + c * line.channel_step;
    const float* const sums = from.first + c / kLanes * from.plane + c % kLanes;
    const float add = bias.first[c / kLanes * bias.plane + c % kLanes];
    for (int64_t i = 0; i < positions; ++i) {
      StoreAt(to, i * line.step, NarrowSum(sums[i * kLanes] + add, T()));
    }
  }
}

// out = round(c + bias). A bias of +0 makes a -0 of c, which is a chunk alone, the +0 that it is
// where it is added to zero.
template <class T>
void StoreBlocks(const TensorLine<T> line, int64_t positions, int64_t channels,
                 const BlockLines from, const BlockLines bias) {
  if (line.channel_step != 1) {
    for (int64_t c = 0, b = 0; c < channels; c += kBlockLanes, ++b) {
      StoreApart(TensorLine<T>{line.first + c * line.channel_step, line.step, line.channel_step,
                               line.ahead},
                 positions, std::min<int64_t>(kBlockLanes, channels - c),
                 BlockLines{from.first + b * from.step, 0, from.plane},
                 BlockLines{bias.first + b * bias.step, 0, bias.plane});
    }
    return;
  }
  const int64_t over = line.step == channels ? PositionsBefore(line, positions) : 0;
  for (int64_t i = 0; i < positions; ++i) {
    T* const to = line.first + i * line.step;
    const float *at = from.first + i * kLanes, *add = bias.first;
    int64_t c = 0;
    for (; c + kBlockLanes <= channels; c += kBlockLanes, at += from.step, add += bias.step) {
      StoreChannels(at, from.plane, add, bias.plane, kBlockLanes, to + c);
    }
    StoreChannels(at, from.plane, add, bias.plane, channels - c, to + c, i < over);
  }
}

// c = beta * out; a -0 becomes +0, see LoadScaled.
template <class T>
void LoadScaledBlocks(const TensorLine<T>& line, int64_t positions, int64_t channels, float beta,
                      const BlockLines& to) {
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t lane = c % kBlockLanes;
    float* const at =
        to.first + c / kBlockLanes * to.step + lane / kLanes * to.plane + lane % kLanes;
    for (int64_t i = 0; i < positions; ++i) {
      at[i * kLanes] =
          beta * Widen(LoadAt<T>(line.first, i * line.step + c * line.channel_step)) + 0.0f;
    }
  }
}

// What SpreadChannels reads beyond its last position, and does not use.
constexpr int64_t kBeyondPlain = 4;

// Groups of `channels` to `o`, in a block, and the group of each lane. (16 divisions for each line
// of a block were 14 % of the time of 1 to 3 channels of one pixel, Neoverse-N1.)
struct SpreadShape {
  int64_t channels, o;
  int32_t group_of[kBlockLanes];

  SpreadShape(int64_t channels_each, int64_t o_each) : channels(channels_each), o(o_each) {
    int32_t group = 0;
    for (int64_t l = 0, next = o; l < kBlockLanes; ++l) {
      if (l == next) {
        ++group;
        next += o;
      }
      group_of[l] = group;
    }
  }
};

#if HWY_TARGET != HWY_SCALAR
// Four lanes of SpreadChannels, of o that lie in up to four groups; lane by lane it took 4 times as
// long as all the rest of a channel multiplier of 3. Apart: beside BroadcastEach GCC 12 made
// its loop of several channels half as fast.
inline HWY_NOINLINE void SpreadToFour(const float* from, int64_t from_step, int64_t positions,
                                      int64_t channels, const int32_t* group_of, int32_t last,
                                      float* to) {
  const D4 d;
  const hn::Rebind<int32_t, D4> di;
  // Of lanes that do not exist, the last one's.
  const auto groups = hn::Min(hn::LoadU(di, group_of), hn::Set(di, last));
  if (channels == 1) {
    const int32_t first = std::min(group_of[0], last);
    const auto table = hn::IndicesFromVec(d, hn::Sub(groups, hn::Set(di, first)));
    from += first;
    int64_t i = 0;
    for (; i + 4 <= positions; i += 4, from += 4 * from_step, to += 4 * kLanes) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const V4 near = hn::LoadU(d, from + k * from_step);
        hn::StoreU(hn::TableLookupLanes(near, table), d, to + k * kLanes);
      }
    }
    for (; i < positions; ++i, from += from_step, to += kLanes) {
      hn::StoreU(hn::TableLookupLanes(hn::LoadU(d, from), table), d, to);
    }
    return;
  }
  const float* group[4];
  for (int l = 0; l < 4; ++l) group[l] = from + std::min(group_of[l], last) * channels;
  for (int64_t i = 0; i < positions; ++i, to += channels * kLanes) {
    for (int64_t k = 0; k < channels; k += 4) {
      // The last four again, but of fewer than four those that are there.
      const int64_t ci = channels < 4 ? 0 : std::min(k, channels - 4);
      const FourRows turned = Turn(hn::LoadU(d, group[0] + ci), hn::LoadU(d, group[1] + ci),
                                   hn::LoadU(d, group[2] + ci), hn::LoadU(d, group[3] + ci));
      float* const at = to + ci * kLanes;
      hn::StoreU(turned.k0, d, at);
      hn::StoreU(turned.k1, d, at + kLanes);
      if (channels > 2) hn::StoreU(turned.k2, d, at + 2 * kLanes);
      if (channels > 3) hn::StoreU(turned.k3, d, at + 3 * kLanes);
    }
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) group[l] += from_step;
  }
}
#endif

// Each of `count` floats in all lanes of a vector.
HWY_INLINE void BroadcastEach(const float* from, int64_t count, float* to) {
  const D d;
  for (; count >= 4; count -= 4, from += 4, to += 4 * kLanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) hn::StoreU(hn::Set(d, from[i]), d, to + i * kLanes);
  }
  for (; count > 0; --count, ++from, to += kLanes) hn::StoreU(hn::Set(d, *from), d, to);
}

// Of one block: from [position, channels of its groups] to planes of [position, channel of a group,
// lane]. The lanes of a group's o all have that group's channel. Reads kBeyondPlain floats more.
HWY_INLINE void SpreadChannels(const float* from, int64_t positions, const SpreadShape& shape,
                               int64_t lanes, float* to, int64_t plane) {
  const int64_t channels = shape.channels, o = shape.o;
  const int32_t last = shape.group_of[lanes - 1];
  const int64_t from_step = (last + 1) * channels;
  for (int64_t first = 0; first < lanes; first += kLanes, to += plane) {
    if (o % kLanes == 0 && (channels > 1 || HWY_TARGET == HWY_SCALAR)) {
      // One group: all positions are one run.
      const int64_t runs = from_step == channels ? 1 : positions;
      const int64_t run = from_step == channels ? positions * channels : channels;
      const float* group = from + shape.group_of[first] * channels;
      for (int64_t i = 0; i < runs; ++i, group += from_step) {
        BroadcastEach(group, run, to + i * run * kLanes);
      }
      continue;
    }
#if HWY_TARGET != HWY_SCALAR
    for (int64_t l = 0; l < kLanes; l += 4) {
      SpreadToFour(from, from_step, positions, channels, shape.group_of + first + l, last, to + l);
    }
#endif
  }
}

// [position, channel] of a few channels.
template <class T>
HWY_INLINE void LoadPlain(const TensorLine<const T>& line, int64_t positions, int64_t channels,
                          float* to) {
  int64_t c = 0;
  if (line.channel_step == 1 && line.step == channels) {
    return LoadChannels(line.first, positions * channels, to, kLanes);
  }
#if HWY_TARGET != HWY_SCALAR
  if (line.step == 1 && line.channel_step != 1) {
    for (; c + 4 <= channels; c += 4) {
      const T* const from = line.first + c * line.channel_step;
      TurnFourRows(from, from + line.channel_step, from + 2 * line.channel_step,
                   from + 3 * line.channel_step, positions, to + c, channels);
    }
  }
#endif
  for (int64_t i = 0; i < positions; ++i) {
    const T* const from = line.first + i * line.step;
    float* const at = to + i * channels;
    if (line.channel_step == 1) {
      LoadChannels(from, channels, at, kLanes);
    } else {
      for (int64_t k = c; k < channels; ++k) at[k] = Widen(LoadAt<T>(from, k * line.channel_step));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
