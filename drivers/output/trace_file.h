// TraceFile: a regular file, or a device, to which whole frames are appended.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// One thread at a time.
class TraceFile {
 public:
  // `name` is for messages: "trace file 'x'". `fd` is open for writing. Readers
  // see that it is being written (writer_lock.h) until Close.
  TraceFile(UniqueFd fd, std::string name);

  // Appends all pieces or, on failure, nothing: the file ends as before.
  Status Append(std::initializer_list<ByteSpan> pieces) {
    return AppendAndEnd(pieces, {});
  }
  // The same, with `terminator` behind, which the next Append overwrites.
  Status AppendAndEnd(std::initializer_list<ByteSpan> pieces,
                      ByteSpan terminator);

  // Goes on with a file of which `bytes` are the trace so far: what is behind
  // them goes.
  Status Resume(uint64_t bytes);

  // Makes sure of room for `more` bytes and, after them, for what says that a
  // trace has ended: a disk that fills up still has room for that. True where
  // the file system cannot promise, too.
  bool Reserve(uint64_t more);
  // False once it is known that the file system promises nothing.
  bool can_reserve() const { return can_reserve_; }

  // Gives back what was reserved and closes; `durable`: with fdatasync.
  Status Close(bool durable);

  // Bytes appended.
  uint64_t size() const { return end_; }
  int fd() const { return fd_.get(); }

 private:
  bool Allocate(uint64_t upto);

  UniqueFd fd_;
  const std::string name_;
  uint64_t end_ = 0;       // after the last whole frame
  uint64_t reserved_ = 0;  // bytes allocated from the start
  uint64_t most_ = std::numeric_limits<uint64_t>::max();  // RLIMIT_FSIZE
  bool can_reserve_ = true;
  bool sequential_ = false;  // each byte behind the one before, no way back
};

}  // namespace tracefs
