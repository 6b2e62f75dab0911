// A task of the flat kernel: copies what a block of pixels reads, has it summed, and stores the
// result. Steps 6 and 8 of the story.
#if defined(CONVGRAD_CPU_FLAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_FLAT_INL_H_
#undef CONVGRAD_CPU_FLAT_INL_H_
#else
#define CONVGRAD_CPU_FLAT_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cpu/direct_lines-inl.h"
#include "cpu/flat.h"
#include "cpu/flat_sums.h"
#include "cpu/rect-inl.h"
#include "cpu/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

template <class T>
class FlatTask {
 public:
  FlatTask(const FlatWork& work, float* memory)
      : work_(work),
        c_(*work.c),
        t_(*work.t),
        chunks_(MakeChunks(c_)),
        outs_(FlatSums::OutsOf(c_.o)),
        all_axes_(FlatAxesOf(c_, t_.images_last)),
        image_axis_(t_.images_last ? kFlatAxes - 1 : 0),
        sums_(PickedFlatSums()),
        g_(memory),
        v_(g_ + t_.g_floats),
        w_(v_ + t_.c_floats),
        pixels_(reinterpret_cast<int64_t*>(w_ + t_.w_floats)) {
    const int64_t channels = c_.columns.channels > 0 ? c_.columns.channels : c_.o;
    for (int64_t o = 0; o < channels; ++o) {
      bias_[o] = 0;
      if (work.bias != nullptr) bias_[o] += Widen(LoadAt<T>(work.bias, o * work.bias_stride));
    }
  }

  void Run(const FlatPixels& all) {
    FlatPixels block;
    const auto cut = [&](int a, const auto& inner) {
      for (int64_t at = all[a].begin; at < all[a].end; at += t_.block[a]) {
        block[a] = {at, std::min(at + t_.block[a], all[a].end)};
        inner();
      }
    };
    cut(0, [&] { cut(1, [&] { cut(2, [&] { cut(3, [&] { SumBlock(block); }); }); }); });
  }

 private:
  // [o / outs, o % outs, vector, lane]
  float* SumsOf(int64_t o) const { return v_ + o * layout_.vectors() * kLanes; }

  void SumBlock(const FlatPixels& block) {
    SetLayout(block);
    const int64_t count = chunks_.count(), inner_count = chunks_.inner_count();
    if (count == 0 || work_.beta != 0) {
      std::fill(v_, v_ + CeilDiv(c_.o, outs_) * outs_ * layout_.vectors() * kLanes, 0.0f);
    }
    if (work_.beta != 0) ForEachRow(block, [&](const Row& row) { LoadScaled(row); });
    for (int64_t i = 0; i < count; ++i) {
      const Chunk chunk = ChunkAt(chunks_, i);
      if (count > 1 || !packed_) PackWeights(chunk);
      if (i % inner_count == 0) CopyChannels(chunk.outer);
      SumChunk(chunk, i > 0 || work_.beta != 0);
    }
    packed_ = true;
    ForEachRow(block, [&](const Row& row) { Store(row); });
  }

  // Whether all that pixels of an axis read is there.
  static bool IsInside(const GatherAxis& axis) {
    const int64_t taps = (std::max<int64_t>(axis.taps, 1) - 1) * axis.tap_step;
    return axis.first + std::min<int64_t>(0, taps) >= 0 &&
           axis.first + std::max<int64_t>(0, taps) + (axis.pixels - 1) * axis.pixel_step <
               axis.limit;
  }

