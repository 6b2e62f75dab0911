// Loops over chunks and tiles of a block. Step 6 of the story: packs, multiplies, stores. One task
// is one block of the result with its whole sum, or one chunk of it: tasks share nothing, and no
// order but the one of the chunks can show.
#if defined(CONVGRAD_CPU_CONTRACT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVGRAD_CPU_CONTRACT_INL_H_
#undef CONVGRAD_CPU_CONTRACT_INL_H_
#else
#define CONVGRAD_CPU_CONTRACT_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "cpu/bias_sums-inl.h"
#include "cpu/contract.h"
#include "cpu/in_place.h"
#include "cpu/lines.h"
#include "cpu/live.h"
#include "cpu/pack-inl.h"
#include "cpu/pack_boxes-inl.h"
#include "cpu/pack_lines-inl.h"
#include "cpu/pack_positions-inl.h"
#include "cpu/pack_rows-inl.h"
#include "cpu/pack_sums-inl.h"
#include "cpu/store-inl.h"
#include "cpu/tile.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace convgrad {
namespace HWY_NAMESPACE {

// T: of the tensors that are read; U: of the one that is written; E: of the panels.
template <class T, class E, class U>
class Block {
  static constexpr bool kElements = kTermsOf<E> != 1;  // of several terms
  // Tilings may have positions; elsewhere the compiler leaves out what belongs to them.
  static constexpr bool kPointers = !CONVGRAD_MULTIPLIES_BY_LANES && !kElements;
  // Tiles can read rows of tensors.
  static constexpr bool kInPlace =
      CONVGRAD_MULTIPLIES_BY_LANES && std::is_same_v<T, float> && std::is_same_v<E, float>;

 public:
  // twin: the odd phase of an even one, if its columns follow those of this: of blocks that are
  // stored last, with o as columns.
  Block(const Contraction& contraction, const Tiling& tiling, const BlockOperands& operands,
        const Contraction* twin = nullptr)
      : c_(contraction),
        twin_(twin),
        chunks_(MakeChunks(contraction)),
        t_(tiling),
        operands_(operands),
        lines_(LinesOf(contraction, tiling, kLanes)),
        line_pitch_(tiling.a_by_rows ? kLinePitch : 1),
        line_step_(tiling.a_by_rows ? 1 : lines_.width),
        tile_(TileFunctionOf(tiling.mr, tiling.vectors, TileSourceOf(tiling, lines_), kTermsOf<E>)),
        tile_out_(!kElements ? tile_ : Bf16TileOf(tiling.mr, TileSourceOf(tiling, lines_), true)),
        tile_boxes_(kElements ? tile_
                              : TileFunctionOf(tiling.mr, tiling.vectors, TileSource::kBLines, 1)),
        tile_unpacked_(
            kElements
                ? tile_
                : TileFunctionOf(tiling.mr, tiling.vectors,
                                 kInPlace ? TileSource::kAInPlace : TileSource::kAPointers, 1)) {
    for (int64_t t = 0; t < (HasTapRows() ? c_.taps() : 0); ++t) tap_rows_[t] = RowsOfTap(c_, t);
  }

  // a: [kc, mr], a few panels. b: [kc, nb] in panels of nr.
  void Start(Range m, Range n, E* a, E* b) {
    m_ = m;
    n_ = n;
    a_ = a;
    b_ = b;
    FillEdge(n, t_.o_is_n, n_edge_);
    own_panels_ = CeilDiv(n.size(), t_.nr);
    panels_ = (twin_ == nullptr ? 1 : 2) * own_panels_;
    for (int64_t p = 0, j = 0; p < own_panels_; ++p, j += t_.nr) {
      const int64_t columns = std::min<int64_t>(t_.nr, n.size() - j);
      column_steps_[p] = StepOf(n_edge_.offsets + j, columns);
      straight_[p] = columns == t_.nr && column_steps_[p] == 1 &&
                     !(HasPixelsBeyond(!t_.o_is_n) && AnyBeyond(n_edge_.ends + j, columns));
      if (lines_.shared && !t_.o_is_n) {
        turns_[p] = lines_.RestOfLine(n.begin + j);
        gaps_[p] = lines_.GapAfter(n.begin + j, n.end);
      }
    }
    for (int r = 0; r < t_.mr; ++r) c_rows_[r] = int64_t{r} * t_.nr;
    in_place_ = kInPlace && ReadsInPlace(c_, chunks_, t_, panels_) && (t_.o_is_n || !SumsBias());
  }

