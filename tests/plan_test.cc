// Plans: many runs, many threads, beta, empty tensors, explanations.
#include "convgrad/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "cpu/multiply_rate.h"
#include "spec/extent.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tests {
namespace {

using tools::FillIntegers;
using tools::FillReals;
using tools::TensorBuffer;

Attributes Window(Dims strides, Dims pads) {
  const Dims ones(strides.size(), 1);
  return {{"strides", std::move(strides)},
          {"pads_begin", pads},
          {"pads_end", pads},
          {"dilations", ones},
          {"data_format", "NCX"},
          {"weights_format", "OIX"}};
}

const Operation kWeights{OpKind::kConvolutionBackwardWeights, Window({1, 1}, {1, 1})};

TensorBuffer Tensor(DataType type, Dims extents) {
  return TensorBuffer(TensorDesc{type, std::move(extents), {}, {}});
}

TEST(Plan, RunsConcurrentlyOnDifferentPointers) {
  const std::vector<TensorDesc> inputs = {{DataType::kF32, {2, 5, 9, 8}, {}, {}},
                                          {DataType::kF32, {2, 7, 9, 8}, {}, {}}};
  const std::vector<TensorDesc> outputs = {{DataType::kF32, {7, 5, 3, 3}, {}, {}}};
  Result<Plan> plan = Plan::Make(kWeights, inputs, outputs, {.threads = 2});
  ASSERT_TRUE(plan.ok());
  constexpr int kThreads = 8;
  std::vector<TensorBuffer> x, dy, got, expected;
  for (int t = 0; t < kThreads; ++t) {
    x.emplace_back(inputs[0]);
    dy.emplace_back(inputs[1]);
    got.emplace_back(outputs[0]);
    expected.emplace_back(outputs[0]);
    FillReals(x.back(), static_cast<uint64_t>(2 * t));
    FillReals(dy.back(), static_cast<uint64_t>(2 * t + 1));
    ASSERT_TRUE(plan->Run({x[static_cast<size_t>(t)].data(), dy[static_cast<size_t>(t)].data()},
                          expected[static_cast<size_t>(t)].data())
                    .ok());
  }
  std::vector<std::thread> team;
  for (size_t t = 0; t < kThreads; ++t) {
    team.emplace_back([&, t, copy = *plan] {
      for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(copy.Run({x[t].data(), dy[t].data()}, got[t].data()).ok());
      }
    });
  }
  for (std::thread& member : team) member.join();
  for (size_t t = 0; t < kThreads; ++t) EXPECT_TRUE(got[t].SameBytes(expected[t])) << t;
}

TEST(Plan, SameBitsForAnyThreadCount) {
  TensorBuffer x = Tensor(DataType::kF32, {3, 6, 11, 7}),
               dy = Tensor(DataType::kF32, {3, 4, 11, 7});
  FillReals(x, 1);
  FillReals(dy, 2);
  TensorBuffer one = Tensor(DataType::kF32, {4, 6, 3, 3});
  ASSERT_TRUE(convgrad::Run(kWeights, {x.view(), dy.view()}, {one.view()}, {.threads = 1}).ok());
  for (int threads : {0, 2, 3, 5, 16, 1000, 1000000000}) {
    TensorBuffer many = Tensor(DataType::kF32, {4, 6, 3, 3});
    ASSERT_TRUE(
        convgrad::Run(kWeights, {x.view(), dy.view()}, {many.view()}, {.threads = threads}).ok());
    EXPECT_TRUE(many.SameBytes(one)) << threads;
  }
}

// PT #34344: a 3-D kernel of one tap with stride and padding differed from run to run.
TEST(Plan, SameBitsInEveryRun) {
  TensorBuffer x = Tensor(DataType::kF32, {64, 1, 16, 16, 16});
  TensorBuffer dy = Tensor(DataType::kF32, {64, 1, 9, 9, 9});
  FillReals(x, 1);
  FillReals(dy, 2);
  const Operation op{OpKind::kConvolutionBackwardWeights, Window({2, 2, 2}, {1, 1, 1})};
  TensorBuffer first = Tensor(DataType::kF32, {1, 1, 1, 1, 1}), again = first;
  ASSERT_TRUE(convgrad::Run(op, {x.view(), dy.view()}, {first.view()}).ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(convgrad::Run(op, {x.view(), dy.view()}, {again.view()}).ok());
    ASSERT_TRUE(again.SameBytes(first)) << i;
  }
}

