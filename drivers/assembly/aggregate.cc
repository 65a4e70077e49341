#include "drivers/assembly/aggregate.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "drivers/assembly/group_keys.h"
#include "drivers/assembly/key_counts.h"
#include "tracefs/base/append_le.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/format/constants.h"
#include "tracefs/tally/transfer.h"

namespace tracefs {
namespace {

using From = AggregateKey::From;

// The sums are this many tables of a thread: they meet the keys of all threads.
constexpr size_t kSumTables = 4;

static_assert(2 * (kMaxKeyPathBytes + 2) + 2 * (256 + 2) + (64 + 2) + 8 * 9 +
                  1 <=
              KeyCounts::kMaxKeyBytes);

CountSample SampleOf(const Event& event) {
  CountSample sample;
  sample.failed = event.Has(Field::kErrno) && event.Get(Field::kErrno) != 0;
  if (event.Has(Field::kLatency)) {
    sample.latency_ns = event.Get(Field::kLatency);
  }
  sample.has_size =
      tally::Transfers(event.op) && !sample.failed && event.Has(Field::kResult);
  if (sample.has_size) sample.bytes = tally::BytesOf(event).moved();
  return sample;
}

class AggregateCounter final : public EventCounter {
 public:
  AggregateCounter(AggregateSpec spec, uint64_t seed)
      : spec_(std::move(spec)),
        table_({.bytes = spec_.memory,
                .latency = spec_.latency,
                .size = spec_.size,
                .seed = seed}),
        sum_table_(table_),
        from_ns_(MonotonicNs()),
        began_ns_(from_ns_),
        due_ns_(from_ns_ + spec_.every_ns) {
    sum_table_.bytes *= kSumTables;
    for (const AggregateKey& key : spec_.keys) {
      want_paths_ |= key.from == From::kDir || key.from == From::kPath;
      want_names_ |= key.from == From::kExt || key.from == From::kName;
      by_file_ |= key.from == From::kNumber &&
                  static_cast<Field>(key.field) == Field::kInode;
    }
    by_file_ |= want_paths_ || want_names_;
    taken_ = std::make_unique<KeyCounts>(table_);
    total_ = std::make_unique<KeyCounts>(sum_table_);
    if (spec_.every_ns != 0) period_ = std::make_unique<KeyCounts>(sum_table_);
  }

  std::string Keys() const override { return KeysText(spec_); }

  std::unique_ptr<Shard> MakeShard() const override {
    return std::make_unique<ThreadShard>(table_, want_paths_);
  }

  void Count(Event& event, Shard& shard) const override {
    auto& own = static_cast<ThreadShard&>(shard);
    const CountSample sample = SampleOf(event);
    std::array<char, KeyCounts::kMaxKeyBytes> memory;
    KeyWriter key(memory.data());
    for (size_t i = 0; i < spec_.keys.size(); ++i) {
      PutPart(event, i, own.names, key);
    }
    own.counts->Add(key.view(), sample);
    if (!by_file_ || !HasTwoFiles(event.op) || !sample.has_size) [[likely]] {
      return;
    }
    // What was read belongs to the first file, what was written to the second.
    KeyWriter second(memory.data());
    for (size_t i = 0; i < spec_.keys.size(); ++i) {
      PutPartOfSecond(event, i, own.names, second);
    }
    own.counts->Add(second.view(),
                    {.bytes = sample.bytes, .has_size = true, .counts = false});
  }

  bool KnowsNames(const Event& event, const Shard& shard) const override {
    if (!want_paths_ && !want_names_) return true;
    const FileNames& names = static_cast<const ThreadShard&>(shard).names;
    if (event.parent != 0 && (want_paths_ || event.name.empty()) &&
        !names.Knows(event.parent, event.parent_version, event.rename_epoch)) {
      return false;
    }
    if (HasTwoFiles(event.op) &&
        !names.Knows(event.new_parent, event.new_parent_version,
                     event.rename_epoch)) {
      return false;
    }
    // The operand of an operation on a name is in the event itself.
    return !event.name.empty() ||
           names.Knows(event.node, event.node_version, event.rename_epoch);
  }

