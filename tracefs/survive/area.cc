#include "tracefs/survive/area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

namespace tracefs::survive {
namespace {

Area* area_of_process = nullptr;

// Of Header::blocks; 1: a block.
constexpr uint8_t kHeld = 2;

}  // namespace

// Gives the slot back when the thread ends.
struct SlotOfThread {
  WorkSlot* slot = nullptr;
  ~SlotOfThread() {
    // The process ends where there is no area any more.
    if (slot == nullptr || area_of_process == nullptr) return;
    slot->now.unique.store(0, std::memory_order_relaxed);
    slot->forgets.store(0, std::memory_order_relaxed);
    slot->used.store(0, std::memory_order_release);
  }
};

namespace {

thread_local SlotOfThread slot_of_thread;

// A record of a kind: one that was given back, or the next one of those that
// were never used. kNone: all of `most` are taken.
uint32_t TakeFree(std::vector<uint32_t>& free, std::atomic<uint32_t>& used,
                  size_t most) {
  if (!free.empty()) {
    const uint32_t i = free.back();
    free.pop_back();
    return i;
  }
  const uint32_t i = used.load(std::memory_order_relaxed);
  if (i == most) return Area::kNone;
  used.store(i + 1, std::memory_order_release);
  return i;
}

// Those that were used and are free, the first one last.
template <typename IsFree>
std::vector<uint32_t> FreeBelow(const std::atomic<uint32_t>& used, size_t most,
                                IsFree is_free) {
  std::vector<uint32_t> free;
  for (auto i = static_cast<uint32_t>(std::min<size_t>(used.load(), most));
       i-- > 0;) {
    if (is_free(i)) free.push_back(i);
  }
  return free;
}

// All but whose it is.
void CopyResult(const Outcome& from, Outcome* to) {
  to->called.store(from.called.load());
  to->done.store(from.done.load());
  to->result.store(from.result.load());
  to->before.store(from.before.load());
  to->handle.store(from.handle.load());
  to->crashes.store(from.crashes.load());
  to->recorded.store(from.recorded.load());
}

bool HasResult(const Outcome& outcome) {
  return outcome.called.load(std::memory_order_relaxed) != 0 ||
         outcome.crashes.load(std::memory_order_relaxed) != 0 ||
         outcome.recorded.load(std::memory_order_relaxed) != 0;
}

}  // namespace

// Where what lies in the memory.
struct Area::Places {
  static constexpr size_t kPage = 4096;
  size_t header, slots, buffers, opens, locks, blocks, nodes, end;

  static constexpr Places Make() {
    Places p{};
    size_t at = 0;
    const auto take = [&](size_t bytes) {
      const size_t begin = at;
      at += (bytes + kPage - 1) / kPage * kPage;
      return begin;
    };
    p.header = take(sizeof(Header));
    p.slots = take(kSlots * sizeof(WorkSlot));
    p.buffers = take((kReaders + 1) * kBufferBytes);
    p.opens = take(kMostOpens * sizeof(OpenRecord));
    p.locks = take(kMostLocks * sizeof(LockRecord));
    p.blocks = take(Header::kBlocks * kBlockBytes);
    p.nodes = take(kMostNodes * sizeof(NodeRecord));
    p.end = at;
    return p;
  }
};

Area::Area() : bytes_(Places::Make().end) {}

Status Area::Map(int flags) {
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              flags | MAP_NORESERVE, file_.get(), 0);
  if (memory == MAP_FAILED) {
    return Status::System(errno, "memory that survives the daemon");
  }
  constexpr Places kPlaces = Places::Make();
  memory_ = memory;
  auto* const base = static_cast<std::byte*>(memory);
  header_ = reinterpret_cast<Header*>(base + kPlaces.header);
  slots_ = reinterpret_cast<WorkSlot*>(base + kPlaces.slots);
  buffers_ = base + kPlaces.buffers;
  blocks_ = base + kPlaces.blocks;
  opens_ = reinterpret_cast<OpenRecord*>(base + kPlaces.opens);
  locks_ = reinterpret_cast<LockRecord*>(base + kPlaces.locks);
  nodes_ = reinterpret_cast<NodeRecord*>(base + kPlaces.nodes);
  return Status::Ok();
}

