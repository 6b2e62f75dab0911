// Names of values, for dnnl_debug.h.
#include "oneapi/dnnl/dnnl_debug.h"
#include "onednn/graph_model.h"

const char* dnnl_status2str(dnnl_status_t status) {
  switch (status) {
    case dnnl_success:
      return "success";
    case dnnl_out_of_memory:
      return "out_of_memory";
    case dnnl_invalid_arguments:
      return "invalid_arguments";
    case dnnl_unimplemented:
      return "unimplemented";
    case dnnl_last_impl_reached:
      return "last_impl_reached";
    case dnnl_runtime_error:
      return "runtime_error";
    case dnnl_not_required:
      return "not_required";
    case dnnl_invalid_graph:
      return "invalid_graph";
    case dnnl_invalid_graph_op:
      return "invalid_graph_op";
    case dnnl_invalid_shape:
      return "invalid_shape";
    case dnnl_invalid_data_type:
      return "invalid_data_type";
  }
  return "unknown";
}

// The names are literals: they end where the view does.
const char* dnnl_dt2str(dnnl_data_type_t type) {
  return convgrad::onednn::NameOf(static_cast<convgrad::onednn::ElementType>(type)).data();
}

const char* dnnl_engine_kind2str(dnnl_engine_kind_t kind) {
  switch (kind) {
    case dnnl_any_engine:
      return "any";
    case dnnl_cpu:
      return "cpu";
    case dnnl_gpu:
      return "gpu";
  }
  return "unknown";
}

const char* dnnl_fpmath_mode2str(dnnl_fpmath_mode_t mode) {
  switch (mode) {
    case dnnl_fpmath_mode_strict:
      return "strict";
    case dnnl_fpmath_mode_bf16:
      return "bf16";
    case dnnl_fpmath_mode_f16:
      return "f16";
    case dnnl_fpmath_mode_any:
      return "any";
    case dnnl_fpmath_mode_tf32:
      return "tf32";
  }
  return "unknown";
}

const char* dnnl_accumulation_mode2str(dnnl_accumulation_mode_t mode) {
  switch (mode) {
    case dnnl_accumulation_mode_strict:
      return "strict";
    case dnnl_accumulation_mode_relaxed:
      return "relaxed";
    case dnnl_accumulation_mode_any:
      return "any";
    case dnnl_accumulation_mode_s32:
      return "s32";
    case dnnl_accumulation_mode_f32:
      return "f32";
    case dnnl_accumulation_mode_f16:
      return "f16";
  }
  return "unknown";
}

const char* dnnl_runtime2str(unsigned runtime) {
  switch (runtime) {
    case DNNL_RUNTIME_NONE:
      return "none";
    case DNNL_RUNTIME_SEQ:
      return "sequential";
    case DNNL_RUNTIME_OMP:
      return "OpenMP";
    case DNNL_RUNTIME_TBB:
      return "TBB";
    case DNNL_RUNTIME_THREADPOOL:
      return "threadpool";
    case DNNL_RUNTIME_OCL:
      return "OpenCL";
    case DNNL_RUNTIME_SYCL:
      return "SYCL";
    case DNNL_RUNTIME_ZE:
      return "Level Zero";
    default:
      return "unknown";
  }
}