  // c: [mb, nb] in tiles, where it is kept between chunks.
  void RunWhole(float* c) {
    const int64_t chunks = chunks_.count();
    if (!t_.keeps_c) c = tile_c_;
    if (SumsBias()) LoadBias();
    if (chunks == 0) RunChunk(0, true, Chunk{}, c);  // an empty sum
    for (int64_t i = 0; i < chunks; ++i) RunChunk(i, i + 1 == chunks, ChunkAt(chunks_, i), c);
    if (SumsBias()) StoreBias();
  }

  void StoreLast(const float* c) {
    if (t_.stores_last) StoreBlock(c, panels_);
  }

  // This one is odd.
  void StoreWithEven(const float* even, const float* odd) {
    FillEdge(m_, !t_.o_is_n, m_edge_);
    for (int64_t i = 0; i < m_.size(); ++i) --m_edge_.offsets[i];  // of the even ones
    StorePairs(even, odd);
  }

  // This one is even.
  void StoreTwins(const float* c) {
    FillEdge(m_, !t_.o_is_n, m_edge_);
    StorePairs(c, c + own_panels_ * t_.mr * t_.nr);
  }

  // One step where chunks are summed side by side.
  void RunStep(const BlockStep& step) {
    if (step.kind == BlockStep::kStore) return StoreBlock(step.c, t_.nb / t_.nr);
    if (step.kind == BlockStep::kChunk) return SumChunk(ChunkAt(chunks_, step.chunk), step.c);
    LoadBlock(step.c);
  }

 private:
  // Four channels at a time, along the pixels: lines of the result.
  void StorePairs(const float* even, const float* odd) {
    const int64_t tile_floats = int64_t{t_.mr} * t_.nr;
    const ZippedRows rows(m_.size(), t_.mr, t_.nr, panels_ * tile_floats, m_edge_.offsets);
    // So few rows that what four columns of them have read of c is in L1 for the next four.
    constexpr int64_t kSome = 128;
    for (int64_t r = 0; r < m_.size(); r += kSome) {
      const Range some{r, std::min(r + kSome, m_.size())};
      for (int64_t j = 0, columns = 0; j < n_.size(); j += columns) {
        const int64_t at = j / t_.nr * tile_floats + j % t_.nr;
        columns = std::min<int64_t>({4, t_.nr - j % t_.nr, n_.size() - j});
        StoreZipped(rows, some, even + at, odd + at, columns, n_edge_.offsets + j,
                    operands_.bias == nullptr ? nullptr : n_edge_.bias + j,
                    static_cast<U*>(operands_.out));
      }
    }
  }

  template <class Edge>
  void FillEdge(Range range, bool o_side, Edge& edge) const {
    if (!o_side) return FillRowEdge(c_, range, edge);
    FillOEdge<T>(c_, range, static_cast<const T*>(operands_.bias), operands_.bias_stride, edge);
  }

  int64_t Depth(const Chunk& chunk) const {
    return CeilDiv(ElementsOf(c_, chunk, kTermsOf<E>), t_.k_unit) * t_.k_unit;
  }

  void Pack(bool o_side, Range side, const Chunk& chunk, E* to, int64_t width) const {
    if (lines_.shared && !o_side) {
      return PackLines(c_, lines_, static_cast<const T*>(operands_.g), side, chunk, to);
    }
    PackSide(c_, o_side, static_cast<const T*>(operands_.g), static_cast<const T*>(operands_.other),
             side, chunk, Panels<E>{to, width, Depth(chunk)});
  }

