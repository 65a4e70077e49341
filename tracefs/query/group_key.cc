#include "tracefs/query/group_key.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "tracefs/base/printable.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"
#include "tracefs/event/process_record.h"
#include "tracefs/export/columns.h"
#include "tracefs/reader/tracefs_reader.h"

namespace tracefs::query {
namespace {

using From = GroupKey::From;

const reader::FieldRow* RowOf(Field field) {
  for (const reader::FieldRow& row : reader::FieldRows()) {
    if (row.field == field) return &row;
  }
  return nullptr;
}

// Words that are no field of an operation.
struct Word {
  std::string_view name;
  From from;
  bool takes_argument;
};
constexpr Word kWords[] = {
    {"dir", From::kDir, true},
    {"ext", From::kExt, false},
    {"name", From::kName, false},
    {"container", From::kContainer, false},
    {"host", From::kHost, false},
    {"time", From::kTime, true},
    {"hour", From::kTime, false},
    {"minute", From::kTime, false},
    {"log2", From::kLog2, true},
    {"process", From::kProcess, false},
    {"tree", From::kTree, false},
    {"align", From::kAlign, true},
    {"linear", From::kLinear, true},
    {"dir2", From::kDir, true},
    {"ext2", From::kExt, false},
    {"name2", From::kName, false},
    {"flag_names", From::kFlagNames, false},
};

const reader::FieldRow* FieldOfWord(std::string_view word) {
  const Column* const column = FindColumn(word);
  if (column == nullptr) return nullptr;
  switch (column->source) {
    case ColumnSource::kField:
      return RowOf(column->field);
    case ColumnSource::kOp:
      return reader::FindField(TRACEFS_FIELD_OP);
    case ColumnSource::kPath:
      return RowOf(Field::kPath);
    case ColumnSource::kPath2:
      return RowOf(Field::kNewPath);
    case ColumnSource::kTracer:
      return reader::FindField(TRACEFS_FIELD_TRACER);
    default:
      return nullptr;
  }
}

// What people call a column, where that is no misspelling of its name.
struct Synonym {
  std::string_view word;
  std::string_view name;
};
constexpr Synonym kSynonyms[] = {
    {"operation", "op"},  {"syscall", "op"},    {"file", "path"},
    {"filename", "path"}, {"directory", "dir"}, {"folder", "dir"},
    {"command", "cname"}, {"comm", "cname"},    {"program", "cname"},
    {"user", "cuid"},     {"uid", "cuid"},      {"pid", "cpid"},
    {"error", "errno"},   {"extension", "ext"}, {"duration", "latency"}};

std::string Suggested(std::string_view word,
                      std::span<const std::string_view> known) {
  for (const Synonym& synonym : kSynonyms) {
    if (SameButForCase(word, synonym.word)) {
      return "; did you mean '" + std::string(synonym.name) + "'?";
    }
  }
  return DidYouMean(word, known);
}

Status Unknown(std::string_view word, std::string_view option) {
  std::vector<std::string_view> known;
  for (const Word& w : kWords) known.push_back(w.name);
  for (const Column& column : AllColumns()) known.push_back(column.name);
  return Status::Invalid(
      std::string(option) + ": nothing can be grouped by \"" + Printable(word) +
      "\"" + Suggested(word, known) +
      " (columns, as op cname cuid path errno; dir(N) ext name container host "
      "time(1s) hour minute log2(COLUMN) linear(COLUMN,WIDTH) align(COLUMN) "
      "process tree flag_names; "
      "dir2(N) ext2 name2 of the second path)");
}

Status NeedsArgument(std::string_view option, const std::string& what) {
  return Status::Invalid(std::string(option) + ": " + what);
}

Result<GroupKey> ParseKey(std::string_view text, std::string_view option) {
  GroupKey key;
  key.name = text;
  std::string_view argument;
  std::string_view word = text;
  const size_t open = text.find('(');
  const bool called = open != std::string_view::npos;
  if (called) {
    if (!text.ends_with(')')) {
      return NeedsArgument(option, "expected ) after " + Printable(text));
    }
    word = Trim(text.substr(0, open));
    argument = Trim(text.substr(open + 1, text.size() - open - 2));
  }
  const Word* found = nullptr;
  for (const Word& w : kWords) {
    if (SameButForCase(w.name, word)) found = &w;
  }
  if (found == nullptr) {
    key.field = called ? nullptr : FieldOfWord(word);
    if (key.field == nullptr) return Unknown(word, option);
    key.name = FindColumn(word)->name;
    return key;
  }
  if (called && !found->takes_argument) {
    return NeedsArgument(option, std::string(found->name) + " takes nothing");
  }
  key.from = found->from;
  key.field =
      RowOf(found->name.ends_with('2') ? Field::kNewPath : Field::kPath);
  switch (key.from) {
    case From::kDir: {
      if (!called) break;
      const auto depth = ParseUnsigned(argument);
      if (!depth || *depth == 0 || *depth > 64) {
        return NeedsArgument(option, "dir(N) needs a depth of 1 to 64");
      }
      key.depth = static_cast<uint32_t>(*depth);
      break;
    }
    case From::kTime: {
      key.field = reader::FindField(TRACEFS_FIELD_TIME);
      const auto period = found->name == "hour"     ? ParseDuration("1h")
                          : found->name == "minute" ? ParseDuration("1m")
                                                    : ParseDuration(argument);
      if (!period || *period == 0) {
        return NeedsArgument(option, "time(D) needs a duration, as time(1s)");
      }
      key.period_ns = *period;
      break;
    }
    case From::kLog2:
    case From::kAlign:
      key.field = FieldOfWord(argument);
      if (key.field == nullptr || !key.is_number()) {
        const std::string name(found->name);
        return NeedsArgument(option, name +
                                         "(COLUMN) needs a column of numbers, "
                                         "as " +
                                         name + "(length)");
      }
      break;
    case From::kLinear: {
      const size_t comma = std::min(argument.find(','), argument.size());
      key.field = FieldOfWord(Trim(argument.substr(0, comma)));
      if (key.field != nullptr && key.is_number()) {
        const std::string_view width =
            Trim(argument.substr(std::min(comma + 1, argument.size())));
        key.width =
            (key.field->shape == reader::Shape::kDuration ? ParseDuration(width)
                                                          : ParseSize(width))
                .value_or(0);
      }
      if (key.width == 0) {
        return NeedsArgument(option,
                             "linear(COLUMN,WIDTH) needs a column of numbers "
                             "and a width, as linear(length,4K) or "
                             "linear(latency,10us)");
      }
      break;
    }
    case From::kFlagNames:
      key.field = RowOf(Field::kFlags);
      break;
    case From::kContainer:
      key.field = RowOf(Field::kCgroup);
      break;
    case From::kHost:
      key.field = reader::FindField(TRACEFS_FIELD_TRACE);
      break;
    case From::kProcess:
    case From::kTree:
      key.field = RowOf(Field::kComm);
      break;
    default:
      break;
  }
  return key;
}

std::string_view Directory(std::string_view path, uint32_t depth) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  path = slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
  return depth == 0 ? path : DirectoryStart(path, depth);
}

}  // namespace

