// Verbose lines: comma-separated fields, of which the tensors are separated by blanks and their
// parts by colons.
#include "onednn/verbose_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "onednn/problem_descriptor.h"

namespace convgrad::onednn {
namespace {

using Fields = std::vector<std::string_view>;

constexpr size_t kMostFields = 64;  // a line has about a dozen
// The words before the engine: a version, a component, a time stamp, the operation.
constexpr size_t kLeadingFields = 6;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Fields SplitAt(std::string_view text, char separator) {
  Fields parts;
  while (parts.size() + 1 < kMostFields) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

struct Marker {
  size_t begin = std::string_view::npos, end = std::string_view::npos;
};

Marker FindMarker(std::string_view line, size_t from) {
  Marker first;
  for (std::string_view marker : {"onednn_verbose,", "dnnl_verbose,", "mkldnn_verbose,"}) {
    const size_t begin = line.find(marker, from);
    if (begin < first.begin) first = {begin, begin + marker.size()};
  }
  return first;
}

// What follows the marker, which other output of the same line may precede, up to the next one.
std::optional<std::string_view> AfterMarker(std::string_view line) {
  const Marker marker = FindMarker(line, 0);
  if (marker.begin == std::string_view::npos) return std::nullopt;
  return line.substr(marker.end, NextRecord(line) - marker.end);
}

// The first field from `begin` for which `is` holds; fields.size() if there is none.
template <class Predicate>
size_t Find(const Fields& fields, size_t begin, Predicate is) {
  begin = std::min(begin, fields.size());
  return static_cast<size_t>(
      std::find_if(fields.begin() + static_cast<ptrdiff_t>(begin), fields.end(), is) -
      fields.begin());
}

bool IsPass(std::string_view field) {
  constexpr std::array<std::string_view, 7> kPasses = {
      "forward_training", "forward_inference", "forward_scoring", "forward",
      "backward_data",    "backward_weights",  "backward_bias"};
  return std::find(kPasses.begin(), kPasses.end(), field) != kPasses.end();
}

bool AreTensors(std::string_view field) {
  return field.starts_with("src:") || field.starts_with("src_") || field.starts_with("diff_src") ||
         field.starts_with("fsrc:");
}

// Entries of problem lines: words of letters and digits that name both channels. A minus is read
// with them, so that what is wrong with ph-1 is said where entries are.
bool IsDescriptor(std::string_view field) {
  if (!field.starts_with("mb") && !field.starts_with("g")) return false;
  const auto is_entry = [](char c) {
    return c == '_' || c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return std::all_of(field.begin(), field.end(), is_entry) &&
         field.find("ic") != std::string_view::npos && field.find("oc") != std::string_view::npos;
}

bool AreDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The fields after the descriptor. Where the locale has a decimal comma they are two.
std::optional<double> ReadMilliseconds(const Fields& fields, size_t begin) {
  if (begin >= fields.size()) return std::nullopt;
  std::string text(fields[begin]);
  if (begin + 1 < fields.size() && AreDigits(fields[begin]) && AreDigits(fields[begin + 1])) {
    text += "." + std::string(fields[begin + 1]);
  }
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr double kLongest = 1e12;  // thirty years: sums of such numbers would mean nothing
  if (!std::isfinite(value) || value < 0 || value > kLongest) return std::nullopt;
  return value;
}

// "64x1x12x2"; empty for anything else, such as flags.
Dims ReadStrides(std::string_view text) {
  Dims strides;
  for (std::string_view part : SplitAt(text, 'x')) {
    const int64_t stride = ParseNumber(part);
    if (stride < 0) return {};
    strides.push_back(stride);
  }
  return strides;
}

// What follows the tensor's name: type:flags:kind, of a blocked one also :tag, and :strides.
VerboseTensor ReadTensor(std::string_view text) {
  const Fields parts = SplitAt(text, ':');
  VerboseTensor tensor;
  tensor.type = std::string(parts[0]);
  if (parts.size() > 2) tensor.kind = std::string(parts[2]);
  if (tensor.kind != "blocked") return tensor;
  if (parts.size() > 3) tensor.tag = std::string(parts[3]);
  if (parts.size() > 4) tensor.strides = ReadStrides(parts[4]);
  return tensor;
}

Status ReadTensors(std::string_view field, VerboseCall* call) {
  for (std::string_view word : SplitAt(field, ' ')) {
    if (word.starts_with("diff_")) word.remove_prefix(5);
    if (word.find("_fused:") != std::string_view::npos) {
      call->is_fused = true;
      continue;
    }
    if (word.size() < 4 || (word[3] != ':' && word[3] != '_')) continue;
    const std::string_view name = word.substr(0, 3);
    VerboseTensor* tensor = name == "src"   ? &call->src
                            : name == "wei" ? &call->weights
                            : name == "bia" ? &call->bias
                            : name == "dst" ? &call->dst
                                            : nullptr;
    if (tensor != nullptr) *tensor = ReadTensor(word.substr(4));
  }
  for (const auto& [name, tensor] : {std::pair("src", &call->src), std::pair("wei", &call->weights),
                                     std::pair("dst", &call->dst)}) {
    if (!tensor->given()) {
      return Invalid(std::string("a convolution's line must say the type of ") + name +
                     ", as versions from 1.0 on do");
    }
  }
  return {};
}

// `begin` is the primitive's field.
Status ReadCall(const Fields& fields, size_t begin, VerboseCall* call) {
  const auto missing = [](const char* what) {
    return Invalid(std::string("a convolution's line must have ") + what);
  };
  const size_t pass = Find(fields, begin, IsPass);
  if (pass == fields.size()) return missing("a pass, such as backward_weights");
  const size_t tensors = Find(fields, pass, AreTensors);
  if (tensors == fields.size()) return missing("tensors, such as src:f32::blocked:acdb::f0");
  const size_t descriptor = Find(fields, tensors, IsDescriptor);
  if (descriptor == fields.size()) return missing("a problem, such as mb1_ic3oc8_iw9ow9kw1");
  const std::optional<double> milliseconds = ReadMilliseconds(fields, descriptor + 1);
  if (!milliseconds) return missing("its time in milliseconds after the problem");
  if (Status status = ReadTensors(fields[tensors], call); !status.ok()) return status;
  if (begin + 1 < pass) call->implementation = std::string(fields[begin + 1]);
  call->pass = std::string(fields[pass]);
  call->descriptor = std::string(fields[descriptor]);
  call->milliseconds = *milliseconds;
  for (size_t i = tensors + 1; i < descriptor; ++i) {
    if (fields[i].empty() || fields[i].starts_with("alg:")) continue;
    call->attributes += (call->attributes.empty() ? "" : ",") + std::string(fields[i]);
  }
  return {};
}

}  // namespace

size_t NextRecord(std::string_view line) {
  const Marker marker = FindMarker(line, 0);
  if (marker.begin == std::string_view::npos) return line.size();
  return std::min(FindMarker(line, marker.end).begin, line.size());
}

Result<VerboseLine> ParseVerboseLine(std::string_view line) {
  VerboseLine result;
  std::optional<std::string_view> text = AfterMarker(line);
  if (!text) return result;
  while (!text->empty() && (text->back() == '\r' || text->back() == '\n')) text->remove_suffix(1);
  const Fields fields = SplitAt(*text, ',');
  const auto leading = [&](std::string_view word) {
    const size_t at = Find(fields, 0, [&](std::string_view field) { return field == word; });
    return std::min(at, kLeadingFields);
  };
  const size_t info = leading("info"), exec = leading("exec");
  if (info < kLeadingFields && info < std::min(exec, fields.size())) {
    result.kind = VerboseLine::Kind::kInfo;
    const size_t begin = static_cast<size_t>(fields[info].data() - text->data());
    result.info = std::string(text->substr(std::min(begin + 5, text->size())));
    return result;
  }
  result.kind = VerboseLine::Kind::kNotExecuted;
  if (exec + 1 >= std::min(fields.size(), kLeadingFields + 1)) return result;
  const bool has_engine =
      fields[exec + 1].starts_with("cpu") || fields[exec + 1].starts_with("gpu");
  const size_t primitive = exec + (has_engine ? 2 : 1);
  if (primitive >= fields.size()) return result;
  result.kind = VerboseLine::Kind::kOtherPrimitive;
  result.primitive = std::string(fields[primitive]);
  if (leading("graph") < exec) {  // a partition, whose primitives have lines of their own
    result.primitive = "graph";
    return result;
  }
  if (result.primitive != "convolution" && result.primitive != "deconvolution") return result;
  result.kind = VerboseLine::Kind::kCall;
  result.call.transposed = result.primitive == "deconvolution";
  if (has_engine) result.call.engine = std::string(fields[exec + 1]);
  if (Status status = ReadCall(fields, primitive, &result.call); !status.ok()) return status;
  return result;
}

}  // namespace convgrad::onednn
