// The header of .safetensors files: an 8-byte length and JSON; bytes to a list of tensors and back.
// Knows no files: it is given the bytes, and a path only to name it in messages.
#ifndef CONVGRAD_TOOLS_SAFETENSORS_H_
#define CONVGRAD_TOOLS_SAFETENSORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "convgrad/types.h"

namespace convgrad::tools {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as the file spells it: it need not be a type that convgrad knows
  Dims extents;
  int64_t begin = 0;  // bytes from the start of the data
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  bool has_metadata = false;
  std::vector<std::pair<std::string, std::string>> metadata;
  int64_t data_offset = 0;  // bytes from the start of the file
};

// `file` is the whole file. The tensors' bytes lie within it and do not overlap; those of a known
// dtype are as many as their shape needs.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view file, const std::string& path);

// The bytes before the data, padded so that the data start at a multiple of 8.
Result<std::string> FormatSafetensorsHeader(const SafetensorsHeader& header,
                                            const std::string& path);

// Puts a dense tensor, whose bytes fit into 63 bits, among the entries: in place of the one of its
// name, else last. A tensor without a given name replaces the only one, else is called "tensor".
// Lays all data out without gaps, which the format requires, and returns the tensor's place.
Result<size_t> PlaceTensor(const std::optional<std::string>& given, const TensorDesc& desc,
                           const std::string& path, std::vector<SafetensorsEntry>* entries);

// kUndef where convgrad has no such type; empty for kUndef.
DataType TypeOfSafetensors(std::string_view dtype);
std::string_view SafetensorsNameOf(DataType type);

// A name as a message shows it: in double quotes, escaped, cut when long.
std::string QuotedName(std::string_view name);

// "the file holds 2 tensors: "a", "b"", for messages: the first few names.
std::string Contents(const std::vector<SafetensorsEntry>& entries);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_SAFETENSORS_H_
