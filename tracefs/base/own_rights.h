// A thread that serves requests may run with fewer rights than the process has,
// because it acts for another user, or because such a thread made it. Work that
// the process does for itself on any thread (a new part of a trace, say) begins
// with TakeBackOwnRights().
#pragma once

#include <atomic>

namespace tracefs {

using TakeBackRights = void (*)();

// Set once, by the code that lets threads give up rights, before the first
// does: takes them back on a thread that is not known yet.
inline constinit std::atomic<TakeBackRights> take_back_inherited = nullptr;

inline void TakeBackInherited();
// Set by the code that gave up rights of this thread; takes them back and
// resets it.
inline constinit thread_local TakeBackRights take_back_own_rights =
    &TakeBackInherited;

inline void TakeBackInherited() {
  take_back_own_rights = nullptr;
  const TakeBackRights take_back =
      take_back_inherited.load(std::memory_order_acquire);
  if (take_back != nullptr) take_back();
}

inline void TakeBackOwnRights() {
  if (take_back_own_rights != nullptr) take_back_own_rights();
}

}  // namespace tracefs
