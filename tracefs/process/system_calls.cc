#include "tracefs/process/system_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "tracefs/process/perf_ring.h"

namespace tracefs {
namespace {

// PERF_SAMPLE_REGS_ABI_64.
// 512 KiB a processor: what an ordinary system lets a user lock for this
// (perf_event_mlock_kb), and some 4600 calls.
constexpr size_t kCallRingBytes = size_t{1} << 19;
// The kernel may be writing this much beyond what it says it has written.
constexpr uint64_t kMargin = 4096;
// Records to go through for one request at most: some 100 us.
constexpr size_t kLimit = 8192;
constexpr size_t kMaxProcessors = 1024;
// A sample of a ring of calls is shorter.
constexpr size_t kMaxSample = 256;
// Before the filter is set again: until a session has the threads it needs, and
// twice as long each time, as threads may come and go.
constexpr std::chrono::milliseconds kFirstPause(200);
constexpr std::chrono::minutes kLongestPause(1);

bool IsAsync(uint32_t call) {
  return call == SYS_io_submit || call == SYS_io_uring_enter;
}

// Where the search stands in a ring.
struct Cursor {
  const CallRing* ring = nullptr;
  uint64_t position = 0;
  uint64_t time_ns = 0;  // of the record there
  uint32_t tid = 0;
  uint16_t size = 0;  // 0: at the end
  bool sample = false;
  bool nonsense = false;

  // What was ever written is at [newest, 0) modulo 2^64; of that the ring
  // holds the newest.
  uint64_t written() const { return 0 - ring->newest; }
  uint64_t offset() const { return position - ring->newest; }
  // There were older records, which are gone.
  bool has_lost() const {
    return written() >
           ring->bytes.size() - std::min(kMargin, ring->bytes.size());
  }

