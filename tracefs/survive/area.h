// Area: what a daemon leaves to the one that takes its place after a crash, in
// memory that both share.
//
// It is made before the daemon, at an address that stays the same in each
// (keeper.h); for another program, which has it at another address, there is a
// descriptor of it, and no record holds an address (hand_over.h). Records are
// written so that one that was torn by the end of a process is recognised: the
// word that makes it valid is written last, and cleared first. Nothing here is
// trusted by a successor that it can check: a record names a descriptor, and
// the descriptor says what file that is.
//
// Counts of look-ups must never be too low: the kernel would go on to use what
// is forgotten here. Each thread has a WorkSlot, and each change of a count is
// entered there before it is made; at most the last entry is in doubt, for some
// nanoseconds, and is then judged so that the count may come out too high.
//
// Memory: 96 bytes a node, 64 an open file, 160 KiB a thread, where they are
// used.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::survive {

// A file that the kernel knows by a number.
struct NodeRecord {
  static constexpr size_t kHandleBytes = 40;
  enum Flag : uint8_t { kSeveralNames = 1, kStores = 2, kCachedStores = 4 };

  std::atomic<uint64_t> id;     // 0: free
  std::atomic<uint64_t> count;  // look-ups
  uint64_t device;
  uint64_t inode;
  std::atomic<int32_t> fd;          // O_PATH, or -1
  std::atomic<int32_t> backing_id;  // backing_files.h
  int32_t handle_type;
  uint8_t handle_size;  // 0: none
  uint8_t type;         // d_type
  std::atomic<uint8_t> flags;
  uint8_t unused;
  std::array<uint8_t, kHandleBytes> handle;
  uint64_t unused_too;
};
static_assert(sizeof(NodeRecord) == 96);

// A file or directory that is open.
struct OpenRecord {
  std::atomic<uint64_t> node;  // 0: free
  uint64_t made_by;            // the request that opened it
  uint64_t handle_id;
  std::atomic<int32_t> fd;        // or -1
  std::atomic<int32_t> plain_fd;  // the one without O_DIRECT, or -1
  int32_t flags;
  uint32_t uid;
  uint32_t link_id;
  uint8_t io_mode;
  uint8_t passes;  // the kernel does its I/O
  uint8_t append_only;
  uint8_t is_dir;
  // Who used it last: a close comes without a caller. 0: not known.
  std::atomic<uint32_t> last_tid;
  std::atomic<uint32_t> last_uid;
  std::atomic<uint32_t> last_gid;
  uint32_t unused;
};
static_assert(sizeof(OpenRecord) == 64);

// A lock that somebody holds (tracefs/fs/lock_table.h).
struct LockRecord {
  std::atomic<uint64_t> file;  // its node; 0: free
  uint64_t owner;
  uint64_t handle;
  uint64_t start;
  uint64_t end;
  uint32_t pid;
  uint8_t type;
  uint8_t family;
  uint16_t unused;
  uint64_t unused_too[2];
};
static_assert(sizeof(LockRecord) == 64);

// What has come of a request that changes something, before it is answered.
struct Outcome {
  std::atomic<uint64_t> unique;  // of the request; 0: none
  // A request may change several things, one after the other. The first steps
  // are done, with this result; if `called` is larger, one more may be.
  std::atomic<uint32_t> called;
  std::atomic<uint32_t> done;
  std::atomic<int64_t> result;  // of the last step done: below 0: an errno
  // What it was before the step that `called` names, by operation (WasMade); 0:
  // not noted, and the call was not made.
  std::atomic<uint64_t> before;
  std::atomic<uint64_t> handle;   // the number of the one that it opens, or 0
  std::atomic<uint32_t> crashes;  // of daemons that were serving it
  // Its event is in a block: kRecorded, and the one before it ran: kForetold.
  std::atomic<uint32_t> recorded;
  static constexpr uint32_t kRecorded = 1;
  static constexpr uint32_t kForetold = 2;
};

// One thread of the daemon and what it is doing.
struct WorkSlot {
  static constexpr uint32_t kMostCounts = 8192;
  struct Counted {
    uint64_t node = 0;
    int64_t delta = 0;
  };

