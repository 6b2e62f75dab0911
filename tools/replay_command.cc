#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/parallel.h"
#include "core/text.h"
#include "tools/case_check.h"
#include "tools/case_memory.h"
#include "tools/commands.h"
#include "tools/log_file.h"
#include "tools/problem_words.h"
#include "tools/progress.h"
#include "tools/refusals.h"
#include "tools/replay_report.h"
#include "tools/text_file.h"
#include "tools/thread_list.h"

namespace convgrad::tools {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Case CaseOf(const onednn::VerboseGroup& group) {
  const onednn::ProblemCase& problem = group.replayed.problem;
  return {problem.text, {}, problem.operation, problem.inputs, problem.outputs};
}

ReplayRow Time(const onednn::VerboseGroup& group, const Case& item, const BenchSettings& settings) {
  ReplayRow row;
  row.group = &group;
  row.fits = FitsThisMachine(item.inputs, item.outputs);  // the log may be of a larger machine
  if (row.fits) {
    row.bench = BenchCase(item, settings);
    return row;
  }
  row.bench.problem = item.text;
  row.bench.op = NameOf(item.operation.kind);
  row.bench.threads = settings.options.threads;
  row.bench.refusal = kDoesNotFit;
  return row;
}

std::string Check(const Case& item, const ReplayRequest& request, int threads) {
  CheckRequest check;
  check.options = request.options;
  check.options.threads = threads;
  check.seed = request.seed;
  return CheckCase(item, check).failure;
}

// Those that are asked for, else as many as the program had that wrote the log.
struct ReplayThreads {
  std::vector<int> counts;
  std::string why;
};

ReplayThreads ThreadsOf(const std::vector<int>& given, const onednn::VerboseLog& log) {
  if (!given.empty()) return {given, "as --threads says"};
  const int all = ResolveThreads(0, {});
  int logged = 0;
  const std::string& text = log.threads();
  std::from_chars(text.data(), text.data() + text.size(), logged);
  if (logged < 1) return {{all}, "all: the log does not say how many it had"};
  if (logged > all) return {{all}, "all: there are no more here"};
  return {{logged}, "as the log says"};
}

Status NoConvolutions(const onednn::VerboseLog& log, const std::string& name) {
  return Invalid(Join(name, ": of ", log.lines(), " lines ", log.verbose_lines(),
                      " are output of ONEDNN_VERBOSE=1, and none is the execution of a convolution "
                      "or deconvolution"));
}

}  // namespace

Result<int> ReplayLog(const ReplayRequest& request) {
  Result<std::vector<int>> given =
      request.threads.empty() ? std::vector<int>() : ParseThreads(request.threads);
  if (!given.ok()) return given.status();
  if (request.repetitions < 0 || !(request.seconds > 0)) {
    return Invalid("--repetitions must be at least 0 and --seconds more than 0");
  }
  Result<Target> target = request.json.empty() ? Target() : PrepareTextFile(request.json);
  if (!target.ok()) return target.status();
  if (Status status = CheckCases({}, request.options); !status.ok()) return status;
  onednn::VerboseLog log;
  if (Status status = ReadLog(request.log, log); !status.ok()) return status;
  const std::string name = request.log == "-" ? "standard input" : request.log;
  const bool none = log.groups().empty();
  if (none && log.skipped().total() == 0) return NoConvolutions(log, name);

  const ReplayThreads threads = ThreadsOf(*given, log);
  std::fputs(DescribeLog(name, log).c_str(), stdout);
  if (!none) {
    std::printf("replayed on %s thread%s, %s\n%s", JoinNumbers(threads.counts, ",").c_str(),
                threads.counts == std::vector<int>{1} ? "" : "s", threads.why.c_str(),
                ReplayTableHead().c_str());
  }
  std::fflush(stdout);
  Progress progress("replay");
  std::vector<ReplayRow> rows;
  for (const onednn::VerboseGroup& group : log.groups()) {
    const Case item = CaseOf(group);
    for (int count : threads.counts) {
      progress.Set(Join("replay ", rows.size() + 1, " of ",
                        log.groups().size() * threads.counts.size(), ": ", item.text));
      BenchSettings settings{request.options, request.repetitions, request.seconds, {}};
      settings.options.threads = count;
      ReplayRow row = Time(group, item, settings);
      if (request.verify && row.bench.refusal.empty()) row.failure = Check(item, request, count);
      rows.push_back(std::move(row));
      progress.Clear();
      std::fputs(ReplayTableLine(rows.back()).c_str(), stdout);
      std::fflush(stdout);
    }
  }
  std::printf("\n%s", ReplaySummary(rows, log).c_str());
  if (!request.json.empty()) {
    if (Status status = WriteTextFile(*target, ReplayJson(rows, log)); !status.ok()) return status;
  }
  const auto failed = [](const ReplayRow& row) { return row.failure && !row.failure->empty(); };
  // A log from a larger machine is no mistake; a kernel that cannot do what it is asked for is.
  const auto refused = std::count_if(rows.begin(), rows.end(), [](const ReplayRow& row) {
    return row.fits && !row.bench.refusal.empty();
  });
  return ExitCode(std::any_of(rows.begin(), rows.end(), failed) ? 1 : 0, request.options.kernel,
                  refused, static_cast<int64_t>(rows.size()), "timing");
}

}  // namespace convgrad::tools
