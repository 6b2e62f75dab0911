// The words after verify, explain and bench: problem lines in benchdnn's grammar, or one operation
// line.
#ifndef CONVGRAD_TOOLS_PROBLEM_WORDS_H_
#define CONVGRAD_TOOLS_PROBLEM_WORDS_H_

#include <string>
#include <vector>

#include "convgrad/plan.h"
#include "convgrad/status.h"
#include "onednn/problem_line.h"
#include "tools/operation_line.h"

namespace convgrad::tools {

// What --lenient passed over: names of options, and problems with the reason.
struct PassedOver {
  std::vector<std::string> options;
  onednn::ReasonCounts problems;

  std::string ToText() const;  // a line for each; empty when there is nothing
};

// At least one case, or an error. Problem lines know no gradients for each image: with `per_sample`
// the outputs of those that write weights have N before their axes. An operation line has the
// extents that it means. With `passed_over` the reading is lenient: it takes what cannot be run,
// and there may be no case left.
Result<std::vector<Case>> ParseCases(const std::vector<std::string>& words, bool per_sample = false,
                                     PassedOver* passed_over = nullptr);

// Every case is legal and every option is; a kernel that is asked for by name may still refuse
// some.
Status CheckCases(const std::vector<Case>& cases, const Options& options);

// Of the cases' data, each once.
std::vector<DataType> TypesOf(const std::vector<Case>& cases);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PROBLEM_WORDS_H_
