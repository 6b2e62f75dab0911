// The graph API for C++11 and later: inline, over dnnl_graph.h. A call that does not succeed throws
// dnnl::error with its status. Handles share what they name; copies are cheap.
#ifndef CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_HPP_
#define CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_HPP_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "oneapi/dnnl/dnnl_common.hpp"
#include "oneapi/dnnl/dnnl_graph.h"
#include "oneapi/dnnl/dnnl_graph_op.hpp"
#include "oneapi/dnnl/dnnl_graph_tensor.hpp"

namespace dnnl {
namespace graph {

class compiled_partition : public compiled_partition_handle {
 public:
  compiled_partition() = default;
  compiled_partition(dnnl_graph_compiled_partition_t compiled) { reset(compiled); }

  logical_tensor query_logical_tensor(size_t tid) const {
    dnnl_graph_logical_tensor_t found;
    error::wrap_c_api(dnnl_graph_compiled_partition_query_logical_tensor(get(), tid, &found),
                      "could not query a logical_tensor of a compiled_partition");
    return logical_tensor(found);
  }

  std::vector<std::pair<size_t, size_t>> get_inplace_ports() const {
    size_t num = 0;
    const dnnl_graph_inplace_pair_t* pairs = nullptr;
    error::wrap_c_api(dnnl_graph_compiled_partition_get_inplace_ports(get(), &num, &pairs),
                      "could not get the in-place ports of a compiled_partition");
    std::vector<std::pair<size_t, size_t>> ports;
    for (size_t i = 0; i < num; ++i) ports.emplace_back(pairs[i].input_id, pairs[i].output_id);
    return ports;
  }

  logical_tensor get_scratchpad_logical_tensor() const {
    dnnl_graph_logical_tensor_t own;
    error::wrap_c_api(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(get(), &own),
                      "could not get the scratchpad of a compiled_partition");
    return logical_tensor(own);
  }

  void execute(stream& astream, const std::vector<tensor>& inputs,
               const std::vector<tensor>& outputs, const tensor& scratchpad = tensor()) const {
    const std::vector<const_dnnl_graph_tensor_t> in = handles(inputs), out = handles(outputs);
    error::wrap_c_api(
        dnnl_graph_compiled_partition_execute_v2(
            get(), astream.get(), in.size(), const_cast<const_dnnl_graph_tensor_t*>(in.data()),
            out.size(), const_cast<const_dnnl_graph_tensor_t*>(out.data()), scratchpad.get(true)),
        "could not execute a compiled_partition");
  }

 private:
  static std::vector<const_dnnl_graph_tensor_t> handles(const std::vector<tensor>& tensors) {
    std::vector<const_dnnl_graph_tensor_t> all;
    all.reserve(tensors.size());
    for (const tensor& t : tensors) all.push_back(t.get());
    return all;
  }
};

class partition : public partition_handle {
 public:
  enum class policy {
    fusion = dnnl_graph_partition_policy_fusion,
    debug = dnnl_graph_partition_policy_debug,
  };

  partition() = default;
  partition(dnnl_graph_partition_t p) { reset(p); }
  partition(const op& aop, engine::kind ekind) {
    dnnl_graph_partition_t made = nullptr;
    error::wrap_c_api(dnnl_graph_partition_create_with_op(&made, aop.get(), convert_to_c(ekind)),
                      "could not create a partition of one op");
    reset(made);
  }

