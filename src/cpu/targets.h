// Which of Highway's instruction sets are compiled; include it before any of its headers.
//
// Every one of them must fuse a multiply-add, so SSE is out: a CPU without FMA runs SCALAR, through
// std::fma. SVE is out because Neoverse runs its 2 x 256 or 4 x 128 bits at the speed of NEON's 4 x
// 128, and its vectors have no size that an array of sums could have. SCALAR is always there, for
// the tests to compare with. CONVGRAD_LEAVE_OUT_AVX2: for a build of a CPU that has AVX-512.
#ifndef CONVGRAD_CPU_TARGETS_H_
#define CONVGRAD_CPU_TARGETS_H_

#ifdef HWY_SSE2  // of newer Highways
#define CONVGRAD_HWY_SSE2 HWY_SSE2
#else
#define CONVGRAD_HWY_SSE2 0
#endif
#ifdef CONVGRAD_LEAVE_OUT_AVX2
#define CONVGRAD_LEFT_OUT HWY_AVX2
#else
#define CONVGRAD_LEFT_OUT 0
#endif
#define HWY_DISABLED_TARGETS                                                                    \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | CONVGRAD_HWY_SSE2 | HWY_SSSE3 | HWY_SSE4 | \
   HWY_AVX3_DL | CONVGRAD_LEFT_OUT)
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_BROKEN_EMU128 1

#endif  // CONVGRAD_CPU_TARGETS_H_
