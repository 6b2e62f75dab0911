// Memory for a tensor of any strides, and the data that checks are made with.
#ifndef CONVGRAD_TOOLS_TENSOR_BUFFER_H_
#define CONVGRAD_TOOLS_TENSOR_BUFFER_H_

#include <cstdint>
#include <vector>

#include "convgrad/tensor.h"
#include "core/numerics.h"

namespace convgrad::tools {

// Calls visit(offset in elements) for every element in row-major order.
template <class Visit>
void ForEachOffset(const Dims& extents, const Dims& strides, const Visit& visit) {
  for (int64_t extent : extents) {
    if (extent == 0) return;
  }
  Dims index(extents.size(), 0);
  int64_t offset = 0;
  while (true) {
    visit(offset);
    size_t a = index.size();
    while (true) {
      if (a == 0) return;
      --a;
      if (++index[a] < extents[a]) break;
      offset -= (extents[a] - 1) * strides[a];
      index[a] = 0;
    }
    offset += strides[a];
  }
}

// Owns the memory between a tensor's lowest and highest element. Gaps of strided tensors are filled
// with a pattern, so that a write outside the elements shows.
class TensorBuffer {
 public:
  TensorBuffer() = default;
  // `desc` has known extents; its strides are filled in where they are empty.
  explicit TensorBuffer(const TensorDesc& desc);

  const TensorDesc& desc() const { return desc_; }
  void* data() { return bytes_.data() + origin_; }  // the element of index 0
  const void* data() const { return bytes_.data() + origin_; }
  TensorView view() { return {data(), desc_.type, desc_.extents, desc_.strides}; }
  ConstTensorView view() const { return {data(), desc_.type, desc_.extents, desc_.strides}; }

  // The same memory, seen with other extents and strides that reach the same elements.
  TensorBuffer Relabeled(const TensorDesc& desc) const;

  int64_t elements() const { return elements_; }
  // The flat-th index in row-major order; the offsets of an index and of the flat-th from data().
  Dims IndexOf(int64_t flat) const;
  int64_t OffsetOf(const Dims& index) const;
  int64_t OffsetAt(int64_t flat) const;

  double At(int64_t flat) const;
  void Set(int64_t flat, double value);

  // Everything that is stored, elements and gaps, in the order of memory: of buffers whose extents
  // and strides are the same, the same i is the same element.
  int64_t stored() const { return static_cast<int64_t>(bytes_.size()) / SizeOf(desc_.type); }
  double StoredAt(int64_t i) const { return LoadWidened(desc_.type, bytes_.data(), i); }
  Dims IndexOfStored(int64_t i) const;  // empty: a gap
  TensorBuffer Magnitudes() const;      // in f32; other types than floats stay as they are

  // Fills everything, elements and gaps, with the pattern.
  void Blank();
  bool SameBytes(const TensorBuffer& other) const { return bytes_ == other.bytes_; }
  // Blanks the elements, then tells whether the gaps still hold the pattern. The elements are lost.
  bool BlankElementsAndCheckGaps();

 private:
  TensorDesc desc_;
  std::vector<unsigned char> bytes_;
  int64_t origin_ = 0;  // bytes before index 0: negative strides
  int64_t elements_ = 0;
};

// Integers in [-range, range].
void FillIntegers(TensorBuffer& tensor, int64_t range, uint64_t seed);
// -1 and 1 in about this share of the elements, 0 elsewhere.
void FillSparse(TensorBuffer& tensor, double share, uint64_t seed);
// Reals, uniform in [-1, 1], rounded to the tensor's type.
void FillReals(TensorBuffer& tensor, uint64_t seed);
// The numbers of a shape tensor, as many as it has elements.
void FillShape(TensorBuffer& tensor, const Dims& shape);

// The largest range whose sums of `depth` products are exact in f32, whatever their order: all
// partial sums stay below 2^24. At most 4, at least 1.
int64_t ExactRange(double depth);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_TENSOR_BUFFER_H_
