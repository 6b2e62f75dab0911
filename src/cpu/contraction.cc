#include "cpu/contraction.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "cpu/live.h"

namespace convgrad {
namespace {

// The phase of one axis of dgrad: in = phase + stride * pixel. Only every (stride / gcd)-th tap
// meets these positions, and from one such tap to the next `out` moves by -(dilation / gcd).
struct Phase {
  GatherAxis axis;
  int64_t tap_first = 0;
  int64_t tap_stride = 1;
};

// The t in [0, modulus) with t * factor = value (mod modulus), for factor and modulus without a
// common divisor: Euclid's algorithm.
int64_t DivideModulo(int64_t value, int64_t factor, int64_t modulus) {
  int64_t a = factor % modulus, b = modulus, x = 1, next = 0;
  while (b != 0) {
    const int64_t quotient = a / b;
    a = std::exchange(b, a - quotient * b);
    x = std::exchange(next, x - quotient * next);
  }
  const Int128 t = Int128{value % modulus} * x % modulus;
  return static_cast<int64_t>(t < 0 ? t + modulus : t);
}

Phase MakePhase(const Axis& axis, int64_t phase) {
  const int64_t gcd = std::gcd(axis.stride, axis.dilation);
  Phase p;
  p.axis = {.pixels = phase < axis.in ? (axis.in - 1 - phase) / axis.stride + 1 : 0,
            .taps = 0,
            .tap_step = -(axis.dilation / gcd),
            .limit = axis.out};
  if ((phase + axis.pad) % gcd != 0) return p;
  // The first tap that is at a multiple of the stride from these positions.
  p.tap_stride = axis.stride / gcd;
  p.tap_first = DivideModulo((phase + axis.pad) / gcd, axis.dilation / gcd, p.tap_stride);
  if (p.tap_first >= axis.taps) return p;
  p.axis.taps = (axis.taps - 1 - p.tap_first) / p.tap_stride + 1;
  p.axis.first = (phase + axis.pad - p.tap_first * axis.dilation) / axis.stride;
  return p;
}

// One axis of dgrad, all phases: in = f + stride * pixel meets out = first + pixel - t through tap
// f + pad - stride * (first - t).
void SetPhaseColumns(const Axis& axis, int a, Contraction& c) {
  const int64_t first = (axis.stride - 1 + axis.pad) / axis.stride;
  const int64_t base = axis.pad - axis.stride * first;
  c.axes[a] = {.pixels = CeilDiv(axis.in, axis.stride),
               .taps = (axis.taps - 1 - base) / axis.stride + 1,
               .first = first,
               .tap_step = -1,
               .limit = axis.out};
  c.columns.phases[a] = axis.stride;
  c.columns.last[a] = axis.in - (c.axes[a].pixels - 1) * axis.stride;
  c.columns.base[a] = base;
  c.columns.stride[a] = axis.stride;
  c.columns.v_step[a] = c.v.at[a];
  c.columns.w_step[a] = c.w.at[a];
  c.v.at[a] *= axis.stride;
  c.w.at[a] *= axis.stride;
  c.w.first += base * c.columns.w_step[a];
}

// So many o that filling up lines costs less than it gains.
constexpr int64_t kFewOutputs = 32;

void FillUp(GatherAxis& last, Contraction& c) {
  const int64_t unit = last.pixels >= 128 ? 16 : last.pixels >= 32 ? 4 : 1;
  c.beyond = CeilDiv(last.pixels, unit) * unit - last.pixels;
  last.pixels += c.beyond;
}

// Lines that their taps share are packed once, if they are whole vectors. Filling up long ones
// costs a little of every product, so it is for few products of what is packed.
void FillUpLines(Contraction& c) {
  GatherAxis& last = c.axes[kAxes - 1];
  if (!c.sum_pixels && !c.zipped && !c.boxes && c.o <= kFewOutputs && last.taps >= 3) {
    FillUp(last, c);
  }
}

// Worth it where a phase alone has too few columns to pay for packing, and where few taps of the
// phases are missing: a missing one may cost what another does.
bool HasPhaseColumns(const Problem& p) {
  constexpr int64_t kFewChannels = 8;
  if (p.pass != Pass::kDgrad || p.ci > kFewChannels || HasSmallGroups(p)) return false;
  double phases = 1, work = 1;
  for (const Axis& axis : p.axes) {
    if (axis.stride == 1) continue;
    if (axis.dilation != 1 || axis.in < axis.stride) return false;
    const int64_t first = (axis.stride - 1 + axis.pad) / axis.stride;
    const int64_t taps = (axis.taps - 1 - axis.pad + axis.stride * first) / axis.stride + 1;
    phases *= static_cast<double>(axis.stride);
    work *= static_cast<double>(taps) * static_cast<double>(axis.stride) /
            static_cast<double>(axis.taps);
  }
  // 4x4 of stride 2 with a border of one, 64 channels to few (Neoverse-N1, channels first and last,
  // 32x32 pixels of 8 images): 3 channels 7.8 and 4.7 ms, so 4.5 and 4.3; 4 channels 7.7 and 4.6,
  // so 5.6 and 5.2; 6 channels 7.8 and 6.3, so 7.9 and 7.1.
  const double most = p.ci <= 4 && !IsSmallGroup(p) ? 2.25 : 2;
  return phases > 1 && phases <= 4096 && work <= most;
}

// With as many even positions as odd ones, the two phases have the same pixels.
bool IsZipped(const Problem& p) {
  const Axis& last = p.axes[kAxes - 1];
  return p.pass == Pass::kDgrad && last.stride == 2 && last.in > 0 && last.in % 2 == 0 &&
         p.x.s[kAxes - 1] == 1 && !HasPhaseColumns(p);
}

int64_t Phases(const Axis& axis) { return std::min(axis.stride, std::max<int64_t>(axis.in, 1)); }

bool IsUnit(const GatherAxis& axis) { return axis.pixels == 1 && axis.taps == 1; }

// One tap that reads every position in order: pixels are positions.
bool IsPlain(const GatherAxis& axis) {
  return axis.taps == 1 && axis.first == 0 && axis.pixel_step == 1 && axis.limit == axis.pixels;
}

// A 1x1 problem is a plain matrix product: one axis as long as all pixels, and, but where an image
// is a unit of the sum, all images.
void MergePlainAxes(Contraction& c) {
  for (int a = 0; a + 1 < kAxes; ++a) {
    GatherAxis &outer = c.axes[a], &inner = c.axes[a + 1];
    if (IsUnit(outer) || !IsPlain(outer) || !IsPlain(inner)) continue;
    if (inner.pixels > 1 &&
        (c.g.at[a] != c.g.at[a + 1] * inner.pixels || c.v.at[a] != c.v.at[a + 1] * inner.pixels)) {
      continue;
    }
    if (inner.pixels == 1) {
      c.g.at[a + 1] = c.g.at[a];
      c.v.at[a + 1] = c.v.at[a];
    }
    inner.pixels *= outer.pixels;
    inner.limit = inner.pixels;
    outer = GatherAxis{};
  }
  GatherAxis& last = c.axes[kAxes - 1];
  if (c.sum_pixels || c.images == 1 || !IsPlain(last) || !IsUnit(c.axes[0]) ||
      !IsPlain(c.axes[0]) || !IsUnit(c.axes[1]) || !IsPlain(c.axes[1])) {
    return;
  }
  if (c.g.image != c.g.at[2] * last.pixels || c.v.image != c.v.at[2] * last.pixels) return;
  last.pixels *= c.images;
  last.limit = last.pixels;
  c.images = 1;
}

// Runs go along the last axis: one that is not there, as in [N, C, T, 1], makes way. The order of
// pixels and taps stays.
void MoveUnitAxisFirst(Contraction& c) {
  for (int a = kAxes - 1; a > 0; --a) {
    if (!IsUnit(c.axes[kAxes - 1]) || !IsPlain(c.axes[kAxes - 1])) return;
    std::rotate(c.axes.begin(), c.axes.end() - 1, c.axes.end());
    for (Strides* strides : {&c.g, &c.w, &c.v}) {
      std::rotate(strides->at.begin(), strides->at.end() - 1, strides->at.end());
    }
  }
}

// Whether any tap reads outside along this axis.
bool ReadsOutside(const GatherAxis& axis) {
  if (axis.pixels == 0 || axis.taps == 0) return false;
  const int64_t pixels = (axis.pixels - 1) * axis.pixel_step,
                taps = (axis.taps - 1) * axis.tap_step;
  return axis.first + std::min<int64_t>(taps, 0) < 0 ||
         axis.first + pixels + std::max<int64_t>(taps, 0) >= axis.limit;
}

int OutermostAxis(const Contraction& c) {
  int a = 0;
  while (a + 1 < kAxes && IsUnit(c.axes[a])) ++a;
  return a;
}

// Fewer pixels of one position than that do not make a tile.
constexpr int64_t kFewImages = 4;

// Pixels at the same position of all images are one line, whose pixels meet the same taps. Long
// lines of pixels that are next to each other are worth more.
void PutImagesLast(Contraction& c) {
  const int64_t short_line = c.v.at[kAxes - 1] == 1 ? 12 : 24;
  if (!c.boxes || c.zipped || c.images < kFewImages || !IsUnit(c.axes[0]) || !IsPlain(c.axes[0]) ||
      c.axes[kAxes - 1].pixels > short_line) {
    return;
  }
  c.axes = {c.axes[1], c.axes[2], {.pixels = c.images, .limit = c.images}};
  for (Strides* strides : {&c.g, &c.w, &c.v}) {
    strides->at = {strides->at[1], strides->at[2], strides->image};
  }
  c.images = 1;
}

// Nothing may vary outside that axis but images: pixels and taps of it are one range of a chunk.
void ChooseSkippedAxis(Contraction& c) {
  const int a = OutermostAxis(c);
  if (!ReadsOutside(c.axes[a])) return;
  c.skipped_axis = a;
  // Where pixels are next to each other, those of a tile no longer are: worth it for the shortest
  // lines. So are lines that taps across share (64 channels to 3 in four phases, 4x4, 32 pixels:
  // 3.87 ms, so 2.95, Neoverse-N1). What a line is depends on the phase, and zipped phases must
  // have the same order.
  const bool few_columns = c.columns.channels > 0 && c.o <= 16;
  const int64_t short_line = c.v.at[kAxes - 1] == 1 || few_columns ? 12 : 48;
  const bool inside = !c.sum_pixels && !c.zipped && a + 1 < kAxes && c.images > 1 &&
                      c.axes[kAxes - 1].pixels < short_line;
  const bool alone = c.boxes && c.images >= kFewImages;
  c.images_inside = inside ? (alone ? 1 : c.axes[kAxes - 1].pixels) : 0;
}

// Its channels and strides.
Contraction OfGroup(const Problem& p, int64_t group) {
  const bool dgrad = p.pass == Pass::kDgrad;
  Contraction c;
  c.sum_pixels = p.pass == Pass::kWgrad;
  c.images = p.batch;
  c.channels = dgrad ? p.co : p.ci;
  c.o = dgrad ? p.ci : p.co;
  const PixelStrides &g = dgrad ? p.y : p.x, &v = dgrad ? p.x : p.y;
  c.g = {group * c.channels * g.c, g.n, g.c, 0, g.s};
  c.v = {group * c.o * v.c, v.n, 0, v.c, v.s};
  c.w = {group * p.w.g, 0, dgrad ? p.w.co : p.w.ci, dgrad ? p.w.ci : p.w.co, p.w.s};
  return c;
}

GatherAxis WindowAxis(const Axis& axis) {
  return {axis.out, axis.taps, -axis.pad, axis.stride, axis.dilation, axis.in};
}

// Axis a of dgrad.
void SetPhase(const Problem& p, int a, int64_t at, Contraction& c) {
  const Phase of = MakePhase(p.axes[a], at);
  c.axes[a] = of.axis;
  c.v.first += at * p.x.s[a];
  c.v.at[a] = of.axis.pixels > 1 ? p.axes[a].stride * p.x.s[a] : 0;
  if (of.axis.taps > 0) c.w.first += of.tap_first * p.w.s[a];
  c.w.at[a] = of.axis.taps > 1 ? of.tap_stride * p.w.s[a] : 0;
}

// The taps of an axis through which any pixel reads a position that is there.
Range TapsOf(const GatherAxis& axis) {
  if (axis.pixels == 0 || axis.limit == 0) return {};
  return StepsInside(axis.first, axis.first + (axis.pixels - 1) * axis.pixel_step, axis.tap_step,
                     axis.taps, axis.limit);
}

// The others are not part of any sum: of a 1x1 image, one tap of each axis is left.
void CropTaps(Contraction& c) {
  for (int a = 0; a < kAxes; ++a) {
    GatherAxis& axis = c.axes[a];
    const Range live = TapsOf(axis);
    axis.taps = live.size();
    axis.first += live.begin * axis.tap_step;
    c.w.first += live.begin * c.w.at[a];
  }
}

// As even as they can be, and none longer than `most`.
int64_t EvenBlock(int64_t extent, int64_t most) {
  if (extent <= 0) return 1;
  return CeilDiv(extent, CeilDiv(extent, most));
}

}  // namespace

int64_t CountPhases(const Problem& p) {
  if (p.pass != Pass::kDgrad || HasPhaseColumns(p)) return 1;
  return Phases(p.axes[0]) * Phases(p.axes[1]) * (IsZipped(p) ? 1 : Phases(p.axes[2]));
}

int64_t CountPhasesOfLine(const Problem& p) {
  constexpr int64_t kCacheLine = 64;
  const bool near = std::abs(p.x.s[kAxes - 1]) * SizeOf(p.type) < kCacheLine;
  return CountPhases(p) > 1 && near && !IsZipped(p) ? Phases(p.axes[kAxes - 1]) : 1;
}

int64_t PhaseInOrder(const Problem& p, int64_t i) {
  if (CountPhases(p) == 1) return 0;
  const bool zipped = IsZipped(p);
  int64_t phase = 0, step = 1;
  for (int a = kAxes - 1 - zipped; a >= 0; --a) {
    const int64_t phases = Phases(p.axes[a]);
    // Without dilation the first tap of phase f is (f + pad) mod stride: the lower, the more taps.
    const int64_t shift = phases == p.axes[a].stride ? p.axes[a].pad % phases : 0;
    phase += (i % phases + phases - shift) % phases * step;
    i /= phases;
    step *= phases;
  }
  return phase;
}

namespace {

// Columns are phases of all axes with a stride.
void SetColumns(const Problem& p, Contraction& c) {
  for (int a = 0; a < kAxes; ++a) c.columns.taps[a] = p.axes[a].taps;
  c.columns.channels = c.o;
  c.o *= c.columns.phases[0] * c.columns.phases[1] * c.columns.phases[2];
}

// The axes of a phase, as they are merged.
Contraction OfPhase(const Problem& p, int64_t group, int64_t phase, bool odd) {
  const bool dgrad = p.pass == Pass::kDgrad;
  Contraction c = OfGroup(p, group);
  const bool columns = HasPhaseColumns(p);
  c.zipped = IsZipped(p);
  c.twins =
      c.zipped && MakePhase(p.axes[kAxes - 1], 0).axis == MakePhase(p.axes[kAxes - 1], 1).axis;
  if (c.zipped) phase = 2 * phase + odd;
  for (int a = kAxes - 1; a >= 0; --a) {
    const Axis& axis = p.axes[a];
    if (columns && axis.stride > 1) {
      SetPhaseColumns(axis, a, c);
      continue;
    }
    if (!dgrad) {
      c.axes[a] = WindowAxis(axis);
      continue;
    }
    SetPhase(p, a, phase % Phases(axis), c);
    phase /= Phases(axis);
  }
  if (columns) {
    SetColumns(p, c);
  } else {
    CropTaps(c);
    MoveUnitAxisFirst(c);
    c.line = c.axes[kAxes - 1].pixels;
    MergePlainAxes(c);
  }
  return c;
}

// The order of the rows.
void OrderRows(bool boxes, Contraction& c) {
  c.boxes = boxes;
  PutImagesLast(c);
  FillUpLines(c);
  ChooseSkippedAxis(c);
  // Where taps are next to each other in memory, so should be the rows of a block: 48 is a multiple
  // of every tile's rows.
  const bool taps_inside = c.taps() > 1 && std::abs(c.w.at[2]) < std::abs(c.w.channel);
  c.row_block =
      std::clamp<int64_t>(taps_inside ? 48 : c.channels, 1, std::max<int64_t>(c.channels, 1));
}

}  // namespace

Contraction MakeContraction(const Problem& p, int64_t group, int64_t phase, bool odd, bool boxes) {
  Contraction c = OfPhase(p, group, phase, odd);
  OrderRows(boxes, c);
  return c;
}

bool IsSmallGroup(const Problem& p) {
  constexpr int64_t kSmall = 16;
  return p.ci > 0 && p.ci <= kSmall && p.co > 0 && p.co <= kSmall;
}

bool HasSmallGroups(const Problem& p) { return p.groups > 1 && IsSmallGroup(p); }

bool HasOneSmallGroup(const Problem& p) {
  return p.groups == 1 && IsSmallGroup(p) && !HasPhaseColumns(p);
}

bool HasGroupsOfImages(const Problem& p) {
  if (p.groups != 1 || p.ci != 1 || p.co != 1 || p.batch <= 1) return false;
  bool one_phase = true;
  for (const Axis& axis : p.axes) one_phase = one_phase && axis.stride == 1;
  return p.pass == Pass::kFprop || (p.pass == Pass::kDgrad && one_phase);
}

int64_t CountPlainPhases(const Problem& p) {
  if (p.pass != Pass::kDgrad) return 1;
  return Phases(p.axes[0]) * Phases(p.axes[1]) * Phases(p.axes[2]);
}

Contraction MakePlainContraction(const Problem& p, int64_t phase) {
  Contraction c = OfGroup(p, 0);
  for (int a = kAxes - 1; a >= 0; --a) {
    if (p.pass == Pass::kDgrad) {
      SetPhase(p, a, phase % Phases(p.axes[a]), c);
      phase /= Phases(p.axes[a]);
    } else {
      c.axes[a] = WindowAxis(p.axes[a]);
    }
  }
  CropTaps(c);
  c.line = c.axes[kAxes - 1].pixels;
  return c;
}

int64_t CountUnmergedPhases(const Problem& p) {
  return HasPhaseColumns(p) ? 1 : CountPlainPhases(p);
}

namespace {

// Last axes that are not there, as in [N, C, T, 1]: of all phases, so that they have the same axes.
int CountLastUnits(const Problem& p) {
  int count = 0;
  while (count + 1 < kAxes && p.axes[kAxes - 1 - count].in == 1 &&
         p.axes[kAxes - 1 - count].out == 1 && p.axes[kAxes - 1 - count].taps == 1) {
    ++count;
  }
  return count;
}

Contraction MoveFirst(int count, Contraction c) {
  std::rotate(c.axes.begin(), c.axes.end() - count, c.axes.end());
  for (Strides* strides : {&c.g, &c.w, &c.v}) {
    std::rotate(strides->at.begin(), strides->at.end() - count, strides->at.end());
  }
  return c;
}

}  // namespace

Contraction MakeUnmergedContraction(const Problem& p, int64_t phase) {
  if (!HasPhaseColumns(p)) return MoveFirst(CountLastUnits(p), MakePlainContraction(p, phase));
  Contraction c = OfGroup(p, 0);
  for (int a = 0; a < kAxes; ++a) {
    p.axes[a].stride > 1 ? SetPhaseColumns(p.axes[a], a, c) : SetPhase(p, a, 0, c);
  }
  SetColumns(p, c);
  return c;
}

Contraction MakeLargestUnmergedContraction(const Problem& p) {
  return HasPhaseColumns(p) ? MakeUnmergedContraction(p, 0)
                            : MoveFirst(CountLastUnits(p), MakeLargestPlainContraction(p));
}

std::array<Range, kAxes> LiveTaps(const Problem& p) {
  std::array<Range, kAxes> live;
  for (int a = 0; a < kAxes; ++a) live[a] = TapsOf(WindowAxis(p.axes[a]));
  return live;
}

Contraction MakeLargestPlainContraction(const Problem& p) {
  Contraction c = MakePlainContraction(p, 0);
  if (p.pass != Pass::kDgrad) return c;
  for (int a = 0; a < kAxes; ++a) {
    const Axis& axis = p.axes[a];
    c.axes[a].taps = CeilDiv(axis.taps, axis.stride / std::gcd(axis.stride, axis.dilation));
  }
  return c;
}

double PaddedMultiple(const Problem& p) {
  if (p.pass == Pass::kWgrad || HasPhaseColumns(p)) return 1;
  const std::array<Range, kAxes> live = LiveTaps(p);
  const bool dgrad = p.pass == Pass::kDgrad;
  double multiple = 1, taps = 1;
  bool outermost = true;
  for (int a = 0; a < kAxes; ++a) {
    const Axis& axis = p.axes[a];
    taps *= dgrad ? static_cast<double>(
                        CeilDiv(axis.taps, axis.stride / std::gcd(axis.stride, axis.dilation)))
                  : static_cast<double>(axis.taps);
    const double inside = CountPairs(axis);
    const bool skipped =
        std::exchange(outermost, outermost && axis.taps == 1 && axis.in == 1 && axis.out == 1);
    if (skipped || axis.taps == 1 || inside == 0) continue;
    const double pixels = dgrad ? static_cast<double>(axis.in) / static_cast<double>(axis.stride)
                                : static_cast<double>(axis.out);
    multiple *= std::max(1.0, pixels * static_cast<double>(live[a].size()) / inside);
  }
  return taps <= Chunks::kLongest ? multiple : 1;
}

Contraction MakeLargestContraction(const Problem& p, bool boxes) {
  Contraction c = OfPhase(p, 0, 0, false);  // the first phase has the most pixels
  if (p.pass != Pass::kDgrad || c.columns.channels > 0) {
    OrderRows(boxes, c);
    return c;
  }
  for (int a = 0; a < kAxes; ++a) {
    const Axis& axis = p.axes[a];
    c.axes[a].taps = CeilDiv(axis.taps, axis.stride / std::gcd(axis.stride, axis.dilation));
    c.share *= static_cast<double>(axis.taps) / static_cast<double>(c.axes[a].taps * Phases(axis));
  }
  const int64_t last_taps = c.axes[kAxes - 1].taps;
  OrderRows(boxes, c);
  // Another phase may have the taps for it.
  if (c.beyond == 0 && !c.zipped && !c.boxes && c.o <= kFewOutputs) FillUp(c.axes[kAxes - 1], c);
  if (c.zipped) {  // the last axis has both phases in each pair
    c.largest_pair = static_cast<double>(p.axes[kAxes - 1].taps) / static_cast<double>(last_taps);
    c.share *= 2;
  }
  return c;
}

Contraction MakeBiasContraction(const Problem& p) {
  const PixelStrides& v = p.bias.sums_x ? p.x : p.y;
  Contraction c;
  c.sum_pixels = true;
  c.images = p.batch;
  c.o = p.groups * (p.bias.sums_x ? p.ci : p.co);
  c.v = {0, v.n, 0, v.c, v.s};
  c.w.o = p.bias.stride;
  for (int a = 0; a < kAxes; ++a) {
    c.axes[a].pixels = p.bias.sums_x ? p.axes[a].in : p.axes[a].out;
    c.axes[a].limit = c.axes[a].pixels;
  }
  return c;
}

Chunks MakeChunks(const Contraction& c) {
  Chunks chunks;
  const int64_t longest = c.terms_each == 1 ? Chunks::kLongest : Chunks::kLongestOfElements;
  if (c.sum_pixels) {
    chunks.outer = c.images;
    chunks.inner = c.pixels();
    chunks.chained = chunks.inner < Chunks::kTinyImage;
    chunks.inner_block = EvenBlock(chunks.inner, longest);
    if (c.terms_each > 1 && c.line > 0 && c.line <= longest) {  // elements of one line, if they can
      chunks.inner_block = c.line * EvenBlock(chunks.inner / c.line, longest / c.line);
    }
    if (chunks.chained && chunks.inner > 0) {
      chunks.outer_block = EvenBlock(chunks.outer, std::max<int64_t>(1, longest / chunks.inner));
    }
  } else {
    chunks.outer = c.channels;
    chunks.inner = c.taps();
    chunks.inner_block = EvenBlock(chunks.inner, longest);
    const int64_t most = std::max<int64_t>(1, longest / chunks.inner_block);
    chunks.outer_block = EvenBlock(chunks.outer, most);
    // Packing moves four channels at a time.
    if (most >= 4) {
      chunks.outer_block = std::min(CeilDiv(chunks.outer_block, 4) * 4, most / 4 * 4);
    }
    chunks.outer_block = std::clamp<int64_t>(chunks.outer, 1, chunks.outer_block);
  }
  return chunks;
}

}  // namespace convgrad
