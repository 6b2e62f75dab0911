// "--key=alternative,alternative", and an alternative is "ID:value+ID:value" for most keys. Each
// key has one function that puts the text of an alternative into overrides.
#include "onednn/graph_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace convgrad::onednn {
namespace {

constexpr std::string_view kPassedOver[] = {"--allow-enum-tags-only",
                                            "--attr-acc-mode",
                                            "--attr-deterministic",
                                            "--attr-fpmath",
                                            "--attr-scratchpad",
                                            "--canonical",
                                            "--check-ref-impl",
                                            "--cold-cache",
                                            "--cpu-isa-hints",
                                            "--ctx-exe",
                                            "--ctx-init",
                                            "--engine",
                                            "--execution-mode",
                                            "--expected-n-partitions",
                                            "--fast-ref",
                                            "--fix-times-per-prb",
                                            "--global-impl",
                                            "--graph",
                                            "--impl",
                                            "--max-ms-per-prb",
                                            "--mem-check",
                                            "--memory-kind",
                                            "--min-times-per-prb",
                                            "--mode",
                                            "--mode-modifier",
                                            "--num-streams",
                                            "--perf-template",
                                            "--repeats-per-prb",
                                            "--runtime-scale",
                                            "--skip-impl",
                                            "--start",
                                            "--stream-kind",
                                            "--summary",
                                            "--verbose"};

constexpr int64_t kLargestBatch = std::numeric_limits<int32_t>::max();

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

std::string Quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, 60)) + (text.size() > 60 ? "...'" : "'");
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

template <class Number>
bool ParseWhole(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "2x8x4x4"
bool ParseDims(std::string_view text, Dims* dims) {
  for (std::string_view part : SplitAt(text, 'x')) {
    int64_t number = 0;
    if (!ParseWhole(part, &number) || number < 0) return false;
    dims->push_back(number);
  }
  return dims->size() <= static_cast<size_t>(kLargestRank);
}

// Each of the first letters of the alphabet once.
bool IsTag(std::string_view text) {
  std::string sorted(text);
  std::sort(sorted.begin(), sorted.end());
  return !text.empty() && text.size() <= static_cast<size_t>(kLargestRank) &&
         sorted == std::string_view("abcdefghijkl").substr(0, text.size());
}

// SHAPE, SHAPE*STRIDES, SHAPE*TAG, *STRIDES, *TAG or TAG, as versions 3.5 to 3.7 wrote *TAG; "-" is
// the shape of a scalar.
Status ParseShape(std::string_view text, TensorOverride* shape) {
  if (IsTag(text)) {
    shape->tag = text;
    return {};
  }
  const size_t star = text.find('*');
  const std::string_view extents = text.substr(0, star);
  if (extents == "-") {
    shape->extents.emplace();
  } else if (!extents.empty() && !ParseDims(extents, &shape->extents.emplace())) {
    return Invalid(Quoted(extents) + " is no shape: expected numbers such as 2x64x56x56, or -");
  }
  if (star == std::string_view::npos) {
    return extents.empty() ? Invalid("the shape is empty, expected such as 2x64x56x56") : Status();
  }
  const std::string_view layout = text.substr(star + 1);
  if (IsTag(layout)) {
    shape->tag = layout;
    return {};
  }
  if (ParseDims(layout, &shape->strides)) return {};
  return Invalid(Quoted(layout) +
                 " after the * is neither a tag such as acdb, which has each letter once, nor "
                 "strides such as 512x1x64x8");
}

// What becomes part of a graph can be written as JSON and printed.
bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

// NAME:VALUE*NAME:VALUE; the last of a name counts.
Status ParseAttributes(std::string_view text,
                       std::vector<std::pair<std::string, std::string>>* attributes) {
  for (std::string_view part : SplitAt(text, '*')) {
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == part.size()) {
      return Invalid(Quoted(part) + " must be an attribute with its value, such as strides:2x2");
    }
    if (!IsPlain(part)) return Invalid("an attribute has characters that none has");
    attributes->emplace_back(part.substr(0, colon), part.substr(colon + 1));
  }
  return {};
}

