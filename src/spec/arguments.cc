#include "spec/arguments.h"

#include <algorithm>

#include "core/numerics.h"
#include "core/text.h"

namespace convgrad {
namespace {

Status Invalid(StatusCode code, std::string message) { return {code, std::move(message)}; }

Status CheckCount(const OperationSchema& schema, std::string_view what,
                  std::span<const ArgumentSchema> wanted, size_t given) {
  if (given <= wanted.size()) return {};
  return Invalid(StatusCode::kInvalidArgument, Join(schema.name, " was given ", given, " ", what,
                                                    ", it has at most ", wanted.size()));
}

Status CheckRank(const Argument& argument, int expected, std::string_view why = "") {
  const int rank = static_cast<int>(argument.desc.extents.size());
  if (rank == expected) return {};
  return Invalid(StatusCode::kInvalidShape,
                 Join(argument.name, " has rank ", rank, ", expected ", expected, why));
}

Status CheckKnown(const Argument& argument) {
  for (size_t a = 0; a < argument.desc.extents.size(); ++a) {
    if (argument.desc.extents[a] < 0) {
      return Invalid(StatusCode::kInvalidShape,
                     Join(argument.name, " dim ", a, " is unknown (", argument.desc.extents[a],
                          "), inputs must be known"));
    }
  }
  return {};
}

// A shape tensor: s32 or s64, one number for each axis of the output.
Status CheckShapeTensor(const Argument& argument, int rank) {
  const TensorDesc& desc = argument.desc;
  if (desc.type != DataType::kS32 && desc.type != DataType::kS64) {
    return Invalid(StatusCode::kInvalidType,
                   Join(argument.name, " has type ", NameOf(desc.type), ", expected s32 or s64"));
  }
  if (desc.extents.size() != 1 || desc.extents[0] != rank) {
    return Invalid(
        StatusCode::kInvalidShape,
        Join(argument.name, " has shape (", JoinNumbers(desc.extents, ", "),
             "), expected one axis of ", rank, ", one number for each axis of the output"));
  }
  if (!desc.strides.empty() && desc.strides != Dims{1}) {
    return Invalid(StatusCode::kInvalidShape,
                   Join(argument.name, " has stride ", JoinNumbers(desc.strides, ","),
                        ", a shape tensor is dense"));
  }
  if (desc.values.empty()) return {};
  if (static_cast<int>(desc.values.size()) != rank) {
    return Invalid(StatusCode::kInvalidShape,
                   Join(argument.name, " has ", desc.values.size(), " values, expected ", rank));
  }
  for (size_t a = 0; a < desc.values.size(); ++a) {
    if (desc.values[a] < 0) {
      return Invalid(StatusCode::kInvalidShape, Join(argument.name, " is ", desc.values[a],
                                                     " at entry ", a, ", expected at least 0"));
    }
  }
  return {};
}

Status CheckType(const Argument& argument, DataType type, std::string_view first) {
  if (argument.desc.type == type) return {};
  return Invalid(StatusCode::kInvalidType,
                 Join(argument.name, " has type ", NameOf(argument.desc.type), ", expected ",
                      NameOf(type), " as ", first, " has"));
}

// The gradient of weights is summed over the whole batch, often over several: the one result that
// users keep wider than the data that it is made of.
bool MayWiden(const OperationSchema& schema, DataType type) {
  return schema.outputs[0].role == Role::kWeights && type != DataType::kF32;
}

class Collector {
 public:
  explicit Collector(const OperationSchema& schema) : schema_(schema) {}

  Status AddInputs(std::span<const TensorDesc> inputs) {
    if (Status s = CheckCount(schema_, "inputs", schema_.inputs, inputs.size()); !s.ok()) return s;
    for (size_t i = 0; i < schema_.inputs.size(); ++i) {
      const ArgumentSchema& wanted = schema_.inputs[i];
      Argument& argument = arguments_.at(wanted.role);
      argument.name = wanted.name;
      if (i < inputs.size()) argument.desc = inputs[i];
      if (wanted.required && !argument.desc.given()) {
        return Invalid(
            StatusCode::kInvalidArgument,
            Join("input ", i, " '", wanted.name, "' is missing, ", schema_.name, " requires it"));
      }
      if (!argument.desc.given()) continue;
      if (Status s = CheckKnown(argument); !s.ok()) return s;
    }
    const ArgumentSchema& first = schema_.inputs[0];
    const TensorDesc& desc = arguments_.at(first.role).desc;
    if (!IsFloat(desc.type)) {
      return Invalid(StatusCode::kInvalidType, Join(first.name, " has type ", NameOf(desc.type),
                                                    ", expected f32, bf16 or f16"));
    }
    arguments_.type = desc.type;
    arguments_.rank = static_cast<int>(desc.extents.size());
    if (arguments_.rank < kLeastRank || arguments_.rank > kMostRank) {
      return Invalid(StatusCode::kInvalidShape,
                     Join(first.name, " has rank ", arguments_.rank, ", expected 3, 4 or 5"));
    }
    return CheckInputs();
  }

