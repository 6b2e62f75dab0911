#include "arrays.h"

#include <new>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace convgrad::python {
namespace {

std::string TypeName(nb::handle object) { return nb::type_name(object.type()).c_str(); }

[[noreturn]] void Refuse(std::string_view name, const std::string& rule) {
  throw nb::value_error((std::string(name) + " " + rule).c_str());
}

DataType TypeOf(nb::dlpack::dtype type, std::string_view name) {
  using Code = nb::dlpack::dtype_code;
  const Code code = static_cast<Code>(type.code);
  if (type.lanes == 1) {
    if (code == Code::Float && type.bits == 32) return DataType::kF32;
    if (code == Code::Float && type.bits == 16) return DataType::kF16;
    if (code == Code::Bfloat && type.bits == 16) return DataType::kBF16;
  }
  const char* kind = code == Code::Float     ? "f"
                     : code == Code::Int     ? "s"
                     : code == Code::UInt    ? "u"
                     : code == Code::Complex ? "c"
                     : code == Code::Bool    ? "bool"
                                             : "type ";
  const std::string bits = code == Code::Bool ? "" : std::to_string(type.bits);
  Refuse(name, "has elements of " + (kind + bits) + ", expected f32, bf16 or f16");
}

// What DLPack says; data of other devices is refused, not copied.
Array FromNdarray(const nb::ndarray<nb::ro>& array, bool bits_of_bf16, std::string_view name) {
  const int device = array.device_type();
  if (device != nb::device::cpu::value && device != nb::device::cuda_host::value &&
      device != nb::device::rocm_host::value) {
    Refuse(name, "is on a device of DLPack's type " + std::to_string(device) +
                     ", expected memory of the CPU");
  }
  Array result;
  result.data = const_cast<void*>(array.data());
  result.desc.type = bits_of_bf16 ? DataType::kBF16 : TypeOf(array.dtype(), name);
  for (size_t i = 0; i < array.ndim(); ++i) {
    result.desc.extents.push_back(static_cast<int64_t>(array.shape(i)));
    result.desc.strides.push_back(array.stride(i));
  }
  result.owner = array;
  return result;
}

// NumPy's arrays of ml_dtypes.bfloat16 speak neither protocol; their bits do, as integers.
bool IsBF16OfNumPy(nb::handle object) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const nb::object name = nb::getattr(dtype, "name", nb::none());
  return PyUnicode_Check(name.ptr()) &&
         PyUnicode_CompareWithASCIIString(name.ptr(), "bfloat16") == 0 &&
         nb::hasattr(object, "__array_interface__") && nb::hasattr(object, "view");
}

// A description; a pointer would be somebody's word for memory that nothing keeps alive.
Array FromTuple(nb::handle object, std::string_view name) {
  const bool four = PyTuple_GET_SIZE(object.ptr()) == 4;
  const nb::handle first = four ? PyTuple_GET_ITEM(object.ptr(), 0) : Py_None;
  if (!PyLong_Check(first.ptr()) || PyObject_IsTrue(first.ptr()) != 0) {
    Refuse(name, "is a tuple, expected an array; a description (convgrad.Tensor) is not an array");
  }
  Array result;
  const long type = PyLong_AsLong(PyTuple_GET_ITEM(object.ptr(), 1));
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (type < 0 || type > static_cast<long>(DataType::kS64)) {
    Refuse(name, "has type " + std::to_string(type) + ", which is none of convgrad's");
  }
  result.desc.type = static_cast<DataType>(type);
  const nb::handle extents = PyTuple_GET_ITEM(object.ptr(), 2);
  const nb::handle strides = PyTuple_GET_ITEM(object.ptr(), 3);
  if (!extents.is_none()) result.desc.extents = ParseDims(extents, name);
  if (!strides.is_none()) result.desc.strides = ParseDims(strides, name);
  return result;
}

std::string Text(nb::handle object) { return nb::str(object).c_str(); }

// What PyTorch has in memory and DLPack cannot say.
void RefuseTensor(nb::handle object, std::string_view name) {
  for (const char* attribute : {"device", "layout", "is_cpu"}) {
    if (!nb::hasattr(object, attribute)) return;
  }
  if (!nb::cast<bool>(object.attr("is_cpu"))) {
    Refuse(name, "is on the device " + Text(object.attr("device")) + ", expected the CPU");
  }
  if (const std::string layout = Text(object.attr("layout")); layout != "torch.strided") {
    Refuse(name, "has the layout " + layout + ", expected torch.strided");
  }
}

