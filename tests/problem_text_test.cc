// One line is one problem: ParseProblem(ToText(p)) == p, and mistakes are named.
#include "core/problem_text.h"

#include <gtest/gtest.h>

#include <random>

#include "core/touched_bytes.h"

namespace convgrad {
namespace {

Problem RandomProblem(std::mt19937_64& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Problem p;
  p.pass = static_cast<Pass>(below(3));
  p.type = p.out_type = static_cast<DataType>(1 + below(3));
  if (p.pass == Pass::kWgrad && below(2) == 1) p.out_type = DataType::kF32;
  p.batch = below(5);
  p.groups = 1 + below(4);
  p.ci = below(9);
  p.co = below(9);
  for (Axis& a : p.axes) {
    a = {below(20), 1 + below(20), 1 + below(5), 1 + below(4), 1 + below(4), below(6)};
  }
  const bool bias = below(2) == 1;
  if (bias) p.bias = {true, p.pass == Pass::kWgrad && below(2) == 1, below(7) - 3};
  p.bias.alone = bias && p.pass == Pass::kWgrad && below(3) == 0;
  p.per_sample.present = p.pass == Pass::kWgrad && below(2) == 1;
  SetDenseStrides(p);
  if (p.per_sample.present && below(2) == 1) p.per_sample.w = below(100000000000);
  if (p.per_sample.present && below(2) == 1) p.per_sample.bias = -below(9);
  if (below(2) == 1) p.x = {below(1000), -below(50), {below(9), below(9), below(9)}};
  if (below(2) == 1) p.w = {below(99), below(50), below(9), {below(9), -below(9), below(9)}};
  if (below(2) == 1) p.y.c = below(100000000000);
  return p;
}

TEST(ProblemText, ParsesBackToTheSameProblem) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const Problem p = RandomProblem(random);
    const std::string line = ToText(p);
    const Result<Problem> parsed = ParseProblem(line);
    ASSERT_TRUE(parsed.ok()) << line << ": " << parsed.status().message();
    ASSERT_EQ(*parsed, p) << line;
    ASSERT_EQ(ToText(*parsed), line);
  }
}

TEST(ProblemText, ReadsAsWritten) {
  Problem p;
  p.pass = Pass::kWgrad;
  p.type = p.out_type = DataType::kBF16;
  p.batch = 8;
  p.ci = 64;
  p.co = 32;
  p.axes[2] = {56, 28, 3, 2, 1, 1};
  SetDenseStrides(p);
  p.x.c = 1;
  EXPECT_EQ(ToText(p),
            "wgrad bf16 g1 n8 ci64 co32 in1x1x56 taps1x1x3 out1x1x28 s1x1x2 d1x1x1 p0x0x1 "
            "x[3584,1,56,56,1]");
  p.per_sample.present = true;
  EXPECT_TRUE(ToText(p).ends_with(" x[3584,1,56,56,1] per_sample[0,0]")) << ToText(p);
  p.bias = {true, false, 1, true};
  p.per_sample = {true, 64 * 32 * 3, 32};
  EXPECT_TRUE(ToText(p).ends_with(" x[3584,1,56,56,1] bias[1] alone per_sample")) << ToText(p);
  p.bias = {};
  p.per_sample = {};
  p.out_type = DataType::kF32;
  EXPECT_TRUE(ToText(p).starts_with("wgrad bf16:f32 g1 n8 ")) << ToText(p);
}

TEST(ProblemText, OneTypeIsThatOfTheResultToo) {
  for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    const Result<Problem> parsed = ParseProblem(std::string("wgrad ") + std::string(NameOf(type)));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->type, type);
    EXPECT_EQ(parsed->out_type, type);
  }
  EXPECT_EQ(ParseProblem("wgrad f16:f32")->type, DataType::kF16);
  EXPECT_EQ(ParseProblem("wgrad f16:f32")->out_type, DataType::kF32);
  EXPECT_EQ(ToText(*ParseProblem("wgrad f16:f16")), ToText(*ParseProblem("wgrad f16")));
}

// 12 elements of x, 8 of y, 6 of w.
TEST(ProblemText, BytesAreThoseOfEachType) {
  const auto bytes = [](std::string types) {
    const auto parsed = ParseProblem("wgrad " + types + " ci3 co2 in1x1x4 taps1x1x1 out1x1x4");
    return CountBytes(*parsed);
  };
  EXPECT_EQ(bytes("f32"), 26 * 4);
  EXPECT_EQ(bytes("bf16"), 26 * 2);
  EXPECT_EQ(bytes("bf16:f32"), 20 * 2 + 6 * 4);
}

