#include "onednn/graph_model.h"

#include <span>

namespace convgrad::onednn {
namespace {

template <class Enum>
struct Named {
  Enum value;
  std::string_view name;
};

constexpr Named<ElementType> kElementTypes[] = {
    {ElementType::kUndef, "undef"},     {ElementType::kF16, "f16"},
    {ElementType::kBF16, "bf16"},       {ElementType::kF32, "f32"},
    {ElementType::kS32, "s32"},         {ElementType::kS8, "s8"},
    {ElementType::kU8, "u8"},           {ElementType::kF64, "f64"},
    {ElementType::kBoolean, "boolean"}, {ElementType::kF8E5M2, "f8_e5m2"},
    {ElementType::kF8E4M3, "f8_e4m3"},  {ElementType::kS4, "s4"},
    {ElementType::kU4, "u4"},           {ElementType::kE8M0, "e8m0"},
    {ElementType::kF4E2M1, "f4_e2m1"},  {ElementType::kF4E3M0, "f4_e3m0"},
    {ElementType::kS64, "s64"},
};

constexpr Named<LayoutType> kLayoutTypes[] = {
    {LayoutType::kUndef, "undef"},
    {LayoutType::kAny, "any"},
    {LayoutType::kStrided, "strided"},
    {LayoutType::kOpaque, "opaque"},
};

constexpr Named<PropertyType> kPropertyTypes[] = {
    {PropertyType::kUndef, "undef"},
    {PropertyType::kVariable, "variable"},
    {PropertyType::kConstant, "constant"},
    {PropertyType::kHostScalar, "host_scalar"},
};

template <class Enum>
std::string_view NameIn(std::span<const Named<Enum>> table, Enum value) {
  for (const Named<Enum>& row : table) {
    if (row.value == value) return row.name;
  }
  return "unknown";
}

template <class Enum>
std::optional<Enum> ParseIn(std::span<const Named<Enum>> table, std::string_view name) {
  for (const Named<Enum>& row : table) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(ElementType type) { return NameIn<ElementType>(kElementTypes, type); }
std::string_view NameOf(LayoutType layout) { return NameIn<LayoutType>(kLayoutTypes, layout); }
std::string_view NameOf(PropertyType property) {
  return NameIn<PropertyType>(kPropertyTypes, property);
}

std::optional<ElementType> ParseElementType(std::string_view name) {
  return ParseIn<ElementType>(kElementTypes, name);
}
std::optional<LayoutType> ParseLayoutType(std::string_view name) {
  return ParseIn<LayoutType>(kLayoutTypes, name);
}
std::optional<PropertyType> ParsePropertyType(std::string_view name) {
  return ParseIn<PropertyType>(kPropertyTypes, name);
}

}  // namespace convgrad::onednn
