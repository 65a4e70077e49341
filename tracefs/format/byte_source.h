// ByteSource: where the bytes of a trace come from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/marks.h"

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

  // --- Of the parts of a rotated trace, one after the other.

  // What was read has this mark, kPart or kPartEnd.
  virtual void Marked(FrameKind, const Serial&, const PartMark&) {}
  // Behind the end mark of a part: whether the next one may still be found.
  virtual bool AwaitsPart() { return false; }

  // --- Of inputs that can be read anywhere.

  // How long it is now; nothing where it is read from front to back only.
  virtual std::optional<uint64_t> Size() { return std::nullopt; }
  // Reads at an offset, as Read does there; where Read goes on stays. Not
  // without a Size.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out);
  // Read goes on at an offset. Not without a Size.
  virtual Status Seek(uint64_t offset);
};

// A regular file, a pipe or a socket. Owns the descriptor. Read blocks until a
// pipe has something; never with `follow`.
class FdSource : public ByteSource {
 public:
  FdSource(UniqueFd fd, bool follow);
  Result<size_t> Read(std::span<std::byte> out) override;
  bool MayGrow() override;
  bool WriterLives() override;
  std::optional<uint64_t> Size() override;
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) override;
  Status Seek(uint64_t offset) override;

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
  uint64_t begin_ = 0;         // in the file, where the input begins
  uint64_t read_bytes_ = 0;
};

// Files one after the other, as if they were one: the parts of a rotated trace.
// Each is opened when it is its turn; with `follow` the last one may grow.
class FileChain : public ByteSource {
 public:
  // The files in which the trace of that serial goes on after a part, which has
  // that path and number, in order; those that were removed are left out.
  using LaterParts = std::function<std::vector<std::string>(
      const std::string& path, const Serial& serial, uint64_t part)>;

  // later: with `follow`, asked where the last part ends. May be null.
  FileChain(std::vector<std::string> paths, bool follow,
            LaterParts later = nullptr)
      : paths_(std::move(paths)), follow_(follow), later_(std::move(later)) {}
  Result<size_t> Read(std::span<std::byte> out) override;
  bool MayGrow() override;
  bool WriterLives() override;
  void Marked(FrameKind kind, const Serial& serial,
              const PartMark& mark) override;
  bool AwaitsPart() override;
  // Only of regular files that are all there.
  std::optional<uint64_t> Size() override;
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) override;
  Status Seek(uint64_t offset) override;

 private:
  // Whether the next file, which may just have been found, is now current_.
  Result<bool> GoOn();
  // Adds the parts after the last one, which has ended.
  void FindLater();
  // Opens that file; it is then current_.
  Status OpenFile(size_t number);
  // The file that has that byte, and where in it. Past the end: the last one.
  struct Place {
    size_t file = 0;
    uint64_t offset = 0;
  };
  Place PlaceOf(uint64_t offset) const;

  std::vector<std::string> paths_;
  const bool follow_;
  const LaterParts later_;
  struct Part {
    Serial serial{};
    uint64_t number = 0;
    bool ended = false;
  };
  std::optional<Part> part_;  // by the last mark that was read
  unsigned looks_ = 0;        // for later parts, in vain
  size_t next_ = 0;
  std::unique_ptr<ByteSource> current_;
  std::vector<uint64_t> sizes_;  // of the files, once Size was asked for
  // The file that ReadAt has read last.
  std::unique_ptr<ByteSource> other_;
  size_t other_number_ = 0;
};

// Memory that outlives the source. `limit_` bytes of it can be read at once,
// to exercise short reads.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(ByteSpan bytes, size_t limit = SIZE_MAX)
      : bytes_(bytes), limit_(limit) {}
  Result<size_t> Read(std::span<std::byte> out) override {
    const size_t n = CopyFrom(at_, out);
    at_ += n;
    return n;
  }
  std::optional<uint64_t> Size() override { return bytes_.size(); }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) override {
    return CopyFrom(std::min<uint64_t>(offset, bytes_.size()), out);
  }
  Status Seek(uint64_t offset) override {
    at_ = std::min<uint64_t>(offset, bytes_.size());
    return Status::Ok();
  }

 private:
  size_t CopyFrom(size_t at, std::span<std::byte> out) const {
    const size_t n = std::min({out.size(), bytes_.size() - at, limit_});
    if (n != 0) std::memcpy(out.data(), bytes_.data() + at, n);
    return n;
  }

  const ByteSpan bytes_;
  size_t at_ = 0;
  const size_t limit_;
};

}  // namespace tracefs::format
