// Check and infer: an operation and its tensor descriptions become one consistent, complete set, or
// a sentence that says what is wrong. Step 2 of the story, in the words of the specification.
#ifndef CONVGRAD_SPEC_CHECK_H_
#define CONVGRAD_SPEC_CHECK_H_

#include <array>
#include <span>

#include "convgrad/operation.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "spec/attributes.h"
#include "spec/layout.h"
#include "spec/schema.h"

namespace convgrad {

struct CheckedOperation {
  const OperationSchema* schema = nullptr;
  AttributeSet attributes;  // pads are what auto_pad makes of them
  int spatial = 0;
  // By Role; extents and strides are known. Bias and shape tensor are not given() where there is
  // none.
  std::array<TensorDesc, 5> tensors;
  // Which channel axis of the weights counts the channels of all groups; the other counts one
  // group's.
  char group_axis = 'O';
  bool per_sample = false;  // diff_weights and diff_bias have a first axis, N
  bool bias_alone = false;  // diff_weights is not written

  const TensorDesc& tensor(Role role) const { return tensors[static_cast<size_t>(role)]; }
  TensorDesc& tensor(Role role) { return tensors[static_cast<size_t>(role)]; }
};

// What is asked for beside the specification, of the BackwardWeights operations.
struct Extensions {
  bool per_sample = false;  // a gradient for each image
  bool bias_alone = false;  // of the outputs, only diff_bias
};

Result<CheckedOperation> Check(const Operation& operation, std::span<const TensorDesc> inputs,
                               std::span<const TensorDesc> outputs,
                               const Extensions& extensions = {});

// By a row that need not be one of the table; the result keeps its address.
Result<CheckedOperation> Check(const OperationSchema& schema, const Attributes& attributes,
                               std::span<const TensorDesc> inputs,
                               std::span<const TensorDesc> outputs, const Extensions& extensions);

// The axes of weights, or of their gradients for each image.
WeightsLayout WeightsLayoutOf(const CheckedOperation& operation);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_CHECK_H_
