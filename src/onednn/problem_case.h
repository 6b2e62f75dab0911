// One case: an operation and its tensors, made from a descriptor and one choice of each option.
// The only file of this folder's problem lines that knows both benchdnn's words (dir, stag, oc) and
// the specification's (ConvolutionBackwardWeights, data_format, OIX). Reads no text.
#ifndef CONVGRAD_ONEDNN_PROBLEM_CASE_H_
#define CONVGRAD_ONEDNN_PROBLEM_CASE_H_

#include <string>
#include <string_view>
#include <vector>

#include "convgrad/operation.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "convgrad/types.h"
#include "onednn/problem_descriptor.h"

namespace convgrad::onednn {

struct ProblemCase {
  std::string text;  // the options and the descriptor that make this case again
  std::string name;  // as given with n, else the descriptor
  Operation operation;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::string origin;  // FILE:LINE of the descriptor, empty when it came from no file
};

enum class Direction { kFwdD, kFwdB, kFwdI, kBwdD, kBwdW, kBwdWB };

std::string_view NameOf(Direction direction);

struct CaseTypes {
  DataType data = DataType::kF32;     // of src and dst
  DataType weights = DataType::kF32;  // and bias; f32 beside bf16 or f16 where it is the gradient
};

// Explicit strides in elements, of src and dst over n, c and spatial, of weights over g where there
// are groups, o, i and spatial. An empty list: the tensor's tag says where its elements lie.
struct CaseStrides {
  Dims src;
  Dims weights;
  Dims dst;
};

struct CaseChoice {
  bool transposed = false;
  Direction direction = Direction::kFwdB;
  CaseTypes types;
  std::string src_tag = "any";
  std::string weights_tag = "any";
  std::string dst_tag = "any";
  CaseStrides strides;
};

// The options that are not defaults, each with a blank after it: "--dir=BWD_W --stag=axb ".
std::string OptionsText(const CaseChoice& choice);

// Fails when a tag or a list of strides does not fit the descriptor's rank and groups, or has no
// public format; when a tensor has both; and when weights that are read have another type than the
// data.
Result<ProblemCase> MakeCase(const ProblemDescriptor& descriptor, const CaseChoice& choice);

}  // namespace convgrad::onednn

#endif  // CONVGRAD_ONEDNN_PROBLEM_CASE_H_
