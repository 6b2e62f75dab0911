// Tensors in files, for the command: x.npy, x.safetensors and x.safetensors:name. Reading maps the
// file; writing replaces it whole or not at all. Knows nothing of operations or shapes that fit.
#ifndef CONVGRAD_TOOLS_TENSOR_FILE_H_
#define CONVGRAD_TOOLS_TENSOR_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "convgrad/status.h"
#include "convgrad/tensor.h"

namespace convgrad::tools {

// A tensor that keeps its data alive: a read-only mapping of a file, or memory. Copies share the
// data. While a mapped file is changed in place by another program the data change with it, and a
// file that shrinks ends the process (SIGBUS); WriteTensor does neither, it renames.
struct HostTensor {
  TensorDesc desc;                      // strides are always filled
  std::shared_ptr<const void> storage;  // points at the element of index 0, aligned to its type

  const void* data() const { return storage.get(); }
  int64_t elements() const;
  ConstTensorView view() const { return {data(), desc.type, desc.extents, desc.strides}; }
};

// `where` is x.npy, x.safetensors:name, or x.safetensors of a file that holds one tensor.
Result<HostTensor> ReadTensor(const std::string& where);

// The same, of the file's bytes, which stay where they are for as long as the tensor is used. The
// path of `where` only chooses the format and is named in messages.
Result<HostTensor> ReadTensor(const std::string& where, std::string_view bytes);

// Writes a dense row-major tensor from data of any strides (desc.strides empty: dense). The file
// appears, or changes, only when all of it is written; after an error it is as it was. Other
// tensors and the metadata of an existing .safetensors file are kept; without :name its one tensor
// is replaced, else the name is "tensor". A link is followed, permissions are kept. Of two
// processes that add to one file at the same time the last wins.
Status WriteTensor(const std::string& where, const void* data, const TensorDesc& desc);

// What WriteTensor would say of this place before it has data: makes and removes a temporary file,
// reads what a .safetensors file holds. Gives the place in one spelling, so that two can be
// compared.
Result<std::string> CheckTarget(const std::string& where, const TensorDesc& desc);

// Bytes of the dense tensor; nothing where an extent is negative or 63 bits do not suffice.
std::optional<int64_t> DenseBytes(const TensorDesc& desc);

// Strides, in elements, with the last axis fastest, or the first. DenseBytes() must have a value.
Dims DenseStrides(const Dims& extents, bool first_axis_fastest = false);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_TENSOR_FILE_H_
