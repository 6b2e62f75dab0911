// convgrad._core: what the Python package calls. Words are the specification's; friendly
// signatures are the package's own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <type_traits>

#include "convgrad/version.h"
#include "host_threads.h"
#include "py_plan.h"
#include "tools/peak.h"
#include "torch_bridge.h"

namespace nb = nanobind;

namespace convgrad::python {
namespace {

template <class Type>
Type ParseOption(nb::handle value, const std::string& name, const std::string& expected) {
  Type result{};
  if (nb::try_cast<Type>(value, result)) return result;
  if (std::is_integral_v<Type> && PyLong_CheckExact(value.ptr()) != 0) {  // too large
    const std::string given = nb::str(value).c_str();
    throw nb::value_error((name + " is " + given + ", expected " + expected).c_str());
  }
  const std::string type = nb::type_name(value.type()).c_str();
  throw nb::type_error((name + " is a " + type + ", expected " + expected).c_str());
}

// (threads, beta, workspace_limit, kernel, per_sample)
Options ParseOptions(const nb::tuple& values) {
  if (values.size() != 5) throw nb::type_error("options is not a tuple of five");
  Options options;
  options.threads = ParseOption<int>(values[0], "threads", "an integer of 32 bits");
  options.beta = ParseOption<float>(values[1], "beta", "a number");
  options.workspace_limit =
      ParseOption<int64_t>(values[2], "workspace_limit", "an integer of 64 bits");
  options.kernel = ParseOption<std::string>(values[3], "kernel", "a name");
  options.per_sample = ParseOption<bool>(values[4], "per_sample", "True or False");
  return options;
}

PyPlan MakePlan(const std::string& name, const nb::dict& attributes, const nb::sequence& inputs,
                const nb::sequence& outputs, const nb::tuple& options) {
  const OperationSchema& schema = PyPlan::Find(name);
  return {name, attributes, Arguments::Parse(inputs, schema.inputs, Access::kRead),
          Arguments::Parse(outputs, schema.outputs, Access::kWrite), ParseOptions(options)};
}

nb::tuple Call(const std::string& name, const nb::dict& attributes, const nb::sequence& inputs,
               const nb::sequence& outputs, const nb::tuple& options,
               const nb::callable& allocate) {
  const OperationSchema& schema = PyPlan::Find(name);
  const Arguments in = Arguments::Parse(inputs, schema.inputs, Access::kRead);
  Arguments out = Arguments::Parse(outputs, schema.outputs, Access::kWrite);
  const PyPlan plan(name, attributes, in, out, ParseOptions(options));
  return plan.Run(in, std::move(out), allocate);
}

nb::tuple RunPlan(const PyPlan& plan, const nb::sequence& inputs, const nb::sequence& outputs,
                  const nb::callable& allocate) {
  return plan.Run(Arguments::Parse(inputs, plan.schema().inputs, Access::kRead),
                  Arguments::Parse(outputs, plan.schema().outputs, Access::kWrite), allocate);
}

// (type, extents, strides) of each output, None where it is not wanted.
nb::tuple OutputsOf(const PyPlan& plan) {
  nb::list outputs;
  for (size_t i = 0; i < plan.num_outputs(); ++i) {
    const TensorDesc& tensor = plan.output(i);
    if (!tensor.given()) {
      outputs.append(nb::none());
      continue;
    }
    outputs.append(nb::make_tuple(static_cast<int>(tensor.type), ToTuple(tensor.extents),
                                  ToTuple(tensor.strides)));
  }
  return nb::tuple(outputs);
}

// (type, extents, strides) of an array.
nb::tuple DescribeArray(nb::handle array, const std::string& name) {
  const Array parsed = ParseArray(array, name);
  return nb::make_tuple(static_cast<int>(parsed.desc.type), ToTuple(parsed.desc.extents),
                        ToTuple(parsed.desc.strides));
}

// Dense memory of its own, which speaks DLPack and, but for bf16, the buffer protocol.
nb::ndarray<nb::array_api> Empty(int type, const nb::tuple& shape) {
  const Dims extents = ParseDims(shape, "shape");
  const auto number = static_cast<DataType>(type);
  auto code = nb::dlpack::dtype_code::Float;
  if (number == DataType::kBF16) code = nb::dlpack::dtype_code::Bfloat;
  const auto bytes = static_cast<size_t>(SizeOf(number));
  size_t size = bytes;
  std::vector<size_t> sizes;
  for (int64_t extent : extents) {
    sizes.push_back(static_cast<size_t>(extent));
    size *= sizes.back();
  }
  char* data = new char[size];
  const nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<char*>(memory); });
  return {data,  sizes.size(), sizes.data(),
          owner, nullptr,      {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * bytes), 1}};
}

