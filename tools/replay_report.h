// What convgrad replay says of its rows: a table, the closing lines, JSON. Measures nothing.
#ifndef CONVGRAD_TOOLS_REPLAY_REPORT_H_
#define CONVGRAD_TOOLS_REPLAY_REPORT_H_

#include <optional>
#include <span>
#include <string>

#include "onednn/verbose_log.h"
#include "tools/bench_case.h"

namespace convgrad::tools {

// One group of equal calls on one number of threads.
struct ReplayRow {
  const onednn::VerboseGroup* group = nullptr;
  BenchRow bench;
  bool fits = true;  // false: refused since its tensors do not fit in this machine
  std::optional<std::string> failure;  // of --verify; empty: it passed
};

// What the log was: its lines, version and threads.
std::string DescribeLog(const std::string& name, const onednn::VerboseLog& log);

std::string ReplayTableHead();
std::string ReplayTableLine(const ReplayRow& row);

// Totals for each number of threads, what was not replayed, and, after --verify, the checks.
std::string ReplaySummary(std::span<const ReplayRow> rows, const onednn::VerboseLog& log);

std::string ReplayJson(std::span<const ReplayRow> rows, const onednn::VerboseLog& log);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_REPLAY_REPORT_H_
