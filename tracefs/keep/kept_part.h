// KeptPart: where something that was destroyed was put before that, and what it
// must still look like when somebody wants it back (STR_KEEP). It is what a
// trace says of it (FORMAT.md, section 9), and all that a reader goes by: in
// the folder are nothing but bytes.
#pragma once

#include <cstdint>

namespace tracefs::keep {

struct KeptPart {
  uint64_t object = 0;  // the file in the folder, by its number; 0: none
  uint64_t at = 0;      // where in it the bytes begin
  uint64_t length = 0;
  // Of a copy: CRC-32C of the bytes, holes being zeros.
  bool is_copy = false;
  uint32_t checksum = 0;
  // For a clone, which nobody has read: when the object last changed, which is
  // when it was made; in ns since the epoch. Only the kernel sets that.
  uint64_t changed_ns = 0;
  // Of the folder's own use. It was there already, as another's; and it may
  // become another's, too, once it is settled.
  bool was_there = false;
  bool may_be_shared = false;
};

}  // namespace tracefs::keep
