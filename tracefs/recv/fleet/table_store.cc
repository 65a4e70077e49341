// Blocks as tables: DIR/host=H/date=D/SERIAL-FIRST-LAST.parquet, or .jsonl. A
// file is made of blocks that follow each other, appears as a whole, and says
// by its name which they are.
//
// What a trace says of itself is in its block 0, which one receiver gets and
// all need: it is kept in DIR/.heads/HOST/SERIAL.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <utility>

#include "tracefs/base/file_io.h"
#include "tracefs/base/ranges.h"
#include "tracefs/export/table.h"
#include "tracefs/recv/fleet/places.h"
#include "tracefs/recv/fleet/store.h"
#include "tracefs/recv/fleet/table_name.h"
#include "tracefs/recv/live_source.h"
#include "tracefs/recv/shared_decoders.h"

namespace tracefs {
namespace {

constexpr char kHeads[] = ".heads";
constexpr size_t kMaxBatchBlocks = 16384;
constexpr size_t kMaxOpenBytes = size_t{64} << 20;
constexpr size_t kMaxHeads = 4096;
constexpr uint64_t kMaxTableHeadBytes = uint64_t{16} << 20;

// Which blocks the files of a folder have, by their names; also of one that is
// about to take the place of others.
void AddStored(int folder, const std::string& serial, Ranges* stored) {
  for (const std::string& prefix :
       {serial + '-', std::string(kMergedPrefix) + serial + '-'}) {
    for (const std::string& text : NamesIn(folder, prefix)) {
      const auto name = TableName::Parse(
          std::string_view(text).substr(prefix.size() - serial.size() - 1));
      if (name) stored->Add(name->first, name->last + 1);
    }
  }
}

class TableStore final : public FleetStore {
 public:
  TableStore(int root, FleetStoreOptions options)
      : root_(root),
        options_(std::move(options)),
        format_(*FindExportFormat(options_.format)),
        decoders_(std::make_shared<CurrentKeys>(
                      options_.keys != nullptr ? options_.keys
                                               : std::make_shared<KeyRing>()),
                  {}) {}

  void Add(FleetBlock block) override {
    held_bytes_ += block.frame.size();
    ++held_blocks_;
    if (held_blocks_ == 1) first_ = block.since;
    held_[{block.host, block.day, block.serial}].push_back(std::move(block));
  }

  Status Commit(bool hurry, std::vector<uint64_t>* done,
                std::vector<Refused>* refused) override {
    // Blocks 0 first: others may be waiting for them.
    if (Status s = StoreHeads(); !s.ok()) return s;
    const auto now = Clock::now();
    if (held_blocks_ == 0 ||
        (!hurry && held_bytes_ < options_.batch_bytes &&
         held_blocks_ < kMaxBatchBlocks && now - first_ < options_.every)) {
      return Status::Ok();
    }
    auto batch = std::exchange(held_, {});
    held_bytes_ = held_blocks_ = 0;
    Status status;
    for (auto& [key, blocks] : batch) {
      if (status.ok()) status = CommitOne(key, &blocks, now, done, refused);
      // What waits for its head, and after an error all.
      for (FleetBlock& block : blocks) Keep(key, std::move(block));
    }
    return status;
  }

  void Forget() override {
    held_.clear();
    held_bytes_ = held_blocks_ = 0;
  }
  uint64_t held_bytes() const override { return held_bytes_; }

 private:
  struct Key {
    std::string host;
    std::string day;
    format::Serial serial;
    auto operator<=>(const Key&) const = default;
  };

  void Keep(const Key& key, FleetBlock block) {
    if (held_blocks_ == 0 || block.since < first_) first_ = block.since;
    held_bytes_ += block.frame.size();
    ++held_blocks_;
    held_[key].push_back(std::move(block));
  }

  // --- Heads: preamble and block 0.

  Result<UniqueFd> HeadFolder(const std::string& host) const {
    Result<UniqueFd> heads = OpenOrMakeFolder(root_, kHeads);
    if (!heads.ok()) return heads;
    return OpenOrMakeFolder(heads->get(), host);
  }

  Status StoreHeads() {
    for (const auto& [key, blocks] : held_) {
      for (const FleetBlock& block : blocks) {
        if (block.sequence != 0) continue;
        std::string& head = HeadRoom(key);
        if (!head.empty()) continue;
        const Result<UniqueFd> folder = HeadFolder(key.host);
        if (!folder.ok()) return folder.status();
        // The first one stays: a second is a forgery, or the same.
        if (ReadHead(folder->get(), key.serial, &head)) continue;
        const std::string bytes = block.preamble + block.frame;
        if (Status s = WriteFileWhole(folder->get(),
                                      format::SerialText(key.serial), bytes);
            !s.ok()) {
          return s;
        }
        head = bytes;
      }
    }
    return Status::Ok();
  }

  std::string& HeadRoom(const Key& key) {
    if (heads_.size() >= kMaxHeads) heads_.clear();
    return heads_[{key.host, key.serial}];
  }

