// The header of NumPy's .npy files: magic, version, length, and a Python dictionary of three keys.
// The dictionary is read with a cursor and no recursion, so that no header can exhaust the stack.
#include "tools/npy.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "tools/tensor_file.h"

namespace convgrad::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor files are little-endian");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kMaxRank = 64;  // of NumPy 2
// numpy.save leaves room for the first extent to grow to 21 digits.
constexpr size_t kGrowthDigits = 21;

Status Invalid(const std::string& path, const std::string& problem,
               StatusCode code = StatusCode::kInvalidArgument) {
  return Status(code, path + ": " + problem);
}

// Text of a damaged file may hold anything: shown without control characters, and not at length.
std::string Shown(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string shown(text.substr(0, kLongest));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kLongest ? shown + "..." : shown;
}

struct Fields {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Dims> shape;
};

// The literal that NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class DictReader {
 public:
  DictReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Status Read(Fields* fields) {
    if (!Eat('{')) return Expected("'{'");
    while (!Eat('}')) {
      Result<std::string> key = ReadString("a key");
      if (!key.ok()) return key.status();
      if (!Eat(':')) return Expected("':'");
      Status status = ReadValue(*key, fields);
      if (!status.ok()) return status;
      if (!Eat(',') && !Sees('}')) return Expected("',' or '}'");
    }
    SkipSpace();
    if (at_ != text_.size()) return Expected("nothing after '}'");
    if (!fields->descr) return Missing("descr");
    if (!fields->fortran_order) return Missing("fortran_order");
    if (!fields->shape) return Missing("shape");
    return Status();
  }

 private:
  Status Expected(const std::string& what) const {
    const std::string found =
        at_ < text_.size() ? "'" + Shown(text_.substr(at_, 12)) + "'" : "the end of the header";
    return Invalid(path_, "the header has " + found + " at its byte " + std::to_string(at_) +
                              ", expected " + what);
  }
  Status Missing(const std::string& key) const {
    return Invalid(
        path_, "the header lacks the key '" + key + "', expected descr, fortran_order and shape");
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\f\v").find(text_[at_]) != text_.npos) {
      ++at_;
    }
  }
  bool Sees(char c) {
    SkipSpace();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool Eat(char c) {
    if (!Sees(c)) return false;
    ++at_;
    return true;
  }
  bool EatWord(std::string_view word) {
    SkipSpace();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Result<std::string> ReadString(const std::string& what) {
    SkipSpace();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') return Expected(what + " in quotes");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) return Expected(what + " with a closing quote");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  Status ReadValue(const std::string& key, Fields* fields) {
    const bool repeated = (key == "descr" && fields->descr) ||
                          (key == "fortran_order" && fields->fortran_order) ||
                          (key == "shape" && fields->shape);
    if (repeated) return Invalid(path_, "the header has the key '" + key + "' twice");
    if (key == "descr") return ReadDescr(fields);
    if (key == "shape") return ReadShape(fields);
    if (key != "fortran_order") {
      return Invalid(path_, "the header has the key '" + Shown(key) +
                                "', expected only descr, fortran_order and shape");
    }
    const bool is_true = EatWord("True");
    if (!is_true && !EatWord("False")) return Expected("True or False as fortran_order");
    fields->fortran_order = is_true;
    return Status();
  }

  Status ReadDescr(Fields* fields) {
    if (Sees('[') || Sees('(')) {
      return Invalid(path_,
                     "the dtype is structured, '" + Shown(text_.substr(at_)) +
                         "'; the accepted dtypes are <f4, <f2, <i4 and <i8",
                     StatusCode::kInvalidType);
    }
    Result<std::string> descr = ReadString("a dtype");
    if (!descr.ok()) return descr.status();
    fields->descr = *std::move(descr);
    return Status();
  }

  Status ReadShape(Fields* fields) {
    if (!Eat('(')) return Expected("'(' as the start of shape");
    Dims shape;
    while (!Eat(')')) {
      if (shape.size() == kMaxRank) {
        return Invalid(path_, "the shape has more than 64 extents", StatusCode::kInvalidShape);
      }
      Result<int64_t> extent = ReadExtent();
      if (!extent.ok()) return extent.status();
      shape.push_back(*extent);
      if (!Eat(',') && !Sees(')')) return Expected("',' or ')' in shape");
    }
    fields->shape = std::move(shape);
    return Status();
  }

  Result<int64_t> ReadExtent() {
    if (Sees('-')) {
      return Invalid(path_,
                     "the shape has a negative extent, '" + Shown(text_.substr(at_, 12)) +
                         "'; extents are at least 0",
                     StatusCode::kInvalidShape);
    }
    const size_t start = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        return Invalid(path_,
                       "the shape has the extent " + Shown(text_.substr(start)) +
                           ", which does not fit into 63 bits",
                       StatusCode::kInvalidShape);
      }
    }
    if (at_ == start) return Expected("an extent");
    // Python 2 wrote long integers as 3L.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

Status ReadType(const std::string& descr, const std::string& path, NpyHeader* header) {
  const bool has_order =
      !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
  const std::string code = descr.substr(has_order ? 1 : 0);
  header->swapped_bytes = has_order && descr[0] == '>';
  if (code == "f4") header->desc.type = DataType::kF32;
  if (code == "f2") header->desc.type = DataType::kF16;
  if (code == "i4") header->desc.type = DataType::kS32;
  if (code == "i8") header->desc.type = DataType::kS64;
  if (header->desc.given()) return Status();
  std::string problem = "the dtype is '" + Shown(descr) + "', accepted are <f4, <f2, <i4 and <i8";
  if (code == "V2" || code == "bfloat16") {
    problem += "; .npy has no bf16, so give bf16 data as .safetensors";
  }
  return Invalid(path, problem, StatusCode::kInvalidType);
}

// The text of the dictionary; sets header->data_offset to what follows it.
Result<std::string_view> FindDict(std::string_view file, const std::string& path,
                                  NpyHeader* header) {
  if (file.empty()) return Invalid(path, "the file is empty, expected a .npy header");
  const size_t compared = std::min(file.size(), kMagic.size());
  if (file.substr(0, compared) != kMagic.substr(0, compared)) {
    return Invalid(path, "the file does not start with the bytes \\x93NUMPY of a .npy file");
  }
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(file[at])); };
  if (file.size() >= 8 && (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)) {
    return Invalid(path, "the .npy version is " + std::to_string(byte(6)) + "." +
                             std::to_string(byte(7)) + ", accepted are 1.0, 2.0 and 3.0");
  }
  const size_t start = file.size() >= 8 && byte(6) > 1 ? 12 : 10;
  if (file.size() < start) {
    return Invalid(
        path, "the file ends within its header, after " + std::to_string(file.size()) + " bytes");
  }
  size_t length = byte(8) | byte(9) << 8;
  if (start == 12) length |= byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - start) {
    return Invalid(path, "the header claims " + std::to_string(length) +
                             " bytes, but the file holds " + std::to_string(file.size() - start) +
                             " after the magic");
  }
  header->data_offset = static_cast<int64_t>(start + length);
  return file.substr(start, length);
}

