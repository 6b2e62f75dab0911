// The command end to end, beside `run` that succeeds: bad input of every kind, verify, explain, ops
// and help, and what a terminal and a signal do to a long run.
#include <poll.h>

#include <chrono>

#include "tests/command_line.h"

namespace convgrad::tools {
namespace {

using enum DataType;

// Sanitizers end a process that asks for too much, instead of throwing: the command's, where this
// program has none itself.
constexpr bool kCanRunOutOfMemory = !CONVGRAD_TEST_SANITIZED;

const char kWindow[] = " --strides 1 --pads_begin 0 --pads_end 0 --dilations 1 ";

// A legal run of each kind; the tests break one thing at a time. The output's file is last.
const std::string kConvolution =
    std::string("run Convolution src=src.npy weights=weights.npy") + kWindow + "--out out.npy";
const std::string kWeightsGradient =
    std::string("run ConvolutionBackwardWeights src=src.npy diff_dst=diff_dst.npy") + kWindow +
    "--weights_shape 3,2,4 --out out.npy";

class CommandErrorTest : public CommandFixture {
 protected:
  void SetUp() override {
    CommandFixture::SetUp();
    Put("src.npy", NpyBytes(Integers({1, 5, 2}, 1)));
    Put("weights.npy", NpyBytes(Integers({3, 2, 4}, 2)));
    Put("diff_dst.npy", NpyBytes(Integers({1, 3, 4}, 3)));
    Put("bias.npy", NpyBytes(Integers({4}, 4)));
    Put("shape.npy", NpyBytes(Tensor{kS32, {3}, {3, 2, 4}}));
    Put("half.npy", NpyBytes(Integers({3, 2, 4}, 2, kF16)));
  }

