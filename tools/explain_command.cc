#include <cstdio>

#include "convgrad/backward.h"
#include "core/problem_text.h"
#include "core/text.h"
#include "plan/planner.h"
#include "tools/commands.h"
#include "tools/problem_words.h"
#include "tools/refusals.h"

namespace convgrad::tools {
namespace {

// A canonical problem, as `explain` itself prints it.
bool IsCanonical(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  const std::vector<std::string_view> first = SplitWords(words[0]);
  return !first.empty() && (first[0] == "fprop" || first[0] == "dgrad" || first[0] == "wgrad");
}

Result<int> ExplainCanonical(const ExplainRequest& request) {
  Result<Problem> problem = ParseProblem(JoinWords(request.words, " "));
  if (!problem.ok()) return problem.status();
  if (request.options.per_sample && !problem->per_sample.present) {
    return Status(StatusCode::kInvalidArgument,
                  "--per_sample is given with a canonical problem, which has a word for it: "
                  "wgrad f32 ... per_sample");
  }
  Result<KernelPlan> plan =
      MakeKernelPlan(*problem, {request.options.threads, request.options.workspace_limit,
                                request.options.beta, request.options.kernel});
  if (!plan.ok()) return plan.status();
  std::fputs(ExplainKernelPlan(*plan).c_str(), stdout);
  return 0;
}

// All gradients of a forward operation that have extents.
Result<int> ExplainBackward(const ExplainRequest& request) {
  Result<Case> item = ParseCase(request.words);
  if (!item.ok()) return item.status();
  Result<BackwardPlan> plan =
      BackwardPlan::Make(item->operation, item->inputs, item->outputs, request.options);
  if (!plan.ok()) return plan.status();
  std::fputs(plan->Explain().c_str(), stdout);
  return 0;
}

}  // namespace

Result<int> ExplainProblems(const ExplainRequest& request) {
  if (!request.words.empty() && FindBackward(request.words[0]) != nullptr) {
    return ExplainBackward(request);
  }
  if (IsCanonical(request.words)) return ExplainCanonical(request);
  PassedOver passed_over;
  Result<std::vector<Case>> cases = ParseCases(request.words, request.options.per_sample,
                                               request.lenient ? &passed_over : nullptr);
  if (!cases.ok()) return cases.status();
  if (Status status = CheckCases(*cases, request.options); !status.ok()) return status;
  std::fputs(passed_over.ToText().c_str(), stdout);
  int refused = 0;
  bool first = passed_over.ToText().empty();
  for (const Case& item : *cases) {
    Result<Plan> plan = Plan::Make(item.operation, item.inputs, item.outputs, request.options);
    const std::string text =
        plan.ok() ? plan->Explain() : RefusalText(plan.status().message(), item.text) + "\n";
    if (!plan.ok()) ++refused;
    std::printf("%s%s", first ? "" : "\n", text.c_str());
    first = false;
  }
  return ExitCode(0, request.options.kernel, refused, static_cast<int64_t>(cases->size()));
}

}  // namespace convgrad::tools
