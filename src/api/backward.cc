// Gradients of one forward operation as a plan for each single operation that is needed. It adds
// checks that hold all of them together, and no arithmetic. Nothing throws past this file.
#include "convgrad/backward.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/text.h"
#include "spec/check.h"
#include "spec/extent.h"

namespace convgrad {

struct BackwardPlan::Impl {
  std::array<TensorDesc, kInputs> inputs;
  std::array<TensorDesc, kOutputs> outputs;
  std::optional<Plan> data;     // diff_src
  std::optional<Plan> weights;  // diff_weights and diff_bias, or one of them

  bool wanted(size_t output) const { return outputs[output].given(); }
  // Which inputs the wanted outputs are made of.
  bool reads(size_t input) const;
};

namespace {

enum Input : size_t { kSrc, kWeights, kDiffDst };
enum Output : size_t { kDiffSrc, kDiffWeights, kDiffBias };
constexpr std::string_view kInputNames[] = {"src", "weights", "diff_dst"};
constexpr std::string_view kOutputNames[] = {"diff_src", "diff_weights", "diff_bias"};

Status OutOfMemory() { return {StatusCode::kOutOfMemory, "out of memory"}; }

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Status CheckKind(const Operation& forward) {
  if (forward.kind == OpKind::kConvolution || forward.kind == OpKind::kConvTranspose) return {};
  return Invalid(Join("operation is ", NameOf(forward.kind),
                      ", expected Convolution or ConvTranspose, whose gradients are computed"));
}

Status CheckCounts(std::span<const TensorDesc> inputs, std::span<const TensorDesc> outputs) {
  if (inputs.size() != BackwardPlan::kInputs) {
    return Invalid(Join("gradients were given ", inputs.size(),
                        " inputs, expected 3: src, weights and diff_dst"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].given()) continue;
    return Invalid(
        Join("input ", i, " '", kInputNames[i], "' is missing, gradients require its description"));
  }
  if (outputs.size() > BackwardPlan::kOutputs) {
    return Invalid(Join("gradients were given ", outputs.size(),
                        " outputs, expected at most 3: diff_src, diff_weights and diff_bias"));
  }
  for (const TensorDesc& output : outputs) {
    if (output.given()) return {};
  }
  return Invalid("no output is wanted, expected a type for diff_src, diff_weights or diff_bias");
}

// The forward operation, with diff_dst in the place of dst: extents, types and attributes.
Status CheckForward(const Operation& forward, std::span<const TensorDesc> inputs) {
  static constexpr ArgumentSchema kDst[] = {{"diff_dst", Role::kDst, true}};
  OperationSchema schema = SchemaOf(forward.kind);
  schema.outputs = kDst;
  TensorDesc diff_dst = inputs[kDiffDst];
  diff_dst.strides.clear();  // of an input: its elements may share memory
  if (diff_dst.extents.empty()) {
    return {StatusCode::kInvalidShape,
            Join("diff_dst has rank 0, expected that of src, ", inputs[kSrc].extents.size())};
  }
  for (size_t a = 0; a < diff_dst.extents.size(); ++a) {
    if (diff_dst.extents[a] >= 0) continue;
    return {StatusCode::kInvalidShape, Join("diff_dst dim ", a, " is unknown (",
                                            diff_dst.extents[a], "), inputs must be known")};
  }
  return Check(schema, forward.attributes, inputs.first(2), std::span(&diff_dst, 1), {}).status();
}

// As BackwardWeights says it where there is a diff_weights, too.
Status CheckBiasType(DataType type, DataType data) {
  if (type == data || type == DataType::kF32) return {};
  return {StatusCode::kInvalidType,
          Join("diff_bias has type ", NameOf(type), ", expected ", NameOf(data), " as diff_dst has",
               data == DataType::kF32 ? "" : ", or f32")};
}

// A gradient has the extents of what it is the gradient of, after `images` axes.
Status TakeExtents(Output index, const Dims& of, std::string_view of_name, size_t images,
                   TensorDesc& output) {
  if (output.extents.empty()) output.extents.assign(images + of.size(), -1);
  if (output.extents.size() != images + of.size()) {
    return {StatusCode::kInvalidShape,
            Join(kOutputNames[index], " has rank ", output.extents.size(), ", expected ",
                 images + of.size(), images > 0 ? ": N, then the axes of one gradient" : "")};
  }
  for (size_t a = 0; a < of.size(); ++a) {
    int64_t& extent = output.extents[images + a];
    if (extent >= 0 && extent != of[a]) {
      return {StatusCode::kInvalidShape,
              Join(kOutputNames[index], " dim ", images + a, " is ", extent, ", expected ", of[a],
                   " as ", of_name, " has")};
    }
    extent = of[a];
  }
  return {};
}

}  // namespace

bool BackwardPlan::Impl::reads(size_t input) const {
  if (input == kSrc) return wanted(kDiffWeights);
  return input == kDiffDst || wanted(kDiffSrc);
}

BackwardPlan::BackwardPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<BackwardPlan> BackwardPlan::Make(const Operation& forward,
                                        std::span<const TensorDesc> inputs,
                                        std::span<const TensorDesc> outputs,
                                        const Options& options) noexcept try {
  if (Status s = CheckKind(forward); !s.ok()) return s;
  if (Status s = CheckCounts(inputs, outputs); !s.ok()) return s;
  if (Status s = CheckForward(forward, inputs); !s.ok()) return s;
  auto impl = std::make_shared<Impl>();
  std::copy(inputs.begin(), inputs.end(), impl->inputs.begin());
  for (size_t i = 0; i < kInputs; ++i) {
    if (Status s = CompleteStrides(kInputNames[i], impl->inputs[i]); !s.ok()) return s;
  }
  std::copy(outputs.begin(), outputs.end(), impl->outputs.begin());
  TensorDesc& diff_src = impl->outputs[kDiffSrc];
  TensorDesc& diff_weights = impl->outputs[kDiffWeights];
  TensorDesc& diff_bias = impl->outputs[kDiffBias];
  const bool transposed = forward.kind == OpKind::kConvTranspose;
  if (diff_src.given()) {
    Status s = TakeExtents(kDiffSrc, inputs[kSrc].extents, "src", 0, diff_src);
    if (!s.ok()) return s;
    Options own = options;
    own.per_sample = false;  // every image has a diff_src of its own already
    const TensorDesc data_inputs[] = {inputs[kDiffDst], inputs[kWeights]};
    Result<Plan> plan = Plan::MakePart(
        {transposed ? OpKind::kConvTransposeBackwardData : OpKind::kConvolutionBackwardData,
         forward.attributes},
        data_inputs, std::span(&diff_src, 1), own, false);
    if (!plan.ok()) return plan.status();
    diff_src = plan->output(0);
    impl->data = *std::move(plan);
  }
  if (diff_weights.given() || diff_bias.given()) {
    const bool bias_alone = !diff_weights.given();
    // Of a diff_weights that is not wanted only the shape matters.
    TensorDesc written[] = {diff_weights, diff_bias};
    if (bias_alone) {
      if (Status s = CheckBiasType(diff_bias.type, inputs[kDiffDst].type); !s.ok()) return s;
      written[0] = TensorDesc{diff_bias.type};
    }
    Status s = TakeExtents(kDiffWeights, inputs[kWeights].extents, "weights",
                           options.per_sample ? 1 : 0, written[0]);
    if (!s.ok()) return s;
    const TensorDesc weights_inputs[] = {inputs[kSrc], inputs[kDiffDst]};
    Result<Plan> plan = Plan::MakePart(
        {transposed ? OpKind::kConvTransposeBackwardWeights : OpKind::kConvolutionBackwardWeights,
         forward.attributes},
        weights_inputs, written, options, bias_alone);
    if (!plan.ok()) return plan.status();
    if (!bias_alone) diff_weights = plan->output(0);
    if (diff_bias.given()) diff_bias = plan->output(1);
    impl->weights = *std::move(plan);
  }
  return BackwardPlan(std::move(impl));
} catch (...) {  // only allocations throw
  return OutOfMemory();
}

const TensorDesc& BackwardPlan::output(int index) const {
  static const TensorDesc kNone;
  return index >= 0 && index < kOutputs ? impl_->outputs[static_cast<size_t>(index)] : kNone;
}

int64_t BackwardPlan::workspace_bytes() const {
  return std::max(impl_->data ? impl_->data->workspace_bytes() : 0,
                  impl_->weights ? impl_->weights->workspace_bytes() : 0);
}

double BackwardPlan::flops() const {
  return (impl_->data ? impl_->data->flops() : 0) + (impl_->weights ? impl_->weights->flops() : 0);
}

std::string BackwardPlan::Explain() const noexcept try {
  std::string text = impl_->data ? impl_->data->Explain() : "";
  if (impl_->data && impl_->weights) text += "\n";
  return impl_->weights ? text + impl_->weights->Explain() : text;
} catch (...) {
  return "out of memory";  // fits without an allocation
}

Status BackwardPlan::Run(std::span<const void* const> inputs, std::span<void* const> outputs,
                         void* workspace) const noexcept try {
  const Impl& impl = *impl_;
  if (inputs.size() != kInputs || outputs.size() > kOutputs) {
    return Invalid(Join("gradients were given ", inputs.size(), " inputs and ", outputs.size(),
                        " outputs, expected 3 and at most 3"));
  }
  std::array<void*, kOutputs> out{};
  std::copy(outputs.begin(), outputs.end(), out.begin());
  for (size_t i = 0; i < kInputs; ++i) {
    if (inputs[i] != nullptr || !impl.reads(i) || IsEmpty(impl.inputs[i])) continue;
    return Invalid(Join("input ", i, " '", kInputNames[i], "' is a null pointer"));
  }
  for (size_t o = 0; o < kOutputs; ++o) {
    if (!impl.wanted(o) && out[o] != nullptr) {
      return Invalid(Join("output ", o, " '", kOutputNames[o],
                          "' is given, but the plan was made without it"));
    }
    if (!impl.wanted(o) || IsEmpty(impl.outputs[o])) continue;
    if (out[o] == nullptr) {
      return Invalid(Join("output ", o, " '", kOutputNames[o], "' is a null pointer"));
    }
    for (size_t i = 0; i < kInputs; ++i) {
      if (!impl.reads(i) || !ShareMemory(impl.outputs[o], out[o], impl.inputs[i], inputs[i]))
        continue;
      return Invalid(Join("output ", o, " '", kOutputNames[o], "' shares memory with input ", i,
                          " '", kInputNames[i], "', an output must not overlap an input"));
    }
    for (size_t other = 0; other < o; ++other) {
      if (!impl.wanted(other) ||
          !ShareMemory(impl.outputs[o], out[o], impl.outputs[other], out[other])) {
        continue;
      }
      return Invalid(Join("output ", o, " '", kOutputNames[o], "' shares memory with output ",
                          other, " '", kOutputNames[other], "', outputs must not overlap"));
    }
  }
  if (workspace == nullptr && workspace_bytes() > 0) {
    return Invalid(
        Join("workspace is a null pointer, this plan needs ", workspace_bytes(), " bytes"));
  }
  const void* const data_inputs[] = {inputs[kDiffDst], inputs[kWeights]};
  const void* const weights_inputs[] = {inputs[kSrc], inputs[kDiffDst]};
  void* const weights_outputs[] = {out[kDiffWeights], out[kDiffBias]};
  if (impl.data) impl.data->RunChecked(data_inputs, std::span(out).first(1), workspace);
  if (impl.weights) impl.weights->RunChecked(weights_inputs, weights_outputs, workspace);
  return {};
} catch (...) {  // only allocations throw
  return OutOfMemory();
}

Status RunBackward(const Operation& forward, const std::vector<ConstTensorView>& inputs,
                   const std::vector<TensorView>& outputs, const Options& options) noexcept try {
  std::vector<TensorDesc> input_descs, output_descs;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;
  for (const ConstTensorView& view : inputs) {
    input_descs.push_back(view.desc);
    input_data.push_back(view.data);
  }
  for (const TensorView& view : outputs) {
    output_descs.push_back(view.desc);
    output_data.push_back(view.data);
  }
  Result<BackwardPlan> plan = BackwardPlan::Make(forward, input_descs, output_descs, options);
  if (!plan.ok()) return plan.status();
  const size_t bytes = static_cast<size_t>(plan->workspace_bytes());
  const std::unique_ptr<char[]> workspace(bytes > 0 ? new char[bytes] : nullptr);
  return plan->Run(input_data, output_data, workspace.get());
} catch (...) {  // only allocations throw
  return OutOfMemory();
}

}  // namespace convgrad
