// Problem lines, benchdnn's language for convolutions: tokens in, cases out. An option holds for
// the descriptors after it, a descriptor makes one case for each combination of the options'
// alternatives, and --batch=FILE reads more tokens from a file. docs/spec.md, "Problem lines", is
// the grammar; where it is silent, this file says what holds. Runs nothing and prints nothing.
#ifndef CONVGRAD_ONEDNN_PROBLEM_LINE_H_
#define CONVGRAD_ONEDNN_PROBLEM_LINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convgrad/status.h"
#include "onednn/option_tokens.h"
#include "onednn/problem_case.h"
#include "onednn/problem_options.h"
#include "onednn/reason_counts.h"

namespace convgrad::onednn {

struct ProblemReading {
  // Options that problem lines do not have are ignored, and combinations of options that convgrad
  // does not have are skipped; the parser says which. Else both are errors.
  bool lenient = false;
  // The text of a file; nothing: of the file system's, up to 64 MiB.
  std::function<Result<std::string>(const std::string& path)> read_file;
  // More cases than this are a mistake. One takes about two kilobytes; the largest of benchdnn's
  // own files, which includes most others, makes more than 200,000.
  int64_t most_cases = 1'000'000;
};

//   ProblemParser parser;
//   for (std::string_view token : {"--dir=BWD_W", "--dt=f32,bf16", "ic64ih56oc64kh3ph1"}) {
//     if (Status status = parser.Accept(token); !status.ok()) return status;
//   }
//   for (const ProblemCase& problem : parser.cases()) ...
//
// - The defaults are benchdnn's: --conv --dir=FWD_B --dt=f32 --stag=any --wtag=any --dtag=any.
//   `any` is the layout of the specification: NCX, OIX, for --deconv IOX.
// - --reset restores all defaults but --conv or --deconv.
// - --match=REGEX (ECMAScript, found anywhere) looks at the descriptor as it is given; as
//   ProblemCase::text has it, with all its entries and its name; and at benchdnn's own text of the
//   problem, the options that are no defaults and the compact descriptor. One of them is enough. A
//   comma in it separates nothing.
// - --batch=FILE is relative to the file that has it, or to one that includes that one. Options set
//   inside hold after it, too.
// - A token that ends with a backslash goes on with the next one, on whatever line that is, unless
//   the next one begins with --.
// - On an error, the cases and options of the tokens before it stay.
class ProblemParser {
 public:
  // Whether Accept knows this option, so that a command can keep its own ones apart. A token that
  // does not begin with '-' is a descriptor.
  static bool IsOption(std::string_view token);

  explicit ProblemParser(ProblemReading reading = {});

  // One token: an option or a descriptor.
  Status Accept(std::string_view token) noexcept;

  // The tokens of one line: separated by blanks, except inside double quotes; a token that begins
  // with '#' and all after it is a comment.
  Status AcceptLine(std::string_view line) noexcept;

  // The lines of a text, as those of a file.
  Status AcceptText(std::string_view text) noexcept;

  const std::vector<ProblemCase>& cases() const { return cases_; }
  std::vector<ProblemCase> TakeCases() { return std::exchange(cases_, {}); }

  // What a lenient parser passed over: names of options, without values, and problems. Each once,
  // in the order of their first appearance.
  const std::vector<std::string>& ignored_options() const { return ignored_options_; }
  const ReasonCounts& skipped() const { return skipped_; }

 private:
  Status AcceptToken(std::string_view token);
  Status AcceptTokensOf(std::string_view line);
  Status AcceptLinesOf(std::string_view text);
  Status FinishToken();  // one that ended with a backslash and has no next one
  Status AcceptOption(std::string_view token);
  Status AcceptDescriptor(std::string_view token);
  Status AcceptFile(std::string_view path);

  // Where a token comes from: a file that is being read, and how far.
  struct Source {
    std::string path;
    int64_t line = 0;
  };
  std::string Origin() const;
  Status Located(Status status) const;  // with the origin before an error's message

  ProblemReading reading_;
  ProblemOptions options_;
  std::vector<ProblemCase> cases_;
  std::vector<std::string> ignored_options_;
  ReasonCounts skipped_;
  std::vector<Source> sources_;  // the innermost last
  OptionTokens tokens_;
  int64_t combinations_ = 0;  // that descriptors have made, cases or not
  int64_t files_ = 0;         // that were read
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_PROBLEM_LINE_H_
