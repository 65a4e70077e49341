// ByMount: something for each mount whose operations a trace tells of, as far
// as there is room. Inode numbers, handles and paths mean something within one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace tracefs::query {

template <typename T>
class ByMount {
 public:
  static constexpr size_t kMost = 256;

  // That of a mount (format::TraceOrigin), made of these arguments where it is
  // the first time; null: there is no room.
  template <typename... Arguments>
  T* Of(uint32_t mount, Arguments&&... arguments) {
    if (last_ != nullptr && mount == last_mount_) return last_;
    auto at = all_.find(mount);
    if (at == all_.end() && all_.size() < kMost) {
      at = all_.try_emplace(mount, std::forward<Arguments>(arguments)...).first;
    }
    last_mount_ = mount;
    return last_ = at == all_.end() ? nullptr : &at->second;
  }
  std::map<uint32_t, T>& all() { return all_; }
  const std::map<uint32_t, T>& all() const { return all_; }

 private:
  std::map<uint32_t, T> all_;
  uint32_t last_mount_ = 0;
  T* last_ = nullptr;
};

}  // namespace tracefs::query
