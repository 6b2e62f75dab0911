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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_H_ */
