// A log of ONEDNN_VERBOSE=1: lines in, groups of equal calls out, each with the problem that
// convgrad runs for it. The only file here that knows both a log's words (backward_data, aBcd16b)
// and those of problem lines. Runs nothing, prints nothing and opens no file.
#ifndef CONVGRAD_ONEDNN_VERBOSE_LOG_H_
#define CONVGRAD_ONEDNN_VERBOSE_LOG_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/status.h"
#include "onednn/problem_case.h"
#include "onednn/reason_counts.h"
#include "onednn/verbose_line.h"

namespace convgrad::onednn {

// A problem for a call, and in which ways it is another one: a blocked layout has no equal here and
// becomes the plain one of the same order, post-ops are left out.
struct ReplayedCase {
  ProblemCase problem;
  std::vector<std::string> differences;
};

// Fails where convgrad has no such problem: types, engines, fused convolutions, odd descriptors.
Result<ReplayedCase> MakeReplayedCase(const VerboseCall& call);

// Calls that are one problem here, with the same differences, however the log spells them.
struct VerboseGroup {
  VerboseCall call;  // the first
  ReplayedCase replayed;
  int64_t calls = 0;
  double milliseconds = 0;  // of all calls
};

class VerboseLog {
 public:
  // Without its end of line; of any program. Lines of more than kLongestLine characters are text.
  void Accept(std::string_view line);

  static constexpr size_t kLongestLine = 1 << 16;

  // In the order of their first call.
  const std::vector<VerboseGroup>& groups() const { return groups_; }
  // Convolutions that cannot be replayed, and calls of other primitives by their name.
  const ReasonCounts& skipped() const { return skipped_; }
  const ReasonCounts& other_primitives() const { return other_primitives_; }

  int64_t lines() const { return lines_; }
  int64_t verbose_lines() const { return verbose_lines_; }
  const std::string& version() const { return version_; }  // "oneDNN v3.5.3"; may be empty
  const std::string& threads() const { return threads_; }  // "8"; may be empty

 private:
  bool AcceptRecord(std::string_view record);  // whether it is verbose output
  void AcceptInfo(const std::string& info);
  void AcceptCall(const VerboseCall& call);

  std::vector<VerboseGroup> groups_;
  std::map<std::string, size_t> places_;  // in groups_, of a call's key and of a problem
  ReasonCounts skipped_;
  ReasonCounts other_primitives_;
  int64_t lines_ = 0;
  int64_t verbose_lines_ = 0;
  std::string version_;
  std::string threads_;
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_VERBOSE_LOG_H_
