#include "tracefs/replay/player.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <optional>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/thread.h"

namespace tracefs::replay {
namespace {

// Chunks of a plan that are in memory at once.
constexpr uint32_t kMostChunks = 16;

// Threads that sleep on any counter: while there are none, adding costs no
// system call.
std::atomic<uint32_t> sleepers{0};

void SleepUntil(uint64_t ns, const std::atomic<bool>& stop) {
  // In steps, so that it can be stopped.
  constexpr uint64_t kStep = 100 * kNsPerMs;
  for (uint64_t now = MonotonicNs(); now < ns && !stop; now = MonotonicNs()) {
    const uint64_t to = std::min(ns, now + kStep);
    const timespec at = {static_cast<time_t>(to / kNsPerSecond),
                         static_cast<long>(to % kNsPerSecond)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
  }
}

}  // namespace

void Counter::Add() {
  count_.fetch_add(1);
  if (sleepers.load() != 0) {
    ::syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr,
              0);
  }
}

bool Counter::Await(uint32_t value, const std::atomic<bool>& stop,
                    bool* waited) {
  // Numbers may wrap; what is waited for is never far away.
  const auto reached = [&](uint32_t now) {
    return static_cast<int32_t>(now - value) >= 0;
  };
  if (reached(count_.load(std::memory_order_acquire))) return true;
  *waited = true;
  for (int i = 0; i < 100; ++i) {
    if (reached(count_.load(std::memory_order_acquire))) return true;
  }
  const timespec limit = {0, 50 * static_cast<long>(kNsPerMs)};
  ++sleepers;
  bool there = false;
  while (!stop) {
    const uint32_t now = count_.load();
    there = reached(now);
    if (there) break;
    ::syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, now, &limit, nullptr, 0);
  }
  --sleepers;
  return there;
}

// A part of a chunk that is for one lane.
struct Player::Batch {
  struct Item {
    uint32_t offset;
    uint64_t index;  // in the plan
  };
  std::shared_ptr<std::vector<std::byte>> chunk;
  std::vector<Item> items;
};

struct Player::Lane {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> batches;  // guarded by mutex
  bool closed = false;        // guarded by mutex
  std::thread thread;
  // Of its own thread alone.
  WorkerState worker;
  Outcome outcome;
  uint64_t last_end_ns = 0;       // now
  uint64_t last_then_end_ns = 0;  // when it was recorded
};

Player::Player(int plan, const PlanHeader& header, TargetTree* tree,
               PlayOptions options)
    : plan_(plan),
      header_(header),
      tree_(tree),
      options_(std::move(options)),
      // A single lane is in order by itself.
      counts_(options_.order == OrderMode::kRoot && header.lanes > 1),
      counters_(counts_ ? kOrderCounters : 0) {
  const uint32_t lanes = std::clamp(header.lanes, 1u, kMaxLanes);
  for (uint32_t i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>());
  }
}

Player::~Player() = default;

void Player::Fail(Status status) {
  const std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = std::move(status);
  stop_ = true;
}

Status Player::StartLanes() {
  for (const auto& lane : lanes_) {
    const auto run = [this, &lane = *lane] {
      ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
      RunLane(lane);
    };
    if (Status s = StartThread("replay", run, &lane->thread); !s.ok()) return s;
  }
  return Status::Ok();
}

