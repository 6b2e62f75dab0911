#include "plan/kernel_table.h"

#include "ref/oracle.h"

namespace convgrad {
namespace {

constexpr KernelRow kOracle{
    .name = "oracle",
    .summary = "f64 loop nests, one output element at a time, rounded once: exact and slow",
    .refusal = [](const Problem&) { return std::string(); },
    .cost =
        [](const Problem& problem, int threads) {
          // 0.45 multiply-adds per ns and thread: Neoverse-V1, 2.6 GHz, GCC 12.
          return CountMultiplyAdds(problem) / (0.45e9 * threads);
        },
    .workspace_bytes = [](const Problem&, int, int64_t) { return int64_t{0}; },
    .tile = [](const Problem&) { return std::string("one output element"); },
    .run = [](const Problem& problem, const Operands& operands, float beta, int threads,
              void*) { RunOracle(problem, operands, beta, threads); },
};

constexpr KernelRow kTable[] = {kOracle};

}  // namespace

std::span<const KernelRow> KernelTable() { return kTable; }

}  // namespace convgrad
