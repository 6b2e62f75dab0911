// Whether a problem's tensors fit into this machine: of what does not, the system ends the process
// that fills it, without a word.
#ifndef CONVGRAD_TOOLS_CASE_MEMORY_H_
#define CONVGRAD_TOOLS_CASE_MEMORY_H_

#include <vector>

#include "convgrad/tensor.h"

namespace convgrad::tools {

inline constexpr char kDoesNotFit[] = "its tensors do not fit in this machine";

// Twice: results are compared with others.
bool FitsThisMachine(const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_CASE_MEMORY_H_
