// A tile that leaves out rows of a that are zeros, on every instruction set that has twelve of
// them: the same bits as all of it, and the same NaNs where zeros meet what is not finite.
#include "cpu/tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/instruction_set.h"
// After the choice of instruction sets.
#include "cpu/engine.h"

namespace convgrad::tests {
namespace {

constexpr int kRows = 12;
constexpr int64_t kLength = 7, kSegments = 11, kStep = 100;
// Halves, all, quarters, every second one, and what no loop is for.
constexpr TileRows kRowsOf[kSegments] = {0b1100, 0b1111, 0b0011, 0b1111, 0b0001, 0b0010,
                                         0b0100, 0b1000, 0b0101, 0b1010, 0b0111};
constexpr int64_t kBegins[kSegments] = {3, 0, 11, 2, 7, 1, 5, 4, 9, 6, 8};

struct Operands {
  std::vector<float> a, b;
};

// Rows that a segment does not have are zeros.
Operands RandomOperands() {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Operands o{std::vector<float>(kSegments * kLength * kRows), std::vector<float>(kLength * kStep)};
  for (float& value : o.b) value = uniform(random);
  for (size_t i = 0; i < o.a.size(); ++i) {
    const TileRows rows = kRowsOf[i / (kLength * kRows)];
    o.a[i] = rows >> i % kRows * 4 / kRows & 1 ? uniform(random) : 0.0f;
  }
  return o;
}

std::vector<float> Multiply(const Operands& o, int columns, const TileRows* rows) {
  const TileTerms terms{.length = kLength,
                        .segments = kSegments,
                        .begins = kBegins,
                        .step = kStep,
                        .turn = columns,
                        .gap = 0,
                        .rows = rows};
  std::vector<float> to(static_cast<size_t>(kRows * columns), -1.0f);
  int64_t to_rows[kRows];
  for (int r = 0; r < kRows; ++r) to_rows[r] = int64_t{r} * columns;
  TileFunctionOf(kRows, 2, TileSource::kBLines, 1)(o.a.data(), o.b.data(), terms, nullptr,
                                                   ChunkJoin::kAlone, to.data(), to_rows);
  return to;
}

TEST(Tile, LeavesOutRowsThatAreZeros) {
  int tried = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    const VectorUnit unit = PickedVectorUnit(DataType::kF32);
    if (unit.registers < 32) continue;  // tiles have fewer rows
    ++tried;
    const int columns = 2 * unit.lanes;
    Operands o = RandomOperands();
    const std::vector<float> all = Multiply(o, columns, nullptr);
    const std::vector<float> some = Multiply(o, columns, kRowsOf);
    EXPECT_EQ(std::memcmp(all.data(), some.data(), all.size() * sizeof(float)), 0);
    // In a segment that has some rows, met by the last column alone, or by others as well.
    for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      for (int64_t segment = 0; segment < kSegments; ++segment) {
        if (kRowsOf[segment] == kAllRows) continue;
        Operands spoiled = o;
        spoiled.b[static_cast<size_t>(4 * kStep + kBegins[segment] + columns - 1)] = value;
        const std::vector<float> expected = Multiply(spoiled, columns, nullptr);
        const std::vector<float> got = Multiply(spoiled, columns, kRowsOf);
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << i;
          if (!std::isnan(got[i])) {
            ASSERT_EQ(got[i], expected[i]) << i;
          }
        }
        // A row that the segment does not have.
        for (int r = 0; r < kRows; ++r) {
          if (kRowsOf[segment] >> r * 4 / kRows & 1) continue;
          EXPECT_TRUE(std::isnan(got[static_cast<size_t>(r * columns + columns - 1)])) << segment;
        }
      }
    }
  }
  EXPECT_GT(tried, 1);
}

}  // namespace
}  // namespace convgrad::tests