  void Take(Shard& shard) override {
    taken_.swap(static_cast<ThreadShard&>(shard).counts);
  }

  void AddUp() override {
    if (taken_->empty()) return;
    counted_ += taken_->total();
    {
      std::lock_guard lock(mu_);
      total_->Add(*taken_);
    }
    if (period_ != nullptr) period_->Add(*taken_);
    taken_->Clear();
  }

  bool Due(uint64_t now_ns) const override {
    return spec_.every_ns != 0 && now_ns >= due_ns_;
  }

  void Report(uint64_t now_ns, bool end, const WriteRecord& write) override {
    if (period_ != nullptr) {
      Tell(*period_, {.total = false, .from_ns = from_ns_, .to_ns = now_ns},
           write);
      period_->Clear();
      from_ns_ = now_ns;
      while (due_ns_ <= now_ns) due_ns_ += spec_.every_ns;
    }
    if (!end) return;
    std::lock_guard lock(mu_);
    Tell(*total_,
         {.total = true,
          .from_ns = began_ns_,
          .to_ns = now_ns,
          .repeated = period_ != nullptr},
         write);
  }

  void Save(std::string* out) const override {
    for (const uint64_t value : {counted_, began_ns_, from_ns_, due_ns_}) {
      AppendLe(value, out);
    }
    if (period_ != nullptr) period_->Save(out);
    std::lock_guard lock(mu_);
    total_->Save(out);
  }

  std::optional<uint64_t> Load(std::string_view text, Told told) override {
    ByteCursor saved(AsBytes(text));
    std::array<uint64_t, 4> values{};
    for (uint64_t& value : values) {
      const auto taken = saved.TakeLe<uint64_t>();
      if (!taken) return std::nullopt;
      value = *taken;
    }
    const auto is_key = [this](std::string_view key) { return IsKey(key); };
    std::lock_guard lock(mu_);
    if ((period_ != nullptr && !period_->Load(saved, is_key)) ||
        !total_->Load(saved, is_key) || saved.left() != 0) {
      if (period_ != nullptr) period_->Clear();
      total_->Clear();
      return std::nullopt;
    }
    counted_ = values[0];
    began_ns_ = values[1];
    from_ns_ = values[2];
    due_ns_ = values[3];
    uint64_t were_told = 0;
    if (told.period && period_ != nullptr) {
      were_told += period_->total();
      period_->Clear();
      from_ns_ = MonotonicNs();
    }
    if (told.end) {
      were_told += total_->total();
      total_->Clear();
    }
    return were_told;
  }

  uint64_t counted() const override { return counted_; }

  void ForEachTotal(const WriteRecord& use) const override {
    std::lock_guard lock(mu_);
    Tell(*total_, {.total = true, .from_ns = began_ns_, .to_ns = MonotonicNs()},
         use);
  }

 private:
  struct ThreadShard final : Shard {
    ThreadShard(const KeyCountsOptions& options, bool want_paths)
        : counts(std::make_unique<KeyCounts>(options)), names(want_paths) {}
    std::unique_ptr<KeyCounts> counts;
    FileNames names;
  };

  static const FileNames::Entry& NamesOfFile(Event& event, FileNames& names) {
    return names.Find(event.resolver, event.node, event.node_version,
                      event.rename_epoch);
  }
  static const FileNames::Entry& NamesOfParent(Event& event, FileNames& names) {
    return names.Find(event.resolver, event.parent, event.parent_version,
                      event.rename_epoch);
  }

  // Of the file by whose path an operation is known, unless that is the path of
  // an operand. A file without a name (O_TMPFILE) goes by its directory, as in
  // a trace.
  static const FileNames::Entry* OwnNames(Event& event, FileNames& names) {
    if (event.parent != 0) {
      return event.name.empty() ? &NamesOfParent(event, names) : nullptr;
    }
    return event.node != 0 ? &NamesOfFile(event, names) : nullptr;
  }

  static std::string_view DirectoryOf(Event& event, FileNames& names) {
    if (const auto* const own = OwnNames(event, names)) return own->directory();
    if (event.parent == 0) return {};
    return NamesOfParent(event, names).path;
  }

