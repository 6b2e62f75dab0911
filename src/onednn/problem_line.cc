// Problem lines: splits lines and files into tokens, and multiplies descriptors by the options'
// alternatives. What a token means is in problem_options, problem_descriptor and problem_case.
#include "onednn/problem_line.h"

#include <exception>
#include <filesystem>
#include <fstream>
#include <new>

#include "onednn/problem_descriptor.h"

namespace convgrad::onednn {
namespace {

constexpr std::string_view kBatch = "--batch=";
constexpr std::string_view kBlanks = " \t\r\n\v\f";

// Limits that only mistakes reach: files that include themselves, binary files, and options whose
// alternatives multiply beyond use.
constexpr size_t kDeepestFile = 16;
constexpr size_t kLongestToken = 2048;
constexpr int64_t kMostCases = 1'000'000;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

// A long token is shown by its beginning: a message is one sentence.
std::string Shown(std::string_view token) {
  constexpr size_t kShown = 60;
  if (token.size() <= kShown) return "'" + std::string(token) + "'";
  return "'" + std::string(token.substr(0, kShown)) + "...'";
}

// The next token of `line` from `*position`, empty at the end or at a comment.
Result<std::string_view> NextToken(std::string_view line, size_t* position) {
  const size_t begin = line.find_first_not_of(kBlanks, *position);
  if (begin == std::string_view::npos || line[begin] == '#') return std::string_view();
  bool quoted = false;
  size_t end = begin;
  for (; end < line.size(); ++end) {
    if (line[end] == '"') quoted = !quoted;
    if (!quoted && kBlanks.find(line[end]) != std::string_view::npos) break;
  }
  const std::string_view token = line.substr(begin, end - begin);
  if (quoted) return Invalid("token " + Shown(token) + " must close its double quote on its line");
  *position = end;
  return token;
}

// The message of the last resort is short enough to need no memory of its own.
template <class Body>
Status WithoutExceptions(Body body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return Invalid(std::string("problem line: ") + error.what());
    }
  } catch (...) {
    return Status(StatusCode::kOutOfMemory, "out of memory");
  }
}

}  // namespace

bool ProblemParser::IsOption(std::string_view token) {
  return token == "--batch" || token.starts_with(kBatch) || ProblemOptions::IsOption(token);
}

Status ProblemParser::Accept(std::string_view token) noexcept {
  sources_.clear();  // an exception may have left some
  return WithoutExceptions([&] { return AcceptToken(token); });
}

Status ProblemParser::AcceptLine(std::string_view line) noexcept {
  sources_.clear();
  return WithoutExceptions([&] { return AcceptTokensOf(line); });
}

Status ProblemParser::AcceptTokensOf(std::string_view line) {
  size_t position = 0;
  for (;;) {
    const Result<std::string_view> token = NextToken(line, &position);
    if (!token.ok()) return Located(token.status());
    if (token->empty()) return {};
    if (Status status = AcceptToken(*token); !status.ok()) return status;
  }
}

Status ProblemParser::AcceptToken(std::string_view token) {
  if (token.size() > kLongestToken) {
    return Located(Invalid("token " + Shown(token) + " has " + std::to_string(token.size()) +
                           " characters, and must have at most " + std::to_string(kLongestToken)));
  }
  if (token.starts_with(kBatch)) return AcceptFile(token.substr(kBatch.size()));
  if (token == "--batch") return Located(Invalid("--batch must have a value, as in --batch=FILE"));
  return Located(token.starts_with("-") ? options_.Set(token) : AcceptDescriptor(token));
}

Status ProblemParser::AcceptDescriptor(std::string_view token) {
  Result<ProblemDescriptor> descriptor = ParseDescriptor(token, options_.transposed());
  if (!descriptor.ok()) return descriptor.status();
  if (options_.NumChoices() + static_cast<int64_t>(cases_.size()) > kMostCases) {
    return Invalid("descriptor " + Shown(token) + " with " + std::to_string(options_.NumChoices()) +
                   " combinations of options makes more than " + std::to_string(kMostCases) +
                   " cases");
  }
  const int64_t own_batch = descriptor->batch;
  const std::string origin = Origin();
  for (const CaseChoice& choice : options_.Choices()) {
    for (int64_t batch : options_.batches()) {
      descriptor->batch = batch == 0 ? own_batch : batch;
      if (!options_.Matches(ToString(*descriptor))) continue;
      Result<ProblemCase> problem = MakeCase(*descriptor, choice);
      if (!problem.ok()) {
        return Status(problem.status().code(),
                      problem.status().message() + " (descriptor " + Shown(token) + ")");
      }
      problem->origin = origin;
      cases_.push_back(*std::move(problem));
    }
  }
  return {};
}

Status ProblemParser::AcceptFile(std::string_view path) {
  const std::string option = std::string(kBatch) + std::string(path);
  if (sources_.size() >= kDeepestFile) {
    return Located(Invalid(option + " must not nest files more than " +
                           std::to_string(kDeepestFile) +
                           " deep, as a file that includes itself does"));
  }
  std::filesystem::path file(path);
  if (!sources_.empty() && file.is_relative()) {
    file = std::filesystem::path(sources_.back().path).parent_path() / file;
  }
  std::error_code ignored;
  std::ifstream stream(file);
  if (path.empty() || !stream || std::filesystem::is_directory(file, ignored)) {
    return Located(Invalid(option + " must name a file that can be read, and '" + file.string() +
                           "' is none"));
  }
  sources_.push_back({file.string(), 0});
  Status status;
  std::string line;
  while (status.ok() && std::getline(stream, line)) {
    ++sources_.back().line;
    status = AcceptTokensOf(line);
  }
  sources_.pop_back();
  if (status.ok() && stream.bad()) {
    return Located(Invalid(option + " must be readable to its end"));
  }
  return status;
}

std::string ProblemParser::Origin() const {
  if (sources_.empty()) return {};
  return sources_.back().path + ":" + std::to_string(sources_.back().line);
}

Status ProblemParser::Located(Status status) const {
  if (status.ok() || sources_.empty()) return status;
  return Status(status.code(), Origin() + ": " + status.message());
}

}  // namespace convgrad::onednn
