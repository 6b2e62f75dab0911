// replay and --lenient end to end, through the command: logs of several versions, tables whose
// numbers agree, JSON, checks against the oracle, and one clear sentence for what is wrong.
#include <gtest/gtest.h>

#include "tests/command_line.h"

namespace convgrad::tools {
namespace {

using Json = nlohmann::json;

// Version 3, version 2 with blocked layouts, other primitives, other output.
constexpr const char* kLog =
    "epoch 1\n"
    "onednn_verbose,v1,info,oneDNN v3.5.3 (commit 0123456789)\n"
    "onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:4\n"
    "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv:avx2,forward_training,"
    "src:f32::blocked:acdb::f0 wei:f32::blocked:cdba::f0 bia:f32::blocked:a::f0 "
    "dst:f32::blocked:acdb::f0,attr-scratchpad:user ,alg:convolution_direct,"
    "mb2_ic8oc4_ih9oh9kh3sh1dh0ph1_iw9ow9kw3sw1dw0pw1,0.5\n"
    "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv:avx2,forward_training,"
    "src:f32::blocked:acdb::f0 wei:f32::blocked:cdba::f0 bia:f32::blocked:a::f0 "
    "dst:f32::blocked:acdb::f0,attr-scratchpad:user ,alg:convolution_direct,"
    "mb2_ic8oc4_ih9oh9kh3sh1dh0ph1_iw9ow9kw3sw1dw0pw1,0.25\n"
    "loss 0.125\n"
    "dnnl_verbose,exec,cpu,convolution,jit:avx2,backward_weights,src_f32::blocked:aBcd8b:f0 "
    "wei_f32::blocked:ABcd8b8a:f0 bia_f32::blocked:a:f0 dst_f32::blocked:aBcd8b:f0,,"
    "alg:convolution_direct,mb2_ic8oc8_ih9oh5kh3sh2dh0ph1_iw9ow5kw3sw2dw0pw1,2\n"
    "onednn_verbose,v1,primitive,exec,cpu,deconvolution,jit,backward_data,"
    "src:bf16::blocked:abcd::f0 wei:bf16::blocked:bacd::f0 bia:undef::undef::: "
    "dst:bf16::blocked:abcd::f0,,alg:deconvolution_direct,"
    "mb1_ic3oc5_ih4oh8kh3sh2dh0ph1_iw4ow8kw3sw2dw0pw1,0.125\n"
    "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv,forward_inference,"
    "src:u8::blocked:acdb::f0 wei:s8::blocked:Acdb8a::f0 bia:undef::undef::: "
    "dst:u8::blocked:acdb::f0,,alg:convolution_direct,mb1_ic3oc5_iw4ow4kw1sw1dw0pw0,0.125\n"
    "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:ab::f0 "
    "dst:f32::blocked:ba::f0,,,2x8,0.01\n"
    "onednn_verbose,v1,primitive,create:cache_hit,cpu,convolution,jit,forward_training,x\n";

class ReplayTest : public CommandFixture {
 protected:
  void SetUp() override {
    CommandFixture::SetUp();
    Put("train.log", kLog);
  }
};

TEST_F(ReplayTest, TableAndChecks) {
  const Outcome outcome = Succeeds("replay --verify --threads=1 --repetitions=3 train.log");
  const std::string& out = outcome.out;
  for (const char* part : {
           "train.log: 9 of 11 lines are verbose output of oneDNN v3.5.3, 4 threads\n",
           "replayed on 1 thread, as --threads says\n",
           "\n      2       0.750       0.375 ",
           "--conv --dir=FWD_B --dt=f32 --stag=acdb --wtag=cdba --dtag=acdb g1mb2_ic8ih9_oc4oh9",
           "--deconv --dir=BWD_D --dt=bf16",
           "        src as abcd instead of aBcd8b, wei as abcd instead of ABcd8b8a, dst as abcd "
           "instead of aBcd8b\n",
           "1 thread: 4 calls of 3 problems, 2.875 ms in the log, ",
           "skipped 1 convolution: the types are src u8, wei s8, dst u8",
           "skipped 1 call of other primitives: reorder 1\n",
           "3 passed, 0 failed\n",
       }) {
    EXPECT_NE(out.find(part), std::string::npos) << out << "lacks " << part;
  }
}

TEST_F(ReplayTest, JsonAgreesWithItself) {
  Succeeds("replay --threads=1,2 --repetitions=3 --json=out.json train.log");
  const Json all = Json::parse(Get("out.json"));
  EXPECT_EQ(all["log"]["version"], "oneDNN v3.5.3");
  EXPECT_EQ(all["log"]["threads"], "4");
  EXPECT_EQ(all["other_primitives"], (Json{{"reorder", 1}}));
  ASSERT_EQ(all["skipped"].size(), 1u);
  EXPECT_EQ(all["skipped"][0]["calls"], 1);
  ASSERT_EQ(all["totals"].size(), 2u);
  for (const Json& total : all["totals"]) {
    double logged = 0, convgrad = 0;
    int problems = 0;
    for (const Json& row : all["problems"]) {
      if (row["threads"] != total["threads"]) continue;
      ++problems;
      const double mine = row["convgrad_ms"], theirs = row["log_ms"];
      logged += theirs;
      convgrad += mine;
      EXPECT_GT(mine, 0);
      EXPECT_DOUBLE_EQ(row["ratio"].get<double>(), theirs / mine);
      EXPECT_DOUBLE_EQ(row["saved_ms"].get<double>(), theirs - mine);
      EXPECT_DOUBLE_EQ(row["convgrad_ms_per_call"].get<double>() * row["calls"].get<double>(),
                       mine);
      EXPECT_FALSE(row.contains("verified"));
    }
    EXPECT_EQ(problems, 3);
    EXPECT_DOUBLE_EQ(total["log_ms"].get<double>(), logged);
    EXPECT_DOUBLE_EQ(total["convgrad_ms"].get<double>(), convgrad);
    EXPECT_DOUBLE_EQ(total["saved_ms"].get<double>(), logged - convgrad);
  }
  EXPECT_EQ(all["problems"][2]["differences"].size(), 3u);
  EXPECT_EQ(all["problems"][2]["implementation"], "jit:avx2");
}

// What the table prints is what verify takes.
TEST_F(ReplayTest, ItsProblemsAreProblemLines) {
  Succeeds("replay --threads=1 --repetitions=1 --json=out.json train.log");
  const Json all = Json::parse(Get("out.json"));
  for (const Json& row : all["problems"]) {
    const Outcome outcome = Succeeds("verify " + row["problem"].get<std::string>());
    EXPECT_NE(outcome.out.find("1 passed, 0 failed"), std::string::npos) << outcome.out;
  }
}

TEST_F(ReplayTest, StandardInput) {
  const CapturedStream out, err;
  const Words shell = {"/bin/sh", "-c",
                       std::string(CONVGRAD_COMMAND) + " replay --repetitions=1 - < train.log"};
  const Outcome outcome =
      WaitForChild(StartChild(shell, directory_, out.descriptor(), err.descriptor()));
  EXPECT_EQ(outcome.exit_code, 0) << err.Text();
  EXPECT_TRUE(out.Text().starts_with("standard input: 9 of 11 lines")) << out.Text();
}

TEST_F(ReplayTest, Refusals) {
  Put("empty.log", "");
  Put("other.log", "hello\nonednn_verbose,info,oneDNN v3.0.0 (commit 0)\n");
  Put("int8.log", std::string(kLog).substr(std::string(kLog).find(
                      "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv,")));
  ExpectRefused("replay", "LOG is required");
  ExpectRefused("replay none.log", "none.log: the log cannot be opened: No such file");
  ExpectRefused("replay .", ".: the log cannot be read: Is a directory");
  ExpectRefused("replay empty.log", "empty.log: of 0 lines 0 are output of ONEDNN_VERBOSE=1");
  ExpectRefused("replay other.log", "other.log: of 2 lines 1 are output of ONEDNN_VERBOSE=1");
  ExpectRefused("replay --threads=x train.log", "--threads: 'x' is no number of threads");
  ExpectRefused("replay --kernel=none train.log", "none");
  ExpectRefused("replay --seconds=0 train.log", "--seconds more than 0");
  ExpectRefused("replay --json=no/such/folder.json train.log", "no/such");
}

// As many as the program had, unless there are fewer here; all where the log does not say.
TEST_F(ReplayTest, ThreadsAreThoseOfTheLog) {
  std::string log = kLog;
  const std::string four = "nthr:4";
  log.replace(log.find(four), four.size(), "nthr:1");
  Put("one.log", log);
  const Outcome one = Succeeds("replay --repetitions=1 one.log");
  EXPECT_NE(one.out.find("\nreplayed on 1 thread, as the log says\n"), std::string::npos)
      << one.out;
  EXPECT_NE(one.out.find("\n1 thread: 4 calls of 3 problems"), std::string::npos) << one.out;
  const Outcome given = Succeeds("replay --threads=2 --repetitions=1 one.log");
  EXPECT_NE(given.out.find("\nreplayed on 2 threads, as --threads says\n"), std::string::npos);
  EXPECT_NE(given.out.find("\n2 threads: 4 calls of 3 problems"), std::string::npos) << given.out;
  log.replace(log.find("nthr:1"), four.size(), "nthr:999999");
  Put("many.log", log);
  EXPECT_NE(Succeeds("replay --repetitions=1 many.log").out.find(", all: there are no more here\n"),
            std::string::npos);
  log.replace(log.find("nthr:999999"), 11, "");
  Put("silent.log", log);
  EXPECT_NE(Succeeds("replay --repetitions=1 silent.log").out.find(", all: the log does not say"),
            std::string::npos);
}

// What has no end, and what is no text.
TEST_F(ReplayTest, FilesThatAreNoLogs) {
  ExpectRefused("replay /dev/zero",
                "/dev/zero: line 1 of the log has more than 64 MiB: this is no text");
  Put("train.log.gz", "\x1f\x8b\b and so on");
  ExpectRefused("replay train.log.gz",
                "train.log.gz: the log must be text, it is compressed by gzip, and 'zcat "
                "train.log.gz' makes text of it: pipe that into 'convgrad replay -'");
  Put("wide.log", "\xff\xfeo");
  ExpectRefused("replay wide.log", "it is UTF-16, and 'iconv -f UTF-16 -t UTF-8 wide.log' makes");
  const std::string call = std::string(kLog).substr(std::string(kLog).find("onednn_verbose,v1,p"));
  Put("marked.log", "\xef\xbb\xbf" + call);
  EXPECT_TRUE(Succeeds("replay --threads=1 --repetitions=1 marked.log")
                  .out.starts_with("marked.log: 7 of 8 lines are verbose output\n"));
  // The problem files of other commands.
  ExpectRefused("verify --batch=/dev/zero", "'/dev/zero' has more than 64 MiB");
  ExpectRefused("verify --batch=train.log.gz", "'zcat train.log.gz' makes text of it");
  ExpectRefused("graph --batch=/dev/zero", "of at most 16777216 bytes");
  ExpectRefused("graph --batch=train.log.gz", "'zcat train.log.gz' makes text of it");
  ExpectRefused("graph /dev/zero", "bytes, and must have at most 67108864");
  ExpectRefused("graph train.log.gz", "'zcat train.log.gz' makes text of it");
  Put("marked.txt", "\xef\xbb\xbf--dir=BWD_W ic4ih5oc4kh3\n");
  Succeeds("verify --batch=marked.txt");
}

// What is skipped with a reason is no error, and has no ratio.
TEST_F(ReplayTest, NothingToRunIsNoError) {
  Put("int8.log", std::string(kLog).substr(std::string(kLog).find(
                      "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv,")));
  const Outcome skipped = Succeeds("replay --json=int8.json int8.log");
  EXPECT_NE(skipped.out.find("\nnothing ran\nskipped 1 convolution: the types are src u8"),
            std::string::npos)
      << skipped.out;
  EXPECT_EQ(skipped.out.find("ratio"), std::string::npos) << skipped.out;
  EXPECT_NE(Get("int8.json").find("the types are src u8"), std::string::npos);
  std::string huge = std::string(kLog).substr(0, std::string(kLog).find("loss"));
  huge.erase(0, huge.rfind("onednn_verbose", huge.rfind("mb2_")));
  huge.replace(huge.rfind("mb2_"), 4, "mb2000000000_");
  Put("huge.log", huge);
  const Outcome refused = Succeeds("replay --threads=1 --json=huge.json huge.log");
  EXPECT_NE(refused.out.find("\n1 thread: nothing ran, 1 problem was refused\n"), std::string::npos)
      << refused.out;
  EXPECT_EQ(Get("huge.json").find("\"ratio\""), std::string::npos);
}

// Whatever a log has in it: control characters do not reach the terminal.
TEST_F(ReplayTest, EscapesAreNotPrinted) {
  std::string log = kLog;
  const size_t place = log.find(",alg:");
  ASSERT_NE(place, std::string::npos);
  log.insert(place, "attr-post-ops:\x1b[31mrelu");
  Put("escape.log", log);
  const Outcome outcome = Succeeds("replay --repetitions=1 escape.log");
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" attr-post-ops:?[31mrelu"), std::string::npos) << outcome.out;
}