  Outcome now;
  // Running numbers of entries in `counted`: from `first` on they are this
  // request's; before `entered` they were entered, before `settled` made.
  std::atomic<uint32_t> first;
  std::atomic<uint32_t> entered;
  std::atomic<uint32_t> settled;
  // Of a FORGET, which never comes again: the reader's buffer that it is in,
  // plus 1, and how many of its items are done. 0: there is none.
  std::atomic<uint32_t> forgets;
  std::atomic<uint32_t> items;
  std::atomic<uint32_t> used;  // by a thread
  uint32_t step;               // of Once, on this thread
  // Events that aggregates have counted, by trace; of all threads that have had
  // the slot.
  std::array<std::atomic<uint64_t>, 64> events;
  std::array<Counted, kMostCounts> counted;
};

// What the stages of an output go on with, each with its own members.
struct OutputState {
  uint64_t bytes;  // of the file
  // A file in parts, of which one is written.
  uint64_t part;
  uint64_t oldest;  // part that is kept
  uint64_t next_number;
  uint64_t blocks, events, began_ns;  // the part's
  uint64_t memory;  // the place for a block that its parts have, plus 1
  uint32_t link;
  int32_t fd;  // -1: the one that it was opened with
  // Checksums.
  uint64_t previous;  // block
  uint64_t tagged;    // blocks
  uint64_t sealed_from_ns;
  uint64_t epoch;
  std::array<std::byte, 32> hash;
  std::array<std::byte, 32> key_id;
  // Seeds of the keys of blocks to come. Last: only what is used is copied.
  uint64_t key_bytes;
  std::array<char, 8400> keys;
};

// Where a trace stands: of a block that was written, or two of them, of which
// one is whole at any moment.
struct TraceState {
  uint64_t sequence;  // of the next block
  uint64_t ended;     // 1: the trace has its end
  uint64_t recorded;
  uint64_t told;                  // events, by the records of aggregates
  std::array<uint64_t, 16> lost;  // by reason, as reported
  std::array<std::array<uint64_t, 64>, 2> by_op;  // [1]: "before" messages
  OutputState output;
};
struct TraceRecord {
  std::atomic<uint32_t> turns;  // the state is [turns % 2]; 0: none yet
  // By reason, whether a message has told of it or not; and of blocks that were
  // written, and lost afterwards.
  std::array<std::atomic<uint64_t>, 16> lost;
  std::atomic<uint64_t> late_events;
  std::atomic<uint64_t> late_blocks;
  std::atomic<uint64_t> counts;  // of aggregates: a text (kept_text.h)
  std::array<TraceState, 2> states;
  OutputState output;  // as its stages have it, for the next state
};

// What clients have had changed about a trace since the mount began
// (tracefs/tracers/orders.h).
struct OrderRecord {
  static constexpr size_t kMostFiles = 16;
  // The number of the place (Area::Hold) that says what, plus 1; 0: nothing.
  std::atomic<uint64_t> said;
  // What its stages were given, by number; or -1.
  std::array<std::atomic<int32_t>, kMostFiles> files;
};

// What daemons do about traces, where one after the other has crashed.
enum class Tracing : uint32_t {
  kOn,
  kEnds,  // the next one ends the traces, and serves without
  kOff,   // it does not even touch them
};

