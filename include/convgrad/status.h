// Errors as values: the library never throws, prints or aborts. A message is one sentence that
// names the argument, its value and the rule it breaks.
#ifndef CONVGRAD_STATUS_H_
#define CONVGRAD_STATUS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace convgrad {

enum class StatusCode : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // an operation, attribute, option or pointer
  kInvalidShape = 2,     // extents, ranks, channels, strides
  kInvalidType = 3,      // element types
  kOutOfMemory = 4,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A value, or the reason why there is none. Reading the value of a failed result is a bug of the
// caller: check ok() first.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : state_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : *std::get_if<1>(&state_); }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace convgrad

#endif  // CONVGRAD_STATUS_H_