Status Player::Run(Outcome* outcome) {
  begin_ns_ = MonotonicNs() + (options_.timing == TimingMode::kAsap
                                   ? 0
                                   : 10 * kNsPerMs);  // until all are there
  Status status = StartLanes();
  if (status.ok()) status = Dispatch();
  if (!status.ok()) Fail(std::move(status));
  for (const auto& lane : lanes_) {
    {
      const std::lock_guard lock(lane->mutex);
      lane->closed = true;
    }
    lane->changed.notify_one();
  }
  for (const auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
  for (const auto& lane : lanes_) outcome->Add(lane->outcome);
  outcome->elapsed_ns = MonotonicNs() - begin_ns_;
  outcome->bytes_written = tree_->bytes_written();
  const std::lock_guard lock(mutex_);
  return status_;
}

// Memory of a chunk that is done with, if there is one: it need not be cleared.
std::vector<std::byte> Player::TakeRoom() {
  const std::lock_guard lock(mutex_);
  if (rooms_.empty()) return {};
  std::vector<std::byte> room = std::move(rooms_.back());
  rooms_.pop_back();
  return room;
}

Status Player::Dispatch() {
  PlanReader plan(plan_, ChunkKind::kActions);
  uint64_t index = 0;
  std::vector<std::vector<Batch::Item>> items(lanes_.size());
  std::vector<uint32_t> used;
  bool more = true;
  while (more && !stop_) {
    std::vector<std::byte> room = TakeRoom();
    const Result<bool> there = plan.NextInto(&room);
    if (!there.ok()) return there.status();
    if (!*there) break;
    ++chunks_;
    const std::shared_ptr<std::vector<std::byte>> bytes(
        new std::vector<std::byte>(std::move(room)),
        [this](std::vector<std::byte>* owned) {
          {
            const std::lock_guard lock(mutex_);
            rooms_.push_back(std::move(*owned));
            --chunks_;
          }
          delete owned;
          chunk_done_.notify_one();
        });
    used.clear();
    for (size_t at = 0; at < bytes->size();) {
      uint32_t lane = 0;
      size_t size = 0;
      if (!PeekAction(ByteSpan(*bytes).subspan(at), &lane, &size)) {
        return Status::Corrupt("plan: an action cut short");
      }
      if (options_.order == OrderMode::kNone) {
        lane = static_cast<uint32_t>(index);
      }
      lane %= static_cast<uint32_t>(lanes_.size());
      if (items[lane].empty()) used.push_back(lane);
      items[lane].push_back({static_cast<uint32_t>(at), index++});
      at += size;
    }
    for (const uint32_t i : used) {
      Lane& lane = *lanes_[i];
      {
        const std::lock_guard lock(lane.mutex);
        lane.batches.push_back({bytes, std::exchange(items[i], {})});
      }
      lane.changed.notify_one();
    }
    // The first action that is not done can be done, whatever the others wait
    // for: so some chunk will be done with.
    std::unique_lock lock(mutex_);
    while (chunks_ > kMostChunks && !stop_) {
      chunk_done_.wait_for(lock, std::chrono::milliseconds(100));
    }
  }
  return {};
}

void Player::RunLane(Lane& lane) {
  Action action;
  while (true) {
    Batch batch;
    {
      std::unique_lock lock(lane.mutex);
      lane.changed.wait(lock,
                        [&] { return lane.closed || !lane.batches.empty(); });
      if (lane.batches.empty()) return;
      batch = std::move(lane.batches.front());
      lane.batches.pop_front();
    }
    if (stop_) continue;
    for (size_t i = 0; i < batch.items.size(); ++i) {
      const Batch::Item& item = batch.items[i];
      // Another thread has read the chunk: the next action is fetched from its
      // processor's cache while this one is done.
      if (i + 1 < batch.items.size()) {
        const std::byte* const next =
            batch.chunk->data() + batch.items[i + 1].offset;
        __builtin_prefetch(next);
        __builtin_prefetch(next + 64);
      }
      size_t size = 0;
      const Status decoded = DecodeAction(
          ByteSpan(*batch.chunk).subspan(item.offset), &action, &size);
      if (!decoded.ok()) {
        Fail(decoded);
        break;
      }
      if (!DoOne(lane, action, item.index)) break;
    }
  }
}

bool Player::AwaitTurn(Lane& lane, const Action& action, uint64_t index) {
  bool waited = false;
  if (options_.order == OrderMode::kGlobal) {
    if (!all_.Await(static_cast<uint32_t>(index), stop_, &waited)) return false;
  } else if (counts_) {
    for (uint32_t i = 0; i < action.order_count; ++i) {
      const Order& order = action.orders[i];
      if (order.waits &&
          !counters_[order.counter].Await(order.need, stop_, &waited)) {
        return false;
      }
    }
  }
  if (waited) ++lane.outcome.waits;
  return true;
}

void Player::AwaitTime(Lane& lane, const Action& action) {
  if (options_.timing == TimingMode::kAsap || action.Has(kUntimed)) return;
  uint64_t due;
  if (options_.timing == TimingMode::kThink) {
    const uint64_t gap = action.begin_ns > lane.last_then_end_ns
                             ? action.begin_ns - lane.last_then_end_ns
                             : 0;
    due = std::max(lane.last_end_ns, begin_ns_) +
          static_cast<uint64_t>(static_cast<double>(gap) * options_.scale);
  } else {
    due = begin_ns_ +
          static_cast<uint64_t>(
              static_cast<double>(action.begin_ns) *
              (options_.timing == TimingMode::kScale ? options_.scale : 1.0));
  }
  // The scheduler wakes late: the rest is spent awake.
  constexpr uint64_t kAwake = 60 * kNsPerUs;
  if (MonotonicNs() + kAwake < due) SleepUntil(due - kAwake, stop_);
  while (MonotonicNs() < due && !stop_) {
  }
  const uint64_t now = MonotonicNs();
  lane.outcome.lateness_ns.Add(now > due ? now - due : 0);
  if (now > due && now - due > options_.max_lag_ns) {
    Fail(Status::Corrupt("operation " + std::to_string(action.sequence) +
                         " is later than --max-lag"));
  }
}

void Player::Finished(const Action& action) {
  if (counts_) {
    for (uint32_t i = 0; i < action.order_count; ++i) {
      counters_[action.orders[i].counter].Add();
    }
  } else if (options_.order == OrderMode::kGlobal) {
    all_.Add();
  }
}

bool Player::DoOne(Lane& lane, const Action& action, uint64_t index) {
  // The time first: who waits for his turn is late by that.
  const bool beyond = action.sequence > options_.until_sequence ||
                      action.begin_ns > options_.until_ns;
  const bool skip = options_.skip_repeated && action.Has(kRepeated);
  if (!beyond && !skip) AwaitTime(lane, action);
  if (!AwaitTurn(lane, action, index) || stop_) return false;
  if (beyond) {
    Finished(action);  // others may wait for it
    return true;
  }
  if (skip) {
    ++lane.outcome.skipped;
    Finished(action);
    return true;
  }
  if (options_.before && !options_.before(action)) {
    stop_ = true;
    return false;
  }
  Done done;
  const uint64_t begin = MonotonicNs();
  tree_->Do(action, lane.worker, &done);
  lane.last_end_ns = MonotonicNs();
  lane.last_then_end_ns = action.begin_ns + action.duration_ns;
  Finished(action);
  if (action.Has(kUntimed)) {
    ++lane.outcome.untimed;
    if (done.error != static_cast<int>(action.error)) {
      ++lane.outcome.untimed_failed;
    }
  } else {
    OpOutcome& op = lane.outcome.ops[Index(action.op)];
    ++op.count;
    op.then_ns.Add(action.duration_ns);
    op.now_ns.Add(lane.last_end_ns - begin);
    const bool copies = action.op == Op::copy_file_range_;
    if ((action.op == Op::read_ || copies) && done.result > 0) {
      lane.outcome.bytes_read += static_cast<uint64_t>(done.result);
      if (action.Has(kHasHash)) {
        lane.outcome.bytes_compared += static_cast<uint64_t>(done.result);
      }
    }
    Judge(lane, action, done);
  }
  if (tree_->over_quota()) {
    Fail(Status::System(EDQUOT,
                        "operation " + std::to_string(action.sequence) +
                            " needs more than --max-bytes or --max-inodes"));
  }
  return !stop_;
}

void Player::Judge(Lane& lane, const Action& action, const Done& done) {
  OpOutcome& op = lane.outcome.ops[Index(action.op)];
  Verdict verdict = Verify(action, done, options_.verify);
  if (verdict.matches) {
    ++op.matched;
    return;
  }
  const auto now = static_cast<uint32_t>(done.error);
  if (action.error != now) ++op.errors[{action.error, now}];
  if (verdict.explained) {
    ++op.explained[static_cast<size_t>(*verdict.explained)];
    return;
  }
  ++op.mismatched;
  Mismatch mismatch{.sequence = action.sequence, .text = {}};
  mismatch.text = std::string(OpName(action.op));
  if (!action.name.empty()) mismatch.text += " of " + std::string(action.name);
  mismatch.text += ": " + verdict.text;
  if (options_.on_mismatch == OnMismatch::kWarn && options_.warn) {
    const std::lock_guard lock(mutex_);
    options_.warn(mismatch);
  }
  if (options_.on_mismatch == OnMismatch::kAbort) {
    Fail(Status::Corrupt("operation " + std::to_string(action.sequence) + ": " +
                         mismatch.text));
  }
  if (lane.outcome.mismatches.size() < Outcome::kMostMismatches) {
    lane.outcome.mismatches.push_back(std::move(mismatch));
  }
}

}  // namespace tracefs::replay