// Written on a larger machine: the rest is replayed.
TEST_F(ReplayTest, ProblemsThatDoNotFit) {
  std::string huge = std::string(kLog).substr(0, std::string(kLog).find("loss"));
  const size_t batch = huge.rfind("mb2_");
  huge.replace(batch, 4, "mb2000000000_");
  Put("huge.log", huge);
  const Outcome outcome = Succeeds("replay --repetitions=1 huge.log");
  EXPECT_NE(outcome.out.find("refused: its tensors do not fit in this machine"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find(": 1 call of 1 problem, "), std::string::npos) << outcome.out;
}

// --- --lenient ----------------------------------------------------------------------------------

class LenientTest : public CommandFixture {
 protected:
  void SetUp() override {
    CommandFixture::SetUp();
    std::filesystem::create_directory(Path("inputs"));
    Put("inputs/harness",
        "--reset --skip-impl=ref\n--dir=FWD_B,BWD_W --dt=f32,u8:s8:u8\n"
        "--attr-post-ops=, \\\n   sum:0.5\n--batch=shapes\n");
    Put("inputs/shapes", "# two\nmb1ic4ih7oc4kh3ph1n\"first\"\nmb1ic4iw7oc4kw3pw1n\"second\"\n");
    Put("int8", "--dt=u8:s8:u8 mb1ic4ih7oc4kh3ph1\n");
  }
};

TEST_F(LenientTest, VerifySaysWhatItPassedOver) {
  const Outcome outcome = Succeeds("verify --lenient --batch=inputs/harness");
  EXPECT_TRUE(outcome.out.starts_with("ignored: --skip-impl, --attr-post-ops\nskipped 4: --dt: "))
      << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("4 passed, 0 failed, 4 skipped\n")) << outcome.out;
  ExpectRefused("verify --batch=inputs/harness",
                "inputs/harness:1: '--skip-impl=ref' is not an option of problem lines");
}