Result<std::unique_ptr<Area>> Area::Open(UniqueFd file, bool aside) {
  std::unique_ptr<Area> area(new Area);
  struct stat st;
  // Of another size it is another version's; one that shrinks would kill us.
  if (::fstat(file.get(), &st) != 0 ||
      static_cast<size_t>(st.st_size) != area->bytes_ ||
      (::fcntl(file.get(), F_GET_SEALS) & F_SEAL_SHRINK) == 0) {
    return Status::SystemSaid(EUCLEAN, "the state is of another kind");
  }
  area->file_ = std::move(file);
  if (Status s = area->Map(aside ? MAP_PRIVATE : MAP_SHARED); !s.ok()) return s;
  if (area->header_->magic != Header::kMagic) {
    return Status::SystemSaid(EUCLEAN, "the state is of another kind");
  }
  return area;
}

Result<std::unique_ptr<Area>> Area::Make() {
  std::unique_ptr<Area> area(new Area);
  area->file_.Reset(static_cast<int>(
      ::memfd_create("tracefs-state", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  const int file = area->file_.get();
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(area->bytes_)) != 0 ||
      ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0) {
    return Status::System(errno, "memory that survives the daemon");
  }
  if (Status s = area->Map(MAP_SHARED); !s.ok()) return s;
  area->header_->magic = Header::kMagic;
  area->header_->next_node.store(2);
  area->header_->next_handle.store(1);
  area->header_->next_tracer.store(1);
  area->header_->keeper.store(-1);
  area->header_->daemon.store(-1);
  for (std::atomic<int32_t>& fd : area->header_->helpers) fd.store(-1);
  for (std::atomic<int32_t>& fd : area->header_->trace_helpers) fd.store(-1);
  for (OrderRecord& order : area->header_->orders) {
    for (std::atomic<int32_t>& fd : order.files) fd.store(-1);
  }
  // The first is of the thread that makes good what others left.
  area->slots_[0].used.store(1);
  return area;
}

Area::~Area() {
  if (area_of_process == this) area_of_process = nullptr;
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

Area* Area::OfProcess() { return area_of_process; }

void* Area::TakeBlock() {
  for (size_t i = 0; i < Header::kBlocks; ++i) {
    uint8_t free = 0;
    if (header_->blocks[i].load(std::memory_order_relaxed) == 0 &&
        header_->blocks[i].compare_exchange_strong(free, 1)) {
      return blocks_ + i * kBlockBytes;
    }
  }
  return nullptr;
}

void Area::GiveBlock(void* block) {
  const auto at = static_cast<size_t>(static_cast<std::byte*>(block) - blocks_);
  header_->blocks[at / kBlockBytes].store(0);
}

uint64_t Area::Hold(void* place) {
  const auto at = static_cast<size_t>(static_cast<std::byte*>(place) - blocks_);
  header_->blocks[at / kBlockBytes].store(kHeld);
  return at / kBlockBytes;
}

void* Area::Held(uint64_t number) {
  if (number >= Header::kBlocks || header_->blocks[number].load() != kHeld) {
    return nullptr;
  }
  return blocks_ + number * kBlockBytes;
}

void Area::ForEachHeld(const std::function<void(void* place)>& use) {
  for (size_t i = 0; i < Header::kBlocks; ++i) {
    if (header_->blocks[i].load() == kHeld) use(blocks_ + i * kBlockBytes);
  }
}

void Area::Release(void* held) {
  // A block from here on: what is held, but says no more what it is, nobody
  // would find if this process were killed now.
  const auto at = static_cast<size_t>(static_cast<std::byte*>(held) - blocks_);
  header_->blocks[at / kBlockBytes].store(1);
  // Nobody must take what was in it for a block's.
  static_cast<void>(::madvise(held, kBlockBytes, MADV_REMOVE));
  GiveBlock(held);
}

void Area::ForgetLeftBlocks() {
  for (void* const block : left_blocks_) GiveBlock(block);
  left_blocks_.clear();
}

void Area::ForgetLeftSlots() {
  for (WorkSlot* const slot : left_slots_) {
    slot->now.unique.store(0);
    slot->forgets.store(0);
    if (slot != &slots_[0]) slot->used.store(0);
  }
  left_slots_.clear();
}

void Area::Use() { area_of_process = this; }

WorkSlot* Area::OfThread() {
  Area* const area = area_of_process;
  if (area == nullptr) [[likely]]
    return nullptr;
  SlotOfThread& mine = slot_of_thread;
  if (mine.slot != nullptr) [[likely]]
    return mine.slot;
  for (size_t i = 1; i < kSlots; ++i) {
    uint32_t free = 0;
    if (area->slots_[i].used.compare_exchange_strong(free, 1)) {
      mine.slot = &area->slots_[i];
      mine.slot->now.unique.store(0);
      return mine.slot;
    }
  }
  // There are fewer threads than slots: kSlots bounds them (mount/run.cc).
  std::abort();
}

WorkSlot* Area::HadByThread() { return slot_of_thread.slot; }

void Area::BeFirst() { slot_of_thread.slot = &slots_[0]; }

uint32_t Area::TakeNode() {
  const std::lock_guard lock(mu_);
  return TakeFree(free_nodes_, header_->nodes_used, kMostNodes);
}

void Area::GiveNode(uint32_t i) {
  const std::lock_guard lock(mu_);
  free_nodes_.push_back(i);
}

uint32_t Area::TakeOpen() {
  const std::lock_guard lock(mu_);
  return TakeFree(free_opens_, header_->opens_used, kMostOpens);
}

void Area::GiveOpen(uint32_t i) {
  const std::lock_guard lock(mu_);
  free_opens_.push_back(i);
}

uint32_t Area::TakeLock() {
  const std::lock_guard lock(mu_);
  return TakeFree(free_locks_, header_->locks_used, kMostLocks);
}

void Area::GiveLock(uint32_t i) {
  const std::lock_guard lock(mu_);
  free_locks_.push_back(i);
}

void Area::FindFree() {
  const std::lock_guard lock(mu_);
  free_nodes_ = FreeBelow(header_->nodes_used, kMostNodes,
                          [this](uint32_t i) { return nodes_[i].id == 0; });
  free_opens_ = FreeBelow(header_->opens_used, kMostOpens,
                          [this](uint32_t i) { return opens_[i].node == 0; });
  free_locks_ = FreeBelow(header_->locks_used, kMostLocks,
                          [this](uint32_t i) { return locks_[i].file == 0; });
  for (size_t i = 0; i < kSlots; ++i) {
    if (slots_[i].used.load() != 0) left_slots_.push_back(&slots_[i]);
  }
  for (size_t i = 0; i < Header::kBlocks; ++i) {
    if (header_->blocks[i].load() == 1) {
      left_blocks_.push_back(blocks_ + i * kBlockBytes);
    }
  }
}

void Area::Count(uint32_t record, uint64_t node, int64_t delta, uint64_t now) {
  WorkSlot& slot = *OfThread();
  const uint32_t entry = slot.entered.load(std::memory_order_relaxed);
  slot.counted[entry % WorkSlot::kMostCounts] = {node, delta};
  slot.entered.store(entry + 1, std::memory_order_release);
  nodes_[record].count.store(now, std::memory_order_release);
  slot.settled.store(entry + 1, std::memory_order_release);
}

std::vector<WorkSlot::Counted> Area::CountedBy(const WorkSlot& slot) {
  std::vector<WorkSlot::Counted> sums;
  const uint32_t first = slot.first.load();
  const uint32_t entered = slot.entered.load();
  const uint32_t settled = slot.settled.load();
  if (entered - first > WorkSlot::kMostCounts) return sums;
  for (uint32_t i = first; i != entered; ++i) {
    const WorkSlot::Counted& one = slot.counted[i % WorkSlot::kMostCounts];
    // In doubt: a raise was not made, and its end was.
    if (i == settled && one.delta > 0) continue;
    const auto same =
        std::ranges::find(sums, one.node, &WorkSlot::Counted::node);
    if (same == sums.end()) {
      sums.push_back(one);
    } else {
      same->delta += one.delta;
    }
  }
  std::erase_if(sums, [](const auto& sum) { return sum.delta <= 0; });
  return sums;
}

std::atomic<int32_t>* Area::HelperOf(const OutputState& state) {
  for (size_t i = 0; i < header_->traces.size(); ++i) {
    if (&header_->traces[i].output == &state) {
      return &header_->trace_helpers[i];
    }
  }
  return nullptr;
}

void Area::CountEvent(const TraceRecord& trace) {
  WorkSlot* const slot = OfThread();
  if (slot == nullptr) return;
  // Of this thread alone.
  std::atomic<uint64_t>& events =
      slot->events[area_of_process->NumberOf(trace)];
  events.store(events.load(std::memory_order_relaxed) + 1,
               std::memory_order_relaxed);
}

uint64_t Area::CountedEvents(const TraceRecord& trace) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < kSlots; ++i) {
    sum += slots_[i].events[NumberOf(trace)].load();
  }
  return sum;
}

