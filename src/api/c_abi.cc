// The C ABI: the C++ API with handles and a sentence per thread. It adds no meaning of its own.
#include <cstddef>
#include <string>
#include <vector>

#include "convgrad/convgrad.h"
#include "convgrad/convgrad.hpp"

struct convgrad_operation {
  convgrad::Operation operation;
};

struct convgrad_plan {
  convgrad::Plan plan;
  std::string kernel;
  std::string explanation;
};

struct convgrad_backward {
  convgrad::BackwardPlan plan;
  std::string explanation;
};

namespace {

using convgrad::Dims;
using convgrad::Status;
using convgrad::StatusCode;
using convgrad::TensorDesc;

std::string& LastError() {
  thread_local std::string error;
  return error;
}

// Runs `body`, which returns a Status; no exception passes the ABI.
template <class Body>
convgrad_status Guarded(const Body& body) noexcept {
  try {
    const Status status = body();
    LastError() = status.message();
    return static_cast<convgrad_status>(status.code());
  } catch (...) {                   // only allocations throw
    LastError() = "out of memory";  // fits without an allocation
    return CONVGRAD_OUT_OF_MEMORY;
  }
}

convgrad_status Fail(const char* message) noexcept {
  return Guarded([&] { return Status(StatusCode::kInvalidArgument, message); });
}

Status NullPointer(const std::string& name) {
  return {StatusCode::kInvalidArgument, name + " is a null pointer"};
}

// More than any operation, tensor or list has; so that a wild count is not taken for a length.
constexpr size_t kMostTensors = 8;
constexpr size_t kMostEntries = 64;

Status TooMany(const std::string& what, size_t count, size_t most) {
  return {StatusCode::kInvalidArgument,
          what + " is " + std::to_string(count) + ", expected at most " + std::to_string(most)};
}

Status Convert(const std::string& name, const convgrad_tensor& tensor, TensorDesc& desc) {
  if (tensor.type < CONVGRAD_UNDEF || tensor.type > CONVGRAD_S64) {
    return {StatusCode::kInvalidType, name + " has type " + std::to_string(tensor.type) +
                                          ", expected CONVGRAD_UNDEF (0) to CONVGRAD_S64 (5)"};
  }
  if (tensor.rank < 0 || tensor.rank > static_cast<int32_t>(kMostEntries)) {
    return {StatusCode::kInvalidShape, name + " has rank " + std::to_string(tensor.rank) +
                                           ", expected 0 to " + std::to_string(kMostEntries)};
  }
  if (tensor.rank > 0 && tensor.extents == nullptr) return NullPointer(name + " extents");
  desc.type = static_cast<convgrad::DataType>(tensor.type);
  if (tensor.rank > 0) desc.extents.assign(tensor.extents, tensor.extents + tensor.rank);
  if (tensor.rank > 0 && tensor.strides != nullptr) {
    desc.strides.assign(tensor.strides, tensor.strides + tensor.rank);
  }
  if (tensor.values == nullptr) return {};
  if (tensor.rank != 1 || tensor.extents[0] < 0 ||
      tensor.extents[0] > static_cast<int64_t>(kMostEntries)) {
    return {StatusCode::kInvalidShape, name + " has values and rank " +
                                           std::to_string(tensor.rank) +
                                           ", expected a shape tensor of one axis and at most " +
                                           std::to_string(kMostEntries) + " values"};
  }
  desc.values.assign(tensor.values, tensor.values + tensor.extents[0]);
  return {};
}

Status Convert(const convgrad_tensor* tensors, size_t count, const std::string& name,
               std::vector<TensorDesc>& descs) {
  if (tensors == nullptr && count > 0) return NullPointer(name);
  if (count > kMostTensors) return TooMany("the number of " + name, count, kMostTensors);
  descs.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Status status = Convert(name + "[" + std::to_string(i) + "]", tensors[i], descs[i]);
    if (!status.ok()) return status;
  }
  return {};
}

