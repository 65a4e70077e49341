#include "tracefs/fs/user_shares.h"

namespace tracefs {

// Users are never taken out: there are few of them, and each is found again in
// a step or two.
UserShares::User& UserShares::Of(uint32_t uid) {
  const uint64_t key = uint64_t{uid} + 1;
  for (size_t i = 0, at = key % users_.size(); i < users_.size();
       ++i, at = (at + 1) % users_.size()) {
    User& user = users_[at];
    uint64_t found = user.key.load(std::memory_order_relaxed);
    if (found == 0 && user.key.compare_exchange_strong(found, key)) return user;
    if (found == key) return user;
  }
  return others_;
}

bool UserShares::Take(uint32_t uid) {
  User& user = Of(uid);
  const int used = used_.fetch_add(1, std::memory_order_relaxed);
  const int held = user.held.fetch_add(1, std::memory_order_relaxed);
  // Both are the previous values: threads that take at the same time may be
  // refused slightly early, but never get too much.
  const bool may =
      uid == 0 ? used < capacity_ : held < capacity_ - for_root_ - used;
  if (may) return true;
  Give(uid);
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void UserShares::TakeAgain(uint32_t uid) {
  Of(uid).held.fetch_add(1, std::memory_order_relaxed);
  used_.fetch_add(1, std::memory_order_relaxed);
}

void UserShares::Give(uint32_t uid) {
  Of(uid).held.fetch_sub(1, std::memory_order_relaxed);
  used_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace tracefs