void Area::ForgetEvents(const TraceRecord& trace) {
  for (size_t i = 0; i < kSlots; ++i) {
    slots_[i].events[NumberOf(trace)].store(0);
  }
}

Outcome* Area::Pending(uint64_t unique) {
  const uint64_t wanted = unique & ~kSentAgain;
  for (Outcome& one : header_->pending) {
    if (one.unique.load(std::memory_order_acquire) == wanted) return &one;
  }
  return nullptr;
}

void Area::Remember(const Outcome& outcome) {
  const uint64_t unique = outcome.unique.load() & ~kSentAgain;
  const std::lock_guard lock(pending_mu_);
  Outcome* place = Pending(unique);
  if (place != nullptr && place->done.load() > outcome.done.load()) return;
  if (place == nullptr) place = Pending(0);
  if (place == nullptr) return;
  place->unique.store(0);
  CopyResult(outcome, place);
  place->unique.store(unique);
}

void Area::Offer() {
  const Outcome& now = OfThread()->now;
  if ((now.unique.load(std::memory_order_relaxed) & kSentAgain) != 0 &&
      HasResult(now)) {
    Remember(now);
  }
}

void Area::Park() {
  const Outcome& now = OfThread()->now;
  if (now.unique.load(std::memory_order_relaxed) != 0 && HasResult(now)) {
    Remember(now);
  }
}