TEST(Plan, RefusesAPointerGivenTwice) {
  TensorBuffer x = Tensor(DataType::kF32, {1, 1, 3, 3});
  const Status status = convgrad::Run(kWeights, {x.view(), x.view()}, {x.view()});
  EXPECT_EQ(
      status.message(),
      "output 0 'diff_weights' shares memory with input 0 'src', an output must not overlap an "
      "input");
  TensorBuffer dw = Tensor(DataType::kF32, {1, 1, 3, 3});
  const TensorView bias(dw.data(), DataType::kF32, {1});
  EXPECT_FALSE(convgrad::Run(kWeights, {x.view(), x.view()}, {dw.view(), bias}).ok());
}

// Views of one buffer, from `at` on, of a 1x1 convolution whose src and dst have these strides.
Status RunInOneBuffer(const Dims& strides, size_t src_at, size_t dst_at) {
  static std::vector<float> buffer(1000, 1.0f);
  std::vector<float> w(16, 1.0f);
  const Dims extents{2, 4, 3, 3};
  const Operation op{OpKind::kConvolution, Window({1, 1}, {0, 0})};
  return convgrad::Run(op,
                       {{&buffer[src_at], DataType::kF32, extents, strides},
                        {w.data(), DataType::kF32, {4, 4, 1, 1}}},
                       {{&buffer[dst_at], DataType::kF32, extents, strides}});
}

TEST(Plan, RefusesAnOutputThatOverlapsAnInput) {
  const auto shares = [](const Dims& strides, size_t src_at, size_t dst_at) {
    const Status status = RunInOneBuffer(strides, src_at, dst_at);
    if (!status.ok()) {
      EXPECT_EQ(status.message(),
                "output 0 'dst' shares memory with input 0 'src', an output must not overlap an "
                "input");
    }
    return !status.ok();
  };
  const Dims dense{36, 9, 3, 1};
  EXPECT_FALSE(shares(dense, 0, 72));
  EXPECT_FALSE(shares(dense, 72, 0));
  for (const size_t apart : {1, 35, 36, 71}) {
    EXPECT_TRUE(shares(dense, apart, 0)) << apart;
    EXPECT_TRUE(shares(dense, 0, apart)) << apart;
  }
  // Channels of one tensor of eight, pixels of two columns that take turns, images backwards.
  const Dims half{72, 9, 3, 1}, every_second{72, 18, 6, 2}, backwards{-36, 9, 3, 1};
  EXPECT_FALSE(shares(half, 0, 36));
  EXPECT_TRUE(shares(half, 0, 27));
  EXPECT_FALSE(shares(every_second, 0, 1));
  EXPECT_TRUE(shares(every_second, 0, 2));
  EXPECT_FALSE(shares(backwards, 36, 108));
  EXPECT_TRUE(shares(backwards, 36, 72));
}

// Channels of one large tensor: found out in a few steps, or not at all.
TEST(Plan, TellsLargeTensorsApart) {
  const int64_t all = 64, row = 56 * all, image = 56 * row;
  const TensorDesc half{DataType::kF32, {32, 56, 56, 32}, {image, row, all, 1}};
  std::vector<float> memory(64);
  EXPECT_FALSE(ShareMemory(half, &memory[0], half, &memory[32]));
  EXPECT_FALSE(ShareMemory(half, &memory[32], half, &memory[0]));
  EXPECT_TRUE(ShareMemory(half, &memory[0], half, &memory[31]));
  EXPECT_TRUE(ShareMemory(half, &memory[31], half, &memory[0]));
  const TensorDesc other{DataType::kF32, {32, 56, 56, 32}, {300001, row, all, 1}};
  EXPECT_TRUE(ShareMemory(half, &memory[0], other, &memory[0]));
}

