#include "tracefs/export/side_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

Status WriteSideFile(const std::string& path, std::string_view text) {
  std::string name = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return Status::System(errno, path);
  Status status = WriteAll(fd.get(), AsBytes(text), path);
  if (status.ok() && ::fchmod(fd.get(), 0644) != 0) {
    status = Status::System(errno, path);
  }
  if (status.ok() && ::rename(name.c_str(), path.c_str()) != 0) {
    status = Status::System(errno, path);
  }
  if (!status.ok()) ::unlink(name.c_str());
  return status;
}

}  // namespace tracefs
