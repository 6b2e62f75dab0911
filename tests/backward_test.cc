// Any of the gradients of a forward operation in one call: the bits of the single operations for
// every subset, what is read and computed for it, shapes and mistakes, and the command.
#include "convgrad/backward.h"

#include <gtest/gtest.h>

#include <cstring>

#include "convgrad/convgrad.hpp"
#include "tests/bits_case.h"
#include "tests/command_line.h"

namespace convgrad::tests {
namespace {

using enum DataType;
using enum OpKind;
using tools::TensorBuffer;

const BitsProblem kProblems[] = {
    {"chunks", 3, 1, 16, 24, {26, 24}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"strided", 4, 2, 8, 12, {13, 10}, {3, 2}, {2, 2}, {1, 2}, {1, 1}},
    {"points", 2, 1, 40, 32, {30}, {1}, {1}, {1}, {0}},
    {"volumes", 2, 1, 3, 5, {5, 6, 7}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}},
};

// One forward operation with its tensors, in any layout.
class Layer {
 public:
  Layer(const BitsProblem& p, bool transposed, DataType type, Layout layout,
        DataType gradient_type = kUndef)
      : transposed_(transposed),
        gradient_type_(gradient_type == kUndef ? type : gradient_type),
        case_(p, transposed ? kConvTranspose : kConvolution, type, layout, false) {}

  const Operation& forward() { return case_.operation(); }
  IndexedTensor& src() { return transposed_ ? case_.y() : case_.x(); }
  IndexedTensor& dst() { return transposed_ ? case_.x() : case_.y(); }
  IndexedTensor& weights() { return case_.w(); }
  int64_t channels() { return dst().buffer.desc().extents[1]; }
  std::vector<TensorDesc> Inputs() {
    return {src().InFormat(), weights().InFormat(), dst().InFormat()};
  }
  std::vector<const void*> Data() {
    return {src().buffer.data(), weights().buffer.data(), dst().buffer.data()};
  }
  // diff_src, diff_weights, diff_bias; those of `subset` (bits 0 to 2) are given.
  std::vector<TensorDesc> Outputs(int subset) {
    std::vector<TensorDesc> descs(3);
    if (subset & 1) descs[0] = src().InFormat();
    if (subset & 2) descs[1] = weights().InFormat();
    if (subset & 4) descs[2] = {gradient_type_, {channels()}, {}, {}};
    if (subset & 2) descs[1].type = gradient_type_;
    return descs;
  }
  OpKind Kind(bool data) const {
    return data ? (transposed_ ? kConvTransposeBackwardData : kConvolutionBackwardData)
                : (transposed_ ? kConvTransposeBackwardWeights : kConvolutionBackwardWeights);
  }

  // Each by the single operation.
  std::vector<TensorBuffer> Single(const Options& options) {
    std::vector<TensorDesc> descs = Outputs(7);
    std::vector<TensorBuffer> out = Buffers(descs);
    const std::vector<TensorDesc> in = Inputs();
    const std::vector<const void*> data = Data();
    Run({Kind(true), forward().attributes}, {in[2], in[1]}, {data[2], data[1]}, {descs[0]},
        {out[0].data()}, options);
    Run({Kind(false), forward().attributes}, {in[0], in[2]}, {data[0], data[2]},
        {descs[1], descs[2]}, {out[1].data(), out[2].data()}, options);
    return out;
  }

  static std::vector<TensorBuffer> Buffers(const std::vector<TensorDesc>& descs) {
    std::vector<TensorBuffer> buffers;
    for (const TensorDesc& desc : descs) {
      buffers.emplace_back(desc.given() ? TensorBuffer(desc) : TensorBuffer());
      if (desc.given()) tools::FillReals(buffers.back(), 9);
    }
    return buffers;
  }

