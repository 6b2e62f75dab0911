// Instructions that Highway 1.0 does not offer, as assembly: a CPU that lacks one never reaches it,
// and the compiler needs no option for it.
#include <atomic>
#include <cstdint>

#include "cpu/bf16_instructions.h"
#include "cpu/tile_amx.h"
#include "tools/multiply_add_loop.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace convgrad::tools {
namespace {

constexpr int kChains = 24;

#if defined(__aarch64__)

typedef float Sums __attribute__((vector_size(16), aligned(4), may_alias));

// Bits of AT_HWCAP and AT_HWCAP2; older headers lack the names.
constexpr unsigned long kHasFmlal = 1ul << 23;
constexpr unsigned long kHasBf16 = 1ul << 14;

bool Has(int word, unsigned long bit) {
#if defined(__linux__)
  return (getauxval(word == 1 ? AT_HWCAP : AT_HWCAP2) & bit) != 0;
#else
  (void)word, (void)bit;
  return false;
#endif
}

// Only for the assembler, which else refuses the instruction.
#if defined(__clang__)
#define CONVGRAD_WITH(Feature) __attribute__((target(Feature)))
#else
#define CONVGRAD_WITH(Feature) __attribute__((target("arch=armv8.2-a+" Feature)))
#endif

// As in multiply_add_f32.cc: the factors are loaded after the sums.
#define CONVGRAD_MULTIPLY_ADD_LOOP(Name, Feature, Assembly)                          \
  CONVGRAD_WITH(Feature) void Name(int rounds, float* floats) {                      \
    Sums* vectors = reinterpret_cast<Sums*>(floats);                                 \
    Sums sums[kChains];                                                              \
    _Pragma("GCC unroll 24") for (int c = 0; c < kChains; ++c) sums[c] = vectors[c]; \
    std::atomic_signal_fence(std::memory_order_seq_cst);                             \
    const Sums x = vectors[kChains], y = vectors[kChains + 1];                       \
    for (int r = 0; r < rounds; ++r) {                                               \
      _Pragma("GCC unroll 24") for (int c = 0; c < kChains; ++c) {                   \
        asm(Assembly : "+w"(sums[c]) : "w"(x), "w"(y));                              \
      }                                                                              \
    }                                                                                \
    _Pragma("GCC unroll 24") for (int c = 0; c < kChains; ++c) vectors[c] = sums[c]; \
  }

CONVGRAD_MULTIPLY_ADD_LOOP(Bfmmla, "bf16", "bfmmla %0.4s, %1.8h, %2.8h")
CONVGRAD_MULTIPLY_ADD_LOOP(Fmlal, "fp16fml", "fmlal %0.4s, %1.4h, %2.4h")

#elif defined(__x86_64__)

typedef float Sums __attribute__((vector_size(64), aligned(4), may_alias));

__attribute__((target("avx512f,avx512bf16"))) void Vdpbf16ps(int rounds, float* floats) {
  Sums* vectors = reinterpret_cast<Sums*>(floats);
  const Sums x = vectors[kChains], y = vectors[kChains + 1];
  Sums sums[kChains];
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) sums[c] = vectors[c];
  for (int r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) {
      asm("vdpbf16ps %2, %1, %0" : "+v"(sums[c]) : "v"(x), "v"(y));
    }
  }
#pragma GCC unroll 24
  for (int c = 0; c < kChains; ++c) vectors[c] = sums[c];
}

constexpr int kTiles = 6;  // of sums; two are left for the factors

#define CONVGRAD_TILE(Instruction, Number)                                           \
  asm volatile(Instruction                                                           \
               : "+m"(*reinterpret_cast<TileMemory*>(floats + (Number)*kTileFloats)) \
               : "r"(floats + (Number)*kTileFloats), "r"(kRowBytes))

__attribute__((target("amx-tile,amx-bf16"))) void Tdpbf16ps(int rounds, float* floats) {
  constexpr int kTileFloats = 256;
  constexpr int64_t kRowBytes = 64;
  using TileMemory = char[kTileFloats * sizeof(float)];
  const AmxTiles tiles(true);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm0", 0);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm1", 1);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm2", 2);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm3", 3);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm4", 4);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm5", 5);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm6", 6);
  CONVGRAD_TILE("tileloadd (%1,%2,1), %%tmm7", 7);
  for (int r = 0; r < rounds; ++r) {
    asm volatile(
        "tdpbf16ps %%tmm7, %%tmm6, %%tmm0\n\t"
        "tdpbf16ps %%tmm7, %%tmm6, %%tmm1\n\t"
        "tdpbf16ps %%tmm7, %%tmm6, %%tmm2\n\t"
        "tdpbf16ps %%tmm7, %%tmm6, %%tmm3\n\t"
        "tdpbf16ps %%tmm7, %%tmm6, %%tmm4\n\t"
        "tdpbf16ps %%tmm7, %%tmm6, %%tmm5" ::);
  }
  CONVGRAD_TILE("tilestored %%tmm0, (%1,%2,1)", 0);
  CONVGRAD_TILE("tilestored %%tmm1, (%1,%2,1)", 1);
  CONVGRAD_TILE("tilestored %%tmm2, (%1,%2,1)", 2);
  CONVGRAD_TILE("tilestored %%tmm3, (%1,%2,1)", 3);
  CONVGRAD_TILE("tilestored %%tmm4, (%1,%2,1)", 4);
  CONVGRAD_TILE("tilestored %%tmm5, (%1,%2,1)", 5);
}

#undef CONVGRAD_TILE

#endif

}  // namespace

MultiplyAddLoop LoopFor(DataType type) {
#if defined(__aarch64__)
  // 2 x 2 sums of 4 products each.
  if (type == DataType::kBF16 && Has(2, kHasBf16)) {
    return {"bfmmla 2x4 x 4x2", Bfmmla, 2.0 * 16 * kChains};
  }
  // Half the products that the register holds: fmlal2 takes the others, at the same rate.
  if (type == DataType::kF16 && Has(1, kHasFmlal)) {
    return {"fmlal 4 x f16", Fmlal, 2.0 * 4 * kChains};
  }
#elif defined(__x86_64__)
  if (type == DataType::kBF16 && HasAmx()) {
    return {"tdpbf16ps 16x32 x 32x16", Tdpbf16ps, 2.0 * 16 * 16 * 32 * kTiles};
  }
  // Where the library uses it: Intel's is slower than f32.
  if (type == DataType::kBF16 && Bf16TermsEach() == 2) {
    return {"vdpbf16ps 32 x bf16", Vdpbf16ps, 2.0 * 32 * kChains};
  }
#endif
  MultiplyAddLoop loop = F32Loop();
  if (type != DataType::kF32) loop.instruction += ", widened";
  return loop;
}

}  // namespace convgrad::tools
