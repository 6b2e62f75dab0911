// A graph of the oneDNN Graph specification: operations by name, attributes by name, and tensors
// that connect operations where their ids are equal. What the dnnl::graph API and serialized graphs
// have in common. Holds operations of any kind; which of them convgrad runs, and how, is in
// graph_operation.h. Values of enumerations are oneDNN's.
#ifndef CONVGRAD_ONEDNN_GRAPH_MODEL_H_
#define CONVGRAD_ONEDNN_GRAPH_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "convgrad/types.h"

namespace convgrad::onednn {

enum class ElementType : int32_t {
  kUndef = 0,
  kF16 = 1,
  kBF16 = 2,
  kF32 = 3,
  kS32 = 4,
  kS8 = 5,
  kU8 = 6,
  kF64 = 7,
  kBoolean = 8,
  kF8E5M2 = 9,
  kF8E4M3 = 10,
  kS4 = 11,
  kU4 = 12,
  kE8M0 = 13,
  kF4E2M1 = 14,
  kF4E3M0 = 15,
  kS64 = 16,
};

enum class LayoutType : int32_t { kUndef = 0, kAny = 1, kStrided = 2, kOpaque = 3 };

enum class PropertyType : int32_t { kUndef = 0, kVariable = 1, kConstant = 2, kHostScalar = 3 };

// The names that serialized graphs have: "f32", "strided", "constant".
std::string_view NameOf(ElementType type);
std::string_view NameOf(LayoutType layout);
std::string_view NameOf(PropertyType property);
std::optional<ElementType> ParseElementType(std::string_view name);
std::optional<LayoutType> ParseLayoutType(std::string_view name);
std::optional<PropertyType> ParsePropertyType(std::string_view name);

// What an unknown extent or stride is written as; any negative extent is read as unknown.
inline constexpr int64_t kUnknownExtent = std::numeric_limits<int64_t>::min();
inline constexpr size_t kNoId = std::numeric_limits<size_t>::max();
inline constexpr int kLargestRank = 12;

struct LogicalTensor {
  size_t id = kNoId;
  ElementType type = ElementType::kUndef;
  std::optional<Dims> extents;  // none: the rank is unknown; empty: a scalar
  LayoutType layout = LayoutType::kUndef;
  Dims strides;          // strided: as many as extents, kUnknownExtent where unknown; else empty
  size_t layout_id = 0;  // opaque
  PropertyType property = PropertyType::kUndef;

  friend bool operator==(const LogicalTensor&, const LogicalTensor&) = default;
};

// In the order of the names f32, f32[], s64, s64[], bool, string of serialized graphs.
using GraphValue =
    std::variant<float, std::vector<float>, int64_t, std::vector<int64_t>, bool, std::string>;

struct GraphOp {
  size_t id = 0;
  std::string kind;  // "ConvolutionBackwardWeights", "ReLU"
  std::string name;
  std::vector<std::pair<std::string, GraphValue>> attributes;  // each name once
  std::vector<LogicalTensor> inputs;
  std::vector<LogicalTensor> outputs;

  const GraphValue* Find(std::string_view attribute) const {
    for (const auto& [key, value] : attributes) {
      if (key == attribute) return &value;
    }
    return nullptr;
  }

  friend bool operator==(const GraphOp&, const GraphOp&) = default;
};

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_MODEL_H_
