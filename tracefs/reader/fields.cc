#include "tracefs/reader/fields.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <string>

#include "tracefs/format/block_decoder.h"
#include "tracefs/reader/tracefs_reader.h"

namespace tracefs::reader {
namespace {

constexpr std::string_view kCommon[] = {
    "ts",   "dur",    "op",   "tid",    "pid",   "ppid",     "uid",
    "gid",  "comm",   "path", "path2",  "ino",   "fh",       "flags",
    "mode", "offset", "size", "result", "errno", "inferred", "tracer"};

Shape ShapeOf(const FieldInfo& f) {
  if (f.field == Field::kData) return Shape::kBytes;
  if (!IsNumeric(f.field)) return Shape::kText;
  if (IsFlag(f.field)) return Shape::kFlag;
  switch (f.type) {
    case FieldType::kSigned:
      return Shape::kSigned;
    case FieldType::kDurationNs:
      return Shape::kDuration;
    case FieldType::kErrno:
    case FieldType::kFileType:
      return Shape::kName;
    default:
      return Shape::kNumber;
  }
}

constexpr FieldRow kMadeByReader[] = {
    {.id = TRACEFS_FIELD_TIME, .name = "ts", .shape = Shape::kTime, .width = 8},
    {.id = TRACEFS_FIELD_OP, .name = "op", .shape = Shape::kName, .width = 2},
    {.id = TRACEFS_FIELD_TRACER,
     .name = "tracer",
     .shape = Shape::kNumber,
     .width = 4},
    {.id = TRACEFS_FIELD_BEFORE,
     .name = "before",
     .shape = Shape::kFlag,
     .width = 1},
    {.id = TRACEFS_FIELD_TRACE,
     .name = "trace",
     .shape = Shape::kNumber,
     .width = 4},
};

// Without an allocation, so that the C interface may ask at any time.
struct Rows {
  std::array<FieldRow, kFieldCount + std::size(kMadeByReader)> rows;
  size_t size = 0;

  void Add(const FieldRow& row) { rows[size++] = row; }
};

Rows MakeRows() {
  Rows rows;
  for (const FieldRow& row : kMadeByReader) rows.Add(row);
  for (const FieldInfo& f : Fields()) {
    if (f.arg_id == 0 || f.field == Field::kTime) continue;
    // The keys are literals.
    rows.Add({.id = f.arg_id,
              .name = f.json_key.data(),
              .field = f.field,
              .shape = ShapeOf(f),
              .width = static_cast<uint8_t>(f.width)});
  }
  const std::span made(rows.rows.data(), rows.size);
  for (FieldRow& row : made) {
    row.common = std::ranges::find(kCommon, row.name) != std::end(kCommon);
  }
  std::ranges::sort(made, {}, &FieldRow::id);
  return rows;
}

}  // namespace

std::span<const FieldRow> FieldRows() {
  static const Rows kRows = MakeRows();
  return {kRows.rows.data(), kRows.size};
}

const FieldRow* FindField(uint32_t id) {
  const auto rows = FieldRows();
  const auto found = std::ranges::lower_bound(rows, id, {}, &FieldRow::id);
  return found != rows.end() && found->id == id ? &*found : nullptr;
}

const FieldRow* FindField(std::string_view name) {
  for (const FieldRow& row : FieldRows()) {
    if (row.name == name) return &row;
  }
  if (name == "time") return FindField(TRACEFS_FIELD_TIME);
  const FieldInfo* const info = FieldByPredicate(name);
  return info == nullptr || info->arg_id == 0 ? nullptr
                                              : FindField(info->arg_id);
}

bool NumberOf(const FieldRow& row, const format::Record& record, size_t trace,
              uint64_t* value) {
  if (row.field) {
    if (!IsNumeric(*row.field) || !record.event.Has(*row.field)) return false;
    *value = record.event.Get(*row.field);
    return true;
  }
  switch (row.id) {
    case TRACEFS_FIELD_TIME:
      *value = record.real_ns;
      return record.time_resolution_ns != 0;
    case TRACEFS_FIELD_OP:
      *value = Index(record.event.op);
      return true;
    case TRACEFS_FIELD_TRACER:
      *value = record.tracer_id;
      return true;
    case TRACEFS_FIELD_BEFORE:
      *value = 1;
      return record.event.before;
    case TRACEFS_FIELD_TRACE:
      *value = trace;
      return true;
    default:
      return false;
  }
}

bool TextOf(const FieldRow& row, const format::Record& record,
            PathBuffer& buffer, std::string_view* text) {
  if (row.field == Field::kPath) {
    *text = format::PathOf(record, buffer);
    return !text->empty();
  }
  if (row.field == Field::kNewPath) {
    *text = format::NewPathOf(record, buffer);
    return !text->empty();
  }
  if (row.id == TRACEFS_FIELD_TRACE) {
    *text = record.trace->name;
    return true;
  }
  if (row.shape == Shape::kName) {
    uint64_t number;
    if (!NumberOf(row, record, 0, &number)) return false;
    *text = NameOf(row, number);
    return !text->empty();
  }
  if (!row.field || IsNumeric(*row.field) || !record.HasText(*row.field)) {
    return false;
  }
  *text = record.Text(*row.field);
  return true;
}

std::string_view NameOf(const FieldRow& row, uint64_t number) {
  if (row.id == TRACEFS_FIELD_OP) {
    return number < kOpCount ? OpName(static_cast<Op>(number))
                             : std::string_view();
  }
  if (row.field == Field::kErrno) {
    if (number == 0 || number > 4095) return {};
    const char* const name = ::strerrorname_np(static_cast<int>(number));
    return name != nullptr ? name : std::string_view();
  }
  if (row.field == Field::kType) {
    // As filters spell them.
    constexpr std::string_view kTypes[] = {
        "", "fifo", "char", "",     "dir", "",    "block",
        "", "file", "",     "link", "",    "sock"};
    return number < std::size(kTypes) ? kTypes[number] : std::string_view();
  }
  return {};
}

}  // namespace tracefs::reader
