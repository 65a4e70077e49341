// What a receiver has done so far, for its metrics and its last message.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "tracefs/net/wire.h"

namespace tracefs {

// Written by the receiver's threads, read by any.
struct ReceiverCounts {
  using Count = std::atomic<uint64_t>;
  static constexpr size_t kReasons =
      static_cast<size_t>(net::RefuseReason::kSlow) + 1;

  Count senders = 0;      // connected now
  Count connections = 0;  // so far
  Count welcomed = 0;     // of these, those whose trace is taken
  std::array<Count, kReasons> refused{};
  Count blocks = 0;  // whole and good
  Count bytes = 0;   // taken, as they came

  // Of a directory.
  Count traces = 0;  // files there now
  Count removed = 0;
  Count removed_bytes = 0;
  Count disk_failures = 0;
  std::atomic<int> disk_error = 0;  // errno of the last; 0: it writes again

  Count reloads = 0;
  Count failed_reloads = 0;
  Count last_turn_ns = 0;  // when it last looked after its senders
};

}  // namespace tracefs
