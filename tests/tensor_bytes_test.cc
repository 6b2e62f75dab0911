// Tensors from the bytes of a file that is in memory, at any alignment, without a file system.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/command_line.h"
#include "tools/tensor_file.h"

namespace convgrad::tools {
namespace {

float At(const HostTensor& tensor, int64_t element) {
  float value = 0;
  std::memcpy(&value, static_cast<const char*>(tensor.data()) + element * 4, 4);
  return value;
}

TEST(TensorBytes, AtAnyAlignment) {
  const Tensor values{DataType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6}};
  for (size_t shift = 0; shift < 4; ++shift) {
    const std::string npy = std::string(shift, '?') + NpyBytes(values);
    const std::string named = std::string(shift, '?') + SafetensorsBytes({{"x", values}});
    for (const auto& [where, bytes] :
         {std::pair("a.npy", &npy), std::pair("a.safetensors:x", &named)}) {
      const Result<HostTensor> tensor = ReadTensor(where, std::string_view(*bytes).substr(shift));
      ASSERT_TRUE(tensor.ok()) << tensor.status().message();
      EXPECT_EQ(tensor->desc.extents, values.extents);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 4, 0u);
      for (int64_t e = 0; e < 6; ++e) EXPECT_EQ(At(*tensor, e), static_cast<float>(e + 1));
    }
  }
}

TEST(TensorBytes, ErrorsNameThePlace) {
  EXPECT_EQ(ReadTensor("a.npy", "").status().message(),
            "a.npy: the file is empty, expected a .npy header");
  EXPECT_EQ(ReadTensor("a.safetensors:x", SafetensorsBytes({})).status().ok(), false);
  EXPECT_EQ(ReadTensor("a.txt", NpyBytes("<f4", false, {1}, "1234")).status().ok(), false);
  // More elements than any memory has: refused by the header alone.
  const std::string huge = NpyBytes("<f4", false, {1'000'000'000'000'000}, "1234");
  EXPECT_NE(ReadTensor("a.npy", huge).status().message().find("4000000000000000 bytes of data"),
            std::string::npos);
}

}  // namespace
}  // namespace convgrad::tools
