#include "tools/peak.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "core/text.h"
#include "tools/multiply_add_loop.h"

namespace convgrad::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

Team TeamOf(int threads) { return {ResolveThreads(std::clamp(threads, 1, CoresOfMachine()), {})}; }

// The best of many short stretches, of about 0.1 ms: other programs take turns of milliseconds.
double BestRate(const MultiplyAddLoop& loop, Milliseconds time) {
  int rounds = 1024;
  double best = 0;
  float floats[kMultiplyAddFloats] = {};
  const Clock::time_point end = Clock::now() + time;
  Clock::time_point begin;
  do {
    begin = Clock::now();
    loop.run(rounds, floats);
    const double seconds = Seconds(Clock::now() - begin);
    best = std::max(best, loop.flops * rounds / seconds);
    if (seconds < 5e-5) rounds *= 2;
  } while (Clock::now() < end);
  return best;
}

// The largest cache that the system tells of, 0 where it tells none.
int64_t LargestCacheBytes() {
  int64_t largest = 0;
  for (int level = 0; level < 8; ++level) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(level) +
                       "/size");
    int64_t size = 0;
    char unit = 'B';
    if (!(file >> size)) continue;
    file >> unit;
    largest = std::max(largest, size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0));
  }
  return largest;
}

// Four times the largest cache, and no more than an eighth of the memory for both arrays.
int64_t CopyArrayBytes() {
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{1} << 30;
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return std::min(std::clamp(4 * LargestCacheBytes(), kLeast, kMost), memory / 16);
}

// Of all threads together, after `settling`.
double RateOf(const MultiplyAddLoop& loop, const Team& team, Milliseconds settling,
              Milliseconds time) {
  std::vector<double> rates(static_cast<size_t>(team.threads));
  ForRanges(team, team.threads, 1, [&](int, int64_t begin, int64_t) {
    if (settling > Milliseconds(0)) BestRate(loop, settling);
    rates[static_cast<size_t>(begin)] = BestRate(loop, time);
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

int CoresOfMachine() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

Peak MeasurePeak(DataType type, int threads) {
  const MultiplyAddLoop loop = LoopFor(type);
  const Team team = TeamOf(threads);
  // Until all have started and clocks have settled.
  constexpr Milliseconds kSettling(5);
  return {type, loop.instruction, RateOf(loop, team, kSettling, Milliseconds(40)), team.threads};
}

double SamplePeak(DataType type, int threads) {
  return RateOf(LoopFor(type), TeamOf(threads), Milliseconds(0), Milliseconds(1));
}

CopyRate MeasureCopyRate(int threads) {
  const Team team = TeamOf(threads);
  const int64_t bytes = CopyArrayBytes();
  const std::unique_ptr<char[]> from(new char[static_cast<size_t>(bytes)]);
  const std::unique_ptr<char[]> to(new char[static_cast<size_t>(bytes)]);
  // 1 MiB: so many that a thread which others slow down copies fewer.
  constexpr int64_t kGrain = int64_t{1} << 20;
  const auto for_parts = [&](const auto& body) {
    ForRanges(team, bytes, kGrain, [&](int, int64_t begin, int64_t end) {
      body(from.get() + begin, to.get() + begin, static_cast<size_t>(end - begin));
    });
  };
  for_parts([](char* source, char* target, size_t size) {
    std::memset(source, 1, size);
    std::memset(target, 2, size);
  });
  double best = 0;
  constexpr int kLeastRounds = 3;
  const Clock::time_point end = Clock::now() + Milliseconds(250);
  for (int round = 0; round < kLeastRounds || Clock::now() < end; ++round) {
    const Clock::time_point begin = Clock::now();
    for_parts([](char* source, char* target, size_t size) { std::memcpy(target, source, size); });
    best = std::max(best, 2.0 * static_cast<double>(bytes) / Seconds(Clock::now() - begin));
  }
  return {best, team.threads, bytes};
}

const Peak& Limits::PeakOf(DataType type, int threads) {
  const std::pair<DataType, int> key(type, std::clamp(threads, 1, CoresOfMachine()));
  auto found = peaks_.find(key);
  if (found == peaks_.end()) found = peaks_.emplace(key, MeasurePeak(type, key.second)).first;
  return found->second;
}

const CopyRate& Limits::CopyRateOf(int threads) {
  const int key = std::clamp(threads, 1, CoresOfMachine());
  auto found = copy_rates_.find(key);
  if (found == copy_rates_.end()) found = copy_rates_.emplace(key, MeasureCopyRate(key)).first;
  return found->second;
}

std::string DescribePeaks(const std::vector<DataType>& types, int threads, Limits& limits) {
  std::string text = "peak of this machine, measured: ";
  int measured = 1;
  for (DataType type : types) {
    const Peak& peak = limits.PeakOf(type, threads);
    measured = peak.threads;
    char rate[40];
    std::snprintf(rate, sizeof rate, " %.1f GFLOP/s (", peak.flops * 1e-9);
    text += Join(type == types.front() ? "" : ", ", NameOf(type), rate, peak.instruction, ")");
  }
  return text + Join(" on ", measured, measured == 1 ? " thread" : " threads");
}

}  // namespace convgrad::tools
