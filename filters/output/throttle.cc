#include "filters/output/throttle.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "filters/output/payload_filter.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/units.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

// A bucket that fills at a rate and holds a second's worth. What is taken
// beyond its contents has to be waited for.
class Bucket {
 public:
  explicit Bucket(double per_second) : per_second_(per_second) {}

  // How long until `amount` may go, in ns.
  uint64_t Wait(uint64_t now_ns) const {
    return bounded() && empty_until_ns_ > now_ns ? empty_until_ns_ - now_ns : 0;
  }
  // Nothing is in it.
  void Empty(uint64_t now_ns) { empty_until_ns_ = now_ns; }
  void Take(double amount, uint64_t now_ns) {
    if (!bounded()) return;
    const uint64_t full_since = now_ns - std::min(now_ns, kNsPerSecond);
    const double cost_ns =
        amount / per_second_ * static_cast<double>(kNsPerSecond);
    // A century is as good as never, and fits.
    constexpr double kMaxCostNs = 3e18;
    empty_until_ns_ = std::max(empty_until_ns_, full_since) +
                      static_cast<uint64_t>(std::min(cost_ns, kMaxCostNs));
  }

 private:
  bool bounded() const { return per_second_ > 0; }

  const double per_second_;
  // The bucket holds what fills it from this time to now.
  uint64_t empty_until_ns_ = 0;
};

class Throttle final : public OutputFilter {
 public:
  Throttle(const ThrottleOptions& options, std::unique_ptr<OutputFilter> next,
           ThrottleClock clock)
      : options_(options),
        next_(std::move(next)),
        clock_(std::move(clock)),
        ops_(options.ops_per_second),
        bytes_(options.bytes_per_second) {}

  Status Initialize(const TraceIdentity& identity) override {
    if (identity.resumes) {
      // What the process before had saved up is not known: it may have been
      // nothing.
      const uint64_t now = clock_.now_ns();
      ops_.Empty(now);
      bytes_.Empty(now);
    }
    return next_->Initialize(identity);
  }
  void Noted() override { next_->Noted(); }

  Status Write(ByteSpan block, const BlockInfo& info) override {
    uint64_t now = clock_.now_ns();
    const uint64_t wait = std::max(ops_.Wait(now), bytes_.Wait(now));
    if (wait != 0 && info.events != 0 && !info.last) {
      const auto deadline =
          static_cast<uint64_t>(options_.when_full.deadline.count());
      const uint64_t sleep =
          options_.when_full.block ? std::min(wait, deadline) : 0;
      if (sleep != 0) clock_.sleep(sleep);
      if (wait > sleep) {
        return DroppedStatus(LossReason::kThrottled,
                             "more than throttle lets through");
      }
      now = clock_.now_ns();
    }
    Status status = next_->Write(block, info);
    if (status.ok()) {
      ops_.Take(static_cast<double>(info.events), now);
      bytes_.Take(static_cast<double>(block.size()), now);
    }
    return status;
  }

  Status Flush() override { return next_->Flush(); }
  Status Release() override { return next_->Release(); }
  size_t PreferredBlockSize() const override {
    return SmallerBlock(options_.block_bytes, next_->PreferredBlockSize());
  }

 private:
  const ThrottleOptions options_;
  const std::unique_ptr<OutputFilter> next_;
  const ThrottleClock clock_;
  Bucket ops_;
  Bucket bytes_;
};

}  // namespace

ThrottleClock ThrottleClock::Real() {
  return {[] { return MonotonicNs(); },
          [](uint64_t ns) {
            std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
          }};
}

std::unique_ptr<OutputFilter> MakeThrottle(const ThrottleOptions& options,
                                           std::unique_ptr<OutputFilter> next,
                                           ThrottleClock clock) {
  return std::make_unique<Throttle>(options, std::move(next), std::move(clock));
}

std::optional<double> ParseRate(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const std::optional<uint64_t> amount = ParseSize(text.substr(0, slash));
  if (!amount || *amount == 0) return std::nullopt;
  const std::string_view unit = text.substr(slash + 1);
  const double seconds = unit == "s"   ? 1
                         : unit == "m" ? 60
                         : unit == "h" ? 3600
                                       : 0;
  if (seconds == 0) return std::nullopt;
  return static_cast<double>(*amount) / seconds;
}

}  // namespace tracefs
