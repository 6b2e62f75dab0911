// The random problems of convgrad bench: the same for a seed everywhere, legal, and of every kind.
#include "tools/random_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "convgrad/plan.h"
#include "core/text.h"
#include "onednn/problem_descriptor.h"
#include "tools/problem_words.h"

namespace convgrad::tools {
namespace {

constexpr int kLines = 600;

std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  for (std::string_view word : SplitWords(line)) words.emplace_back(word);
  return words;
}

TEST(RandomLines, AreTheSameForASeed) {
  const std::vector<std::string> lines = RandomLines(7, kLines);
  ASSERT_EQ(lines.size(), size_t{kLines});
  EXPECT_EQ(lines, RandomLines(7, kLines));
  const std::vector<std::string> fewer = RandomLines(7, 20);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), lines.begin()));
  EXPECT_NE(fewer, RandomLines(8, 20));
  EXPECT_GT(std::set<std::string>(lines.begin(), lines.end()).size(), size_t{kLines} * 9 / 10);
}

// On every machine: a change of these lines makes problems that were reported by their seed others.
TEST(RandomLines, AreTheseLines) {
  const std::vector<std::string> lines = RandomLines(1, 3);
  EXPECT_EQ(lines[0],
            "--conv --dir=FWD_D --dt=f16 --stag=axb --wtag=xba --dtag=axb "
            "g1mb1_ic32ih1iw1_oc32oh1ow1_kh9kw9_sh1sw1_ph16pw16_dh3dw3_n\"random:dense\"");
  EXPECT_EQ(
      lines[1],
      "--conv --dir=FWD_B --dt=f16 --stag=axb --wtag=any --dtag=axb "
      "g1mb1_ic2ih38iw26_oc32oh38ow26_kh3kw3_sh1sw1_ph16pw1_dh15dw0_n\"random:few-channels\"");
  EXPECT_EQ(
      lines[2],
      "--conv --dir=BWD_WB --dt=f32 --stag=axb --wtag=any --dtag=axb "
      "g2048mb16_ic2048ih9iw9_oc2048oh9ow9_kh2kw3_sh1sw1_ph0pw16_dh7dw7_n\"random:depthwise\"");
}

TEST(RandomLines, MakePlansOfTheStatedSizes) {
  int large = 0;
  for (const std::string& line : RandomLines(20261115, kLines)) {
    const Result<std::vector<Case>> cases = ParseCases(WordsOf(line));
    ASSERT_TRUE(cases.ok()) << line << ": " << cases.status().message();
    ASSERT_EQ(cases->size(), 1u) << line;
    const Case& item = cases->front();
    const Result<Plan> plan = Plan::Make(item.operation, item.inputs, item.outputs);
    ASSERT_TRUE(plan.ok()) << line << ": " << plan.status().message();
    EXPECT_LE(plan->flops(), static_cast<double>(kMostRandomFlops)) << line;
    large += plan->flops() > 1e7 ? 1 : 0;
    int64_t bytes = 0;
    for (const std::vector<TensorDesc>* descs : {&item.inputs, &item.outputs}) {
      for (const TensorDesc& desc : *descs) {
        int64_t elements = 1;
        for (int64_t extent : desc.extents) elements *= extent;
        bytes += 4 * elements;
      }
    }
    // The bias is not counted.
    EXPECT_LE(bytes, kMostRandomBytes + (1 << 20)) << line;
    // What bench prints of a problem makes it again.
    const Result<std::vector<Case>> again = ParseCases(item.words);
    ASSERT_TRUE(again.ok()) << item.text;
    EXPECT_EQ(again->front().text, item.text);
  }
  EXPECT_GT(large, kLines / 4);
}

// ---- Kinds ----

using Descriptor = onednn::ProblemDescriptor;
using onednn::ProblemAxis;

bool AnyAxis(const Descriptor& d, const std::function<bool(const ProblemAxis&)>& is) {
  return std::any_of(d.axes.begin(), d.axes.end(), is);
}

int64_t Pixels(const Descriptor& d) {
  int64_t pixels = 1;
  for (const ProblemAxis& axis : d.axes) pixels *= std::max(axis.in, axis.out);
  return pixels;
}

bool OneTap(const Descriptor& d) {
  return !AnyAxis(d, [](const ProblemAxis& axis) { return axis.kernel != 1; });
}

using Predicate = std::function<bool(const Descriptor&)>;

