// What rows of a batch of operations add to the groups they belong to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/query/file_numbers.h"
#include "tracefs/query/group_store.h"
#include "tracefs/query/group_values.h"
#include "tracefs/query/process_numbers.h"
#include "tracefs/reader/columns.h"

namespace tracefs::query {

// A column of numbers, whatever their width.
class Numbers {
 public:
  Numbers(const reader::Batch& batch, size_t column);

  bool Has(size_t row) const {
    return (column_.valid[row / 8] >> (row % 8) & 1) != 0;
  }
  uint64_t At(size_t row) const {
    if (flag_) return 1;
    const std::byte* const at = column_.data.data() + width_ * row;
    switch (width_) {
      case 8:
        return LoadLe<uint64_t>(at);
      case 4:
        return LoadLe<uint32_t>(at);
      case 2:
        return LoadLe<uint16_t>(at);
      default:
        return static_cast<uint8_t>(*at);
    }
  }

 private:
  const reader::Column& column_;
  const bool flag_;
  const size_t width_;
};

// What of an operation on two files belongs to a group: all but what was done
// with the second file, that alone, or all of it. Of other operations: kBoth.
enum class GroupEnds : uint8_t { kFirst, kSecond, kBoth };

// Places of columns in batches; kNone: not asked for.
struct GroupColumns {
  static constexpr size_t kNone = SIZE_MAX;

  size_t op = kNone, latency = kNone, result = kNone, error = kNone;
  size_t before = kNone, time = kNone;
};

// Used while its batch lives, by one thread.
class BatchSums {
 public:
  // Of each row `callers`, where processes are counted, and `files`, where
  // those are.
  BatchSums(const reader::Batch& batch, const GroupColumns& columns,
            const DetailNeeds& needs,
            std::span<const ProcessNumbers::Found> callers,
            std::span<const FileNumbers::Found> files);

  // Recorded before it ran: it counts as nothing else.
  bool IsBefore(size_t row) const { return any_before_ && before_.Has(row); }
  // Whether it did something with a second file.
  bool HasSecondFile(size_t row) const {
    const Ways ways = ways_[op_.At(row)];
    return ways.reads && ways.writes && !error_.Has(row);
  }
  void AddTo(size_t row, GroupEnds ends, GroupStore::Entry* entry) const;

 private:
  struct Ways {
    bool reads = false;
    bool writes = false;
  };

  void AddOperation(size_t row, GroupStore::Entry* entry) const;
  void AddBytes(size_t row, GroupEnds ends, GroupStore::Entry* entry) const;
  void AddDistinct(size_t row, GroupEnds ends, GroupStore::Entry* entry) const;

  const DetailNeeds needs_;
  const Numbers op_, latency_, result_, error_, before_;
  const bool any_before_;
  std::optional<Numbers> time_;
  const std::span<const ProcessNumbers::Found> callers_;
  const std::span<const FileNumbers::Found> files_;
  std::vector<Ways> ways_;  // by codes of the column of operations
};

}  // namespace tracefs::query