  // Zeros of a block are those of the one before, if it has the same shape and borders.
  void SetLayout(const FlatPixels& block) {
    bool same = laid_out_;
    for (int a = 0; a < kFlatAxes; ++a) {
      GatherAxis axis = all_axes_[a].axis;
      axis.first += block[a].begin * axis.pixel_step;
      axis.pixels = block[a].size();
      const GatherAxis& last = axes_[a].axis;
      same = same && axis.pixels == last.pixels &&
             (axis.first == last.first || (IsInside(axis) && IsInside(last)));
      axes_[a] = {axis, all_axes_[a].g_step, all_axes_[a].v_step};
    }
    if (same) return;
    laid_out_ = true;
    layout_ = LayoutOf(axes_, kLanes);
    offsets_of_ = {};
    if (chunks_.count() > 0) {
      std::fill(g_, g_ + chunks_.outer_block * layout_.channel_floats() + kLanes, 0.0f);
    }
    std::array<int64_t, kFlatAxes> outer{1, 1, 1, 1};
    for (int a = 0; a < kFlatAxes - layout_.run_axes; ++a) outer[a] = axes_[a].axis.pixels;
    int64_t* to = pixels_;
    const auto along = [&](int a, int64_t from, const auto& inner) {
      for (int64_t i = 0; i < outer[a]; ++i, from += layout_.pitch[a]) inner(from);
    };
    along(0, 0, [&](int64_t p0) {
      along(1, p0, [&](int64_t p1) {
        along(2, p1, [&](int64_t p2) {
          along(3, p2, [&](int64_t p3) {
            for (int64_t i = 0; i < layout_.run_vectors; ++i) *to++ = p3 + i * kLanes;
          });
        });
      });
    });
  }

  // Of the taps of a chunk, [o / outs, tap, channel, o % outs]; zeros for an o that does not exist,
  // and for a tap that a phase does not have.
  void PackWeights(const Chunk& chunk) const {
    const T* const w = static_cast<const T*>(work_.w);
    const PhaseColumns& columns = c_.columns;
    float* to = w_;
    for (int64_t first = 0; first < c_.o; first += outs_) {
      for (int64_t tap = chunk.inner.begin; tap < chunk.inner.end; ++tap) {
        int64_t at[kAxes];
        TapOf(tap, at);
        const int64_t of_tap =
            c_.w.first + at[0] * c_.w.at[0] + at[1] * c_.w.at[1] + at[2] * c_.w.at[2];
        int64_t of_o[FlatSums::kMostOfTile];
        bool has[FlatSums::kMostOfTile];
        for (int64_t k = 0; k < outs_; ++k) {
          has[k] = first + k < c_.o;
          of_o[k] = (first + k) * c_.w.o;
          if (columns.channels == 0 || !has[k]) continue;
          int64_t phase[kAxes];
          PhaseOf((first + k) / columns.channels, phase);
          has[k] = columns.HasTap(phase, at);
          of_o[k] = (first + k) % columns.channels * c_.w.o;
          for (int a = 0; a < kAxes; ++a) of_o[k] += phase[a] * columns.w_step[a];
        }
        for (int64_t ch = chunk.outer.begin; ch < chunk.outer.end; ++ch, to += outs_) {
          for (int64_t k = 0; k < outs_; ++k) {
            to[k] = has[k] ? Widen(LoadAt<T>(w, of_tap + ch * c_.w.channel + of_o[k])) : 0.0f;
          }
        }
      }
    }
  }

  void TapOf(int64_t tap, int64_t (&at)[kAxes]) const {
    at[2] = tap % c_.axes[2].taps;
    at[1] = tap / c_.axes[2].taps % c_.axes[1].taps;
    at[0] = tap / c_.axes[2].taps / c_.axes[1].taps;
  }
  void PhaseOf(int64_t phase, int64_t (&at)[kAxes]) const {
    const auto& phases = c_.columns.phases;
    at[2] = phase % phases[2];
    at[1] = phase / phases[2] % phases[1];
    at[0] = phase / phases[2] / phases[1];
  }

  // What of a residue of each axis so far is inside the tensor.
  struct Copied {
    std::array<int64_t, kFlatAxes> count{}, step{};
    int64_t from = 0, to = 0, plane = 0;
  };

  void CopyChannels(const Range& channels) const {
    const T* const g = static_cast<const T*>(work_.g) + c_.g.first + channels.begin * c_.g.channel;
    ForEachPlane<0>(Copied{}, [&](const Copied& of) {
      CopyPlane(g + of.from, of.count, of.step, channels.size(),
                g_ + of.plane * layout_.plane + of.to);
    });
  }

