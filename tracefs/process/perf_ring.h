// The ring of a processor's tracepoints (perf_event_open(2)): memory that the
// kernel writes and we read, with no system call for a record.
//
// Nothing in it is trusted: it is another processor that writes there, and in a
// ring that is read backwards it goes on writing over what is being read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// What a sample of registers says of a 64-bit program:
// PERF_SAMPLE_REGS_ABI_64.
inline constexpr uint64_t kRegistersOf64Bit = 2;

// The bytes of a ring, a power of two of them, read at positions that count on
// for ever and wrap around in it.
class RingBytes {
 public:
  RingBytes() = default;
  explicit RingBytes(ByteSpan bytes) : bytes_(bytes) {}

  uint64_t size() const { return bytes_.size(); }
  // A word at a multiple of eight, as it is at this moment.
  uint64_t Word(uint64_t position) const {
    const std::byte* const at =
        bytes_.data() + (position & (bytes_.size() - 1) & ~uint64_t{7});
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(at),
                           __ATOMIC_RELAXED);
  }
  // The `out.size()` bytes from there on, which may wrap around. As much as the
  // ring holds, at most.
  void Copy(uint64_t position, std::span<std::byte> out) const;

 private:
  ByteSpan bytes_;
};

// Head of a record: linux/perf_event.h, struct perf_event_header.
struct PerfRecordHead {
  uint32_t type = 0;
  uint16_t size = 0;  // all of the record; a multiple of eight, 16 at least

  // False if there is no record there.
  static bool At(const RingBytes& ring, uint64_t position,
                 PerfRecordHead* head) {
    const uint64_t word = ring.Word(position);
    head->type = static_cast<uint32_t>(word);
    head->size = static_cast<uint16_t>(word >> 48);
    return head->size >= 16 && head->size % 8 == 0;
  }
};

// A sample as AttributesOf in tracefs/daemon/tracepoints.cc asks for it.
struct PerfSample {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  ByteSpan raw;          // what the tracepoint tells
  ByteSpan rest;         // registers and stack, where they were asked for
  uint64_t abi = 0;      // of the registers: 2 = 64

  // `record`: without its head. False if its sizes are not those of a sample.
  static bool Parse(ByteSpan record, PerfSample* sample);
};

// A mapped ring. Threads: see its two readers.
class PerfRing {
 public:
  // `files`: of OpenTracepointsOn; the first gets the ring, of `pages` pages, a
  // power of two, or fewer where no more may be locked. `in_order`: read by
  // Take; otherwise from `newest()` on. kSystem if the memory may not be
  // locked: RLIMIT_MEMLOCK.
  static Result<PerfRing> Map(std::vector<UniqueFd> files, size_t pages,
                              bool in_order);
  ~PerfRing();
  PerfRing(PerfRing&& other) noexcept
      : files_(std::move(other.files_)),
        instead_of_first_(std::move(other.instead_of_first_)),
        map_(std::exchange(other.map_, nullptr)),
        map_bytes_(other.map_bytes_),
        bytes_(other.bytes_) {}
  PerfRing& operator=(PerfRing&&) = delete;

  // Lets `file` write here what the first of the files did so far, which tells
  // no more; what both told meanwhile is here twice. `file`: as that one, of
  // the same processor. On failure all is as it was. Threads: one at a time,
  // beside those that read.
  Status ReplaceFirst(UniqueFd file);

  int fd() const { return files_.front().get(); }
  const RingBytes& bytes() const { return bytes_; }

  // Where the newest record begins, in a ring that is written backwards; older
  // ones follow at higher positions. It counts down from 0. Threads: any.
  uint64_t newest() const;

  // Calls `use(head, record without its head)` for what has come since, and
  // gives its room back. False if the ring holds nonsense, and was emptied.
  // Threads: one.
  template <typename Use>
  bool Take(Use&& use) {
    const uint64_t head = newest();
    uint64_t tail = Tail();
    bool sane = head - tail <= bytes_.size();
    std::vector<std::byte> record;
    while (sane && tail != head) {
      PerfRecordHead at;
      sane = PerfRecordHead::At(bytes_, tail, &at) && at.size <= head - tail;
      if (!sane) break;
      record.resize(at.size - 8);
      bytes_.Copy(tail + 8, record);
      use(at, ByteSpan(record));
      tail += at.size;
    }
    SetTail(head);
    return sane;
  }

 private:
  PerfRing() = default;
  uint64_t Tail() const;
  void SetTail(uint64_t tail);

  std::vector<UniqueFd> files_;
  // What tells in place of the first of them, which has the ring. Closed by the
  // next one.
  UniqueFd instead_of_first_;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  RingBytes bytes_;
};

}  // namespace tracefs
