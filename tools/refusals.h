// What happens when a kernel that was asked for by name cannot run a problem, or its tensors do not
// fit in this machine, the same in every command: the problem has a line that says why, the others
// go on, and at the end there is one sentence on standard error and exit code 2; 1 where a result
// is wrong besides.
#ifndef CONVGRAD_TOOLS_REFUSALS_H_
#define CONVGRAD_TOOLS_REFUSALS_H_

#include <cstdint>
#include <string>

#include "convgrad/status.h"
#include "core/text.h"
#include "tools/printf_text.h"

namespace convgrad::tools {

inline std::string RefusalText(const std::string& reason, const std::string& problem) {
  return Join("refused: ", reason, " (", problem, ")");
}

// `code` where nothing was refused, or where it says that a result is wrong.
inline Result<int> ExitCode(int code, const std::string& kernel, int64_t refused, int64_t of,
                            const char* noun = "problem") {
  if (code != 0 || refused == 0) return code;
  const std::string what =
      kernel.empty() ? "this machine cannot run " : Join("kernel '", kernel, "' cannot run ");
  return Status(StatusCode::kInvalidArgument, Join(what, refused, " of ", Counted(of, noun)));
}

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_REFUSALS_H_
