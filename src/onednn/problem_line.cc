// Problem lines: splits lines and files into tokens, and multiplies descriptors by the options'
// alternatives. What a token means is in problem_options, problem_descriptor and problem_case.
#include "onednn/problem_line.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>

#include "onednn/problem_descriptor.h"
#include "onednn/text_start.h"

namespace convgrad::onednn {
namespace {

constexpr std::string_view kBatch = "--batch=";

// Limits that only mistakes reach: files that include themselves or others beyond use, binary
// files, devices without an end, and options whose alternatives multiply.
constexpr size_t kDeepestFile = 16;
constexpr int64_t kMostFiles = 10'000;
constexpr size_t kLargestFile = size_t{64} << 20;
constexpr size_t kLongestToken = 4096;
// Those that --match or a lenient parser leaves out cost time, too, but no memory.
constexpr int64_t kCombinationsPerCase = 5;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

// A long token is shown by its beginning: a message is one sentence.
std::string Shown(std::string_view token) {
  constexpr size_t kShown = 60;
  if (token.size() <= kShown) return "'" + std::string(token) + "'";
  return "'" + std::string(token.substr(0, kShown)) + "...'";
}

// Nothing: there is no such file, or it is a folder.
std::optional<std::string> ReadStream(const std::string& path) {
  std::error_code ignored;
  std::ifstream stream(path, std::ios::binary);
  if (!stream || std::filesystem::is_directory(path, ignored)) return std::nullopt;
  std::string text;
  std::vector<char> part(size_t{1} << 16);
  while (text.size() <= kLargestFile && stream) {
    stream.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<size_t>(stream.gcount()));
  }
  if (stream.bad()) return std::nullopt;
  return text;
}

Result<std::string> ReadProblemFile(const std::string& path) {
  std::optional<std::string> text = ReadStream(path);
  if (!text) return Invalid("'" + path + "' is none");
  if (const std::string encoding = EncodingOf(*text, path); !encoding.empty()) {
    return Invalid("'" + path + "' must be text: " + encoding);
  }
  if (text->size() <= kLargestFile) return *std::move(text);
  return Invalid("'" + path + "' has more than " + std::to_string(kLargestFile >> 20) + " MiB");
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

ProblemParser::ProblemParser(ProblemReading reading)
    : reading_(std::move(reading)), options_(reading_.lenient), tokens_(kLongestToken) {
  if (!reading_.read_file) reading_.read_file = ReadProblemFile;
}

Status ProblemParser::Accept(std::string_view token) noexcept {
  sources_.clear();  // an exception may have left some
  return WithoutExceptions([&] { return AcceptToken(token); });
}

Status ProblemParser::AcceptLine(std::string_view line) noexcept {
  sources_.clear();
  tokens_ = OptionTokens(kLongestToken);
  return WithoutExceptions([&] {
    const Status status = AcceptTokensOf(line);
    return status.ok() ? FinishToken() : status;
  });
}

Status ProblemParser::AcceptText(std::string_view text) noexcept {
  sources_.clear();
  return WithoutExceptions([&] { return AcceptLinesOf(text); });
}

Status ProblemParser::AcceptLinesOf(std::string_view text) {
  tokens_ = OptionTokens(kLongestToken);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (!sources_.empty()) ++sources_.back().line;
    if (Status status = AcceptTokensOf(text.substr(0, end)); !status.ok()) return status;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return FinishToken();
}

// An error of a token has its place already, one of the line not yet.
Status ProblemParser::AcceptTokensOf(std::string_view line) {
  Status of_token;
  const Status status = tokens_.ReadLine(line, [&](std::string_view token) {
    of_token = AcceptToken(token);
    return of_token;
  });
  return of_token.ok() ? Located(status) : of_token;
}

Status ProblemParser::FinishToken() {
  return tokens_.Finish([&](std::string_view token) { return AcceptToken(token); });
}

Status ProblemParser::AcceptToken(std::string_view token) {
  if (token.size() > kLongestToken) {
    return Located(Invalid("token " + Shown(token) + " has " + std::to_string(token.size()) +
                           " characters, and must have at most " + std::to_string(kLongestToken)));
  }
  if (token.starts_with(kBatch)) return AcceptFile(token.substr(kBatch.size()));
  if (token == "--batch") return Located(Invalid("--batch must have a value, as in --batch=FILE"));
  return Located(token.starts_with("-") ? AcceptOption(token) : AcceptDescriptor(token));
}

Status ProblemParser::AcceptOption(std::string_view token) {
  if (!reading_.lenient || options_.Takes(token)) return options_.Set(token);
  const std::string name(token.substr(0, token.find('=')));
  if (std::find(ignored_options_.begin(), ignored_options_.end(), name) == ignored_options_.end()) {
    ignored_options_.push_back(name);
  }
  return {};
}

Status ProblemParser::AcceptDescriptor(std::string_view token) {
  if (!options_.other_driver().empty()) {
    skipped_.Add(options_.other_driver() + " problems are no convolutions");
    return {};
  }
  Result<ProblemDescriptor> descriptor = ParseDescriptor(token, options_.transposed());
  if (!descriptor.ok()) return descriptor.status();
  const int64_t choices = options_.NumChoices();
  combinations_ += choices;
  const bool too_many = choices > reading_.most_cases;
  if (too_many || combinations_ > kCombinationsPerCase * reading_.most_cases) {
    return Invalid("descriptor " + Shown(token) + " with " + std::to_string(choices) +
                   " combinations of options makes more than " +
                   (too_many
                        ? std::to_string(reading_.most_cases) + " cases"
                        : std::to_string(kCombinationsPerCase * reading_.most_cases) + " in all"));
  }
  const int64_t own_batch = descriptor->batch;
  const std::string origin = Origin();
  for (const Alternative<CaseChoice>& choice : options_.Choices()) {
    for (const Alternative<int64_t>& batch : options_.batches()) {
      descriptor->batch = batch.value == 0 ? own_batch : batch.value;
      if (!options_.Matches(std::string(token)) && !options_.Matches(ToString(*descriptor)) &&
          !options_.Matches(OptionsText(choice.value) + ToCompactString(*descriptor))) {
        continue;
      }
      const std::string& refusal = choice.refusal.empty() ? batch.refusal : choice.refusal;
      if (!refusal.empty()) {
        skipped_.Add(refusal);
        continue;
      }
      Result<ProblemCase> problem = MakeCase(*descriptor, choice.value);
      if (!problem.ok() && reading_.lenient) {
        skipped_.Add(problem.status().message());
        continue;
      }
      if (!problem.ok()) {
        return Status(problem.status().code(),
                      problem.status().message() + " (descriptor " + Shown(token) + ")");
      }
      if (static_cast<int64_t>(cases_.size()) == reading_.most_cases) {
        return Invalid("descriptor " + Shown(token) + " makes more than " +
                       std::to_string(reading_.most_cases) + " cases");
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
  if (++files_ > kMostFiles) {
    return Located(Invalid(option + " is more than the " + std::to_string(kMostFiles) +
                           " files that may be read in all"));
  }
  // Where the file may be: beside the one that has the option, or one that includes that one.
  std::vector<std::filesystem::path> places = {std::filesystem::path(path)};
  if (!sources_.empty() && places[0].is_relative()) {
    places.clear();
    for (auto source = sources_.rbegin(); source != sources_.rend(); ++source) {
      places.push_back(std::filesystem::path(source->path).parent_path() / path);
    }
  }
  Status status = Invalid("'' is none");
  for (const std::filesystem::path& place : places) {
    if (path.empty()) break;
    const Result<std::string> text = reading_.read_file(place.string());
    if (!text.ok()) {
      if (place == places.front()) status = text.status();
      continue;
    }
    sources_.push_back({place.string(), 0});
    OptionTokens outer = std::exchange(tokens_, OptionTokens(kLongestToken));
    status = AcceptLinesOf(WithoutByteOrderMark(*text));
    tokens_ = std::move(outer);
    sources_.pop_back();
    return status;
  }
  std::string message = option + " must name a file that can be read, and " + status.message();
  if (places.size() > 1 || !sources_.empty()) {
    message += "; it is looked for beside the files that include it, and nowhere else";
  }
  return Located(Invalid(std::move(message)));
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
