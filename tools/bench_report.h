// What convgrad bench says of its rows: a table, the closing lines, JSON. Measures nothing.
#ifndef CONVGRAD_TOOLS_BENCH_REPORT_H_
#define CONVGRAD_TOOLS_BENCH_REPORT_H_

#include <span>
#include <string>
#include <vector>

#include "tools/bench_case.h"
#include "tools/peak.h"

namespace convgrad::tools {

// Share of the peak for the row's type and threads, as measured in turns with it; 1 is all of it.
double PeakShare(const BenchRow& row);

// Measured time over the least that the peak and the copy rate allow; with the peak of another type
// than the row's, from `limits`, where one is named.
double FloorRatio(const BenchRow& row, Limits& limits);
double FloorRatio(const BenchRow& row, DataType type, Limits& limits);

std::string TableHead(std::span<const std::string> peers);
std::string TableLine(const BenchRow& row, Limits& limits);

// For each type and number of threads: geometric means and the worst problems.
std::string Summary(std::span<const BenchRow> rows);

// The ten rows that take the most time over their floor, among those of more than 10 MFLOP and
// among all.
std::string Slowest(std::span<const BenchRow> rows, Limits& limits);

std::string ToJson(std::span<const BenchRow> rows, Limits& limits);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_BENCH_REPORT_H_