  template <int kAxis, class Visit>
  void ForEachPlane(const Copied& outer, const Visit& visit) const {
    if constexpr (kAxis == kFlatAxes) {
      visit(outer);
    } else {
      const GatherAxis& axis = axes_[kAxis].axis;
      const FlatExtent& extent = layout_.extents[kAxis];
      const int64_t g_step = axes_[kAxis].g_step;
      for (int64_t r = 0; r < extent.residues; ++r) {
        const Range inside = InsideOfResidue(axis, r, extent.span);
        if (inside.size() == 0) continue;
        Copied of = outer;
        of.count[kAxis] = inside.size();
        // Of positions that exist: others may be too far to be multiplied.
        of.step[kAxis] = inside.size() > 1 ? axis.pixel_step * g_step : 0;
        of.from += (FirstOfResidue(axis, r) + inside.begin * axis.pixel_step) * g_step;
        of.to += inside.begin * layout_.pitch[kAxis];
        of.plane = of.plane * extent.residues + r;
        ForEachPlane<kAxis + 1>(of, visit);
      }
    }
  }

  // Lines that follow each other on both sides are one.
  void CopyPlane(const T* from, std::array<int64_t, kFlatAxes> count,
                 const std::array<int64_t, kFlatAxes>& step, int64_t channels, float* to) const {
    const auto& pitch = layout_.pitch;
    int64_t run = count[3];
    for (int a = kFlatAxes - 2; a >= 0; --a) {
      if (count[a] > 1 && (pitch[a] != run || step[a] != run * step[3])) break;
      run *= count[a];
      count[a] = 1;
    }
    const bool turns = c_.g.channel == 1 && channels >= 4;
    const bool apart = sizeof(T) == sizeof(uint16_t) && std::abs(step[3]) > 2 && !turns;
    const Rect rect{run, step[3], channels, c_.g.channel};
    const Panels<float> panels{nullptr, layout_.channel_floats(), channels};
    for (int64_t i = 0; i < count[0]; ++i) {
      for (int64_t j = 0; j < count[1]; ++j) {
        for (int64_t k = 0; k < count[2]; ++k) {
          Panels<float> here = panels;
          here.first = to + i * pitch[0] + j * pitch[1] + k * pitch[2];
          const T* const line = from + i * step[0] + j * step[1] + k * step[2];
          apart ? CopyApart(line, rect, here) : PackRect(line, rect, here, 0, 0);
        }
      }
    }
  }

  // Elements of 16 bits that are far apart: moved one by one, widened by the vector.
  static void CopyApart(const T* from, const Rect& rect, const Panels<float>& to) {
    for (int64_t k = 0; k < rect.depth; ++k) {
      const T* const line = from + k * rect.k_stride;
      float* const at = to.At(k, 0);
      for (int64_t i = 0; i < rect.rows; i += kLanes) {
        const int64_t count = std::min<int64_t>(kLanes, rect.rows - i);
        const V values = LoadApart(line + i * rect.row_stride, rect.row_stride, count);
        if (count == kLanes) {
          hn::StoreU(values, D(), at + i);
        } else {
          StoreFew(values, count, at + i);
        }
      }
    }
  }
  static HWY_INLINE V LoadApart(const T* from, int64_t step, int64_t count) {
    T all[kLanes] = {};
    for (int64_t k = 0; k < count; ++k) {
      std::memcpy(static_cast<void*>(all + k), from + k * step, sizeof(T));
    }
    return LoadBytes(D(), all);
  }

  void SumChunk(const Chunk& chunk, bool add) {
    if (offsets_of_ != chunk.inner) FindOffsets(chunk.inner);
    const FlatTerms terms{offsets_, chunk.inner.size(), chunk.outer.size(),
                          layout_.channel_floats()};
    const int64_t floats = terms.taps * terms.channels * outs_;
    const float* w = w_;
    for (int64_t o = 0; o < c_.o; o += outs_, w += floats) {
      sums_.sum(terms, g_, pixels_, layout_.vectors(), w, outs_, add, SumsOf(o));
    }
  }

