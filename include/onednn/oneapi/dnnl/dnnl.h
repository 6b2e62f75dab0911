/* oneDNN's primitive API. convgrad has what both of oneDNN's APIs share: engines and streams; for
 * memory see dnnl.hpp. C99. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_H_

#include "oneapi/dnnl/dnnl_common.h"
#include "oneapi/dnnl/dnnl_config.h"
#include "oneapi/dnnl/dnnl_types.h"
#include "oneapi/dnnl/dnnl_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a cache that convgrad does not have: kept as a number. */
DNNL_API dnnl_status_t dnnl_get_primitive_cache_capacity(int* capacity);
DNNL_API dnnl_status_t dnnl_set_primitive_cache_capacity(int capacity);

/* What the CPU can do, and not more than the limit: of an x86, and 0 of any other. */
DNNL_API dnnl_cpu_isa_t dnnl_get_effective_cpu_isa(void);
/* Of what dnnl_get_effective_cpu_isa answers; dnnl_cpu_isa_default ends it. */
DNNL_API dnnl_status_t dnnl_set_max_cpu_isa(dnnl_cpu_isa_t isa);

/* Kept, and change nothing. */
DNNL_API dnnl_status_t dnnl_set_cpu_isa_hints(dnnl_cpu_isa_hints_t isa_hints);
DNNL_API dnnl_cpu_isa_hints_t dnnl_get_cpu_isa_hints(void);

/* Of a JIT that convgrad does not have: accepted. */
DNNL_API dnnl_status_t dnnl_set_jit_dump(int enable);
DNNL_API dnnl_status_t dnnl_set_jit_profiling_flags(unsigned flags);
DNNL_API dnnl_status_t dnnl_set_jit_profiling_jitdumpdir(const char* dir);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_H_ */
