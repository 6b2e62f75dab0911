// Files of graphs, for dnnl_graph_set_dump_mode and ONEDNN_GRAPH_DUMP: in the current directory,
// with names as oneDNN gives them (but the hash is another), as `convgrad graph` reads them. A file
// that cannot be written fails no call.
#ifndef CONVGRAD_ONEDNN_DNNL_DUMP_H_
#define CONVGRAD_ONEDNN_DNNL_DUMP_H_

#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {

void SetDumpModes(unsigned modes);

// graph-ID.json, and graph-ID-partitioning.json with the partition of each operation.
void DumpGraph(const dnnl_graph_graph& graph) noexcept;

// graph-ID-HASH.json, of the partition's id: its operation with the tensors that it is compiled
// for. Compiled for the same tensors again, the same file.
void DumpSubgraph(const dnnl_graph_partition& partition, const Structs& inputs,
                  const Structs& outputs) noexcept;

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_DNNL_DUMP_H_