  void PackA(Range rows, const Chunk& chunk) const {
    if (!t_.a_by_rows) return Pack(!t_.o_is_n, rows, chunk, a_, t_.mr);
    const T* const g = static_cast<const T*>(operands_.g);
    if constexpr (kElements) {
      if (t_.k_unit > 1) return PackRowsOfUnits(rows, chunk);
    }
    lines_.shared ? PackLinesByRows(c_, lines_, g, rows, chunk, a_)
                  : PackByRows(c_, g, rows, chunk, t_.mr, a_);
  }

  // By rows, whichever side it is: where k is not contiguous, as panels that are one row wide.
  void PackRowsOfUnits(Range rows, const Chunk& chunk) const {
    const T* const g = static_cast<const T*>(operands_.g);
    const int64_t depth = ElementsOf(c_, chunk, kTermsOf<E>), padded = Depth(chunk);
    for (int64_t r = 0; r < t_.mr; ++r) {
      const int64_t kept = r < rows.size() ? depth : 0;
      ZeroRow(a_ + r * kRowPitch + kept, padded - kept);
    }
    const bool k_is_contiguous =
        c_.sum_pixels ? c_.g.channel != 1 && c_.g.at[kAxes - 1] == 1 : c_.g.channel == 1;
    if (t_.o_is_n && k_is_contiguous) return PackByRows(c_, g, rows, chunk, rows.size(), a_);
    PackSide(c_, !t_.o_is_n, g, static_cast<const T*>(operands_.other), rows, chunk,
             Panels<E>{a_, 1, kRowPitch});
  }

  // What a panel says about the elements that a tile needs: which ones, on the side of g; on the
  // other, whether zeros may be left out. There are many: no initialisers.
  struct Live {
    int64_t begin, end;
    bool finite;
  };

  bool Skips(const Chunk& chunk) const {
    return (c_.skipped_axis >= 0 || t_.boxes) && !chunks_.chained && chunk.terms() > 0;
  }

  // Of the side of o; as a it may be by rows.
  bool IsFinite(const E* panel, int width, int64_t depth) const {
    if (!t_.a_by_rows || t_.o_is_n) return AllFinite(panel, width * depth);
    bool finite = true;
    for (int r = 0; r < width; ++r) finite = finite && AllFinite(panel + r * kRowPitch, depth);
    return finite;
  }

  // A panel of rows [first, end) of one side, packed at `panel`.
  Live LiveOf(bool o_side, int64_t first, int64_t end, const Chunk& chunk, const E* panel,
              int width) const {
    const int64_t depth = Depth(chunk);
    if (!Skips(chunk)) return {0, depth, true};
    if (o_side) return {0, depth, IsFinite(panel, width, depth)};
    const Range live = LiveTerms(c_, chunk, {first, end});
    constexpr int64_t kEach = kTermsOf<E>;
    if (c_.sum_pixels || kEach == 1) return {live.begin / kEach, CeilDiv(live.end, kEach), true};
    const int64_t channels = chunk.outer.size(), tap = CeilDiv(channels, kEach);  // whole taps
    return {live.begin / channels * tap, live.end / channels * tap, true};
  }

  Range OfO() const { return t_.o_is_n ? n_ : m_; }
  Range OfRows() const { return t_.o_is_n ? m_ : n_; }

  // Whether this block adds up v, which it packs, for the bias gradient.
  bool SumsBias() const {
    return !kElements && operands_.bias_out != nullptr && OfRows().begin == 0;
  }
  // The sums of channel i of this block, and where they go.
  U* BiasAt(int64_t i) const {
    return static_cast<U*>(operands_.bias_out) + (OfO().begin + i) * operands_.bias_stride;
  }

