#include "tracefs/tools/dump/trace_feed.h"

#include <algorithm>
#include <cmath>

#include "tracefs/base/clock.h"
#include "tracefs/export/table.h"
#include "tracefs/screen/browser.h"
#include "tracefs/screen/column.h"
#include "tracefs/screen/records.h"
#include "tracefs/text/duration.h"
#include "tracefs/tools/dump/trace_summary.h"

namespace tracefs {
namespace {

using screen::Notice;

// Lines of operations that are listed at most: as many as a browser keeps.
constexpr size_t kMaxLines = screen::Browser::kMaxLines;

void AddLines(const std::string& text, std::vector<std::string>* lines) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines->push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

TimeSpec At(uint64_t ns) {
  return *ParseTimeSpec("--from", "@" + std::to_string(ns), /*utc=*/true);
}

}  // namespace

Result<std::unique_ptr<TraceFeed>> TraceFeed::Open(
    const reader::InputOptions& options, const std::atomic<bool>& stop) {
  std::unique_ptr<TraceFeed> feed(new TraceFeed(options, stop));
  const auto input = reader::TraceInput::Open(options, {});
  if (!input.ok()) return input.status();
  feed->all_ = (*input)->span();
  const TimeWindow window = (*input)->window();
  feed->part_ = feed->all_;
  if (feed->all_.begin_ns == 0) return feed;
  // The last operation begins at the end.
  ++feed->all_.end_ns;
  feed->part_ = {std::max(feed->all_.begin_ns, window.from_ns),
                 std::min(feed->all_.end_ns, window.to_ns)};
  if (feed->part_.begin_ns >= feed->part_.end_ns) feed->part_ = feed->all_;
  return feed;
}

reader::InputOptions TraceFeed::Part() const {
  reader::InputOptions options = options_;
  if (part_.begin_ns == 0) return options;
  if (part_.begin_ns != all_.begin_ns) options.from = At(part_.begin_ns);
  if (part_.end_ns != all_.end_ns) options.to = At(part_.end_ns);
  return options;
}

Status TraceFeed::Read(screen::Activity* activity) {
  activity->Reset();
  reader::InputSinks sinks;
  // What was only counted is of no operation that a filter could look at.
  if (options_.filter.empty()) {
    sinks.aggregate = [activity](size_t, const format::AggregateRecord& one) {
      if (!one.total) screen::CountAggregate(one, 0, activity);
    };
  }
  auto input = reader::TraceInput::Open(Part(), std::move(sinks));
  if (!input.ok()) return input.status();
  (*input)->StopAt(&stop_);
  const uint64_t length = std::max<uint64_t>(part_.end_ns - part_.begin_ns, 1);
  const uint64_t slice = std::max<uint64_t>(length / kSlices, 1);
  uint64_t until = part_.begin_ns + slice;
  uint64_t told = part_.begin_ns;
  (*input)->ForEach([&](format::Record& record, size_t) {
    // Without times all is one slice.
    while (part_.begin_ns != 0 && record.real_ns >= until &&
           until < part_.end_ns) {
      activity->EndInterval(0, until - told);
      told = until;
      until += slice;
    }
    screen::CountRecord(record, 0, activity);
  });
  activity->EndInterval(
      0, length > told - part_.begin_ns ? length - (told - part_.begin_ns) : 1);
  problems_ = (*input)->Problems({});
  exit_code_ = (*input)->ExitCode();
  notices_.clear();
  uint64_t lost = 0;
  about_.clear();
  for (size_t i = 0; i < (*input)->size(); ++i) {
    lost += (*input)->trace(i).stats().lost_events;
    AddLines(DescribeTrace((*input)->trace(i), TimeStyle::kLocal), &about_);
  }
  if (lost != 0) {
    notices_.push_back({Notice::Level::kBad, "LOST " + std::to_string(lost)});
  }
  std::vector<std::string> found;
  AddLines(problems_, &found);
  for (const std::string& line : found) {
    notices_.push_back({Notice::Level::kBad, line});
  }
  if (notices_.empty()) {
    notices_.push_back({Notice::Level::kGood, "complete, no losses"});
  }
  return Status::Ok();
}

Result<bool> TraceFeed::Take(screen::Activity* activity) {
  if (read_) return false;
  if (Status s = Read(activity); !s.ok()) return s;
  read_ = true;
  return true;
}

Status TraceFeed::Follow(const std::string& filter) {
  lines_.clear();
  reader::InputOptions options = Part();
  options.filter = filter;
  auto input = reader::TraceInput::Open(options, {});
  if (!input.ok()) return input.status();
  std::atomic<bool> enough = false;
  (*input)->StopAt(&enough);
  StringOutput text;
  const auto exporter = FindLineFormat("text")->make(text, {});
  size_t count = 0;
  (*input)->ForEach([&](format::Record& record, size_t) {
    exporter->Write(record);
    if (++count + 1 >= kMaxLines || stop_.load()) enough = true;
  });
  if (Status s = text.Flush(); !s.ok()) return s;
  AddLines(text.text(), &lines_);
  if (enough) {
    lines_.push_back("... and more: Right, Left and [ show other times");
  }
  return Status::Ok();
}

Status TraceFeed::TakeLines(std::vector<std::string>* lines) {
  lines->insert(lines->end(), lines_.begin(), lines_.end());
  lines_.clear();
  return Status::Ok();
}

bool TraceFeed::Show(TimeRange part) {
  if (part.begin_ns == part_.begin_ns && part.end_ns == part_.end_ns) {
    return false;
  }
  part_ = part;
  read_ = false;
  return true;
}

bool TraceFeed::Move(int steps) {
  if (all_.begin_ns == 0) return false;
  const uint64_t length = part_.end_ns - part_.begin_ns;
  TimeRange part = part_;
  if (steps < 0) {
    part.begin_ns = part_.begin_ns - all_.begin_ns > length
                        ? part_.begin_ns - length
                        : all_.begin_ns;
    part.end_ns = part.begin_ns + length;
  } else {
    part.end_ns = all_.end_ns - part_.end_ns > length ? part_.end_ns + length
                                                      : all_.end_ns;
    part.begin_ns = part.end_ns - length;
  }
  return Show(part);
}

bool TraceFeed::Zoom(double factor) {
  if (all_.begin_ns == 0) return false;
  const uint64_t length = part_.end_ns - part_.begin_ns;
  const auto wanted = std::clamp<uint64_t>(
      static_cast<uint64_t>(std::ceil(static_cast<double>(length) * factor)) +
          (factor > 1 ? 1 : 0),  // an odd length was rounded down
      kSlices, std::max(all_.end_ns - all_.begin_ns, kSlices));
  // From where it began, unless that is too near the end.
  TimeRange part = part_;
  part.end_ns = std::min(part.begin_ns + wanted, all_.end_ns);
  part.begin_ns = part.end_ns - std::min(wanted, part.end_ns - all_.begin_ns);
  return Show(part);
}

std::string TraceFeed::Window() const {
  if (all_.begin_ns == 0 ||
      (part_.begin_ns == all_.begin_ns && part_.end_ns == all_.end_ns)) {
    return {};
  }
  return "+" + DurationText(part_.begin_ns - all_.begin_ns) + " .. +" +
         DurationText(part_.end_ns - all_.begin_ns);
}

}  // namespace tracefs
