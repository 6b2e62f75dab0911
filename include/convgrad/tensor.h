// Tensors as the caller sees them: a description, and a view that adds a pointer. Neither owns
// data.
#ifndef CONVGRAD_TENSOR_H_
#define CONVGRAD_TENSOR_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "convgrad/types.h"

namespace convgrad {

// Type, extents and strides, in elements, of the axes in the order of the operation's format.
// A default-constructed description means "not given": an optional input that is left out, or an
// output whose shape is to be inferred.
struct TensorDesc {
  DataType type = DataType::kUndef;
  // Of an output: negative extents, or none at all, are inferred.
  Dims extents{};
  // Empty: dense, last axis fastest. Any sign; an input may repeat elements (stride 0), an output's
  // elements must not share memory.
  Dims strides{};
  // The contents of a shape tensor, when they are known at plan time; else they are checked against
  // the planned shape by Plan::Run.
  Dims values{};

  bool given() const { return type != DataType::kUndef; }
};

template <class T>
constexpr DataType DataTypeOf() {
  using U = std::remove_cv_t<T>;
  static_assert(
      std::is_same_v<U, float> || std::is_same_v<U, int32_t> || std::is_same_v<U, int64_t>,
      "f32, s32 or s64; name the type of bf16 and f16 data: {data, DataType::kBF16, ...}");
  if (std::is_same_v<U, float>) return DataType::kF32;
  return std::is_same_v<U, int32_t> ? DataType::kS32 : DataType::kS64;
}

// A tensor that may be written. No alignment is needed beyond what the caller has.
struct TensorView {
  void* data = nullptr;
  TensorDesc desc;

  TensorView() = default;
  TensorView(void* pointer, DataType type, Dims extents, Dims strides = {})
      : data(pointer), desc{type, std::move(extents), std::move(strides), {}} {}
  template <class T>
  TensorView(T* pointer, Dims extents, Dims strides = {})
      : TensorView(pointer, DataTypeOf<T>(), std::move(extents), std::move(strides)) {}
};

// A tensor that is only read.
struct ConstTensorView {
  const void* data = nullptr;
  TensorDesc desc;

  ConstTensorView() = default;
  ConstTensorView(const TensorView& view) : data(view.data), desc(view.desc) {}  // NOLINT: implicit
  ConstTensorView(const void* pointer, DataType type, Dims extents, Dims strides = {})
      : data(pointer), desc{type, std::move(extents), std::move(strides), {}} {}
  template <class T>
  ConstTensorView(const T* pointer, Dims extents, Dims strides = {})
      : ConstTensorView(pointer, DataTypeOf<T>(), std::move(extents), std::move(strides)) {}
};

}  // namespace convgrad

#endif  // CONVGRAD_TENSOR_H_
