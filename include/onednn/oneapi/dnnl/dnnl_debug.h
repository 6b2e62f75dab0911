/* Names of values. They live as long as the library; "unknown" for what is none. C99. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_DEBUG_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_DEBUG_H_

#include "oneapi/dnnl/dnnl_common_types.h"
#include "oneapi/dnnl/dnnl_config.h"

#ifdef __cplusplus
extern "C" {
#endif

DNNL_API const char* dnnl_status2str(dnnl_status_t status);
DNNL_API const char* dnnl_dt2str(dnnl_data_type_t type);
DNNL_API const char* dnnl_engine_kind2str(dnnl_engine_kind_t kind);
DNNL_API const char* dnnl_fpmath_mode2str(dnnl_fpmath_mode_t mode);
DNNL_API const char* dnnl_accumulation_mode2str(dnnl_accumulation_mode_t mode);

/* The names of the values of DNNL_CPU_RUNTIME and DNNL_GPU_RUNTIME. */
DNNL_API const char* dnnl_runtime2str(unsigned runtime);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_DEBUG_H_ */