TEST(Plan, SameBitsForAnyLayout) {
  TensorBuffer ncx = Tensor(DataType::kF32, {2, 6, 5, 7}), w = Tensor(DataType::kF32, {4, 6, 3, 3});
  FillReals(ncx, 1);
  FillReals(w, 2);
  TensorBuffer nxc = Tensor(DataType::kF32, {2, 5, 7, 6}),
               xio = Tensor(DataType::kF32, {3, 3, 6, 4});
  for (int64_t i = 0; i < ncx.elements(); ++i) {
    const Dims a = ncx.IndexOf(i);
    nxc.Set(((a[0] * 5 + a[2]) * 7 + a[3]) * 6 + a[1], ncx.At(i));
  }
  for (int64_t i = 0; i < w.elements(); ++i) {
    const Dims a = w.IndexOf(i);
    xio.Set(((a[2] * 3 + a[3]) * 6 + a[1]) * 4 + a[0], w.At(i));
  }
  Operation op{OpKind::kConvolution, Window({2, 1}, {1, 1})};
  TensorBuffer a = Tensor(DataType::kF32, {2, 4, 3, 7}), b = Tensor(DataType::kF32, {2, 3, 7, 4});
  ASSERT_TRUE(convgrad::Run(op, {ncx.view(), w.view()}, {a.view()}).ok());
  op.attributes.Set("data_format", "NXC").Set("weights_format", "XIO");
  ASSERT_TRUE(convgrad::Run(op, {nxc.view(), xio.view()}, {b.view()}).ok());
  for (int64_t i = 0; i < a.elements(); ++i) {
    const Dims at = a.IndexOf(i);
    ASSERT_EQ(b.At(((at[0] * 3 + at[2]) * 7 + at[3]) * 4 + at[1]), a.At(i));
  }
}

TEST(Plan, BetaAccumulates) {
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    TensorBuffer x = Tensor(type, {2, 3, 4, 4}), dy = Tensor(type, {2, 2, 4, 4});
    TensorBuffer bias = Tensor(type, {2}), old_bias = Tensor(type, {2}), sum = Tensor(type, {2});
    FillIntegers(x, 1, 1);
    FillIntegers(dy, 1, 2);
    TensorBuffer plain = Tensor(type, {2, 3, 3, 3}), old = plain, got = plain;
    FillIntegers(old, 4, 3);
    FillIntegers(old_bias, 4, 4);
    ASSERT_TRUE(convgrad::Run(kWeights, {x.view(), dy.view()}, {plain.view(), bias.view()}).ok());
    for (float beta : {1.0f, 0.5f, -2.0f}) {
      got = old;
      sum = old_bias;
      ASSERT_TRUE(
          convgrad::Run(kWeights, {x.view(), dy.view()}, {got.view(), sum.view()}, {.beta = beta})
              .ok());
      for (int64_t i = 0; i < got.elements(); ++i) {
        ASSERT_EQ(got.At(i), plain.At(i) + static_cast<double>(beta) * old.At(i));
      }
      for (int64_t i = 0; i < 2; ++i) {
        ASSERT_EQ(sum.At(i), bias.At(i) + static_cast<double>(beta) * old_bias.At(i));
      }
    }
  }
}

TEST(Plan, BetaZeroNeverReadsTheOutput) {
  TensorBuffer x = Tensor(DataType::kF32, {1, 1, 3, 3}), dy = x, out = x;
  FillIntegers(x, 4, 1);
  FillIntegers(dy, 4, 2);
  for (int64_t i = 0; i < out.elements(); ++i) out.Set(i, NAN);
  ASSERT_TRUE(convgrad::Run(kWeights, {x.view(), dy.view()}, {out.view()}).ok());
  for (int64_t i = 0; i < out.elements(); ++i) EXPECT_FALSE(std::isnan(out.At(i)));
}

