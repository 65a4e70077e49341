#include "tracefs/tracers/loss_watch.h"

#include <chrono>

#include "tracefs/base/clock.h"
#include "tracefs/base/join.h"
#include "tracefs/base/notice.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);
constexpr uint64_t kAgainNs = 60 * kNsPerSecond;

}  // namespace

std::string TracerText(const TracerStats& stats) {
  return "tracer " + std::to_string(stats.id) +
         (stats.name.empty() ? "" : " '" + stats.name + "'");
}

std::string LossText(const TracerStats& stats) {
  if (stats.TotalLost() == 0) return "";
  std::string reasons;
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    if (stats.lost[r] == 0) continue;
    AppendWord(LossReasonName(static_cast<LossReason>(r)), ", ", &reasons);
    reasons += ' ' + std::to_string(stats.lost[r]);
  }
  return std::to_string(stats.TotalLost()) + " lost (" + reasons + ")";
}

void LossWatch::See(const std::vector<TracerStats>& stats, uint64_t now_ns) {
  for (const TracerStats& s : stats) {
    if (s.kind != TracerKind::kConfig) continue;
    Told& told = told_[s.id];
    if (!s.output_error.ok() && !std::exchange(told.error, true)) {
      Notify(NoticeId::kOutputFailed,
             TracerText(s) + ": " + s.output_error.message());
    }
    const uint64_t lost = s.TotalLost();
    if (lost <= told.lost ||
        (told.at_ns != 0 && now_ns - told.at_ns < kAgainNs)) {
      continue;
    }
    Notify(NoticeId::kLost, TracerText(s) + ": " +
                                std::to_string(lost - told.lost) +
                                " operations are not in its trace; since it "
                                "began: " +
                                LossText(s));
    told.lost = lost;
    told.at_ns = now_ns;
  }
}

Status LossWatch::Start() {
  return worker_.StartTurns("tracefs-losses", kInterval,
                            [this] { See(look_(), MonotonicNs()); });
}

}  // namespace tracefs