  static std::string_view NameOf(Event& event, FileNames& names) {
    if (!event.name.empty()) return event.name;
    const auto* const own = OwnNames(event, names);
    return own != nullptr ? std::string_view(own->name) : std::string_view();
  }

  // What the event does not have is left out of its key.
  void PutPart(Event& event, size_t part, FileNames& names,
               KeyWriter& key) const {
    const AggregateKey& wanted = spec_.keys[part];
    switch (wanted.from) {
      case From::kOp:
        key.Number(part, Index(event.op));
        return;
      case From::kNumber: {
        const auto field = static_cast<Field>(wanted.field);
        if (event.Has(field)) key.Number(part, event.Get(field));
        return;
      }
      case From::kComm:
        if (event.caller != nullptr) key.Text(part, event.caller->comm());
        return;
      case From::kExt:
        key.Text(part, ExtensionOf(NameOf(event, names)));
        return;
      case From::kName:
        key.Text(part, NameOf(event, names));
        return;
      case From::kDir:
        key.Text(part, Beginning(DirectoryOf(event, names), wanted.depth));
        return;
      case From::kPath:
        if (const auto* const own = OwnNames(event, names)) {
          key.Text(part, own->path);
        } else if (event.parent != 0) {
          key.Path(part, NamesOfParent(event, names).path, event.name);
        }
        return;
    }
  }

  // The same of the second file of an operation.
  void PutPartOfSecond(Event& event, size_t part, FileNames& names,
                       KeyWriter& key) const {
    const AggregateKey& wanted = spec_.keys[part];
    if (wanted.from == From::kNumber &&
        static_cast<Field>(wanted.field) == Field::kInode) {
      if (event.Has(Field::kInodeOut)) {
        key.Number(part, event.Get(Field::kInodeOut));
      }
      return;
    }
    if (!NamesFiles(wanted.from)) {
      PutPart(event, part, names, key);
      return;
    }
    if (event.new_parent == 0) return;
    const FileNames::Entry& file =
        names.Find(event.resolver, event.new_parent, event.new_parent_version,
                   event.rename_epoch);
    key.Text(part, wanted.from == From::kExt    ? ExtensionOf(file.name)
                   : wanted.from == From::kName ? std::string_view(file.name)
                   : wanted.from == From::kDir
                       ? Beginning(file.directory(), wanted.depth)
                       : std::string_view(file.path));
  }

  // Calls use(part, bytes) for each part that a key has, as KeyWriter put it.
  template <typename Use>
  void ForEachPart(std::string_view key, Use&& use) const {
    const auto parts = static_cast<unsigned char>(key[0]);
    const char* at = key.data() + 1;
    for (size_t i = 0; i < spec_.keys.size(); ++i) {
      if ((parts >> i & 1) == 0) continue;
      const size_t bytes = format::AggregateKeyIsText(spec_.keys[i].arg_id)
                               ? 2 + size_t{LoadLe<uint16_t>(at)}
                               : 8;
      use(i, std::string_view(at, bytes));
      at += bytes;
    }
  }

  // Whether ForEachPart may be called for what another process has left.
  bool IsKey(std::string_view key) const {
    ByteCursor bytes(AsBytes(key));
    const auto parts = bytes.TakeLe<uint8_t>();
    if (!parts || *parts >> spec_.keys.size() != 0) return false;
    for (size_t i = 0; i < spec_.keys.size(); ++i) {
      if ((*parts >> i & 1) == 0) continue;
      size_t size = 8;
      if (format::AggregateKeyIsText(spec_.keys[i].arg_id)) {
        const auto text = bytes.TakeLe<uint16_t>();
        if (!text) return false;
        size = *text;
      }
      if (!bytes.Take(size)) return false;
    }
    return bytes.left() == 0;
  }

  void SetKey(std::string_view key, format::AggregateRecord* record) const {
    record->key.clear();
    ForEachPart(key, [&](size_t i, std::string_view bytes) {
      format::AggregateKeyPart& part = record->key.emplace_back();
      part.arg_id = spec_.keys[i].arg_id;
      if (format::AggregateKeyIsText(part.arg_id)) {
        part.text = bytes.substr(2);
      } else {
        part.number = LoadLe<uint64_t>(bytes.data());
      }
    });
  }

