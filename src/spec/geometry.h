// One spatial axis in the words of the specification: pads from auto_pad, the unknown extent from
// the known ones, the relation between them. Part of step 2; the formulas themselves are
// core/window.h's.
#ifndef CONVGRAD_SPEC_GEOMETRY_H_
#define CONVGRAD_SPEC_GEOMETRY_H_

#include <cstdint>
#include <string_view>

#include "convgrad/status.h"
#include "spec/attributes.h"
#include "spec/channels.h"
#include "spec/schema.h"

namespace convgrad {

// A transposed convolution is a convolution with src and dst exchanged: `wide` is the side that the
// window slides over (src; for ConvTranspose dst), `narrow` the other.
struct SpatialAxis {
  int64_t wide = kUnknown;
  int64_t narrow = kUnknown;
  int64_t taps = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  int64_t output_padding = 0;
};

// What the extents are called in a message, such as "src dim 2".
struct SpatialNames {
  std::string wide, narrow, taps;
  int axis = 0;                // for output_padding
  std::string_view pads_note;  // where the pads are not the caller's own
};

// Completes the pads and the one extent that may be unknown, and checks the relation.
Status ResolveAxis(Family family, AutoPad auto_pad, const SpatialNames& names, SpatialAxis& axis);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_GEOMETRY_H_
