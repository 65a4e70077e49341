// Notices: what a running daemon tells its operator, beside its traces. One
// vocabulary for all folders; the mount decides where they go (its --log); the
// default is standard error.
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
  kOutputFailed,    // an output takes nothing, or not everything
  kOutputBack,      // it does again
  kLost,            // operations are not in a trace
  kAnchorMissing,   // an anchor could not be written
  kSnapshotFailed,  // a flight recorder could not write one
  kCallRefused,     // the sandbox refused a system call
  kLogLost,         // what the log itself could not take
  kTracers,         // tracers have come, gone or changed
  kReloadFailed,    // a config could not be reloaded
  kAlarm,           // a rule has fired
  kDiskFull,        // an output's disk has no room
  kReceiving,       // a receiver listens
  kSender,          // a sender has come or gone
  kSenderRefused,   // a sender was refused
  kTraceRemoved,    // a stored trace was removed
  kReloaded,        // keys and certificates were read again
  kBrokerLost,      // a broker that traces come from is away
  kHelperDied,      // a helper process of the daemon has died
  kHelperBack,      // another is in its place
  kSucceeded,       // a daemon took the place of one that was killed
  kKeeperGone,      // nobody would start another daemon any more
  kKeeperBack,      // another would
  kRefused,         // daemons crashed at a request, which got an error
  kUntraced,        // a mount goes on without traces
  kUpgraded,        // another program serves a mount, which goes on
  kKeyMissing,      // blocks stay with the broker for want of a key
};

struct NoticeKind {
  NoticeId id;
  std::string_view name;        // stable, for machines
  int level;                    // of syslog(3)
  std::string_view message_id;  // of the journal: 128 bits, hexadecimal
};
const NoticeKind& KindOf(NoticeId id);

// Says one line, without a line end. Never waits for the receiver, and may be
// called from any thread.
void Notify(NoticeId id, const std::string& text);

// Where notices go from now on; empty: to standard error. The sink is called
// by any thread, several at a time.
void SetNoticeSink(std::function<void(NoticeId, const std::string&)> sink);

}  // namespace tracefs
