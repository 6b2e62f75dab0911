// Descriptors: read the entries, give axes that were left out to their neighbours, then derive the
// outputs and pads axis by axis. Text in, numbers out; nothing here knows an option or a tensor.
#include "onednn/problem_descriptor.h"

#include <algorithm>
#include <array>
#include <optional>

#include "onednn/one_line.h"

namespace convgrad::onednn {
namespace {

__extension__ using Wide = __int128;

using Number = std::optional<int64_t>;

// The spatial letters, outermost first, and the kinds of entry that each of them has.
constexpr std::string_view kLetters = "dhw";
constexpr std::string_view kKinds = "iokspd";
enum Kind { kIn, kOut, kKernel, kStride, kPad, kDilation, kNumKinds };

using AxisEntries = std::array<Number, kNumKinds>;

struct Entries {
  Number g, mb, ic, oc;
  std::array<AxisEntries, 3> axes;
  std::string name;
};

Status Fail(std::string_view token, std::string rule) {
  return Status(StatusCode::kInvalidArgument,
                "descriptor '" + std::string(token) + "': " + std::move(rule));
}

// The entry that `rest` begins with, as the length of its key and where its number goes.
struct Slot {
  size_t length = 0;
  Number* number = nullptr;
  int64_t least = 1;
};

Slot FindSlot(std::string_view rest, Entries* entries) {
  if (rest.starts_with("g")) return {1, &entries->g, 1};
  if (rest.starts_with("mb")) return {2, &entries->mb, 0};
  if (rest.starts_with("ic")) return {2, &entries->ic, 1};
  if (rest.starts_with("oc")) return {2, &entries->oc, 1};
  if (rest.size() < 2) return {};
  const size_t kind = kKinds.find(rest[0]);
  const size_t letter = kLetters.find(rest[1]);
  if (kind == std::string_view::npos || letter == std::string_view::npos) return {};
  const int64_t least = kind == kOut || kind == kPad || kind == kDilation ? 0 : 1;
  return {2, &entries->axes[letter][kind], least};
}

// All that follows n, without quotes: n"a"*4 is a*4.
Status ReadName(std::string_view token, std::string_view rest, std::string* name) {
  if (std::ranges::any_of(rest, IsControl)) {
    return Fail(token, "the name after n must not have control characters");
  }
  *name = std::string(rest);
  std::erase(*name, '"');
  return {};
}

Status ReadEntry(std::string_view token, size_t* position, Entries* entries) {
  const std::string_view rest = token.substr(*position);
  const Slot slot = FindSlot(rest, entries);
  if (slot.number == nullptr) {
    return Fail(token, "'" + std::string(rest) +
                           "' does not begin with one of g, mb, ic, oc, i, o, k, s, p or d with d, "
                           "h or w, and n");
  }
  const std::string key(rest.substr(0, slot.length));
  const size_t end = std::min(rest.find_first_not_of("0123456789", slot.length), rest.size());
  const std::string digits(rest.substr(slot.length, end - slot.length));
  if (digits.empty()) return Fail(token, key + " must be followed by a number of decimal digits");
  const int64_t value = ParseNumber(digits);
  if (value < 0) {
    return Fail(token, key + " " + digits + " is larger than " + std::to_string(kLargestNumber));
  }
  if (value < slot.least) {
    return Fail(token, key + " " + digits + " must be at least " + std::to_string(slot.least));
  }
  *slot.number = value;
  if (value == 0 && key[0] == 'o') slot.number->reset();  // of out: not given
  *position += end;
  return {};
}

Result<Entries> ReadEntries(std::string_view token) {
  Entries entries;
  size_t position = 0;
  while (position < token.size()) {
    if (token[position] == '_') {
      ++position;
    } else if (token[position] == 'n') {
      if (Status status = ReadName(token, token.substr(position + 1), &entries.name);
          !status.ok()) {
        return status;
      }
      position = token.size();
    } else if (Status status = ReadEntry(token, &position, &entries); !status.ok()) {
      return status;
    }
  }
  if (!entries.ic) return Fail(token, "ic is missing");
  if (!entries.oc) return Fail(token, "oc is missing");
  return entries;
}

// benchdnn's rule: an axis is there if it has an extent, or anything else that is not the default.
bool IsPresent(const AxisEntries& axis) {
  return axis[kIn] || axis[kOut] || axis[kKernel] || axis[kStride].value_or(1) != 1 ||
         axis[kPad].value_or(0) != 0 || axis[kDilation].value_or(0) != 0;
}

// The axes of the problem, each with its letter for messages: an axis that is absent takes all its
// entries from the one before it.
Result<std::vector<std::pair<char, AxisEntries>>> InheritAxes(std::string_view token,
                                                              const Entries& entries) {
  const auto& [d, h, w] = entries.axes;
  const bool has_d = IsPresent(d), has_h = IsPresent(h), has_w = IsPresent(w);
  std::vector<std::pair<char, AxisEntries>> axes;
  if (has_d) {
    if (has_h != has_w) return Fail(token, "beside d it must have both of h and w or neither");
    axes = {{'d', d}, {has_h ? 'h' : 'd', has_h ? h : d}, {has_w ? 'w' : 'd', has_w ? w : d}};
  } else if (has_h) {
    axes = {{'h', h}, {has_w ? 'w' : 'h', has_w ? w : h}};
  } else if (has_w) {
    axes = {{'w', w}};
  } else {
    return Fail(token, "it must have at least one spatial axis: id, ih or iw, and its kernel");
  }
  return axes;
}

Wide FloorDiv(Wide numerator, Wide denominator) {
  const Wide quotient = numerator / denominator;
  return quotient - (numerator % denominator != 0 && (numerator < 0) != (denominator < 0) ? 1 : 0);
}

// Fills what is missing of out and pad_begin, and always pad_end. Wide, because the products of two
// legal entries may not fit 64 bits; a result that is too large is an error, not a wrap.
class AxisSolver {
 public:
  AxisSolver(std::string_view token, char letter, const AxisEntries& entries, bool transposed)
      : token_(token), letter_(letter), entries_(entries), transposed_(transposed) {}