  Status AddOutputs(std::span<const TensorDesc> outputs, int sample_axes) {
    if (Status s = CheckCount(schema_, "outputs", schema_.outputs, outputs.size()); !s.ok())
      return s;
    arguments_.output = schema_.outputs[0].role;
    for (size_t i = 0; i < schema_.outputs.size(); ++i) {
      const ArgumentSchema& wanted = schema_.outputs[i];
      Argument& argument = arguments_.at(wanted.role);
      argument.name = wanted.name;
      argument.is_output = true;
      if (i < outputs.size()) argument.desc = outputs[i];
      if (!argument.desc.given()) {
        if (!wanted.required) continue;
        argument.desc.type = arguments_.type;
      }
      const bool typed = !outputs.empty() && outputs[0].given();
      if (Status s = i == 0 ? CheckFirstOutput(argument) : CheckLaterOutput(argument, typed);
          !s.ok()) {
        return s;
      }
      if (argument.desc.extents.empty()) continue;  // to be inferred
      const int rank = sample_axes + (wanted.role == Role::kBias ? 1 : arguments_.rank);
      const std::string_view why = sample_axes > 0 ? ": N, then the axes of one gradient" : "";
      if (Status s = CheckRank(argument, rank, why); !s.ok()) return s;
    }
    return {};
  }

  Arguments Take() { return std::move(arguments_); }

 private:
  Status CheckFirstOutput(const Argument& output) const {
    const std::string_view first = schema_.inputs[0].name;
    if (!MayWiden(schema_, arguments_.type)) return CheckType(output, arguments_.type, first);
    if (output.desc.type == arguments_.type || output.desc.type == DataType::kF32) return {};
    return Invalid(StatusCode::kInvalidType,
                   Join(output.name, " has type ", NameOf(output.desc.type), ", expected ",
                        NameOf(arguments_.type), " as ", first, " has, or f32"));
  }

  // One type for all outputs. An output 0 without a type (`typed` is false) has that of the inputs,
  // whatever the others say: its memory may be as small as that.
  Status CheckLaterOutput(const Argument& output, bool typed) const {
    const std::string_view first = schema_.inputs[0].name;
    if (!MayWiden(schema_, arguments_.type)) return CheckType(output, arguments_.type, first);
    const Argument& output_0 = arguments_.at(arguments_.output);
    if (typed) return CheckType(output, output_0.desc.type, output_0.name);
    if (output.desc.type == arguments_.type) return {};
    return Invalid(StatusCode::kInvalidType,
                   Join(output.name, " has type ", NameOf(output.desc.type), ", expected ",
                        NameOf(arguments_.type), " as ", first, " has, or f32 beside a ",
                        output_0.name, " that is given as f32"));
  }

  Status CheckInputs() {
    for (const ArgumentSchema& wanted : schema_.inputs) {
      const Argument& argument = arguments_.at(wanted.role);
      if (!argument.desc.given()) continue;
      if (wanted.role == Role::kShape) {
        if (Status s = CheckShapeTensor(argument, arguments_.rank); !s.ok()) return s;
        continue;
      }
      if (Status s = CheckType(argument, arguments_.type, schema_.inputs[0].name); !s.ok())
        return s;
      const int rank = wanted.role == Role::kBias ? 1 : arguments_.rank;
      if (Status s = CheckRank(argument, rank); !s.ok()) return s;
    }
    return {};
  }

  const OperationSchema& schema_;
  Arguments arguments_;
};

}  // namespace

int64_t ShapeValueAt(const TensorDesc& tensor, const void* data, size_t index) {
  const int64_t at = static_cast<int64_t>(index);
  return tensor.type == DataType::kS32 ? LoadAt<int32_t>(data, at) : LoadAt<int64_t>(data, at);
}

Dims ReadShapeTensor(const TensorDesc& tensor, const void* data) {
  const bool integers = tensor.type == DataType::kS32 || tensor.type == DataType::kS64;
  if (!integers || tensor.extents.size() != 1 || tensor.extents[0] < 0 ||
      tensor.extents[0] > kMostRank || (!tensor.strides.empty() && tensor.strides != Dims{1})) {
    return {};
  }
  Dims values(static_cast<size_t>(tensor.extents[0]));
  for (size_t i = 0; i < values.size(); ++i) values[i] = ShapeValueAt(tensor, data, i);
  return values;
}

Result<Arguments> CollectArguments(const OperationSchema& schema,
                                   std::span<const TensorDesc> inputs,
                                   std::span<const TensorDesc> outputs, int sample_axes) {
  Collector collector(schema);
  if (Status status = collector.AddInputs(inputs); !status.ok()) return status;
  if (Status status = collector.AddOutputs(outputs, sample_axes); !status.ok()) return status;
  return collector.Take();
}

}  // namespace convgrad