  // Of the taps of a chunk.
  void FindOffsets(const Range& taps) {
    offsets_of_ = taps;
    const int64_t last_taps = c_.axes[kAxes - 1].taps;
    int64_t of_line = 0;
    for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
      int64_t at[kAxes];
      TapOf(tap, at);
      if (tap == taps.begin || tap % last_taps == 0) {
        of_line = OffsetOf(0, at[0]) + OffsetOf(1, at[1]);
      }
      offsets_[tap - taps.begin] = of_line + OffsetOf(2, at[2]);
    }
  }
  // Of tap t along an axis of the contraction.
  int64_t OffsetOf(int of, int64_t t) const {
    const int a = of + (image_axis_ == 0 ? 1 : 0);
    const TapPlace place = PlaceOfTap(axes_[a].axis, t);
    int64_t planes = layout_.plane;
    for (int i = a + 1; i < kFlatAxes; ++i) planes *= layout_.extents[i].residues;
    return place.residue * planes + place.j * layout_.pitch[a];
  }

  // Of the contraction; not of the images.
  int AxisOf(int a) const { return t_.images_last ? a : a - 1; }

  // Pixels of a line, of some channels: of all, or of one phase.
  struct Row {
    int64_t o;      // the first one
    int64_t v, at;  // in the tensor, and in the sums of an o
    int64_t pixels;
  };

  template <class Visit>
  void ForEachRow(const FlatPixels& block, const Visit& visit) const {
    const PhaseColumns& columns = c_.columns;
    const bool phases = columns.channels > 0;
    const int64_t groups = phases ? c_.o / columns.channels : 1;
    for (int64_t i = 0; i < groups; ++i) {
      int64_t phase[kAxes] = {};
      int64_t v = c_.v.first;
      if (phases) PhaseOf(i, phase);
      std::array<int64_t, kFlatAxes> count;
      for (int a = 0; a < kFlatAxes; ++a) {
        v += block[a].begin * axes_[a].v_step;
        count[a] = block[a].size();
        if (!phases || a == image_axis_) continue;
        const int of = AxisOf(a);
        v += phase[of] * columns.v_step[of];
        const bool ends = phase[of] >= columns.last[of] && block[a].end == c_.axes[of].pixels;
        count[a] -= ends ? 1 : 0;
      }
      if (count[3] == 0) continue;
      for (int64_t x = 0; x < count[0]; ++x) {
        for (int64_t y = 0; y < count[1]; ++y) {
          for (int64_t z = 0; z < count[2]; ++z) {
            visit(Row{i * columns.channels,
                      v + x * axes_[0].v_step + y * axes_[1].v_step + z * axes_[2].v_step,
                      PlaceOfRow({x, y, z}), count[3]});
          }
        }
      }
    }
  }

  // Its run, and the pixels of that before it.
  int64_t PlaceOfRow(const std::array<int64_t, kFlatAxes - 1>& at) const {
    int64_t run = 0, before = 0;
    for (int a = 0; a < kFlatAxes - 1; ++a) {
      if (a < kFlatAxes - layout_.run_axes) {
        run = run * axes_[a].axis.pixels + at[a];
      } else {
        before += at[a] * layout_.pitch[a];
      }
    }
    return run * layout_.run_vectors * kLanes + before;
  }

  int64_t ChannelsOfRow() const { return c_.columns.channels > 0 ? c_.columns.channels : c_.o; }

  // A -0 of beta * out becomes +0.
  void LoadScaled(const Row& row) const {
    const T* const from = static_cast<const T*>(work_.out) + row.v;
    const int64_t step = axes_[kFlatAxes - 1].v_step;
    const V beta = hn::Set(D(), work_.beta);
    for (int64_t o = 0; o < ChannelsOfRow(); ++o) {
      float* const to = SumsOf(row.o + o) + row.at;
      for (int64_t i = 0; i < row.pixels; i += kLanes) {
        const int64_t count = std::min<int64_t>(kLanes, row.pixels - i);
        const V out = LoadApart(from + i * step + o * c_.v.o, step, count);
        const V scaled = hn::Add(hn::Mul(beta, out), hn::Zero(D()));
        if (count == kLanes) {
          hn::StoreU(scaled, D(), to + i);
        } else {
          StoreFew(scaled, count, to + i);
        }
      }
    }
  }

  // The bias is never -0, and makes a -0 the +0 that it is where it is added to zero.
  void Store(const Row& row) const {
    const D d;
    T* const out = static_cast<T*>(work_.out) + row.v;
    const int64_t step = axes_[kFlatAxes - 1].v_step, channels = ChannelsOfRow();
    int64_t o = 0;
#if HWY_TARGET != HWY_SCALAR
    for (; c_.v.o == 1 && step != 1 && o + 4 <= channels && row.pixels >= 4; o += 4) {
      StoreFours(row, o, step, out + o);
    }
#endif
    for (; o < channels; ++o) {
      const float* const from = SumsOf(row.o + o) + row.at;
      const V bias = hn::Set(d, bias_[o]);
      T* const to = out + o * c_.v.o;
      for (int64_t i = 0; i < row.pixels; i += kLanes) {
        const V value = hn::Add(hn::LoadU(d, from + i), bias);
        const int64_t left = std::min<int64_t>(kLanes, row.pixels - i);
        if (step == 1) {
          left == kLanes ? StoreBytes(value, d, to + i) : StoreFew(value, left, to + i);
          continue;
        }
        T all[kLanes];
        StoreBytes(value, d, all);
        for (int64_t k = 0; k < left; ++k) StoreAt(to, (i + k) * step, all[k]);
      }
    }
  }

