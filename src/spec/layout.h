// Where the axes are: the letters of a format name, read from left to right, are the axes of the
// tensor (X stands for all spatial axes). So a format needs no table of its own.
#ifndef CONVGRAD_SPEC_LAYOUT_H_
#define CONVGRAD_SPEC_LAYOUT_H_

#include <string_view>

namespace convgrad {

// The position of `letter`'s (first) axis in a tensor of format `format`.
constexpr int AxisOf(std::string_view format, char letter, int spatial) {
  int position = 0;
  for (char c : format) {
    if (c == letter) return position;
    position += c == 'X' ? spatial : 1;
  }
  return -1;
}

struct DataLayout {  // N, C, X
  int n, c, x;
};

constexpr DataLayout DataLayoutOf(std::string_view format, int spatial) {
  return {AxisOf(format, 'N', spatial), AxisOf(format, 'C', spatial), AxisOf(format, 'X', spatial)};
}

struct WeightsLayout {  // O, I, X
  int o, i, x;
};

constexpr WeightsLayout WeightsLayoutOf(std::string_view format, int spatial) {
  return {AxisOf(format, 'O', spatial), AxisOf(format, 'I', spatial), AxisOf(format, 'X', spatial)};
}

// Of gradients for each image: N, then the axes of the format.
constexpr WeightsLayout AfterImages(const WeightsLayout& layout) {
  return {layout.o + 1, layout.i + 1, layout.x + 1};
}

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_LAYOUT_H_
