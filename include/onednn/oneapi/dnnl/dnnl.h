/* oneDNN's primitive API. convgrad has what both of oneDNN's APIs share: engines and streams; for
 * memory see dnnl.hpp. C99. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_H_

#include "oneapi/dnnl/dnnl_common.h"
#include "oneapi/dnnl/dnnl_config.h"
#include "oneapi/dnnl/dnnl_types.h"
#include "oneapi/dnnl/dnnl_version.h"

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_H_ */
