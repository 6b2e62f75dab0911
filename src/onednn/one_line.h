// Text of files and arguments as it is shown.
#ifndef CONVGRAD_ONEDNN_ONE_LINE_H_
#define CONVGRAD_ONEDNN_ONE_LINE_H_

#include <algorithm>
#include <string>

namespace convgrad::onednn {

// Of ASCII; bytes of UTF-8 are none.
inline bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Control characters do not reach the terminal, and the text stays on one line.
inline std::string OneLine(std::string text) {
  std::ranges::replace_if(text, IsControl, '?');
  return text;
}

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_ONE_LINE_H_
