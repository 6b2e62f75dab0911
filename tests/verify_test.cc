// verify in one process with the tests, so that a problem can be made to fail: what is printed, the
// exit code, and a replay line that a shell reads back to the same problem.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "tools/commands.h"

namespace convgrad::tests {
namespace {

using tools::TensorBuffer;
using tools::VerifyRequest;

struct Outcome {
  int code = -1;
  std::string out;
};

Outcome Verify(const VerifyRequest& request) {
  testing::internal::CaptureStdout();
  const Result<int> code = tools::VerifyProblems(request);
  const std::string out = testing::internal::GetCapturedStdout();
  return {code.ok() ? *code : 2, out};
}

std::string Shell(const std::string& line) {
  const std::string folder = std::filesystem::path(CONVGRAD_COMMAND).parent_path();
  FILE* pipe = popen(("PATH='" + folder + "':$PATH; " + line).c_str(), "r");
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << line;
  return out;
}

void ExpectReplays(VerifyRequest request) {
  request.tamper = [](std::vector<TensorBuffer>& outputs, bool integers) {
    if (integers) outputs[0].Set(0, outputs[0].At(0) + 1);
  };
  const Outcome outcome = Verify(request);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("FAIL "), std::string::npos) << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("\n0 passed, 1 failed\n")) << outcome.out;
  const std::string label = "     replay: ";
  const size_t at = outcome.out.find(label);
  ASSERT_NE(at, std::string::npos) << outcome.out;
  const size_t begin = at + label.size();
  const std::string line = outcome.out.substr(begin, outcome.out.find('\n', begin) - begin);
  // The same problem, without the tampering: the words after PASS end like those after FAIL.
  const std::string again = Shell(line);
  EXPECT_TRUE(again.ends_with("\n1 passed, 0 failed\n")) << line << "\n" << again;
  const size_t fail = outcome.out.find("FAIL ") + 5;
  const std::string text = outcome.out.substr(fail, outcome.out.find(": ", fail) - fail);
  EXPECT_NE(again.find(text), std::string::npos) << text << " in " << again;
}

TEST(VerifyFailures, AreReplayedFromProblemLines) {
  ExpectReplays({.words = {"--dir=BWD_W", "--dt=bf16", "--stag=axb", "g2mb2_ic4ih6oc6kh3ph1"}});
  ExpectReplays({.words = {"--dir=BWD_WB", "--dt=f16:f32:f16", "ic4ih6oc6kh3ph1"}});
  ExpectReplays({.words = {"ic4ih5oc3kh3n\"a name, with 'quotes' and $blanks\""}});
}

TEST(VerifyFailures, AreReplayedFromOperationLines) {
  ExpectReplays({.words = {"Convolution", "src=1x5x2@10,-2,1", "weights=3x2x4", "--strides", "1",
                           "--pads_begin", "", "--pads_end=", "--dilations", "1", "--dtype", "f16"},
                 .options = {.threads = 2, .workspace_limit = 0, .kernel = "oracle"},
                 .seed = 3});
  ExpectReplays({.words = {"ConvolutionBackwardWeights", "src=2x6x3", "diff_dst=2x4x5", "--strides",
                           "1", "--pads_begin=0", "--pads_end=0", "--dilations", "1",
                           "--weights_shape=3,3,5", "--dtype=bf16", "--out_dtype=f32"}});
}

TEST(VerifyFailures, CountBothWays) {
  int calls = 0;
  VerifyRequest request{.words = {"ic4ih5oc3kh3", "ic5ih5oc3kh3"}};
  request.tamper = [&](std::vector<TensorBuffer>& outputs, bool) {
    if (++calls == 1) outputs[0].Set(0, outputs[0].At(0) + 1);
  };
  const Outcome outcome = Verify(request);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.out.ends_with("\n1 passed, 1 failed\n")) << outcome.out;
}

}  // namespace
}  // namespace convgrad::tests