// Members are only ever added at the end: a caller built against an older header gives a smaller
// size, one built against a newer header a larger one, whose members this library must not ignore.
Status Convert(const convgrad_options* options, convgrad::Options& converted) {
  if (options == nullptr) return {};
  constexpr size_t kFirstSize = offsetof(convgrad_options, kernel) + sizeof(options->kernel);
  if (options->size < kFirstSize || options->size > 4096) {
    return {StatusCode::kInvalidArgument, "options size is " + std::to_string(options->size) +
                                              ", expected " + std::to_string(kFirstSize) +
                                              " to 4096: begin with CONVGRAD_OPTIONS_INIT"};
  }
  const char* bytes = reinterpret_cast<const char*>(options);
  for (size_t i = sizeof(convgrad_options); i < options->size; ++i) {
    if (bytes[i] == 0) continue;
    return {StatusCode::kInvalidArgument, "options has a member at byte " + std::to_string(i) +
                                              " that version " CONVGRAD_VERSION_STRING
                                              " does not know, expected zeros"};
  }
  converted.threads = options->threads;
  converted.workspace_limit = options->workspace_limit;
  converted.beta = options->beta;
  if (options->kernel != nullptr) converted.kernel = options->kernel;
  constexpr size_t kParallelSize =
      offsetof(convgrad_options, parallel_host) + sizeof(options->parallel_host);
  if (options->size > kFirstSize && options->size < kParallelSize) {
    return {StatusCode::kInvalidArgument, "options size is " + std::to_string(options->size) +
                                              ", which no version has: begin with "
                                              "CONVGRAD_OPTIONS_INIT"};
  }
  if (options->size >= kParallelSize) {
    converted.parallel_for = {options->parallel_for, options->parallel_host};
  }
  if (options->size > kParallelSize && options->size < sizeof(convgrad_options)) {
    return {StatusCode::kInvalidArgument, "options size is " + std::to_string(options->size) +
                                              ", which no version has: begin with "
                                              "CONVGRAD_OPTIONS_INIT"};
  }
  if (options->size >= sizeof(convgrad_options)) {
    if (options->per_sample != 0 && options->per_sample != 1) {
      return {StatusCode::kInvalidArgument,
              "options per_sample is " + std::to_string(options->per_sample) + ", expected 0 or 1"};
    }
    converted.per_sample = options->per_sample == 1;
  }
  return {};
}

convgrad_tensor Describe(const TensorDesc& desc) {
  return {static_cast<int32_t>(desc.type), static_cast<int32_t>(desc.extents.size()),
          desc.extents.data(), desc.strides.data(), nullptr};
}

// What plan_create and run take.
struct Request {
  std::vector<TensorDesc> inputs, outputs;
  convgrad::Options options;

  Status Fill(const convgrad_tensor* in, size_t num_in, const convgrad_tensor* out, size_t num_out,
              const convgrad_options* given) {
    if (Status s = Convert(in, num_in, "inputs", inputs); !s.ok()) return s;
    if (Status s = Convert(out, num_out, "outputs", outputs); !s.ok()) return s;
    return Convert(given, options);
  }
};

convgrad_status SetAttribute(convgrad_operation* operation, const char* attribute,
                             convgrad::AttributeValue value) {
  if (operation == nullptr) return Fail("operation is a null pointer");
  if (attribute == nullptr) return Fail("attribute is a null pointer");
  return Guarded([&] {
    operation->operation.attributes.Set(attribute, std::move(value));
    return Status();
  });
}

}  // namespace

const char* convgrad_version(void) { return CONVGRAD_VERSION_STRING; }

const char* convgrad_last_error(void) { return LastError().c_str(); }

convgrad_status convgrad_operation_create(const char* name, convgrad_operation** operation) {
  if (name == nullptr) return Fail("name is a null pointer");
  if (operation == nullptr) return Fail("operation is a null pointer");
  *operation = nullptr;
  return Guarded([&] {
    convgrad::Result<convgrad::OpKind> kind = convgrad::ParseOpKind(name);
    if (kind.ok()) *operation = new convgrad_operation{{*kind, {}}};
    return kind.status();
  });
}

void convgrad_operation_destroy(convgrad_operation* operation) { delete operation; }

convgrad_status convgrad_operation_set_s64(convgrad_operation* operation, const char* attribute,
                                           int64_t value) {
  return SetAttribute(operation, attribute, value);
}

