// Of oneDNN's primitive API, what utilities of graph clients use: settings, memory on the host,
// described by extents and strides, and a reorder between two of them. C++11 and later; no other
// primitives.
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_HPP_
#define CONVGRAD_ONEAPI_DNNL_DNNL_HPP_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.h"
#include "oneapi/dnnl/dnnl_common.hpp"

namespace dnnl {

enum class status {
  success = dnnl_success,
  out_of_memory = dnnl_out_of_memory,
  invalid_arguments = dnnl_invalid_arguments,
  unimplemented = dnnl_unimplemented,
  last_impl_reached = dnnl_last_impl_reached,
  runtime_error = dnnl_runtime_error,
  not_required = dnnl_not_required,
};

using version_t = dnnl_version_t;
inline const version_t* version() { return dnnl_version(); }

inline status set_verbose(int level) { return static_cast<status>(dnnl_set_verbose(level)); }

inline status set_default_fpmath_mode(fpmath_mode mode) {
  return static_cast<status>(dnnl_set_default_fpmath_mode(convert_to_c(mode)));
}
inline fpmath_mode get_default_fpmath_mode() {
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_strict;
  error::wrap_c_api(dnnl_get_default_fpmath_mode(&mode), "could not get the default fpmath mode");
  return static_cast<fpmath_mode>(mode);
}

inline int get_primitive_cache_capacity() {
  int capacity = 0;
  error::wrap_c_api(dnnl_get_primitive_cache_capacity(&capacity),
                    "could not get the capacity of the cache of primitives");
  return capacity;
}
inline void set_primitive_cache_capacity(int capacity) {
  error::wrap_c_api(dnnl_set_primitive_cache_capacity(capacity),
                    "could not set the capacity of the cache of primitives");
}

enum class cpu_isa {
  isa_default = dnnl_cpu_isa_default,
  sse41 = dnnl_cpu_isa_sse41,
  avx = dnnl_cpu_isa_avx,
  avx2 = dnnl_cpu_isa_avx2,
  avx2_vnni = dnnl_cpu_isa_avx2_vnni,
  avx2_vnni_2 = dnnl_cpu_isa_avx2_vnni_2,
  avx512_core = dnnl_cpu_isa_avx512_core,
  avx512_core_vnni = dnnl_cpu_isa_avx512_core_vnni,
  avx512_core_bf16 = dnnl_cpu_isa_avx512_core_bf16,
  avx10_1_512 = dnnl_cpu_isa_avx10_1_512,
  avx512_core_fp16 = dnnl_cpu_isa_avx512_core_fp16,
  avx10_1_512_amx = dnnl_cpu_isa_avx10_1_512_amx,
  avx512_core_amx = dnnl_cpu_isa_avx512_core_amx,
  avx10_1_512_amx_fp16 = dnnl_cpu_isa_avx10_1_512_amx_fp16,
  avx512_core_amx_fp16 = dnnl_cpu_isa_avx512_core_amx_fp16,
  avx10_2 = dnnl_cpu_isa_avx10_2,
  avx10_2_512 = dnnl_cpu_isa_avx10_2_512,
  avx10_2_amx_2 = dnnl_cpu_isa_avx10_2_amx_2,
  avx10_2_512_amx_2 = dnnl_cpu_isa_avx10_2_512_amx_2,
  avx10_2_ace = dnnl_cpu_isa_avx10_2_ace,
};
inline cpu_isa get_effective_cpu_isa() {
  return static_cast<cpu_isa>(dnnl_get_effective_cpu_isa());
}
inline status set_max_cpu_isa(cpu_isa isa) {
  return static_cast<status>(dnnl_set_max_cpu_isa(static_cast<dnnl_cpu_isa_t>(isa)));
}

enum class cpu_isa_hints {
  no_hints = dnnl_cpu_isa_no_hints,
  prefer_ymm = dnnl_cpu_isa_prefer_ymm,
};
inline cpu_isa_hints get_cpu_isa_hints() {
  return static_cast<cpu_isa_hints>(dnnl_get_cpu_isa_hints());
}
inline status set_cpu_isa_hints(cpu_isa_hints hints) {
  return static_cast<status>(dnnl_set_cpu_isa_hints(static_cast<dnnl_cpu_isa_hints_t>(hints)));
}

inline status set_jit_dump(int enable) { return static_cast<status>(dnnl_set_jit_dump(enable)); }
inline status set_jit_profiling_flags(unsigned flags) {
  return static_cast<status>(dnnl_set_jit_profiling_flags(flags));
}
inline status set_jit_profiling_jitdumpdir(const std::string& folder) {
  return static_cast<status>(dnnl_set_jit_profiling_jitdumpdir(folder.c_str()));
}

// Elements on the host. Copies refer to the same ones.
struct memory {
  using dim = dnnl_dim_t;
  using dims = std::vector<dim>;

