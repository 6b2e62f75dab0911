// The command's own options, the same for every subcommand: values that are missing, kernels that
// refuse, and names of files that are open already.
#include "tests/command_line.h"

namespace convgrad::tools {
namespace {

class CommandOptionsTest : public CommandFixture {};

// An unset shell variable leaves nothing after the =. It does not take the next word.
TEST_F(CommandOptionsTest, OptionsWithoutTheirValue) {
  Put("src.npy", NpyBytes(Integers({1, 5, 2}, 1)));
  Put("weights.npy", NpyBytes(Integers({3, 2, 4}, 2)));
  const std::vector<std::pair<std::string, Words>> commands = {
      {"run", {"out", "dtype", "out_dtype", "beta", "threads", "workspace", "kernel"}},
      {"verify", {"seed", "threads", "workspace", "kernel"}},
      {"explain", {"threads", "workspace", "kernel"}},
      {"graph", {"seed", "threads", "workspace", "kernel"}},
      {"bench",
       {"threads", "workspace", "kernel", "peer", "json", "random", "seed", "repetitions",
        "seconds"}},
      {"replay", {"threads", "workspace", "kernel", "seed", "json", "repetitions", "seconds"}},
  };
  for (const auto& [command, options] : commands) {
    for (const std::string& option : options) {
      const std::string empty = "--" + option + "=";
      ExpectRefused({command, empty, "train.log"}, "'" + empty + "' has no value, expected --" +
                                                       option + "=VALUE or --" + option + " VALUE");
    }
  }
  ExpectRefused("replay --verify= train.log", "'--verify=' has a value, and --verify takes none");
  ExpectRefused("graph --dump= x.json", "--dump= must have a file");
  ExpectRefused(
      "run Convolution src=src.npy weights=weights.npy --strides= --pads_begin 0 "
      "--pads_end 0 --dilations 1 --out out.npy",
      "strides");
}

// What a kernel that is asked for by name cannot run: one line for each problem, the others go on,
// and at the end one sentence and exit code 2.
TEST_F(CommandOptionsTest, KernelsThatRefuse) {
  const std::string refused = "ic64ih5oc64kh3", depthwise = "g16ic16ih5oc16kh3";
  const std::string reason = "refused: kernel 'direct' cannot run this problem: ";
  Put("train.log",
      "onednn_verbose,v1,primitive,exec,cpu,convolution,jit,forward_training,src:f32::blocked:abcd:"
      ":f0 "
      "wei:f32::blocked:abcd::f0 bia:undef::undef::: dst:f32::blocked:abcd::f0,,"
      "alg:convolution_direct,mb2_ic64oc64_ih5oh5kh3ph1,0.5\n");
  struct Tried {
    std::string line, sentence;
  };
  const std::string both = depthwise + " " + refused;
  for (const Tried& tried : {
           Tried{"verify --kernel=direct " + both, "1 of 2 problems"},
           Tried{"explain --kernel=direct " + both, "1 of 2 problems"},
           Tried{"bench --kernel=direct --threads=1 --repetitions=1 " + both, "1 of 2 timings"},
           Tried{"replay --kernel=direct --threads=1 --repetitions=1 train.log", "1 of 1 timing"},
           Tried{std::string("graph --kernel=direct ") + CONVGRAD_SOURCE_DIR +
                     "/problems/graphs/training_step.json",
                 "1 of 5 operations"},
       }) {
    SCOPED_TRACE(tried.line);
    const Outcome outcome = Convgrad(tried.line);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, "convgrad: kernel 'direct' cannot run " + tried.sentence + "\n");
    EXPECT_NE(outcome.out.find(reason), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("FAIL"), std::string::npos) << outcome.out;
  }
  const Outcome verify = Convgrad("verify --kernel=direct " + both);
  EXPECT_TRUE(verify.out.ends_with("\n1 passed, 0 failed, 1 refused\n")) << verify.out;
  Put("src.npy", NpyBytes(Integers({1, 5, 64}, 1)));
  Put("weights.npy", NpyBytes(Integers({3, 64, 64}, 2)));
  ExpectRefused(
      "run Convolution src=src.npy weights=weights.npy --strides 1 --pads_begin 0 --pads_end 0 "
      "--dilations 1 --kernel direct --out out.npy",
      "kernel 'direct' cannot run this problem: ");
}

// Too large for any machine, between two that are not.
TEST_F(CommandOptionsTest, TensorsThatDoNotFit) {
  Put("mid.txt", "ic4ih5oc4kh3\nic4096ih600000oc4096kh3n\"monster\"\nic8ih5oc4kh3\n");
  const std::string refused = "refused: its tensors do not fit in this machine (--conv ";
  const Outcome verify = Convgrad("verify --batch=mid.txt");
  EXPECT_EQ(verify.exit_code, 2);
  EXPECT_EQ(verify.err, "convgrad: this machine cannot run 1 of 3 problems\n");
  EXPECT_NE(verify.out.find(refused), std::string::npos) << verify.out;
  EXPECT_TRUE(verify.out.ends_with("\n2 passed, 0 failed, 1 refused\n")) << verify.out;
  const Outcome bench = Convgrad("bench --threads=1 --repetitions=1 --batch=mid.txt");
  EXPECT_EQ(bench.exit_code, 2);
  EXPECT_EQ(bench.err, "convgrad: this machine cannot run 1 of 3 timings\n");
  EXPECT_NE(bench.out.find("its tensors do not fit in this machine"), std::string::npos);
}

// Names of what is open already: a pipe, and a file that the shell has opened.
TEST_F(CommandOptionsTest, FilesThatAreOpenAlready) {
  const auto shell = [this](const std::string& tail) {
    return Launch({"/bin/sh", "-c",
                   std::string(CONVGRAD_COMMAND) +
                       " bench --repetitions=1 --json=/dev/stdout ic1ih1oc1kh1" + tail},
                  directory_);
  };
  EXPECT_EQ(shell(" | cat").err,
            "convgrad: /dev/stdout: this is a pipe, socket or device, expected a regular file\n");
  EXPECT_EQ(shell(" > table.txt").err,
            "convgrad: /dev/stdout: this is a file that is open already, expected the name of a "
            "file\n");
}

}  // namespace
}  // namespace convgrad::tools
