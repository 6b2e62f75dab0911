// The header of .safetensors files. The JSON is read as events and not as a tree: a header may
// name a million tensors, and what the format does not allow is refused where it is met, so that
// nesting never goes deeper than the three levels of the format.
#include "tools/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "tools/tensor_file.h"

namespace convgrad::tools {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxHeaderBytes = 100'000'000;  // of the reference implementation
constexpr std::string_view kMetadataName = "__metadata__";

Status Invalid(const std::string& path, const std::string& problem,
               StatusCode code = StatusCode::kInvalidArgument) {
  return Status(code, path + ": " + problem);
}

class HeaderEvents : public nlohmann::json_sax<json> {
 public:
  explicit HeaderEvents(SafetensorsHeader* header) : header_(header) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool binary(binary_t&) override { return Unexpected("binary data"); }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected("the number " + text.substr(0, 40));
  }
  bool number_integer(number_integer_t value) override {
    return Unexpected("the number " + std::to_string(value));
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) {
      return Unexpected("the number " + std::to_string(value));
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail("has the number " + std::to_string(value) + ", which does not fit into 63 bits");
    }
    (place_ == Place::kShape ? entry_.extents : offsets_).push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_->metadata.emplace_back(key_, std::move(value));
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return Unexpected("a string");
    entry_.dtype = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kTop;
      return true;
    }
    if (place_ != Place::kTop) return Unexpected("an object");
    if (entry_.name != kMetadataName) {
      place_ = Place::kTensor;
      return true;
    }
    if (header_->has_metadata) return Fail("occurs twice");
    header_->has_metadata = true;
    place_ = Place::kMetadata;
    return true;
  }

  bool key(string_t& value) override {
    if (place_ == Place::kTop) {
      entry_ = SafetensorsEntry();
      entry_.name = std::move(value);
      offsets_.clear();
      has_dtype_ = has_shape_ = has_offsets_ = false;
      return true;
    }
    key_ = std::move(value);
    if (place_ != Place::kTensor) return true;
    bool* seen = key_ == "dtype"          ? &has_dtype_
                 : key_ == "shape"        ? &has_shape_
                 : key_ == "data_offsets" ? &has_offsets_
                                          : nullptr;
    if (seen == nullptr) {
      return Fail("has the key " + QuotedName(key_) +
                  ", expected only dtype, shape and data_offsets");
    }
    if (*seen) return Fail("has the key " + QuotedName(key_) + " twice");
    *seen = true;
    return true;
  }

  bool end_object() override {
    const Place ended = std::exchange(place_, Place::kTop);
    if (ended != Place::kTensor) return true;
    if (!has_dtype_ || !has_shape_ || !has_offsets_) {
      return Fail("lacks one of the keys dtype, shape and data_offsets");
    }
    if (offsets_.size() != 2) {
      return Fail("has " + std::to_string(offsets_.size()) + " data_offsets, expected 2");
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_->entries.push_back(entry_);
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") return Unexpected("an array");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem_ = "the header is not JSON: error at its byte " + std::to_string(position);
    return false;
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets };

  bool Fail(const std::string& what) {
    const bool in_metadata = place_ == Place::kMetadata || entry_.name == kMetadataName;
    problem_ = in_metadata ? "__metadata__" : "tensor " + QuotedName(entry_.name);
    problem_ += " " + what;
    return false;
  }

  bool Unexpected(const std::string& found) {
    switch (place_) {
      case Place::kOutside:
        problem_ = "the header is " + found + ", expected a JSON object";
        return false;
      case Place::kTop:
        return Fail("is " + found + ", expected an object");
      case Place::kMetadata:
        return Fail("has " + found + " as " + QuotedName(key_) + ", expected a string");
      case Place::kTensor:
        return Fail("has " + found + " as " + key_ +
                    (key_ == "dtype" ? ", expected a string" : ", expected an array"));
      case Place::kShape:
      case Place::kOffsets:
        break;
    }
    return Fail("has " + found + " in " + key_ + ", expected integers of at least 0");
  }

  SafetensorsHeader* header_;
  std::string problem_;
  Place place_ = Place::kOutside;
  std::string key_;         // within a tensor or __metadata__
  SafetensorsEntry entry_;  // the one being read
  Dims offsets_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

Status CheckEntry(const SafetensorsEntry& entry, int64_t data_bytes, const std::string& path) {
  const std::string tensor = "tensor " + QuotedName(entry.name);
  const std::string offsets =
      " data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
  if (entry.begin > entry.end) {
    return Invalid(path, tensor + " has" + offsets + ", expected begin <= end");
  }
  if (entry.end > data_bytes) {
    return Invalid(path, tensor + " has" + offsets + ", but the file holds " +
                             std::to_string(data_bytes) + " bytes of data");
  }
  const DataType type = TypeOfSafetensors(entry.dtype);
  if (type == DataType::kUndef) return Status();
  const std::optional<int64_t> bytes = DenseBytes({type, entry.extents, {}, {}});
  if (bytes == entry.end - entry.begin) return Status();
  return Invalid(path,
                 tensor + " has" + offsets + ", but its dtype and shape need " +
                     (bytes ? std::to_string(*bytes) : "more than 2^63") + " bytes",
                 StatusCode::kInvalidShape);
}

// Every entry by itself, then that no two share a name or bytes. Sorts them by their data.
Status CheckEntries(int64_t data_bytes, const std::string& path,
                    std::vector<SafetensorsEntry>* entries) {
  for (const SafetensorsEntry& entry : *entries) {
    Status status = CheckEntry(entry, data_bytes, path);
    if (!status.ok()) return status;
  }
  std::vector<std::string_view> names;
  for (const SafetensorsEntry& entry : *entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) {
    return Invalid(path, "tensor " + QuotedName(*twin) + " occurs twice in the header");
  }

  std::stable_sort(entries->begin(), entries->end(), [](const auto& left, const auto& right) {
    return std::tie(left.begin, left.end) < std::tie(right.begin, right.end);
  });
  for (size_t i = 1; i < entries->size(); ++i) {
    const SafetensorsEntry& before = (*entries)[i - 1];
    const SafetensorsEntry& after = (*entries)[i];
    if (before.end > after.begin) {
      return Invalid(path, "tensor " + QuotedName(after.name) + " starts at byte " +
                               std::to_string(after.begin) + ", within tensor " +
                               QuotedName(before.name));
    }
  }
  return Status();
}

std::string JsonOf(const std::string& text) { return json(text).dump(); }

}  // namespace

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view file, const std::string& path) {
  if (file.empty()) return Invalid(path, "the file is empty, expected a .safetensors header");
  if (file.size() < kLengthBytes) {
    return Invalid(path, "the file has " + std::to_string(file.size()) +
                             " bytes, expected at least the 8 of the header's length");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<uint8_t>(file[i])} << (8 * i);
  }
  if (length > kMaxHeaderBytes) {
    return Invalid(path, "the header claims " + std::to_string(length) +
                             " bytes, more than the 100000000 allowed");
  }
  if (length > file.size() - kLengthBytes) {
    return Invalid(path, "the header claims " + std::to_string(length) +
                             " bytes, but the file holds " +
                             std::to_string(file.size() - kLengthBytes) + " after the length");
  }
  SafetensorsHeader header;
  const std::string_view text = file.substr(kLengthBytes, length);
  HeaderEvents events(&header);
  if (!json::sax_parse(text.begin(), text.end(), &events)) return Invalid(path, events.problem());

  header.data_offset = static_cast<int64_t>(kLengthBytes + length);
  const int64_t data_bytes = static_cast<int64_t>(file.size()) - header.data_offset;
  Status status = CheckEntries(data_bytes, path, &header.entries);
  if (!status.ok()) return status;
  return header;
}

