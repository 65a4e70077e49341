#include "tracefs/tracers/snapshot_service.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tracefs/base/notice.h"
#include "tracefs/base/thread.h"

namespace tracefs {

void SnapshotService::Add(uint32_t tracer,
                          std::shared_ptr<FlightControl> control) {
  control->on_trigger = [this, tracer] { Request(tracer, "trigger"); };
  std::lock_guard lock(mu_);
  recorders_[tracer].control = std::move(control);
  if (!thread_.joinable() && !stopping_) {
    thread_ = StartThread("tracefs-snap", [this] { Run(); });
  }
}

void SnapshotService::Remove(uint32_t tracer) {
  std::lock_guard lock(mu_);
  recorders_.erase(tracer);
}

void SnapshotService::Request(uint32_t tracer, std::string_view reason) {
  {
    std::lock_guard lock(mu_);
    const auto found = recorders_.find(tracer);
    if (found == recorders_.end() || stopping_) return;
    found->second.asked = reason;
  }
  wake_.notify_one();
}

void SnapshotService::RequestAll(std::string_view reason) {
  {
    std::lock_guard lock(mu_);
    if (stopping_) return;
    for (auto& [tracer, recorder] : recorders_) recorder.asked = reason;
  }
  wake_.notify_one();
}

Result<std::string> SnapshotService::Take(uint32_t tracer,
                                          std::string_view reason) {
  std::shared_ptr<FlightControl> control;
  {
    std::lock_guard lock(mu_);
    const auto found = recorders_.find(tracer);
    if (found == recorders_.end()) {
      return Status::Invalid("tracer " + std::to_string(tracer) +
                             " has no flight recorder; its output is not "
                             "`flight`, or there is no such tracer");
    }
    control = found->second.control;
  }
  // What threads still hold goes into the rings first. An output that fails is
  // no reason to do without a snapshot.
  static_cast<void>(pipeline_.FlushAll().ok());
  return control->snapshot(reason);
}

void SnapshotService::Run() {
  std::unique_lock lock(mu_);
  for (;;) {
    const auto asked = std::find_if(
        recorders_.begin(), recorders_.end(),
        [](const auto& entry) { return !entry.second.asked.empty(); });
    if (asked == recorders_.end()) {
      if (stopping_) return;
      wake_.wait(lock);
      continue;
    }
    const uint32_t tracer = asked->first;
    const std::string reason = std::exchange(asked->second.asked, "");
    lock.unlock();
    const Result<std::string> path = Take(tracer, reason);
    if (!path.ok()) {
      Notify(NoticeId::kSnapshotFailed, "tracer " + std::to_string(tracer) +
                                            ": " + path.status().message());
    }
    lock.lock();
  }
}

void SnapshotService::Stop() {
  {
    std::lock_guard lock(mu_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace tracefs
