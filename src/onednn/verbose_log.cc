// Logs: a call becomes the same choice of options and descriptor that a problem line would make.
#include "onednn/verbose_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "onednn/memory_tag.h"
#include "onednn/one_line.h"
#include "onednn/problem_descriptor.h"

namespace convgrad::onednn {
namespace {

// Each is a problem to time: more are not a log of a program.
constexpr size_t kMostGroups = 10'000;
// Problems and their spellings that are looked up; further spellings are read each time.
constexpr size_t kMostPlaces = 4 * kMostGroups;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

Result<Direction> DirectionOf(const VerboseCall& call) {
  if (call.pass == "backward_data") return Direction::kBwdD;
  if (call.pass == "backward_weights") {
    return call.bias.given() ? Direction::kBwdWB : Direction::kBwdW;
  }
  if (!call.pass.starts_with("forward")) return Invalid("the pass is " + call.pass);
  if (call.bias.given()) return Direction::kFwdB;
  return call.pass == "forward_training" ? Direction::kFwdD : Direction::kFwdI;
}

std::optional<DataType> TypeOf(const std::string& name) {
  for (DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    if (name == NameOf(type)) return type;
  }
  return std::nullopt;
}

Result<CaseTypes> TypesOf(const VerboseCall& call) {
  const auto src = TypeOf(call.src.type), weights = TypeOf(call.weights.type),
             dst = TypeOf(call.dst.type);
  const bool written = call.pass == "backward_weights";
  if (src && src == dst && weights && (weights == src || (written && *weights == DataType::kF32))) {
    return CaseTypes{*src, *weights};
  }
  return Status(StatusCode::kInvalidType,
                "the types are src " + call.src.type + ", wei " + call.weights.type + ", dst " +
                    call.dst.type +
                    ", and convgrad has one of f32, bf16 and f16 for all of them, or f32 for the "
                    "gradient of the weights");
}

// The tag of a plain layout that is nearest: the order of the axes without their blocks, so that
// aBcd16b becomes abcd and Acdb16a becomes acdb.
std::string PlainTag(const std::string& tag) {
  std::string plain;
  for (char c : tag) {
    if (c >= '0' && c <= '9') break;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

std::string NotPlain(std::string_view name, std::string_view used, std::string_view logged) {
  return std::string(name) + " as " + std::string(used) + " instead of " + std::string(logged);
}

// Sets the tag, or the strides, of one tensor.
void SetLayout(std::string_view name, const VerboseTensor& tensor, std::string* tag, Dims* strides,
               std::vector<std::string>* differences) {
  if (tensor.kind != "blocked" || tensor.tag.empty()) {
    *tag = "any";
    if (tensor.kind != "any") differences->push_back(NotPlain(name, "any", tensor.kind));
    return;
  }
  *tag = PlainTag(tensor.tag);
  if (*tag != tensor.tag) {
    differences->push_back(NotPlain(name, *tag, tensor.tag));
  } else if (!tensor.strides.empty()) {
    *tag = "any";
    *strides = tensor.strides;
  }
}

// Attributes that change the result. A scratchpad's owner and a mode of arithmetic do not ask for
// other work than convgrad does.
std::string OtherWork(const std::string& attributes) {
  for (const char* name :
       {"post-ops", "post_ops", "scales", "oscale", "zero-points", "zero_points", "dropout"}) {
    if (attributes.find(name) != std::string::npos) return "without " + attributes;
  }
  return "";
}

// As the log spells it: calls of equal keys are the same problem.
std::string KeyOf(const VerboseCall& call) {
  std::string key = (call.transposed ? "deconvolution," : "convolution,") + call.engine + "," +
                    call.pass + "," + call.attributes + "," + call.descriptor;
  for (const VerboseTensor* tensor : {&call.src, &call.weights, &call.bias, &call.dst}) {
    key += "," + tensor->type + ":" + tensor->kind + ":" + tensor->tag;
    for (int64_t stride : tensor->strides) key += "x" + std::to_string(stride);
  }
  return key + (call.is_fused ? ",fused" : "");
}

}  // namespace

Result<ReplayedCase> MakeReplayedCase(const VerboseCall& call) {
  if (call.engine.starts_with("gpu")) return Invalid("the engine is " + call.engine);
  if (call.is_fused) return Invalid("a depthwise convolution is fused to it");
  CaseChoice choice;
  choice.transposed = call.transposed;
  const Result<Direction> direction = DirectionOf(call);
  if (!direction.ok()) return direction.status();
  choice.direction = *direction;
  const Result<CaseTypes> types = TypesOf(call);
  if (!types.ok()) return types.status();
  choice.types = *types;

  ReplayedCase result;
  std::vector<std::string>& differences = result.differences;
  SetLayout("src", call.src, &choice.src_tag, &choice.strides.src, &differences);
  SetLayout("wei", call.weights, &choice.weights_tag, &choice.strides.weights, &differences);
  SetLayout("dst", call.dst, &choice.dst_tag, &choice.strides.dst, &differences);
  if (call.bias.given() && call.bias.type != NameOf(types->weights)) {
    differences.push_back(NotPlain("bia", NameOf(types->weights), call.bias.type));
  }
  if (std::string other = OtherWork(call.attributes); !other.empty()) {
    differences.push_back(std::move(other));
  }
  const Result<ProblemDescriptor> descriptor = ParseDescriptor(call.descriptor, call.transposed);
  if (!descriptor.ok()) return descriptor.status();
  Result<ProblemCase> problem = MakeCase(*descriptor, choice);
  // Some orders of grouped weights have no format here.
  if (!problem.ok() && (choice.weights_tag != "any" || !choice.strides.weights.empty())) {
    differences.push_back(NotPlain("wei", "any", call.weights.tag));
    choice.weights_tag = "any";
    choice.strides.weights.clear();
    problem = MakeCase(*descriptor, choice);
  }
  if (!problem.ok()) return problem.status();
  result.problem = *std::move(problem);
  return result;
}

void VerboseLog::Accept(std::string_view line) {
  ++lines_;
  if (line.size() > kLongestLine) return;
  while (line.ends_with('\r')) line.remove_suffix(1);
  // Parts of it are printed.
  const auto is_control = [](char c) { return IsControl(c) && c != '\t'; };
  std::string plain;
  if (std::ranges::any_of(line, is_control)) {
    plain = line;
    std::ranges::replace_if(plain, is_control, '?');
    line = plain;
  }
  bool verbose = false;
  while (!line.empty()) {
    const size_t end = NextRecord(line);
    if (AcceptRecord(line.substr(0, end))) verbose = true;
    line.remove_prefix(end);
  }
  if (verbose) ++verbose_lines_;
}

bool VerboseLog::AcceptRecord(std::string_view record) {
  const Result<VerboseLine> parsed = ParseVerboseLine(record);
  if (!parsed.ok()) {
    skipped_.Add(parsed.status().message());
    return true;
  }
  if (parsed->kind == VerboseLine::Kind::kInfo) AcceptInfo(parsed->info);
  if (parsed->kind == VerboseLine::Kind::kOtherPrimitive) other_primitives_.Add(parsed->primitive);
  if (parsed->kind == VerboseLine::Kind::kCall) AcceptCall(parsed->call);
  return parsed->kind != VerboseLine::Kind::kText;
}

void VerboseLog::AcceptInfo(const std::string& info) {
  // "oneDNN v3.5.3 (commit ...)", "DNNL v1.2.0 (...)"; "cpu,runtime:OpenMP,nthr:8".
  const size_t commit = info.find(" (");
  if (version_.empty() && commit != std::string::npos && info.find(" v") < commit) {
    version_ = info.substr(0, commit);
  }
  const size_t threads = info.find("nthr:");
  if (threads_.empty() && threads != std::string::npos) {
    const size_t end = std::min(info.find_first_not_of("0123456789", threads + 5), info.size());
    threads_ = info.substr(threads + 5, end - threads - 5);
  }
}

void VerboseLog::AcceptCall(const VerboseCall& call) {
  const std::string key = KeyOf(call);
  auto place = places_.find(key);
  if (place == places_.end()) {
    Result<ReplayedCase> replayed = MakeReplayedCase(call);
    if (!replayed.ok()) {
      skipped_.Add(replayed.status().message());
      return;
    }
    // The problem's own text has one spelling.
    std::string problem = replayed->problem.text;
    for (const std::string& difference : replayed->differences) problem += "\n" + difference;
    place = places_.find(problem);
    if (place == places_.end()) {
      if (groups_.size() == kMostGroups) {
        skipped_.Add("more than " + std::to_string(kMostGroups) + " different problems");
        return;
      }
      place = places_.emplace(std::move(problem), groups_.size()).first;
      groups_.push_back({call, *std::move(replayed), 0, 0});
    }
    if (places_.size() < kMostPlaces) places_.emplace(key, place->second);
  }
  VerboseGroup& group = groups_[place->second];
  ++group.calls;
  group.milliseconds += call.milliseconds;
}

}  // namespace convgrad::onednn
