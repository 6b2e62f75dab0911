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
};

// Blocks of lanes: [position, kBlockLanes] each, `step` floats from block to block.
struct BlockLines {
  float* first;
  int64_t step;
};

template <class T>
HWY_INLINE void LoadChannels(const T* from, int64_t channels, float* to) {
  const D d;
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) hn::StoreU(LoadBytes(d, from + c), d, to + c);
  for (; c < channels; ++c) to[c] = Widen(LoadAt<T>(from, c));
}

// to[position * to_step + channel].
template <class T>
HWY_INLINE void LoadLine(const TensorLine<const T>& line, int64_t positions, int64_t channels,
                         float* to, int64_t to_step) {
  if (line.channel_step == 1) {
    for (int64_t i = 0; i < positions; ++i) {
      LoadChannels(line.first + i * line.step, channels, to + i * to_step);
    }
    return;
  }
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if (line.step == 1) {
    for (; c + 4 <= channels; c += 4) {
      const T* const from = line.first + c * line.channel_step;
      TurnFourRows(from, from + line.channel_step, from + 2 * line.channel_step,
                   from + 3 * line.channel_step, positions, to + c, to_step);
    }
  }
#endif
  for (; c < channels; ++c) {
    const T* const from = line.first + c * line.channel_step;
    for (int64_t i = 0; i < positions; ++i) {
      to[i * to_step + c] = Widen(LoadAt<T>(from, i * line.step));
    }
  }
}

// Where channels are next to each other, position by position, so that memory is read in its order:
// block by block, no CPU sees the next cache line coming (3 times the time).
template <class T>
void LoadBlocks(const TensorLine<const T>& line, int64_t positions, int64_t channels,
                const BlockLines& to) {
  if (line.channel_step != 1) {
    for (int64_t c = 0, b = 0; c < channels; c += kBlockLanes, ++b) {
      LoadLine(TensorLine<const T>{line.first + c * line.channel_step, line.step, line.channel_step},
               positions, std::min<int64_t>(kBlockLanes, channels - c), to.first + b * to.step,
               kBlockLanes);
    }
    return;
  }
  for (int64_t i = 0; i < positions; ++i) {
    const T* from = line.first + i * line.step;
    float* at = to.first + i * kBlockLanes;
    int64_t c = 0;
    for (; c + kBlockLanes <= channels; c += kBlockLanes, at += to.step) {
      LoadChannels(from + c, kBlockLanes, at);
    }
    LoadChannels(from + c, channels - c, at);
  }
}

template <class T>
HWY_INLINE void StoreChannels(const float* from, const float* bias, int64_t channels, T* to) {
  const D d;
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    StoreBytes(hn::Add(hn::LoadU(d, from + c), hn::LoadU(d, bias + c)), d, to + c);
  }
  for (; c < channels; ++c) StoreAt(to, c, NarrowSum(from[c] + bias[c], T()));
}

// Four positions of four lanes at a time, turned back. Says how many positions.
template <class T>
HWY_INLINE int64_t StoreTurned(const TensorLine<T>& line, int64_t positions, const float* from,
                               const float* bias) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const D4 d;
  const V4 add = hn::LoadU(d, bias);
  for (; i + 4 <= positions; i += 4) {
    const float* const at = from + i * kBlockLanes;
    const auto load = [&](int p) { return hn::Add(hn::LoadU(d, at + p * kBlockLanes), add); };
    const FourRows turned = Turn(load(0), load(1), load(2), load(3));
    T* const to = line.first + i;
    StoreBytes(turned.k0, d, to);
    StoreBytes(turned.k1, d, to + line.channel_step);
    StoreBytes(turned.k2, d, to + 2 * line.channel_step);
    StoreBytes(turned.k3, d, to + 3 * line.channel_step);
  }
#endif
  return i;
}

template <class T>
HWY_INLINE void StoreApart(const TensorLine<T>& line, int64_t positions, int64_t channels,
                           const float* from, const float* bias) {
  for (int64_t c = 0, count = 1; c < channels; c += count) {
    const bool turns = line.step == 1 && c + 4 <= channels;
    const TensorLine<T> at{line.first + c * line.channel_step, line.step, line.channel_step};
    const int64_t done = turns ? StoreTurned(at, positions, from + c, bias + c) : 0;
    count = turns ? 4 : 1;
    for (int64_t k = 0; k < count; ++k) {
      T* const to = at.first + k * line.channel_step;
      for (int64_t i = done; i < positions; ++i) {
        StoreAt(to, i * line.step, NarrowSum(from[i * kBlockLanes + c + k] + bias[c + k], T()));
      }
    }
  }
}

// out = round(c + bias). A bias of +0 makes a -0 of c, which is a chunk alone, the +0 that it is
// where it is added to zero.
template <class T>
void StoreBlocks(const TensorLine<T>& line, int64_t positions, int64_t channels,
                 const BlockLines& from, const BlockLines& bias) {
  if (line.channel_step != 1) {
    for (int64_t c = 0, b = 0; c < channels; c += kBlockLanes, ++b) {
      StoreApart(TensorLine<T>{line.first + c * line.channel_step, line.step, line.channel_step},
                 positions, std::min<int64_t>(kBlockLanes, channels - c),
                 from.first + b * from.step, bias.first + b * bias.step);
    }
    return;
  }
  for (int64_t i = 0; i < positions; ++i) {
    T* const to = line.first + i * line.step;
    const float *at = from.first + i * kBlockLanes, *add = bias.first;
    int64_t c = 0;
    for (; c + kBlockLanes <= channels; c += kBlockLanes, at += from.step, add += bias.step) {
      StoreChannels(at, add, kBlockLanes, to + c);
    }
    StoreChannels(at, add, channels - c, to + c);
  }
}

// c = beta * out; a -0 becomes +0, see LoadScaled.
template <class T>
void LoadScaledBlocks(const TensorLine<T>& line, int64_t positions, int64_t channels, float beta,
                      const BlockLines& to) {
  for (int64_t c = 0; c < channels; ++c) {
    float* const at = to.first + c / kBlockLanes * to.step + c % kBlockLanes;
    for (int64_t i = 0; i < positions; ++i) {
      at[i * kBlockLanes] =
          beta * Widen(LoadAt<T>(line.first, i * line.step + c * line.channel_step)) + 0.0f;
    }
  }
}

// From [position, channels of the groups of a block] to [position, channel of a group, lane]: the
// lanes of a group's o all have that group's channel. `from` has whole vectors of channels.
HWY_INLINE void SpreadChannels(const float* from, int64_t from_step, int64_t positions,
                               int64_t channels, int64_t o, int64_t lanes, float* to) {
  for (int64_t i = 0; i < positions; ++i, from += from_step) {
    for (int64_t ci = 0; ci < channels; ++ci, to += kBlockLanes) {
      const float* group = from + ci;
      if (o % kLanes == 0) {
        const D d;
        for (int64_t l = 0; l < lanes; l += o, group += channels) {
          for (int64_t v = 0; v < o; v += kLanes) hn::StoreU(hn::Set(d, *group), d, to + l + v);
        }
        continue;
      }
      for (int64_t l = 0; l < lanes; l += o, group += channels) {
        const float value = *group;
        for (int64_t v = 0; v < o; ++v) to[l + v] = value;
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