  void LoadBias() {
    const float zero = chunks_.chained ? -0.0f : 0.0f, beta = operands_.beta;
    for (int64_t i = 0; i < OfO().size(); ++i) {
      bias_[i] = beta == 0 ? 0.0f : beta * Widen(LoadAt<U>(BiasAt(i), 0)) + zero;
    }
  }

  void StoreBias() const {
    for (int64_t i = 0; i < OfO().size(); ++i) StoreAt(BiasAt(i), 0, NarrowSum(bias_[i], U()));
  }

  // A packed panel of v, of channels from i on.
  void AddBias(const E* panel, const Chunk& chunk, int width, ChunkJoin join, int64_t i) {
    if constexpr (!kElements) SumPanel(panel, Depth(chunk), width, join, bias_ + i);
  }

  // The bias gradient alone, of channels that are next to each other.
  bool SumsChannels() const { return SumsBias() && c_.v.o == 1 && OfRows().size() == 0; }

  void AddChannels(const Chunk& chunk, ChunkJoin join) {
    if constexpr (!kElements) {
      const Range o = OfO();
      float sums[Tiling::kMostColumns + Tiling::kMostRows] = {};
      if (join == ChunkJoin::kChain) std::copy(bias_, bias_ + o.size(), sums);
      SumValues(c_, static_cast<const T*>(operands_.other), o, chunk, sums);
      // As SumVectors joins them.
      for (int64_t i = 0; i < o.size(); ++i) {
        bias_[i] = join == ChunkJoin::kAdd ? bias_[i] + sums[i] : 0.0f + sums[i];
      }
    }
  }

  // Packs b for a chunk.
  void StartChunk(const Chunk& chunk) {
    const int64_t depth = depth_ = Depth(chunk);
    if (lines_.shared) StartLines(chunk);
    positions_.Forget();
    has_boxes_ = t_.boxes && depth > 0;
    if (depth > 0) Pack(t_.o_is_n, n_, chunk, b_, t_.nr);
    if (depth > 0 && twin_ != nullptr) {
      PackSide(*twin_, true, static_cast<const T*>(operands_.g),
               static_cast<const T*>(operands_.other), n_, chunk,
               Panels<E>{b_ + own_panels_ * t_.nr * depth, t_.nr, depth});
    }
    for (int64_t p = 0, j = n_.begin; p < panels_; ++p, j += t_.nr) {
      b_panels_[p] = b_ + p * t_.nr * depth;
      if (lines_.shared && !t_.o_is_n) b_panels_[p] = LinesOfPanel(b_, n_.begin, j);
      live_[p] = LiveOf(t_.o_is_n, j, std::min(j + t_.nr, n_.end), chunk, b_panels_[p], t_.nr);
      has_boxes_ = has_boxes_ && live_[p].finite;
    }
  }

  // Where the lines of a panel are whose first pixel is `pixel`; groups begin at `first`.
  const E* LinesOfPanel(const E* lines, int64_t first, int64_t pixel) const {
    const int64_t group = (pixel - first) / lines_.group;
    return lines + group * line_elements_ + lines_.PlaceOf(first + group * lines_.group, pixel);
  }

  // Where the terms of each tap begin in a group of lines.
  void StartLines(const Chunk& chunk) {
    const int64_t depth = CeilDiv(chunk.outer.size(), kTermsOf<E>);
    line_elements_ = DepthOfLines(c_, lines_, depth) * lines_.width;
    FillSegments(c_, lines_, depth, line_step_, line_pitch_, segments_);
  }

  // Phases are the rows of one tile: some taps, which share lines, meet a part of them.
  bool HasTapRows() const {
    return CONVGRAD_LEAVES_OUT_ROWS && !kElements && lines_.shared && !t_.o_is_n &&
           c_.columns.channels > 0 && c_.o == t_.mr;
  }

  struct RowPanel {
    const void* a;
    Live live;
    int64_t turn;
    bool packed;  // or a is pointers, or in place
  };

