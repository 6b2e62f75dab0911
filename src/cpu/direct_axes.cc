#include "cpu/direct_axes.h"

#include <algorithm>

#include "cpu/contraction.h"

namespace convgrad {
namespace {

// The others stay in their order.
void MoveAxisFirst(Problem& p, int a) {
  std::rotate(p.axes.begin(), p.axes.begin() + a, p.axes.begin() + a + 1);
  for (auto* s : {&p.x.s, &p.y.s, &p.w.s}) {
    std::rotate(s->begin(), s->begin() + a, s->begin() + a + 1);
  }
}

// One tap that reads every position in order.
bool IsPlain(const Axis& axis) {
  return axis.taps == 1 && axis.stride == 1 && axis.pad == 0 && axis.in == axis.out;
}

// Two such axes are one, if their positions follow each other in both tensors: 1x1 on 7x4 has one
// line of 28 pixels. The order of pixels stays.
void MergePlainAxes(Problem& p) {
  if (p.axes[1] == Axis{}) MoveAxisFirst(p, 1);
  for (int a = kAxes - 2; a >= 0;) {
    Axis &outer = p.axes[a], &inner = p.axes[a + 1];
    if (!IsPlain(outer) || !IsPlain(inner) || outer.in == 1 || inner.in == 1 ||
        p.x.s[a] != p.x.s[a + 1] * inner.in || p.y.s[a] != p.y.s[a + 1] * inner.in) {
      --a;
      continue;
    }
    inner.in = inner.out = inner.in * outer.in;
    outer = Axis{};
    MoveAxisFirst(p, a);
  }
}

// Lines of few pixels of many images: what is done for each line takes longer than multiplying.
// Where an axis is free, lines go along images, which share the weights and nothing else. (Not
// where pixels are summed, whose order is images first.) They are worth it where what is copied
// stays for all pixels that read it, or where there is little to multiply: of 4 to 3 channels of
// 17x7, 7x7 taps of stride 2, they take three times as long on a Neoverse-N1.
bool HasLinesOfImages(const Problem& p) {
  constexpr int64_t kShort = 8, kImages = 32;
  constexpr double kKept = 128, kFewTerms = 64;
  const bool dgrad = p.pass == Pass::kDgrad;
  const Axis& last = p.axes[kAxes - 1];
  const int64_t pixels = dgrad ? CeilDiv(last.in, last.stride) : last.out;
  if (p.pass == Pass::kWgrad || pixels >= kShort || p.batch < kImages ||
      std::count(p.axes.begin(), p.axes.end(), Axis{}) == 0) {
    return false;
  }
  double read = static_cast<double>(dgrad ? p.co : p.ci), terms = read, written = 1;
  for (const Axis& axis : p.axes) {
    read *= static_cast<double>(PowerOfTwo(dgrad ? axis.out : axis.in));
    written *= static_cast<double>(dgrad ? axis.in : axis.out);
    terms *= static_cast<double>(dgrad ? CeilDiv(axis.taps, axis.stride) : axis.taps);
  }
  return written == 1 || read <= kKept || terms * static_cast<double>(pixels) < kFewTerms;
}

void TurnImagesToLines(Problem& p) {
  MoveAxisFirst(p,
                static_cast<int>(std::find(p.axes.begin(), p.axes.end(), Axis{}) - p.axes.begin()));
  std::rotate(p.axes.begin(), p.axes.begin() + 1, p.axes.end());
  for (auto* s : {&p.x.s, &p.y.s, &p.w.s}) std::rotate(s->begin(), s->begin() + 1, s->end());
  Axis& last = p.axes[kAxes - 1];
  last.in = last.out = p.batch;
  p.x.s[kAxes - 1] = p.x.n;
  p.y.s[kAxes - 1] = p.y.n;
  p.batch = 1;
}

}  // namespace

Problem WithPlanes(Problem p) {
  if (p.per_sample.present) p.batch = 1;
  p.per_sample = {};
  if (HasGroupsOfImages(p)) {
    p.groups = p.batch;
    p.batch = 1;
    p.x.c = p.x.n;
    p.y.c = p.y.n;
    p.w.g = p.bias.stride = 0;
  }
  for (int turns = 0; turns + 1 < kAxes && p.axes[kAxes - 1] == Axis{}; ++turns) {
    MoveAxisFirst(p, kAxes - 1);
  }
  MergePlainAxes(p);
  return p;
}

Problem WithLines(Problem p) {
  p = WithPlanes(p);
  if (HasLinesOfImages(p)) TurnImagesToLines(p);
  return p;
}

}  // namespace convgrad
