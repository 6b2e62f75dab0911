#include "plan/kernel_table.h"

#include "core/text.h"
#include "cpu/direct.h"
#include "cpu/engine.h"
#include "cpu/flat.h"
#include "ref/oracle.h"

namespace convgrad {
namespace {

double OutPixels(const Problem& p) {
  double count = 1;
  for (const Axis& axis : p.axes) count *= static_cast<double>(axis.out);
  return count;
}

double Taps(const Problem& p) {
  double count = 1;
  for (const Axis& axis : p.axes) count *= static_cast<double>(axis.taps);
  return count;
}

constexpr KernelRow kContract{
    .name = "contract",
    .summary = "matrix products of panels packed from the tensors, f32 sums in a fixed order",
    .refusal = [](const Problem&, int, int64_t) { return std::string(); },
    .cost = [](const Problem& problem, int threads) { return ExpectedSeconds(problem, threads); },
    .error_bound = ContractionErrorBound,
    .workspace_bytes =
        [](const Problem& problem, int threads, int64_t limit) {
          return TilingOf(problem, threads, limit).workspace_bytes();
        },
    .tile = [](const Problem& problem, int threads,
               int64_t limit) { return TilingText(problem, threads, limit); },
    .run = RunContractions,
    .per_sample = true,
    .bias_alone = true,
};

constexpr KernelRow kDirect{
    .name = "direct",
    .summary = "depthwise and small groups: vectors across groups, or along the pixels of a line",
    .refusal = DirectRefusal,
    .cost = [](const Problem& problem, int threads) { return DirectSeconds(problem, threads); },
    .error_bound = ContractionErrorBound,
    .workspace_bytes =
        [](const Problem& problem, int threads, int64_t limit) {
          return DirectTilingOf(problem, threads, limit).workspace_bytes();
        },
    .tile = DirectText,
    .run = RunDirect,
    .per_sample = true,
};

constexpr KernelRow kFlat{
    .name = "flat",
    .summary = "few outputs: channels copied to planes, vectors along pixels of lines and images",
    .refusal = FlatRefusal,
    .cost = [](const Problem& problem, int threads) { return FlatSeconds(problem, threads); },
    .error_bound = ContractionErrorBound,
    .workspace_bytes =
        [](const Problem& problem, int threads, int64_t limit) {
          return FlatTilingOf(problem, threads, limit).workspace_bytes();
        },
    .tile = FlatText,
    .run = RunFlat,
};

constexpr KernelRow kOracle{
    .name = "oracle",
    .summary = "f64 loop nests, one output element at a time, rounded once: exact and slow",
    .refusal = [](const Problem&, int, int64_t) { return std::string(); },
    .cost =
        [](const Problem& problem, int threads) {
          // 0.45 multiply-adds per ns and thread: Neoverse-V1, 2.6 GHz, GCC 12.
          return CountMultiplyAdds(problem) / (0.45e9 * threads);
        },
    .error_bound =
        [](const Problem& problem) {
          const double terms =
              problem.pass == Pass::kWgrad
                  ? static_cast<double>(problem.per_sample.present ? 1 : problem.batch) *
                        OutPixels(problem)
                  : static_cast<double>(problem.pass == Pass::kDgrad ? problem.co : problem.ci) *
                        Taps(problem);
          return (terms + 2) * 0x1p-53;
        },
    .workspace_bytes = [](const Problem&, int, int64_t) { return int64_t{0}; },
    .tile = [](const Problem&, int, int64_t) { return std::string("one output element"); },
    .run = [](const Problem& problem, const Operands& operands, float beta, const Team& team, void*,
              int64_t) { RunOracle(problem, operands, beta, team); },
    .per_sample = true,
    .bias_alone = true,
    .only_by_name = true,
};

constexpr KernelRow kTable[] = {kDirect, kFlat, kContract, kOracle};

}  // namespace

std::span<const KernelRow> KernelTable() { return kTable; }

std::string RefusalOf(const KernelRow& row, const Problem& problem, int threads, int64_t limit) {
  if (problem.per_sample.present && !row.per_sample) return "it sums over all images";
  if (problem.bias.alone && !row.bias_alone) return "it computes no bias gradient alone";
  return row.refusal(problem, threads, limit);
}

}  // namespace convgrad