  // Whether tiles can read the rows m_.begin + i and on by addresses: rows of one tap.
  HWY_INLINE bool StartPointers(int64_t i, const Chunk& chunk, RowPanel& panel) {
    const RowPlace place = PlaceOfRow(c_, m_.begin + i);
    if (place.run < t_.mr) return false;
    float* const to = reinterpret_cast<float*>(a_) + t_.positions_at();
    panel.a =
        positions_.AddressesOf(c_, static_cast<const T*>(operands_.g), place, t_.mr, chunk, to);
    return true;
  }

  // Packs a, a few panels at a time; the one of rows m_.begin + i and on.
  HWY_INLINE const E* StartPacked(int64_t i, const Chunk& chunk, RowPanel& panel) {
    const bool lines = lines_.shared && t_.o_is_n;
    const int64_t depth = depth_, first = m_.begin + i;
    const int64_t at_once = lines ? lines_.group : in_place_ ? t_.mr : int64_t{t_.a_panels} * t_.mr;
    if (depth > 0 && i % at_once == 0) PackA({first, std::min(first + at_once, m_.end)}, chunk);
    if (!lines) return a_ + i % at_once * (t_.a_by_rows ? kRowPitch : depth);
    panel.turn = lines_.RestOfLine(first);
    return a_ + lines_.PlaceOf(first - i % at_once, first) * line_pitch_;
  }

  // A panel of the box of its pixels. Each line of taps is a segment of b.
  RowPanel StartBox(Range pixels, const Chunk& chunk) {
    if constexpr (!kElements) {
      const PixelBox box(c_, pixels);
      box_ = TermsOfBox(c_, box, chunk.outer.size(), t_.nr, segments_);
      PackBox(c_, static_cast<const T*>(operands_.g), box, pixels.size(), chunk.outer, t_.mr, a_);
    }
    return {a_, {0, 0, true}, 0, true};
  }

  HWY_INLINE RowPanel StartRows(int64_t i, const Chunk& chunk) {
    const int64_t first = m_.begin + i;
    if (has_boxes_) return StartBox({first, std::min(first + t_.mr, m_.end)}, chunk);
    RowPanel panel{nullptr, {}, t_.mr, true};
    if constexpr (kPointers) panel.packed = t_.positions == 0 || !StartPointers(i, chunk, panel);
    if constexpr (kInPlace) {
      panel.packed = !in_place_ || depth_ == 0 || i + t_.mr > m_.size();
      if (!panel.packed) {
        panel.a = static_cast<const T*>(t_.o_is_n ? operands_.g : operands_.other) +
                  OffsetInPlace(c_, t_.o_is_n, first, chunk);
      }
    }
    const E* const packed = panel.packed ? StartPacked(i, chunk, panel) : nullptr;
    if (panel.packed) panel.a = packed;
    if (t_.boxes) return panel;  // of weights that are not finite: all terms
    if (i == 0 || first + t_.mr > live_line_end_) {
      const int64_t end = std::min(first + t_.mr, m_.end);
      row_live_ = LiveOf(!t_.o_is_n, first, end, chunk, packed, t_.mr);
      live_line_end_ = t_.o_is_n ? EndOfLine(first, end) : 0;
    }
    panel.live = row_live_;
    return panel;
  }

  // Pixels of one line have the same terms, if it is not along the line that they are skipped. 0: a
  // range is not part of one line.
  int64_t EndOfLine(int64_t first, int64_t end) const {
    if (c_.sum_pixels || c_.skipped_axis + 1 == kAxes) return 0;
    const int64_t pixels = c_.axes[kAxes - 1].pixels, line_end = (first / pixels + 1) * pixels;
    return end <= line_end ? line_end : 0;
  }

