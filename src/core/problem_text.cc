#include "core/problem_text.h"

#include <charconv>
#include <span>
#include <vector>

#include "core/text.h"

namespace convgrad {
namespace {

std::array<int64_t, kAxes> Each(const Problem& p, int64_t Axis::*field) {
  return {p.axes[0].*field, p.axes[1].*field, p.axes[2].*field};
}

std::array<int64_t, 5> AsArray(const PixelStrides& s) { return {s.n, s.c, s.s[0], s.s[1], s.s[2]}; }
std::array<int64_t, 6> AsArray(const WeightStrides& s) {
  return {s.g, s.co, s.ci, s.s[0], s.s[1], s.s[2]};
}
PixelStrides PixelStridesOf(const std::vector<int64_t>& v) {
  return {v[0], v[1], {v[2], v[3], v[4]}};
}
WeightStrides WeightStridesOf(const std::vector<int64_t>& v) {
  return {v[0], v[1], v[2], {v[3], v[4], v[5]}};
}

struct Field {
  std::string_view key;
  int64_t Problem::*value;
};
constexpr Field kCounts[] = {
    {"g", &Problem::groups}, {"n", &Problem::batch}, {"ci", &Problem::ci}, {"co", &Problem::co}};

struct AxisField {
  std::string_view key;
  int64_t Axis::*value;
  int64_t least;
};
constexpr AxisField kAxisFields[] = {{"in", &Axis::in, 0},      {"taps", &Axis::taps, 1},
                                     {"out", &Axis::out, 0},    {"s", &Axis::stride, 1},
                                     {"d", &Axis::dilation, 1}, {"p", &Axis::pad, 0}};

Status Bad(std::string_view token, std::string_view rule) {
  return {StatusCode::kInvalidArgument, Join("problem field '", token, "' is wrong: ", rule)};
}

// "64" or "1x56x56" or "1,2,3"; empty on any mistake.
std::vector<int64_t> ParseNumbers(std::string_view text, char separator) {
  std::vector<int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return {};
    numbers.push_back(number);
    if (next == end) return numbers;
    if (*next != separator) return {};
    at = next + 1;
  }
}

// What a plan gets from the specification's checks, a line must show by itself: no index overflows.
Status CheckSizes(const Problem& p) {
  Int128 x = 1, w = 1, y = 1;
  const auto grow = [](Int128& product, int64_t extent) {
    product *= std::max<int64_t>(extent, 1);
    return product <= INT64_MAX / 8;
  };
  if (p.per_sample.present) w = std::max<int64_t>(p.batch, 1);
  bool fits = grow(x, p.batch) && grow(x, p.groups) && grow(x, p.ci) && grow(y, p.batch) &&
              grow(y, p.groups) && grow(y, p.co) && grow(w, p.groups) && grow(w, p.ci) &&
              grow(w, p.co);
  for (const Axis& axis : p.axes) {
    fits = fits && grow(x, axis.in) && grow(y, axis.out) && grow(w, axis.taps);
    const auto span = KernelSpan(axis.taps, axis.dilation);
    fits = fits && span && FitInt64(Int128{axis.in} + axis.pad) &&
           InExtent(axis.out, axis.stride, *span, 0, 0, 0);
  }
  return fits ? Status() : Bad("in, taps, out, s, d or p", "the problem overflows 64 bits");
}

// kUndef: no type of data.
DataType TypeOf(std::string_view name) {
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    if (name == NameOf(type)) return type;
  }
  return DataType::kUndef;
}

// Whether a token begins with a type: other fields have digits too.
bool IsTypes(std::string_view token) {
  return TypeOf(token.substr(0, token.find(':'))) != DataType::kUndef;
}

std::string TypesText(const Problem& p) {
  return p.out_type == p.type ? std::string(NameOf(p.type))
                              : Join(NameOf(p.type), ":", NameOf(p.out_type));
}

Status CheckTypes(const Problem& p) {
  if (p.out_type == p.type || (p.pass == Pass::kWgrad && p.out_type == DataType::kF32)) return {};
  return Bad(TypesText(p), "only wgrad writes another type than it reads, and only f32");
}

Status CheckGradients(const Problem& p) {
  if (p.per_sample.present && p.pass != Pass::kWgrad) {
    return Bad("per_sample", "only wgrad writes something for each image");
  }
  if (p.bias.alone && (p.pass != Pass::kWgrad || !p.bias.present)) {
    return Bad("alone", "only a wgrad with bias[c] or xbias[c] writes that alone");
  }
  return {};
}

class Parser {
 public:
  Status Accept(std::string_view token) {
    const size_t letters = token.find_first_of("-0123456789[");
    if (letters == std::string_view::npos) return Word(token);
    const std::string_view key = token.substr(0, letters);
    const std::string_view rest = token.substr(letters);
    if (IsTypes(token)) return Types(token);
    if (rest.front() == '[') return Strides(token, key, rest);
    for (const Field& field : kCounts) {
      if (field.key != key) continue;
      const std::vector<int64_t> v = ParseNumbers(rest, 'x');
      const int64_t least = key == "g" ? 1 : 0;
      if (v.size() != 1 || v[0] < least) return Bad(token, "a count such as g1, n8, ci64 or co64");
      problem_.*field.value = v[0];
      return {};
    }
    for (const AxisField& field : kAxisFields) {
      if (field.key != key) continue;
      const std::vector<int64_t> v = ParseNumbers(rest, 'x');
      if (v.size() != kAxes) return Bad(token, "three numbers such as 1x56x56");
      for (int a = 0; a < kAxes; ++a) {
        if (v[a] < field.least) return Bad(token, Join("numbers of at least ", field.least));
        problem_.axes[a].*field.value = v[a];
      }
      return {};
    }
    return Bad(token, "no such field");
  }

