// BlockRewriter: rewrites a block by a plan. Blocks stand alone, so several
// rewriters can work on blocks of one trace, and what comes out does not depend
// on which did what.
//
// The block may be hostile: lengths are checked, and what the plan does not
// cover is an error. Memory: a few times the block, and the caches.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "anonymize/name_mapper.h"
#include "anonymize/number_mapper.h"
#include "anonymize/plan.h"
#include "tracefs/base/bytes.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/message_cursor.h"

namespace tracefs::anonymize {

// Memory that grows and is never cleared.
class ByteBuffer {
 public:
  size_t size() const { return size_; }
  std::byte* data() { return data_.get(); }
  ByteSpan bytes() const { return {data_.get(), size_}; }
  void Clear() { size_ = 0; }
  void Truncate(size_t size) { size_ = size; }
  // Room for `n` more; what was there stays.
  std::byte* Room(size_t n) {
    if (capacity_ - size_ < n) Grow(n);
    return data_.get() + size_;
  }
  void Advance(size_t n) { size_ += n; }
  void Append(const std::byte* from, size_t n) {
    if (n != 0) std::memcpy(Room(n), from, n);
    size_ += n;
  }

 private:
  void Grow(size_t n);

  std::unique_ptr<std::byte[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Used by one thread.
class BlockRewriter {
 public:
  static constexpr size_t kDefaultCache = size_t{1} << 16;

  // `plan` and `maps` outlive the rewriter. `serial` is that of the new trace;
  // cache_entries: values remembered for each domain, 0 = none.
  static Result<std::unique_ptr<BlockRewriter>> Create(
      const Plan* plan, const format::Serial& serial, size_t cache_entries,
      MapTables* maps);

  // Appends the new block to `out`. kCorrupt if the block is malformed,
  // kInvalid if it holds what the plan does not cover; the message names
  // message and place in the block.
  Status Rewrite(ByteSpan block, uint64_t sequence, ByteBuffer* out);

  // A START block made from a description, which may be empty: of a trace that
  // has lost its own.
  Status WriteStart(const format::SelfDescription& description,
                    ByteBuffer* out);

  // Messages rewritten so far.
  uint64_t messages() const { return messages_; }
  // Operations among them.
  uint64_t operations() const { return operations_; }
  bool saw_final() const { return saw_final_; }
  // While revealing: names and texts that were not tokens of the keys given.
  uint64_t left_as_they_are() const;

 private:
  enum class Kind : uint8_t {
    kUnknown,
    kDropped,
    kStart,
    kBlock,
    kDefPath,
    kReasons,  // LOSS and FINAL: hold words that must be words
    kFinal,
    kOperation,
    kOther,
  };
  // What the innermost loop needs of a FieldPlan.
  struct Step {
    Treatment treatment = Treatment::kUnknown;
    int16_t slot = -1;
    uint16_t width = 0;
  };
  struct Path {  // with keys for directories
    uint32_t parent = 0;
    std::string name;   // in clear
    std::string shown;  // the anonymised path, when revealing
    // Most paths are files and never need theirs: made when it is asked for.
    DirectoryKey key;
    bool has_key = false;
  };
  // What a message says beside the argument at hand.
  struct Around {
    uint64_t begin_ns = 0;
    bool has_begin = false;
    uint32_t path_id = 0;
    uint32_t parent = 0;
    uint32_t new_parent = 0;
  };

  BlockRewriter(const Plan* plan, const format::Serial& serial);
  Step StepOf(uint16_t arg_id) const {
    if (arg_id < steps_.size()) return steps_[arg_id];
    const FieldPlan& field = plan_->Field(arg_id);
    return {field.treatment, static_cast<int16_t>(field.slot), field.width};
  }
  Status RewriteMessages(ByteSpan block, ByteBuffer* out);
  Status RewriteMessage(const format::Message& message, Kind kind,
                        ByteBuffer* out);
  Status RewriteArgument(const format::Argument& argument, Step step,
                         const Around& around, ByteBuffer* out);
  Status RewriteText(const format::Argument& argument, Step step,
                     const Around& around, ByteBuffer* out);
  Status RewriteOpaque(const format::Argument& argument, Step step,
                       ByteBuffer* out);
  Status RewritePipes(const format::Argument& argument, Step step,
                      ByteBuffer* out);
  Status RewriteHistogram(const format::Argument& argument, Step step,
                          ByteBuffer* out);
  Status RewriteProperty(const format::Argument& argument, ByteBuffer* out);
  Status RewriteBlockHead(ByteSpan arguments, ByteBuffer* out);
  Status ApplyNumbers(ByteBuffer* out);
  // What becomes of the text of a property; false if it is left out.
  Result<bool> MapProperty(std::string_view key, std::string_view value,
                           std::string* out);
  // A time of BLOCK or START, where a number must stand: what is dropped is
  // zero there, what is made opaque is shifted.
  Status MapClock(format::ArgId id, uint64_t* value);

  Around LookAround(ByteSpan arguments);
  DirectoryKey KeyOf(uint32_t path_id);
  void DefinePath(const Around& around, std::string_view before,
                  std::string_view after);
  Status CheckReasons(const format::Message& message) const;

  const Plan* const plan_;
  const format::Serial serial_;
  std::array<Step, 256> steps_{};
  std::vector<Kind> kinds_;  // by message id
  std::vector<NumberMapper> numbers_;
  std::vector<std::vector<uint32_t>> offsets_;  // in `out`, by slot
  std::vector<TextMapper> texts_;
  std::optional<Siv> property_siv_;
  SecretKey property_mac_key_;
  bool looks_around_ = false;
  const TextMapper* tree_ = nullptr;  // of the names with keys for directories

  // About the block at hand.
  RandomPlace random_;
  std::vector<Path> paths_;
  std::vector<std::string> sealed_;
  std::string text_;
  std::string defined_before_;
  std::string defined_after_;

  uint64_t messages_ = 0;
  uint64_t operations_ = 0;
  bool saw_final_ = false;
};

}  // namespace tracefs::anonymize
