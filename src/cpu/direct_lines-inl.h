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

#include "cpu/direct_sums-inl.h"
#include "cpu/rect-inl.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// A line of a tensor: elements at position * step + channel * channel_step.
template <class T>
struct TensorLine {
  T* first;
  int64_t step;
  int64_t channel_step;
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
    const T* from = line.first;
    if (channels == kBlockLanes) {  // the compiler unrolls it
      for (int64_t i = 0; i < positions; ++i, from += line.step, to += to_step) {
        LoadChannels(from, kBlockLanes, to);
      }
      return;
    }
    for (int64_t i = 0; i < positions; ++i) {
      LoadChannels(from + i * line.step, channels, to + i * to_step);
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

// Four positions of four lanes, turned back.
template <class T>
HWY_INLINE int64_t StoreTurned(const TensorLine<T>& line, int64_t positions, const float* from,
                               const float* bias, int64_t c) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const D4 d;
  T* const to = line.first + c * line.channel_step;
  const V4 add = hn::LoadU(d, bias + c);
  for (; i + 4 <= positions; i += 4) {
    const float* const at = from + i * kBlockLanes + c;
    const auto load = [&](int p) { return hn::Add(hn::LoadU(d, at + p * kBlockLanes), add); };
    const FourRows turned = Turn(load(0), load(1), load(2), load(3));
    StoreBytes(turned.k0, d, to + i);
    StoreBytes(turned.k1, d, to + line.channel_step + i);
    StoreBytes(turned.k2, d, to + 2 * line.channel_step + i);
    StoreBytes(turned.k3, d, to + 3 * line.channel_step + i);
  }
#endif
  return i;
}

// out = round(c + bias), for `channels` lanes of each position. A bias of +0 makes a -0 of c, which
// is a chunk alone, the +0 that it is where it is added to zero.
template <class T>
void StoreLine(const TensorLine<T>& line, int64_t positions, int64_t channels, const float* from,
               const float* bias) {
  const D d;
  if (line.channel_step == 1) {
    for (int64_t i = 0; i < positions; ++i, from += kBlockLanes) {
      T* const to = line.first + i * line.step;
      int64_t c = 0;
      for (; c + kLanes <= channels; c += kLanes) {
        StoreBytes(hn::Add(hn::LoadU(d, from + c), hn::LoadU(d, bias + c)), d, to + c);
      }
      for (; c < channels; ++c) StoreAt(to, c, NarrowSum(from[c] + bias[c], T()));
    }
    return;
  }
  for (int64_t c = 0; c < channels;) {
    const bool turns = line.step == 1 && c + 4 <= channels;
    const int64_t done = turns ? StoreTurned(line, positions, from, bias, c) : 0;
    for (int64_t end = turns ? c + 4 : c + 1; c < end; ++c) {
      T* const to = line.first + c * line.channel_step;
      for (int64_t i = done; i < positions; ++i) {
        StoreAt(to, i * line.step, NarrowSum(from[i * kBlockLanes + c] + bias[c], T()));
      }
    }
  }
}

// c = beta * out; a -0 becomes +0, see LoadScaled.
template <class T>
void LoadScaledLine(const TensorLine<T>& line, int64_t positions, int64_t channels, float beta,
                    float* to) {
  for (int64_t i = 0; i < positions; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      to[i * kBlockLanes + c] =
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
