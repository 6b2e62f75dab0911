#include "onednn/dnnl_overlap.h"

#include <algorithm>

#include "onednn/dnnl_logical_tensor.h"

namespace convgrad::onednn {

Region::Region(const void* data, size_t bytes)
    : begin_(reinterpret_cast<uintptr_t>(data)),
      bytes_(data == nullptr ? 0 : bytes),
      elements_(bytes_) {}

Region::Region(const dnnl_graph_logical_tensor_t& tensor, const void* data) {
  const size_t span = SpanBytes(tensor);
  if (data == nullptr || span == 0 || span == kUnknownBytes) return;
  begin_ = reinterpret_cast<uintptr_t>(data);
  bytes_ = element_ = elements_ = span;
  uint64_t reach = 0;  // elements past the first
  for (int axis = 0; axis < tensor.ndims; ++axis) {
    if (tensor.dims[axis] == 1 || tensor.layout.strides[axis] == 0) continue;
    axes_[rank_].stride = static_cast<uint64_t>(tensor.layout.strides[axis]);
    axes_[rank_].steps = static_cast<uint64_t>(tensor.dims[axis]) - 1;
    reach += axes_[rank_].stride * axes_[rank_].steps;
    ++rank_;
  }
  element_ = span / (reach + 1);
  std::sort(axes_, axes_ + rank_, [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  uint64_t below = 1, count = 1;  // elements that the axes of smaller strides span, and have
  for (int i = rank_ - 1; i >= 0; --i) {
    Axis& axis = axes_[i];
    if (axis.stride < below) count = 0;
    count *= axis.steps + 1;
    below += axis.stride * axis.steps;
    axis.stride *= element_;
  }
  elements_ = count;
}

// An element that lies in the range is one of the first of its axis that does, or the axis's last
// step before the range leads to it. Where the axes do not nest, this may miss one.
bool Region::HasElementIn(uint64_t begin, uint64_t end) const {
  const uint64_t low = begin - std::min(begin, element_ - 1);  // an element may begin before it
  uint64_t at = begin_;
  for (int i = 0; i < rank_ && at < low; ++i) {
    const Axis& axis = axes_[i];
    const uint64_t to_low = (low - at + axis.stride - 1) / axis.stride;  // steps
    if (to_low <= axis.steps && at + to_low * axis.stride < end) return true;
    at += std::min(to_low - 1, axis.steps) * axis.stride;
  }
  return at >= low && at < end;
}

bool Region::Shares(const Region& other) const {
  if (bytes_ == 0 || other.bytes_ == 0) return false;
  if (begin_ == other.begin_) return true;
  return (IsSolid() && other.HasElementIn(begin_, begin_ + bytes_)) ||
         (other.IsSolid() && HasElementIn(other.begin_, other.begin_ + other.bytes_));
}

}  // namespace convgrad::onednn
