// Gradients of weights and bias for each image: the bits of a loop over the images, the values of
// the formulas, shapes and mistakes. The command's side of it is in per_sample_command_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convgrad/convgrad.hpp"
#include "core/problem_text.h"
#include "spec/canonicalize.h"
#include "spec/schema.h"
#include "tests/bits_case.h"
#include "tests/random_case.h"
#include "tools/case_check.h"

namespace convgrad::tests {
namespace {

using enum DataType;
using enum OpKind;
using tools::TensorBuffer;

// Output extents and strides with the images first: `apart` elements from one to the next.
TensorDesc ForEachImage(TensorDesc one, int64_t batch, int64_t apart) {
  if (one.strides.empty()) one.strides = TensorBuffer(one).desc().strides;
  one.extents.insert(one.extents.begin(), batch);
  one.strides.insert(one.strides.begin(), apart);
  return one;
}

const void* Image(const void* data, const TensorDesc& desc, int64_t n) {
  return static_cast<const char*>(data) + n * desc.strides[0] * SizeOf(desc.type);
}

// ---- The bits of a loop ----

// Tiny images, whose sums are chains that go on from beta * out; several chunks; groups and 3 axes.
const BitsProblem kProblems[] = {
    {"tiny", 5, 1, 24, 20, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"chunks", 4, 1, 16, 24, {26, 24}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"groups", 3, 2, 8, 12, {31, 21}, {3, 2}, {2, 1}, {1, 2}, {1, 1}},
    {"points", 6, 1, 40, 32, {19, 18}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
    {"volumes", 3, 1, 4, 6, {5, 7, 9}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}},
};

class Gradients {
 public:
  Gradients(const BitsProblem& p, OpKind kind, DataType type, DataType out, Layout layout)
      : batch_(p.batch), case_(p, kind, type, layout, true, out) {
    for (const TensorDesc& one : case_.OutputDescs()) {
      int64_t elements = 3;  // a gap between images
      for (int64_t extent : one.extents) elements *= extent;
      descs_.push_back(ForEachImage(one, batch_, elements));
    }
  }

  std::vector<TensorBuffer> NewOutputs() const {
    std::vector<TensorBuffer> outputs;
    for (const TensorDesc& desc : descs_) {
      outputs.emplace_back(desc);
      tools::FillReals(outputs.back(), 9);
    }
    return outputs;
  }

