// Checks of tensors of known extents: sizes that fit in 63 bits, strides, overlap.
#ifndef CONVGRAD_SPEC_EXTENT_H_
#define CONVGRAD_SPEC_EXTENT_H_

#include <string_view>

#include "convgrad/status.h"
#include "convgrad/tensor.h"

namespace convgrad {

// Has no elements.
bool IsEmpty(const TensorDesc& tensor);

// Fills in dense strides where there are none and checks that every byte offset of the tensor fits
// in 63 bits. Extents must be known.
Status CompleteStrides(std::string_view name, TensorDesc& tensor);

// An output's elements must not share memory.
Status CheckNoOverlap(std::string_view name, const TensorDesc& tensor);

// Whether elements of both have bytes in common; the one has strides. What a search of bounded
// length does not show, which takes axes that hardly nest, is not said; nor of a null pointer.
bool ShareMemory(const TensorDesc& one, const void* one_data, const TensorDesc& other,
                 const void* other_data);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_EXTENT_H_
