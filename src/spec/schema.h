// The specification as data: every operation with its arguments and attributes. Checking, the
// command's `ops`, its options and docs/spec.md all read this table. Step 2 of the story.
#ifndef CONVGRAD_SPEC_SCHEMA_H_
#define CONVGRAD_SPEC_SCHEMA_H_

#include <span>
#include <string_view>

#include "convgrad/operation.h"
#include "convgrad/status.h"

namespace convgrad {

// Which forward operation the kind belongs to.
enum class Family { kConvolution, kConvTranspose };

// What a tensor is in the forward operation; a gradient has the role of what it is the gradient of.
// kShape is a shape tensor: the extents of the output as numbers.
enum class Role { kSrc, kWeights, kDst, kBias, kShape };

struct ArgumentSchema {
  std::string_view name;
  Role role;
  bool required;
  bool extension = false;  // not in the specification
};

enum class AttributeType { kS64, kS64List, kString };
enum class ListLength { kSpatial, kTensor };  // the spatial rank, or the rank of a whole tensor

struct AttributeSchema {
  std::string_view name;
  AttributeType type;
  bool required;
  std::string_view default_text;               // empty: none
  int64_t least = 0;                           // numbers: smallest legal value
  ListLength length = ListLength::kSpatial;    // lists
  bool empty_is_zeros = false;                 // lists: an empty list means zeros
  std::span<const std::string_view> values{};  // strings: the legal ones
  bool any_case = false;                       // strings: letter case does not matter
  std::string_view meaning;
};

struct OperationSchema {
  OpKind kind;
  std::string_view name;
  OpKind means;  // itself, or what a "-1" name is called now
  Family family;
  std::span<const ArgumentSchema> inputs;
  std::span<const ArgumentSchema> outputs;
  std::span<const AttributeSchema* const> attributes;

  bool first_generation() const { return kind != means; }
  const AttributeSchema* Find(std::string_view attribute) const;
  // The attribute that says how weights lie (weights_format or filter_format).
  const AttributeSchema& weights_format() const;
  // The attribute that gives the output's shape, null where the shape is always inferred.
  const AttributeSchema* shape_attribute() const;
};

std::span<const OperationSchema> Operations();
const OperationSchema& SchemaOf(OpKind kind);

// An extension: all gradients of one forward operation, by the name ConvolutionBackward or
// ConvTransposeBackward. `kind` is the forward operation's. Null: no such name.
const OperationSchema* FindBackward(std::string_view name);

std::string_view NameOf(AttributeType type);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_SCHEMA_H_
