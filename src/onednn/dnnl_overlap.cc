#include "onednn/dnnl_overlap.h"

#include <algorithm>
#include <functional>
#include <span>

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

namespace {

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Looks for elements of two regions that meet: steps along axes of either, the largest stride
// first, each no further than the axes after it can make up for. Where axes nest, as those of
// tensors do, there are two or three such steps at each axis.
class MeetingSearch {
 public:
  struct Axis {
    int64_t stride, forth, back;  // bytes; steps of the one, and of the other
  };

  static constexpr size_t kMostAxes = 2 * DNNL_MAX_NDIMS;

  MeetingSearch(std::span<const Axis> axes, int64_t one_element, int64_t other_element)
      : axes_(axes), one_element_(one_element), other_element_(other_element) {
    for (size_t i = axes.size(); i-- > 0;) {
      reach_[i] = {reach_[i + 1].forth + axes[i].forth * axes[i].stride,
                   reach_[i + 1].back + axes[i].back * axes[i].stride};
    }
  }

  // An element of the one is `apart` bytes after an element of the other.
  bool Meets(int64_t apart, size_t axis = 0) {
    if (--visits_ < 0) return false;
    // They meet from least to most.
    const int64_t least = 1 - one_element_, most = other_element_ - 1;
    if (apart + reach_[axis].forth < least || apart - reach_[axis].back > most) return false;
    if (axis == axes_.size()) return true;
    const auto& [stride, forth, back] = axes_[axis];
    const Reach& rest = reach_[axis + 1];
    const int64_t first = -FloorDiv(-(least - apart - rest.forth), stride);
    const int64_t last = FloorDiv(most - apart + rest.back, stride);
    for (int64_t k = std::max(first, -back); k <= std::min(last, forth); ++k) {
      if (Meets(apart + k * stride, axis + 1)) return true;
    }
    return false;
  }

 private:
  struct Reach {
    int64_t forth = 0, back = 0;  // bytes that an axis and those after it can add, or take away
  };

  const std::span<const Axis> axes_;
  const int64_t one_element_, other_element_;
  Reach reach_[kMostAxes + 1];
  int visits_ = 4096;  // some microseconds
};

}  // namespace

bool Region::Meets(const Region& other) const {
  MeetingSearch::Axis axes[MeetingSearch::kMostAxes];  // nothing is allocated in a run
  MeetingSearch::Axis* end = axes;
  const auto signed_ = [](uint64_t value) { return static_cast<int64_t>(value); };
  for (int i = 0; i < rank_; ++i) {
    *end++ = {signed_(axes_[i].stride), signed_(axes_[i].steps), 0};
  }
  for (int i = 0; i < other.rank_; ++i) {
    const Axis& axis = other.axes_[i];
    const int64_t stride = signed_(axis.stride), steps = signed_(axis.steps);
    MeetingSearch::Axis* const same =
        std::ranges::find(axes, end, stride, &MeetingSearch::Axis::stride);
    if (same != end) {
      same->back += steps;
    } else {
      *end++ = {stride, 0, steps};
    }
  }
  std::ranges::sort(axes, end, std::greater(), &MeetingSearch::Axis::stride);
  return MeetingSearch({axes, end}, signed_(element_), signed_(other.element_))
      .Meets(signed_(begin_ - other.begin_));
}

bool Region::Shares(const Region& other) const {
  if (bytes_ == 0 || other.bytes_ == 0) return false;
  if (begin_ == other.begin_) return true;
  if (begin_ + bytes_ <= other.begin_ || other.begin_ + other.bytes_ <= begin_) return false;
  return (IsSolid() && other.HasElementIn(begin_, begin_ + bytes_)) ||
         (other.IsSolid() && HasElementIn(other.begin_, other.begin_ + other.bytes_)) ||
         Meets(other);
}

}  // namespace convgrad::onednn
