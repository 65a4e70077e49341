#include "tracefs/tools/ctl/live_trace.h"

#include <poll.h>

#include <algorithm>

#include "tracefs/base/clock.h"
#include "tracefs/format/byte_source.h"

namespace tracefs {
namespace {

constexpr uint64_t kPatienceNs = 333'000'000;

}  // namespace

LiveTrace::LiveTrace(UniqueFd stream, format::ReportSink report,
                     format::AggregateSink aggregate)
    : fd_(stream.get()) {
  format::TraceReaderOptions options;
  options.name = "live";
  options.follow = true;
  options.report = std::move(report);
  options.aggregate = std::move(aggregate);
  merger_.Add(std::make_unique<format::TraceReader>(
      std::make_unique<format::FdSource>(std::move(stream), /*follow=*/true),
      std::move(options)));
}

format::ReadStep LiveTrace::Next(format::Record* record) {
  const bool hurry =
      waiting_since_ != 0 && MonotonicNs() - waiting_since_ >= kPatienceNs;
  const format::ReadStep step = merger_.Next(record, hurry);
  if (step == format::ReadStep::kWait) {
    if (waiting_since_ == 0 || hurry) waiting_since_ = MonotonicNs();
  } else if (!hurry) {
    waiting_since_ = 0;
  }
  return step;
}

void LiveTrace::Wait(std::chrono::milliseconds patience) const {
  constexpr auto kLongest = std::chrono::milliseconds(50);
  pollfd ready = {.fd = fd_, .events = POLLIN, .revents = 0};
  static_cast<void>(::poll(
      &ready, 1, static_cast<int>(std::min(patience, kLongest).count())));
}

}  // namespace tracefs
