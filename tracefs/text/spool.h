// Spool: text that is written now and needed later, in the same order: in
// memory while it is little, then in a file without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

// The file of one spool, or of several. Made when something is written, in
// $TMPDIR, else in /tmp.
class SpoolFile {
 public:
  // Where the text begins.
  Result<uint64_t> Append(std::string_view text);
  // All of `out`.
  Status ReadAt(std::span<std::byte> out, uint64_t offset) const;

 private:
  UniqueFd fd_;
  uint64_t size_ = 0;
};

// Used by one thread, together with those that share its file.
class Spool {
 public:
  static constexpr size_t kDefaultMemory = size_t{1} << 20;

  explicit Spool(size_t memory_bytes = kDefaultMemory,
                 std::shared_ptr<SpoolFile> file = nullptr)
      : memory_bytes_(memory_bytes), file_(std::move(file)) {}

  void Append(std::string_view text) {
    if (memory_.size() + text.size() > memory_bytes_) Spill();
    memory_ += text;
  }
  // kSystem: what was written is not complete, and never will be.
  const Status& status() const { return status_; }

  // All of it.
  Status CopyTo(OutputBuffer* out);
  // The same piece by piece, of any size.
  Status Read(const std::function<void(std::string_view)>& use);

 private:
  void Spill();

  struct Piece {
    uint64_t offset;
    uint64_t size;
  };

  const size_t memory_bytes_;
  std::string memory_;  // what comes after the pieces
  std::shared_ptr<SpoolFile> file_;
  std::vector<Piece> pieces_;
  Status status_;
};

// Entries in a spool: each a u32 size and so many bytes.
class EntrySpool {
 public:
  explicit EntrySpool(size_t memory_bytes = Spool::kDefaultMemory)
      : spool_(memory_bytes) {}

  void Append(std::string_view entry);
  Status ForEach(const std::function<void(std::string_view)>& use);
  const Status& status() const { return spool_.status(); }

 private:
  Spool spool_;
};

}  // namespace tracefs
