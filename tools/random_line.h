// Random legal problems to time, as problem lines: convgrad bench --random. A line says everything
// of its problem, so that it can be timed again alone. Makes text; plans and runs nothing.
#ifndef CONVGRAD_TOOLS_RANDOM_LINE_H_
#define CONVGRAD_TOOLS_RANDOM_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace convgrad::tools {

// The work of a problem is spread evenly over the logarithms between these. The most memory, the
// pads of a single image and the largest batch of tiny images make it less.
constexpr int64_t kLeastRandomFlops = int64_t{1} << 17;  // 0.13 MFLOP
constexpr int64_t kMostRandomFlops = int64_t{1} << 29;   // 537 MFLOP

// All tensors of a problem together, counted as f32.
constexpr int64_t kMostRandomBytes = int64_t{256} << 20;

// One problem a line: the same for a seed on every machine, and the first `count` of any larger
// number. The name of a problem is its kind of channels: random:dense, random:depthwise,
// random:multiplier, random:small-groups or random:few-channels.
std::vector<std::string> RandomLines(uint64_t seed, int count);

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_RANDOM_LINE_H_
