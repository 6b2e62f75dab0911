/* What convgrad adds to the graph API: the reason of a failure, as a sentence. C99. */
#ifndef CONVGRAD_DNNL_H_
#define CONVGRAD_DNNL_H_

#include "oneapi/dnnl/dnnl_config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why the calling thread's last call that failed did so, such as "weights dim 1 is 32, expected src
 * channels 64 / groups 4 = 16"; "" before the first. Valid until the next that fails. */
DNNL_API const char* convgrad_dnnl_last_error(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVGRAD_DNNL_H_ */
