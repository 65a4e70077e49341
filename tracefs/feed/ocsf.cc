// OCSF: schema.ocsf.io, version 1.3.0, class File System Activity (1001);
// alarms are of the class Detection Finding (2004). Losses are of the base
// class (0): something was not seen.

#include "tracefs/base/clock.h"
#include "tracefs/feed/alarm_lines.h"
#include "tracefs/feed/feed.h"
#include "tracefs/feed/feed_parts.h"

namespace tracefs {
namespace {

constexpr uint64_t kClass = 1001;
constexpr uint64_t kCategory = 1;
constexpr uint64_t kOtherActivity = 99;
constexpr uint64_t kInformational = 1;
constexpr uint64_t kMedium = 3;
constexpr uint64_t kHigh = 4;
constexpr uint64_t kFinding = 2004;

struct Activity {
  uint64_t id;
  std::string_view name;
};
// In the order of FileActivity.
constexpr Activity kActivities[] = {{1, "Create"},
                                    {2, "Read"},
                                    {3, "Update"},
                                    {4, "Delete"},
                                    {5, "Rename"},
                                    {6, "Set Attributes"},
                                    {7, "Set Security"},
                                    {8, "Get Attributes"},
                                    {9, "Get Security"},
                                    {14, "Open"},
                                    {kOtherActivity, "Other"}};

// By st_mode >> 12.
uint64_t TypeId(uint64_t type) {
  switch (type) {
    case 1:
      return 6;  // named pipe
    case 2:
      return 3;  // character device
    case 4:
      return 2;  // folder
    case 6:
      return 4;  // block device
    case 8:
      return 1;  // regular file
    case 10:
      return 7;  // symbolic link
    case 12:
      return 5;  // local socket
    default:
      return 0;  // unknown
  }
}

class Ocsf final : public FeedFormat {
 public:
  void Append(const format::Record& record, std::string* line) override {
    const FileEvent event(record);
    const Activity& activity =
        kActivities[static_cast<size_t>(ActivityOf(record))];
    JsonWriter json(line);
    json.Put("class_uid", kClass);
    json.Put("class_name", "File System Activity");
    json.Put("category_uid", kCategory);
    json.Put("category_name", "System Activity");
    json.Put("activity_id", activity.id);
    json.Put("activity_name", activity.id == kOtherActivity
                                  ? OpName(record.event.op)
                                  : activity.name);
    json.Put("type_uid", kClass * 100 + activity.id);
    json.Put("severity_id", kInformational);
    json.Put("time", record.real_ns / kNsPerMs);
    if (event.Has(Field::kLatency)) {
      json.Put("duration", event.Get(Field::kLatency) / kNsPerMs);
    }
    constexpr std::string_view kStatus[] = {"Unknown", "Success", "Failure"};
    const auto status = static_cast<size_t>(event.outcome);
    json.Put("status_id", uint64_t{status});
    json.Put("status", kStatus[status]);
    json.PutIf("status_code", event.error);
    PutMetadata(*record.trace, &json);
    PutDevice(*record.trace, &json);
    PutActor(event, &json);
    PutFile("file", event.path, event, &json);
    if (!event.path2.empty()) PutFile("file_result", event.path2, event, &json);
    json.Open("unmapped");
    PutOperation(event, &json);
    json.Close();
    json.End();
  }

  void AppendLoss(const FeedLoss& loss, std::string* line) override {
    JsonWriter json(line);
    json.Put("class_uid", uint64_t{0});
    json.Put("category_uid", uint64_t{0});
    json.Put("activity_id", kOtherActivity);
    json.Put("activity_name", "Loss");
    json.Put("type_uid", kOtherActivity);
    json.Put("severity_id", kMedium);
    json.Put("time", loss.real_ns / kNsPerMs);
    json.Put("count", loss.count);
    json.Put("message",
             std::to_string(loss.count) +
                 " operations were not recorded: " + std::string(loss.reason));
    PutMetadata(*loss.trace, &json);
    PutDevice(*loss.trace, &json);
    json.End();
  }

