// Random legal operations of all ten names against the specification's formulas. A failure prints
// the smallest line that shows it; CONVGRAD_SEED chooses other problems, CONVGRAD_CASES how many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/random_case.h"
#include "tools/case_check.h"

namespace convgrad::tests {
namespace {

using tools::Case;
using tools::CheckCase;
using tools::CheckReport;
using tools::CheckRequest;

uint64_t Environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::optional<std::string> Failure(const Recipe& recipe) {
  const std::optional<Case> item = Build(recipe);
  if (!item) return std::nullopt;
  CheckRequest request;
  request.options.threads = 1 + static_cast<int>(recipe.batch % 3);
  const CheckReport report = CheckCase(*item, request);
  if (report.passed) return std::nullopt;
  return report.failure;
}

TEST(RandomProblems, AgreeWithTheFormulas) {
  const uint64_t seed = Environment("CONVGRAD_SEED", 20261115);
  const uint64_t wanted = Environment("CONVGRAD_CASES", 3000);
  std::cout << "CONVGRAD_SEED=" << seed << " CONVGRAD_CASES=" << wanted << "\n";
  std::map<int, int> kinds;
  uint64_t built = 0;
  for (uint64_t i = 0; built < wanted; ++i) {
    ASSERT_LT(i, 20 * wanted) << "too few recipes are legal";
    const Recipe recipe = RandomRecipe(seed + i);
    if (!Build(recipe)) continue;
    ++built;
    ++kinds[recipe.kind];
    if (!Failure(recipe)) continue;
    const Recipe least = Shrink(recipe, [](const Recipe& r) { return Failure(r).has_value(); });
    FAIL() << *Failure(least) << "\n  replay: convgrad verify " << Build(least)->text
           << "\n  found with CONVGRAD_SEED=" << seed << " at case " << i;
  }
  EXPECT_EQ(kinds.size(), 10u);
}

TEST(RandomProblems, LinesParseBack) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::optional<Case> item = Build(RandomRecipe(seed));
    if (!item) continue;
    std::vector<std::string> words;
    size_t at = 0;
    while (at < item->text.size()) {
      const size_t end = std::min(item->text.find(' ', at), item->text.size());
      words.push_back(item->text.substr(at, end - at));
      at = end + 1;
    }
    const Result<Case> parsed = tools::ParseCase(words);
    ASSERT_TRUE(parsed.ok()) << item->text << ": " << parsed.status().message();
    ASSERT_EQ(tools::ToText(parsed->operation, parsed->inputs, parsed->outputs), item->text);
  }
}

TEST(RandomProblems, ShrinkToTheSmallest) {
  // A made-up defect: it needs two groups and a stride of at least 2 on the second axis.
  const auto fails = [](const Recipe& r) {
    return r.groups >= 2 && r.stride[1] >= 2 && r.spatial >= 2;
  };
  Recipe large;
  large.spatial = 3;
  large.batch = 9;
  large.groups = 8;
  large.stride = {5, 7, 3};
  large.extent = {11, 12, 13};
  large.pad_begin = {3, 2, 1};
  const Recipe least = Shrink(large, fails);
  EXPECT_EQ(least.groups, 2);
  EXPECT_EQ(least.spatial, 2);
  EXPECT_EQ(least.batch, 1);
  EXPECT_EQ(least.stride, (std::array<int64_t, 3>{1, 2, 1}));
  EXPECT_EQ(least.extent, (std::array<int64_t, 3>{1, 1, 1}));
  EXPECT_EQ(least.pad_begin, (std::array<int64_t, 3>{0, 0, 0}));
}

// The check itself must be able to fail: a wrong expectation has to show.
TEST(RandomProblems, AWrongResultIsFound) {
  Recipe recipe;
  recipe.kind = static_cast<int>(OpKind::kConvolution);
  recipe.extent = {5, 5, 5};
  recipe.taps = {3, 3, 3};
  std::optional<Case> item = Build(recipe);
  ASSERT_TRUE(item);
  item->outputs[0].extents.back() += 1;
  const CheckReport report = CheckCase(*item, {});
  EXPECT_FALSE(report.passed);
  EXPECT_NE(report.failure.find("dst dim 2 is 4, expected 3"), std::string::npos) << report.failure;
}

}  // namespace
}  // namespace convgrad::tests
