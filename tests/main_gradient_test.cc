// f32 gradients of weights and bias from bf16 and f16 data: which types an operation accepts and
// what it says of others, and the values, with and without beta, against sums written down here in
// f64. The command's side of it is in main_gradient_command_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "convgrad/convgrad.hpp"
#include "core/problem_text.h"
#include "spec/canonicalize.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tests {
namespace {

using enum DataType;
using enum OpKind;
using tools::FillIntegers;
using tools::FillReals;
using tools::TensorBuffer;

const std::vector<std::string> kKernels = {"contract", "oracle"};

// y = x * w; a ConvTranspose sees y as its src. Windows reach into padding on every side.
constexpr int64_t kBatch = 3, kGroups = 2, kX = 4, kY = 6;
constexpr int64_t kIn[] = {9, 8}, kOut[] = {5, 9}, kTaps[] = {3, 2}, kStride[] = {2, 1};
constexpr int64_t kPad[] = {1, 1};

Attributes Window(const char* format_name, const char* format) {
  return {{"strides", {kStride[0], kStride[1]}},
          {"pads_begin", {kPad[0], kPad[1]}},
          {"pads_end", {kPad[0], kPad[1]}},
          {"dilations", {1, 1}},
          {"groups", kGroups},
          {"data_format", "NCX"},
          {format_name, format}};
}

const Dims kXExtents = {kBatch, kX, kIn[0], kIn[1]}, kYExtents = {kBatch, kY, kOut[0], kOut[1]};
const Dims kWExtents = {kY, kX / kGroups, kTaps[0], kTaps[1]};

struct Name {
  OpKind kind;
  bool transposed;
  const char* format_name;
  const char* format;
  const char* weights;  // as the operation calls its outputs
  const char* bias;
  const char* first;  // and its first input
};
const Name kNames[] = {
    {kConvolutionBackwardWeights, false, "weights_format", "OIX", "diff_weights", "diff_bias",
     "src"},
    {kConvTransposeBackwardWeights, true, "weights_format", "IOX", "diff_weights", "diff_bias",
     "src"},
    {kConvolutionBackpropFilters, false, "filter_format", "OIX", "filter_delta", "bias_delta",
     "input_forward"},
};

// The operation with its tensors: dense, or every tensor strided, channels last, with gaps.
struct Gradient {
  Name name;
  Operation operation;
  TensorBuffer x, y, w, bias;

  Gradient(const Name& which, DataType type, DataType out_type, bool strided)
      : name(which), operation{which.kind, Window(which.format_name, which.format)} {
    const auto buffer = [&](DataType of, const Dims& extents, Dims strides) {
      return TensorBuffer(TensorDesc{of, extents, strided ? std::move(strides) : Dims(), {}});
    };
    x = buffer(type, kXExtents, {720, 1, 80, 10});
    y = buffer(type, kYExtents, {450, -1, 70, 7});
    w = buffer(out_type, kWExtents, {1, 8, 100, 40});
    bias = buffer(out_type, {which.transposed ? kX : kY}, {3});
  }

  std::vector<TensorDesc> InputDescs() const {
    return {(name.transposed ? y : x).desc(), (name.transposed ? x : y).desc()};
  }
  std::vector<const void*> InputData() const {
    return {(name.transposed ? y : x).data(), (name.transposed ? x : y).data()};
  }

  void Run(const std::string& kernel, float beta) {
    const std::vector<TensorDesc> outputs = {w.desc(), bias.desc()};
    Result<Plan> plan = Plan::Make(operation, InputDescs(), outputs,
                                   {.threads = 2, .beta = beta, .kernel = kernel});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->output(0).type, w.desc().type);
    EXPECT_EQ(plan->output(1).type, bias.desc().type);
    error_bound = plan->error_bound();
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    const std::vector<void*> out = {w.data(), bias.data()};
    const Status status = plan->Run(InputData(), out, workspace.data());
    ASSERT_TRUE(status.ok()) << status.message();
  }

  double error_bound = 0;
};

struct Sum {
  double value = 0, magnitude = 0;

  void Add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};

double At(const TensorBuffer& tensor, const Dims& index) {
  return LoadWidened(tensor.desc().type, tensor.data(), tensor.OffsetOf(index));
}

// Image by image and pixel by pixel.
Sum WeightSum(const Gradient& g, const Dims& at) {
  const int64_t group = at[0] / (kY / kGroups), channel = group * (kX / kGroups) + at[1];
  Sum sum;
  for (int64_t n = 0; n < kBatch; ++n) {
    for (int64_t h = 0; h < kOut[0]; ++h) {
      for (int64_t v = 0; v < kOut[1]; ++v) {
        const int64_t in_h = h * kStride[0] + at[2] - kPad[0];
        const int64_t in_v = v * kStride[1] + at[3] - kPad[1];
        if (in_h < 0 || in_h >= kIn[0] || in_v < 0 || in_v >= kIn[1]) continue;
        sum.Add(At(g.x, {n, channel, in_h, in_v}) * At(g.y, {n, at[0], h, v}));
      }
    }
  }
  return sum;
}

