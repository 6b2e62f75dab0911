// Tasks of planes that are turned. Step 6 of the story: turns them, has their lines summed in
// place, turns the result back.
#if defined(CONVGRAD_CPU_DIRECT_TURNED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_DIRECT_TURNED_INL_H_
#undef CONVGRAD_CPU_DIRECT_TURNED_INL_H_
#else
#define CONVGRAD_CPU_DIRECT_TURNED_INL_H_
#endif

#include <algorithm>
#include <array>
#include <optional>

#include "cpu/direct.h"
#include "cpu/direct_in_place-inl.h"
#include "cpu/direct_lines-inl.h"
#include "cpu/direct_turned.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// Planes of some channels of an image, and the same positions with channels next to each other,
// `width` floats from one to the next.
struct PlaneShape {
  int64_t positions, channels, channel_step, width;
};

template <class T>
void TurnIn(const PlaneShape& of, const T* from, float* to) {
  int64_t c = 0;
#if CONVGRAD_TURNS_VECTORS
  for (; of.positions >= 4 && c + kLanes <= of.channels; c += kLanes, to += kLanes) {
    TurnVectorOfRows(from, of.channel_step, of.positions, to, of.width);
    from += kLanes * of.channel_step;
  }
#endif
#if HWY_TARGET != HWY_SCALAR
  const int64_t step = of.channel_step, whole = of.positions / 4 * 4;
  for (; c + 4 <= of.channels; c += 4, from += 4 * step, to += 4) {
    const auto turn = [&](int64_t first, int64_t count) HWY_ATTR {
      const T* const at = from + first;
      TurnFourRows(at, at + step, at + 2 * step, at + 3 * step, count, to + first * of.width,
                   of.width);
    };
    int64_t done = 0;
#if CONVGRAD_MULTIPLIES_BY_LANES
    if constexpr (sizeof(T) == sizeof(uint16_t)) {
      for (; done + 8 <= whole; done += 8) {
        TurnEight(from + done, step, to + done * of.width, of.width);
      }
    }
#endif
    if (whole < 4) {
      turn(0, of.positions);
      continue;
    }
    turn(done, whole - done);
    if (whole < of.positions) turn(of.positions - 4, 4);  // the last four again
  }
#endif
  for (; c < of.channels; ++c, from += of.channel_step, ++to) {
    for (int64_t i = 0; i < of.positions; ++i) to[i * of.width] = Widen(LoadAt<T>(from, i));
  }
}

// Rounded once.
template <class T>
void TurnOut(const PlaneShape& of, const float* from, T* to) {
  int64_t c = 0;
#if CONVGRAD_TURNS_VECTORS
  for (; of.positions >= 4 && c + kLanes <= of.channels; c += kLanes, from += kLanes) {
    const auto column = [&](int64_t p) HWY_ATTR { return hn::LoadU(D(), from + p * of.width); };
    TurnBack(of.positions, column, to, of.channel_step);
    to += kLanes * of.channel_step;
  }
#endif
#if HWY_TARGET != HWY_SCALAR
  const D4 d;
  for (; c + 4 <= of.channels && of.positions >= 4; c += 4, to += 4 * of.channel_step, from += 4) {
    const auto store = [&](int64_t first) HWY_ATTR {
      const float* const at = from + first * of.width;
      const FourRows turned =
          Turn(hn::LoadU(d, at), hn::LoadU(d, at + of.width), hn::LoadU(d, at + 2 * of.width),
               hn::LoadU(d, at + 3 * of.width));
      T* const row = to + first;
      StoreBytes(turned.k0, d, row);
      StoreBytes(turned.k1, d, row + of.channel_step);
      StoreBytes(turned.k2, d, row + 2 * of.channel_step);
      StoreBytes(turned.k3, d, row + 3 * of.channel_step);
    };
    int64_t i = 0;
#if CONVGRAD_MULTIPLIES_BY_LANES
    if constexpr (sizeof(T) == sizeof(uint16_t)) {
      for (; i + 8 <= of.positions; i += 8) {
        StoreEightTurned(from + i * of.width, of.width, hn::Zero(D()), to + i, of.channel_step);
      }
    }
#endif
    for (; i + 4 <= of.positions; i += 4) store(i);
    if (i < of.positions) store(of.positions - 4);  // the last four again
  }
#endif
  for (; c < of.channels; ++c, to += of.channel_step, ++from) {
    for (int64_t i = 0; i < of.positions; ++i) StoreAt(to, i, NarrowSum(from[i * of.width], T()));
  }
}

// What is the same for both kinds of sums.
class PlanesOfTask {
 public:
  PlanesOfTask(const DirectWork& work, const DirectTask& task, float* memory)
      : work_(work),
        t_(*work.t),
        p_(*work.problem),
        first_(task.blocks.begin * t_.used),
        channels_(std::min(task.blocks.end * t_.used, work.groups) - first_),
        width_(t_.plane_width),
        turned_(TurnedPlanes::Turned(p_, width_)),
        x_(memory),
        y_(memory + TurnedPlanes::PositionsOfX(p_) * width_),
        rest_(memory + TurnedPlanes::WholeLines(t_.plane_positions * width_)),
        inner_{.blocks = {0, task.blocks.size()}} {}

