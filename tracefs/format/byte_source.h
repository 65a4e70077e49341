// ByteSource: where the bytes of a trace come from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::format {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads at least one byte into `out` (not empty); 0 where there is nothing
  // now, which MayGrow() tells from the end.
  virtual Result<size_t> Read(std::span<std::byte> out) = 0;
  // False if no later call can read more: the input is a pipe that ended, or a
  // file that was cut behind the reader's back.
  virtual bool MayGrow() { return false; }
  // Whether what was read ends where it does because somebody was still writing
  // it (writer_lock.h).
  virtual bool WriterLives() { return false; }
};

// A regular file, a pipe or a socket. Owns the descriptor. Read blocks until a
// pipe has something; never with `follow`.
class FdSource : public ByteSource {
 public:
  FdSource(UniqueFd fd, bool follow);
  Result<size_t> Read(std::span<std::byte> out) override;
  bool MayGrow() override;
  bool WriterLives() override;

  // Opens a file, or standard input for "-". Of the map file of a flight
  // recorder it reads a snapshot (flight_map.h).
  static Result<std::unique_ptr<ByteSource>> Open(const std::string& path,
                                                  bool follow);

 private:
  const UniqueFd fd_;
  const bool follow_;
  bool regular_ = false;
  bool pipe_ended_ = false;
  bool had_writer_ = false;    // when it was opened
  bool writer_lives_ = false;  // when it was looked at last
  bool at_end_ = false;        // the last Read found nothing
  uint64_t read_bytes_ = 0;
};

// Files one after the other, as if they were one: the parts of a rotated trace.
// Each is opened when it is its turn; with `follow` the last one may grow.
class FileChain : public ByteSource {
 public:
  FileChain(std::vector<std::string> paths, bool follow)
      : paths_(std::move(paths)), follow_(follow) {}
  Result<size_t> Read(std::span<std::byte> out) override;
  bool MayGrow() override;
  bool WriterLives() override;

 private:
  const std::vector<std::string> paths_;
  const bool follow_;
  size_t next_ = 0;
  std::unique_ptr<ByteSource> current_;
};

// Memory that outlives the source. `limit_` bytes of it can be read at once,
// to exercise short reads.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(ByteSpan bytes, size_t limit = SIZE_MAX)
      : rest_(bytes), limit_(limit) {}
  Result<size_t> Read(std::span<std::byte> out) override {
    const size_t n = std::min({out.size(), rest_.size(), limit_});
    if (n != 0) std::memcpy(out.data(), rest_.data(), n);
    rest_ = rest_.subspan(n);
    return n;
  }

 private:
  ByteSpan rest_;
  const size_t limit_;
};

}  // namespace tracefs::format
