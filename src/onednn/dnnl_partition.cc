// Partitions: one operation each, and its compilation to a plan.
#include <algorithm>
#include <atomic>
#include <optional>

#include "oneapi/dnnl/dnnl_debug.h"
#include "onednn/dnnl_dump.h"
#include "onednn/dnnl_logical_tensor.h"
#include "onednn/dnnl_objects.h"
#include "onednn/graph_operation.h"

namespace convgrad::onednn {
namespace {

std::string Tensor(size_t id) { return "tensor " + std::to_string(id); }

// The caller's description of each of the operation's tensors, and its place in the caller's list.
dnnl_status_t MatchById(const std::vector<LogicalTensor>& wanted, const Structs& given,
                        std::vector<size_t>* places, std::vector<LogicalTensor>* matched) {
  for (const LogicalTensor& tensor : wanted) {
    const auto found = std::ranges::find(given, tensor.id, &dnnl_graph_logical_tensor_t::id);
    if (found == given.end()) {
      return Refuse(dnnl_invalid_arguments, Tensor(tensor.id) + " of the op is not given");
    }
    std::optional<LogicalTensor> model = ModelOf(*found);
    if (!model) return Refuse(dnnl_invalid_arguments, Tensor(tensor.id) + " has more than 12 axes");
    if (model->type == ElementType::kUndef) {
      return Refuse(dnnl_invalid_arguments, Tensor(tensor.id) + " has no type");
    }
    if (model->layout == LayoutType::kUndef) {
      return Refuse(dnnl_invalid_arguments, Tensor(tensor.id) + " has no layout");
    }
    if (IsTooLarge(*found)) {
      return Refuse(dnnl_invalid_shape, Tensor(tensor.id) + " has more than 2^63 - 1 bytes");
    }
    places->push_back(static_cast<size_t>(found - given.begin()));
    matched->push_back(*std::move(model));
  }
  return dnnl_success;
}

dnnl_status_t CheckInputsKnown(const std::vector<LogicalTensor>& inputs) {
  const auto is_negative = [](int64_t number) { return number < 0; };
  for (const LogicalTensor& tensor : inputs) {
    if (!tensor.extents || std::ranges::any_of(*tensor.extents, is_negative)) {
      return Refuse(dnnl_invalid_arguments,
                    Tensor(tensor.id) + " has unknown extents, an input's must be known");
    }
    if (std::ranges::any_of(tensor.strides, is_negative)) {
      return Refuse(
          dnnl_invalid_arguments,
          Tensor(tensor.id) + " has unknown (negative) strides, an input's must be known");
    }
  }
  return dnnl_success;
}

// Whether a list has neither a number for each axis nor another legal length: none, for zeros, or
// 12, as serialized graphs have them.
bool HasListOfWrongLength(const GraphOp& op, size_t rank) {
  for (const auto& [name, value] : op.attributes) {
    const auto* list = std::get_if<std::vector<int64_t>>(&value);
    if (list == nullptr || rank < 3) continue;
    const bool is_shape = name == "dst_shape" || name == "weights_shape";
    const bool is_window = name == "strides" || name == "dilations";
    const size_t length = list->size();
    if (length == (is_shape ? rank : rank - 2) || length == DNNL_MAX_NDIMS) continue;
    if (length != 0 || is_window) return true;
  }
  return false;
}

// Of a plan that was refused. The length of a list is a matter of the tensors' rank, and so of
// shapes.
dnnl_status_t RefusePlan(const Status& status, const GraphOp& op, size_t rank) {
  const dnnl_status_t refused = Refuse(status);
  if (refused != dnnl_invalid_arguments || !HasListOfWrongLength(op, rank)) return refused;
  return dnnl_invalid_shape;
}

// Plans may give f32 gradients of 16-bit data; the graph API has one type for all. Of a third
// input, which may be a shape, the plan knows what its type must be.
dnnl_status_t CheckTypes(const std::vector<LogicalTensor>& inputs,
                         const std::vector<LogicalTensor>& outputs) {
  const LogicalTensor& first = inputs[0];
  for (const LogicalTensor* tensor : {&inputs[1], &outputs[0]}) {
    if (tensor->type == first.type) continue;
    return Refuse(dnnl_invalid_data_type, Tensor(tensor->id) + " has type " +
                                              std::string(NameOf(tensor->type)) + ", expected " +
                                              std::string(NameOf(first.type)) + " as " +
                                              Tensor(first.id) + " has");
  }
  return dnnl_success;
}

dnnl_status_t Compile(const GraphOp& op, Structs given_inputs, Structs given_outputs,
                      dnnl_engine_t engine, std::shared_ptr<const Compiled>* result) {
  std::vector<size_t> input_places, output_places;
  std::vector<LogicalTensor> inputs, outputs;
  if (auto s = MatchById(op.inputs, given_inputs, &input_places, &inputs); s != dnnl_success) {
    return s;
  }
  if (auto s = MatchById(op.outputs, given_outputs, &output_places, &outputs); s != dnnl_success) {
    return s;
  }
  if (auto s = CheckInputsKnown(inputs); s != dnnl_success) return s;
  if (auto s = CheckTypes(inputs, outputs); s != dnnl_success) return s;
  const Result<Operation> operation = OperationOf(op);
  if (!operation.ok()) return Refuse(operation.status());
  const Result<std::vector<TensorDesc>> input_descs = DescsOf(inputs);
  if (!input_descs.ok()) return Refuse(input_descs.status());
  const Result<std::vector<TensorDesc>> output_descs = DescsOf(outputs);
  if (!output_descs.ok()) return Refuse(output_descs.status());
  Result<Plan> plan = Plan::Make(*operation, *input_descs, *output_descs);
  if (!plan.ok()) return RefusePlan(plan.status(), op, inputs[0].extents->size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    given_inputs[input_places[i]] = StructOf(Completed(inputs[i], (*input_descs)[i]));
  }
  given_outputs[output_places[0]] = StructOf(Completed(outputs[0], plan->output(0)));
  *result = std::make_shared<const Compiled>(
      Compiled{EngineUse(engine), *std::move(plan), std::move(input_places),
               std::move(output_places), std::move(given_inputs), std::move(given_outputs)});
  return dnnl_success;
}

// Nothing where the list or one of its entries is null.
std::optional<Structs> Copied(const dnnl_graph_logical_tensor_t** tensors, size_t count) {
  if (tensors == nullptr && count > 0) return std::nullopt;
  Structs copies;
  for (size_t i = 0; i < count; ++i) {
    if (tensors[i] == nullptr) return std::nullopt;
    copies.push_back(*tensors[i]);
  }
  return copies;
}

dnnl_status_t ReadPorts(const std::vector<LogicalTensor>& tensors, size_t num,
                        dnnl_graph_logical_tensor_t* ports) {
  if (num != tensors.size()) {
    return Refuse(dnnl_invalid_arguments, "num is " + std::to_string(num) + ", the partition has " +
                                              std::to_string(tensors.size()) + " such ports");
  }
  std::ranges::transform(tensors, ports, StructOf);
  return dnnl_success;
}

}  // namespace

size_t NextId() {
  static std::atomic<size_t> last{100000};
  return last.fetch_add(1) + 1;
}

}  // namespace convgrad::onednn

