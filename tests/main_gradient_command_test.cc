// f32 gradients of weights from bf16 and f16 data, as words: problem lines, operation lines, run,
// verify, explain and bench. What the library makes of them is in main_gradient_test.
#include "bench/peer.h"
#include "onednn/problem_line.h"
#include "tests/command_line.h"
#include "tools/bench_case.h"
#include "tools/case_check.h"
#include "tools/problem_words.h"

namespace convgrad::tools {
namespace {

using enum DataType;

// ---- Problem lines ----

Result<std::vector<onednn::ProblemCase>> Parse(const std::string& line) {
  onednn::ProblemParser parser;
  const Status status = parser.AcceptLine(line);
  if (!status.ok()) return status;
  return parser.TakeCases();
}

TEST(ProblemLineTypes, WeightsMayBeF32WhereTheyAreWritten) {
  for (const std::string family : {"--conv", "--deconv"}) {
    for (const DataType type : {kBF16, kF16}) {
      for (const std::string dir : {"BWD_W", "BWD_WB"}) {
        const std::string name(NameOf(type)), types = name + ":f32:" + name;
        const auto cases =
            Parse(family + " --dir=" + dir + " --dt=" + types + " g2mb3ic4ih6oc8kh3sh1ph1");
        ASSERT_TRUE(cases.ok()) << cases.status().message();
        ASSERT_EQ(cases->size(), 1u);
        const onednn::ProblemCase& item = cases->front();
        for (const TensorDesc& input : item.inputs) EXPECT_EQ(input.type, type);
        EXPECT_EQ(item.outputs.size(), dir == "BWD_WB" ? 2u : 1u);
        for (const TensorDesc& output : item.outputs) EXPECT_EQ(output.type, kF32);
        // The text makes the same case again.
        EXPECT_NE(item.text.find(" --dt=" + types + " "), std::string::npos) << item.text;
        const auto again = Parse(item.text);
        ASSERT_TRUE(again.ok()) << again.status().message();
        EXPECT_EQ(again->front().text, item.text);
        EXPECT_EQ(again->front().outputs[0].type, kF32);
      }
    }
  }
}

TEST(ProblemLineTypes, AreAlternativesLikeOthers) {
  const auto cases =
      Parse("--dir=BWD_W --dt=bf16,bf16:f32:bf16,f16:f16:f16,f32:f32:f32 ic4ih6oc8kh3");
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  std::string types;
  for (const onednn::ProblemCase& item : *cases) {
    types += std::string(NameOf(item.inputs[1].type)) + ">" +
             std::string(NameOf(item.outputs[0].type)) + " ";
  }
  EXPECT_EQ(types, "bf16>bf16 bf16>f32 f16>f16 f32>f32 ");
}

TEST(ProblemLineTypes, OthersAreRefusedWithAReason) {
  const std::string line = " ic4ih6oc8kh3";
  for (const std::string family : {"--conv", "--deconv"}) {
    for (const std::string dir : {"FWD_D", "FWD_B", "FWD_I", "BWD_D"}) {
      const auto cases = Parse(family + " --dir=" + dir + " --dt=bf16:f32:bf16" + line);
      ASSERT_FALSE(cases.ok());
      EXPECT_EQ(cases.status().code(), StatusCode::kInvalidType);
      EXPECT_EQ(cases.status().message(),
                "--dt=bf16:f32:bf16: with --dir=" + dir +
                    " src, wei and dst must have one type, only the gradient of weights, BWD_W or "
                    "BWD_WB, may be f32 beside them (descriptor 'ic4ih6oc8kh3')");
    }
  }
  for (const std::string types :
       {"f32:bf16:f32", "bf16:f16:bf16", "bf16:f32:f32", "f32:f32:bf16", "bf16:f32:f16"}) {
    const auto cases = Parse("--dir=BWD_W --dt=" + types + line);
    ASSERT_FALSE(cases.ok()) << types;
    EXPECT_EQ(cases.status().message(),
              "--dt: '" + types +
                  "' must have one type for src, wei and dst, as all data tensors of an operation "
                  "share one, or f32 for wei alone");
  }
  EXPECT_EQ(Parse("--dt=bf16:f64:bf16" + line).status().message(),
            "--dt: 'f64' must be one of f32, bf16 and f16");
  EXPECT_EQ(
      Parse("--dt=bf16:f32" + line).status().message(),
      "--dt: 'bf16:f32' must be one type, or three as src:wei:dst, or four as src:wei:bia:dst");
}

// ---- Operation lines ----

const char kOperation[] =
    "ConvolutionBackwardWeights src=2x6x3 diff_dst=2x4x5 --strides=1 --pads_begin=0 --pads_end=0 "
    "--dilations=1 --weights_shape=3,3,5";

TEST(OperationLineTypes, OutputsHaveTheirOwn) {
  for (const std::string words : {" --dtype=bf16 --out_dtype=f32", " --out_dtype f32 --dtype bf16",
                                  " diff_weights=3x3x5 --dtype=bf16 --out_dtype=f32",
                                  " diff_weights=3x3x5 diff_bias=5 --dtype=bf16 --out_dtype=f32"}) {
    const Result<Case> item = ParseCase(Split(kOperation + words));
    ASSERT_TRUE(item.ok()) << item.status().message();
    EXPECT_EQ(item->inputs[0].type, kBF16);
    EXPECT_EQ(item->inputs[1].type, kBF16);
    EXPECT_EQ(item->outputs[0].type, kF32);
    EXPECT_EQ(item->outputs[1].type, words.find("diff_bias") == words.npos ? kUndef : kF32);
    // ToText is the inverse.
    const std::string text = ToText(item->operation, item->inputs, item->outputs);
    EXPECT_TRUE(text.ends_with(" --dtype=bf16 --out_dtype=f32")) << text;
    const Result<Case> again = ParseCase(Split(text));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(ToText(again->operation, again->inputs, again->outputs), text);
  }
  // Without it, that of the inputs.
  const Result<Case> item = ParseCase(Split(kOperation + std::string(" --dtype=f16 diff_bias=5")));
  ASSERT_TRUE(item.ok());
  EXPECT_EQ(item->outputs[1].type, kF16);
  EXPECT_FALSE(item->outputs[0].given());
}

TEST(OperationLineTypes, Mistakes) {
  const auto message = [](const std::string& words) {
    return ParseCase(Split(kOperation + words)).status().message();
  };
  EXPECT_EQ(message(" --out_dtype"), "option '--out_dtype' has no value");
  EXPECT_EQ(message(" --out_dtype=f64"), "type 'f64' is unknown, expected f32, bf16 or f16");
  EXPECT_EQ(message(" --dtype"), "option '--dtype' has no value");
}

// ---- Checks ----

// An f32 result is held to f32: an error of one unit in its last place, which no bf16 would show,
// is found in either output, on integers and on reals.
TEST(MainGradientChecks, FindOneUnitOfF32) {
  const Result<std::vector<Case>> cases =
      ParseCases(Split("--dir=BWD_WB --dt=bf16:f32:bf16,f16:f32:f16 g2mb3_ic4oc6_ih9kh3ph1"));
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  for (const Case& item : *cases) {
    CheckRequest request;
    EXPECT_TRUE(CheckCase(item, request).passed) << CheckCase(item, request).failure;
    for (const size_t output : {0u, 1u}) {
      for (const bool on_integers : {true, false}) {
        request.options.kernel = on_integers ? "" : "oracle";  // whose bound is below a unit
        request.tamper = [&](std::vector<TensorBuffer>& outputs, bool integers) {
          if (integers != on_integers) return;
          const auto value = static_cast<float>(outputs[output].At(1));
          outputs[output].Set(1, std::nextafter(value, 1e30f));
        };
        const CheckReport report = CheckCase(item, request);
        EXPECT_FALSE(report.passed) << output << on_integers;
        EXPECT_NE(report.failure.find(output == 0 ? "diff_weights[" : "diff_bias["),
                  std::string::npos)
            << report.failure;
      }
    }
  }
}

// ---- The command ----

class MainGradientCommandTest : public CommandFixture {
 protected:
  // 2 images of 6 pixels, 3 channels to 5, 3 taps.
  void SetUp() override {
    CommandFixture::SetUp();
    src_ = Integers({2, 6, 3}, 1);
    diff_dst_ = Integers({2, 4, 5}, 2);
    for (double& value : src_.values) value *= 41;  // sums need more than the 8 bits of bf16
    for (double& value : diff_dst_.values) value *= 7;
  }

