/* A process that has a function of the library's names, as one that also loads oneDNN has: the
 * library calls its own. */
#include <stdio.h>

#include "dnnl_graph.h"

static int calls = 0;

dnnl_status_t dnnl_get_default_fpmath_mode(dnnl_fpmath_mode_t* mode) {
  (void)mode;
  ++calls;
  return dnnl_runtime_error;
}

size_t dnnl_engine_get_count(dnnl_engine_kind_t kind) {
  (void)kind;
  ++calls;
  return 0;
}

int main(void) {
  dnnl_graph_graph_t graph = NULL;
  dnnl_engine_t engine = NULL;
  const dnnl_status_t of_graph = dnnl_graph_graph_create(&graph, dnnl_cpu);
  const dnnl_status_t of_engine = dnnl_engine_create(&engine, dnnl_cpu, 0);
  printf("graph %d, engine %d, %d calls\n", (int)of_graph, (int)of_engine, calls);
  dnnl_graph_graph_destroy(graph);
  dnnl_engine_destroy(engine);
  return of_graph == dnnl_success && of_engine == dnnl_success && calls == 0 ? 0 : 1;
}
