// The micro-kernel of bf16 on x86 with AMX. TDPBF16PS multiplies 16 rows of a, 32 terms each, by 16
// columns of b and adds to 16 x 16 sums in a tile register. a is by rows, b panels of pairs, k a
// multiple of 16 pairs. Compiled for CPUs that have the instruction, so nothing here may be shared
// with other files.
#include "cpu/tile_amx.h"

#include "cpu/element.h"

#if defined(__x86_64__) && defined(__AMX_BF16__)

#include "cpu/round_bf16-inl.h"
#include "cpu/tile_operand.h"

namespace convgrad {
namespace {

constexpr int kLanes = 16;
constexpr int kPairBytes = static_cast<int>(sizeof(Pair));

// Sums of 32 x 32 (two tiles by two), or 16 x 64 (one by four): 0 to 3; a: 4, 5; b: 6, 7.
template <int kRows>
CONVGRAD_ALWAYS_INLINE void Multiply(const Pair* a, const Pair* b, int64_t length) {
  constexpr int kWidth = 1024 / kRows;
  constexpr int kAStride = static_cast<int>(kRowPitch) * kPairBytes, kBStride = kWidth * kPairBytes;
  for (int64_t k = 0; k < length; k += kAmxPairs, a += kAmxPairs, b += kAmxPairs * kWidth) {
    _tile_loadd(4, a, kAStride);
    _tile_loadd(6, b, kBStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kLanes, kBStride);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kRows == 32) {
      _tile_loadd(5, a + kLanes * kRowPitch, kAStride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    } else {
      _tile_loadd(6, b + 2 * kLanes, kBStride);
      _tile_dpbf16ps(2, 4, 6);
      _tile_loadd(7, b + 3 * kLanes, kBStride);
      _tile_dpbf16ps(3, 4, 7);
    }
  }
}

// Where the four tiles of sums are in [kRows, kWidth].
template <int kRows>
constexpr int64_t PlaceOf(int tile) {
  return kRows == 32 ? tile / 2 * kLanes * 32 + tile % 2 * kLanes : tile * kLanes;
}

template <class To, int kRows>
void MultiplyTile(const void* a, const void* b, const TileTerms& terms, const float* c,
                  ChunkJoin join, void* to, const int64_t* to_rows) {
  constexpr int kWidth = 1024 / kRows, kStride = kWidth * static_cast<int>(sizeof(float));
  alignas(64) float sums[kRows * kWidth];
  if (join == ChunkJoin::kChain) {
    _tile_loadd(0, c + PlaceOf<kRows>(0), kStride);
    _tile_loadd(1, c + PlaceOf<kRows>(1), kStride);
    _tile_loadd(2, c + PlaceOf<kRows>(2), kStride);
    _tile_loadd(3, c + PlaceOf<kRows>(3), kStride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  Multiply<kRows>(static_cast<const Pair*>(a), static_cast<const Pair*>(b), terms.length);
  _tile_stored(0, sums + PlaceOf<kRows>(0), kStride);
  _tile_stored(1, sums + PlaceOf<kRows>(1), kStride);
  _tile_stored(2, sums + PlaceOf<kRows>(2), kStride);
  _tile_stored(3, sums + PlaceOf<kRows>(3), kStride);
  // What is added to -0 stays what it is.
  const __m512 zero = _mm512_set1_ps(join == ChunkJoin::kFirst ? 0.0f : -0.0f);
  for (int r = 0; r < kRows; ++r) {
    To* const row = static_cast<To*>(to) + to_rows[r];
    for (int j = 0; j < kWidth; j += kLanes) {
      const int64_t at = r * kWidth + j;
      const __m512 before = join == ChunkJoin::kAdd ? _mm512_loadu_ps(c + at) : zero;
      Store(_mm512_add_ps(before, _mm512_load_ps(sums + at)), row + j);
    }
  }
}

}  // namespace

void AmxTiles::Configure() {
  struct Config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  // Eight tiles of 16 rows. A constant: GCC's intrinsic tells of reading eight bytes of it, and
  // what is written to the others before it is left out.
  alignas(64) static constexpr Config kConfig = {
      1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&kConfig);
}

void AmxTiles::Release() { _tile_release(); }

TileFunction AmxTileOf(int rows, bool rounds) {
  if (rows == 32) return rounds ? MultiplyTile<NativeBF16, 32> : MultiplyTile<float, 32>;
  return rounds ? MultiplyTile<NativeBF16, 16> : MultiplyTile<float, 16>;
}

}  // namespace convgrad

#else

namespace convgrad {

void AmxTiles::Configure() {}
void AmxTiles::Release() {}
TileFunction AmxTileOf(int, bool) { return nullptr; }

}  // namespace convgrad

#endif
