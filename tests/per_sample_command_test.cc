// Gradients for each image as words: --per_sample of run, verify, explain and bench. What the
// library makes of them is in per_sample_test.
#include "tests/command_line.h"
#include "tools/problem_words.h"

namespace convgrad::tools {
namespace {

using enum DataType;

class PerSampleCommandTest : public CommandFixture {
 protected:
  // 2 images of 6 pixels, 3 channels to 5, 3 taps.
  void SetUp() override {
    CommandFixture::SetUp();
    src_ = Integers({2, 6, 3}, 1);
    diff_dst_ = Integers({2, 4, 5}, 2);
    Put("src.npy", NpyBytes(src_));
    Put("diff_dst.npy", NpyBytes(diff_dst_));
  }

  Tensor Weights() const {
    Tensor sums{kF32, {2, 3, 3, 5}, {}};
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t e = 0; e < 45; ++e) {
        double sum = 0;
        for (int64_t y = 0; y < 4; ++y) {
          const int64_t src = (n * 6 + y + e / 15) * 3 + e / 5 % 3, dst = (n * 4 + y) * 5 + e % 5;
          sum += src_.values[static_cast<size_t>(src)] * diff_dst_.values[static_cast<size_t>(dst)];
        }
        sums.values.push_back(sum);
      }
    }
    return sums;
  }
  Tensor Bias() const {
    Tensor sums{kF32, {2, 5}, std::vector<double>(10)};
    for (size_t e = 0; e < diff_dst_.values.size(); ++e) {
      sums.values[e / 20 * 5 + e % 5] += diff_dst_.values[e];
    }
    return sums;
  }
  static Tensor Sum(Tensor tensor, const Tensor& old, double beta) {
    for (size_t e = 0; e < old.values.size(); ++e) tensor.values[e] += beta * old.values[e];
    return tensor;
  }

  static std::string Words(const std::string& more) {
    return "run ConvolutionBackwardWeights src=src.npy diff_dst=diff_dst.npy --strides 1 "
           "--pads_begin 0 --pads_end 0 --dilations 1 --weights_shape 3,3,5 " +
           more;
  }

  Tensor src_, diff_dst_;
};

TEST_F(PerSampleCommandTest, RunWritesAGradientForEachImage) {
  Succeeds(Words("--per_sample diff_bias=bias.npy --out out.npy"));
  EXPECT_EQ(ParseNpy(Get("out.npy")), Weights());
  EXPECT_EQ(ParseNpy(Get("bias.npy")), Bias());
  Succeeds(Words("--dtype bf16 --out_dtype f32 --per_sample --out out.safetensors:w"));
  EXPECT_EQ(ParseSafetensors(Get("out.safetensors"))["w"], Weights());
  // Without it, their sum.
  Succeeds(Words("--out sum.npy"));
  EXPECT_EQ(ParseNpy(Get("sum.npy")).extents, (Dims{3, 3, 5}));
}

TEST_F(PerSampleCommandTest, RunAddsToWhatIsThere) {
  const Tensor old = Integers({2, 3, 3, 5}, 5), old_bias = Integers({2, 5}, 6);
  Put("out.npy", NpyBytes(old));
  Put("bias.npy", NpyBytes(old_bias));
  Succeeds(Words("--per_sample diff_bias=bias.npy --out out.npy --beta 0.5"));
  EXPECT_EQ(ParseNpy(Get("out.npy")), Sum(Weights(), old, 0.5));
  EXPECT_EQ(ParseNpy(Get("bias.npy")), Sum(Bias(), old_bias, 0.5));
  Put("out.npy", NpyBytes(Integers({3, 3, 5}, 5)));
  ExpectRefused(Words("--per_sample --out out.npy --beta 1"),
                "out.npy is 3x3x5 f32, expected 2x3x3x5 f32");
}

TEST_F(PerSampleCommandTest, OtherOperationsRefuseIt) {
  Put("w.npy", NpyBytes(Integers({3, 3, 5}, 1)));
  ExpectRefused(
      "run Convolution src=src.npy weights=w.npy --strides 1 --pads_begin 0 --pads_end 0 "
      "--dilations 1 --per_sample --out out.npy",
      "option per_sample is set, Convolution does not have it");
  ExpectRefused("verify --per_sample --dir=BWD_D ic4oc6_ih9kh3",
                "option per_sample is set, ConvolutionBackwardData does not have it");
  ExpectRefused("explain --per_sample --dir=FWD_B ic4oc6_ih9kh3",
                "option per_sample is set, Convolution does not have it");
}

TEST_F(PerSampleCommandTest, VerifyTakesProblemLinesAndOperations) {
  const std::string out =
      Succeeds(
          "verify --per_sample --dir=BWD_W,BWD_WB --stag=abx,axb --wtag=any,xba "
          "--dt=f32,bf16:f32:bf16 g2mb3_ic4oc6_ih9kh3sh2ph1 --deconv mb2_ic3ih5oc4kh3sh2ph1")
          .out;
  EXPECT_TRUE(out.ends_with(" passed, 0 failed\n")) << out;
  EXPECT_NE(out.find(" 342 of 342 elements "), std::string::npos) << out;  // 3 * (108 + 6)
  const std::string line =
      "verify --per_sample ConvolutionBackwardWeights src=2x6x3 diff_dst=2x4x5 --strides=1 "
      "--pads_begin=0 --pads_end=0 --dilations=1 ";
  EXPECT_TRUE(Succeeds(line + "diff_weights=2x3x3x5@1,30,10,2 diff_bias=2x5")
                  .out.ends_with("\n1 passed, 0 failed\n"));
  ExpectRefused(line + "diff_weights=3x3x5",
                "diff_weights has rank 3, expected 4: N, then the axes of one gradient");
}

TEST_F(PerSampleCommandTest, ExplainReadsWhatItPrints) {
  const std::string problem =
      "wgrad f32 g1 n2 ci4 co6 in1x9x9 taps1x3x3 out1x7x7 s1x1x1 d1x1x1 p0x0x0 bias[1] per_sample";
  const std::string out = Succeeds("explain --per_sample --dir=BWD_WB ic4oc6_ih9kh3ph0").out;
  EXPECT_NE(out.find("\nproblem     " + problem + "\n"), std::string::npos) << out;
  EXPECT_NE(out.find("output      diff_weights 2x6x4x3x3 f32 "), std::string::npos) << out;
  EXPECT_NE(out.find("output      diff_bias 2x6 f32 "), std::string::npos) << out;
  EXPECT_TRUE(Succeeds("explain " + problem).out.starts_with("problem     " + problem + "\n"));
  ExpectRefused("explain --per_sample wgrad f32 g1", "which has a word for it");
}

TEST_F(PerSampleCommandTest, BenchStatesIt) {
  Succeeds(
      "bench --per_sample --threads 1 --repetitions 1 --seconds 0.01 --json=out.json --dir=BWD_W "
      "ic4oc6_ih9kh3");
  const nlohmann::json rows = nlohmann::json::parse(Get("out.json"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["per_sample"], true);
}

TEST_F(PerSampleCommandTest, HelpNamesTheOption) {
  for (const std::string command : {"run", "verify", "explain", "bench"}) {
    EXPECT_NE(Succeeds(command + " --help").out.find("--per_sample"), std::string::npos);
  }
}

}  // namespace
}  // namespace convgrad::tools