struct Header {
  static constexpr uint64_t kMagic = 0x3676727573667274;  // "trfsurv6"
  uint64_t magic;
  std::atomic<uint64_t> next_node;
  std::atomic<uint64_t> next_handle;
  std::atomic<uint32_t> nodes_used;  // records below it may be in use
  std::atomic<uint32_t> opens_used;
  std::atomic<uint32_t> locks_used;
  std::atomic<uint32_t> successions;
  std::atomic<uint32_t> crashes;  // deaths that no SIGKILL was the reason of
  std::atomic<uint32_t> served;   // the newest daemon has begun to serve
  std::atomic<uint32_t> told;     // whoever waits for the mount: it is there
  // The mount ends: a daemon that is killed meanwhile is followed by one that
  // goes on with that, until the traces have their end.
  std::atomic<uint32_t> ended;
  static constexpr uint32_t kEnding = 2;
  static constexpr uint32_t kEnded = 1;
  std::atomic<int32_t>
      end_status;                 // the mount's exit status, once it has ended
  std::atomic<uint32_t> doubts;   // requests whose outcome was inferred
  std::atomic<uint32_t> refused;  // requests that daemons crashed at
  std::atomic<Tracing> tracing;
  // Of the newest daemon: the slot, plus 1, of the thread that crashed it
  // (faults.h); kSomeFault: it is not known which.
  std::atomic<uint32_t> faulted;
  std::atomic<uint32_t> gave_up;  // it ends because it cannot go on
  static constexpr uint32_t kSomeFault = ~uint32_t{0};
  // Where the handing over to another program stands, and how many there were
  // (hand_over.h); and those that a trace has been told of. The keeper that has
  // left its place to its spare.
  std::atomic<uint64_t> hand_over;
  std::atomic<uint32_t> upgrades_told;
  std::atomic<int32_t> abdicated;
  std::array<char, 1024> refusal;  // why another program did not take over
  // What the first daemon and the kernel agreed on; [0]: 0, nothing yet.
  std::array<uint64_t, 8> agreed;
  // Keepers that took the place of one that was killed; the process that is the
  // keeper, and a pidfd of the daemon, or -1 (keeper.h).
  std::atomic<uint32_t> keepers;
  std::atomic<int32_t> keeper;
  std::atomic<int32_t> daemon;
  // The sockets of helper processes, in the order in which these were made.
  std::array<std::atomic<int32_t>, 256> helpers;
  // The signal that has told the mount to end, or 0.
  std::atomic<int32_t> told_to_end;
  std::atomic<uint64_t> died_ns;         // when the last one was found dead
  std::atomic<uint64_t> longest_gap_ns;  // from a death until served again
  std::atomic<uint32_t> init_size;       // of what follows; 0: not yet
  std::array<std::byte, 256> init;       // the kernel's first request
  // Which places for blocks of traces are taken.
  static constexpr size_t kBlocks = 2048;
  std::array<std::atomic<uint8_t>, kBlocks> blocks;
  std::array<TraceRecord, 64> traces;
  // What was changed of each. Those that clients have added are there only
  // where their bit is set.
  std::array<OrderRecord, 64> orders;
  std::atomic<uint64_t> added;
  std::atomic<uint32_t> next_tracer;  // ids below it have been used
  // A client has added one that lets nothing be done unrecorded.
  std::atomic<uint32_t> stays_shut;
  // Of dead daemons, until it is answered.
  std::array<Outcome, 512> pending;
  // The helpers of traces that clients have added, by trace.
  std::array<std::atomic<int32_t>, 64> trace_helpers;
};

class Area {
 public:
  static constexpr size_t kMostNodes = size_t{1} << 26;
  static constexpr size_t kMostOpens = size_t{1} << 20;
  static constexpr size_t kMostLocks = size_t{1} << 21;
  static constexpr size_t kSlots = 256;
  static constexpr size_t kReaders = 32;
  static constexpr size_t kBufferBytes = (size_t{1} << 20) + 8192;
  // A block of a trace, 16 MiB at most, and what is known of it.
  static constexpr size_t kBlockBytes = (size_t{16} << 20) + (size_t{64} << 10);

  // kSystem if there is no room.
  static Result<std::unique_ptr<Area>> Make();
  // That of another program, by its descriptor; kSystem EUCLEAN if it is none.
  // `aside`: what is changed there nobody else sees.
  static Result<std::unique_ptr<Area>> Open(UniqueFd file, bool aside);
  ~Area();
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  Header& header() { return *header_; }
  const Header& header() const { return *header_; }
  NodeRecord& node(uint32_t i) { return nodes_[i]; }
  OpenRecord& open(uint32_t i) { return opens_[i]; }
  LockRecord& lock(uint32_t i) { return locks_[i]; }
  WorkSlot& slot(size_t i) { return slots_[i]; }
  // The memory itself.
  int file() const { return file_.get(); }

  // Where reader `i` reads requests into; kReaders: whoever takes over.
  std::byte* buffer(size_t i) { return buffers_ + i * kBufferBytes; }