  enum class data_type {
    undef = dnnl_data_type_undef,
    f16 = dnnl_f16,
    bf16 = dnnl_bf16,
    f32 = dnnl_f32,
    s32 = dnnl_s32,
    s8 = dnnl_s8,
    u8 = dnnl_u8,
    f64 = dnnl_f64,
    boolean = dnnl_boolean,
    f8_e5m2 = dnnl_f8_e5m2,
    f8_e4m3 = dnnl_f8_e4m3,
    s4 = dnnl_s4,
    u4 = dnnl_u4,
    e8m0 = dnnl_e8m0,
    f4_e2m1 = dnnl_f4_e2m1,
    f4_e3m0 = dnnl_f4_e3m0,
    s64 = dnnl_s64,
  };

  // Axes from the slowest to the fastest, dense; and names of data and weights.
  enum class format_tag {
    undef = 0,
    any = 1,
    a = 2,
    ab = 3,
    abc = 4,
    abcd = 5,
    abcde = 6,
    abcdef = 7,
    ba = 14,
    acb = 15,
    abdc = 20,
    acdb = 22,
    acdeb = 33,
    x = a,
    nc = ab,
    ncw = abc,
    nchw = abcd,
    ncdhw = abcde,
    nwc = acb,
    nhwc = acdb,
    ndhwc = acdeb,
    oiw = abc,
    oihw = abcd,
    oidhw = abcde,
  };

  static dnnl_data_type_t convert_to_c(data_type type) {
    return static_cast<dnnl_data_type_t>(type);
  }

  // Bytes; 0 of types that share a byte or are none.
  static size_t data_type_size(data_type type) {
    switch (type) {
      case data_type::f64:
      case data_type::s64:
        return 8;
      case data_type::f32:
      case data_type::s32:
        return 4;
      case data_type::f16:
      case data_type::bf16:
        return 2;
      case data_type::s8:
      case data_type::u8:
      case data_type::boolean:
      case data_type::f8_e5m2:
      case data_type::f8_e4m3:
      case data_type::e8m0:
        return 1;
      default:
        return 0;
    }
  }

  struct desc {
    desc() = default;
    desc(const dims& adims, data_type type, const dims& strides, bool = false)
        : dims_(adims), strides_(strides), type_(type) {
      if (strides.size() != adims.size()) fail("a memory needs a stride for each extent");
    }
    desc(const dims& adims, data_type type, format_tag tag, bool = false)
        : dims_(adims), strides_(adims.size()), type_(type) {
      const std::vector<size_t> order = order_of(tag);
      if (order.size() != adims.size()) fail("the format does not have the memory's rank");
      dim stride = 1;
      for (size_t i = order.size(); i-- > 0;) {
        strides_[order[i]] = stride;
        stride *= adims[order[i]] > 0 ? adims[order[i]] : 1;
      }
    }

