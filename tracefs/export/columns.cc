#include "tracefs/export/columns.h"

#include <algorithm>

#include "tracefs/base/spelling.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

using format::Record;

// In this order.
constexpr Field kUsualNumbers[] = {Field::kTid, Field::kPid, Field::kUid,
                                   Field::kGid};
constexpr Field kUsualArguments[] = {
    Field::kInode,  Field::kFh,     Field::kFlags, Field::kArgMode,
    Field::kOffset, Field::kLength, Field::kResult};

// What filters cannot name is called by its key in JSON Lines, but for inodes.
// The bits of a setattr are not what its filter takes, words.
constexpr std::pair<Field, std::string_view> kOtherNames[] = {
    {Field::kValid, "valid"},
    {Field::kParentInode, "parent_inode"},
    {Field::kNewParentInode, "new_parent_inode"},
    {Field::kInodeOut, "inode_out"},
};

constexpr std::string_view NameOf(const FieldInfo& info) {
  for (const auto& [field, name] : kOtherNames) {
    if (field == info.field) return name;
  }
  return info.predicate.empty() ? info.json_key : info.predicate;
}

constexpr ColumnType ColumnTypeOf(const FieldInfo& info) {
  if (IsFlag(info.field)) return ColumnType::kFlag;
  if (info.field == Field::kSyscall) return ColumnType::kWord;
  switch (info.type) {
    case FieldType::kErrno:
    case FieldType::kFileType:
      return ColumnType::kWord;
    case FieldType::kSigned:
      return ColumnType::kSigned64;
    case FieldType::kName:
    case FieldType::kText:
      return ColumnType::kText;
    case FieldType::kBytes:
      return ColumnType::kBytes;
    default:
      return info.width == 8 ? ColumnType::kUnsigned64
                             : ColumnType::kUnsigned32;
  }
}

std::vector<Column> MakeColumns() {
  std::vector<Column> columns;
  uint64_t numbers = Bit(Field::kTime);
  const auto add_field = [&](Field field, bool usual) {
    const FieldInfo& info = Info(field);
    if (IsNumeric(field)) numbers |= Bit(field);
    columns.push_back({.name = NameOf(info),
                       .json_key = info.json_key,
                       .type = ColumnTypeOf(info),
                       .source = ColumnSource::kField,
                       .field = field,
                       .usual = usual});
  };
  using enum ColumnType;
  columns.push_back(
      {"time", "ts", kTime, ColumnSource::kTime, Field::kTime, true});
  add_field(Field::kLatency, true);
  columns.push_back({"op", "op", kWord, ColumnSource::kOp, Field::kOp, true});
  for (const Field f : kUsualNumbers) add_field(f, true);
  add_field(Field::kComm, true);
  columns.push_back(
      {"path", "path", kText, ColumnSource::kPath, Field::kPath, true});
  columns.push_back(
      {"path2", "path2", kText, ColumnSource::kPath2, Field::kNewPath, true});
  for (const Field f : kUsualArguments) add_field(f, true);
  add_field(Field::kErrno, true);
  add_field(Field::kInferred, true);
  columns.push_back({"tracer", "tracer", kUnsigned32, ColumnSource::kTracer,
                     Field::kOp, true});
  columns.push_back(
      {"before", "before", kFlag, ColumnSource::kBefore, Field::kOp, true});
  columns.push_back(
      {"name", "name", kText, ColumnSource::kName, Field::kName, false});
  for (const FieldInfo& info : Fields()) {
    // What no trace holds is no column.
    if (info.field == Field::kOp || info.arg_id == 0) continue;
    if (IsNumeric(info.field)) {
      if ((numbers & Bit(info.field)) == 0) add_field(info.field, false);
    } else if (info.field != Field::kComm && info.field != Field::kPath &&
               info.field != Field::kNewPath && info.field != Field::kName) {
      add_field(info.field, false);
    }
  }
  columns.push_back(
      {"host", "", kText, ColumnSource::kHost, Field::kOp, false});
  columns.push_back(
      {"more", "", kText, ColumnSource::kMore, Field::kOp, false});
  return columns;
}

// Unknown arguments by their names. Bytes are in base 64.
void AppendMore(const Record& record, std::string* out) {
  using Kind = format::ExtraValue::Kind;
  for (const format::ExtraArgument& extra : record.extra) {
    std::string name = record.trace->NameOfArgument(extra.id);
    if (name.empty() || !IsUtf8(name)) {
      name = "ARG_" + std::to_string(extra.id);
    }
    const format::ExtraValue value = format::Interpret(*record.trace, extra);
    const std::string_view bytes = AsText(extra.value);
    const bool text = value.kind == Kind::kText && IsUtf8(bytes);
    const bool number =
        value.kind == Kind::kUnsigned || value.kind == Kind::kSigned;
    *out += out->empty() ? '{' : ',';
    AppendJsonString(text || number ? name : name + "_b64", out);
    *out += ':';
    if (value.kind == Kind::kUnsigned) {
      *out += std::to_string(value.number);
    } else if (value.kind == Kind::kSigned) {
      *out += std::to_string(static_cast<int64_t>(value.number));
    } else if (text) {
      AppendJsonString(bytes, out);
    } else {
      std::string base64(Base64Size(bytes.size()), '\0');
      PutBase64(base64.data(), bytes);
      AppendJsonString(base64, out);
    }
  }
  if (!out->empty()) *out += '}';
}

