// LossWatch: looks once a second whether tracers have lost something or their
// outputs have failed, and says so in the log: at once, then once a minute for
// as long as it goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tracefs/base/worker.h"
#include "tracefs/pipeline/tracer_stats.h"

namespace tracefs {

// "12 lost (queue_full 10, throttled 2)"; empty if nothing was.
std::string LossText(const TracerStats& stats);
// "tracer 2 'audit'".
std::string TracerText(const TracerStats& stats);

class LossWatch {
 public:
  using Look = std::function<std::vector<TracerStats>()>;

  // `look` is called by the thread, from Start until Stop; it never waits.
  explicit LossWatch(Look look) : look_(std::move(look)) {}

  Status Start();
  void Stop() { worker_.Stop(); }
  // What a look at `stats` at that time leads to; for tests, and the thread.
  void See(const std::vector<TracerStats>& stats, uint64_t now_ns);

 private:
  struct Told {
    uint64_t lost = 0;
    uint64_t at_ns = 0;
    bool error = false;
  };

  const Look look_;
  std::map<uint32_t, Told> told_;
  Worker worker_;
};

}  // namespace tracefs
