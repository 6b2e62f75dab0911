// An operation: one of the specification's kinds and its attributes, by their names there.
// Names and values are checked when a plan is made, against the table in src/spec/schema.cc.
#ifndef CONVGRAD_OPERATION_H_
#define CONVGRAD_OPERATION_H_

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "convgrad/export.h"
#include "convgrad/status.h"
#include "convgrad/types.h"

namespace convgrad {

// The family, then the first generation's ("-1") names, which call filters what is weights now and
// hold ConvTranspose filters with their channel axes in the other order.
enum class OpKind : int32_t {
  kConvolution = 0,
  kConvolutionBackwardData = 1,
  kConvolutionBackwardWeights = 2,
  kConvTranspose = 3,
  kConvTransposeBackwardData = 4,
  kConvTransposeBackwardWeights = 5,
  kConvolutionBackpropData = 6,
  kConvolutionBackpropFilters = 7,
  kConvTransposeBackpropData = 8,
  kConvTransposeBackpropFilters = 9,
};

CONVGRAD_API std::string_view NameOf(OpKind kind) noexcept;

// Accepts the ten names, the last four also with their version: "ConvTransposeBackpropFilters-1".
CONVGRAD_API Result<OpKind> ParseOpKind(std::string_view name) noexcept;

// An s64, a list of s64, or a string. The constructors are implicit so that attributes read as they
// do in the specification: {{"strides", {2, 2}}, {"groups", 4}, {"auto_pad", "valid"}}.
class AttributeValue {
 public:
  template <std::integral Int>
  AttributeValue(Int value) : value_(static_cast<int64_t>(value)) {}           // NOLINT
  AttributeValue(std::initializer_list<int64_t> list) : value_(Dims(list)) {}  // NOLINT
  AttributeValue(Dims list) : value_(std::move(list)) {}                       // NOLINT
  AttributeValue(std::string text) : value_(std::move(text)) {}                // NOLINT
  AttributeValue(const char* text) : value_(std::string(text)) {}              // NOLINT

  const int64_t* s64() const { return std::get_if<int64_t>(&value_); }
  const Dims* list() const { return std::get_if<Dims>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }

 private:
  std::variant<int64_t, Dims, std::string> value_;
};

class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) Set(entry.first, entry.second);
  }

  // Replaces an earlier value of the same name.
  Attributes& Set(std::string name, AttributeValue value) {
    for (Entry& entry : entries_) {
      if (entry.first == name) {
        entry.second = std::move(value);
        return *this;
      }
    }
    entries_.emplace_back(std::move(name), std::move(value));
    return *this;
  }

  const AttributeValue* Find(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.first == name) return &entry.second;
    }
    return nullptr;
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

struct Operation {
  OpKind kind = OpKind::kConvolution;
  Attributes attributes;
};

}  // namespace convgrad

#endif  // CONVGRAD_OPERATION_H_
