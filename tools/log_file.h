// A verbose log from a file or a pipe, line by line: no more than a line is in memory, and what has
// no end is an error and not a wait.
#ifndef CONVGRAD_TOOLS_LOG_FILE_H_
#define CONVGRAD_TOOLS_LOG_FILE_H_

#include <cstdint>
#include <string>

#include "convgrad/status.h"
#include "onednn/verbose_log.h"

namespace convgrad::tools {

// Limits that only mistakes reach, such as devices: a log of any size is read as long as its lines
// end and some of them are verbose output.
inline constexpr int64_t kLongestLogLine = int64_t{64} << 20;
inline constexpr int64_t kMostOtherBytes = int64_t{1} << 30;  // before the first verbose line

// `path` is a file, or - for standard input.
Status ReadLog(const std::string& path, onednn::VerboseLog& log);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_LOG_FILE_H_
