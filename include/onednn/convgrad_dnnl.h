/* What convgrad adds to the graph API: the reason of a failure, as a sentence. C99. */
#ifndef CONVGRAD_DNNL_H_
#define CONVGRAD_DNNL_H_

#include "oneapi/dnnl/dnnl_common_types.h"
#include "oneapi/dnnl/dnnl_config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why the calling thread's last call that failed did so, such as "weights dim 1 is 32, expected src
 * channels 64 / groups 4 = 16"; "" before the first. Valid until the next that fails. */
DNNL_API const char* convgrad_dnnl_last_error(void);

/* The status, with a sentence for convgrad_dnnl_last_error(): for what the C++ headers find wrong
 * without a call of C. */
DNNL_API dnnl_status_t convgrad_dnnl_refuse(dnnl_status_t status, const char* why);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_DNNL_H_ */
