// One line of text is one problem:
//   wgrad bf16 g1 n8 ci64 co64 in1x56x56 taps1x3x3 out1x56x56 s1x1x1 d1x1x1 p0x1x1 x[...] w[...]
//   y[...]
// Strides are printed only where they differ from the dense ones (SetDenseStrides). The type
// bf16:f32 reads bf16 and writes f32. per_sample writes a w, and a bias, for each image,
// per_sample[w,bias] so many elements apart; bias[1] alone writes no w.
#ifndef CONVGRAD_CORE_PROBLEM_TEXT_H_
#define CONVGRAD_CORE_PROBLEM_TEXT_H_

#include <string>
#include <string_view>

#include "convgrad/status.h"
#include "core/problem.h"

namespace convgrad {

std::string ToText(const Problem& problem);

// ParseProblem(ToText(p)) == p. The line may come from a person: every mistake is named.
Result<Problem> ParseProblem(std::string_view line);

}  // namespace convgrad

#endif  // CONVGRAD_CORE_PROBLEM_TEXT_H_
