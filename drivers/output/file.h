// The file driver (paper section 2.5): writes a trace to a regular file.
#ifndef DRIVERS_OUTPUT_FILE_H_
#define DRIVERS_OUTPUT_FILE_H_

#include <memory>
#include <string>

#include "tracefs/base/unique_fd.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct FileOptions {
  std::string path;
  // Bytes of a block; the paper's "buf". 0 = the default of the pipeline.
  size_t buffer_bytes = 0;
  // Durable when Write returns (O_DSYNC), and at Flush (fdatasync) without.
  bool sync = false;
};

// The device and inode of an output, by which the file system knows its own
// traces and records nothing about them.
struct OutputFileId {
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Creates the file at once: new, mode 0600, never through a symlink, never
// over an existing one. A file that is never written to, because another tracer
// of the config failed, is removed again. Opened before the mount, so that a
// trace inside the traced tree is written below it. A full disk is reported
// once, on standard error, by the first Write that fails; each later block is
// tried again.
class FileDriver {
 public:
  static Result<std::unique_ptr<OutputDriver>> Create(FileOptions options,
                                                      OutputFileId* id);
  // The same with a file that somebody who may open it has opened for us, as
  // Create would have done: `options.path` is its name in messages. kInvalid if
  // it is not a regular file, empty and open for writing, and with O_DSYNC if
  // that is asked for.
  static Result<std::unique_ptr<OutputDriver>> Adopt(FileOptions options,
                                                     UniqueFd fd,
                                                     OutputFileId* id);
};

}  // namespace tracefs

#endif  // DRIVERS_OUTPUT_FILE_H_