Area::Detour::Detour(Area* area, uint64_t unique)
    : area_(unique != 0 ? area : nullptr) {
  if (area_ == nullptr) return;
  area_->Park();
  WorkSlot& slot = *OfThread();
  CopyResult(slot.now, &own_);
  own_.unique.store(slot.now.unique.load());
  first_ = slot.first.load();
  step_ = slot.step;
  area_->Begin(unique);
  if (Outcome* const known = area_->Pending(unique)) {
    CopyResult(*known, &slot.now);
    known->unique.store(0);
  }
}

Area::Detour::~Detour() {
  if (area_ == nullptr) return;
  WorkSlot& slot = *OfThread();
  slot.now.unique.store(0);
  CopyResult(own_, &slot.now);
  slot.first.store(first_);
  slot.step = step_;
  const uint64_t own = own_.unique.load();
  slot.now.unique.store(own, std::memory_order_release);
  Outcome* const known = own != 0 ? area_->Pending(own) : nullptr;
  if (known != nullptr) known->unique.store(0);
}

void Area::Leave() {
  OfThread()->now.unique.store(0, std::memory_order_release);
}

void Area::Begin(uint64_t unique) {
  WorkSlot& slot = *OfThread();
  Outcome& now = slot.now;
  now.unique.store(0, std::memory_order_relaxed);
  slot.step = 0;
  slot.first.store(slot.entered.load(std::memory_order_relaxed),
                   std::memory_order_relaxed);
  now.called.store(0, std::memory_order_relaxed);
  now.done.store(0, std::memory_order_relaxed);
  now.result.store(0, std::memory_order_relaxed);
  now.before.store(0, std::memory_order_relaxed);
  now.handle.store(0, std::memory_order_relaxed);
  now.crashes.store(0, std::memory_order_relaxed);
  now.recorded.store(0, std::memory_order_relaxed);
  if ((unique & kSentAgain) != 0) {
    if (Outcome* const known = Pending(unique)) {
      CopyResult(*known, &now);
      now.unique.store(unique, std::memory_order_release);
      known->unique.store(0, std::memory_order_release);
      return;
    }
  }
  now.unique.store(unique, std::memory_order_release);
}

}  // namespace tracefs::survive
