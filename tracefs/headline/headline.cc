#include "tracefs/headline/headline.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "tracefs/base/absolute_path.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/tally/sums.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/shell_word.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

constexpr size_t kFoldersShown = 2;
constexpr size_t kTracesInCommand = 3;
// A finding below this share of the time of all operations is left out.
constexpr uint64_t kLeastShare = 100;  // one of so many
constexpr uint64_t kSmallBytes = 4096;
constexpr uint64_t kSlowNs = 100'000'000;

bool FailedWith(const Event& event, uint64_t error) {
  return event.Has(Field::kErrno) && event.Get(Field::kErrno) == error;
}
bool WaitsForDisk(const Event& event) {
  return event.op == Op::fsync_ || event.op == Op::fsyncdir_;
}
bool WaitsForLock(const Event& event) {
  return event.op == Op::setlk_ || event.op == Op::flock_;
}
bool FindsNothing(const Event& event) {
  return event.op == Op::lookup_ && FailedWith(event, ENOENT);
}
bool FailsOtherwise(const Event& event) {
  return tally::Failed(event) && !FindsNothing(event);
}
bool IsSmall(const Event& event) {
  return (event.op == Op::read_ || event.op == Op::write_) &&
         !tally::Failed(event) && event.Has(Field::kResult) &&
         tally::BytesOf(event).moved() < kSmallBytes;
}
bool IsSlow(const Event& event) {
  return event.GetOr0(Field::kLatency) >= kSlowNs && !WaitsForDisk(event) &&
         !WaitsForLock(event);
}

// The filter that a kind stands for is that of the command, word for word.
struct KindRow {
  bool (*is)(const Event& event);
  std::string_view what;
  std::string_view command;
  std::string_view filter = {};  // of the command
};
constexpr std::array<KindRow, Headline::kKinds> kRows = {{
    {&WaitsForDisk, "fsync: waits for the disk", "tracefs-report fsync"},
    {&WaitsForLock, "locks: waits for other processes",
     "tracefs-dump --by path,cname --sort time", "op IN { setlk flock }"},
    {&FindsNothing, "lookups of names that do not exist",
     "tracefs-report probes"},
    {&FailsOtherwise, "other operations that failed", "tracefs-report errors"},
    {&IsSmall, "reads and writes below 4096 bytes", "tracefs-report small-io"},
    {&IsSlow, "other operations that took 100 ms or more",
     "tracefs-report slowest"},
}};

// Both at a time, on one line.
std::string BothFilters(const std::string& asked, std::string_view own) {
  std::string text = asked;
  const bool comment = text.find('#') != text.npos;  // it ends with its line
  if (!comment) std::ranges::replace(text, '\n', ' ');
  if (text.empty() || own.empty()) return text + std::string(own);
  return "(" + text + (comment ? "\n" : "") + ") AND " + std::string(own);
}

// That shows more of a kind, of what was asked about.
std::string CommandOf(const KindRow& row, const HeadlineFacts& facts) {
  std::string line(row.command);
  const std::string filter = BothFilters(facts.filter, row.filter);
  if (!filter.empty()) line += " --filter " + ShellWord(filter);
  for (const std::string& word : facts.options) line += ' ' + ShellWord(word);
  if (facts.traces.size() > kTracesInCommand) return line + " TRACE\u2026";
  for (const std::string& trace : facts.traces) {
    line += trace == "-" ? " -" : ' ' + ShellPath(trace);  // standard input
  }
  return line;
}

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string LossesText(std::span<const format::TraceContext* const> traces) {
  uint64_t lost = 0;
  bool cut = false;
  for (const format::TraceContext* const trace : traces) {
    for (const auto& [reason, count] : trace->stats.losses) {
      lost = tally::AddTo(lost, count);
    }
    cut = cut || (trace->stats.ended && !trace->stats.final_record &&
                  !trace->stats.jumped);
  }
  std::string text;
  if (lost != 0) {
    text = " " + CountText(lost, "operation was", "operations were") + " lost.";
  }
  if (cut) text += " What came after the end of the trace is not known.";
  return text;
}

std::string NothingText(const HeadlineFacts& facts) {
  if (facts.narrowed_by.empty()) return "No file operation was recorded here.";
  return "No file operation is left by " + facts.narrowed_by +
         "; without, more may be told.";
}

}  // namespace

std::string CoveredText(uint64_t covered_ns, uint64_t elapsed_ns) {
  const bool hardly = covered_ns != 0 && covered_ns < elapsed_ns / 1000;
  return hardly ? "less than 0.1 %" : ShareText(covered_ns, elapsed_ns);
}

std::string_view MountPointOf(const format::TraceContext& trace) {
  for (const auto& [key, value] : trace.description.header.properties) {
    if (key == "mount.point") return value;
  }
  return {};
}

void Headline::Saw(uint64_t real_ns, uint64_t length_ns) {
  if (real_ns == 0) return;
  first_ns_ = std::min(first_ns_, real_ns);
  last_ns_ = std::max(last_ns_, tally::AddTo(real_ns, length_ns));
}

