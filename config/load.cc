// Reads a config file into memory, with a bound, and parses it.
#include <fcntl.h>

#include <cerrno>

#include "config/config.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

Result<Config> LoadConfig(const std::string& path, const ConfigSchema& schema) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Status::System(errno, "open " + path);
  // One byte more than allowed, so that ParseConfig sees that it is too much.
  // A FIFO or a device is read the same way and ends the same way.
  const Result<std::string> text =
      ReadText(fd.get(), kMaxConfigBytes + 1, "read " + path);
  if (!text.ok()) return text.status();
  return ParseConfig(*text, path, schema);
}

}  // namespace tracefs
