// The options of problem lines: state that holds for the problems after them, each with one or more
// alternatives. Reads options and lists the choices; knows nothing of descriptors or files.
#ifndef CONVGRAD_ONEDNN_PROBLEM_OPTIONS_H_
#define CONVGRAD_ONEDNN_PROBLEM_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/status.h"
#include "convgrad/types.h"
#include "onednn/problem_case.h"

namespace convgrad::onednn {

class ProblemOptions {
 public:
  // --conv, --deconv, --reset, and --dir, --dt, --stag, --wtag, --dtag, --mb, --match with a value.
  // --batch is an option of problem lines too, but of the reader of files.
  static bool IsOption(std::string_view token);

  // `token` is an option, else an error. On an error nothing has changed.
  Status Set(std::string_view token);

  bool transposed() const { return transposed_; }

  // --mb: 0 stands for the descriptor's own batch.
  const std::vector<int64_t>& batches() const { return batches_; }

  // How many choices there are; saturates far above any sensible number.
  int64_t NumChoices() const;

  // Every combination of alternatives but those of --mb, the last option changing first.
  std::vector<CaseChoice> Choices() const;

  // Whether --match lets this descriptor, with its name, pass.
  bool Matches(const std::string& descriptor) const;

 private:
  Status SetValue(std::string_view key, std::string_view value);

  bool transposed_ = false;
  std::vector<Direction> directions_ = {Direction::kFwdB};
  std::vector<CaseTypes> types_ = {CaseTypes()};
  std::vector<std::string> src_tags_ = {"any"};
  std::vector<std::string> weights_tags_ = {"any"};
  std::vector<std::string> dst_tags_ = {"any"};
  std::vector<int64_t> batches_ = {0};
  std::function<bool(const std::string&)> match_;  // none: everything matches
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_PROBLEM_OPTIONS_H_
