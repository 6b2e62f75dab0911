// The public plan: steps 1 to 5 in order. Nothing throws past this file.
#include "convgrad/plan.h"

#include <new>

#include "core/text.h"
#include "plan/planner.h"
#include "spec/arguments.h"
#include "spec/canonicalize.h"
#include "spec/check.h"
#include "spec/extent.h"

namespace convgrad {

struct Plan::Impl {
  CheckedOperation operation;
  KernelPlan kernel_plan;
  int num_outputs = 1;

  const TensorDesc& output(int index) const {
    return operation.tensor(operation.schema->outputs[static_cast<size_t>(index)].role);
  }
};

namespace {

// Short enough for a std::string that allocates nothing.
Status OutOfMemory() { return {StatusCode::kOutOfMemory, "out of memory"}; }

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

// Values that came too late to plan with must be the planned ones.
Status CheckShapeValues(std::string_view name, const TensorDesc& tensor, const void* data,
                        std::span<const int64_t> planned) {
  for (size_t i = 0; i < planned.size(); ++i) {
    if (ShapeValueAt(tensor, data, i) == planned[i]) continue;
    return {StatusCode::kInvalidShape,
            Join(name, " is ", JoinNumbers(ReadShapeTensor(tensor, data), "x"),
                 ", the plan was made for ", JoinNumbers(planned, "x"))};
  }
  return {};
}

Status CheckInputs(const CheckedOperation& op, std::span<const void* const> inputs) {
  const std::span<const ArgumentSchema> schema = op.schema->inputs;
  if (inputs.size() > schema.size()) {
    return Invalid(Join(op.schema->name, " was given ", inputs.size(), " inputs, it has at most ",
                        schema.size()));
  }
  for (size_t i = 0; i < schema.size(); ++i) {
    const TensorDesc& tensor = op.tensor(schema[i].role);
    const void* data = i < inputs.size() ? inputs[i] : nullptr;
    if (!tensor.given()) {
      if (data == nullptr) continue;
      return Invalid(
          Join("input ", i, " '", schema[i].name, "' is given, but the plan was made without it"));
    }
    if (schema[i].role == Role::kShape) {
      if (data == nullptr && !tensor.values.empty()) continue;
      if (data == nullptr) {
        return Invalid(Join("input ", i, " '", schema[i].name, "' is a null pointer"));
      }
      std::span<const int64_t> planned = op.tensor(op.schema->outputs[0].role).extents;
      if (op.per_sample) planned = planned.subspan(1);
      if (Status s = CheckShapeValues(schema[i].name, tensor, data, planned); !s.ok()) return s;
      continue;
    }
    if (data == nullptr && !IsEmpty(tensor)) {
      return Invalid(Join("input ", i, " '", schema[i].name, "' is a null pointer"));
    }
  }
  return {};
}

Status CheckOutputs(const CheckedOperation& op, size_t planned, std::span<void* const> outputs) {
  if (outputs.size() != planned) {
    return Invalid(Join(op.schema->name, " was given ", outputs.size(),
                        " outputs, the plan was made for ", planned));
  }
  for (size_t i = 0; i < planned; ++i) {
    const ArgumentSchema& schema = op.schema->outputs[i];
    if (outputs[i] == nullptr && !IsEmpty(op.tensor(schema.role))) {
      return Invalid(Join("output ", i, " '", schema.name, "' is a null pointer"));
    }
  }
  return {};
}

// What is written must not be read, or written twice.
Status CheckAliases(const CheckedOperation& op, std::span<const void* const> inputs,
                    std::span<void* const> outputs) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    const ArgumentSchema& output = op.schema->outputs[o];
    const TensorDesc& written = op.tensor(output.role);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ArgumentSchema& input = op.schema->inputs[i];
      if (!ShareMemory(written, outputs[o], op.tensor(input.role), inputs[i])) continue;
      return Invalid(Join("output ", o, " '", output.name, "' shares memory with input ", i, " '",
                          input.name, "', an output must not overlap an input"));
    }
    for (size_t other = 0; other < o; ++other) {
      const ArgumentSchema& first = op.schema->outputs[other];
      if (!ShareMemory(written, outputs[o], op.tensor(first.role), outputs[other])) continue;
      return Invalid(Join("output ", o, " '", output.name, "' shares memory with output ", other,
                          " '", first.name, "', outputs must not overlap"));
    }
  }
  return {};
}

}  // namespace

std::vector<KernelInfo> Kernels() noexcept try {
  std::vector<KernelInfo> kernels;
  for (const KernelRow& row : KernelTable()) kernels.push_back({row.name, row.summary});
  return kernels;
} catch (...) {
  return {};
}

Plan::Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Plan> Plan::Make(const Operation& operation, std::span<const TensorDesc> inputs,
                        std::span<const TensorDesc> outputs, const Options& options) noexcept try {
  return MakePart(operation, inputs, outputs, options, false);
} catch (...) {  // only allocations throw
  return OutOfMemory();
}

