#include "tracefs/feed/alarm_lines.h"

#include "tracefs/feed/feed_parts.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/record.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

using format::AlarmAncestor;
using format::AlarmRecord;
using format::Record;

// The name that a number has; empty if it has none.
std::string_view NameOfNumber(Field field, uint64_t number) {
  if (field == Field::kErrno) return ErrnoName(number);
  if (field == Field::kType) return FileTypeName(number);
  return {};
}

// Calls `use(field, number)` with what is known of the operation, but its time.
template <typename Use>
void ForEachNumber(const Record& record, Use use) {
  for (const FieldInfo& info : Fields()) {
    if (!IsNumeric(info.field) || info.field == Field::kTime ||
        !record.event.Has(info.field)) {
      continue;
    }
    const uint64_t number = record.event.Get(info.field);
    if (info.field == Field::kErrno && number == 0) continue;
    if (info.field == Field::kInferred && number == 0) continue;
    use(info, number);
  }
}

template <typename Use>
void ForEachText(const Record& record, Use use) {
  PathBuffer buffer;
  PathBuffer buffer2;
  const auto put = [&](Field field, std::string_view text) {
    if (!text.empty()) use(Info(field), text);
  };
  put(Field::kComm, record.Text(Field::kComm));
  put(Field::kPath, format::PathOf(record, buffer));
  put(Field::kNewPath, format::NewPathOf(record, buffer2));
  for (const FieldInfo& f : Fields()) {
    if (f.field == Field::kTarget || f.text == TextStyle::kWord) {
      put(f.field, record.Text(f.field));
    }
  }
}

std::string Signed(const FieldInfo& info, uint64_t number) {
  return info.type == FieldType::kSigned
             ? std::to_string(static_cast<int64_t>(number))
             : std::to_string(number);
}

}  // namespace

std::string AlarmSentence(const AlarmRecord& record) {
  std::string text = Utf8Text(record.title) + ": " +
                     std::to_string(record.count) + " operations";
  if (record.limit != 0) text += " within " + DurationText(record.window_ns);
  if (!record.key.empty()) {
    text += ", of " + Utf8Text(record.key) + ' ' + Utf8Text(record.KeyValue());
  }
  return text;
}

std::string AlarmText(const AlarmRecord& record) {
  std::string text = "alarm " + TerminalWord(record.title, ":=") + ':';
  const auto word = [&text](std::string_view key, std::string_view value) {
    text += ' ';
    text += key;
    text += '=' + TerminalWord(value);
  };
  const auto number = [&](std::string_view key, uint64_t value) {
    word(key, std::to_string(value));
  };
  number("rule", record.rule);
  if (!record.key.empty()) {
    word("by", record.key);
    word("key", record.KeyValue());
  }
  number("count", record.count);
  if (record.limit != 0) {
    number("limit", record.limit);
    word("window", DurationText(record.window_ns));
    number("windows", record.windows);
  }
  if (record.op) word("op", OpName(*record.op));
  ForEachNumber(*record.operation, [&](const FieldInfo& info, uint64_t value) {
    const std::string_view name = NameOfNumber(info.field, value);
    word(info.json_key, name.empty() ? Signed(info, value) : name);
  });
  ForEachText(*record.operation,
              [&](const FieldInfo& info, std::string_view value) {
                word(info.json_key, value);
              });
  for (const AlarmAncestor& ancestor : record.ancestors) {
    word("ancestor", AncestorText(ancestor));
  }
  for (const std::string_view path : record.paths) word("touched", path);
  for (const std::string_view what : record.not_known) word("not_known", what);
  for (const std::string_view action : record.actions) word("action", action);
  return text;
}

std::string AlarmJson(const AlarmRecord& record) {
  std::string line;
  JsonWriter json(&line);
  json.Put("ts", record.operation->real_ns);
  json.PutExact("alarm", record.title);
  json.Put("rule", record.rule);
  if (!record.key.empty()) {
    json.PutExact("by", record.key);
    json.PutExact("key", record.KeyValue());
  }
  json.Put("count", record.count);
  if (record.limit != 0) {
    json.Put("limit", record.limit);
    json.Put("window", record.window_ns);
    json.Put("windows", record.windows);
  }
  if (record.op) json.PutExact("op", OpName(*record.op));
  ForEachNumber(*record.operation, [&](const FieldInfo& info, uint64_t value) {
    const std::string_view name = NameOfNumber(info.field, value);
    if (!name.empty()) {
      json.PutExact(info.json_key, name);
    } else if (info.field == Field::kInferred) {
      json.PutTrue("inferred");
    } else {
      json.PutJson(info.json_key, Signed(info, value));
    }
  });
  ForEachText(*record.operation,
              [&](const FieldInfo& info, std::string_view value) {
                json.PutExact(info.json_key, value);
              });
  PutAlarmSource(record, &json);
  PutTexts("actions", record.actions, &json);
  json.Put("tracer", record.tracer_id);
  return line + "}\n";
}

}  // namespace tracefs
