// Groups whose sums go from registers to the tensor where vectors are whole cache lines, and groups
// that are blocks of a vector's lanes: the very bits of the contraction for lines of every kind of
// tile, and not a byte beyond a tensor, at odd addresses, too.
#include <gtest/gtest.h>

#include "cpu/direct.h"
#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tools/operation_line.h"

namespace convgrad::tests {
namespace {

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;

struct Groups {
  int64_t count, channels, o;
  Dims taps, pad;
};

// Whole vectors of 16 lanes, and two that are not; one vector of a block alone, too.
constexpr int64_t kWidths[] = {1, 5, 11, 14, 17, 28, 30, 44};
const Groups kGroups[] = {
    {32, 1, 1, {5, 5}, {2, 2}},  {48, 1, 1, {4, 4}, {2, 1}}, {16, 1, 2, {3, 3}, {1, 1}},
    {8, 2, 2, {3, 3}, {1, 1}},   {12, 4, 4, {3, 5}, {1, 2}}, {8, 4, 4, {2, 4}, {1, 3}},
    {6, 8, 8, {3, 5}, {1, 2}},   {4, 8, 8, {2, 4}, {0, 3}},  {3, 16, 16, {3, 3}, {1, 1}},
    {2, 16, 16, {2, 2}, {1, 1}}, {5, 4, 4, {3, 3}, {1, 1}},  {3, 8, 8, {3, 3}, {1, 1}}};

constexpr OpKind kKinds[] = {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                             OpKind::kConvolutionBackwardWeights};

TEST(DirectStores, HasTheBitsOfContract) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    unsigned turn = 0;
    int compared[3] = {};
    for (const Groups& g : kGroups) {
      for (const int64_t width : kWidths) {
        for (const OpKind& kind : kKinds) {
          // Every width and group in turn: there are 8 widths and 3 directions.
          if (kSanitized && turn++ % 5 >= 2) continue;
          for (const bool adds : {false, true}) {
            for (const int64_t stride : {1, 2}) {
              const BitsProblem problem{"",
                                        2,
                                        g.count,
                                        g.count * g.channels,
                                        g.count * g.o,
                                        {6, width},
                                        g.taps,
                                        {1, stride},
                                        {1, 1},
                                        g.pad};
              if (width + 2 * g.pad[1] < g.taps[1]) continue;
              BitsCase item(problem, kind, DataType::kF32, {true, false}, !adds);
              const Options options{
                  .threads = stride == 1 ? 1 : 3, .beta = adds ? 0.5f : 0.0f, .kernel = "direct"};
              SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()));
              ExpectGuardedBitsOfContract(item, options,
                                          width % 3 == 0   ? 0
                                          : width % 3 == 1 ? 60
                                                           : 1);
              if (HasFatalFailure()) return;
              ++compared[&kind - kKinds];
            }
          }
        }
      }
    }
    for (const int of_kind : compared) EXPECT_GT(of_kind, kSanitized ? 100 : 300);
  }
}

// Groups of eight in vectors of 16 lanes, whose channels no chunk of 432 terms cuts.
TEST(DirectStores, TakesGroupsAsBlocksOfLanes) {
  const auto has_fours = [](int64_t channels, int64_t o, int64_t taps, int lanes, bool weights) {
    Contraction c;
    c.channels = channels;
    c.o = o;
    c.sum_pixels = weights;
    for (GatherAxis& axis : c.axes) axis.taps = axis.pixels = 1;
    c.axes[2].taps = taps;
    return HasFours(c, lanes);
  };
  EXPECT_TRUE(has_fours(4, 4, 9, 16, false));
  EXPECT_TRUE(has_fours(8, 8, 54, 16, false));
  EXPECT_FALSE(has_fours(8, 8, 55, 16, false));
  EXPECT_TRUE(has_fours(8, 8, 400, 16, true));
  EXPECT_TRUE(has_fours(8, 8, 9, 8, false));
  EXPECT_FALSE(has_fours(8, 4, 9, 16, false));
  EXPECT_FALSE(has_fours(12, 12, 9, 16, false));
  EXPECT_TRUE(has_fours(16, 16, 9, 16, false));
  EXPECT_FALSE(has_fours(4, 4, 9, 1, false));
}

}  // namespace
}  // namespace convgrad::tests
