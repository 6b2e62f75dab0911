#include "cpu/flat.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "core/text.h"
#include "cpu/engine.h"
#include "cpu/flat_sums.h"
#include "cpu/multiply_rate.h"
#include "cpu/tiling.h"

namespace convgrad {
namespace {

constexpr int64_t kCacheLine = 16;  // floats

// Of extents: a product of those that fit into memory has no more than 2^40.
constexpr int64_t kFar = int64_t{1} << 31;

int64_t RoundUp(int64_t value, int64_t unit) { return CeilDiv(value, unit) * unit; }

// Distance of a tap from the one that reads first.
int64_t DistanceOf(const GatherAxis& axis, int64_t tap) {
  return (axis.tap_step < 0 ? axis.taps - 1 - tap : tap) * std::abs(axis.tap_step);
}

// Distances of taps are the same residues again after so many.
int64_t PeriodOf(const GatherAxis& axis) {
  return axis.taps <= 1 ? 1 : axis.pixel_step / std::gcd(axis.pixel_step, axis.tap_step);
}

FlatAxes BlockOf(FlatAxes axes, const std::array<int64_t, kFlatAxes>& pixels) {
  for (int a = 0; a < kFlatAxes; ++a) {
    axes[a].axis.pixels = std::min(axes[a].axis.pixels, pixels[a]);
  }
  return axes;
}

// What the memory of a block depends on, whatever its pixels: without a division for each block
// that is tried.
struct BlockShape {
  std::array<int64_t, kFlatAxes> pixels{}, residues{}, reach{};
  int64_t channels = 1, outs = 1, terms = 1;  // of a chunk; o, as tiles have them

  BlockShape(const Contraction& c, const FlatAxes& axes) {
    for (int a = 0; a < kFlatAxes; ++a) {
      const FlatExtent e = ExtentOf(axes[a].axis);
      pixels[a] = std::clamp<int64_t>(axes[a].axis.pixels, 1, kFar);
      residues[a] = e.residues;
      reach[a] = e.span - pixels[a];
    }
    const int64_t each = FlatSums::OutsOf(c.o), taps = c.taps();
    const Chunks chunks = MakeChunks(c);
    channels = chunks.count() > 0 ? chunks.outer_block : 0;  // a phase may have no taps
    outs = CeilDiv(c.o, each) * each;
    // Of a chunk of any phase.
    terms =
        taps >= Chunks::kLongest ? Chunks::kLongest : std::min(c.channels * taps, Chunks::kLongest);
  }