TEST(Plan, AnEmptyBatchHasZeroGradientsOfWeights) {
  TensorBuffer x = Tensor(DataType::kF32, {0, 3, 4, 4}), dy = Tensor(DataType::kF32, {0, 2, 4, 4});
  TensorBuffer out = Tensor(DataType::kF32, {2, 3, 3, 3}), bias = Tensor(DataType::kF32, {2});
  Operation op = kWeights;
  // Null pointers are fine where there is nothing to point at.
  ASSERT_TRUE(
      convgrad::Run(
          op, {{nullptr, DataType::kF32, {0, 3, 4, 4}}, {nullptr, DataType::kF32, {0, 2, 4, 4}}},
          {out.view(), bias.view()})
          .ok());
  for (int64_t i = 0; i < out.elements(); ++i) EXPECT_EQ(out.At(i), 0);
  for (int64_t i = 0; i < bias.elements(); ++i) EXPECT_EQ(bias.At(i), 0);
  op.kind = OpKind::kConvolution;
  const std::vector<TensorDesc> inputs = {x.desc(), out.desc()};
  Result<Plan> forward = Plan::Make(op, inputs);
  ASSERT_TRUE(forward.ok());
  EXPECT_EQ(forward->output().extents, (Dims{0, 2, 4, 4}));
  EXPECT_TRUE(forward->Run({nullptr, out.data()}, nullptr).ok());
}

TEST(Plan, AnEmptyBatchScalesByBeta) {
  TensorBuffer out = Tensor(DataType::kF32, {1, 1, 1, 1});
  out.Set(0, 6);
  ASSERT_TRUE(convgrad::Run(Operation{OpKind::kConvolutionBackwardWeights, Window({1, 1}, {0, 0})},
                            {{nullptr, DataType::kF32, {0, 1, 4, 4}},
                             {nullptr, DataType::kF32, {0, 1, 4, 4}}},
                            {out.view()}, {.beta = 0.5f})
                  .ok());
  EXPECT_EQ(out.At(0), 3);
}

TEST(Plan, SpecialValuesFollowIeee) {
  TensorBuffer x = Tensor(DataType::kF32, {1, 1, 1, 3}), w = Tensor(DataType::kF32, {1, 1, 1, 1}),
               y = x;
  x.Set(0, INFINITY);
  x.Set(1, NAN);
  x.Set(2, 0x1p-149);
  w.Set(0, -1);
  ASSERT_TRUE(convgrad::Run({OpKind::kConvolution, Window({1, 1}, {0, 0})}, {x.view(), w.view()},
                            {y.view()})
                  .ok());
  EXPECT_EQ(y.At(0), -INFINITY);
  EXPECT_TRUE(std::isnan(y.At(1)));
  EXPECT_EQ(y.At(2), -0x1p-149);
}

// Subnormals are kept, also for a caller that flushes them to zero.
TEST(Plan, TheCallersFloatModeDoesNotShow) {
  TensorBuffer x = Tensor(DataType::kF32, {1, 1, 1, 40}), w = Tensor(DataType::kF32, {1, 1, 1, 1}),
               y = x;
  for (int64_t i = 0; i < x.elements(); ++i) x.Set(i, 0x1p-100);
  w.Set(0, 0x1p-30);
#if defined(__aarch64__)
  uint64_t before = 0;
  asm volatile("mrs %0, fpcr" : "=r"(before));
  asm volatile("msr fpcr, %0" ::"r"(before | 1u << 24));
#elif defined(__x86_64__)
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040u);
#endif
  const Status status = convgrad::Run({OpKind::kConvolution, Window({1, 1}, {0, 0})},
                                      {x.view(), w.view()}, {y.view()}, {.threads = 1});
#if defined(__aarch64__)
  uint64_t after = 0;
  asm volatile("mrs %0, fpcr" : "=r"(after));
  asm volatile("msr fpcr, %0" ::"r"(before));
  EXPECT_EQ(after, before | 1u << 24);
#elif defined(__x86_64__)
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(after & 0xffc0u, (before | 0x8040u) & 0xffc0u);
#endif
  ASSERT_TRUE(status.ok());
  for (int64_t i = 0; i < y.elements(); ++i) EXPECT_EQ(y.At(i), 0x1p-130);
}

