// Errors, handles, engines and streams for C++11 and later: inline, over dnnl_common.h.
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_COMMON_HPP_
#define CONVGRAD_ONEAPI_DNNL_DNNL_COMMON_HPP_

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "convgrad_dnnl.h"
#include "oneapi/dnnl/dnnl_common.h"

#ifndef DNNL_ENABLE_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define DNNL_ENABLE_EXCEPTIONS 1
#else
#define DNNL_ENABLE_EXCEPTIONS 0
#endif
#endif

#if DNNL_ENABLE_EXCEPTIONS
#define DNNL_THROW_ERROR(status, msg) throw error(status, msg)
#else
#include <cstdio>
#define DNNL_THROW_ERROR(status, msg) (static_cast<void>(std::fputs(msg, stderr)), std::abort())
#endif

namespace dnnl {

// What every call throws that does not succeed.
struct error : public std::exception {
  dnnl_status_t status;
  const char* message;

  error(dnnl_status_t code, const char* text) : status(code), message(text) {}
  const char* what() const noexcept override { return message; }

  static void wrap_c_api(dnnl_status_t code, const char* text) {
    if (code != dnnl_success) DNNL_THROW_ERROR(code, text);
  }
};

// Of a header's own: C, and whoever asks it for the last error, knows of it.
inline void convgrad_dnnl_error(dnnl_status_t code, const char* text) {
  error::wrap_c_api(convgrad_dnnl_refuse(code, text), text);
}

// How a handle of type T is destroyed: static dnnl_status_t destructor(T).
template <typename T>
struct handle_traits {};

// Shares a C handle: the last copy destroys it. A weak handle only refers to it.
template <typename T, typename traits = handle_traits<T>>
struct handle {
  handle() = default;
  handle(const handle&) = default;
  handle(handle&&) = default;
  handle& operator=(const handle&) = default;
  handle& operator=(handle&&) = default;
  explicit handle(T t, bool weak = false) { reset(t, weak); }

  void reset(T t, bool weak = false) { object_.reset(t, weak ? &keep : &traits::destructor); }

  T get(bool allow_empty = false) const {
    if (!allow_empty && !object_) {
      convgrad_dnnl_error(dnnl_invalid_arguments, "object is not initialized");
    }
    return object_.get();
  }

  explicit operator T() const { return get(true); }
  explicit operator bool() const { return get(true) != nullptr; }
  bool operator==(const handle& other) const { return object_ == other.object_; }
  bool operator!=(const handle& other) const { return !(*this == other); }

 protected:
  bool operator==(const T other) const { return object_.get() == other; }
  bool operator!=(const T other) const { return !(*this == other); }

 private:
  static dnnl_status_t keep(T) { return dnnl_success; }

  std::shared_ptr<typename std::remove_pointer<T>::type> object_;
};

template <>
struct handle_traits<dnnl_engine_t> {
  static dnnl_status_t destructor(dnnl_engine_t engine) { return dnnl_engine_destroy(engine); }
};

template <>
struct handle_traits<dnnl_stream_t> {
  static dnnl_status_t destructor(dnnl_stream_t stream) { return dnnl_stream_destroy(stream); }
};

struct engine : public handle<dnnl_engine_t> {
  using handle::handle;

  enum class kind { any = dnnl_any_engine, cpu = dnnl_cpu, gpu = dnnl_gpu };

  engine() = default;
  engine(kind akind, size_t index) {
    dnnl_engine_t made = nullptr;
    error::wrap_c_api(dnnl_engine_create(&made, static_cast<dnnl_engine_kind_t>(akind), index),
                      "no engine of this kind and index");
    reset(made);
  }

  static size_t get_count(kind akind) {
    return dnnl_engine_get_count(static_cast<dnnl_engine_kind_t>(akind));
  }

  kind get_kind() const {
    dnnl_engine_kind_t own = dnnl_any_engine;
    error::wrap_c_api(dnnl_engine_get_kind(get(), &own), "could not get the kind of an engine");
    return static_cast<kind>(own);
  }
};

inline dnnl_engine_kind_t convert_to_c(engine::kind akind) {
  return static_cast<dnnl_engine_kind_t>(akind);
}

struct stream : public handle<dnnl_stream_t> {
  using handle::handle;

  enum class flags : unsigned {
    in_order = dnnl_stream_in_order,
    out_of_order = dnnl_stream_out_of_order,
    default_flags = dnnl_stream_default_flags,
  };

  stream() = default;
  explicit stream(const engine& aengine, flags aflags = flags::default_flags) {
    dnnl_stream_t made = nullptr;
    error::wrap_c_api(dnnl_stream_create(&made, aengine.get(), static_cast<unsigned>(aflags)),
                      "no stream for this engine and flags");
    reset(made);
  }

  engine get_engine() const {
    dnnl_engine_t own = nullptr;
    error::wrap_c_api(dnnl_stream_get_engine(get(), &own), "could not get a stream's engine");
    return engine(own, true);
  }

  stream& wait() {
    error::wrap_c_api(dnnl_stream_wait(get()), "could not wait for a stream");
    return *this;
  }
};

// The operators of a set of flags.
#define DNNL_DEFINE_BITMASK_OPS(Flags)                                                      \
  inline Flags operator|(Flags a, Flags b) {                                                \
    return static_cast<Flags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));         \
  }                                                                                         \
  inline Flags operator&(Flags a, Flags b) {                                                \
    return static_cast<Flags>(static_cast<unsigned>(a) & static_cast<unsigned>(b));         \
  }                                                                                         \
  inline Flags operator^(Flags a, Flags b) {                                                \
    return static_cast<Flags>(static_cast<unsigned>(a) ^ static_cast<unsigned>(b));         \
  }                                                                                         \
  inline Flags operator~(Flags a) { return static_cast<Flags>(~static_cast<unsigned>(a)); } \
  inline Flags& operator|=(Flags& a, Flags b) { return a = a | b; }                         \
  inline Flags& operator&=(Flags& a, Flags b) { return a = a & b; }                         \
  inline Flags& operator^=(Flags& a, Flags b) { return a = a ^ b; }

DNNL_DEFINE_BITMASK_OPS(stream::flags)

enum class fpmath_mode {
  strict = dnnl_fpmath_mode_strict,
  bf16 = dnnl_fpmath_mode_bf16,
  f16 = dnnl_fpmath_mode_f16,
  any = dnnl_fpmath_mode_any,
  tf32 = dnnl_fpmath_mode_tf32,
};

inline dnnl_fpmath_mode_t convert_to_c(fpmath_mode mode) {
  return static_cast<dnnl_fpmath_mode_t>(mode);
}

enum class accumulation_mode {
  strict = dnnl_accumulation_mode_strict,
  relaxed = dnnl_accumulation_mode_relaxed,
  any = dnnl_accumulation_mode_any,
  s32 = dnnl_accumulation_mode_s32,
  f32 = dnnl_accumulation_mode_f32,
  f16 = dnnl_accumulation_mode_f16,
};

inline dnnl_accumulation_mode_t convert_to_c(accumulation_mode mode) {
  return static_cast<dnnl_accumulation_mode_t>(mode);
}

}  // namespace dnnl

namespace oneapi {
namespace dnnl = ::dnnl;
}  // namespace oneapi

#endif  // CONVGRAD_ONEAPI_DNNL_DNNL_COMMON_HPP_
