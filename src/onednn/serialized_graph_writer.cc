// A graph as oneDNN writes it: two blanks for each level, every number of a list on its own line,
// true and false as 1 and 0, type before value. Strings are escaped as JSON asks.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>

#include "onednn/serialized_graph.h"

namespace convgrad::onednn {
namespace {

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
    };
    const unsigned first = byte(i++);
    if (first < 0x80) continue;
    const int more = first >= 0xc2 && first < 0xe0   ? 1
                     : first >= 0xe0 && first < 0xf0 ? 2
                     : first >= 0xf0 && first < 0xf5 ? 3
                                                     : 0;
    if (more == 0) return false;
    // What could be shorter, surrogates, and what is beyond the last character.
    const unsigned next = byte(i);
    if ((first == 0xe0 && next < 0xa0) || (first == 0xed && next > 0x9f) ||
        (first == 0xf0 && next < 0x90) || (first == 0xf4 && next > 0x8f)) {
      return false;
    }
    for (int k = 0; k < more; ++k) {
      if ((byte(i++) & 0xc0) != 0x80) return false;
    }
  }
  return true;
}

class JsonWriter {
 public:
  std::string TakeText() { return std::move(text_); }

  void Open(char bracket) {
    text_ += bracket;
    counts_.push_back(0);
  }
  void Close(char bracket) {
    const size_t count = counts_.back();
    counts_.pop_back();
    if (count != 0) NewLine();
    text_ += bracket;
  }
  void Item() {
    if (counts_.back()++ != 0) text_ += ',';
    NewLine();
  }
  void Key(std::string_view key) {
    Item();
    Value(key);
    text_ += ": ";
  }

  void Value(std::string_view text) {
    text_ += '"';
    const bool utf8 = IsUtf8(text);
    for (char c : text) Escaped(c, utf8);
    text_ += '"';
  }
  void Value(const std::string& text) { Value(std::string_view(text)); }
  void Value(bool value) { text_ += value ? '1' : '0'; }
  void Value(int64_t number) { text_ += std::to_string(number); }
  void Value(size_t number) { text_ += std::to_string(number); }
  // The shortest digits that read back as the same number. JSON has no infinity and no NaN, and of
  // what oneDNN writes for them, inf and nan, readers understand nothing: the largest number of
  // f32, and null, which readers refuse by its place.
  void Value(float number) {
    if (std::isnan(number)) {
      text_ += "null";
      return;
    }
    constexpr float kMost = std::numeric_limits<float>::max();
    number = std::clamp(number, -kMost, kMost);
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    text_.append(digits, end);
  }
  template <class T>
  void Value(const std::vector<T>& list) {
    Open('[');
    for (const T& value : list) {
      Item();
      Value(value);
    }
    Close(']');
  }
  template <class T>
  void Member(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

 private:
  void NewLine() {
    text_ += '\n';
    text_.append(2 * counts_.size(), ' ');
  }

  // Bytes of a text that is not UTF-8 are written as the characters of their numbers.
  void Escaped(char c, bool utf8) {
    switch (c) {
      case '\r':
        text_ += "\\r";
        return;
      case '\n':
        text_ += "\\n";
        return;
      case '\t':
        text_ += "\\t";
        return;
      case '\\':
      case '"':
        text_ += '\\';
        text_ += c;
        return;
      default:
        break;
    }
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && (utf8 || byte < 0x80)) {
      text_ += c;
      return;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", unsigned{byte});
    text_ += code;
  }

  std::string text_;
  std::vector<size_t> counts_;  // of the values in each open list or object
};

constexpr std::string_view kValueTypes[] = {"f32", "f32[]", "s64", "s64[]", "bool", "string"};

void Write(const GraphValue& value, JsonWriter& out) {
  out.Open('{');
  out.Member("type", kValueTypes[value.index()]);
  std::visit([&](const auto& v) { out.Member("value", v); }, value);
  out.Close('}');
}

// The extents, or the one number that stands for a shape or strides of which nothing is known.
Dims WrittenExtents(const LogicalTensor& tensor) {
  return tensor.extents.value_or(Dims{kUnknownExtent});
}

Dims WrittenStrides(const LogicalTensor& tensor) {
  const auto is_unknown = [](int64_t stride) { return stride == kUnknownExtent; };
  const bool known = tensor.layout == LayoutType::kStrided && tensor.extents &&
                     (tensor.strides.empty() || !std::ranges::all_of(tensor.strides, is_unknown));
  return known ? tensor.strides : Dims{kUnknownExtent};
}

void Write(const LogicalTensor& tensor, JsonWriter& out) {
  out.Open('{');
  out.Member("id", tensor.id);
  out.Member("dtype", NameOf(tensor.type));
  out.Member("shape", WrittenExtents(tensor));
  out.Member("stride", WrittenStrides(tensor));
  out.Member("layout_type", NameOf(tensor.layout));
  out.Member("property_type", NameOf(tensor.property));
  out.Close('}');
}

void Write(std::string_view key, std::span<const LogicalTensor> tensors, JsonWriter& out) {
  out.Key(key);
  out.Open('[');
  for (const LogicalTensor& tensor : tensors) {
    out.Item();
    Write(tensor, out);
  }
  out.Close(']');
}

void Write(const GraphOp& op, JsonWriter& out) {
  out.Open('{');
  out.Member("id", op.id);
  out.Member("name", op.name);
  out.Member("kind", op.kind);
  out.Key("attrs");
  out.Open('{');
  for (const auto& [name, value] : op.attributes) {
    out.Key(name);
    Write(value, out);
  }
  out.Close('}');
  Write("inputs", op.inputs, out);
  Write("outputs", op.outputs, out);
  out.Close('}');
}

}  // namespace

std::string WriteSerializedGraph(const SerializedGraph& graph) {
  JsonWriter out;
  out.Open('{');
  if (!graph.version.empty()) out.Member("version", graph.version);
  if (!graph.engine_kind.empty()) out.Member("engine_kind", graph.engine_kind);
  if (!graph.fpmath_mode.empty()) out.Member("fpmath_mode", graph.fpmath_mode);
  if (!graph.fpmath_mode_apply_to_int.empty()) {
    out.Member("fpmath_mode_apply_to_int", graph.fpmath_mode_apply_to_int);
  }
  if (graph.input_ports) out.Member("input_ports", *graph.input_ports);
  if (graph.output_ports) out.Member("output_ports", *graph.output_ports);
  out.Key("graph");
  out.Open('[');
  for (const GraphOp& op : graph.ops) {
    out.Item();
    Write(op, out);
  }
  out.Close(']');
  out.Close('}');
  return out.TakeText() + "\n";
}

}  // namespace convgrad::onednn
