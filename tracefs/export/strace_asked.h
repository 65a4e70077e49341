// Which requests a system call asked for, and which the kernel made by itself:
// for a path's components, for a program that it loads, for mapped pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "tracefs/export/columns.h"

namespace tracefs {

enum class Asked : uint8_t {
  kByCall,
  kByStatPerhaps,   // what the thread does next tells
  kByClosePerhaps,  // what becomes of the process tells
  kByWalk,          // on the way to a file
  kByNobody,        // for the kernel's own purposes
};

// Used by one thread.
class AskedRequests {
 public:
  // Where the trace has the caller's system call (STR_SYSCALL), that decides;
  // of what strace wrote itself (tracefs-import) every line was a call.
  Asked By(const TableRow& row);

 private:
  using Key = std::pair<const format::TraceContext*, uint64_t>;
  static constexpr size_t kMost = 65536;  // of each set; then it begins again

  static Key KeyOf(const TableRow& row, Field field);
  static void Add(const Key& key, std::set<Key>* keys);
  Asked ByHandle(const TableRow& row);
  bool SyncsByItself(const TableRow& row) const;

  // Of each trace: handles that execve opened, those whose writes wait for the
  // disk (O_SYNC), and inodes of files that are mapped.
  std::set<Key> programs_;
  std::set<Key> synchronous_;
  std::set<Key> mapped_;
};

}  // namespace tracefs
