#include "tracefs/format/alarm.h"

#include <algorithm>

#include "tracefs/format/argument_rows.h"
#include "tracefs/format/record.h"

namespace tracefs::format {
namespace {

struct KeyField {
  std::string_view key;
  Field field;
};
constexpr KeyField kKeyFields[] = {
    {"pid", Field::kPid}, {"ppid", Field::kPpid},  {"tid", Field::kTid},
    {"sid", Field::kSid}, {"pgid", Field::kPgid},  {"uid", Field::kUid},
    {"gid", Field::kGid}, {"inode", Field::kInode}};

// Takes another text of a list that has at most so many.
template <auto kList, size_t kMost>
void TakeText(const Argument& argument, AlarmRecord* record) {
  auto& list = record->*kList;
  if (list.size() < kMost) list.push_back(AsText(argument.value));
}

constexpr ArgumentRow<AlarmRecord> kAlarmRows[] = {
    {ArgId::kRule, &Into<&AlarmRecord::rule>::Take},
    {ArgId::kRuleTitle, &Into<&AlarmRecord::title>::Take},
    {ArgId::kRuleKey, &Into<&AlarmRecord::key>::Take},
    {ArgId::kKeyPid, &Into<&AlarmRecord::key_pid>::Take},
    {ArgId::kOther, &Into<&AlarmRecord::other>::Take},
    {ArgId::kCount, &Into<&AlarmRecord::count>::Take},
    {ArgId::kRuleLimit, &Into<&AlarmRecord::limit>::Take},
    {ArgId::kRuleWindow, &Into<&AlarmRecord::window_ns>::Take},
    {ArgId::kRuleWindows, &Into<&AlarmRecord::windows>::Take},
    {ArgId::kKeyOp,
     [](const Argument& argument, AlarmRecord* record) {
       record->op = OpFromNumber(argument.As<uint8_t>());
     }},
    {ArgId::kRuleAction,
     &TakeText<&AlarmRecord::actions, AlarmRecord::kMaxActions>},
    {ArgId::kAncestorPid,
     [](const Argument& argument, AlarmRecord* record) {
       if (record->ancestors.size() == AlarmRecord::kMaxAncestors) return;
       record->ancestors.push_back({argument.As<uint32_t>(), {}});
     }},
    {ArgId::kAncestorComm,
     [](const Argument& argument, AlarmRecord* record) {
       if (record->ancestors.empty()) return;
       record->ancestors.back().comm = AsText(argument.value);
     }},
    {ArgId::kRecentPath,
     &TakeText<&AlarmRecord::paths, AlarmRecord::kMaxPaths>},
    {ArgId::kNotKnown,
     &TakeText<&AlarmRecord::not_known, AlarmRecord::kMaxActions>},
};

void PutNumber(MessageWriter& out, Field field, uint64_t value) {
  const FieldInfo& info = Info(field);
  switch (info.width) {
    case 1:
      out.Put<uint8_t>(info.arg_id, static_cast<uint8_t>(value));
      return;
    case 4:
      out.Put<uint32_t>(info.arg_id, static_cast<uint32_t>(value));
      return;
    default:
      out.Put<uint64_t>(info.arg_id, value);
  }
}

}  // namespace

std::string AlarmRecord::KeyValue() const {
  if (key.empty()) return {};
  if (other) return "(other)";
  if (key == "tree") return std::to_string(key_pid);
  if (operation == nullptr) return {};
  if (key == "cname") return std::string(operation->Text(Field::kComm));
  const Event& event = operation->event;
  for (const KeyField& k : kKeyFields) {
    if (k.key != key) continue;
    return event.Has(k.field) ? std::to_string(event.Get(k.field)) : "unknown";
  }
  return "unknown";
}

bool WriteAlarm(MessageWriter& out, const AlarmRecord& record,
                const AlarmValues& values) {
  out.Begin(static_cast<uint16_t>(MessageId::kAlarm));
  // The time of the operation comes first, as in operations.
  for (const auto& [field, value] : values.numbers) {
    PutNumber(out, field, value);
  }
  for (const auto& [field, text] : values.texts) {
    out.PutText(Info(field).arg_id, text);
  }
  if (record.op) {
    out.Put<uint8_t>(ArgId::kKeyOp, static_cast<uint8_t>(Index(*record.op)));
  }
  out.Put<uint32_t>(ArgId::kRule, record.rule);
  out.PutText(ArgId::kRuleTitle, record.title);
  if (!record.key.empty()) {
    out.PutText(ArgId::kRuleKey, record.key);
  }
  if (record.key_pid != 0) out.Put<uint32_t>(ArgId::kKeyPid, record.key_pid);
  if (record.other) out.Put<uint8_t>(ArgId::kOther, 1);
  out.Put<uint64_t>(ArgId::kCount, record.count);
  out.Put<uint64_t>(ArgId::kRuleLimit, record.limit);
  out.Put<uint64_t>(ArgId::kRuleWindow, record.window_ns);
  out.Put<uint64_t>(ArgId::kRuleWindows, record.windows);
  for (const std::string_view action : record.actions) {
    out.PutText(ArgId::kRuleAction, action);
  }
  for (const AlarmAncestor& ancestor : record.ancestors) {
    out.Put<uint32_t>(ArgId::kAncestorPid, ancestor.pid);
    if (!ancestor.comm.empty()) {
      out.PutText(ArgId::kAncestorComm, ancestor.comm);
    }
  }
  for (const std::string_view path : record.paths) {
    out.PutText(ArgId::kRecentPath, path);
  }
  for (const std::string_view what : record.not_known) {
    out.PutText(ArgId::kNotKnown, what);
  }
  return out.End();
}

bool ReadAlarm(ByteSpan arguments, const ArgumentWidths& widths,
               AlarmRecord* record) {
  *record = {};
  return TakeArguments(arguments, widths, kAlarmRows, record);
}

bool IsAlarmArgument(uint16_t arg_id) {
  return std::any_of(
      std::begin(kAlarmRows), std::end(kAlarmRows),
      [&](const auto& row) { return static_cast<uint16_t>(row.id) == arg_id; });
}

}  // namespace tracefs::format
