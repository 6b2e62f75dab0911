// Sentences from pieces. GCC 12 has no std::format.
#ifndef CONVGRAD_CORE_TEXT_H_
#define CONVGRAD_CORE_TEXT_H_

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace convgrad {

namespace text_internal {
inline void Append(std::string& out, std::string_view piece) { out += piece; }
inline void Append(std::string& out, char piece) { out += piece; }
template <std::integral Int>
void Append(std::string& out, Int piece) {
  out += std::to_string(piece);
}
}  // namespace text_internal

template <class... Pieces>
std::string Join(const Pieces&... pieces) {
  std::string out;
  (text_internal::Append(out, pieces), ...);
  return out;
}

// {1, 2, 3} with "x" is 1x2x3.
template <class Numbers>
std::string JoinNumbers(const Numbers& numbers, std::string_view separator) {
  std::string out;
  for (const auto& number : numbers) {
    if (!out.empty()) out += separator;
    out += std::to_string(number);
  }
  return out;
}

template <class Words>
std::string JoinWords(const Words& words, std::string_view separator) {
  std::string out;
  for (const auto& word : words) {
    if (!out.empty()) out += separator;
    out += word;
  }
  return out;
}

// The pieces between spaces.
inline std::vector<std::string_view> SplitWords(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r\n", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r\n", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace convgrad

#endif  // CONVGRAD_CORE_TEXT_H_
