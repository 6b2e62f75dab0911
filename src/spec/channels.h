// Channels and groups: which weights shapes fit the channels of src and dst. Part of step 2.
#ifndef CONVGRAD_SPEC_CHANNELS_H_
#define CONVGRAD_SPEC_CHANNELS_H_

#include <cstdint>
#include <string_view>

#include "convgrad/status.h"
#include "spec/layout.h"
#include "spec/schema.h"

namespace convgrad {

constexpr int64_t kUnknown = -1;

// Channels of src (ic) and dst (oc), and which weights axis, 'O' or 'I', counts all groups.
struct Channels {
  int64_t ic = kUnknown;
  int64_t oc = kUnknown;
  char group_axis = 'O';
};

// What is known before the weights are looked at, and what things are called in messages.
struct ChannelQuestion {
  const OperationSchema* schema;
  int64_t groups;
  int64_t ic, oc;  // kUnknown where that tensor is the output
  std::string_view src_name, dst_name, weights_name;
};

// `o` and `i` are the extents of the weights' two channel axes, at dims layout.o and layout.i;
// kUnknown ones (of an output) are inferred by the caller from the answer.
Result<Channels> ResolveChannels(const ChannelQuestion& question, const WeightsLayout& layout,
                                 int64_t o, int64_t i);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_CHANNELS_H_