  // As a user without per_sample has it.
  std::vector<TensorBuffer> Loop(const Options& options) {
    std::vector<TensorBuffer> outputs = NewOutputs();
    std::vector<TensorDesc> inputs = case_.InputDescs();
    const std::vector<TensorDesc> all = inputs, one = case_.OutputDescs();
    for (TensorDesc& input : inputs) input.extents[0] = 1;
    const Result<Plan> plan = Plan::Make(case_.operation(), inputs, one, options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    for (int64_t n = 0; n < batch_; ++n) {
      std::vector<const void*> in = case_.InputData();
      std::vector<void*> out;
      for (size_t i = 0; i < in.size(); ++i) in[i] = Image(in[i], all[i], n);
      for (TensorBuffer& output : outputs) {
        out.push_back(const_cast<void*>(Image(output.data(), output.desc(), n)));
      }
      const Status status = plan->Run(in, out, workspace.data());
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return outputs;
  }

  std::vector<TensorBuffer> AtOnce(Options options) {
    std::vector<TensorBuffer> outputs = NewOutputs();
    options.per_sample = true;
    const Result<Plan> plan = Plan::Make(case_.operation(), case_.InputDescs(), descs_, options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (options.workspace_limit >= 0) {
      EXPECT_LE(plan->workspace_bytes(), options.workspace_limit);
    }
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    std::vector<void*> out;
    for (TensorBuffer& output : outputs) out.push_back(output.data());
    const Status status = plan->Run(case_.InputData(), out, workspace.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return outputs;
  }

  BitsCase& item() { return case_; }
  const std::vector<TensorDesc>& descs() const { return descs_; }

 private:
  int64_t batch_;
  BitsCase case_;
  std::vector<TensorDesc> descs_;
};

struct Types {
  DataType data, out;
};
const Types kTypes[] = {{kF32, kF32}, {kBF16, kBF16}, {kF16, kF16}, {kBF16, kF32}, {kF16, kF32}};
const Layout kLayouts[] = {{false, false}, {true, true}, {true, false}};

TEST(PerSampleBits, AreThoseOfALoopOverTheImages) {
  for (const BitsProblem& problem : kProblems) {
    for (const OpKind kind : {kConvolutionBackwardWeights, kConvTransposeBackwardWeights}) {
      for (const Types& types : kTypes) {
        for (const Layout layout : kLayouts) {
          for (const float beta : {0.0f, 0.5f}) {
            Gradients gradients(problem, kind, types.data, types.out, layout);
            const std::vector<TensorBuffer> loop = gradients.Loop({.threads = 1, .beta = beta});
            for (const int threads : {1, 2, 3, 7}) {
              for (const int64_t limit : {int64_t{0}, int64_t{100000}, Options::kNoLimit}) {
                const std::vector<TensorBuffer> got =
                    gradients.AtOnce({.threads = threads, .workspace_limit = limit, .beta = beta});
                ASSERT_TRUE(got[0].SameBytes(loop[0]) && got[1].SameBytes(loop[1]))
                    << problem.name << " " << NameOf(kind) << " " << NameOf(types.data) << ":"
                    << NameOf(types.out) << " " << layout.channels_last << layout.weights_taps_first
                    << " beta " << beta << " threads " << threads << " workspace " << limit;
              }
            }
          }
        }
      }
    }
  }
}

// One chunk at a time would be enough for one image: with one, chunks are summed side by side.
TEST(PerSampleBits, OfOneImageAreThoseOfTheWholeBatch) {
  BitsProblem problem = kProblems[3];
  problem.batch = 1;
  problem.in = {60, 60};
  for (const Layout layout : kLayouts) {
    Gradients gradients(problem, kConvolutionBackwardWeights, kF32, kF32, layout);
    const std::vector<TensorBuffer> loop = gradients.Loop({.threads = 1});
    for (const int threads : {1, 2, 7}) {
      const std::vector<TensorBuffer> got = gradients.AtOnce({.threads = threads});
      EXPECT_TRUE(got[0].SameBytes(loop[0]) && got[1].SameBytes(loop[1])) << threads;
    }
  }
}

// Of a few images of many pixels each is summed by all threads, its chunks side by side.
TEST(PerSampleBits, OfAFewImagesAreThoseOfALoop) {
  BitsProblem problem = kProblems[3];
  problem.batch = 3;
  problem.in = {60, 60};
  for (const Types& types : kTypes) {
    for (const Layout layout : kLayouts) {
      Gradients gradients(problem, kConvolutionBackwardWeights, types.data, types.out, layout);
      const std::vector<TensorBuffer> loop = gradients.Loop({.threads = 1, .beta = 0.5f});
      for (const int64_t limit : {int64_t{0}, int64_t{100000}, Options::kNoLimit}) {
        const std::vector<TensorBuffer> got =
            gradients.AtOnce({.threads = 7, .workspace_limit = limit, .beta = 0.5f});
        EXPECT_TRUE(got[0].SameBytes(loop[0]) && got[1].SameBytes(loop[1]))
            << NameOf(types.data) << " " << limit;
      }
    }
  }
  Gradients gradients(problem, kConvolutionBackwardWeights, kF32, kF32, {});
  const Result<Plan> plan = Plan::Make(gradients.item().operation(), gradients.item().InputDescs(),
                                       gradients.descs(), {.threads = 7, .per_sample = true});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_NE(plan->Explain().find(" of them side by side"), std::string::npos) << plan->Explain();
}

// Threads meet at the end, not after every image.
TEST(PerSampleRuns, AreOneParallelLoop) {
  struct Host {
    int calls = 0, largest = 0;
  } host;
  const auto run = [](void* of, int count, void (*task)(void*, int), void* context) {
    Host& to = *static_cast<Host*>(of);
    ++to.calls;
    to.largest = std::max(to.largest, count);
    for (int i = 0; i < count; ++i) task(context, i);
  };
  Gradients gradients(kProblems[1], kConvolutionBackwardWeights, kF32, kF32, {});
  const std::vector<TensorBuffer> loop = gradients.Loop({.threads = 1});
  const std::vector<TensorBuffer> got =
      gradients.AtOnce({.threads = 3, .parallel_for = {run, &host}});
  EXPECT_TRUE(got[0].SameBytes(loop[0]) && got[1].SameBytes(loop[1]));
  EXPECT_LE(host.calls, 2);  // diff_weights and diff_bias
  EXPECT_EQ(host.largest, 3);
}

// ---- Values ----

TEST(PerSampleValues, OfRandomProblemsAreThoseOfTheFormulas) {
  int checked = 0;
  for (uint64_t seed = 0; checked < 300; ++seed) {
    Recipe recipe = RandomRecipe(seed);
    if (SchemaOf(static_cast<OpKind>(recipe.kind)).outputs[0].role != Role::kWeights) continue;
    recipe.batch = static_cast<int64_t>(seed % 4);  // 0, too
    std::optional<tools::Case> item = Build(recipe);
    if (!item) continue;
    for (TensorDesc& output : item->outputs) {
      if (!output.given() || output.extents.empty()) continue;
      if (seed % 3 == 0) {  // one image's elements between another's
        if (output.strides.empty()) output.strides = TensorBuffer(output).desc().strides;
        for (int64_t& stride : output.strides) stride *= recipe.batch + 1;
        output = ForEachImage(output, recipe.batch, seed % 2 == 0 ? 1 : -1);
      } else {
        const TensorBuffer one(output);
        output = ForEachImage(output, recipe.batch, one.stored() + static_cast<int64_t>(seed % 2));
      }
    }
    tools::CheckRequest request;
    request.options = {.threads = 1 + static_cast<int>(seed % 3), .per_sample = true};
    const tools::CheckReport report = tools::CheckCase(*item, request);
    ASSERT_TRUE(report.passed) << report.failure << "\n  replay: convgrad verify --per_sample "
                               << tools::ToText(item->operation, item->inputs, item->outputs);
    ++checked;
  }
}

// Sums of integers are exact: the gradients of all images add up to the gradient.
TEST(PerSampleValues, AddUpToTheGradient) {
  for (const std::string kernel : {"contract", "oracle"}) {
    Gradients gradients(kProblems[2], kConvTransposeBackwardWeights, kF32, kF32, {});
    BitsCase& item = gradients.item();
    tools::FillIntegers(item.x().buffer, 4, 1);
    tools::FillIntegers(item.y().buffer, 4, 2);
    item.Run({.kernel = kernel});
    const std::vector<TensorBuffer> each = gradients.AtOnce({.kernel = kernel});
    const TensorBuffer& whole = item.w().buffer;
    bool differ = false;
    for (int64_t e = 0; e < whole.elements(); ++e) {
      double sum = 0;
      for (int64_t n = 0; n < 3; ++n) sum += each[0].At(n * whole.elements() + e);
      ASSERT_EQ(sum, whole.At(e));
      differ |= each[0].At(e) != each[0].At(whole.elements() + e);
    }
    EXPECT_TRUE(differ);
    for (int64_t o = 0; o < item.bias().elements(); ++o) {
      double sum = 0;
      for (int64_t n = 0; n < 3; ++n) sum += each[1].At(n * item.bias().elements() + o);
      ASSERT_EQ(sum, item.bias().At(o));
    }
  }
}

// The check can fail: two images' gradients exchanged, in either output.
TEST(PerSampleValues, OfAnotherImageAreFound) {
  const Result<tools::Case> item = tools::ParseCase(
      std::vector<std::string>{"ConvolutionBackwardWeights", "src=2x9x9x2", "diff_dst=2x7x7x3",
                               "diff_bias=2x3", "diff_weights=2x3x3x2x3", "--strides=1,1",
                               "--pads_begin=0,0", "--pads_end=0,0", "--dilations=1,1"});
  ASSERT_TRUE(item.ok()) << item.status().message();
  tools::CheckRequest request;
  request.options.per_sample = true;
  EXPECT_EQ(tools::CheckCase(*item, request).failure, "");
  for (const size_t output : {0u, 1u}) {
    request.tamper = [&](std::vector<TensorBuffer>& outputs, bool integers) {
      if (!integers) return;
      TensorBuffer& out = outputs[output];
      for (int64_t e = 0; e < out.elements() / 2; ++e) {
        const double first = out.At(e);
        out.Set(e, out.At(out.elements() / 2 + e));
        out.Set(out.elements() / 2 + e, first);
      }
    };
    EXPECT_NE(tools::CheckCase(*item, request).failure.find("the formula says"), std::string::npos);
  }
}

TEST(PerSampleValues, BetaZeroReadsNothingAndGapsStay) {
  for (const std::string kernel : {"contract", "oracle"}) {
    Gradients gradients(kProblems[1], kConvolutionBackwardWeights, kF32, kF32, {});
    const std::vector<TensorDesc>& descs = gradients.descs();
    std::vector<TensorBuffer> outputs = {TensorBuffer(descs[0]), TensorBuffer(descs[1])};
    for (TensorBuffer& output : outputs) {
      for (int64_t e = 0; e < output.elements(); ++e) output.Set(e, NAN);
    }
    BitsCase& item = gradients.item();
    const Result<Plan> plan =
        Plan::Make(item.operation(), item.InputDescs(), descs,
                   {.workspace_limit = 0, .kernel = kernel, .per_sample = true});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const std::vector<void*> out = {outputs[0].data(), outputs[1].data()};
    ASSERT_TRUE(plan->Run(item.InputData(), out).ok());
    for (TensorBuffer& output : outputs) {
      for (int64_t e = 0; e < output.elements(); ++e) ASSERT_TRUE(std::isfinite(output.At(e)));
      EXPECT_TRUE(output.BlankElementsAndCheckGaps());
    }
  }
}

// ---- Shapes and mistakes ----

const Attributes kWindow = {
    {"strides", {1, 1}}, {"pads_begin", {1, 1}}, {"pads_end", {1, 1}},     {"dilations", {1, 1}},
    {"groups", 2},       {"data_format", "NCX"}, {"weights_format", "OIX"}};

struct Request {
  std::vector<TensorDesc> outputs;
  Attributes attributes = kWindow;
  OpKind kind = kConvolutionBackwardWeights;
  TensorDesc shape = {};
};

Result<Plan> Make(const Request& request) {
  const std::vector<TensorDesc> inputs = {
      {kBF16, {5, 4, 8, 8}}, {kBF16, {5, 6, 8, 8}}, request.shape};
  return Plan::Make({request.kind, request.attributes}, inputs, request.outputs,
                    {.per_sample = true});
}

const Dims kFull = {5, 6, 2, 3, 3}, kBias = {5, 6};

TEST(PerSampleShapes, AreInferred) {
  Attributes with_shape = kWindow;
  with_shape.Set("weights_shape", {6, 2, 3, 3});
  TensorDesc shape{kS32, {4}, {}, {6, 2, 3, 3}};
  const TensorDesc none, unknown{kBF16, {-1, -1, -1, 3, 3}}, own{kBF16, kFull};
  for (const DataType type : {kBF16, kF32}) {
    for (const Request& request :
         {Request{{{type, kFull}, {type, kBias}}}, Request{{{type, {-1, -1, 2, 3, 3}}, {type}}},
          Request{{{type}, {type, {-1, -1}}}, with_shape},
          Request{{{type}, {type, {5, -1}}}, kWindow, kConvolutionBackwardWeights, shape}}) {
      const Result<Plan> plan = Make(request);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(plan->output(0).extents, kFull);
      EXPECT_EQ(plan->output(0).strides, (Dims{108, 18, 9, 3, 1}));
      EXPECT_EQ(plan->output(0).type, type);
      EXPECT_EQ(plan->output(1).extents, kBias);
      EXPECT_EQ(plan->output(1).strides, (Dims{6, 1}));
      EXPECT_EQ(plan->output(1).type, type);
    }
  }
}

// The numbers of a shape tensor are those of one gradient, at any time.
TEST(PerSampleShapes, TensorsKnownLaterAreThoseOfOneGradient) {
  const Result<Plan> plan =
      Make({{{kBF16, kFull}}, kWindow, kConvolutionBackwardWeights, {kS32, {4}}});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<char> in(5 * 6 * 64 * 2), out(5 * 108 * 2);
  std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
  const int32_t right[] = {6, 2, 3, 3}, wrong[] = {6, 2, 3, 1};
  EXPECT_TRUE(plan->Run({in.data(), in.data(), right}, out.data(), workspace.data()).ok());
  EXPECT_EQ(plan->Run({in.data(), in.data(), wrong}, out.data(), workspace.data()).message(),
            "weights_shape is 6x2x3x1, the plan was made for 6x2x3x3");
}

TEST(PerSampleShapes, MistakesAreNamed) {
  Attributes with_shape = kWindow, wrong_shape = kWindow, long_shape = kWindow;
  with_shape.Set("weights_shape", {6, 2, 3, 3});
  wrong_shape.Set("weights_shape", {6, 4, 3, 3});
  long_shape.Set("weights_shape", {5, 6, 2, 3, 3});
  const auto expect = [](const Request& request, const std::string& message) {
    const Result<Plan> plan = Make(request);
    ASSERT_FALSE(plan.ok()) << message;
    EXPECT_EQ(plan.status().message(), message);
  };
  expect({{{kBF16, {6, 2, 3, 3}}}},
         "diff_weights has rank 4, expected 5: N, then the axes of one gradient");
  expect({{{kBF16, kFull}, {kBF16, {6}}}},
         "diff_bias has rank 1, expected 2: N, then the axes of one gradient");
  expect({{{kBF16, {4, 6, 2, 3, 3}}}},
         "diff_weights dim 0 is 4, expected the batch 5 of src, as per_sample asks for a gradient "
         "of each image");
  expect({{{kBF16, kFull}, {kBF16, {1, 6}}}},
         "diff_bias dim 0 is 1, expected the batch 5 of src, as per_sample asks for a gradient of "
         "each image");
  expect({{{kBF16, kFull}, {kBF16, {5, 7}}}}, "diff_bias dim 1 is 7, expected diff_dst channels 6");
  expect({{{kBF16, {5, 6, 4, 3, 3}}}},
         "diff_weights dim 2 is 4, expected src channels 4 / groups 2 = 2");
  expect({{}, wrong_shape}, "weights_shape dim 1 is 4, expected src channels 4 / groups 2 = 2");
  expect({{}, long_shape},
         "attribute 'weights_shape' has 5 entries, expected 4, one for each axis of the output");
  expect({{{kBF16, {5, 6, 2, 3, 2}}}, with_shape},
         "diff_weights dim 4 is 2, expected 3 as weights_shape says: diff_weights is 5x6x2x3x2, it "
         "must be 5x6x2x3x3");
  expect({{{kBF16, kFull, {0, 18, 9, 3, 1}}}},
         "diff_weights of 5x6x2x3x3 with strides 0,18,9,3,1 has elements that share memory, an "
         "output must not");
  expect({{}},
         "weights_shape is needed: ConvolutionBackwardWeights cannot infer dim 3 of diff_weights; "
         "give it as input, as attribute or as the output's own shape");
  EXPECT_EQ(Make({{{kBF16, kFull}}}).ok(), true);
}

TEST(PerSampleShapes, OtherOperationsHaveNoSuchOption) {
  for (const OpKind kind :
       {kConvolution, kConvolutionBackwardData, kConvTranspose, kConvTransposeBackwardData,
        kConvolutionBackpropData, kConvTransposeBackpropData}) {
    const Result<Plan> plan = Make({{}, kWindow, kind});
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(plan.status().message(),
              "option per_sample is set, " + std::string(NameOf(kind)) +
                  " does not have it: only gradients of weights are sums over images");
  }
}

// Nothing to write, however many groups there could be.
TEST(PerSampleShapes, EmptyTensorsAreLegal) {
  Attributes many = kWindow;
  many.Set("groups", int64_t{1} << 62);
  const std::vector<TensorDesc> inputs = {{kF32, {5, 0, 8, 8}}, {kF32, {5, 0, 8, 8}}};
  const std::vector<TensorDesc> outputs = {{kF32, {5, 0, 0, 3, 3}}, {kF32, {5, 0}}};
  for (const std::string kernel : {"contract", "oracle"}) {
    const Result<Plan> plan = Plan::Make({kConvolutionBackwardWeights, many}, inputs, outputs,
                                         {.kernel = kernel, .per_sample = true});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const std::vector<const void*> in = {nullptr, nullptr};
    const std::vector<void*> out = {nullptr, nullptr};
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()) + 1);
    EXPECT_TRUE(plan->Run(in, out, workspace.data()).ok());
  }
}

// ---- What becomes of it ----

TEST(PerSamplePlan, ExplainsItself) {
  const Result<Plan> plan = Make({{{kF32, kFull}, {kF32, kBias, {1, 5}}}});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::string text = plan->Explain();
  const std::string problem =
      "wgrad bf16:f32 g2 n5 ci2 co3 in1x8x8 taps1x3x3 out1x8x8 s1x1x1 d1x1x1 p0x1x1 bias[5] "
      "per_sample[108,1]";
  for (const std::string& part : {std::string("output      diff_weights 5x6x2x3x3 f32 strides"),
                                  std::string("output      diff_bias 5x6 f32 strides 1,5"),
                                  "problem     " + problem + "\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  const Result<Problem> parsed = ParseProblem(problem);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(ToText(*parsed), problem);
}

// A sum over one image is shorter than one over five, and is off by less.
TEST(PerSamplePlan, BoundIsThatOfOneImage) {
  const Result<Plan> each = Make({{{kBF16, kFull}, {kBF16, kBias}}});
  std::vector<TensorDesc> inputs = {{kBF16, {1, 4, 8, 8}}, {kBF16, {1, 6, 8, 8}}};
  const std::vector<TensorDesc> outputs = {{kBF16, {6, 2, 3, 3}}, {kBF16, {6}}};
  const Operation operation{kConvolutionBackwardWeights, kWindow};
  const Result<Plan> one = Plan::Make(operation, inputs, outputs);
  for (TensorDesc& input : inputs) input.extents[0] = 5;
  const Result<Plan> whole = Plan::Make(operation, inputs, outputs);
  ASSERT_TRUE(each.ok() && one.ok() && whole.ok());
  EXPECT_EQ(each->error_bound(), one->error_bound());
  EXPECT_LT(each->error_bound(), whole->error_bound());
  EXPECT_EQ(each->flops(), whole->flops());
}

}  // namespace
}  // namespace convgrad::tests
