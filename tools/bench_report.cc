#include "tools/bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "tools/printf_text.h"
#include "tools/refusals.h"

namespace convgrad::tools {
namespace {

double Rate(const BenchRow& row) {
  return row.timing.seconds > 0 ? row.flops / row.timing.seconds : 0;
}

// Above 1: convgrad takes less time.
double Ratio(const BenchRow& row, const Timing& peer) { return peer.seconds / row.timing.seconds; }

// The geometric mean of what was added, and the least.
class Mean {
 public:
  void Add(double value, const std::string& problem) {
    logs_ += std::log(std::max(value, 1e-300));
    if (count_++ == 0 || value < worst_) {
      worst_ = value;
      worst_problem_ = problem;
    }
  }
  int count() const { return count_; }
  double mean() const { return std::exp(logs_ / std::max(1, count_)); }
  double worst() const { return worst_; }
  const std::string& worst_problem() const { return worst_problem_; }

 private:
  double logs_ = 0, worst_ = 0;
  int count_ = 0;
  std::string worst_problem_;
};

struct PeerGroup {
  Mean ratios;
  int not_offered = 0, wrong = 0;
};

// Where two programs share a core they take turns of 3 to 4 ms; a machine with nothing else to do
// has a few turns in a second.
constexpr double kManyPreemptions = 50;

struct Group {
  Mean shares, padded_shares;
  bool padded = false;  // some of them
  int refused = 0, disturbed = 0;
  std::map<std::string, PeerGroup> peers;
};

std::string ToText(const std::string& name, const PeerGroup& peer) {
  std::string text = Format("  %-9s", name.c_str());
  if (peer.ratios.count() > 0) {
    text += Format("geomean %.2fx, worst %.2fx: ", peer.ratios.mean(), peer.ratios.worst());
    text += peer.ratios.worst_problem();
  } else {
    text += "not compared";
  }
  if (peer.not_offered > 0) text += Join("; ", peer.not_offered, " not offered");
  if (peer.wrong > 0) text += Join("; ", peer.wrong, " WRONG");
  return text + "\n";
}

std::string PeerColumns(const BenchRow& row) {
  std::string text;
  for (const PeerTiming& peer : row.peers) {
    text += peer.timing  ? Format(" %8.2fx", Ratio(row, *peer.timing))
            : peer.wrong ? Format(" %9s", "WRONG")
                         : Format(" %9s", "-");
  }
  return text;
}

// The rest is too short for the time of a plan's threads and calls not to show.
constexpr double kManyFlops = 1e7;
constexpr size_t kSlowest = 10;

// Of rows of more than `least` operations.
std::string SlowestAbove(std::span<const BenchRow> rows, double least, Limits& limits) {
  std::vector<std::pair<double, const BenchRow*>> order;
  for (const BenchRow& row : rows) {
    if (!row.refusal.empty() || row.flops <= least) continue;
    order.emplace_back(FloorRatio(row, limits), &row);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const size_t shown = std::min(order.size(), kSlowest);
  const std::string above = least > 0 ? Format(" of more than %.0f MFLOP", least * 1e-6) : "";
  std::string text =
      Join("slowest by time / floor, ", shown, " of ", order.size(), " timings", above, "\n");
  text += Format("%7s %7s %10s %9s %9s %-4s %-7s %3s", "x floor", "x f32's", "ms", "GFLOP/s",
                 "MFLOP", "type", "format", "thr");
  if (shown > 0) {
    for (const PeerTiming& peer : order[0].second->peers) text += Format(" %9s", peer.name.c_str());
  }
  text += Format("  %-29s %s\n", "operation", "problem");
  for (size_t i = 0; i < shown; ++i) {
    const BenchRow& row = *order[i].second;
    text += Format("%7.1f %7.1f %10.3f %9.2f %9.2f %-4s %-7s %3d", order[i].first,
                   FloorRatio(row, DataType::kF32, limits), row.timing.seconds * 1e3,
                   Rate(row) * 1e-9, row.flops * 1e-6, std::string(NameOf(row.type)).c_str(),
                   row.data_format.c_str(), row.threads);
    text += PeerColumns(row) + Format("  %-29s ", row.op.c_str()) + row.problem + "\n";
  }
  return text;
}

// For its own type the peak of its own time.
double PeakOf(const BenchRow& row, DataType type, Limits& limits) {
  return type == row.type ? row.peak_flops : limits.PeakOf(type, row.threads).flops;
}

}  // namespace

double PeakShare(const BenchRow& row) { return Rate(row) / row.peak_flops; }

double PaddedPeakShare(const BenchRow& row) {
  return row.flops > 0 ? PeakShare(row) * row.padded_flops / row.flops : 0;
}

double FloorRatio(const BenchRow& row, Limits& limits) { return FloorRatio(row, row.type, limits); }

double FloorRatio(const BenchRow& row, DataType type, Limits& limits) {
  const double floor = std::max(row.flops / PeakOf(row, type, limits),
                                row.bytes / limits.CopyRateOf(row.threads).bytes);
  return floor > 0 ? row.timing.seconds / floor : 0;
}

std::string TableHead(std::span<const std::string> peers) {
  std::string text = Format("%10s %7s %9s %7s %7s %12s %3s %-9s", "ms", "spread", "GFLOP/s",
                            "% peak", "x floor", "workspace B", "thr", "kernel");
  for (const std::string& peer : peers) text += Format(" %9s", peer.c_str());
  return text + "  problem\n";
}

std::string TableLine(const BenchRow& row, Limits& limits) {
  if (!row.refusal.empty()) {
    return Join("         -  ", RefusalText(row.refusal, row.problem), "\n");
  }
  std::string text = Format(
      "%10.3f %6.1f%% %9.2f %6.1f%% %7.1f %12lld %3d %-9s", row.timing.seconds * 1e3,
      row.timing.spread * 100, Rate(row) * 1e-9, 100 * PeakShare(row), FloorRatio(row, limits),
      static_cast<long long>(row.workspace_bytes), row.threads, row.kernel.c_str());
  text += PeerColumns(row) + Join("  ", row.problem, "\n");
  for (const PeerTiming& peer : row.peers) {
    if (peer.wrong) text += Join("           ", peer.name, " is wrong: ", peer.note, "\n");
  }
  return text;
}

std::string Summary(std::span<const BenchRow> rows) {
  std::map<std::pair<DataType, int>, Group> groups;
  for (const BenchRow& row : rows) {
    Group& group = groups[{row.type, row.threads}];
    if (!row.refusal.empty()) {
      ++group.refused;
      continue;
    }
    if (row.preemptions > kManyPreemptions) ++group.disturbed;
    // A problem without work has no rate.
    if (row.flops > 0) {
      group.shares.Add(PeakShare(row), row.problem);
      group.padded_shares.Add(PaddedPeakShare(row), row.problem);
      group.padded = group.padded || row.padded_flops > row.flops;
    }
    for (const PeerTiming& peer : row.peers) {
      PeerGroup& mine = group.peers[peer.name];
      if (peer.timing) {
        mine.ratios.Add(Ratio(row, *peer.timing), row.problem);
      } else {
        ++(peer.wrong ? mine.wrong : mine.not_offered);
      }
    }
  }
  std::string text;
  for (const auto& [key, group] : groups) {
    text += Join(NameOf(key.first), ", ", Counted(key.second, "thread"), ": ",
                 Counted(group.shares.count(), "problem"));
    if (group.refused > 0) text += Join(", ", group.refused, " refused");
    if (group.shares.count() > 0) {
      text += Format(", geomean %.1f%% of peak, worst %.1f%%: ", 100 * group.shares.mean(),
                     100 * group.shares.worst());
      text += group.shares.worst_problem();
    }
    text += "\n";
    if (group.padded) {
      text += Format("  padding  counted as products: geomean %.1f%%, worst %.1f%%: ",
                     100 * group.padded_shares.mean(), 100 * group.padded_shares.worst());
      text += group.padded_shares.worst_problem() + "\n";
    }
    for (const auto& [name, peer] : group.peers) text += ToText(name, peer);
    if (group.disturbed > 0) {
      text += Join("  other programs had the cores during ", group.disturbed,
                   " of these problems: their times say little\n");
    }
  }
  return text;
}

std::string Slowest(std::span<const BenchRow> rows, Limits& limits) {
  return SlowestAbove(rows, kManyFlops, limits) + "\n" + SlowestAbove(rows, 0, limits);
}

std::string ToJson(std::span<const BenchRow> rows, Limits& limits) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const BenchRow& row : rows) {
    if (!row.refusal.empty()) continue;
    Json peers = Json::object();
    for (const PeerTiming& peer : row.peers) {
      Json entry = {{"ms", nullptr}, {"ratio", nullptr}};
      if (peer.timing) {
        entry = {{"ms", peer.timing->seconds * 1e3},
                 {"ratio", Ratio(row, *peer.timing)},
                 {"spread", peer.timing->spread},
                 {"repetitions", peer.timing->repetitions}};
      } else {
        entry[peer.wrong ? "wrong" : "not_offered"] = peer.note;
      }
      if (!peer.implementation.empty()) entry["implementation"] = peer.implementation;
      peers[peer.name] = entry;
    }
    all.push_back({{"problem", row.problem},
                   {"op", row.op},
                   {"dtype", NameOf(row.type)},
                   {"out_dtype", NameOf(row.out_type)},
                   {"data_format", row.data_format},
                   {"per_sample", row.per_sample},
                   {"threads", row.threads},
                   {"kernel", row.kernel},
                   {"ms", row.timing.seconds * 1e3},
                   {"spread", row.timing.spread},
                   {"repetitions", row.timing.repetitions},
                   {"flops", row.flops},
                   {"gflops", Rate(row) * 1e-9},
                   {"peak_gflops", row.peak_flops * 1e-9},
                   {"peak_pct", 100 * PeakShare(row)},
                   {"padded_flops", row.padded_flops},
                   {"padded_peak_pct", 100 * PaddedPeakShare(row)},
                   {"floor_ratio", FloorRatio(row, limits)},
                   {"f32_floor_ratio", FloorRatio(row, DataType::kF32, limits)},
                   {"workspace_bytes", row.workspace_bytes},
                   {"preemptions_per_second", row.preemptions},
                   {"peers", peers}});
  }
  return all.dump(1) + "\n";
}

}  // namespace convgrad::tools
