#include "cpu/engine.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "cpu/block_tasks.h"
#include "cpu/contract.h"
#include "cpu/dead_taps.h"
#include "cpu/direct_group_pixels.h"
#include "cpu/lines.h"
#include "cpu/multiply_rate.h"

namespace convgrad {
namespace {

RunBlockFunction BlockFunctionOf(DataType type) {
  return type == DataType::kBF16  ? RunBlockBF16
         : type == DataType::kF16 ? RunBlockF16
                                  : RunBlockF32;
}

// The problem of a copy. Where each image has a gradient of its own, that of one image.
Problem OneSample(Problem p) {
  if (p.per_sample.present) p.batch = 1;
  return p;
}

void RunTask(const BlockTasks::Place& at, const Tiling& t, const Contraction& c,
             const BlockOperands& operands, DataType type, float* memory, const Contraction* odd) {
  const Range rows{at.rows.begin, std::min(at.rows.end, c.rows())};
  const Range o{at.o.begin, std::min(at.o.end, c.o)};
  if (rows.size() <= 0 || o.size() <= 0) return;  // a phase with fewer pixels than the first
  BlockFunctionOf(type)(c, t, operands, t.o_is_n ? rows : o, t.o_is_n ? o : rows, memory,
                        {.odd = odd});
}

// Each slot's memory, on a cache line of its own.
float* SlotMemory(const Tiling& tiling, void* workspace, int slot) {
  if (tiling.slot_floats == 0) return nullptr;
  const uintptr_t first = reinterpret_cast<uintptr_t>(workspace) +
                          static_cast<uintptr_t>(slot * tiling.slot_floats) * sizeof(float);
  return reinterpret_cast<float*>((first + 63) / 64 * 64);
}

// Chunks side by side, `slabs` of them at a time: c = beta * out, c = c + slab for each slab in
// order, out = c. The order is that of a block alone. Threads wait for each other twice for each
// batch of slabs, and once more where rows are stored together.
void RunSlabs(const Contraction& c, const Tiling& t, const BlockOperands& operands, DataType type,
              const Team& team, void* workspace) {
  const int64_t chunks = MakeChunks(c).count(), floats = t.slab_floats();
  const int64_t rows = t.o_is_n ? c.rows() : c.o, parts = CeilDiv(rows, t.part_rows);
  const Range all{0, t.o_is_n ? c.o : c.rows()};
  float* const sums = SlotMemory(t, workspace, static_cast<int>(t.slots));
  float* const slabs = sums + floats;
  const auto step = [&](int slot, BlockStep::Kind kind, Range m, Range n, int64_t chunk,
                        float* whole) {
    const BlockStep what{kind, chunk, whole + m.begin * t.nb + n.begin * t.mr};
    BlockFunctionOf(type)(c, t, operands, m, n, SlotMemory(t, workspace, slot), what);
  };
  int64_t first = 0;
  do {  // once, too, for an empty sum: what was planned for may be another phase's
    const int64_t count = std::min(t.slabs, chunks - first);
    ForRanges(team, count * parts, 1, [&](int slot, int64_t i, int64_t) {
      const int64_t chunk = i / parts, begin = i % parts * t.part_rows;
      step(slot, BlockStep::kChunk, {begin, std::min(begin + t.part_rows, rows)}, all,
           first + chunk, slabs + chunk * floats);
    });
    ForRanges(team, CeilDiv(rows, t.mr), 1, [&](int slot, int64_t panel, int64_t) {
      const Range m{panel * t.mr, std::min((panel + 1) * t.mr, rows)};
      if (first == 0) step(slot, BlockStep::kLoad, m, all, 0, sums);
      for (int64_t i = 0; i < count; ++i) {
        const float* slab = slabs + i * floats;
        for (int64_t e = m.begin * t.nb; e < (panel + 1) * t.mr * t.nb; ++e) sums[e] += slab[e];
      }
      if (first + count == chunks && !t.stores_last) step(slot, BlockStep::kStore, m, all, 0, sums);
    });
    first += t.slabs;
  } while (first < chunks);
  if (!t.stores_last) return;
  // All taps of a block of channels, which share cache lines of the result, and columns, which do
  // not: as many at once as leave every thread two parts.
  const int64_t most = Tiling::kMostColumns / t.mr * t.mr;
  const int64_t together = std::min(most, CeilDiv(c.row_block * c.taps(), t.mr) * t.mr);
  const int64_t row_parts = CeilDiv(rows, together), panels = CeilDiv(all.end, t.nr);
  const int64_t at_once = std::max<int64_t>(1, panels * row_parts / (2 * team.threads)) * t.nr;
  const int64_t column_parts = CeilDiv(all.end, at_once);
  ForRanges(team, row_parts * column_parts, 1, [&](int slot, int64_t i, int64_t) {
    const int64_t m = i / column_parts * together, n = i % column_parts * at_once;
    step(slot, BlockStep::kStore, {m, std::min(m + together, rows)},
         {n, std::min(n + at_once, all.end)}, 0, sums);
  });
}

// Contractions of a problem on this CPU.
class Contractions {
 public:
  explicit Contractions(const Problem& problem)
      : problem_(OneSample(problem)),
        unit_(PickedVectorUnit(problem.type)),
        largest_(MakeLargestContraction(problem_)) {
    const int64_t terms_each = TermsEach(problem, largest_, unit_);
    largest_.terms_each = terms_each;
    if (HasBoxes(problem_, largest_, unit_)) {
      largest_ = MakeLargestContraction(problem_, true);
      largest_.terms_each = terms_each;
    }
  }

