/* Engines, streams and settings of the whole library. C99; every function may be called from any
 * thread, none throws. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_COMMON_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_COMMON_H_

#include "oneapi/dnnl/dnnl_common_types.h"
#include "oneapi/dnnl/dnnl_config.h"
#include "oneapi/dnnl/dnnl_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of kind dnnl_cpu, none of the others. */
DNNL_API size_t dnnl_engine_get_count(dnnl_engine_kind_t kind);

/* An engine lives until it is destroyed and nothing that was made with it is left. */
DNNL_API dnnl_status_t dnnl_engine_create(dnnl_engine_t* engine, dnnl_engine_kind_t kind,
                                          size_t index);
DNNL_API dnnl_status_t dnnl_engine_get_kind(dnnl_engine_t engine, dnnl_engine_kind_t* kind);
DNNL_API dnnl_status_t dnnl_engine_destroy(dnnl_engine_t engine);

/* Execution returns when the result is there: there is never anything to wait for. */
DNNL_API dnnl_status_t dnnl_stream_create(dnnl_stream_t* stream, dnnl_engine_t engine,
                                          unsigned flags);
/* The caller does not own the engine. */
DNNL_API dnnl_status_t dnnl_stream_get_engine(const_dnnl_stream_t stream, dnnl_engine_t* engine);
DNNL_API dnnl_status_t dnnl_stream_wait(dnnl_stream_t stream);
DNNL_API dnnl_status_t dnnl_stream_destroy(dnnl_stream_t stream);

/* The mode of graphs that are made without one; ONEDNN_DEFAULT_FPMATH_MODE sets the first. */
DNNL_API dnnl_status_t dnnl_get_default_fpmath_mode(dnnl_fpmath_mode_t* mode);
DNNL_API dnnl_status_t dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_t mode);

/* Accepts 0, 1 and 2. convgrad never prints. */
DNNL_API dnnl_status_t dnnl_set_verbose(int level);

DNNL_API const dnnl_version_t* dnnl_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_COMMON_H_ */
