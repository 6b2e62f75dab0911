#include "cpu/multiply_rate.h"

#include <cstdio>

#include "core/text.h"

namespace convgrad {
namespace {

// One number of a file of sysfs; 0 where there is none.
uint64_t NumberIn(const char* path, const char* format) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  unsigned long long number = 0;
  const int read = std::fscanf(file, format, &number);
  std::fclose(file);
  return read == 1 ? number : 0;
}

MultiplyRate Ask() {
  MultiplyRate rate;
#if defined(__aarch64__)
  SetArmCore(NumberIn("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "%llx"), rate);
#elif defined(__x86_64__)
  rate.core = "x86-64";  // all that have AVX2, but the smallest, begin two
#endif
  const uint64_t kilohertz =
      NumberIn("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "%llu");
  if (kilohertz >= 100'000 && kilohertz <= 10'000'000) {
    rate.hertz = 1e3 * static_cast<double>(kilohertz);
    rate.knows_clock = true;
  }
  return rate;
}

}  // namespace

void SetArmCore(uint64_t midr, MultiplyRate& rate) {
  struct Core {
    uint64_t part;
    int pipes;
    const char* name;
  };
  // Of 128 bits, from Arm's optimization guides.
  static constexpr Core kCores[] = {
      {0xd08, 1, "Cortex-A72"},  {0xd0b, 2, "Cortex-A76"},  {0xd0c, 2, "Neoverse-N1"},
      {0xd40, 4, "Neoverse-V1"}, {0xd49, 2, "Neoverse-N2"}, {0xd4f, 4, "Neoverse-V2"},
      {0xd83, 4, "Neoverse-V3"}, {0xd84, 4, "Neoverse-V3"}, {0xd8e, 2, "Neoverse-N3"},
  };
  if (midr >> 24 != 0x41) return;  // Arm's own designs
  for (const Core& core : kCores) {
    if ((midr >> 4 & 0xfff) != core.part) continue;
    rate.pipes = core.pipes;
    rate.core = core.name;
  }
}

const MultiplyRate& RateOfCore() {
  static const MultiplyRate rate = Ask();
  return rate;
}

double MultiplyAddsPerSecond(const VectorUnit& unit) {
  const MultiplyRate& rate = RateOfCore();
  return static_cast<double>(rate.pipes * unit.lanes) * rate.hertz;
}

std::string RateText() {
  const MultiplyRate& rate = RateOfCore();
  char clock[32], call[32];
  std::snprintf(clock, sizeof clock, "%.3g GHz", rate.hertz * 1e-9);
  std::snprintf(call, sizeof call, "%.3g us", kCallSeconds * 1e6);
  return Join(rate.pipes, rate.pipes == 1 ? " vector multiply-add" : " vector multiply-adds",
              " a cycle ", rate.core.empty() ? "assumed" : Join("(", rate.core, ")"), ", ", clock,
              rate.knows_clock ? "" : " assumed", ", ", call, " for the call");
}

}  // namespace convgrad
