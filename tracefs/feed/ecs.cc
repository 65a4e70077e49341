// ECS: the Elastic Common Schema 8.17, event.category "file". Fields of our own
// are below `tracefs`, as the schema asks of custom fields.
#include <array>
#include <cstdio>

#include "tracefs/feed/alarm_lines.h"
#include "tracefs/feed/feed.h"
#include "tracefs/feed/feed_parts.h"

namespace tracefs {
namespace {

constexpr std::string_view kEcsVersion = "8.17.0";

std::string_view EventType(FileActivity activity) {
  switch (activity) {
    case FileActivity::kCreate:
      return "creation";
    case FileActivity::kDelete:
      return "deletion";
    case FileActivity::kUpdate:
    case FileActivity::kRename:
    case FileActivity::kSetAttributes:
    case FileActivity::kSetSecurity:
      return "change";
    case FileActivity::kRead:
    case FileActivity::kOpen:
      return "access";
    default:
      return "info";
  }
}

std::string_view FileType(uint64_t type) {
  switch (type) {
    case 0:
      return {};
    case 4:
      return "dir";
    case 8:
      return "file";
    case 10:
      return "symlink";
    default:
      return "other";
  }
}

std::string Octal(uint64_t mode) {
  std::array<char, 8> text;
  const int size = std::snprintf(text.data(), text.size(), "%04o",
                                 static_cast<unsigned>(mode & 07777));
  return {text.data(), static_cast<size_t>(size)};
}

class Ecs final : public FeedFormat {
 public:
  void Append(const format::Record& record, std::string* line) override {
    const FileEvent event(record);
    JsonWriter json(line);
    Begin(record.real_ns, *record.trace, &json);
    json.Open("event");
    json.Put("kind", "event");
    PutWordList("category", "file", &json);
    PutWordList("type", EventType(ActivityOf(record)), &json);
    json.Put("action", OpName(record.event.op));
    constexpr std::string_view kOutcome[] = {"unknown", "success", "failure"};
    json.Put("outcome", kOutcome[static_cast<size_t>(event.outcome)]);
    PutField("duration", event, Field::kLatency, &json);
    Dataset(&json);
    json.Close();
    // After a rename the file is where it went.
    const bool moved = !event.path2.empty() && record.event.op == Op::rename_;
    PutFile(moved ? event.path2 : event.path, moved ? event.path : "", event,
            &json);
    PutProcess(event, &json);
    PutUser(event, &json);
    if (!event.error.empty()) {
      json.Open("error");
      json.Put("code", event.error);
      json.Close();
    }
    json.Open("tracefs");
    PutOperation(event, &json);
    if (!moved) json.PutIf("path2", event.path2);
    json.Close();
    json.End();
  }

  void AppendLoss(const FeedLoss& loss, std::string* line) override {
    JsonWriter json(line);
    Begin(loss.real_ns, *loss.trace, &json);
    json.Put("message",
             std::to_string(loss.count) +
                 " operations were not recorded: " + std::string(loss.reason));
    json.Open("event");
    json.Put("kind", "pipeline_error");
    PutWordList("category", "file", &json);
    PutWordList("type", "info", &json);
    json.Put("action", "loss");
    json.Put("reason", loss.reason);
    Dataset(&json);
    json.Close();
    json.Open("tracefs");
    json.Put("lost", loss.count);
    json.Close();
    json.End();
  }

  void AppendAlarm(const format::AlarmRecord& alarm,
                   std::string* line) override {
    const format::Record& record = *alarm.operation;
    const FileEvent event(record);
    JsonWriter json(line);
    Begin(record.real_ns, *record.trace, &json);
    json.Put("message", AlarmSentence(alarm));
    json.Open("event");
    json.Put("kind", "alert");
    PutWordList("category", "intrusion_detection", &json);
    PutWordList("type", "info", &json);
    json.Put("action", OpName(record.event.op));
    json.Put("severity", uint64_t{73});  // "high" to Elastic's own rules
    Dataset(&json);
    json.Close();
    json.Open("rule");
    json.Put("name", alarm.title);
    json.Put("id", std::to_string(alarm.rule));
    json.Put("ruleset", "tracer " + std::to_string(alarm.tracer_id));
    json.Close();
    PutFile(event.path, "", event, &json);
    PutProcess(event, &json, &alarm);
    PutUser(event, &json);
    json.Open("tracefs");
    json.Put("count", alarm.count);
    PutAlarm(alarm, &json);
    json.PutIf("path2", event.path2);
    PutOperation(event, &json);
    json.Close();
    json.End();
  }

