// Weight gradients of small groups, of which several short lines are summed at once
// (cpu/direct-inl.h): the very bits of the contraction, on every instruction set, where lines of
// taps meet padding in some of them, of infinities there, too, and not a byte beyond a tensor.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "cpu/direct.h"
#include "cpu/engine.h"
#include "spec/canonicalize.h"
#include "tests/guarded_run.h"
#include "tests/instruction_set.h"
#include "tools/operation_line.h"

namespace convgrad::tests {
namespace {

constexpr bool kSanitized = CONVGRAD_TEST_SANITIZED;

// Channels and o of a group: blocks of a vector's lanes, whole vectors, and fewer
// channels than o.
struct Group {
  int64_t channels, o;
};
constexpr Group kGroups[] = {{4, 4}, {8, 8}, {16, 16}, {12, 16}, {4, 16}, {8, 16}};

struct Image {
  Dims in, taps, strides, dilations, pads;
};
const Image kImages[] = {
    {{14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    // images that are one chain
    {{41, 20}, {3, 2}, {1, 1}, {1, 1}, {1, 1}},  // several chunks
    {{9, 11}, {5, 5}, {1, 1}, {1, 1}, {2, 2}},   // two taps that slide alone at the end
    {{12, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},  // no taps that slide
    {{17, 9}, {3, 3}, {1, 1}, {4, 1}, {4, 1}},   // far lines
    {{6, 2}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    // fewer pixels than taps
    {{10, 16}, {1, 7}, {1, 1}, {1, 1}, {0, 3}},  // one line of taps
    {{9, 10}, {9, 1}, {3, 1}, {1, 1}, {4, 0}},   // one tap of each
    {{3, 9, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {{5, 3, 30}, {2, 3, 3}, {2, 1, 1}, {1, 1, 1}, {0, 1, 1}},
};

// Channels inside or not, of each tensor.
constexpr Layout kLayouts[] = {{true, false}, {false, false}};
constexpr DataType kTypes[] = {DataType::kF32, DataType::kBF16, DataType::kF16};

bool SumsSeveral(BitsCase& item, int threads, int64_t limit) {
  const std::vector<TensorDesc> inputs = item.InputDescs(), outputs = item.OutputDescs();
  const auto checked = convgrad::Check(item.operation(), inputs, outputs);
  EXPECT_TRUE(checked.ok());
  return checked.ok() && DirectTilingOf(Canonicalize(*checked), threads, limit).lines_each > 1;
}

struct Tally {
  int several[3] = {}, threads[4] = {};  // of each type; of each number of them
};

// Of random type, layout, beta, number of threads and of images, with a bias or not, an infinity or
// none, and f32 gradients of 16 bits or their own.
void ExpectBitsOfContract(const Group& g, const Image& image, std::mt19937_64& random,
                          Tally& tally) {
  const auto one_of = [&]<class T>(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  };
  const BitsProblem problem{"",
                            one_of({1, 2, 3}),
                            3,
                            3 * g.channels,
                            3 * g.o,
                            image.in,
                            image.taps,
                            image.strides,
                            image.dilations,
                            image.pads};
  const size_t type = random() % 3;
  const OpKind kind =
      one_of({OpKind::kConvolutionBackwardWeights, OpKind::kConvolutionBackwardWeights,
              OpKind::kConvTransposeBackwardWeights});
  BitsCase item(problem, kind, kTypes[type], one_of({kLayouts[0], kLayouts[1]}), random() % 2 == 0,
                one_of({kTypes[type], DataType::kF32}));
  // An infinity of diff_dst meets the zeros around an image, one of src does not.
  if (random() % 3 == 0) {
    tools::TensorBuffer& spoilt = random() % 2 == 0 ? item.y().buffer : item.x().buffer;
    spoilt.Set(static_cast<int64_t>(random() % static_cast<uint64_t>(spoilt.elements())),
               std::numeric_limits<double>::infinity());
  }
  const Options options{.threads = one_of({1, 2, 3}),
                        .workspace_limit = one_of({int64_t{0}, Options::kNoLimit}),
                        .beta = one_of({0.0f, -0.5f, 1.0f}),
                        .kernel = "direct"};
  SCOPED_TRACE(tools::ToText(item.operation(), item.InputDescs(), item.OutputDescs()));
  if (SumsSeveral(item, options.threads, options.workspace_limit)) {
    ++tally.several[type];
    ++tally.threads[options.threads];
  }
  ExpectGuardedBitsOfContract(item, options, random() % 2 == 0 ? 0 : 1);
}

TEST(DirectRows, HaveTheBitsOfContract) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    std::mt19937_64 random(5);
    Tally tally;
    for (const Group& g : kGroups) {
      for (const Image& image : kImages) {
        for (int i = 0; i < (kSanitized ? 1 : 6); ++i) {
          ExpectBitsOfContract(g, image, random, tally);
          if (HasFatalFailure()) return;
        }
      }
    }
    const bool wide = PickedVectorUnit(DataType::kF32).lanes > 8;
    const int least = kSanitized ? 5 : 40;
    for (const int several : tally.several) {
      EXPECT_TRUE(wide ? several > least : several == 0) << several;
    }
    for (const int threads : {1, 2, 3}) {
      const int several = tally.threads[threads];
      EXPECT_TRUE(wide ? several > least : several == 0) << several << ", threads " << threads;
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
