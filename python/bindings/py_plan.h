// A plan for Python: a single operation, or all gradients of a forward operation, by name.
#ifndef CONVGRAD_PYTHON_BINDINGS_PY_PLAN_H_
#define CONVGRAD_PYTHON_BINDINGS_PY_PLAN_H_

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arrays.h"
#include "convgrad/convgrad.hpp"
#include "spec/schema.h"

namespace convgrad::python {

// Objects from Python and what they describe. One that is an array has memory; others leave it to
// be allocated.
struct Arguments {
  std::vector<nanobind::object> objects;
  std::vector<Array> arrays;

  // Named after `schema`, those past its end by number.
  static Arguments Parse(nanobind::handle objects, std::span<const ArgumentSchema> schema,
                         Access access);
  bool has_memory(size_t i) const;
};

class PyPlan {
 public:
  // `name` is the specification's, or ConvolutionBackward or ConvTransposeBackward.
  PyPlan(const std::string& name, const nanobind::dict& attributes, const Arguments& inputs,
         const Arguments& outputs, const Options& options);

  // Outputs without memory come from allocate(type, extents); those that are not wanted stay None.
  // The interpreter's lock is released while it computes.
  nanobind::tuple Run(const Arguments& inputs, Arguments outputs,
                      const nanobind::callable& allocate) const;

  const OperationSchema& schema() const { return *schema_; }
  const TensorDesc& output(size_t i) const;
  size_t num_outputs() const;
  int64_t workspace_bytes() const;
  double flops() const;
  std::string Explain() const;
  // The plan of a single operation; null for gradients together.
  const Plan* single() const { return std::get_if<Plan>(&plan_); }

  static const OperationSchema& Find(const std::string& name);

 private:
  const OperationSchema* schema_;
  float beta_;
  std::vector<TensorDesc> inputs_;
  std::variant<Plan, BackwardPlan> plan_;
};

}  // namespace convgrad::python

#endif  // CONVGRAD_PYTHON_BINDINGS_PY_PLAN_H_
