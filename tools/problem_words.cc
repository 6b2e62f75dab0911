#include "tools/problem_words.h"

#include "core/text.h"
#include "onednn/problem_line.h"

namespace convgrad::tools {
namespace {

// At blanks outside double quotes: a name may have some.
std::vector<std::string> SplitProblem(const std::string& text) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

Result<std::vector<Case>> ParseCases(const std::vector<std::string>& words) {
  std::vector<Case> cases;
  if (!words.empty() && ParseOpKind(words[0]).ok()) {
    Result<Case> item = ParseCase(words);
    if (!item.ok()) return item.status();
    cases.push_back(*std::move(item));
    return cases;
  }
  onednn::ProblemParser parser;
  for (const std::string& word : words) {
    if (Status status = parser.Accept(word); !status.ok()) return status;
  }
  if (!words.empty() && words.back().starts_with("--") && !words.back().starts_with("--batch=") &&
      !parser.cases().empty()) {
    return Status(StatusCode::kInvalidArgument,
                  Join("option '", words.back(),
                       "' comes after the last problem, it holds for the problems after it"));
  }
  for (onednn::ProblemCase& problem : parser.TakeCases()) {
    std::vector<std::string> replay = SplitProblem(problem.text);
    cases.push_back({std::move(problem.text), std::move(replay), std::move(problem.operation),
                     std::move(problem.inputs), std::move(problem.outputs)});
  }
  if (cases.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  words.empty()
                      ? "no problem is given, such as --dir=BWD_W mb8_ic64oc64_ih56kh3ph1, "
                        "--batch=problems/smoke.txt or an operation with extents"
                      : "no problem is left: the words hold options only, or --match "
                        "matches none");
  }
  return cases;
}

}  // namespace convgrad::tools
