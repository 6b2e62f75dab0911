// The tensors of one operation by their roles: which are given, what they are called, and the
// checks that need no geometry (presence, types, ranks, unknown extents). Part of step 2.
#ifndef CONVGRAD_SPEC_ARGUMENTS_H_
#define CONVGRAD_SPEC_ARGUMENTS_H_

#include <array>
#include <span>
#include <string_view>

#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "spec/schema.h"

namespace convgrad {

struct Argument {
  std::string_view name;
  TensorDesc desc;  // as given; an output's extents may be unknown
  bool is_output = false;
};

struct Arguments {
  std::array<Argument, 5> by_role;   // an argument that is not there has a desc that is not given()
  DataType type = DataType::kUndef;  // of the inputs; an output's own is in its desc
  int rank = 0;
  Role output = Role::kDst;  // of output 0

  const Argument& at(Role role) const { return by_role[static_cast<size_t>(role)]; }
  Argument& at(Role role) { return by_role[static_cast<size_t>(role)]; }
};

// Tensors have rank 3, 4 or 5: one, two or three spatial axes.
constexpr int kLeastRank = 3;
constexpr int kMostRank = 5;

int64_t ShapeValueAt(const TensorDesc& tensor, const void* data, size_t index);

// The contents of a shape tensor; nothing where the description is not one dense axis of a few
// integers, which CollectArguments refuses.
Dims ReadShapeTensor(const TensorDesc& tensor, const void* data);

// `sample_axes`: axes of the outputs before those that the specification gives them.
Result<Arguments> CollectArguments(const OperationSchema& schema,
                                   std::span<const TensorDesc> inputs,
                                   std::span<const TensorDesc> outputs, int sample_axes);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_ARGUMENTS_H_
