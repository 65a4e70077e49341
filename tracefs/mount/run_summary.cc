#include "tracefs/mount/run_summary.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/event/process_record.h"
#include "tracefs/format/file_paths.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/tally/sums.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

constexpr size_t kSlowest = 5;
constexpr size_t kFiles = 10;
// Files counted apart; the rest is one.
constexpr size_t kMaxFiles = 200'000;

struct FileUse {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

struct Slow {
  uint64_t ns = 0;
  Op op{};
  std::string path;
  std::string who;
  bool operator>(const Slow& other) const { return ns > other.ns; }
};

[[gnu::format(printf, 1, 2)]] std::string Formatted(const char* format, ...) {
  std::array<char, 512> text{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

class Summary {
 public:
  void Add(const format::Record& record) {
    const Event& event = record.event;
    if (event.before) return;
    const tally::TimedSums sums = tally::SumsOf(event);
    rows_[Index(event.op)].Add(sums);
    const std::string_view path = format::PathOf(record, path_);
    if (path.empty()) return;
    if (slowest_.size() < kSlowest || sums.max_ns > slowest_.top().ns) {
      slowest_.push({sums.max_ns, event.op, std::string(path),
                     std::string(record.Text(Field::kComm))});
      if (slowest_.size() > kSlowest) slowest_.pop();
    }
    // Names that are looked for and not there are no files.
    if (sums.errors != 0) return;
    if (FileUse* const use = UseOf(path)) ++use->count;
    for (const tally::Transfer& transfer : tally::TransfersOf(event)) {
      FileUse* const use = UseOf(format::PathOf(record, transfer.end, path_));
      if (use != nullptr) use->bytes += transfer.bytes;
    }
  }

  void Add(const ProcessRecord& record) {
    using Kind = ProcessRecord::Kind;
    if (record.kind == Kind::kFork) {
      ++(record.child_tid != record.child.pid ? threads_ : processes_);
    } else if (record.kind == Kind::kExec) {
      ++programs_;
    } else if (record.kind == Kind::kExit && !record.is_thread()) {
      ++ended_;
      failed_ += record.signal || record.exit_code.value_or(0) != 0;
    }
  }

  std::string Text(const format::TraceReader& trace, const RunFacts& facts) {
    std::string text = "\n " + TerminalText(facts.command) + ": " +
                       DurationText(facts.elapsed_ns) + " elapsed\n\n";
    text += Table();
    text += SlowestText();
    text += FilesText();
    text += ProcessText(facts);
    text += LossesText(trace.stats());
    for (const auto& [key, value] : trace.description().header.properties) {
      if (key == "mount.lost") {
        text += " without root: " + TerminalText(value) + '\n';
      } else if (key == "visibility.invisible") {
        text += " never seen: " + TerminalText(value) + '\n';
      }
    }
    return text;
  }

 private:
  // Null if there is no room, or no name.
  FileUse* UseOf(std::string_view path) {
    auto found = files_.find(path);
    if (found == files_.end()) {
      if (path.empty() || files_.size() >= kMaxFiles) return nullptr;
      found = files_.emplace(path, FileUse()).first;
    }
    return &found->second;
  }

  std::string Table() const {
    std::vector<size_t> order;
    tally::TimedSums total;
    for (size_t i = 0; i < kOpCount; ++i) {
      const tally::TimedSums& row = rows_[i];
      if (row.count == 0) continue;
      order.push_back(i);
      total.Add(row);
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return rows_[a].time_ns > rows_[b].time_ns;
    });
    std::string text =
        " % time      total  operations    errors       bytes       mean"
        "        max\n";
    const auto line = [&](std::string_view name, const tally::TimedSums& row) {
      const double share = total.time_ns == 0
                               ? 0
                               : 100 * static_cast<double>(row.time_ns) /
                                     static_cast<double>(total.time_ns);
      text += Formatted("%7.2f %10s %11llu %9llu %11s %10s %10s  %s\n", share,
                        DurationText(row.time_ns).c_str(),
                        static_cast<unsigned long long>(row.count),
                        static_cast<unsigned long long>(row.errors),
                        row.bytes == 0 ? "" : SizeText(row.bytes).c_str(),
                        DurationText(row.MeanNs()).c_str(),
                        DurationText(row.max_ns).c_str(),
                        std::string(name).c_str());
    };
    for (const size_t i : order) line(OpName(static_cast<Op>(i)), rows_[i]);
    line("total", total);
    return text;
  }

  std::string SlowestText() {
    std::vector<Slow> slowest;
    while (!slowest_.empty()) {
      slowest.push_back(slowest_.top());
      slowest_.pop();
    }
    if (slowest.empty()) return {};
    std::reverse(slowest.begin(), slowest.end());
    std::string text = "\n slowest\n";
    for (const Slow& slow : slowest) {
      text += Formatted("%11s  %-12s ", DurationText(slow.ns).c_str(),
                        std::string(OpName(slow.op)).c_str()) +
              TerminalText(slow.path) +
              (slow.who.empty() ? "" : " by " + TerminalText(slow.who)) + '\n';
    }
    return text;
  }

  std::string FilesText() const {
    using Use = std::pair<std::string_view, FileUse>;
    std::vector<Use> most(files_.begin(), files_.end());
    const size_t shown = std::min(kFiles, most.size());
    if (shown == 0) return {};
    std::partial_sort(most.begin(), most.begin() + static_cast<long>(shown),
                      most.end(), [](const Use& a, const Use& b) {
                        return a.second.count != b.second.count
                                   ? a.second.count > b.second.count
                                   : a.first < b.first;
                      });
    std::string text = Formatted("\n most used of %zu files\n", files_.size());
    for (size_t i = 0; i < shown; ++i) {
      const FileUse& use = most[i].second;
      text +=
          Formatted("%11llu %11s  ", static_cast<unsigned long long>(use.count),
                    use.bytes == 0 ? "" : SizeText(use.bytes).c_str()) +
          TerminalText(most[i].first) + '\n';
    }
    return text;
  }

  std::string ProcessText(const RunFacts& facts) const {
    std::string text = "\n processes: ";
    if (processes_ + programs_ + ended_ == 0) {
      text += "not recorded";
    } else {
      text += Formatted(
          "%llu, %llu threads, %llu programs run, %llu ended with an error",
          static_cast<unsigned long long>(processes_),
          static_cast<unsigned long long>(threads_),
          static_cast<unsigned long long>(programs_),
          static_cast<unsigned long long>(failed_));
    }
    if (!facts.processes.empty()) text += "; " + facts.processes;
    return text + '\n';
  }

  static std::string LossesText(const format::ReadStats& stats) {
    std::string text = " losses: ";
    if (stats.losses.empty()) text += "none";
    bool first = true;
    for (const auto& [reason, count] : stats.losses) {
      if (!std::exchange(first, false)) text += ", ";
      text += std::to_string(count) + ' ' + TerminalText(reason);
    }
    if (!stats.final_record) text += "; the trace was cut";
    return text + '\n';
  }

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::array<tally::TimedSums, kOpCount> rows_{};
  std::priority_queue<Slow, std::vector<Slow>, std::greater<>> slowest_;
  std::unordered_map<std::string, FileUse, Hash, std::equal_to<>> files_;
  uint64_t processes_ = 0, threads_ = 0, programs_ = 0, ended_ = 0, failed_ = 0;
  PathBuffer path_;
};

}  // namespace

Result<std::string> SummaryOf(const std::string& trace, const RunFacts& facts) {
  Result<std::unique_ptr<format::ByteSource>> source =
      format::FdSource::Open(trace, /*follow=*/false);
  if (!source.ok()) return source.status().Prefixed(TerminalWord(trace));
  Summary summary;
  format::TraceReaderOptions options;
  options.name = trace;
  options.process = [&](const ProcessRecord& record) { summary.Add(record); };
  format::TraceMerger merger;
  merger.Add(std::make_unique<format::TraceReader>(*std::move(source),
                                                   std::move(options)));
  format::Record record;
  while (merger.Next(&record) == format::ReadStep::kItem) summary.Add(record);
  if (!merger.status(0).ok()) {
    return merger.status(0).Prefixed(TerminalWord(trace));
  }
  return summary.Text(merger.reader(0), facts);
}

}  // namespace tracefs
