// How calls fail: a status for the caller and a sentence for whoever asks.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "convgrad_dnnl.h"
#include "onednn/dnnl_objects.h"

namespace convgrad::onednn {
namespace {

// Of trivial type: calls may fail in destructors that run when a thread's objects are gone.
thread_local char last_error[2048];

void Keep(std::string_view why) noexcept {
  const size_t size = std::min(why.size(), sizeof last_error - 1);
  std::memmove(last_error, why.data(), size);
  last_error[size] = '\0';
}

// For a sentence that there is no memory for: short enough to need none.
constexpr char kNoMemory[] = "out of memory";

dnnl_status_t StatusOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return dnnl_success;
    case StatusCode::kInvalidArgument:
      return dnnl_invalid_arguments;
    case StatusCode::kInvalidShape:
      return dnnl_invalid_shape;
    case StatusCode::kInvalidType:
      return dnnl_invalid_data_type;
    case StatusCode::kOutOfMemory:
      return dnnl_out_of_memory;
  }
  return dnnl_runtime_error;
}

}  // namespace

dnnl_status_t Refuse(dnnl_status_t status, std::string_view why) noexcept {
  Keep(why);
  return status;
}

dnnl_status_t Refuse(const Status& status) noexcept {
  return Refuse(StatusOf(status.code()), status.message());
}

dnnl_status_t RefuseNull(const char* function, dnnl_status_t status) noexcept {
  try {
    return Refuse(status, std::string(function) + " was given a null pointer");
  } catch (...) {
    return Refuse(status, kNoMemory);
  }
}

dnnl_status_t RefuseException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Refuse(dnnl_out_of_memory, kNoMemory);
  } catch (const std::exception& exception) {
    return Refuse(dnnl_runtime_error, exception.what());
  } catch (...) {
    return Refuse(dnnl_runtime_error, "an exception");
  }
}

}  // namespace convgrad::onednn

const char* convgrad_dnnl_last_error(void) { return convgrad::onednn::last_error; }

dnnl_status_t convgrad_dnnl_refuse(dnnl_status_t status, const char* why) {
  return convgrad::onednn::Refuse(status, why == nullptr ? "" : why);
}
