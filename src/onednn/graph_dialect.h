// What versions of oneDNN wrote into graphs, in the words of the specification. Older versions
// named filters what is weights now, sometimes both in one operation; wrote negative pads_end; and
// a dump after partitioning has attributes that belong to no operation.
#ifndef CONVGRAD_ONEDNN_GRAPH_DIALECT_H_
#define CONVGRAD_ONEDNN_GRAPH_DIALECT_H_

#include "convgrad/status.h"
#include "onednn/graph_model.h"

namespace convgrad::onednn {

// `op` is of a kind that convgrad runs. The operation that computes the same:
// - partition_id and backend are left out.
// - filter_format beside a current name is weights_format; IOX and XOI beside a first-generation
//   name make the current name of it, with the current names of its attributes.
// - filter_format OIX or XIO of ConvTranspose, whose weights have their channel axes in the other
//   order: IOX or XOI, and these axes of the weights exchanged.
// - A negative pads_end is 0: of Convolution and ConvolutionBackwardWeights, where it takes windows
//   away, src ends before the pixels that it takes off. One that takes all of src away stays, and
//   is refused where the operation is checked.
GraphOp InCurrentWords(const GraphOp& op);

bool HasNegativePadsEnd(const GraphOp& op);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_GRAPH_DIALECT_H_
