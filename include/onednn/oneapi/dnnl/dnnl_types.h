/* Types of oneDNN's primitive API: of those that it does not share with the graph API, the levels
 * of CPUs and memory. C99. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_TYPES_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_TYPES_H_

#include "oneapi/dnnl/dnnl_common_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an x86 CPU can do: a level has the bits of the levels that it includes. */
typedef enum {
  dnnl_cpu_isa_default = 0x0,
  dnnl_cpu_isa_sse41 = 0x1,
  dnnl_cpu_isa_avx = 0x3,
  dnnl_cpu_isa_avx2 = 0x7,
  dnnl_cpu_isa_avx2_vnni = 0xf,
  dnnl_cpu_isa_avx2_vnni_2 = 0x1f,
  dnnl_cpu_isa_avx512_core = 0x27,
  dnnl_cpu_isa_avx512_core_vnni = 0x67,
  dnnl_cpu_isa_avx512_core_bf16 = 0xe7,
  dnnl_cpu_isa_avx10_1_512 = 0x1ef,
  dnnl_cpu_isa_avx512_core_fp16 = dnnl_cpu_isa_avx10_1_512,
  dnnl_cpu_isa_avx10_1_512_amx = 0xfef,
  dnnl_cpu_isa_avx512_core_amx = dnnl_cpu_isa_avx10_1_512_amx,
  dnnl_cpu_isa_avx10_1_512_amx_fp16 = 0x1fef,
  dnnl_cpu_isa_avx512_core_amx_fp16 = dnnl_cpu_isa_avx10_1_512_amx_fp16,
  dnnl_cpu_isa_avx10_2 = 0x201ff,
  dnnl_cpu_isa_avx10_2_512 = dnnl_cpu_isa_avx10_2,
  dnnl_cpu_isa_avx10_2_amx_2 = 0x22fff,
  dnnl_cpu_isa_avx10_2_512_amx_2 = dnnl_cpu_isa_avx10_2_amx_2,
  dnnl_cpu_isa_avx10_2_ace = 0xa03ff
} dnnl_cpu_isa_t;

typedef enum { dnnl_cpu_isa_no_hints = 0x0, dnnl_cpu_isa_prefer_ymm = 0x1 } dnnl_cpu_isa_hints_t;

struct dnnl_memory_desc;
typedef struct dnnl_memory_desc* dnnl_memory_desc_t;
typedef const struct dnnl_memory_desc* const_dnnl_memory_desc_t;

struct dnnl_memory;
typedef struct dnnl_memory* dnnl_memory_t;
typedef const struct dnnl_memory* const_dnnl_memory_t;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_TYPES_H_ */
