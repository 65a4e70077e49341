// Blocks as traces, DIR/host=H/date=D/SERIAL.trace, as they were sent.
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "tracefs/recv/fleet/day_files.h"
#include "tracefs/recv/fleet/store.h"

namespace tracefs {
namespace {

// Traces whose files stay open.
constexpr size_t kMaxOpen = 2048;
// With more of them one sync of the file system is cheaper than one for each.
constexpr size_t kManyFiles = 16;

class TraceStore final : public FleetStore {
 public:
  TraceStore(int root, FleetStoreOptions options)
      : root_(root), options_(std::move(options)) {}

  void Add(FleetBlock block) override {
    held_bytes_ += block.frame.size();
    Trace& trace = traces_[{block.host, block.serial}];
    due_.insert({block.host, block.serial});
    const uint64_t sequence = block.sequence;
    trace.held.emplace(sequence, std::move(block));
  }

  Status Commit(bool /*hurry*/, std::vector<uint64_t>* done,
                std::vector<Refused>* refused) override {
    const auto now = Clock::now();
    std::vector<uint64_t> stored;
    std::vector<Key> dirty;
    std::set<Key> waiting;
    for (const Key& key : std::exchange(due_, {})) {
      Trace& trace = traces_[key];
      const size_t before = stored.size();
      if (Status s = CommitOne(key, &trace, now, &stored, refused); !s.ok()) {
        return s;
      }
      if (stored.size() != before) dirty.push_back(key);
      if (!trace.held.empty()) waiting.insert(key);
      trace.used = ++uses_;
    }
    due_ = std::move(waiting);
    if (Status s = SyncAll(dirty); !s.ok()) return s;
    done->insert(done->end(), stored.begin(), stored.end());
    CloseSome();
    return Status::Ok();
  }

  void Forget() override {
    for (auto& [key, trace] : traces_) trace.held.clear();
    due_.clear();
    held_bytes_ = 0;
  }
  uint64_t held_bytes() const override { return held_bytes_; }

 private:
  using Key = std::pair<std::string, format::Serial>;
  struct Trace {
    std::unique_ptr<HostFolder> folder;
    std::unique_ptr<DayFiles> files;
    std::multimap<uint64_t, FleetBlock> held;  // by sequence
    uint64_t used = 0;
  };

  Status CommitOne(const Key& key, Trace* trace, Clock::time_point now,
                   std::vector<uint64_t>* stored,
                   std::vector<Refused>* refused) {
    if (trace->held.empty()) return Status::Ok();
    if (trace->files == nullptr) {
      Result<HostFolder> folder = HostFolder::Open(root_, key.first);
      if (!folder.ok()) return folder.status();
      trace->folder = std::make_unique<HostFolder>(*std::move(folder));
      trace->files = std::make_unique<DayFiles>(
          *trace->folder, trace->held.begin()->second.preamble, key.second);
    }
    const HostFolder::Lock lock(*trace->folder);
    if (!lock.status().ok()) return lock.status();
    if (Status s = trace->files->Refresh(); !s.ok()) {
      if (s.code() == StatusCode::kSystem) return s;
      RefuseAll(trace, s, refused);
      return Status::Ok();
    }
    trace->files->ResumeAt(trace->held.begin()->first);
    // Whoever has waited long waits for what does not come.
    const bool impatient = held_bytes_ > options_.max_held_bytes;
    while (!trace->held.empty()) {
      FleetBlock& block = trace->held.begin()->second;
      if (block.sequence > trace->files->next() && !impatient &&
          now - block.since < options_.gap_patience) {
        break;
      }
      if (Status s = Store(block, trace->files.get()); !s.ok()) return s;
      stored->push_back(block.number);
      held_bytes_ -= block.frame.size();
      trace->held.erase(trace->held.begin());
    }
    return Status::Ok();
  }

  Status Store(const FleetBlock& block, DayFiles* files) {
    const ByteSpan frame = AsBytes(block.frame);
    const uint64_t next = files->next();
    if (block.sequence >= next) {
      counts_.gaps += block.sequence - next;
      ++counts_.blocks;
      return files->Append(block.day, block.sequence, frame);
    }
    if (!files->Missing(block.sequence)) {
      ++counts_.doubled;
      return Status::Ok();
    }
    ++counts_.blocks;
    ++counts_.late;
    return files->AppendLate(block.day, block.sequence, frame);
  }

  void RefuseAll(Trace* trace, const Status& why,
                 std::vector<Refused>* refused) {
    for (auto& [sequence, block] : trace->held) {
      held_bytes_ -= block.frame.size();
      refused->push_back({std::move(block), why});
    }
    trace->held.clear();
    // The next block may be of the trace that is there.
    trace->files.reset();
    trace->folder.reset();
  }

  // Also of those whose blocks were there: another receiver may have written
  // them and not synced yet.
  Status SyncAll(const std::vector<Key>& dirty) {
    if (dirty.size() > kManyFiles) {
      return ::syncfs(root_) == 0 ? Status::Ok()
                                  : Status::System(errno, "syncing");
    }
    for (const Key& key : dirty) {
      if (Status s = traces_[key].files->Sync(); !s.ok()) return s;
    }
    return Status::Ok();
  }

  void CloseSome() {
    if (traces_.size() <= kMaxOpen) return;
    const uint64_t before = uses_ - kMaxOpen / 2;
    std::erase_if(traces_, [&](const auto& one) {
      return one.second.held.empty() && one.second.used < before;
    });
  }

  const int root_;
  const FleetStoreOptions options_;
  std::map<Key, Trace> traces_;
  std::set<Key> due_;  // with blocks that wait
  uint64_t held_bytes_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace

std::unique_ptr<FleetStore> MakeTraceStore(int root,
                                           FleetStoreOptions options) {
  return std::make_unique<TraceStore>(root, std::move(options));
}

}  // namespace tracefs
