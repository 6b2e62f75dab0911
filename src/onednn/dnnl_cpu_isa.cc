// What the CPU can do, in the words of oneDNN: clients ask it before they use bf16 or f16. The
// limit and the hints are kept and change nothing, for convgrad chooses its kernels itself; there
// is no JIT, whose settings are accepted.
#include <atomic>

#include "oneapi/dnnl/dnnl.h"
#include "onednn/dnnl_objects.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace convgrad::onednn {
namespace {

// From the least to the most; a level is a set of bits, and not every one includes those before it.
constexpr dnnl_cpu_isa_t kLevels[] = {
    dnnl_cpu_isa_sse41,
    dnnl_cpu_isa_avx,
    dnnl_cpu_isa_avx2,
    dnnl_cpu_isa_avx2_vnni,
    dnnl_cpu_isa_avx2_vnni_2,
    dnnl_cpu_isa_avx512_core,
    dnnl_cpu_isa_avx512_core_vnni,
    dnnl_cpu_isa_avx512_core_bf16,
    dnnl_cpu_isa_avx10_1_512,
    dnnl_cpu_isa_avx10_1_512_amx,
    dnnl_cpu_isa_avx10_1_512_amx_fp16,
    dnnl_cpu_isa_avx10_2,
    dnnl_cpu_isa_avx10_2_amx_2,
    dnnl_cpu_isa_avx10_2_ace,
};

#if defined(__x86_64__) || defined(__i386__)
// Of leaf 7 of cpuid, registers that name newer instructions than all compilers know.
struct Features {
  unsigned edx = 0;    // subleaf 0
  unsigned eax_1 = 0;  // subleaf 1
  unsigned edx_1 = 0;

  Features() {
    unsigned subleaves = 0, b = 0, c = 0;
    if (__get_cpuid_count(7, 0, &subleaves, &b, &c, &edx) == 0 || subleaves < 1) return;
    __get_cpuid_count(7, 1, &eax_1, &b, &c, &edx_1);
  }
};

constexpr bool Has(unsigned bits, int place) { return (bits >> place & 1) != 0; }

// Whether the system saves the tiles of AMX.
bool TilesAreSaved() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return Has(low, 17) && Has(low, 18);
}

dnnl_cpu_isa_t Avx512Level(const Features& features) {
  if (!__builtin_cpu_supports("avx512vnni")) return dnnl_cpu_isa_avx512_core;
  if (!Has(features.eax_1, 5)) return dnnl_cpu_isa_avx512_core_vnni;
  const bool avx_vnni = Has(features.eax_1, 4), fp16 = Has(features.edx, 23);
  if (!avx_vnni || !fp16) return dnnl_cpu_isa_avx512_core_bf16;
  const bool amx = Has(features.edx, 22) && Has(features.edx, 24) && Has(features.edx, 25);
  if (!amx || !TilesAreSaved()) return dnnl_cpu_isa_avx10_1_512;
  return Has(features.eax_1, 21) ? dnnl_cpu_isa_avx10_1_512_amx_fp16 : dnnl_cpu_isa_avx10_1_512_amx;
}

dnnl_cpu_isa_t Detect() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.1")) return dnnl_cpu_isa_default;
  if (!__builtin_cpu_supports("avx")) return dnnl_cpu_isa_sse41;
  if (!__builtin_cpu_supports("avx2")) return dnnl_cpu_isa_avx;
  const Features features;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return Avx512Level(features);
  }
  if (!Has(features.eax_1, 4)) return dnnl_cpu_isa_avx2;
  const bool int8_and_converts = Has(features.edx_1, 4) && Has(features.edx_1, 5);
  return int8_and_converts ? dnnl_cpu_isa_avx2_vnni_2 : dnnl_cpu_isa_avx2_vnni;
}
#else
dnnl_cpu_isa_t Detect() { return dnnl_cpu_isa_default; }
#endif

std::atomic<dnnl_cpu_isa_t> most{dnnl_cpu_isa_default};  // the default: no limit
std::atomic<dnnl_cpu_isa_hints_t> hints{dnnl_cpu_isa_no_hints};

}  // namespace
}  // namespace convgrad::onednn

using convgrad::onednn::RefuseException;

dnnl_cpu_isa_t dnnl_get_effective_cpu_isa(void) {
  static const dnnl_cpu_isa_t detected = convgrad::onednn::Detect();
  const dnnl_cpu_isa_t most = convgrad::onednn::most;
  if (most == dnnl_cpu_isa_default) return detected;
  dnnl_cpu_isa_t effective = dnnl_cpu_isa_default;
  for (dnnl_cpu_isa_t level : convgrad::onednn::kLevels) {
    if ((level & most & detected) == level) effective = level;
  }
  return effective;
}

dnnl_status_t dnnl_set_max_cpu_isa(dnnl_cpu_isa_t isa) try {
  bool known = isa == dnnl_cpu_isa_default;
  for (dnnl_cpu_isa_t level : convgrad::onednn::kLevels) known = known || isa == level;
  if (!known) return convgrad::onednn::RefuseValue("isa", isa);
  convgrad::onednn::most = isa;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_set_cpu_isa_hints(dnnl_cpu_isa_hints_t isa_hints) try {
  if (isa_hints != dnnl_cpu_isa_no_hints && isa_hints != dnnl_cpu_isa_prefer_ymm) {
    return convgrad::onednn::RefuseValue("isa_hints", isa_hints);
  }
  convgrad::onednn::hints = isa_hints;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_cpu_isa_hints_t dnnl_get_cpu_isa_hints(void) { return convgrad::onednn::hints; }

dnnl_status_t dnnl_set_jit_dump(int) { return dnnl_success; }

dnnl_status_t dnnl_set_jit_profiling_flags(unsigned) { return dnnl_success; }

dnnl_status_t dnnl_set_jit_profiling_jitdumpdir(const char*) { return dnnl_success; }