  size_t get_ops_num() const {
    size_t num = 0;
    error::wrap_c_api(dnnl_graph_partition_get_op_num(get(), &num),
                      "could not get the number of a partition's ops");
    return num;
  }
  std::vector<size_t> get_ops() const {
    std::vector<size_t> ids(get_ops_num());
    error::wrap_c_api(dnnl_graph_partition_get_ops(get(), ids.size(), ids.data()),
                      "could not get a partition's ops");
    return ids;
  }
  size_t get_id() const {
    size_t id = 0;
    error::wrap_c_api(dnnl_graph_partition_get_id(get(), &id), "could not get a partition's id");
    return id;
  }
  bool is_supported() const {
    uint8_t supported = 0;
    error::wrap_c_api(dnnl_graph_partition_is_supported(get(), &supported),
                      "could not tell whether a partition is supported");
    return supported != 0;
  }
  std::vector<logical_tensor> get_input_ports() const {
    return ports(&dnnl_graph_partition_get_input_ports_num, &dnnl_graph_partition_get_input_ports);
  }
  std::vector<logical_tensor> get_output_ports() const {
    return ports(&dnnl_graph_partition_get_output_ports_num,
                 &dnnl_graph_partition_get_output_ports);
  }
  engine::kind get_engine_kind() const {
    dnnl_engine_kind_t own = dnnl_any_engine;
    error::wrap_c_api(dnnl_graph_partition_get_engine_kind(get(), &own),
                      "could not get a partition's kind of engine");
    return static_cast<engine::kind>(own);
  }

  compiled_partition compile(const std::vector<logical_tensor>& inputs,
                             const std::vector<logical_tensor>& outputs, const engine& e) const {
    std::vector<const dnnl_graph_logical_tensor_t*> in = pointers(inputs), out = pointers(outputs);
    dnnl_graph_compiled_partition_t made = nullptr;
    error::wrap_c_api(dnnl_graph_compiled_partition_create(&made, get()),
                      "could not create a compiled_partition");
    compiled_partition compiled(made);
    error::wrap_c_api(dnnl_graph_partition_compile(get(), made, in.size(), in.data(), out.size(),
                                                   out.data(), e.get()),
                      "could not compile a partition");
    return compiled;
  }

 private:
  static std::vector<const dnnl_graph_logical_tensor_t*> pointers(
      const std::vector<logical_tensor>& lts) {
    std::vector<const dnnl_graph_logical_tensor_t*> all;
    all.reserve(lts.size());
    for (const logical_tensor& lt : lts) all.push_back(&lt.data);
    return all;
  }
  std::vector<logical_tensor> ports(dnnl_status_t (*count)(const_dnnl_graph_partition_t, size_t*),
                                    dnnl_status_t (*read)(const_dnnl_graph_partition_t, size_t,
                                                          dnnl_graph_logical_tensor_t*)) const {
    size_t num = 0;
    error::wrap_c_api(count(get(), &num), "could not get the number of a partition's ports");
    std::vector<dnnl_graph_logical_tensor_t> lts(num);
    if (num > 0) {
      error::wrap_c_api(read(get(), num, lts.data()), "could not get a partition's ports");
    }
    return std::vector<logical_tensor>(lts.begin(), lts.end());
  }
};

class graph : public graph_handle {
 public:
  graph(engine::kind engine_kind) {
    dnnl_graph_graph_t made = nullptr;
    error::wrap_c_api(dnnl_graph_graph_create(&made, convert_to_c(engine_kind)),
                      "could not create a graph");
    reset(made);
  }
  graph(engine::kind engine_kind, fpmath_mode mode) {
    dnnl_graph_graph_t made = nullptr;
    error::wrap_c_api(dnnl_graph_graph_create_with_fpmath_mode(&made, convert_to_c(engine_kind),
                                                               convert_to_c(mode)),
                      "could not create a graph with an fpmath mode");
    reset(made);
  }

  void set_fpmath_mode(fpmath_mode mode, bool apply_to_int = false) {
    error::wrap_c_api(
        dnnl_graph_graph_set_fpmath_mode(get(), convert_to_c(mode), apply_to_int ? 1 : 0),
        "could not set the fpmath mode of a graph");
  }
  void get_fpmath_mode(fpmath_mode& mode, bool& apply_to_int) const {
    dnnl_fpmath_mode_t own = dnnl_fpmath_mode_strict;
    int to_int = 0;
    error::wrap_c_api(dnnl_graph_graph_get_fpmath_mode(get(), &own, &to_int),
                      "could not get the fpmath mode of a graph");
    mode = static_cast<fpmath_mode>(own);
    apply_to_int = to_int != 0;
  }

