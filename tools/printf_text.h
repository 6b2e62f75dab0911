// Numbers in columns: what std::printf would print, as a string.
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

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_PRINTF_TEXT_H_
