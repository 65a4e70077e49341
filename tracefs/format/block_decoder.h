// BlockDecoder: turns the messages of one block into records, in order of
// their begin times. FORMAT.md sections 3 to 9.
//
// Memory: the block itself and a small multiple of it for its definitions and,
// where its messages are not in order, for an index; see footprint().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/event/event.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/process_message.h"
#include "tracefs/format/record.h"

namespace tracefs::format {

// Used by one thread. Not movable: records point back to it.
class BlockDecoder final : public EventResolver {
 public:
  // `trace` outlives the decoder.
  explicit BlockDecoder(TraceContext* trace) : trace_(trace) {}
  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;

  // Takes a block, reads its definitions, losses and FINAL, and goes to its
  // first operation. False, reported and counted, if it is not a block.
  // `sequence` and `offset` are those of its frame.
  bool Open(std::vector<std::byte> block, uint64_t sequence, uint64_t offset);

  uint64_t sequence() const { return sequence_; }
  uint64_t offset() const { return offset_; }
  // All its messages.
  ByteSpan bytes() const { return block_; }
  const BlockHead& head() const { return head_; }
  bool has_final() const { return has_final_; }
  // Bytes of memory this block holds.
  size_t footprint() const;

  // True when there is no further operation.
  bool at_end() const { return !has_next_; }
  // The begin time of the next operation, monotonic ns; where it has none, that
  // of the one before it. Not at the end.
  uint64_t next_time() const { return next_time_; }
  // Decodes the next operation and goes on. Not at the end. False if it was no
  // operation but a process record, which went to TraceContext::process: there
  // are none where nobody takes them.
  bool Next(Record* record);

  // EventResolver: nodes are path ids of this block.
  void ResolveCaller(Event&) override {}  // all that is known is there
  void ResolveAttributes(Event&) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override;
  void ForEachName(uint64_t node, void* context,
                   void (*visit)(void* context,
                                 std::string_view name)) override;
  // By what the trace has told of processes up to this block.
  bool ForEachAncestor(Event& event, void* context,
                       bool (*visit)(void* context, uint32_t pid,
                                     std::string_view comm)) override;

  // The path of a path id with `name`, if not empty, appended. As
  // tracefs::PathOf says, but without a virtual call for each component.
  std::string_view Path(uint64_t path_id, std::string_view name,
                        PathBuffer& buffer) const;

 private:
  struct PathDefinition {
    uint32_t message_offset;
    uint32_t parent;  // 0 = none: the root
    uint32_t name_offset;
    uint32_t name_size;
  };
  struct CachedCaller {
    uint32_t id = 0;  // 0 = nothing cached
    uint64_t present = 0;
    bool has_comm = false;
    std::string_view comm;  // in the block; info has what fits
    CallerInfo info;
    CallerDetails details;
    bool has_details = false;
    std::vector<ExtraArgument> opaque;  // numbers that are none
  };
  struct IndexEntry {
    uint64_t time;
    uint32_t offset;
  };
  static constexpr uint32_t kUndefined = UINT32_MAX;

  bool ReadFirstMessage(MessageCursor& in);
  void TellLoss(const LossRecord& loss);
  void TellChanges(const Message& message);
  void ReadOtherMessage(const Message& message);
  void DefinePath(const Message& message);
  void DefineProcess(const Message& message);
  void CountUnknownMessage(uint16_t msg_id);
  void CountUnknownArgument(uint16_t arg_id);
  void Malformed(ReportKind kind, uint64_t* counter);
  // The begin time of an operation; false if it has none.
  bool TimeOf(const Message& message, uint64_t* time) const;
  void BuildIndex();
  void GoToNext();
  bool IsDue(uint16_t msg_id) const;
  void HandOutProcess(ProcessRecord::Kind kind);
  void Decode(const Message& message, Record* record);
  void DecodeAs(Op op, bool before, const Message& message, Record* record);
  void SetCaller(uint32_t process_id, uint32_t message_offset, Record* record);
  uint32_t CheckPath(uint32_t path_id, size_t message_offset) const;
  Report MakeReport(ReportKind kind) const {
    return {.kind = kind, .offset = offset_, .number = sequence_};
  }

  TraceContext* const trace_;
  std::vector<std::byte> block_;
  uint64_t sequence_ = 0;
  uint64_t offset_ = 0;
  BlockHead head_;
  bool has_final_ = false;

  std::vector<PathDefinition> paths_;
  std::vector<uint32_t> processes_;  // offsets of their messages
  std::array<CachedCaller, 8> callers_;

  // Operations are walked by cursor_ if they are in order, else by index_.
  std::optional<MessageCursor> cursor_;
  std::vector<IndexEntry> index_;
  size_t index_at_ = 0;
  bool has_next_ = false;
  Message next_;
  uint64_t next_time_ = 0;
};

// The path an operation is about and the second one of rename and link: as the
// message gives them or as the definitions of its block do. Empty if unknown.
std::string_view PathOf(const Record& record, PathBuffer& buffer);
std::string_view NewPathOf(const Record& record, PathBuffer& buffer);

}  // namespace tracefs::format