 private:
  static void Run(const Operation& operation, const std::vector<TensorDesc>& inputs,
                  const std::vector<const void*>& in, const std::vector<TensorDesc>& outputs,
                  const std::vector<void*>& out, const Options& options) {
    const Result<Plan> plan = Plan::Make(operation, inputs, outputs, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    const Status status = plan->Run(in, out, workspace.data());
    ASSERT_TRUE(status.ok()) << status.message();
  }

  bool transposed_;
  DataType gradient_type_;
  BitsCase case_;
};

void ExpectBitsOfSingle(Layer& layer, const Options& options) {
  const std::vector<TensorBuffer> expected = layer.Single({.threads = 1, .beta = options.beta});
  for (int subset = 1; subset < 8; ++subset) {
    const std::vector<TensorDesc> descs = layer.Outputs(subset);
    std::vector<TensorBuffer> got = Layer::Buffers(descs);
    const Result<BackwardPlan> plan =
        BackwardPlan::Make(layer.forward(), layer.Inputs(), descs, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    if (options.workspace_limit >= 0) {
      EXPECT_LE(plan->workspace_bytes(), options.workspace_limit);
    }
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    std::vector<const void*> in = layer.Data();
    std::vector<void*> out;
    for (TensorBuffer& buffer : got) {
      out.push_back(buffer.desc().given() ? buffer.data() : nullptr);
    }
    // What is not read need not be there.
    if (!(subset & 2)) in[0] = nullptr;
    if (!(subset & 1)) in[1] = nullptr;
    const Status status = plan->Run(in, out, workspace.data());
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(plan->output(static_cast<int>(i)).given(), descs[i].given());
      if (descs[i].given()) {
        ASSERT_TRUE(got[i].SameBytes(expected[i])) << i << " of subset " << subset;
      }
    }
  }
}

TEST(Backward, EverySubsetHasTheBitsOfTheSingleOperations) {
  for (const BitsProblem& problem : kProblems) {
    for (const bool transposed : {false, true}) {
      for (const DataType type : {kF32, kBF16, kF16}) {
        for (const Layout layout : {Layout{false, false}, Layout{true, true}}) {
          for (const float beta : {0.0f, 0.5f}) {
            for (const int threads : {1, 3}) {
              for (const int64_t limit : {int64_t{0}, Options::kNoLimit}) {
                SCOPED_TRACE(problem.name + (transposed ? " transposed " : " ") +
                             std::string(NameOf(type)));
                Layer layer(problem, transposed, type, layout);
                ExpectBitsOfSingle(layer,
                                   {.threads = threads, .workspace_limit = limit, .beta = beta});
                if (HasFatalFailure()) return;
              }
            }
          }
        }
      }
    }
  }
}

// Alone, diff_bias is summed where diff_dst lies, if its channels are next to each other; beside
// diff_weights, as it lies packed for them. Every remainder of a vector and of a strip of them.
TEST(Backward, DiffBiasAloneHasTheBitsOfDiffBiasBesideWeights) {
  for (int64_t channels = 1; channels <= 70; ++channels) {
    for (const Dims& extent : {Dims{25, 20}, Dims{5, 4}, Dims{1, 1}}) {
      const BitsProblem problem{"bias", 3, 1, 20, channels, extent, {1, 1}, {1, 1}, {1, 1}, {0, 0}};
      for (const DataType type : {kF32, kBF16, kF16}) {
        SCOPED_TRACE(std::to_string(channels) + " " + std::string(NameOf(type)));
        for (const float beta : {0.0f, 0.5f}) {
          Layer layer(problem, false, type, {true, true});
          ExpectBitsOfSingle(layer, {.threads = 1, .beta = beta});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Backward, GradientsOfWeightsMayBeWider) {
  for (const DataType type : {kBF16, kF16}) {
    Layer layer(kProblems[0], false, type, {}, kF32);
    ExpectBitsOfSingle(layer, {.beta = 1});
  }
}

TEST(Backward, OracleAgreesOnIntegers) {
  for (const bool transposed : {false, true}) {
    Layer layer(kProblems[1], transposed, kF32, {});
    for (IndexedTensor* tensor : {&layer.src(), &layer.weights(), &layer.dst()}) {
      tools::FillIntegers(tensor->buffer, 4, 1);
    }
    ExpectBitsOfSingle(layer, {.kernel = "oracle"});
  }
}

// ---- What is computed ----

Result<BackwardPlan> MakeSubset(Layer& layer, int subset, const Options& options = {}) {
  return BackwardPlan::Make(layer.forward(), layer.Inputs(), layer.Outputs(subset), options);
}

TEST(BackwardPlans, StateTheirParts) {
  Layer layer(kProblems[0], false, kF32, {});
  const Result<BackwardPlan> all = MakeSubset(layer, 7), data = MakeSubset(layer, 1),
                             weights = MakeSubset(layer, 2), bias = MakeSubset(layer, 4);
  ASSERT_TRUE(all.ok() && data.ok() && weights.ok() && bias.ok());
  EXPECT_EQ(all->workspace_bytes(), std::max(data->workspace_bytes(), weights->workspace_bytes()));
  EXPECT_GT(all->workspace_bytes(), 0);
  EXPECT_EQ(all->flops(), data->flops() + weights->flops());
  // diff_bias alone: no products, no workspace, no weights.
  EXPECT_EQ(bias->workspace_bytes(), 0);
  EXPECT_EQ(bias->flops(), 0);
  const std::string text = bias->Explain();
  EXPECT_NE(text.find(" bias[1] alone\n"), std::string::npos) << text;
  EXPECT_NE(text.find("output      diff_bias 24 f32"), std::string::npos) << text;
  EXPECT_EQ(text.find("diff_weights"), std::string::npos) << text;
  EXPECT_EQ(text.find("input       src"), std::string::npos) << text;
  const std::string both = all->Explain();
  EXPECT_NE(both.find("operation   ConvolutionBackwardData\n"), std::string::npos) << both;
  EXPECT_NE(both.find("\n\noperation   ConvolutionBackwardWeights\n"), std::string::npos) << both;
}

TEST(BackwardPlans, InferTheirOutputs) {
  Layer layer(kProblems[1], true, kBF16, {});
  const std::vector<TensorDesc> types = {{kBF16}, {kF32}, {kF32}};
  const Result<BackwardPlan> plan = BackwardPlan::Make(layer.forward(), layer.Inputs(), types);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->output(0).extents, layer.src().InFormat().extents);
  EXPECT_EQ(plan->output(0).type, kBF16);
  EXPECT_EQ(plan->output(1).extents, layer.weights().InFormat().extents);
  EXPECT_EQ(plan->output(1).type, kF32);
  EXPECT_EQ(plan->output(2).extents, Dims{8});
  EXPECT_EQ(plan->output(2).strides, Dims{1});
  EXPECT_FALSE(plan->output(3).given());
  EXPECT_FALSE(plan->output(-1).given());
}

TEST(BackwardPlans, GiveGradientsForEachImage) {
  Layer layer(kProblems[0], false, kF32, {});
  const std::vector<TensorDesc> types = {{kF32}, {kF32}, {kF32}};
  for (const int subset : {7, 4}) {
    std::vector<TensorDesc> wanted = types;
    if (subset == 4) wanted[0] = wanted[1] = {};
    const Result<BackwardPlan> plan =
        BackwardPlan::Make(layer.forward(), layer.Inputs(), wanted, {.per_sample = true});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->output(2).extents, (Dims{3, 24}));
    if (subset == 7) {
      EXPECT_EQ(plan->output(0).extents, (Dims{3, 16, 26, 24}));
      EXPECT_EQ(plan->output(1).extents, (Dims{3, 24, 16, 3, 3}));
    }
    std::vector<TensorBuffer> got;
    std::vector<void*> out;
    for (int i = 0; i < 3; ++i) {
      got.emplace_back(plan->output(i).given() ? TensorBuffer(plan->output(i)) : TensorBuffer());
    }
    for (TensorBuffer& buffer : got) {
      out.push_back(buffer.desc().given() ? buffer.data() : nullptr);
    }
    std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
    ASSERT_TRUE(plan->Run(layer.Data(), out, workspace.data()).ok());
    const Result<Plan> single = Plan::Make(
        {kConvolutionBackwardWeights, layer.forward().attributes},
        std::vector<TensorDesc>{layer.Inputs()[0], layer.Inputs()[2]},
        std::vector<TensorDesc>{{kF32, {3, 24, 16, 3, 3}}, {kF32}}, {.per_sample = true});
    ASSERT_TRUE(single.ok()) << single.status().message();
    TensorBuffer w(single->output(0)), b(single->output(1));
    workspace.resize(static_cast<size_t>(single->workspace_bytes()));
    const std::vector<const void*> in = {layer.Data()[0], layer.Data()[2]};
    const std::vector<void*> to = {w.data(), b.data()};
    ASSERT_TRUE(single->Run(in, to, workspace.data()).ok());
    EXPECT_TRUE(got[2].SameBytes(b));
    if (subset == 7) {
      EXPECT_TRUE(got[1].SameBytes(w));
    }
  }
}

// ---- Mistakes ----

std::string MessageOf(const Operation& forward, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs) {
  const Result<BackwardPlan> plan = BackwardPlan::Make(forward, inputs, outputs);
  EXPECT_FALSE(plan.ok());
  return plan.status().message();
}

TEST(BackwardMistakes, AreNamed) {
  Layer layer(kProblems[0], false, kF32, {});
  const Operation& forward = layer.forward();
  const std::vector<TensorDesc> in = layer.Inputs(), all = layer.Outputs(7);
  const auto with = [](std::vector<TensorDesc> descs, size_t i, const TensorDesc& desc) {
    descs[i] = desc;
    return descs;
  };
  EXPECT_EQ(MessageOf({kConvolutionBackwardData, forward.attributes}, in, all),
            "operation is ConvolutionBackwardData, expected Convolution or ConvTranspose, whose "
            "gradients are computed");
  EXPECT_EQ(MessageOf(forward, {in[0], in[2]}, all),
            "gradients were given 2 inputs, expected 3: src, weights and diff_dst");
  EXPECT_EQ(MessageOf(forward, with(in, 1, {}), all),
            "input 1 'weights' is missing, gradients require its description");
  EXPECT_EQ(MessageOf(forward, in, {{}, {}, {}}),
            "no output is wanted, expected a type for diff_src, diff_weights or diff_bias");
  EXPECT_EQ(MessageOf(forward, in, {all[0], all[1], all[2], {}}),
            "gradients were given 4 outputs, expected at most 3: diff_src, diff_weights and "
            "diff_bias");
  EXPECT_EQ(MessageOf(forward, with(in, 2, {kF32, {3, 24, 25, 24}}), all),
            "diff_dst dim 2 is 25, expected 26: diff_dst is 3x24x25x24, it must be 3x24x26x24");
  EXPECT_EQ(MessageOf(forward, with(in, 2, {kBF16, {3, 24, 26, 24}}), all),
            "diff_dst has type bf16, expected f32 as src has");
  EXPECT_EQ(MessageOf(forward, with(in, 2, {kF32, {3, 24, -1, 24}}), all),
            "diff_dst dim 2 is unknown (-1), inputs must be known");
  EXPECT_EQ(MessageOf(forward, with(in, 2, {kF32}), all),
            "diff_dst has rank 0, expected that of src, 4");
  EXPECT_EQ(MessageOf(forward, with(in, 1, {kF32, {24, 8, 3, 3}}), all),
            "weights dim 1 is 8, expected src channels 16 / groups 1 = 16");
  EXPECT_EQ(MessageOf(forward, in, with(all, 0, {kF32, {3, 16, 26, 25}})),
            "diff_src dim 3 is 25, expected 24 as src has");
  EXPECT_EQ(MessageOf(forward, in, with(all, 1, {kF32, {24, 16, 1, 3}})),
            "diff_weights dim 2 is 1, expected 3 as weights has");
  EXPECT_EQ(MessageOf(forward, in, with(all, 1, {kF32, {24, 16, 3}})),
            "diff_weights has rank 3, expected 4");
  EXPECT_EQ(MessageOf(forward, in, with(all, 2, {kF32, {25}})),
            "diff_bias dim 0 is 25, expected diff_dst channels 24");
  EXPECT_EQ(MessageOf(forward, in, {{}, {}, {kF16}}),
            "diff_bias has type f16, expected f32 as diff_dst has");
  EXPECT_EQ(MessageOf(forward, in, with(all, 0, {kF32, in[0].extents, {0, 0, 0, 1}})),
            "diff_src of 3x16x26x24 with strides 0,0,0,1 has elements that share memory, an output "
            "must not");
}

TEST(BackwardMistakes, OfARunAreNamedBeforeAnythingIsWritten) {
  Layer layer(kProblems[0], false, kF32, {});
  const std::vector<TensorDesc> descs = layer.Outputs(7);
  std::vector<TensorBuffer> buffers = Layer::Buffers(descs);
  const std::vector<TensorBuffer> before = buffers;
  const std::vector<const void*> in = layer.Data();
  const std::vector<void*> out = {buffers[0].data(), buffers[1].data(), buffers[2].data()};
  const Result<BackwardPlan> all = MakeSubset(layer, 7), bias = MakeSubset(layer, 4);
  ASSERT_TRUE(all.ok() && bias.ok());
  std::vector<char> workspace(static_cast<size_t>(all->workspace_bytes()));
  const auto message = [&](const BackwardPlan& plan, std::vector<const void*> from,
                           std::vector<void*> to, void* memory) {
    const Status status = plan.Run(from, to, memory);
    EXPECT_FALSE(status.ok());
    return status.message();
  };
  void* const memory = workspace.data();
  EXPECT_EQ(message(*all, {nullptr, in[1], in[2]}, out, memory), "input 0 'src' is a null pointer");
  EXPECT_EQ(message(*all, {in[0], nullptr, in[2]}, out, memory),
            "input 1 'weights' is a null pointer");
  EXPECT_EQ(message(*bias, {nullptr, nullptr, nullptr}, {nullptr, nullptr, out[2]}, nullptr),
            "input 2 'diff_dst' is a null pointer");
  EXPECT_EQ(message(*all, {in[0], in[1]}, out, memory),
            "gradients were given 2 inputs and 3 outputs, expected 3 and at most 3");
  EXPECT_EQ(message(*all, in, {out[0], out[1]}, memory), "output 2 'diff_bias' is a null pointer");
  EXPECT_EQ(message(*bias, in, out, memory),
            "output 0 'diff_src' is given, but the plan was made without it");
  EXPECT_EQ(message(*all, in, out, nullptr), "workspace is a null pointer, this plan needs " +
                                                 std::to_string(all->workspace_bytes()) + " bytes");
  // What one part writes, the other must not read.
  EXPECT_EQ(message(*all, in, {const_cast<void*>(in[0]), out[1], out[2]}, memory),
            "output 0 'diff_src' shares memory with input 0 'src', an output must not overlap an "
            "input");
  EXPECT_EQ(
      message(*all, in, {out[0], out[0], out[2]}, memory),
      "output 1 'diff_weights' shares memory with output 0 'diff_src', outputs must not overlap");
  void* const inside = static_cast<float*>(out[0]) + 1;
  EXPECT_EQ(
      message(*all, in, {out[0], out[1], inside}, memory),
      "output 2 'diff_bias' shares memory with output 0 'diff_src', outputs must not overlap");
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(buffers[i].SameBytes(before[i]));
}

TEST(BackwardOneCall, RunsWhatIsWanted) {
  Layer layer(kProblems[1], true, kF32, {});
  const std::vector<TensorBuffer> expected = layer.Single({});
  std::vector<TensorBuffer> got = Layer::Buffers(layer.Outputs(7));
  std::vector<ConstTensorView> in(3);
  for (size_t i = 0; i < 3; ++i) {
    in[i].desc = layer.Inputs()[i];
    in[i].data = layer.Data()[i];
  }
  const Status status =
      RunBackward(layer.forward(), in, {got[0].view(), TensorView(), got[2].view()});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(got[0].SameBytes(expected[0]));
  EXPECT_TRUE(got[2].SameBytes(expected[2]));
}

}  // namespace
}  // namespace convgrad::tests

// ---- The command ----

namespace convgrad::tools {
namespace {

class BackwardCommandTest : public CommandFixture {
 protected:
  void SetUp() override {
    CommandFixture::SetUp();
    Put("src.npy", NpyBytes(Integers({2, 6, 3}, 1)));
    Put("weights.npy", NpyBytes(Integers({3, 3, 5}, 2)));
    Put("diff_dst.npy", NpyBytes(Integers({2, 4, 5}, 3)));
    Succeeds(
        "run ConvolutionBackwardData diff_dst=diff_dst.npy weights=weights.npy --dst_shape "
        "2,6,3 --out a.npy" +
        kWindow);
    Succeeds(
        "run ConvolutionBackwardWeights src=src.npy diff_dst=diff_dst.npy --weights_shape "
        "3,3,5 --out b.npy diff_bias=c.npy" +
        kWindow);
  }

