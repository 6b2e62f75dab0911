#include "spec/channels.h"

#include <optional>

#include "core/text.h"
#include "core/window.h"

namespace convgrad {
namespace {

Status Invalid(std::string message) { return {StatusCode::kInvalidShape, std::move(message)}; }

// The axes that may count the channels of all groups, the usual one first. For a grouped
// ConvTranspose the documents say (IC / G, OC) and every deployed tensor is (IC, OC / G); the two
// can never be equal, so both are legal. The first generation has only one.
std::string_view GroupAxes(const OperationSchema& schema, int64_t groups) {
  if (schema.family == Family::kConvolution) return "O";
  return groups == 1 || schema.first_generation() ? "I" : "IO";
}

// One channel axis of the weights against the channels of the tensor that it belongs to.
struct AxisFit {
  std::string_view tensor;  // src or dst, by its name
  int64_t channels;         // of that tensor; kUnknown: follows from the weights
  int64_t extent;           // of the weights' axis; kUnknown: follows from the channels
  int dim;
  bool all_groups;
};

bool Fits(const AxisFit& fit, int64_t groups) {
  if (fit.extent == kUnknown) return true;
  if (fit.channels == kUnknown) return !fit.all_groups || fit.extent % groups == 0;
  return fit.extent == (fit.all_groups ? fit.channels : fit.channels / groups);
}

std::string Expectation(const AxisFit& fit, int64_t groups) {
  if (fit.channels == kUnknown) return Join("a multiple of groups ", groups);
  if (fit.all_groups) return Join(fit.tensor, " channels ", fit.channels);
  return Join(fit.tensor, " channels ", fit.channels, " / groups ", groups, " = ",
              fit.channels / groups);
}

}  // namespace

Result<Channels> ResolveChannels(const ChannelQuestion& q, const WeightsLayout& layout, int64_t o,
                                 int64_t i) {
  for (const auto& [name, channels] : {std::pair(q.src_name, q.ic), std::pair(q.dst_name, q.oc)}) {
    if (channels != kUnknown && channels % q.groups != 0) {
      return Invalid(
          Join(name, " has ", channels, " channels, not a multiple of groups ", q.groups));
    }
  }
  const std::string_view axes = GroupAxes(*q.schema, q.groups);
  std::string wrong;  // the sentence about the usual shape
  for (char axis : axes) {
    const AxisFit fits[] = {{q.dst_name, q.oc, o, layout.o, axis == 'O'},
                            {q.src_name, q.ic, i, layout.i, axis == 'I'}};
    const AxisFit* misfit = nullptr;
    for (const AxisFit& fit : fits) {
      if (misfit == nullptr && !Fits(fit, q.groups)) misfit = &fit;
    }
    if (misfit != nullptr) {
      wrong += Join(wrong.empty() ? "" : "; and with O counting the channels of all groups, ",
                    q.weights_name, " dim ", misfit->dim, " is ", misfit->extent, ", expected ",
                    Expectation(*misfit, q.groups));
      continue;
    }
    const auto ic = q.ic != kUnknown ? q.ic : FitInt64(Int128{i} * (axis == 'I' ? 1 : q.groups));
    const auto oc = q.oc != kUnknown ? q.oc : FitInt64(Int128{o} * (axis == 'O' ? 1 : q.groups));
    if (!ic || !oc) {
      return Invalid(Join(q.weights_name, " dim ", !ic ? layout.i : layout.o, " is ", !ic ? i : o,
                          " in each of ", q.groups, " groups, more than 2^63 - 1 channels"));
    }
    return Channels{*ic, *oc, axis};
  }
  return Invalid(std::move(wrong));
}

}  // namespace convgrad
