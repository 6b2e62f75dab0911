// A text, such as JSON, as a file that appears when it is complete.
#ifndef CONVGRAD_TOOLS_TEXT_FILE_H_
#define CONVGRAD_TOOLS_TEXT_FILE_H_

#include <string>

#include "convgrad/status.h"
#include "tools/temporary_file.h"

namespace convgrad::tools {

// Before the work whose result it holds: that the file can be made, and what it will be.
Result<Target> PrepareTextFile(const std::string& path);

Status WriteTextFile(const Target& target, const std::string& text);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_TEXT_FILE_H_
