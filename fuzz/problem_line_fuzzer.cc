// Problem files: any text is cases or one error, strictly and leniently; a case's text makes the
// same case again.
#include <cstdint>
#include <string>

#include "fuzz/require.h"
#include "onednn/problem_line.h"

namespace convgrad::fuzz {
namespace {

void Parse(const std::string& text, bool lenient) {
  onednn::ProblemReading reading;
  reading.lenient = lenient;
  reading.most_cases = 50;
  // --batch=a is the text itself, as --batch=folder/a: files that include themselves.
  reading.read_file = [&](const std::string& path) -> Result<std::string> {
    if (path.ends_with('a')) return text;
    return Status(StatusCode::kInvalidArgument, "there is no such file");
  };
  onednn::ProblemParser parser(reading);
  RequireSentence(parser.AcceptText(text));
  for (const onednn::ProblemCase& problem : parser.cases()) {
    onednn::ProblemParser again;
    Require(again.AcceptLine(problem.text).ok(), "a case's text is a problem line");
    Require(again.cases().size() == 1, "a case's text is one case");
    Require(again.cases()[0].text == problem.text, "a case's text makes itself");
    Require(again.cases()[0].inputs.size() == problem.inputs.size(), "with the same inputs");
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      Require(again.cases()[0].inputs[i].extents == problem.inputs[i].extents, "of these extents");
      Require(again.cases()[0].inputs[i].strides == problem.inputs[i].strides, "and strides");
    }
  }
}

}  // namespace
}  // namespace convgrad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  convgrad::fuzz::Parse(text, false);
  convgrad::fuzz::Parse(text, true);
  return 0;
}