  Result<ProblemAxis> Solve() {
    for (Kind kind : {kIn, kKernel}) {
      if (!entries_[kind]) return Fail(token_, Key(kind) + " is missing");
    }
    in_ = *entries_[kIn];
    stride_ = entries_[kStride].value_or(1);
    extent_ = (Wide{*entries_[kKernel]} - 1) * (entries_[kDilation].value_or(0) + 1) + 1;
    SolveOutAndPad();
    if (out_ < 1) {
      return Fail(token_, Key(kOut) + " follows from the rest as less than 1: the kernel with " +
                              "its dilation spans " + Text(extent_) + ", " + Key(kIn) + " is " +
                              Text(in_) + ", " + Key(kPad) + " is " + Text(pad_));
    }
    const Wide wanted = Reach() - pad_;  // the end pad that makes out exact
    ProblemAxis axis;
    const Wide largest = std::max({out_, pad_, extent_, wanted, -wanted});
    if (largest > kLargestNumber) {
      return Fail(token_, "the extents or pads of axis " + std::string(1, letter_) +
                              " follow as more than " + std::to_string(kLargestNumber));
    }
    axis.in = static_cast<int64_t>(in_);
    axis.out = static_cast<int64_t>(out_);
    axis.kernel = *entries_[kKernel];
    axis.stride = static_cast<int64_t>(stride_);
    axis.dilation = entries_[kDilation].value_or(0);
    axis.pad_begin = static_cast<int64_t>(pad_);
    axis.pad_end = static_cast<int64_t>(std::max<Wide>(0, wanted));
    const int64_t surplus = static_cast<int64_t>(std::max<Wide>(0, -wanted));
    if (transposed_) axis.output_padding = surplus;
    // A convolution may leave less than a stride of its input unused; with more it has another out.
    if (!transposed_ && surplus >= axis.stride) {
      return Fail(token_, Key(kOut) + " " + Text(out_) + " leaves " + std::to_string(surplus) +
                              " of " + Key(kIn) + " " + Text(in_) +
                              " unused, which must be less than the stride " + Text(stride_));
    }
    return axis;
  }

 private:
  // Both pads together that the extents ask for; negative when they leave something over.
  Wide Reach() const {
    return transposed_ ? (in_ - 1) * stride_ - out_ + extent_
                       : (out_ - 1) * stride_ - in_ + extent_;
  }

  void SolveOutAndPad() {
    if (entries_[kOut]) {
      out_ = *entries_[kOut];
      // A negative pad would be none: then something is left over, and it is so at the end.
      const Wide derived = std::max<Wide>(0, FloorDiv(Reach(), 2));
      pad_ = entries_[kPad] ? Wide{*entries_[kPad]} : derived;
      return;
    }
    pad_ = entries_[kPad].value_or(0);
    out_ = transposed_ ? (in_ - 1) * stride_ + extent_ - 2 * pad_
                       : FloorDiv(in_ - extent_ + 2 * pad_, stride_) + 1;
  }

