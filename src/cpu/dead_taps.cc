#include "cpu/dead_taps.h"

#include "core/numerics.h"
#include "cpu/contraction.h"

namespace convgrad {

void FillDeadTaps(const Problem& p, void* out, float beta, const Team& team) {
  const std::array<Range, kAxes> live = LiveTaps(p);
  bool any = false;
  for (int a = 0; a < kAxes; ++a) any = any || live[a].size() < p.axes[a].taps;
  const int64_t kernels = p.samples() * p.groups * p.co;
  if (!any || p.ci == 0 || kernels == 0) return;
  const auto is_live = [&](int a, int64_t tap) {
    return tap >= live[a].begin && tap < live[a].end;
  };
  const auto fill = [&](int64_t at) {
    const float before = beta == 0 ? 0.0f : static_cast<float>(LoadWidened(p.out_type, out, at));
    StoreRounded(p.out_type, out, at, beta * before + 0.0f);
  };
  ForRanges(team, kernels, 16, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / p.co / p.groups;
      const int64_t first =
          sample * p.per_sample.w + i / p.co % p.groups * p.w.g + i % p.co * p.w.co;
      for (int64_t t0 = 0; t0 < p.axes[0].taps; ++t0) {
        for (int64_t t1 = 0; t1 < p.axes[1].taps; ++t1) {
          const bool line = is_live(0, t0) && is_live(1, t1);
          for (int64_t t2 = 0; t2 < p.axes[2].taps; ++t2) {
            if (line && is_live(2, t2)) continue;
            const int64_t at = first + t0 * p.w.s[0] + t1 * p.w.s[1] + t2 * p.w.s[2];
            for (int64_t ci = 0; ci < p.ci; ++ci) fill(at + ci * p.w.ci);
          }
        }
      }
    }
  });
}

}  // namespace convgrad
