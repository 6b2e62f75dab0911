// Logical tensors of the C API from and to those of graph_model.h.
#ifndef CONVGRAD_ONEDNN_DNNL_LOGICAL_TENSOR_H_
#define CONVGRAD_ONEDNN_DNNL_LOGICAL_TENSOR_H_

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "oneapi/dnnl/dnnl_graph_types.h"
#include "onednn/graph_model.h"

namespace convgrad::onednn {

// Nothing where the rank is beyond what the struct can hold.
std::optional<LogicalTensor> ModelOf(const dnnl_graph_logical_tensor_t& tensor);
dnnl_graph_logical_tensor_t StructOf(const LogicalTensor& tensor);

inline constexpr size_t kUnknownBytes = std::numeric_limits<size_t>::max();

// What get_mem_size answers: the largest product of an extent and its stride. That is not what the
// elements reach where strides do not nest. kUnknownBytes where the layout is not strided, an
// extent or a stride is unknown, or the number does not fit.
size_t MemoryBytes(const dnnl_graph_logical_tensor_t& tensor);

// From the first element to past the last, whatever the order of the strides. kUnknownBytes as
// above.
size_t SpanBytes(const dnnl_graph_logical_tensor_t& tensor);

// Of a size of kUnknownBytes, the reason, after the name of a tensor: "has unknown extents".
std::string WhyNoSize(const dnnl_graph_logical_tensor_t& tensor);

// Whether the elements, dense, have more than 2^63 - 1 bytes. False where an extent is unknown.
bool IsTooLarge(const dnnl_graph_logical_tensor_t& tensor);

// Whether it describes one number on the host: the property, no axes, and s32, s64 or f32.
bool IsHostScalar(const dnnl_graph_logical_tensor_t& tensor);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_DNNL_LOGICAL_TENSOR_H_
