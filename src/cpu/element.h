// What panels are made of. A CPU that multiplies one term at a time takes floats; one that sums
// products of several terms takes as many of them as one element: next to each other along k, the
// last element of a run filled up with zeros.
#ifndef CONVGRAD_CPU_ELEMENT_H_
#define CONVGRAD_CPU_ELEMENT_H_

#include <cstdint>

#include "convgrad/types.h"
#include "core/numerics.h"
#include "cpu/contraction.h"

namespace convgrad {

// bf16 on a CPU that has instructions for it.
struct NativeBF16 : BF16 {};

// bf16, for BFMMLA.
struct alignas(8) Quad {
  uint16_t terms[4];
};
// bf16, for AVX-512's dot products.
struct alignas(4) Pair {
  uint16_t terms[2];
};

// The type of a tensor of T.
template <class T>
inline constexpr DataType kTypeOf = DataType::kF32;
template <>
inline constexpr DataType kTypeOf<BF16> = DataType::kBF16;
template <>
inline constexpr DataType kTypeOf<NativeBF16> = DataType::kBF16;
template <>
inline constexpr DataType kTypeOf<F16> = DataType::kF16;

template <class E>
inline constexpr int64_t kTermsOf = 1;
template <>
inline constexpr int64_t kTermsOf<Quad> = 4;
template <>
inline constexpr int64_t kTermsOf<Pair> = 2;

// Elements of a chunk, `each` terms in one. In fprop and dgrad an element has channels of one tap.
inline int64_t ElementsOf(const Contraction& c, const Chunk& chunk, int64_t each) {
  return c.sum_pixels ? CeilDiv(chunk.terms(), each)
                      : chunk.inner.size() * CeilDiv(chunk.outer.size(), each);
}

}  // namespace convgrad

#endif  // CONVGRAD_CPU_ELEMENT_H_
