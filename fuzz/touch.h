// Reads every element of a tensor, so that one outside of its file is found.
#ifndef CONVGRAD_FUZZ_TOUCH_H_
#define CONVGRAD_FUZZ_TOUCH_H_

#include <cstdint>

#include "fuzz/require.h"
#include "tools/tensor_file.h"

namespace convgrad::fuzz {

// Both orders of a file are dense: the elements are all the bytes from the first.
inline void Touch(const tools::HostTensor& tensor, size_t file_bytes) {
  const int64_t bytes = tensor.elements() * SizeOf(tensor.desc.type);
  Require(bytes >= 0 && static_cast<uint64_t>(bytes) <= file_bytes, "data lies within its file");
  volatile unsigned char sum = 0;
  for (int64_t i = 0; i < bytes; ++i) {
    sum = static_cast<unsigned char>(sum + static_cast<const unsigned char*>(tensor.data())[i]);
  }
}

}  // namespace convgrad::fuzz

#endif  // CONVGRAD_FUZZ_TOUCH_H_
