// Schedules: threads that take turns as a search decides, so that a test sees
// every order of their steps instead of those that a machine happens to make.
//
// The threads are fibers of one thread. Each access to a modelled_std::atomic
// or mutex is a step; before it another fiber may take over. Stores wait in a
// buffer of their fiber, as the weakest machines have it: others may see them
// late, and in another order, unless a release store, an unlock or a barrier
// stands between. Loads are done in the order of the program, and at once.
//
// Explore() tries all schedules in which at most `surprises` times a fiber is
// interrupted where it could go on, or a load misses what another fiber has
// stored. Most faults of order need two or three.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace tracefs::test {

// What an atomic has in memory; fibers may have stored more.
struct Cell {
  uint64_t memory = 0;
};

// Faults of the machine, planted to see that a test would notice them.
struct Machine {
  bool membarrier_works = true;
  bool release_orders = true;  // stores before a release store
  bool seq_cst_orders = true;  // a store before loads after it
};

class Schedules {
 public:
  struct Outcome {
    std::string failure;  // of the first schedule that has one; empty: none has
    size_t schedules = 0;
    bool all = true;  // false: the limit came first
  };
  // One world: its fibers, and what must hold when they are done, as a text
  // that says what does not.
  struct World {
    std::vector<std::function<void()>> fibers;
    std::function<std::string()> check;
  };

  static Outcome Explore(int surprises, const std::function<World()>& make,
                         Machine machine = {}, size_t limit = 4'000'000);

  // --- For what replaces the standard library.

  static uint64_t Load(const Cell& cell);
  static void Store(Cell& cell, uint64_t value, std::memory_order order);
  // Before a read-modify-write, which the caller does in memory.
  static void BeginExchange();
  static void Lock(const bool& held);
  static bool MayTry();
  static void Unlocked();
  static void Yield();
  static long Membarrier();
  // One of the first `count` numbers; the first is no surprise.
  static size_t Choose(size_t count);
  // Everything stored so far is seen by everyone: time has gone by.
  static void Settle();
  // -1: none of them.
  static int Fiber();
  // Called in a fiber when it ends.
  static void AtFiberEnd(std::function<void(int)> hook);
};

}  // namespace tracefs::test

// The standard library with what threads share replaced.
namespace modelled_std {

using namespace std;  // NOLINT

template <typename T>
class atomic : tracefs::test::Cell {
  static_assert(sizeof(T) <= sizeof(uint64_t) &&
                std::is_trivially_copyable_v<T>);
  using Schedules = tracefs::test::Schedules;

 public:
  constexpr atomic() : atomic(T{}) {}
  constexpr atomic(T value) { memory = To(value); }  // NOLINT
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(memory_order = memory_order_seq_cst) const {
    return From(Schedules::Load(*this));
  }
  void store(T value, memory_order order = memory_order_seq_cst) {
    Schedules::Store(*this, To(value), order);
  }
  T exchange(T value, memory_order = memory_order_seq_cst) {
    Schedules::BeginExchange();
    const T old = From(memory);
    memory = To(value);
    return old;
  }
  T fetch_add(T n, memory_order = memory_order_seq_cst) {
    Schedules::BeginExchange();
    const T old = From(memory);
    memory = To(static_cast<T>(old + n));
    return old;
  }
  bool compare_exchange_strong(T& expected, T value,
                               memory_order = memory_order_seq_cst) {
    Schedules::BeginExchange();
    const T old = From(memory);
    if (old == expected) {
      memory = To(value);
      return true;
    }
    expected = old;
    return false;
  }

 private:
  static constexpr uint64_t To(T value) {
    if constexpr (std::is_pointer_v<T>) {
      return std::bit_cast<uint64_t>(value);
    } else {
      return static_cast<uint64_t>(value);
    }
  }
  static T From(uint64_t word) {
    if constexpr (std::is_pointer_v<T>) {
      return std::bit_cast<T>(word);
    } else {
      return static_cast<T>(word);
    }
  }
};

class mutex {
 public:
  void lock() {
    tracefs::test::Schedules::Lock(held_);
    held_ = true;
  }
  bool try_lock() {
    if (!tracefs::test::Schedules::MayTry() || held_) return false;
    return held_ = true;
  }
  void unlock() {
    held_ = false;
    tracefs::test::Schedules::Unlocked();
  }

 private:
  bool held_ = false;
};

namespace this_thread {
inline void yield() { tracefs::test::Schedules::Yield(); }
template <typename Duration>
void sleep_for(Duration) {
  tracefs::test::Schedules::Yield();
}
}  // namespace this_thread

}  // namespace modelled_std