    int get_ndims() const { return static_cast<int>(dims_.size()); }
    dims get_dims() const { return dims_; }
    dims get_strides() const { return strides_; }
    data_type get_data_type() const { return type_; }
    bool is_zero() const { return dims_.empty(); }
    // The bytes that memory of this description has: the largest product of an extent and its
    // stride, or what the elements reach where strides do not nest.
    size_t get_size(int = 0) const {
      if (is_zero()) return 0;
      dim elements = 1, reach = 1;
      for (size_t i = 0; i < dims_.size(); ++i) {
        if (dims_[i] == 0) return 0;
        if (dims_[i] == 1) continue;
        elements = (std::max)(elements, dims_[i] * strides_[i]);
        reach += (dims_[i] - 1) * strides_[i];
      }
      elements = (std::max)(elements, reach);
      return static_cast<size_t>(elements) * data_type_size(type_);
    }
    bool operator==(const desc& other) const {
      return dims_ == other.dims_ && strides_ == other.strides_ && type_ == other.type_;
    }
    bool operator!=(const desc& other) const { return !(*this == other); }

   private:
    static void fail(const char* text) { convgrad_dnnl_error(dnnl_invalid_arguments, text); }
    static std::vector<size_t> order_of(format_tag tag) {
      switch (tag) {
        case format_tag::acb:
          return {0, 2, 1};
        case format_tag::acdb:
          return {0, 2, 3, 1};
        case format_tag::acdeb:
          return {0, 2, 3, 4, 1};
        case format_tag::ba:
          return {1, 0};
        case format_tag::abdc:
          return {0, 1, 3, 2};
        default:
          break;
      }
      const int rank = static_cast<int>(tag) - static_cast<int>(format_tag::a) + 1;
      std::vector<size_t> order;
      for (int i = 0; i < rank; ++i) order.push_back(static_cast<size_t>(i));
      return order;
    }

    dims dims_, strides_;
    data_type type_ = data_type::undef;
  };

  memory() = default;
  memory(const desc& md, const engine& aengine, void* handle)
      : desc_(md), engine_(aengine), data_(std::make_shared<void*>(handle)) {
    if (handle == DNNL_MEMORY_ALLOCATE) {
      own_ = std::shared_ptr<char>(new char[md.get_size() + 1], std::default_delete<char[]>());
      *data_ = own_.get();
    }
  }
  memory(const desc& md, const engine& aengine) : memory(md, aengine, DNNL_MEMORY_ALLOCATE) {}

  desc get_desc() const { return desc_; }
  engine get_engine() const { return engine_; }
  void* get_data_handle(int = 0) const { return data_ ? *data_ : nullptr; }
  void set_data_handle(void* handle, int = 0) const {
    if (!data_) convgrad_dnnl_error(dnnl_invalid_arguments, "object is not initialized");
    *data_ = handle;
  }
  template <typename T = void>
  T* map_data(int = 0) const {
    return static_cast<T*>(get_data_handle());
  }
  void unmap_data(void*, int = 0) const {}
  explicit operator bool() const { return static_cast<bool>(data_); }

 private:
  desc desc_;
  engine engine_;
  std::shared_ptr<void*> data_;  // shared, so that copies see a new handle
  std::shared_ptr<char> own_;
};

// Copies elements between memories of equal extents: f32, bf16, f16, s32, s8 and u8. Integers are
// rounded to nearest even and saturate; bf16 and f16 are rounded to nearest even.
struct reorder {
  reorder() = default;
  reorder(const memory& src, const memory& dst) : src_(src.get_desc()), dst_(dst.get_desc()) {
    check(src_);
    check(dst_);
    if (src_.get_dims() != dst_.get_dims()) {
      convgrad_dnnl_error(dnnl_invalid_arguments, "a reorder needs equal extents");
    }
  }

  void execute(const stream&, const memory& src, const memory& dst) const {
    const memory::dims dims = src_.get_dims();
    memory::dims at(dims.size(), 0);
    if (src_.get_size() == 0) return;
    for (;;) {
      store(dst_.get_data_type(), dst.get_data_handle(), offset(at, dst_.get_strides()),
            load(src_.get_data_type(), src.get_data_handle(), offset(at, src_.get_strides())));
      size_t axis = dims.size();
      while (axis > 0 && ++at[axis - 1] == dims[axis - 1]) at[--axis] = 0;
      if (axis == 0) return;
    }
  }

