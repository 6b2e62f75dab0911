// One operation as words: OPERATION name=value... --attribute value... The value of an argument is
// a file (run) or extents such as 2x3x8x8, with strides 2x3x8x8@192,64,8,1 (verify, explain).
// Argument and attribute names come from the specification's table.
#ifndef CONVGRAD_TOOLS_OPERATION_LINE_H_
#define CONVGRAD_TOOLS_OPERATION_LINE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/operation.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "spec/schema.h"

namespace convgrad::tools {

struct OperationLine {
  Operation operation;
  const OperationSchema* schema = nullptr;
  // By the specification's index; empty: not given.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

// The name may also be ConvolutionBackward or ConvTransposeBackward: then `operation` is the
// forward one, and the arguments are those of BackwardPlan.
Result<OperationLine> ParseOperationLine(std::span<const std::string> words);

// An operation on tensors of known shapes, ready to plan.
struct Case {
  std::string text;                // for people
  std::vector<std::string> words;  // what makes it again
  Operation operation;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
};

// The words may also hold --dtype f32|bf16|f16, and --out_dtype where the outputs have another type
// than the inputs. A shape tensor is given as its numbers: 8x4x3x3.
Result<Case> ParseCase(std::span<const std::string> words);

// The inverse of ParseCase.
std::string ToText(const Operation& operation, std::span<const TensorDesc> inputs,
                   std::span<const TensorDesc> outputs);

Result<DataType> ParseDataType(std::string_view name);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_OPERATION_LINE_H_
