#include "spec/extent.h"

#include <algorithm>
#include <vector>

#include "core/text.h"
#include "core/window.h"

namespace convgrad {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidShape, std::move(message)}; }

Int128 Magnitude(int64_t value) { return value < 0 ? -Int128{value} : Int128{value}; }

// b > 0. Numbers of 64 bits, which nearly all are, are divided several times as fast as such.
Int128 FloorDiv(Int128 a, Int128 b) {
  const int64_t a64 = static_cast<int64_t>(a), b64 = static_cast<int64_t>(b);
  if (a == a64 && b == b64) return a64 / b64 - (a64 % b64 != 0 && a64 < 0);
  return a / b - (a % b != 0 && a < 0);
}

// Looks for steps along axes that lead from one place to another: start + sum step[a] * stride[a]
// in [from, to], with step[a] in [least[a], most[a]]. Axes are visited from the largest stride
// down; what the smaller axes can make up for leaves one candidate per axis in any nested layout, a
// few in an interleaved one.
class StepSearch {
 public:
  void Add(Int128 stride, int64_t least, int64_t most) {
    if (least < most) axes_.push_back({stride, least, most});
  }

  // As one with the axis of the same stride, if there is one: where zero steps count, only their
  // sum matters. (Channels of one tensor, 32x56x56: else 100000 visits.)
  void Merge(Int128 stride, int64_t least, int64_t most) {
    const auto same = std::find_if(axes_.begin(), axes_.end(),
                                   [&](const Axis& axis) { return axis.stride == stride; });
    if (same == axes_.end()) return Add(stride, least, most);
    same->least += least;
    same->most += most;
  }

  enum class Answer { kNone, kSome, kTooLong };
  // kMoves: not of zero steps alone.
  template <bool kMoves>
  Answer Run(Int128 start, Int128 from, Int128 to) {
    std::sort(axes_.begin(), axes_.end(),
              [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
    Int128 low = 0, high = 0;
    for (Axis& axis : axes_) {
      axis.low = low;
      axis.high = high;
      low += axis.stride * axis.least;
      high += axis.stride * axis.most;
    }
    from_ = from;
    to_ = to;
    const bool some = Visit<kMoves>(static_cast<int>(axes_.size()) - 1, start, false);
    return visits_ > kMostVisits ? Answer::kTooLong : some ? Answer::kSome : Answer::kNone;
  }

 private:
  static constexpr int kMostVisits = 100000;
  struct Axis {
    Int128 stride;
    int64_t least, most;
    Int128 low = 0, high = 0;  // what the axes with smaller strides can add
  };

  template <bool kMoves>
  bool Visit(int axis, Int128 at, bool moved) {
    if (++visits_ > kMostVisits) return true;
    if (axis < 0) return (moved || !kMoves) && at >= from_ && at <= to_;
    const Axis& step = axes_[static_cast<size_t>(axis)];
    const Int128 first = -FloorDiv(at + step.high - from_, step.stride);
    const Int128 last = FloorDiv(to_ - at - step.low, step.stride);
    for (Int128 d = std::max<Int128>(first, step.least); d <= std::min<Int128>(last, step.most);
         ++d) {
      if (Visit<kMoves>(axis - 1, at + d * step.stride, moved || d != 0)) return true;
    }
    return false;
  }

  std::vector<Axis> axes_;
  Int128 from_ = 0, to_ = 0;
  int visits_ = 0;
};

// The bytes of a tensor's elements: from the first to past the last.
struct ByteRange {
  Int128 begin, end;
};

ByteRange BytesOf(const TensorDesc& tensor, const void* data) {
  const auto at = static_cast<Int128>(reinterpret_cast<uintptr_t>(data));
  const int64_t size = SizeOf(tensor.type);
  ByteRange range{at, at + size};
  for (size_t a = 0; a < tensor.extents.size(); ++a) {
    const Int128 reach = Int128{tensor.strides[a]} * (tensor.extents[a] - 1) * size;
    (reach < 0 ? range.begin : range.end) += reach;
  }
  return range;
}

}  // namespace

bool IsEmpty(const TensorDesc& tensor) {
  return std::find(tensor.extents.begin(), tensor.extents.end(), 0) != tensor.extents.end();
}

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

// Two elements share memory if and only if some nonzero combination of index differences has an
// offset of zero.
Status CheckNoOverlap(std::string_view name, const TensorDesc& tensor) {
  if (IsEmpty(tensor)) return {};
  StepSearch search;
  bool repeats = false;  // which needs no search
  for (size_t a = 0; a < tensor.extents.size(); ++a) {
    const int64_t most = tensor.extents[a] - 1;
    repeats = repeats || (tensor.strides[a] == 0 && most > 0);
    search.Add(Magnitude(tensor.strides[a]), -most, most);
  }
  using Answer = StepSearch::Answer;
  const Answer answer = repeats ? Answer::kSome : search.Run<true>(0, 0, 0);
  if (answer == Answer::kNone) return {};
  return Invalid(Join(name, " of ", JoinNumbers(tensor.extents, "x"), " with strides ",
                      JoinNumbers(tensor.strides, ","),
                      answer == Answer::kSome
                          ? " has elements that share memory, an output must not"
                          : " interleaves its axes too deeply to show that no elements share "
                            "memory, expected an output whose axes nest"));
}

bool ShareMemory(const TensorDesc& one, const void* one_data, const TensorDesc& other,
                 const void* other_data) {
  if (one_data == nullptr || other_data == nullptr || IsEmpty(one) || IsEmpty(other)) return false;
  if (one_data == other_data) return true;
  if (other.strides.size() < other.extents.size()) {
    TensorDesc dense = other;
    return CompleteStrides("", dense).ok() && ShareMemory(one, one_data, dense, other_data);
  }
  const ByteRange a = BytesOf(one, one_data), b = BytesOf(other, other_data);
  if (a.end <= b.begin || b.end <= a.begin) return false;
  StepSearch search;
  const auto add = [&](const TensorDesc& tensor, bool back) {
    for (size_t i = 0; i < tensor.extents.size(); ++i) {
      const int64_t most = tensor.extents[i] - 1;
      if (tensor.strides[i] == 0) continue;
      search.Merge(Magnitude(tensor.strides[i]) * SizeOf(tensor.type), back ? -most : 0,
                   back ? 0 : most);
    }
  };
  add(one, false);
  add(other, true);
  return search.Run<false>(a.begin - b.begin, 1 - SizeOf(one.type), SizeOf(other.type) - 1) ==
         StepSearch::Answer::kSome;
}

}  // namespace convgrad
