// Tiles of AMX, which a thread configures before it uses them.
#ifndef CONVGRAD_CPU_TILE_AMX_H_
#define CONVGRAD_CPU_TILE_AMX_H_

#include "cpu/tile.h"

namespace convgrad {

// Elements of k that a tile of it multiplies at once.
inline constexpr int64_t kAmxPairs = 16;

// Of 32 rows and 32 columns, or 16 and 64. a is by rows; terms are a multiple of kAmxPairs.
TileFunction AmxTileOf(int rows, bool rounds);

// The tile registers of this thread, while there is one of these. Only CPUs that have them get to
// code that is compiled for them.
class AmxTiles {
 public:
  explicit AmxTiles(bool used) : used_(used) {
    if (used_) Configure();
  }
  ~AmxTiles() {
    if (used_) Release();
  }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

 private:
  static void Configure();
  static void Release();

  const bool used_;
};

}  // namespace convgrad

#endif  // CONVGRAD_CPU_TILE_AMX_H_
