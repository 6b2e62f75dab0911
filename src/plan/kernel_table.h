// The kernels: one row each. The planner, `explain`, the command and the tests read this table, so
// a kernel is added by adding one file and one row. Step 4 of the story.
#ifndef CONVGRAD_PLAN_KERNEL_TABLE_H_
#define CONVGRAD_PLAN_KERNEL_TABLE_H_

#include <span>
#include <string>
#include <string_view>

#include "core/parallel.h"
#include "core/problem.h"

namespace convgrad {

struct KernelRow {
  std::string_view name;
  std::string_view summary;
  // As RefusalOf, of what the members below do not say.
  std::string (*refusal)(const Problem& problem, int threads, int64_t limit);
  // Closed-form estimate, in seconds, on `threads` threads; the smallest wins.
  double (*cost)(const Problem& problem, int threads);
  // As a share of the sum of the magnitudes of an element's terms, before rounding to its type.
  double (*error_bound)(const Problem& problem);
  // At most `limit` bytes, -1: no limit.
  int64_t (*workspace_bytes)(const Problem& problem, int threads, int64_t limit);
  std::string (*tile)(const Problem& problem, int threads, int64_t limit);
  void (*run)(const Problem& problem, const Operands& operands, float beta, const Team& team,
              void* workspace, int64_t workspace_bytes);
  // What it has beyond the three passes: a wgrad for each image, the bias gradient without w.
  bool per_sample = false;
  bool bias_alone = false;
  // For checking results, not for computing them: never chosen, but by name.
  bool only_by_name = false;
};

std::span<const KernelRow> KernelTable();

// Empty: `row` can run the problem with that much workspace. Else the reason why not, as the end of
// a sentence.
std::string RefusalOf(const KernelRow& row, const Problem& problem, int threads, int64_t limit);

}  // namespace convgrad

#endif  // CONVGRAD_PLAN_KERNEL_TABLE_H_
