// Promise 2: the same bits for any number of threads, any workspace limit, any format, under any
// name of the operation; in f32 also on every instruction set and CPU, which the table of digests
// shows wherever this test runs. f16 is summed as f32 is; bf16 has bits of its own on a CPU that
// sums several products at once.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <optional>

#include "tests/instruction_set.h"
// After the choice of instruction sets.
#include "cpu/engine.h"
#include "tests/bits_table.h"

namespace convgrad::tests {
namespace {

constexpr Layout kLayouts[] = {{false, false}, {true, true}, {false, true}, {true, false}};
constexpr int64_t kLimits[] = {0, 64 << 10, 1 << 20, Options::kNoLimit};

// Onto other bytes than the run before, so that an element that is not written shows.
uint64_t RunOnto(BitsCase& item, const Options& options) {
  static int byte = 0;
  item.FillOutputs(++byte);
  return item.Run(options);
}

uint64_t RunCase(const BitsProblem& problem, OpKind kind, DataType type, Layout layout,
                 const Options& options, bool with_bias = true) {
  BitsCase item(problem, kind, type, layout, with_bias);
  return RunOnto(item, options);
}

// The bits of a sum that a result of 16 bits does not show: gradients of weights in f32; of other
// operations, what is left of the sum when the result is taken from it.
class LastBits {
 public:
  LastBits(const BitsProblem& problem, OpKind kind, DataType type, Layout layout)
      : shown_(WritesWeights(kind)),
        item_(problem, kind, type, layout, shown_, shown_ ? DataType::kF32 : type) {}

  uint64_t Run(const Options& options) {
    const uint64_t digest = RunOnto(item_, options);
    if (shown_ || digest == 0) return digest;
    tools::TensorBuffer& out = item_.output().buffer;
    for (int64_t i = 0; i < out.elements(); ++i) {
      StoreAt(out.data(), i, static_cast<uint16_t>(LoadAt<uint16_t>(out.data(), i) ^ 0x8000));
    }
    Options onto = options;
    onto.beta = 1;
    return item_.Run(onto);
  }

