// Notices: what a running daemon has to say to its operator, beside its traces.
// One vocabulary for all folders; where they go is the mount's affair (its
// --log), and standard error where nobody has said.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tracefs {

enum class NoticeId : uint8_t {
  kMounted,         // it serves
  kEnded,           // it has ended, with the totals of its traces
  kFailed,          // it has ended because something failed
  kDied,            // its process was gone before it could end
  kOutputFailed,    // an output takes nothing, or not all
  kOutputBack,      // it does again
  kLost,            // operations are not in a trace
  kAnchorMissing,   // an anchor could not be written
  kSnapshotFailed,  // a flight recorder could not write one
  kCallRefused,     // the sandbox refused a system call
  kLogLost,         // what the log itself could not take
  kTracers,         // tracers have come, gone or changed
  kReloadFailed,    // a config was not taken anew
  kAlarm,           // a rule has fired
  kDiskFull,        // an output's disk has no room
  kReceiving,       // a receiver listens
  kSender,          // a sender has come or gone
  kSenderRefused,   // a sender was told that it may not go on
  kTraceRemoved,    // a stored trace had to go
  kReloaded,        // keys and certificates were read again
  kBrokerLost,      // a broker that traces come from is away
  kHelperDied,      // a process beside the daemon is gone
  kHelperBack,      // another is in its place
};

struct NoticeKind {
  NoticeId id;
  std::string_view name;        // stable, for machines
  int level;                    // of syslog(3)
  std::string_view message_id;  // of the journal: 128 bits, hexadecimal
};
const NoticeKind& KindOf(NoticeId id);

// Says one line, without a line end. Never waits for whoever takes it, and may
// be called from any thread.
void Notify(NoticeId id, const std::string& text);

// Where notices go from now on; empty: to standard error. The sink is called
// by any thread, several at a time.
void SetNoticeSink(std::function<void(NoticeId, const std::string&)> sink);

}  // namespace tracefs
