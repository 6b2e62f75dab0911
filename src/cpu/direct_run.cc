// Runs the tasks of the direct kernel. Step 5 of the story.
#include <algorithm>
#include <cstdint>

#include "core/parallel.h"
#include "cpu/dead_taps.h"
#include "cpu/direct.h"
#include "cpu/direct_axes.h"
#include "cpu/direct_bands.h"
#include "cpu/engine.h"

namespace convgrad {
namespace {

RunDirectFunction FunctionOf(DataType type) {
  return type == DataType::kBF16  ? RunDirectBF16
         : type == DataType::kF16 ? RunDirectF16
                                  : RunDirectF32;
}

// wgrad: the sums of one image, where each has its own.
DirectWork OfSample(const Problem& p, int64_t sample, DirectWork work) {
  if (!p.per_sample.present) return work;
  work.g = At(work.g, p.type, sample * p.x.n);
  work.other = At(work.other, p.type, sample * p.y.n);
  work.out = At(work.out, p.out_type, sample * p.per_sample.w);
  work.bias_out = At(work.bias_out, p.out_type, sample * p.per_sample.bias);
  return work;
}

// The tasks of one run. `p`: with planes, or with lines.
class DirectTasks {
 public:
  DirectTasks(const Problem& p, const DirectTiling& t, const DirectWork& work, const Team& crew,
              float* memory)
      : p_(p), t_(t), work_(work), crew_(crew), memory_(memory), run_(FunctionOf(p.type)) {}

  // fprop, dgrad: all phases of a task after each other.
  void SumTaps() const {
    const int64_t each = t_.pairs ? 2 : 1, phases = CountPlainPhases(p_) / each;
    const int64_t parts = t_.bands * t_.column_tasks;
    const PhaseBands of = MakePhaseBands(p_, t_, PickedVectorUnit(p_.type).l2_bytes);
    ForRanges(crew_, t_.image_tasks * t_.block_tasks * parts, 1, [&](int slot, int64_t i, int64_t) {
      const int64_t band = i / t_.column_tasks % t_.bands, part = i % t_.column_tasks;
      for (int64_t at = 0; at < phases * of.count(); ++at) {
        const int64_t first = at / (of.together * of.count()) * of.together;
        Contraction c_of[2];
        for (int64_t k = 0; k < each; ++k) {
          c_of[k] = MakePlainContraction(p_, (first + at % of.together) * each + k);
        }
        const Contraction& c = c_of[0];
        DirectWork own = work_;
        own.c = c_of;
        const int64_t lines = c.axes[0].pixels * c.axes[1].pixels, columns = c.axes[2].pixels;
        const DirectTask all{
            .blocks = BlocksOf(i / parts % t_.block_tasks),
            .images = ImagesOf(i / parts / t_.block_tasks),
            .lines = {lines * band / t_.bands, lines * (band + 1) / t_.bands},
            .columns = {columns * part / t_.column_tasks, columns * (part + 1) / t_.column_tasks}};
        const DirectTask task = of.Of(all, at / of.together % of.count());
        if (task.lines.size() > 0 && task.columns.size() > 0) run_(own, task, MemoryOfSlot(slot));
      }
    });
  }

  // The same of planes that are turned: phases are inside a task.
  void SumTapsOfPlanes() const {
    ForRanges(crew_, t_.image_tasks * t_.block_tasks, 1, [&](int slot, int64_t i, int64_t) {
      run_(work_, {.blocks = BlocksOf(i % t_.block_tasks), .images = ImagesOf(i / t_.block_tasks)},
           MemoryOfSlot(slot));
    });
  }

  void SumPixels(const Problem& problem) const {
    const Contraction all = MakePlainContraction(p_, 0);
    const int64_t chunks = MakeChunks(all).count(), parts = t_.tap_parts;
    const int64_t tasks = t_.block_tasks * t_.chunk_parts * parts;
    // The bias is summed beside the first part of the taps.
    const auto run_part = [&](DirectWork own, const DirectTask& task, int64_t part, int slot) {
      const Contraction c = OfTaps(all, t_, part);
      own.c = &c;
      if (part > 0) own.bias_out = nullptr;
      if (own.slabs != nullptr) own.slabs += part * (t_.slab_floats / parts);
      run_(own, task, MemoryOfSlot(slot));
    };
    ForRanges(crew_, problem.samples() * tasks, 1, [&](int slot, int64_t i, int64_t) {
      const int64_t of_chunks = i / parts % t_.chunk_parts;
      run_part(OfSample(problem, i / tasks, work_),
               {.blocks = BlocksOf(i / parts / t_.chunk_parts % t_.block_tasks),
                .chunks = {chunks * of_chunks / t_.chunk_parts,
                           chunks * (of_chunks + 1) / t_.chunk_parts}},
               i % parts, slot);
    });
    if (work_.slabs == nullptr) return;
    ForRanges(crew_, t_.blocks * parts, 1, [&](int slot, int64_t i, int64_t) {
      const int64_t b = i / parts;
      run_part(work_, {.blocks = {b, b + 1}, .adds_slabs = true}, i % parts, slot);
    });
  }

 private:
  Range BlocksOf(int64_t i) const {
    return {i * t_.blocks_each, std::min(t_.blocks, (i + 1) * t_.blocks_each)};
  }
  Range ImagesOf(int64_t i) const {
    return {p_.batch * i / t_.image_tasks, p_.batch * (i + 1) / t_.image_tasks};
  }
  float* MemoryOfSlot(int slot) const {
    return t_.on_stack ? nullptr : memory_ + slot * t_.task_floats;
  }

  const Problem& p_;
  const DirectTiling& t_;
  const DirectWork& work_;
  const Team crew_;
  float* const memory_;
  const RunDirectFunction run_;
};

}  // namespace

void RunDirect(const Problem& problem, const Operands& operands, float beta, const Team& team,
               void* workspace, int64_t workspace_bytes) {
  const DirectTiling t = DirectTilingOf(problem, team.threads, workspace_bytes);
  const Problem p = t.turned ? WithPlanes(problem) : WithLines(problem);
  const bool wgrad = p.pass == Pass::kWgrad;
  const bool own_bias = wgrad && p.bias.present && !p.bias.sums_x;
  float* const memory =
      reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(workspace) + 63) / 64 * 64);
  float* const slabs = memory + (t.on_stack ? 0 : t.slots * t.task_floats);
  const DirectWork work{.problem = &p,
                        .t = &t,
                        .groups = p.groups,
                        .w_group = p.w.g,
                        .g = p.pass == Pass::kDgrad ? operands.y : operands.x,
                        .other = wgrad ? operands.y : operands.w,
                        .out = operands.out,
                        .bias = p.bias.present && !wgrad ? operands.bias : nullptr,
                        .bias_stride = p.bias.stride,
                        .bias_out = own_bias ? operands.bias_out : nullptr,
                        .beta = beta,
                        .f32_out = p.out_type == DataType::kF32,
                        .slabs = t.slab_floats > 0 ? slabs : nullptr};
  const DirectTasks tasks(p, t, work, team.Of(t.slots), memory);
  if (!wgrad) return t.turned ? tasks.SumTapsOfPlanes() : tasks.SumTaps();
  FillDeadTaps(problem, operands.out, beta, team);
  tasks.SumPixels(problem);
  if (p.bias.present && !own_bias) RunBiasGradient(problem, operands, beta, team);
}

}  // namespace convgrad
