// Grouping: operations, as batches of columns, counted by keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/query/flat_index.h"
#include "tracefs/query/group_key.h"
#include "tracefs/query/group_spill.h"
#include "tracefs/query/group_store.h"
#include "tracefs/query/group_values.h"
#include "tracefs/reader/columns.h"

namespace tracefs::query {

struct GroupSpec {
  static constexpr size_t kDefaultMemory = size_t{176} << 20;

  std::vector<GroupKey> keys;  // none: everything is one group
  std::vector<GroupValue> values;
  uint64_t every_ns = 0;  // 0: the whole trace is one period
  size_t memory_bytes = kDefaultMemory;
  // Whether groups that memory has no room for go to the disk, where else the
  // smallest ones go into `other`. Takes no kFiles and kProcesses, which are
  // estimates.
  bool exact = false;

  // Keys that columns do not have: who asks for them calls AddRecord.
  bool needs_records() const;
  // Who has the names of hosts calls SetHosts.
  bool needs_hosts() const;
};

// Used by one thread.
class Grouping {
 public:
  explicit Grouping(GroupSpec spec);
  Grouping(const Grouping&) = delete;
  Grouping& operator=(const Grouping&) = delete;

  const GroupSpec& spec() const { return spec_; }
  // What batches must have, no more.
  const reader::Batch::Specs& columns() const { return columns_; }

  void Add(const reader::Batch& batch);
  void AddRecord(const format::Record& record, size_t trace);
  // The name of the host of each trace, for the key `host`.
  void SetHosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  // What a tracer has counted by itself. kInvalid if its keys do not have what
  // is asked for.
  Status AddCounted(const format::AggregateRecord& record);

  // A row a group; what there was no room for is `other`. Once.
  Table Finish();
  // The same, but rows are made when they are asked for.
  Table FinishLazily();
  // The same where the spec is exact: rows that `cut` has no room for (sort and
  // top) go into `other` as they come, so that they take no memory. kSystem:
  // the disk did not take, or give back, what was written.
  Result<Table> FinishExact(const Arrangement& cut);
  const Tally& all() const { return all_; }

 private:
  struct Part;  // a key in the batch that is being added

  void Flush();
  Table BeginTable() const;
  void CodesOf(const reader::Batch& batch, size_t key, Part* part);
  void NameFlags(const reader::Batch& batch, size_t key, Part* part);
  void FetchKeys(const std::vector<Part>& parts,
                 const std::vector<uint32_t>& groups,
                 const std::vector<size_t>& places, size_t from, size_t to);
  // To key_text_.
  void AppendKey(const std::vector<Part>& parts, size_t row);
  size_t PlaceOf(const std::vector<Part>& parts, size_t row);
  void AppendKeyPart(const Part& part, const GroupKey& key, uint32_t code,
                     std::string* text) const;
  size_t ColumnAt(const reader::FieldRow* field);

  GroupSpec spec_;
  DetailNeeds needs_;
  reader::Batch::Specs columns_;
  std::vector<size_t> key_columns_;
  std::vector<size_t> more_columns_;  // cpid, of `process`
  // Places in columns_ of what is tallied; SIZE_MAX: not asked for.
  size_t op_ = 0, latency_ = 0, result_ = 0, errno_ = 0, before_ = 0;
  size_t time_ = SIZE_MAX, inode_ = SIZE_MAX, pid_ = SIZE_MAX;
  std::vector<std::string> hosts_;
  std::shared_ptr<GroupStore> store_;
  GroupSpill spill_;
  // What tracers counted of keys that they had no room for.
  struct {
    bool any = false;
    Tally tally;
    TallyDetails details;
  } counted_other_;
  Tally all_;
  // A key in key_text_, of one of the rows that come next.
  struct FetchedKey {
    bool made = false;
    size_t begin = 0;
    size_t size = 0;
    uint64_t hash = 0;
  };
  std::string key_text_;  // scratch
  std::vector<FetchedKey> fetched_;
  // Of AddRecord.
  std::unique_ptr<reader::Batch> batch_;
  std::vector<uint32_t> trees_;  // of each row
  TextDictionary tree_texts_;
};

}  // namespace tracefs::query
