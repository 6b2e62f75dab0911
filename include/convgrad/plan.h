// A plan: one operation on tensors of known shapes, checked once, run as often as wanted.
//
//   inputs   in the index order of the specification; optional ones may be left out at the end or
//            be default-constructed (pointers: null)
//   outputs  output 0 as the specification has it; the BackwardWeights operations take an optional
//            output 1, diff_bias (an extension: the sum of diff_dst over batch and pixels)
//   types    one for all tensors; the outputs of the BackwardWeights operations may both be f32
//            where the inputs are bf16 or f16 (an extension: name it in the output's description)
//   per_sample  one gradient of weights and bias for each image, not their sum: diff_weights is
//            (N, weights...), diff_bias (N, OC) (an extension)
#ifndef CONVGRAD_PLAN_H_
#define CONVGRAD_PLAN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/export.h"
#include "convgrad/operation.h"
#include "convgrad/parallel.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"

namespace convgrad {

struct Options {
  static constexpr int64_t kNoLimit = -1;

  // 0: as many as the machine has. At most 64, or twice its cores, are used. Never changes the
  // result.
  int threads = 0;
  int64_t workspace_limit = kNoLimit;  // bytes; 0 is honoured. Never changes the result.
  float beta = 0.0f;                   // out = beta * out + result; 0 never reads the output
  std::string kernel{};                // empty: the planner chooses. Kernels() lists the names.
  ParallelFor parallel_for{};          // empty: OpenMP. Never changes the result.
  // BackwardWeights only: a gradient for each image, with the bits of a run on that image alone.
  bool per_sample = false;
};

struct KernelInfo {
  std::string_view name;
  std::string_view summary;
};

// The kernels of this build, in the order in which the planner considers them.
CONVGRAD_API std::vector<KernelInfo> Kernels() noexcept;

// Immutable and cheap to copy; one plan may run on several threads at once, on different outputs.
class CONVGRAD_API Plan {
  friend class BackwardPlan;

 public:
  // Checks everything and infers what is unknown. On an error nothing has happened.
  static Result<Plan> Make(const Operation& operation, std::span<const TensorDesc> inputs,
                           std::span<const TensorDesc> outputs = {},
                           const Options& options = {}) noexcept;

  // Complete: extents and strides are known. An index that the plan does not have gives an empty
  // one.
  const TensorDesc& output(int index = 0) const;
  int num_outputs() const;
  int64_t workspace_bytes() const;
  std::string_view kernel() const;
  // Of one run: two for each multiply-add whose factors both lie inside their tensors.
  double flops() const;
  // Before it is rounded to its type, an element is off by at most this share of the sum of the
  // magnitudes of its terms, if no product underflows and no factor of bf16 is subnormal.
  double error_bound() const;

  // What will run and why: the problem, the kernels considered, workspace, expected time.
  std::string Explain() const noexcept;

  // Outputs must overlap neither inputs nor each other nor the workspace.
  // `workspace` needs workspace_bytes() bytes, of any alignment, and no other run may use it at the
  // same time. Fails, before anything is written, on a missing pointer and on a shape tensor that
  // differs from the planned shape (null is fine if its values were known when planning). Never
  // allocates on success.
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs,
             void* workspace = nullptr) const noexcept;
  Status Run(std::initializer_list<const void*> inputs, void* output,
             void* workspace = nullptr) const noexcept;

 private:
  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl);
  // bias_alone: of the outputs of a BackwardWeights operation, only diff_bias is written.
  static Result<Plan> MakePart(const Operation& operation, std::span<const TensorDesc> inputs,
                               std::span<const TensorDesc> outputs, const Options& options,
                               bool bias_alone);
  void RunChecked(std::span<const void* const> inputs, std::span<void* const> outputs,
                  void* workspace) const;
  std::shared_ptr<const Impl> impl_;
};

// One call: plan, workspace and run.
CONVGRAD_API Status Run(const Operation& operation, const std::vector<ConstTensorView>& inputs,
                        const std::vector<TensorView>& outputs,
                        const Options& options = {}) noexcept;

}  // namespace convgrad

#endif  // CONVGRAD_PLAN_H_
