// im2col and a matrix product, what one writes by hand with a BLAS: for each image and group a
// matrix col [pixels, k] of y's pixels and k = the taps of all input channels, and
//
//   fprop   y   = col * w^T
//   dgrad   col = y * w, added back into x
//   wgrad   w  += y^T * col
//
// Images run on threads of their own where there are enough of them, with a product on one thread
// each; else the products have all threads.
#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "bench/peer.h"

// In OpenBLAS since 0.2, in no header of it: ends its threads, the next product starts them again.
extern "C" void blas_thread_shutdown_(void) __attribute__((weak));

namespace convgrad::bench {

std::unique_ptr<Peer> MakeBlasPeer(const PeerRequest& request, std::string* why);

namespace {

// Element (r, c) is data[r * row + c * column]; one of the two strides is 1.
struct Matrix {
  float* data = nullptr;
  int64_t row = 0;
  int64_t column = 1;

  Matrix Transposed() const { return {data, column, row}; }
};

int Int(int64_t value) { return static_cast<int>(value); }

// c [m, n] = a [m, k] * b [k, n] + beta * c
void Multiply(Matrix a, Matrix b, Matrix c, int64_t m, int64_t n, int64_t k, float beta) {
  if (c.column != 1) {
    Multiply(b.Transposed(), a.Transposed(), c.Transposed(), n, m, k, beta);
    return;
  }
  const bool at = a.column != 1, bt = b.column != 1;
  // The stride of a single row may be anything, and BLAS insists that it holds the row.
  const int64_t lda = at ? std::max(a.column, m) : std::max(a.row, k);
  const int64_t ldb = bt ? std::max(b.column, k) : std::max(b.row, n);
  cblas_sgemm(CblasRowMajor, at ? CblasTrans : CblasNoTrans, bt ? CblasTrans : CblasNoTrans, Int(m),
              Int(n), Int(k), 1.0f, a.data, Int(lda), b.data, Int(ldb), beta, c.data,
              Int(std::max(c.row, n)));
}

// Between neighbouring pixels, counted through all axes; nothing where that is no one number.
std::optional<int64_t> PixelStep(const Problem& p, bool x) {
  const PixelStrides& strides = x ? p.x : p.y;
  std::optional<int64_t> step;
  int64_t pixels = 1;
  for (size_t a = kAxes; a-- > 0;) {
    const int64_t extent = x ? p.axes[a].in : p.axes[a].out;
    if (extent == 1) continue;
    if (!step) step = strides.s[a];
    if (strides.s[a] != *step * pixels) return std::nullopt;
    pixels *= extent;
  }
  return step.value_or(1);
}

// How the k of the weights is made of channels and taps.
struct DepthOrder {
  bool taps_outside = false;  // k = tap * ci + channel, else channel * taps + tap
  int64_t stride = 1;         // of k in the weights
};

class BlasPeer : public Peer {
 public:
  BlasPeer(const PeerRequest& request, DepthOrder order)
      : p_(request.problem), operands_(request.operands), order_(order), threads_(request.threads) {
    for (const Axis& axis : p_.axes) {
      pixels_ *= axis.out;
      taps_ *= axis.taps;
      plain_ = plain_ && axis.taps == 1 && axis.stride == 1 && axis.pad == 0 && axis.in == axis.out;
    }
    depth_ = taps_ * p_.ci;
    y_step_ = *PixelStep(p_, false);
    const std::optional<int64_t> x_step = PixelStep(p_, true);
    plain_ = plain_ && x_step && (p_.x.c == 1 || *x_step == 1);
    x_step_ = x_step.value_or(0);
    teams_ = p_.batch >= threads_ ? threads_ : 1;
    cols_.resize(plain_ ? 0 : static_cast<size_t>(teams_ * pixels_ * depth_));
    if (p_.pass == Pass::kWgrad) {
      weights_.resize(static_cast<size_t>(teams_ * p_.groups * p_.co * depth_));
      started_.resize(static_cast<size_t>(teams_));
    }
  }

