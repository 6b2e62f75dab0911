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

// One of an option's values. Where convgrad does not have it, `refusal` says why.
template <class T>
struct Alternative {
  T value{};
  std::string refusal;
};

class ProblemOptions {
 public:
  // --conv, --deconv, --reset, and --dir, --dt, --stag, --wtag, --dtag, --strides, --mb, --match
  // with a value. --batch is an option of problem lines too, but of the reader of files.
  static bool IsOption(std::string_view token);

  // A lenient one keeps an alternative that it does not have, with the reason, and reads --cfg, the
  // old spelling of --dt, and the other drivers' names: to ignore those would be to run another
  // problem.
  explicit ProblemOptions(bool lenient = false) : lenient_(lenient) {}

  // Whether Set takes this token.
  bool Takes(std::string_view token) const;

  // `token` is an option, else an error. On an error nothing has changed. An empty value, as in
  // --stag=, is the option's default.
  Status Set(std::string_view token);

  bool transposed() const { return transposed_; }

  // Not empty: the problems belong to another driver of benchdnn, such as --matmul.
  const std::string& other_driver() const { return other_driver_; }

  // --mb: 0 stands for the descriptor's own batch.
  const std::vector<Alternative<int64_t>>& batches() const { return batches_; }

  // How many choices there are; saturates far above any sensible number.
  int64_t NumChoices() const;

  // Every combination of alternatives but those of --mb, the last option changing first. One of
  // which a part is refused is refused for that part's reason.
  std::vector<Alternative<CaseChoice>> Choices() const;

  // Whether --match lets this text of a problem pass.
  bool Matches(const std::string& text) const;

 private:
  Status SetValue(std::string_view key, std::string_view value);

  bool lenient_ = false;
  bool transposed_ = false;
  std::string other_driver_;
  std::vector<Alternative<Direction>> directions_ = {{Direction::kFwdB, ""}};
  std::vector<Alternative<CaseTypes>> types_ = {{CaseTypes(), ""}};
  std::vector<Alternative<std::string>> src_tags_ = {{"any", ""}};
  std::vector<Alternative<std::string>> weights_tags_ = {{"any", ""}};
  std::vector<Alternative<std::string>> dst_tags_ = {{"any", ""}};
  std::vector<Alternative<CaseStrides>> strides_ = {{CaseStrides(), ""}};
  std::vector<Alternative<int64_t>> batches_ = {{0, ""}};
  std::function<bool(const std::string&)> match_;  // none: everything matches
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_PROBLEM_OPTIONS_H_