  status add_op(const op& aop, bool allow_exception = true) {
    const dnnl_status_t code = dnnl_graph_add_op(get(), aop.get());
    if (allow_exception) error::wrap_c_api(code, "could not add an op to a graph");
    return static_cast<status>(code);
  }
  void finalize() {
    error::wrap_c_api(dnnl_graph_graph_finalize(get()), "could not finalize a graph");
  }
  bool is_finalized() const {
    uint8_t finalized = 0;
    error::wrap_c_api(dnnl_graph_graph_is_finalized(get(), &finalized),
                      "could not tell whether a graph is finalized");
    return finalized != 0;
  }

  std::vector<partition> get_partitions(partition::policy policy = partition::policy::fusion) {
    error::wrap_c_api(
        dnnl_graph_graph_filter(get(), static_cast<dnnl_graph_partition_policy_t>(policy)),
        "could not make a graph's partitions");
    size_t num = 0;
    error::wrap_c_api(dnnl_graph_graph_get_partition_num(get(), &num),
                      "could not get the number of a graph's partitions");
    std::vector<partition> all;
    if (num == 0) return all;
    std::vector<dnnl_graph_partition_t> made(num);
    all.reserve(num);
    error::wrap_c_api(dnnl_graph_graph_get_partitions(get(), num, made.data()),
                      "could not get a graph's partitions");
    for (dnnl_graph_partition_t p : made) all.emplace_back(p);
    return all;
  }
};

inline int get_compiled_partition_cache_capacity() {
  int capacity = 0;
  error::wrap_c_api(dnnl_graph_get_compiled_partition_cache_capacity(&capacity),
                    "could not get the capacity of the cache of compiled partitions");
  return capacity;
}
inline void set_compiled_partition_cache_capacity(int capacity) {
  error::wrap_c_api(dnnl_graph_set_compiled_partition_cache_capacity(capacity),
                    "could not set the capacity of the cache of compiled partitions");
}
inline int get_constant_tensor_cache() {
  int flag = 0;
  error::wrap_c_api(dnnl_graph_get_constant_tensor_cache(&flag),
                    "could not tell whether constant tensors are cached");
  return flag;
}
inline void set_constant_tensor_cache(int flag) {
  error::wrap_c_api(dnnl_graph_set_constant_tensor_cache(flag),
                    "could not set whether constant tensors are cached");
}
inline size_t get_constant_tensor_cache_capacity(engine::kind kind) {
  size_t size = 0;
  error::wrap_c_api(dnnl_graph_get_constant_tensor_cache_capacity(convert_to_c(kind), &size),
                    "could not get the capacity of the cache of constant tensors");
  return size;
}
inline void set_constant_tensor_cache_capacity(engine::kind kind, size_t size) {
  error::wrap_c_api(dnnl_graph_set_constant_tensor_cache_capacity(convert_to_c(kind), size),
                    "could not set the capacity of the cache of constant tensors");
}

enum class graph_dump_mode : unsigned {
  none = dnnl_graph_dump_mode_none,
  subgraph = dnnl_graph_dump_mode_subgraph,
  graph = dnnl_graph_dump_mode_graph,
};
DNNL_DEFINE_BITMASK_OPS(graph_dump_mode)

inline status set_dump_mode(graph_dump_mode modes) {
  return static_cast<status>(
      dnnl_graph_set_dump_mode(static_cast<dnnl_graph_dump_mode_t>(static_cast<unsigned>(modes))));
}

}  // namespace graph
}  // namespace dnnl

#endif  // CONVGRAD_ONEAPI_DNNL_DNNL_GRAPH_HPP_
