/* The name without its folder, for clients that include it so. */
#ifndef CONVGRAD_DNNL_DEBUG_H_FORWARD_
#define CONVGRAD_DNNL_DEBUG_H_FORWARD_

#include "oneapi/dnnl/dnnl_debug.h"

#endif /* CONVGRAD_DNNL_DEBUG_H_FORWARD_ */
