// Tiles that read rows of a tensor as they are: the same bits as packed ones, of the problems that
// gain by it.
#include "cpu/in_place.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/instruction_set.h"
#include "tests/random_problem.h"
// After the choice of instruction sets.
#include "cpu/engine.h"

namespace convgrad::tests {
namespace {

constexpr int kRows = kInPlaceRows;

TEST(InPlace, HasTheBitsOfPanels) {
  int tried = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    const VectorUnit unit = PickedVectorUnit(DataType::kF32);
    if (unit.a_by_rows) continue;  // has no such tiles
    ++tried;
    const int64_t columns = 2 * unit.lanes;
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (const int64_t length : {1, 2, 3, 15, 16, 17, 34, 431}) {
      const int64_t step = length + 5;
      // The last row ends the memory.
      std::vector<float> rows(static_cast<size_t>((kRows - 1) * step + length));
      std::vector<float> b(static_cast<size_t>(length * columns)), a;
      for (float& value : rows) value = uniform(random);
      for (float& value : b) value = uniform(random);
      for (int64_t k = 0; k < length; ++k) {
        for (int64_t r = 0; r < kRows; ++r) a.push_back(rows[static_cast<size_t>(r * step + k)]);
      }
      int64_t to_rows[kRows];
      for (int r = 0; r < kRows; ++r) to_rows[r] = r * columns;
      const TileTerms terms{.length = length,
                            .segments = 1,
                            .begins = nullptr,
                            .step = 0,
                            .turn = 0,
                            .gap = 0,
                            .row_step = step};
      for (const ChunkJoin join : {ChunkJoin::kAlone, ChunkJoin::kAdd, ChunkJoin::kChain}) {
        std::vector<float> c(static_cast<size_t>(kRows * columns), 0.37f), packed = c, in_place = c;
        TileFunctionOf(kRows, 2, TileSource::kPanels, 1)(a.data(), b.data(), terms, c.data(), join,
                                                         packed.data(), to_rows);
        // A tensor may begin at any byte.
        std::vector<char> bytes(rows.size() * sizeof(float) + 1);
        std::memcpy(bytes.data() + 1, rows.data(), rows.size() * sizeof(float));
        TileFunctionOf(kRows, 2, TileSource::kAInPlace, 1)(
            bytes.data() + 1, b.data(), terms, c.data(), join, in_place.data(), to_rows);
        EXPECT_NE(packed, c);
        EXPECT_EQ(std::memcmp(packed.data(), in_place.data(), c.size() * sizeof(float)), 0)
            << length;
      }
    }
  }
#if HWY_ARCH_ARM_A64
  EXPECT_GT(tried, 0);
#endif
}

Problem OneByOne(int64_t ci, int64_t co, int64_t size) {
  Problem p;
  p.pass = Pass::kWgrad;
  p.batch = 2;
  p.ci = ci;
  p.co = co;
  for (size_t a = 1; a < kAxes; ++a) p.axes[a] = {.in = size, .out = size};
  SetDenseStrides(p);
  return p;
}

bool ReadsInPlace(const Problem& p) {
  const Contraction c = MakeLargestContraction(p);
  const Tiling t = MakeTiling(c, 1, 1, -1, {"NEON", 4, 32, false});
  return ReadsInPlace(c, MakeChunks(c), t, CeilDiv(t.nb, t.nr));
}

TEST(InPlace, IsForFewChannelsFirstOfOneTap) {
  EXPECT_TRUE(ReadsInPlace(OneByOne(16, 96, 112)));
  EXPECT_TRUE(ReadsInPlace(OneByOne(24, 144, 56)));
  EXPECT_TRUE(ReadsInPlace(OneByOne(16, 96, 32)));
  EXPECT_FALSE(ReadsInPlace(OneByOne(64, 256, 56)));  // many panels
  EXPECT_FALSE(ReadsInPlace(OneByOne(16, 96, 64)));   // rows that push each other out
  EXPECT_FALSE(ReadsInPlace(OneByOne(16, 96, 7)));    // a chunk has several images
  Problem last = OneByOne(16, 96, 112);
  ToChannelsLast(last);
  EXPECT_FALSE(ReadsInPlace(last));
  // One tap of two is left, which reads the last line.
  Problem dead_tap = OneByOne(24, 16, 256);
  dead_tap.axes[1] = {.in = 3, .out = 1, .taps = 2, .dilation = 3, .pad = 1};
  SetDenseStrides(dead_tap);
  ASSERT_EQ(MakeLargestContraction(dead_tap).axes[1].first, 2);
  EXPECT_FALSE(ReadsInPlace(dead_tap));
  Problem strided = OneByOne(16, 96, 112);
  for (size_t a = 1; a < kAxes; ++a) strided.axes[a].in = 223, strided.axes[a].stride = 2;
  SetDenseStrides(strided);
  const bool of_o = ReadsInPlace(strided);  // y is dense, but the axes of x are not one
  EXPECT_FALSE(of_o);
  Problem padded = OneByOne(16, 96, 112);
  for (size_t a = 1; a < kAxes; ++a) padded.axes[a].in = 110, padded.axes[a].pad = 1;
  SetDenseStrides(padded);
  EXPECT_FALSE(ReadsInPlace(padded));
}

}  // namespace
}  // namespace convgrad::tests
