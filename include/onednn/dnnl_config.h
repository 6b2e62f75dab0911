/* The name without its folder, for clients that include it so. */
#ifndef CONVGRAD_DNNL_CONFIG_H_FORWARD_
#define CONVGRAD_DNNL_CONFIG_H_FORWARD_

#include "oneapi/dnnl/dnnl_config.h"

#endif /* CONVGRAD_DNNL_CONFIG_H_FORWARD_ */
