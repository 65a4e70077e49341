// WaitRule: whether requests of one kind run where they are read, or in the
// side pool (side_pool.h) because the store below makes them wait.
//
// It depends only on how long they took, whatever the store is. Requests that
// run where they are read cost no extra switch, but hold up those after them
// while they wait: after two or three waits within a few requests, or one very
// long one, the next ones are handed over. In the pool they are still timed,
// and when enough in a row took no time, requests come back. Each time this
// proves too soon, the required number grows.
//
// Threads: any; no lock. A request that does not wait costs a load here. Counts
// may be off by those that threads note at the same time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tracefs/event/op.h"

namespace tracefs {

class WaitRule {
 public:
  enum class Begin : uint8_t {
    kHere,   // made where it is read until it waits
    kAside,  // handed over until it does not
    kAlwaysAside,
  };

  // What counts as a wait, for a request that moved `bytes`: copying takes its
  // time, too.
  static constexpr uint64_t WaitNs(uint64_t bytes) {
    return 150'000 + bytes / 2;
  }

  // Before the first request.
  void SetBegin(Begin begin) {
    for_good_ = begin == Begin::kAlwaysAside;
    aside_.store(begin != Begin::kHere, std::memory_order_relaxed);
  }

  bool hands_over() const { return aside_.load(std::memory_order_relaxed); }
  // Whether one of the last took long: then it is worth a system call to learn
  // how long the next one computes (preemption.h), which is not a wait. A file
  // system may search for a free inode for milliseconds.
  bool suspects() const { return score_.load(std::memory_order_relaxed) != 0; }

  // A request that was made where it was read took `took_ns` until `now_ns`.
  void NoteHere(uint64_t now_ns, uint64_t took_ns, uint64_t bytes) {
    if (took_ns < WaitNs(0)) [[likely]] {
      const uint32_t score = score_.load(std::memory_order_relaxed);
      if (score != 0) score_.store(score - 1, std::memory_order_relaxed);
      return;
    }
    Waited(now_ns, took_ns, bytes);
  }
  // The same of one that was handed over.
  void NoteAside(uint64_t now_ns, uint64_t took_ns, uint64_t bytes);

  // --- What became of them, for people.
  uint64_t waited_here() const { return Get(waited_here_); }
  uint64_t handed_over() const { return Get(handed_over_); }
  uint64_t longest_ns() const { return Get(longest_ns_); }
  // How often it began to hand over, not counting the start.
  uint64_t changes() const { return Get(changes_); }

 private:
  static uint64_t Get(const std::atomic<uint64_t>& value) {
    return value.load(std::memory_order_relaxed);
  }
  void Waited(uint64_t now_ns, uint64_t took_ns, uint64_t bytes);
  void NoteLongest(uint64_t took_ns);

  bool for_good_ = false;
  std::atomic<bool> aside_{false};
  std::atomic<uint32_t> score_{0};  // of the last ones made here
  std::atomic<uint32_t> run_{0};    // of those aside that took no time
  std::atomic<uint32_t> enough_{16};
  std::atomic<uint64_t> came_back_ns_{0};
  std::atomic<uint64_t> waited_here_{0};
  std::atomic<uint64_t> handed_over_{0};
  std::atomic<uint64_t> longest_ns_{0};
  std::atomic<uint64_t> changes_{0};
};

// A rule for each operation, and one of their own for reads and writes that go
// to the disk each time, because the file was opened to that end (O_DIRECT,
// O_SYNC, O_DSYNC): reads and writes served by the page cache say nothing about
// them.
class WaitRules {
 public:
  // `may_hang`: any request may wait forever, so that none runs where it is
  // read. Otherwise only kinds that are meant to wait for a disk begin in the
  // pool.
  void SetUp(bool may_hang);
  WaitRule& Of(Op op, bool to_disk = false) {
    return rules_[Place(op, to_disk)];
  }
  const WaitRule& Of(Op op, bool to_disk = false) const {
    return rules_[Place(op, to_disk)];
  }

  // visit(name, rule) for each.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (size_t i = 0; i < kOpCount; ++i) {
      visit(OpName(static_cast<Op>(i)), rules_[i]);
    }
    visit(std::string_view("read (O_DIRECT)"), Of(Op::read_, true));
    visit(std::string_view("write (O_DIRECT, O_SYNC)"), Of(Op::write_, true));
  }

 private:
  static constexpr size_t Place(Op op, bool to_disk) {
    if (!to_disk) [[likely]]
      return Index(op);
    return kOpCount + (op == Op::read_ ? 0 : 1);
  }

  std::array<WaitRule, kOpCount + 2> rules_;
};

}  // namespace tracefs
