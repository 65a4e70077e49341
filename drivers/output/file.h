// The file driver (paper section 2.5): writes a trace to a regular file, or to
// several of which each goes on where the one before ends.
//
// A rotated trace is one trace: the block numbers and the chain of checksums go
// on. Each file of it begins with the preamble, a mark that says which part it
// is and how it is linked to the one before, and a copy of block 0, so that it
// can be read by itself; all but the last end with a mark, too (FORMAT.md
// section 2.1). Parts are named PATH, PATH.000001, PATH.000002, …
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "drivers/output/output_folder.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/pipeline/stages.h"
#include "tracefs/pipeline/wish.h"

namespace tracefs {

// When a file is full, whichever comes first; 0 = never.
struct Rotation {
  uint64_t bytes = 0;
  uint64_t age_ns = 0;  // of the file, when a block is written
  uint64_t events = 0;  // operations
  uint64_t keep = 0;    // files; older ones are removed. 0 = all
  bool any() const { return bytes != 0 || age_ns != 0 || events != 0; }
};

struct FileOptions {
  std::string path = {};
  // Bytes of a block; the paper's "buf". 0 = the default of the pipeline.
  size_t buffer_bytes = 0;
  // Durable when Write returns (O_DSYNC), by a name that is; without, whenever
  // the kernel comes to it.
  bool sync = false;
  Rotation rotation = {};
  OutputFileChange changed = nullptr;  // may be empty
  OutputsStay stay = nullptr;
};

// Creates the file at once: new, mode 0600, never through a symlink, never
// over an existing one. A file that is never written to, because another tracer
// of the config failed, is removed again, and so is one that was made for a
// mount that did not begin (`stay`). Opened before the mount, so that a trace
// inside the traced tree is written below it. A full disk is reported once, on
// standard error, by the first Write that fails; each later block is tried
// again. Where the next file cannot be made, the trace goes on in the one
// before.
class FileDriver {
 public:
  //
  // A character device that is there, such as /dev/null or a tape, is written
  // from where it stands: one block a write, without seeking. No terminal.
  static Result<std::unique_ptr<OutputDriver>> Create(FileOptions options,
                                                      OutputFileId* id);
  // What Create would be refused for as things are now; makes nothing.
  static Status Probe(const FileOptions& options);
  // The same with what somebody who may open it has opened for us: first as
  // Create would have made the file and, with a rotation, its folder.
  // `options.path` is then a name in messages. kInvalid if they are not that;
  // what an earlier daemon had was looked at then.
  static Result<std::unique_ptr<OutputDriver>> Adopt(FileOptions options,
                                                     const Given& given,
                                                     OutputFileId* id);
};

}  // namespace tracefs
