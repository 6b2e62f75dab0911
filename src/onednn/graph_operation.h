// From a graph's operations to convgrad's: the one translator between graph_model.h and the public
// headers. Checks only what cannot be said in convgrad's words (a boolean attribute, a tensor of
// u8, an opaque layout); everything else is Plan::Make's to check.
#ifndef CONVGRAD_ONEDNN_GRAPH_OPERATION_H_
#define CONVGRAD_ONEDNN_GRAPH_OPERATION_H_

#include <vector>

#include "convgrad/operation.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "onednn/graph_model.h"

namespace convgrad::onednn {

// Whether convgrad runs operations of this kind: the six, and the four older names.
bool IsSupportedKind(const GraphOp& op);

// Fails for a kind that convgrad does not run, and for attributes that are neither s64, s64[] nor
// string.
Result<Operation> OperationOf(const GraphOp& op);

// An unknown rank, and a layout that is not strided or whose strides are all unknown (negative),
// leave extents and strides empty: inferred, and dense. Fails where only some strides are unknown.
// A layout of any becomes dense in the order of the extents.
Result<TensorDesc> DescOf(const LogicalTensor& tensor);

// Of an operation's inputs or outputs. A tensor without type is an argument that is not given.
Result<std::vector<TensorDesc>> DescsOf(const std::vector<LogicalTensor>& tensors);

// The tensor as a plan has completed it: extents and strides known, layout strided, the id and the
// property as before.
LogicalTensor Completed(const LogicalTensor& tensor, const TensorDesc& desc);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_OPERATION_H_