// A chain through 17 million tiny-image pixels: (terms + 3) / 2^24, which is more than 1.
TEST(Plan, ErrorBoundOfALongChain) {
  const std::vector<TensorDesc> inputs = {{DataType::kF32, {350000, 1, 7, 7}, {}, {}},
                                          {DataType::kF32, {350000, 1, 7, 7}, {}, {}}};
  const std::vector<TensorDesc> outputs = {{DataType::kF32, {1, 1, 1, 1}, {}, {}}};
  const Result<Plan> plan =
      Plan::Make({OpKind::kConvolutionBackwardWeights, Window({1, 1}, {0, 0})}, inputs, outputs);
  ASSERT_TRUE(plan.ok());
  EXPECT_NEAR(plan->error_bound(), 350000.0 * 49 / 0x1p24, 1e-3);
}

// The bias gradient of ConvTranspose sums more pixels than its weights' gradient does, in chunks of
// its own. Of equal terms all chunks are rounded the same way.
TEST(Plan, ErrorBoundHoldsForTheBiasGradient) {
  constexpr double kValue = 0x1.eda9fap+0;
  TensorBuffer src = Tensor(DataType::kF32, {1, 1, 100, 100}),
               diff_dst = Tensor(DataType::kF32, {1, 1, 1600, 1600});
  TensorBuffer dw = Tensor(DataType::kF32, {1, 1, 16, 16}), db = Tensor(DataType::kF32, {1});
  for (int64_t i = 0; i < diff_dst.elements(); ++i) diff_dst.Set(i, kValue);
  Operation operation{OpKind::kConvTransposeBackwardWeights, Window({16, 16}, {0, 0})};
  operation.attributes.Set("weights_format", "IOX");
  const std::vector<TensorDesc> inputs = {src.desc(), diff_dst.desc()};
  const std::vector<TensorDesc> outputs = {dw.desc(), db.desc()};
  const Result<Plan> plan = Plan::Make(operation, inputs, outputs);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(convgrad::Run(operation, {src.view(), diff_dst.view()}, {dw.view(), db.view()}).ok());
  const double exact = kValue * 1600 * 1600;
  EXPECT_LE(std::abs(db.At(0) - exact), (plan->error_bound() + 0x1p-24) * exact);
}

// PT #68048: a bf16 bias gradient of 256 where 1600 ones are summed.
TEST(Plan, BiasGradientOfOnesIsExact) {
  TensorBuffer x = Tensor(DataType::kBF16, {1, 1, 80, 80}),
               dy = Tensor(DataType::kBF16, {1, 2, 40, 40});
  TensorBuffer dw = Tensor(DataType::kBF16, {2, 1, 3, 3}), db = Tensor(DataType::kBF16, {2});
  for (int64_t i = 0; i < x.elements(); ++i) x.Set(i, 1);
  for (int64_t i = 0; i < dy.elements(); ++i) dy.Set(i, 1);
  ASSERT_TRUE(convgrad::Run({OpKind::kConvolutionBackwardWeights, Window({2, 2}, {1, 1})},
                            {x.view(), dy.view()}, {dw.view(), db.view()})
                  .ok());
  EXPECT_EQ(db.At(0), 1600);
  EXPECT_EQ(db.At(1), 1600);
  EXPECT_EQ(dw.At(4), 1600);  // the tap in the middle, which meets no padding
  EXPECT_EQ(dw.At(0), 1520);  // the first: 39 times 39, rounded once
}

