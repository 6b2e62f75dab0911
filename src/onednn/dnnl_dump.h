// Files of graphs, for dnnl_graph_set_dump_mode and ONEDNN_GRAPH_DUMP: in the current directory,
// with the names that oneDNN gives them, as `convgrad graph` reads them. A file that cannot be
// written fails no call.
#ifndef CONVGRAD_ONEDNN_DNNL_DUMP_H_
#define CONVGRAD_ONEDNN_DNNL_DUMP_H_

#include <vector>

#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {

void SetDumpModes(unsigned modes);

// Of graphs, and of the graphs that partitions are compiled as: 100001, 100002, ...
size_t NextGraphId();

// graph-ID.json, and graph-ID-partitioning.json with the partition of each operation.
void DumpGraph(const dnnl_graph_graph& graph) noexcept;

// graph-ID-HASH.json: the partition's operation with the tensors that it is compiled for.
using Structs = std::vector<dnnl_graph_logical_tensor_t>;
void DumpSubgraph(const dnnl_graph_partition& partition, const Structs& inputs,
                  const Structs& outputs) noexcept;

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_DNNL_DUMP_H_