  // --- Of one daemon; what follows is forgotten by the next.

  // A record that is free, its number; kNone when there are none.
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t TakeNode();
  void GiveNode(uint32_t i);
  uint32_t TakeOpen();
  void GiveOpen(uint32_t i);
  uint32_t TakeLock();
  void GiveLock(uint32_t i);
  // Finds the records that are free, in a daemon that begins.
  void FindFree();

  // A place for a block that a later daemon finds; null: there is none.
  void* TakeBlock();
  void GiveBlock(void* block);
  // It is no block: it stays whatever daemons come. Its number, and where it
  // is then.
  uint64_t Hold(void* place);
  void* Held(uint64_t number);
  void ForEachHeld(const std::function<void(void* place)>& use);
  // It is empty, and free.
  void Release(void* held);
  bool IsBlock(const void* at) const {
    return at >= blocks_ && at < blocks_ + Header::kBlocks * kBlockBytes;
  }
  // Those of dead daemons; and they are not needed any more.
  const std::vector<void*>& left_blocks() const { return left_blocks_; }
  void ForgetLeftBlocks();

  // The one of this process; null: there is none.
  static Area* OfProcess();

  // This thread's; null where there is no area. The thread has it until it
  // ends.
  static WorkSlot* OfThread();
  // The same of a thread that has had it, from a handler of signals.
  static WorkSlot* HadByThread();
  // Which area OfThread is about; one per process.
  void Use();
  // This thread makes good what others left, and has the slot for that. Before
  // FindFree.
  void BeFirst();
  // Of threads of dead daemons, that one first; and they are free again.
  const std::vector<WorkSlot*>& left_slots() const { return left_slots_; }
  void ForgetLeftSlots();
  uint32_t NumberOf(const WorkSlot& slot) const {
    return static_cast<uint32_t>(&slot - slots_);
  }

  // Makes `now` the count of look-ups in `record`, of which `delta` is this
  // thread's doing. With the lock of the count held.
  void Count(uint32_t record, uint64_t node, int64_t delta, uint64_t now);
  // By how much the request of a dead thread's slot has raised the counts of
  // nodes: at most what it did.
  static std::vector<WorkSlot::Counted> CountedBy(const WorkSlot& slot);

  // Where the descriptor of a trace's helper is, of the trace whose stages have
  // that state; null: it is no trace's.
  std::atomic<int32_t>* HelperOf(const OutputState& state);
  // The place of a trace's record.
  size_t NumberOf(const TraceRecord& trace) const {
    return static_cast<size_t>(&trace - header_->traces.data());
  }
  // An aggregate of that trace is about to count an event.
  static void CountEvent(const TraceRecord& trace);
  // How many that were; and they are forgotten.
  uint64_t CountedEvents(const TraceRecord& trace) const;
  void ForgetEvents(const TraceRecord& trace);

  // --- Requests.
  // This thread begins with a request; one that was sent again has the outcome
  // that it had.
  void Begin(uint64_t unique);
  // What is known of a request that was sent again; null: nothing.
  Outcome* Pending(uint64_t unique);
  // Remembers the outcome of a request that will be sent again.
  void Remember(const Outcome& outcome);
  // This thread is about to leave its request to another: what is known of it
  // is remembered. And it has left it.
  void Offer();
  void Leave();
  // This thread's request will be ended later, by some thread: what is known of
  // it is remembered.
  void Park();
  // This thread ends one that was parked, while it serves another, to which it
  // comes back.
  class Detour {
   public:
    // `area` null, or `unique` 0: nothing happens.
    Detour(Area* area, uint64_t unique);
    ~Detour();
    Detour(const Detour&) = delete;
    Detour& operator=(const Detour&) = delete;

   private:
    Area* area_;
    Outcome own_{};
    uint32_t first_ = 0;
    uint32_t step_ = 0;
  };

 private:
  struct Places;

  Area();
  Status Map(int flags);

