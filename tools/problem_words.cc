#include "tools/problem_words.h"

#include <algorithm>
#include <cstdlib>

#include "core/text.h"
#include "spec/check.h"

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

// A wrong option is bad input, not a failed problem: it is tried on one that cannot fail.
Status CheckOptions(const Options& options) {
  const TensorDesc one{DataType::kF32, {1, 1, 1}};
  const std::vector<TensorDesc> inputs = {one, one};
  const Operation operation{
      OpKind::kConvolution,
      {{"strides", {1}}, {"pads_begin", {0}}, {"pads_end", {0}}, {"dilations", {1}}}};
  Options tried = options;
  tried.per_sample = false;  // of the cases, not of this one
  for (const KernelInfo& kernel : Kernels()) {
    if (kernel.name == options.kernel) tried.kernel.clear();  // known; it may refuse this problem
  }
  return Plan::Make(operation, inputs, {}, tried).status();
}

// One such output after another, each as far from the next as it reaches.
void AddImages(TensorDesc& output, int64_t batch) {
  int64_t reach = 1;
  for (size_t a = 0; a < output.strides.size(); ++a) {
    reach += std::max<int64_t>(output.extents[a] - 1, 0) * std::abs(output.strides[a]);
  }
  output.extents.insert(output.extents.begin(), batch);
  if (!output.strides.empty()) output.strides.insert(output.strides.begin(), reach);
}

// Those that are no legal operations go from the cases to what was passed over.
void PassOverIllegal(bool per_sample, std::vector<Case>& cases, PassedOver& passed_over) {
  std::erase_if(cases, [&](const Case& item) {
    const Status status = Check(item.operation, item.inputs, item.outputs, {per_sample}).status();
    if (!status.ok()) passed_over.problems.Add(Join(status.message(), " (", item.text, ")"));
    return !status.ok();
  });
}

Status NothingLeft(bool no_words) {
  return Status(StatusCode::kInvalidArgument,
                no_words ? "no problem is given, such as --dir=BWD_W mb8_ic64oc64_ih56kh3ph1, "
                           "--batch=problems/smoke.txt or an operation with extents"
                         : "no problem is left: the words hold options only, or --match "
                           "matches none");
}

}  // namespace

std::string PassedOver::ToText() const {
  std::string text;
  if (!options.empty()) text = Join("ignored: ", JoinWords(options, ", "), "\n");
  for (const onednn::CountedReason& skipped : problems.entries()) {
    text += Join("skipped ", skipped.count, ": ", skipped.reason, "\n");
  }
  return text;
}

Result<std::vector<Case>> ParseCases(const std::vector<std::string>& words, bool per_sample,
                                     PassedOver* passed_over) {
  std::vector<Case> cases;
  if (!words.empty() && FindBackward(words[0]) != nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  Join("'", words[0], "' is for run and explain: it has the results of ", words[0],
                       "Data and ", words[0], "Weights, which are given one by one here"));
  }
  if (!words.empty() && ParseOpKind(words[0]).ok()) {
    Result<Case> item = ParseCase(words);
    if (!item.ok()) return item.status();
    cases.push_back(*std::move(item));
    return cases;
  }
  onednn::ProblemReading reading;
  reading.lenient = passed_over != nullptr;
  onednn::ProblemParser parser(reading);
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
    Case& item = cases.back();
    if (!per_sample || SchemaOf(item.operation.kind).outputs[0].role != Role::kWeights) continue;
    for (TensorDesc& output : item.outputs) AddImages(output, item.inputs[0].extents[0]);
  }
  if (passed_over != nullptr) {
    *passed_over = {parser.ignored_options(), parser.skipped()};
    PassOverIllegal(per_sample, cases, *passed_over);
    if (passed_over->problems.total() > 0) return cases;
  }
  if (cases.empty()) return NothingLeft(words.empty());
  return cases;
}

Status CheckCases(const std::vector<Case>& cases, const Options& options) {
  if (Status status = CheckOptions(options); !status.ok()) return status;
  for (const Case& item : cases) {
    const Status status =
        Check(item.operation, item.inputs, item.outputs, {options.per_sample}).status();
    if (!status.ok()) return Status(status.code(), Join(status.message(), " (", item.text, ")"));
  }
  return Status();
}

std::vector<DataType> TypesOf(const std::vector<Case>& cases) {
  std::vector<DataType> types;
  for (const Case& item : cases) {
    const DataType type = item.inputs[0].type;
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  return types;
}

}  // namespace convgrad::tools
