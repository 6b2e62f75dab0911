#include <convgrad/convgrad.hpp>

// One window of ones: the sum of the source.
int main() {
  const float src[4] = {1, 2, 3, 4}, weights[4] = {1, 1, 1, 1};
  float dst = 0;
  const convgrad::Operation operation{convgrad::OpKind::kConvolution,
                                      {{"strides", {1, 1}},
                                       {"pads_begin", {}},
                                       {"pads_end", {}},
                                       {"dilations", {1, 1}},
                                       {"data_format", "NCX"},
                                       {"weights_format", "OIX"}}};
  const convgrad::Status status = convgrad::Run(
      operation, {{src, {1, 1, 2, 2}}, {weights, {1, 1, 2, 2}}}, {{&dst, {1, 1, 1, 1}}});
  return status.ok() && dst == 10 ? 0 : 1;
}
