// Attributes as values: the caller's list checked against the table, defaults filled in. Step 2.
#ifndef CONVGRAD_SPEC_ATTRIBUTES_H_
#define CONVGRAD_SPEC_ATTRIBUTES_H_

#include <optional>
#include <string>

#include "convgrad/operation.h"
#include "convgrad/status.h"
#include "spec/schema.h"

namespace convgrad {

enum class AutoPad { kNone, kSameUpper, kSameLower, kValid };

struct AttributeSet {
  Dims strides, dilations, output_padding;  // [spatial rank]
  Dims pads_begin, pads_end;                // as given; what auto_pad makes of them is not here
  AutoPad auto_pad = AutoPad::kNone;
  int64_t groups = 1;
  std::string data_format;
  std::string weights_format;  // or filter_format
  std::optional<Dims> shape;  // of the output: weights_shape, filter_shape, dst_shape, output_shape
};

// `spatial` is the number of spatial axes, known from the first input.
Result<AttributeSet> ReadAttributes(const OperationSchema& schema, const Attributes& attributes,
                                    int spatial);

}  // namespace convgrad

#endif  // CONVGRAD_SPEC_ATTRIBUTES_H_
