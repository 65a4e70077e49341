// Table: what a question about a trace is answered with, before it is text,
// CSV, JSON or Markdown. Texts are bytes as the trace has them: the printer
// escapes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs::query {

enum class Unit : uint8_t {
  kText,
  kNumber,          // of things, or an id
  kCount,           // of things, also where it cannot be added up
  kSigned,          // the same, that may be below zero: two's complement
  kBytes,           // the same, a size
  kDuration,        // ns
  kSignedDuration,  // the same, that may be below zero: two's complement
  kTime,            // ns since 1970
  kShare,           // of one
};

struct TableColumn {
  std::string name;
  Unit unit = Unit::kText;
  // Whether its values can be added up: in the line `other` they are.
  bool adds = false;

  // As machines are told it: "latency_ns".
  std::string Key() const;
};

// One cell. Without a value it is empty.
struct Value {
  bool present = false;
  uint64_t number = 0;  // of all units but kShare and kText
  double share = 0;     // kShare
  std::string text;     // kText

  static Value Text(std::string_view text);
  static Value Number(uint64_t number);
  // `part` of `whole`; absent where that is 0.
  static Value Share(uint64_t part, uint64_t whole);
};

using Row = std::vector<Value>;  // as many as there are columns

// Rows of tables that are larger than what they are made from: each is made
// when it is asked for. Used by one thread.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual size_t size() const = 0;
  // `row` may be one that was made before, whose memory is used again.
  virtual void Make(size_t i, Row* row) const = 0;
  // Row `i` is going to be made: first `soon` is false, then true.
  virtual void Fetch(size_t /*i*/, bool /*soon*/) const {}
};

struct Table {
  std::string title;         // "" where there is but one
  std::string summary = {};  // a sentence before the rows; printable
  std::vector<TableColumn> columns;
  std::vector<Row> rows;
  std::shared_ptr<const RowSource> source = nullptr;  // in place of `rows`
  // What belongs to no row of its own; kept behind all others.
  std::optional<Row> other;
  std::vector<std::string> notes;  // sentences after it; printable
  uint64_t begin_ns = 0;           // of the trace, for times as text

  size_t size() const {  // without `other`
    return source == nullptr ? rows.size() : source->size();
  }
  // All rows, and `other`.
  void ForEachRow(const std::function<void(const Row&)>& use) const;
  // Nothing if there is no such column.
  std::optional<size_t> Find(std::string_view column) const;
};

// How rows are chosen.
struct Arrangement {
  std::string sort = {};  // a column; "": as they are. "-C": smallest first
  // Rows beyond that many go into `other`, if they are two or more; 0: all are
  // shown.
  size_t top = 0;
  // Rows beyond that many are left out, and `other` with them; 0: none.
  size_t limit = 0;
  // Which columns, in which order; empty: all.
  std::vector<std::string> columns = {};
};

// Sorts by numbers largest first, by texts as bytes; equals by their other
// cells, so that the order does not depend on chance. kInvalid, with the
// nearest name, for a column that is not there.
Status Arrange(const Arrangement& how, Table* table);

}  // namespace tracefs::query
