// .safetensors files: any bytes are tensors within them, or one error; what is read is written the
// same.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fuzz/touch.h"
#include "tools/safetensors.h"

namespace convgrad::fuzz {
namespace {

void WriteAgain(const tools::SafetensorsHeader& header, std::string_view bytes) {
  const auto text = tools::FormatSafetensorsHeader(header, "x.safetensors");
  RequireSentence(text.status());
  if (!text.ok()) return;
  const std::string file =
      *text + std::string(bytes.substr(static_cast<size_t>(header.data_offset)));
  const auto again = tools::ParseSafetensorsHeader(file, "x.safetensors");
  Require(again.ok(), "what is written can be read");
  Require(again->entries.size() == header.entries.size(), "with as many tensors");
  for (size_t i = 0; i < header.entries.size(); ++i) {
    Require(again->entries[i].name == header.entries[i].name, "of these names");
    Require(again->entries[i].extents == header.entries[i].extents, "and extents");
  }
}

}  // namespace
}  // namespace convgrad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace tools = convgrad::tools;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto header = tools::ParseSafetensorsHeader(bytes, "x.safetensors");
  convgrad::fuzz::RequireSentence(header.status());
  // One without a name, and a few by theirs.
  std::vector<std::string> places = {"x.safetensors"};
  if (header.ok()) {
    convgrad::fuzz::WriteAgain(*header, bytes);
    for (size_t i = 0; i < std::min<size_t>(header->entries.size(), 8); ++i) {
      places.push_back("x.safetensors:" + header->entries[i].name);
    }
  }
  for (const std::string& place : places) {
    const auto tensor = tools::ReadTensor(place, bytes);
    convgrad::fuzz::RequireSentence(tensor.status());
    if (tensor.ok()) convgrad::fuzz::Touch(*tensor, size);
  }
  return 0;
}
