/* Settings that come from the environment, which this process gets from its test's entry:
 * DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY=77, ONEDNN_DEFAULT_FPMATH_MODE=BF16 and
 * ONEDNN_GRAPH_DUMP=subgraph,GRAPH. */
#include <stdio.h>

#include "dnnl_graph.h"

int main(void) {
  int capacity = 0, applies = 1;
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict, of_graph = dnnl_fpmath_mode_strict;
  dnnl_graph_graph_t graph = NULL;
  dnnl_graph_get_compiled_partition_cache_capacity(&capacity);
  dnnl_get_default_fpmath_mode(&mode);
  if (dnnl_graph_graph_create(&graph, dnnl_cpu) != dnnl_success) return 1;
  dnnl_graph_graph_get_fpmath_mode(graph, &of_graph, &applies);
  if (dnnl_graph_graph_finalize(graph) != dnnl_success) return 1;
  if (dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion) != dnnl_success) return 1;
  dnnl_graph_graph_destroy(graph);
  if (remove("graph-100001.json") != 0 || remove("graph-100001-partitioning.json") != 0) return 1;
  printf("capacity %d, mode %d, of a graph %d\n", capacity, (int)mode, (int)of_graph);
  return capacity == 77 && mode == dnnl_fpmath_mode_bf16 && of_graph == mode && applies == 0 ? 0
                                                                                             : 1;
}
