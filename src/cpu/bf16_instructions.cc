// Compiled without options for any instruction: it runs on CPUs that have none of them.
#include "cpu/bf16_instructions.h"

#include "cpu/element.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace convgrad {
namespace {

#if defined(CONVGRAD_WITH_AMX)
// The system keeps tile registers only for processes that have asked for them. From then on it
// refuses signal stacks that are too small for them.
bool AskForTiles() {
#if defined(SYS_arch_prctl)
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

bool FindAmx() {
  unsigned a, b, c, d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  return (d & kBf16) != 0 && (d & kTile) != 0 && __builtin_cpu_supports("avx512bw") &&
         AskForTiles();
}
#endif

bool HasBfmmla() {
#if defined(CONVGRAD_WITH_BFMMLA) && defined(__linux__)
  constexpr unsigned long kHasBf16 = 1ul << 14;  // HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & kHasBf16) != 0;
#else
  return false;
#endif
}

// Intel's have half the rate of multiply-adds of f32 (Sapphire Rapids: 84 against 178 GFLOP/s).
bool HasDotProducts() {
#if defined(CONVGRAD_WITH_AVX512BF16)
  return !__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512bf16") &&
         __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

}  // namespace

bool HasAmx() {
#if defined(CONVGRAD_WITH_AMX)
  static const bool kHas = FindAmx();
  return kHas;
#else
  return false;
#endif
}

int64_t Bf16TermsEach() {
  return HasBfmmla() ? kTermsOf<Quad> : HasAmx() || HasDotProducts() ? kTermsOf<Pair> : 1;
}

const char* Bf16Instruction() {
  return HasBfmmla() ? "BFMMLA" : HasAmx() ? "TDPBF16PS" : HasDotProducts() ? "VDPBF16PS" : "";
}

}  // namespace convgrad