  // One tile. What its operands' addresses wait for, the tile waits for: no division here (3 %).
  template <class To>
  HWY_INLINE void Multiply(const RowPanel& rows, int64_t p, const Chunk& chunk, const float* c,
                           ChunkJoin join, To* to, const int64_t* to_rows) const {
    if (has_boxes_) return tile_boxes_(rows.a, b_panels_[p], box_, c, join, to, to_rows);
    const Live &x = rows.live, &y = live_[p];
    const E* b = b_panels_[p];
    const int64_t depth = depth_;
    TileTerms terms{.length = depth,
                    .segments = 1,
                    .begins = segments_,
                    .step = line_step_,
                    .turn = rows.turn,
                    .gap = lines_.gap,
                    .row_step = RowStepInPlace(c_, t_.o_is_n)};
    if (lines_.shared) {
      terms.length = CeilDiv(chunk.outer.size(), kTermsOf<E>);
      terms.segments = chunk.inner.size();
      if (!t_.o_is_n) {
        terms.turn = turns_[p];
        terms.gap = gaps_[p];
        if (HasTapRows()) terms.rows = tap_rows_;
      }
    }
    const void* a = rows.a;
    if (c_.skipped_axis >= 0 && x.finite && y.finite) {
      int64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
      if (kElements && t_.k_unit > 1) {
        begin = begin / t_.k_unit * t_.k_unit;
        end = CeilDiv(end, t_.k_unit) * t_.k_unit;
      }
      if (begin > 0 || end < depth) {  // a branch: other tiles do not wait for these
        if (lines_.shared) {
          terms.begins += begin / terms.length;
          if (terms.rows != nullptr) terms.rows += begin / terms.length;
          terms.segments = (end - begin) / terms.length;
        } else {
          terms.length = end - begin;
        }
        if (kPointers && !rows.packed) {
          a = static_cast<const uint64_t*>(a) + begin;
        } else if (!lines_.shared || !t_.o_is_n) {
          a = static_cast<const E*>(a) + begin * (t_.a_by_rows ? 1 : t_.mr);
        }
        if (!lines_.shared || t_.o_is_n) b += begin * t_.nr;
      }
    }
    const TileFunction tile = sizeof(To) == sizeof(float) ? tile_ : tile_out_;
    ((kPointers || kInPlace) && !rows.packed ? tile_unpacked_ : tile)(a, b, terms, c, join, to,
                                                                      to_rows);
  }

  void RunChunk(int64_t index, bool last, const Chunk& chunk, float* c) {
    const int64_t tile_floats = int64_t{t_.mr} * t_.nr;
    const int64_t c_step = t_.keeps_c ? tile_floats : 0;
    const bool scales = index == 0 && operands_.beta != 0, stores = last && !t_.stores_last;
    const ChunkJoin join = index == 0 && !scales ? ChunkJoin::kFirst
                           : chunks_.chained     ? ChunkJoin::kChain
                                                 : ChunkJoin::kAdd;
    const bool sums_bias = SumsBias();
    if (SumsChannels()) return AddChannels(chunk, join);
    StartChunk(chunk);
    for (int64_t p = 0; p < (sums_bias && t_.o_is_n ? panels_ : 0); ++p) {
      AddBias(b_panels_[p], chunk, t_.nr, join, p * t_.nr);
    }
    for (int64_t i = 0; i < m_.size(); i += t_.mr) {
      const Range rows{m_.begin + i, std::min(m_.begin + i + t_.mr, m_.end)};
      const RowPanel panel = StartRows(i, chunk);
      if (sums_bias && !t_.o_is_n) AddBias(static_cast<const E*>(panel.a), chunk, t_.mr, join, i);
      if (!stores && !scales) {
        for (int64_t p = 0; p < panels_; ++p, c += c_step) {
          Multiply(panel, p, chunk, c, join, c, c_rows_);
        }
        continue;
      }
      FillEdge(rows, !t_.o_is_n, m_edge_);
      const bool straight_rows = stores && StraightRows(rows.size());
      U* const out = static_cast<U*>(operands_.out);
      if (CONVGRAD_MULTIPLIES_BY_LANES && straight_rows && depth_ < kFewTerms) {
        AskForRowsAfter(m_edge_.offsets, rows.size(), n_.size(), out + n_edge_.offsets[0]);
      }
      for (int64_t p = 0; p < panels_; ++p, c += c_step) {
        const bool straight = straight_rows && straight_[p];
        if (scales) LoadTile(rows.size(), p, c);
        if (straight) {
          Multiply(panel, p, chunk, c, join, out + n_edge_.offsets[p * t_.nr], m_edge_.offsets);
          continue;
        }
        if (!stores) {
          Multiply(panel, p, chunk, c, join, c, c_rows_);
          continue;
        }
        const TileEdges at = EdgesAt(rows.size(), p);
        if (CONVGRAD_HAS_AVX512 && GoesByColumns(at) && at.all_exist()) FetchColumns(at, out);
        Multiply(panel, p, chunk, c, join, c, c_rows_);
        StoreTile(at, c, t_.nr, out);
      }
    }
  }

