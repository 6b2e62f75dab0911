#include "tools/log_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "onednn/text_start.h"

namespace convgrad::tools {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

class LogReader {
 public:
  LogReader(std::string name, onednn::VerboseLog& log) : name_(std::move(name)), log_(log) {}

  Status Read(std::FILE* file) {
    std::vector<char> part(size_t{1} << 16);
    for (size_t got = part.size(); got == part.size();) {
      got = std::fread(part.data(), 1, part.size(), file);
      const std::string_view bytes(part.data(), got);
      const Status status = bytes_ == 0 ? AcceptFirst(bytes) : Accept(bytes);
      if (!status.ok()) return status;
    }
    if (std::ferror(file) != 0) {
      return Invalid(Join(name_, ": the log cannot be read: ", std::strerror(errno)));
    }
    if (length_ > 0) log_.Accept(line_);
    return {};
  }

 private:
  Status AcceptFirst(std::string_view bytes) {
    const bool piped = name_ == "standard input";
    const std::string encoding =
        onednn::EncodingOf(bytes.substr(0, onednn::kLongestMark), piped ? "LOG" : name_);
    if (encoding.empty()) return Accept(onednn::WithoutByteOrderMark(bytes));
    return Invalid(
        Join(name_, ": the log must be text, ", encoding, ": pipe that into 'convgrad replay -'"));
  }

  Status Accept(std::string_view bytes) {
    bytes_ += static_cast<int64_t>(bytes.size());
    while (!bytes.empty()) {
      const size_t end = std::min(bytes.find('\n'), bytes.size());
      // What is longer than a line of the log may be is read on, and kept no longer.
      const size_t most = onednn::VerboseLog::kLongestLine + 1;
      line_ += bytes.substr(0, std::min(end, most - std::min(most, line_.size())));
      length_ += static_cast<int64_t>(end);
      if (length_ > kLongestLogLine) {
        return Invalid(Join(name_, ": line ", log_.lines() + 1, " of the log has more than ",
                            kLongestLogLine >> 20, " MiB: this is no text"));
      }
      if (end == bytes.size()) break;
      log_.Accept(line_);
      line_.clear();
      length_ = 0;
      bytes.remove_prefix(end + 1);
    }
    if (bytes_ <= kMostOtherBytes || log_.verbose_lines() > 0) return {};
    return Invalid(Join(name_, ": the first ", kMostOtherBytes >> 30,
                        " GiB of the log hold no output of ONEDNN_VERBOSE=1"));
  }

  std::string name_;
  onednn::VerboseLog& log_;
  std::string line_;    // the beginning of the one that is read
  int64_t length_ = 0;  // of that line
  int64_t bytes_ = 0;   // in all
};

}  // namespace

Status ReadLog(const std::string& path, onednn::VerboseLog& log) {
  if (path == "-") return LogReader("standard input", log).Read(stdin);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) {
    return Invalid(Join(path, ": the log cannot be opened: ", std::strerror(errno)));
  }
  return LogReader(path, log).Read(file.get());
}

}  // namespace convgrad::tools