  void SetCounts(const Counts& counts, format::AggregateRecord* record) const {
    record->count = counts.count;
    if (spec_.errors) record->errors = counts.errors;
    if (spec_.bytes || spec_.size) record->bytes = counts.bytes;
    record->latency.present = spec_.latency;
    record->latency.sum = counts.latency_sum;
    record->latency.max = counts.latency_max;
    record->size.present = spec_.size;
    record->size.sum = counts.bytes;
    record->size.max = counts.size_max;
  }

  // Moves what is in `sum` into the record, and leaves it empty.
  static void SetHistogram(std::vector<uint64_t>* sum,
                           format::HistogramRecord* histogram) {
    histogram->buckets.clear();
    for (size_t b = 0; b < sum->size(); ++b) {
      uint64_t& count = (*sum)[b];
      if (count == 0) continue;
      histogram->buckets.push_back({static_cast<uint16_t>(b), count});
      count = 0;
    }
  }

  // By what keys are sorted.
  uint64_t SortedBy(const Counts& counts) const {
    switch (spec_.sort) {
      case AggregateSort::kCount:
        return counts.count;
      case AggregateSort::kErrors:
        return counts.errors;
      case AggregateSort::kBytes:
        return counts.bytes;
      case AggregateSort::kTime:
        return counts.latency_sum;
      case AggregateSort::kMean:
        return counts.latency_sum / std::max<uint64_t>(counts.count, 1);
      case AggregateSort::kMax:
        return counts.latency_max;
    }
    return 0;
  }

  // Keys of a table that are told as one.
  struct Group {
    std::string key;
    Counts counts;
    std::vector<const KeyCounts::Entry*> entries;
  };

  static bool NamesFiles(From from) {
    return from == From::kExt || from == From::kName || from == From::kDir ||
           from == From::kPath;
  }

  std::string WithoutFiles(std::string_view key) const {
    unsigned parts = 0;
    std::string kept(1, '\0');
    ForEachPart(key, [&](size_t i, std::string_view bytes) {
      if (NamesFiles(spec_.keys[i].from)) return;
      parts |= 1u << i;
      kept += bytes;
    });
    kept[0] = static_cast<char>(parts);
    return kept;
  }

  std::vector<Group> GroupsWithoutFiles(
      const KeyCounts& table,
      std::span<const KeyCounts::Entry* const> entries) const {
    std::unordered_map<std::string, size_t> places;
    std::vector<Group> groups;
    for (const KeyCounts::Entry* entry : entries) {
      const auto [at, is_new] =
          places.try_emplace(WithoutFiles(table.KeyOf(*entry)), groups.size());
      if (is_new) groups.push_back({at->first, {}, {}});
      groups[at->second].counts.Add(entry->counts);
      groups[at->second].entries.push_back(entry);
    }
    std::ranges::sort(groups, [&](const Group& a, const Group& b) {
      return Before({a.counts, a.key}, {b.counts, b.key});
    });
    return groups;
  }

  struct Ranked {
    const Counts& counts;
    std::string_view key;
  };
  bool Before(const Ranked& a, const Ranked& b) const {
    const uint64_t x = SortedBy(a.counts);
    const uint64_t y = SortedBy(b.counts);
    if (x != y) return spec_.ascending ? x < y : x > y;
    return a.key < b.key;
  }

