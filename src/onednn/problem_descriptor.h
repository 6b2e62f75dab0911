// The descriptor of a problem line, "g2mb8_ic64ih56_oc64oh56_kh3_sh1_ph1_dh0_n"name"": its entries,
// and what follows from them when some are left out (docs/spec.md, "Problem lines"). The words are
// benchdnn's: i and o are the operation's own src and dst, dilation 0 is dense. Knows nothing of
// options, tags or tensors.
#ifndef CONVGRAD_ONEDNN_PROBLEM_DESCRIPTOR_H_
#define CONVGRAD_ONEDNN_PROBLEM_DESCRIPTOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/status.h"

namespace convgrad::onednn {

// One spatial axis, complete.
struct ProblemAxis {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 0;
  int64_t stride = 1;
  int64_t dilation = 0;  // 0 is dense
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  int64_t output_padding = 0;  // transposed only: what out has beyond the pads' reach
};

struct ProblemDescriptor {
  int64_t groups = 1;
  int64_t batch = 2;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  std::vector<ProblemAxis> axes;  // d, h, w; h, w; or w
  std::string name;               // may be empty

  int rank() const { return static_cast<int>(axes.size()); }
};

// No number of a descriptor, given or derived, may be larger: any two can be multiplied and summed
// in 128 bits, and a number that large is a typing error.
inline constexpr int64_t kLargestNumber = 1'000'000'000'000'000;

// Decimal digits only, at most kLargestNumber; -1 for anything else.
int64_t ParseNumber(std::string_view digits);

// `transposed` chooses the formulas: conv or deconv.
Result<ProblemDescriptor> ParseDescriptor(std::string_view token, bool transposed);

// Every entry, with the name; axes that are all alike are written once. Parses back to the same.
std::string ToString(const ProblemDescriptor& descriptor);

// As benchdnn prints it: without _, and without the entries of g, mb, strides and dilations that
// are defaults.
std::string ToCompactString(const ProblemDescriptor& descriptor);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_PROBLEM_DESCRIPTOR_H_