#if HWY_TARGET != HWY_SCALAR
  // Four channels that are next to each other; the last four pixels again.
  HWY_INLINE void StoreFours(const Row& row, int64_t o, int64_t step, T* to) const {
    const D4 d;
    const int64_t each = layout_.vectors() * kLanes;
    const float* const from = SumsOf(row.o + o) + row.at;
    V4 bias[4];
    for (int k = 0; k < 4; ++k) bias[k] = hn::Set(d, bias_[o + k]);
    const auto four = [&](int64_t i) HWY_ATTR {
      const auto load = [&](int k) HWY_ATTR {
        return hn::Add(hn::LoadU(d, from + k * each + i), bias[k]);
      };
      const FourRows turned = Turn(load(0), load(1), load(2), load(3));
      StoreBytes(turned.k0, d, to + i * step);
      StoreBytes(turned.k1, d, to + (i + 1) * step);
      StoreBytes(turned.k2, d, to + (i + 2) * step);
      StoreBytes(turned.k3, d, to + (i + 3) * step);
    };
    for (int64_t i = 0; i + 4 <= row.pixels; i += 4) four(i);
    if (row.pixels % 4 != 0) four(row.pixels - 4);
  }
#endif

  const FlatWork& work_;
  const Contraction& c_;
  const FlatTiling& t_;
  const Chunks chunks_;
  const int64_t outs_;  // at once
  const FlatAxes all_axes_;
  const int image_axis_;
  const FlatSums& sums_;
  float *const g_, *const v_, *const w_;  // planes of a chunk, sums, weights of a chunk
  int64_t* const pixels_;                 // where vectors begin in planes
  FlatAxes axes_;                         // of the block
  FlatLayout layout_;
  bool laid_out_ = false, packed_ = false;
  Range offsets_of_{};                 // taps of a chunk
  int64_t offsets_[Chunks::kLongest];  // of each of them, in planes
  float bias_[FlatTiling::kMostOuts];
};

template <class T>
HWY_NOINLINE void RunFlatOnStack(const FlatWork& work, const FlatPixels& pixels) {
  alignas(64) float memory[FlatTiling::kStackFloats];
  FlatTask<T>(work, memory).Run(pixels);
}

template <class T>
void RunFlatHere(const FlatWork& work, const FlatPixels& pixels, float* memory) {
  memory == nullptr ? RunFlatOnStack<T>(work, pixels) : FlatTask<T>(work, memory).Run(pixels);
}

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
