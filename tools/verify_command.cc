#include <algorithm>
#include <cstdio>

#include "core/parallel.h"
#include "core/text.h"
#include "tools/case_check.h"
#include "tools/commands.h"
#include "tools/peak.h"
#include "tools/problem_words.h"
#include "tools/progress.h"

namespace convgrad::tools {
namespace {

// A word as a shell reads it back.
std::string Quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void PrintReport(const Case& item, const CheckReport& report, double peak) {
  const double rate = report.seconds > 0 ? report.flops / report.seconds : 0;
  std::printf("PASS %10.2f ms %8.2f GFLOP/s %6.2f%% of peak  %-8s %lld of %lld elements  %s\n",
              report.seconds * 1e3, rate * 1e-9, 100 * rate / peak, report.kernel.c_str(),
              static_cast<long long>(report.checked_elements),
              static_cast<long long>(report.elements), item.text.c_str());
}

// Of the types that the cases have.
void PrintPeaksOfTypes(const std::vector<Case>& cases, int threads, Limits& limits) {
  std::printf("peak of this machine, measured:");
  const char* separator = "";
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    if (std::none_of(cases.begin(), cases.end(),
                     [&](const Case& item) { return item.inputs[0].type == type; })) {
      continue;
    }
    const Peak& peak = limits.PeakOf(type, threads);
    std::printf("%s %s %.1f GFLOP/s (%s)", separator, std::string(NameOf(type)).c_str(),
                peak.flops * 1e-9, peak.instruction.c_str());
    separator = ",";
  }
  std::printf(" on %d threads\n", std::min(threads, CoresOfMachine()));
}

void PrintFailure(const Case& item, const CheckReport& report, const VerifyRequest& request) {
  std::string replay = "convgrad verify";
  if (request.seed != 1) replay += Join(" --seed ", request.seed);
  if (request.options.threads != 0) replay += Join(" --threads ", request.options.threads);
  if (request.options.workspace_limit >= 0) {
    replay += Join(" --workspace ", request.options.workspace_limit);
  }
  if (!request.options.kernel.empty()) replay += Join(" --kernel ", request.options.kernel);
  for (const std::string& word : item.words) replay += Join(" ", Quoted(word));
  std::printf("FAIL %s: %s\n     replay: %s\n", item.text.c_str(), report.failure.c_str(),
              replay.c_str());
}

// A wrong option is bad input, not a failed problem: it is tried on one that cannot fail.
Status CheckOptions(const Options& options) {
  const TensorDesc one{DataType::kF32, {1, 1, 1}};
  const std::vector<TensorDesc> inputs = {one, one};
  const Operation operation{
      OpKind::kConvolution,
      {{"strides", {1}}, {"pads_begin", {0}}, {"pads_end", {0}}, {"dilations", {1}}}};
  Options tried = options;
  for (const KernelInfo& kernel : Kernels()) {
    if (kernel.name == options.kernel) tried.kernel.clear();  // known; it may refuse this problem
  }
  return Plan::Make(operation, inputs, {}, tried).status();
}

}  // namespace

Result<int> VerifyProblems(const VerifyRequest& request) {
  Result<std::vector<Case>> cases = ParseCases(request.words);
  if (!cases.ok()) return cases.status();
  if (Status status = CheckOptions(request.options); !status.ok()) return status;
  for (const Case& item : *cases) {
    Result<Plan> plan = Plan::Make(item.operation, item.inputs, item.outputs);
    if (!plan.ok()) {
      return Status(plan.status().code(), Join(plan.status().message(), " (", item.text, ")"));
    }
  }
  Limits limits;
  const int threads = ResolveThreads(request.options.threads, {});
  PrintPeaksOfTypes(*cases, threads, limits);
  Progress progress("verify");
  int passed = 0, failed = 0;
  for (const Case& item : *cases) {
    progress.Set(Join("verify ", passed + failed + 1, " of ", cases->size(), ": ", item.text));
    CheckRequest check;
    check.options = request.options;
    check.seed = request.seed;
    check.tamper = request.tamper;
    const CheckReport report = CheckCase(item, check);
    progress.Clear();
    ++(report.passed ? passed : failed);
    if (report.passed) {
      PrintReport(item, report, limits.PeakOf(item.inputs[0].type, threads).flops);
    } else {
      PrintFailure(item, report, request);
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace convgrad::tools
