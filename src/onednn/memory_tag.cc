// Memory tags: letters to an order of axes, and an order of axes to strides. Every tag ends up as a
// permutation of one alphabet ("abcd" or "nchw"); an x is first replaced by the spatial letters.
#include "onednn/memory_tag.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace convgrad::onednn {
namespace {

constexpr char kWildcard = 'x';

std::string Quote(std::string_view text) { return "'" + std::string(text) + "'"; }

// The position in `alphabet` of each letter of `tag`, if every letter of `alphabet` is there once.
std::optional<AxisOrder> AsPermutation(std::string_view tag, std::string_view alphabet) {
  if (tag.size() != alphabet.size()) return std::nullopt;
  AxisOrder order;
  for (char letter : tag) {
    const size_t axis = alphabet.find(letter);
    if (axis == std::string_view::npos) return std::nullopt;
    const int index = static_cast<int>(axis);
    if (std::find(order.begin(), order.end(), index) != order.end()) return std::nullopt;
    order.push_back(index);
  }
  return order;
}

// Two alphabets for one set of axes: the letters of the position and those of the meaning.
struct Alphabets {
  std::string positions;  // "abcd"
  std::string meanings;   // "nchw"
  size_t leading = 0;     // how many axes are not spatial
};

Alphabets AlphabetsOf(std::string_view leading, int rank) {
  const size_t spatial = static_cast<size_t>(rank);
  Alphabets result;
  result.positions = std::string("abcdef").substr(0, leading.size() + spatial);
  result.meanings = std::string(leading) + std::string("dhw").substr(3 - spatial);
  result.leading = leading.size();
  return result;
}

std::optional<AxisOrder> Match(std::string_view tag, const Alphabets& alphabets) {
  std::string letters(tag);
  const size_t wildcard = letters.find(kWildcard);
  if (wildcard != std::string::npos) {
    letters.replace(wildcard, 1, alphabets.positions.substr(alphabets.leading));
  }
  if (auto order = AsPermutation(letters, alphabets.positions)) return order;
  return AsPermutation(tag, alphabets.meanings);
}

// A tag over a = o, b = i and x, to which the g has to be added.
AxisOrder WithGroupAxis(std::string_view tag, int rank) {
  AxisOrder order;
  for (char letter : tag) {
    if (letter == 'a') order.push_back(1);
    if (letter == 'b') order.push_back(2);
    if (letter != kWildcard) continue;
    for (int axis = 0; axis < rank; ++axis) order.push_back(3 + axis);
  }
  order.insert(tag.front() == kWildcard ? order.end() - 1 : order.begin(), 0);
  return order;
}

Status NoSuchOrder(std::string_view tag, const Alphabets& alphabets, std::string_view why) {
  return Status(StatusCode::kInvalidShape,
                "tag " + Quote(tag) + " must have each letter of " + Quote(alphabets.positions) +
                    " or " + Quote(alphabets.meanings) + " once, for " + std::string(why));
}

std::string SpatialAxes(int rank) {
  return std::to_string(rank) + (rank == 1 ? " spatial axis" : " spatial axes");
}

}  // namespace

Status CheckTag(std::string_view tag) {
  if (tag == "any") return {};
  for (char letter : tag) {
    if ((letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z')) {
      return Status(
          StatusCode::kInvalidArgument,
          "tag " + Quote(tag) + " has digits or capitals, and blocked layouts are not supported");
    }
  }
  const bool known =
      !tag.empty() && tag.find_first_not_of("abcdefghinowx") == std::string_view::npos;
  if (known && std::count(tag.begin(), tag.end(), kWildcard) <= 1) return {};
  return Status(StatusCode::kInvalidArgument,
                "tag " + Quote(tag) +
                    " must be any, a wildcard such as abx or axb, letters such as acdb, or a name "
                    "such as nhwc or hwio");
}

Result<AxisOrder> DataOrder(std::string_view tag, int rank) {
  if (Status status = CheckTag(tag); !status.ok()) return status;
  const Alphabets alphabets = AlphabetsOf("nc", rank);
  if (auto order = Match(tag == "any" ? "abx" : tag, alphabets)) return *std::move(order);
  return NoSuchOrder(tag, alphabets, SpatialAxes(rank));
}

Result<AxisOrder> WeightsOrder(std::string_view tag, int rank, int64_t groups, bool transposed) {
  if (Status status = CheckTag(tag); !status.ok()) return status;
  const std::string_view letters = tag != "any" ? tag : (transposed ? "bax" : "abx");
  const Alphabets grouped = AlphabetsOf("goi", rank);
  AxisOrder order;
  if (AsPermutation(letters, "abx")) {
    order = WithGroupAxis(letters, rank);
  } else if (auto explicit_order = Match(letters, grouped)) {
    order = *std::move(explicit_order);
  } else {
    const Alphabets ungrouped = AlphabetsOf("oi", rank);
    auto without_g = Match(letters, ungrouped);
    if (groups > 1 || !without_g) {
      return NoSuchOrder(tag, groups > 1 ? grouped : ungrouped,
                         "weights with " + SpatialAxes(rank) + " and g " + std::to_string(groups));
    }
    order = *std::move(without_g);
    for (int& axis : order) ++axis;
  }
  if (groups == 1) order.erase(std::remove(order.begin(), order.end(), 0), order.end());
  return order;
}

Result<Dims> StridesOf(const AxisOrder& order, const Dims& extents) {
  // Eight bytes is the widest element; a bound for all types keeps the type out of here.
  constexpr int64_t kMaxElements = std::numeric_limits<int64_t>::max() / 8;
  Dims strides(extents.size(), 0);
  int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    const size_t index = static_cast<size_t>(*axis);
    strides[index] = stride;
    // An empty batch has strides too: those of one image.
    const int64_t extent = std::max<int64_t>(1, extents[index]);
    if (stride > kMaxElements / extent) {
      return Status(StatusCode::kInvalidShape,
                    "extent " + std::to_string(extents[index]) +
                        " makes a tensor of more bytes than 64 bits can count");
    }
    stride *= extent;
  }
  return strides;
}

}  // namespace convgrad::onednn
