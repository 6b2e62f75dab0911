// Problem -> kernel, threads, workspace, with reasons. Step 4 of the story; knows no operation.
#ifndef CONVGRAD_PLAN_PLANNER_H_
#define CONVGRAD_PLAN_PLANNER_H_

#include <string>
#include <string_view>

#include "convgrad/status.h"
#include "core/problem.h"
#include "plan/kernel_table.h"

namespace convgrad {

struct PlanRequest {
  int threads = 0;               // 0: what the machine has
  int64_t workspace_limit = -1;  // -1: none
  float beta = 0;
  std::string_view kernel;  // empty: the cheapest that accepts the problem
  ParallelFor parallel_for{};
};

struct KernelPlan {
  Problem problem;
  const KernelRow* kernel = nullptr;
  Team team;
  int64_t workspace_limit = -1;
  int64_t workspace_bytes = 0;
  float beta = 0;
  bool forced = false;  // by name
};

Result<KernelPlan> MakeKernelPlan(const Problem& problem, const PlanRequest& request);

inline void RunKernelPlan(const KernelPlan& plan, const Operands& operands, void* workspace) {
  plan.kernel->run(plan.problem, operands, plan.beta, plan.team, workspace, plan.workspace_bytes);
}

// Lines of "what  value": problem, work, every kernel with its reason, tile, workspace,
// expectation.
std::string ExplainKernelPlan(const KernelPlan& plan);

}  // namespace convgrad

#endif  // CONVGRAD_PLAN_PLANNER_H_
