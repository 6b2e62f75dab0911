// Numbers in columns, what std::printf would print, as a string; and numbers in sentences.
#ifndef CONVGRAD_TOOLS_PRINTF_TEXT_H_
#define CONVGRAD_TOOLS_PRINTF_TEXT_H_

#include <cstdarg>
#include <cstdio>
#include <string>

namespace convgrad::tools {

// At most 255 characters: a line's numbers, never a name.
__attribute__((format(printf, 1, 2))) inline std::string Format(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// 1 problem, 2 problems.
inline std::string Counted(long long count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PRINTF_TEXT_H_