convgrad_status convgrad_operation_set_s64s(convgrad_operation* operation, const char* attribute,
                                            const int64_t* values, size_t count) {
  if (values == nullptr && count > 0) return Fail("values is a null pointer");
  Dims list;
  const convgrad_status status = Guarded([&] {
    if (count > kMostEntries) return TooMany("the number of values", count, kMostEntries);
    list.assign(values, values + count);
    return Status();
  });
  return status == CONVGRAD_OK ? SetAttribute(operation, attribute, std::move(list)) : status;
}

convgrad_status convgrad_operation_set_string(convgrad_operation* operation, const char* attribute,
                                              const char* value) {
  if (value == nullptr) return Fail("value is a null pointer");
  std::string text;
  const convgrad_status status = Guarded([&] {
    text = value;
    return Status();
  });
  return status == CONVGRAD_OK ? SetAttribute(operation, attribute, std::move(text)) : status;
}

convgrad_status convgrad_plan_create(const convgrad_operation* operation,
                                     const convgrad_tensor* inputs, size_t num_inputs,
                                     const convgrad_tensor* outputs, size_t num_outputs,
                                     const convgrad_options* options, convgrad_plan** plan) {
  if (plan == nullptr) return Fail("plan is a null pointer");
  *plan = nullptr;
  if (operation == nullptr) return Fail("operation is a null pointer");
  return Guarded([&]() -> Status {
    Request request;
    Status filled = request.Fill(inputs, num_inputs, outputs, num_outputs, options);
    if (!filled.ok()) return filled;
    auto made = convgrad::Plan::Make(operation->operation, request.inputs, request.outputs,
                                     request.options);
    if (!made.ok()) return made.status();
    *plan = new convgrad_plan{*made, std::string(made->kernel()), made->Explain()};
    return {};
  });
}

void convgrad_plan_destroy(convgrad_plan* plan) { delete plan; }

convgrad_status convgrad_plan_output(const convgrad_plan* plan, size_t index,
                                     convgrad_tensor* output) {
  if (plan == nullptr) return Fail("plan is a null pointer");
  if (output == nullptr) return Fail("output is a null pointer");
  return Guarded([&]() -> Status {
    if (index >= static_cast<size_t>(plan->plan.num_outputs())) {
      return {StatusCode::kInvalidArgument, "output " + std::to_string(index) +
                                                " is asked for, the plan has " +
                                                std::to_string(plan->plan.num_outputs())};
    }
    *output = Describe(plan->plan.output(static_cast<int>(index)));
    return {};
  });
}

size_t convgrad_plan_num_outputs(const convgrad_plan* plan) {
  return plan == nullptr ? 0 : static_cast<size_t>(plan->plan.num_outputs());
}

double convgrad_plan_flops(const convgrad_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.flops();
}

double convgrad_plan_error_bound(const convgrad_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.error_bound();
}

size_t convgrad_num_kernels(void) { return convgrad::Kernels().size(); }

const char* convgrad_kernel_name(size_t index) {
  const std::vector<convgrad::KernelInfo> kernels = convgrad::Kernels();
  // The names are literals of the kernel table.
  return index < kernels.size() ? kernels[index].name.data() : "";
}

int64_t convgrad_plan_workspace_bytes(const convgrad_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.workspace_bytes();
}

const char* convgrad_plan_kernel(const convgrad_plan* plan) {
  return plan == nullptr ? "" : plan->kernel.c_str();
}

const char* convgrad_plan_explanation(const convgrad_plan* plan) {
  return plan == nullptr ? "" : plan->explanation.c_str();
}

convgrad_status convgrad_plan_run(const convgrad_plan* plan, const void* const* inputs,
                                  size_t num_inputs, void* const* outputs, size_t num_outputs,
                                  void* workspace) {
  if (plan == nullptr) return Fail("plan is a null pointer");
  if (inputs == nullptr && num_inputs > 0) return Fail("inputs is a null pointer");
  if (outputs == nullptr && num_outputs > 0) return Fail("outputs is a null pointer");
  if (num_inputs > kMostTensors || num_outputs > kMostTensors) {
    return Fail("more than 8 inputs or outputs are given, no operation has as many");
  }
  return Guarded([&] {
    return plan->plan.Run(std::span(inputs, num_inputs), std::span(outputs, num_outputs),
                          workspace);
  });
}

