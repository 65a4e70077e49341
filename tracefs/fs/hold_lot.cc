#include "tracefs/fs/hold_lot.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

constexpr size_t kMostSpared = 16;  // processes

}  // namespace

// The lot's lock guards all but `end` and what never changes.
struct HoldLot::Hold {
  enum class Ended : uint8_t { kNo, kGoOn, kFail };

  uint64_t number = 0;
  HoldWish wish;
  uint64_t since_ns = 0;
  std::atomic<uint64_t> until_ns{0};
  uint64_t refused = 0;
  std::list<Waiter> waiting;
  std::atomic<Ended> ended{Ended::kNo};
  std::atomic<bool> refuses{false};

  void End(HoldEnd how) {
    ended.store(how == HoldEnd::kGoOn ? Ended::kGoOn : Ended::kFail);
  }
  HoldEnd AtLast() const {
    return wish.fails ? HoldEnd::kFail : HoldEnd::kGoOn;
  }
};

HoldLot::Place::~Place() {
  const std::lock_guard lock(lot_.mu_);
  hold_->waiting.erase(at_);
  --lot_.waiting_;
}

int HoldLot::Place::Wait() {
  constexpr int kLookMs = 20;
  for (;;) {
    switch (hold_->ended.load()) {
      case Hold::Ended::kGoOn:
        return 0;
      case Hold::Ended::kFail:
        return EPERM;
      case Hold::Ended::kNo:
        break;
    }
    if (hold_->refuses.load()) return EPERM;
    // Whoever looks after the holds may be late, or gone.
    if (MonotonicNs() >= hold_->until_ns.load()) {
      return hold_->AtLast() == HoldEnd::kGoOn ? 0 : EPERM;
    }
    if (::poll(nullptr, 0, kLookMs) < 0) return EINTR;
  }
}

Result<uint64_t> HoldLot::Begin(HoldWish wish, uint64_t now_ns) {
  const std::lock_guard lock(mu_);
  const uint64_t until_ns = now_ns + wish.duration_ns;
  size_t alike = 0;
  size_t of_user = 0;
  for (const std::shared_ptr<Hold>& hold : holds_) {
    const HoldWish& other = hold->wish;
    if ((other.pid == 0) != (wish.pid == 0)) continue;
    ++alike;
    of_user += other.uid == wish.uid ? 1 : 0;
    // Another rule's hold ends when that rule, or its tracer, says so.
    if (other.tracer != wish.tracer || other.rule != wish.rule ||
        other.pid != wish.pid || (wish.pid == 0 && other.uid != wish.uid)) {
      continue;
    }
    hold->until_ns.store(std::max(hold->until_ns.load(), until_ns));
    return hold->number;
  }
  if (alike >= kMostHolds) {
    return Status::Invalid(std::to_string(kMostHolds) +
                           (wish.pid == 0 ? " users" : " processes") +
                           " are held already");
  }
  // Of root's there is nothing to fall back on.
  if (wish.pid != 0 && wish.uid != 0 && of_user >= kMostOfUser) {
    return Status::Invalid(std::to_string(kMostOfUser) + " processes of user " +
                           std::to_string(wish.uid) + " are held already");
  }
  const auto hold = std::make_shared<Hold>();
  hold->number = ++last_number_;
  hold->wish = std::move(wish);
  hold->since_ns = now_ns;
  hold->until_ns.store(until_ns);
  holds_.push_back(hold);
  any_.store(true, std::memory_order_relaxed);
  return hold->number;
}

std::shared_ptr<HoldLot::Hold> HoldLot::Meet(
    uint32_t pid, uint32_t uid, uint64_t now_ns,
    const std::function<uint32_t(uint32_t pid)>& parent_of) const {
  std::vector<std::shared_ptr<Hold>> holds;
  bool by_process = false;
  {
    const std::lock_guard lock(mu_);
    if (IsSparedLocked(pid, now_ns)) return nullptr;
    for (const std::shared_ptr<Hold>& hold : holds_) {
      if (hold->until_ns.load() <= now_ns) continue;
      if (hold->wish.pid == 0 && hold->wish.uid == uid) return hold;
      by_process |= hold->wish.pid != 0;
      holds.push_back(hold);
    }
  }
  if (!by_process) return nullptr;
  uint32_t at = pid;
  for (size_t depth = 0; at > 1 && depth < kMostDepth; ++depth) {
    for (const std::shared_ptr<Hold>& hold : holds) {
      if (hold->wish.pid == at) return hold;
    }
    at = parent_of(at);
  }
  return nullptr;
}

