// Blocks as traces, DIR/host=H/date=D/SERIAL.trace, as they were sent.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "tracefs/recv/fleet/day_files.h"
#include "tracefs/recv/fleet/store.h"

namespace tracefs {
namespace {

// Descriptors of a trace that is open: folder and lock of its host, two files;
// and what is left for all else.
constexpr size_t kDescriptors = 4;
constexpr size_t kOtherDescriptors = 256;
constexpr size_t kMinOpenTraces = 16;
constexpr size_t kMaxOpenTraces = 2048;
static_assert(kMaxOpenTraces * kDescriptors + kOtherDescriptors ==
              kFleetDescriptors);
// With more of them one sync of the file system is cheaper than one for each.
constexpr size_t kManyFiles = 16;

class TraceStore final : public FleetStore {
 public:
  TraceStore(int root, FleetStoreOptions options)
      : root_(root), options_(std::move(options)), max_open_(MaxOpen()) {}

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
    const std::set<Key> due = std::exchange(due_, {});
    Status status;
    for (auto at = due.begin(); at != due.end();) {
      Round round;
      for (size_t n = 0; n < max_open_ / 2 && at != due.end(); ++n, ++at) {
        Trace& trace = traces_[*at];
        // After an error the rest waits.
        if (status.ok()) status = CommitOne(*at, &trace, now, &round, refused);
        if (!trace.held.empty()) due_.insert(*at);
        trace.used = ++uses_;
      }
      // What could be stored is acknowledged, whatever became of the rest.
      if (Status s = Settle(&round, done); !s.ok() && status.ok()) status = s;
      CloseSome();
    }
    return status;
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
  // What was stored, and is not on the disk yet.
  struct Stored {
    Key key;
    std::vector<FleetBlock> blocks;
  };
  struct Round {
    std::vector<Stored> stored;
    FleetCounts counts;
  };

  static size_t MaxOpen() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const size_t all = std::max<size_t>(limit.rlim_cur, kOtherDescriptors);
    return std::clamp<size_t>((all - kOtherDescriptors) / kDescriptors,
                              kMinOpenTraces, kMaxOpenTraces);
  }

  Status CommitOne(const Key& key, Trace* trace, Clock::time_point now,
                   Round* round, std::vector<Refused>* refused) {
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
    std::vector<FleetBlock>* stored = nullptr;
    while (!trace->held.empty()) {
      FleetBlock& block = trace->held.begin()->second;
      if (block.sequence > trace->files->next() && !impatient &&
          now - block.since < options_.gap_patience) {
        break;
      }
      if (Status s = Store(block, trace->files.get(), &round->counts);
          !s.ok()) {
        return s;
      }
      if (stored == nullptr) {
        stored = &round->stored.emplace_back(Stored{key, {}}).blocks;
      }
      held_bytes_ -= block.frame.size();
      stored->push_back(std::move(block));
      trace->held.erase(trace->held.begin());
    }
    return Status::Ok();
  }

  static Status Store(const FleetBlock& block, DayFiles* files,
                      FleetCounts* counts) {
    const ByteSpan frame = AsBytes(block.frame);
    const uint64_t next = files->next();
    if (block.sequence >= next) {
      if (Status s = files->Append(block.day, block.sequence, frame); !s.ok()) {
        return s;
      }
      counts->gaps += block.sequence - next;
      ++counts->blocks;
      return Status::Ok();
    }
    if (!files->Missing(block.sequence)) {
      ++counts->doubled;
      return Status::Ok();
    }
    if (Status s = files->AppendLate(block.day, block.sequence, frame);
        !s.ok()) {
      return s;
    }
    ++counts->blocks;
    ++counts->late;
    return Status::Ok();
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

  // Makes durable what was stored, and acknowledges it, or takes it back.
  Status Settle(Round* round, std::vector<uint64_t>* done) {
    const Status synced = SyncAll(round->stored);
    for (auto& [key, blocks] : round->stored) {
      for (FleetBlock& block : blocks) {
        if (synced.ok()) {
          done->push_back(block.number);
        } else {
          Add(std::move(block));
        }
      }
    }
    if (synced.ok()) counts_.Add(round->counts);
    return synced;
  }

  // Also of those whose blocks were there: another receiver may have written
  // them and not synced yet.
  Status SyncAll(const std::vector<Stored>& stored) {
    int error = 0;
    const bool many = stored.size() > kManyFiles;
    if (many) error = ::syncfs(root_) == 0 ? 0 : errno;
    Status status =
        error == 0 ? Status::Ok() : Status::System(error, "syncing");
    if (many && error == 0) {
      for (const auto& [key, blocks] : stored) {
        const Status noted = traces_[key].files->NoteSynced();
        if (status.ok()) status = noted;
      }
      return status;
    }
    for (const auto& [key, blocks] : stored) {
      const Trace& trace = traces_[key];
      // What others add meanwhile might go with what is taken back.
      const HostFolder::Lock lock(*trace.folder);
      if (many || !status.ok()) {
        trace.files->Doubt();
      } else {
        status = trace.files->Sync();
      }
    }
    return status;
  }

  // Those that were used longest ago; what waits in them stays.
  void CloseSome() {
    const size_t most = max_open_ / 2;
    if (traces_.size() <= most) return;
    const uint64_t before = uses_ - most;
    for (auto at = traces_.begin(); at != traces_.end();) {
      Trace& trace = at->second;
      if (trace.used >= before) {
        ++at;
        continue;
      }
      trace.files.reset();
      trace.folder.reset();
      at = trace.held.empty() ? traces_.erase(at) : std::next(at);
    }
  }

  const int root_;
  const FleetStoreOptions options_;
  const size_t max_open_;  // traces whose files are
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