std::optional<Field> FieldOfSecond(const GroupKey& key) {
  if (!key.field->field) return std::nullopt;
  switch (*key.field->field) {
    case Field::kPath:
      return Field::kNewPath;
    case Field::kInode:
      return Field::kInodeOut;
    case Field::kFh:
      return Field::kFhOut;
    case Field::kOffset:
      return Field::kOffsetOut;
    default:
      if (Info(*key.field->field).source == FieldSource::kAttributes) {
        return Field::kData;
      }
      return std::nullopt;
  }
}

bool TellFilesApart(const std::vector<GroupKey>& keys) {
  const auto names_second = [](const GroupKey& key) {
    const std::optional<Field> field = key.field->field;
    return field == Field::kNewPath || field == Field::kInodeOut ||
           field == Field::kFhOut || field == Field::kOffsetOut;
  };
  return std::ranges::any_of(keys,
                             [](const GroupKey& key) {
                               return FieldOfSecond(key).has_value();
                             }) &&
         std::ranges::none_of(keys, names_second);
}

std::string_view DirectoryStart(std::string_view directory, uint32_t depth) {
  size_t at = 0;
  for (uint32_t part = 0; part < depth; ++part) {
    at = directory.find('/', at + 1);
    if (at == std::string_view::npos) return directory;
  }
  return directory.substr(0, at);
}

bool GroupKey::is_number() const {
  if (from == From::kTime || from == From::kLog2 || from == From::kLinear ||
      from == From::kAlign) {
    return field->shape != reader::Shape::kText &&
           field->shape != reader::Shape::kName &&
           field->shape != reader::Shape::kBytes;
  }
  if (from != From::kField) return false;
  return field->shape == reader::Shape::kNumber ||
         field->shape == reader::Shape::kSigned ||
         field->shape == reader::Shape::kFlag ||
         field->shape == reader::Shape::kTime ||
         field->shape == reader::Shape::kDuration;
}

Unit GroupKey::unit() const {
  if (!is_number()) return Unit::kText;
  if (field->shape == reader::Shape::kTime) return Unit::kTime;
  if (field->shape == reader::Shape::kDuration) return Unit::kDuration;
  if (field->shape == reader::Shape::kSigned && from == From::kField) {
    return Unit::kSigned;
  }
  return Unit::kNumber;
}

Result<std::vector<GroupKey>> ParseGroupKeys(std::string_view text,
                                             std::string_view option) {
  std::vector<GroupKey> keys;
  while (!text.empty()) {
    size_t end = 0;
    int depth = 0;
    for (; end < text.size() && (text[end] != ',' || depth != 0); ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')') --depth;
    }
    const std::string_view word = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    auto key = ParseKey(word, option);
    if (!key.ok()) return key.status();
    for (const GroupKey& other : keys) {
      if (other.name == key->name) {
        return Status::Invalid(std::string(option) + ": " +
                               Printable(key->name) + " is given twice");
      }
    }
    keys.push_back(*std::move(key));
  }
  if (keys.empty() || keys.size() > GroupKey::kMax) {
    return Status::Invalid(std::string(option) + " needs 1 to " +
                           std::to_string(GroupKey::kMax) + " keys");
  }
  return keys;
}

GroupKey PeriodKey(uint64_t period_ns) {
  GroupKey key;
  key.from = From::kTime;
  key.name = "time";
  key.field = reader::FindField(TRACEFS_FIELD_TIME);
  key.period_ns = period_ns;
  return key;
}

std::string_view DerivedText(const GroupKey& key, std::string_view text) {
  switch (key.from) {
    case From::kDir:
      return Directory(text, key.depth);
    case From::kExt:
      return ExtensionOf(text.substr(text.rfind('/') + 1));
    case From::kName:
      return text.substr(text.rfind('/') + 1);
    case From::kContainer:
      return ContainerOf(text);
    default:
      return text;
  }
}

}  // namespace tracefs::query
