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

constexpr std::array<std::string_view, 8> kKeys = {"--dir",  "--dt",      "--stag", "--wtag",
                                                   "--dtag", "--strides", "--mb",   "--match"};

// The drivers of benchdnn whose problems are no convolutions.
constexpr std::array<std::string_view, 23> kOtherDrivers = {
    "--binary",  "--bnorm",     "--brgemm",  "--concat",     "--eltwise", "--gated-mlp",
    "--gnorm",   "--graph",     "--ip",      "--lnorm",      "--lrn",     "--matmul",
    "--pool",    "--prelu",     "--reorder", "--resampling", "--rnn",     "--sdpa",
    "--shuffle", "--reduction", "--softmax", "--sum",        "--zeropad"};

bool IsOtherDriver(std::string_view token) {
  return std::find(kOtherDrivers.begin(), kOtherDrivers.end(), token) != kOtherDrivers.end();
}

constexpr std::string_view kOldTypes = "--cfg";

// libstdc++ compiles expressions recursively: a bound here bounds the stack.
constexpr size_t kLongestExpression = 256;

// And of what is searched: no descriptor and its name are as long, but the time grows with the
// square of the length, and files have many.
constexpr size_t kLongestSearched = 512;

// In polynomial time where the library can: it tries alternatives one after another otherwise, and
// (a*)*b takes longer than anyone waits.
constexpr std::regex::flag_type kSyntax = std::regex::ECMAScript
#ifdef __GLIBCXX__
                                          | std::regex_constants::__polynomial
#endif
    ;

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

// One type, three as src:wei:dst, or four as src:wei:bia:dst.
Result<CaseTypes> ParseTypes(std::string_view text) {
  const std::vector<std::string_view> parts = SplitAt(text, ':');
  if (parts.size() != 1 && parts.size() != 3 && parts.size() != 4) {
    return Status(StatusCode::kInvalidType, "'" + std::string(text) +
                                                "' must be one type, or three as src:wei:dst, or "
                                                "four as src:wei:bia:dst");
  }
  std::vector<DataType> types;
  for (std::string_view part : parts) {
    const Result<DataType> type = ParseDataType(part);
    if (!type.ok()) return type.status();
    types.push_back(*type);
  }
  const CaseTypes result{types.front(), types[parts.size() == 1 ? 0 : 1]};
  if (parts.size() == 4 && types[2] != result.weights) {
    return Status(StatusCode::kInvalidType,
                  "'" + std::string(text) + "' must have one type for wei and bia");
  }
  const bool widened = result.weights == DataType::kF32;  // legal where wei is what is written
  if (types.back() == result.data && (result.weights == result.data || widened)) return result;
  return Status(StatusCode::kInvalidType,
                "'" + std::string(text) +
                    "' must have one type for src, wei and dst, as all data tensors of an "
                    "operation share one, or f32 for wei alone");
}

// "bf16f32bf16" is bf16:f32:bf16; what follows the types names an algorithm, such as f32_wino.
Result<CaseTypes> ParseOldTypes(std::string_view text) {
  constexpr std::array<std::string_view, 6> kNames = {"bf16", "f16", "f32", "s32", "u8", "s8"};
  std::string types;
  for (std::string_view rest = text; !rest.empty() && rest.front() != '_';) {
    const auto name = std::find_if(kNames.begin(), kNames.end(),
                                   [&](std::string_view known) { return rest.starts_with(known); });
    if (name == kNames.end()) {
      return Status(StatusCode::kInvalidType,
                    "'" + std::string(text) + "' must be types, such as f32 or bf16bf16bf16");
    }
    types += (types.empty() ? "" : ":") + std::string(*name);
    rest.remove_prefix(name->size());
  }
  return ParseTypes(types);
}

Result<Dims> ParseStrideList(std::string_view text) {
  Dims strides;
  if (text.empty()) return strides;
  for (std::string_view part : SplitAt(text, 'x')) {
    const int64_t stride = ParseNumber(part);
    if (stride < 0) {
      return Status(StatusCode::kInvalidShape, "'" + std::string(text) +
                                                   "' must be numbers joined by x, such as "
                                                   "1204224x1x7168x64, each at most " +
                                                   std::to_string(kLargestNumber));
    }
    strides.push_back(stride);
  }
  return strides;
}

// SRC:WEI:DST, each a list of strides or nothing.
Result<CaseStrides> ParseStrides(std::string_view text) {
  const std::vector<std::string_view> parts = SplitAt(text, ':');
  if (parts.size() != 3) {
    return Status(StatusCode::kInvalidShape,
                  "'" + std::string(text) +
                      "' must have three parts, src:wei:dst, of which some may be empty");
  }
  std::vector<Dims> lists;
  for (std::string_view part : parts) {
    Result<Dims> list = ParseStrideList(part);
    if (!list.ok()) return list.status();
    lists.push_back(*std::move(list));
  }
  return CaseStrides{lists[0], lists[1], lists[2]};
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
  if (text.size() > kLongestExpression) {
    return Status(StatusCode::kInvalidArgument,
                  "a regular expression of " + std::to_string(text.size()) +
                      " characters must have at most " + std::to_string(kLongestExpression));
  }
  try {
    return std::regex(text.begin(), text.end(), kSyntax);
  } catch (const std::regex_error& error) {
    return Status(StatusCode::kInvalidArgument,
                  "'" + std::string(text) + "' is not a regular expression: " + error.what());
  }
}

