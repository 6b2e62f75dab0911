// Verbose logs: any text is a log; the problem of a group is a problem line.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fuzz/require.h"
#include "onednn/problem_line.h"
#include "onednn/verbose_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using convgrad::fuzz::Require;
  convgrad::onednn::VerboseLog log;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    log.Accept(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (const convgrad::onednn::VerboseGroup& group : log.groups()) {
    const convgrad::onednn::ProblemCase& problem = group.replayed.problem;
    Require(group.calls > 0 && group.milliseconds >= 0, "a group has calls");
    convgrad::onednn::ProblemParser parser;
    Require(parser.AcceptLine(problem.text).ok(), "a group's text is a problem line");
    Require(parser.cases().size() == 1, "a group's text is one case");
    Require(parser.cases()[0].text == problem.text, "a group's text makes itself");
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      Require(parser.cases()[0].inputs[i].strides == problem.inputs[i].strides, "with its strides");
    }
  }
  return 0;
}
