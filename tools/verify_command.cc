#include <cstdio>

#include "core/parallel.h"
#include "core/text.h"
#include "tools/case_check.h"
#include "tools/commands.h"
#include "tools/peak.h"
#include "tools/problem_words.h"
#include "tools/progress.h"
#include "tools/refusals.h"

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
  std::printf(
      "PASS %10.2f ms %8.2f GFLOP/s %6.2f%% of peak  %-8s error %5.1f%% of bound %.1e  %lld of "
      "%lld "
      "elements  %s\n",
      report.seconds * 1e3, rate * 1e-9, 100 * rate / peak, report.kernel.c_str(),
      100 * report.worst, report.error, static_cast<long long>(report.checked_elements),
      static_cast<long long>(report.elements), item.text.c_str());
}

void PrintFailure(const Case& item, const CheckReport& report, const VerifyRequest& request) {
  std::string replay = "convgrad verify";
  if (request.seed != 1) replay += Join(" --seed ", request.seed);
  if (request.options.threads != 0) replay += Join(" --threads ", request.options.threads);
  if (request.options.workspace_limit >= 0) {
    replay += Join(" --workspace ", request.options.workspace_limit);
  }
  if (request.options.per_sample) replay += " --per_sample";
  if (!request.options.kernel.empty()) replay += Join(" --kernel ", request.options.kernel);
  for (const std::string& word : item.words) replay += Join(" ", Quoted(word));
  std::printf("FAIL %s: %s\n     replay: %s\n", item.text.c_str(), report.failure.c_str(),
              replay.c_str());
}

}  // namespace

Result<int> VerifyProblems(const VerifyRequest& request) {
  PassedOver passed_over;
  Result<std::vector<Case>> cases = ParseCases(request.words, request.options.per_sample,
                                               request.lenient ? &passed_over : nullptr);
  if (!cases.ok()) return cases.status();
  if (Status status = CheckCases(*cases, request.options); !status.ok()) return status;
  Limits limits;
  const int threads = ResolveThreads(request.options.threads, {});
  std::fputs(passed_over.ToText().c_str(), stdout);
  if (!cases->empty()) {
    std::printf("%s\n", DescribePeaks(TypesOf(*cases), threads, limits).c_str());
  }
  Progress progress("verify");
  int passed = 0, failed = 0, refused = 0;
  for (const Case& item : *cases) {
    progress.Set(
        Join("verify ", passed + failed + refused + 1, " of ", cases->size(), ": ", item.text));
    CheckRequest check;
    check.options = request.options;
    check.seed = request.seed;
    check.tamper = request.tamper;
    const CheckReport report = CheckCase(item, check);
    progress.Clear();
    ++(report.passed ? passed : report.refused ? refused : failed);
    if (report.refused) {
      std::printf("%s\n", RefusalText(report.failure, item.text).c_str());
    } else if (report.passed) {
      PrintReport(item, report, limits.PeakOf(item.inputs[0].type, threads).flops);
    } else {
      PrintFailure(item, report, request);
    }
    std::fflush(stdout);
  }
  std::printf("%s%d passed, %d failed", passed + failed == 0 ? "nothing ran: " : "", passed,
              failed);
  if (refused > 0) std::printf(", %d refused", refused);
  if (request.lenient) {
    std::printf(", %lld skipped", static_cast<long long>(passed_over.problems.total()));
  }
  std::printf("\n");
  return ExitCode(failed == 0 ? 0 : 1, request.options.kernel, refused, passed + refused);
}

}  // namespace convgrad::tools
