// The tree is built from the parser's events, without recursion: nesting is bounded before anything
// is kept, and a syntax error becomes one sentence with line and column.
#include "onednn/json_tree.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "onednn/one_line.h"

namespace convgrad::onednn {
namespace {

constexpr size_t kShown = 60;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

// The beginning of a text, on one line.
std::string Start(std::string_view text, size_t most = kShown) {
  size_t length = std::min(text.size(), most);
  while (length < text.size() && length > 0 && (text[length] & 0xc0) == 0x80) --length;
  return OneLine(std::string(text.substr(0, length)));
}

std::string AppendKey(std::string path, std::string_view key) {
  if (!path.empty()) path += ".";
  return path + Start(key);
}

std::string AppendIndex(std::string path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TreeBuilder(std::string_view text) : text_(text) {}

  Status TakeStatus() { return std::move(status_); }
  JsonValue TakeTree() { return std::move(root_); }

  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add({value}); }
  bool number_integer(number_integer_t value) override { return Add({int64_t{value}}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (std::in_range<int64_t>(value)) return Add({static_cast<int64_t>(value)});
    return Add({uint64_t{value}});
  }
  bool number_float(number_float_t value, const string_t&) override { return Add({value}); }
  bool string(string_t& value) override { return Add({std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // not in JSON text

  bool start_object(size_t) override { return Open({JsonValue::Object()}); }
  bool start_array(size_t) override { return Open({JsonValue::List()}); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    std::get<JsonValue::Object>(open_.back()->value).push_back({std::move(name), {}});
    return true;
  }
  bool end_object() override {
    const auto& members = std::get<JsonValue::Object>(open_.back()->value);
    std::vector<std::string_view> keys;
    for (const JsonMember& member : members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) {
      const std::string repeated(*twice);
      open_.pop_back();
      const std::string path = Path();
      return Fail((path.empty() ? "the top level" : path) + " has the key " +
                  QuotedStart(repeated) + " twice, and each key must be there once");
    }
    open_.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n');
    const size_t column =
        before.size() - (line_start == std::string_view::npos ? 0 : line_start + 1);
    // The library's own text, without its names and numbers: they are said above.
    std::string_view reason = error.what();
    for (std::string_view mark : {"] ", "column "}) {
      const size_t at = reason.substr(0, 100).find(mark);
      if (at != std::string_view::npos) reason.remove_prefix(at + mark.size());
    }
    if (const size_t at = reason.substr(0, 24).find(": "); at != std::string_view::npos) {
      reason.remove_prefix(at + 2);
    }
    return Fail("line " + std::to_string(line) + ", column " + std::to_string(column) + ": " +
                Start(reason, 160));
  }

 private:
  bool Fail(std::string message) {
    status_ = Invalid(std::move(message));
    return false;
  }

  // Where the next value goes. A container that is open stays where it is: nothing is added to the
  // one around it meanwhile.
  JsonValue* Next() {
    if (open_.empty()) return &root_;
    if (auto* list = std::get_if<JsonValue::List>(&open_.back()->value)) {
      return &list->emplace_back();
    }
    return &std::get<JsonValue::Object>(open_.back()->value).back().value;
  }

  bool Add(JsonValue value) {
    if (++count_ > kMostJsonValues) {
      return Fail("the text has more than " + std::to_string(kMostJsonValues) +
                  " values, more than any graph needs");
    }
    *Next() = std::move(value);
    return true;
  }

  bool Open(JsonValue value) {
    if (open_.size() >= kDeepestJson) {
      return Fail(Path() + " is nested deeper than " + std::to_string(kDeepestJson) +
                  " levels, more than any graph needs");
    }
    if (++count_ > kMostJsonValues) return Add({});
    JsonValue* place = Next();
    *place = std::move(value);
    open_.push_back(place);
    return true;
  }

  std::string Path() const {
    std::string path;
    for (const JsonValue* value : open_) {
      if (const auto* list = value->As<JsonValue::List>()) {
        path = AppendIndex(std::move(path), list->empty() ? 0 : list->size() - 1);
      } else if (const auto* object = value->As<JsonValue::Object>(); !object->empty()) {
        path = AppendKey(std::move(path), object->back().key);
      }
    }
    return path;
  }

  std::string_view text_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  size_t count_ = 0;
  Status status_;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  const Object* object = As<Object>();
  if (object == nullptr) return nullptr;
  for (const JsonMember& member : *object) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

std::string JsonValue::Describe() const {
  if (const bool* truth = As<bool>()) return *truth ? "true" : "false";
  if (const auto* number = As<int64_t>()) return std::to_string(*number);
  if (const auto* number = As<uint64_t>()) return std::to_string(*number);
  if (const auto* number = As<double>()) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", *number);
    return digits;
  }
  if (const auto* text = As<std::string>()) return QuotedStart(*text);
  if (const auto* list = As<List>()) {
    return "a list of " + std::to_string(list->size()) + (list->size() == 1 ? " value" : " values");
  }
  if (As<Object>() != nullptr) return "an object";
  return "null";
}

std::string JsonPlace::Text() const {
  if (up_ == nullptr) return {};
  return is_member_ ? AppendKey(up_->Text(), key_) : AppendIndex(up_->Text(), index_);
}

Result<JsonValue> ParseJson(std::string_view text) {
  if (text.size() > kMostJsonBytes) {
    return Invalid("the text has " + std::to_string(text.size()) +
                   " bytes, and must have at most " + std::to_string(kMostJsonBytes));
  }
  TreeBuilder builder(text);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.TakeTree();
  return builder.TakeStatus();
}

std::string QuotedStart(std::string_view text) {
  return "\"" + Start(text) + (text.size() > kShown ? "...\"" : "\"");
}

}  // namespace convgrad::onednn
