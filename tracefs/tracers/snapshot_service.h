// SnapshotService: takes the snapshots of a mount's flight recorders, in a
// thread of its own for those who cannot wait: triggers and signals.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "tracefs/base/worker.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/tracers/trigger_tap.h"

namespace tracefs {

// Threads: any.
class SnapshotService {
 public:
  // The pipeline outlives the service.
  explicit SnapshotService(Pipeline& pipeline) : pipeline_(pipeline) {}
  ~SnapshotService() { Stop(); }

  // Also lets the recorder's trigger ask. The first one starts the thread:
  // without one nothing is added.
  Status Add(uint32_t tracer, std::shared_ptr<FlightControl> control);
  void Remove(uint32_t tracer);

  // Asks for a snapshot of one or of all recorders and does not wait for it. A
  // failure is told on standard error.
  void Request(uint32_t tracer, std::string_view reason);
  void RequestAll(std::string_view reason);

  // Takes one now, with all that was recorded so far, and returns its path.
  // kInvalid if the tracer has no recorder.
  Result<std::string> Take(uint32_t tracer, std::string_view reason);

  // Takes what was asked for; later requests are ignored.
  void Stop();

 private:
  struct Recorder {
    std::shared_ptr<FlightControl> control;
    std::string asked;  // the reason; empty: not asked
  };
  void Run();
  // Takes what was asked for.
  void TakeAsked();

  Pipeline& pipeline_;
  std::mutex mu_;  // guards starts of the worker, and:
  std::map<uint32_t, Recorder> recorders_;
  bool stopping_ = false;
  Worker worker_;
};

}  // namespace tracefs
