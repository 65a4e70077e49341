// BlockBuilder: one thread's open block of one tracer.
//
// Messages are appended by the thread that owns it; the holder of the thread's
// BiasedLock may take the block away. Every block stands alone: the paths and
// processes its messages refer to are defined inside it, on first use.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// Which fields of a process a tracer's DEF_PROCESS messages carry.
struct ProcessFields {
  bool pid = false, ppid = false, sid = false, pgid = false, comm = false;
  bool exe = false, cgroup = false, tty = false, cmdline = false;
  bool details() const { return exe || cgroup || tty || cmdline; }
  bool any() const { return pid || ppid || sid || pgid || comm || details(); }
};

// A block's memory and what is known about its contents.
// Where the daemon may die and another goes on (tracefs/survive), it lies in
// memory that the other sees, its contents behind it.
struct Block {
  explicit Block(size_t bytes)
      : memory(MemoryFor(bytes)), writer({memory.get(), bytes}) {}
  static void* operator new(size_t bytes) { return TakePlace(bytes); }
  static void operator delete(void* block) { GivePlace(block); }

  // Only of memory that is not behind it.
  struct Delete {
    bool owns = true;
    void operator()(std::byte* bytes) const {
      if (owns) delete[] bytes;
    }
  };
  using Memory = std::unique_ptr<std::byte[], Delete>;

  // What another daemon goes by. `bytes` is written last, and 0 first.
  struct Kept {
    uint32_t owner = 0;  // the tracer whose operations it holds; 0: of none
    std::atomic<uint64_t> bytes{0};  // of whole messages; 0: nothing is left
    std::atomic<uint64_t> written_as{0};  // the number of the block, plus 1
    // The members below, as they are with `bytes`.
    uint64_t events = 0, first_ns = 0, last_ns = 0;
    uint32_t phase = 0, op = 0, count = 0;
  };

  Memory memory;
  format::MessageWriter writer;
  uint32_t source = 0;  // BlockInfo::source
  uint64_t events = 0;
  uint64_t processes = 0;  // process records, which are in `counted`, too
  uint64_t counted = 0;    // BlockInfo::counted
  uint64_t first_ns = 0;   // earliest begin time of what it holds
  uint64_t last_ns = 0;
  // Events by operation, for the totals of FINAL; [1]: "before" messages.
  std::array<std::array<uint32_t, kOpCount>, 2> by_op{};
  Kept kept;

  bool empty() const { return events == 0; }
  // Among the operations and process records; 0 = there is none.
  uint64_t first_event_ns() const { return has_times() ? first_ns : 0; }
  uint64_t last_event_ns() const { return has_times() ? last_ns : 0; }
  bool has_times() const { return events + processes != 0; }
  void Reset();
  // Its operations, left by a dead daemon, in memory of its own; null if there
  // are none, or they were written as a block before number `sequence`. To be
  // called for all places before any of what they hold is written.
  static std::unique_ptr<Block> Left(void* place, uint32_t owner,
                                     uint64_t sequence);

 private:
  static void* TakePlace(size_t bytes);
  static void GivePlace(void* block);
  Memory MemoryFor(size_t bytes);
};

class BlockBuilder {
 public:
  // Smaller blocks could not hold the longest definitions and names.
  static constexpr size_t kMinBlockBytes = 4096;

  // `source`: of its blocks, BlockInfo::source. `owner`: the tracer's id.
  explicit BlockBuilder(size_t block_bytes, uint32_t source = 0,
                        uint32_t owner = 0);

  // One for each of the tracer's counters, in their order: its thread's counts.
  std::vector<std::unique_ptr<EventCounter::Shard>>& shards() {
    return shards_;
  }
  const EventCounter::Shard& shard(size_t i) const { return *shards_[i]; }

  // Opens an event: everything appended until Commit or Rollback is kept or
  // dropped together. The writer is for the message itself.
  void Mark() {
    mark_ = block_->writer.size();
    marked_path_id_ = next_path_id_;
    marked_process_id_ = next_process_id_;
    full_ = false;
  }
  format::MessageWriter& writer() { return block_->writer; }
  void Commit(const Event& event);
  // Drops what was appended since Mark.
  void Rollback();
  // True if a definition did not fit since Mark: the event needs a new block.
  bool full() const { return full_; }

  // Ids of a path or a process in this block; defines them there if needed.
  // Call before writer().Begin. 0 if unknown.
  uint32_t PathId(EventResolver& resolver, uint64_t node, uint32_t version,
                  uint64_t rename_epoch);
  // `details` may be null.
  uint32_t ProcessId(const CallerInfo& caller, const CallerDetails* details,
                     const ProcessFields& fields);
  // Whether PathId would find the path defined. Node 0 has none to define.
  bool HasPath(uint64_t node, uint32_t version, uint64_t rename_epoch) const;

  // The next record, with its definitions, might not fit.
  bool nearly_full() const {
    constexpr size_t kLongRecord = 8192;
    const format::MessageWriter& w = block_->writer;
    return w.left() < std::min(kLongRecord, (w.size() + w.left()) / 2);
  }

  // Takes the block for output and goes on in `replacement`, which is reset.
  std::unique_ptr<Block> Take(std::unique_ptr<Block> replacement);
  const Block& block() const { return *block_; }

 private:
  // Lossy two-way caches: a displaced entry costs one more definition.
  struct PathEntry {
    uint64_t node = 0;
    uint32_t version = 0;
    uint32_t block = 0;  // generation of the block it was defined in
    uint32_t id = 0;
  };
  struct ProcessEntry {
    uint64_t serial = 0;
    uint64_t details = 0;  // CallerDetails::number
    uint32_t block = 0;
    uint32_t id = 0;
  };
  static constexpr size_t kPathSets = 2048;
  static constexpr size_t kProcessSlots = 256;
  static constexpr size_t kMaxDetail = 1024;  // bytes, of a text of a process
  static constexpr int kMaxPathDepth = 512;

  void ForgetDefinitions() { ++generation_; }
  // The event is part of the block from here on, whatever happens to us.
  void Keep(const Event& event);
  uint32_t DefinePath(EventResolver& resolver, uint64_t node, uint32_t version,
                      int depth);

  const uint32_t source_;
  const uint32_t owner_;
  std::unique_ptr<Block> block_;
  std::vector<std::unique_ptr<EventCounter::Shard>> shards_;
  size_t mark_ = 0;
  bool full_ = false;
  uint32_t generation_ = 1;
  uint64_t rename_epoch_ = 0;
  uint32_t next_path_id_ = 1;
  uint32_t next_process_id_ = 1;
  uint32_t marked_path_id_ = 1;
  uint32_t marked_process_id_ = 1;
  std::vector<PathEntry> paths_;
  std::array<ProcessEntry, kProcessSlots> processes_{};
};

}  // namespace tracefs
