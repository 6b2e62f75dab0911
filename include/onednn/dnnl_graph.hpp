/* The name without its folder, for clients that include it so. */
#ifndef CONVGRAD_DNNL_GRAPH_HPP_FORWARD_
#define CONVGRAD_DNNL_GRAPH_HPP_FORWARD_

#include "oneapi/dnnl/dnnl_graph.hpp"

#endif /* CONVGRAD_DNNL_GRAPH_HPP_FORWARD_ */
