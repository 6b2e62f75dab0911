#include "peak.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace convgrad::tools {
namespace {

// Vectors of 16 floats are lowered to whatever registers the target has. Six of them are 24 NEON,
// 12 AVX2 or 6 AVX-512 registers: chains enough to hide a latency of 4 cycles on 2 units of each.
typedef float Vector __attribute__((vector_size(64)));
constexpr int kChains = 6;
constexpr int kRounds = 20000;

#if defined(__x86_64__)
__attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#endif
__attribute__((optimize("fp-contract=fast"))) void
MultiplyAdd(float* out, int rounds) {
  Vector chain[kChains] = {};
  const Vector factor = Vector{} + 0.999f;
  const Vector addend = Vector{} + 0.001f;
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 6
    for (int c = 0; c < kChains; ++c) chain[c] = chain[c] * factor + addend;
  }
  for (int c = 1; c < kChains; ++c) chain[0] += chain[c];
  *out = chain[0][0];
}

double OneThread() {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  float sink = 0;
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < std::chrono::milliseconds(40)) {
    const Clock::time_point begin = Clock::now();
    MultiplyAdd(&sink, kRounds);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    best = std::max(best, 2.0 * 16 * kChains * kRounds / seconds.count());
  }
  volatile float keep = sink;
  (void)keep;
  return best;
}

}  // namespace

double MeasurePeakFlops(int threads) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<double> flops(static_cast<size_t>(std::clamp(threads, 1, cores)));
  std::vector<std::thread> team;
  for (double& mine : flops) team.emplace_back([&mine] { mine = OneThread(); });
  for (std::thread& member : team) member.join();
  double total = 0;
  for (double mine : flops) total += mine;
  return total;
}

}  // namespace convgrad::tools
