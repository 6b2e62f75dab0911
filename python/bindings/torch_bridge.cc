#include "torch_bridge.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <new>
#include <span>

#include "arrays.h"
#include "host_threads.h"

namespace nb = nanobind;

namespace convgrad::python {
namespace {

nb::object Interned(const char* name) { return nb::steal(PyUnicode_InternFromString(name)); }

nb::object CallMethod(nb::handle object, const nb::object& name) {
  nb::object result = nb::steal(PyObject_CallMethodNoArgs(object.ptr(), name.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

// While it lives, what PyTorch is asked on this thread runs no __torch_function__, neither of modes
// (torch.device among them) nor of the tensors' own classes. Made of no type, it does nothing.
class OverridesOff {
 public:
  explicit OverridesOff(nb::handle guard_type) {
    if (!guard_type.is_valid()) return;
    guard_ = guard_type();
    guard_.attr("__enter__")();
  }
  OverridesOff(const OverridesOff&) = delete;
  OverridesOff& operator=(const OverridesOff&) = delete;
  ~OverridesOff() {
    if (!guard_.is_valid()) return;
    nb::error_scope pending;
    PyObject* const left =
        PyObject_CallMethod(guard_.ptr(), "__exit__", "OOO", Py_None, Py_None, Py_None);
    if (left == nullptr) PyErr_WriteUnraisable(guard_.ptr());
    Py_XDECREF(left);
  }

 private:
  nb::object guard_;
};

// Threads that have been in a kernel and have not ended.
std::atomic<int> living_threads{0};

struct ThreadInKernels {
  bool counted = false;
  ~ThreadInKernels() { living_threads -= counted ? 1 : 0; }
};
thread_local ThreadInKernels this_thread;

void CountThread() {
  if (this_thread.counted) return;
  // A child of fork() has the thread that forked alone.
  static const int watched =
      pthread_atfork(nullptr, nullptr, [] { living_threads = this_thread.counted ? 1 : 0; });
  (void)watched;
  this_thread.counted = true;
  ++living_threads;
}

// A list or a tuple of integers, of which one holds for every axis. Lists of integers are what
// PyTorch hands to kernels; the names that ParseDims makes for its errors take 1 us of a call.
bool ReadList(nb::handle list, size_t rank, Dims& out) {
  if (PyList_CheckExact(list.ptr())) {
    const auto size = static_cast<size_t>(PyList_GET_SIZE(list.ptr()));
    out.reserve(rank);
    for (size_t i = 0; i < size; ++i) {
      nb::handle item = PyList_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i));
      out.push_back(PyLong_CheckExact(item.ptr()) ? PyLong_AsLongLong(item.ptr())
                                                  : ParseInteger(item, "an argument"));
      if (out.back() == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    }
  } else {
    out = ParseDims(list, "an argument");
  }
  if (out.size() == 1) out.resize(rank, out[0]);
  return out.size() == rank;
}

// (stride, padding, dilation, output_padding) for every axis.
struct Window {
  Dims stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;

  bool Read(const TorchGeometry& geometry, size_t rank) {
    transposed = geometry.transposed.ptr() == Py_True;
    groups = PyLong_AsLongLong(geometry.groups.ptr());
    return groups > 0 && ReadList(geometry.stride, rank, stride) &&
           ReadList(geometry.padding, rank, padding) &&
           ReadList(geometry.dilation, rank, dilation) &&
           ReadList(geometry.output_padding, rank, output_padding) &&
           std::all_of(stride.begin(), stride.end(), [](int64_t step) { return step > 0; }) &&
           OutputPaddingIsTorchs();
  }

  // PyTorch refuses what the specification allows.
  bool OutputPaddingIsTorchs() const {
    for (size_t i = 0; transposed && i < stride.size(); ++i) {
      if (output_padding[i] >= std::max(stride[i], dilation[i])) return false;
    }
    return true;
  }

  Operation operation() const {
    Operation result;
    result.kind = transposed ? OpKind::kConvTranspose : OpKind::kConvolution;
    Attributes& attributes = result.attributes;
    attributes.Set("strides", stride).Set("pads_begin", padding).Set("pads_end", padding);
    attributes.Set("dilations", dilation).Set("groups", groups).Set("data_format", "NCX");
    attributes.Set("weights_format", transposed ? "IOX" : "OIX");
    if (transposed) attributes.Set("output_padding", output_padding);
    return result;
  }

  // Of the result; an extent below 1 is for PyTorch to refuse.
  // 0 for what no tensor has, more than 64 bits can count included.
  Dims OutExtents(const Dims& source, const Dims& weight) const {
    Dims extents = {source[0], transposed ? Counted(Wide{weight[1]} * groups) : weight[0]};
    for (size_t i = 0; i < stride.size(); ++i) {
      const Wide reach = Wide{dilation[i]} * (weight[i + 2] - 1) + 1;
      const Wide size = source[i + 2], pads = Wide{2} * padding[i];
      extents.push_back(Counted(transposed
                                    ? (size - 1) * stride[i] - pads + reach + output_padding[i]
                                : size + pads < reach ? 0
                                                      : (size + pads - reach) / stride[i] + 1));
    }
    return extents;
  }

 private:
  __extension__ typedef __int128 Wide;
  static int64_t Counted(Wide extent) {
    return extent > std::numeric_limits<int64_t>::max() ? 0 : static_cast<int64_t>(extent);
  }
};

// Extents and strides, of lines as images of one row, which PyTorch makes of them.
struct Layout {
  std::array<int64_t, 5> extents, strides;
  size_t axes;

  explicit Layout(const TensorDesc& tensor) : axes(tensor.extents.size()) {
    std::copy(tensor.extents.begin(), tensor.extents.end(), extents.begin());
    std::copy(tensor.strides.begin(), tensor.strides.end(), strides.begin());
    if (axes != 3) return;
    axes = 4;
    extents[3] = extents[2];
    strides[3] = strides[2];
    extents[2] = 1;
    strides[2] = extents[3] * strides[3];
  }
};

// Axes from the fastest to the slowest.
size_t AxisLast(size_t i, size_t axes) { return i == 0 ? 1 : i + 1 == axes ? 0 : axes - i; }

// As PyTorch tells a tensor's memory format from its strides.
bool LikeChannelsLast(const Layout& layout) {
  const auto& [extents, strides, axes] = layout;
  if (strides[1] == 0) return false;
  int64_t least = 0;
  for (size_t i = 0; i < axes; ++i) {
    const size_t axis = AxisLast(i, axes);
    if (extents[axis] == 0 || strides[axis] < least) return false;
    if (axis == 0 && least == strides[1]) return false;
    least = extents[axis] > 1 ? strides[axis] * extents[axis] : strides[axis];
  }
  return true;
}

// Whether PyTorch calls it contiguous: strides of axes with one position may be any.
bool Dense(const Layout& layout, bool channels_last) {
  const auto& [extents, strides, axes] = layout;
  int64_t step = 1;
  for (size_t i = 0; i < axes; ++i) {
    const size_t axis = channels_last ? AxisLast(i, axes) : axes - 1 - i;
    if (extents[axis] == 1) continue;
    if (strides[axis] != step) return false;
    step *= extents[axis];
  }
  return true;
}

// As PyTorch lays out a new tensor.
Dims DenseStrides(const Dims& extents, bool channels_last) {
  Dims strides(extents.size());
  int64_t step = 1;
  if (channels_last) {
    strides[1] = step;
    step = extents[1];
  }
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (axis == 1 && channels_last) continue;
    strides[axis] = step;
    step *= extents[axis];
  }
  return strides;
}

const DlpackExchange* ExchangeOf(const nb::module_& torch) {
  const nb::object capsule =
      nb::getattr(torch.attr("Tensor"), "__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_CheckExact(capsule.ptr())) return nullptr;
  const auto* exchange = static_cast<const DlpackExchange*>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (exchange == nullptr) PyErr_Clear();
  const bool usable = exchange != nullptr && exchange->major == 1 && exchange->describe != nullptr;
  return usable ? exchange : nullptr;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Item i of a list of three.
bool Wanted(nb::handle mask, size_t i) {
  if (PyList_CheckExact(mask.ptr()) && PyList_GET_SIZE(mask.ptr()) == 3) {
    return PyList_GET_ITEM(mask.ptr(), static_cast<Py_ssize_t>(i)) == Py_True;
  }
  return nb::cast<bool>(mask[i]);
}

template <class AnyPlan>
Status MakeAndRun(const Window& window, std::span<const TensorDesc> inputs,
                  std::span<const TensorDesc> outputs, std::span<const void* const> in,
                  std::span<void* const> out, const Options& options) {
  const Result<AnyPlan> plan = AnyPlan::Make(window.operation(), inputs, outputs, options);
  if (!plan.ok()) return plan.status();
  const auto bytes = static_cast<size_t>(plan->workspace_bytes());
  const std::unique_ptr<char[]> workspace(bytes > 0 ? new char[bytes] : nullptr);
  return plan->Run(in, out, workspace.get());
}

// Plans and runs without the interpreter's lock. False: the library refuses.
template <class AnyPlan, class... Arguments>
bool Run(double& seconds, const Arguments&... arguments) {
  Status status;
  double begin = 0, end = 0;
  {
    const nb::gil_scoped_release release;
    begin = Now();
    status = MakeAndRun<AnyPlan>(arguments...);
    end = Now();
  }
  seconds += end - begin;
  if (status.code() == StatusCode::kOutOfMemory) throw std::bad_alloc();
  return status.ok();
}

}  // namespace

bool TorchTensor::empty() const {
  return std::find(desc.extents.begin(), desc.extents.end(), 0) != desc.extents.end();
}

TorchBridge::TorchBridge(nb::module_ torch, nb::callable own_forward, nb::callable own_backward,
                         nb::callable traced_forward, nb::callable results_last,
                         nb::callable keeps_weight, bool asks_for_images)
    : own_forward_(std::move(own_forward)),
      own_backward_(std::move(own_backward)),
      traced_forward_(std::move(traced_forward)),
      tracing_state_(torch.attr("_C").attr("_get_tracing_state")),
      results_last_(std::move(results_last)),
      keeps_weight_(std::move(keeps_weight)),
      empty_strided_(torch.attr("empty_strided")),
      empty_like_(torch.attr("empty_like")),
      plain_tensor_(torch.attr("Tensor")),
      cpu_(torch.attr("device")("cpu")),
      no_overrides_(torch.attr("_C").attr("DisableTorchFunction")),
      count_modes_(nb::getattr(torch.attr("_C"), "_len_torch_function_stack", nb::none())),
      get_num_threads_(torch.attr("get_num_threads")),
      asks_for_images_(asks_for_images),
      types_{{{torch.attr("float32"), DataType::kF32},
              {torch.attr("bfloat16"), DataType::kBF16},
              {torch.attr("float16"), DataType::kF16}}},
      exchange_(ExchangeOf(torch)),
      data_ptr_(Interned("data_ptr")),
      shape_(Interned("shape")),
      stride_(Interned("stride")),
      dtype_(Interned("dtype")),
      is_cpu_(Interned("is_cpu")),
      empty_keywords_(nb::make_tuple(Interned("dtype"), Interned("device"))),
      threads_(ThreadsOf("libtorch_cpu.so")) {}

bool TorchBridge::Read(nb::handle object, TorchTensor& tensor) const {
  tensor.object = object;
  if (exchange_ == nullptr) return ReadAttributes(object, tensor);
  nb::dlpack::dltensor view;
  if (exchange_->describe(object.ptr(), &view) != 0) {
    PyErr_Clear();  // of a type that DLPack does not know
    return false;
  }
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(view.dtype.code);
  DataType& type = tensor.desc.type;
  if (code == Code::Float && view.dtype.bits == 32) type = DataType::kF32;
  if (code == Code::Float && view.dtype.bits == 16) type = DataType::kF16;
  if (code == Code::Bfloat && view.dtype.bits == 16) type = DataType::kBF16;
  if (type == DataType::kUndef || view.device.device_type != nb::device::cpu::value) return false;
  tensor.desc.extents.assign(view.shape, view.shape + view.ndim);
  tensor.desc.strides.assign(view.strides, view.strides + view.ndim);
  tensor.data = static_cast<char*>(view.data) + view.byte_offset;
  return true;
}

bool TorchBridge::ReadAttributes(nb::handle object, TorchTensor& tensor) const {
  const nb::object dtype = nb::getattr(object, dtype_);
  for (const auto& [type, number] : types_) {
    if (dtype.is(type)) tensor.desc.type = number;
  }
  if (!tensor.desc.given()) return false;
  tensor.desc.extents = ParseDims(nb::getattr(object, shape_), "shape");
  tensor.desc.strides = ParseDims(CallMethod(object, stride_), "stride");
  tensor.data = PyLong_AsVoidPtr(CallMethod(object, data_ptr_).ptr());
  return true;
}

void* TorchBridge::DataOf(nb::handle object) const {
  if (exchange_ != nullptr) {
    nb::dlpack::dltensor view;
    if (exchange_->describe(object.ptr(), &view) == 0) {
      if (view.device.device_type != nb::device::cpu::value) return nullptr;
      return static_cast<char*>(view.data) + view.byte_offset;
    }
    PyErr_Clear();
  }
  if (nb::getattr(object, is_cpu_).ptr() != Py_True) return nullptr;
  return PyLong_AsVoidPtr(CallMethod(object, data_ptr_).ptr());
}

bool TorchBridge::ReadBoth(nb::handle source, nb::handle weight, TorchTensor& x,
                           TorchTensor& w) const {
  return Read(source, x) && Read(weight, w) && x.desc.type == w.desc.type && x.axes() == w.axes() &&
         x.axes() >= 3 && x.axes() <= 5 && !x.empty() && !w.empty();
}

bool TorchBridge::ChannelsLast(const TorchTensor& source, const TorchTensor& weight,
                               const TorchGeometry& geometry) const {
  const Layout x(source.desc), w(weight.desc);
  // What PyTorch makes contiguous has channels first; what is contiguous it leaves as it is.
  const bool made = source.axes() == 3 && !Dense(x, /*channels_last=*/false);
  const bool last = LikeChannelsLast(w) || (!made && LikeChannelsLast(x));
  if (!last || (weight.axes() < 5 && !asks_for_images_)) return last;
  return Ask(results_last_, source, weight, geometry);
}

bool TorchBridge::WeightLast(const TorchTensor& source, const TorchTensor& weight,
                             const TorchGeometry& geometry) const {
  const Layout w(weight.desc);
  const bool both = weight.axes() < 5 && Dense(w, /*channels_last=*/true) && !LikeChannelsLast(w);
  return !both || !Ask(keeps_weight_, source, weight, geometry);
}

bool TorchBridge::Ask(const nb::object& question, const TorchTensor& source,
                      const TorchTensor& weight, const TorchGeometry& g) const {
  // What PyTorch is asked there runs no override, so that no guard is needed where Guard() has
  // none.
  return nb::cast<bool>(question(source.object, weight.object, g.stride, g.padding, g.dilation,
                                 g.transposed, g.output_padding, g.groups));
}

nb::handle TorchBridge::Guard() const {
  const bool none =
      exchange_ != nullptr && !count_modes_.is_none() && nb::cast<int64_t>(count_modes_()) == 0;
  return none ? nb::handle() : nb::handle(no_overrides_);
}

nb::object TorchBridge::Allocate(DataType type, bool channels_last, TorchTensor& memory,
                                 const TorchTensor* like) const {
  memory.desc.type = type;
  memory.desc.strides = DenseStrides(memory.desc.extents, channels_last);
  // Dense strides are kept. No lists to make and to read: 1.4 us instead of 2.5.
  if (like != nullptr && memory.desc.strides == like->desc.strides &&
      like->object.type().is(plain_tensor_)) {
    nb::object result = nb::steal(PyObject_CallOneArg(empty_like_.ptr(), like->object.ptr()));
    if (!result.is_valid()) throw nb::python_error();
    memory.data = DataOf(result);
    return result;
  }
  const auto named = std::find_if(types_.begin(), types_.end(),
                                  [type](const auto& known) { return known.second == type; });
  const nb::tuple shape = ToTuple(memory.desc.extents), strides = ToTuple(memory.desc.strides);
  PyObject* const arguments[] = {shape.ptr(), strides.ptr(), named->first.ptr(), cpu_.ptr()};
  nb::object result =
      nb::steal(PyObject_Vectorcall(empty_strided_.ptr(), arguments, 2, empty_keywords_.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  memory.data = DataOf(result);
  return result;
}

Options TorchBridge::RunOptions() const {
  Options options;
  options.threads = nb::cast<int>(get_num_threads_());
  options.parallel_for = threads_;
  return options;
}

nb::object TorchBridge::Convolution(nb::handle source, nb::handle weight, nb::handle bias,
                                    const TorchGeometry& geometry) const {
  const OverridesOff off(Guard());
  TorchTensor x, w, b, y;
  Window window;
  if (!ReadBoth(source, weight, x, w) || !window.Read(geometry, x.axes() - 2)) return nb::none();
  if (!bias.is_none() && (!Read(bias, b) || b.desc.type != x.desc.type)) return nb::none();
  Dims& extents = y.desc.extents;
  extents = window.OutExtents(x.extents(), w.extents());
  if (*std::min_element(extents.begin(), extents.end()) < 1) return nb::none();
  nb::object result = Allocate(x.desc.type, ChannelsLast(x, w, geometry), y, nullptr);
  if (y.data == nullptr) return nb::none();
  const TensorDesc inputs[] = {std::move(x.desc), std::move(w.desc), std::move(b.desc)};
  const void* const in[] = {x.data, w.data, b.data};
  const bool done = Run<Plan>(library_seconds_, window, inputs, std::span(&y.desc, 1), in,
                              std::span(&y.data, 1), RunOptions());
  return done ? result : nb::none();
}

nb::object TorchBridge::ConvolutionBackward(nb::handle grad, nb::handle source, nb::handle weight,
                                            const TorchGeometry& geometry,
                                            nb::handle output_mask) const {
  const OverridesOff off(Guard());
  TorchTensor x, w, dy;
  Window window;
  if (!ReadBoth(source, weight, x, w) || !window.Read(geometry, x.axes() - 2)) return nb::none();
  if (!Read(grad, dy) || dy.desc.type != x.desc.type || dy.axes() != x.axes() || dy.empty()) {
    return nb::none();
  }
  const bool last = ChannelsLast(x, w, geometry);
  std::array<nb::object, 3> results = {nb::none(), nb::none(), nb::none()};
  std::array<TensorDesc, 3> outputs;
  std::array<void*, 3> out = {};
  bool wanted = false;
  for (size_t i = 0; i < 3; ++i) {
    if (!Wanted(output_mask, i)) continue;
    TorchTensor memory;
    memory.desc.extents = i == 0 ? x.extents() : i == 1 ? w.extents() : Dims{dy.extents()[1]};
    const bool like_last = last && (i == 0 || (i == 1 && WeightLast(x, w, geometry)));
    results[i] = Allocate(x.desc.type, like_last, memory, i == 0 ? &x : i == 1 ? &w : nullptr);
    if (memory.data == nullptr) return nb::none();
    outputs[i] = std::move(memory.desc);
    out[i] = memory.data;
    wanted = true;
  }
  const TensorDesc inputs[] = {std::move(x.desc), std::move(w.desc), std::move(dy.desc)};
  const void* const in[] = {x.data, w.data, dy.data};
  if (wanted &&
      !Run<BackwardPlan>(library_seconds_, window, inputs, outputs, in, out, RunOptions())) {
    return nb::none();
  }
  return nb::make_tuple(results[0], results[1], results[2]);
}

nb::object TorchBridge::ForwardKernel(const nb::args& arguments) const {
  CountThread();
  const nb::handle all = arguments;
  const auto at = [all](int i) { return nb::handle(PyTuple_GET_ITEM(all.ptr(), i)); };
  if (arguments.size() < 9) throw nb::type_error("expected the arguments of aten::convolution");
  // PyTorch traces aten::_convolution, which its own kernel of aten::convolution calls, not the
  // latter: what is called in its place, memory for the result alone, would be the trace.
  if (arguments.size() == 9 && !tracing_state_().is_none()) return traced_forward_(*arguments);
  if (report_.is_valid()) return nb::object(report_)("forward", arguments);
  if (forward_) {
    nb::object result =
        Convolution(at(0), at(1), at(2), {at(3), at(4), at(5), at(6), at(7), at(8)});
    if (!result.is_none()) return result;
  }
  return own_forward_(*arguments);
}

nb::object TorchBridge::BackwardKernel(const nb::args& arguments) const {
  CountThread();
  const nb::handle all = arguments;
  const auto at = [all](int i) { return nb::handle(PyTuple_GET_ITEM(all.ptr(), i)); };
  if (arguments.size() != 11) {
    throw nb::type_error("expected the arguments of aten::convolution_backward");
  }
  if (report_.is_valid()) return nb::object(report_)("backward", arguments);
  if (backward_) {
    nb::object results = ConvolutionBackward(at(0), at(1), at(2),
                                             {at(4), at(5), at(6), at(7), at(8), at(9)}, at(10));
    if (!results.is_none()) return results;
  }
  return own_backward_(*arguments);
}

void TorchBridge::Replace(bool forward, bool backward) {
  forward_ = forward;
  backward_ = backward;
}

void TorchBridge::SetReport(nb::object report) {
  report_ = report.is_none() ? nb::object() : std::move(report);
}

int TorchBridge::OtherThreads() { return living_threads - (this_thread.counted ? 1 : 0); }

void BindTorchBridge(nb::module_& module) {
  nb::class_<TorchBridge>(module, "TorchBridge")
      .def(nb::init<nb::module_, nb::callable, nb::callable, nb::callable, nb::callable,
                    nb::callable, bool>(),
           nb::arg("torch"), nb::arg("own_forward"), nb::arg("own_backward"),
           nb::arg("traced_forward"), nb::arg("results_last"), nb::arg("keeps_weight"),
           nb::arg("asks_for_images"))
      .def_prop_ro("library_seconds", &TorchBridge::library_seconds)
      .def("replace", &TorchBridge::Replace, nb::arg("forward"), nb::arg("backward"))
      .def("set_report", &TorchBridge::SetReport, nb::arg("report").none())
      .def_static("other_threads", &TorchBridge::OtherThreads)
      .def_prop_ro("own_forward", &TorchBridge::own_forward)
      .def_prop_ro("own_backward", &TorchBridge::own_backward)
      .def("forward_kernel", &TorchBridge::ForwardKernel)
      .def("backward_kernel", &TorchBridge::BackwardKernel)
      .def(
          "convolution",
          [](const TorchBridge& bridge, nb::handle source, nb::handle weight, nb::handle bias,
             nb::handle stride, nb::handle padding, nb::handle dilation, nb::handle transposed,
             nb::handle output_padding, nb::handle groups) {
            return bridge.Convolution(
                source, weight, bias,
                {stride, padding, dilation, transposed, output_padding, groups});
          },
          nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg())
      .def(
          "convolution_backward",
          [](const TorchBridge& bridge, nb::handle grad, nb::handle source, nb::handle weight,
             nb::handle /*bias_sizes*/, nb::handle stride, nb::handle padding, nb::handle dilation,
             nb::handle transposed, nb::handle output_padding, nb::handle groups,
             nb::handle output_mask) {
            return bridge.ConvolutionBackward(
                grad, source, weight,
                {stride, padding, dilation, transposed, output_padding, groups}, output_mask);
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg());
}

}  // namespace convgrad::python
