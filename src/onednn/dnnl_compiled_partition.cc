// Compiled partitions: what was inferred, the scratchpad, execution. Nothing here changes a
// compiled partition, so that any number of threads may execute it.
#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "onednn/dnnl_logical_tensor.h"
#include "onednn/dnnl_objects.h"
#include "onednn/dnnl_overlap.h"

namespace convgrad::onednn {
namespace {

constexpr size_t kMostTensors = 3;  // of one side of an operation

// A list of none may be a null pointer, as an empty std::vector has it.
bool HasNullList(size_t count, const const_dnnl_graph_tensor_t* tensors) {
  return count > 0 && tensors == nullptr;
}

dnnl_status_t RefuseUncompiled() {
  return Refuse(dnnl_invalid_arguments, "the partition was not compiled");
}

dnnl_status_t RefuseTensor(const char* what, size_t place, const std::string& why) {
  return Refuse(dnnl_invalid_arguments,
                std::string(what) + " tensor " + std::to_string(place) + " " + why);
}

// The pointers that the plan takes, of tensors in the order of the lists that were compiled. The
// elements of a tensor with known strides reach at least as far as what was compiled; of any other
// the caller knows that they do.
dnnl_status_t CollectPointers(const char* what, const std::vector<size_t>& places,
                              const std::vector<dnnl_graph_logical_tensor_t>& compiled,
                              const_dnnl_graph_tensor_t* tensors, size_t count, void** pointers) {
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t place = places[i];
    if (place >= count || tensors[place] == nullptr) {
      return RefuseTensor(what, place,
                          "is missing: " + std::to_string(count) + " are given, " +
                              std::to_string(compiled.size()) + " were compiled");
    }
    const size_t bytes = SpanBytes(tensors[place]->logical_tensor);
    const size_t needed = SpanBytes(compiled[place]);
    if (bytes != kUnknownBytes && bytes < needed) {
      return RefuseTensor(what, place,
                          "has " + std::to_string(bytes) + " bytes, what was compiled needs " +
                              std::to_string(needed));
    }
    pointers[i] = tensors[place]->data;
  }
  return dnnl_success;
}

// The caller's scratchpad, or memory for this call.
dnnl_status_t FindWorkspace(const Compiled& compiled, const_dnnl_graph_tensor_t scratchpad,
                            EngineMemory* memory, void** workspace) {
  const size_t bytes = static_cast<size_t>(compiled.plan.workspace_bytes());
  if (bytes == 0) return dnnl_success;
  if (scratchpad == nullptr) {
    *memory = EngineMemory(compiled.engine, bytes);
    *workspace = memory->data();
    if (*workspace != nullptr) return dnnl_success;
    return Refuse(dnnl_out_of_memory,
                  "the allocator has no " + std::to_string(bytes) + " bytes for the scratchpad");
  }
  *workspace = scratchpad->data;
  if (*workspace == nullptr) return Refuse(dnnl_invalid_arguments, "the scratchpad has no data");
  const size_t given = SpanBytes(scratchpad->logical_tensor);
  if (given == kUnknownBytes) {
    return Refuse(dnnl_invalid_arguments,
                  "the scratchpad " + WhyNoSize(scratchpad->logical_tensor));
  }
  if (given >= bytes) return dnnl_success;
  return Refuse(dnnl_invalid_arguments, "the scratchpad has " + std::to_string(given) +
                                            " bytes, expected " + std::to_string(bytes));
}

// The output shares memory with no input, and the caller's scratchpad with neither.
dnnl_status_t CheckShared(const Compiled& compiled, void* const* inputs, void* const* outputs,
                          const void* own_scratchpad) {
  const size_t place = compiled.output_places[0];
  const Region output(compiled.outputs[place], outputs[0]);
  const Region scratchpad(own_scratchpad, static_cast<size_t>(compiled.plan.workspace_bytes()));
  if (scratchpad.Shares(output))
    return RefuseTensor("output", place, "shares memory with the scratchpad");
  for (size_t i = 0; i < compiled.input_places.size(); ++i) {
    const size_t own = compiled.input_places[i];
    const Region input(compiled.inputs[own], inputs[i]);
    if (output.Shares(input)) {
      return RefuseTensor("output", place,
                          "shares memory with input tensor " + std::to_string(own));
    }
    if (scratchpad.Shares(input))
      return RefuseTensor("input", own, "shares memory with the scratchpad");
  }
  return dnnl_success;
}

dnnl_status_t Execute(const Compiled& compiled, size_t num_inputs,
                      const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
                      const_dnnl_graph_tensor_t* outputs, const_dnnl_graph_tensor_t scratchpad) {
  std::array<void*, kMostTensors> input_data{}, output_data{};
  if (auto s = CollectPointers("input", compiled.input_places, compiled.inputs, inputs, num_inputs,
                               input_data.data());
      s != dnnl_success) {
    return s;
  }
  if (auto s = CollectPointers("output", compiled.output_places, compiled.outputs, outputs,
                               num_outputs, output_data.data());
      s != dnnl_success) {
    return s;
  }
  EngineMemory memory;
  void* workspace = nullptr;
  if (auto s = FindWorkspace(compiled, scratchpad, &memory, &workspace); s != dnnl_success) {
    return s;
  }
  const void* own_scratchpad = scratchpad == nullptr ? nullptr : workspace;
  if (auto s = CheckShared(compiled, input_data.data(), output_data.data(), own_scratchpad);
      s != dnnl_success) {
    return s;
  }
  const std::span<const void* const> in(input_data.data(), compiled.input_places.size());
  const std::span<void* const> out(output_data.data(), compiled.output_places.size());
  const Status status = compiled.plan.Run(in, out, workspace);
  return status.ok() ? dnnl_success : Refuse(status);
}

}  // namespace
}  // namespace convgrad::onednn

