#include "tracefs/mount/end_notice.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tracefs/pipeline/loss.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

using Json = nlohmann::ordered_json;

void EndNotice::Tell(std::string line) {
  std::lock_guard lock(mu_);
  if (std::exchange(told_, true)) return;
  rest_ = std::move(line);
  if (wake_) wake_();
}

std::string EndNotice::Take(size_t max) {
  std::lock_guard lock(mu_);
  std::string taken = rest_.substr(0, max);
  rest_.erase(0, taken.size());
  return taken;
}

bool EndNotice::ended() const {
  std::lock_guard lock(mu_);
  return told_;
}

void EndNotice::OnMore(std::function<void()> wake) {
  std::lock_guard lock(mu_);
  wake_ = std::move(wake);
  if (told_) wake_();
}

std::string EndLine(std::string_view end_reason, const Status& status,
                    const std::vector<TracerStats>& tracers) {
  Json all = Json::array();
  for (const TracerStats& t : tracers) {
    if (t.id >= kFirstRulesId) continue;  // of rules and listeners
    Json lost = Json::object();
    for (size_t r = 0; r < kLossReasonCount; ++r) {
      if (t.lost[r] == 0) continue;
      lost[std::string(LossReasonName(static_cast<LossReason>(r)))] = t.lost[r];
    }
    Json one = {{"id", t.id},
                {"name", t.name},
                {"written", t.written},
                {"lost", std::move(lost)}};
    if (!t.output_error.ok()) one["error"] = t.output_error.message();
    all.push_back(std::move(one));
  }
  Json line = {{"end", end_reason}, {"tracers", std::move(all)}};
  if (!status.ok()) line["error"] = status.message();
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tracefs