 private:
  const bool shown_;
  BitsCase item_;
};

std::string Text(const BitsProblem& problem, OpKind kind, Layout layout, const Options& options) {
  return problem.name + " " + std::string(NameOf(kind)) + (layout.channels_last ? " NXC" : " NCX") +
         (layout.weights_taps_first ? ", taps first, " : ", taps last, ") +
         std::to_string(options.threads) + " threads, limit " +
         std::to_string(options.workspace_limit);
}

// The line of the table, as it would have to be.
std::string RowText(const BitsProblem& problem, const uint64_t (&digests)[6]) {
  std::string text = problem.name + " {";
  for (int i = 0; i < 6; ++i) {
    char hex[32];
    std::snprintf(hex, sizeof hex, "%s0x%016llx", i == 0 ? "" : ", ",
                  static_cast<unsigned long long>(digests[i]));
    text += hex;
  }
  return text + "}";
}

void ExpectTable(const Options& options, Layout layout) {
  for (const BitsRow& row : kBitsTable) {
    uint64_t digests[6];
    for (int i = 0; i < 6; ++i) {
      digests[i] = RunCase(row.problem, kSixNames[i], DataType::kF32, layout, options);
    }
    EXPECT_EQ(RowText(row.problem, digests), RowText(row.problem, row.digests));
  }
}

TEST(Bits, AreThoseOfTheTable) { ExpectTable({.threads = 1}, kLayouts[0]); }

// Every layout with every limit and number of threads, or every seventh of these, sanitized 13th.
// Their data is made once for each layout: made for each run, it took a third of the time of this
// test.
void ExpectSame(const BitsProblem& problem, OpKind kind, DataType type, bool all) {
  const bool hides = type != DataType::kF32;
  const uint64_t expected = RunCase(problem, kind, type, kLayouts[0], {.threads = 1});
  const uint64_t last_bits =
      hides ? LastBits(problem, kind, type, kLayouts[0]).Run({.threads = 1}) : 0;
  constexpr int kEach = CONVGRAD_TEST_SANITIZED ? 13 : 7;  // no divisor in common with 4 and 5
  int turn = 0;
  for (const Layout layout : kLayouts) {
    BitsCase item(problem, kind, type, layout, true);
    std::optional<LastBits> last;
    if (hides) last.emplace(problem, kind, type, layout);
    for (const int64_t limit : kLimits) {
      for (const int threads : {1, 2, 3, 5, 16}) {
        if (!all && turn++ % kEach != 0) continue;
        const Options options{.threads = threads, .workspace_limit = limit};
        EXPECT_EQ(RunOnto(item, options), expected)
            << NameOf(type) << " " << Text(problem, kind, layout, options);
        if (!hides) continue;
        EXPECT_EQ(last->Run(options), last_bits)
            << "last bits, " << NameOf(type) << " " << Text(problem, kind, layout, options);
      }
    }
  }
}

TEST(Bits, AreTheSameForThreadsWorkspaceAndFormats) {
  for (const BitsRow& row : kBitsTable) {
    for (const OpKind kind : kSixNames)
      ExpectSame(row.problem, kind, DataType::kF32, !CONVGRAD_TEST_SANITIZED);
  }
}

TEST(Bits, AreTheSameForThreadsWorkspaceAndFormatsOf16Bits) {
  for (const BitsRow& row : kBitsTable) {
    for (const OpKind kind : kSixNames) {
      for (const DataType type : {DataType::kBF16, DataType::kF16}) {
        ExpectSame(row.problem, kind, type, !CONVGRAD_TEST_SANITIZED);
      }
    }
  }
}

TEST(Bits, AreTheSameForThreadsWorkspaceAndFormatsOfLongSums) {
  for (const BitsProblem& problem : kLongSums) {
    for (const OpKind kind : kSixNames) ExpectSame(problem, kind, DataType::kBF16, false);
  }
}

// A ConvTranspose operation is a Convolution operation with src and dst exchanged.
TEST(Bits, AreTheSameUnderBothNames) {
  for (const BitsRow& row : kBitsTable) {
    const auto run = [&](OpKind kind) {
      return RunCase(row.problem, kind, DataType::kF32, kLayouts[0], {.threads = 1}, false);
    };
    EXPECT_EQ(run(OpKind::kConvTranspose), run(OpKind::kConvolutionBackwardData))
        << row.problem.name;
    EXPECT_EQ(run(OpKind::kConvTransposeBackwardData), run(OpKind::kConvolution))
        << row.problem.name;
    EXPECT_EQ(run(OpKind::kConvTransposeBackwardWeights), run(OpKind::kConvolutionBackwardWeights))
        << row.problem.name;
  }
}

TEST(Bits, AreTheSameOnEveryInstructionSet) {
  const std::string before = PickedVectorUnit(DataType::kF32).name;
  int scalar = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const InstructionSet set(target);
    ASSERT_STREQ(PickedVectorUnit(DataType::kF32).name, hwy::TargetName(target));
    for (const Layout layout : {kLayouts[0], kLayouts[1]}) {
      ExpectTable({.threads = 1}, layout);
      ExpectTable({.threads = 3, .workspace_limit = 0}, layout);
    }
    RecordProperty(hwy::TargetName(target), 1);
    scalar += target == HWY_SCALAR;
  }
  EXPECT_EQ(scalar, 1);
  EXPECT_EQ(PickedVectorUnit(DataType::kF32).name, before);
}

// One set of bits for all instruction sets in f16, and for each of them in bf16: units that sum as
// many products at once are one.
TEST(Bits, Of16BitsDependOnTheTermsOfAnElementAlone) {
  for (const BitsRow& row : kBitsTable) {
    for (const OpKind kind : kSixNames) {
      for (const DataType type : {DataType::kBF16, DataType::kF16}) {
        std::map<int64_t, uint64_t> digests;  // by terms of an element
        for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
          SCOPED_TRACE(hwy::TargetName(target));
          const InstructionSet set(target);
          const int64_t terms_each = PickedVectorUnit(type).terms_each;
          ASSERT_TRUE(terms_each == 1 || type == DataType::kBF16);
          for (const Layout layout : {kLayouts[0], kLayouts[1]}) {
            const Options options{.threads = 2, .workspace_limit = 0};
            const uint64_t digest = LastBits(row.problem, kind, type, layout).Run(options);
            const uint64_t expected = digests.emplace(terms_each, digest).first->second;
            EXPECT_EQ(digest, expected)
                << NameOf(type) << " " << Text(row.problem, kind, layout, options);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace convgrad::tests