  static bool ReadHead(int folder, const format::Serial& serial,
                       std::string* head) {
    const UniqueFd fd(::openat(folder, format::SerialText(serial).c_str(),
                               O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat st;
    if (!fd || ::fstat(fd.get(), &st) != 0 || st.st_size <= 0 ||
        static_cast<uint64_t>(st.st_size) > kMaxTableHeadBytes) {
      return false;
    }
    head->resize(static_cast<size_t>(st.st_size));
    if (ReadAllAt(fd.get(),
                  {reinterpret_cast<std::byte*>(head->data()), head->size()},
                  0)) {
      return true;
    }
    head->clear();
    return false;
  }

  // Empty: no receiver has it yet.
  Result<std::string> HeadOf(const Key& key) {
    std::string& head = HeadRoom(key);
    if (!head.empty()) return head;
    const Result<UniqueFd> folder = HeadFolder(key.host);
    if (!folder.ok()) return folder.status();
    static_cast<void>(ReadHead(folder->get(), key.serial, &head));
    return head;
  }

  // --- Files.

  // Takes out of `blocks` what is dealt with.
  Status CommitOne(const Key& key, std::vector<FleetBlock>* blocks,
                   Clock::time_point now, std::vector<uint64_t>* done,
                   std::vector<Refused>* refused) {
    const Result<std::string> head = HeadOf(key);
    if (!head.ok()) return head.status();
    if (head->empty()) {
      return RefuseOld("the block with which its trace begins never came", now,
                       blocks, refused);
    }
    Result<HostFolder> folder = HostFolder::Open(root_, key.host);
    if (!folder.ok()) return folder.status();
    const HostFolder::Lock lock(*folder);
    if (!lock.status().ok()) return lock.status();
    const Result<UniqueFd> day = folder->Day(key.day);
    if (!day.ok()) return day.status();
    // There is no other writer: leftovers of killed receivers are removed.
    for (const std::string& name : NamesIn(day->get(), kTemporaryPrefix)) {
      ::unlinkat(day->get(), name.c_str(), 0);
    }
    const std::string serial = format::SerialText(key.serial);
    Ranges stored;
    // A sender that was cut off may send a block again on another day.
    for (const std::string& name : NamesIn(folder->fd(), "date=")) {
      const UniqueFd other(::openat(folder->fd(), name.c_str(),
                                    O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (other) AddStored(other.get(), serial, &stored);
    }
    std::sort(blocks->begin(), blocks->end(),
              [](const FleetBlock& a, const FleetBlock& b) {
                return a.sequence < b.sequence;
              });
    std::vector<FleetBlock> run;
    std::vector<FleetBlock> rest = std::exchange(*blocks, {});
    Status status;
    for (FleetBlock& block : rest) {
      if (!status.ok()) {
        blocks->push_back(std::move(block));
        continue;
      }
      if (block.preamble != head->substr(0, block.preamble.size())) {
        refused->push_back(
            {std::move(block),
             Status::Corrupt("another trace with the same serial is there")});
        continue;
      }
      if (stored.Has(block.sequence)) {
        ++counts_.doubled;
        done->push_back(block.number);
        continue;
      }
      stored.Add(block.sequence, block.sequence + 1);
      if (!run.empty() && run.back().sequence + 1 != block.sequence) {
        status = WriteRun(key, *head, day->get(), &run, done);
      }
      run.push_back(std::move(block));
    }
    if (status.ok() && !run.empty()) {
      status = WriteRun(key, *head, day->get(), &run, done);
    }
    // What could not be written.
    std::ranges::move(run, std::back_inserter(*blocks));
    return status;
  }

  Status RefuseOld(const char* why, Clock::time_point now,
                   std::vector<FleetBlock>* blocks,
                   std::vector<Refused>* refused) {
    std::vector<FleetBlock> young;
    for (FleetBlock& block : *blocks) {
      if (now - block.since < options_.gap_patience) {
        young.push_back(std::move(block));
      } else {
        refused->push_back({std::move(block), Status::Corrupt(why)});
      }
    }
    *blocks = std::move(young);
    return Status::Ok();
  }

  Status WriteRun(const Key& key, const std::string& head, int day,
                  std::vector<FleetBlock>* run, std::vector<uint64_t>* done) {
    const std::string name =
        TableName{format::SerialText(key.serial), run->front().sequence,
                  run->back().sequence, options_.format}
            .Text();
    const std::string temporary = TemporaryNameOf(name);
    const UniqueFd fd(
        ::openat(day, temporary.c_str(),
                 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return Status::System(errno, "'" + name + "'");
    FdOutput out(fd.get());
    LiveSource source(name, decoders_.Factory(), kMaxOpenBytes);
    const std::unique_ptr<Exporter> exporter = format_.make(out, {});
    source.Add(AsBytes(head));
    for (const FleetBlock& block : *run) {
      // The head has it.
      if (block.sequence != 0) source.Add(AsBytes(block.frame));
      source.Print(*exporter, /*hurry=*/false);
    }
    source.End(*exporter);
    exporter->Finish();
    Status status = exporter->status();
    if (status.ok()) status = out.Flush();
    if (!status.ok()) {
      ::unlinkat(day, temporary.c_str(), 0);
      return status;
    }
    status = PutInPlace(day, fd.get(), temporary, name);
    if (!status.ok()) return status;
    ++counts_.files;
    counts_.blocks += run->size();
    for (const FleetBlock& block : *run) done->push_back(block.number);
    run->clear();
    return Status::Ok();
  }

  const int root_;
  const FleetStoreOptions options_;
  const ExportFormat& format_;
  SharedDecoders decoders_;
  std::map<Key, std::vector<FleetBlock>> held_;
  std::map<std::pair<std::string, format::Serial>, std::string> heads_;
  uint64_t held_bytes_ = 0;
  size_t held_blocks_ = 0;
  Clock::time_point first_;  // of what is held
};

}  // namespace

std::unique_ptr<FleetStore> MakeTableStore(int root,
                                           FleetStoreOptions options) {
  return std::make_unique<TableStore>(root, std::move(options));
}

}  // namespace tracefs
