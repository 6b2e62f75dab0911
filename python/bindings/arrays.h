// Python's arrays as the library's tensors: a pointer, a type, extents and strides, never a copy.
// It knows DLPack, the buffer protocol and plain descriptions; not what an operation does with
// them.
#ifndef CONVGRAD_PYTHON_BINDINGS_ARRAYS_H_
#define CONVGRAD_PYTHON_BINDINGS_ARRAYS_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string_view>

#include "convgrad/status.h"
#include "convgrad/tensor.h"

namespace convgrad::python {

enum class Access { kRead, kWrite };

struct Array {
  void* data = nullptr;
  TensorDesc desc;
  nanobind::ndarray<nanobind::ro> owner;  // what was imported lives as long as this
};

// `object` is one of
//   an array that speaks DLPack or the buffer protocol, on the CPU
//   None: not given
//   (0, type, extents, strides): a description without memory; without extents they are left to
//   be inferred
// `name` is the argument's, for errors. Throws ValueError or TypeError.
Array ParseArray(nanobind::handle object, std::string_view name, Access access = Access::kRead);

// Of Python or of another library, such as numpy.int64; arrays are not, even of one element.
bool IsInteger(nanobind::handle object);
// `name` is the argument's, for errors.
int64_t ParseInteger(nanobind::handle object, std::string_view name);

// A sequence of integers, or one integer.
Dims ParseDims(nanobind::handle object, std::string_view name);

nanobind::tuple ToTuple(const Dims& dims);

// ValueError, or MemoryError, with the library's sentence.
void ThrowUnlessOk(const Status& status);

}  // namespace convgrad::python

#endif  // CONVGRAD_PYTHON_BINDINGS_ARRAYS_H_
