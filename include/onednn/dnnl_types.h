/* The name without its folder, for clients that include it so. */
#ifndef CONVGRAD_DNNL_TYPES_H_FORWARD_
#define CONVGRAD_DNNL_TYPES_H_FORWARD_

#include "oneapi/dnnl/dnnl_types.h"

#endif /* CONVGRAD_DNNL_TYPES_H_FORWARD_ */
