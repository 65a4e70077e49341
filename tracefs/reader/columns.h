// Columns: fields of many events, each in one piece of memory, as Arrow lays
// them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/status.h"
#include "tracefs/base/text_dictionary.h"
#include "tracefs/format/record.h"
#include "tracefs/reader/fields.h"
#include "tracefs/reader/reader_options.h"

namespace tracefs::reader {

struct ColumnSpec {
  const FieldRow* field = nullptr;
  bool raw = false;  // of a text: its bytes as they are
  std::string name;

  // Whether its values are numbers of texts in a dictionary.
  bool is_dictionary() const {
    return field->shape == Shape::kName || field->shape == Shape::kText ||
           field->shape == Shape::kBytes;
  }
  bool is_bytes() const { return raw || field->shape == Shape::kBytes; }
};

// "ts,op,path_raw"; empty: those that JSON Lines has in the first place.
// kInvalid with the name that is none.
Result<std::vector<ColumnSpec>> ParseColumns(std::string_view names);

struct Column {
  // Numbers of the field's width, little-endian; of dictionaries: of 4 bytes;
  // of flags: bits. Absent ones are 0.
  std::vector<std::byte> data;
  std::vector<uint8_t> valid;  // bits, lowest first
  size_t absent = 0;
  TextDictionary texts;
  // What dictionaries hold, made fit to be handed out: texts that are no UTF-8
  // replaced, and what a hook put in their places.
  std::vector<int32_t> offsets;
  std::string bytes;
};

// Events as columns. Used by one thread at a time.
class Batch {
 public:
  using Specs = std::shared_ptr<const std::vector<ColumnSpec>>;
  explicit Batch(Specs specs);

  void Add(const format::Record& record, size_t trace);

  // For who puts the rows of several batches in order of time: when each began,
  // by the monotonic clock, and what makes that time since the epoch.
  struct Order {
    std::vector<uint64_t> times;
    ClockPair clock;
  };
  const Order& order() const { return order_; }
  Order& mutable_order() { return order_; }
  // What numbers of texts in one batch are in another one: a column each.
  using Numbers = std::vector<std::vector<uint32_t>>;
  // Adds rows of a batch of the same columns that is not finished: `count` from
  // `begin` on, or fewer if this becomes full. Returns how many. `numbers` is
  // empty at first, and belongs to these two batches.
  size_t Append(const Batch& other, size_t begin, size_t count,
                Numbers* numbers);

  // Nothing more is added: makes what dictionaries hand out. `hook` may be
  // empty.
  void Finish(const TextHook& hook);
  // As new, with the memory that it has.
  void Clear();

  size_t rows() const { return rows_; }
  // Some column has so much text that it is time for another batch: paths may
  // be much longer than what defines them.
  static constexpr size_t kFullBytes = size_t{32} << 20;
  bool full() const { return full_; }
  // Bytes of memory, about, until it is finished.
  size_t footprint() const;
  const std::vector<ColumnSpec>& specs() const { return *specs_; }
  const Column& column(size_t i) const { return columns_[i]; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Numbers of the dictionary of a column that were found for path ids of the
  // block that is being added: most events are about a path seen before.
  struct PathMemo {
    const format::BlockDecoder* block = nullptr;
    uint64_t sequence = 0;
    size_t trace = 0;
    std::vector<uint32_t> numbers;  // by path id; kNone
    // Those of names in a directory, by what they hash to.
    struct Named {
      uint64_t generation = 0;
      uint64_t parent = 0;
      std::string_view name;  // in the block
      uint32_t number = kNone;
    };
    static constexpr size_t kNamed = 512;
    uint64_t generation = 0;  // of the block
    std::vector<Named> named;
  };
  void Grow();
  void AddText(size_t i, const format::Record& record, size_t trace);
  // Where the number of the path of a record is remembered.
  uint32_t* MemoOf(size_t i, const format::Record& record, size_t trace);
  void PutIndex(size_t i, uint32_t number);
  void AppendColumn(size_t i, const Batch& other, size_t begin, size_t count,
                    std::vector<uint32_t>* numbers);

  const Specs specs_;
  std::vector<Column> columns_;
  std::vector<PathMemo> memos_;
  std::vector<std::vector<uint32_t>> name_numbers_;  // of kName, by number
  std::vector<uint32_t> last_texts_;  // numbers that came last; kNone
  size_t rows_ = 0;
  size_t capacity_ = 0;
  bool full_ = false;
  Order order_;
};

}  // namespace tracefs::reader
