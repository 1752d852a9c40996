// Status and Result: how a call says that something that can happen did happen.
//
// A Status is a code and, when not ok, a sentence that names what failed, where, and what would be
// accepted. Broken invariants of our own code are not Statuses: they are RIFFLE_CHECKs (check.h).
// Values are immutable after construction and may be shared between threads by copy.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "topology/base/check.h"

namespace riffle {

enum class Code {
  kOk,
  kInvalidArgument,  // the caller's input is outside the accepted range
  kSystem,           // the operating system refused
  kRemote,           // a peer is gone, unreachable or misbehaved
  kTimeout,          // a deadline passed
  kInternal,         // we are wrong; never the user's fault
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == Code::kOk; }
  explicit operator bool() const { return is_ok(); }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string m) { return {Code::kInvalidArgument, std::move(m)}; }
inline Status system_error(std::string m) { return {Code::kSystem, std::move(m)}; }
inline Status remote_error(std::string m) { return {Code::kRemote, std::move(m)}; }
inline Status timeout_error(std::string m) { return {Code::kTimeout, std::move(m)}; }
inline Status internal_error(std::string m) { return {Code::kInternal, std::move(m)}; }

// Either a value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}       // NOLINT: implicit on purpose
  Result(Status error) : status_(std::move(error)) {  // NOLINT: implicit on purpose
    RIFFLE_CHECK(!status_.is_ok(), "a Result without a value needs an error");
  }
  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  T& value() {
    RIFFLE_CHECK(is_ok(), "value() of a failed Result");
    return *value_;
  }
  const T& value() const {
    RIFFLE_CHECK(is_ok(), "value() of a failed Result");
    return *value_;
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace riffle