std::shared_ptr<HoldLot::Place> HoldLot::Enter(
    const std::shared_ptr<Hold>& hold, Waiter waiter) {
  const std::lock_guard lock(mu_);
  if (waiting_ >= most_waiting_) {
    if (hold->wish.fails) ++hold->refused;
    return nullptr;
  }
  std::shared_ptr<Place> place(new Place(*this, hold));
  place->at_ = hold->waiting.insert(hold->waiting.end(), std::move(waiter));
  ++waiting_;
  return place;
}

void HoldLot::NoteRefused(const std::shared_ptr<Hold>& hold) {
  const std::lock_guard lock(mu_);
  ++hold->refused;
}

void HoldLot::Spare(uint32_t pid, uint64_t until_ns) {
  const std::lock_guard lock(mu_);
  if (spared_.size() >= kMostSpared) spared_.pop_front();
  spared_.push_back({pid, until_ns});
}

bool HoldLot::IsSpared(uint32_t pid, uint64_t now_ns) const {
  const std::lock_guard lock(mu_);
  return IsSparedLocked(pid, now_ns);
}

bool HoldLot::IsSparedLocked(uint32_t pid, uint64_t now_ns) const {
  return std::ranges::any_of(spared_, [&](const Spared& one) {
    return one.pid == pid && one.until_ns > now_ns;
  });
}

bool HoldLot::Fails(const Hold& hold) { return hold.wish.fails; }

bool HoldLot::Refuses(const Hold& hold) { return hold.refuses.load(); }

bool HoldLot::Refuse(uint64_t number, uint64_t now_ns, uint64_t most_ns) {
  const std::lock_guard lock(mu_);
  for (const std::shared_ptr<Hold>& hold : holds_) {
    if (hold->number != number) continue;
    hold->until_ns.store(now_ns + most_ns);
    hold->refuses.store(true);
    return true;
  }
  return false;
}

HoldLot::Held HoldLot::Describe(const Hold& hold) {
  return {.number = hold.number,
          .wish = hold.wish,
          .since_ns = hold.since_ns,
          .until_ns = hold.until_ns.load(),
          .refused = hold.refused,
          .waiting = {hold.waiting.begin(), hold.waiting.end()}};
}

template <typename Wanted>
std::vector<HoldLot::Held> HoldLot::EndWhere(const Wanted& wanted) {
  std::vector<Held> ended;
  const std::lock_guard lock(mu_);
  for (auto at = holds_.begin(); at != holds_.end();) {
    Hold& hold = **at;
    HoldEnd how = hold.AtLast();
    if (!wanted(hold, &how)) {
      ++at;
      continue;
    }
    ended.push_back(Describe(hold));
    hold.End(how);
    at = holds_.erase(at);
  }
  any_.store(!holds_.empty(), std::memory_order_relaxed);
  return ended;
}

bool HoldLot::End(uint64_t number, HoldEnd how, Held* held) {
  std::vector<Held> ended = EndWhere([&](const Hold& hold, HoldEnd* end) {
    *end = how;
    return hold.number == number;
  });
  if (ended.empty()) return false;
  *held = std::move(ended.front());
  return true;
}

std::vector<HoldLot::Held> HoldLot::EndOf(uint32_t tracer) {
  return EndWhere([&](const Hold& hold, HoldEnd* end) {
    *end = HoldEnd::kGoOn;
    return hold.wish.tracer == tracer;
  });
}

std::vector<HoldLot::Held> HoldLot::EndOld(uint64_t now_ns) {
  return EndWhere([&](const Hold& hold, HoldEnd* /*end*/) {
    return hold.until_ns.load() <= now_ns;
  });
}

std::vector<HoldLot::Held> HoldLot::All() const {
  std::vector<Held> all;
  const std::lock_guard lock(mu_);
  for (const std::shared_ptr<Hold>& hold : holds_) {
    all.push_back(Describe(*hold));
  }
  return all;
}

}  // namespace tracefs
