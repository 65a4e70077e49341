// The few calls by which a replay opens anything.
#pragma once

#include <sys/types.h>

#include <array>
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

}  // namespace tracefs::replay
