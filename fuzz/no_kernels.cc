// In place of the kernels, which the sanitizers would take ten minutes to compile: fuzzers make
// plans and run none.
#include <cstdlib>

#include "cpu/contract.h"
#include "cpu/direct.h"
#include "cpu/flat.h"

namespace convgrad {

void RunBlockF32(const Contraction&, const Tiling&, const BlockOperands&, Range, Range, float*,
                 const BlockStep&) {
  std::abort();
}
void RunBlockBF16(const Contraction&, const Tiling&, const BlockOperands&, Range, Range, float*,
                  const BlockStep&) {
  std::abort();
}
void RunBlockF16(const Contraction&, const Tiling&, const BlockOperands&, Range, Range, float*,
                 const BlockStep&) {
  std::abort();
}
void RunDirectF32(const DirectWork&, const DirectTask&, float*) { std::abort(); }
void RunDirectBF16(const DirectWork&, const DirectTask&, float*) { std::abort(); }
void RunDirectF16(const DirectWork&, const DirectTask&, float*) { std::abort(); }
void RunFlatF32(const FlatWork&, const FlatPixels&, float*) { std::abort(); }
void RunFlatBF16(const FlatWork&, const FlatPixels&, float*) { std::abort(); }
void RunFlatF16(const FlatWork&, const FlatPixels&, float*) { std::abort(); }

}  // namespace convgrad
