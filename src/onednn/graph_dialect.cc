#include "onednn/graph_dialect.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace convgrad::onednn {
namespace {

using Renaming = std::pair<std::string_view, std::string_view>;

constexpr Renaming kKinds[] = {
    {"ConvolutionBackpropData", "ConvolutionBackwardData"},
    {"ConvolutionBackpropFilters", "ConvolutionBackwardWeights"},
    {"ConvTransposeBackpropData", "ConvTransposeBackwardData"},
    {"ConvTransposeBackpropFilters", "ConvTransposeBackwardWeights"},
};

constexpr Renaming kAttributes[] = {
    {"filter_format", "weights_format"},
    {"filter_shape", "weights_shape"},
    {"output_shape", "dst_shape"},
};

GraphValue* FindValue(GraphOp& op, std::string_view attribute) {
  return const_cast<GraphValue*>(std::as_const(op).Find(attribute));
}

std::string TextOf(const GraphOp& op, std::string_view attribute, std::string_view otherwise) {
  const GraphValue* value = op.Find(attribute);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::string(otherwise) : *text;
}

bool IsTransposed(const GraphOp& op) { return op.kind.starts_with("ConvTranspose"); }

void RenameAttributes(GraphOp& op) {
  for (const auto& [old_name, new_name] : kAttributes) {
    if (op.Find(new_name) != nullptr) continue;  // both are given: the check of attributes says so
    for (auto& [name, value] : op.attributes) {
      if (name == old_name) name = new_name;
    }
  }
}

// Strides that are not known become those of dense elements, the last axis fastest. Whether there
// are any.
bool StateStrides(LogicalTensor& tensor) {
  if (tensor.layout == LayoutType::kStrided && tensor.strides.size() == tensor.extents->size() &&
      std::ranges::count(tensor.strides, kUnknownExtent) == 0) {
    return true;
  }
  tensor.layout = LayoutType::kStrided;
  tensor.strides.assign(tensor.extents->size(), 1);
  for (size_t axis = tensor.extents->size() - 1; axis-- > 0;) {
    const int64_t extent = std::max<int64_t>((*tensor.extents)[axis + 1], 1);
    if (__builtin_mul_overflow(tensor.strides[axis + 1], extent, &tensor.strides[axis])) {
      return false;
    }
  }
  return true;
}

void ExchangeAxes(LogicalTensor& tensor, size_t a, size_t b) {
  if (!tensor.extents || std::max(a, b) >= tensor.extents->size()) return;
  if (!StateStrides(tensor)) return;
  std::swap((*tensor.extents)[a], (*tensor.extents)[b]);
  std::swap(tensor.strides[a], tensor.strides[b]);
}

// The first generation's OIX is (OC, IC, X...), IOX (IC, OC, X...): the same elements.
void TurnTransposedFilter(GraphOp& op) {
  GraphValue* value = FindValue(op, "filter_format");
  auto* format = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (format == nullptr || op.inputs.size() < 2 || !op.inputs[1].extents) return;
  const size_t rank = op.inputs[1].extents->size();
  if (rank < 3) return;
  if (*format == "OIX") {
    *format = "IOX";
    ExchangeAxes(op.inputs[1], 0, 1);
  } else if (*format == "XIO") {
    *format = "XOI";
    ExchangeAxes(op.inputs[1], rank - 2, rank - 1);
  }
}

// The spatial extents of data or weights whose format has the channels first, or last.
Dims SpatialExtents(const Dims& extents, std::string_view format, bool is_weights) {
  if (extents.size() < 3) return {};
  const auto spatial = static_cast<int64_t>(extents.size()) - 2;
  const int64_t first = format.starts_with("X") ? 0 : is_weights || format == "NCX" ? 2 : 1;
  return Dims(extents.begin() + first, extents.begin() + first + spatial);
}

// Whether all windows of Convolution begin at the same pixels without what pads_end takes away.
bool KeepsWindows(const GraphOp& op, size_t axis, int64_t pad_end) {
  const auto list = [&](std::string_view name) {
    const GraphValue* value = op.Find(name);
    const auto* numbers = value == nullptr ? nullptr : std::get_if<Dims>(value);
    return numbers == nullptr ? Dims() : *numbers;
  };
  if (op.inputs.size() < 2 || !op.inputs[0].extents || !op.inputs[1].extents) return false;
  const Dims in = SpatialExtents(*op.inputs[0].extents, TextOf(op, "data_format", "NXC"), false);
  const Dims kernel =
      SpatialExtents(*op.inputs[1].extents, TextOf(op, "weights_format", "XIO"), true);
  const Dims strides = list("strides"), dilations = list("dilations"), begin = list("pads_begin");
  for (const Dims* numbers : {&in, &kernel, &strides, &dilations, &begin}) {
    if (axis >= numbers->size() || (*numbers)[axis] < 0 || (*numbers)[axis] > int64_t{1} << 31) {
      return false;
    }
  }
  const int64_t span = (kernel[axis] - 1) * dilations[axis] + 1;
  const int64_t room = in[axis] + begin[axis] - span;
  return strides[axis] > 0 && room >= -pad_end && room % strides[axis] >= -pad_end;
}

// Src without its last `count` pixels along a spatial axis, in the same memory. Whether it is so.
bool CropSrc(GraphOp& op, size_t axis, int64_t count) {
  if (op.inputs.empty() || !op.inputs[0].extents) return false;
  LogicalTensor src = op.inputs[0];
  Dims& extents = *src.extents;
  const size_t place = axis + (TextOf(op, "data_format", "NXC") == "NCX" ? 2 : 1);
  const bool known = std::ranges::none_of(extents, [](int64_t extent) { return extent < 0; });
  if (extents.size() < 3 || axis + 2 >= extents.size() || !known) return false;
  if (extents[place] <= count || !StateStrides(src) || src.strides[place] < 0) return false;
  extents[place] -= count;
  op.inputs[0] = std::move(src);
  return true;
}

// A Convolution and its gradient of weights read what pads_end takes away nowhere. Of the other
// kinds the extents are given, and checked.
bool HoldsWithoutPad(GraphOp& op, size_t axis, int64_t pad_end) {
  if (op.kind == "Convolution") {
    return KeepsWindows(op, axis, pad_end) || CropSrc(op, axis, -pad_end);
  }
  if (op.kind == "ConvolutionBackwardWeights" || op.kind == "ConvolutionBackpropFilters") {
    return CropSrc(op, axis, -pad_end);
  }
  return true;
}

void DropNegativePads(GraphOp& op) {
  GraphValue* value = FindValue(op, "pads_end");
  auto* pads = value == nullptr ? nullptr : std::get_if<Dims>(value);
  if (pads == nullptr || TextOf(op, "auto_pad", "None") != "None") return;
  for (size_t axis = 0; axis < pads->size(); ++axis) {
    const int64_t pad = (*pads)[axis];
    if (pad < 0 && pad > -(int64_t{1} << 31) && HoldsWithoutPad(op, axis, pad)) (*pads)[axis] = 0;
  }
}

}  // namespace

