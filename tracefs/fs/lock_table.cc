// Byte-range and whole-file locks without sleeping threads (lock_table.h).
#include "tracefs/fs/lock_table.h"

#include <algorithm>
#include <cerrno>
#include <unordered_set>

namespace tracefs {

using survive::Area;

namespace {

bool Overlap(const Lock& a, const Lock& b) {
  return a.start <= b.end && b.start <= a.end;
}

bool Conflict(const Lock& held, const Lock& wanted) {
  return held.owner != wanted.owner && Overlap(held, wanted) &&
         (held.type == LockType::kWrite || wanted.type == LockType::kWrite);
}

// Overlapping, or with no byte between them.
bool Touch(const Lock& a, const Lock& b) {
  return (b.end == kLockEnd || a.start <= b.end + 1) &&
         (a.end == kLockEnd || b.start <= a.end + 1);
}

}  // namespace

int LockFromFlock(const struct flock& from, Lock* lock) {
  if (from.l_start < 0 || from.l_len < 0) return EINVAL;
  switch (from.l_type) {
    case F_RDLCK:
      lock->type = LockType::kRead;
      break;
    case F_WRLCK:
      lock->type = LockType::kWrite;
      break;
    case F_UNLCK:
      lock->type = LockType::kUnlock;
      break;
    default:
      return EINVAL;
  }
  lock->start = static_cast<uint64_t>(from.l_start);
  const auto length = static_cast<uint64_t>(from.l_len);
  if (length == 0) {
    lock->end = kLockEnd;
  } else if (length - 1 > kLockEnd - lock->start) {
    return EOVERFLOW;
  } else {
    lock->end = lock->start + length - 1;
  }
  lock->pid = static_cast<uint32_t>(from.l_pid);
  return 0;
}

void LockToFlock(const std::optional<Lock>& lock, struct flock* to) {
  to->l_whence = SEEK_SET;
  if (!lock) {
    to->l_type = F_UNLCK;
    return;
  }
  to->l_type = lock->type == LockType::kRead ? F_RDLCK : F_WRLCK;
  to->l_start = static_cast<off_t>(lock->start);
  to->l_len = lock->end == kLockEnd
                  ? 0
                  : static_cast<off_t>(lock->end - lock->start + 1);
  to->l_pid = static_cast<pid_t>(lock->pid);
}

// --- looking ---------------------------------------------------------------

LockTable::Shard& LockTable::ShardOf(uint64_t file) {
  // Node ids count up: their low bits spread well.
  return shards_[file % shards_.size()];
}

const Lock* LockTable::FirstConflict(const Space& space, const Lock& wanted) {
  for (const Lock& held : space.held) {
    if (Conflict(held, wanted)) return &held;
  }
  return nullptr;
}

const Lock* LockTable::ConflictWith(const Space& space, const Lock& wanted,
                                    uint64_t owner) {
  for (const Lock& held : space.held) {
    if (held.owner == owner && Conflict(held, wanted)) return &held;
  }
  return nullptr;
}

std::optional<Lock> LockTable::Get(uint64_t file, const Lock& wanted) {
  if (lock_count() == 0) return std::nullopt;
  Shard& shard = ShardOf(file);
  std::lock_guard guard(shard.mu);
  const auto it = shard.files.find(file);
  if (it == shard.files.end()) return std::nullopt;
  const Lock* conflict = FirstConflict(it->second.posix, wanted);
  if (conflict == nullptr) return std::nullopt;
  return *conflict;
}

size_t LockTable::waiter_count() {
  std::lock_guard graph(graph_mu_);
  return waits_.size();
}

// --- changing --------------------------------------------------------------

// Merges `lock`, which conflicts with no other owner, into what its owner
// holds. 0 or, nothing changed, ENOLCK.
int LockTable::Apply(uint64_t file, Family family, Space& space,
                     const Lock& lock) {
  auto first =
      std::find_if(space.held.begin(), space.held.end(),
                   [&](const Lock& h) { return h.owner == lock.owner; });
  auto last = std::find_if(first, space.held.end(), [&](const Lock& h) {
    return h.owner != lock.owner;
  });

  // Same type: merged if it touches. Other type: cut to the part outside.
  std::vector<Lock> own;
  own.reserve(static_cast<size_t>(last - first) + 2);
  Lock merged = lock;
  for (auto it = first; it != last; ++it) {
    if (it->type == lock.type) {
      if (Touch(*it, lock)) {
        merged.start = std::min(merged.start, it->start);
        merged.end = std::max(merged.end, it->end);
      } else {
        own.push_back(*it);
      }
      continue;
    }
    if (!Overlap(*it, lock)) {
      own.push_back(*it);
      continue;
    }
    if (it->start < lock.start) {
      own.push_back(*it);
      own.back().end = lock.start - 1;
      own.back().record = Area::kNone;
    }
    if (it->end > lock.end) {
      own.push_back(*it);
      own.back().start = lock.end + 1;
      own.back().record = Area::kNone;
    }
  }
  if (lock.type != LockType::kUnlock) {
    const auto place = std::find_if(own.begin(), own.end(), [&](const Lock& h) {
      return h.start > merged.start;
    });
    own.insert(place, merged);
  }

  const auto before = static_cast<size_t>(last - first);
  if (own.size() > before) {
    const size_t more = own.size() - before;
    if (space.held.size() + more > limits_.locks_per_file ||
        lock_count() + more > limits_.locks) {
      return ENOLCK;
    }
  }
  if (!KeepChange(file, family, {first, last}, own)) return ENOLCK;
  if (own.size() > before) {
    held_.fetch_add(own.size() - before, std::memory_order_release);
  } else {
    held_.fetch_sub(before - own.size(), std::memory_order_release);
  }
  const size_t common = std::min(before, own.size());
  const auto rest = std::copy(own.begin(), own.begin() + common, first);
  if (own.size() > before) {
    space.held.insert(rest, own.begin() + common, own.end());
  } else {
    space.held.erase(rest, last);
  }
  return 0;
}

// What `owner` holds has changed: grants the waiters it blocked, and those
// blocked by locks that these grants gave up.
void LockTable::Wake(uint64_t file, Space& space, Family family, uint64_t owner,
                     Finished* finished) {
  if (space.waiters.empty()) return;
  std::vector<uint64_t> changed = {owner};
  for (size_t c = 0; c < changed.size(); ++c) {
    auto kept = space.waiters.begin();
    for (auto it = space.waiters.begin(); it != space.waiters.end(); ++it) {
      Waiter& waiter = *it;
      int error = kWaiting;
      if (waiter.blocker == changed[c] &&
          ConflictWith(space, waiter.lock, waiter.blocker) == nullptr) {
        const Lock* conflict = FirstConflict(space, waiter.lock);
        if (conflict == nullptr) {
          error = Apply(file, family, space, waiter.lock);
          changed.push_back(waiter.lock.owner);
        } else if (Redirect(waiter, family, conflict->owner)) {
          waiter.blocker = conflict->owner;
        } else {
          error = EDEADLK;
        }
      }
      if (error == kWaiting) {
        if (kept != it) *kept = std::move(waiter);
        ++kept;
      } else {
        Forget(waiter.id);
        finished->emplace_back(std::move(waiter.completion), error);
      }
    }
    space.waiters.erase(kept, space.waiters.end());
  }
}

int LockTable::SetOrQueue(uint64_t file, Family family, Lock lock,
                          bool may_wait, uint64_t waiter,
                          Completion completion) {
  if (family == Family::kFlock) {
    lock.start = 0;
    lock.end = kLockEnd;
  }
  if (lock.end < lock.start || lock.end > kLockEnd) {
    if (may_wait) Forget(waiter);
    return EINVAL;
  }
  Finished finished;
  int result = 0;
  {
    Shard& shard = ShardOf(file);
    std::lock_guard guard(shard.mu);
    auto it = shard.files.find(file);
    if (it == shard.files.end()) {
      if (lock.type == LockType::kUnlock) {
        if (may_wait) Forget(waiter);
        return 0;
      }
      it = shard.files.try_emplace(file).first;
    }
    Space& space = SpaceOf(it->second, family);

    bool changed = false;
    if (family == Family::kFlock) {
      for (auto held = space.held.begin(); held != space.held.end(); ++held) {
        if (held->owner != lock.owner || held->type == lock.type) continue;
        Unkeep(*held);
        space.held.erase(held);
        held_.fetch_sub(1, std::memory_order_release);
        changed = true;
        break;
      }
    }
    const Lock* conflict =
        lock.type == LockType::kUnlock ? nullptr : FirstConflict(space, lock);
    if (conflict == nullptr) {
      result = Apply(file, family, space, lock);
      changed = true;
      if (may_wait) Forget(waiter);
    } else if (!may_wait) {
      result = EAGAIN;
    } else {
      result = Enqueue(file, family, space, lock, conflict->owner, waiter,
                       completion);
    }
    if (changed) Wake(file, space, family, lock.owner, &finished);
    EraseIfEmpty(shard, file);
  }
  Finish(finished);
  return result;
}

int LockTable::Set(uint64_t file, const Lock& lock) {
  return SetOrQueue(file, Family::kPosix, lock, false, 0, nullptr);
}

int LockTable::SetWait(uint64_t file, const Lock& lock, uint64_t waiter,
                       Completion completion) {
  return SetOrQueue(file, Family::kPosix, lock, true, waiter,
                    std::move(completion));
}

int LockTable::Flock(uint64_t file, const Lock& lock) {
  return SetOrQueue(file, Family::kFlock, lock, false, 0, nullptr);
}

int LockTable::FlockWait(uint64_t file, const Lock& lock, uint64_t waiter,
                         Completion completion) {
  return SetOrQueue(file, Family::kFlock, lock, true, waiter,
                    std::move(completion));
}

void LockTable::Release(uint64_t file, Family family, uint64_t owner) {
  if (lock_count() == 0) return;
  Lock all;
  all.owner = owner;
  SetOrQueue(file, family, all, false, 0, nullptr);
}

void LockTable::ReleaseOwner(uint64_t file, uint64_t owner) {
  Release(file, Family::kPosix, owner);
}

void LockTable::FlockRelease(uint64_t file, uint64_t owner) {
  Release(file, Family::kFlock, owner);
}

void LockTable::ReleaseHandle(uint64_t file, uint64_t handle) {
  if (lock_count() == 0) return;
  Finished finished;
  {
    Shard& shard = ShardOf(file);
    std::lock_guard guard(shard.mu);
    const auto it = shard.files.find(file);
    if (it == shard.files.end()) return;
    Space& space = it->second.posix;
    std::vector<uint64_t> owners;
    for (const Lock& held : space.held) {
      if (held.handle != handle) continue;
      Unkeep(held);
      if (owners.empty() || owners.back() != held.owner) {
        owners.push_back(held.owner);
      }
    }
    held_.fetch_sub(
        std::erase_if(space.held,
                      [&](const Lock& held) { return held.handle == handle; }),
        std::memory_order_release);
    for (const uint64_t owner : owners) {
      Wake(file, space, Family::kPosix, owner, &finished);
    }
    EraseIfEmpty(shard, file);
  }
  Finish(finished);
}

// --- what a later daemon finds -----------------------------------------------

bool LockTable::Keep(uint64_t file, Family family, Lock& lock) {
  lock.record = area_->TakeLock();
  if (lock.record == Area::kNone) return false;
  survive::LockRecord& record = area_->lock(lock.record);
  record.owner = lock.owner;
  record.handle = lock.handle;
  record.start = lock.start;
  record.end = lock.end;
  record.pid = lock.pid;
  record.type = static_cast<uint8_t>(lock.type);
  record.family = static_cast<uint8_t>(family);
  record.file.store(file, std::memory_order_release);
  return true;
}

void LockTable::Unkeep(const Lock& lock) {
  if (area_ == nullptr || lock.record == Area::kNone) return;
  area_->lock(lock.record).file.store(0, std::memory_order_release);
  area_->GiveLock(lock.record);
}

// What an owner holds becomes `after`. What is new comes first: at no moment is
// less kept than is held before and after. False, and nothing has changed, if
// there is no room.
bool LockTable::KeepChange(uint64_t file, Family family,
                           std::span<const Lock> before,
                           std::vector<Lock>& after) {
  if (area_ == nullptr) return true;
  std::vector<Lock*> kept;
  for (Lock& lock : after) {
    if (lock.record != Area::kNone) continue;
    if (!Keep(file, family, lock)) {
      for (const Lock* const one : kept) Unkeep(*one);
      return false;
    }
    kept.push_back(&lock);
  }
  for (const Lock& lock : before) {
    const bool stays = std::ranges::any_of(
        after, [&](const Lock& one) { return one.record == lock.record; });
    if (!stays) Unkeep(lock);
  }
  return true;
}

void LockTable::Restore(
    const std::function<bool(uint64_t file, uint64_t handle)>& is_open) {
  const auto records =
      std::min<uint32_t>(area_->header().locks_used.load(), Area::kMostLocks);
  // Before any is made, which may take the place of one that was free.
  std::vector<uint32_t> left;
  for (uint32_t i = 0; i < records; ++i) {
    if (area_->lock(i).file.load() != 0) left.push_back(i);
  }
  for (const uint32_t i : left) {
    const survive::LockRecord& record = area_->lock(i);
    const uint64_t file = record.file.load();
    if (record.type > static_cast<uint8_t>(LockType::kWrite) ||
        record.family > static_cast<uint8_t>(Family::kFlock) ||
        record.end < record.start || record.end > kLockEnd ||
        !is_open(file, record.handle)) {
      continue;
    }
    const auto family = static_cast<Family>(record.family);
    Shard& shard = ShardOf(file);
    const std::lock_guard guard(shard.mu);
    Space& space = SpaceOf(shard.files[file], family);
    static_cast<void>(Apply(file, family, space,
                            {.type = static_cast<LockType>(record.type),
                             .start = record.start,
                             .end = record.end,
                             .owner = record.owner,
                             .handle = record.handle,
                             .pid = record.pid}));
  }
  // They have others by now.
  for (const uint32_t i : left) {
    area_->lock(i).file.store(0);
    area_->GiveLock(i);
  }
}

void LockTable::EraseIfEmpty(Shard& shard, uint64_t file) {
  const auto it = shard.files.find(file);
  if (it != shard.files.end() && it->second.posix.empty() &&
      it->second.flock.empty()) {
    shard.files.erase(it);
  }
}

void LockTable::Finish(Finished& finished) {
  for (auto& [completion, error] : finished) completion(error);
}

// --- waiting ---------------------------------------------------------------

uint64_t LockTable::NewWaiter() {
  std::lock_guard graph(graph_mu_);
  if (waits_.size() >= limits_.waiters) return 0;
  waits_.try_emplace(++last_waiter_);
  return last_waiter_;
}

int LockTable::Enqueue(uint64_t file, Family family, Space& space,
                       const Lock& lock, uint64_t blocker, uint64_t waiter,
                       Completion& completion) {
  std::lock_guard graph(graph_mu_);
  const auto it = waits_.find(waiter);
  if (it == waits_.end()) return ENOLCK;  // NewWaiter() gave 0
  int error = 0;
  if (it->second.cancelled) {
    error = EINTR;
  } else if (space.waiters.size() >= limits_.waiters_per_file) {
    error = ENOLCK;
  } else if (family == Family::kPosix && Deadlocks(lock.owner, blocker)) {
    error = EDEADLK;
  }
  if (error != 0) {
    ForgetLocked(waiter);
    return error;
  }
  it->second = {.queued = true,
                .cancelled = false,
                .file = file,
                .owner = lock.owner,
                .blocker = blocker};
  if (family == Family::kPosix) waits_of_owner_.emplace(lock.owner, waiter);
  space.waiters.push_back({waiter, lock, blocker, std::move(completion)});
  return kWaiting;
}

// The waiter now waits for `blocker`. False, and nothing changed, if that
// closes a cycle.
bool LockTable::Redirect(const Waiter& waiter, Family family,
                         uint64_t blocker) {
  std::lock_guard graph(graph_mu_);
  if (family == Family::kPosix && Deadlocks(waiter.lock.owner, blocker)) {
    return false;
  }
  waits_.at(waiter.id).blocker = blocker;
  return true;
}

// Whether `owner`, waiting for `blocker`, would wait for itself. An owner may
// be several threads and so wait in several places: any of them counts, as in
// the kernel. Unlike the kernel's, the search does not stop after ten steps.
bool LockTable::Deadlocks(uint64_t owner, uint64_t blocker) const {
  std::vector<uint64_t> todo = {blocker};
  std::unordered_set<uint64_t> seen = {blocker};
  while (!todo.empty()) {
    const uint64_t current = todo.back();
    todo.pop_back();
    if (current == owner) return true;
    const auto [begin, end] = waits_of_owner_.equal_range(current);
    for (auto it = begin; it != end; ++it) {
      const uint64_t next = waits_.at(it->second).blocker;
      if (seen.insert(next).second) todo.push_back(next);
    }
  }
  return false;
}

void LockTable::Forget(uint64_t waiter) {
  std::lock_guard graph(graph_mu_);
  ForgetLocked(waiter);
}

void LockTable::ForgetLocked(uint64_t waiter) {
  const auto it = waits_.find(waiter);
  if (it == waits_.end()) return;
  if (it->second.queued) {
    const auto [begin, end] = waits_of_owner_.equal_range(it->second.owner);
    for (auto edge = begin; edge != end; ++edge) {
      if (edge->second != waiter) continue;
      waits_of_owner_.erase(edge);
      break;
    }
  }
  waits_.erase(it);
}

void LockTable::Cancel(uint64_t waiter) {
  uint64_t file = 0;
  {
    std::lock_guard graph(graph_mu_);
    const auto it = waits_.find(waiter);
    if (it == waits_.end()) return;
    if (!it->second.queued) {
      it->second.cancelled = true;
      return;
    }
    file = it->second.file;
  }
  Completion completion;
  {
    Shard& shard = ShardOf(file);
    std::lock_guard guard(shard.mu);
    const auto found = shard.files.find(file);
    if (found == shard.files.end()) return;
    for (Space* space : {&found->second.posix, &found->second.flock}) {
      const auto it =
          std::find_if(space->waiters.begin(), space->waiters.end(),
                       [&](const Waiter& w) { return w.id == waiter; });
      if (it == space->waiters.end()) continue;
      completion = std::move(it->completion);
      space->waiters.erase(it);
      Forget(waiter);
      break;
    }
    EraseIfEmpty(shard, file);
  }
  if (completion) completion(EINTR);
}

// --- ends ------------------------------------------------------------------

void LockTable::DropAll(File& file, Finished* finished) {
  for (Space* space : {&file.posix, &file.flock}) {
    held_.fetch_sub(space->held.size(), std::memory_order_release);
    for (Waiter& waiter : space->waiters) {
      Forget(waiter.id);
      finished->emplace_back(std::move(waiter.completion), EIO);
    }
  }
}

void LockTable::Clear() {
  Finished finished;
  for (Shard& shard : shards_) {
    std::lock_guard guard(shard.mu);
    for (auto& [id, file] : shard.files) DropAll(file, &finished);
    shard.files.clear();
  }
  Finish(finished);
}

}  // namespace tracefs
