#include "tools/thread_list.h"

#include <algorithm>
#include <charconv>

#include "core/parallel.h"
#include "core/text.h"

namespace convgrad::tools {

std::vector<std::string> SplitAtCommas(const std::string& list) {
  std::vector<std::string> parts(1);
  for (char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Result<std::vector<int>> ParseThreads(const std::string& list) {
  std::vector<int> counts;
  for (const std::string& part : SplitAtCommas(list)) {
    int count = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (part.empty() || error != std::errc() || end != part.data() + part.size() || count < 0) {
      return Status(StatusCode::kInvalidArgument,
                    Join("--threads: '", part, "' is no number of threads in '", list,
                         "', expected a list such as 1,2 with 0 for all"));
    }
    count = ResolveThreads(count, {});
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  return counts;
}

}  // namespace convgrad::tools