TEST_F(LenientTest, BenchAndExplainToo) {
  const Outcome bench = Succeeds("bench --lenient --repetitions=1 --batch=inputs/harness");
  EXPECT_NE(bench.out.find("ignored: --skip-impl, --attr-post-ops\n"), std::string::npos);
  EXPECT_NE(bench.out.find("4 problems were skipped\n"), std::string::npos) << bench.out;
  const Outcome explain = Succeeds("explain --lenient --batch=inputs/harness");
  EXPECT_TRUE(explain.out.starts_with("ignored: --skip-impl, --attr-post-ops\n")) << explain.out;
}

TEST_F(LenientTest, NothingToRunIsNoError) {
  const Outcome outcome = Succeeds("verify --lenient --batch=int8");
  EXPECT_TRUE(outcome.out.ends_with("\nnothing ran: 0 passed, 0 failed, 1 skipped\n"))
      << outcome.out;
  // Nor is there a peak to be a share of.
  EXPECT_EQ(outcome.out.find("peak"), std::string::npos) << outcome.out;
  const Outcome bench = Succeeds("bench --lenient --batch=int8");
  EXPECT_EQ(bench.out.find("peak"), std::string::npos) << bench.out;
  EXPECT_TRUE(bench.out.ends_with("\nnothing ran\n1 problem was skipped\n")) << bench.out;
  Succeeds("explain --lenient --batch=int8");
  ExpectRefused("verify --lenient --match=none --batch=inputs/shapes", "no problem is left");
  ExpectRefused("verify --lenient", "no problem is given");
}

}  // namespace
}  // namespace convgrad::tools
