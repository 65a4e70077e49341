// How many operations are under way at the same time, all together and of one
// process.
#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "tracefs/query/analyses.h"
#include "tracefs/query/process_numbers.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostQueueing = 65536;
// Deeper ones are counted as this deep.
constexpr uint64_t kDeepest = 4096;

// Of operations in the order of their begins.
class Depth {
 public:
  void Take(uint64_t begin_ns, uint64_t end_ns) {
    Pass(begin_ns);
    last_ns_ = begin_ns;
    ends_.push(end_ns);
    deepest_ = std::max<uint64_t>(deepest_, ends_.size());
    ++ops_;
    if (ends_.size() > 1) ++overlapping_;
    if (ends_.size() > kDeepest) ends_.pop();
  }
  void Finish() { Pass(UINT64_MAX); }

  uint64_t ops() const { return ops_; }
  uint64_t overlapping() const { return overlapping_; }
  uint64_t deepest() const { return deepest_; }
  const std::map<uint64_t, uint64_t>& ns_at() const { return ns_at_; }

 private:
  // What has ended until then.
  void Pass(uint64_t now_ns) {
    while (!ends_.empty() && ends_.top() <= now_ns) {
      if (ends_.top() > last_ns_) {
        ns_at_[ends_.size()] += ends_.top() - last_ns_;
        last_ns_ = ends_.top();
      }
      ends_.pop();
    }
    if (!ends_.empty() && now_ns > last_ns_) {
      ns_at_[ends_.size()] += now_ns - last_ns_;
    }
  }

  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> ends_;
  uint64_t last_ns_ = 0;
  uint64_t ops_ = 0;
  uint64_t overlapping_ = 0;
  uint64_t deepest_ = 0;
  std::map<uint64_t, uint64_t> ns_at_;  // time by depth
};

class Queueing final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    const Event& event = record.event;
    if (!HasRun(record) || !event.Has(Field::kLatency) ||
        record.time_resolution_ns == 0) {
      return;
    }
    const uint64_t end =
        tally::AddTo(record.real_ns, event.Get(Field::kLatency));
    all_.Take(record.real_ns, end);
    const ProcessNumbers::Found found = numbers_.Of(record);
    // Who is not known is so on each machine.
    const std::pair key(found.number, found.number == ProcessNumbers::kUnknown
                                          ? OriginOf(record).machine
                                          : 0);
    if (processes_.size() >= kMostQueueing && !processes_.contains(key)) {
      ++not_followed_;
      return;
    }
    Process& process = processes_[key];
    process.pid = found.pid;
    if (process.comm.empty()) process.comm = record.Text(Field::kComm);
    process.depth.Take(record.real_ns, end);
  }
  void TakeProcess(const ProcessRecord& record) override {
    numbers_.Take(record);
  }

  std::vector<Table> Finish() override {
    all_.Finish();
    Table depths;
    depths.columns = {{"depth", Unit::kNumber},
                      {"time", Unit::kDuration, true},
                      {"share", Unit::kShare, true}};
    uint64_t busy = 0;
    for (const auto& [depth, ns] : all_.ns_at()) busy += ns;
    for (const auto& [depth, ns] : all_.ns_at()) {
      depths.rows.push_back(
          {Value::Number(depth), Value::Number(ns), Value::Share(ns, busy)});
    }
    depths.notes.push_back(
        "at most " + std::to_string(all_.deepest()) + " at the same time; " +
        std::to_string(all_.overlapping()) + " of " +
        std::to_string(all_.ops()) + " began while another one was under way");
    Table processes;
    processes.title = "processes whose operations overlap";
    processes.columns = {{"cname"},
                         {"cpid", Unit::kNumber},
                         {"count", Unit::kNumber, true},
                         {"overlapping", Unit::kNumber, true},
                         {"deepest", Unit::kCount}};
    for (auto& [key, process] : processes_) {
      if (process.depth.overlapping() == 0) continue;
      processes.rows.push_back({Value::Text(process.comm),
                                Value::Number(process.pid),
                                Value::Number(process.depth.ops()),
                                Value::Number(process.depth.overlapping()),
                                Value::Number(process.depth.deepest())});
    }
    (void)Arrange({.sort = "overlapping"}, &processes);
    if (not_followed_ != 0) {
      processes.notes.push_back(std::to_string(not_followed_) +
                                " operations were of more processes");
    }
    return {depths, processes};
  }

 private:
  struct Process {
    uint32_t pid = 0;
    std::string comm;
    Depth depth;
  };
  Depth all_;
  ProcessNumbers numbers_;
  // By number, and for those without one by machine.
  std::map<std::pair<ProcessNumbers::Number, uint32_t>, Process> processes_;
  uint64_t not_followed_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakeQueueing(const AnalysisOptions& /*options*/) {
  return std::make_unique<Queueing>();
}

}  // namespace tracefs::query
