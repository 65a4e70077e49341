// Status and Result: errors are values, made once and translated once.
//
// A Status is OK or has a code and a message that names the place (file, line,
// byte offset) and, where there is one, the next step. An OK status costs one
// null pointer. A message is one printable line, whatever names it was made of
// (printable.h). Thread-safe as any value type is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tracefs {

enum class StatusCode {
  kOk,
  kInvalid,  // wrong usage or configuration: exit status 2
  kCorrupt,  // the data is bad (tampered, lost, mismatch): exit status 1
  kSystem,   // the system refused (errno is kept): exit status 3
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK

  static Status Ok() { return {}; }
  static Status Invalid(std::string message) {
    return Status(StatusCode::kInvalid, 0, std::move(message));
  }
  static Status Corrupt(std::string message) {
    return Status(StatusCode::kCorrupt, 0, std::move(message));
  }
  // `error` is an errno value; its text is appended: "open x: No such file".
  static Status System(int error, std::string_view what);
  // The same with a message that says everything: one that has travelled.
  static Status SystemSaid(int error, std::string message) {
    return Status(StatusCode::kSystem, error, std::move(message));
  }

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  // The errno of a kSystem status, else 0.
  int error() const { return rep_ ? rep_->error : 0; }
  const std::string& message() const;

  // The same status with `context` and ": " before the message.
  Status Prefixed(std::string_view context) const;

 private:
  struct Rep {
    StatusCode code;
    int error;
    std::string message;
  };
  Status(StatusCode code, int error, std::string message);

  std::shared_ptr<const Rep> rep_;
};

// The exit status of a command that ends with `status`: 0 done, 1 bad data, 2
// wrong usage or configuration, 3 the system refused.
int ExitStatus(const Status& status);

// A value or the Status that says why there is none. `*r` requires ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tracefs
