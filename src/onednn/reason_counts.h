// How often something was left out, for each reason: what the readers of problem files and logs say
// of what convgrad does not have. Bounded, since reasons quote what was read.
#ifndef CONVGRAD_ONEDNN_REASON_COUNTS_H_
#define CONVGRAD_ONEDNN_REASON_COUNTS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace convgrad::onednn {

struct CountedReason {
  std::string reason;
  int64_t count = 0;
};

class ReasonCounts {
 public:
  // Further reasons are counted together, as the last entry.
  static constexpr size_t kMostReasons = 100;

  void Add(std::string reason, int64_t count = 1) {
    total_ += count;
    const auto known = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& entry) { return entry.reason == reason; });
    if (known != entries_.end()) {
      known->count += count;
    } else if (entries_.size() < kMostReasons) {
      entries_.push_back({std::move(reason), count});
    } else if (entries_.size() == kMostReasons) {
      entries_.push_back({"other reasons", count});
    } else {
      entries_.back().count += count;
    }
  }

  // In the order of their first appearance.
  const std::vector<CountedReason>& entries() const { return entries_; }
  int64_t total() const { return total_; }

 private:
  std::vector<CountedReason> entries_;
  int64_t total_ = 0;
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_REASON_COUNTS_H_