  void Run() override {
    openblas_set_num_threads(teams_ > 1 ? 1 : threads_);
    std::fill(started_.begin(), started_.end(), 0.0f);
#pragma omp parallel for num_threads(teams_) schedule(static)
    for (int64_t n = 0; n < p_.batch; ++n) RunImage(n, omp_get_thread_num());
    if (p_.pass == Pass::kWgrad) {
      StoreWeights();
      if (p_.bias.present) SumBias();
    }
  }

  void Rest() override {
    if (teams_ == 1 && threads_ > 1 && blas_thread_shutdown_ != nullptr) blas_thread_shutdown_();
  }

 private:
  float* Out() const { return static_cast<float*>(operands_.out); }
  float* X() const {
    return p_.pass == Pass::kDgrad ? Out()
                                   : const_cast<float*>(static_cast<const float*>(operands_.x));
  }
  float* Y() const {
    return p_.pass == Pass::kFprop ? Out()
                                   : const_cast<float*>(static_cast<const float*>(operands_.y));
  }

  void RunImage(int64_t n, int team) {
    for (int64_t g = 0; g < p_.groups; ++g) {
      float* x = X() + n * p_.x.n + g * p_.ci * p_.x.c;
      float* y = Y() + n * p_.y.n + g * p_.co * p_.y.c;
      const Matrix pixels{y, y_step_, p_.y.c};  // [pixels, co]
      Matrix col = ColOf(team, x);              // [pixels, k]
      if (p_.pass == Pass::kWgrad) {
        if (!plain_)
          VisitCol(
              x, col, [](float& in, float& out) { out = in; }, true);
        const Matrix sums{weights_.data() + (team * p_.groups + g) * p_.co * depth_, depth_, 1};
        Multiply(pixels.Transposed(), col, sums, p_.co, depth_, pixels_,
                 started_[static_cast<size_t>(team)]);
        continue;
      }
      const float* bias = static_cast<const float*>(operands_.bias);
      const Matrix w{const_cast<float*>(static_cast<const float*>(operands_.w)) + g * p_.w.g,
                     p_.w.co, order_.stride};  // [co, k]
      if (p_.pass == Pass::kFprop) {
        if (!plain_)
          VisitCol(
              x, col, [](float& in, float& out) { out = in; }, true);
        if (p_.bias.present) FillWithBias(y, p_.y, bias, g, p_.co, false);
        Multiply(col, w.Transposed(), pixels, pixels_, p_.co, depth_, p_.bias.present ? 1 : 0);
      } else {
        if (!plain_ || p_.bias.present) FillWithBias(x, p_.x, bias, g, p_.ci, true);
        Multiply(pixels, w, col, pixels_, depth_, p_.co, plain_ && p_.bias.present ? 1 : 0);
        if (!plain_)
          VisitCol(
              x, col, [](float& in, float& out) { in += out; }, false);
      }
    }
    if (p_.pass == Pass::kWgrad) started_[static_cast<size_t>(team)] = 1;
  }

  // A 1x1 window at every pixel needs no col: x is it.
  Matrix ColOf(int team, float* x) {
    if (plain_) return {x, x_step_, p_.x.c};
    float* data = cols_.data() + team * pixels_ * depth_;
    return p_.x.c == 1 ? Matrix{data, depth_, 1} : Matrix{data, 1, pixels_};
  }

  // act(element of x, element of col) where the tap reads inside x; with `clear` col is 0
  // elsewhere.
  template <class Act>
  void VisitCol(float* x, Matrix col, const Act& act, bool clear) {
    const auto& [d, h, w] = p_.axes;
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const int64_t kw = tap % w.taps, kh = tap / w.taps % h.taps, kd = tap / w.taps / h.taps;
      const Range inside = OutsInside(w, kw);
      for (int64_t line = 0; line < d.out * h.out; ++line) {
        const int64_t in_d = InIndex(d, line / h.out, kd), in_h = InIndex(h, line % h.out, kh);
        const bool outside = in_d < 0 || in_d >= d.in || in_h < 0 || in_h >= h.in;
        const Range range = outside ? Range{} : inside;
        float* from = outside ? x : x + in_d * p_.x.s[0] + in_h * p_.x.s[1];
        VisitLine(from, col, tap, line * w.out, range, InIndex(w, range.begin, kw), act, clear);
      }
    }
  }