// `parse` is a function from text to Result<T>; `list` changes only when all alternatives parse, or
// when those that do not may stay with the reason.
template <class T, class Parse>
Status ReadAlternatives(std::string_view key, std::string_view value, bool lenient, Parse parse,
                        std::vector<Alternative<T>>* list) {
  std::vector<Alternative<T>> parsed;
  for (std::string_view alternative : SplitAt(value, ',')) {
    Result<T> result = parse(alternative);
    if (!result.ok() && !lenient) return result.status();
    if (result.ok()) {
      parsed.push_back({*std::move(result), ""});
    } else {
      parsed.push_back({T(), std::string(key) + ": " + result.status().message()});
    }
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

bool ProblemOptions::Takes(std::string_view token) const {
  if (IsOption(token)) return true;
  return lenient_ && (IsOtherDriver(token) || SplitOption(token).first == kOldTypes);
}

Status ProblemOptions::Set(std::string_view token) {
  if (token == "--conv" || token == "--deconv") {
    transposed_ = token == "--deconv";
    other_driver_.clear();
    return {};
  }
  if (token == "--reset") {
    // benchdnn's files reset their options and rely on the driver that the command chose.
    ProblemOptions defaults(lenient_);
    defaults.transposed_ = transposed_;
    defaults.other_driver_ = other_driver_;
    *this = std::move(defaults);
    return {};
  }
  const auto [key, value] = SplitOption(token);
  if (!Takes(token)) {
    return Status(StatusCode::kInvalidArgument,
                  "'" + std::string(token) +
                      "' is not an option of problem lines, which have --conv, --deconv, --dir, "
                      "--dt, --stag, --wtag, --dtag, --strides, --mb, --batch, --match and "
                      "--reset; with --lenient others are ignored");
  }
  if (IsOtherDriver(token)) {
    other_driver_ = std::string(token);
    return {};
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
  const ProblemOptions defaults;
  const auto set = [&](auto parse, auto member) {
    if (value.empty()) {
      this->*member = defaults.*member;
      return Status();
    }
    return ReadAlternatives(key, value, lenient_, parse, &(this->*member));
  };
  if (key == "--dir") return set(ParseDirection, &ProblemOptions::directions_);
  if (key == "--dt") return set(ParseTypes, &ProblemOptions::types_);
  if (key == kOldTypes) return set(ParseOldTypes, &ProblemOptions::types_);
  if (key == "--stag") return set(ParseTag, &ProblemOptions::src_tags_);
  if (key == "--wtag") return set(ParseTag, &ProblemOptions::weights_tags_);
  if (key == "--dtag") return set(ParseTag, &ProblemOptions::dst_tags_);
  if (key == "--strides") return set(ParseStrides, &ProblemOptions::strides_);
  if (key == "--mb") return set(ParseBatch, &ProblemOptions::batches_);
  // --match: a comma is part of it.
  if (value.empty()) {
    match_ = nullptr;
    return {};
  }
  Result<std::regex> expression = ParseExpression(value);
  if (!expression.ok()) return expression.status();
  match_ = [regex = *std::move(expression)](const std::string& descriptor) {
    return std::regex_search(descriptor.substr(0, kLongestSearched), regex);
  };
  return {};
}

int64_t ProblemOptions::NumChoices() const {
  constexpr int64_t kSaturated = int64_t{1} << 40;
  int64_t count = 1;
  for (size_t size : {directions_.size(), types_.size(), src_tags_.size(), weights_tags_.size(),
                      dst_tags_.size(), strides_.size(), batches_.size()}) {
    count = std::min(kSaturated, count * std::min(kSaturated >> 18, static_cast<int64_t>(size)));
  }
  return count;
}

std::vector<Alternative<CaseChoice>> ProblemOptions::Choices() const {
  Alternative<CaseChoice> first;
  first.value.transposed = transposed_;
  std::vector<Alternative<CaseChoice>> choices = {first};
  // Each choice so far, with each alternative of one more option.
  const auto multiply = [&](const auto& alternatives, auto CaseChoice::*field) {
    std::vector<Alternative<CaseChoice>> product;
    for (const Alternative<CaseChoice>& choice : choices) {
      for (const auto& alternative : alternatives) {
        product.push_back(choice);
        product.back().value.*field = alternative.value;
        if (choice.refusal.empty()) product.back().refusal = alternative.refusal;
      }
    }
    choices = std::move(product);
  };
  multiply(directions_, &CaseChoice::direction);
  multiply(types_, &CaseChoice::types);
  multiply(src_tags_, &CaseChoice::src_tag);
  multiply(weights_tags_, &CaseChoice::weights_tag);
  multiply(dst_tags_, &CaseChoice::dst_tag);
  multiply(strides_, &CaseChoice::strides);
  return choices;
}

bool ProblemOptions::Matches(const std::string& text) const { return !match_ || match_(text); }

}  // namespace convgrad::onednn