using convgrad::onednn::AnyNull;
using convgrad::onednn::HasNullList;
using convgrad::onednn::Refuse;
using convgrad::onednn::RefuseException;
using convgrad::onednn::RefuseNull;
using convgrad::onednn::RefuseUncompiled;

dnnl_status_t dnnl_graph_compiled_partition_create(
    dnnl_graph_compiled_partition_t* compiled_partition, dnnl_graph_partition_t partition) try {
  if (AnyNull(compiled_partition, partition)) return RefuseNull(__func__);
  *compiled_partition = new dnnl_graph_compiled_partition();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_compiled_partition_execute(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_stream_t stream,
    size_t num_inputs, const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
    const_dnnl_graph_tensor_t* outputs) {
  if (AnyNull(compiled_partition, stream) || HasNullList(num_inputs, inputs) ||
      HasNullList(num_outputs, outputs)) {
    return RefuseNull(__func__);
  }
  return dnnl_graph_compiled_partition_execute_v2(compiled_partition, stream, num_inputs, inputs,
                                                  num_outputs, outputs, nullptr);
}

dnnl_status_t dnnl_graph_compiled_partition_execute_v2(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_stream_t stream,
    size_t num_inputs, const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
    const_dnnl_graph_tensor_t* outputs, const_dnnl_graph_tensor_t scratchpad) try {
  if (AnyNull(compiled_partition, stream) || HasNullList(num_inputs, inputs) ||
      HasNullList(num_outputs, outputs)) {
    return RefuseNull(__func__);
  }
  if (compiled_partition->compiled == nullptr) return RefuseUncompiled();
  const convgrad::onednn::Compiled& compiled = *compiled_partition->compiled;
  if (stream->engine.get()->kind != compiled.engine.get()->kind) {
    return Refuse(dnnl_invalid_arguments, "the stream's engine is of another kind");
  }
  return convgrad::onednn::Execute(compiled, num_inputs, inputs, num_outputs, outputs, scratchpad);
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_compiled_partition_destroy(
    dnnl_graph_compiled_partition_t compiled_partition) {
  delete compiled_partition;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_compiled_partition_query_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, size_t tid,
    dnnl_graph_logical_tensor_t* lt) try {
  if (AnyNull(compiled_partition, lt)) return RefuseNull(__func__);
  if (compiled_partition->compiled == nullptr) return RefuseUncompiled();
  const convgrad::onednn::Compiled& compiled = *compiled_partition->compiled;
  for (const auto* tensors : {&compiled.outputs, &compiled.inputs}) {
    const auto found = std::ranges::find(*tensors, tid, &dnnl_graph_logical_tensor_t::id);
    if (found == tensors->end()) continue;
    *lt = *found;
    return dnnl_success;
  }
  *lt = convgrad::onednn::StructOf({});
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_compiled_partition_get_inplace_ports(
    const_dnnl_graph_compiled_partition_t compiled_partition, size_t* num_inplace_pairs,
    const dnnl_graph_inplace_pair_t** inplace_pairs) try {
  if (AnyNull(compiled_partition, num_inplace_pairs, inplace_pairs)) return RefuseNull(__func__);
  if (compiled_partition->compiled == nullptr) return RefuseUncompiled();
  *num_inplace_pairs = 0;
  *inplace_pairs = nullptr;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_graph_logical_tensor_t* lt) try {
  if (AnyNull(compiled_partition, lt)) return RefuseNull(__func__);
  if (compiled_partition->compiled == nullptr) return RefuseUncompiled();
  const dnnl_dims_t bytes = {compiled_partition->compiled->plan.workspace_bytes()};
  return dnnl_graph_logical_tensor_init_with_dims(lt, std::numeric_limits<size_t>::max(), dnnl_u8,
                                                  1, bytes, dnnl_graph_layout_type_strided,
                                                  dnnl_graph_tensor_property_variable);
} catch (...) {
  return RefuseException();
}