Sum BiasSum(const Gradient& g, int64_t channel) {
  const TensorBuffer& data = g.name.transposed ? g.x : g.y;
  const Dims& extents = data.desc().extents;
  Sum sum;
  for (int64_t n = 0; n < kBatch; ++n) {
    for (int64_t h = 0; h < extents[2]; ++h) {
      for (int64_t v = 0; v < extents[3]; ++v) sum.Add(At(data, {n, channel, h, v}));
    }
  }
  return sum;
}

using Check = std::function<void(double got, Sum expected)>;

// Every element of both outputs against its sum and beta times what `before` held.
void ForEachElement(const Gradient& before, const Gradient& after, float beta, const Check& check) {
  const auto each = [&](const TensorBuffer& old, const TensorBuffer& got, const auto& sum_of) {
    for (int64_t e = 0; e < got.elements(); ++e) {
      Sum sum = sum_of(got.IndexOf(e));
      if (beta != 0) sum.Add(static_cast<double>(beta) * old.At(e));
      check(got.At(e), sum);
    }
  };
  each(before.w, after.w, [&](const Dims& at) { return WeightSum(after, at); });
  each(before.bias, after.bias, [&](const Dims& at) { return BiasSum(after, at[0]); });
}

// Each name, kernel, type, beta and layout. `fill` is given a case whose outputs are NaN.
template <class Fill, class Body>
void ForEachRun(const Fill& fill, const Body& body) {
  for (const Name& name : kNames) {
    for (const std::string& kernel : kKernels) {
      for (const DataType type : {kBF16, kF16}) {
        for (const float beta : {0.0f, 1.0f, 0.5f}) {
          for (const bool strided : {false, true}) {
            SCOPED_TRACE(std::string(NameOf(name.kind)) + " " + kernel + " " +
                         std::string(NameOf(type)) + " beta " + std::to_string(beta) +
                         (strided ? " strided" : ""));
            Gradient gradient(name, type, kF32, strided);
            for (TensorBuffer* out : {&gradient.w, &gradient.bias}) {
              for (int64_t e = 0; e < out->elements(); ++e) {
                out->Set(e, std::numeric_limits<double>::quiet_NaN());
              }
            }
            fill(gradient, beta);
            const Gradient before = gradient;
            gradient.Run(kernel, beta);
            if (testing::Test::HasFatalFailure()) return;
            body(before, gradient, kernel, beta);
            EXPECT_TRUE(gradient.w.BlankElementsAndCheckGaps());
            EXPECT_TRUE(gradient.bias.BlankElementsAndCheckGaps());
          }
        }
      }
    }
  }
}

// Exact whatever the order of the sum, and beyond the 8 bits of bf16 and the 11 of f16: no value of
// those types is there on the way.
TEST(MainGradients, IntegersAreExact) {
  int64_t beyond = 0;
  ForEachRun(
      [](Gradient& g, float beta) {
        FillIntegers(g.x, 60, 1);
        FillIntegers(g.y, 60, 2);
        if (beta == 0) return;  // NaNs stay, and must not be read
        FillIntegers(g.w, 100000, 3);
        FillIntegers(g.bias, 100000, 4);
      },
      [&](const Gradient& before, const Gradient& after, const std::string&, float beta) {
        ForEachElement(before, after, beta, [&](double got, Sum expected) {
          ASSERT_EQ(got, expected.value);
          const double narrow = Widen(Narrow<F16>(std::min(std::abs(got), 65504.0)));
          beyond += narrow != std::abs(got) ? 1 : 0;
        });
      });
  EXPECT_GT(beyond, 100);
}

// The oracle's order is the order of the sums above, so that even its last bit is theirs; any other
// kernel stays within what its plan states.
TEST(MainGradients, RealsAreRoundedOnceToF32) {
  ForEachRun(
      [](Gradient& g, float beta) {
        FillReals(g.x, 5);
        FillReals(g.y, 6);
        if (beta == 0) return;
        FillReals(g.w, 7);
        FillReals(g.bias, 8);
      },
      [](const Gradient& before, const Gradient& after, const std::string& kernel, float beta) {
        ForEachElement(before, after, beta, [&](double got, Sum expected) {
          const float rounded = static_cast<float>(expected.value);
          if (kernel == "oracle") {
            ASSERT_EQ(static_cast<float>(got), rounded);
          } else {
            ASSERT_NEAR(got, expected.value,
                        after.error_bound * expected.magnitude + 0x1p-24 * std::abs(rounded));
          }
        });
      });
}