  void SumChunk(const Chunk& chunk, float* c) {
    StartChunk(chunk);
    for (int64_t i = 0; i < m_.size(); i += t_.mr) {
      const RowPanel panel = StartRows(i, chunk);
      for (int64_t p = 0; p < panels_; ++p, c += int64_t{t_.mr} * t_.nr) {
        Multiply(panel, p, chunk, c, ChunkJoin::kAlone, c, c_rows_);
      }
    }
  }

  // c = beta * out, of panel p of the columns. A chain goes on from the very bits of the
  // micro-batch before. What a twin begins with is between what this does.
  void LoadTile(int64_t rows, int64_t p, float* c) const {
    const bool of_twin = p >= own_panels_;
    std::fill(c, c + t_.mr * t_.nr, 0.0f);
    LoadScaled(EdgesAt(rows, of_twin ? p - own_panels_ : p),
               static_cast<const U*>(operands_.out) + of_twin, operands_.beta,
               chunks_.chained ? -0.0f : 0.0f, c, t_.nr);
  }

  // c = beta * out
  void LoadBlock(float* c) {
    std::fill(c, c + CeilDiv(m_.size(), t_.mr) * t_.mr * t_.nb, 0.0f);
    if (operands_.beta == 0) return;
    for (int64_t i = 0; i < m_.size(); i += t_.mr) {
      const Range rows{m_.begin + i, std::min(m_.begin + i + t_.mr, m_.end)};
      FillEdge(rows, !t_.o_is_n, m_edge_);
      for (int64_t p = 0; p < panels_; ++p, c += int64_t{t_.mr} * t_.nr) {
        LoadTile(rows.size(), p, c);
      }
    }
  }

  // Columns outside rows. c has `c_panels` tiles in a row, of which these may be some.
  void StoreBlock(const float* c, int64_t c_panels) {
    const int64_t tile_floats = int64_t{t_.mr} * t_.nr;
    FillEdge(m_, !t_.o_is_n, m_edge_);
    if (c_.sum_pixels && t_.o_is_n && c_.w.at[kAxes - 1] == 1 && c_.taps() >= 4) {
      KernelRows rows;
      FillKernelRows(c_, m_, m_edge_.offsets, t_.mr, t_.nr, c_panels * tile_floats, rows);
      for (int64_t p = 0, j = 0; p < panels_; ++p, j += t_.nr) {
        StoreKernels(rows, m_edge_.offsets, c + p * tile_floats, n_edge_.offsets + j,
                     std::min<int64_t>(t_.nr, n_.size() - j), static_cast<U*>(operands_.out));
      }
      return;
    }
    for (int64_t p = 0; p < panels_; ++p) {
      const float* tile = c + p * tile_floats;
      for (int64_t i = 0; i < m_.size(); i += t_.mr, tile += c_panels * tile_floats) {
        TileEdges at = EdgesAt(std::min<int64_t>(t_.mr, m_.size() - i), p);
        at.row_offsets += i;
        at.row_ends += i;
        if (at.row_bias != nullptr) at.row_bias += i;
        StoreTile(at, tile, t_.nr, static_cast<U*>(operands_.out));
      }
    }
  }