 private:
  static void Begin(uint64_t real_ns, const format::TraceContext& trace,
                    JsonWriter* json) {
    json->Put("@timestamp", Rfc3339(real_ns, 9));
    json->Open("ecs");
    json->Put("version", kEcsVersion);
    json->Close();
    const std::string_view host = trace.description.header.Get("host.name");
    if (host.empty()) return;
    json->Open("host");
    json->Put("name", host);
    json->Put("hostname", host);
    json->Close();
  }

  void Dataset(JsonWriter* json) {
    json->Put("module", "tracefs");
    json->Put("dataset", "tracefs.ops");
    json->Put("provider", "tracefs");
    json->Put("sequence", ++sequence_);
  }

  static void PutFile(std::string_view path, std::string_view original,
                      const FileEvent& event, JsonWriter* json) {
    json->Open("file");
    json->PutIf("path", path);
    if (path.starts_with('/')) json->Put("directory", DirectoryOfPath(path));
    if (!path.empty()) {
      json->Put("name", NameOfPath(path));
      json->PutIf("extension", ExtensionOf(NameOfPath(path)));
    }
    json->PutIf("type", FileType(event.FileType()));
    PutFieldText("inode", event, Field::kInode, json);
    if (event.Has(Field::kMode)) {
      json->Put("mode", Octal(event.Get(Field::kMode)));
    }
    PutFieldText("uid", event, Field::kFuid, json);
    PutFieldText("gid", event, Field::kFgid, json);
    PutField("size", event, Field::kSize, json);
    if (event.record.event.op == Op::symlink_ ||
        event.record.event.op == Op::readlink_) {
      json->PutIf("target_path", event.record.event.target);
    }
    if (!original.empty()) {
      // As Elastic's own endpoint has it.
      json->Open("Ext");
      json->Open("original");
      json->Put("path", original);
      json->Put("name", NameOfPath(original));
      json->Close();
      json->Close();
    }
    json->Close();
  }

  static void PutUser(const FileEvent& event, JsonWriter* json) {
    if (!event.Has(Field::kUid)) return;
    json->Open("user");
    PutFieldText("id", event, Field::kUid, json);
    if (event.Has(Field::kGid)) {
      json->Open("group");
      PutFieldText("id", event, Field::kGid, json);
      json->Close();
    }
    json->Close();
  }

  // Of an alarm the parent and the session, too.
  static void PutProcess(const FileEvent& event, JsonWriter* json,
                         const format::AlarmRecord* alarm = nullptr) {
    const format::Record& record = event.record;
    if (!event.Has(Field::kPid) && !event.Has(Field::kTid) &&
        !record.HasText(Field::kComm)) {
      return;
    }
    json->Open("process");
    PutField("pid", event, Field::kPid, json);
    if (event.Has(Field::kTid)) {
      json->Open("thread");
      PutField("id", event, Field::kTid, json);
      json->Close();
    }
    json->PutIf("name", record.Text(Field::kComm));
    json->PutIf("executable", record.Text(Field::kExe));
    json->PutIf("command_line", record.Text(Field::kCmdline));
    if (alarm != nullptr && !alarm->ancestors.empty()) {
      json->Open("parent");
      json->Put("pid", alarm->ancestors.front().pid);
      json->PutIf("name", alarm->ancestors.front().comm);
      json->Close();
    }
    if (alarm != nullptr && event.Has(Field::kSid)) {
      json->Open("session_leader");
      PutField("pid", event, Field::kSid, json);
      json->Close();
    }
    json->Close();
  }

  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<FeedFormat> MakeEcsFeed() { return std::make_unique<Ecs>(); }

}  // namespace tracefs