// Nothing to add: what the output held comes back as it was, every bit of it.
TEST(MainGradients, BetaReadsTheOutputAsF32) {
  for (const Name& name : kNames) {
    for (const std::string& kernel : kKernels) {
      for (const DataType type : {kBF16, kF16}) {
        Gradient gradient(name, type, kF32, false);
        FillIntegers(gradient.x, 0, 1);
        FillIntegers(gradient.y, 0, 1);
        FillReals(gradient.w, 2);
        FillReals(gradient.bias, 3);
        const Gradient before = gradient;
        gradient.Run(kernel, 1);
        EXPECT_TRUE(gradient.w.SameBytes(before.w)) << kernel;
        EXPECT_TRUE(gradient.bias.SameBytes(before.bias)) << kernel;
      }
    }
  }
}

// Two halves of the batch, the second onto the first, are the whole: on integers, exactly.
TEST(MainGradients, MicroBatchesAddUp) {
  for (const std::string& kernel : kKernels) {
    Gradient whole(kNames[0], kBF16, kF32, false);
    FillIntegers(whole.x, 60, 1);
    FillIntegers(whole.y, 60, 2);
    Gradient parts = whole;
    whole.Run(kernel, 0);
    float beta = 0;
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}}) {
      std::vector<ConstTensorView> inputs = {parts.x.view(), parts.y.view()};
      for (ConstTensorView& view : inputs) {
        view.desc.extents[0] = count;
        view.data = static_cast<const char*>(view.data) + first * view.desc.strides[0] * 2;
      }
      const Status status =
          convgrad::Run(parts.operation, inputs, {parts.w.view(), parts.bias.view()},
                        {.beta = beta, .kernel = kernel});
      ASSERT_TRUE(status.ok()) << status.message();
      beta = 1;
    }
    EXPECT_TRUE(parts.w.SameBytes(whole.w));
    EXPECT_TRUE(parts.bias.SameBytes(whole.bias));
  }
}

// ---- What is accepted ----

TensorDesc Of(DataType type, Dims extents = {}) { return {type, std::move(extents), {}, {}}; }

Result<Plan> MakePlan(const Name& name, DataType type, const std::vector<TensorDesc>& outputs,
                      bool with_shape = false) {
  Operation operation{name.kind, Window(name.format_name, name.format)};
  if (with_shape) {
    const bool first_generation = name.kind == kConvolutionBackpropFilters;
    operation.attributes.Set(first_generation ? "filter_shape" : "weights_shape", kWExtents);
  }
  const std::vector<TensorDesc> inputs = {Of(type, name.transposed ? kYExtents : kXExtents),
                                          Of(type, name.transposed ? kXExtents : kYExtents)};
  return Plan::Make(operation, inputs, outputs);
}

TEST(MainGradientTypes, AreAskedForByTheOutput) {
  for (const Name& name : kNames) {
    const int64_t channels = name.transposed ? kX : kY;
    for (const DataType type : {kF32, kBF16, kF16}) {
      for (const DataType out : {type, kF32}) {
        // Extents that are known, in part, and not at all.
        for (const auto& [weights, bias] : {std::pair{kWExtents, Dims{channels}},
                                            {Dims{-1, -1, kTaps[0], kTaps[1]}, Dims{-1}},
                                            {Dims{}, Dims{}}}) {
          Result<Plan> both =
              MakePlan(name, type, {Of(out, weights), Of(out, bias)}, weights.empty());
          ASSERT_TRUE(both.ok()) << both.status().message();
          ASSERT_EQ(both->num_outputs(), 2);
          EXPECT_EQ(both->output(0).type, out);
          EXPECT_EQ(both->output(0).extents, kWExtents);
          EXPECT_EQ(both->output(1).type, out);
          EXPECT_EQ(both->output(1).extents, Dims{channels});
          Result<Plan> alone = MakePlan(name, type, {Of(out, weights)}, weights.empty());
          ASSERT_TRUE(alone.ok()) << alone.status().message();
          EXPECT_EQ(alone->num_outputs(), 1);
          EXPECT_EQ(alone->output(0).type, out);
        }
      }
      // Not asked for: the type of the inputs.
      for (const std::vector<TensorDesc>& outputs :
           {std::vector<TensorDesc>{}, {TensorDesc()}, {TensorDesc(), Of(type)}}) {
        Result<Plan> plan = MakePlan(name, type, outputs, true);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        EXPECT_EQ(plan->output(0).type, type);
      }
    }
  }
}

