#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/text.h"
#include "tools/available_memory.h"
#include "tools/case_check.h"
#include "tools/commands.h"
#include "tools/problem_words.h"
#include "tools/progress.h"
#include "tools/replay_report.h"
#include "tools/text_file.h"
#include "tools/thread_list.h"

namespace convgrad::tools {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

// Of any length: what is longer than a line of the log may be is read on, and kept no longer.
Status ReadLines(std::FILE* file, const std::string& path, onednn::VerboseLog& log) {
  std::string line;
  bool any = false;
  for (char part[4096];;) {
    const size_t got = std::fread(part, 1, sizeof part, file);
    for (size_t i = 0; i < got; ++i) {
      any = part[i] != '\n';
      if (any) {
        if (line.size() <= onednn::VerboseLog::kLongestLine) line += part[i];
        continue;
      }
      log.Accept(line);
      line.clear();
    }
    if (got < sizeof part) break;
  }
  if (std::ferror(file) != 0) {
    return Invalid(Join(path, ": the log cannot be read: ", std::strerror(errno)));
  }
  if (any) log.Accept(line);
  return {};
}

Status ReadLog(const std::string& path, onednn::VerboseLog& log) {
  if (path == "-") return ReadLines(stdin, "standard input", log);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) {
    return Invalid(Join(path, ": the log cannot be opened: ", std::strerror(errno)));
  }
  return ReadLines(file.get(), path, log);
}

Case CaseOf(const onednn::VerboseGroup& group) {
  const onednn::ProblemCase& problem = group.replayed.problem;
  return {problem.text, {}, problem.operation, problem.inputs, problem.outputs};
}

// Of the tensors, each from its first to its last element.
double BytesOf(const Case& item) {
  double bytes = 0;
  for (const auto* list : {&item.inputs, &item.outputs}) {
    for (const TensorDesc& desc : *list) {
      double elements = 1, reach = 1;
      for (size_t a = 0; a < desc.extents.size(); ++a) {
        const double extent = static_cast<double>(desc.extents[a]);
        elements *= extent;
        if (!desc.strides.empty()) reach += (extent - 1) * static_cast<double>(desc.strides[a]);
      }
      bytes += std::max(elements, reach) * static_cast<double>(SizeOf(desc.type));
    }
  }
  return bytes;
}

// A log may come from a larger machine. The data is there twice, for its comparison, and a
// workspace beside it.
bool FitsThisMachine(const Case& item) { return BytesOf(item) < AvailableMemory() / 3; }

BenchRow Time(const Case& item, const BenchSettings& settings) {
  BenchRow row;
  if (FitsThisMachine(item)) return BenchCase(item, settings);
  row.problem = item.text;
  row.op = NameOf(item.operation.kind);
  row.threads = settings.options.threads;
  row.refusal = "its tensors do not fit in this machine";
  return row;
}

std::string Check(const Case& item, const ReplayRequest& request, int threads) {
  CheckRequest check;
  check.options = request.options;
  check.options.threads = threads;
  check.seed = request.seed;
  return CheckCase(item, check).failure;
}

Status NoConvolutions(const onednn::VerboseLog& log, const std::string& name) {
  return Invalid(Join(name, ": of ", log.lines(), " lines ", log.verbose_lines(),
                      " are output of ONEDNN_VERBOSE=1, and none is the execution of a convolution "
                      "or deconvolution"));
}

}  // namespace

Result<int> ReplayLog(const ReplayRequest& request) {
  Result<std::vector<int>> threads = ParseThreads(request.threads);
  if (!threads.ok()) return threads.status();
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

  std::fputs((DescribeLog(name, log) + (none ? "" : ReplayTableHead())).c_str(), stdout);
  std::fflush(stdout);
  Progress progress("replay");
  std::vector<ReplayRow> rows;
  for (const onednn::VerboseGroup& group : log.groups()) {
    const Case item = CaseOf(group);
    for (int count : *threads) {
      progress.Set(Join("replay ", rows.size() + 1, " of ", log.groups().size() * threads->size(),
                        ": ", item.text));
      BenchSettings settings{request.options, request.repetitions, request.seconds, {}};
      settings.options.threads = count;
      ReplayRow row;
      row.group = &group;
      row.bench = Time(item, settings);
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
  return std::any_of(rows.begin(), rows.end(), failed) ? 1 : 0;
}

}  // namespace convgrad::tools