Status ParseType(std::string_view text, ElementType* type) {
  const std::optional<ElementType> parsed = ParseElementType(text);
  if (!parsed) return Invalid(Quoted(text) + " is no type, expected such as f32, bf16 or f16");
  *type = *parsed;
  return {};
}

Status ParseProperty(std::string_view text, PropertyType* property) {
  const std::optional<PropertyType> parsed = ParsePropertyType(text);
  if (!parsed) {
    return Invalid(Quoted(text) +
                   " is no property: expected undef, variable, constant or "
                   "host_scalar");
  }
  *property = *parsed;
  return {};
}

Status ParseKind(std::string_view text, std::string* kind) {
  if (!IsPlain(text)) return Invalid("a kind has characters that no kind of operation has");
  *kind = text;
  return {};
}

// ID:VALUE+ID:VALUE, each id once; nothing between two + is nothing.
template <class T, class Parse>
Status ParseById(std::string_view text, Parse parse, std::map<size_t, T>* values) {
  for (std::string_view part : SplitAt(text, '+')) {
    if (part.empty()) continue;
    const size_t colon = part.find(':');
    size_t id = 0;
    if (colon == std::string_view::npos || !ParseWhole(part.substr(0, colon), &id)) {
      return Invalid(Quoted(part) + " must begin with an id and a colon, such as 0:");
    }
    const auto [entry, is_new] = values->try_emplace(id);
    if (!is_new) return Invalid("id " + std::to_string(id) + " is there twice");
    if (colon + 1 == part.size()) return Invalid(Quoted(part) + " must have a value after the id");
    if (Status s = parse(part.substr(colon + 1), &entry->second); !s.ok()) {
      return Invalid("id " + std::to_string(id) + ": " + s.message());
    }
  }
  return {};
}

Status SetTypes(std::string_view text, GraphOverrides* overrides) {
  if (text.find(':') != std::string_view::npos) {
    return ParseById(text, ParseType, &overrides->types);
  }
  if (Status s = ParseType(text, &overrides->type); !s.ok()) return s;
  for (ElementType type :
       {ElementType::kUndef, ElementType::kF32, ElementType::kBF16, ElementType::kF16}) {
    if (overrides->type == type) return {};
  }
  return Invalid(Quoted(text) + " must be one of f32, bf16, f16 and undef for all tensors");
}

Status SetBatch(std::string_view text, GraphOverrides* overrides) {
  if (ParseWhole(text, &overrides->batch) && overrides->batch >= 0 &&
      overrides->batch <= kLargestBatch) {
    return {};
  }
  return Invalid(Quoted(text) + " must be a number from 0, for the graph's own, to " +
                 std::to_string(kLargestBatch));
}

struct Key {
  std::string_view name;
  Status (*set)(std::string_view, GraphOverrides*);
};

constexpr std::array<Key, 6> kKeys = {{
    {"--in-shapes", [](std::string_view text,
                       GraphOverrides* o) { return ParseById(text, ParseShape, &o->tensors); }},
    {"--op-attrs",
     [](std::string_view text, GraphOverrides* o) {
       return ParseById(text, ParseAttributes, &o->attributes);
     }},
    {"--op-kind", [](std::string_view text,
                     GraphOverrides* o) { return ParseById(text, ParseKind, &o->kinds); }},
    {"--tensor-property",
     [](std::string_view text, GraphOverrides* o) {
       return ParseById(text, ParseProperty, &o->properties);
     }},
    {"--dt", SetTypes},
    {"--mb", SetBatch},
}};

std::string_view KeyOf(std::string_view token) { return token.substr(0, token.find('=')); }

bool IsPassedOver(std::string_view token) {
  if (token.starts_with("-v") && token.find_first_not_of("0123456789=", 2) == token.npos)
    return true;
  return std::ranges::find(kPassedOver, KeyOf(token)) != std::end(kPassedOver);
}

