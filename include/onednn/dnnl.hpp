/* The name without its folder, for clients that include it so. */
#ifndef CONVGRAD_DNNL_HPP_FORWARD_
#define CONVGRAD_DNNL_HPP_FORWARD_

#include "oneapi/dnnl/dnnl.hpp"

#endif /* CONVGRAD_DNNL_HPP_FORWARD_ */