  const std::string kWindow = " --strides 1 --pads_begin 0 --pads_end 0 --dilations 1";
  const std::string kRun =
      "run ConvolutionBackward src=src.npy weights=weights.npy diff_dst=diff_dst.npy" + kWindow;
};

TEST_F(BackwardCommandTest, RunWritesTheFilesThatAreNamed) {
  Succeeds(kRun + " diff_src=x.npy diff_weights=w.npy diff_bias=d.npy");
  EXPECT_EQ(Get("x.npy"), Get("a.npy"));
  EXPECT_EQ(Get("w.npy"), Get("b.npy"));
  EXPECT_EQ(Get("d.npy"), Get("c.npy"));
  Succeeds(kRun + " diff_bias=bias.npy");
  EXPECT_EQ(Get("bias.npy"), Get("c.npy"));
  Succeeds(kRun + " diff_bias=bias.npy --beta 1");
  for (size_t o = 0; o < 5; ++o) {
    EXPECT_EQ(ParseNpy(Get("bias.npy")).values[o], 2 * ParseNpy(Get("c.npy")).values[o]);
  }
  Succeeds(kRun + " diff_weights=each.npy --per_sample diff_src=x2.npy");
  EXPECT_EQ(ParseNpy(Get("each.npy")).extents, (Dims{2, 3, 3, 5}));
  EXPECT_EQ(Get("x2.npy"), Get("a.npy"));
  Succeeds(kRun +
           " --dtype bf16 --out_dtype f32 diff_src=n.safetensors:x diff_bias=n.safetensors:b");
  EXPECT_EQ(ParseSafetensors(Get("n.safetensors"))["x"].type, DataType::kBF16);
  EXPECT_EQ(ParseSafetensors(Get("n.safetensors"))["b"].type, DataType::kF32);
}

TEST_F(BackwardCommandTest, MistakesAreNamed) {
  ExpectRefused(kRun, "no output file is given, expected any of diff_src=FILE, diff_weights=FILE");
  ExpectRefused(kRun + " --out x.npy", "--out is given, ConvolutionBackward has several outputs");
  ExpectRefused("run ConvolutionBackwardd src=src.npy diff_src=x.npy",
                "ConvTransposeBackpropFilters, or for all gradients ConvolutionBackward, "
                "ConvTransposeBackward");
  ExpectRefused(kRun + " diff_bias=x.npy diff_src=x.npy", "two outputs are to be written to");
  ExpectRefused(kRun + " diff_bias=new.npy diff_src=./new.npy", "two outputs are to be written to");
  ExpectRefused(kRun + " diff_bias=new.npy diff_src=" + Path("new.npy"),
                "two outputs are to be written to");
  ExpectRefused(kRun + " dst=x.npy",
                "argument 'dst=x.npy' is not name=value with a name of "
                "ConvolutionBackward: src, weights, diff_dst, diff_src");
  ExpectRefused(
      "run ConvolutionBackward src=src.npy diff_dst=diff_dst.npy diff_bias=b.npy" + kWindow,
      "input 1 'weights' is missing, gradients require its description");
  ExpectRefused("verify ConvolutionBackward src=2x6x3", "'ConvolutionBackward' is for run and");
}

TEST_F(BackwardCommandTest, ExplainShowsTheParts) {
  const std::string line =
      "explain ConvTransposeBackward src=2x4x5 weights=3x3x5 diff_dst=2x6x3" + kWindow;
  const std::string out = Succeeds(line + " diff_src=2x4x5 diff_bias=3").out;
  EXPECT_NE(out.find("operation   ConvTransposeBackwardData\n"), std::string::npos) << out;
  EXPECT_NE(out.find(" xbias[1] alone\n"), std::string::npos) << out;
  ExpectRefused(line, "no output is wanted");
}

}  // namespace
}  // namespace convgrad::tools
