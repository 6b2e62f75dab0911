#include "onednn/graph_harness.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "onednn/option_tokens.h"
#include "onednn/text_start.h"

namespace convgrad::onednn {
namespace {

constexpr std::string_view kBatch = "--batch=";
constexpr std::string_view kCase = "--case=";

// Limits that only mistakes reach.
constexpr size_t kDeepestFile = 16;
constexpr size_t kLargestFile = size_t{16} << 20;
constexpr int kMostFiles = 10'000;
constexpr int64_t kMostCases = 100'000;
constexpr int kFoldersAbove = 8;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

std::string Shown(std::string_view text) {
  return std::string(text.substr(0, 200)) + (text.size() > 200 ? "..." : "");
}

bool IsFile(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error);
}

}  // namespace

Status GraphHarness::Accept(std::string_view word) {
  sources_.clear();
  return AcceptWord(word);
}

Status GraphHarness::AcceptWord(std::string_view word) {
  if (word.starts_with(kBatch)) return AcceptFile(word.substr(kBatch.size()));
  if (word.starts_with(kCase)) return AcceptGraph(word.substr(kCase.size()));
  if (word == "--batch" || word == "--case") {
    return Located(
        Invalid(std::string(word) + " must have a value, as in " + std::string(word) + "=FILE"));
  }
  if (!word.starts_with("-")) return AcceptGraph(word);
  if (sources_.empty()) return options_.Set(word);
  options_.SetOrRefuse(word, Origin());
  return {};
}

Result<std::string> GraphHarness::Find(std::string_view option, std::string_view name) const {
  const std::filesystem::path path{name};
  if (path.is_absolute() && IsFile(path)) return path.string();
  if (path.is_relative() && !name.empty()) {
    for (auto source = sources_.rbegin(); source != sources_.rend(); ++source) {
      const std::filesystem::path beside = std::filesystem::path(source->path).parent_path() / path;
      if (IsFile(beside)) return beside.string();
    }
    if (IsFile(path)) return path.string();
    for (auto source = sources_.rbegin(); source != sources_.rend(); ++source) {
      std::error_code error;
      std::filesystem::path folder = std::filesystem::absolute(source->path, error).parent_path();
      for (int above = 0; above < kFoldersAbove && folder != folder.root_path(); ++above) {
        folder = folder.parent_path();
        if (IsFile(folder / path)) return (folder / path).string();
      }
    }
  }
  return Located(Invalid(Shown(option) + Shown(name) + " must name a file that can be read, and " +
                         (sources_.empty() ? "there is none"
                                           : "there is none beside this file, in the current "
                                             "directory or in a folder above this file")));
}

Status GraphHarness::AcceptGraph(std::string_view name) {
  Result<std::string> path = Find(kCase, name);
  if (!path.ok() && sources_.empty()) return path.status();
  if (options_.NumChoices() + static_cast<int64_t>(cases_.size()) > kMostCases) {
    return Located(Invalid("the options' alternatives make more than " +
                           std::to_string(kMostCases) + " cases"));
  }
  const std::string origin = Origin();
  if (!path.ok()) {
    cases_.push_back({Shown(name), {}, origin, path.status().message()});
    return {};
  }
  for (GraphChoice& choice : options_.Choices()) {
    cases_.push_back({*path, std::move(choice), origin});
  }
  return {};
}

Status GraphHarness::AcceptFile(std::string_view name) {
  const std::string option = std::string(kBatch) + Shown(name);
  if (sources_.size() >= kDeepestFile || ++files_ > kMostFiles) {
    return Located(Invalid(option + " must not nest files more than " +
                           std::to_string(kDeepestFile) + " deep, as a file that includes itself " +
                           "does, nor read more than " + std::to_string(kMostFiles) + " files"));
  }
  Result<std::string> path = Find(kBatch, name);
  if (!path.ok()) return path.status();
  std::ifstream stream(*path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.eof()) {
    return Located(Invalid(option + " must name a file that can be read, of at most " +
                           std::to_string(kLargestFile) + " bytes"));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  if (const std::string encoding = EncodingOf(text, *path); !encoding.empty()) {
    return Located(Invalid(option + " must name a text: " + encoding));
  }
  sources_.push_back({*path, 0});
  const Status status = AcceptText(WithoutByteOrderMark(text));
  sources_.pop_back();
  return status;
}

// An error of a word has its place already, one of the line not yet.
Status GraphHarness::AcceptText(std::string_view text) {
  OptionTokens tokens(kLargestFile);
  Status of_word;
  const auto accept = [&](std::string_view word) {
    of_word = AcceptWord(word);
    return of_word;
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    ++sources_.back().line;
    const Status status = tokens.ReadLine(text.substr(0, end), accept);
    if (!status.ok()) return of_word.ok() ? Located(status) : of_word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokens.Finish(accept);
}

std::string GraphHarness::Origin() const {
  if (sources_.empty()) return {};
  return sources_.back().path + ":" + std::to_string(sources_.back().line);
}

Status GraphHarness::Located(Status status) const {
  if (status.ok() || sources_.empty()) return status;
  return Status(status.code(), Origin() + ": " + status.message());
}

}  // namespace convgrad::onednn
