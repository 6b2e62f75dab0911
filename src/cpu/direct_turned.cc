#include "cpu/direct_turned.h"

#include <algorithm>

#include "cpu/direct.h"

namespace convgrad {
namespace {

// Positions of a plane follow each other.
bool HasDensePlanes(const PixelStrides& of, const std::array<int64_t, kAxes>& extents) {
  int64_t dense = 1;
  for (int a = kAxes - 1; a >= 0; --a) {
    if (extents[a] > 1 && of.s[a] != dense) return false;
    dense *= extents[a];
  }
  return of.c != 1;
}

// Most positions of a channel, in x and y together, for which turning whole planes is worth it.
// Neoverse-N1, 3x3, time of planes / of lines: f32 of stride one fprop and dgrad 9x9 0.67, 12x12
// 0.87, 16x16 1.13, wgrad 0.54, 0.63, 0.62, 20x20 0.88, 28x28 1.0; of stride two, 20x20 and 28x28,
// fprop 0.90 and 0.99, wgrad 0.76 and 0.96, dgrad 0.36 and 0.40, but 56x56 1.0. bf16 of stride one,
// 20x20: 0.86, 0.96, 0.72.
int64_t MostPlanePositions(const Problem& p, int64_t phases) {
  if (phases > 1) return TurnedPlanes::kMostPositions;
  if (p.pass == Pass::kWgrad) return 1024;
  const Axis& last = p.axes[kAxes - 1];
  return p.type == DataType::kF32 && last.stride == 1 ? 320 : 800;
}

// The same of dgrads whose phases direct_pixels.h has by twos. Planes / these, f32 and bf16, on a
// Neoverse-N1: 3x3 of 20x20 0.95 and 0.72, 28x28 1.16 and 0.88, 36x36 1.8 and 1.3 (with AVX-512 1.5
// and 0.9); of 8 channels of 28x28 1.7 and 1.4.
int64_t MostPlanePositionsByTwos(const Problem& p) {
  constexpr int64_t kShort = 16;
  if (p.groups < 16 && p.axes[kAxes - 1].in >= kShort) return 0;
  return p.type == DataType::kF32 ? 900 : 1024;
}

// Of one phase: long lines, and few channels, are faster line by line. Planes / lines, f, d, w, on
// a Neoverse-N1: 4 taps of 256 channels, lines of 32 0.65, 0.62, 0.80, of 150 1.8, 1.7, 1.7; 3x3 of
// 12x12, 4 channels 2.5, 2.7, 1.1, 8 1.6, 1.7, of 9x9 1.4. With AVX-512: 3x3 of 7x7 0.33, 0.35,
// 0.45, of 9x9 1.2, 0.95, 1.6, of 16x16 and stride two 1.7, 0.5, 2.0; 4 taps, lines of 32 0.64,
// 0.65, 2.2.
bool HasShortLinesOfMany(const Problem& p, int lanes) {
  constexpr int64_t kLongest = 32, kMany = 32, kTiny = 4, kSmallPlanes = 162;
  const Axis& last = p.axes[kAxes - 1];
  const int64_t line = std::max(last.in, last.out), positions = TurnedPlanes::PositionsOf(p);
  if (lanes > 4) {
    const int64_t longest = p.pass == Pass::kWgrad ? 8 : kLongest;
    return line <= longest && p.groups >= kMany && positions <= 128;
  }
  return line <= kLongest && (p.groups >= kMany || line <= kTiny ||
                              (2 * p.groups >= kMany && positions <= kSmallPlanes));
}

}  // namespace

bool HasTurnedPlanes(const Problem& p, int lanes, bool by_twos) {
  // Channels are turned by fours.
  if (p.ci != 1 || p.co != 1 || p.groups % std::max(lanes, 4) != 0) return false;
  int64_t taps = 1, phases = 1, read = 1;
  std::array<int64_t, kAxes> in{}, out{};
  for (int a = 0; a < kAxes; ++a) {
    const Axis& axis = p.axes[a];
    // Each by itself first: products of extents may be more than can be counted.
    if (axis.in < 1 || axis.out < 1 || axis.taps < 1) return false;
    if (std::max({axis.in, axis.out, axis.taps}) > TurnedPlanes::kMostPositions) return false;
    in[a] = axis.in;
    out[a] = axis.out;
    taps *= axis.taps;
    read *= p.pass == Pass::kDgrad ? std::min(axis.out, axis.in * axis.taps)
                                   : std::min(axis.in, axis.out * axis.taps);
    if (p.pass == Pass::kDgrad) phases *= std::min(axis.stride, axis.in);
  }
  // Lines are turned only where they are read. (3 taps of dilation 32 that read 6 of 44 positions:
  // 1.2 ms, planes 2.4.)
  const int64_t positions =
      p.pass == Pass::kDgrad ? TurnedPlanes::PositionsOfY(p) : TurnedPlanes::PositionsOfX(p);
  if (positions > 2 * read) return false;
  // Tables of many positions are worth it for many channels (6x6 taps of 8 channels: 0.54 ms, so
  // 0.72).
  constexpr int64_t kManyTaps = 27, kManyChannels = 64;
  if (taps > kManyTaps && p.groups < kManyChannels) return false;
  return taps <= DirectTiling::kMostTapsInPlace && phases <= TurnedPlanes::kMostPhases &&
         TurnedPlanes::PositionsOf(p) <=
             (by_twos ? MostPlanePositionsByTwos(p) : MostPlanePositions(p, phases)) &&
         (phases > 1 || HasShortLinesOfMany(p, lanes)) && HasDensePlanes(p.x, in) &&
         HasDensePlanes(p.y, out);
}

}  // namespace convgrad