// A name, or the number where it has none.
std::string_view NameOr(std::string_view name, uint64_t number,
                        std::string* scratch) {
  if (!name.empty()) return name;
  *scratch = std::to_string(number);
  return *scratch;
}

}  // namespace

std::span<const Column> AllColumns() {
  static const std::vector<Column> columns = MakeColumns();
  return columns;
}

std::vector<const Column*> UsualColumns() {
  std::vector<const Column*> usual;
  for (const Column& column : AllColumns()) {
    if (column.usual) usual.push_back(&column);
  }
  return usual;
}

std::vector<const Column*> EveryColumn() {
  std::vector<const Column*> all;
  for (const Column& column : AllColumns()) all.push_back(&column);
  return all;
}

const Column* FindColumn(std::string_view name) {
  for (const Column& column : AllColumns()) {
    if (column.name == name) return &column;
  }
  const FieldInfo* info = FieldByPredicate(name);
  for (const Column& column : AllColumns()) {
    if (info != nullptr ? column.source == ColumnSource::kField &&
                              column.field == info->field
                        : !column.json_key.empty() && column.json_key == name) {
      return &column;
    }
  }
  return nullptr;
}

Result<std::vector<const Column*>> ParseColumns(std::string_view text) {
  if (text == "all") return EveryColumn();
  std::vector<const Column*> columns;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const Column* const column = FindColumn(word);
    if (column == nullptr) {
      std::vector<std::string_view> names;
      for (const Column& c : AllColumns()) names.push_back(c.name);
      return Status::Invalid("--columns: there is no column \"" +
                             std::string(word) + "\"" +
                             DidYouMean(word, names));
    }
    if (std::ranges::count(columns, column) != 0) {
      return Status::Invalid("--columns: \"" + std::string(word) +
                             "\" is there twice");
    }
    columns.push_back(column);
    if (comma == std::string_view::npos) return columns;
    text.remove_prefix(comma + 1);
  }
}

std::string EscapedText(std::string_view bytes) { return TerminalText(bytes); }

bool NeedsEscapes(std::string_view bytes) {
  return MayNeedEscapes(bytes) && TerminalText(bytes) != bytes;
}

Cell TableRow::Get(const Column& column, std::string* scratch) const {
  if (column.source != ColumnSource::kField) return GetOther(column, scratch);
  const Event& e = event();
  if (!IsNumeric(column.field)) {
    if (!record_.HasText(column.field)) return {};
    return {.present = true, .text = record_.Text(column.field)};
  }
  if (!e.Has(column.field)) return {};
  const uint64_t value = e.Get(column.field);
  switch (column.type) {
    case ColumnType::kFlag:
      return {.present = value != 0, .number = 1, .text = {}};
    case ColumnType::kWord: {
      if (column.field == Field::kErrno) {
        if (value == 0) return {};
        return {.present = true,
                .text = NameOr(ErrnoName(value), value, scratch)};
      }
      if (column.field == Field::kSyscall) {
        const std::string_view name = record_.trace == nullptr
                                          ? std::string_view()
                                          : record_.trace->CallName(value);
        return {.present = true, .text = NameOr(name, value, scratch)};
      }
      return {.present = true,
              .text = NameOr(FileTypeName(value), value, scratch)};
    }
    default:
      return {.present = true, .number = value, .text = {}};
  }
}

Cell TableRow::GetOther(const Column& column, std::string* scratch) const {
  const auto text = [](std::string_view value) -> Cell {
    return {.present = !value.empty(), .text = value};
  };
  switch (column.source) {
    case ColumnSource::kTime:
      return {.present = record_.time_resolution_ns != 0,
              .number = record_.real_ns,
              .text = {}};
    case ColumnSource::kOp:
      return text(OpName(event().op));
    case ColumnSource::kPath:
      return text(path());
    case ColumnSource::kPath2:
      return text(path2().empty() ? event().new_name : path2());
    case ColumnSource::kName:
      return text(name());
    case ColumnSource::kBefore:
      return {.present = event().before, .number = 1, .text = {}};
    case ColumnSource::kTracer:
      return {.present = true, .number = record_.tracer_id, .text = {}};
    case ColumnSource::kHost:
      if (record_.trace == nullptr) return {};
      return text(record_.trace->description.header.Get("host.name"));
    case ColumnSource::kMore:
      if (record_.extra.empty()) return {};
      scratch->clear();
      AppendMore(record_, scratch);
      return text(*scratch);
    case ColumnSource::kField:
      break;
  }
  return {};
}

}  // namespace tracefs
