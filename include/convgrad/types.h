// Element types and extents. Step 1 of the story (docs/design.md): the public words.
#ifndef CONVGRAD_TYPES_H_
#define CONVGRAD_TYPES_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace convgrad {

// kF32, kBF16 and kF16 are the types of data; kS32 and kS64 are the types of a shape tensor.
enum class DataType : int32_t { kUndef = 0, kF32 = 1, kBF16 = 2, kF16 = 3, kS32 = 4, kS64 = 5 };

// Extents, strides or attribute lists, outermost axis first.
using Dims = std::vector<int64_t>;

constexpr int64_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kF32:
    case DataType::kS32:
      return 4;
    case DataType::kBF16:
    case DataType::kF16:
      return 2;
    case DataType::kS64:
      return 8;
    case DataType::kUndef:
      break;
  }
  return 0;
}

constexpr std::string_view NameOf(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "f32";
    case DataType::kBF16:
      return "bf16";
    case DataType::kF16:
      return "f16";
    case DataType::kS32:
      return "s32";
    case DataType::kS64:
      return "s64";
    case DataType::kUndef:
      return "undef";
  }
  return "unknown";
}

constexpr bool IsFloat(DataType type) {
  return type == DataType::kF32 || type == DataType::kBF16 || type == DataType::kF16;
}

}  // namespace convgrad

#endif  // CONVGRAD_TYPES_H_
