// Which of its instructions for bf16 this CPU has, and this build uses.
#ifndef CONVGRAD_CPU_BF16_INSTRUCTIONS_H_
#define CONVGRAD_CPU_BF16_INSTRUCTIONS_H_

#include <cstdint>

namespace convgrad {

// Whether the CPU has AMX for bf16 and the system lets this process use it. Asks the system once.
bool HasAmx();

// Terms that are multiplied at once, as one element of a panel: 4 with BFMMLA, 2 with AMX or, where
// it pays, AVX512-BF16, else 1.
int64_t Bf16TermsEach();

// By its name; "" where there is none.
const char* Bf16Instruction();

}  // namespace convgrad

#endif  // CONVGRAD_CPU_BF16_INSTRUCTIONS_H_
