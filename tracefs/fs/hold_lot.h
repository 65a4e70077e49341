// HoldLot: processes and users whose changes are held until somebody decides
// (the action `hold` of a rule), and the requests that wait for that.
//
// A change of a file waits, on a thread of the side pool, and for a bounded
// time. A change of names does not: the kernel keeps its directory locked until
// the answer, and everybody else who works in that directory would wait, too.
// It is refused at once. So is what finds no room here.
//
// Threads: any. Where nobody is held it costs a load.
//
// Tested by tests/unit/fs/hold_lot_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/event/op.h"

namespace tracefs {

// Whose changes are held, why and for how long.
struct HoldWish {
  uint32_t tracer = 0;  // whose rule it was
  size_t rule = 0;      // its number there, from 1
  std::string title = {};
  uint32_t pid = 0;  // this process and all below it; 0: a user
  uint32_t uid = 0;
  std::string comm = {};
  uint64_t duration_ns = 0;
  // What becomes of those who wait when the time is up or there is no room.
  bool fails = true;
};

enum class HoldEnd : uint8_t { kGoOn, kFail };

class HoldLot {
 public:
  static constexpr size_t kMostHolds = 64;   // of processes; and of users
  static constexpr size_t kMostOfUser = 16;  // of processes of one user
  static constexpr size_t kMostWaiting = 32;
  static constexpr size_t kMostDepth = 64;  // of processes below one

  struct Waiter {
    uint32_t pid = 0;
    std::string comm = {};
    Op op{};
    std::string path = {};  // of what it changes; empty: not known
    uint64_t since_ns = 0;  // monotonic
  };
  struct Held {
    uint64_t number = 0;  // from 1
    HoldWish wish;
    uint64_t since_ns = 0;  // monotonic
    uint64_t until_ns = 0;
    uint64_t refused = 0;  // changes that did not wait
    std::vector<Waiter> waiting;
  };
  struct Hold;  // of one, for those who wait for it

  // A place for one who waits; given back with the object.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // Waits for the end of the hold. 0: go on; EPERM; EINTR if the thread is
    // interrupted.
    int Wait();

   private:
    friend class HoldLot;
    Place(HoldLot& lot, std::shared_ptr<Hold> hold)
        : lot_(lot), hold_(std::move(hold)) {}

    HoldLot& lot_;
    const std::shared_ptr<Hold> hold_;
    std::list<Waiter>::iterator at_;
  };

  // `most_waiting`: requests, of all holds. Each takes a thread of the side
  // pool and, over io_uring, a place in its queue.
  explicit HoldLot(size_t most_waiting = kMostWaiting)
      : most_waiting_(most_waiting) {}

  // Whether anybody is held.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  // Begins one, or makes the one that the same rule has of that process or user
  // last longer; its number. kInvalid: there are too many, in all or of
  // processes of that user; which of these. `now_ns`: monotonic.
  Result<uint64_t> Begin(HoldWish wish, uint64_t now_ns);
  // Null: this caller is not held. `parent_of` a process; 0: not known.
  std::shared_ptr<Hold> Meet(
      uint32_t pid, uint32_t uid, uint64_t now_ns,
      const std::function<uint32_t(uint32_t pid)>& parent_of) const;
  // Null: there is no room, and it is counted as refused if the hold `fails`.
  std::shared_ptr<Place> Enter(const std::shared_ptr<Hold>& hold,
                               Waiter waiter);
  // A change that may not wait.
  void NoteRefused(const std::shared_ptr<Hold>& hold);
  static bool Fails(const Hold& hold);
  // Whether nothing waits for it any more.
  static bool Refuses(const Hold& hold);

  // This process is not held until then, whatever rules and holds say: it puts
  // right what others did, and looks like them. The oldest makes room.
  void Spare(uint32_t pid, uint64_t until_ns);
  bool IsSpared(uint32_t pid, uint64_t now_ns) const;

  // What waits fails, and so does at once whatever comes until the hold ends,
  // but not for longer than `most_ns` from now on: a request that waits keeps
  // its file locked in the kernel, and nobody else could put it right. False:
  // there is none of that number.
  bool Refuse(uint64_t number, uint64_t now_ns, uint64_t most_ns);

  // Ends it, and says how it was; false: there is none of that number.
  bool End(uint64_t number, HoldEnd how, Held* held);
  // Those of a tracer that is gone go on. What they were.
  std::vector<Held> EndOf(uint32_t tracer);
  // Those whose time is up. What they were.
  std::vector<Held> EndOld(uint64_t now_ns);
  std::vector<Held> All() const;

 private:
  static Held Describe(const Hold& hold);
  template <typename Wanted>
  std::vector<Held> EndWhere(const Wanted& wanted);

  const size_t most_waiting_;
  std::atomic<bool> any_{false};
  mutable std::mutex mu_;  // guards all below, and what is in holds
  std::list<std::shared_ptr<Hold>> holds_;
  struct Spared {
    uint32_t pid = 0;
    uint64_t until_ns = 0;
  };
  bool IsSparedLocked(uint32_t pid, uint64_t now_ns) const;
  std::deque<Spared> spared_;
  uint64_t last_number_ = 0;
  size_t waiting_ = 0;
};

}  // namespace tracefs
