#include "plan/planner.h"

#include <cmath>
#include <cstdio>
#include <vector>

#include "core/parallel.h"
#include "core/problem_text.h"
#include "core/text.h"
#include "core/touched_bytes.h"
#include "cpu/multiply_rate.h"

namespace convgrad {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Status CheckRequest(const PlanRequest& request) {
  if (request.threads < 0) {
    return Invalid(Join("option threads is ", request.threads, ", expected 0 (all) or more"));
  }
  if (request.workspace_limit < -1) {
    return Invalid(Join("option workspace_limit is ", request.workspace_limit,
                        ", expected -1 (no limit), 0 or more bytes"));
  }
  if (!std::isfinite(request.beta)) {
    return Invalid(
        Join("option beta is ", std::to_string(request.beta), ", expected a finite number"));
  }
  return {};
}

Result<const KernelRow*> ByName(const Problem& problem, int threads, int64_t limit,
                                std::string_view name) {
  std::vector<std::string_view> names;
  for (const KernelRow& row : KernelTable()) {
    names.push_back(row.name);
    if (row.name != name) continue;
    if (std::string reason = RefusalOf(row, problem, threads, limit); !reason.empty()) {
      return Invalid(Join("kernel '", name, "' cannot run this problem: ", reason));
    }
    return &row;
  }
  return Invalid(Join("kernel '", name, "' is unknown, expected one of ", JoinWords(names, ", ")));
}

// The cheapest of those that may be chosen and accept the problem. One alone is not asked what it
// costs, which takes 1.5 us.
Result<const KernelRow*> Cheapest(const Problem& problem, int threads, int64_t limit) {
  const KernelRow* cheapest = nullptr;
  double least = NAN;
  for (const KernelRow& row : KernelTable()) {
    if (row.only_by_name || !RefusalOf(row, problem, threads, limit).empty()) continue;
    if (cheapest == nullptr) {
      cheapest = &row;
      continue;
    }
    if (std::isnan(least)) least = cheapest->cost(problem, threads);
    const double cost = row.cost(problem, threads);
    if (cost < least) {
      least = cost;
      cheapest = &row;
    }
  }
  if (cheapest != nullptr) return cheapest;
  std::string reasons;
  for (const KernelRow& row : KernelTable()) {
    const std::string reason = RefusalOf(row, problem, threads, limit);
    reasons += Join(reasons.empty() ? "" : "; ", row.name, ": ",
                    reason.empty() ? "it runs only when asked for by name" : reason);
  }
  return Invalid(Join("no kernel can be chosen for this problem (", reasons, ")"));
}

std::string Scaled(double value, std::string_view unit) {
  static constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t p = 0;
  while (value >= 1000 && p + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++p;
  }
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.3g ", value);
  return Join(digits, kPrefixes[p], unit);
}

std::string Milliseconds(double seconds) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g ms", seconds * 1e3);
  return digits;
}

}  // namespace

Result<KernelPlan> MakeKernelPlan(const Problem& problem, const PlanRequest& request) {
  if (Status status = CheckRequest(request); !status.ok()) return status;
  KernelPlan plan{
      .problem = problem,
      .team = {ResolveThreads(request.threads, request.parallel_for), request.parallel_for},
      .workspace_limit = request.workspace_limit,
      .beta = request.beta,
      .forced = !request.kernel.empty()};
  Result<const KernelRow*> row =
      plan.forced ? ByName(problem, plan.team.threads, plan.workspace_limit, request.kernel)
                  : Cheapest(problem, plan.team.threads, plan.workspace_limit);
  if (!row.ok()) return row.status();
  plan.kernel = *row;
  plan.workspace_bytes =
      plan.kernel->workspace_bytes(problem, plan.team.threads, plan.workspace_limit);
  return plan;
}

std::string ExplainKernelPlan(const KernelPlan& plan) {
  const Problem& p = plan.problem;
  const int running = std::min(plan.team.threads, UsableCores());  // at a time
  std::string text;
  const auto line = [&text](std::string_view key, std::string_view value) {
    text += Join(key, std::string(12 - std::min<size_t>(key.size(), 11), ' '), value, "\n");
  };
  line("problem", ToText(p));
  line("work", Join(Scaled(2 * CountMultiplyAdds(p), "FLOP"), ", ",
                    Scaled(CountTouchedBytes(p), "B"), " if what products need is touched once"));
  for (const KernelRow& row : KernelTable()) {
    const std::string reason = RefusalOf(row, p, plan.team.threads, plan.workspace_limit);
    const std::string cost = Milliseconds(row.cost(p, running) + kCallSeconds);
    std::string verdict = "refuses: " + reason;
    if (reason.empty()) verdict = Join("can run it, expected ", cost);
    if (reason.empty() && row.only_by_name) verdict += ", only when asked for by name";
    if (&row == plan.kernel) {
      verdict = plan.forced ? "runs: asked for by name" : "runs: the smallest expected time";
    }
    line("kernel", Join(row.name, " ", verdict, " (", row.summary, ")"));
  }
  line("tile", plan.kernel->tile(p, plan.team.threads, plan.workspace_limit));
  char share[32];
  std::snprintf(share, sizeof share, "%.3g", plan.kernel->error_bound(p));
  line("error", Join("at most ", share, " of the sum of an element's |terms|, then one rounding"));
  line("threads", Join(plan.team.threads));
  line("workspace", Join(plan.workspace_bytes, " bytes",
                         plan.workspace_limit < 0 ? std::string(", no limit")
                                                  : Join(" of at most ", plan.workspace_limit)));
  const double seconds = plan.kernel->cost(p, running) + kCallSeconds;
  line("expected", Join(Milliseconds(seconds), ", ",
                        Scaled(2 * CountMultiplyAdds(p) / seconds, "FLOP/s"), ": ", RateText()));
  return text;
}

}  // namespace convgrad
