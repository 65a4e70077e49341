// PageOrder: keeps a page that is written back from undoing a write(2).
//
// Reads and writes go past the kernel's page cache (direct I/O), maps through
// it. Before and after sending a write, the kernel drops the pages that the
// write covers. A page that a process faults in between holds the old contents;
// if the process stores to it at once, the whole page comes back right after
// the write, with the old bytes around the stored ones. On the backing file,
// where both use one page, no byte of the write would be lost. So pages read
// and bytes written are remembered for a moment, in order, and of a page that
// comes back, only those bytes are written that no write has changed since it
// was read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace tracefs {

// The notes on one file. Threads: any. Holds the last kKept: those that matter
// are of calls that run at the same time.
class PageOrder {
 public:
  static constexpr size_t kKept = 64;
  static constexpr uint64_t kPageBytes = 4096;
  // A page that is taken while a write runs comes back within less.
  static constexpr uint64_t kLastsNs = 1'000'000'000;

  // Held over a write and its note, shared; over pages that go out,
  // exclusively: so that none of them comes between the two. A wait for it is a
  // wait for another store to the same file.
  std::shared_mutex& stores() { return stores_; }

  // Pages are about to be read for the cache.
  void NotePagesRead(uint64_t offset, uint64_t bytes) {
    Note({offset, offset + bytes, 0, /*written=*/false});
  }
  // A write that did not come from the cache is done.
  void NoteWritten(uint64_t offset, uint64_t bytes, uint64_t now_ns) {
    Note({offset, offset + bytes, now_ns, /*written=*/true});
  }

  // For pages that come back: calls put(offset, bytes) for each part that is to
  // be written, in order, until one returns false. Returns false then.
  template <typename Put>
  bool ForEachPart(uint64_t offset, uint64_t bytes, uint64_t now_ns,
                   Put&& put) const {
    const uint64_t end = offset + bytes;
    uint64_t from = offset;  // what is not yet put begins here
    for (uint64_t at = offset; at < end;) {
      uint64_t next;
      if (IsNewer(at, end, now_ns, &next)) {
        if (at > from && !put(from, at - from)) return false;
        from = next;
      }
      at = next;
    }
    return from >= end || put(from, end - from);
  }

 private:
  struct Entry {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t time_ns = 0;  // of a write
    bool written = false;
  };

  void Note(const Entry& entry);
  // Whether a write has put the byte at `at` since its page was read. `next`:
  // where the answer may change.
  bool IsNewer(uint64_t at, uint64_t end, uint64_t now_ns,
               uint64_t* next) const;

  std::shared_mutex stores_;  // before mu_
  mutable std::mutex mu_;
  std::array<Entry, kKept> entries_;  // guarded by mu_; the oldest is replaced
  size_t noted_ = 0;                  // guarded by mu_
};

}  // namespace tracefs
