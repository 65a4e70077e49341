// The service manager that started us, if one did (sd_notify(3), without its
// library): told when we serve, that we are alive, and when the end takes long.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "tracefs/base/unique_fd.h"
#include "tracefs/base/worker.h"

namespace tracefs {

// Threads: any. Where nobody asked for it, all calls do nothing.
class ServiceManager {
 public:
  // By the environment, from which it takes what is meant for us alone.
  // Connects now: from within a sandbox it would not be found. To be called by
  // the main process, while it has one thread.
  static ServiceManager FromEnvironment();
  // The one that this process had when it was another program.
  static ServiceManager Adopt(UniqueFd socket,
                              std::chrono::nanoseconds interval);
  int socket() const { return socket_.get(); }
  std::chrono::nanoseconds interval() const { return interval_; }

  bool there() const { return socket_.valid(); }

  // "READY=1" with "STATUS=…".
  void TellReady(std::string_view status) const;
  // "STOPPING=1": from here on whoever waits for us is told to wait on.
  void TellStopping() const;
  // Now and then, from a thread whose standstill would be our death: at most as
  // often as the manager wants to hear it.
  void Beat();

  // As long as it lives, asks for more time every few seconds: outputs take the
  // rest of traces, which has deadlines of its own.
  class Patience {
   public:
    explicit Patience(const ServiceManager& manager);

   private:
    Worker worker_;
  };

 private:
  void Send(std::string_view lines) const;

  UniqueFd socket_;
  std::chrono::nanoseconds interval_{0};  // of beats; 0: none wanted
  std::chrono::steady_clock::time_point last_beat_{};
};

}  // namespace tracefs
