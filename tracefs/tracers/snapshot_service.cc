#include "tracefs/tracers/snapshot_service.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/notice.h"

namespace tracefs {

Status SnapshotService::Add(uint32_t tracer,
                            std::shared_ptr<FlightControl> control) {
  std::lock_guard lock(mu_);
  if (!worker_.started() && !stopping_) {
    if (Status s = worker_.Start("tracefs-snap", [this] { Run(); }); !s.ok()) {
      return s;
    }
  }
  control->on_trigger = [this, tracer] { Request(tracer, "trigger"); };
  recorders_[tracer].control = std::move(control);
  return Status::Ok();
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
  worker_.Wake();
}

void SnapshotService::RequestAll(std::string_view reason) {
  {
    std::lock_guard lock(mu_);
    if (stopping_) return;
    for (auto& [tracer, recorder] : recorders_) recorder.asked = reason;
  }
  worker_.Wake();
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
  while (worker_.Wait()) TakeAsked();
  TakeAsked();
}

void SnapshotService::TakeAsked() {
  std::unique_lock lock(mu_);
  for (;;) {
    const auto asked = std::find_if(
        recorders_.begin(), recorders_.end(),
        [](const auto& entry) { return !entry.second.asked.empty(); });
    if (asked == recorders_.end()) return;
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
  worker_.Stop();
}

}  // namespace tracefs
