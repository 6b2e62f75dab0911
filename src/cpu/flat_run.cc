// Runs the tasks of the flat kernel. Step 5 of the story.
#include <algorithm>
#include <cstdint>

#include "core/parallel.h"
#include "cpu/flat.h"

namespace convgrad {
namespace {

RunFlatFunction FunctionOf(DataType type) {
  return type == DataType::kBF16 ? RunFlatBF16 : type == DataType::kF16 ? RunFlatF16 : RunFlatF32;
}

// Part i of the pixels of a phase. Parts are shares, since phases have different extents.
FlatPixels PartOf(const FlatAxes& axes, const FlatTiling& t, int64_t i) {
  FlatPixels part;
  for (int a = kFlatAxes - 1; a >= 0; --a) {
    const int64_t pixels = axes[a].axis.pixels, at = i % t.parts[a];
    i /= t.parts[a];
    part[a] = {pixels * at / t.parts[a], pixels * (at + 1) / t.parts[a]};
  }
  return part;
}

}  // namespace

void RunFlat(const Problem& p, const Operands& operands, float beta, const Team& team,
             void* workspace, int64_t workspace_bytes) {
  const FlatTiling t = FlatTilingOf(p, team.threads, workspace_bytes);
  float* const memory =
      reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(workspace) + 63) / 64 * 64);
  const bool dgrad = p.pass == Pass::kDgrad;
  const int64_t g_group = dgrad ? p.co * p.y.c : p.ci * p.x.c;
  const int64_t out_group = dgrad ? p.ci * p.x.c : p.co * p.y.c;
  const int64_t bias_group = (dgrad ? p.ci : p.co) * p.bias.stride;
  const int64_t phases = CountUnmergedPhases(p), tasks = t.tasks();
  const RunFlatFunction run = FunctionOf(p.type);
  ForRanges(team.Of(t.slots), p.groups * tasks, 1, [&](int slot, int64_t i, int64_t) {
    const int64_t group = i / tasks;
    for (int64_t phase = 0; phase < phases; ++phase) {
      const Contraction c = MakeUnmergedContraction(p, phase);
      const FlatTiling own = OfPhase(c, t);
      const FlatWork work{
          .c = &c,
          .t = &own,
          .g = At(dgrad ? operands.y : operands.x, p.type, group * g_group),
          .w = At(operands.w, p.type, group * p.w.g),
          .out = At(operands.out, p.type, group * out_group),
          .bias = p.bias.present ? At(operands.bias, p.type, group * bias_group) : nullptr,
          .bias_stride = p.bias.stride,
          .beta = beta};
      run(work, PartOf(FlatAxesOf(c, t.images_last), t, i % tasks),
          t.on_stack ? nullptr : memory + slot * t.task_floats());
    }
  });
}

}  // namespace convgrad