  void PutInputs(DataType type) {
    src_.type = diff_dst_.type = type;
    Put("in.safetensors", SafetensorsBytes({{"src", src_}, {"diff_dst", diff_dst_}}));
  }

  Tensor Weights() const {
    Tensor sums{kF32, {3, 3, 5}, {}};
    for (int64_t e = 0; e < 45; ++e) {
      double sum = 0;
      for (int64_t n = 0; n < 2; ++n) {
        for (int64_t y = 0; y < 4; ++y) {
          const int64_t src = (n * 6 + y + e / 15) * 3 + e / 5 % 3, dst = (n * 4 + y) * 5 + e % 5;
          sum += src_.values[static_cast<size_t>(src)] * diff_dst_.values[static_cast<size_t>(dst)];
        }
      }
      sums.values.push_back(sum);
    }
    return sums;
  }
  Tensor Bias() const {
    Tensor sums{kF32, {5}, std::vector<double>(5)};
    for (size_t e = 0; e < diff_dst_.values.size(); ++e) sums.values[e % 5] += diff_dst_.values[e];
    return sums;
  }
  static Tensor Sum(Tensor tensor, const Tensor& old, double beta) {
    for (size_t e = 0; e < old.values.size(); ++e) tensor.values[e] += beta * old.values[e];
    return tensor;
  }

