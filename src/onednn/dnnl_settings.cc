// Settings of the whole library: kept and given back. None changes what convgrad computes, for its
// arithmetic is strict, and it has no caches and prints nothing; graphs are dumped in dnnl_dump.h.
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <string>

#include "convgrad/version.h"
#include "oneapi/dnnl/dnnl.h"
#include "onednn/dnnl_dump.h"
#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {
namespace {

struct ModeName {
  const char* name;
  dnnl_fpmath_mode_t mode;
};
constexpr ModeName kModes[] = {{"strict", dnnl_fpmath_mode_strict},
                               {"bf16", dnnl_fpmath_mode_bf16},
                               {"f16", dnnl_fpmath_mode_f16},
                               {"any", dnnl_fpmath_mode_any},
                               {"tf32", dnnl_fpmath_mode_tf32}};

dnnl_fpmath_mode_t FirstMode() {
  const std::string text = Environment("DEFAULT_FPMATH_MODE");
  for (const ModeName& row : kModes) {
    if (text == row.name) return row.mode;
  }
  return dnnl_fpmath_mode_strict;
}

int FirstCapacity(const char* variable) {
  constexpr int kDefault = 1024;
  const std::string text = Environment(variable);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  const bool number = !text.empty() && *end == '\0';
  return number && value >= 0 && value <= std::numeric_limits<int>::max() ? static_cast<int>(value)
                                                                          : kDefault;
}

// Read from the environment when they are first used.
std::atomic<dnnl_fpmath_mode_t>& DefaultMode() {
  static std::atomic<dnnl_fpmath_mode_t> mode{FirstMode()};
  return mode;
}
std::atomic<int>& PartitionCacheCapacity() {
  static std::atomic<int> capacity{FirstCapacity("GRAPH_COMPILED_PARTITION_CACHE_CAPACITY")};
  return capacity;
}
std::atomic<int>& PrimitiveCacheCapacity() {
  static std::atomic<int> capacity{FirstCapacity("PRIMITIVE_CACHE_CAPACITY")};
  return capacity;
}

// Megabytes, by kind of engine. oneDNN counts bytes, and has this limit.
constexpr size_t kMostMegabytes = std::numeric_limits<size_t>::max() / (1024 * 1024);
std::array<std::atomic<size_t>, 3> constant_cache_megabytes{};

bool IsDevice(dnnl_engine_kind_t kind) { return kind == dnnl_cpu || kind == dnnl_gpu; }

}  // namespace

std::string Environment(const std::string& name) {
  for (const char* prefix : {"ONEDNN_", "DNNL_"}) {
    const char* const value = std::getenv((prefix + name).c_str());
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    for (char& c : text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
  }
  return {};
}

dnnl_status_t RefuseValue(const char* what, int64_t value) {
  return Refuse(dnnl_invalid_arguments, std::string(what) + " is " + std::to_string(value) +
                                            ", which is not a legal value");
}

dnnl_status_t CheckMode(dnnl_fpmath_mode_t mode) {
  const bool legal = mode >= dnnl_fpmath_mode_strict && mode <= dnnl_fpmath_mode_tf32;
  return legal ? dnnl_success : RefuseValue("mode", mode);
}

dnnl_status_t CheckKind(dnnl_engine_kind_t kind) {
  const bool legal = kind == dnnl_any_engine || IsDevice(kind);
  return legal ? dnnl_success : RefuseValue("engine kind", kind);
}

}  // namespace convgrad::onednn

using namespace convgrad::onednn;  // NOLINT: this file is all of it

dnnl_status_t dnnl_get_default_fpmath_mode(dnnl_fpmath_mode_t* mode) try {
  if (mode == nullptr) return RefuseNull(__func__);
  *mode = DefaultMode();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_t mode) try {
  if (auto s = CheckMode(mode); s != dnnl_success) return s;
  DefaultMode() = mode;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_set_verbose(int level) try {
  return level >= 0 && level <= 2 ? dnnl_success : RefuseValue("level", level);
} catch (...) {
  return RefuseException();
}

const dnnl_version_t* dnnl_version(void) {
  static constexpr dnnl_version_t kVersion = {
      DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
      DNNL_VERSION_PATCH, "convgrad " CONVGRAD_VERSION_STRING,
      DNNL_CPU_RUNTIME,   DNNL_GPU_RUNTIME};
  return &kVersion;
}

dnnl_status_t dnnl_graph_get_compiled_partition_cache_capacity(int* capacity) try {
  if (capacity == nullptr) return RefuseNull(__func__);
  *capacity = PartitionCacheCapacity();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_set_compiled_partition_cache_capacity(int capacity) try {
  if (capacity < 0) return RefuseValue("capacity", capacity);
  PartitionCacheCapacity() = capacity;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_get_primitive_cache_capacity(int* capacity) try {
  if (capacity == nullptr) return RefuseNull(__func__);
  *capacity = PrimitiveCacheCapacity();
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_set_primitive_cache_capacity(int capacity) try {
  if (capacity < 0) return RefuseValue("capacity", capacity);
  PrimitiveCacheCapacity() = capacity;
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_set_constant_tensor_cache(int flag) try {
  if (flag < 0) return RefuseValue("flag", flag);
  for (dnnl_engine_kind_t kind : {dnnl_cpu, dnnl_gpu}) {
    constant_cache_megabytes[kind] = flag == 0 ? 0 : kMostMegabytes;
  }
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache(int* flag) {
  if (flag == nullptr) return RefuseNull(__func__);
  *flag = constant_cache_megabytes[dnnl_cpu] != 0 || constant_cache_megabytes[dnnl_gpu] != 0;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind,
                                                            size_t size) try {
  if (!IsDevice(eng_kind)) return RefuseValue("engine kind", eng_kind);
  constant_cache_megabytes[eng_kind] = std::min(size, kMostMegabytes);
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind,
                                                            size_t* size) try {
  if (size == nullptr) return RefuseNull(__func__);
  if (!IsDevice(eng_kind)) return RefuseValue("engine kind", eng_kind);
  *size = constant_cache_megabytes[eng_kind];
  return dnnl_success;
} catch (...) {
  return RefuseException();
}

dnnl_status_t dnnl_graph_set_dump_mode(dnnl_graph_dump_mode_t modes) try {
  constexpr unsigned kAll = dnnl_graph_dump_mode_graph | dnnl_graph_dump_mode_subgraph;
  const unsigned bits = static_cast<unsigned>(modes);
  if ((bits & ~kAll) != 0) return RefuseValue("dump mode", bits);
  SetDumpModes(bits);
  return dnnl_success;
} catch (...) {
  return RefuseException();
}