  std::string Key(Kind kind) const { return {kKinds[kind], letter_}; }

  static std::string Text(Wide value) {
    return value > kLargestNumber ? "more than " + std::to_string(kLargestNumber)
                                  : std::to_string(static_cast<int64_t>(value));
  }

  std::string_view token_;
  char letter_;
  const AxisEntries& entries_;
  bool transposed_;
  Wide in_ = 0, out_ = 0, stride_ = 1, extent_ = 1, pad_ = 0;
};

bool Alike(const ProblemAxis& a, const ProblemAxis& b) {
  return a.in == b.in && a.out == b.out && a.kernel == b.kernel && a.stride == b.stride &&
         a.dilation == b.dilation && a.pad_begin == b.pad_begin;
}

// Axes that are all alike are written once.
std::string Written(const ProblemDescriptor& descriptor, bool compact) {
  const std::vector<ProblemAxis>& axes = descriptor.axes;
  const std::string_view letters = kLetters.substr(kLetters.size() - axes.size());
  const std::string gap = compact ? "" : "_";
  const bool alike = std::all_of(
      axes.begin(), axes.end(), [&](const ProblemAxis& axis) { return Alike(axis, axes.front()); });
  std::string text;
  if (!compact || descriptor.groups != 1) text += "g" + std::to_string(descriptor.groups);
  if (!compact || descriptor.batch != 2) text += "mb" + std::to_string(descriptor.batch);
  const auto append = [&](char kind, int64_t ProblemAxis::*field) {
    for (size_t i = 0; i < (alike ? 1 : axes.size()); ++i) {
      text += std::string{kind, letters[i]} + std::to_string(axes[i].*field);
    }
  };
  const auto is_default = [&](int64_t ProblemAxis::*field, int64_t value) {
    return std::all_of(axes.begin(), axes.end(),
                       [&](const ProblemAxis& axis) { return axis.*field == value; });
  };
  text += gap + "ic" + std::to_string(descriptor.in_channels);
  append('i', &ProblemAxis::in);
  text += gap + "oc" + std::to_string(descriptor.out_channels);
  append('o', &ProblemAxis::out);
  for (const auto& [kind, field] :
       {std::pair('k', &ProblemAxis::kernel), std::pair('s', &ProblemAxis::stride),
        std::pair('p', &ProblemAxis::pad_begin), std::pair('d', &ProblemAxis::dilation)}) {
    if (compact && kind == 's' && is_default(field, 1)) continue;
    if (compact && kind == 'd' && is_default(field, 0)) continue;
    text += gap;
    append(kind, field);
  }
  if (!descriptor.name.empty()) text += gap + "n\"" + descriptor.name + "\"";
  return text;
}

}  // namespace

int64_t ParseNumber(std::string_view digits) {
  if (digits.empty()) return -1;
  int64_t value = 0;
  for (char digit : digits) {
    if (digit < '0' || digit > '9') return -1;
    value = value * 10 + (digit - '0');
    if (value > kLargestNumber) return -1;
  }
  return value;
}

Result<ProblemDescriptor> ParseDescriptor(std::string_view token, bool transposed) {
  const Result<Entries> entries = ReadEntries(token);
  if (!entries.ok()) return entries.status();
  ProblemDescriptor descriptor;
  descriptor.groups = entries->g.value_or(1);
  descriptor.batch = entries->mb.value_or(2);
  descriptor.in_channels = *entries->ic;
  descriptor.out_channels = *entries->oc;
  descriptor.name = entries->name;
  for (const auto& [key, channels] : {std::pair<std::string, int64_t>("ic", *entries->ic),
                                      std::pair<std::string, int64_t>("oc", *entries->oc)}) {
    if (channels % descriptor.groups == 0) continue;
    return Fail(token, key + " " + std::to_string(channels) + " must be a multiple of g " +
                           std::to_string(descriptor.groups));
  }
  const auto axes = InheritAxes(token, *entries);
  if (!axes.ok()) return axes.status();
  for (const auto& [letter, axis_entries] : *axes) {
    const Result<ProblemAxis> axis = AxisSolver(token, letter, axis_entries, transposed).Solve();
    if (!axis.ok()) return axis.status();
    descriptor.axes.push_back(*axis);
  }
  return descriptor;
}

std::string ToString(const ProblemDescriptor& descriptor) { return Written(descriptor, false); }

std::string ToCompactString(const ProblemDescriptor& descriptor) {
  return Written(descriptor, true);
}

}  // namespace convgrad::onednn