  const VectorUnit& unit() const { return unit_; }
  const Contraction& largest() const { return largest_; }
  Contraction At(int64_t group, int64_t phase, bool odd = false) const {
    Contraction c = MakeContraction(problem_, group, phase, odd, largest_.boxes);
    c.terms_each = largest_.terms_each;
    return c;
  }

 private:
  Problem problem_;
  VectorUnit unit_;
  Contraction largest_;
};

double BoundOf(const Contraction& c, const VectorUnit& unit) {
  const Chunks chunks = MakeChunks(c);
  const double count = static_cast<double>(chunks.count());
  const Tiling t = MakeTiling(c, 1, 1, 0, unit);
  // Roundings of a chain, each by half a unit of the last place. A quad's two pairs of products are
  // summed and added one after the other, and each of these sums is rounded to odd: by up to a
  // whole unit. All others add one product after the other, to nearest.
  const double chain = static_cast<double>(t.terms_each == 4 ? 2 * t.kc_floats + 2 : t.kc);
  // Each term passes at most so many: those of its chain, one for each chunk that is added after
  // it, and those of beta and bias.
  const double bound = ((chunks.chained ? chain * count : chain + count) + 3) * 0x1p-24;
  // That errors only add up is known of rounding to nearest.
  return t.terms_each == 4 ? std::expm1(bound) : bound;
}

int64_t Copies(const Problem& p) {
  // Without channels there may be any number of groups, and nothing to write for any image.
  if (p.per_sample.present && (p.ci == 0 || p.co == 0)) return 0;
  return p.samples() * p.groups * CountPhases(p);
}

// Of a few images, whose blocks are too few for the threads, each is summed by all threads as one
// image alone is, if its chunks are summed side by side: a loop over the images after all. Called
// again with the workspace that came out as the limit, it gives the same tiling, as MakeTiling.
Tiling ChooseTiling(const Contractions& contractions, const Problem& p, int threads,
                    int64_t limit) {
  const Contraction& largest = contractions.largest();
  if (p.samples() > 1 && p.groups == 1 && p.samples() <= threads / 2) {
    const Tiling t = MakeTiling(largest, 1, threads, limit, contractions.unit());
    if (t.slabs > 0) return t;
  }
  return MakeTiling(largest, Copies(p), threads, limit, contractions.unit());
}

BlockOperands OfSample(const Problem& p, BlockOperands operands, int64_t sample) {
  if (sample == 0) return operands;
  operands.g = At(operands.g, p.type, sample * p.x.n);
  operands.other = At(operands.other, p.type, sample * p.y.n);
  operands.out = At(operands.out, p.out_type, sample * p.per_sample.w);
  return operands;
}

Tiling BiasTiling(const Problem& p, int threads) {
  return MakeTiling(MakeBiasContraction(OneSample(p)), p.samples(), threads, 0,
                    PickedVectorUnit(DataType::kF32));
}

// How a type is multiplied, and why not otherwise.
std::string WayOf(DataType type, const VectorUnit& unit, int64_t terms_each, const Contraction& c) {
  if (type == DataType::kF32) return "";
  if (terms_each > 1) return Join(", ", unit.bf16_instruction);
  constexpr std::string_view kWidened = ", widened to f32 when it is packed: ";
  if (type == DataType::kF16) return Join(kWidened, "no instruction for it is faster");
  if (unit.terms_each == 1) return Join(kWidened, "no instruction for it, or none that is faster");
  return Join(kWidened, unit.bf16_instruction,
              c.channels == 1                             ? " has no use for one channel"
              : c.taps() > Chunks::kLongestOfElements / 4 ? " takes sums of up to 216 taps"
                                                          : " is no faster for so few channels");
}

}  // namespace

int64_t TasksWorthwhile(const Problem& p, int64_t tasks, int threads) {
  const double work = (CountMultiplyAdds(p) + CountBytes(p)) / 3e5;
  return std::clamp<int64_t>(tasks, 1,
                             static_cast<int64_t>(std::clamp(work, 1.0, double(threads))));
}

Tiling TilingOf(const Problem& problem, int threads, int64_t limit) {
  if (problem.bias.alone) return BiasTiling(problem, threads);
  const Contractions contractions(problem);
  return ChooseTiling(contractions, problem, threads, limit);
}

namespace {

// Whether blocks of a weight gradient can add up y for the bias gradient, where they have packed
// it: their chunks are those of MakeBiasContraction. With slabs no block has a whole sum.
bool SumsBiasBeside(const Problem& p, const Contraction& largest, const Tiling& t) {
  return p.pass == Pass::kWgrad && p.bias.present && !p.bias.sums_x && t.slabs == 0 &&
         t.terms_each == 1 && largest.rows() > 0;
}

// Phases that a thread runs on the same pixels one after the other, since they write between each
// other: on all pixels, each would fetch every cache line of x again. (Neoverse-N1, 2 to 33
// channels first, bf16, dgrad of stride 3: 144 ms, so 133.) If that leaves enough tasks for all.
int64_t PhasesInTurns(const Problem& p, const Tiling& t, const Contraction& largest, int threads) {
  const int64_t phases = CountPhasesOfLine(p);
  const int64_t tasks = BlockTasks(t, largest, Copies(p)).count() / phases;
  return threads == 1 || tasks >= 4 * threads ? phases : 1;
}

// True: the bias gradient is written, too.
bool RunPass(const Problem& p, const Operands& operands, float beta, const Team& team,
             void* workspace, int64_t workspace_bytes) {
  const bool writes_w = p.pass == Pass::kWgrad, dgrad = p.pass == Pass::kDgrad;
  const Contractions contractions(p);
  const Tiling tiling = ChooseTiling(contractions, p, team.threads, workspace_bytes);
  const Team crew = team.Of(tiling.slots);
  const int64_t turns = PhasesInTurns(p, tiling, contractions.largest(), crew.threads);
  const BlockTasks tasks(tiling, contractions.largest(), Copies(p), turns);
  const int64_t phases = CountPhases(p);
  BlockOperands all{.g = dgrad ? operands.y : operands.x,
                    .other = writes_w ? operands.y : operands.w,
                    .out = operands.out,
                    .bias_stride = p.bias.stride,
                    .beta = beta,
                    .f32_out = p.out_type == DataType::kF32};
  const bool sums_bias = SumsBiasBeside(p, contractions.largest(), tiling);
  for (int64_t i = 0; i < (tiling.slabs > 0 ? p.samples() : 0); ++i) {  // one group, one phase
    BlockOperands own = OfSample(p, all, i);
    if (p.bias.present && !writes_w) own.bias = operands.bias;
    RunSlabs(contractions.At(0, 0), tiling, own, p.type, crew, workspace);
  }
  const int64_t blocks = tiling.slabs > 0 ? 0 : tasks.count();
  const auto run = [&](int slot, int64_t task) {
    const BlockTasks::Place at = tasks.At(task);
    const int64_t phase = PhaseInOrder(p, at.copy % phases);
    const int64_t group = at.copy / phases % p.groups, sample = at.copy / phases / p.groups;
    const Contraction c = contractions.At(group, phase);
    BlockOperands own = OfSample(p, all, sample);
    if (p.bias.present && !writes_w) {
      own.bias = At(operands.bias, p.type, group * (dgrad ? p.ci : p.co) * p.bias.stride);
    }
    if (sums_bias) {
      own.bias_out = At(operands.bias_out, p.out_type,
                        sample * p.per_sample.bias + group * p.co * p.bias.stride);
    }
    const Contraction odd = c.zipped ? contractions.At(group, phase, true) : Contraction{};
    RunTask(at, tiling, c, own, p.type, SlotMemory(tiling, workspace, slot),
            c.zipped ? &odd : nullptr);
  };
  ForRanges(crew, blocks / turns, 1, [&](int slot, int64_t i, int64_t) {
    for (int64_t turn = 0; turn < turns; ++turn) run(slot, i * turns + turn);
  });
  return sums_bias;
}

}  // namespace

// Blocks without rows, which do nothing but add up what they pack.
void RunBiasGradient(const Problem& p, const Operands& operands, float beta, const Team& team) {
  const Contraction c = MakeBiasContraction(OneSample(p));
  const Tiling tiling = BiasTiling(p, team.threads);
  const void* const v = p.bias.sums_x ? operands.x : operands.y;
  const int64_t each = tiling.o_is_n ? tiling.nb : tiling.mb, blocks = CeilDiv(c.o, each);
  const Team crew = team.Of(tiling.slots);
  ForRanges(crew, p.samples() * blocks, 1, [&](int, int64_t task, int64_t) {
    const int64_t sample = task / blocks, first = task % blocks * each;
    const Range o{first, std::min(first + each, c.o)}, none{0, 0};
    const BlockOperands own{
        .other = At(v, p.type, sample * (p.bias.sums_x ? p.x.n : p.y.n)),
        .bias_stride = p.bias.stride,
        .bias_out = At(operands.bias_out, p.out_type, sample * p.per_sample.bias),
        .beta = beta,
        .f32_out = p.out_type == DataType::kF32};
    BlockFunctionOf(p.type)(c, tiling, own, tiling.o_is_n ? none : o, tiling.o_is_n ? o : none,
                            nullptr, {});
  });
}

void RunContractions(const Problem& p, const Operands& operands, float beta, const Team& team,
                     void* workspace, int64_t workspace_bytes) {
  if (p.pass == Pass::kWgrad && !p.bias.alone) FillDeadTaps(p, operands.out, beta, team);
  const bool bias_written =
      !p.bias.alone && RunPass(p, operands, beta, team, workspace, workspace_bytes);
  if (p.pass == Pass::kWgrad && p.bias.present && !bias_written) {
    RunBiasGradient(p, operands, beta, team);
  }
}

std::string TilingText(const Problem& problem, int threads, int64_t limit) {
  const Tiling t = TilingOf(problem, threads, limit);
  const Contractions contractions(problem);
  const VectorUnit& unit = contractions.unit();
  if (problem.bias.alone) {
    return Join("channels are added up as they are packed, ", t.o_is_n ? t.nb : t.mb,
                " at a time, in chunks of ", t.kc, " terms; ", unit.name);
  }
  const Contraction c = contractions.At(0, 0);
  const Lines lines = LinesOf(c, t, unit.lanes);
  return Join(
      t.mr, "x", t.nr, " sums in registers, vectors along ", t.o_is_n ? "channels" : "pixels",
      "; blocks of ", t.mb, "x", t.nb,
      t.tail_from >= 0 ? Join(", the last of ", t.tail_rows, t.o_is_n ? " rows" : " columns") : "",
      ", chunks of ", t.kc, " terms",
      t.slabs > 0 ? Join(", ", t.slabs, " of them side by side") : "",
      lines.shared ? Join("; a line is packed once for ",
                          lines.planes ? c.axes[kAxes - 2].taps * c.axes[kAxes - 1].taps
                                       : c.axes[kAxes - 1].taps,
                          " taps")
                   : "",
      t.a_by_rows && CopiesTapRuns(c) ? "; taps of a line are copied at once" : "",
      t.positions > 0 ? "; what taps read is packed once for all of them" : "",
      t.twins ? "; pixels are packed once for two phases" : "",
      t.boxes ? "; of taps, those that the pixels of a tile meet" : "", "; ", unit.name,
      WayOf(problem.type, unit, t.terms_each, contractions.largest()));
}

double ContractionErrorBound(const Problem& problem) {
  const Contractions contractions(problem);
  const double bound =
      problem.bias.alone ? 0 : BoundOf(contractions.largest(), contractions.unit());
  if (problem.pass != Pass::kWgrad || !problem.bias.present) return bound;
  return std::max(
      bound, BoundOf(MakeBiasContraction(OneSample(problem)), PickedVectorUnit(DataType::kF32)));
}

namespace {

// Of a small group, most of a tile is empty, and packing takes more than multiplying: 1 to 2 % for
// one channel, 11 to 22 for four, 32 to 42 for 16; of two numbers, as for their harmonic mean (4 to
// 3 7 %, 8 to 2 6, 2 to 16 5). One group alone has tiles for few channels, but (Neoverse-N1, 69
// random problems) no more than that for fours of them, 2 to 8 % where they are inside, and 1 to 4
// where sums run on through tiny images or runs of a few pixels are packed.
double ShareOfTile(const Problem& p) {
  constexpr double kFull = 0.8, kFew = 0.05, kManyChannels = 12;
  constexpr int64_t kShortLine = 8;
  const double ci = static_cast<double>(p.ci), co = static_cast<double>(p.co);
  const double mean = 2 * ci * co / std::max(ci + co, 1.0), narrow = std::min(0.36, 0.028 * mean);
  if (HasSmallGroups(p) || std::max(ci, co) == 1) return narrow;
  if (!HasOneSmallGroup(p) || mean > kManyChannels) return kFull;
  if (p.ci % 4 == 0 && p.co % 4 == 0) return narrow;
  const Axis& last = p.axes[kAxes - 1];
  if (p.pass != Pass::kWgrad) return p.x.c == 1 && last.dilation == 1 ? kFew : kFull;
  double pixels = 1;
  for (const Axis& axis : p.axes) pixels *= static_cast<double>(axis.out);
  return pixels < Chunks::kTinyImage || last.out < kShortLine ? kFew : kFull;
}

// How many times as long as that a tile of one small group takes on 16 lanes, where it has few rows
// to share what is packed with, or the direct kernel's vectors are full. (Sapphire Rapids, f32,
// 1728 problems of 1 to 16 channels, 1x1 to 7x7, both layouts: with these the chosen kernel
// takes 1.04 times the time of the better one, geometric mean, without them 1.15; three times and
// more 5 of them, without 64.)
double DelayOfOneSmallGroup(const Problem& p) {
  constexpr int64_t kLanes = 16, kNearlyFull = 12;
  constexpr double kOneChannel = 8, kTwoChannels = 4, kFullVector = 4, kFours = 2, kSquare = 1.3;
  if (p.pass == Pass::kWgrad) {
    if (p.ci == 1) return p.co > 8 ? kFours : kOneChannel;
    if (p.ci == 2) return kTwoChannels;
    if (p.co == kLanes && p.ci > 4) return kFullVector;
    return p.ci == p.co && p.ci % 4 == 0 ? kSquare : 1;
  }
  if (p.x.c != 1) return 1;
  const int64_t channels = p.pass == Pass::kFprop ? p.ci : p.co;
  const int64_t o = p.pass == Pass::kFprop ? p.co : p.ci;
  bool one_tap = true;
  for (const Axis& axis : p.axes) one_tap = one_tap && axis.taps == 1;
  if (channels == 1) return o > 4 && !one_tap ? kOneChannel : 1;
  if (o == kLanes) return channels >= kNearlyFull ? kFullVector : 1;
  return channels == 4 && o > 4 && o % 4 == 0 ? kFours : 1;
}

// Cycles of packing g for fprop and dgrad, on 16 lanes: of few o, whom each packed value meets,
// they decide. (385 random problems of up to 64 o, Cascade Lake: half of them take 0.6 to 1.7 times
// what these and the products of tiles make together, which were 4 to 11 times too short alone.
// Layers of 56x56 of 64 channels to 64, 16 and 4: 1.0, 0.9 and 1.2 times, channels last.)
double PackingCycles(const Problem& p, const Contraction& largest) {
  constexpr int64_t kFours = 4, kLongLine = 16, kVeryLongLine = 128, kNear = 2;
  constexpr double kMostPadding = 50;
  const auto count = [](int64_t n) { return static_cast<double>(n); };
  double values = count(p.groups) * count(CountPhases(p)) * largest.share * count(largest.images) *
                  count(largest.channels);
  for (const GatherAxis& axis : largest.axes) values *= count(axis.pixels) * count(axis.taps);
  if (largest.boxes) values /= std::min(kMostPadding, PaddedMultiple(p));
  const bool wide = p.type == DataType::kF32;
  const GatherAxis& last = largest.axes[kAxes - 1];
  if (largest.channels == 1) return values * (last.pixels >= kVeryLongLine ? 4 : 16);
  if (largest.g.channel == 1) {
    if (largest.channels >= kFours) return values * (wide ? 1.9 : 2.9);
    return values * (wide ? 8.8 : 12.6);
  }
  if (last.pixel_step > kNear) return values * (wide ? 5.5 : 14);
  return values * (last.pixels >= kLongLine ? 1.5 : 7);
}

// Products of tiles with padding, as a multiple of those inside, of all passes (PaddedMultiple, by
// which boxes are chosen, is of those that have boxes): all of them but along the outermost axis,
// where whole tiles leave them out; though not where a tile of a wgrad has several taps, nor along
// long lines. (276 random problems that both kernels run, Neoverse-N1: it changes five choices, to
// 0.19, 0.54, 0.59, 0.67 and 0.82 of the time.)
double PaddedMultipleOfFew(const Problem& p) {
  constexpr int64_t kChannelsOfTile = 8, kShortLine = 48;
  const std::array<Range, kAxes> live = LiveTaps(p);
  const bool dgrad = p.pass == Pass::kDgrad, wgrad = p.pass == Pass::kWgrad;
  const bool skips = !wgrad || p.ci >= kChannelsOfTile;
  double multiple = 1;
  bool outermost = true;
  for (int a = 0; a < kAxes; ++a) {
    const Axis& axis = p.axes[a];
    const double inside = CountPairs(axis);
    const bool tiles_inside = a + 1 < kAxes || (!wgrad && axis.out <= kShortLine);
    const bool skipped = outermost && skips && tiles_inside;
    if (axis.taps > 1 || axis.out > 1) outermost = false;
    if (inside == 0 || (skipped && !outermost)) continue;
    const double all = dgrad ? static_cast<double>(axis.in) * static_cast<double>(axis.taps) /
                                   static_cast<double>(axis.stride)
                             : static_cast<double>(axis.out) * static_cast<double>(live[a].size());
    multiple *= std::max(1.0, all / inside);
  }
  return multiple;
}

}  // namespace

double ExpectedSeconds(const Problem& problem, int threads) {
  // 80 % of what the vector unit multiplies; of AMX, which packing does not feed, a quarter of its
  // products; and 10 GB/s for each thread.
  const Contractions contractions(problem);
  const VectorUnit& unit = contractions.unit();
  const int64_t each = contractions.largest().terms_each;
  const double terms = static_cast<double>(each * (each > 1 && unit.k_unit > 1 ? 4 : 1));
  // Of what the direct kernel could sum along pixels instead, a tile multiplies less: 5 to 47 %,
  // two of 32 problems of one group 60 (Sapphire Rapids).
  constexpr double kFewOfWide = 0.3;
  const double any = ShareOfTile(problem);
  const double share = HasGroupsAlongPixels(problem) ? std::min(any, kFewOfWide) : any;
  const double per_second = MultiplyAddsPerSecond(unit) * share * terms * threads;
  const bool few = HasSmallGroups(problem) || HasOneSmallGroup(problem);
  const bool pads = few && !contractions.largest().boxes;
  const bool delays = unit.lanes == 16 && each == 1 && HasOneSmallGroup(problem);
  const double multiple =
      (pads ? PaddedMultipleOfFew(problem) : 1) * (delays ? DelayOfOneSmallGroup(problem) : 1);
  const double products = CountMultiplyAdds(problem) / per_second;
  double seconds = multiple * products;
  if (unit.lanes == 16 && each == 1 && problem.pass != Pass::kWgrad) {
    const double packing =
        PackingCycles(problem, contractions.largest()) / (RateOfCore().hertz * threads);
    seconds = std::max(seconds, products + packing);
  }
  return std::max(seconds, CountBytes(problem) / (10e9 * threads));
}

}  // namespace convgrad
