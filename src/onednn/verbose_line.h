// One line of what ONEDNN_VERBOSE=1 prints, of any version from 1.0 to 3.x: text in, fields out.
// Versions put fields in different places and add some, so each is found by what it looks like.
// Knows what the log says of a call, not whether convgrad has it.
#ifndef CONVGRAD_ONEDNN_VERBOSE_LINE_H_
#define CONVGRAD_ONEDNN_VERBOSE_LINE_H_

#include <string>
#include <string_view>

#include "convgrad/status.h"
#include "convgrad/types.h"

namespace convgrad::onednn {

// "src:f32:p:blocked:aBcd16b::f0", or "src_f32::blocked:acdb:f0" before 3.0.
struct VerboseTensor {
  std::string type;  // f32, bf16, u8, ...; empty or undef: the call has no such tensor
  std::string kind;  // blocked, any, wino, undef, ...
  std::string tag;   // of a blocked one: acdb, aBcd16b, ...
  Dims strides;      // of one that is not dense

  bool given() const { return !type.empty() && type != "undef"; }
};

struct VerboseCall {
  bool transposed = false;
  std::string engine;          // cpu, gpu; empty: the version has none but the CPU
  std::string implementation;  // brgconv:sve_256, jit:avx2, ...
  std::string pass;            // forward_training, backward_data, ...
  VerboseTensor src, weights, bias, dst;
  std::string attributes;   // attr-post-ops:..., separated as in the log
  std::string descriptor;   // mb8_ic64oc64_ih56oh56kh3sh1dh0ph1_...
  bool is_fused = false;    // a depthwise convolution follows within the same call
  double milliseconds = 0;  // as measured there
};

struct VerboseLine {
  enum class Kind {
    kText,            // some other program's
    kInfo,            // what the library says of itself
    kNotExecuted,     // creations, checks, templates
    kOtherPrimitive,  // a call of something else
    kCall,            // a call of a convolution or deconvolution
  };
  Kind kind = Kind::kText;
  std::string primitive;  // of a call
  std::string info;       // the text of kInfo
  VerboseCall call;
};

// Threads that print at the same time leave two records on one line: where the second one begins,
// else the line's length.
size_t NextRecord(std::string_view line);

// Of the first record of the line. Fails for a call of a convolution that lacks a field.
Result<VerboseLine> ParseVerboseLine(std::string_view line);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_VERBOSE_LINE_H_
