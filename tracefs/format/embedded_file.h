// FILE messages: what a file that was read while the trace was recorded holds,
// or why that is not in the trace. FORMAT.md section 8e.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

// Views hold as long as the block.
struct EmbeddedFile {
  static constexpr size_t kHashBytes = 32;
  // The most that one file may have; a trace that says more is hostile. One
  // block holds all of a file.
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // Whether the contents are those that were there when it was first opened.
  enum class Sure : uint8_t {
    kYes = 0,     // nothing of the file has changed since
    kByTime = 1,  // its attributes have; by its modification time not its bytes
  };

  std::string_view path;  // below the mount point, begins with '/'
  uint64_t size = 0;
  uint64_t mtime_ns = 0;  // since the epoch
  uint32_t mode = 0;
  // Empty: the contents are there, here or under the same hash elsewhere.
  std::string_view left_out;
  // Without a path: files that are not named, left out for that reason.
  uint64_t count = 1;
  Sure sure = Sure::kYes;
  ByteSpan hash;  // SHA-256; empty where they are left out
  bool has_content = false;
  ByteSpan content;
};

using EmbeddedFileSink = std::function<void(const EmbeddedFile&)>;

// False, and nothing written, if it does not fit.
bool WriteEmbeddedFile(MessageWriter& out, const EmbeddedFile& file);

// False if the arguments end within one, or do not go together: it is then
// nothing to go by.
bool ReadEmbeddedFile(ByteSpan arguments, const ArgumentWidths& widths,
                      EmbeddedFile* file);

}  // namespace tracefs::format
