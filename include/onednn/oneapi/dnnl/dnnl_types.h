/* oneDNN's types of its primitives. convgrad has those that both of oneDNN's APIs share. C99. */
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_TYPES_H_
#define CONVGRAD_ONEAPI_DNNL_DNNL_TYPES_H_

#include "oneapi/dnnl/dnnl_common_types.h"

#endif /* CONVGRAD_ONEAPI_DNNL_DNNL_TYPES_H_ */
