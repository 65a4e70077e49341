#include "tracefs/keep/kept_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracefs/base/clock.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/printable.h"
#include "tracefs/keep/kept_source.h"

namespace tracefs::keep {
namespace {

Status Changed(uint64_t number) {
  return Status::Corrupt("what was kept of it was changed since (object " +
                         std::to_string(number) + ")");
}

}  // namespace

Status KeptReader::OpenFolder() {
  if (path_.empty()) {
    return Status::Corrupt("the trace does not say where it was kept");
  }
  UniqueFd fd(
      ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    return Status::System(errno, "the folder of what was kept, " +
                                     Printable(path_) +
                                     " (--kept says where it is now)");
  }
  if (Status s = CheckOwnership(fd.get(), {.type = S_IFDIR, .forbidden = 077},
                                "the folder of what was kept, '" + path_ + "'");
      !s.ok()) {
    return s;
  }
  folder_ = std::move(fd);
  return {};
}

Result<int> KeptReader::Open(const KeptPart& part) {
  if (!tried_) folder_status_ = OpenFolder();
  tried_ = true;
  if (!folder_status_.ok()) return folder_status_;
  if (number_ != part.object || !object_) {
    number_ = part.object;
    object_.Reset(
        ::openat(folder_.get(), std::to_string(part.object).c_str(),
                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!object_ && errno == ENOENT) {
      return Status::Corrupt(
          "what was kept of it is gone (object " + std::to_string(part.object) +
          "): it was removed, or the budget (keep_max) was used up");
    }
    if (!object_) {
      return Status::System(
          errno, "what was kept of it, object " + std::to_string(part.object));
    }
  }
  struct stat st;
  if (::fstat(object_.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
    return Changed(part.object);
  }
  if (Status s = CheckOwnership(
          object_.get(), {.type = S_IFREG, .forbidden = 077, .one_name = true},
          "what was kept of it, object " + std::to_string(part.object));
      !s.ok()) {
    return s;
  }
  const auto size = static_cast<uint64_t>(st.st_size);
  if (part.at > size || part.length > size - part.at) {
    return Changed(part.object);
  }
  if (part.is_copy) {
    uint32_t checksum = 0;
    const int error =
        ChecksumOf(object_.get(), part.at, part.length, &checksum);
    if (error != 0 || checksum != part.checksum) return Changed(part.object);
  } else if (NsOf(st.st_ctim) != part.changed_ns) {
    return Changed(part.object);
  }
  return object_.get();
}

}  // namespace tracefs::keep
