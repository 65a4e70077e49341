// A thread that serves requests may run with fewer rights than the process has,
// because it acts for somebody else. What the process does for itself on such a
// thread (a new part of a trace, say) begins with TakeBackOwnRights().
#pragma once

namespace tracefs {

// Set by whoever gave rights of this thread up; takes them back and resets it.
using TakeBackRights = void (*)();
inline constinit thread_local TakeBackRights take_back_own_rights = nullptr;

inline void TakeBackOwnRights() {
  if (take_back_own_rights != nullptr) take_back_own_rights();
}

}  // namespace tracefs
