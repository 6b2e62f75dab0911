// convgrad run: tensors from files, one operation, tensors to files. Nothing is written before
// everything has been read, checked and computed.
#include <algorithm>
#include <functional>

#include "convgrad/backward.h"
#include "core/numerics.h"
#include "core/text.h"
#include "spec/arguments.h"
#include "spec/schema.h"
#include "tools/commands.h"
#include "tools/operation_line.h"
#include "tools/progress.h"
#include "tools/tensor_buffer.h"
#include "tools/tensor_file.h"

namespace convgrad::tools {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

// An input: a mapped file, or a converted copy of one.
struct Input {
  HostTensor file;
  std::optional<TensorBuffer> converted;

  ConstTensorView view() const {
    return converted ? std::as_const(*converted).view() : file.view();
  }
};

TensorBuffer Convert(const ConstTensorView& from, DataType type) {
  TensorBuffer to(TensorDesc{type, from.desc.extents});
  int64_t next = 0;
  ForEachOffset(from.desc.extents, from.desc.strides, [&](int64_t offset) {
    StoreRounded(type, to.data(), next++, LoadWidened(from.desc.type, from.data, offset));
  });
  return to;
}

// Whether a type has all numbers of a tensor of f32.
bool HoldsTheSame(const HostTensor& wide, const TensorBuffer& narrow) {
  return Convert(narrow.view(), DataType::kF32).SameBytes(Convert(wide.view(), DataType::kF32));
}

// An empty name leaves `type` as it is.
Status ParseType(const std::string& name, DataType& type) {
  if (name.empty()) return {};
  Result<DataType> parsed = ParseDataType(name);
  if (!parsed.ok()) return parsed.status();
  type = *parsed;
  return {};
}

class Runner {
 public:
  explicit Runner(const RunRequest& request) : request_(request) {}

  Status Parse() {
    Result<OperationLine> line = ParseOperationLine(request_.words);
    if (!line.ok()) return line.status();
    line_ = *std::move(line);
    schema_ = line_.schema;
    backward_ = FindBackward(schema_->name) != nullptr;
    if (Status s = backward_ ? CheckNamedOutputs() : TakeOut(); !s.ok()) return s;
    if (Status s = ParseType(request_.dtype, dtype_); !s.ok()) return s;
    return ParseType(request_.out_dtype, out_dtype_);
  }

  Status ReadInputs() {
    inputs_.resize(line_.inputs.size());
    for (size_t i = 0; i < line_.inputs.size(); ++i) {
      if (line_.inputs[i].empty()) continue;
      Result<HostTensor> file = ReadTensor(line_.inputs[i]);
      if (!file.ok()) return file.status();
      inputs_[i].file = *std::move(file);
      const DataType type = inputs_[i].file.desc.type;
      const bool data = schema_->inputs[i].role != Role::kShape;
      if (data && IsFloat(type) && dtype_ != DataType::kUndef && dtype_ != type) {
        inputs_[i].converted = Convert(inputs_[i].file.view(), dtype_);
      }
    }
    return {};
  }

  Status MakePlan() {
    std::vector<TensorDesc> inputs, outputs(line_.outputs.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ConstTensorView view = inputs_[i].view();
      inputs.push_back(view.desc);
      if (view.data != nullptr) inputs.back().values = ReadShapeTensor(view.desc, view.data);
    }
    const DataType type = out_dtype_ == DataType::kUndef ? inputs[0].type : out_dtype_;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool data = backward_ && schema_->outputs[i].role == Role::kSrc;  // as the inputs
      if (!line_.outputs[i].empty()) outputs[i].type = data ? inputs[0].type : type;
    }
    if (backward_) {
      Result<BackwardPlan> plan =
          BackwardPlan::Make(line_.operation, inputs, outputs, request_.options);
      if (plan.ok()) Keep(*plan, BackwardPlan::kOutputs);
      return plan.status();
    }
    Result<Plan> plan = Plan::Make(line_.operation, inputs, outputs, request_.options);
    if (plan.ok()) Keep(*plan, plan->num_outputs());
    return plan.status();
  }

  // Before the work, not after it: can the outputs be written, and to different places?
  Status CheckTargets() {
    std::vector<std::string> places;
    for (size_t i = 0; i < planned_.size(); ++i) {
      if (!planned_[i].given()) continue;
      const std::string& where = line_.outputs[i];
      Result<std::string> place = CheckTarget(where, planned_[i]);
      if (!place.ok()) return place.status();
      if (std::find(places.begin(), places.end(), *place) != places.end()) {
        return Invalid(
            Join("two outputs are to be written to ", where, ", each needs its own place"));
      }
      places.push_back(*place);
    }
    return {};
  }