  static constexpr char kWords[] =
      "run ConvolutionBackwardWeights src=in.safetensors:src diff_dst=in.safetensors:diff_dst "
      "--strides 1 --pads_begin 0 --pads_end 0 --dilations 1 --weights_shape 3,3,5";
  static std::string Words(const std::string& more) { return std::string(kWords) + " " + more; }

  Tensor src_, diff_dst_;
};

TEST_F(MainGradientCommandTest, RunKeepsTheSumsInF32) {
  for (const DataType type : {kBF16, kF16}) {
    PutInputs(type);
    Succeeds(Words("--out_dtype f32 diff_bias=bias.npy --out out.npy"));
    EXPECT_EQ(ParseNpy(Get("out.npy")), Weights());
    EXPECT_EQ(ParseNpy(Get("bias.npy")), Bias());
    Remove("out.safetensors");
    Succeeds(Words("--out_dtype=f32 diff_bias=out.safetensors:b --out out.safetensors:w"));
    EXPECT_EQ(ParseSafetensors(Get("out.safetensors"))["w"], Weights());
    EXPECT_EQ(ParseSafetensors(Get("out.safetensors"))["b"], Bias());
  }
  // So that this could fail: bf16 has fewer bits than these sums.
  PutInputs(kBF16);
  Succeeds(Words("--out_dtype bf16 --out out.npy"));
  EXPECT_NE(ParseNpy(Get("out.npy")), Weights());
  // f32 files, converted on reading, and nothing to widen.
  PutInputs(kF32);
  Succeeds(Words("--dtype bf16 --out_dtype f32 --out out.npy"));
  EXPECT_EQ(ParseNpy(Get("out.npy")), Weights());
  Succeeds(Words("--out_dtype f32 --out out.npy"));
  EXPECT_EQ(ParseNpy(Get("out.npy")), Weights());
}

TEST_F(MainGradientCommandTest, RunAddsToAnF32File) {
  PutInputs(kBF16);
  Tensor old = Integers({3, 3, 5}, 5), old_bias = Integers({5}, 6);
  for (double& value : old.values) value *= 12345;
  for (const double beta : {1.0, 0.5}) {
    Put("out.npy", NpyBytes(old));
    Put("bias.npy", NpyBytes(old_bias));
    Succeeds(Words("--out_dtype f32 diff_bias=bias.npy --out out.npy --beta ") +
             std::to_string(beta));
    EXPECT_EQ(ParseNpy(Get("out.npy")), Sum(Weights(), old, beta));
    EXPECT_EQ(ParseNpy(Get("bias.npy")), Sum(Bias(), old_bias, beta));
    Put("out.safetensors", SafetensorsBytes({{"w", old}}));
    Succeeds(Words("--out_dtype f32 --out out.safetensors:w --beta ") + std::to_string(beta));
    EXPECT_EQ(ParseSafetensors(Get("out.safetensors"))["w"], Sum(Weights(), old, beta));
  }
  // Without the type, an f32 .npy stands for bf16: only what bf16 has is read as that.
  Put("out.npy", NpyBytes(old));
  ExpectRefused(Words("--out out.npy --beta 1"), "out.npy has numbers that bf16 does not have");
  EXPECT_EQ(ParseNpy(Get("out.npy")), old);
  old.type = kBF16;
  Put("out.safetensors", SafetensorsBytes({{"w", old}}));
  ExpectRefused(Words("--out_dtype f32 --out out.safetensors:w --beta 1"),
                "out.safetensors:w is 3x3x5 bf16, expected 3x3x5 f32");
}

TEST_F(MainGradientCommandTest, RunNamesMistakes) {
  PutInputs(kBF16);
  ExpectRefused(Words("--out_dtype f16 --out out.npy"),
                "diff_weights has type f16, expected bf16 as src has, or f32");
  ExpectRefused(Words("--out_dtype f64 --out out.npy"),
                "type 'f64' is unknown, expected f32, bf16 or f16");
  ExpectRefused(Words("--out out.npy --out_dtype"), "--out_dtype");
  ExpectRefused(Words("--out out.npy --out_dtype ''"), "--out_dtype: the value is empty");
  Put("w.safetensors", SafetensorsBytes({{"w", Integers({3, 3, 5}, 1, kBF16)}}));
  ExpectRefused(
      "run Convolution src=in.safetensors:src weights=w.safetensors:w --strides 1 --pads_begin 0 "
      "--pads_end 0 --dilations 1 --out_dtype f32 --out out.npy",
      "dst has type f32, expected bf16 as src has");
}

TEST_F(MainGradientCommandTest, VerifyTakesBothSpellings) {
  const std::string out = Succeeds(
                              "verify --dir=BWD_W,BWD_WB --stag=abx,axb --dt=bf16:f32:bf16,"
                              "f16:f32:f16 g2mb3_ic4oc6_ih9kh3sh2ph1")
                              .out;
  EXPECT_TRUE(out.ends_with("\n8 passed, 0 failed\n")) << out;
  EXPECT_NE(out.find("--conv --dir=BWD_WB --dt=f16:f32:f16 --stag=axb "), std::string::npos);
  const std::string line = " " + std::string(kOperation) + " --dtype f16 --out_dtype f32";
  EXPECT_TRUE(Succeeds("verify" + line).out.ends_with("\n1 passed, 0 failed\n"));
  ExpectRefused("verify --dir=BWD_D --dt=bf16:f32:bf16 ic4oc6_ih9kh3",
                "with --dir=BWD_D src, wei and dst must have one type");
  ExpectRefused("verify" + line + " --dtype f32 --out_dtype f16",
                "diff_weights has type f16, expected f32 as src has");
}

TEST_F(MainGradientCommandTest, ExplainShowsBothTypes) {
  const std::string problem = "wgrad bf16:f32 g1 n2 ci4 co6 in1x9x9 taps1x3x3 out1x7x7 ";
  const std::string out = Succeeds("explain --dir=BWD_W --dt=bf16:f32:bf16 ic4oc6_ih9kh3ph0").out;
  EXPECT_NE(out.find("\nproblem     " + problem), std::string::npos) << out;
  EXPECT_NE(out.find("output      diff_weights 6x4x3x3 f32 "), std::string::npos) << out;
  // What it prints, it reads.
  EXPECT_TRUE(Succeeds("explain " + problem).out.starts_with("problem     " + problem));
  ExpectRefused("explain dgrad bf16:f32 g1",
                "problem field 'bf16:f32' is wrong: only wgrad writes another type");
}

TEST_F(MainGradientCommandTest, BenchStatesBothTypes) {
  Succeeds(
      "bench --threads 1 --repetitions 1 --seconds 0.01 --json=out.json"
      " --dir=BWD_W --dt=bf16:f32:bf16,bf16 ic4oc6_ih9kh3");
  const nlohmann::json rows = nlohmann::json::parse(Get("out.json"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["dtype"], "bf16");
  EXPECT_EQ(rows[0]["out_dtype"], "f32");
  EXPECT_EQ(rows[1]["dtype"], "bf16");
  EXPECT_EQ(rows[1]["out_dtype"], "bf16");
}

TEST_F(MainGradientCommandTest, HelpNamesTheOption) {
  EXPECT_NE(Succeeds("run --help").out.find("--out_dtype"), std::string::npos);
  EXPECT_NE(Succeeds("verify --help").out.find("bf16:f32:bf16"), std::string::npos);
}

// ---- Peers ----

// One that offers it has convgrad's result; one that does not, says so.
TEST(MainGradientPeers, AgreeOrSayWhyNot) {
  const Result<std::vector<Case>> cases =
      ParseCases(Split("--dir=BWD_W,BWD_WB --dt=bf16:f32:bf16,f16:f32:f16 --stag=abx,axb "
                       "g2mb3_ic4oc6_ih9kh3sh2ph1 --deconv mb2_ic3ih5oc4kh3sh2ph1"));
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  for (const bench::PeerInfo& peer : bench::Peers()) {
    if (peer.make == nullptr) continue;
    for (const Case& item : *cases) {
      BenchSettings settings;
      settings.options.threads = 1;
      settings.repetitions = 1;
      settings.seconds = 0.01;
      settings.peers = {peer};
      const BenchRow row = BenchCase(item, settings);
      ASSERT_EQ(row.refusal, "");
      ASSERT_EQ(row.peers.size(), 1u);
      EXPECT_FALSE(row.peers[0].wrong) << item.text << ": " << row.peers[0].note;
      EXPECT_NE(row.peers[0].timing.has_value(), !row.peers[0].note.empty()) << item.text;
      if (peer.name == "blas") {
        EXPECT_EQ(row.peers[0].note, "f32 only");
      }
    }
  }
}

}  // namespace
}  // namespace convgrad::tools
