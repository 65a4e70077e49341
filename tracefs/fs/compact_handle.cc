#include "tracefs/fs/compact_handle.h"

#include <cerrno>

namespace tracefs {
namespace {

// struct file_handle with room for the largest handle there is.
struct Buffer {
  alignas(file_handle) char bytes[sizeof(file_handle) + MAX_HANDLE_SZ];

  file_handle* get() { return reinterpret_cast<file_handle*>(bytes); }
};

}  // namespace

CompactHandle CompactHandle::Of(int dir, const char* name) {
  Buffer buffer;
  file_handle* const from = buffer.get();
  from->handle_bytes = MAX_HANDLE_SZ;
  int mount_id;
  CompactHandle handle;
  const int flags = *name == '\0' ? AT_EMPTY_PATH : 0;
  if (::name_to_handle_at(dir, name, from, &mount_id, flags) != 0) {
    // A handle that cannot be opened is enough to tell files apart (Linux 6.5).
    constexpr int kHandleFid = 0x200;  // AT_HANDLE_FID
    from->handle_bytes = MAX_HANDLE_SZ;
    if (errno != EOPNOTSUPP || ::name_to_handle_at(dir, name, from, &mount_id,
                                                   flags | kHandleFid) != 0) {
      return handle;
    }
  }
  handle.type_ = from->handle_type;
  handle.size_ = static_cast<uint8_t>(from->handle_bytes);
  uint8_t* to = handle.inline_;
  if (handle.size_ > kInline) to = handle.heap_ = new uint8_t[handle.size_];
  std::memcpy(to, from->f_handle, handle.size_);
  return handle;
}

CompactHandle CompactHandle::From(int32_t type, const uint8_t* bytes,
                                  size_t size) {
  CompactHandle handle;
  if (size == 0 || size > MAX_HANDLE_SZ) return handle;
  handle.type_ = type;
  handle.size_ = static_cast<uint8_t>(size);
  uint8_t* to = handle.inline_;
  if (handle.size_ > kInline) to = handle.heap_ = new uint8_t[handle.size_];
  std::memcpy(to, bytes, size);
  return handle;
}

UniqueFd CompactHandle::Open(int mount, int flags) const {
  Buffer buffer;
  file_handle* const to = buffer.get();
  to->handle_bytes = size_;
  to->handle_type = type_;
  std::memcpy(to->f_handle, data(), size_);
  return UniqueFd(::open_by_handle_at(mount, to, flags | O_CLOEXEC));
}

}  // namespace tracefs
