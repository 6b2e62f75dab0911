// The index map and the extents against enumeration.
#include "core/window.h"

#include <gtest/gtest.h>

namespace convgrad {
namespace {

struct Fit {
  bool inside;
  int64_t in;
};

// From the formula, term by term.
Fit Meet(const Axis& a, int64_t out, int64_t tap) {
  const int64_t in = out * a.stride + tap * a.dilation - a.pad;
  return {in >= 0 && in < a.in, in};
}

void CheckAxis(const Axis& a) {
  int64_t pairs = 0;
  for (int64_t out = 0; out < a.out; ++out) {
    const Range taps = TapsInside(a, out);
    for (int64_t tap = 0; tap < a.taps; ++tap) {
      const Fit fit = Meet(a, out, tap);
      ASSERT_EQ(InIndex(a, out, tap), fit.in);
      ASSERT_EQ(tap >= taps.begin && tap < taps.end, fit.inside) << out << " " << tap;
      const Range outs = OutsInside(a, tap);
      ASSERT_EQ(out >= outs.begin && out < outs.end, fit.inside) << out << " " << tap;
      pairs += fit.inside;
    }
  }
  ASSERT_EQ(CountPairs(a), pairs);
  for (int64_t in = 0; in < a.in; ++in) {
    for (int64_t tap = 0; tap < a.taps; ++tap) {
      std::optional<int64_t> expected;
      for (int64_t out = 0; out < a.out; ++out) {
        if (Meet(a, out, tap).in == in) expected = out;
      }
      ASSERT_EQ(OutIndex(a, in, tap), expected) << in << " " << tap;
    }
  }
}

TEST(Window, AgreesWithEnumeration) {
  for (int64_t in : {0, 1, 2, 5, 8}) {
    for (int64_t taps : {1, 2, 3, 7}) {
      for (int64_t stride : {1, 2, 3, 9}) {
        for (int64_t dilation : {1, 2, 5}) {
          for (int64_t pad : {0, 1, 4, 11}) {
            for (int64_t out : {1, 2, 4, 9}) {
              CheckAxis({in, out, taps, stride, dilation, pad});
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(Window, FloorsAndCeils) {
  for (int64_t a = -7; a <= 7; ++a) {
    for (int64_t b = 1; b <= 4; ++b) {
      const int64_t floor = FloorDiv(a, b), ceil = CeilDiv(a, b);
      EXPECT_TRUE(floor * b <= a && (floor + 1) * b > a) << a << " " << b;
      EXPECT_TRUE(ceil * b >= a && (ceil - 1) * b < a) << a << " " << b;
    }
  }
}

TEST(Window, Extents) {
  EXPECT_EQ(KernelSpan(3, 1), 3);
  EXPECT_EQ(KernelSpan(3, 4), 9);
  EXPECT_EQ(KernelSpan(1, INT64_MAX), 1);
  EXPECT_EQ(Travel(5, 1, 1, 3), 4);
  EXPECT_EQ(OutExtent(4, 2), 3);
  EXPECT_EQ(OutExtent(5, 2), 3);
  EXPECT_EQ(OutExtent(-1, 2), 0);
  EXPECT_EQ(InExtent(3, 2, 3, 1, 1, 1), 6);
}

TEST(Window, ExtentsThatDoNotFitAreNotMadeUp) {
  EXPECT_EQ(KernelSpan(3, INT64_MAX / 2 + 1), std::nullopt);
  EXPECT_EQ(KernelSpan(INT64_MAX, INT64_MAX), std::nullopt);
  EXPECT_EQ(Travel(INT64_MAX, 1, 0, 1), std::nullopt);
  EXPECT_EQ(Travel(INT64_MAX, 0, 0, 1), INT64_MAX - 1);
  EXPECT_EQ(InExtent(INT64_MAX, 2, 1, 0, 0, 0), std::nullopt);
}

TEST(Window, CountsPairsOfAxesTooLongToEnumerate) {
  // 2^40 outputs and 3 taps: enumeration of the outputs would not end.
  EXPECT_EQ(CountPairs({int64_t{1} << 40, int64_t{1} << 40, 3, 1, 1, 1}),
            3 * (int64_t{1} << 40) - 2);
  EXPECT_EQ(CountPairs({int64_t{1} << 40, 2, (int64_t{1} << 40) - 1, 1, 1, 0}),
            2 * ((int64_t{1} << 40) - 1));
  // As many taps as outputs, and more pairs than 2^63.
  const int64_t n = int64_t{1} << 40;
  EXPECT_EQ(CountPairs({2 * n, n, n, 1, 1, 0}), 0x1p80);
  EXPECT_EQ(CountPairs({INT64_MAX, 1, 1, INT64_MAX, INT64_MAX, 0}), 1);
}

}  // namespace
}  // namespace convgrad