bool HasNegativePadsEnd(const GraphOp& op) {
  const GraphValue* value = op.Find("pads_end");
  const auto* pads = value == nullptr ? nullptr : std::get_if<Dims>(value);
  return pads != nullptr && std::ranges::any_of(*pads, [](int64_t pad) { return pad < 0; });
}

GraphOp InCurrentWords(const GraphOp& op) {
  GraphOp current = op;
  constexpr std::array<std::string_view, 2> kOfPartitions = {"partition_id", "backend"};
  std::erase_if(current.attributes, [&](const auto& attribute) {
    return std::ranges::find(kOfPartitions, attribute.first) != kOfPartitions.end();
  });
  std::string_view name = current.kind;
  if (name.ends_with("-1")) name.remove_suffix(2);
  const auto* renamed =
      std::ranges::find_if(kKinds, [&](const Renaming& row) { return row.first == name; });
  const std::string format = TextOf(current, "filter_format", "");
  if (renamed == std::end(kKinds)) {
    if (current.kind == "ConvTranspose") TurnTransposedFilter(current);
    RenameAttributes(current);
  } else if (IsTransposed(current) && (format == "IOX" || format == "XOI")) {
    current.kind = renamed->second;
    RenameAttributes(current);
  }
  DropNegativePads(current);
  return current;
}

}  // namespace convgrad::onednn
