#include "tracefs/feed/feed_parts.h"

#include <linux/fuse.h>

#include <array>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"

namespace tracefs {
namespace {

constexpr uint64_t kSetsSecurity = FATTR_MODE | FATTR_UID | FATTR_GID;

bool IsSecurityXattr(std::string_view name) {
  return name.starts_with("security.") ||
         name.starts_with("system.posix_acl") || name.starts_with("trusted.");
}

}  // namespace

FileActivity ActivityOf(const format::Record& record) {
  const Event& event = record.event;
  const FileActivity usual = Info(event.op).activity;
  if (event.op == Op::setattr_) {
    const uint64_t valid = event.GetOr0(Field::kValid);
    if ((valid & kSetsSecurity) != 0) return FileActivity::kSetSecurity;
    return (valid & FATTR_SIZE) != 0 ? FileActivity::kUpdate : usual;
  }
  if (!IsSecurityXattr(event.xattr_name)) return usual;
  if (event.op == Op::setxattr_ || event.op == Op::removexattr_) {
    return FileActivity::kSetSecurity;
  }
  return event.op == Op::getxattr_ ? FileActivity::kGetSecurity : usual;
}

FileEvent::FileEvent(const format::Record& r)
    : record(r),
      path(format::PathOf(r, buffer_)),
      path2(format::NewPathOf(r, buffer2_)),
      outcome(format::OutcomeOf(r)) {
  if (failed() && Has(Field::kErrno)) error = ErrnoName(Get(Field::kErrno));
  if (path.empty()) path = r.event.name;
}

uint64_t FileEvent::FileType() const {
  if (Has(Field::kMode)) return Get(Field::kMode) >> 12 & 15;
  if (Has(Field::kType)) return Get(Field::kType);
  return 0;
}

std::string_view NameOfPath(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.empty() ? path : name;
}

std::string_view DirectoryOfPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  return path.substr(0, slash == 0 ? 1 : slash);
}

void PutField(std::string_view key, const FileEvent& event, Field field,
              JsonWriter* json) {
  if (event.Has(field)) json->Put(key, event.Get(field));
}

void PutFieldText(std::string_view key, const FileEvent& event, Field field,
                  JsonWriter* json) {
  if (event.Has(field)) json->Put(key, std::to_string(event.Get(field)));
}

void PutWordList(std::string_view key, std::string_view only_entry,
                 JsonWriter* json) {
  json->OpenList(key);
  json->Add(only_entry);
  json->CloseList();
}

void PutTexts(std::string_view key, const std::vector<std::string_view>& texts,
              JsonWriter* json) {
  if (texts.empty()) return;
  json->OpenList(key);
  for (const std::string_view text : texts) json->Add(text);
  json->CloseList();
}

std::string AncestorText(const format::AlarmAncestor& ancestor) {
  std::string text = std::to_string(ancestor.pid);
  if (!ancestor.comm.empty()) text += ' ' + std::string(ancestor.comm);
  return text;
}

void PutAlarmSource(const format::AlarmRecord& alarm, JsonWriter* json) {
  if (!alarm.ancestors.empty()) {
    json->OpenList("ancestors");
    for (const format::AlarmAncestor& ancestor : alarm.ancestors) {
      json->Open();
      json->Put("pid", ancestor.pid);
      if (!ancestor.comm.empty()) json->PutExact("comm", ancestor.comm);
      json->Close();
    }
    json->CloseList();
  }
  PutTexts("touched", alarm.paths, json);
  PutTexts("not_known", alarm.not_known, json);
}

void PutAlarm(const format::AlarmRecord& alarm, JsonWriter* json) {
  json->Put("rule", alarm.rule);
  json->PutIf("by", alarm.key);
  json->PutIf("key", alarm.KeyValue());
  if (alarm.limit != 0) {
    json->Put("limit", alarm.limit);
    json->Put("window_ns", alarm.window_ns);
    json->Put("windows", alarm.windows);
  }
  PutAlarmSource(alarm, json);
  PutTexts("actions", alarm.actions, json);
}

void PutOperation(const FileEvent& event, JsonWriter* json) {
  json->Put("op", OpName(event.record.event.op));
  json->Put("tracer", event.record.tracer_id);
  PutField("duration_ns", event, Field::kLatency, json);
  PutField("fh", event, Field::kFh, json);
  PutField("offset", event, Field::kOffset, json);
  PutField("length", event, Field::kLength, json);
  PutField("flags", event, Field::kFlags, json);
  PutField("mode", event, Field::kArgMode, json);
  PutField("new_uid", event, Field::kNewUid, json);
  PutField("new_gid", event, Field::kNewGid, json);
  PutField("new_size", event, Field::kNewSize, json);
  if (event.Has(Field::kResult)) {
    json->PutSigned("result", static_cast<int64_t>(event.Get(Field::kResult)));
  }
  json->PutIf("errno", event.error);
  json->PutIf("xattr", event.record.event.xattr_name);
  json->PutIf("target", event.record.event.target);
  if (event.Has(Field::kInferred) && event.Get(Field::kInferred) != 0) {
    json->Put("inferred", uint64_t{1});
  }
  if (event.record.event.before) json->Put("before", uint64_t{1});
  // The bytes of a name that is not UTF-8.
  if (!IsUtf8(event.path)) json->PutBytes("path", event.path);
  for (const format::ExtraArgument& extra : event.record.extra) {
    const FieldInfo* const field = FieldByArgId(extra.id);
    if (field != nullptr) json->PutBytes(field->json_key, AsText(extra.value));
  }
}

}  // namespace tracefs
