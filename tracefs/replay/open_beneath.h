// The few calls by which a replay opens anything.
#pragma once

#include <sys/types.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::replay {

// One component of a path, with a NUL at its end.
class NameText {
 public:
  explicit NameText(std::string_view name) {
    text_[name.copy(text_.data(), text_.size() - 1)] = '\0';
  }
  const char* c_str() const { return text_.data(); }

 private:
  std::array<char, 256> text_;
};

// openat2(2), O_CLOEXEC added: `name` below `dir`, through no link of any kind.
// -1 with errno.
int OpenBeneath(int dir, std::string_view name, int flags, mode_t mode = 0);

// The directory that a path of the command line leads to, with O_PATH. Links in
// it are followed if root or who runs this made them: others could lead them
// elsewhere at any moment.
Result<UniqueFd> OpenNamedFolder(const std::string& path);

// The directory of a path below `root`, with O_PATH, and its last name. Every
// part of the path is opened so, and is one that may stand in a plan; else
// none, with errno.
UniqueFd OpenParentBeneath(int root, const std::string& path,
                           std::string* name);

// "/proc/self/fd/7": the file that this process has open as 7, by a path. What
// an O_PATH descriptor without O_NOFOLLOW's target stands for is the link
// itself.
std::string FdPath(int fd);

// chmod of what a descriptor, O_PATH or not, stands for. -1 with errno; of a
// symbolic link EOPNOTSUPP.
int ChmodFd(int fd, mode_t mode);

// While it lives, the owner may read and write the file that a descriptor
// stands for: if he runs this, and had taken that right from himself (0444).
class OwnersRights {
 public:
  explicit OwnersRights(int fd);
  ~OwnersRights();  // leaves errno
  OwnersRights(const OwnersRights&) = delete;
  OwnersRights& operator=(const OwnersRights&) = delete;
  bool taken() const { return taken_; }

 private:
  const int fd_;
  mode_t mode_ = 0;
  bool taken_ = false;
};

// `call`, which returns -1 with errno if it fails; once more with these rights
// if it is for want of them.
template <typename Call>
auto AsOwner(int fd, Call&& call) {
  const auto result = call();
  if (result >= 0 || errno != EACCES) return result;
  const OwnersRights rights(fd);
  return rights.taken() ? call() : result;
}

// Opens for I/O the file that an O_PATH descriptor stands for, as its owner.
int OpenAsOwner(int fd, int flags);

}  // namespace tracefs::replay
