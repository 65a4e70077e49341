#include "tracefs/tools/ctl/live_table.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"
#include "tracefs/command/paged_output.h"
#include "tracefs/control/client.h"
#include "tracefs/query/table_text.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/ctl/live_trace.h"
#include "tracefs/tools/ctl/options.h"
#include "tracefs/tools/ctl/request.h"

namespace tracefs {
namespace {

using query::GroupValue;
using std::chrono_literals::operator""ms;

constexpr size_t kTopOnTerminal = 20;
// Beyond the interval: what the mount needs to collect and tell.
constexpr char kClearScreen[] = "\033[H\033[2J";

// What a mount does not count.
constexpr GroupValue kOfTraces[] = {GroupValue::kRead,     GroupValue::kWritten,
                                    GroupValue::kMin,      GroupValue::kFirst,
                                    GroupValue::kLast,     GroupValue::kFiles,
                                    GroupValue::kProcesses};

// What a mount is asked for, so that all values can be told.
struct Counted {
  bool latency = false;
  bool size = false;
  // Keys that there is room for to choose from: more than are shown, as it
  // chooses by their number of operations.
  size_t most = 10000;
};

Counted CountedOf(const std::vector<GroupValue>& values) {
  using enum GroupValue;
  constexpr GroupValue kLatencies[] = {kTime, kMean, kP50, kP90,
                                       kP99,  kP999, kMax, kTimeShare};
  constexpr GroupValue kSizes[] = {kSizeMean, kSizeP50, kSizeP99, kSizeMax};
  Counted counted;
  for (const GroupValue value : values) {
    counted.latency |=
        std::ranges::find(kLatencies, value) != std::end(kLatencies);
    counted.size |= std::ranges::find(kSizes, value) != std::end(kSizes);
  }
  // Histograms take most of the room.
  if (counted.latency || counted.size) counted.most = 2000;
  if (counted.latency && counted.size) counted.most = 1000;
  return counted;
}

// Counts of one interval after the other.
class Intervals {
 public:
  Intervals(const LiveTableOptions& options, uint64_t interval_ns)
      : options_(options),
        interval_ns_(interval_ns),
        last_ns_(MonotonicNs()),
        grouping_(std::make_unique<query::Grouping>(options.group)) {}

  void Add(const format::AggregateRecord& record) {
    // The last words repeat what was told period by period.
    if (record.total || !status_.ok()) return;
    if (pending_ && record.to_ns != to_ns_) EndInterval();
    pending_ = true;
    from_ns_ = std::min(record.from_ns, record.to_ns);
    to_ns_ = record.to_ns;
    // The driver has the keys that were asked for.
    status_ = grouping_->AddCounted(record,
                                    query::TellFilesApart(options_.group.keys));
  }

  // An interval is sent at once: if nothing follows, it is complete. If nothing
  // happens, nothing is sent.
  void Settle(bool came) {
    const uint64_t now = MonotonicNs();
    if (pending_ ? !came : now - last_ns_ >= interval_ns_ + kLateNs) {
      EndInterval();
    }
  }

  // Those that have ended since.
  std::vector<query::Table> Take() { return std::exchange(ended_, {}); }
  const Status& status() const { return status_; }

 private:
  void EndInterval() {
    const uint64_t now = MonotonicNs();
    const uint64_t length = pending_ ? to_ns_ - from_ns_ : now - last_ns_;
    query::Table table = grouping_->Finish();
    table.title = std::to_string(grouping_->all().count) + " operations in " +
                  DurationText(length);
    ended_.push_back(std::move(table));
    grouping_ = std::make_unique<query::Grouping>(options_.group);
    pending_ = false;
    last_ns_ = now;
  }

