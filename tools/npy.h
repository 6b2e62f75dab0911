// The header of NumPy's .npy files, versions 1.0, 2.0 and 3.0: bytes to description and back.
// Knows no files: it is given the bytes, and a path only to name it in messages.
#ifndef CONVGRAD_TOOLS_NPY_H_
#define CONVGRAD_TOOLS_NPY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "convgrad/status.h"
#include "convgrad/tensor.h"

namespace convgrad::tools {

struct NpyHeader {
  TensorDesc desc;             // strides are filled; Fortran order is strides, not a copy
  bool swapped_bytes = false;  // the data are big-endian
  int64_t data_offset = 0;     // bytes from the start of the file
};

// `file` is the whole file: that it holds all the data the header claims is checked here. Bytes
// after the data are ignored, as NumPy does.
Result<NpyHeader> ParseNpyHeader(std::string_view file, const std::string& path);

// The bytes before the data of a dense row-major tensor: version 1.0, byte for byte what numpy.save
// writes. Ignores desc.strides.
Result<std::string> FormatNpyHeader(const TensorDesc& desc, const std::string& path);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_NPY_H_