 protected:
  PlaneShape ShapeOfX() const {
    return {TurnedPlanes::PositionsOfX(p_), channels_, p_.x.c, width_};
  }
  PlaneShape ShapeOfY() const {
    return {TurnedPlanes::PositionsOfY(p_), channels_, p_.y.c, width_};
  }
  int64_t PlaceInX(int64_t image) const { return image * p_.x.n + first_ * p_.x.c; }
  int64_t PlaceInY(int64_t image) const { return image * p_.y.n + first_ * p_.y.c; }

  const DirectWork& work_;
  const DirectTiling& t_;
  const Problem& p_;
  const int64_t first_, channels_;
  const int64_t width_;
  const Problem turned_;
  float *const x_, *const y_, *const rest_;
  DirectTask inner_;
};

// v = g w: all phases of an image before the next one, so that each plane is turned once.
template <class T>
class TapsOfPlanes : public PlanesOfTask {
  using Lines = LinesInPlace<float, float, T>;

 public:
  TapsOfPlanes(const DirectWork& work, const DirectTask& task, float* memory)
      : PlanesOfTask(work, task, memory),
        dgrad_(p_.pass == Pass::kDgrad),
        phases_(CountPlainPhases(turned_)) {
    float* own = rest_;
    for (int64_t i = 0; i < phases_; ++i) {
      c_[i] = MakePlainContraction(turned_, i);
      tasks_[i] = inner_;
      tasks_[i].lines = {0, c_[i].axes[0].pixels * c_[i].axes[1].pixels};
      tasks_[i].columns = {0, c_[i].axes[kAxes - 1].pixels};
      if (tasks_[i].lines.size() == 0 || tasks_[i].columns.size() == 0) continue;
      works_[i] = work;
      works_[i].c = &c_[i];
      works_[i].groups = channels_;
      works_[i].g = dgrad_ ? y_ : x_;
      works_[i].out = dgrad_ ? x_ : y_;
      works_[i].other = static_cast<const T*>(work.other) + first_ * work.w_group;
      if (work.bias != nullptr) {
        works_[i].bias = static_cast<const T*>(work.bias) + first_ * work.bias_stride;
      }
      lines_[i].emplace(works_[i], tasks_[i], own);
      lines_[i]->PackWeights();
      own += TurnedPlanes::WholeLines(MemoryOf(c_[i], t_).floats(t_.blocks_each));
    }
  }

  void Sum(const Range& images) {
    const PlaneShape x = ShapeOfX(), y = ShapeOfY();
    const T* const g = static_cast<const T*>(work_.g);
    T* const out = static_cast<T*>(work_.out);
    for (int64_t image = images.begin; image < images.end; ++image) {
      const int64_t in_x = PlaceInX(image), in_y = PlaceInY(image);
      dgrad_ ? TurnIn(y, g + in_y, y_) : TurnIn(x, g + in_x, x_);
      if (work_.beta != 0) {
        dgrad_ ? TurnIn<T>(x, out + in_x, x_) : TurnIn<T>(y, out + in_y, y_);
      }
      for (int64_t i = 0; i < phases_; ++i) {
        if (lines_[i]) lines_[i]->SumTapsOfImages({image, image + 1});
      }
      dgrad_ ? TurnOut(x, x_, out + in_x) : TurnOut(y, y_, out + in_y);
    }
  }

 private:
  static constexpr int64_t kMost = TurnedPlanes::kMostPhases;

  const bool dgrad_;
  const int64_t phases_;
  std::array<Contraction, kMost> c_;
  std::array<DirectWork, kMost> works_;
  std::array<DirectTask, kMost> tasks_;
  std::array<std::optional<Lines>, kMost> lines_;
};

// w = g^T v: both planes of an image are turned when its first pixels are summed.
template <class T, class U>
class PixelsOfPlanes : public PlanesOfTask {
 public:
  PixelsOfPlanes(const DirectWork& work, const DirectTask& task, float* memory)
      : PlanesOfTask(work, task, memory), c_(MakePlainContraction(turned_, 0)), own_(work) {
    inner_.chunks = task.chunks;
    own_.c = &c_;
    own_.groups = channels_;
    own_.g = x_;
    own_.other = y_;
    own_.out = static_cast<U*>(work.out) + first_ * work.w_group;
    if (work.bias_out != nullptr) {
      own_.bias_out = static_cast<U*>(work.bias_out) + first_ * work.bias_stride;
    }
    if (work.slabs != nullptr) {
      own_.slabs = work.slabs + task.blocks.begin * SumFloatsOf(c_, *work.t);
    }
    lines_.emplace(own_, inner_, rest_);
  }

  void Sum() {
    int64_t there = -1;
    lines_->SumPixels([&](int64_t image) {
      if (image == there) return;
      there = image;
      TurnIn(ShapeOfX(), static_cast<const T*>(work_.g) + PlaceInX(image), x_);
      TurnIn(ShapeOfY(), static_cast<const T*>(work_.other) + PlaceInY(image), y_);
    });
  }

  void AddSlabs() { lines_->AddSlabs(); }

 private:
  const Contraction c_;
  DirectWork own_;
  std::optional<LinesInPlace<float, U>> lines_;
};

template <class T, class U>
HWY_NOINLINE void RunTurnedTask(const DirectWork& work, const DirectTask& task, float* memory) {
  if constexpr (sizeof(T) == sizeof(U)) {
    if (work.problem->pass != Pass::kWgrad) {
      return TapsOfPlanes<T>(work, task, memory).Sum(task.images);
    }
  }
  PixelsOfPlanes<T, U> planes(work, task, memory);
  task.adds_slabs ? planes.AddSlabs() : planes.Sum();
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
