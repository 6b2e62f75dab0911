#include "py_plan.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "core/text.h"

namespace nb = nanobind;

namespace convgrad::python {
namespace {

// Attributes by their names in the specification: integers, sequences of integers, strings.
Attributes ParseAttributes(const nb::dict& attributes) {
  Attributes result;
  for (const auto& [key, value] : attributes) {
    const std::string name = nb::cast<std::string>(key);
    if (value.is_none()) continue;
    if (PyUnicode_Check(value.ptr())) {
      result.Set(name, nb::cast<std::string>(value));
    } else if (IsInteger(value)) {
      result.Set(name, ParseInteger(value, name));
    } else {
      result.Set(name, ParseDims(value, name));
    }
  }
  return result;
}

std::vector<TensorDesc> DescriptionsOf(const Arguments& arguments) {
  std::vector<TensorDesc> descriptions;
  for (const Array& array : arguments.arrays) descriptions.push_back(array.desc);
  return descriptions;
}

std::variant<Plan, BackwardPlan> MakePlan(const OperationSchema& schema, const nb::dict& attributes,
                                          const std::vector<TensorDesc>& inputs,
                                          const std::vector<TensorDesc>& outputs,
                                          const Options& options) {
  const Operation operation{schema.kind, ParseAttributes(attributes)};
  if (FindBackward(schema.name) != nullptr) {
    Result<BackwardPlan> plan = BackwardPlan::Make(operation, inputs, outputs, options);
    ThrowUnlessOk(plan.status());
    return *std::move(plan);
  }
  Result<Plan> plan = Plan::Make(operation, inputs, outputs, options);
  ThrowUnlessOk(plan.status());
  return *std::move(plan);
}

// Strides of axes that have one position, or of tensors without elements, mean nothing.
bool SameMemory(const TensorDesc& planned, const TensorDesc& given) {
  if (planned.type != given.type || planned.extents != given.extents) return false;
  if (std::find(planned.extents.begin(), planned.extents.end(), 0) != planned.extents.end()) {
    return true;
  }
  int64_t dense = 1;
  for (size_t i = planned.extents.size(); i-- > 0;) {
    const int64_t stride = planned.strides.empty() ? dense : planned.strides[i];
    const int64_t other = given.strides.empty() ? dense : given.strides[i];
    if (planned.extents[i] > 1 && stride != other) return false;
    dense *= planned.extents[i];
  }
  return true;
}

std::string Describe(const TensorDesc& tensor) {
  if (!tensor.given()) return "none";
  return Join(NameOf(tensor.type), " ", JoinNumbers(tensor.extents, "x"), " strides ",
              tensor.strides.empty() ? "dense" : JoinNumbers(tensor.strides, ","));
}

void CheckPlanned(std::string_view name, const TensorDesc& planned, const TensorDesc& given) {
  if (SameMemory(planned, given)) return;
  throw nb::value_error(
      Join(name, " is ", Describe(given), ", the plan was made for ", Describe(planned)).c_str());
}

}  // namespace

Arguments Arguments::Parse(nb::handle objects, std::span<const ArgumentSchema> schema,
                           Access access) {
  Arguments result;
  for (const nb::handle object : objects) {
    const size_t i = result.objects.size();
    const std::string name = i < schema.size() ? std::string(schema[i].name) : Join("argument ", i);
    result.objects.push_back(nb::borrow(object));
    result.arrays.push_back(ParseArray(object, name, access));
  }
  return result;
}

bool Arguments::has_memory(size_t i) const {
  if (i >= objects.size() || objects[i].is_none()) return false;
  return !PyTuple_Check(objects[i].ptr());
}

const OperationSchema& PyPlan::Find(const std::string& name) {
  if (const OperationSchema* schema = FindBackward(name)) return *schema;
  const Result<OpKind> kind = ParseOpKind(name);
  ThrowUnlessOk(kind.status());
  return SchemaOf(*kind);
}

PyPlan::PyPlan(const std::string& name, const nb::dict& attributes, const Arguments& inputs,
               const Arguments& outputs, const Options& options)
    : schema_(&Find(name)),
      beta_(options.beta),
      inputs_(DescriptionsOf(inputs)),
      plan_(MakePlan(*schema_, attributes, inputs_, DescriptionsOf(outputs), options)) {}

const TensorDesc& PyPlan::output(size_t i) const {
  return std::visit(
      [i](const auto& plan) -> const TensorDesc& { return plan.output(static_cast<int>(i)); },
      plan_);
}

size_t PyPlan::num_outputs() const {
  return single() != nullptr ? static_cast<size_t>(single()->num_outputs())
                             : static_cast<size_t>(BackwardPlan::kOutputs);
}

int64_t PyPlan::workspace_bytes() const {
  return std::visit([](const auto& plan) { return plan.workspace_bytes(); }, plan_);
}

double PyPlan::flops() const {
  return std::visit([](const auto& plan) { return plan.flops(); }, plan_);
}

std::string PyPlan::Explain() const {
  return std::visit([](const auto& plan) { return plan.Explain(); }, plan_);
}

nb::tuple PyPlan::Run(const Arguments& inputs, Arguments outputs,
                      const nb::callable& allocate) const {
  for (size_t i = 0; i < inputs.arrays.size(); ++i) {
    const bool planned = i < inputs_.size();
    const std::string_view name =
        i < schema_->inputs.size() ? schema_->inputs[i].name : "an argument";
    if (!inputs.objects[i].is_none() && !inputs.has_memory(i)) {
      throw nb::value_error(
          Join(name, " is a description (convgrad.Tensor), expected an array").c_str());
    }
    const bool optional = single() == nullptr && !inputs.arrays[i].desc.given();
    if (optional && planned) continue;  // not read by what is wanted, or refused by the library
    CheckPlanned(name, planned ? inputs_[i] : TensorDesc{}, inputs.arrays[i].desc);
  }
  outputs.objects.resize(std::max(outputs.objects.size(), num_outputs()), nb::none());
  outputs.arrays.resize(outputs.objects.size());
  for (size_t i = 0; i < outputs.objects.size(); ++i) {
    const TensorDesc& planned = i < num_outputs() ? output(i) : TensorDesc{};
    const std::string name =
        i < schema_->outputs.size() ? std::string(schema_->outputs[i].name) : Join("output ", i);
    if (planned.given() && !outputs.has_memory(i)) {
      if (beta_ != 0) {  // what is allocated holds anything
        char beta[32];
        std::snprintf(beta, sizeof beta, "%g", static_cast<double>(beta_));
        throw nb::value_error(
            Join("beta is ", beta, ", which reads the output: ", name, " is needed").c_str());
      }
      outputs.objects[i] = allocate(static_cast<int>(planned.type), ToTuple(planned.extents));
      outputs.arrays[i] = ParseArray(outputs.objects[i], name, Access::kWrite);
    }
    CheckPlanned(name, planned, outputs.arrays[i].desc);
  }
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Array& array : inputs.arrays) in.push_back(array.data);
  for (size_t i = 0; i < num_outputs(); ++i) out.push_back(outputs.arrays[i].data);
  Status status;
  {
    const nb::gil_scoped_release release;
    const auto bytes = static_cast<size_t>(workspace_bytes());
    const std::unique_ptr<char[]> workspace(bytes > 0 ? new char[bytes] : nullptr);
    status =
        std::visit([&](const auto& plan) { return plan.Run(in, out, workspace.get()); }, plan_);
  }
  ThrowUnlessOk(status);
  nb::list result;
  for (size_t i = 0; i < num_outputs(); ++i) result.append(outputs.objects[i]);
  return nb::tuple(result);
}

}  // namespace convgrad::python