Result<Plan> Plan::MakePart(const Operation& operation, std::span<const TensorDesc> inputs,
                            std::span<const TensorDesc> outputs, const Options& options,
                            bool bias_alone) {
  Result<CheckedOperation> checked =
      Check(operation, inputs, outputs, {options.per_sample, bias_alone});
  if (!checked.ok()) return checked.status();
  Result<KernelPlan> kernel_plan =
      MakeKernelPlan(Canonicalize(*checked), {options.threads, options.workspace_limit,
                                              options.beta, options.kernel, options.parallel_for});
  if (!kernel_plan.ok()) return kernel_plan.status();
  auto impl = std::make_shared<Impl>();
  impl->operation = *std::move(checked);
  impl->kernel_plan = *std::move(kernel_plan);
  impl->num_outputs = outputs.size() > 1 && outputs[1].given() ? 2 : 1;
  return Plan(std::move(impl));
}

const TensorDesc& Plan::output(int index) const {
  static const TensorDesc kNone;
  return index >= 0 && index < impl_->num_outputs ? impl_->output(index) : kNone;
}
int Plan::num_outputs() const { return impl_->num_outputs; }
int64_t Plan::workspace_bytes() const { return impl_->kernel_plan.workspace_bytes; }
std::string_view Plan::kernel() const { return impl_->kernel_plan.kernel->name; }
double Plan::flops() const { return 2 * CountMultiplyAdds(impl_->kernel_plan.problem); }

double Plan::error_bound() const {
  return impl_->kernel_plan.kernel->error_bound(impl_->kernel_plan.problem);
}

std::string Plan::Explain() const noexcept try {
  const CheckedOperation& op = impl_->operation;
  std::string text = Join("operation   ", op.schema->name, "\n");
  const auto add = [&](std::string_view what, const ArgumentSchema& argument) {
    const TensorDesc& tensor = op.tensor(argument.role);
    if (!tensor.given()) return;
    text += Join(what, argument.name, " ", JoinNumbers(tensor.extents, "x"), " ",
                 NameOf(tensor.type), " strides ", JoinNumbers(tensor.strides, ","), "\n");
  };
  for (const ArgumentSchema& argument : op.schema->inputs) {
    if (argument.role == Role::kShape || (op.bias_alone && argument.role == Role::kSrc)) continue;
    add("input       ", argument);
  }
  for (const ArgumentSchema& argument : op.schema->outputs) {
    if (!op.bias_alone || argument.role == Role::kBias) add("output      ", argument);
  }
  return text + ExplainKernelPlan(impl_->kernel_plan);
} catch (...) {
  return "out of memory";  // fits without an allocation
}

void Plan::RunChecked(std::span<const void* const> inputs, std::span<void* const> outputs,
                      void* workspace) const {
  RunKernelPlan(impl_->kernel_plan, CanonicalOperands(impl_->operation, inputs, outputs),
                workspace);
}

Status Plan::Run(std::span<const void* const> inputs, std::span<void* const> outputs,
                 void* workspace) const noexcept try {
  const CheckedOperation& op = impl_->operation;
  if (Status s = CheckInputs(op, inputs); !s.ok()) return s;
  if (Status s = CheckOutputs(op, static_cast<size_t>(impl_->num_outputs), outputs); !s.ok())
    return s;
  if (workspace == nullptr && workspace_bytes() > 0) {
    return Invalid(
        Join("workspace is a null pointer, this plan needs ", workspace_bytes(), " bytes"));
  }
  if (Status s = CheckAliases(op, inputs, outputs); !s.ok()) return s;
  RunChecked(inputs, outputs, workspace);
  return {};
} catch (...) {  // only allocations throw
  return OutOfMemory();
}

Status Plan::Run(std::initializer_list<const void*> inputs, void* output,
                 void* workspace) const noexcept {
  return Run(std::span(inputs.begin(), inputs.size()), std::span(&output, 1), workspace);
}

Status Run(const Operation& operation, const std::vector<ConstTensorView>& inputs,
           const std::vector<TensorView>& outputs, const Options& options) noexcept try {
  std::vector<TensorDesc> input_descs, output_descs;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;
  for (const ConstTensorView& view : inputs) {
    input_descs.push_back(view.desc);
    input_data.push_back(view.data);
    if (view.data != nullptr) input_descs.back().values = ReadShapeTensor(view.desc, view.data);
  }
  for (const TensorView& view : outputs) {
    output_descs.push_back(view.desc);
    output_data.push_back(view.data);
  }
  Result<Plan> plan = Plan::Make(operation, input_descs, output_descs, options);
  if (!plan.ok()) return plan.status();
  output_data.resize(static_cast<size_t>(plan->num_outputs()));
  const size_t bytes = static_cast<size_t>(plan->workspace_bytes());
  const std::unique_ptr<char[]> workspace(bytes > 0 ? new char[bytes] : nullptr);
  return plan->Run(input_data, output_data, workspace.get());
} catch (...) {  // only allocations throw
  return OutOfMemory();
}

}  // namespace convgrad