  // One line of y's pixels, from pixel `first`, and one tap, for all channels.
  template <class Act>
  void VisitLine(float* x, Matrix col, int64_t tap, int64_t first, Range range, int64_t in,
                 const Act& act, bool clear) {
    const int64_t channel = order_.taps_outside ? 1 : taps_;  // steps of k
    const int64_t k = order_.taps_outside ? tap * p_.ci : tap;
    const Axis& w = p_.axes[2];
    const int64_t step = w.stride * p_.x.s[2];
    if (p_.x.c == 1) {  // all channels of a pixel are together
      for (int64_t o = 0; o < w.out; ++o) {
        float* to = col.data + (first + o) * col.row + k;
        if (o >= range.begin && o < range.end) {
          float* from = x + in * p_.x.s[2] + (o - range.begin) * step;
          Along(from, 1, to, channel, p_.ci, act);
        } else if (clear) {
          for (int64_t c = 0; c < p_.ci; ++c) to[c * channel] = 0;
        }
      }
      return;
    }
    for (int64_t c = 0; c < p_.ci; ++c) {
      float* to = col.data + (k + c * channel) * col.column + first;
      if (clear) {
        std::fill(to, to + range.begin, 0.0f);
        std::fill(to + range.end, to + w.out, 0.0f);
      }
      float* from = x + c * p_.x.c + in * p_.x.s[2];
      Along(from, step, to + range.begin, 1, range.size(), act);
    }
  }

  // Apart, so that the compiler uses vectors where both are dense.
  template <class Act>
  static void Along(float* x, int64_t x_step, float* col, int64_t col_step, int64_t count,
                    const Act& act) {
    if (x_step == 1 && col_step == 1) {
      for (int64_t i = 0; i < count; ++i) act(x[i], col[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) act(x[i * x_step], col[i * col_step]);
    }
  }

  // Every pixel of one group of one image; without a bias 0.
  void FillWithBias(float* pixels, const PixelStrides& strides, const float* bias, int64_t group,
                    int64_t channels, bool x) const {
    const int64_t count = x ? p_.axes[0].in * p_.axes[1].in * p_.axes[2].in : pixels_;
    const int64_t height = x ? p_.axes[1].in : p_.axes[1].out;
    const int64_t width = x ? p_.axes[2].in : p_.axes[2].out;
    const auto value = [&](int64_t c) {
      return p_.bias.present ? bias[(group * channels + c) * p_.bias.stride] : 0.0f;
    };
    const auto at = [&](int64_t i) {
      return pixels + i / width / height * strides.s[0] + i / width % height * strides.s[1] +
             i % width * strides.s[2];
    };
    if (strides.c == 1) {
      for (int64_t i = 0; i < count; ++i) {
        float* pixel = at(i);
        for (int64_t c = 0; c < channels; ++c) pixel[c] = value(c);
      }
    } else {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = 0; i < count; ++i) at(i)[c * strides.c] = value(c);
      }
    }
  }

  // The teams' sums into the output, where it may lie in any order.
  void StoreWeights() {
    const int64_t each = p_.groups * p_.co * depth_;
    const int64_t used = std::min<int64_t>(teams_, p_.batch);
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (int64_t row = 0; row < p_.groups * p_.co; ++row) {
      float* to = Out() + row / p_.co * p_.w.g + row % p_.co * p_.w.co;
      for (int64_t k = 0; k < depth_; ++k) {
        float sum = weights_[static_cast<size_t>(row * depth_ + k)];
        for (int64_t t = 1; t < used; ++t) {
          sum += weights_[static_cast<size_t>(t * each + row * depth_ + k)];
        }
        to[k * order_.stride] = sum;
      }
    }
  }