  // A finding of one piece of evidence: the operation that made the rule fire.
  void AppendAlarm(const format::AlarmRecord& alarm,
                   std::string* line) override {
    const format::Record& record = *alarm.operation;
    const FileEvent event(record);
    JsonWriter json(line);
    json.Put("class_uid", kFinding);
    json.Put("class_name", "Detection Finding");
    json.Put("category_uid", uint64_t{2});
    json.Put("category_name", "Findings");
    json.Put("activity_id", uint64_t{1});
    json.Put("activity_name", "Create");
    json.Put("type_uid", kFinding * 100 + 1);
    json.Put("severity_id", kHigh);
    json.Put("status_id", uint64_t{1});
    json.Put("status", "New");
    json.Put("time", record.real_ns / kNsPerMs);
    json.Put("count", alarm.count);
    json.Put("message", AlarmSentence(alarm));
    PutMetadata(*record.trace, &json);
    PutDevice(*record.trace, &json);
    json.Open("finding_info");
    json.Put("title", alarm.title);
    json.Put("uid", std::to_string(alarm.tracer_id) + '.' +
                        std::to_string(alarm.rule) + '.' +
                        std::to_string(record.real_ns));
    json.Put("created_time", record.real_ns / kNsPerMs);
    json.Open("analytic");
    json.Put("name", alarm.title);
    json.Put("uid", std::to_string(alarm.tracer_id) + '.' +
                        std::to_string(alarm.rule));
    json.Put("type_id", uint64_t{1});  // a rule
    json.Put("type", "Rule");
    json.Close();
    json.Close();
    json.OpenList("evidences");
    json.Open();
    PutActor(event, &json, &alarm);
    PutFile("file", event.path, event, &json);
    json.Close();
    json.CloseList();
    json.Open("unmapped");
    PutAlarm(alarm, &json);
    json.PutIf("path2", event.path2);
    PutOperation(event, &json);
    json.Close();
    json.End();
  }

 private:
  void PutMetadata(const format::TraceContext& trace, JsonWriter* json) {
    json->Open("metadata");
    json->Put("version", "1.3.0");
    json->Put("sequence", ++sequence_);
    json->Open("product");
    json->Put("name", "Tracefs");
    json->Put("vendor_name", "Tracefs");
    json->PutIf("version", trace.description.header.Get("tracefs.version"));
    json->Close();
    json->Close();
  }

  static void PutDevice(const format::TraceContext& trace, JsonWriter* json) {
    const format::TraceHeader& header = trace.description.header;
    const std::string_view host = header.Get("host.name");
    json->Open("device");
    json->Put("type_id", uint64_t{0});
    json->Put("hostname", host.empty() ? "unknown" : host);
    if (const std::string_view os = header.Get("os.name"); !os.empty()) {
      json->Open("os");
      json->Put("name", os);
      json->Put("type_id", uint64_t{200});  // Linux
      json->Close();
    }
    json->Close();
  }

  // Of an alarm the parent, too.
  static void PutActor(const FileEvent& event, JsonWriter* json,
                       const format::AlarmRecord* alarm = nullptr) {
    json->Open("actor");
    const bool has_process =
        event.Has(Field::kPid) || event.record.HasText(Field::kComm);
    if (has_process) {
      json->Open("process");
      PutField("pid", event, Field::kPid, json);
      PutField("tid", event, Field::kTid, json);
      json->PutIf("name", event.record.Text(Field::kComm));
      if (const std::string_view exe = event.record.Text(Field::kExe);
          !exe.empty()) {
        json->Open("file");
        json->Put("name", NameOfPath(exe));
        json->Put("path", exe);
        json->Put("type_id", uint64_t{1});
        json->Close();
      }
      json->PutIf("cmd_line", event.record.Text(Field::kCmdline));
      if (alarm != nullptr && !alarm->ancestors.empty()) {
        json->Open("parent_process");
        json->Put("pid", alarm->ancestors.front().pid);
        json->PutIf("name", alarm->ancestors.front().comm);
        json->Close();
      }
      if (alarm != nullptr && event.Has(Field::kSid)) {
        json->Open("session");
        PutFieldText("uid", event, Field::kSid, json);
        json->Close();
      }
      json->Close();
    }
    if (event.Has(Field::kUid)) {
      json->Open("user");
      PutFieldText("uid", event, Field::kUid, json);
      json->Close();
    } else if (!has_process) {
      json->Put("app_name", "unknown");  // one of them must be there
    }
    json->Close();
  }

  static void PutFile(std::string_view key, std::string_view path,
                      const FileEvent& event, JsonWriter* json) {
    json->Open(key);
    json->Put("name", path.empty() ? "unknown" : NameOfPath(path));
    json->PutIf("path", path);
    if (path.starts_with('/')) {
      json->Put("parent_folder", DirectoryOfPath(path));
    }
    json->Put("type_id", TypeId(event.FileType()));
    PutFieldText("uid", event, Field::kInode, json);
    PutField("size", event, Field::kSize, json);
    if (event.Has(Field::kFuid)) {
      json->Open("owner");
      PutFieldText("uid", event, Field::kFuid, json);
      json->Close();
    }
    if (event.Has(Field::kMtime)) {
      json->Put("modified_time", event.Get(Field::kMtime) / kNsPerMs);
    }
    json->Close();
  }

  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<FeedFormat> MakeOcsfFeed() { return std::make_unique<Ocsf>(); }

}  // namespace tracefs
