#include "tools/peak.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

namespace convgrad::tools {
namespace {

constexpr int kRounds = 20000;

// kChains sums that wait for nobody but themselves. A multiply-add takes 4 cycles on 2 to 4 units:
// 12 chains keep the 16 registers of AVX2 busy, 24 the 32 of NEON and AVX-512.
template <class Vector, int kChains>
__attribute__((always_inline)) inline double MultiplyAdd(int rounds, float* sink) {
  Vector sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = Vector{} + static_cast<float>(c);
  Vector factor = Vector{} + 0.5f, other = Vector{} + 0.25f;
  for (int r = 0; r < rounds; ++r) {
    // The product must look new in every round, or it is taken out of the loop.
#if defined(__aarch64__)
    asm volatile("" : "+w"(factor), "+w"(other));
#elif defined(__x86_64__)
    asm volatile("" : "+v"(factor), "+v"(other));
#endif
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) sums[c] += factor * other;
  }
  for (int c = 1; c < kChains; ++c) sums[0] += sums[c];
  *sink = sums[0][0];
  return 2.0 * (sizeof(Vector) / sizeof(float)) * kChains * rounds;
}

typedef float Vector128 __attribute__((vector_size(16)));
#define CONTRACT optimize("fp-contract=fast")

__attribute__((CONTRACT)) double Baseline(int rounds, float* sink) {
  return MultiplyAdd<Vector128, 24>(rounds, sink);
}

#if defined(__x86_64__)
typedef float Vector256 __attribute__((vector_size(32)));
typedef float Vector512 __attribute__((vector_size(64)));

__attribute__((CONTRACT, target("avx2,fma"))) double Avx2(int rounds, float* sink) {
  return MultiplyAdd<Vector256, 12>(rounds, sink);
}
__attribute__((CONTRACT, target("avx512f"))) double Avx512(int rounds, float* sink) {
  return MultiplyAdd<Vector512, 24>(rounds, sink);
}
#endif

using Loop = double (*)(int rounds, float* sink);

Loop WidestLoop() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Avx2;
#endif
  return Baseline;
}

double OneThread() {
  using Clock = std::chrono::steady_clock;
  const Loop loop = WidestLoop();
  double best = 0;
  float sink = 0;
  const Clock::time_point start = Clock::now();
  while (Clock::now() - start < std::chrono::milliseconds(40)) {
    const Clock::time_point begin = Clock::now();
    const double flops = loop(kRounds, &sink);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    best = std::max(best, flops / seconds.count());
  }
  volatile float keep = sink;
  (void)keep;
  return best;
}

}  // namespace

Peak MeasurePeak(int threads) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<double> flops(static_cast<size_t>(std::clamp(threads, 1, cores)));
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < flops.size(); ++i) {
      others.emplace_back([&mine = flops[i]] { mine = OneThread(); });
    }
  } catch (const std::system_error&) {
    // a limit on threads: as many as there are
  }
  flops[0] = OneThread();
  for (std::thread& other : others) other.join();
  Peak peak{0, static_cast<int>(others.size()) + 1};
  for (double mine : flops) peak.flops += mine;
  return peak;
}

}  // namespace convgrad::tools
