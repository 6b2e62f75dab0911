// All gradients of one forward operation, any of them, in one call: an extension.
//
//   operation  Convolution or ConvTranspose, with the attributes of the forward operation
//   inputs     src, weights, diff_dst
//   outputs    diff_src, diff_weights, diff_bias: those that are wanted. Their extents are those of
//              src, of weights and (OC), and may be left out: a type alone asks for an output
//
// Each result has the bits of the single operation: BackwardData, or BackwardWeights with both of
// its outputs. What is not wanted is not computed: diff_bias alone reads diff_dst once and nothing
// else.
#ifndef CONVGRAD_BACKWARD_H_
#define CONVGRAD_BACKWARD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convgrad/export.h"
#include "convgrad/operation.h"
#include "convgrad/plan.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"

namespace convgrad {

// Immutable and cheap to copy; one plan may run on several threads at once, on different outputs.
class CONVGRAD_API BackwardPlan {
 public:
  static constexpr int kInputs = 3;   // src, weights, diff_dst
  static constexpr int kOutputs = 3;  // diff_src, diff_weights, diff_bias

  // All three inputs are described, whatever is wanted. Options hold for every output; beta reads
  // each that is wanted, per_sample is for diff_weights and diff_bias. On an error nothing has
  // happened.
  static Result<BackwardPlan> Make(const Operation& forward, std::span<const TensorDesc> inputs,
                                   std::span<const TensorDesc> outputs,
                                   const Options& options = {}) noexcept;

  // Complete; not given() where the output is not wanted.
  const TensorDesc& output(int index) const;
  // Of the part that needs the most: they run one after the other.
  int64_t workspace_bytes() const;
  // Of all parts, in the words of Plan. Sums for the bias are no multiply-adds.
  double flops() const;
  // Of what is wanted: the single operations, and what runs them and why.
  std::string Explain() const noexcept;

  // As Plan::Run. Pointers of outputs that are not wanted, and of inputs that then are not read,
  // may be null: src is read for diff_weights alone, weights for diff_src alone.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs,
             void* workspace = nullptr) const noexcept;

 private:
  struct Impl;
  explicit BackwardPlan(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// One call: plan, workspace and run. A view that is default-constructed is an output that is not
// wanted.
CONVGRAD_API Status RunBackward(const Operation& forward,
                                const std::vector<ConstTensorView>& inputs,
                                const std::vector<TensorView>& outputs,
                                const Options& options = {}) noexcept;

}  // namespace convgrad

#endif  // CONVGRAD_BACKWARD_H_