Result<std::string> FormatSafetensorsHeader(const SafetensorsHeader& header,
                                            const std::string& path) {
  std::string text = "{";
  try {
    if (header.has_metadata) {
      text += "\"__metadata__\":{";
      for (size_t i = 0; i < header.metadata.size(); ++i) {
        if (i > 0) text += ',';
        text += JsonOf(header.metadata[i].first) + ":" + JsonOf(header.metadata[i].second);
      }
      text += '}';
    }
    for (const SafetensorsEntry& entry : header.entries) {
      if (text.size() > 1) text += ',';
      text += JsonOf(entry.name) + ":{\"dtype\":" + JsonOf(entry.dtype) +
              ",\"shape\":" + json(entry.extents).dump() + ",\"data_offsets\":[" +
              std::to_string(entry.begin) + "," + std::to_string(entry.end) + "]}";
    }
  } catch (const json::exception&) {
    return Invalid(path, "a tensor's name is not UTF-8, which .safetensors requires");
  }
  text += '}';
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  if (text.size() > kMaxHeaderBytes) {
    return Invalid(path, "the header would have " + std::to_string(text.size()) +
                             " bytes, more than the 100000000 allowed");
  }
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length += static_cast<char>(uint64_t{text.size()} >> (8 * i) & 0xff);
  }
  return length + text;
}

