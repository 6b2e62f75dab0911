// Packing of wgrad where an element of a panel is several pixels: lines of an image begin anywhere
// in an element. The terms of some rows are gathered as runs of pixels first.
#if defined(CONVGRAD_CPU_PACK_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_PACK_SUMS_INL_H_
#undef CONVGRAD_CPU_PACK_SUMS_INL_H_
#else
#define CONVGRAD_CPU_PACK_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "cpu/pack-inl.h"
#include "cpu/rect_elements-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// The terms of a row, in order: runs of pixels, of which [begin, end) are inside their tensor.
template <class T>
struct TermRuns {
  struct Run {      // as small as can be: there are many
    const T* from;  // of pixel `begin`
    int32_t begin, end, count;
  };
  int64_t stride = 1;  // from pixel to pixel of a run that has two inside
  int64_t count = 0;   // of runs
  int64_t terms = 0;
  Run runs[Chunks::kLongestOfElements];

  void Add(const T* from, int64_t begin, int64_t end, int64_t pixels) {
    runs[count++] = {from, static_cast<int32_t>(begin), static_cast<int32_t>(end),
                     static_cast<int32_t>(pixels)};
    terms += pixels;
  }
};

// Rows that are next to each other: an element's terms at a time, all rows of them.
template <class T, class E>
void PackNeighbours(const TermRuns<T>& runs, int64_t rows, const Panels<E>& panels, int64_t r0) {
  constexpr int kEach = static_cast<int>(kTermsOf<E>);
  const T* const zeros = reinterpret_cast<const T*>(kZeros);
  const T* sources[Chunks::kLongestOfElements + kEach - 1];
  int64_t k = 0;
  for (int64_t i = 0; i < runs.count; ++i) {
    const auto& run = runs.runs[i];
    for (int64_t p = 0; p < run.begin; ++p) sources[k++] = zeros;
    const T* from = run.from;
    for (int64_t p = run.begin; p < run.end; ++p, from += runs.stride) sources[k++] = from;
    for (int64_t p = run.end; p < run.count; ++p) sources[k++] = zeros;
  }
  while (k % kEach != 0) sources[k++] = zeros;
  if (panels.width == 1) return TurnNeighbours(sources, k, rows, panels, 0, r0);
  // All rows of an element's pixels at a time: pixel after pixel, memory is read in one go.
  if (r0 % 4 == 0 && panels.width % 4 == 0) {
    return InterleaveNeighbours(sources, k, rows, panels, 0, r0);
  }
  for (int64_t e = 0; e < k; e += kEach) {
    ForEachPiece(panels, e / kEach, r0, rows, [&](int64_t r, int64_t count, E* to) {
      const T* some[kEach];
      for (int i = 0; i < kEach; ++i) some[i] = sources[e + i] + r;
      InterleaveRows<1>(some, count, true, to);
    });
  }
}

// Of one run. It is part of a few cache lines, and the next row is elsewhere: no hardware fetches
// it ahead.
template <class T>
HWY_INLINE void Prefetch(const TermRuns<T>& runs, int64_t offset, int64_t rows,
                         int64_t row_stride) {
  const auto& run = runs.runs[0];
  for (int64_t r = 0; r < rows; ++r, offset += row_stride) {
    for (int64_t at = 0; at < run.end - run.begin; at += 32) {
      hwy::Prefetch(run.from + offset + at);
    }
  }
}

template <class T>
HWY_INLINE void CopyRuns(const TermRuns<T>& runs, int64_t offset, uint16_t* to) {
  for (int64_t i = 0; i < runs.count; to += runs.runs[i++].count) {
    const auto& run = runs.runs[i];
    ZeroTerms(to, run.begin);
    if (run.begin < run.end) {
      CopyTerms(run.from + offset, runs.stride, run.end - run.begin, to + run.begin);
    }
    ZeroTerms(to + run.end, run.count - run.end);
  }
}

// Whether elements never have pixels of two runs, and pixels of a run are next to each other.
template <class E, class T>
bool RunsAreWholeElements(const TermRuns<T>& runs) {
  constexpr int64_t kEach = kTermsOf<E>;
  for (int64_t i = 0; i < runs.count; ++i) {
    const auto& run = runs.runs[i];
    const int64_t inside = run.end - run.begin;
    if (inside > 0 && (runs.stride != 1 || inside < kEach)) return false;
    if (run.count % kEach != 0 && runs.count > 1) return false;
  }
  return true;
}

// The first or last element of what is inside: its pixels, and zeros for those that are not.
template <class E, class T>
HWY_INLINE E ShiftedElement(const T* from, int64_t up, int64_t down) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, sizeof(E));
  bits = bits >> 16 * down << 16 * up;
  E element;
  std::memcpy(&element, &bits, sizeof element);
  return element;
}

