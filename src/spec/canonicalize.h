// Operation -> problem: step 3 of the story, and the only place that knows both vocabularies.
//
//   operation                     pass    x         w              y
//   Convolution                   fprop   src       weights        dst
//   ConvolutionBackwardData       dgrad   diff_src  weights        diff_dst
//   ConvolutionBackwardWeights    wgrad   src       diff_weights   diff_dst
//   ConvTranspose                 dgrad   dst       weights        src
//   ConvTransposeBackwardData     fprop   diff_dst  weights        diff_src
//   ConvTransposeBackwardWeights  wgrad   diff_dst  diff_weights   src
#ifndef CONVGRAD_SPEC_CANONICALIZE_H_
#define CONVGRAD_SPEC_CANONICALIZE_H_

#include <span>

#include "core/problem.h"
#include "spec/check.h"

namespace convgrad {

Problem Canonicalize(const CheckedOperation& operation);

// The pointers of a run, given in the order of the schema's inputs and outputs, as x, w and y.
Operands CanonicalOperands(const CheckedOperation& operation, std::span<const void* const> inputs,
                           std::span<void* const> outputs);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_CANONICALIZE_H_
