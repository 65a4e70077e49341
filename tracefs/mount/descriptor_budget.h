// How many descriptors the daemon may hold, and for what purpose.
#pragma once

namespace tracefs {

// Each descriptor of an inode costs the kernel a quarter of a kibibyte and
// saves half a microsecond each time it is used.
inline constexpr int kMinInodeFds = 64;
inline constexpr int kMaxInodeFds = 16384;

struct DescriptorBudget {
  int inodes = kMinInodeFds;
  int open_files = 128;
  int open_files_for_root = 16;
};

// Raises the soft limits of this process as far as they go, of descriptors, the
// size of files, memory and processor time, and shares out the descriptors:
// half for inodes (and a quarter of that beyond, InodeTable), an eighth, which
// is kept for what a request opens for a moment and for the daemon itself, and
// the rest for open files. The hard limit is the operator's wish.
DescriptorBudget RaiseLimits();

}  // namespace tracefs
