#include "onednn/option_tokens.h"

#include <utility>

namespace convgrad::onednn {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

// A long token is shown by its beginning: a message is one sentence.
std::string Shown(std::string_view token) {
  constexpr size_t kShown = 60;
  if (token.size() <= kShown) return "'" + std::string(token) + "'";
  return "'" + std::string(token.substr(0, kShown)) + "...'";
}

// The next token of `line` from `*position`, empty at the end or at a comment.
Result<std::string_view> NextToken(std::string_view line, size_t* position) {
  const size_t begin = line.find_first_not_of(kBlanks, *position);
  if (begin == std::string_view::npos || line[begin] == '#') return std::string_view();
  bool quoted = false;
  size_t end = begin;
  for (; end < line.size(); ++end) {
    if (line[end] == '"') quoted = !quoted;
    if (!quoted && kBlanks.find(line[end]) != std::string_view::npos) break;
  }
  const std::string_view token = line.substr(begin, end - begin);
  if (quoted && token.front() != '-') {  // of a name that takes the rest of its line
    *position = line.size();
    return token.substr(0, token.find_last_not_of(kBlanks) + 1);
  }
  if (quoted) {
    return Status(StatusCode::kInvalidArgument,
                  "token " + Shown(token) + " must close its double quote on its line");
  }
  *position = end;
  return token;
}

}  // namespace

Status OptionTokens::ReadLine(std::string_view line, const Take& take) {
  size_t position = 0;
  for (;;) {
    Result<std::string_view> token = NextToken(line, &position);
    if (!token.ok()) return token.status();
    if (token->empty()) return {};
    if (!unfinished_.empty() && token->starts_with("--")) {
      if (Status status = Finish(take); !status.ok()) return status;
    }
    bool goes_on = token->ends_with('\\');
    if (goes_on) token->remove_suffix(1);
    size_t after = position;
    if (const auto next = NextToken(line, &after); !goes_on && next.ok() && *next == "\\") {
      goes_on = true;  // the backslash stands alone
      position = after;
    }
    if (goes_on || !unfinished_.empty()) {
      unfinished_ += *token;
      if (goes_on && unfinished_.size() <= longest_) continue;
      if (Status status = Finish(take); !status.ok()) return status;
    } else if (Status status = take(*token); !status.ok()) {
      return status;
    }
  }
}

Status OptionTokens::Finish(const Take& take) {
  const std::string token = std::exchange(unfinished_, {});
  return token.empty() ? Status() : take(token);
}

}  // namespace convgrad::onednn