// What meets only padding, or lies between the steps, is not touched; a result is written whole.
TEST(ProblemText, TouchedBytesAreThoseThatProductsNeed) {
  const auto bytes = [](const std::string& pass, const std::string& axes) {
    const auto parsed = ParseProblem(pass + " f32 ci3 co2 " + axes);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return CountTouchedBytes(*parsed) / 4;
  };
  const std::string padded = "in1x1x1 taps1x1x5 out1x1x1 p0x0x2";  // one tap of five
  EXPECT_EQ(bytes("fprop", padded), 3 + 2 + 6);
  EXPECT_EQ(bytes("dgrad", padded), 3 + 2 + 6);
  EXPECT_EQ(bytes("wgrad", padded), 3 + 2 + 30);
  const std::string steps = "in1x1x7 taps1x1x1 out1x1x4 s1x1x2";  // four pixels of seven
  EXPECT_EQ(bytes("fprop", steps), 12 + 8 + 6);
  EXPECT_EQ(bytes("dgrad", steps), 21 + 8 + 6);
  EXPECT_EQ(bytes("wgrad", steps), 12 + 8 + 6);
  EXPECT_EQ(bytes("wgrad", steps + " xbias[1]"), 21 + 8 + 6);  // what a bias gradient sums
  EXPECT_EQ(bytes("dgrad", steps + " bias[1]"), 21 + 8 + 6);
  const std::string outside = "in1x1x2 taps1x1x1 out1x1x6 p0x0x2";  // two windows of six
  EXPECT_EQ(bytes("fprop", outside), 6 + 12 + 6);
  EXPECT_EQ(bytes("dgrad", outside), 6 + 4 + 6);
  EXPECT_EQ(bytes("wgrad", outside), 6 + 4 + 6);
  EXPECT_EQ(bytes("wgrad", outside + " bias[1]"), 6 + 12 + 6);
  const std::string long_line = "in1x1x9000000 taps1x1x3 out1x1x9000000 p0x0x1";
  EXPECT_EQ(bytes("fprop", long_line), 5 * 9e6 + 18);
  const std::string long_steps = "in1x1x14238397 taps1x1x1024 out1x1x27808 s1x1x512";
  EXPECT_EQ(bytes("fprop", long_steps), 3.0 * (27807 * 512 + 1024) + 2 * 27808 + 6 * 1024);
  const std::string gaps = "in1x1x10 taps1x1x2 out1x1x3 s1x1x3 d1x1x2";  // 0 2 3 5 6 8
  EXPECT_EQ(bytes("fprop", gaps), 3 * 6 + 2 * 3 + 6 * 2);
  const std::string met = "in1x1x10 taps1x1x3 out1x1x3 s1x1x2 d1x1x3";  // 0 2 4, 3 5 7, 6 8
  EXPECT_EQ(bytes("wgrad", met), 3 * 8 + 2 * 3 + 6 * 3);
}

TEST(ProblemText, ChangingAnyFieldChangesTheLine) {
  std::mt19937_64 random(11);
  const Problem p = RandomProblem(random);
  Problem q = p;
  q.axes[1].pad += 1;
  EXPECT_NE(ToText(q), ToText(p));
  q = p;
  q.w.ci += 1;
  EXPECT_NE(ToText(q), ToText(p));
  q = p;
  q.out_type = q.type == DataType::kF32 ? DataType::kF16 : DataType::kF32;
  EXPECT_NE(q, p);
  EXPECT_NE(ToText(q), ToText(p));
  q = p;
  q.bias.present = !q.bias.present;
  EXPECT_NE(ToText(q), ToText(p));
}

TEST(ProblemText, NamesMistakes) {
  struct Bad {
    const char* line;
    const char* part;
  };
  for (const Bad& bad :
       {Bad{"", "begins with fprop"},
        {"f32 g1", "begins with fprop"},
        {"fprop f64", "f64"},
        {"fprop q3", "q3"},
        {"wgrad bf16:", "'bf16:' is wrong: expected two of f32, bf16 and f16"},
        {"wgrad bf16:f64", "'bf16:f64'"},
        {"wgrad bf16:f32:bf16", "'bf16:f32:bf16'"},
        {"wgrad :f32", "':f32'"},
        {"wgrad f32:bf16",
         "'f32:bf16' is wrong: only wgrad writes another type "
         "than it reads, and only f32"},
        {"wgrad bf16:f16", "'bf16:f16' is wrong: only wgrad"},
        {"dgrad bf16:f32", "'bf16:f32' is wrong: only wgrad"},
        {"bf16:f32 fprop", "'bf16:f32' is wrong: only wgrad"},
        {"fprop per_sample", "'per_sample' is wrong: only wgrad"},
        {"wgrad per_sample[1]", "per_sample[w,bias]"},
        {"wgrad alone", "'alone' is wrong: only a wgrad with bias[c]"},
        {"fprop bias[1] alone", "'alone' is wrong: only a wgrad with bias[c]"},
        {"wgrad per_sample n4611686018427387904 in0x1x1 out0x1x1 taps3x3x3", "overflows 64 bits"},
        {"fprop in3x4", "in3x4"},
        {"fprop taps0x1x1", "at least 1"},
        {"fprop s1x0x1", "at least 1"},
        {"fprop p0x-1x0", "at least 0"},
        {"fprop g0", "g0"},
        {"fprop n-1", "n-1"},
        {"fprop n8x", "n8x"},
        {"fprop n99999999999999999999", "n99999999999999999999"},
        {"fprop x[1,2,3]", "x[1,2,3]"},
        {"fprop x[1,2,3,4,5", "]"},
        {"fprop x[]", "x[]"},
        {"fprop in4611686018427387904x4x4", "overflows 64 bits"},
        {"fprop taps1x1x9 d1x1x4611686018427387904", "overflows 64 bits"}}) {
    const Result<Problem> parsed = ParseProblem(bad.line);
    ASSERT_FALSE(parsed.ok()) << bad.line;
    EXPECT_NE(parsed.status().message().find(bad.part), std::string::npos)
        << bad.line << ": " << parsed.status().message();
  }
}

}  // namespace
}  // namespace convgrad