TEST(MainGradientTypes, EveryOtherMixIsNamed) {
  for (const Name& name : kNames) {
    const std::string w = name.weights, b = name.bias, first = name.first;
    const auto expect = [&](DataType type, std::vector<TensorDesc> outputs, std::string message) {
      const Result<Plan> plan = MakePlan(name, type, outputs, true);
      ASSERT_FALSE(plan.ok()) << message;
      EXPECT_EQ(plan.status().code(), StatusCode::kInvalidType);
      EXPECT_EQ(plan.status().message(), message);
    };
    expect(kBF16, {Of(kF16)}, w + " has type f16, expected bf16 as " + first + " has, or f32");
    expect(kF16, {Of(kBF16)}, w + " has type bf16, expected f16 as " + first + " has, or f32");
    expect(kF16, {Of(kS32)}, w + " has type s32, expected f16 as " + first + " has, or f32");
    expect(kF32, {Of(kBF16)}, w + " has type bf16, expected f32 as " + first + " has");
    expect(kF32, {Of(kF32), Of(kF16)}, b + " has type f16, expected f32 as " + first + " has");
    expect(kBF16, {Of(kF32), Of(kBF16)}, b + " has type bf16, expected f32 as " + w + " has");
    expect(kBF16, {Of(kF32), Of(kF16)}, b + " has type f16, expected f32 as " + w + " has");
    expect(kBF16, {Of(kBF16), Of(kF32)}, b + " has type f32, expected bf16 as " + w + " has");
    // Without a type of its own, output 0 is as small as the inputs.
    expect(kF16, {TensorDesc(), Of(kF32)},
           b + " has type f32, expected f16 as " + first + " has, or f32 beside a " + w +
               " that is given as f32");
  }
}

// Of the other operations all tensors have one type.
TEST(MainGradientTypes, OnlyGradientsOfWeightsMayBeWider) {
  const auto message = [](OpKind kind, const char* format, std::vector<TensorDesc> inputs,
                          const TensorDesc& output) {
    Operation operation{kind, Window("weights_format", format)};
    const std::vector<TensorDesc> outputs = {output};
    const Result<Plan> plan = Plan::Make(operation, inputs, outputs);
    EXPECT_FALSE(plan.ok());
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidType);
    return plan.status().message();
  };
  const TensorDesc x = Of(kBF16, kXExtents), y = Of(kBF16, kYExtents), w = Of(kBF16, kWExtents);
  EXPECT_EQ(message(kConvolution, "OIX", {x, w}, Of(kF32)),
            "dst has type f32, expected bf16 as src has");
  EXPECT_EQ(message(kConvolutionBackwardData, "OIX", {y, w}, Of(kF32, kXExtents)),
            "diff_src has type f32, expected bf16 as diff_dst has");
  EXPECT_EQ(message(kConvTranspose, "IOX", {y, w}, Of(kF32)),
            "dst has type f32, expected bf16 as src has");
  EXPECT_EQ(message(kConvTransposeBackwardData, "IOX", {x, w}, Of(kF32)),
            "diff_src has type f32, expected bf16 as diff_dst has");
  EXPECT_EQ(message(kConvolutionBackwardWeights, "OIX", {x, Of(kF32, kYExtents)}, Of(kF32)),
            "diff_dst has type f32, expected bf16 as src has");
}

// An f32 element is twice as large: what fits as bf16 may not.
TEST(MainGradientTypes, BytesAreCountedInTheOutputsType) {
  const auto make = [](DataType out) {
    const int64_t far = int64_t{1} << 59;
    TensorDesc weights = Of(out, kWExtents);
    weights.strides = {far, 6, 2, 1};
    return MakePlan(kNames[0], kBF16, {weights});
  };
  EXPECT_TRUE(make(kBF16).ok());
  EXPECT_NE(make(kF32).status().message().find("spans more than 2^63 - 1 bytes"),
            std::string::npos);
}

// ---- What becomes of it ----

TEST(MainGradientPlan, IsAProblemOfTwoTypes) {
  for (const Name& name : kNames) {
    for (const DataType type : {kF32, kBF16, kF16}) {
      for (const DataType out : {type, kF32}) {
        const Gradient gradient(name, type, out, false);
        const std::vector<TensorDesc> outputs = {gradient.w.desc(), gradient.bias.desc()};
        const auto checked = convgrad::Check(gradient.operation, gradient.InputDescs(), outputs);
        ASSERT_TRUE(checked.ok()) << checked.status().message();
        const Problem problem = Canonicalize(*checked);
        EXPECT_EQ(problem.type, type);
        EXPECT_EQ(problem.out_type, out);
      }
    }
  }
}

TEST(MainGradientPlan, ExplainsItself) {
  const Result<Plan> plan = MakePlan(kNames[0], kBF16, {Of(kF32, kWExtents), Of(kF32)});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::string text = plan->Explain();
  for (const char* part :
       {"output      diff_weights 6x2x3x2 f32 strides", "output      diff_bias 6 f32 strides",
        "input       src 3x4x9x8 bf16 strides", "problem     wgrad bf16:f32 g2 n3 ci2 co3 "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

}  // namespace
}  // namespace convgrad::tests
