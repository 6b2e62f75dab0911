// Every remainder of a vector, a tile and a run: all channel counts and widths from 1 to 40, with
// tensors right against guard pages, bit for bit as the oracle has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/guarded_run.h"

namespace convgrad::tests {
namespace {

constexpr OpKind kPasses[] = {OpKind::kConvolution, OpKind::kConvolutionBackwardData,
                              OpKind::kConvolutionBackwardWeights};

// Both ends of the guard for each; numbers of threads and betas in turn.
void ExpectOracleBits(const BitsProblem& problem, DataType type) {
  static size_t turn = 0;
  ++turn;  // seven for each problem: neither three betas nor four turns of threads divide it
  for (const OpKind kind : kPasses) {
    for (const bool last : {false, true}) {
      BitsCase item(problem, kind, type, {last, last}, true);
      FillWithIntegers(item);
      const float beta = std::array{0.0f, 1.0f, -2.0f}[++turn % 3];
      const Options options{.threads = turn % 4 == 0 ? 3 : 1, .beta = beta};
      const std::vector<char> expected = OracleBytes(item, beta);
      for (const bool at_end : {false, true}) {
        ASSERT_TRUE(RunGuarded(item, options, at_end) == expected)
            << problem.name << " " << NameOf(kind) << " " << NameOf(type)
            << (last ? " NXC" : " NCX") << ", " << options.threads << " threads, beta " << beta
            << ", guard at the " << (at_end ? "end" : "front");
      }
    }
  }
}

std::string Name(int64_t channels, int64_t o, int64_t width) {
  return std::to_string(channels) + " to " + std::to_string(o) + " channels, width " +
         std::to_string(width);
}

void ExpectChannels(DataType type) {
  for (int64_t channels = 1; channels <= 40; ++channels) {
    for (int64_t o = 1; o <= 40; ++o) {
      const int64_t width = 1 + (channels * 7 + o) % 11;
      ExpectOracleBits({Name(channels, o, width), 1, 1, channels, o, {width}, {3}, {1}, {1}, {1}},
                       type);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Tails, OfChannels) { ExpectChannels(DataType::kF32); }
TEST(Tails, OfChannelsOfBF16) { ExpectChannels(DataType::kBF16); }

void ExpectWidths(DataType type) {
  for (int64_t width = 1; width <= 40; ++width) {
    for (const int64_t channels : {1, 3, 8, 17}) {
      for (const int64_t stride : {1, 2, 3}) {
        ExpectOracleBits({Name(channels, 9, width) + ", stride " + std::to_string(stride),
                          2,
                          1,
                          channels,
                          9,
                          {3, width},
                          {2, 3},
                          {1, stride},
                          {1, 1},
                          {0, 1}},
                         type);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tails, OfWidths) { ExpectWidths(DataType::kF32); }
TEST(Tails, OfWidthsOfBF16) { ExpectWidths(DataType::kBF16); }

// Lines that begin anywhere in four terms that are summed at once, and end there; of several
// images, and of many channels, next to each other and not.
TEST(Tails, OfLinesOfBF16) {
  for (int64_t width = 1; width <= 24; ++width) {
    for (const int64_t height : {1, 3, 8}) {
      for (const int64_t pad : {0, 1, 4}) {
        const int64_t taps = std::min<int64_t>(width + 2 * pad, 2 * pad + 1);
        ExpectOracleBits({Name(5, 14, width) + ", height " + std::to_string(height) + ", " +
                              std::to_string(taps) + " taps",
                          3,
                          1,
                          5,
                          14,
                          {height, width},
                          {1, taps},
                          {1, 1},
                          {1, 1},
                          {0, pad}},
                         DataType::kBF16);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tails, Of16Bits) {
  for (int64_t n = 1; n <= 40; ++n) {
    for (const DataType type : {DataType::kBF16, DataType::kF16}) {
      ExpectOracleBits({Name(n, 41 - n, 5), 1, 1, n, 41 - n, {5}, {3}, {1}, {1}, {1}}, type);
      ExpectOracleBits({Name(3, n, n), 2, 1, 3, n, {2, n}, {1, 3}, {1, 2}, {1, 1}, {0, 1}}, type);
      if (HasFatalFailure()) return;
    }
  }
}

// One channel in a group and a few; all counts of groups.
TEST(Tails, OfGroups) {
  for (int64_t groups = 1; groups <= 40; ++groups) {
    for (const int64_t each : {1, 3}) {
      ExpectOracleBits({std::to_string(groups) + " groups of " + std::to_string(each),
                        1,
                        groups,
                        groups * each,
                        groups * 2,
                        {3, 1 + groups % 9},
                        {3, 3},
                        {1, 1},
                        {1, 1},
                        {1, 1}},
                       DataType::kF32);
      if (HasFatalFailure()) return;
    }
  }
}

// The whole mechanism can fail: one byte less than a tensor has is a fault.
TEST(TailsDeathTest, AGuardPageIsDeadly) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const GuardedMemory memory(64, true);
        static_cast<volatile char*>(memory.data())[64] = 1;
      },
      "");
  EXPECT_DEATH(
      {
        const GuardedMemory memory(64, false);
        static_cast<volatile char*>(memory.data())[-1] = 1;
      },
      "");
}

}  // namespace
}  // namespace convgrad::tests
