// LastingIds: node ids that lead back to a file when neither the kernel nor
// this process knows it any more, and in later mounts: for servers of NFS and
// others that keep file handles of the mount (--handles yes).
//
// The kernel's handle of a file on FUSE holds the node id and a generation that
// we chose, and it asks again with the id alone (linux/fs/fuse/inode.c,
// fuse_get_dentry: LOOKUP of "." in it). So the id is the file's inode number
// and its generation below, 32 bits each, of which its handle below is put
// together again. A file whose handle has no such form (another file system
// within the source, a number beyond 32 bits) gets an id that lasts as long as
// the kernel knows the file; its handle is stale afterwards, and in other
// mounts.
//
// Anybody may forge a handle, and ids of one file system lead to all its files.
// Where the source is only a part of it, what is not a directory counts as
// inside if it was given out since the mount began, or if the kernel knows
// where it lies.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracefs/fs/compact_handle.h"

namespace tracefs {

// Threads: any.
class LastingIds {
 public:
  // `root`: O_PATH of the source, which `st` describes; `whole`: it is the root
  // of its file system. Null, and errno, where handles cannot be made into
  // numbers and back (EOPNOTSUPP).
  static std::unique_ptr<LastingIds> Of(int root, const struct stat& st,
                                        bool whole);

  // The id of the file with that handle below, which `st` describes; 0: it can
  // have none that lasts.
  uint64_t IdOf(const CompactHandle& handle, const struct stat& st) const;
  // Another one, that none of those is.
  uint64_t PassingId() { return next_.fetch_add(1) << 32; }
  // The handle below of the file with that id; none if it does not last.
  CompactHandle HandleOf(uint64_t id) const;
  // What goes with an id in the kernel's handle.
  uint32_t GenerationOf(uint64_t id) const {
    return Lasts(id) ? 1 : generation_;
  }

  // An id was given out.
  void GaveOut(uint64_t id) { given_[PlaceOf(id)].store(id); }
  // Whether the file behind `fd` (O_PATH), of that id, lies in the source; and
  // where below it, if the kernel knows that (else empty).
  bool IsInside(int fd, uint64_t id, const struct stat& st,
                std::string* where) const;

 private:
  // Where in a handle numbers are.
  struct Form {
    int32_t type;
    size_t size;
    size_t number_at;
    size_t number_bytes;
    size_t generation_at;
  };
  static const Form kForms[];

  LastingIds(const Form& form, const CompactHandle& root, int root_fd,
             const struct stat& st, bool whole);
  static bool Lasts(uint64_t id) { return static_cast<uint32_t>(id) != 0; }
  static size_t PlaceOf(uint64_t id) {
    return static_cast<size_t>(id * 0x9e3779b97f4a7c15u >> 44) % kMostGiven;
  }
  // Whether the path below the root is one of the file that `st` describes.
  bool LeadsTo(const std::string& path, const struct stat& st) const;
  bool IsBelowRoot(int directory) const;

  // Older ones are overwritten by those that come to the same place.
  static constexpr size_t kMostGiven = size_t{1} << 20;

  const Form form_;
  const std::vector<uint8_t> like_;  // the handle of the root
  const int root_fd_;
  const dev_t device_;
  const ino_t root_number_;
  const bool whole_;
  uint32_t generation_;  // of ids that pass; 1 is of those that last
  std::atomic<uint64_t> next_{1};
  const std::unique_ptr<std::atomic<uint64_t>[]> given_ =
      std::make_unique<std::atomic<uint64_t>[]>(kMostGiven);
};

}  // namespace tracefs