  size_t bytes_ = 0;
  UniqueFd file_;
  void* memory_ = nullptr;
  Header* header_ = nullptr;
  WorkSlot* slots_ = nullptr;
  NodeRecord* nodes_ = nullptr;
  OpenRecord* opens_ = nullptr;
  LockRecord* locks_ = nullptr;
  std::byte* buffers_ = nullptr;
  std::byte* blocks_ = nullptr;
  std::vector<void*> left_blocks_;
  std::vector<WorkSlot*> left_slots_;

  std::mutex pending_mu_;  // one at a time remembers
  std::mutex mu_;          // guards what is free
  std::vector<uint32_t> free_nodes_;
  std::vector<uint32_t> free_opens_;
  std::vector<uint32_t> free_locks_;
  friend struct SlotOfThread;
};

// Bit 63 of a request's number: it was sent again (FUSE_UNIQUE_RESEND).
inline constexpr uint64_t kSentAgain = uint64_t{1} << 63;

// A change below that must not be made twice: calls `call(again)`, unless it is
// known from a dead daemon what that returned. `again`: it may have been called
// before, and nobody knows what came of it.
template <typename Call>
int64_t Once(Call&& call) {
  WorkSlot* const slot = Area::OfThread();
  if (slot == nullptr) [[likely]]
    return call(false);
  Outcome& now = slot->now;
  if (now.unique.load(std::memory_order_relaxed) == 0) return call(false);
  const uint32_t number = ++slot->step;
  const uint32_t done = now.done.load(std::memory_order_relaxed);
  if (number < done) return 0;
  if (number == done) return now.result.load(std::memory_order_relaxed);
  const bool again = now.called.load(std::memory_order_relaxed) >= number;
  if (!again) now.before.store(0, std::memory_order_relaxed);
  now.called.store(number, std::memory_order_release);
  const int64_t result = call(again);
  now.result.store(result, std::memory_order_relaxed);
  now.done.store(number, std::memory_order_release);
  return result;
}

// What was recorded of this thread's request, by it or by a dead daemon.
inline bool HasRecorded(uint32_t what) {
  const WorkSlot* const slot = Area::OfThread();
  return slot != nullptr &&
         slot->now.unique.load(std::memory_order_relaxed) != 0 &&
         (slot->now.recorded.load(std::memory_order_relaxed) & what) != 0;
}
inline void NoteRecorded(uint32_t what) {
  if (WorkSlot* const slot = Area::OfThread()) {
    slot->now.recorded.store(slot->now.recorded.load() | what);
  }
}

// A change is about to be made that can be recognised afterwards.
inline void NoteCall() {
  if (WorkSlot* const slot = Area::OfThread()) slot->now.called.store(1);
}

// What such a call has to know if it is made again.
inline void NoteBefore(uint64_t value) {
  if (WorkSlot* const slot = Area::OfThread()) slot->now.before.store(value);
}
inline uint64_t NotedBefore() {
  const WorkSlot* const slot = Area::OfThread();
  return slot == nullptr ? 0 : slot->now.before.load();
}

// What comes of this thread's request is inferred.
inline void NoteDoubt() {
  if (Area* const area = Area::OfProcess()) area->header().doubts.fetch_add(1);
}

// What a call does to what it is about.
enum class Change : uint8_t { kMakes, kTakes };

// For the call of Once: whether a dead daemon has made it. `look` says what is
// there now, of which the call makes something or something else: a number, or
// 0. It is not asked where nothing survives.
template <typename Look>
bool WasMade(bool again, Change change, Look&& look) {
  if (Area::OfThread() == nullptr) [[likely]]
    return false;
  const uint64_t noted = NotedBefore();
  const uint64_t now = look();
  if (!again || noted == 0) {
    NoteBefore(now + 1);
    return false;
  }
  NoteDoubt();
  const uint64_t was = noted - 1;
  return now != was && (change == Change::kMakes ? now : was) != 0;
}

// Whether this thread's request may have been made by a dead daemon.
inline bool MayBeMade() {
  const WorkSlot* const slot = Area::OfThread();
  return slot != nullptr &&
         (slot->now.unique.load(std::memory_order_relaxed) & kSentAgain) != 0 &&
         slot->now.called.load(std::memory_order_relaxed) != 0;
}

}  // namespace tracefs::survive