// {name: (inputs, outputs, attributes)} of the ten operations.
nb::dict OperationTable() {
  nb::dict table;
  for (const OperationSchema& schema : Operations()) {
    nb::list inputs, outputs, attributes;
    for (const ArgumentSchema& argument : schema.inputs) inputs.append(argument.name);
    for (const ArgumentSchema& argument : schema.outputs) outputs.append(argument.name);
    for (const AttributeSchema* attribute : schema.attributes) attributes.append(attribute->name);
    table[nb::cast(schema.name)] =
        nb::make_tuple(nb::tuple(inputs), nb::tuple(outputs), nb::tuple(attributes));
  }
  return table;
}

nb::tuple KernelTableOf() {
  nb::list kernels;
  for (const KernelInfo& kernel : Kernels()) {
    kernels.append(nb::make_tuple(kernel.name, kernel.summary));
  }
  return nb::tuple(kernels);
}

// (instruction, flops per second) of a type on so many threads; 50 ms.
nb::tuple PeakOf(int type, int threads) {
  tools::Peak peak;
  {
    const nb::gil_scoped_release release;
    peak = tools::MeasurePeak(static_cast<DataType>(type), threads);
  }
  return nb::make_tuple(peak.instruction, peak.flops);
}

}  // namespace
}  // namespace convgrad::python

NB_MODULE(_core, module) {
  using namespace convgrad::python;
  WatchForks();
  nb::set_leak_warnings(false);  // PyTorch keeps what was registered with it until the very end
  module.attr("__version__") = CONVGRAD_VERSION_STRING;
  nb::class_<PyPlan>(module, "Plan")
      .def_prop_ro("workspace_bytes", &PyPlan::workspace_bytes)
      .def_prop_ro("flops", &PyPlan::flops)
      .def_prop_ro("outputs", &OutputsOf)
      .def_prop_ro("kernel",
                   [](const PyPlan& plan) {
                     return std::string(plan.single() ? plan.single()->kernel() : "");
                   })
      .def_prop_ro(
          "error_bound",
          [](const PyPlan& plan) { return plan.single() ? plan.single()->error_bound() : 0.0; })
      .def("explain", &PyPlan::Explain)
      .def("run", &RunPlan, nb::arg("inputs"), nb::arg("outputs"), nb::arg("allocate"));
  module.def("plan", &MakePlan, nb::arg("name"), nb::arg("attributes"), nb::arg("inputs"),
             nb::arg("outputs"), nb::arg("options"));
  module.def("call", &Call, nb::arg("name"), nb::arg("attributes"), nb::arg("inputs"),
             nb::arg("outputs"), nb::arg("options"), nb::arg("allocate"));
  module.def("empty", &Empty, nb::arg("type"), nb::arg("shape"));
  module.def("describe", &DescribeArray, nb::arg("array"), nb::arg("name"));
  module.def("operations", &OperationTable);
  module.def("kernels", &KernelTableOf);
  module.def("peak", &PeakOf, nb::arg("type"), nb::arg("threads"));
  module.def("cores", &convgrad::tools::CoresOfMachine);
  BindTorchBridge(module);
}
