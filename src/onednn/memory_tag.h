// Memory tags of benchdnn: which order the axes of a tensor have in memory, as letters, the
// outermost first ("acdb", "nhwc"), or with x for all spatial axes ("axb"). Turns a tag into an
// order of axes and an order into dense strides. Knows nothing of operations, formats or files.
#ifndef CONVGRAD_ONEDNN_MEMORY_TAG_H_
#define CONVGRAD_ONEDNN_MEMORY_TAG_H_

#include <string_view>
#include <vector>

#include "convgrad/status.h"
#include "convgrad/types.h"

namespace convgrad::onednn {

// The axes of a tensor, the outermost first.
//   data     0 n, 1 c, 2... spatial
//   weights  0 g, 1 o, 2 i, 3... spatial; the g is left out when there is one group
using AxisOrder = std::vector<int>;

// `any` is abx.
Result<AxisOrder> DataOrder(std::string_view tag, int rank);

// With groups an explicit tag has one letter more (a = g); it may have it too when `groups` is 1.
// Of a wildcard tag over a = o and b = i the g is outermost (abx: g o i x), but in a tag that
// begins with x it stands before the last letter (xba: x i g o), as weights formats do with
// channels last. `any` is what the specification's first format is: g o i x, for ConvTranspose g i
// o x.
Result<AxisOrder> WeightsOrder(std::string_view tag, int rank, int64_t groups, bool transposed);

// What is wrong with a tag for every rank: blocked layouts, letters that no tag has.
Status CheckTag(std::string_view tag);

// Dense strides for `order`, indexed as `extents`; an axis that `order` leaves out gets stride 0.
// Fails when the elements are too many for 64-bit byte offsets.
Result<Dims> StridesOf(const AxisOrder& order, const Dims& extents);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_MEMORY_TAG_H_
