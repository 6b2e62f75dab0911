// bf16 and f16 as bits: widening is exact, narrowing rounds once, to nearest even, also from f64
// (two roundings in a row, f64 to f32 to bf16, can end one ulp off). Loads and stores take any
// alignment.
#ifndef CONVGRAD_CORE_NUMERICS_H_
#define CONVGRAD_CORE_NUMERICS_H_

#include <bit>
#include <cstdint>
#include <cstring>

#include "convgrad/types.h"

namespace convgrad {

struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

inline float Widen(float value) { return value; }
inline float Widen(BF16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }
inline float Widen(F16 value) {
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  // Moving exponent and fraction up by 13 leaves the exponent 112 too small: a product with 2^112
  // mends it, exactly, for normal and subnormal numbers alike.
  float widened = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  if (magnitude >= 0x7c00u) widened = std::bit_cast<float>((magnitude << 13) | 0x7f800000u);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(widened) | sign);
}

// The binary format with `kFraction` fraction bits and `kExponent` exponent bits nearest to
// `value`, ties to even; beyond the largest finite number, infinity; NaN stays a (quiet) NaN.
template <int kFraction, int kExponent>
constexpr uint32_t RoundBits(double value) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr uint64_t kInfinity = ((uint64_t{1} << kExponent) - 1) << kFraction;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (kFraction + kExponent);
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (biased == 0x7ff) {
    if (fraction == 0) return sign | static_cast<uint32_t>(kInfinity);
    const uint64_t payload = (fraction >> (52 - kFraction)) | (uint64_t{1} << (kFraction - 1));
    return sign | static_cast<uint32_t>(kInfinity | payload);
  }
  if (biased == 0) return sign;  // far below half of the smallest number of any narrower format
  fraction |= uint64_t{1} << 52;
  const int exponent = biased - 1023;
  int drop = 52 - kFraction;
  if (exponent < 1 - kBias) drop += 1 - kBias - exponent;  // subnormal: fewer bits are left
  if (drop > 53) return sign;
  const uint64_t half = uint64_t{1} << (drop - 1);
  const uint64_t odd = (fraction >> drop) & 1;
  uint64_t kept = (fraction + half - 1 + odd) >> drop;
  // A carry out of the fraction lands in the exponent, where it belongs.
  if (exponent >= 1 - kBias) kept += static_cast<uint64_t>(exponent + kBias - 1) << kFraction;
  return sign | static_cast<uint32_t>(kept < kInfinity ? kept : kInfinity);
}

template <class T>
T Narrow(double value);
template <>
inline float Narrow<float>(double value) {
  return static_cast<float>(value);
}
template <>
inline BF16 Narrow<BF16>(double value) {
  return {static_cast<uint16_t>(RoundBits<7, 8>(value))};
}
template <>
inline F16 Narrow<F16>(double value) {
  return {static_cast<uint16_t>(RoundBits<10, 5>(value))};
}

template <class T>
T LoadAt(const void* base, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

template <class T>
void StoreAt(void* base, int64_t index, T value) {
  std::memcpy(static_cast<char*>(base) + index * int64_t{sizeof(T)}, &value, sizeof(T));
}

// Calls visit(T()) with the element type of `type`: f32, bf16 or f16.
template <class Visitor>
auto VisitFloat(DataType type, Visitor&& visit) {
  switch (type) {
    case DataType::kBF16:
      return visit(BF16{});
    case DataType::kF16:
      return visit(F16{});
    default:
      return visit(float{});
  }
}

inline double LoadWidened(DataType type, const void* base, int64_t index) {
  return VisitFloat(type, [&](auto zero) {
    return static_cast<double>(Widen(LoadAt<decltype(zero)>(base, index)));
  });
}

inline void StoreRounded(DataType type, void* base, int64_t index, double value) {
  VisitFloat(type, [&](auto zero) { StoreAt(base, index, Narrow<decltype(zero)>(value)); });
}

}  // namespace convgrad

#endif  // CONVGRAD_CORE_NUMERICS_H_
