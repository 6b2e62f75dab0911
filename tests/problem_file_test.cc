// Problem files as benchdnn's users have them: continuation lines, explicit strides, files that
// include files, and what a lenient parser ignores, skips and still refuses.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "onednn/problem_line.h"

namespace convgrad::onednn {
namespace {

// Files in memory, by path.
using Files = std::map<std::string, std::string>;

ProblemReading Reading(bool lenient, const Files& files = {}) {
  ProblemReading reading;
  reading.lenient = lenient;
  reading.read_file = [files](const std::string& path) -> Result<std::string> {
    const auto file = files.find(path);
    if (file != files.end()) return file->second;
    return Status(StatusCode::kInvalidArgument, "'" + path + "' is none");
  };
  return reading;
}

std::vector<std::string> TextsOf(const ProblemParser& parser) {
  std::vector<std::string> texts;
  for (const ProblemCase& problem : parser.cases()) texts.push_back(problem.text);
  return texts;
}

std::vector<std::string> TextsOf(const std::string& text) {
  ProblemParser parser;
  const Status status = parser.AcceptText(text);
  EXPECT_TRUE(status.ok()) << status.message();
  return TextsOf(parser);
}

std::string ErrorOf(const std::string& text, bool lenient = false, const Files& files = {}) {
  ProblemParser parser(Reading(lenient, files));
  const Status status = parser.AcceptText(text);
  EXPECT_FALSE(status.ok()) << text;
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  return status.message();
}

void ExpectError(const std::string& text, const std::string& part, bool lenient = false) {
  const std::string message = ErrorOf(text, lenient);
  EXPECT_NE(message.find(part), std::string::npos) << text << "\n" << message;
}

constexpr const char* kProblem = "mb1ic2ih5oc2kh1";

// --- options ------------------------------------------------------------------------------------

TEST(Options, AnEmptyValueIsTheDefault) {
  const std::vector<std::string> plain = TextsOf("--deconv mb1ic2ih5oc2kh1");
  EXPECT_EQ(TextsOf("--deconv --dir=BWD_D,BWD_W --dt=bf16 --stag=axb --wtag=axb --dtag=axb --mb=3 "
                    "--match=none --strides=50x25x5x1:: --dir= --dt= --stag= --wtag= --dtag= --mb= "
                    "--match= --strides= mb1ic2ih5oc2kh1"),
            plain);
}

// A problem as it is given, with all entries, and as benchdnn prints it.
TEST(Options, MatchLooksAtThreeTexts) {
  const std::string pair = " --dir=FWD_D,BWD_W ic4ih7_oc4_kh3ph1";
  EXPECT_EQ(TextsOf("--match=7_oc4_kh3ph1$" + pair).size(), 2u);
  EXPECT_EQ(TextsOf("--match=mb2_ic4ih7_oc4oh7_kh3_sh1_ph1_dh0" + pair).size(), 2u);
  EXPECT_EQ(TextsOf("--match=ic4ih7oc4oh7kh3ph1" + pair).size(), 2u);
  EXPECT_EQ(TextsOf("--match=BWD" + pair).size(), 1u);
  EXPECT_EQ(TextsOf("--match=ic4ih7oc4oh7kh3sh1" + pair).size(), 0u);
  const std::string name = " mb3ic4ih7oc4kh3sh2ph1dh1oh3n\"a\"";
  EXPECT_EQ(TextsOf("--match=^mb3ic4ih7oc4oh3kh3sh2ph1dh1n.a.$" + name).size(), 1u);
}

// --- descriptors --------------------------------------------------------------------------------

TEST(Descriptors, TheLastOfAnEntryCountsAndNoOutIsNone) {
  EXPECT_EQ(TextsOf("ic7ic2ih5oh9oc2kh3ph1oh0"), TextsOf("ic2ih5oc2kh3ph1"));
  EXPECT_EQ(TextsOf("ic2ih5iw5ow0oc2kh3kw1ph1"), TextsOf("ic2ih5iw5oc2kh3kw1ph1"));
  ExpectError("ic2ih5oc0kh1", "oc 0 must be at least 1");
}

TEST(Descriptors, ANameTakesTheRest) {
  const std::string problem = "mb1ic2ih5oc2kh1";
  EXPECT_EQ(TextsOf(problem + "n\"a\"*4"), TextsOf(problem + "n\"a*4\""));
  EXPECT_EQ(TextsOf(problem + "n\"open to  the end \n"),
            TextsOf(problem + "n\"open to  the end\""));
  EXPECT_EQ(TextsOf(problem + "n\"open\n" + problem).size(), 2u);
}

// --- continuation lines -------------------------------------------------------------------------

TEST(Continuation, JoinsTheNextToken) {
  const std::vector<std::string> expected =
      TextsOf("--dir=BWD_D,BWD_W --dt=f32,bf16 mb1ic2ih5oc2kh1");
  ASSERT_EQ(expected.size(), 4u);
  for (const char* text : {
           "--dir=BWD_D,\\\nBWD_W --dt=f32,bf16 mb1ic2ih5oc2kh1",
           "--dir=BWD_D, \\\n      BWD_W\n--dt=f32, \\\n\tbf16\nmb1ic2\\\nih5oc2kh1",
           "--dir=BWD_D, \\\r\n  BWD_W\r\n--dt=f32,bf16\r\nmb1ic2ih5oc2kh1\r\n",
           "--dir=BWD_D, \\   # the comment of a line that goes on\n"
           "# a comment alone\n\n   BWD_W\n--dt=f32,bf16 mb1ic2ih5oc2kh1",
           // What begins with -- is no rest of a value.
           "--dir=BWD_D,BWD_W \\\n  --dt=f32,bf16\nmb1ic2ih5oc2kh1 \\\n",
           "--dir=BWD_D,BWD_W --dt=f32,bf16 mb1ic2ih5oc2kh1\\",
           "\\\n--dir=BWD_D, \\\n \\\n BWD_W --dt=f32,bf16 mb1ic2ih5oc2kh1",
       }) {
    EXPECT_EQ(TextsOf(text), expected) << text;
  }
}

// As in benchdnn, where a value goes on whatever blanks are between.
TEST(Continuation, GluesWhatIsNoOption) {
  ExpectError("--dt=f32 \\\n mb1ic2ih5oc2kh1", "--dt: 'f32mb1ic2ih5oc2kh1' must be one of");
  EXPECT_EQ(TextsOf("--dt=f32, \\\n bf16 \\\n --dir=BWD_W mb1ic2ih5oc2kh1").size(), 2u);
}

TEST(Continuation, NoCommentGoesOn) {
  EXPECT_EQ(TextsOf("# a comment \\\nmb1ic2ih5oc2kh1").size(), 1u);
  EXPECT_EQ(TextsOf("mb1ic2ih5oc2kh1n\"a\\\" mb1ic3ih5oc2kh1").size(), 2u);
}

TEST(Continuation, HasALimit) {
  std::string text = "--dir=BWD_W";
  for (int i = 0; i < 2000; ++i) text += ",\\\n BWD_W";
  ExpectError(text, "characters, and must have at most 4096");
}

// --- strides ------------------------------------------------------------------------------------

ProblemCase One(const std::string& text) {
  ProblemParser parser;
  const Status status = parser.AcceptText(text);
  EXPECT_TRUE(status.ok()) << text << "\n" << status.message();
  EXPECT_EQ(parser.cases().size(), 1u);
  return parser.cases().empty() ? ProblemCase() : parser.cases().front();
}

TEST(Strides, OfEachTensor) {
  // Channels last, rows of src with a gap of 4, images of dst with one of 6.
  const ProblemCase problem =
      One("--dir=FWD_D --strides=64x1x12x2:6x1x2x1:66x1x12x2 mb2ic2ih5oc2oh5kh1");
  EXPECT_EQ(*problem.operation.attributes.Find("data_format")->text(), "NCX");
  EXPECT_EQ(problem.inputs[0].extents, (Dims{2, 2, 5, 5}));
  EXPECT_EQ(problem.inputs[0].strides, (Dims{64, 1, 12, 2}));
  EXPECT_EQ(problem.inputs[1].strides, (Dims{6, 1, 2, 1}));
  EXPECT_EQ(problem.outputs[0].strides, (Dims{66, 1, 12, 2}));
  EXPECT_EQ(One(problem.text).text, problem.text);
  EXPECT_EQ(One(problem.text).inputs[0].strides, problem.inputs[0].strides);
}

TEST(Strides, OfSomeTensors) {
  const ProblemCase problem = One("--dir=FWD_D --dtag=axb --strides=64x1x12x2:: mb2ic2ih5oc2kh1");
  EXPECT_EQ(problem.inputs[0].strides, (Dims{64, 1, 12, 2}));
  EXPECT_TRUE(problem.inputs[1].strides.empty());
  EXPECT_EQ(problem.outputs[0].strides, (Dims{50, 1, 10, 2}));
  EXPECT_EQ(One("--strides=:: mb2ic2ih5oc2kh1").text, One("mb2ic2ih5oc2kh1").text);
  EXPECT_EQ(TextsOf("--strides=::,64x1x12x2:: mb2ic2ih5oc2kh1").size(), 2u);
}

TEST(Strides, OfGroupedWeights) {
  // g 2, two outputs and three inputs to each, 5 taps; every row of taps takes 8.
  const std::string line = " --dir=FWD_D g2mb1ic6iw9oc4kw5";
  EXPECT_EQ(One("--strides=:48x24x8x1:" + line).inputs[1].strides, (Dims{24, 8, 1}));
  ExpectError("--strides=:50x24x8x1:" + line, "the groups must lie directly outside o");
  ExpectError("--strides=:24x8x1:" + line, "--strides for wei has 3 numbers, and must have one");
  EXPECT_EQ(One("--strides=:7x24x8x1: --dir=FWD_D g1mb1ic6iw9oc4kw5").inputs[1].strides,
            (Dims{24, 8, 1}));
}

TEST(Strides, Errors) {
  ExpectError("--strides=1x2 mb1ic2ih5oc2kh1", "--strides: '1x2' must have three parts");
  ExpectError("--strides=1xa:: mb1ic2ih5oc2kh1", "--strides: '1xa' must be numbers joined by x");
  ExpectError("--strides=1x-2:: mb1ic2ih5oc2kh1", "'1x-2' must be numbers");
  ExpectError("--strides=::9x9 mb1ic2ih5oc2kh1", "--strides for dst has 2 numbers");
  ExpectError("--stag=axb --strides=50x1x10x2:: mb1ic2ih5oc2kh1",
              "--strides for src must not be given beside its tag axb");
  ExpectError("--strides=999999999999999x1x999999999999999x9:: mb900000ic2ih500000oc2kh1",
              "more bytes than 64 bits");
}

// --- files --------------------------------------------------------------------------------------

TEST(Files, BesideTheFilesThatInclude) {
  const Files files = {{"suites/all", "--batch=inner/first"},
                       {"suites/inner/first", "--batch=second --batch=shapes"},
                       {"suites/inner/second", "--dir=BWD_W"},
                       {"suites/shapes", kProblem}};
  ProblemParser parser(Reading(false, files));
  const Status status = parser.Accept("--batch=suites/all");
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(parser.cases().size(), 1u);
  EXPECT_EQ(parser.cases()[0].origin, "suites/shapes:1");
  EXPECT_EQ(parser.cases()[0].operation.kind, OpKind::kConvolutionBackwardWeights);

  EXPECT_EQ(ErrorOf("--batch=suites/all", false, {{"suites/all", "\n--batch=shapes_basic"}}),
            "suites/all:2: --batch=shapes_basic must name a file that can be read, and "
            "'suites/shapes_basic' is none; it is looked for beside the files that include it, and "
            "nowhere else");
}

TEST(Files, ThatIncludeBeyondUse) {
  Files files;
  for (int i = 0; i < 15; ++i) {
    std::string& text = files["f" + std::to_string(i)];
    for (int k = 0; k < 10; ++k) text += "--batch=f" + std::to_string(i + 1) + "\n";
  }
  files["f15"] = "# nothing\n";
  EXPECT_NE(ErrorOf("--batch=f0", false, files).find("more than the 10000 files"),
            std::string::npos);
}

TEST(Files, WithoutAnEnd) {
  ProblemParser parser;
  const Status status = parser.Accept("--batch=/dev/zero");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("'/dev/zero' has more than 64 MiB"), std::string::npos)
      << status.message();
}

// --- lenient ------------------------------------------------------------------------------------

TEST(Lenient, IgnoresOptionsAndNamesThemOnce) {
  const std::string text =
      "--skip-impl=ref --mode=P -v5 --attr-post-ops=, \\\n  sum:0.5, \\\n  relu+add:f32\n"
      "--allow-enum-tags-only=false mb1ic2ih5oc2kh1\n--skip-impl=gemm,ref mb1ic2ih5oc2kh1\n";
  ProblemParser parser(Reading(true));
  const Status status = parser.AcceptText(text);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(parser.cases().size(), 2u);
  EXPECT_EQ(parser.ignored_options(),
            (std::vector<std::string>{"--skip-impl", "--mode", "-v5", "--attr-post-ops",
                                      "--allow-enum-tags-only"}));
  EXPECT_TRUE(parser.skipped().entries().empty());
  ExpectError(text, "'--skip-impl=ref' is not an option of problem lines");
  ExpectError(text, "with --lenient others are ignored");
}

int64_t CountOf(const ProblemParser& parser, const std::string& part) {
  int64_t count = 0;
  for (const CountedReason& skipped : parser.skipped().entries()) {
    if (skipped.reason.find(part) != std::string::npos) count += skipped.count;
  }
  return count;
}

TEST(Lenient, SkipsWhatConvgradDoesNotHave) {
  const std::string text =
      "--dir=FWD_I,BWD_DW --dt=f32,u8:s8:u8,bf16:bf16:f32 --stag=abx,aBx16b\n"
      "mb1ic2ih5oc2kh1 mb1ic2iw5oc2kw1\n"
      "--reset --stag=nhwc mb1ic2ih5oc2kh1 mb1ic2iw5oc2kw1\n";
  ProblemParser parser(Reading(true));
  const Status status = parser.AcceptText(text);
  ASSERT_TRUE(status.ok()) << status.message();
  // Of 12 combinations for each of two problems, one each is left, then one with the right rank.
  ASSERT_EQ(parser.cases().size(), 3u);
  EXPECT_EQ(CountOf(parser, "--dir: 'BWD_DW' must be one of"), 12);
  EXPECT_EQ(CountOf(parser, "--dt: 'u8' must be one of f32, bf16 and f16"), 4);
  EXPECT_EQ(CountOf(parser, "--dt: 'bf16:bf16:f32' must have one type"), 4);
  EXPECT_EQ(CountOf(parser, "--stag: tag 'aBx16b'"), 2);
  EXPECT_EQ(CountOf(parser, "--stag=nhwc: tag 'nhwc' must have each letter"), 1);
  EXPECT_EQ(CountOf(parser, ""), 23);
}

TEST(Lenient, OldTypesAreTypes) {
  const auto cases = [](const std::string& cfg) {
    ProblemParser parser(Reading(true));
    const Status status = parser.AcceptText("--dir=BWD_W --cfg=" + cfg + " " + kProblem);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(parser.ignored_options().empty());
    std::string types;
    for (const ProblemCase& problem : parser.cases()) {
      types += std::string(NameOf(problem.inputs[0].type)) + ":" +
               std::string(NameOf(problem.outputs[0].type)) + " ";
    }
    return types;
  };
  EXPECT_EQ(cases("f32"), "f32:f32 ");
  EXPECT_EQ(cases("f32_wino"), "f32:f32 ");
  EXPECT_EQ(cases("bf16f32bf16,f16"), "bf16:f32 f16:f16 ");
  EXPECT_EQ(cases("u8s8u8,u8s8f32,bf16bf16f32,nonsense"), "");
  ExpectError("--cfg=f32", "'--cfg=f32' is not an option");
}

TEST(Lenient, OtherDriversHaveNoConvolutions) {
  ProblemParser parser(Reading(true));
  const Status status = parser.AcceptText(
      "--matmul --dt=f32 77x133:133x117 2x3:3x4\n--ip --reset mb112ic2048oc1000\n"
      "--conv mb1ic2ih5oc2kh1 --deconv mb1ic2ih5oc2kh1");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(parser.cases().size(), 2u);
  EXPECT_EQ(CountOf(parser, "--matmul problems are no convolutions"), 2);
  EXPECT_EQ(CountOf(parser, "--ip problems are no convolutions"), 1);
  ExpectError("--matmul 77x133:133x117", "'--matmul' is not an option of problem lines");
}

TEST(Lenient, FourTypesHaveABias) {
  ProblemParser parser(Reading(true));
  const Status status = parser.AcceptText(
      "--dt=f32:f32:f32:f32,bf16:bf16:f32:bf16,f32:f32:f32:f32:f32 " + std::string(kProblem));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(parser.cases().size(), 1u);
  EXPECT_EQ(CountOf(parser, "'bf16:bf16:f32:bf16' must have one type for wei and bia"), 1);
  EXPECT_EQ(CountOf(parser, "or four as src:wei:bia:dst"), 1);
}

// What is wrong in any reading of it.
TEST(Lenient, StillRefuses) {
  ExpectError("ic1iw3oc1kw1q5", "'q5' does not begin with one of", true);
  ExpectError("ic1iw3kw1", "oc is missing", true);
  ExpectError("--batch=none", "must name a file that can be read", true);
  ExpectError("--match=(", "'(' is not a regular expression", true);
  ExpectError("--dir", "--dir must have a value", true);
}

TEST(Lenient, ReasonsAreFew) {
  ProblemParser parser(Reading(true));
  std::string text;
  for (int i = 0; i < 300; ++i) text += "--stag=z" + std::to_string(i) + " mb1ic2ih5oc2kh1\n";
  const Status status = parser.AcceptText(text);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(parser.skipped().entries().size(), 101u);
  EXPECT_EQ(CountOf(parser, ""), 300);
  EXPECT_EQ(CountOf(parser, "other reasons"), 200);
}

// --- time and memory ----------------------------------------------------------------------------

TEST(Limits, ExpressionsTakePolynomialTime) {
  ProblemParser parser;
  const Status status = parser.AcceptText("--match=(a*)*b mb1ic2ih5oc2kh1n" +
                                          std::string(2000, 'a') + " mb1ic2ih5oc2kh1");
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Limits, CasesAndCombinations) {
  ProblemReading reading;
  reading.most_cases = 10;
  ProblemParser parser(reading);
  EXPECT_TRUE(parser.AcceptText("--mb=1,2,3,4,5 ic2ih5oc2kh1 ic2ih5oc2kh1").ok());
  const Status one_more = parser.AcceptText("ic2ih5oc2kh1");
  EXPECT_NE(one_more.message().find("makes more than 10 cases"), std::string::npos);
  EXPECT_EQ(parser.cases().size(), 10u);
  ProblemParser matching(reading);
  std::string lines = "--match=none --mb=1,2,3,4,5 --dir=BWD_D,BWD_W";
  for (int i = 0; i < 5; ++i) lines += " ic2ih5oc2kh1";
  EXPECT_TRUE(matching.AcceptText(lines).ok());
  const Status many = matching.AcceptText("ic2ih5oc2kh1");
  EXPECT_NE(many.message().find("with 10 combinations of options makes more than 50 in all"),
            std::string::npos)
      << many.message();
  const Status at_once = ProblemParser(reading).AcceptText(lines + " --dt=f32,bf16 ic2ih5oc2kh1");
  EXPECT_NE(at_once.message().find("with 20 combinations of options makes more than 10 cases"),
            std::string::npos)
      << at_once.message();
}

}  // namespace
}  // namespace convgrad::onednn