  int64_t PixelsOf(int a, const FlatTiling& t) const { return std::min(pixels[a], t.block[a]); }
  // Planes of a block, without zeros that lines share, as a double: too large ones overflow. A
  // vector may begin at the last float.
  double PlaneFloats(const FlatTiling& t) const {
    double plane = 1, planes = 1;
    for (int a = 0; a < kFlatAxes; ++a) {
      plane *= static_cast<double>(PixelsOf(a, t) + reach[a]);
      planes *= static_cast<double>(residues[a]);
    }
    return (plane + 2 * kCacheLine) * planes * static_cast<double>(channels) + 2 * kCacheLine;
  }
};

// No block of a task needs more, of the phase with the most taps. Those with fewer taps, of those
// that have any, may have more channels in a chunk: up to twice as many terms, where chunks are
// even, and for each channel the end of a cache line and another one more. There is room for one
// pixel of them (Flat.HasRoomForEveryPhase). False: it is more than `floats`.
bool SetMemory(const BlockShape& shape, int64_t all_channels, bool phases, double floats,
               FlatTiling& t) {
  double planes = shape.PlaneFloats(t), lines = 1;
  if (phases) {
    FlatTiling pixel = t;
    pixel.block = {1, 1, 1, 1};
    const int64_t channels = std::min(all_channels, Chunks::kLongest);
    planes = std::max(
        planes, 2 * (shape.PlaneFloats(pixel) + static_cast<double>(channels * 2 * kCacheLine)));
  }
  for (int a = 0; a + 1 < kFlatAxes; ++a) lines *= static_cast<double>(shape.PixelsOf(a, t));
  if (planes > floats || lines > floats) return false;
  const int64_t vectors =
      static_cast<int64_t>(lines) * CeilDiv(shape.PixelsOf(kFlatAxes - 1, t), t.lanes);
  t.g_floats = RoundUp(static_cast<int64_t>(planes), kCacheLine);
  t.c_floats = RoundUp(shape.outs * vectors * t.lanes, kCacheLine);
  t.w_floats = RoundUp(shape.outs * shape.terms, kCacheLine);
  t.pixel_floats = RoundUp(2 * vectors, kCacheLine);
  return static_cast<double>(t.task_floats()) <= floats;
}

// The outermost axis that has several pixels; false: none has.
bool Halve(FlatTiling& t) {
  int a = 0;
  while (a < kFlatAxes && t.block[a] == 1) ++a;
  if (a == kFlatAxes) return false;
  t.block[a] = (t.block[a] + 1) / 2;
  return true;
}

// Tasks for all threads: images first, which share nothing but the weights; then the outermost
// axis. Blocks of as many pixels as `floats` allow: of images that are lanes a few vectors, but
// else parts of the outermost axis, since neighbours read the same positions.
bool Cut(const Problem& p, const Contraction& c, int threads, double floats, FlatTiling& t) {
  const FlatAxes axes = FlatAxesOf(c, t.images_last);
  const BlockShape shape(c, axes);
  int64_t wanted = threads == 1 ? 1 : CeilDiv(4 * threads, p.groups);
  std::array<int, kFlatAxes> order{0, 1, 2, 3};
  if (t.images_last) order = {3, 0, 1, 2};
  t.parts = {1, 1, 1, 1};
  for (const int a : order) {
    const int64_t pixels = std::max<int64_t>(1, axes[a].axis.pixels);
    t.block[a] = pixels;
    if (wanted == 1) continue;
    const int64_t least = a == kFlatAxes - 1 ? 4 * int64_t{t.lanes} : 1;
    t.parts[a] = std::clamp<int64_t>(pixels / least, 1, wanted);
    wanted = CeilDiv(wanted, t.parts[a]);
    t.block[a] = CeilDiv(pixels, t.parts[a]);
  }
  if (t.images_last) t.block[3] = std::min(t.block[3], 4 * int64_t{t.lanes});
  const bool phases = CountUnmergedPhases(p) > 1;
  while (!SetMemory(shape, c.channels, phases, floats, t)) {
    if (!Halve(t)) return false;
  }
  return true;
}

// What a problem takes, counted: cycles of sums, floats that are moved, and lines of them.
struct FlatCounts {
  double sums = 0;       // cycles of multiply-adds
  double tap_tiles = 0;  // taps of a tile of sums
  double blocks = 0, tasks = 0;
  double copied = 0, turned = 0, apart = 0;  // floats of planes
  double copied_lines = 0;                   // of a channel
  double stored = 0, stored_apart = 0, stored_lines = 0;
  double weights = 0;
  double cleared = 0;  // floats of planes with padding
  double far = 0;  // elements that are read alone of a cache line, since others are of other groups
};

double AsDouble(int64_t value) { return static_cast<double>(value); }

// Positions of a residue that are there, about.
int64_t ReadOf(const GatherAxis& axis, const FlatExtent& e) {
  return std::clamp<int64_t>(axis.limit, 1, e.span);
}

FlatCounts CountsOf(const Problem& p, const Contraction& c, const FlatTiling& t) {
  const FlatAxes all = FlatAxesOf(c, t.images_last), axes = BlockOf(all, t.block);
  const FlatLayout layout = LayoutOf(axes, t.lanes);
  const bool columns = c.columns.channels > 0;
  const double phases = columns ? 1 : AsDouble(CountPlainPhases(p));
  double taps = 1, pixels = 1, read = 1, lines = 1;
  for (int a = 0; a < kAxes; ++a) {
    taps *= AsDouble(phases > 1 ? p.axes[a].taps : c.axes[a].taps);
  }
  taps /= phases;
  FlatCounts n;
  n.tasks = AsDouble(p.groups) * AsDouble(t.tasks()) * phases;
  n.blocks = AsDouble(p.groups) * phases;
  for (int a = 0; a < kFlatAxes; ++a) {
    const double block = std::max(1.0, AsDouble(axes[a].axis.pixels));
    n.blocks *= AsDouble(all[a].axis.pixels) / block;
    pixels *= block;
    if (a + 1 < kFlatAxes) lines *= block;
    read *=
        AsDouble(layout.extents[a].residues) * AsDouble(ReadOf(axes[a].axis, layout.extents[a]));
  }
  const Chunks chunks = MakeChunks(c);
  const double channels = AsDouble(c.channels), o = AsDouble(c.o);
  const double outs = AsDouble(FlatSums::OutsOf(c.o)), parts = std::ceil(o / outs);
  // One load for each vector of g, which lies across two cache lines, and one for each weight.
  // Dense layers of 64 channels to 64 o, whose weights and planes share the caches, have 62 to 78 %
  // of the peak, as a contraction has, which scales better (Sapphire Rapids, one and two threads).
  const bool dense = parts > 4 && c.channels > 32;
  const double each = std::max(outs / RateOfCore().pipes, 1.0) * (dense ? 1.5 : 1);
  const double vectors = AsDouble(layout.vectors());
  n.sums = n.blocks * vectors * taps * channels * parts * each;
  n.tap_tiles = n.blocks * std::ceil(vectors / std::min(8.0, std::floor(24 / outs))) * taps *
                std::ceil(channels / AsDouble(chunks.outer_block)) * parts;
  const FlatAxis& last = axes[kFlatAxes - 1];
  const int64_t step = std::abs(last.axis.pixel_step * last.g_step);
  (step <= 1                             ? n.copied
   : c.g.channel == 1 && c.channels >= 4 ? n.turned
                                         : n.apart) = n.blocks * read * channels;
  n.copied_lines =
      n.blocks * channels * read / AsDouble(ReadOf(last.axis, layout.extents[kFlatAxes - 1]));
  (last.v_step == 1 ? n.stored : n.stored_apart) = n.blocks * pixels * o;
  n.stored_lines = n.blocks * lines * o;
  bool pads = false;
  for (const FlatAxis& a : all) {
    const FlatExtent e = ExtentOf(a.axis);
    pads = pads || InsideOfResidue(a.axis, 0, e.span).size() < e.span;
  }
  if (pads) n.cleared = n.blocks * AsDouble(chunks.outer_block) * AsDouble(layout.channel_floats());
  const int64_t size = SizeOf(p.type);
  if (p.groups > 1 && c.channels * size < 64 && std::abs(last.g_step) * size >= 64) {
    n.far = n.blocks * read * channels;
  }
  if (p.groups > 1 && o * AsDouble(size) < 64 && std::abs(last.v_step) * size >= 64) {
    n.far += n.blocks * pixels * o;
  }
  n.weights = (chunks.count() > 1 ? n.blocks : n.tasks) * taps * channels * o;
  return n;
}

// Least squares of the logarithms of 883 random problems' times (Cascade Lake, one thread, all
// types and layouts): half of them take 0.75 to 1.4 times what it says, nine of ten 0.5 to 2.
double CyclesOf(const FlatCounts& n) {
  return n.sums * 1.2 + n.tap_tiles * 12 + n.blocks * 600 + n.tasks * 7000 + n.copied * 1.6 +
         n.turned * 0.8 + n.apart * 4.5 + n.copied_lines * 3 + n.stored * 0.8 + n.stored_apart * 2 +
         n.stored_lines * 28 + n.weights * 7 + n.cleared * 0.06 + n.far * 5 + 4000;
}

// The phase with the most taps; of a single one, those that read anything.
Contraction LargestPhase(const Problem& p) {
  return CountUnmergedPhases(p) == 1 ? MakeUnmergedContraction(p, 0)
                                     : MakeLargestUnmergedContraction(p);
}

// What is chosen, and what it takes.
struct FlatChoice {
  FlatTiling t;
  double cycles = 0;
  bool fits = false;
};

FlatChoice ChooseFor(const Problem& p, const Contraction& c, int threads, double floats) {
  constexpr int64_t kLongLine = 64;
  FlatChoice best;
  for (const bool images_last : {false, true}) {
    // Long lines are as good.
    if (images_last && (p.batch < 4 || c.axes[kAxes - 1].pixels >= kLongLine)) continue;
    FlatTiling t;
    t.lanes = PickedVectorUnit(p.type).lanes;
    t.images_last = images_last;
    if (!Cut(p, c, threads, floats, t)) continue;
    const double cycles = CyclesOf(CountsOf(p, c, t));
    if (best.fits && cycles >= best.cycles) continue;
    best = {t, cycles, true};
  }
  best.t.on_stack = best.t.task_floats() <= FlatTiling::kStackFloats;
  best.t.slots = TasksWorthwhile(p, p.groups * best.t.tasks(), threads);
  return best;
}

double CacheFloats(const VectorUnit& unit) {
  return static_cast<double>(unit.l2_bytes / 2 / int64_t{sizeof(float)});
}

// Half of L2, or what is on the stack if there is no workspace for that.
FlatChoice Choose(const Problem& p, const Contraction& c, int threads, int64_t limit) {
  const FlatChoice choice = ChooseFor(p, c, threads, CacheFloats(PickedVectorUnit(p.type)));
  if (choice.fits && (limit < 0 || choice.t.workspace_bytes() <= limit)) return choice;
  return ChooseFor(p, c, threads, static_cast<double>(FlatTiling::kStackFloats));
}

// Whether there is a tiling without a limit: of blocks of one pixel, if need be.
bool FitsCache(const Problem& p, const Contraction& c) {
  const VectorUnit unit = PickedVectorUnit(p.type);
  FlatTiling t;
  t.lanes = unit.lanes;
  return SetMemory(BlockShape(c, FlatAxesOf(c, false)), c.channels, CountUnmergedPhases(p) > 1,
                   CacheFloats(unit), t);
}

// Empty: there may be a tiling.
std::string RefusalBeforeTiling(const Problem& p) {
  if (p.pass == Pass::kWgrad) return "pixels are summed";
  bool empty = p.ci == 0 || p.co == 0 || p.batch == 0;
  for (const Axis& axis : p.axes) empty = empty || axis.in == 0 || axis.out == 0;
  if (empty) return "there is nothing to multiply";
  if ((p.pass == Pass::kDgrad ? p.ci : p.co) > FlatTiling::kMostOuts) {
    return Join("groups have more than ", FlatTiling::kMostOuts, " outputs");
  }
  const VectorUnit unit = PickedVectorUnit(p.type);
  if (unit.terms_each > 1 && TermsEach(p, unit) > 1) {
    return "this CPU multiplies several terms at once";
  }
  return "";
}

}  // namespace

FlatAxes FlatAxesOf(const Contraction& c, bool images_last) {
  FlatAxes axes;
  const int first = images_last ? 0 : 1;
  for (int a = 0; a < kAxes; ++a) axes[first + a] = {c.axes[a], c.g.at[a], c.v.at[a]};
  axes[images_last ? kFlatAxes - 1 : 0] = {
      {.pixels = c.images, .limit = c.images}, c.g.image, c.v.image};
  return axes;
}

FlatExtent ExtentOf(const GatherAxis& axis) {
  FlatExtent e;
  e.residues = std::min(std::max<int64_t>(axis.taps, 1), PeriodOf(axis));
  const int64_t farthest = axis.taps <= 1 ? 0 : (axis.taps - 1) * std::abs(axis.tap_step);
  e.span = std::clamp<int64_t>(axis.pixels, 1, kFar) + std::min(kFar, farthest / axis.pixel_step);
  return e;
}

TapPlace PlaceOfTap(const GatherAxis& axis, int64_t tap) {
  const int64_t distance = DistanceOf(axis, tap);
  return {distance / std::max<int64_t>(1, std::abs(axis.tap_step)) % PeriodOf(axis),
          distance / axis.pixel_step};
}

int64_t FirstOfResidue(const GatherAxis& axis, int64_t residue) {
  const int64_t nearest = std::min<int64_t>(0, (axis.taps - 1) * axis.tap_step);
  return axis.first + (axis.taps <= 1 ? 0 : nearest) +
         residue * std::abs(axis.tap_step) % axis.pixel_step;
}

Range InsideOfResidue(const GatherAxis& axis, int64_t residue, int64_t span) {
  const int64_t first = FirstOfResidue(axis, residue);
  const int64_t begin = std::clamp<int64_t>(CeilDiv(-first, axis.pixel_step), 0, span);
  return {begin, std::clamp<int64_t>(CeilDiv(axis.limit - first, axis.pixel_step), begin, span)};
}

namespace {

// From one line, or plane, to the next one: the zeros after what is inside, or those before it,
// whichever are more, are there for both. Of all residues, the first one ends last, and the one
// that is farthest from it begins first.
int64_t PitchOf(const GatherAxis& axis, const FlatExtent& e) {
  const int64_t pixels = std::max<int64_t>(1, axis.pixels);
  const auto inside = [&](int64_t first) {
    const int64_t begin = std::clamp<int64_t>(CeilDiv(-first, axis.pixel_step), 0, e.span);
    return Range{begin,
                 std::clamp<int64_t>(CeilDiv(axis.limit - first, axis.pixel_step), begin, e.span)};
  };
  const int64_t first = FirstOfResidue(axis, 0);
  const int64_t farthest =
      e.residues == 1
          ? 0
          : std::min(axis.pixel_step - 1, DistanceOf(axis, axis.tap_step < 0 ? 0 : axis.taps - 1));
  return std::max({pixels, inside(first).end, e.span - inside(first + farthest).begin});
}

}  // namespace

FlatLayout LayoutOf(const FlatAxes& axes, int lanes) {
  FlatLayout layout;
  int64_t pitch = 1, last = 0;
  for (int a = kFlatAxes - 1; a >= 0; --a) {
    const FlatExtent e = ExtentOf(axes[a].axis);
    layout.extents[a] = e;
    layout.pitch[a] = pitch;
    layout.planes *= e.residues;
    last += (e.span - 1) * pitch;
    pitch *= PitchOf(axes[a].axis, e);
  }
  // Planes of channels a multiple of 4 KiB apart would share the sets of L1.
  layout.plane = RoundUp(last + 1, kCacheLine);
  if (layout.plane % (64 * kCacheLine) == 0) layout.plane += kCacheLine;
  int64_t outer = 1, run = 1, least = 0;
  for (const FlatAxis& a : axes) outer *= a.axis.pixels;
  for (int count = 1; count <= kFlatAxes; ++count) {
    const int a = kFlatAxes - count;
    const int64_t pixels = axes[a].axis.pixels;
    run += (pixels - 1) * layout.pitch[a];
    outer /= std::max<int64_t>(1, pixels);
    const int64_t vectors = CeilDiv(run, lanes);
    if (count > 1 && outer * vectors >= least) continue;
    least = outer * vectors;
    layout.run_axes = count;
    layout.run_vectors = vectors;
    layout.runs = outer;
  }
  return layout;
}

std::string FlatRefusal(const Problem& p, int threads, int64_t limit) {
  if (std::string reason = RefusalBeforeTiling(p); !reason.empty()) return reason;
  const Contraction c = LargestPhase(p);
  if (c.taps() == 0) return "no tap meets anything but padding";
  if (c.o > FlatTiling::kMostOuts) {
    return Join("there are more than ", FlatTiling::kMostOuts, " outputs and phases of the stride");
  }
  bool fits = limit < 0 && FitsCache(p, c);
  if (!fits) {
    const FlatChoice choice = Choose(p, c, threads, limit);
    fits = choice.fits && (limit < 0 || choice.t.workspace_bytes() <= limit);
  }
  if (!fits) return "what a chunk of channels reads does not fit into the memory of a task";
  return "";
}

FlatTiling OfPhase(const Contraction& c, FlatTiling t) {
  const BlockShape shape(c, FlatAxesOf(c, t.images_last));
  while (shape.PlaneFloats(t) > static_cast<double>(t.g_floats) && Halve(t)) continue;
  return t;
}

FlatTiling FlatTilingOf(const Problem& p, int threads, int64_t limit) {
  return Choose(p, LargestPhase(p), threads, limit).t;
}

std::string FlatText(const Problem& p, int threads, int64_t limit) {
  const FlatTiling t = FlatTilingOf(p, threads, limit);
  const Contraction c = LargestPhase(p);
  const FlatAxes block = BlockOf(FlatAxesOf(c, t.images_last), t.block);
  const FlatLayout layout = LayoutOf(block, t.lanes);
  static constexpr const char* kRuns[] = {"a line", "several lines", "several lines",
                                          "several lines and images"};
  int64_t pixels = 1;
  for (const FlatAxis& a : block) pixels *= a.axis.pixels;
  return Join(pixels, " pixels in a block, ", FlatSums::OutsOf(c.o), " of ", c.o,
              " outputs at once; vectors along ",
              t.images_last ? "images" : Join("the pixels of ", kRuns[layout.run_axes - 1]), "; ",
              PickedVectorUnit(p.type).name,
              p.type == DataType::kF32 ? "" : ", widened to f32 when it is copied");
}

double FlatSeconds(const Problem& p, int threads) {
  if (!RefusalBeforeTiling(p).empty()) return HUGE_VAL;
  const Contraction c = LargestPhase(p);
  if (c.taps() == 0) return HUGE_VAL;
  const FlatChoice choice = Choose(p, c, threads, -1);
  if (!choice.fits) return HUGE_VAL;
  return std::max(choice.cycles / RateOfCore().hertz, CountBytes(p) / 10e9) / threads;
}

}  // namespace convgrad
