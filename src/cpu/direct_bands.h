// The order in which a task of the direct kernel runs the phases of a strided dgrad. Each phase
// writes every s-th position: one after the other over a whole tensor, they fetch each cache line
// of it s times. So the task is cut into bands that stay in L2 while all phases that write between
// each other go over them. Part of step 5 of the story; knows nothing of sums. (Neoverse-N1, 1 to 1
// channel, 5x5 of stride 7, 2675x10725: 142 ms, in bands 98.)
#ifndef CONVGRAD_CPU_DIRECT_BANDS_H_
#define CONVGRAD_CPU_DIRECT_BANDS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/problem.h"
#include "cpu/contraction.h"
#include "cpu/direct.h"

namespace convgrad {

struct PhaseBands {
  int64_t together = 1;  // phases that follow each other, on a band before the next band
  int64_t images = 1, lines = 1, columns = 1;  // bands along each
  int64_t column_unit = 1;                     // those that are computed at once

  int64_t count() const { return images * lines * columns; }

  // The i-th of them, of a task.
  DirectTask Of(DirectTask task, int64_t i) const {
    const auto part = [](Range all, int64_t at, int64_t parts, int64_t unit) {
      // size * end may be more than can be counted.
      const auto cut = [&](int64_t end) {
        const int64_t size = all.size() / parts * end + all.size() % parts * end / parts;
        return all.begin + std::min(all.size(), CeilDiv(size, unit) * unit);
      };
      return Range{cut(at), cut(at + 1)};
    };
    task.columns = part(task.columns, i % columns, columns, column_unit);
    task.lines = part(task.lines, i / columns % lines, lines, 1);
    task.images = part(task.images, i / columns / lines, images, 1);
    return task;
  }
};

// `p` with lines.
inline PhaseBands MakePhaseBands(const Problem& p, const DirectTiling& t, int64_t l2_bytes) {
  constexpr int64_t kCacheLine = 64, kLeastBytes = 16 << 10, kFewColumns = 64;
  PhaseBands bands;
  if (p.pass != Pass::kDgrad || CountPlainPhases(p) == 1 || t.pairs) return bands;
  double all_bytes = static_cast<double>(p.batch) * static_cast<double>(p.groups * p.ci) *
                     static_cast<double>(SizeOf(p.type));
  for (const Axis& axis : p.axes) all_bytes *= static_cast<double>(axis.in);
  if (all_bytes <= static_cast<double>(l2_bytes / 4)) return bands;
  // Phases along an axis whose positions are that near to each other, and all after it.
  int64_t together = 1, near = 1, of_line = 1;
  for (int a = kAxes - 1; a >= 0; --a) {
    together *= std::min(p.axes[a].stride, std::max<int64_t>(p.axes[a].in, 1));
    if (a == kAxes - 1) of_line = together;
    if (p.axes[a].stride > 1 && std::abs(p.x.s[a]) * SizeOf(p.type) < kCacheLine) near = together;
  }
  if (near == 1) return bands;
  bands.together = near;
  const Contraction c = MakePlainContraction(p, 0);  // the first phase has the most pixels
  const int64_t images = std::max<int64_t>(1, p.batch / t.image_tasks);
  const int64_t lines = std::max<int64_t>(1, c.axes[0].pixels * c.axes[1].pixels / t.bands);
  const int64_t columns = std::max<int64_t>(1, c.axes[kAxes - 1].pixels / t.column_tasks);
  const int64_t of_block = t.groups_along_pixels ? c.o : t.used;
  const int64_t channels = std::min(t.blocks_each * of_block, p.groups * c.o);
  // What all phases of a task write, and what one of them should at least, for its weights to be
  // copied in little of the time. As doubles: they may be more than can be counted.
  const double bytes = static_cast<double>(images) * static_cast<double>(lines) *
                       static_cast<double>(columns) * static_cast<double>(channels) *
                       static_cast<double>(near * SizeOf(p.type));
  const double terms = static_cast<double>(c.axes[0].taps) * static_cast<double>(c.axes[1].taps) *
                       static_cast<double>(c.axes[2].taps * c.channels * channels);
  const double least = (static_cast<double>(kLeastBytes) + 16 * terms) * static_cast<double>(near);
  const double band = std::max(least, static_cast<double>(l2_bytes / 4));
  int64_t wanted = static_cast<int64_t>(std::clamp(std::floor(bytes / band), 1.0, 1e9));
  bands.images = std::min(wanted, images);
  wanted = CeilDiv(wanted, bands.images);
  // What the first lines of a band read is copied again: of taps across planes, planes.
  const int64_t planes = c.axes[0].taps > 1 ? 2 * c.axes[0].taps * c.axes[1].pixels : 1;
  const int64_t least_lines = std::max<int64_t>({1, 2 * c.axes[1].taps, planes});
  if (near == of_line) {
    bands.lines = std::min(wanted, std::max<int64_t>(1, lines / least_lines));
  }
  wanted = CeilDiv(wanted, bands.lines);
  if (!t.along_pixels && !t.groups_along_pixels) {
    bands.column_unit = std::max<int64_t>(1, std::min(t.columns, c.axes[kAxes - 1].pixels));
    const int64_t least_columns = std::max(bands.column_unit, kFewColumns);
    bands.columns = std::min(wanted, std::max<int64_t>(1, columns / least_columns));
  }
  return bands;
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_DIRECT_BANDS_H_