  // Reads the record at `position`, if there is one.
  void Look() {
    constexpr uint32_t kSample = 9;  // PERF_RECORD_SAMPLE
    size = 0;
    const uint64_t room = ring->bytes.size();
    if (room < 2 * kMargin) return;
    const uint64_t held = std::min(written(), room - kMargin);
    PerfRecordHead head;
    if (offset() + 24 > held) return;
    if (!PerfRecordHead::At(ring->bytes, position, &head)) {
      nonsense = true;
      return;
    }
    if (offset() + head.size > held) return;
    size = head.size;
    sample = head.type == kSample && head.size >= 24;
    if (!sample) return;  // keeps the time of the one before
    tid = static_cast<uint32_t>(ring->bytes.Word(position + 8) >> 32);
    time_ns = ring->bytes.Word(position + 16);
  }
};

CallFound Judge(const Cursor& at, const CallLayout& layout, uint32_t* call) {
  std::array<std::byte, kMaxSample> bytes;
  if (at.size > bytes.size()) return CallFound::kNonsense;
  const auto record = std::span(bytes).first(at.size - 8u);
  at.ring->bytes.Copy(at.position + 8, record);
  PerfSample sample;
  if (!PerfSample::Parse(record, &sample)) return CallFound::kNonsense;
  const std::optional<uint16_t> event = TracepointNumber(sample.raw);
  if (event == layout.signal) return CallFound::kSignal;
  if (event != layout.enter) return CallFound::kNonsense;
  const std::optional<uint64_t> id = TracepointValue(sample.raw, layout.id);
  if (!id) return CallFound::kNonsense;
  // Calls of x32 have a bit more.
  if (sample.abi != kRegistersOf64Bit || *id > 0xffff)
    return CallFound::kCompat;
  *call = static_cast<uint32_t>(*id);
  return CallFound::kCall;
}

}  // namespace

bool CallLayout::Find(const TracepointLayout& layout, CallLayout* found) {
  const auto enter = layout.find("raw_syscalls/sys_enter");
  const auto signal = layout.find("signal/signal_deliver");
  if (enter == layout.end() || signal == layout.end()) return false;
  *found = {.enter = enter->second.number,
            .signal = signal->second.number,
            .id = enter->second.Field("id")};
  return found->id.size != 0;
}

CallFound FindCall(std::span<const CallRing> rings, const CallLayout& layout,
                   uint32_t tid, size_t limit, uint32_t* call,
                   std::span<uint64_t> checked) {
  // Few machines have more; there the others wait their turn on the heap.
  std::array<Cursor, 64> few;
  std::vector<Cursor> many;
  std::span<Cursor> cursors =
      std::span(few).first(std::min(few.size(), rings.size()));
  if (rings.size() > few.size()) {
    many.resize(rings.size());
    cursors = many;
  }
  for (size_t i = 0; i < rings.size(); ++i) {
    cursors[i] = {.ring = &rings[i], .position = rings[i].newest};
    cursors[i].Look();
  }
  const auto finish = [&](CallFound found) {
    for (size_t i = 0; i < rings.size(); ++i) {
      checked[i] = cursors[i].position + cursors[i].size;
    }
    return found;
  };
  for (size_t step = 0; step < limit; ++step) {
    // The newest record that was not looked at.
    Cursor* next = nullptr;
    for (Cursor& cursor : cursors) {
      if (cursor.nonsense) return finish(CallFound::kNonsense);
      if (cursor.size != 0 &&
          (next == nullptr || cursor.time_ns > next->time_ns)) {
        next = &cursor;
      }
    }
    if (next == nullptr) return finish(CallFound::kNone);
    if (next->sample && next->tid == tid) {
      // A ring that ended before may have held a newer one.
      for (const Cursor& cursor : cursors) {
        if (cursor.size == 0 && cursor.has_lost()) {
          return finish(CallFound::kTooOld);
        }
      }
      return finish(Judge(*next, layout, call));
    }
    next->position += next->size;
    next->Look();
  }
  return finish(CallFound::kTooOld);
}

SystemCalls::~SystemCalls() { keeper_.Stop(); }

Result<std::unique_ptr<SystemCalls::Watch>> SystemCalls::OpenAll() const {
  if (!open_) return Status::System(ENOSYS, "tracepoints");
  auto watch = std::make_unique<Watch>();
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (long i = 0; i < processors; ++i) {
    Result<Opened> opened = open_(static_cast<int>(i));
    // One that is switched off. Should it wake up, its calls are unknown: see
    // docs.
    if (!opened.ok() && opened.status().error() == ENODEV &&
        (!watch->rings.empty() || i + 1 < processors)) {
      continue;
    }
    if (!opened.ok()) return opened.status();
    if (!CallLayout::Find(ParseTracepointLayout(opened->layout),
                          &watch->layout)) {
      return Status::SystemSaid(EPROTO, "tracepoints of an unknown layout");
    }
    Result<PerfRing> ring =
        PerfRing::Map(std::move(opened->files), kCallRingBytes / page,
                      /*in_order=*/false);
    if (!ring.ok()) return ring.status();
    watch->rings.push_back(*std::move(ring));
    watch->processors.push_back(static_cast<int>(i));
    if (watch->rings.size() > kMaxProcessors) {
      return Status::System(E2BIG, "tracepoints of so many processors");
    }
  }
  return watch;
}

Status SystemCalls::Start() {
  std::lock_guard lock(mu_);
  if (users_ == 0) {
    Result<std::unique_ptr<Watch>> watch = OpenAll();
    if (!watch.ok()) return watch.status();
    for (std::atomic<bool>& async : async_) async = false;
    owned_ = *std::move(watch);
    asked_ = false;
    if (Status s =
            keeper_.Start("tracefs-calls", [this] { KeepFilter(*owned_); });
        !s.ok()) {
      owned_.reset();
      return s;
    }
    // All starts of all instances: a thread's note is of one of them.
    static std::atomic<uint64_t> starts{0};
    start_number_ = ++starts;
    watch_.store(owned_.get(), std::memory_order_seq_cst);
  }
  ++users_;
  return Status::Ok();
}

void SystemCalls::Stop() {
  std::lock_guard lock(mu_);
  if (--users_ > 0) return;
  keeper_.Stop();
  watch_.store(nullptr, std::memory_order_seq_cst);
  // They are out in a moment: nothing in there waits.
  while (readers_.load(std::memory_order_seq_cst) != 0) {
    std::this_thread::yield();
  }
  owned_.reset();
}

void SystemCalls::AskForFilter() {
  if (asked_.load(std::memory_order_relaxed) || asked_.exchange(true)) return;
  keeper_.Wake();
}

void SystemCalls::KeepFilter(Watch& watch) {
  std::chrono::milliseconds pause = kFirstPause;
  while (keeper_.Wait() && keeper_.Pause(pause)) {
    asked_ = false;
    for (size_t i = 0; i < watch.rings.size(); ++i) {
      Result<Opened> opened = open_(watch.processors[i]);
      // Those that are open go on: they tell more than needed, or less.
      if (!opened.ok() || opened->files.empty() ||
          !watch.rings[i].ReplaceFirst(std::move(opened->files[0])).ok()) {
        break;
      }
    }
    pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
  }
}

std::optional<uint32_t> SystemCalls::CallOf(uint32_t tid, bool moves_data) {
  if (tid == 0 || watch_.load(std::memory_order_relaxed) == nullptr) {
    return std::nullopt;
  }
  static thread_local uint64_t asked_for = 0;
  if (const uint64_t number = start_number_.load(std::memory_order_relaxed);
      asked_for != number) {
    asked_for = number;
    AskForFilter();
  }
  readers_.fetch_add(1, std::memory_order_seq_cst);
  const Watch* const watch = watch_.load(std::memory_order_seq_cst);
  std::optional<uint32_t> call;
  if (watch != nullptr) call = Find(*watch, tid);
  readers_.fetch_sub(1, std::memory_order_release);
  if (call) {
    std::atomic<bool>& async = async_[tid % kAsyncSlots];
    if (IsAsync(*call)) {
      async.store(true, std::memory_order_relaxed);
    } else if (moves_data && async.load(std::memory_order_relaxed)) {
      call.reset();
    }
  }
  (call ? found_ : unknown_).fetch_add(1, std::memory_order_relaxed);
  return call;
}

std::optional<uint32_t> SystemCalls::Find(const Watch& watch, uint32_t tid) {
  std::array<CallRing, 64> few;
  std::array<uint64_t, 64> few_checked;
  std::vector<CallRing> many;
  std::vector<uint64_t> many_checked;
  const size_t count = watch.rings.size();
  std::span<CallRing> rings = std::span(few).first(std::min(count, few.size()));
  std::span<uint64_t> checked = std::span(few_checked).first(rings.size());
  if (count > few.size()) {
    many.resize(count);
    many_checked.resize(count);
    rings = many;
    checked = many_checked;
  }
  for (size_t i = 0; i < count; ++i) {
    rings[i] = {watch.rings[i].bytes(), watch.rings[i].newest()};
  }
  uint32_t call = 0;
  const CallFound found =
      FindCall(rings, watch.layout, tid, kLimit, &call, checked);
  // It may have the number of a thread of ours that has ended.
  if (found == CallFound::kNone) AskForFilter();
  if (found != CallFound::kCall) return std::nullopt;
  // What we have read must not have been written over meanwhile.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t held = checked[i] - watch.rings[i].newest();
    if (held > rings[i].bytes.size() - kMargin) return std::nullopt;
  }
  return call;
}

SystemCalls::Stats SystemCalls::GetStats() const {
  return {.found = found_.load(std::memory_order_relaxed),
          .unknown = unknown_.load(std::memory_order_relaxed),
          .open = watch_.load(std::memory_order_relaxed) != nullptr};
}

}  // namespace tracefs
