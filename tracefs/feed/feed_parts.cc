#include "tracefs/feed/feed_parts.h"

#include <linux/fuse.h>

#include <array>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"
#include "tracefs/text/json_member.h"

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
    const uint64_t valid =
        event.Has(Field::kValid) ? event.Get(Field::kValid) : 0;
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

void JsonLine::Key(std::string_view key) {
  if (!first_) out_ += ',';
  first_ = false;
  out_ += '"';
  out_ += key;
  out_ += "\":";
}

void JsonLine::Open(std::string_view key) {
  Key(key);
  out_ += '{';
  first_ = true;
}

void JsonLine::OpenList(std::string_view key) {
  Key(key);
  out_ += "[{";
  first_ = true;
}

void JsonLine::Put(std::string_view key, uint64_t value) {
  Key(key);
  out_ += std::to_string(value);
}

void JsonLine::PutSigned(std::string_view key, int64_t value) {
  Key(key);
  out_ += std::to_string(value);
}

void JsonLine::Put(std::string_view key, std::string_view text) {
  Key(key);
  AppendJsonString(Utf8Text(text), &out_);
}

void JsonLine::PutField(std::string_view key, const FileEvent& event,
                        Field field) {
  if (event.Has(field)) Put(key, event.Get(field));
}

void JsonLine::PutFieldText(std::string_view key, const FileEvent& event,
                            Field field) {
  if (event.Has(field)) Put(key, std::to_string(event.Get(field)));
}

void JsonLine::PutList(std::string_view key, std::string_view only_entry) {
  Key(key);
  out_ += "[\"";
  out_ += only_entry;  // one of our own words: there is nothing to escape
  out_ += "\"]";
}

void JsonLine::PutAlarm(const format::AlarmRecord& alarm) {
  Put("rule", alarm.rule);
  PutIf("by", alarm.key);
  PutIf("key", alarm.KeyValue());
  if (alarm.limit != 0) {
    Put("limit", alarm.limit);
    Put("window_ns", alarm.window_ns);
    Put("windows", alarm.windows);
  }
  if (alarm.actions.empty()) return;
  Key("actions");
  out_ += '[';
  for (const std::string_view action : alarm.actions) {
    if (out_.back() != '[') out_ += ',';
    AppendJsonString(Utf8Text(action), &out_);
  }
  out_ += ']';
}

void JsonLine::PutOperation(const FileEvent& event) {
  Put("op", OpName(event.record.event.op));
  Put("tracer", event.record.tracer_id);
  PutField("duration_ns", event, Field::kLatency);
  PutField("fh", event, Field::kFh);
  PutField("offset", event, Field::kOffset);
  PutField("length", event, Field::kLength);
  PutField("flags", event, Field::kFlags);
  PutField("mode", event, Field::kArgMode);
  PutField("new_uid", event, Field::kNewUid);
  PutField("new_gid", event, Field::kNewGid);
  PutField("new_size", event, Field::kNewSize);
  if (event.Has(Field::kResult)) {
    PutSigned("result", static_cast<int64_t>(event.Get(Field::kResult)));
  }
  PutIf("errno", event.error);
  PutIf("xattr", event.record.event.xattr_name);
  PutIf("target", event.record.event.target);
  if (event.Has(Field::kInferred) && event.Get(Field::kInferred) != 0) {
    Put("inferred", uint64_t{1});
  }
  if (event.record.event.before) Put("before", uint64_t{1});
  // The bytes of a name that is not UTF-8.
  if (!IsUtf8(event.path)) PutBytes("path", event.path);
  for (const format::ExtraArgument& extra : event.record.extra) {
    const FieldInfo* const field = FieldByArgId(extra.id);
    if (field != nullptr) PutBytes(field->json_key, AsText(extra.value));
  }
}

void JsonLine::PutBytes(std::string_view key, std::string_view bytes) {
  std::string base64(Base64Size(bytes.size()), '\0');
  PutBase64(base64.data(), bytes);
  Put(std::string(key) + "_b64", base64);
}

}  // namespace tracefs
