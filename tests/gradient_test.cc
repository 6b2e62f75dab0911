// The operations as a family: adjoint identities, and gradients that are the derivative of the
// forward operation. Neither uses an index formula, so neither can share a mistake with one.
#include <gtest/gtest.h>

#include <cmath>

#include "convgrad/convgrad.hpp"
#include "spec/schema.h"
#include "tests/random_case.h"
#include "tools/tensor_buffer.h"

namespace convgrad::tests {
namespace {

using tools::Case;
using tools::FillIntegers;
using tools::TensorBuffer;

// One problem seen as the three operations of its family.
struct Family3 {
  Case forward, data, weights;
};

std::optional<Family3> BuildFamily(uint64_t seed) {
  Recipe recipe = RandomRecipe(seed);
  const bool transposed = seed % 2 == 1;
  recipe.type = 0;
  recipe.bias = 0;
  recipe.shape_tensor = 2;
  recipe.rest = {0, 0, 0};
  recipe.layout =
      recipe.layout == 1 ? 2 : recipe.layout;  // inputs that repeat elements have no gradient
  const auto build = [&](OpKind kind) {
    recipe.kind = static_cast<int>(kind);
    return Build(recipe);
  };
  const auto forward = build(transposed ? OpKind::kConvTranspose : OpKind::kConvolution);
  const auto data =
      build(transposed ? OpKind::kConvTransposeBackwardData : OpKind::kConvolutionBackwardData);
  const auto weights = build(transposed ? OpKind::kConvTransposeBackwardWeights
                                        : OpKind::kConvolutionBackwardWeights);
  if (!forward || !data || !weights) return std::nullopt;
  return Family3{*forward, *data, *weights};
}

TensorBuffer RunCase(const Case& item, const TensorBuffer& a, const TensorBuffer& b) {
  Result<Plan> plan = Plan::Make(item.operation, item.inputs, item.outputs);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  TensorBuffer out(plan->output());
  std::vector<char> workspace(static_cast<size_t>(plan->workspace_bytes()));
  EXPECT_TRUE(plan->Run({a.data(), b.data()}, out.data(), workspace.data()).ok());
  return out;
}

double Inner(const TensorBuffer& a, const TensorBuffer& b) {
  EXPECT_EQ(a.desc().extents, b.desc().extents);
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += a.At(i) * b.At(i);
  return sum;
}

// <forward(x, w), dy> = <x, data(dy, w)> = <w, weights(x, dy)>, exactly on integers.
TEST(Gradients, AreAdjoint) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const auto family = BuildFamily(seed);
    if (!family) continue;
    TensorBuffer x(family->forward.inputs[0]), w(family->forward.inputs[1]);
    TensorBuffer dy(family->data.inputs[0]);
    FillIntegers(x, 4, seed * 3 + 1);
    FillIntegers(w, 4, seed * 3 + 2);
    FillIntegers(dy, 4, seed * 3 + 3);
    const double forward = Inner(RunCase(family->forward, x, w), dy);
    const double data = Inner(x, RunCase(family->data, dy, w));
    const double weights = Inner(w, RunCase(family->weights, x, dy));
    ASSERT_EQ(forward, data) << family->data.text;
    ASSERT_EQ(forward, weights) << family->weights.text;
    ++checked;
  }
  EXPECT_GT(checked, 500);
}

double Loss(const TensorBuffer& y) { return Inner(y, y) / 2; }

// For L = |forward(x, w)|^2 / 2 the gradients are data(y, w) and weights(x, y). L is quadratic in
// each argument, so a central difference in f64 has no truncation error; steps of 1 keep all data
// integers and every number exact.
TEST(Gradients, AreTheDerivativeOfTheForwardOperation) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const auto family = BuildFamily(seed);
    if (!family) continue;
    TensorBuffer x(family->forward.inputs[0]), w(family->forward.inputs[1]);
    FillIntegers(x, 2, seed * 2 + 1);
    FillIntegers(w, 2, seed * 2 + 2);
    const TensorBuffer y = RunCase(family->forward, x, w);
    const TensorBuffer dx = RunCase(family->data, y, w);
    const TensorBuffer dw = RunCase(family->weights, x, y);
    const auto check = [&](TensorBuffer& input, const TensorBuffer& gradient, const Case& item) {
      for (int64_t i = 0; i < input.elements(); i += 1 + input.elements() / 7) {
        const double kept = input.At(i);
        input.Set(i, kept + 1);
        const double above = Loss(RunCase(family->forward, x, w));
        input.Set(i, kept - 1);
        const double below = Loss(RunCase(family->forward, x, w));
        input.Set(i, kept);
        ASSERT_EQ((above - below) / 2, gradient.At(i)) << i << " of " << item.text;
        ++checked;
      }
    };
    check(x, dx, family->data);
    check(w, dw, family->weights);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(checked, 1000);
}

// The same at steps that are not exact, on reals, with the tolerance that rounding to f32 allows.
TEST(Gradients, AgreeWithFiniteDifferencesOnReals) {
  for (uint64_t seed = 500; seed < 600; ++seed) {
    const auto family = BuildFamily(seed);
    if (!family) continue;
    TensorBuffer x(family->forward.inputs[0]), w(family->forward.inputs[1]);
    tools::FillReals(x, seed);
    tools::FillReals(w, seed + 1);
    if (w.elements() == 0 || x.elements() == 0) continue;
    const TensorBuffer y = RunCase(family->forward, x, w);
    const TensorBuffer dw = RunCase(family->weights, x, y);
    const double kept = w.At(0), step = 0.25;
    w.Set(0, kept + step);
    const double up = w.At(0), above = Loss(RunCase(family->forward, x, w));
    w.Set(0, kept - step);
    const double down = w.At(0), below = Loss(RunCase(family->forward, x, w));
    // Each y is rounded to f32 once: an error of at most |y| 2^-24, so of at most |y|^2 2^-24 in L.
    const double tolerance =
        (std::abs(above) + std::abs(below)) * 0x1p-23 / (up - down) + std::abs(dw.At(0)) * 0x1p-22;
    ASSERT_NEAR((above - below) / (up - down), dw.At(0), tolerance) << family->weights.text;
  }
}

}  // namespace
}  // namespace convgrad::tests