  // The `top` keys of a table, then one record for the rest.
  void Tell(const KeyCounts& table, format::AggregateRecord record,
            const WriteRecord& write) const {
    const std::vector<KeyCounts::Entry>& entries = table.entries();
    std::vector<const KeyCounts::Entry*> order;
    for (const KeyCounts::Entry& entry : entries) order.push_back(&entry);
    const size_t shown = std::min(spec_.top, order.size());
    std::partial_sort(order.begin(),
                      order.begin() + static_cast<ptrdiff_t>(shown),
                      order.end(), [&](const auto* a, const auto* b) {
                        return Before({a->counts, table.KeyOf(*a)},
                                      {b->counts, table.KeyOf(*b)});
                      });
    std::vector<uint64_t> latency;
    std::vector<uint64_t> size;
    const auto add_histograms = [&](const KeyCounts::Entry& entry) {
      if (spec_.latency) {
        table.AddHistogram(KeyCounts::kLatency, entry, &latency);
      }
      if (spec_.size) table.AddHistogram(KeyCounts::kSize, entry, &size);
    };
    const auto tell = [&](const Counts& counts) {
      SetCounts(counts, &record);
      SetHistogram(&latency, &record.latency);
      SetHistogram(&size, &record.size);
      write(record);
    };
    for (size_t i = 0; i < shown; ++i) {
      SetKey(table.KeyOf(*order[i]), &record);
      record.missed = order[i]->missed;
      add_histograms(*order[i]);
      tell(order[i]->counts);
    }
    std::span<const KeyCounts::Entry* const> beyond =
        std::span(order).subspan(shown);
    std::vector<Group> groups;
    if (spec_.rest_without_files) {
      groups = GroupsWithoutFiles(table, beyond);
      beyond = {};
    }
    const size_t grouped = std::min(spec_.top, groups.size());
    record.missed = 0;
    for (const Group& group : std::span(groups).first(grouped)) {
      SetKey(group.key, &record);
      for (const KeyCounts::Entry* entry : group.entries) {
        add_histograms(*entry);
      }
      tell(group.counts);
    }
    Counts rest = table.Other();
    table.AddOtherHistogram(KeyCounts::kLatency, &latency);
    table.AddOtherHistogram(KeyCounts::kSize, &size);
    const auto add_rest = [&](std::span<const KeyCounts::Entry* const> more) {
      for (const KeyCounts::Entry* entry : more) {
        rest.Add(entry->counts);
        add_histograms(*entry);
      }
    };
    add_rest(beyond);
    for (const Group& group : std::span(groups).subspan(grouped)) {
      add_rest(group.entries);
    }
    if (rest.count == 0 && rest.bytes == 0) return;
    record.key.clear();
    record.other = true;
    tell(rest);
  }

  const AggregateSpec spec_;
  const KeyCountsOptions table_;
  KeyCountsOptions sum_table_;
  bool want_paths_ = false;
  bool want_names_ = false;
  bool by_file_ = false;  // keys tell the two files of a copy apart

  // Used by the one thread that collects.
  std::unique_ptr<KeyCounts> taken_;  // empty but between Take and AddUp
  std::unique_ptr<KeyCounts> period_;
  uint64_t from_ns_;
  uint64_t began_ns_;
  uint64_t due_ns_;
  uint64_t counted_ = 0;

  mutable std::mutex mu_;
  std::unique_ptr<KeyCounts> total_;  // guarded by mu_
};

class Aggregate final : public AssemblyDriver {
 public:
  Aggregate(AggregateSpec spec, uint64_t seed) {
    for (const AggregateKey& key : spec.keys) {
      caller_ |=
          key.from == From::kComm ||
          (key.from == From::kNumber &&
           Info(static_cast<Field>(key.field)).source == FieldSource::kCaller);
    }
    counter_ = std::make_shared<AggregateCounter>(std::move(spec), seed);
  }

  AssemblyNeeds Needs(Op) const override {
    return {.after = true, .caller = caller_, .counts = true};
  }
  bool Assemble(Event&, BlockBuilder&) const override { return true; }
  std::shared_ptr<EventCounter> counter() const override { return counter_; }

 private:
  bool caller_ = false;
  std::shared_ptr<AggregateCounter> counter_;
};

}  // namespace

std::unique_ptr<AssemblyDriver> MakeAggregate(AggregateSpec spec) {
  uint64_t seed = MonotonicNs();
  // Without randomness keys can be made to collide, and cost more; no more.
  static_cast<void>(::getrandom(&seed, sizeof seed, GRND_NONBLOCK));
  return std::make_unique<Aggregate>(std::move(spec), seed);
}

}  // namespace tracefs
