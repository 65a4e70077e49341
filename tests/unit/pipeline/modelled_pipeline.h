// The pipeline once more, as it stands in its files, in namespace `modelled`:
// with atomics, locks, clock and membarrier of tests/support/schedules.h.
//
// For one file of a test. All that is not to be replaced is included before.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/schedules.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/common_clock.h"
#include "tracefs/base/own_rights.h"
#include "tracefs/base/status.h"
#include "tracefs/base/tsan.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/worker.h"
#include "tracefs/event/event.h"
#include "tracefs/event/file_states.h"
#include "tracefs/event/op.h"
#include "tracefs/event/process_record.h"
#include "tracefs/event/process_sink.h"
#include "tracefs/event/verdict.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/alarm.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/format/process_message.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/survive/area.h"

// Nothing survives here: what a later daemon would go on with is left out.
namespace modelled::survive {

using tracefs::survive::Outcome;

struct TraceRecord;
struct Area {
  static Area* OfProcess() { return nullptr; }
  static void CountEvent(const TraceRecord&) {}
};
struct OutputState {};
struct TraceState {};
struct TraceRecord {
  modelled_std::atomic<uint32_t> turns{0};
  modelled_std::atomic<uint64_t> counts{0};
  OutputState output;
};
inline void ForgetText(Area&, modelled_std::atomic<uint64_t>&) {}
inline bool HasRecorded(uint32_t) { return false; }
inline void NoteRecorded(uint32_t) {}

}  // namespace modelled::survive

namespace modelled {

using namespace tracefs;  // NOLINT

using test::Schedules;

inline uint64_t now_ns = 1'000'000'000;

// A while goes by: what was stored before is known to all.
inline void LetTimePass() {
  now_ns += 2'000'000;
  Schedules::Settle();
}

// Goes on at each look; it may have been a while since the last one.
inline uint64_t MonotonicNs() {
  now_ns += 10;
  if (Schedules::Choose(2) == 1) LetTimePass();
  return now_ns;
}

// Does its turns when a test says so.
class Worker {
 public:
  bool started() const { return turn != nullptr; }
  Status StartTurns(const char*, std::chrono::nanoseconds,
                    std::function<void()> one) {
    turn = std::move(one);
    last = this;
    return Status::Ok();
  }

  static inline Worker* last = nullptr;
  std::function<void()> turn;
};

// A thread_local of a fiber; ends with it.
template <typename T>
class PerFiber {
 public:
  PerFiber() {
    // Not erase(): others come and go while it is destroyed.
    Schedules::AtFiberEnd([this](int fiber) { all_.extract(fiber); });
  }
  T& Mine() { return all_[Schedules::Fiber()]; }

 private:
  std::map<int, T> all_;
};

}  // namespace modelled

#define tracefs modelled
#define std modelled_std
#define syscall(...) modelled::Schedules::Membarrier()
// Of ThreadSlots::OfThread.
#pragma GCC diagnostic ignored "-Wshadow"
#define thread_local                   \
  static PerFiber<Handle> all_handles; \
  Handle& handle = all_handles.Mine(); \
  if (false) [[maybe_unused]]          \
  static

#include "tracefs/base/biased_lock.cc"          // NOLINT
#include "tracefs/pipeline/block_builder.cc"    // NOLINT
#include "tracefs/pipeline/degraded_counts.cc"  // NOLINT
#include "tracefs/pipeline/event_sink.cc"       // NOLINT
#include "tracefs/pipeline/flusher.cc"          // NOLINT
#include "tracefs/pipeline/loss.cc"             // NOLINT
#include "tracefs/pipeline/op_plans.cc"         // NOLINT
#include "tracefs/pipeline/pipeline.cc"         // NOLINT
#include "tracefs/pipeline/process_block.cc"    // NOLINT
#include "tracefs/pipeline/thread_slots.cc"     // NOLINT
#include "tracefs/pipeline/tracer.cc"           // NOLINT
#include "tracefs/pipeline/tracer_set.cc"       // NOLINT

namespace modelled {

void* Block::TakePlace(size_t bytes) { return ::operator new(bytes); }
void Block::GivePlace(void* block) { ::operator delete(block); }
Block::Memory Block::MemoryFor(size_t bytes) {
  return {new std::byte[bytes], Delete{}};
}
void BlockBuilder::Keep(const Event&) {}
void Tracer::NoteState(bool) {}
void Tracer::NoteLosses() {}
bool Tracer::CountsToKeep(uint64_t) const { return false; }
void Tracer::KeepCounts() {}
void Tracer::SaveCounts(const std::vector<bool>&, bool) {}
uint64_t Tracer::LoadCounts(const survive::TraceState&) { return 0; }
Status Tracer::Continue(TraceIdentity) {
  return Status::Invalid("nothing survives");
}

}  // namespace modelled

#undef thread_local
#undef syscall
#undef std
#undef tracefs