  void SumBias() {
    const bool x = p_.bias.sums_x;
    const PixelStrides& strides = x ? p_.x : p_.y;
    const float* data = x ? X() : Y();
    const int64_t channels = p_.groups * (x ? p_.ci : p_.co);
    std::vector<float> sums(static_cast<size_t>(channels));
    for (int64_t n = 0; n < p_.batch; ++n) {
      VisitPixels(x, [&](int64_t d, int64_t h, int64_t w) {
        const float* pixel =
            data + n * strides.n + d * strides.s[0] + h * strides.s[1] + w * strides.s[2];
        for (int64_t c = 0; c < channels; ++c) sums[static_cast<size_t>(c)] += pixel[c * strides.c];
      });
    }
    float* out = static_cast<float*>(operands_.bias_out);
    for (int64_t c = 0; c < channels; ++c) out[c * p_.bias.stride] = sums[static_cast<size_t>(c)];
  }

  template <class Visit>
  void VisitPixels(bool x, const Visit& visit) const {
    const auto extent = [&](size_t a) { return x ? p_.axes[a].in : p_.axes[a].out; };
    for (int64_t d = 0; d < extent(0); ++d) {
      for (int64_t h = 0; h < extent(1); ++h) {
        for (int64_t w = 0; w < extent(2); ++w) visit(d, h, w);
      }
    }
  }

  Problem p_;
  Operands operands_;
  DepthOrder order_;
  int threads_;
  int teams_ = 1;                    // images at a time
  int64_t pixels_ = 1;               // of y, in one image
  int64_t x_step_ = 1, y_step_ = 1;  // between pixels
  int64_t taps_ = 1;
  int64_t depth_ = 1;  // k
  bool plain_ = true;
  std::vector<float> cols_;     // [teams, pixels, k] or [teams, k, pixels]
  std::vector<float> weights_;  // [teams, groups, co, k]
  std::vector<float> started_;  // [teams]: beta of the next image
};

// The weights as a matrix [co, k] with a dense axis, if they are one.
bool FindDepthOrder(const Problem& p, DepthOrder* order) {
  const auto [d, h, w] = p.axes;
  for (bool outside : {false, true}) {
    int64_t stride = outside ? p.w.ci : p.w.s[2];
    if (outside && p.ci == 1) stride = p.w.s[2];
    if (!outside && w.taps == 1) {
      stride = h.taps > 1 ? p.w.s[1] : d.taps > 1 ? p.w.s[0] : p.w.ci;
    }
    int64_t next = stride;
    bool same = true;
    const auto axis = [&](int64_t extent, int64_t given) {
      same = same && (extent == 1 || given == next);
      next *= extent;
    };
    if (outside) axis(p.ci, p.w.ci);
    axis(w.taps, p.w.s[2]);
    axis(h.taps, p.w.s[1]);
    axis(d.taps, p.w.s[0]);
    if (!outside) axis(p.ci, p.w.ci);
    if (same && (stride == 1 || p.w.co == 1)) {
      *order = {outside, stride};
      return true;
    }
  }
  return false;
}

}  // namespace

std::unique_ptr<Peer> MakeBlasPeer(const PeerRequest& request, std::string* why) {
  const Problem& p = request.problem;
  DepthOrder order;
  const std::optional<int64_t> y_step = PixelStep(p, false);
  const double col = static_cast<double>(p.axes[0].out) * static_cast<double>(p.axes[1].out) *
                     static_cast<double>(p.axes[2].out) * static_cast<double>(p.axes[0].taps) *
                     static_cast<double>(p.axes[1].taps) * static_cast<double>(p.axes[2].taps) *
                     static_cast<double>(p.ci);
  if (p.type != DataType::kF32) {
    *why = "f32 only";
  } else if (!FindDepthOrder(p, &order)) {
    *why = "the weights are no matrix";
  } else if (!y_step || (p.y.c != 1 && *y_step != 1)) {
    *why = "the pixels are no matrix";
  } else if (col > 0x1p31) {
    *why = "the matrix of windows has more than 2^31 elements";
  } else if (CountMultiplyAdds(p) == 0) {
    *why = "there is nothing to multiply";
  } else {
    return std::make_unique<BlasPeer>(request, order);
  }
  return nullptr;
}

}  // namespace convgrad::bench
