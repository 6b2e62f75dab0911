// Checks one case: what a plan computes against the formulas of the specification, which share no
// code with the library, and against another run of the oracle.
#ifndef CONVGRAD_TOOLS_CASE_CHECK_H_
#define CONVGRAD_TOOLS_CASE_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convgrad/plan.h"
#include "tools/operation_line.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tools {

struct CheckRequest {
  Options options;  // of the plan under test
  uint64_t seed = 1;
  // Products that may be spent on the formulas, for each kind of data. All output elements are
  // checked when that suffices, else the first, the last and some between them.
  int64_t product_budget = 1'000'000;
  // CheckOnInputs: a plan of more is not compared with the oracle, which would take minutes, but
  // with the formulas alone, for which the budget is larger then.
  double oracle_flops = 2e8;
  // Called after each run of the plan under test, before anything is compared: how tests show that
  // a wrong element, or a byte written beside them, is found.
  std::function<void(std::vector<TensorBuffer>&, bool integers)> tamper;
};

struct CheckReport {
  bool passed = false;
  bool refused = false;  // there is no plan: the kernel that was asked for cannot run the problem
  std::string failure;   // one sentence, also of a refusal
  std::string kernel;
  int64_t elements = 0;          // of all outputs
  int64_t checked_elements = 0;  // of these, against the formulas
  double worst = 0;              // largest error / bound on real data
  double error = 0;              // the plan's error bound
  double seconds = 0;            // of one run
  double flops = 0;              // of one run
  bool exact = false;            // CheckOnInputs: all bits were compared, not distances
  bool sampled = false;          // CheckOnInputs: checked_elements are all that were looked at
};

// Integer data must agree bit for bit. Real data must lie within the plan's error bound times the
// sum of the magnitudes of an element's terms, and half an ulp of the output's type.
CheckReport CheckCase(const Case& item, const CheckRequest& request);

// The same for inputs that there are already, by the indices of the specification: within the
// bound, and bit for bit where all are whole numbers and so small that f32 has every sum.
// `outputs` are what the plan under test wrote; after a refusal none.
CheckReport CheckOnInputs(const Case& item, const CheckRequest& request,
                          std::vector<TensorBuffer>& inputs, bool whole_numbers,
                          std::vector<TensorBuffer>* outputs);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_CASE_CHECK_H_
