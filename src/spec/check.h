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

  const TensorDesc& tensor(Role role) const { return tensors[static_cast<size_t>(role)]; }
  TensorDesc& tensor(Role role) { return tensors[static_cast<size_t>(role)]; }
};

Result<CheckedOperation> Check(const Operation& operation, std::span<const TensorDesc> inputs,
                               std::span<const TensorDesc> outputs);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_CHECK_H_
