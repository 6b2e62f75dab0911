// What the direct kernel is expected to take. Step 4 of the story.
#include <algorithm>
#include <cstdlib>

#include "cpu/direct.h"
#include "cpu/direct_axes.h"
#include "cpu/direct_group_pixels.h"
#include "cpu/engine.h"
#include "cpu/multiply_rate.h"

namespace convgrad {
namespace {

// How many times as long as DirectSeconds counts otherwise fprop and dgrad take on 16 lanes, where
// groups are no single channels that fill vectors: padding is multiplied, too, and lines are short.
// (467 random problems, Cascade Lake: 4 to 6 times at the median; layers of networks whose groups
// are along pixels, or fours, 1 to 1.9.)
double DelayOf(const Problem& p, const VectorUnit& unit, bool well_filled, bool along_pixels) {
  constexpr double kGroups = 3, kOneGroup = 4, kMuchPadding = 1.5, kMostPadding = 50;
  const bool single = p.ci == 1 && p.co == 1;
  if (p.pass == Pass::kWgrad || unit.lanes != 16) return 1;
  if (single && (p.groups >= unit.lanes || along_pixels)) return 1;
  const double padding = std::min(kMostPadding, PaddedMultiple(p));
  if (well_filled) return padding < kMuchPadding ? 1 : padding;
  return p.groups == 1 ? kOneGroup * padding : kGroups;
}

}  // namespace

double DirectSeconds(const Problem& problem, int threads) {
  // Of what the vector unit multiplies depthwise 20 to 35 %, groups of fours 32 to 47 (AVX-512, and
  // its groups of 8: 13 to 28), where channels are copied for each o 14 to 20, groups along pixels
  // 45 to 75 of the lanes that are filled (Sapphire Rapids); and 10 GB/s for each thread.
  const Problem p = WithLines(problem);
  const Contraction c = MakeLargestPlainContraction(p);
  const VectorUnit unit = PickedVectorUnit(problem.type);
  // Lines of which positions are moved one by one, for far taps or for far pixels of a sum, 6.
  const GatherAxis& last = c.axes[kAxes - 1];
  const bool far_taps = last.taps > 1 && std::abs(last.tap_step) > 1 && last.pixels >= 16;
  const bool far_pixels = c.sum_pixels && last.pixel_step > 1 && last.pixel_step >= last.taps;
  const bool apart = c.g.channel != 1 && (far_taps || far_pixels);
  const double spread = apart ? 0.06 : 0.17;
  const bool of_groups = IsOfGroupsAlongPixels(c, p);
  const double full = of_groups                 ? 0.55
                      : HasFours(c, unit.lanes) ? 0.4
                      : c.channels * c.o == 1   ? 0.25
                                                : spread;
  // Of a block that is not full, vectors without a channel are left out.
  const double used = static_cast<double>(p.groups * c.o);
  const double vectors = static_cast<double>(CeilDiv(p.groups * c.o, unit.lanes));
  const double filled = of_groups                                  ? GroupPixels::FilledShare(c)
                        : IsAlongPixels(c, p) || IsAlongTaps(c, p) ? 1.0
                                                                   : used / (vectors * unit.lanes);
  // One group, 16 lanes (Sapphire Rapids): of o that are no fours, of more than a few channels, a
  // quarter of that; and where lines are turned to have lanes of channels, for one tap alone, 2.5
  // GB/s, where a contraction takes pixels as they are (1x1: 3 to 10 times its time).
  const bool wide = p.groups == 1 && unit.lanes == 16 && !c.sum_pixels;
  const bool pixels = of_groups || IsAlongPixels(c, p);
  const bool odd = wide && !pixels && c.o > 4 && c.o % 4 != 0 && c.channels > 4;
  const bool turns = wide && !pixels && c.taps() == 1 && c.g.channel != 1 && c.v.o != 1;
  const double share =
      full * filled * (odd ? 0.25 : 1) /
      DelayOf(problem, unit, of_groups || HasFours(c, unit.lanes), IsAlongPixels(c, p));
  const double per_second = MultiplyAddsPerSecond(unit) * share * threads;
  const double bytes_per_second = (turns ? 2.5e9 : 10e9) * threads;
  return std::max(CountMultiplyAdds(problem) / per_second, CountBytes(problem) / bytes_per_second);
}

}  // namespace convgrad
