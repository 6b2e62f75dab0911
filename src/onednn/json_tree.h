// JSON text as a tree, for readers of formats: values with their places, the members of an object
// in the order of the text and each key once. Bounded: text, values and nesting beyond what any
// graph has are errors. Knows no format.
#ifndef CONVGRAD_ONEDNN_JSON_TREE_H_
#define CONVGRAD_ONEDNN_JSON_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "convgrad/status.h"

namespace convgrad::onednn {

struct JsonMember;

struct JsonValue {
  using List = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  // null, true or false, whole numbers (of 64 bits without sign: those that s64 does not have),
  // other numbers, strings, and what holds values.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, List, Object> value;

  template <class T>
  const T* As() const {
    return std::get_if<T>(&value);
  }
  // Of an object; null: no such member, or no object.
  const JsonValue* Find(std::string_view key) const;
  // For messages: the number 3, "text", a list of 4 values. Cut where it is long.
  std::string Describe() const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

// The way from the top to a value, kept on the stack while a format is read: graph[0].attrs.
class JsonPlace {
 public:
  JsonPlace() = default;
  JsonPlace Member(std::string_view key) const { return JsonPlace(this, key, 0); }
  JsonPlace Item(size_t index) const { return JsonPlace(this, {}, index); }
  std::string Text() const;

 private:
  JsonPlace(const JsonPlace* up, std::string_view key, size_t index)
      : up_(up), key_(key), index_(index), is_member_(key.data() != nullptr) {}

  const JsonPlace* up_ = nullptr;
  std::string_view key_;
  size_t index_ = 0;
  bool is_member_ = false;
};

inline constexpr size_t kMostJsonBytes = size_t{64} << 20;
inline constexpr size_t kMostJsonValues = size_t{4} << 20;
inline constexpr size_t kDeepestJson = 32;

// The error names line and column, or the place in the tree.
Result<JsonValue> ParseJson(std::string_view text);

// In double quotes, cut where it is long: for messages.
std::string QuotedStart(std::string_view text);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_JSON_TREE_H_
