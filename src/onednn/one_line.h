// Text of files and arguments as it is shown.
#ifndef CONVGRAD_ONEDNN_ONE_LINE_H_
#define CONVGRAD_ONEDNN_ONE_LINE_H_

#include <algorithm>
#include <string>

namespace convgrad::onednn {

// Of ASCII: no byte of a longer character of UTF-8 is one.
inline bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Control characters, those of two bytes in UTF-8, too, do not reach the terminal, and the text
// stays on one line.
inline std::string OneLine(std::string text) {
  std::ranges::replace_if(text, IsControl, '?');
  for (size_t i = 1; i < text.size(); ++i) {
    const auto low = static_cast<unsigned char>(text[i]);
    if (text[i - 1] == '\xc2' && low >= 0x80 && low < 0xa0) text[i - 1] = text[i] = '?';
  }
  return text;
}

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_ONE_LINE_H_