// Rows of a run of whole elements.
template <int kRows, class T, class E>
HWY_INLINE void TurnRun(const typename TermRuns<T>::Run& run, int64_t row_stride, E* to,
                        int64_t width) {
  constexpr int64_t kEach = kTermsOf<E>;
  const int64_t begin = run.begin, end = run.end, count = CeilDiv(int64_t{run.count}, kEach);
  const int64_t first = CeilDiv(begin, kEach), last = std::max(first, end / kEach);  // whole ones
  const T* sources[kRows];
  for (int64_t r = 0; r < kRows; ++r) {
    sources[r] = run.from + (r * row_stride + kEach * first - begin);
  }
  if (begin == end) {
    for (int64_t e = 0; e < count; ++e) ZeroRow(to + e * width, kRows);
    return;
  }
  for (int64_t e = 0; e < begin / kEach; ++e) ZeroRow(to + e * width, kRows);
  for (int64_t e = CeilDiv(end, kEach); e < count; ++e) ZeroRow(to + e * width, kRows);
  TurnSomeRows<kRows>(sources, kEach * (last - first), to + first * width, width);
  for (int64_t r = 0; r < kRows; ++r) {
    const T* from = run.from + r * row_stride;
    if (begin % kEach != 0) {
      to[begin / kEach * width + r] = ShiftedElement<E>(from, begin % kEach, 0);
    }
    if (end % kEach != 0) {
      to[end / kEach * width + r] =
          ShiftedElement<E>(from + (end - begin - kEach), 0, kEach - end % kEach);
    }
  }
}

// Rows `row_stride` apart: each is turned where it is, or copied first, if elements have pixels of
// several runs.
template <class T, class E>
void PackApart(const TermRuns<T>& runs, int64_t rows, int64_t row_stride, const Panels<E>& panels,
               int64_t r0) {
  constexpr int64_t kRows = 4;
  if (panels.width == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      uint16_t* const to = panels.At(0, r0 + r)->terms;
      CopyRuns(runs, r * row_stride, to);
      if (runs.terms % kTermsOf<E> != 0) {
        ZeroTerms(to + runs.terms, kTermsOf<E> - runs.terms % kTermsOf<E>);
      }
    }
    return;
  }
  alignas(16) uint16_t terms[kRows][Chunks::kLongestOfElements];
  const bool as_it_is = RunsAreWholeElements<E>(runs);
  for (int64_t r = 0; r < rows;) {
    const int64_t count = std::min({kRows, rows - r, panels.width - (r0 + r) % panels.width});
    E* to = panels.At(0, r0 + r);
    if (runs.count == 1 && runs.stride == 1) {
      const int64_t next = r + count;
      Prefetch(runs, next * row_stride, std::min(kRows, rows - next), row_stride);
    }
    for (int64_t i = 0; i < runs.count && as_it_is; ++i) {
      auto run = runs.runs[i];
      run.from += r * row_stride;
      if (count == kRows) {
        TurnRun<kRows, T>(run, row_stride, to, panels.width);
      } else {
        for (int64_t j = 0; j < count; ++j, run.from += row_stride) {
          TurnRun<1, T>(run, row_stride, to + j, panels.width);
        }
      }
      to += CeilDiv(int64_t{run.count}, kTermsOf<E>) * panels.width;
    }
    if (!as_it_is) {
      const T* sources[kRows];
      for (int64_t j = 0; j < count; ++j) {
        sources[j] = reinterpret_cast<const T*>(terms[j]);
        CopyRuns(runs, (r + j) * row_stride, terms[j]);
      }
      TurnElements(sources, count, runs.terms, to, panels.width);
    }
    r += count;
  }
}

template <class T, class E>
void PackTermRuns(const TermRuns<T>& runs, int64_t rows, int64_t row_stride,
                  const Panels<E>& panels, int64_t r0) {
  row_stride == 1 && rows >= 4 ? PackNeighbours(runs, rows, panels, r0)
                               : PackApart(runs, rows, row_stride, panels, r0);
}

template <class T, class E>
void PackTaps(const Contraction& c, const T* g, Range rows, const Chunk& chunk,
              const Panels<E>& panels) {
  constexpr int64_t kMost = 512;  // rows for which there are zeros
  for (int64_t done = 0; done < rows.size();) {
    const RowPlace place = PlaceOfRow(c, rows.begin + done);
    const Walk3 tap(place.tap, c.axes[1].taps, c.axes[2].taps);
    const int64_t width = std::min({rows.size() - done, place.run, kMost});
    TermRuns<T> runs;
    for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
      const Range pixels{i * c.pixels() + chunk.inner.begin, i * c.pixels() + chunk.inner.end};
      ForEachPixelRun(c, pixels, [&](int64_t image, const Walk3& pixel, int64_t, int64_t count) {
        const TapView view = ViewThroughTap(c, image, pixel, count, tap);
        if (view.end - view.begin > 1) runs.stride = view.stride;
        runs.Add(g + (view.offset + place.channel * c.g.channel), view.begin, view.end, count);
      });
    }
    PackTermRuns(runs, width, c.g.channel, panels, done);
    done += width;
  }
}

template <class T, class E>
void PackValues(const Contraction& c, const T* v, Range o, const Chunk& chunk,
                const Panels<E>& panels) {
  TermRuns<T> runs;
  runs.stride = c.v.at[2];
  for (int64_t i = chunk.outer.begin; i < chunk.outer.end; ++i) {
    const int64_t image_at = c.v.first + i * c.v.image + o.begin * c.v.o;
    if (PixelsAreOneRun(c)) {
      const int64_t count = chunk.inner.size();
      runs.Add(v + (image_at + chunk.inner.begin * c.v.at[2]), 0, count, count);
      continue;
    }
    const Range pixels{i * c.pixels() + chunk.inner.begin, i * c.pixels() + chunk.inner.end};
    ForEachPixelRun(c, pixels, [&](int64_t, const Walk3& pixel, int64_t, int64_t count) {
      const int64_t at =
          pixel.at[0] * c.v.at[0] + pixel.at[1] * c.v.at[1] + pixel.at[2] * c.v.at[2];
      runs.Add(v + (image_at + at), 0, count, count);
    });
  }
  PackTermRuns(runs, o.size(), c.v.o, panels, 0);
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