  Result<Problem> Finish() {
    if (!has_pass_) return Bad("", "the line begins with fprop, dgrad or wgrad");
    if (Status status = CheckTypes(problem_); !status.ok()) return status;
    problem_.bias.alone = alone_;
    if (Status status = CheckGradients(problem_); !status.ok()) return status;
    if (Status status = CheckSizes(problem_); !status.ok()) return status;
    Problem dense = problem_;
    SetDenseStrides(dense);
    if (x_.empty()) problem_.x = dense.x;
    if (w_.empty()) problem_.w = dense.w;
    if (y_.empty()) problem_.y = dense.y;
    if (!x_.empty()) problem_.x = PixelStridesOf(x_);
    if (!w_.empty()) problem_.w = WeightStridesOf(w_);
    if (!y_.empty()) problem_.y = PixelStridesOf(y_);
    problem_.per_sample =
        per_sample_.empty() ? dense.per_sample : PerSample{true, per_sample_[0], per_sample_[1]};
    return problem_;
  }

 private:
  Status Word(std::string_view token) {
    for (Pass pass : {Pass::kFprop, Pass::kDgrad, Pass::kWgrad}) {
      if (token == NameOf(pass)) {
        problem_.pass = pass;
        has_pass_ = true;
        return {};
      }
    }
    if (token == "per_sample") return problem_.per_sample.present = true, Status();
    if (token == "alone") return alone_ = true, Status();
    return Bad(token, "expected a pass (fprop, dgrad, wgrad), a type (f32, bf16, f16) or a field");
  }

  // bf16, or what is read and what is written: bf16:f32.
  Status Types(std::string_view token) {
    const size_t colon = token.find(':');
    problem_.type = TypeOf(token.substr(0, colon));
    problem_.out_type =
        colon == std::string_view::npos ? problem_.type : TypeOf(token.substr(colon + 1));
    if (problem_.out_type != DataType::kUndef) return {};
    return Bad(token, "expected two of f32, bf16 and f16, what is read and what is written");
  }

  Status Strides(std::string_view token, std::string_view key, std::string_view rest) {
    if (rest.back() != ']') return Bad(token, "strides end with ]");
    std::vector<int64_t> v = ParseNumbers(rest.substr(1, rest.size() - 2), ',');
    if (key == "x" && v.size() == 5) return x_ = std::move(v), Status();
    if (key == "y" && v.size() == 5) return y_ = std::move(v), Status();
    if (key == "w" && v.size() == 6) return w_ = std::move(v), Status();
    if (key == "per_sample" && v.size() == 2) {
      problem_.per_sample.present = true;
      return per_sample_ = std::move(v), Status();
    }
    if ((key == "bias" || key == "xbias") && v.size() == 1) {
      problem_.bias = {true, key == "xbias", v[0]};
      return {};
    }
    return Bad(token,
               "strides are x[n,c,d,h,w], w[g,co,ci,d,h,w], y[n,c,d,h,w], bias[c], xbias[c] or "
               "per_sample[w,bias]");
  }

  Problem problem_;
  bool has_pass_ = false, alone_ = false;
  std::vector<int64_t> x_, w_, y_, per_sample_;
};

}  // namespace

void SetDenseStrides(Problem& p) {
  int64_t in = 1, out = 1, taps = 1;
  for (int a = kAxes - 1; a >= 0; --a) {
    p.x.s[a] = in;
    p.y.s[a] = out;
    p.w.s[a] = taps;
    in *= p.axes[a].in;
    out *= p.axes[a].out;
    taps *= p.axes[a].taps;
  }
  p.x.c = in;
  p.x.n = in * (p.groups * p.ci);  // with no channels there may be any number of groups
  p.y.c = out;
  p.y.n = out * (p.groups * p.co);
  p.w.ci = taps;
  p.w.co = taps * p.ci;
  p.w.g = p.w.co * p.co;
  if (!p.per_sample.present) return;
  p.per_sample.w = p.groups * p.co * p.w.co;
  p.per_sample.bias = p.bias.present ? p.groups * (p.bias.sums_x ? p.ci : p.co) : 0;
}

std::string ToText(const Problem& p) {
  std::string text = Join(NameOf(p.pass), " ", TypesText(p));
  for (const Field& field : kCounts) text += Join(" ", field.key, p.*field.value);
  for (const AxisField& field : kAxisFields) {
    text += Join(" ", field.key, JoinNumbers(Each(p, field.value), "x"));
  }
  Problem dense = p;
  SetDenseStrides(dense);
  if (!(p.x == dense.x)) text += Join(" x[", JoinNumbers(AsArray(p.x), ","), "]");
  if (!(p.w == dense.w)) text += Join(" w[", JoinNumbers(AsArray(p.w), ","), "]");
  if (!(p.y == dense.y)) text += Join(" y[", JoinNumbers(AsArray(p.y), ","), "]");
  if (p.bias.present) text += Join(p.bias.sums_x ? " xbias[" : " bias[", p.bias.stride, "]");
  if (p.bias.alone) text += " alone";
  if (p.per_sample.present) text += " per_sample";
  if (!(p.per_sample == dense.per_sample)) {
    text += Join("[", p.per_sample.w, ",", p.per_sample.bias, "]");
  }
  return text;
}

Result<Problem> ParseProblem(std::string_view line) {
  Parser parser;
  for (std::string_view token : SplitWords(line)) {
    if (Status status = parser.Accept(token); !status.ok()) return status;
  }
  return parser.Finish();
}

}  // namespace convgrad
