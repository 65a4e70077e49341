// The messages that tell about a block or a trace instead of an operation:
// BLOCK, LOSS and FINAL. FORMAT.md sections 6 and 8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

// The first message of every block but block 0. All times but clock.real_ns
// are of CLOCK_MONOTONIC, in ns.
struct BlockHead {
  uint32_t tracer_id = 0;
  ClockPair clock;
  uint64_t first_ns = 0;  // 0 if the block has no operation
  uint64_t last_ns = 0;
  // No later block of the trace has an operation that began before.
  uint64_t watermark_ns = 0;
  uint64_t events = 0;
};

// Writes BLOCK: exactly kBlockInfoBytes. To fill it in when the block is
// complete, write an empty one first and, at the end, another one with a second
// MessageWriter over the first kBlockInfoBytes of the same memory.
bool WriteBlockHead(MessageWriter& out, const BlockHead& head);
bool ReadBlockHead(ByteSpan arguments, BlockHead* head);

// How many messages of one id.
struct OpTotal {
  uint16_t msg_id = 0;
  uint64_t count = 0;
};
// A reader keeps no more totals of a message; more are hostile.
inline constexpr size_t kMaxOpTotals = 65536;

struct LossRecord {
  std::string_view reason;  // LossReasonName; when read, points into the block
  uint64_t count = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  // What was lost, by kind, where that is known.
  std::vector<OpTotal> op_totals = {};
};

bool WriteLoss(MessageWriter& out, const LossRecord& loss);
void ReadLoss(ByteSpan arguments, LossRecord* loss);

// What was changed about a running tracer.
struct ChangeRecord {
  // A reader keeps no more; more are hostile.
  static constexpr size_t kMaxProperties = 1024;

  uint64_t from_ns = 0;  // monotonic
  // As in START; when read, both point into the block.
  std::vector<std::pair<std::string_view, std::string_view>> properties;
};

bool WriteChange(MessageWriter& out, const ChangeRecord& change);
void ReadChange(ByteSpan arguments, ChangeRecord* change);

struct FinalRecord {
  // A reader keeps no more totals of a kind; more are hostile.
  static constexpr size_t kMaxTotals = 65536;

  using OpTotal = format::OpTotal;
  struct LossTotal {
    std::string reason;
    uint64_t count = 0;
  };

  uint32_t tracer_id = 0;
  ClockPair clock;
  uint64_t events = 0;
  uint64_t blocks = 0;  // this one included
  std::vector<OpTotal> op_totals;
  std::vector<LossTotal> loss_totals;
  std::string end_reason;  // "unmount", "stop", "signal", "error"
};

// A block that must hold FINAL needs kFinalMaxBytes in reserve, if there is one
// total per message id and loss reason of this version and the end reason has
// at most 64 bytes.
inline constexpr size_t kFinalMaxBytes = 4096;
bool WriteFinal(MessageWriter& out, const FinalRecord& final_record);
void ReadFinal(ByteSpan arguments, FinalRecord* final_record);

}  // namespace tracefs::format
