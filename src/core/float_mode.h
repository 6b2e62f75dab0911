// The floating-point mode that results are defined in: round to nearest, keep subnormals. A caller,
// or a thread of its pool, may have set another one.
#ifndef CONVGRAD_CORE_FLOAT_MODE_H_
#define CONVGRAD_CORE_FLOAT_MODE_H_

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace convgrad {

class DefaultFloatMode {
 public:
  DefaultFloatMode() {
#if defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (before_ != 0) asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
#elif defined(__x86_64__)
    before_ = _mm_getcsr();
    if ((before_ & ~kFlags) != kDefault) _mm_setcsr(kDefault | (before_ & kFlags));
#endif
  }
  ~DefaultFloatMode() {
#if defined(__aarch64__)
    if (before_ != 0) asm volatile("msr fpcr, %0" ::"r"(before_));
#elif defined(__x86_64__)
    if ((before_ & ~kFlags) != kDefault) _mm_setcsr(before_);
#endif
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
#if defined(__aarch64__)
  uint64_t before_ = 0;
#elif defined(__x86_64__)
  static constexpr unsigned kFlags = 0x3f, kDefault = 0x1f80;  // all exceptions masked
  unsigned before_ = 0;
#endif
};

}  // namespace convgrad

#endif  // CONVGRAD_CORE_FLOAT_MODE_H_
