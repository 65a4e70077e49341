#include "tracefs/base/status.h"

#include <system_error>

#include "tracefs/base/printable.h"

namespace tracefs {

Status::Status(StatusCode code, int error, std::string message)
    : rep_(std::make_shared<const Rep>(Rep{code, error, Printable(message)})) {}

Status Status::System(int error, std::string_view what) {
  std::string message(what);
  message += ": ";
  message += std::generic_category().message(error);
  return Status(StatusCode::kSystem, error, std::move(message));
}

const std::string& Status::message() const {
  static const std::string kOk = "ok";
  return rep_ ? rep_->message : kOk;
}

Status Status::Prefixed(std::string_view context) const {
  if (ok()) return *this;
  std::string message(context);
  message += ": ";
  message += rep_->message;
  return Status(rep_->code, rep_->error, std::move(message));
}

int ExitStatus(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kCorrupt:
      return 1;
    case StatusCode::kInvalid:
      return 2;
    case StatusCode::kSystem:
      return 3;
  }
  return 3;
}

}  // namespace tracefs