std::string_view DescrOf(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "<f4";
    case DataType::kF16:
      return "<f2";
    case DataType::kS32:
      return "<i4";
    case DataType::kS64:
      return "<i8";
    case DataType::kBF16:
    case DataType::kUndef:
      break;
  }
  return "";
}

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::string_view file, const std::string& path) {
  NpyHeader header;
  Result<std::string_view> dict = FindDict(file, path, &header);
  if (!dict.ok()) return dict.status();
  Fields fields;
  Status status = DictReader(*dict, path).Read(&fields);
  if (status.ok()) status = ReadType(*fields.descr, path, &header);
  if (!status.ok()) return status;

  header.desc.extents = *std::move(fields.shape);
  const std::optional<int64_t> bytes = DenseBytes(header.desc);
  if (!bytes) {
    return Invalid(path, "the size of the shape in bytes does not fit into 63 bits",
                   StatusCode::kInvalidShape);
  }
  const int64_t held = static_cast<int64_t>(file.size()) - header.data_offset;
  if (*bytes > held) {
    return Invalid(path, "the header claims " + std::to_string(*bytes) +
                             " bytes of data, but the file holds " + std::to_string(held) +
                             " after the header");
  }
  header.desc.strides = DenseStrides(header.desc.extents, *fields.fortran_order);
  return header;
}

Result<std::string> FormatNpyHeader(const TensorDesc& desc, const std::string& path) {
  const std::string_view descr = DescrOf(desc.type);
  if (descr.empty()) {
    return Invalid(path,
                   "a tensor of type " + std::string(NameOf(desc.type)) +
                       " cannot be written as .npy, which has f32, f16, s32 and s64; use "
                       ".safetensors or convert to f32",
                   StatusCode::kInvalidType);
  }
  const size_t rank = desc.extents.size();
  if (rank > kMaxRank) {
    return Invalid(path,
                   "a tensor of rank " + std::to_string(rank) +
                       " cannot be written as .npy, which has at most 64 axes",
                   StatusCode::kInvalidShape);
  }
  std::string dict = "{'descr': '";
  dict.append(descr).append("', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < rank; ++i) {
    if (i > 0) dict += ", ";
    dict += std::to_string(desc.extents[i]);
  }
  dict += rank == 1 ? ",), }" : "), }";
  if (rank > 0) dict.append(kGrowthDigits - std::to_string(desc.extents[0]).size(), ' ');
  // NumPy pads by a whole block where the header ends on a boundary already.
  dict.append(kAlignment - (kMagic.size() + 4 + dict.size() + 1) % kAlignment, ' ');
  dict += '\n';

  std::string header(kMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace convgrad::tools
