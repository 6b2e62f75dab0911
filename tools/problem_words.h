// The words after verify and explain: problem lines in benchdnn's grammar, or one operation line.
#ifndef CONVGRAD_TOOLS_PROBLEM_WORDS_H_
#define CONVGRAD_TOOLS_PROBLEM_WORDS_H_

#include <string>
#include <vector>

#include "convgrad/status.h"
#include "tools/operation_line.h"

namespace convgrad::tools {

// At least one case, or an error.
Result<std::vector<Case>> ParseCases(const std::vector<std::string>& words);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PROBLEM_WORDS_H_
