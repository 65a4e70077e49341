#include "filters/input/name_service.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <vector>

namespace tracefs {
namespace {

// A group's entry lists its members and can be long; this is longer than any
// directory service delivers.
constexpr size_t kMaxEntryBytes = size_t{1} << 24;

// Calls one of the …nam_r functions with a buffer that is large enough.
template <typename Entry, typename Lookup>
Result<std::optional<uint32_t>> Find(const std::string& name, Lookup lookup,
                                     uint32_t (*id)(const Entry&)) {
  std::vector<char> buffer(4096);
  for (;;) {
    Entry entry;
    Entry* found = nullptr;
    const int error =
        lookup(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (found != nullptr) return std::optional<uint32_t>(id(entry));
    switch (error) {
      case 0:
      case ENOENT:  // some services say so instead of 0
      case ESRCH:
        return std::optional<uint32_t>();
      case EINTR:
        continue;
      case ERANGE:
        if (buffer.size() < kMaxEntryBytes) {
          buffer.resize(buffer.size() * 4);
          continue;
        }
        [[fallthrough]];
      default:
        return Status::System(error, "look up the user or group " + name);
    }
  }
}

class SystemNames final : public NameService {
 public:
  Result<std::optional<uint32_t>> UserId(
      const std::string& name) const override {
    return Find<passwd>(
        name, ::getpwnam_r,
        +[](const passwd& entry) { return uint32_t{entry.pw_uid}; });
  }
  Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const override {
    return Find<group>(
        name, ::getgrnam_r,
        +[](const group& entry) { return uint32_t{entry.gr_gid}; });
  }
};

}  // namespace

const NameService& SystemNameService() {
  static const SystemNames names;
  return names;
}

}  // namespace tracefs