TEST(Plan, ExplainsItself) {
  const std::vector<TensorDesc> inputs = {{DataType::kBF16, {2, 20, 9, 8}, {}, {}},
                                          {DataType::kBF16, {2, 24, 9, 8}, {}, {}}};
  const std::vector<TensorDesc> outputs = {{DataType::kBF16, {24, 20, 3, 3}, {}, {}}};
  Result<Plan> plan = Plan::Make(kWeights, inputs, outputs, {.threads = 3, .workspace_limit = 0});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kernel(), "contract");
  EXPECT_EQ(plan->workspace_bytes(), 0);
  const std::string text = plan->Explain();
  for (const char* part :
       {"ConvolutionBackwardWeights", "src 2x20x9x8 bf16", "diff_weights 24x20x3x3",
        "wgrad bf16 g1 n2 ci20 co24 in1x9x8 taps1x3x3 out1x9x8", "contract runs: the smallest",
        "sums in registers", "threads     3", "0 bytes of at most 0", "expected"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  // 9x8 windows of 3x3 with a border of 1: (27 - 2) * (24 - 2) pairs of pixel and tap.
  EXPECT_EQ(plan->flops(), 2.0 * 2 * 20 * 24 * 25 * 22);
}

// What is assumed is said, and a call costs something however little it computes.
TEST(Plan, ExpectsNoMoreThanItKnows) {
  MultiplyRate rate;
  SetArmCore(0x411fd401, rate);
  EXPECT_EQ(rate.pipes, 4);
  EXPECT_EQ(rate.core, "Neoverse-V1");
  SetArmCore(0x413fd0c1, rate);
  EXPECT_EQ(rate.pipes, 2);
  EXPECT_EQ(rate.core, "Neoverse-N1");
  rate = {};
  SetArmCore(0x610f0221, rate);  // not Arm's: its part number means another core
  EXPECT_EQ(rate.core, "");
  const Operation operation{
      OpKind::kConvolution,
      {{"strides", {1}}, {"pads_begin", {0}}, {"pads_end", {0}}, {"dilations", {1}}}};
  const TensorDesc one{DataType::kF32, {1, 1, 1}};
  const std::vector<TensorDesc> inputs = {one, one};
  const Result<Plan> plan = Plan::Make(operation, inputs);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::string text = plan->Explain();
  const size_t line = text.find("\nexpected    ");
  ASSERT_NE(line, std::string::npos) << text;
  EXPECT_GE(std::stod(text.substr(line + 13)), kCallSeconds * 1e3) << text;
  EXPECT_NE(text.find(RateText(), line), std::string::npos) << text;
  EXPECT_EQ(RateOfCore().knows_clock, RateText().find("GHz assumed") == std::string::npos);
  EXPECT_EQ(RateOfCore().core.empty(), RateText().find("a cycle assumed") != std::string::npos);
}

// Channels first, lines of 48 pixels: whole vectors of every instruction set.
TEST(Plan, ExplainsWhatItShares) {
  const Operation op{OpKind::kConvolution, Window({1, 1}, {1, 1})};
  const std::vector<TensorDesc> inputs = {{DataType::kF32, {1, 16, 48, 48}, {}, {}},
                                          {DataType::kF32, {64, 16, 3, 3}, {}, {}}};
  const std::vector<TensorDesc> outputs = {{DataType::kF32, {1, 64, 48, 48}, {}, {}}};
  Result<Plan> plan = Plan::Make(op, inputs, outputs, {.threads = 1, .kernel = "contract"});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  // All nine where vectors go along pixels, those of a line where they go along channels.
  const std::string all = plan->Explain(), text = all.substr(all.find("\ntile"));
  const bool along_pixels = text.find("vectors along pixels") != std::string::npos;
  const std::string taps = along_pixels ? "9 taps" : "3 taps";
  EXPECT_NE(text.find("a line is packed once for " + taps), std::string::npos) << text;
}

TEST(Plan, OutlivesWhatItWasMadeFrom) {
  std::vector<Plan> plans;
  {
    Operation op = kWeights;
    std::vector<TensorDesc> inputs = {{DataType::kF32, {1, 1, 4, 4}, {}, {}},
                                      {DataType::kF32, {1, 1, 4, 4}, {}, {}}};
    std::vector<TensorDesc> outputs = {{DataType::kF32, {1, 1, 3, 3}, {}, {}}};
    Options options;
    options.kernel = std::string("ora") + "cle";
    Result<Plan> plan = Plan::Make(op, inputs, outputs, options);
    ASSERT_TRUE(plan.ok());
    plans.push_back(*plan);
  }
  TensorBuffer x = Tensor(DataType::kF32, {1, 1, 4, 4}), dw = Tensor(DataType::kF32, {1, 1, 3, 3});
  FillIntegers(x, 1, 1);
  EXPECT_TRUE(plans[0].Run({x.data(), x.data()}, dw.data()).ok());
  EXPECT_EQ(plans[0].kernel(), "oracle");
}

}  // namespace
}  // namespace convgrad::tests
