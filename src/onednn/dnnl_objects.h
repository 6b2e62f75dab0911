// The objects behind the handles of the dnnl::graph API (include/onednn/oneapi/dnnl/), and how
// calls fail. Engines count their users, partitions share operations: whatever a caller destroys
// first, what is left keeps what it needs. On top of graph_model.h and the public headers.
#ifndef CONVGRAD_ONEDNN_DNNL_OBJECTS_H_
#define CONVGRAD_ONEDNN_DNNL_OBJECTS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convgrad/plan.h"
#include "convgrad/status.h"
#include "oneapi/dnnl/dnnl_graph.h"
#include "onednn/graph_model.h"

namespace convgrad::onednn {

// The status, with a sentence for convgrad_dnnl_last_error().
dnnl_status_t Refuse(dnnl_status_t status, std::string_view why) noexcept;
dnnl_status_t Refuse(const Status& status) noexcept;
dnnl_status_t RefuseNull(const char* function,
                         dnnl_status_t status = dnnl_invalid_arguments) noexcept;

// For a number that is none of its enumeration's.
dnnl_status_t RefuseValue(const char* what, int64_t value);
dnnl_status_t CheckMode(dnnl_fpmath_mode_t mode);
dnnl_status_t CheckKind(dnnl_engine_kind_t kind);  // any, cpu or gpu

// A variable, with the prefix ONEDNN_ or DNNL_ before its name, in lower case; empty where it is
// not set.
std::string Environment(const std::string& name);

// For a handler of everything: the status of the exception that is being handled.
dnnl_status_t RefuseException() noexcept;

template <class... Pointers>
bool AnyNull(Pointers... pointers) {
  return ((pointers == nullptr) || ...);
}

// Where the memory of tensors and scratchpads comes from.
struct AllocatorFunctions {
  dnnl_graph_host_allocate_f allocate;
  dnnl_graph_host_deallocate_f deallocate;
};
AllocatorFunctions DefaultAllocator();

constexpr size_t kMemoryAlignment = 64;  // bytes: a cache line, the widest vector

// A use of an engine: it is deleted with its last one.
class EngineUse {
 public:
  EngineUse() = default;
  explicit EngineUse(dnnl_engine_t engine);
  EngineUse(const EngineUse& other) : EngineUse(other.engine_) {}
  EngineUse(EngineUse&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}
  EngineUse& operator=(EngineUse other) noexcept {
    std::swap(engine_, other.engine_);
    return *this;
  }
  ~EngineUse();

  dnnl_engine_t get() const { return engine_; }

 private:
  dnnl_engine_t engine_ = nullptr;
};

// Memory of an engine's allocator, of `bytes` > 0; null where the allocator gives none.
class EngineMemory {
 public:
  EngineMemory() = default;
  EngineMemory(const EngineUse& engine, size_t bytes);
  EngineMemory(EngineMemory&& other) noexcept
      : engine_(std::move(other.engine_)), data_(std::exchange(other.data_, nullptr)) {}
  EngineMemory& operator=(EngineMemory other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~EngineMemory();

  void* data() const { return data_; }

 private:
  EngineUse engine_;
  void* data_ = nullptr;
};

using Structs = std::vector<dnnl_graph_logical_tensor_t>;

// An operation as it was added to a graph; partitions share it.
struct AddedOp {
  GraphOp op;
  dnnl_graph_op_kind_t kind = dnnl_graph_op_last_symbol;
};

// A partition that was compiled for concrete tensors: immutable, shared by executions.
struct Compiled {
  EngineUse engine;
  Plan plan;
  // Of each of the operation's inputs and outputs, its place in the lists that were compiled.
  std::vector<size_t> input_places;
  std::vector<size_t> output_places;
  Structs inputs;  // the lists, complete
  Structs outputs;
};

// Whether partitions of this operation can be compiled.
bool IsSupported(const AddedOp& added, dnnl_engine_kind_t engine_kind);

// The alternatives of GraphValue, in order.
enum class ValueKind { kF32 = 0, kF32List, kS64, kS64List, kBool, kString };

// The kind of value that an attribute has in every operation; nothing for a name that is none.
std::optional<ValueKind> ValueKindOf(std::string_view attribute);

// The operation against the rules of its kind: the status of dnnl_graph_add_op.
dnnl_status_t VerifyOp(const AddedOp& added);

// Tensors of one id are equal, each has one producer, no operation needs its own result. `order`:
// places of operations, each after those whose outputs it has as inputs, else as they are.
dnnl_status_t OrderOps(const std::vector<std::shared_ptr<const AddedOp>>& ops,
                       std::vector<size_t>* order);

// Of graphs and partitions: 100001, 100002, ...
size_t NextId();

}  // namespace convgrad::onednn

struct dnnl_engine {
  dnnl_engine_kind_t kind = dnnl_cpu;
  convgrad::onednn::AllocatorFunctions allocator = convgrad::onednn::DefaultAllocator();
  std::atomic<size_t> uses{0};
};

struct dnnl_stream {
  convgrad::onednn::EngineUse engine;
};

struct dnnl_graph_allocator {
  convgrad::onednn::AllocatorFunctions functions;
};

struct dnnl_graph_tensor {
  dnnl_graph_logical_tensor_t logical_tensor;
  convgrad::onednn::EngineUse engine;
  void* data = nullptr;
  convgrad::onednn::EngineMemory own_memory{};
  int64_t scalar = 0;  // the bytes of a host scalar

  bool is_scalar() const {
    return logical_tensor.property == dnnl_graph_tensor_property_host_scalar;
  }
};

struct dnnl_graph_op {
  convgrad::onednn::AddedOp added{};
};

struct dnnl_graph_partition {
  std::shared_ptr<const convgrad::onednn::AddedOp> added;
  dnnl_engine_kind_t engine_kind;
  size_t id;
  dnnl_fpmath_mode_t fpmath_mode = dnnl_fpmath_mode_strict;
  bool fpmath_applies_to_int = false;
};

struct dnnl_graph_compiled_partition {
  std::shared_ptr<const convgrad::onednn::Compiled> compiled;  // null until it is compiled
};

struct dnnl_graph_graph {
  size_t id;  // of its files, where graphs are dumped
  dnnl_engine_kind_t engine_kind;
  dnnl_fpmath_mode_t fpmath_mode;
  bool fpmath_applies_to_int = false;
  bool finalized = false;
  std::vector<std::shared_ptr<const convgrad::onednn::AddedOp>> ops{};
  std::vector<size_t> order{};  // of a finalized graph: places in ops, in topological order
  std::vector<dnnl_graph_partition> partitions{};
};

#endif  // CONVGRAD_ONEDNN_DNNL_OBJECTS_H_
