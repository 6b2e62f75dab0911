// .npy files: any bytes are a tensor within them, or one error; what is read is written the same.
#include <cstdint>
#include <string_view>

#include "fuzz/touch.h"
#include "tools/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using convgrad::fuzz::Require;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto tensor = convgrad::tools::ReadTensor("x.npy", bytes);
  convgrad::fuzz::RequireSentence(tensor.status());
  if (!tensor.ok()) return 0;
  convgrad::fuzz::Touch(*tensor, size);
  const auto header = convgrad::tools::FormatNpyHeader(tensor->desc, "x.npy");
  Require(header.ok(), "what is read can be written");
  const int64_t held = tensor->elements() * convgrad::SizeOf(tensor->desc.type);
  const std::string file = *header + std::string(static_cast<size_t>(held), '\0');
  const auto again = convgrad::tools::ParseNpyHeader(file, "x.npy");
  Require(again.ok(), "what is written can be read");
  Require(again->desc.extents == tensor->desc.extents, "with the same extents");
  Require(again->desc.type == tensor->desc.type, "and the same type");
  return 0;
}
