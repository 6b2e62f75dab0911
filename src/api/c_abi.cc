// The C ABI: the C++ API with handles and a sentence per thread. It adds no meaning of its own.
#include <new>
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
  } catch (const std::bad_alloc&) {
    LastError() = "out of memory";  // fits without an allocation
    return CONVGRAD_OUT_OF_MEMORY;
  }
}

convgrad_status Fail(const char* message) noexcept {
  return Guarded([&] { return Status(StatusCode::kInvalidArgument, message); });
}

Status NullPointer(const char* name) {
  return {StatusCode::kInvalidArgument, std::string(name) + " is a null pointer"};
}

Status Convert(const convgrad_tensor& tensor, TensorDesc& desc) {
  if (tensor.rank < 0 || (tensor.rank > 0 && tensor.extents == nullptr)) {
    return {StatusCode::kInvalidArgument,
            "tensor has rank " + std::to_string(tensor.rank) + " and " +
                (tensor.extents == nullptr ? "no extents" : "extents") +
                ", expected a rank of at least 0 and that many extents"};
  }
  if (tensor.type < CONVGRAD_UNDEF || tensor.type > CONVGRAD_S64) {
    return {StatusCode::kInvalidType, "tensor has type " + std::to_string(tensor.type) +
                                          ", expected CONVGRAD_UNDEF (0) to CONVGRAD_S64 (5)"};
  }
  desc.type = static_cast<convgrad::DataType>(tensor.type);
  if (tensor.rank == 0) return {};
  desc.extents.assign(tensor.extents, tensor.extents + tensor.rank);
  if (tensor.strides != nullptr) desc.strides.assign(tensor.strides, tensor.strides + tensor.rank);
  // The library checks that a shape tensor has one axis; its length is only trusted that far.
  if (tensor.values != nullptr && tensor.rank == 1 && tensor.extents[0] > 0 &&
      tensor.extents[0] <= 8) {
    desc.values.assign(tensor.values, tensor.values + tensor.extents[0]);
  }
  return {};
}

Status Convert(const convgrad_tensor* tensors, size_t count, const char* name,
               std::vector<TensorDesc>& descs) {
  if (tensors == nullptr && count > 0) return NullPointer(name);
  descs.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (Status status = Convert(tensors[i], descs[i]); !status.ok()) return status;
  }
  return {};
}

Status Convert(const convgrad_options* options, convgrad::Options& converted) {
  if (options == nullptr) return {};
  if (options->size < sizeof(convgrad_options)) {
    return {StatusCode::kInvalidArgument,
            "options size is " + std::to_string(options->size) + ", expected at least " +
                std::to_string(sizeof(convgrad_options)) + ": begin with CONVGRAD_OPTIONS_INIT"};
  }
  converted.threads = options->threads;
  converted.workspace_limit = options->workspace_limit;
  converted.beta = options->beta;
  if (options->kernel != nullptr) converted.kernel = options->kernel;
  return {};
}

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
    std::vector<TensorDesc> input_descs, output_descs;
    convgrad::Options converted;
    if (Status s = Convert(inputs, num_inputs, "inputs", input_descs); !s.ok()) return s;
    if (Status s = Convert(outputs, num_outputs, "outputs", output_descs); !s.ok()) return s;
    if (Status s = Convert(options, converted); !s.ok()) return s;
    auto made = convgrad::Plan::Make(operation->operation, input_descs, output_descs, converted);
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
    const TensorDesc& desc = plan->plan.output(static_cast<int>(index));
    *output = {static_cast<convgrad_type>(desc.type), static_cast<int32_t>(desc.extents.size()),
               desc.extents.data(), desc.strides.data(), nullptr};
    return {};
  });
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
    std::vector<TensorDesc> input_descs, output_descs;
    convgrad::Options converted;
    if (Status s = Convert(inputs, num_inputs, "inputs", input_descs); !s.ok()) return s;
    if (Status s = Convert(outputs, num_outputs, "outputs", output_descs); !s.ok()) return s;
    if (Status s = Convert(options, converted); !s.ok()) return s;
    std::vector<convgrad::ConstTensorView> input_views(num_inputs);
    std::vector<convgrad::TensorView> output_views(num_outputs);
    for (size_t i = 0; i < num_inputs; ++i) {
      input_views[i].data = input_data[i];
      input_views[i].desc = std::move(input_descs[i]);
    }
    for (size_t i = 0; i < num_outputs; ++i) {
      output_views[i].data = output_data[i];
      output_views[i].desc = std::move(output_descs[i]);
    }
    return convgrad::Run(operation->operation, input_views, output_views, converted);
  });
}
