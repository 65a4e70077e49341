// Columns: what an operation looks like in formats that are tables. One list
// for all of them. A column is called by the word that filters have for it, and
// so are the keys by which aggregate counts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/event/event.h"
#include "tracefs/event/field.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/record.h"

namespace tracefs {

enum class ColumnType : uint8_t {
  kUnsigned32,
  kUnsigned64,
  kSigned64,
  kTime,   // signed 64 bits: ns since 1970
  kFlag,   // present means true
  kWord,   // text of a few kinds: the name of an operation, of an error
  kText,   // bytes from outside: escaped, see EscapedText
  kBytes,  // data
};

// Where its value comes from.
enum class ColumnSource : uint8_t {
  kField,
  kTime,
  kOp,
  kPath,   // of the file, as far as it is known
  kPath2,  // the second one of what has two ends
  kName,
  kBefore,
  kTracer,
  kHost,
  // Arguments that this version does not know and numbers that are opaque
  // bytes, as a JSON object.
  kMore,
};

struct Column {
  std::string_view name;
  std::string_view json_key;  // "" where JSON Lines have none
  ColumnType type{};
  ColumnSource source{};
  Field field{};  // of kField
  // Among those that a table has if nobody asks for others; binary tables,
  // where an empty column costs nothing, have them all.
  bool usual = false;
};

// Usual ones first; a column's place is its number.
std::span<const Column> AllColumns();
std::vector<const Column*> UsualColumns();
std::vector<const Column*> EveryColumn();

// nullptr if there is none of that name. Filters' other names for what is about
// the caller and the keys of JSON Lines are understood, too, where they don't
// mean something else.
const Column* FindColumn(std::string_view name);

// "time,op,path"; "all". kInvalid with the nearest name for an unknown one.
Result<std::vector<const Column*>> ParseColumns(std::string_view text);

// Bytes as text that keeps them apart from all others: what PutTerminalEscaped
// makes of them.
std::string EscapedText(std::string_view bytes);
// Whether that is what they are.
bool NeedsEscapes(std::string_view bytes);

// The value of a column.
struct Cell {
  bool present = false;
  uint64_t number = 0;    // two's complement of signed ones
  std::string_view text;  // raw bytes of kText and kBytes
};

// An operation with its paths, each worked out once, when it is asked for.
// Views point into this object and into the record.
class TableRow {
 public:
  explicit TableRow(const format::Record& record) : record_(record) {}
  TableRow(const TableRow&) = delete;
  TableRow& operator=(const TableRow&) = delete;

  const format::Record& record() const { return record_; }
  const Event& event() const { return record_.event; }
  std::string_view path() const {
    if (!path_) path_ = format::PathOf(record_, buffer_);
    return *path_;
  }
  std::string_view path2() const {
    if (!path2_) path2_ = format::NewPathOf(record_, buffer2_);
    return *path2_;
  }
  // The operand, or else the last part of the path.
  std::string_view name() const {
    if (!event().name.empty()) return event().name;
    if (record_.HasText(Field::kName)) return record_.Text(Field::kName);
    return path().substr(path().rfind('/') + 1);
  }
  bool failed() const {
    return format::OutcomeOf(record_) == format::Outcome::kFailure;
  }

  // `scratch` holds what has to be made; the cell is good until it changes.
  Cell Get(const Column& column, std::string* scratch) const;

 private:
  Cell GetOther(const Column& column, std::string* scratch) const;

  const format::Record& record_;
  mutable PathBuffer buffer_;
  mutable PathBuffer buffer2_;
  mutable std::optional<std::string_view> path_;
  mutable std::optional<std::string_view> path2_;
};

}  // namespace tracefs
