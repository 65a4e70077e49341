// What a filter says about an event, and what it must look at to say it. Apart
// from the stages (tracefs/pipeline/stages.h), so that the filter language
// depends on events only.
#pragma once

#include <cstdint>

namespace tracefs {

enum class Verdict : uint8_t { kDrop, kKeep, kUndecided };

// What a filter, specialised for one operation, still has to look at.
struct FilterNeeds {
  Verdict constant = Verdict::kUndecided;  // kKeep, kDrop: nothing to look at
  bool caller = false;                     // reads kCaller fields
  bool syscall = false;                    // reads kSyscall
  bool details = false;    // reads CallerDetails; then `caller`, too
  bool ancestors = false;  // asks for ancestors; then `caller`, too
  bool late = false;       // reads fields known only after the operation
  bool names = false;      // reads name bits
  bool paths = false;      // reads paths, as they are when it runs

  // It reads what may be gone once the caller goes on.
  bool before_reply() const { return paths || ancestors; }
};

}  // namespace tracefs