// What NumPy has in memory and DLPack cannot say.
void RefuseMemory(nb::handle object, std::string_view name) {
  for (const char* attribute : {"__array_interface__", "dtype", "itemsize", "strides"}) {
    if (!nb::hasattr(object, attribute)) return;
  }
  if (!nb::cast<bool>(nb::getattr(object.attr("dtype"), "isnative", nb::bool_(true)))) {
    Refuse(name, "has elements in another byte order than this machine's");
  }
  const int64_t size = nb::cast<int64_t>(object.attr("itemsize"));
  for (nb::handle stride : nb::tuple(object.attr("strides"))) {
    const int64_t bytes = nb::cast<int64_t>(stride);
    if (size > 0 && bytes % size != 0) {
      Refuse(name, "has a stride of " + std::to_string(bytes) + " bytes, expected a multiple of " +
                       std::to_string(size) + ", the size of an element");
    }
  }
  const std::string type = Text(object.attr("dtype"));
  if (type != "float32" && type != "float16") {
    Refuse(name, "has elements of " + type + ", expected f32, bf16 or f16");
  }
}

}  // namespace

bool IsInteger(nb::handle object) {
  return PyIndex_Check(object.ptr()) != 0 && PySequence_Check(object.ptr()) == 0;
}

int64_t ParseInteger(nb::handle object, std::string_view name) {
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    throw nb::type_error(
        (std::string(name) + " is a " + TypeName(object) + ", expected an integer").c_str());
  }
  int beyond = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &beyond);
  if (beyond != 0) Refuse(name, "is beyond an integer of 64 bits");
  return value;
}

Dims ParseDims(nb::handle object, std::string_view name) {
  if (IsInteger(object)) return {ParseInteger(object, name)};
  const nb::object fast = nb::steal(PySequence_Fast(object.ptr(), ""));
  if (!fast.is_valid() || PyUnicode_Check(object.ptr())) {
    PyErr_Clear();
    throw nb::type_error(
        (std::string(name) + " is a " + TypeName(object) + ", expected integers").c_str());
  }
  Dims dims;
  dims.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(fast.ptr())));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.ptr()); ++i) {
    const std::string place = std::string(name) + "[" + std::to_string(i) + "]";
    dims.push_back(ParseInteger(PySequence_Fast_GET_ITEM(fast.ptr(), i), place));
  }
  return dims;
}

nb::tuple ToTuple(const Dims& dims) {
  PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(dims.size()));
  if (tuple == nullptr) throw nb::python_error();
  for (size_t i = 0; i < dims.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(dims[i]));
  }
  return nb::steal<nb::tuple>(tuple);
}

Array ParseArray(nb::handle object, std::string_view name, Access access) {
  if (object.is_none()) return {};
  if (PyTuple_Check(object.ptr())) return FromTuple(object, name);
  // Values alone are read; the history that a tensor of autograd carries is not, nor rewritten.
  nb::object source = nb::borrow(object);
  const nb::object requires_grad = nb::getattr(source, "requires_grad", nb::none());
  if (requires_grad.ptr() == Py_True) {
    if (access == Access::kWrite) Refuse(name, "requires grad, expected memory that does not");
    source = source.attr("detach")();
  }
  // A tensor of PyTorch whose memory has the values with the other sign, which DLPack cannot say.
  if (!requires_grad.is_none() && nb::hasattr(source, "is_neg") &&
      nb::cast<bool>(source.attr("is_neg")())) {
    if (access == Access::kWrite) Refuse(name, "is a negated view, expected memory of its own");
    source = source.attr("resolve_neg")();
  }
  const bool bf16 = IsBF16OfNumPy(source);
  if (bf16) source = source.attr("view")("uint16");
  nb::ndarray<nb::ro> array;
  if (access == Access::kWrite) {
    if (nb::ndarray<> writable; nb::try_cast<nb::ndarray<>>(source, writable, false)) {
      return FromNdarray(nb::ndarray<nb::ro>(writable), bf16, name);
    }
  }
  if (!nb::try_cast<nb::ndarray<nb::ro>>(source, array, false)) {
    RefuseTensor(source, name);
    RefuseMemory(source, name);
    const std::string text =
        std::string(name) + " is a " + TypeName(object) +
        ", expected an array on the CPU that speaks DLPack or the buffer protocol";
    throw nb::type_error(text.c_str());
  }
  if (access == Access::kWrite) Refuse(name, "is read-only, expected memory to write to");
  return FromNdarray(array, bf16, name);
}

void ThrowUnlessOk(const Status& status) {
  if (status.ok()) return;
  if (status.code() == StatusCode::kOutOfMemory) throw std::bad_alloc();
  throw nb::value_error(status.message().c_str());
}

}  // namespace convgrad::python
