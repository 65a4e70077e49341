// TraceBuilder: makes traces in memory for tests, plainly and slowly, straight
// from FORMAT.md. Clocks and serial are fixed, so the same calls make the same
// bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/format/trace_header.h"

namespace tracefs::test {

// What an operation refers to in its block; 0 = nothing.
struct References {
  uint32_t path = 0;
  uint32_t parent = 0;
  uint32_t new_parent = 0;
  uint32_t process = 0;
};

class TraceBuilder {
 public:
  static constexpr uint64_t kMonotonicNs = 1'000'000'000;
  // 2026-01-02 03:04:05 UTC.
  static constexpr uint64_t kRealNs = 1'767'323'045'000'000'000;

  explicit TraceBuilder(std::string chain = "file");

  format::TraceHeader& header() { return header_; }
  format::Serial& serial() { return serial_; }
  static format::TraceHeader DefaultHeader();

  // --- The open block.
  uint32_t DefinePath(uint32_t parent, std::string_view name);
  uint32_t DefineProcess(const CallerInfo& caller);
  // The event's present numbers but the caller's (kPid, …) and a zero kErrno,
  // its texts, and the references.
  void Add(const Event& event, const References& references = {});
  void AddLoss(const format::LossRecord& loss);
  // Any message: `write` puts its arguments.
  void AddRaw(uint16_t msg_id,
              const std::function<void(format::MessageWriter&)>& write);
  // Any bytes, to the end of the block.
  void AddBytes(std::string_view bytes) { messages_ += bytes; }
  // For messages made with AddRaw that are operations.
  void CountEvent(uint64_t time_ns);

  // Ends the block; the watermark is by default the latest time so far.
  void EndBlock() { EndBlock(last_ns_); }
  void EndBlock(uint64_t watermark_ns);
  // Leaves a sequence number out.
  void SkipSequence() { ++sequence_; }
  uint64_t sequence() const { return sequence_; }

  // Ends the trace with a FINAL block.
  void Finish(std::string_view end_reason = "unmount");

  // The trace so far, without the open block; where its frames start.
  const std::string& bytes();
  // The same, but what was taken before, for traces that memory has no room
  // for. Offsets are those of what was taken last.
  std::string Take();
  const std::vector<size_t>& frame_offsets() const { return offsets_; }
  uint64_t events() const { return total_events_; }

  // A frame of any kind and payload, as it would be appended.
  std::string Frame(uint64_t sequence, std::string_view payload,
                    uint16_t kind = 1) const;
  void AppendFrame(std::string_view payload, uint16_t kind = 1);

 private:
  void Message(uint16_t msg_id,
               const std::function<void(format::MessageWriter&)>& write);
  void WriteStartOnce();

  format::TraceHeader header_ = DefaultHeader();
  format::Serial serial_;
  std::string chain_;
  bool started_ = false;
  std::string bytes_;
  std::vector<size_t> offsets_;
  uint64_t sequence_ = 0;

  std::vector<std::byte> scratch_;
  std::string messages_;  // of the open block, without BLOCK
  uint32_t paths_ = 0;
  uint32_t processes_ = 0;
  uint64_t events_ = 0;
  uint64_t block_first_ns_ = 0;
  uint64_t block_last_ns_ = 0;

  uint64_t last_ns_ = 0;
  uint64_t total_events_ = 0;
  uint64_t lost_events_ = 0;
};

}  // namespace tracefs::test
