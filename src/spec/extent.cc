#include "spec/extent.h"

#include <algorithm>
#include <vector>

#include "core/text.h"
#include "core/window.h"

namespace convgrad {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidShape, std::move(message)}; }

Int128 Magnitude(int64_t value) { return value < 0 ? -Int128{value} : Int128{value}; }

// Two elements share memory if and only if some nonzero combination of index differences has an
// offset of zero: sum d[a] * stride[a] == 0 with |d[a]| < extent[a]. Axes are visited from the
// largest stride down; what the smaller axes can make up for (`reach`) leaves one candidate per
// axis in any nested layout, a few in an interleaved one.
class OverlapSearch {
 public:
  explicit OverlapSearch(const TensorDesc& tensor) {
    for (size_t a = 0; a < tensor.extents.size(); ++a) {
      if (tensor.extents[a] > 1) axes_.push_back({Magnitude(tensor.strides[a]), tensor.extents[a]});
    }
    std::sort(axes_.begin(), axes_.end(),
              [](const Step& a, const Step& b) { return a.stride < b.stride; });
    Int128 reach = 0;
    for (Step& axis : axes_) {
      axis.reach = reach;
      reach += axis.stride * (axis.extent - 1);
    }
  }

  enum class Answer { kDistinct, kShared, kTooLong };
  Answer Run() {
    // A stride of zero over several elements needs no search (and would have no candidate limit).
    if (!axes_.empty() && axes_.front().stride == 0) return Answer::kShared;
    const bool shared = Visit(static_cast<int>(axes_.size()) - 1, 0, false);
    return visits_ > kMostVisits ? Answer::kTooLong : shared ? Answer::kShared : Answer::kDistinct;
  }

 private:
  static constexpr int kMostVisits = 100000;
  struct Step {
    Int128 stride;
    int64_t extent;
    Int128 reach = 0;  // largest offset that the axes with smaller strides can make
  };

  bool Visit(int axis, Int128 offset, bool moved) {
    if (++visits_ > kMostVisits) return true;
    if (axis < 0) return moved && offset == 0;
    const Step& step = axes_[static_cast<size_t>(axis)];
    // |offset + d * stride| <= reach
    Int128 low = FloorTowardsMinus(-step.reach - offset + step.stride - 1, step.stride);
    Int128 high = FloorTowardsMinus(step.reach - offset, step.stride);
    low = std::max<Int128>(low, -(step.extent - 1));
    high = std::min<Int128>(high, step.extent - 1);
    for (Int128 d = low; d <= high; ++d) {
      if (Visit(axis - 1, offset + d * step.stride, moved || d != 0)) return true;
    }
    return false;
  }

  static Int128 FloorTowardsMinus(Int128 a, Int128 b) {
    const Int128 q = a / b;
    return q - (a % b != 0 && a < 0);
  }

  std::vector<Step> axes_;
  int visits_ = 0;
};

}  // namespace

Status CompleteStrides(std::string_view name, TensorDesc& tensor) {
  const size_t rank = tensor.extents.size();
  if (!tensor.strides.empty() && tensor.strides.size() != rank) {
    return Invalid(Join(name, " has ", tensor.strides.size(), " strides (",
                        JoinNumbers(tensor.strides, ","), "), expected ", rank,
                        ", one for each axis"));
  }
  Int128 elements = 1;
  for (int64_t extent : tensor.extents) {
    elements = elements * std::max<int64_t>(extent, 1);  // an empty axis must not hide the others
    if (elements > INT64_MAX / SizeOf(tensor.type)) {
      return Invalid(Join(name, " of ", JoinNumbers(tensor.extents, "x"), " ", NameOf(tensor.type),
                          " has more than 2^63 - 1 bytes"));
    }
  }
  if (tensor.strides.empty()) {
    tensor.strides.resize(rank);
    int64_t stride = 1;
    for (size_t a = rank; a-- > 0;) {
      tensor.strides[a] = stride;
      stride *= std::max<int64_t>(tensor.extents[a], 1);
    }
    return {};
  }
  Int128 reach = 0;
  for (size_t a = 0; a < rank; ++a) {
    reach += Magnitude(tensor.strides[a]) * std::max<int64_t>(tensor.extents[a] - 1, 0);
    if (reach > INT64_MAX / SizeOf(tensor.type) - 1) {
      return Invalid(Join(name, " of ", JoinNumbers(tensor.extents, "x"), " with strides ",
                          JoinNumbers(tensor.strides, ","), " spans more than 2^63 - 1 bytes"));
    }
  }
  return {};
}

Status CheckNoOverlap(std::string_view name, const TensorDesc& tensor) {
  for (int64_t extent : tensor.extents) {
    if (extent == 0) return {};
  }
  OverlapSearch search(tensor);
  const OverlapSearch::Answer answer = search.Run();
  if (answer == OverlapSearch::Answer::kDistinct) return {};
  return Invalid(Join(name, " of ", JoinNumbers(tensor.extents, "x"), " with strides ",
                      JoinNumbers(tensor.strides, ","),
                      answer == OverlapSearch::Answer::kShared
                          ? " has elements that share memory, an output must not"
                          : " interleaves its axes too deeply to show that no elements share "
                            "memory, expected an output whose axes nest"));
}

}  // namespace convgrad
