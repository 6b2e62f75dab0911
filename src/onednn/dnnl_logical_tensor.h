// Logical tensors of the C API from and to those of graph_model.h.
#ifndef CONVGRAD_ONEDNN_DNNL_LOGICAL_TENSOR_H_
#define CONVGRAD_ONEDNN_DNNL_LOGICAL_TENSOR_H_

#include <cstddef>
#include <limits>
#include <optional>

#include "oneapi/dnnl/dnnl_graph_types.h"
#include "onednn/graph_model.h"

namespace convgrad::onednn {

// Nothing where the rank is beyond what the struct can hold.
std::optional<LogicalTensor> ModelOf(const dnnl_graph_logical_tensor_t& tensor);
dnnl_graph_logical_tensor_t StructOf(const LogicalTensor& tensor);

inline constexpr size_t kUnknownBytes = std::numeric_limits<size_t>::max();

// From the first element to past the last. kUnknownBytes where the layout is not strided, an extent
// or a stride is unknown, or the number does not fit.
size_t MemoryBytes(const dnnl_graph_logical_tensor_t& tensor);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_DNNL_LOGICAL_TENSOR_H_