// Of two choices of different options.
GraphChoice Joined(const GraphChoice& a, const GraphChoice& b) {
  GraphChoice both = a;
  const GraphOverrides& more = b.overrides;
  both.overrides.tensors.insert(more.tensors.begin(), more.tensors.end());
  both.overrides.attributes.insert(more.attributes.begin(), more.attributes.end());
  both.overrides.kinds.insert(more.kinds.begin(), more.kinds.end());
  both.overrides.properties.insert(more.properties.begin(), more.properties.end());
  both.overrides.types.insert(more.types.begin(), more.types.end());
  if (more.type != ElementType::kUndef) both.overrides.type = more.type;
  if (more.batch != 0) both.overrides.batch = more.batch;
  if (!both.text.empty() && !b.text.empty()) both.text += " ";
  both.text += b.text;
  if (both.refusal.empty()) both.refusal = b.refusal;
  return both;
}

}  // namespace

bool GraphOptions::IsOption(std::string_view token) {
  return token == "--reset" || IsPassedOver(token) ||
         std::ranges::find(kKeys, KeyOf(token), &Key::name) != kKeys.end();
}

Status GraphOptions::Set(std::string_view token) { return SetAlternatives(token, nullptr); }

void GraphOptions::SetOrRefuse(std::string_view token, const std::string& origin) {
  const Status status = SetAlternatives(token, &origin);
  if (!status.ok() && unknown_.empty()) unknown_ = origin + ": " + status.message();
}

// With an origin, only an option without a name or a value that could be kept is an error.
Status GraphOptions::SetAlternatives(std::string_view token, const std::string* origin) {
  if (token == "--reset") {
    alternatives_.clear();
    unknown_.clear();
    return {};
  }
  if (IsPassedOver(token)) return {};
  const auto* key = std::ranges::find(kKeys, KeyOf(token), &Key::name);
  if (key == kKeys.end()) {
    return Invalid(Quoted(token) +
                   " is not an option of graphs, which have --in-shapes, --op-attrs, --op-kind, "
                   "--tensor-property, --dt, --mb, --case, --batch and --reset");
  }
  if (key->name.size() == token.size()) {
    return Invalid(std::string(key->name) + " must have a value, as in " + std::string(key->name) +
                   "=VALUE");
  }
  std::vector<GraphChoice> choices;
  for (std::string_view text : SplitAt(token.substr(key->name.size() + 1), ',')) {
    GraphChoice& choice = choices.emplace_back();
    if (text.empty()) continue;  // the graph as it is
    if (Status s = key->set(text, &choice.overrides); !s.ok()) {
      const std::string message = std::string(key->name) + ": " + s.message();
      if (origin == nullptr) return Invalid(message);
      choice = {{}, {}, *origin + ": " + message};
    }
    if (!choice.overrides.empty()) {
      choice.text = std::string(key->name) + "=" + std::string(text);
    }
  }
  alternatives_.resize(kKeys.size());
  alternatives_[static_cast<size_t>(key - kKeys.begin())] = std::move(choices);
  return {};
}

int64_t GraphOptions::NumChoices() const {
  constexpr int64_t kSaturated = int64_t{1} << 30;
  int64_t count = 1;
  for (const auto& choices : alternatives_) {
    if (choices.empty()) continue;
    count =
        std::min(kSaturated, count * std::min(kSaturated, static_cast<int64_t>(choices.size())));
  }
  return count;
}

std::vector<GraphChoice> GraphOptions::Choices() const {
  std::vector<GraphChoice> all(1);
  all[0].refusal = unknown_;
  for (const auto& choices : alternatives_) {
    if (choices.empty()) continue;
    std::vector<GraphChoice> more;
    for (const GraphChoice& choice : all) {
      for (const GraphChoice& next : choices) more.push_back(Joined(choice, next));
    }
    all = std::move(more);
  }
  return all;
}

}  // namespace convgrad::onednn
