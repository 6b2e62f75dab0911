// Single output elements of the ten operations, straight from the words and formulas of
// docs/spec.md, in f64: the yardstick that the library's results are held against. It speaks the
// specification's vocabulary (src, weights, dst) and knows nothing of src/: no canonical form, no
// shared index map, no shared bf16 or f16. Make refuses what it could not evaluate and extents that
// contradict the specification; the other rules of legality are the library's.
#ifndef CONVGRAD_TOOLS_FORMULA_H_
#define CONVGRAD_TOOLS_FORMULA_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convgrad/operation.h"
#include "convgrad/status.h"
#include "convgrad/tensor.h"
#include "convgrad/types.h"

namespace convgrad::tools {

// Products of two s64 attributes or extents do not fit s64.
__extension__ typedef __int128 Int128;

double WidenBf16(uint16_t bits);
double WidenF16(uint16_t bits);

struct Term {
  double value = 0;      // sum of the products, plus bias
  double magnitude = 0;  // sum of their absolute values, plus |bias|: the scale of rounding errors
  int64_t count = 0;     // number of products; padding contributes none
};

// Keeps pointers into the inputs' data, which must outlive it.
class Formula {
 public:
  // `output` describes output 0; its extents are known, its type and strides play no part. Shape
  // tensors and shape attributes are not read: the output's extents stand for them.
  static Result<Formula> Make(const Operation& operation, std::vector<ConstTensorView> inputs,
                              TensorDesc output);

  // `index` in the axis order of the output's own format. An index outside the output gives NaN, so
  // that a wrong caller fails every comparison.
  Term At(std::span<const int64_t> index) const;

  // Element `channel` of diff_bias. NaN outside [0, OC), and for kinds other than BackwardWeights
  // and BackpropFilters.
  Term BiasAt(int64_t channel) const;

 private:
  // {n, channel, x...} of data, {o, i, k...} of weights; axes beyond the spatial rank are 0.
  using Place = std::array<int64_t, 5>;

  struct Tensor {
    const unsigned char* data = nullptr;  // null: the output
    DataType type = DataType::kUndef;
    Place extents{1, 1, 1, 1, 1};
    Place strides{0, 0, 0, 0, 0};
    std::array<int, 5> axis{-1, -1, -1, -1, -1};  // in the caller's order; -1: beyond the rank

    // At a place of data; for weights o and i stand for n and channel, taps for x.
    double Load(int64_t n, int64_t channel, int64_t x0, int64_t x1, int64_t x2) const;
  };

  // One spatial axis, in the letters of the specification.
  struct Window {
    int64_t src = 1, dst = 1, kernel = 1;              // I, O, K
    int64_t stride = 1, dilation = 1;                  // S, D
    Int128 pad_begin = 0, pad_end = 0, extra_dst = 0;  // PB, PE, OP

    Int128 Span() const { return Int128{kernel - 1} * dilation + 1; }  // E
    // position*S + tap*D - PB, where that lies in [0, extent).
    std::optional<int64_t> Image(int64_t position, int64_t tap, int64_t extent) const;
    // The p in [0, extent) with p*S + tap*D - PB == position.
    std::optional<int64_t> Preimage(int64_t position, int64_t tap, int64_t extent) const;
  };

  // A tap with the forward source and destination positions that it connects.
  struct Match {
    int64_t tap, src, dst;
  };
  using Matches = std::array<std::vector<Match>, 3>;

  Formula() = default;

  Status ReadTensors(const Operation& operation, const std::vector<ConstTensorView>& inputs,
                     const TensorDesc& output);
  Status ReadTensor(const std::string& name, const ConstTensorView& view, bool is_output,
                    const std::string& format, std::string_view letters, Tensor* tensor) const;
  Status ReadGroups(const Operation& operation);
  Status ReadBias(const std::vector<ConstTensorView>& inputs);
  Status ReadWindows(const Operation& operation);
  Status CheckExtents(int axis) const;

  const Tensor& Output() const;
  void FindMatches(const Window& window, int64_t at, std::vector<Match>& matches) const;
  Place WeightsPlace(int64_t group, int64_t o, int64_t i) const;
  Term DstAt(const Place& place, const Matches& matches) const;
  Term SrcAt(const Place& place, const Matches& matches) const;
  Term WeightsAt(const Place& place, const Matches& matches) const;

  OpKind kind_ = OpKind::kConvolution;  // one of the six: a "-1" name is the kind that it renames
  bool first_generation_ = false;       // a "-1" name
  int rank_ = 0;                        // spatial
  int64_t groups_ = 1;
  int64_t ic_per_group_ = 0, oc_per_group_ = 0;
  bool groups_on_o_ = true;  // the O axis of weights has all OC entries; else the I axis all IC
  Tensor src_, weights_, dst_, bias_;
  std::array<Window, 3> windows_;
};

}  // namespace convgrad::tools

#endif  // CONVGRAD_TOOLS_FORMULA_H_
