// Handing whole requests over to the side pool, where any call below may hang.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tracefs/fs/describe.h"
#include "tracefs/fs/op_scope.h"

namespace tracefs {

// Copies of a handler's arguments: libfuse's own are valid only during the
// handler.
template <typename T>
class KeptValue {
 public:
  explicit KeptValue(T value) : value_(value) {}
  T get() { return value_; }

 private:
  T value_;
};

class KeptName {
 public:
  explicit KeptName(const char* name) : name_(name) {}
  const char* get() const { return name_.c_str(); }

 private:
  std::string name_;
};

template <typename T>
class KeptObject {
 public:
  explicit KeptObject(const T* object) {
    if (object != nullptr) object_ = *object;
  }
  T* get() { return object_ ? &*object_ : nullptr; }

 private:
  std::optional<T> object_;
};

// The data behind a pointer, with its size.
struct RequestBytes {
  const void* data;
  size_t size;
};
class KeptBytes {
 public:
  explicit KeptBytes(RequestBytes bytes)
      : bytes_(static_cast<const char*>(bytes.data),
               bytes.data == nullptr ? 0 : bytes.size) {}
  RequestBytes get() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::string bytes_;
};

inline KeptName Keep(const char* name) { return KeptName(name); }
inline KeptBytes Keep(RequestBytes bytes) { return KeptBytes(bytes); }
inline KeptObject<fuse_file_info> Keep(fuse_file_info* fi) {
  return KeptObject<fuse_file_info>(fi);
}
inline KeptObject<struct stat> Keep(struct stat* attributes) {
  return KeptObject<struct stat>(attributes);
}
inline KeptValue<fuse_pollhandle*> Keep(fuse_pollhandle* handle) {
  return KeptValue<fuse_pollhandle*>(handle);
}
template <typename T>
requires std::is_arithmetic_v<T> KeptValue<T> Keep(T value) {
  return KeptValue<T>(value);
}

// What a copy of it holds beyond itself.
inline size_t BytesOf(const RequestBytes& bytes) { return bytes.size; }
template <typename T>
size_t BytesOf(const T& /*unused*/) {
  return 0;
}

// Operations that can be tried without waiting, and do so themselves.
constexpr bool CanBeTried(Op op) {
  return op == Op::lookup_ || op == Op::read_;
}

// Whether a request that names `fi` is a write that goes to the disk each time.
template <Op kOp, typename T>
bool IsToDisk(const T& argument) {
  if constexpr (kOp == Op::write_ && std::is_same_v<T, fuse_file_info*>) {
    return HandleOf(argument).writes_to_disk(argument->flags);
  } else {
    return false;
  }
}

// Runs `handler(req, arguments...)`: here, or in the pool if the file system
// below may hold up its callers, or has done so recently.
template <Op kOp, typename Handler, typename... Arguments>
void Serve(fuse_req_t req, Handler handler, Arguments... arguments) {
  FileSystem& fs = FileSystem::Of(req);
  const bool to_disk = (IsToDisk<kOp>(arguments) || ...);
  if (fs.waits().Of(kOp, to_disk).hands_over()) [[unlikely]] {
    if ((!CanBeTried(kOp) || fs.may_hang_below()) && fs.MayHandOver(req)) {
      OpScope op(req, kOp);
      Describe<kOp>(op, arguments...);
      if (op.HandOverOrMake(
              [req, handler,
               kept = std::make_tuple(Keep(arguments)...)]() mutable {
                std::apply([&](auto&... a) { handler(req, a.get()...); }, kept);
              },
              /*told=*/false, (0 + ... + BytesOf(arguments)))) {
        return;
      }
    }
  }
  handler(req, arguments...);
}

}  // namespace tracefs
