#include "spec/geometry.h"

#include <algorithm>

#include "core/text.h"
#include "core/window.h"

namespace convgrad {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidShape, std::move(message)}; }

// SAME pads make a Convolution's dst ceil(src / stride). For ConvTranspose they depend on neither
// extent, in the forward operation and the gradients alike.
void ResolvePads(Family family, AutoPad auto_pad, int64_t span, SpatialAxis& axis) {
  if (auto_pad == AutoPad::kNone) return;
  int64_t total = 0;
  if (auto_pad != AutoPad::kValid) {
    const int64_t rest = family == Family::kConvolution ? axis.wide % axis.stride : 0;
    total = std::max<int64_t>(0, span - (rest == 0 ? axis.stride : rest));
  }
  const int64_t smaller = total / 2;
  axis.pad_begin = auto_pad == AutoPad::kSameLower ? total - smaller : smaller;
  axis.pad_end = total - axis.pad_begin;
}

// "src dim 2 (5)"
std::string Valued(const std::string& name, int64_t value) { return Join(name, " (", value, ")"); }

// ConvTranspose: dst follows from src.
Status InferWide(const SpatialNames& names, int64_t span, SpatialAxis& axis) {
  const auto wide =
      InExtent(axis.narrow, axis.stride, span, axis.pad_begin, axis.pad_end, axis.output_padding);
  const std::string formula =
      Join("stride ", axis.stride, " * (", Valued(names.narrow, axis.narrow),
           " - 1) + kernel span ", span, " - pads_begin ", axis.pad_begin, " - pads_end ",
           axis.pad_end, names.pads_note, " + output_padding ", axis.output_padding);
  if (!wide) return Invalid(Join(names.wide, " = ", formula, " does not fit in 64 bits"));
  if (*wide < 1) {
    return Invalid(Join(names.wide, " = ", formula, " = ", *wide, ", expected at least 1"));
  }
  axis.wide = *wide;
  return {};
}

// Both extents are known, or `narrow` follows from `wide`. Without output padding the window may
// leave a rest of up to stride - 1 positions; with it the rest must be just that.
Status RelateNarrow(const SpatialNames& names, int64_t span, SpatialAxis& axis) {
  const auto travel = Travel(axis.wide, axis.pad_begin, axis.pad_end, span);
  const std::string padded = Join(Valued(names.wide, axis.wide), " + pads_begin ", axis.pad_begin,
                                  " + pads_end ", axis.pad_end, names.pads_note);
  if (!travel) return Invalid(Join(padded, " does not fit in 64 bits"));
  const std::string kernel = Join("kernel span ", span, " (", axis.taps, " taps, dilation ",
                                  axis.dilation, ") of ", names.taps);
  if (*travel < 0) return Invalid(Join(kernel, " is larger than ", padded));
  const int64_t extra = axis.output_padding;
  if (extra > *travel || (extra != 0 && (*travel - extra) % axis.stride != 0)) {
    return Invalid(Join("output_padding ", extra, " at entry ", names.axis, " does not fit ",
                        padded, " - kernel span ", span, " = ", *travel, " with stride ",
                        axis.stride));
  }
  const int64_t narrow = OutExtent(*travel - extra, axis.stride);
  if (axis.narrow == kUnknown) axis.narrow = narrow;
  if (axis.narrow == narrow) return {};
  return Invalid(Join(names.narrow, " is ", axis.narrow, ", expected floor((", padded, " - ",
                      kernel, extra == 0 ? "" : Join(" - output_padding ", extra), ") / stride ",
                      axis.stride, ") + 1 = ", narrow));
}

}  // namespace

Status ResolveAxis(Family family, AutoPad auto_pad, const SpatialNames& names, SpatialAxis& axis) {
  if (axis.taps < 1) return Invalid(Join(names.taps, " is ", axis.taps, ", expected at least 1"));
  const auto span = KernelSpan(axis.taps, axis.dilation);
  if (!span) {
    return Invalid(Join(names.taps, " is ", axis.taps, " with dilation ", axis.dilation,
                        ": the kernel's span does not fit in 64 bits"));
  }
  if (axis.narrow != kUnknown && axis.narrow < 1) {
    return Invalid(Join(names.narrow, " is ", axis.narrow, ", expected at least 1"));
  }
  // A Convolution's src may be empty, all padding; a ConvTranspose never writes an empty dst.
  if (family == Family::kConvTranspose && axis.wide != kUnknown && axis.wide < 1) {
    return Invalid(Join(names.wide, " is ", axis.wide, ", expected at least 1"));
  }
  ResolvePads(family, auto_pad, *span, axis);
  return axis.wide == kUnknown ? InferWide(names, *span, axis) : RelateNarrow(names, *span, axis);
}

}  // namespace convgrad
