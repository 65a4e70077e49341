// Grouping: operations, as batches of columns, counted by keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/query/file_numbers.h"
#include "tracefs/query/flat_index.h"
#include "tracefs/query/group_batch.h"
#include "tracefs/query/group_key.h"
#include "tracefs/query/group_spill.h"
#include "tracefs/query/group_store.h"
#include "tracefs/query/group_values.h"
#include "tracefs/query/process_numbers.h"
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

  // Keys and values that columns do not have: who asks for them calls
  // AddRecord.
  bool needs_records() const;
  // Values that need every operation, also those that are not to be counted
  // (Grouping::Pass).
  bool follows_files() const;
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
  // A record that counts for nothing, in its place among the others.
  void Pass(const format::Record& record) {
    if (needs_.files) (void)file_numbers_.Of(record);
  }
  // Between the records that it comes between.
  void TakeProcess(const ProcessRecord& record) {
    if (numbers_processes_) processes_.Take(record);
  }
  // What the host of a trace is called, before its operations come:
  // for the key `host`.
  void SetTrace(size_t trace, std::string_view host) {
    if (hosts_.size() <= trace) hosts_.resize(trace + 1);
    hosts_[trace] = host;
  }
  // What an aggregate driver has counted by itself, of those that have the keys
  // (group_counted.h). kInvalid if what is asked for cannot be had of it.
  // `both_files`: a copy was counted under both of its files (CountsBothFiles).
  Status AddCounted(const format::AggregateRecord& record, bool both_files);

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
  // A key in the batch that is being added, as codes: equal values have equal
  // ones.
  struct Part {
    static constexpr uint32_t kAbsent = UINT32_MAX;

    std::vector<uint32_t> codes;          // by row
    std::vector<std::string_view> texts;  // by code, of texts
    std::vector<std::string> made;        // holds some of them
    std::unique_ptr<FlatIndex> numbers;   // by code, of numbers
  };

  void Flush();
  Table BeginTable() const;
  void CodesOf(const reader::Batch& batch, size_t key, size_t column,
               Part* part);
  static size_t NumberGroups(const std::vector<Part>& parts,
                             std::vector<uint32_t>* groups);
  void AddToBoth(const BatchSums& sums, const std::vector<Part>& parts,
                 const std::vector<Part>& second_parts, size_t row);
  void NameFlags(const reader::Batch& batch, size_t key, Part* part);
  void NameProcesses(Part* part) const;
  void FetchKeys(const std::vector<Part>& parts,
                 const std::vector<uint32_t>& groups,
                 const std::vector<size_t>& places, size_t from, size_t to);
  void AppendKey(const std::vector<Part>& parts, size_t row,
                 std::string* text) const;
  size_t PlaceOf(const std::vector<Part>& parts, size_t row);
  void AppendKeyPart(const Part& part, const GroupKey& key, uint32_t code,
                     std::string* text) const;

  GroupSpec spec_;
  DetailNeeds needs_;
  reader::Batch::Specs columns_;
  std::vector<size_t> key_columns_;
  // Places in columns_ of what is tallied.
  GroupColumns sums_;
  // Whether what an operation does with its second file belongs to the group of
  // that file: keys are about files, and none is about the second one.
  bool by_file_ = false;
  bool with_before_ = false;  // those told before they ran are counted, too
  std::vector<size_t> second_columns_;  // of keys, for the second file
  uint64_t second_unknown_ = 0;  // operations that do not tell which file it is
  std::vector<std::string> hosts_;  // by trace
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
  bool numbers_processes_ = false;  // a key or value is about them
  ProcessNumbers processes_;
  std::vector<ProcessNumbers::Found> callers_;  // of each row
  FileNumbers file_numbers_;
  std::vector<FileNumbers::Found> files_;  // likewise
};

}  // namespace tracefs::query
