// The memory of a flight recorder (drivers/output/flight.h): rings of blocks,
// in memory or in a map file that outlives a killed daemon, and how a trace is
// made of what is in them. FORMAT.md section 13.
//
// A ring is a sequence of records, each a head and a frame, written one after
// the other and around. Its state is in the records alone: whatever moment the
// writer was killed at, the records that are whole tell what there is and how
// much was overwritten.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/marks.h"

namespace tracefs::format {

inline constexpr std::string_view kFlightMagic = "TRACEFLT";
inline constexpr uint32_t kFlightVersion = 1;
// What stands at the start of a map file; the rings follow, then preamble and
// block 0.
inline constexpr size_t kFlightHeadBytes = 4096;
inline constexpr uint32_t kMaxFlightRings = 1024;
inline constexpr size_t kMinFlightRingBytes = size_t{64} << 10;
inline constexpr size_t kMaxFlightRingBytes = size_t{1} << 30;
// All rings together: a reader holds them in memory.
inline constexpr uint64_t kMaxFlightBytes = uint64_t{4} << 30;

struct FlightMapHead {
  uint32_t rings = 0;
  uint64_t ring_bytes = 0;
};
// Exactly kFlightHeadBytes.
std::string EncodeFlightMapHead(const FlightMapHead& head);
Result<FlightMapHead> DecodeFlightMapHead(ByteSpan bytes);

// The head of a record: magic 4, CRC-32C of the rest 4, blocks and events that
// were written to this ring before 8 + 8, events of this block 8, bytes of the
// frame 4, CRC of the frame as in its header 4.
inline constexpr size_t kFlightRecordBytes = 40;
inline constexpr std::array<char, 4> kFlightRecordMagic = {'T', 'F', 'R',
                                                           '\x1a'};
// Records begin at multiples of this.
inline constexpr size_t kFlightRecordAlign = 8;

// Writes one ring. Used by one thread at a time.
class FlightRingWriter {
 public:
  // `memory` is zero, aligned, and outlives the writer.
  explicit FlightRingWriter(std::span<std::byte> memory) : memory_(memory) {}

  // False if the frame can never fit; nothing was touched.
  bool Write(ByteSpan header, ByteSpan payload, uint64_t events);

  uint64_t overwritten_events() const { return events_ - kept_events_; }
  uint64_t kept_blocks() const { return kept_blocks_; }
  std::span<const std::byte> memory() const { return memory_; }
  // Bytes of the memory, from its start, that were ever written.
  size_t used() const { return used_; }

 private:
  struct Record {
    size_t at;
    size_t size;
    uint64_t events;
  };
  void MakeRoom(size_t from, size_t to);

  const std::span<std::byte> memory_;
  size_t next_ = 0;
  size_t used_ = 0;
  std::vector<Record> records_;  // oldest at oldest_
  size_t oldest_ = 0;
  uint64_t blocks_ = 0;
  uint64_t events_ = 0;
  uint64_t kept_blocks_ = 0;
  uint64_t kept_events_ = 0;
};

// A whole trace, in the order of block numbers, of what is in the rings (whose
// memory may hold anything). `start` is preamble and block 0. The numbers of
// `mark` but `number` and `real_ns` are filled in.
std::string MakeSnapshot(std::string_view start, const Serial& serial,
                         std::span<const ByteSpan> rings, SnapshotMark mark);

// The snapshot of a map file: `fd` is one, of `bytes` bytes. kCorrupt if it is
// none or nothing can be read.
Result<std::string> ReadFlightMap(int fd, uint64_t bytes);

}  // namespace tracefs::format
