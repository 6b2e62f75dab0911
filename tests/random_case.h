// Random legal operations, and the smallest one that still shows a failure.
#ifndef CONVGRAD_TESTS_RANDOM_CASE_H_
#define CONVGRAD_TESTS_RANDOM_CASE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "tools/operation_line.h"

namespace convgrad::tests {

// What an operation is made from; every field has a smallest value to shrink to.
struct Recipe {
  int kind = 0;            // OpKind
  int spatial = 1;         // 1 to 3
  int type = 0;            // f32, bf16, f16
  int wide_gradients = 0;  // gradients of weights and bias are f32, whatever the type
  int auto_pad = 0;
  int nxc = 0;
  int spatial_first_weights = 0;
  int documents_grouping = 0;  // ConvTranspose: (IC / G, OC) instead of (IC, OC / G)
  int bias = 0;
  int shape_tensor = 0;  // the output's shape: 0 attribute, 1 tensor, 2 output
  int layout = 0;        // 0 dense, 1 padded rows, 2 reversed axis order, 3 negative strides
  int64_t batch = 1, groups = 1, icg = 1, ocg = 1;
  std::array<int64_t, 3> extent{1, 1, 1};  // of src
  std::array<int64_t, 3> taps{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> pad_begin{0, 0, 0}, pad_end{0, 0, 0};
  std::array<int64_t, 3> output_padding{0, 0, 0};
  std::array<int64_t, 3> rest{0, 0,
                              0};  // ConvTranspose gradients: dst beyond the smallest, < stride
};

Recipe RandomRecipe(uint64_t seed);

// Nothing where the recipe is not legal.
std::optional<tools::Case> Build(const Recipe& recipe);

// Makes single fields smaller as long as `fails` still holds.
Recipe Shrink(Recipe recipe, const std::function<bool(const Recipe&)>& fails);

}  // namespace convgrad::tests

#endif  // CONVGRAD_TESTS_RANDOM_CASE_H_
