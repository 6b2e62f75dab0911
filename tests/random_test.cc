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
  uint64_t built = 0, wider = 0;  // wider: f32 gradients of smaller types
  for (uint64_t i = 0; built < wanted; ++i) {
    ASSERT_LT(i, 20 * wanted) << "too few recipes are legal";
    const Recipe recipe = RandomRecipe(seed + i);
    if (!Build(recipe)) continue;
    ++built;
    ++kinds[recipe.kind];
    const std::optional<Case> item = Build(recipe);
    wider += item->outputs[0].type != item->inputs[0].type ? 1 : 0;
    if (!Failure(recipe)) continue;
    const Recipe least = Shrink(recipe, [](const Recipe& r) { return Failure(r).has_value(); });
    FAIL() << *Failure(least) << "\n  replay: convgrad verify " << Build(least)->text
           << "\n  found with CONVGRAD_SEED=" << seed << " at case " << i;
  }
  EXPECT_EQ(kinds.size(), 10u);
  EXPECT_GT(wider, wanted / 30);
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

// The check itself must be able to fail: a wrong element has to show, on integers and on reals, and
// so has a byte that was written beside the elements.
class TamperTest : public testing::Test {
 protected:
  static Case PaddedCase() {
    Recipe recipe;
    recipe.kind = static_cast<int>(OpKind::kConvolutionBackwardWeights);
    recipe.extent = {9, 9, 9};
    recipe.taps = {3, 3, 3};
    recipe.spatial = 2;
    recipe.icg = 2;
    recipe.layout = 1;  // rows with a gap
    recipe.shape_tensor = 2;
    return *Build(recipe);
  }

  static std::string FailureOf(std::function<void(tools::TensorBuffer&, bool)> tamper,
                               std::string kernel = "") {
    CheckRequest request;
    request.options.kernel = kernel;
    request.tamper = [&](std::vector<tools::TensorBuffer>& outputs, bool integers) {
      tamper(outputs[0], integers);
    };
    return CheckCase(PaddedCase(), request).failure;
  }
};

TEST_F(TamperTest, NothingDoneIsNothingFound) {
  EXPECT_EQ(FailureOf([](tools::TensorBuffer&, bool) {}), "");
}

TEST_F(TamperTest, AWrongIntegerIsFound) {
  const std::string failure = FailureOf([](tools::TensorBuffer& out, bool integers) {
    if (integers) out.Set(7, out.At(7) + 1);
  });
  EXPECT_NE(failure.find("diff_weights[0,0,2,1] is "), std::string::npos) << failure;
  EXPECT_NE(failure.find("the formula says"), std::string::npos) << failure;
  EXPECT_NE(failure.find("(integer data)"), std::string::npos) << failure;
}

TEST_F(TamperTest, ANegativeZeroIsFound) {
  const std::string failure = FailureOf([](tools::TensorBuffer& out, bool integers) {
    if (!integers) return;
    for (int64_t i = 0; i < out.elements(); ++i) {
      if (out.At(i) == 0) out.Set(i, -0.0);
    }
    out.Set(0, out.At(0) == 0 ? -0.0 : -out.At(0));
  });
  EXPECT_NE(failure.find("the formula says"), std::string::npos) << failure;
}

TEST_F(TamperTest, ARealTwoUlpsOffIsFound) {
  const std::string failure = FailureOf(
      [](tools::TensorBuffer& out, bool integers) {
        if (!integers) out.Set(3, out.At(3) * (1 + 0x1p-22));
      },
      "oracle");
  EXPECT_NE(failure.find("diff_weights[0,0,1,0] is "), std::string::npos) << failure;
  EXPECT_NE(failure.find("(real data)"), std::string::npos) << failure;
}

// Twice what a sum of that many terms may be off by, where every product is at most 1.
TEST_F(TamperTest, ARealBeyondTheErrorBoundIsFound) {
  const Case item = PaddedCase();
  const Result<Plan> plan = Plan::Make(item.operation, item.inputs, item.outputs);
  ASSERT_TRUE(plan.ok());
  const double terms =
      plan->flops() / 2 / static_cast<double>(tools::TensorBuffer(plan->output()).elements());
  const double beyond = 4 * terms * plan->error_bound();
  ASSERT_LT(beyond, 1e-3);
  for (int64_t budget : {1, 1'000'000}) {  // the oracle's run sees it, or the formulas
    CheckRequest request;
    request.product_budget = budget;
    request.tamper = [&](std::vector<tools::TensorBuffer>& outputs, bool integers) {
      if (!integers) outputs[0].Set(8, outputs[0].At(8) + beyond);
    };
    const std::string failure = CheckCase(item, request).failure;
    EXPECT_NE(failure.find(budget == 1 ? "the oracle says" : "the formula says"), std::string::npos)
        << failure;
    EXPECT_NE(failure.find("(real data)"), std::string::npos) << failure;
  }
}

TEST_F(TamperTest, AByteBetweenTheElementsIsFound) {
  const std::string failure = FailureOf([](tools::TensorBuffer& out, bool) {
    // Rows are one element longer than they need to be.
    static_cast<unsigned char*>(out.data())[3 * sizeof(float)] ^= 1;
  });
  EXPECT_NE(failure.find("bytes between the elements of diff_weights were written"),
            std::string::npos)
      << failure;
}

// An element that only the oracle's run sees: the budget of the formulas ends before it.
TEST_F(TamperTest, AnElementThatIsNotSampledIsFound) {
  CheckRequest request;
  request.product_budget = 1;  // the first and the last element
  request.tamper = [](std::vector<tools::TensorBuffer>& outputs, bool integers) {
    if (integers) outputs[0].Set(8, outputs[0].At(8) + 1);
  };
  const std::string failure = CheckCase(PaddedCase(), request).failure;
  EXPECT_NE(failure.find("the oracle says"), std::string::npos) << failure;
}

TEST_F(TamperTest, ATapThatTouchesNoDataIsExactlyZero) {
  Recipe recipe;
  recipe.kind = static_cast<int>(OpKind::kConvolutionBackwardWeights);
  recipe.type = 1;  // bf16
  recipe.taps = {3, 1, 1};
  recipe.pad_begin = recipe.pad_end = {1, 0, 0};
  recipe.shape_tensor = 2;
  CheckRequest request;
  request.tamper = [](std::vector<tools::TensorBuffer>& outputs, bool integers) {
    if (!integers) outputs[0].Set(0, 1e-6);
  };
  const std::optional<Case> item = Build(recipe);
  ASSERT_TRUE(item);
  EXPECT_NE(CheckCase(*item, request).failure.find("the formula says 0"), std::string::npos);
}

}  // namespace
}  // namespace convgrad::tests
