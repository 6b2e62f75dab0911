// 16 sums to bf16, for the tiles of AVX-512. In an unnamed namespace: the files that include it are
// compiled with other options than the rest.
#include <immintrin.h>

#include "cpu/element.h"
#include "cpu/tile_operand.h"

namespace convgrad {
namespace {

CONVGRAD_ALWAYS_INLINE void Store(__m512 sums, float* to) { _mm512_storeu_ps(to, sums); }
// Rounded to nearest even, subnormals too, which VCVTNEPS2BF16 would take as zeros.
CONVGRAD_ALWAYS_INLINE void Store(__m512 sums, NativeBF16* to) {
  const __m512i bits = _mm512_castps_si512(sums);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_blend_epi32(nan, rounded, quiet);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}

}  // namespace
}  // namespace convgrad
