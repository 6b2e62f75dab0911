// The words of benchdnn's files, of problems and of graphs: lines in, tokens out. Blanks separate
// tokens, except inside double quotes; a quote that is not closed takes the rest of its line, and
// is an error in an option; a token that begins with '#' and the rest of its line is a comment; a
// token that ends with a backslash goes on with the next one, on whatever line that is, unless the
// next one begins with --. Knows no option and no file.
#ifndef CONVGRAD_ONEDNN_OPTION_TOKENS_H_
#define CONVGRAD_ONEDNN_OPTION_TOKENS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "convgrad/status.h"

namespace convgrad::onednn {

class OptionTokens {
 public:
  // A token that is longer than `longest` goes on no further.
  explicit OptionTokens(size_t longest) : longest_(longest) {}

  // Called for each token; the first error ends the line.
  using Take = std::function<Status(std::string_view token)>;

  // Without its end of line.
  Status ReadLine(std::string_view line, const Take& take);

  // After the last line: a token that ended with a backslash and has no next one.
  Status Finish(const Take& take);

 private:
  size_t longest_;
  std::string unfinished_;  // what was before a backslash
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_OPTION_TOKENS_H_
