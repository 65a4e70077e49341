// What happens to the blocks of files: read again, written again, how long what
// was written lives, how much is in use over time.
//
// Memory is bounded by looking at a sample of the blocks, chosen by their hash
// (SHARDS, Waldspurger et al., FAST'15): when there are too many, every other
// one is dropped and counts double.
#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "tracefs/format/file_paths.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/distinct_count.h"
#include "tracefs/query/file_lives.h"
#include "tracefs/query/pictures.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/text/duration.h"

namespace tracefs::query {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr size_t kMostBlocks = size_t{1} << 20;
// Of one transfer: a hostile length must not keep us.
constexpr uint64_t kMostOfTransfer = uint64_t{1} << 20;

class Blocks final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    TakeAny(record, /*counts=*/true);
  }
  bool follows_files() const override { return true; }
  void Pass(const format::Record& record, size_t /*trace*/) override {
    TakeAny(record, /*counts=*/false);
  }

  std::vector<Table> Finish() override {
    const auto bytes = [this](uint64_t n) {
      return Value::Number(n * kBlock << shift_);
    };
    Table sums;
    sums.columns = {{"what"}, {"bytes", Unit::kBytes, true}};
    sums.rows = {{Value::Text("read first"), bytes(read_first_)},
                 {Value::Text("read again"), bytes(read_again_)},
                 {Value::Text("written first"), bytes(written_first_)},
                 {Value::Text("overwritten"), bytes(overwritten_)},
                 {Value::Text("removed with the file"), bytes(removed_)},
                 {Value::Text("cut off"), bytes(truncated_)}};
    sums.notes.push_back(
        "in blocks of 4096 bytes" +
        std::string(shift_ == 0 ? ""
                                : "; estimated by one block in " +
                                      std::to_string(uint64_t{1} << shift_)));
    if (oldest_ != 0 || !lives_.empty()) {
      sums.notes.push_back(
          "what was written and is gone lived " +
          ExactDurationText(ages_.Quantile(0.5, {.max = oldest_})) +
          " in the middle");
    }
    Table counts;
    counts.columns = {{"life", Unit::kDuration}, {"count", Unit::kCount}};
    for (const auto& [age, count] : lives_) {
      counts.rows.push_back(
          {Value::Number(age), Value::Number(count << shift_)});
    }
    if (std::string note = files_.Note(); !note.empty()) {
      sums.notes.push_back(std::move(note));
    }
    Table lives = HistogramTable(counts, Unit::kDuration);
    lives.title = "life times of written blocks";
    Table used;
    used.title = "working set";
    used.columns = {{"time", Unit::kTime}, {"bytes", Unit::kBytes}};
    for (const auto& [second, touched] : working_set_) {
      used.rows.push_back({Value::Number(second * 1'000'000'000),
                           Value::Number(touched.Estimate() * kBlock)});
    }
    return {sums, lives, used};
  }

 private:
  struct State {
    uint64_t file = 0;
    uint64_t index = 0;
    uint64_t written_ns = 0;  // 0: not
    bool read = false;
  };
  static uint64_t FileOf(uint32_t mount, uint64_t inode,
                         std::string_view path) {
    return DistinctNumber(
        mount, inode != 0 ? inode : std::hash<std::string_view>()(path));
  }
  static uint64_t KeyOf(uint64_t file, uint64_t index) {
    return MixedHash(MixedHash(file) ^ index);
  }
  bool Sampled(uint64_t key) const {
    return shift_ == 0 || key >> (64 - shift_) == 0;
  }

  void TakeAny(const format::Record& record, bool counts) {
    const Event& event = record.event;
    if (!HasRun(record) || Failed(event)) return;
    now_ns_ = record.real_ns;
    // When a file is gone, its blocks are, too.
    files_.Take(record, counts);
    if (tally::Transfers(event.op)) {
      if (!counts) return;
      for (const tally::Transfer& transfer : tally::TransfersOf(event)) {
        TakeTransfer(record, transfer);
      }
      return;
    }
    PathBuffer buffer;
    const uint64_t file =
        FileOf(OriginOf(record).mount, event.GetOr0(Field::kInode),
               format::PathOf(record, buffer));
    if (event.op == Op::setattr_ && event.Has(Field::kNewSize)) {
      Cut(file, (event.Get(Field::kNewSize) + kBlock - 1) / kBlock,
          &truncated_);
      return;
    }
    if (TruncatesByOpening(event)) {
      Cut(file, 0, &truncated_);
    }
  }

  void TakeTransfer(const format::Record& record,
                    const tally::Transfer& transfer) {
    const Event& event = record.event;
    const Field at = tally::OffsetField(transfer.end);
    if (!event.Has(at) || transfer.bytes == 0) return;
    PathBuffer buffer;
    const uint64_t file = FileOf(OriginOf(record).mount,
                                 event.GetOr0(tally::InodeField(transfer.end)),
                                 format::PathOf(record, transfer.end, buffer));
    const uint64_t offset = event.Get(at);
    const uint64_t begin = offset / kBlock;
    const uint64_t end = (offset + transfer.bytes - 1) / kBlock + 1;
    if (end <= begin) return;
    const uint64_t count = std::min(end - begin, kMostOfTransfer);
    for (uint64_t i = 0; i < count; ++i) {
      Touch(file, begin + i, transfer.writes());
    }
  }

  void Touch(uint64_t file, uint64_t index, bool write) {
    const uint64_t key = KeyOf(file, index);
    // A second's worth; more seconds than that are folded into the last one.
    constexpr size_t kMostSeconds = 3600;
    uint64_t second = now_ns_ / 1'000'000'000;
    if (working_set_.size() >= kMostSeconds && !working_set_.contains(second)) {
      second = working_set_.rbegin()->first;
    }
    working_set_[second].Add(key);
    if (!Sampled(key)) return;
    if (blocks_.size() >= kMostBlocks && !blocks_.contains(key)) {
      Thin();
      if (!Sampled(key)) return;
    }
    State& state = blocks_[key];
    if (state.file == 0 && !state.read && state.written_ns == 0) {
      state.file = file;
      state.index = index;
      of_file_[file].push_back(key);
    }
    if (!write) {
      ++(state.read || state.written_ns != 0 ? read_again_ : read_first_);
      state.read = true;
      return;
    }
    if (state.written_ns != 0) {
      ++overwritten_;
      Died(state);
    } else {
      ++written_first_;
    }
    state.written_ns = std::max<uint64_t>(now_ns_, 1);
  }

  void Died(const State& state) {
    const uint64_t age =
        now_ns_ > state.written_ns ? now_ns_ - state.written_ns : 0;
    ages_.Add(age);
    oldest_ = std::max(oldest_, age);
    ++lives_[std::bit_floor(age)];
  }

  // The blocks of a file from `index` on are gone.
  void Cut(uint64_t file, uint64_t index, uint64_t* gone) {
    const auto found = of_file_.find(file);
    if (found == of_file_.end()) return;
    std::erase_if(found->second, [&](uint64_t key) {
      const auto at = blocks_.find(key);
      if (at == blocks_.end()) return true;
      if (at->second.index < index) return false;
      if (at->second.written_ns != 0) {
        Died(at->second);
        ++*gone;
      }
      blocks_.erase(at);
      return true;
    });
    if (found->second.empty()) of_file_.erase(found);
  }

  void Thin() {
    ++shift_;
    std::erase_if(blocks_,
                  [this](const auto& at) { return !Sampled(at.first); });
    for (auto& [file, keys] : of_file_) {
      std::erase_if(keys, [this](uint64_t key) { return !Sampled(key); });
    }
    std::erase_if(of_file_, [](const auto& at) { return at.second.empty(); });
    for (uint64_t* const sum : {&read_first_, &read_again_, &written_first_,
                                &overwritten_, &removed_, &truncated_}) {
      *sum /= 2;
    }
    for (auto& [age, count] : lives_) count /= 2;
  }

  FileLives files_{[this](const FileLife& life, const FileLife*) {
    Cut(FileOf(life.mount, life.inode, life.path), 0, &removed_);
  }};
  uint64_t now_ns_ = 0;
  std::unordered_map<uint64_t, State> blocks_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> of_file_;
  unsigned shift_ = 0;  // one block in 2^shift is looked at
  uint64_t read_first_ = 0, read_again_ = 0;
  uint64_t written_first_ = 0, overwritten_ = 0;
  uint64_t removed_ = 0, truncated_ = 0;
  tally::SparseHistogram ages_;
  uint64_t oldest_ = 0;
  std::map<uint64_t, uint64_t> lives_;
  std::map<uint64_t, DistinctCount> working_set_;  // by second
};

}  // namespace

std::unique_ptr<Analysis> MakeBlocks(const AnalysisOptions& /*options*/) {
  return std::make_unique<Blocks>();
}

}  // namespace tracefs::query
