// Options: "--key=alternative,alternative". Each key has one function from an alternative's text to
// its value; the first alternative that it refuses is the error.
#include "onednn/problem_options.h"

#include <algorithm>
#include <array>
#include <utility>

// GCC 12 sees uninitialized members in its own <regex> when it compiles for a sanitizer.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <regex>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include "onednn/memory_tag.h"

namespace convgrad::onednn {
namespace {

constexpr std::array<std::string_view, 7> kKeys = {"--dir",  "--dt", "--stag", "--wtag",
                                                   "--dtag", "--mb", "--match"};

// libstdc++ compiles and runs expressions recursively: a bound here bounds the stack.
constexpr size_t kLongestExpression = 256;

std::pair<std::string_view, std::string_view> SplitOption(std::string_view token) {
  const size_t equals = token.find('=');
  if (equals == std::string_view::npos) return {token, {}};
  return {token.substr(0, equals), token.substr(equals + 1)};
}

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<Direction> ParseDirection(std::string_view text) {
  std::string upper(text);
  for (char& letter : upper) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  for (Direction direction : {Direction::kFwdD, Direction::kFwdB, Direction::kFwdI,
                              Direction::kBwdD, Direction::kBwdW, Direction::kBwdWB}) {
    if (upper == NameOf(direction)) return direction;
  }
  return Status(
      StatusCode::kInvalidArgument,
      "'" + std::string(text) + "' must be one of FWD_D, FWD_B, FWD_I, BWD_D, BWD_W and BWD_WB");
}

Result<DataType> ParseDataType(std::string_view text) {
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    if (text == NameOf(type)) return type;
  }
  return Status(StatusCode::kInvalidType,
                "'" + std::string(text) + "' must be one of f32, bf16 and f16");
}

// One type, or three as src:wei:dst.
Result<CaseTypes> ParseTypes(std::string_view text) {
  const std::vector<std::string_view> parts = SplitAt(text, ':');
  if (parts.size() != 1 && parts.size() != 3) {
    return Status(StatusCode::kInvalidType,
                  "'" + std::string(text) + "' must be one type, or three as src:wei:dst");
  }
  std::vector<DataType> types;
  for (std::string_view part : parts) {
    const Result<DataType> type = ParseDataType(part);
    if (!type.ok()) return type.status();
    types.push_back(*type);
  }
  const CaseTypes result{types.front(), types[types.size() / 2]};
  const bool widened = result.weights == DataType::kF32;  // legal where wei is what is written
  if (types.back() == result.data && (result.weights == result.data || widened)) return result;
  return Status(StatusCode::kInvalidType,
                "'" + std::string(text) +
                    "' must have one type for src, wei and dst, as all data tensors of an "
                    "operation share one, or f32 for wei alone");
}

Result<std::string> ParseTag(std::string_view text) {
  if (Status status = CheckTag(text); !status.ok()) return status;
  return std::string(text);
}

Result<int64_t> ParseBatch(std::string_view text) {
  const int64_t batch = ParseNumber(text);
  if (batch >= 0) return batch;
  return Status(StatusCode::kInvalidArgument,
                "'" + std::string(text) +
                    "' must be a number from 0, for the descriptor's own, to " +
                    std::to_string(kLargestNumber));
}

Result<std::regex> ParseExpression(std::string_view text) {
  if (text.empty() || text.size() > kLongestExpression) {
    return Status(StatusCode::kInvalidArgument,
                  "a regular expression of " + std::to_string(text.size()) +
                      " characters must have from 1 to " + std::to_string(kLongestExpression));
  }
  try {
    return std::regex(text.begin(), text.end());
  } catch (const std::regex_error& error) {
    return Status(StatusCode::kInvalidArgument,
                  "'" + std::string(text) + "' is not a regular expression: " + error.what());
  }
}

// `parse` is a function from text to Result<T>; `list` changes only when all alternatives parse.
template <class T, class Parse>
Status SetAlternatives(std::string_view value, Parse parse, std::vector<T>* list) {
  std::vector<T> parsed;
  for (std::string_view alternative : SplitAt(value, ',')) {
    Result<T> result = parse(alternative);
    if (!result.ok()) return result.status();
    parsed.push_back(*std::move(result));
  }
  *list = std::move(parsed);
  return {};
}

}  // namespace

bool ProblemOptions::IsOption(std::string_view token) {
  if (token == "--conv" || token == "--deconv" || token == "--reset") return true;
  const std::string_view key = SplitOption(token).first;
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

Status ProblemOptions::Set(std::string_view token) {
  if (token == "--conv" || token == "--deconv") {
    transposed_ = token == "--deconv";
    return {};
  }
  if (token == "--reset") {
    // benchdnn's files reset their options and rely on the driver that the command chose.
    const bool transposed = transposed_;
    *this = ProblemOptions();
    transposed_ = transposed;
    return {};
  }
  const auto [key, value] = SplitOption(token);
  if (!IsOption(token)) {
    return Status(StatusCode::kInvalidArgument,
                  "'" + std::string(token) +
                      "' is not an option of problem lines, which have --conv, --deconv, --dir, "
                      "--dt, --stag, --wtag, --dtag, --mb, --batch, --match and --reset");
  }
  if (key.size() == token.size()) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(key) + " must have a value, as in " + std::string(key) + "=VALUE");
  }
  Status status = SetValue(key, value);
  if (status.ok()) return status;
  return Status(status.code(), std::string(key) + ": " + status.message());
}

Status ProblemOptions::SetValue(std::string_view key, std::string_view value) {
  if (key == "--dir") return SetAlternatives(value, ParseDirection, &directions_);
  if (key == "--dt") return SetAlternatives(value, ParseTypes, &types_);
  if (key == "--stag") return SetAlternatives(value, ParseTag, &src_tags_);
  if (key == "--wtag") return SetAlternatives(value, ParseTag, &weights_tags_);
  if (key == "--dtag") return SetAlternatives(value, ParseTag, &dst_tags_);
  if (key == "--mb") return SetAlternatives(value, ParseBatch, &batches_);
  Result<std::regex> expression = ParseExpression(value);  // --match: a comma is part of it
  if (!expression.ok()) return expression.status();
  match_ = [regex = *std::move(expression)](const std::string& descriptor) {
    return std::regex_search(descriptor, regex);
  };
  return {};
}

int64_t ProblemOptions::NumChoices() const {
  constexpr int64_t kSaturated = int64_t{1} << 40;
  int64_t count = 1;
  for (size_t size : {directions_.size(), types_.size(), src_tags_.size(), weights_tags_.size(),
                      dst_tags_.size(), batches_.size()}) {
    count = std::min(kSaturated, count * std::min(kSaturated >> 18, static_cast<int64_t>(size)));
  }
  return count;
}

std::vector<CaseChoice> ProblemOptions::Choices() const {
  std::vector<CaseChoice> choices;
  CaseChoice choice;
  choice.transposed = transposed_;
  for (Direction direction : directions_) {
    choice.direction = direction;
    for (const CaseTypes& types : types_) {
      choice.types = types;
      for (const std::string& src_tag : src_tags_) {
        choice.src_tag = src_tag;
        for (const std::string& weights_tag : weights_tags_) {
          choice.weights_tag = weights_tag;
          for (const std::string& dst_tag : dst_tags_) {
            choice.dst_tag = dst_tag;
            choices.push_back(choice);
          }
        }
      }
    }
  }
  return choices;
}

bool ProblemOptions::Matches(const std::string& descriptor) const {
  return !match_ || match_(descriptor);
}

}  // namespace convgrad::onednn