using convgrad::onednn::AnyNull;
using convgrad::onednn::Refuse;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseNull;

dnnl_status_t dnnl_graph_partition_create_with_op(dnnl_graph_partition_t* partition,
                                                  const_dnnl_graph_op_t op,
                                                  dnnl_engine_kind_t ekind) try {
  if (AnyNull(partition, op)) return RefuseNull(__func__);
  if (auto s = convgrad::onednn::CheckKind(ekind); s != dnnl_success) return s;
  if (auto s = convgrad::onednn::VerifyOp(op->added); s != dnnl_success) return s;
  const auto added = std::make_shared<const convgrad::onednn::AddedOp>(op->added);
  std::vector<size_t> order;
  if (auto s = convgrad::onednn::OrderOps({added}, &order); s != dnnl_success) return s;
  *partition = new dnnl_graph_partition{added, ekind, convgrad::onednn::NextId()};
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_partition_destroy(dnnl_graph_partition_t partition) {
  delete partition;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_op_num(const_dnnl_graph_partition_t partition, size_t* num) {
  if (AnyNull(partition, num)) return RefuseNull(__func__);
  *num = 1;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_ops(dnnl_graph_partition_t partition, size_t num,
                                           size_t* ids) try {
  if (AnyNull(partition, ids)) return RefuseNull(__func__);
  if (num != 1) {
    return Refuse(dnnl_invalid_arguments,
                  "num is " + std::to_string(num) + ", the partition has 1 op");
  }
  *ids = partition->added->op.id;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_partition_get_id(const_dnnl_graph_partition_t partition, size_t* id) {
  if (AnyNull(partition, id)) return RefuseNull(__func__);
  *id = partition->id;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_compile(
    dnnl_graph_partition_t partition, dnnl_graph_compiled_partition_t compiled_partition,
    size_t in_num, const dnnl_graph_logical_tensor_t** inputs, size_t out_num,
    const dnnl_graph_logical_tensor_t** outputs, dnnl_engine_t engine) try {
  if (AnyNull(partition, compiled_partition, engine)) return RefuseNull(__func__);
  if (!IsSupported(*partition->added, partition->engine_kind)) {
    return Refuse(dnnl_invalid_arguments,
                  "the partition is not supported: " + partition->added->op.kind + " on " +
                      dnnl_engine_kind2str(partition->engine_kind) +
                      ", expected an operation of the convolution family on cpu");
  }
  if (engine->kind != partition->engine_kind) {
    return Refuse(dnnl_invalid_arguments, "the engine is of another kind than the partition");
  }
  const auto given_inputs = convgrad::onednn::Copied(inputs, in_num);
  const auto given_outputs = convgrad::onednn::Copied(outputs, out_num);
  if (!given_inputs || !given_outputs) return RefuseNull(__func__);
  std::shared_ptr<const convgrad::onednn::Compiled>& compiled = compiled_partition->compiled;
  const dnnl_status_t status = convgrad::onednn::Compile(partition->added->op, *given_inputs,
                                                         *given_outputs, engine, &compiled);
  if (status == dnnl_success) {
    convgrad::onednn::DumpSubgraph(*partition, compiled->inputs, compiled->outputs);
  } else {
    convgrad::onednn::DumpSubgraph(*partition, *given_inputs, *given_outputs);
  }
  return status;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_partition_get_input_ports_num(const_dnnl_graph_partition_t partition,
                                                       size_t* num) {
  if (AnyNull(partition, num)) return RefuseNull(__func__);
  *num = partition->added->op.inputs.size();
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_input_ports(const_dnnl_graph_partition_t partition,
                                                   size_t num,
                                                   dnnl_graph_logical_tensor_t* inputs) try {
  if (AnyNull(partition, inputs)) return RefuseNull(__func__);
  return convgrad::onednn::ReadPorts(partition->added->op.inputs, num, inputs);
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_partition_get_output_ports_num(const_dnnl_graph_partition_t partition,
                                                        size_t* num) {
  if (AnyNull(partition, num)) return RefuseNull(__func__);
  *num = partition->added->op.outputs.size();
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_output_ports(const_dnnl_graph_partition_t partition,
                                                    size_t num,
                                                    dnnl_graph_logical_tensor_t* outputs) try {
  if (AnyNull(partition, outputs)) return RefuseNull(__func__);
  return convgrad::onednn::ReadPorts(partition->added->op.outputs, num, outputs);
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_partition_is_supported(const_dnnl_graph_partition_t partition,
                                                uint8_t* is_supported) {
  if (AnyNull(partition, is_supported)) return RefuseNull(__func__);
  *is_supported = IsSupported(*partition->added, partition->engine_kind) ? 1 : 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_partition_get_engine_kind(const_dnnl_graph_partition_t partition,
                                                   dnnl_engine_kind_t* kind) {
  if (AnyNull(partition, kind)) return RefuseNull(__func__);
  *kind = partition->engine_kind;
  return dnnl_success;
}
