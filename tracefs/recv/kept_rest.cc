#include "tracefs/recv/kept_rest.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "tracefs/base/file_io.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr int kMaxRests = 100;

}  // namespace

Status KeepRest(int directory, const std::string& name, int fd, uint64_t from,
                uint64_t to) {
  const std::string what = "trace file '" + name + "'";
  for (int number = 1; number <= kMaxRests; ++number) {
    const std::string aside = name + ".rest-" + std::to_string(number);
    const UniqueFd rest(::openat(directory, aside.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                 0600));
    if (!rest && errno == EEXIST) continue;
    if (!rest) return Status::System(errno, what);
    std::vector<std::byte> piece(size_t{1} << 20);
    for (uint64_t at = from; at < to;) {
      const auto n = std::min<uint64_t>(piece.size(), to - at);
      const std::span<std::byte> part(piece.data(), n);
      if (!ReadAllAt(fd, part, at)) return Status::System(EIO, what);
      if (Status s = WriteAllAt(rest.get(), part, at - from, what); !s.ok()) {
        ::unlinkat(directory, aside.c_str(), 0);
        return s;
      }
      at += n;
    }
    if (::fsync(rest.get()) != 0 || ::fsync(directory) != 0) {
      return Status::System(errno, what);
    }
    Notify(NoticeId::kOutputFailed,
           "'" + name + "' is damaged from byte " + std::to_string(from) +
               " on: what follows is now in '" + aside + "'");
    return Status::Ok();
  }
  return Status::SystemSaid(EEXIST,
                            "there are too many files '" + name + ".rest-…'");
}

}  // namespace tracefs
