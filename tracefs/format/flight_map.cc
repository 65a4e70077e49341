#include "tracefs/format/flight_map.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_io.h"
#include "tracefs/format/frame.h"

namespace tracefs::format {
namespace {

constexpr size_t AlignUp(size_t n) {
  return (n + kFlightRecordAlign - 1) / kFlightRecordAlign * kFlightRecordAlign;
}

struct FoundRecord {
  uint64_t sequence = 0;
  uint64_t blocks_before = 0;
  uint64_t events_before = 0;
  uint64_t events = 0;
  ByteSpan frame;
};

// The record at the start of `bytes`, if there is a whole one of this trace.
bool ParseRecord(ByteSpan bytes, const Serial& serial, FoundRecord* record) {
  if (bytes.size() < kFlightRecordBytes + kFrameHeaderBytes ||
      std::memcmp(bytes.data(), kFlightRecordMagic.data(),
                  kFlightRecordMagic.size()) != 0) {
    return false;
  }
  const std::byte* p = bytes.data();
  if (LoadLe<uint32_t>(p + 4) != Crc32c(bytes.subspan(8, 32))) return false;
  const size_t size = LoadLe<uint32_t>(p + 32);
  const ByteSpan rest = bytes.subspan(kFlightRecordBytes);
  if (size > rest.size()) return false;
  const auto frame = FrameAt(rest.first(size), serial);
  if (!frame || frame->payload.size() != size - kFrameHeaderBytes ||
      frame->header.crc != LoadLe<uint32_t>(p + 36)) {
    return false;
  }
  *record = {.sequence = frame->header.sequence,
             .blocks_before = LoadLe<uint64_t>(p + 8),
             .events_before = LoadLe<uint64_t>(p + 16),
             .events = LoadLe<uint64_t>(p + 24),
             .frame = rest.first(size)};
  return true;
}

// Adds the records of one ring to `all`, and what was overwritten to `mark`.
void CollectRing(ByteSpan ring, const Serial& serial,
                 std::vector<FoundRecord>* all, SnapshotMark* mark) {
  std::vector<FoundRecord> found;
  size_t at = 0;
  while (at + kFlightRecordBytes <= ring.size()) {
    FoundRecord record;
    if (ParseRecord(ring.subspan(at), serial, &record)) {
      found.push_back(record);
      at += AlignUp(kFlightRecordBytes + record.frame.size());
    } else {
      at += kFlightRecordAlign;
    }
  }
  // The newest has the highest count. What does not lead up to it without a gap
  // was left over by an earlier round.
  std::sort(found.begin(), found.end(),
            [](const FoundRecord& a, const FoundRecord& b) {
              return a.blocks_before < b.blocks_before;
            });
  size_t first = found.size();
  while (first > 0 &&
         (first == found.size() ||
          found[first - 1].blocks_before + 1 == found[first].blocks_before)) {
    --first;
  }
  if (first == found.size()) return;
  mark->overwritten_blocks += found[first].blocks_before;
  mark->overwritten_events += found[first].events_before;
  all->insert(all->end(), found.begin() + static_cast<ptrdiff_t>(first),
              found.end());
}

}  // namespace

std::string EncodeFlightMapHead(const FlightMapHead& head) {
  std::string bytes(kFlightHeadBytes, '\0');
  std::memcpy(bytes.data(), kFlightMagic.data(), kFlightMagic.size());
  StoreLe<uint32_t>(bytes.data() + 8, kFlightVersion);
  StoreLe<uint32_t>(bytes.data() + 12, head.rings);
  StoreLe<uint64_t>(bytes.data() + 16, head.ring_bytes);
  StoreLe<uint32_t>(bytes.data() + 24, Crc32c(AsBytes(bytes).first(24)));
  return bytes;
}

Result<FlightMapHead> DecodeFlightMapHead(ByteSpan bytes) {
  if (bytes.size() < kFlightHeadBytes ||
      AsText(bytes.first(kFlightMagic.size())) != kFlightMagic) {
    return Status::Corrupt("not the map of a flight recorder");
  }
  if (LoadLe<uint32_t>(bytes.data() + 24) != Crc32c(bytes.first(24))) {
    return Status::Corrupt("the head of the map is damaged");
  }
  if (const auto version = LoadLe<uint32_t>(bytes.data() + 8);
      version != kFlightVersion) {
    return Status::Invalid("the map has version " + std::to_string(version) +
                           "; this reader knows version " +
                           std::to_string(kFlightVersion) +
                           ": use a newer Tracefs");
  }
  const FlightMapHead head{.rings = LoadLe<uint32_t>(bytes.data() + 12),
                           .ring_bytes = LoadLe<uint64_t>(bytes.data() + 16)};
  if (head.rings == 0 || head.rings > kMaxFlightRings ||
      head.ring_bytes < kMinFlightRingBytes ||
      head.ring_bytes > kMaxFlightRingBytes ||
      head.rings * head.ring_bytes > kMaxFlightBytes) {
    return Status::Corrupt("the head of the map is damaged");
  }
  return head;
}

// Gives up what overlaps [from, to), the oldest records first: everything up to
// and including the last that overlaps.
void FlightRingWriter::MakeRoom(size_t from, size_t to) {
  while (oldest_ < records_.size()) {
    const Record& record = records_[oldest_];
    if (record.at >= to || record.at + record.size <= from) return;
    // A reader must not take it for one of this round.
    std::memset(memory_.data() + record.at, 0, kFlightRecordMagic.size());
    kept_events_ -= record.events;
    --kept_blocks_;
    ++oldest_;
  }
}

bool FlightRingWriter::Write(ByteSpan header, ByteSpan payload,
                             uint64_t events) {
  const size_t frame = header.size() + payload.size();
  const size_t size = AlignUp(kFlightRecordBytes + frame);
  if (size > memory_.size()) return false;
  if (next_ + size > memory_.size()) {
    // The rest of this round is older than what is at the start.
    MakeRoom(next_, memory_.size());
    next_ = 0;
  }
  MakeRoom(next_, next_ + size);
  if (oldest_ > 64 && oldest_ * 2 > records_.size()) {
    records_.erase(records_.begin(),
                   records_.begin() + static_cast<ptrdiff_t>(oldest_));
    oldest_ = 0;
  }
  std::byte* const p = memory_.data() + next_;
  std::memcpy(p + kFlightRecordBytes, header.data(), header.size());
  if (!payload.empty()) {
    std::memcpy(p + kFlightRecordBytes + header.size(), payload.data(),
                payload.size());
  }
  StoreLe<uint64_t>(p + 8, blocks_);
  StoreLe<uint64_t>(p + 16, events_);
  StoreLe<uint64_t>(p + 24, events);
  StoreLe<uint32_t>(p + 32, static_cast<uint32_t>(frame));
  std::memcpy(p + 36, header.data() + kFrameHeaderBytes - 4, 4);
  StoreLe<uint32_t>(p + 4, Crc32c(ByteSpan(p + 8, 32)));
  std::memcpy(p, kFlightRecordMagic.data(), kFlightRecordMagic.size());
  records_.push_back({next_, size, events});
  next_ += size;
  used_ = std::max(used_, next_);
  ++blocks_;
  ++kept_blocks_;
  events_ += events;
  kept_events_ += events;
  return true;
}

std::string MakeSnapshot(std::string_view start, const Serial& serial,
                         std::span<const ByteSpan> rings, SnapshotMark mark) {
  std::vector<FoundRecord> records;
  mark.overwritten_blocks = 0;
  mark.overwritten_events = 0;
  for (const ByteSpan ring : rings) {
    CollectRing(ring, serial, &records, &mark);
  }
  std::sort(records.begin(), records.end(),
            [](const FoundRecord& a, const FoundRecord& b) {
              return a.sequence < b.sequence;
            });
  mark.blocks = records.size();
  mark.events = 0;
  size_t bytes = start.size();
  for (const FoundRecord& record : records) {
    mark.events += record.events;
    bytes += record.frame.size();
  }
  // The mark stands between preamble and block 0.
  const auto preamble = PreambleLength(AsBytes(start));
  const size_t head = preamble.ok() ? std::min(*preamble, start.size()) : 0;
  std::string out;
  const std::string encoded = EncodeSnapshotMark(serial, mark);
  out.reserve(bytes + encoded.size());
  out += start.substr(0, head);
  out += encoded;
  out += start.substr(head);
  for (const FoundRecord& record : records) out += AsText(record.frame);
  return out;
}

Result<std::string> ReadFlightMap(int fd, uint64_t bytes) {
  const auto read_all = [fd](uint64_t from, uint64_t size,
                             std::string* into) -> Status {
    into->resize(size);
    const ssize_t got =
        ReadAt(fd, std::as_writable_bytes(std::span(*into)), from);
    if (got < 0) return Status::System(errno, "cannot read the map");
    if (static_cast<uint64_t>(got) < size) {
      return Status::Corrupt("the map is cut");
    }
    return Status::Ok();
  };
  if (bytes < kFlightHeadBytes) return Status::Corrupt("the map is cut");
  std::string text;
  if (Status s = read_all(0, kFlightHeadBytes, &text); !s.ok()) return s;
  const Result<FlightMapHead> head = DecodeFlightMapHead(AsBytes(text));
  if (!head.ok()) return head.status();
  const uint64_t rings_end = kFlightHeadBytes + head->rings * head->ring_bytes;
  if (bytes < rings_end) return Status::Corrupt("the map is cut");
  if (bytes - rings_end > kMaxPreambleBytes + kMaxPayloadBytes + 4096) {
    return Status::Corrupt("the map is longer than it can be");
  }
  std::string start;
  if (Status s = read_all(rings_end, bytes - rings_end, &start); !s.ok()) {
    return s;
  }
  const auto length = PreambleLength(AsBytes(start));
  if (!length.ok() || *length > start.size()) {
    return Status::Corrupt(
        "the recorder was stopped before it had begun: the map holds no "
        "description of the trace");
  }
  const Result<Preamble> preamble =
      DecodePreamble(AsBytes(start).first(*length));
  if (!preamble.ok()) return preamble.status();
  if (Status s =
          read_all(kFlightHeadBytes, rings_end - kFlightHeadBytes, &text);
      !s.ok()) {
    return s;
  }
  std::vector<ByteSpan> rings;
  for (uint32_t i = 0; i < head->rings; ++i) {
    rings.push_back(
        AsBytes(text).subspan(i * head->ring_bytes, head->ring_bytes));
  }
  // Any other chain gives the recorder each message before the operation is
  // answered (drivers/output/table.h, FlightHooks).
  const bool waits = preamble->chain.rfind("async", 0) == 0;
  return MakeSnapshot(
      start, preamble->serial, rings,
      {.reason = waits ? "map, without what async still held" : "map"});
}

}  // namespace tracefs::format