  // `line` with `from` replaced: refused whether or not the output exists.
  void ExpectBroken(std::string line, const std::string& from, const std::string& to,
                    const std::string& sentence) const {
    const size_t at = line.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    line.replace(at, from.size(), to);
    ExpectRefused(line, sentence);
    Put("out.npy", "what was there before");
    ExpectRefused(line, sentence);
    Remove("out.npy");
  }
};

TEST_F(CommandErrorTest, WhatTheTestsBreakIsWhole) {
  for (const std::string& line : {kConvolution, kWeightsGradient}) {
    Remove("out.npy");
    Succeeds(line);
    EXPECT_EQ(ParseNpy(Get("out.npy")).type, kF32);
  }
}

TEST_F(CommandErrorTest, Files) {
  const auto breaks = [this](const std::string& file, const std::string& sentence) {
    ExpectBroken(kConvolution, "src.npy", file, sentence);
  };
  breaks("absent.npy", "absent.npy");
  std::filesystem::create_directory(Path("folder.npy"));
  breaks("folder.npy", "folder.npy: this is a directory");
  breaks("src.npy/x.npy", "src.npy/x.npy");
  breaks("src.txt", "src.txt: not the name of a tensor file");
  Put("empty.npy", "");
  breaks("empty.npy", "empty.npy: the file is empty");
  Put("other.npy", "PK\x03\x04 and so on");
  breaks("other.npy", "other.npy: the file does not start with");
  const std::string whole = Get("src.npy");
  Put("short.npy", whole.substr(0, whole.size() - 1));
  breaks("short.npy", "short.npy: the header claims 40 bytes of data, but the file holds 39");
  Put("cut.npy", whole.substr(0, 30));
  breaks("cut.npy", "cut.npy: the header claims");
  Put("double.npy", NpyBytes("<f8", false, {1, 5, 2}, std::string(80, '\0')));
  breaks("double.npy", "double.npy: the dtype is '<f8'");
  // 10^15 elements, and more bytes than 63 bits count: neither may be allocated.
  Put("huge.npy", NpyBytes("<f4", false, {1, 100'000'000, 10'000'000}, std::string(40, '\0')));
  breaks("huge.npy", "huge.npy: the header claims 4000000000000000 bytes");
  Put("beyond.npy", NpyBytes("<f4", false, {1, 4'000'000'000, 4'000'000'000}, ""));
  breaks("beyond.npy", "beyond.npy: the size of the shape in bytes does not fit into 63 bits");
}

TEST_F(CommandErrorTest, SafetensorsFiles) {
  const auto breaks = [this](const std::string& file, const std::string& sentence) {
    ExpectBroken(kConvolution, "src.npy", file, sentence);
  };
  const Tensor src = Integers({1, 5, 2}, 1);
  Put("two.safetensors", SafetensorsBytes({{"a", src}, {"b", src}}));
  breaks("two.safetensors", "two.safetensors: name one tensor");
  breaks("two.safetensors:c", "there is no tensor \"c\"; the file holds 2 tensors: \"a\", \"b\"");
  breaks("two.safetensors:", "no tensor is named after ':'");
  const std::string whole = Get("two.safetensors");
  Put("short.safetensors", whole.substr(0, whole.size() - 1));
  breaks("short.safetensors:a", "short.safetensors");
  Put("cut.safetensors", whole.substr(0, 20));
  breaks("cut.safetensors:a", "cut.safetensors");
  const std::string claim =
      R"({"a":{"dtype":"F32","shape":[1,100000000,10000000],"data_offsets":[0,4000000000000000]}})";
  Put("huge.safetensors", LittleEndian(claim.size(), 8) + claim);
  breaks("huge.safetensors", "huge.safetensors");
  Put("header.safetensors", LittleEndian(1'000'000'000'000'000, 8) + "{}");
  breaks("header.safetensors", "header.safetensors");
  // A damaged output is not replaced: its other tensors would be lost.
  Put("out.safetensors", whole.substr(0, 20));
  ExpectRefused(kConvolution.substr(0, kConvolution.size() - 7) + "out.safetensors:y",
                "out.safetensors");
}

TEST_F(CommandErrorTest, OutputPaths) {
  std::filesystem::create_directory(Path("folder.npy"));
  const std::string out = "--out out.npy";
  ExpectBroken(kConvolution, out, "", "no output file is given");
  ExpectBroken(kConvolution, out, "--out ''", "--out: the value is empty");
  ExpectBroken(kConvolution, out, "--out", "--out");
  ExpectBroken(kConvolution, out, "--out absent/out.npy", "absent/out.npy");
  ExpectBroken(kConvolution, out, "--out folder.npy", "folder.npy: this is a directory");
  ExpectBroken(kConvolution, out, "--out src.npy/out.npy", "src.npy/out.npy");
  ExpectBroken(kConvolution, out, "--out out.txt", "out.txt: not the name of a tensor file");
  ExpectBroken(kConvolution, out, "--out /dev/null", "/dev/null");
  ExpectBroken(kConvolution, out, out + " --out other.npy", "--out");
  ExpectBroken(kConvolution, out, out + " dst=other.npy", "--out and dst= are both given");
  if (geteuid() == 0) return;  // whom permissions do not stop
  std::filesystem::create_directory(Path("closed"));
  std::filesystem::permissions(
      Path("closed"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  ExpectBroken(kConvolution, out, "--out closed/out.npy", "closed/out.npy");
}

TEST_F(CommandErrorTest, TwoOutputsAreWrittenBothOrNeither) {
  const std::string out = "--out out.npy";
  std::filesystem::create_directory(Path("folder.npy"));
  ExpectBroken(kWeightsGradient, out, "diff_bias=absent/bias.npy " + out, "absent/bias.npy");
  ExpectBroken(kWeightsGradient, out, "diff_bias=folder.npy " + out, "folder.npy");
  ExpectBroken(kWeightsGradient, out, "diff_bias=bias.txt " + out, "bias.txt");
  ExpectBroken(kWeightsGradient, out, "--out absent/out.npy diff_bias=bias.npy", "absent/out.npy");
  // The second would replace the first.
  ExpectBroken(kWeightsGradient, out, "diff_bias=out.npy " + out, "out.npy");
}

TEST_F(CommandErrorTest, Shapes) {
  const std::string rank_one = "src=bias.npy";
  ExpectBroken(kConvolution, "src=src.npy", rank_one, "src");
  ExpectBroken(kConvolution, "weights=weights.npy", "weights=diff_dst.npy",
               "expected src channels 2");
  ExpectBroken(kConvolution, "src=src.npy", "src=src.npy bias=shape.npy", "bias has type s32");
  Put("three.npy", NpyBytes(Integers({3}, 4)));
  ExpectBroken(kConvolution, "src=src.npy", "src=src.npy bias=three.npy", "bias dim 0 is 3");
  ExpectBroken(kConvolution, "--strides 1", "--strides 1,1", "'strides' has 2 entries, expected 1");
  ExpectBroken(kConvolution, "--dilations 1", "--dilations ''", "'dilations' has 0 entries");
  ExpectBroken(kConvolution, "--pads_end 0", "--pads_end 0,0,0", "'pads_end' has 3 entries");
  ExpectBroken(kConvolution, "--dilations 1", "--dilations 3", "kernel span 7");
  ExpectBroken(kWeightsGradient, "3,2,4", "3,2", "'weights_shape' has 2 entries, expected 3");
  ExpectBroken(kWeightsGradient, "3,2,4", "2,2,4", "diff_dst dim 1 is 3");
  ExpectBroken(kWeightsGradient, "3,2,4", "3,3,4", "weights_shape dim 1 is 3");
  ExpectBroken(kWeightsGradient, "--weights_shape 3,2,4", "", "weights_shape is needed");
  ExpectBroken(kWeightsGradient, "src=src.npy", "src=src.npy weights_shape=bias.npy",
               "weights_shape");
  // More memory than an address space has: the extents are legal, the machine says no.
  if (kCanRunOutOfMemory) {
    ExpectBroken(kConvolution, "--pads_end 0", "--pads_end 1000000000000000", "out of memory");
  }
  ExpectBroken(kConvolution, "--pads_end 0", "--pads_end 9000000000000000000", "2^63 - 1 bytes");
}

TEST_F(CommandErrorTest, Types) {
  ExpectBroken(kConvolution, "weights.npy", "half.npy", "weights has type f16, expected f32");
  ExpectBroken(kConvolution, "src=src.npy", "src=shape.npy", "src has type s32");
  ExpectBroken(kConvolution, "--out", "--dtype f64 --out", "type 'f64' is unknown");
  ExpectBroken(kConvolution, "--out", "--dtype F32 --out", "type 'F32' is unknown");
  ExpectBroken(kConvolution, "--out", "--dtype s32 --out", "type 's32' is unknown");
  ExpectBroken(kConvolution, "src=src.npy", "src=shape.npy --dtype bf16", "src has type s32");
}

TEST_F(CommandErrorTest, Attributes) {
  ExpectBroken(kConvolution, "--out", "--stride 1 --out", "option '--stride' is unknown");
  ExpectBroken(kConvolution, "--out", "--weights_shape 3,2,4 --out",
               "'weights_shape' is not an attribute of Convolution");
  ExpectBroken(kConvolution, "--out", "--output_padding=0 --out",
               "'output_padding' is not an attribute of Convolution");
  ExpectBroken(kConvolution, "--out", "--filter_format XIO --out",
               "'filter_format' is not an attribute of Convolution");
  for (const std::string name : {"strides", "pads_begin", "pads_end", "dilations"}) {
    const std::string value = name.starts_with("pads") ? " 0" : " 1";
    const std::string option = "--" + name + value;
    ExpectBroken(kConvolution, option, "", "'" + name + "' is missing");
    ExpectBroken(kConvolution, option, option + " " + option, "'--" + name + "' is given twice");
    ExpectBroken(kConvolution, option, "--" + name + " one", "--" + name + " is 'one'");
    ExpectBroken(kConvolution, option, "--" + name + " 1.5", "--" + name + " is '1.5'");
    ExpectBroken(kConvolution, option, "--" + name + "=1,",
                 "--" + name + " is '1,', expected whole");
    ExpectBroken(kConvolution, option, "--" + name + "=,1",
                 "--" + name + " is ',1', expected whole");
    ExpectBroken(kConvolution, option, "--" + name + "=99999999999999999999", "--" + name + " is");
    ExpectBroken(kConvolution, option, "--" + name, "'--" + name + "' has no value");
    ExpectBroken(kConvolution, option, "--" + name + " -1", "'" + name + "' is -1");
  }
  ExpectBroken(kConvolution, "--strides 1", "--strides 0", "'strides' is 0");
  ExpectBroken(kConvolution, "--dilations 1", "--dilations=0", "'dilations' is 0");
  ExpectBroken(kConvolution, "--out", "--groups 0 --out", "'groups' is 0");
  ExpectBroken(kConvolution, "--out", "--groups 3 --out", "not a multiple of groups 3");
  ExpectBroken(kConvolution, "--out", "--groups 1,1 --out", "--groups is '1,1'");
  ExpectBroken(kConvolution, "--out", "--groups= --out", "--groups is ''");
  ExpectBroken(kConvolution, "--out", "--auto_pad same --out", "'auto_pad' is 'same'");
  ExpectBroken(kConvolution, "--out", "--data_format nxc --out", "'data_format' is 'nxc'");
  ExpectBroken(kConvolution, "--out", "--weights_format IOX --out", "'weights_format' is 'IOX'");
}

TEST_F(CommandErrorTest, Words) {
  ExpectRefused(Words{}, "no command is given");
  ExpectRefused("--bogus", "");
  ExpectRefused("run", "no operation is given");
  ExpectRefused("run ''", "operation '' is unknown");
  ExpectRefused("run Deconvolution", "operation 'Deconvolution' is unknown");
  ExpectRefused("run convolution", "operation 'convolution' is unknown");
  ExpectBroken(kConvolution, "weights=weights.npy", "", "'weights' is missing");
  ExpectBroken(kConvolution, "weights=weights.npy", "weights=weights.npy weights=weights.npy",
               "'weights' is given twice");
  ExpectBroken(kConvolution, "weights=weights.npy", "weights=", "'weights' has no value");
  ExpectBroken(kConvolution, "weights=weights.npy", "filter=weights.npy", "filter=weights.npy");
  ExpectBroken(kConvolution, "weights=weights.npy", "weights.npy", "argument 'weights.npy'");
  ExpectBroken(kConvolution, "--out", "--config x --out", "option '--config' is unknown");
  ExpectBroken(kConvolution, "--out", "-v --out", "-v");
  for (const std::string option : {"--threads", "--workspace", "--beta"}) {
    ExpectBroken(kConvolution, "--out", option + " many --out", option);
    ExpectBroken(kConvolution, "--out out.npy", "--out out.npy " + option, option);
  }
  ExpectBroken(kConvolution, "--out", "--threads -1 --out", "threads is -1");
  ExpectBroken(kConvolution, "--out", "--threads 2.5 --out", "threads");
  ExpectBroken(kConvolution, "--out", "--workspace -2 --out", "workspace");
  ExpectBroken(kConvolution, "--out", "--beta nan --out", "beta is n");
  ExpectBroken(kConvolution, "--out", "--beta inf --out", "beta is inf");
  ExpectBroken(kConvolution, "--out", "--kernel bogus --out", "kernel 'bogus' is unknown");
}

TEST_F(CommandErrorTest, UnknownSubcommandIsNamed) {
  ExpectRefused("bogus", "bogus");
  ExpectRefused("bogus src=src.npy --strides 1", "bogus");
}

// A script's unset variable: --beta 0 would replace what it was to add to.
TEST_F(CommandErrorTest, EmptyNumbers) {
  for (const std::string option : {"--threads", "--workspace", "--beta"}) {
    ExpectBroken(kConvolution, "--out", option + " '' --out", option.substr(2));
    ExpectBroken(kConvolution, "--out", option + "= --out", option.substr(2));
  }
}

TEST_F(CommandErrorTest, BetaNeedsAnOutputThatFits) {
  const std::string line = kWeightsGradient + " --beta 1";
  ExpectRefused(line, "--beta adds to what the output holds: out.npy");
  Put("out.npy", "no tensor");
  ExpectRefused(line, "--beta adds to what the output holds: out.npy");
  Put("out.npy", NpyBytes(Integers({3, 4, 2}, 1)));
  ExpectRefused(line, "out.npy is 3x4x2 f32, expected 3x2x4 f32");
  Put("out.npy", NpyBytes(Tensor{kS32, {3, 2, 4}, std::vector<double>(24, 1)}));
  ExpectRefused(line, "out.npy is 3x2x4 s32");
  Put("out.npy", NpyBytes(Integers({3, 2, 4}, 1)));
  ExpectRefused(line + " diff_bias=absent.npy", "absent.npy");
  Succeeds(line);
}

TEST_F(CommandErrorTest, MessagesAreOneLineWhateverTheNames) {
  ExpectRefused(Words{"run", "Convo\nlution"}, "");
  ExpectRefused(Words{"run", "Convolution", "src=a\nb.npy"} + Split(kConvolution.substr(28)), "");
  ExpectRefused(Words{"verify", "ic4\nih5oc3kh3"}, "");
}

// ---- verify ----

std::string LastLine(const std::string& text) {
  if (text.empty() || text.back() != '\n') return "";
  const size_t begin = text.rfind('\n', text.size() - 2);
  return text.substr(begin == std::string::npos ? 0 : begin + 1);
}

int CountLines(const std::string& text, const std::string& prefix) {
  std::istringstream stream(text);
  int count = 0;
  for (std::string line; std::getline(stream, line);) count += line.starts_with(prefix);
  return count;
}

class VerifyTest : public CommandFixture {};

TEST_F(VerifyTest, CountsWhatPassed) {
  Put("problems.txt",
      "# a comment\n--dir=FWD_B,BWD_D,BWD_WB\nmb2_ic4ih5_oc3_kh3_ph1_n\"first one\"\n"
      "--deconv --dt=f32,bf16 g2ic4iw5_oc2_kw2_sw2_n\"second\"\n");
  const auto expect_passed = [this](const std::string& line, int count) {
    SCOPED_TRACE(line);
    const Outcome outcome = Succeeds(line);
    EXPECT_EQ(LastLine(outcome.out), std::to_string(count) + " passed, 0 failed\n") << outcome.out;
    EXPECT_EQ(CountLines(outcome.out, "PASS "), count) << outcome.out;
  };
  expect_passed("verify ic4ih5oc3kh3", 1);
  expect_passed("verify --batch=problems.txt", 9);
  expect_passed("verify --match=second --batch=problems.txt", 6);
  expect_passed("verify --deconv --dir=BWD_W --dt=f16 --stag=abx,axb --mb=3 ic4ih5oc3kh3sh2", 2);
  expect_passed("verify --seed 7 --threads 2 --workspace 0 --kernel oracle ic4ih5oc3kh3", 1);
  expect_passed(std::string("verify ConvTranspose src=1x5x2 weights=3x4x2 --dtype=bf16") + kWindow,
                1);
  expect_passed(std::string("verify ConvolutionBackwardWeights src=1x5x2 diff_dst=1x3x4 "
                            "diff_bias=4 weights_shape=3x2x4") +
                    kWindow,
                1);
}

TEST_F(VerifyTest, BadInput) {
  ExpectRefused("verify", "no problem is given");
  ExpectRefused("verify bogus", "descriptor 'bogus'");
  ExpectRefused("verify ic4ih5oc3kh9", "ic4ih5oc3kh9");
  ExpectRefused("verify --batch=absent.txt", "absent.txt");
  ExpectRefused("verify --batch=.", "--batch=.");
  ExpectRefused("verify --batch", "--batch");
  Put("bad.txt", "ic4ih5oc3kh3\nic4ih5oc3kh3 bogus\n");
  ExpectRefused("verify --batch=bad.txt", "bad.txt:2:");
  ExpectRefused("verify --match=nothing ic4ih5oc3kh3", "--match");
  ExpectRefused("verify --match=( ic4ih5oc3kh3", "--match");
  ExpectRefused("verify --dir=BWD ic4ih5oc3kh3", "--dir: 'BWD'");
  ExpectRefused("verify --dt=f64 ic4ih5oc3kh3", "--dt: 'f64'");
  ExpectRefused("verify --stag=abc9 ic4ih5oc3kh3", "--stag");
  ExpectRefused("verify --mb=x ic4ih5oc3kh3", "--mb");
  ExpectRefused("verify --bogus ic4ih5oc3kh3", "--bogus");
  ExpectRefused("verify --seed x ic4ih5oc3kh3", "--seed");
  ExpectRefused("verify --threads -1 ic4ih5oc3kh3", "threads is -1");
  ExpectRefused("verify Convolution src=1x5x2 weights=axb", "weights is 'axb'");
  ExpectRefused("verify Convolution src=1x5x2 weights=3x2x4 --bogus 1", "option '--bogus'");
  ExpectRefused("verify Convolution src=1x5x2 weights=3x2x4 --dtype f64", "type 'f64'");
}

TEST_F(VerifyTest, UnknownKernelIsBadInput) {
  ExpectRefused("verify --kernel bogus ic4ih5oc3kh3", "kernel 'bogus' is unknown");
}

TEST_F(VerifyTest, AnIllegalProblemIsBadInput) {
  const std::string misfit = "verify Convolution src=1x5x2 weights=3x3x4";
  ExpectRefused(misfit + kWindow, "weights dim 1 is 3, expected src channels 2");
  ExpectRefused(
      "verify Convolution src=1x5x2 weights=3x2x4 --strides 0 --pads_begin 0 --pads_end 0 "
      "--dilations 1",
      "attribute 'strides' is 0 at entry 0, expected at least 1");
}

TEST_F(VerifyTest, AnOptionAfterTheLastProblemIsNotIgnored) {
  ExpectRefused("verify ic4ih5oc3kh3 --dt=bf16", "'--dt=bf16' comes after the last problem");
}

// ---- explain, ops, help ----

class ExplainTest : public CommandFixture {
 protected:
  // The value of the first line with this key.
  static std::string Field(const std::string& text, const std::string& key) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with(key + " ")) return line.substr(line.find_first_not_of(' ', key.size()));
    }
    ADD_FAILURE() << "no line " << key << " in: " << text;
    return "";
  }
};

TEST_F(ExplainTest, TheProblemItPrintsMakesTheSameProblem) {
  for (const std::string& line :
       {std::string("ic4ih5oc3kh3"),
        std::string("--deconv --dir=BWD_WB --dt=bf16 g2ic4iw9oc6kw3sw2"),
        std::string("--dir=BWD_D --stag=axb --wtag=xba --dtag=axb mb3_ic4id5_oc3_kd2_dd1"),
        std::string("Convolution src=1x5x2 weights=3x2x4 --dtype=f16") + kWindow,
        std::string("ConvTransposeBackpropFilters-1 input_forward=2x4x2 output_delta=2x9x3 "
                    "--filter_shape=3,2,3 --strides=2 --pads_begin= --pads_end= --dilations=1")}) {
    SCOPED_TRACE(line);
    const std::string text = Succeeds("explain " + line).out;
    const std::string problem = Field(text, "problem");
    EXPECT_NE(Field(text, "kernel"), "");
    // As one word, and as many.
    const std::string again = Succeeds(Words{"explain", problem}).out;
    EXPECT_EQ(Field(again, "problem"), problem);
    EXPECT_EQ(Succeeds("explain " + problem).out, again);
    for (const std::string key : {"work", "tile", "workspace", "expected"}) {
      EXPECT_EQ(Field(again, key), Field(text, key));
    }
  }
}

TEST_F(ExplainTest, SaysWhatRuns) {
  const std::string text =
      Succeeds(std::string("explain --threads 3 --workspace 0 --kernel oracle "
                           "ConvTransposeBackwardWeights src=2x3x4 diff_dst=2x9x5 "
                           "--strides 2 --pads_begin 0 --pads_end 0 --dilations 1 "
                           "--weights_shape 5,5,4"))
          .out;
  EXPECT_EQ(Field(text, "operation"), "ConvTransposeBackwardWeights");
  EXPECT_TRUE(Field(text, "output").starts_with("diff_weights 5x5x4 f32")) << text;
  EXPECT_TRUE(Field(text, "problem").starts_with("wgrad f32 g1 n2 ci5 co4")) << text;
  EXPECT_NE(text.find("kernel      oracle runs: asked for by name"), std::string::npos) << text;
  EXPECT_EQ(Field(text, "threads"), "3");
  EXPECT_EQ(Field(text, "workspace"), "0 bytes of at most 0");
  ExpectRefused("explain", "no problem is given");
  ExpectRefused("explain bogus", "descriptor 'bogus'");
  ExpectRefused("explain --kernel bogus ic4ih5oc3kh3", "kernel 'bogus' is unknown");
  ExpectRefused("explain Convolution src=1x5x2 weights=3x3x4" + std::string(kWindow),
                "weights dim 1 is 3");
  ExpectRefused("explain fprop f32 g0", "'g0'");
  ExpectRefused("explain fprop f32 bogus1", "'bogus1'");
}

TEST_F(ExplainTest, OperationsInThreeForms) {
  const std::vector<std::string> names = {"Convolution",
                                          "ConvolutionBackwardData",
                                          "ConvolutionBackwardWeights",
                                          "ConvTranspose",
                                          "ConvTransposeBackwardData",
                                          "ConvTransposeBackwardWeights",
                                          "ConvolutionBackpropData",
                                          "ConvolutionBackpropFilters",
                                          "ConvTransposeBackpropData",
                                          "ConvTransposeBackpropFilters"};
  const std::string text = Succeeds("ops").out, markdown = Succeeds("ops --markdown").out;
  const nlohmann::json list = nlohmann::json::parse(Succeeds("ops --json").out, nullptr, false);
  ASSERT_TRUE(list.is_array());
  ASSERT_EQ(list.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(list[i]["name"], names[i]);
    EXPECT_EQ(CountLines(text, names[i] + "("), 1) << names[i];
    EXPECT_EQ(CountLines(markdown, "| " + names[i] + " |"), 1) << names[i];
  }
  EXPECT_EQ(list[5]["inputs"][1]["name"], "diff_dst");
  EXPECT_EQ(list[9]["means"], "ConvTransposeBackwardWeights");
  EXPECT_EQ(list[0]["attributes"][0]["name"], "strides");
  EXPECT_EQ(list[0]["attributes"][0]["required"], true);
  ExpectRefused("ops --json --markdown", "--json excludes --markdown");
  ExpectRefused("ops --xml", "--xml");
  ExpectRefused("ops Convolution", "Convolution");
}

TEST_F(ExplainTest, VersionAndHelp) {
  const std::string version = Succeeds("--version").out;
  EXPECT_TRUE(version.starts_with("convgrad ")) << version;
  EXPECT_EQ(version.find_first_not_of("0123456789.\n", 9), std::string::npos) << version;
  EXPECT_EQ(version.find('\n'), version.size() - 1);
  for (const std::string command : {"", "run", "verify", "explain", "ops"}) {
    SCOPED_TRACE(command);
    for (const std::string option : {" --help", " -h"}) {
      const std::string help = Succeeds(command + option).out;
      const size_t examples = help.find("\nExamples:\n  convgrad ");
      ASSERT_NE(examples, std::string::npos) << help;
      EXPECT_NE(help.find("  convgrad " + command, examples), std::string::npos) << help;
      EXPECT_NE(help.find("Usage: convgrad " + command), std::string::npos) << help;
    }
  }
}

// ---- Long runs ----

class LongRunTest : public CommandFixture {
 protected:
  static constexpr int kChannels = 128, kPixels = 32, kTaps = 5;

  // About 3 M multiply-adds for each of `channels`, by the one kernel whose speed does not grow.
  Words WeightsGradient(int channels) const {
    Put("src.npy", NpyBytes(Tensor{kF32,
                                   {1, kPixels, kPixels, kChannels},
                                   std::vector<double>(kPixels * kPixels * kChannels, 1)}));
    const auto count = static_cast<size_t>(kPixels * kPixels * channels);
    Put("diff_dst.npy",
        NpyBytes(Tensor{kF32, {1, kPixels, kPixels, channels}, std::vector<double>(count, 1)}));
    return Split(
        "run ConvolutionBackwardWeights src=src.npy diff_dst=diff_dst.npy --strides 1,1 "
        "--pads_begin 2,2 --pads_end 2,2 --dilations 1,1 --threads 1 --kernel oracle "
        "--weights_shape 5,5,128," +
        std::to_string(channels) + " --out out.npy");
  }

  // How many channels keep the oracle busy for so long, on this machine and in this build.
  int ChannelsFor(double seconds) const {
    constexpr int kSome = 8;
    const Words words = WeightsGradient(kSome);
    const auto begin = std::chrono::steady_clock::now();
    Succeeds(words);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    Remove("out.npy");
    return 1 + static_cast<int>(kSome * seconds / took.count());
  }
};

TEST_F(LongRunTest, InterruptedRunLeavesNothingAndWasSilent) {
  const Words words = WeightsGradient(ChannelsFor(8)) + Words{"diff_bias=old.npy"};
  Put("old.npy", "what was there before");
  const auto before = Snapshot();
  const CapturedStream out, err;
  const pid_t child =
      StartChild(Words{CONVGRAD_COMMAND} + words, directory_, out.descriptor(), err.descriptor());
  // Past the second after which a terminal would show progress.
  poll(nullptr, 0, 1500);
  ASSERT_EQ(kill(child, SIGINT), 0);
  const Outcome outcome = WaitForChild(child);
  EXPECT_EQ(outcome.signal, SIGINT) << "exit code " << outcome.exit_code;
  EXPECT_EQ(out.Text(), "");
  EXPECT_EQ(err.Text(), "");
  EXPECT_TRUE(before == Snapshot()) << "a file was created, changed or removed";
}

// What a command writes to a terminal that is its standard error.
std::string TerminalText(const Words& words, const std::string& directory) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_TRUE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  EXPECT_GE(terminal, 0);
  const CapturedStream out;
  const pid_t child =
      StartChild(Words{CONVGRAD_COMMAND} + words, directory, out.descriptor(), terminal);
  close(terminal);
  std::string text;
  char part[256];
  // Ends with an error when the child, the last that has the terminal open, is gone.
  for (ssize_t got; (got = read(master, part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  close(master);
  const Outcome outcome = WaitForChild(child);
  EXPECT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal;
  EXPECT_EQ(out.Text(), "");
  return text;
}

TEST_F(LongRunTest, ShowsProgressOnATerminalAfterASecondAndClearsIt) {
  EXPECT_EQ(TerminalText(WeightsGradient(1), directory_), "") << "less than a second";
  // The machine may have been busier while the speed was measured than it is then.
  int channels = ChannelsFor(2);
  std::string text;
  for (std::chrono::duration<double> took{0}; took.count() < 1.5 && !HasFailure(); channels *= 2) {
    const Words words = WeightsGradient(channels);
    const auto begin = std::chrono::steady_clock::now();
    text = TerminalText(words, directory_);
    took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(ParseNpy(Get("out.npy")).extents, (Dims{kTaps, kTaps, kChannels, channels}));
  }
  const std::string clear = "\r\033[K";  // to the line's beginning, and erase it
  EXPECT_TRUE(text.starts_with(clear + "1 s  ConvolutionBackwardWeights")) << text;
  EXPECT_TRUE(text.ends_with(clear)) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

}  // namespace
}  // namespace convgrad::tools