  // Whole tiles, of a type that the tile writes, whose rows are contiguous in the result.
  bool StraightRows(int64_t rows) const {
    return (sizeof(U) == sizeof(float) || kElements) && rows == t_.mr &&
           operands_.bias == nullptr && c_.columns.channels == 0 &&
           !(HasPixelsBeyond(t_.o_is_n) && AnyBeyond(m_edge_.ends, rows));
  }

  bool HasPixelsBeyond(bool side_of_pixels) const { return c_.beyond > 0 && side_of_pixels; }

  // Of panel p of the columns.
  TileEdges EdgesAt(int64_t rows, int64_t p) const {
    const bool bias = operands_.bias != nullptr;
    const int64_t j = p * t_.nr;
    const int64_t columns = std::min<int64_t>(t_.nr, n_.size() - j);
    return {.rows = rows,
            .row_offsets = m_edge_.offsets,
            .row_bias = bias && !t_.o_is_n ? m_edge_.bias : nullptr,
            .columns = columns,
            .column_offsets = n_edge_.offsets + j,
            .column_bias = bias && t_.o_is_n ? n_edge_.bias + j : nullptr,
            .column_step = column_steps_[p],
            .row_ends = m_edge_.ends,
            .column_ends = c_.columns.channels > 0 || c_.beyond > 0 ? n_edge_.ends + j : nullptr};
  }

  const Contraction& c_;
  const Contraction* const twin_;
  const Chunks chunks_;
  const Tiling& t_;
  const BlockOperands& operands_;
  const Lines lines_;
  const int64_t line_pitch_, line_step_;  // elements from position to position, from k to k
  const TileFunction tile_;
  const TileFunction tile_out_;       // the same, rounded to U
  const TileFunction tile_boxes_;     // the same, of boxes of taps
  const TileFunction tile_unpacked_;  // the same where a is not packed
  bool in_place_ = false;             // no a is, but of rows that are no whole tile
  Range m_, n_;
  int64_t panels_ = 0;      // of n, and of its twin's
  int64_t own_panels_ = 0;  // of n alone
  E* a_ = nullptr;
  E* b_ = nullptr;
  const E* b_panels_[Tiling::kMostColumns / 2];
  int64_t depth_ = 0;          // of the panels of a chunk
  int64_t line_elements_ = 0;  // of a group
  PackedPositions<kPointers> positions_;
  Live row_live_;              // of rows of a,
  int64_t live_line_end_ = 0;  // and of those up to here
  int64_t segments_[Chunks::kLongest];
  bool has_boxes_ = false;                   // this chunk
  TileTerms box_;                            // of rows of a, then
  int64_t turns_[Tiling::kMostColumns / 2];  // of panels of n: pixels up to the end of a line,
  int64_t gaps_[Tiling::kMostColumns / 2];   // and positions from there to the next
  Edge<Tiling::kMostColumns> m_edge_;        // of a panel; of the block, where it is stored last
  Edge<Tiling::kMostColumns> n_edge_;
  int64_t column_steps_[Tiling::kMostColumns / 2];  // of panels of n
  bool straight_[Tiling::kMostColumns / 2];         // and whether they are whole runs of the result
  int64_t c_rows_[Tiling::kMostRows];
  Live live_[Tiling::kMostColumns / 2];                                   // of panels of n
  float bias_[kElements ? 1 : Tiling::kMostColumns + Tiling::kMostRows];  // sums of v, so far
  alignas(64) float tile_c_[kTermsOf<E> == 2 ? 1024 : 24 * kLanes];       // [mr, nr]
  TileRows tap_rows_[Chunks::kLongest];  // of taps, where HasTapRows(): lines have no more
};

}  // namespace HWY_NAMESPACE
}  // namespace convgrad
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
