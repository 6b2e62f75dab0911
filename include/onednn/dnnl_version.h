/* The name without its folder, for clients that include it so. */
#ifndef CONVGRAD_DNNL_VERSION_H_FORWARD_
#define CONVGRAD_DNNL_VERSION_H_FORWARD_

#include "oneapi/dnnl/dnnl_version.h"

#endif /* CONVGRAD_DNNL_VERSION_H_FORWARD_ */
