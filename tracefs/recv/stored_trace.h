// StoredTrace: the file of one trace at its receiver.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/frame_scan.h"

namespace tracefs {

// How far a file was looked through, and how it looked then: while it is the
// same, it need not be scanned again.
struct KnownEnd {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t at = 0;    // all before is whole frames
  uint64_t next = 0;  // number after the last of them
};

// Used by one thread at a time, but for Sync and those beside it.
class StoredTrace {
 public:
  // A trace whose file, if there is one, is `name` in `directory`; both outlive
  // it.
  StoredTrace(int directory, std::string name, std::string preamble,
              const format::Serial& serial)
      : directory_(directory),
        name_(std::move(name)),
        what_("trace file '" + name_ + "'"),
        preamble_(std::move(preamble)),
        serial_(serial) {}

  // Looks for the file; then, piece by piece, for its last whole frame. What
  // follows that is cut off; if it is more than a frame that was cut short, it
  // is kept in another file. kInvalid if the file is of another trace. `known`
  // may be null, or be of another file.
  Status Begin(const KnownEnd* known);
  // Goes on until that time, and by one frame at least.
  Status ScanUntil(std::chrono::steady_clock::time_point time);
  // Nothing else may be asked for before.
  bool scanned() const { return scanned_; }
  // For the next one who opens it.
  KnownEnd Known() const;
  bool exists() const { return fd_.valid(); }

  // Appends; the first time, makes the file.
  Status Append(ByteSpan bytes, size_t whole, uint64_t next);
  // Cuts off what is not whole.
  void Abandon();
  const std::string& name() const { return name_; }

  // --- Threads: any.

  // After an error the file has what was synced before, and takes no more: the
  // sender sends the rest again, to who opens it then.
  Status Sync();
  bool failed() const {
    const std::lock_guard lock(mu_);
    return failed_ != 0;
  }
  uint64_t next() const {  // number after the last whole frame
    const std::lock_guard lock(mu_);
    return next_;
  }
  uint64_t size() const {
    const std::lock_guard lock(mu_);
    return written_;
  }

 private:
  Status Quote(int error) const;
  Status EndScan(format::FrameScan::Step why);

  const int directory_;
  const std::string name_;
  const std::string what_;  // for messages
  const std::string preamble_;
  const format::Serial serial_;
  UniqueFd fd_;

  mutable std::mutex mu_;  // guards these, once it is scanned
  uint64_t end_ = 0;       // of the last whole frame
  uint64_t written_ = 0;   // of all
  uint64_t next_ = 0;
  // The same of what is on the disk for certain; 0: not known.
  uint64_t synced_end_ = 0;
  uint64_t synced_next_ = 0;
  int failed_ = 0;  // errno of a Sync

  bool scanned_ = false;
  uint64_t size_ = 0;                      // of the file
  std::optional<format::FrameScan> scan_;  // which `end_` and `next_` follow
};

}  // namespace tracefs