convgrad_status convgrad_run(const convgrad_operation* operation, const convgrad_tensor* inputs,
                             const void* const* input_data, size_t num_inputs,
                             const convgrad_tensor* outputs, void* const* output_data,
                             size_t num_outputs, const convgrad_options* options) {
  if (operation == nullptr) return Fail("operation is a null pointer");
  if (input_data == nullptr && num_inputs > 0) return Fail("input_data is a null pointer");
  if (output_data == nullptr && num_outputs > 0) return Fail("output_data is a null pointer");
  return Guarded([&]() -> Status {
    Request request;
    Status filled = request.Fill(inputs, num_inputs, outputs, num_outputs, options);
    if (!filled.ok()) return filled;
    std::vector<convgrad::ConstTensorView> input_views(num_inputs);
    std::vector<convgrad::TensorView> output_views(num_outputs);
    for (size_t i = 0; i < num_inputs; ++i) {
      input_views[i].data = input_data[i];
      input_views[i].desc = std::move(request.inputs[i]);
    }
    for (size_t i = 0; i < num_outputs; ++i) {
      output_views[i].data = output_data[i];
      output_views[i].desc = std::move(request.outputs[i]);
    }
    return convgrad::Run(operation->operation, input_views, output_views, request.options);
  });
}

convgrad_status convgrad_backward_create(const convgrad_operation* forward,
                                         const convgrad_tensor inputs[3],
                                         const convgrad_tensor outputs[3],
                                         const convgrad_options* options,
                                         convgrad_backward** backward) {
  if (backward == nullptr) return Fail("backward is a null pointer");
  *backward = nullptr;
  if (forward == nullptr) return Fail("forward is a null pointer");
  return Guarded([&]() -> Status {
    Request request;
    Status filled = request.Fill(inputs, convgrad::BackwardPlan::kInputs, outputs,
                                 convgrad::BackwardPlan::kOutputs, options);
    if (!filled.ok()) return filled;
    auto made = convgrad::BackwardPlan::Make(forward->operation, request.inputs, request.outputs,
                                             request.options);
    if (!made.ok()) return made.status();
    *backward = new convgrad_backward{*made, made->Explain()};
    return {};
  });
}

void convgrad_backward_destroy(convgrad_backward* backward) { delete backward; }

convgrad_status convgrad_backward_output(const convgrad_backward* backward, size_t index,
                                         convgrad_tensor* output) {
  if (backward == nullptr) return Fail("backward is a null pointer");
  if (output == nullptr) return Fail("output is a null pointer");
  return Guarded([&]() -> Status {
    if (index >= convgrad::BackwardPlan::kOutputs) {
      return {StatusCode::kInvalidArgument, "output " + std::to_string(index) +
                                                " is asked for, expected 0 (diff_src), 1 "
                                                "(diff_weights) or 2 (diff_bias)"};
    }
    *output = Describe(backward->plan.output(static_cast<int>(index)));
    return {};
  });
}

double convgrad_backward_flops(const convgrad_backward* backward) {
  return backward == nullptr ? 0 : backward->plan.flops();
}

int64_t convgrad_backward_workspace_bytes(const convgrad_backward* backward) {
  return backward == nullptr ? 0 : backward->plan.workspace_bytes();
}

const char* convgrad_backward_explanation(const convgrad_backward* backward) {
  return backward == nullptr ? "" : backward->explanation.c_str();
}

convgrad_status convgrad_backward_run(const convgrad_backward* backward,
                                      const void* const inputs[3], void* const outputs[3],
                                      void* workspace) {
  if (backward == nullptr) return Fail("backward is a null pointer");
  if (inputs == nullptr) return Fail("inputs is a null pointer");
  if (outputs == nullptr) return Fail("outputs is a null pointer");
  return Guarded([&] {
    return backward->plan.Run(std::span(inputs, convgrad::BackwardPlan::kInputs),
                              std::span(outputs, convgrad::BackwardPlan::kOutputs), workspace);
  });
}
