#include "tools/replay_report.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "tools/printf_text.h"
#include "tools/refusals.h"

namespace convgrad::tools {
namespace {

// Milliseconds of all the group's calls.
double ConvgradTime(const ReplayRow& row) {
  return static_cast<double>(row.group->calls) * row.bench.timing.seconds * 1e3;
}

// Above 1: convgrad takes less time.
double Ratio(double logged, double convgrad) { return convgrad > 0 ? logged / convgrad : 0; }

struct Total {
  int64_t problems = 0, calls = 0, refused = 0;
  double logged = 0, convgrad = 0;
};

std::map<int, Total> TotalsOf(std::span<const ReplayRow> rows) {
  std::map<int, Total> totals;
  for (const ReplayRow& row : rows) {
    Total& total = totals[row.bench.threads];
    if (!row.bench.refusal.empty()) {
      ++total.refused;
      continue;
    }
    ++total.problems;
    total.calls += row.group->calls;
    total.logged += row.group->milliseconds;
    total.convgrad += ConvgradTime(row);
  }
  return totals;
}

std::string ListOf(const onednn::ReasonCounts& counts) {
  std::string text;
  for (const onednn::CountedReason& entry : counts.entries()) {
    text += Join(text.empty() ? "" : ", ", entry.reason, " ", entry.count);
  }
  return text;
}

}  // namespace

std::string DescribeLog(const std::string& name, const onednn::VerboseLog& log) {
  std::string text =
      Join(name, ": ", log.verbose_lines(), " of ", log.lines(), " lines are verbose output");
  if (!log.version().empty()) text += Join(" of ", log.version());
  if (!log.threads().empty()) {
    text += Join(", ", log.threads(), log.threads() == "1" ? " thread" : " threads");
  }
  return text + "\n";
}

std::string ReplayTableHead() {
  return Format("%7s %11s %11s %11s %7s %11s %3s %-9s  %s\n", "calls", "log ms", "ms/call",
                "convgrad", "ratio", "saved ms", "thr", "kernel", "problem");
}

std::string ReplayTableLine(const ReplayRow& row) {
  const onednn::VerboseGroup& group = *row.group;
  const double logged = group.milliseconds;
  std::string text = Format("%7lld %11.3f %11.3f ", static_cast<long long>(group.calls), logged,
                            logged / static_cast<double>(group.calls));
  if (!row.bench.refusal.empty()) {
    return text + RefusalText(row.bench.refusal, row.bench.problem) + "\n";
  }
  text += Format("%11.3f %6.2fx %11.3f %3d %-9s  ", row.bench.timing.seconds * 1e3,
                 Ratio(logged, ConvgradTime(row)), logged - ConvgradTime(row), row.bench.threads,
                 row.bench.kernel.c_str());
  text += row.bench.problem + "\n";
  if (!group.replayed.differences.empty()) {
    text += Join("        ", JoinWords(group.replayed.differences, ", "), "\n");
  }
  if (row.failure && !row.failure->empty()) text += Join("        FAIL: ", *row.failure, "\n");
  return text;
}

std::string ReplaySummary(std::span<const ReplayRow> rows, const onednn::VerboseLog& log) {
  std::string text;
  if (rows.empty()) text = "nothing ran\n";
  for (const auto& [threads, total] : TotalsOf(rows)) {
    if (total.calls == 0) {
      text += Join(Counted(threads, "thread"), ": nothing ran, ", Counted(total.refused, "problem"),
                   total.refused == 1 ? " was" : " were", " refused\n");
      continue;
    }
    text += Join(Counted(threads, "thread"), ": ", Counted(total.calls, "call"), " of ",
                 Counted(total.problems, "problem"), ", ");
    text += Format("%.3f ms in the log, %.3f ms in convgrad, ratio %.2fx, saved %.3f ms\n",
                   total.logged, total.convgrad, Ratio(total.logged, total.convgrad),
                   total.logged - total.convgrad);
    if (total.refused > 0)
      text += Join("  ", Counted(total.refused, "problem"), total.refused == 1 ? " was" : " were",
                   " refused\n");
  }
  for (const onednn::CountedReason& entry : log.skipped().entries()) {
    text += Join("skipped ", Counted(entry.count, "convolution"), ": ", entry.reason, "\n");
  }
  if (log.other_primitives().total() > 0) {
    text += Join("skipped ", Counted(log.other_primitives().total(), "call"),
                 " of other primitives: ", ListOf(log.other_primitives()), "\n");
  }
  int passed = 0, failed = 0;
  for (const ReplayRow& row : rows) {
    if (row.failure) ++(row.failure->empty() ? passed : failed);
  }
  if (passed + failed > 0) text += Join(passed, " passed, ", failed, " failed\n");
  return text;
}

std::string ReplayJson(std::span<const ReplayRow> rows, const onednn::VerboseLog& log) {
  using Json = nlohmann::ordered_json;
  Json problems = Json::array(), totals = Json::array(), skipped = Json::array();
  for (const ReplayRow& row : rows) {
    const onednn::VerboseGroup& group = *row.group;
    Json entry = {{"problem", row.bench.problem},
                  {"op", row.bench.op},
                  {"pass", group.call.pass},
                  {"implementation", group.call.implementation},
                  {"differences", group.replayed.differences},
                  {"threads", row.bench.threads},
                  {"calls", group.calls},
                  {"log_ms", group.milliseconds}};
    if (!row.bench.refusal.empty()) {
      entry["refused"] = row.bench.refusal;
    } else {
      entry["kernel"] = row.bench.kernel;
      entry["convgrad_ms"] = ConvgradTime(row);
      entry["convgrad_ms_per_call"] = row.bench.timing.seconds * 1e3;
      entry["spread"] = row.bench.timing.spread;
      entry["ratio"] = Ratio(group.milliseconds, ConvgradTime(row));
      entry["saved_ms"] = group.milliseconds - ConvgradTime(row);
    }
    if (row.failure) entry["verified"] = row.failure->empty();
    if (row.failure && !row.failure->empty()) entry["failure"] = *row.failure;
    problems.push_back(std::move(entry));
  }
  for (const auto& [threads, total] : TotalsOf(rows)) {
    Json entry = {{"threads", threads},
                  {"problems", total.problems},
                  {"calls", total.calls},
                  {"log_ms", total.logged},
                  {"convgrad_ms", total.convgrad}};
    if (total.calls > 0) {
      entry["ratio"] = Ratio(total.logged, total.convgrad);
      entry["saved_ms"] = total.logged - total.convgrad;
    }
    totals.push_back(std::move(entry));
  }
  for (const onednn::CountedReason& entry : log.skipped().entries()) {
    skipped.push_back({{"reason", entry.reason}, {"calls", entry.count}});
  }
  Json others = Json::object();
  for (const onednn::CountedReason& entry : log.other_primitives().entries()) {
    others[entry.reason] = entry.count;
  }
  const Json all = {{"log",
                     {{"lines", log.lines()},
                      {"verbose_lines", log.verbose_lines()},
                      {"version", log.version()},
                      {"threads", log.threads()}}},
                    {"problems", problems},
                    {"totals", totals},
                    {"skipped", skipped},
                    {"other_primitives", others}};
  // A log may hold any bytes.
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace convgrad::tools
