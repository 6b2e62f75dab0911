// How fast a core multiplies, for the expectations of explain and of the choice between kernels:
// what is known of the CPU by its name, and said where it is assumed. Measures nothing.
#ifndef CONVGRAD_CPU_MULTIPLY_RATE_H_
#define CONVGRAD_CPU_MULTIPLY_RATE_H_

#include <cstdint>
#include <string>

#include "cpu/tiling.h"

namespace convgrad {

struct MultiplyRate {
  int pipes = 2;             // vector multiply-adds that a cycle begins
  double hertz = 2.6e9;      // cycles of a second
  std::string core;          // "Neoverse-V1"; empty: not known, and `pipes` an assumption
  bool knows_clock = false;  // false: `hertz` is an assumption
};

// Of this machine: asked for once.
const MultiplyRate& RateOfCore();

// Of an Arm CPU, from MIDR_EL1, the number of its design; other numbers leave it as it is.
void SetArmCore(uint64_t midr, MultiplyRate& rate);

// f32 multiply-adds of one thread in a second, all pipes busy.
double MultiplyAddsPerSecond(const VectorUnit& unit);

// Time of a call besides its work: taking the plan apart, packing a first panel, starting threads.
// A 1x1x1 problem takes 1.2 us on one thread of a Neoverse-N1, 3.2 kFLOP take 2.8 to 3.9.
inline constexpr double kCallSeconds = 2.5e-6;

// "2 vector multiply-adds a cycle (Neoverse-N1), 2.6 GHz assumed, 2.5 us for the call".
std::string RateText();

}  // namespace convgrad

#endif  // CONVGRAD_CPU_MULTIPLY_RATE_H_