  const LiveTableOptions& options_;
  const uint64_t interval_ns_;
  bool pending_ = false;  // an interval is being told
  uint64_t from_ns_ = 0;
  uint64_t to_ns_ = 0;
  uint64_t last_ns_;  // when the last one ended, by our clock
  std::unique_ptr<query::Grouping> grouping_;
  std::vector<query::Table> ended_;
  Status status_;
};

Status Print(const CtlOptions& options, query::Table table, bool terminal,
             OutputBuffer& out) {
  const LiveTableOptions& asked = *options.table;
  const std::string sort =
      asked.sort.empty() ? query::ColumnOf(asked.group.values.front()).name
                         : asked.sort;
  const size_t top = asked.top.value_or(terminal ? kTopOnTerminal : 0);
  if (Status s = query::Arrange({.sort = sort, .top = top}, &table); !s.ok()) {
    return s.Prefixed("--sort");
  }
  if (asked.json) {
    query::WriteJsonLines(table, &out);
    return out.Flush();
  }
  if (terminal && !options.batch) out.Append(kClearScreen);
  table.title = TerminalText(options.mount) + ": " + table.title;
  query::WriteText(
      table, {.utf8 = HasUtf8(), .columns = terminal ? TerminalColumns() : 0},
      &out);
  out.Append("\n");
  return out.Flush();
}

}  // namespace

Result<std::optional<LiveTableOptions>> ReadLiveTable(const std::string& by,
                                                      const std::string& values,
                                                      const std::string& sort,
                                                      const std::string& top) {
  if (by.empty()) return std::optional<LiveTableOptions>();
  LiveTableOptions table;
  table.by = by;
  auto keys = query::ParseGroupKeys(by, "--by");
  if (!keys.ok()) return keys.status();
  table.group.keys = *std::move(keys);
  auto parsed = query::ParseGroupValues(values, "--values");
  if (!parsed.ok()) return parsed.status();
  for (const GroupValue value : *parsed) {
    if (std::ranges::find(kOfTraces, value) != std::end(kOfTraces)) {
      return Status::Invalid("--values: a mount does not count " +
                             query::ColumnOf(value).name +
                             "; tracefs-dump --by tells it of a trace");
    }
  }
  table.group.values = *std::move(parsed);
  table.sort = sort;
  // Before an interval has gone by.
  query::Table columns = query::Grouping(table.group).Finish();
  if (Status s = query::Arrange({.sort = sort}, &columns); !s.ok()) {
    return s.Prefixed("--sort");
  }
  if (!top.empty()) {
    const size_t most = CountedOf(table.group.values).most;
    const auto number = top == "all" ? 0 : ParseUnsigned(top);
    if (!number || (*number == 0 && top != "all") || *number > most) {
      return Status::Invalid(
          "--top needs a number from 1 to " + std::to_string(most) +
          " (with these --values), or all, not " + Quoted(top));
    }
    table.top = static_cast<size_t>(*number);
  }
  return std::optional<LiveTableOptions>(std::move(table));
}

std::string CountedClauses(const LiveTableOptions& table) {
  const Counted counted = CountedOf(table.group.values);
  return "by " + table.by + "; values count errors bytes" +
         (counted.latency ? " latency" : "") + (counted.size ? " size" : "") +
         "; top " + std::to_string(counted.most) + "; memory " +
         (counted.latency || counted.size ? "64M" : "8M");
}

Status LiveTable(const CtlOptions& options, OutputBuffer& out,
                 const std::atomic<bool>& stop) {
  Result<ControlClient> client =
      ControlClient::Connect(options.mount, options.patience);
  if (!client.ok()) return client.status();
  const Result<std::string> request = WatchRequest(
      options.filter, options.interval, CountedClauses(*options.table));
  if (!request.ok()) return request.status();
  if (const Result<std::string> answer = client->Call(*request); !answer.ok()) {
    return answer.status();
  }
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const uint64_t rounds = options.rounds == 0 && !terminal ? 1 : options.rounds;
  Intervals intervals(
      *options.table,
      static_cast<uint64_t>(options.interval.count()) * kNsPerMs);
  LiveTrace live(
      client->TakeStream(), [](const format::Report&) {},
      [&](const format::AggregateRecord& record) { intervals.Add(record); });
  format::Record record;
  for (uint64_t shown = 0; !stop.load();) {
    const uint64_t before = live.stats().bytes;
    const format::ReadStep step = live.Next(&record);
    const bool ended = step == format::ReadStep::kEnd;
    intervals.Settle(!ended && live.stats().bytes != before);
    if (!intervals.status().ok()) return intervals.status();
    for (query::Table& table : intervals.Take()) {
      const Status printed = Print(options, std::move(table), terminal, out);
      // A reader that has seen enough is not an error.
      if (!printed.ok()) {
        return printed.error() == EPIPE ? Status::Ok() : printed;
      }
      if (++shown == rounds) return live.status();
    }
    if (ended) break;
    live.Wait(50ms);
  }
  return live.status();
}

}  // namespace tracefs
