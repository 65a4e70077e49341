// Reads a config file into memory, with a bound, and parses it.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "config/config.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

Result<Config> LoadConfig(const std::string& path, const ConfigNames& names) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Status::System(errno, "open " + path);
  std::string text;
  // One byte more than allowed, so that ParseConfig sees that it is too much.
  // A FIFO or a device is read the same way and ends the same way.
  text.resize(kMaxConfigBytes + 1);
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::System(errno, "read " + path);
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  text.resize(size);
  return ParseConfig(text, path, names);
}

}  // namespace tracefs
