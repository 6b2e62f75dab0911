// Every header of the dnnl::graph API, as C++11 and without exceptions: compiled, not run.
#include "convgrad_dnnl.h"
#include "dnnl.h"
#include "dnnl.hpp"
#include "dnnl_config.h"
#include "dnnl_debug.h"
#include "dnnl_graph.h"
#include "dnnl_graph.hpp"
#include "dnnl_types.h"
#include "dnnl_version.h"
#include "oneapi/dnnl/dnnl.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "oneapi/dnnl/dnnl_common.h"
#include "oneapi/dnnl/dnnl_common.hpp"
#include "oneapi/dnnl/dnnl_common_types.h"
#include "oneapi/dnnl/dnnl_config.h"
#include "oneapi/dnnl/dnnl_debug.h"
#include "oneapi/dnnl/dnnl_graph.h"
#include "oneapi/dnnl/dnnl_graph.hpp"
#include "oneapi/dnnl/dnnl_graph_op.hpp"
#include "oneapi/dnnl/dnnl_graph_tensor.hpp"
#include "oneapi/dnnl/dnnl_graph_types.h"
#include "oneapi/dnnl/dnnl_types.h"
#include "oneapi/dnnl/dnnl_version.h"

namespace {

// Templates are compiled where they are used.
dnnl::graph::op& SetAttributes(dnnl::graph::op& made) {
  using op = dnnl::graph::op;
  return made.set_attr<int64_t>(op::attr::groups, 1)
      .set_attr<float>(op::attr::alpha, 1.0f)
      .set_attr<bool>(op::attr::use_dst, true)
      .set_attr<std::string>(op::attr::mode, "x")
      .set_attr<std::vector<int64_t>>(op::attr::axes, {1})
      .set_attr<std::vector<float>>(op::attr::scales, {1.0f});
}

}  // namespace

int UseHeaders();
int UseHeaders() {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const dnnl::stream stream(engine);
  dnnl::graph::op made(0, dnnl::graph::op::kind::ReLU);
  SetAttributes(made);
  dnnl::graph::graph graph(dnnl::engine::kind::cpu);
  return graph.add_op(made, false) == dnnl::graph::status::success ? 0 : 1;
}