const std::map<std::string, Predicate>& ShapeKinds() {
  static const std::map<std::string, Predicate> kinds = {
      {"1-D", [](const Descriptor& d) { return d.rank() == 1; }},
      {"2-D", [](const Descriptor& d) { return d.rank() == 2; }},
      {"3-D", [](const Descriptor& d) { return d.rank() == 3; }},
      {"one image", [](const Descriptor& d) { return d.batch == 1; }},
      {"a batch", [](const Descriptor& d) { return d.batch > 1; }},
      {"images of one pixel", [](const Descriptor& d) { return Pixels(d) == 1; }},
      {"tiny images, large batch",
       [](const Descriptor& d) { return Pixels(d) < 64 && d.batch > 64; }},
      {"large images", [](const Descriptor& d) { return Pixels(d) > 100000; }},
      {"1x1", OneTap},
      {"kernel of 11",
       [](const Descriptor& d) { return AnyAxis(d, [](auto& a) { return a.kernel == 11; }); }},
      {"k1024 s256",
       [](const Descriptor& d) {
         return d.rank() == 1 && d.axes[0].kernel == 1024 && d.axes[0].stride == 256;
       }},
      {"stride beyond kernel",
       [](const Descriptor& d) { return AnyAxis(d, [](auto& a) { return a.stride > a.kernel; }); }},
      {"stride 2",
       [](const Descriptor& d) { return AnyAxis(d, [](auto& a) { return a.stride == 2; }); }},
      {"dilation 64",
       [](const Descriptor& d) {
         return AnyAxis(d, [](auto& a) { return a.dilation == 63 && a.kernel > 1; });
       }},
      {"uneven pads",
       [](const Descriptor& d) {
         return AnyAxis(d, [](auto& a) { return std::abs(a.pad_begin - a.pad_end) > 1; });
       }},
      {"output padding",
       [](const Descriptor& d) {
         return AnyAxis(d, [](auto& a) { return a.output_padding > 0; });
       }},
  };
  return kinds;
}

const std::map<std::string, Predicate>& ChannelKinds() {
  static const auto ci = [](const Descriptor& d) { return d.in_channels / d.groups; };
  static const auto co = [](const Descriptor& d) { return d.out_channels / d.groups; };
  static const std::map<std::string, Predicate> kinds = {
      {"dense", [](const Descriptor& d) { return d.groups == 1 && ci(d) > 15 && co(d) > 15; }},
      {"depthwise", [](const Descriptor& d) { return d.groups > 1 && ci(d) * co(d) == 1; }},
      {"multiplier", [](const Descriptor& d) { return d.groups > 1 && ci(d) == 1 && co(d) > 1; }},
      {"small groups", [](const Descriptor& d) { return d.groups > 1 && ci(d) > 1 && co(d) > 1; }},
      {"few in", [](const Descriptor& d) { return d.groups == 1 && ci(d) < 5 && co(d) > 15; }},
      {"few out", [](const Descriptor& d) { return d.groups == 1 && ci(d) > 15 && co(d) < 5; }},
      {"one to one", [](const Descriptor& d) { return d.groups * ci(d) * co(d) == 1; }},
  };
  return kinds;
}

TEST(RandomLines, AreOfEveryKind) {
  std::map<std::string, int> seen;
  for (const std::string& line : RandomLines(1, kLines)) {
    const std::vector<std::string> words = WordsOf(line);
    const Result<Descriptor> descriptor =
        onednn::ParseDescriptor(words.back(), words.front() == "--deconv");
    ASSERT_TRUE(descriptor.ok()) << line << ": " << descriptor.status().message();
    for (const auto* kinds : {&ShapeKinds(), &ChannelKinds()}) {
      for (const auto& [name, is] : *kinds) seen[name] += is(*descriptor) ? 1 : 0;
    }
    const Result<std::vector<Case>> cases = ParseCases(words);
    ASSERT_TRUE(cases.ok());
    const std::string format = words[3] == "--stag=axb" ? " NXC" : " NCX";
    ++seen[Join(NameOf(cases->front().operation.kind), " ", NameOf(cases->front().inputs[0].type),
                format)];
  }
  EXPECT_EQ(seen.size(), ShapeKinds().size() + ChannelKinds().size() + 6 * 3 * 2);
  for (const auto& [name, count] : seen) EXPECT_GE(count, 2) << name;
}

}  // namespace
}  // namespace convgrad::tools