 private:
  static void check(const memory::desc& md) {
    switch (md.get_data_type()) {
      case memory::data_type::f32:
      case memory::data_type::bf16:
      case memory::data_type::f16:
      case memory::data_type::s32:
      case memory::data_type::s8:
      case memory::data_type::u8:
        return;
      default:
        convgrad_dnnl_error(dnnl_unimplemented, "a reorder does not have this element type");
    }
  }
  static dnnl_dim_t offset(const memory::dims& at, const memory::dims& strides) {
    dnnl_dim_t sum = 0;
    for (size_t i = 0; i < at.size(); ++i) sum += at[i] * strides[i];
    return sum;
  }
  template <typename T>
  static T read(const void* base, dnnl_dim_t index) {
    T value;
    std::memcpy(&value, static_cast<const T*>(base) + index, sizeof(T));
    return value;
  }
  template <typename T>
  static void write(void* base, dnnl_dim_t index, T value) {
    std::memcpy(static_cast<T*>(base) + index, &value, sizeof(T));
  }

  static double load(memory::data_type type, const void* base, dnnl_dim_t index) {
    switch (type) {
      case memory::data_type::f32:
        return static_cast<double>(read<float>(base, index));
      case memory::data_type::bf16:
        return widened(read<uint16_t>(base, index), 8, 7);
      case memory::data_type::f16:
        return widened(read<uint16_t>(base, index), 5, 10);
      case memory::data_type::s32:
        return read<int32_t>(base, index);
      case memory::data_type::s8:
        return read<int8_t>(base, index);
      default:
        return read<uint8_t>(base, index);
    }
  }
  static void store(memory::data_type type, void* base, dnnl_dim_t index, double value) {
    switch (type) {
      case memory::data_type::f32:
        return write(base, index, static_cast<float>(value));
      case memory::data_type::bf16:
        return write(base, index, narrowed(value, 8, 7));
      case memory::data_type::f16:
        return write(base, index, narrowed(value, 5, 10));
      case memory::data_type::s32:
        return write(base, index,
                     static_cast<int32_t>(clamped(value, -2147483648.0, 2147483647.0)));
      case memory::data_type::s8:
        return write(base, index, static_cast<int8_t>(clamped(value, -128, 127)));
      default:
        return write(base, index, static_cast<uint8_t>(clamped(value, 0, 255)));
    }
  }
  static double clamped(double value, double least, double most) {
    if (!(value > least)) return least;  // NaN, too
    return value < most ? std::nearbyint(value) : most;
  }

  // Numbers of 16 bits with `fraction` bits of fraction and `exponent` bits of exponent.
  static double widened(uint16_t bits, int exponent, int fraction) {
    const int bias = (1 << (exponent - 1)) - 1;
    const int biased = (bits & 0x7fff) >> fraction;
    const int low = bits & ((1 << fraction) - 1);
    double value;
    if (biased == (1 << exponent) - 1) {
      value = low == 0 ? HUGE_VAL : std::nan("");
    } else if (biased == 0) {
      value = std::ldexp(low, 1 - bias - fraction);
    } else {
      value = std::ldexp(low + (1 << fraction), biased - bias - fraction);
    }
    return (bits & 0x8000) != 0 ? -value : value;
  }
  static uint16_t narrowed(double value, int exponent, int fraction) {
    const int bias = (1 << (exponent - 1)) - 1;
    const uint16_t infinity = static_cast<uint16_t>(((1 << exponent) - 1) << fraction);
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | (1 << (fraction - 1)));
    if (value == 0) return sign;
    int power = 0;
    std::frexp(value, &power);  // |value| is in [2^(power - 1), 2^power)
    const int least = (std::max)(power - 1, 1 - bias);
    // In units of the last place; a carry lands in the exponent, where it belongs.
    const double units = std::nearbyint(std::ldexp(std::fabs(value), fraction - least));
    const double bits = units + std::ldexp(least + bias - 1, fraction);
    const bool finite = bits < infinity;  // also false for an infinity
    return static_cast<uint16_t>(sign | (finite ? static_cast<uint16_t>(bits) : infinity));
  }

  memory::desc src_, dst_;
};

}  // namespace dnnl

#endif  // CONVGRAD_ONEAPI_DNNL_DNNL_HPP_
