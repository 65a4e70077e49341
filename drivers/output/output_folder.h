// OutputFolder: a directory in which a driver makes files later on, from
// whatever thread and inside the sandbox: it is opened when the driver is made,
// and from then on paths do not matter.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// The device and inode of an output, by which the file system knows its own
// traces and records nothing about them.
struct OutputFileId {
  uint64_t device = 0;
  uint64_t inode = 0;

  bool operator==(const OutputFileId&) const = default;
};

// Told of files that a driver makes later: from now on it writes this one, or
// writes it no more. Threads: those of the driver.
using OutputFileChange = std::function<void(const OutputFileId&, bool written)>;

// Whether files that outputs have made stay when the outputs are gone: false
// until what they were made for has begun. Null: they stay once anything was
// written to them.
using OutputsStay = std::shared_ptr<const std::atomic<bool>>;

// Threads: any.
class OutputFolder {
 public:
  // The directory that holds `path`. What it makes belongs to the caller.
  static Result<OutputFolder> Open(const std::string& path);
  // The same with a directory that somebody else has opened.
  static Result<OutputFolder> Adopt(const std::string& path, UniqueFd folder);

  // The last component of the path.
  const std::string& base() const { return base_; }
  // From now on the descriptor leads to nothing outside the directory
  // (tracefs/base/enclosed_folder.h). After the first file was made: that one
  // keeps its file system from being unmounted, as an output should.
  void Enclose();
  // `base`.000001, …: a file that belongs to `path`.
  std::string Numbered(uint64_t number) const;
  // For messages: the path of a file in here.
  std::string PathOf(const std::string& name) const { return prefix_ + name; }

  // A new file, 0600, never over an existing one, never through a symlink;
  // `flags`: O_WRONLY or O_RDWR; with O_DSYNC its name is durable, too.
  Result<UniqueFd> Make(const std::string& name, int flags,
                        OutputFileId* id) const;
  // What Make would be refused for as things are now; makes nothing.
  Status CheckMake(const std::string& name) const;
  // Whether we may make files in here at all.
  Status CheckWritable() const;
  // Opens what is there; never through a symlink.
  UniqueFd Find(const std::string& name, int flags) const;
  bool Has(const std::string& name) const;
  // A file that is called like one of Numbered; empty: there is none.
  std::string FindNumbered() const;
  // Removes a file, if it is still that one.
  void Remove(const std::string& name, const OutputFileId& id) const;
  int fd() const { return fd_.get(); }

 private:
  OutputFolder() = default;
  std::string What(const std::string& name) const;
  Status CannotMake(const std::string& name, int error) const;

  UniqueFd fd_;
  std::string prefix_;
  std::string base_;
  uid_t owner_ = 0;
  gid_t group_ = 0;
  bool opened_here_ = false;
};

}  // namespace tracefs