Result<size_t> PlaceTensor(const std::optional<std::string>& given, const TensorDesc& desc,
                           const std::string& path, std::vector<SafetensorsEntry>* entries) {
  std::string name = "tensor";
  if (given) {
    name = *given;
  } else if (entries->size() == 1) {
    name = entries->front().name;
  }
  if (name == kMetadataName) {
    return Invalid(path, "a tensor cannot be called __metadata__, which is a word of .safetensors");
  }
  size_t place = 0;
  while (place < entries->size() && (*entries)[place].name != name) ++place;
  if (place == entries->size()) entries->emplace_back();
  (*entries)[place] = {name, std::string(SafetensorsNameOf(desc.type)), desc.extents, 0,
                       DenseBytes(desc).value_or(0)};
  int64_t end = 0;
  for (SafetensorsEntry& entry : *entries) {
    const int64_t bytes = entry.end - entry.begin;
    entry.begin = end;
    if (__builtin_add_overflow(end, bytes, &end)) {
      return Invalid(path, "the file would have more bytes than fit into 63 bits",
                     StatusCode::kInvalidShape);
    }
    entry.end = end;
  }
  return place;
}

DataType TypeOfSafetensors(std::string_view dtype) {
  for (const DataType type :
       {DataType::kF32, DataType::kF16, DataType::kBF16, DataType::kS32, DataType::kS64}) {
    if (dtype == SafetensorsNameOf(type)) return type;
  }
  return DataType::kUndef;
}

std::string_view SafetensorsNameOf(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "F32";
    case DataType::kF16:
      return "F16";
    case DataType::kBF16:
      return "BF16";
    case DataType::kS32:
      return "I32";
    case DataType::kS64:
      return "I64";
    case DataType::kUndef:
      break;
  }
  return "";
}

std::string QuotedName(std::string_view name) {
  constexpr size_t kLongest = 60;
  const std::string quoted =
      json(std::string(name.substr(0, kLongest)))
          .dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  return name.size() > kLongest ? quoted + "..." : quoted;
}

std::string Contents(const std::vector<SafetensorsEntry>& entries) {
  constexpr size_t kShown = 5;
  if (entries.empty()) return "the file holds no tensors";
  std::string text = "the file holds " + std::to_string(entries.size()) +
                     (entries.size() == 1 ? " tensor: " : " tensors: ");
  for (size_t i = 0; i < std::min(entries.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + QuotedName(entries[i].name);
  }
  return entries.size() > kShown ? text + ", ..." : text;
}

}  // namespace convgrad::tools