void Headline::Add(const format::Record& record) {
  const Event& event = record.event;
  if (event.before) return;  // it is told again when it has run
  const uint64_t length_ns = event.GetOr0(Field::kLatency);
  count_ = tally::AddTo(count_, 1);
  time_ns_ = tally::AddTo(time_ns_, length_ns);
  Saw(record.real_ns, length_ns);
  if (record.real_ns != 0) covered_.Add(record.real_ns, length_ns);
  for (size_t i = 0; i < kKinds; ++i) {
    if (!kRows[i].is(event)) continue;
    kinds_[i].count = tally::AddTo(kinds_[i].count, 1);
    kinds_[i].time_ns = tally::AddTo(kinds_[i].time_ns, length_ns);
  }
}

void Headline::AddProcess(const ProcessRecord& record,
                          std::string_view mount_point) {
  processes_told_ = true;
  Saw(record.real_ns, 0);
  if (record.kind != ProcessRecord::Kind::kExec || mount_point.empty() ||
      !record.exe.starts_with('/')) {
    return;
  }
  if (traced_.empty()) traced_ = mount_point;
  several_ = several_ || traced_ != mount_point;
  ++programs_;
  std::string_view exe = record.exe;
  if (TakeFolder(mount_point, &exe)) return;
  ++elsewhere_;
  const std::string_view folder = FolderOf(record.exe);
  const auto found = folders_.find(folder);
  if (found != folders_.end()) {
    ++found->second;
  } else if (folders_.size() < kMostFolders) {
    folders_.emplace(folder, 1);
  }
}

uint64_t Headline::ElapsedNs(const HeadlineFacts& facts) const {
  return facts.elapsed_ns.value_or(first_ns_ > last_ns_ ? 0
                                                        : last_ns_ - first_ns_);
}

std::string Headline::TimeText(const HeadlineFacts& facts, bool several) const {
  const std::string operations =
      "the " + CountText(count_, "file operation", "file operations") +
      " recorded here";
  const uint64_t elapsed_ns = ElapsedNs(facts);
  const bool whole = facts.elapsed_ns || (processes_told_ && !several);
  if (elapsed_ns == 0) {
    return count_ == 0 ? NothingText(facts)
                       : CountText(count_, "file operation was",
                                   "file operations were") +
                             " recorded, without times.";
  }
  std::string text =
      SpanText(elapsed_ns) + (whole ? " elapsed"
                                    : " from the first operation to the "
                                      "end of the last");
  if (count_ == 0) {
    return text + (facts.narrowed_by.empty()
                       ? "; no file operation was recorded here."
                       : ". " + NothingText(facts));
  }
  const uint64_t covered_ns = std::min(covered_.ns(), elapsed_ns);
  return text + ", " + CoveredText(covered_ns, elapsed_ns) + " of it in " +
         operations + ".";
}

std::string Headline::ElsewhereText() const {
  if (elsewhere_ == 0 || several_) return {};
  std::vector<std::pair<uint64_t, std::string>> folders;
  for (const auto& [folder, count] : folders_)
    folders.emplace_back(count, folder);
  std::ranges::sort(folders, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string where;
  for (size_t i = 0; i < std::min(kFoldersShown, folders.size()); ++i) {
    where += (i == 0 ? "" : ", ") + TerminalText(folders[i].second);
  }
  if (folders.size() > kFoldersShown) where += ", \u2026";
  const std::string traced = TerminalText(traced_);
  return " " + CountText(elsewhere_) + " of " +
         CountText(programs_, "program", "programs") + " that ran " +
         (elsewhere_ == 1 ? "lies" : "lie") + " outside " + traced + " (in " +
         where + "); file operations outside " + traced +
         " were not recorded: tracefs-run --root records them.";
}

std::vector<Saving> Headline::Savings(const HeadlineFacts& facts) const {
  std::vector<Saving> findings;
  for (size_t i = 0; i < kKinds; ++i) {
    const Kind& kind = kinds_[i];
    if (kind.time_ns == 0 || kind.time_ns < time_ns_ / kLeastShare) continue;
    findings.push_back({.time_ns = kind.time_ns,
                        .count = kind.count,
                        .what = std::string(kRows[i].what),
                        .command = CommandOf(kRows[i], facts)});
  }
  std::ranges::stable_sort(findings, [](const Saving& a, const Saving& b) {
    return a.time_ns > b.time_ns;
  });
  if (findings.size() > kMostFindings) findings.resize(kMostFindings);
  return findings;
}

HeadlineText Headline::Finish(
    std::span<const format::TraceContext* const> traces,
    const HeadlineFacts& facts) const {
  const bool counted = std::ranges::any_of(
      traces, [](const auto* trace) { return trace->stats.aggregates != 0; });
  HeadlineText text;
  if (count_ != 0 || !counted)
    text.sentences = TimeText(facts, traces.size() > 1);
  if (counted) {
    text.sentences += count_ == 0 ? "Operations" : " Others";
    text.sentences += " were counted, not recorded one by one.";
  }
  text.sentences += ElsewhereText() + LossesText(traces);
  text.findings = Savings(facts);
  text.elapsed_ns = ElapsedNs(facts);
  text.covered_ns = std::min(covered_.ns(), text.elapsed_ns);
  return text;
}

}  // namespace tracefs
