// Spool: text that is written now and needed later, in the same order: in
// memory while it is little, then in a file without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/export/output_buffer.h"

namespace tracefs {

// Used by one thread. The file is in $TMPDIR, else in /tmp.
class Spool {
 public:
  static constexpr size_t kDefaultMemory = size_t{1} << 20;

  explicit Spool(size_t memory_bytes = kDefaultMemory)
      : memory_bytes_(memory_bytes) {}

  void Append(std::string_view text) {
    if (memory_.size() + text.size() > memory_bytes_) Spill();
    memory_ += text;
  }
  uint64_t size() const { return spilled_ + memory_.size(); }
  // kSystem: what was written is not complete, and never will be.
  const Status& status() const { return status_; }

  // All of it.
  Status CopyTo(OutputBuffer* out);
  // The same piece by piece, of any size.
  Status Read(const std::function<void(std::string_view)>& use);

 private:
  void Spill();

  const size_t memory_bytes_;
  std::string memory_;
  UniqueFd file_;
  uint64_t spilled_ = 0;
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