  Status PrepareOutputs() {
    for (size_t i = 0; i < planned_.size(); ++i) {
      outputs_.emplace_back(planned_[i].given() ? TensorBuffer(planned_[i]) : TensorBuffer());
      if (request_.options.beta == 0 || !planned_[i].given()) continue;
      const std::string& where = line_.outputs[i];
      Result<HostTensor> old = ReadTensor(where);
      if (!old.ok()) {
        return Invalid(Join("--beta adds to what the output holds: ", old.status().message()));
      }
      // bf16 is written to .npy as f32.
      const bool widened = planned_[i].type == DataType::kBF16 && where.ends_with(".npy");
      const DataType type = widened ? DataType::kF32 : planned_[i].type;
      if (old->desc.extents != planned_[i].extents || old->desc.type != type) {
        return Invalid(Join("--beta adds to what the output holds: ", where, " is ",
                            JoinNumbers(old->desc.extents, "x"), " ", NameOf(old->desc.type),
                            ", expected ", JoinNumbers(planned_[i].extents, "x"), " ",
                            NameOf(type)));
      }
      outputs_.back() = Convert(old->view(), planned_[i].type);
      if (widened && !HoldsTheSame(*old, outputs_.back())) {
        return Invalid(Join("--beta adds to what the output holds: ", where,
                            " has numbers that bf16 does not have; --out_dtype f32 keeps the f32 "
                            "sums of a weight gradient"));
      }
    }
    return {};
  }

  Status Compute() {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const Input& input : inputs_) inputs.push_back(input.view().data);
    for (TensorBuffer& output : outputs_) {
      outputs.push_back(output.desc().given() ? output.data() : nullptr);
    }
    std::vector<char> workspace(workspace_bytes_);
    return run_(inputs, outputs, workspace.empty() ? nullptr : workspace.data());
  }

  Status WriteOutputs() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!planned_[i].given()) continue;
      const std::string& where = line_.outputs[i];
      const bool widen = outputs_[i].desc().type == DataType::kBF16 && where.ends_with(".npy");
      const TensorBuffer wide =
          widen ? Convert(std::as_const(outputs_[i]).view(), DataType::kF32) : TensorBuffer();
      const TensorBuffer& tensor = widen ? wide : outputs_[i];
      if (Status s = WriteTensor(where, tensor.data(), tensor.desc()); !s.ok()) return s;
    }
    return {};
  }

 private:
  Status TakeOut() {
    if (!request_.out.empty() && !line_.outputs[0].empty()) {
      return Invalid(Join("--out and ", schema_->outputs[0].name, "= are both given"));
    }
    if (line_.outputs[0].empty()) line_.outputs[0] = request_.out;
    if (!line_.outputs[0].empty()) return {};
    return Invalid(
        Join("no output file is given: --out FILE, or ", schema_->outputs[0].name, "=FILE"));
  }

  // Of gradients, those that have a file are wanted.
  Status CheckNamedOutputs() const {
    const std::string_view rule = "diff_src=FILE, diff_weights=FILE and diff_bias=FILE";
    if (!request_.out.empty()) {
      return Invalid(
          Join("--out is given, ", schema_->name, " has several outputs, expected any of ", rule));
    }
    const auto named = [](const std::string& where) { return !where.empty(); };
    if (std::any_of(line_.outputs.begin(), line_.outputs.end(), named)) return {};
    return Invalid(Join("no output file is given, expected any of ", rule));
  }

  template <class AnyPlan>
  void Keep(const AnyPlan& plan, int outputs) {
    for (int i = 0; i < outputs; ++i) planned_.push_back(plan.output(i));
    workspace_bytes_ = static_cast<size_t>(plan.workspace_bytes());
    run_ = [plan](std::span<const void* const> in, std::span<void* const> out, void* workspace) {
      return plan.Run(in, out, workspace);
    };
  }

  const RunRequest& request_;
  OperationLine line_;
  const OperationSchema* schema_ = nullptr;
  DataType dtype_ = DataType::kUndef, out_dtype_ = DataType::kUndef;
  std::vector<Input> inputs_;
  std::vector<TensorBuffer> outputs_;
  bool backward_ = false;            // all gradients of a forward operation
  std::vector<TensorDesc> planned_;  // by the schema's index; not given(): not wanted
  size_t workspace_bytes_ = 0;
  std::function<Status(std::span<const void* const>, std::span<void* const>, void*)> run_;
};

}  // namespace

Result<int> RunOperation(const RunRequest& request) {
  Runner runner(request);
  Progress progress(request.words.empty() ? "run" : request.words[0]);
  for (auto step : {&Runner::Parse, &Runner::ReadInputs, &Runner::MakePlan, &Runner::CheckTargets,
                    &Runner::PrepareOutputs, &Runner::Compute, &Runner::WriteOutputs}) {
    if (Status status = (runner.*step)(); !status.ok()) return status;
  }
  return 0;
}

}  // namespace convgrad::tools
