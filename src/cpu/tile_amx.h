// Tiles of AMX, which a thread configures before it uses them.
#ifndef CONVGRAD_CPU_TILE_AMX_H_
#define CONVGRAD_CPU_TILE_AMX_H_

#include "cpu/tile.h"

namespace convgrad {

// Whether the CPU has AMX for bf16 and the system lets this process use it.
bool HasAmx();

// Elements of k that a tile of it multiplies at once.
inline constexpr int64_t kAmxPairs = 16;

// Of 32 rows and 32 columns, or 16 and 64. a is by rows; terms are a multiple of kAmxPairs.
TileFunction AmxTileOf(int rows, bool rounds);

// The tile registers of this thread, while there is one of these.
class AmxTiles {
 public:
  explicit AmxTiles(bool used);
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

 private:
  const bool used_;
};

}  // namespace convgrad

#endif  // CONVGRAD_CPU_TILE_AMX_H_
