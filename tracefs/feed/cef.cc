// CEF: ArcSight Common Event Format, version 0: a header of seven fields with
// bars between, then key=value pairs. Keys are those of its dictionary; who did
// it is the source (suid, spid, sproc).
#include <algorithm>
#include <array>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/base/join.h"
#include "tracefs/feed/alarm_lines.h"
#include "tracefs/feed/feed.h"
#include "tracefs/feed/feed_parts.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

constexpr int kAlarmSeverity = 8;  // of 0 to 10

// 0 to 10.
int SeverityOf(FileActivity activity, bool failed) {
  if (failed) return 4;
  switch (activity) {
    case FileActivity::kSetSecurity:
      return 5;
    case FileActivity::kDelete:
    case FileActivity::kRename:
      return 3;
    case FileActivity::kCreate:
    case FileActivity::kUpdate:
    case FileActivity::kSetAttributes:
      return 2;
    default:
      return 1;
  }
}

// The characters that a backslash must stand before, and line ends as letters.
void Escape(std::string_view text, char special, std::string* out) {
  const std::string utf8 = Utf8Text(text);
  for (std::string_view left = utf8; !left.empty();) {
    const CodePoint point = FirstCodePoint(left);
    const std::string_view character =
        left.substr(0, std::max<size_t>(point.size, 1));
    left.remove_prefix(character.size());
    const char c = character.front();
    if (c == '\n') {
      *out += "\\n";
    } else if (c == '\r') {
      *out += "\\r";
    } else if (IsHidden(point.value)) {
      // The format has no way to write it; this is how we write bytes.
      for (const char byte : character) {
        std::array<char, 8> escaped;
        std::snprintf(escaped.data(), escaped.size(), "\\\\x%02x",
                      static_cast<unsigned char>(byte));
        *out += escaped.data();
      }
    } else {
      if (c == '\\' || c == special) *out += '\\';
      *out += character;
    }
  }
}

class Cef final : public FeedFormat {
 public:
  void Append(const format::Record& record, std::string* line) override {
    const FileEvent event(record);
    const std::string_view op = OpName(record.event.op);
    Header(*record.trace, op, op,
           SeverityOf(ActivityOf(record), event.failed()), line);
    PutEvent(event, line);
    PutHost(*record.trace, line);
  }

  void AppendAlarm(const format::AlarmRecord& alarm,
                   std::string* line) override {
    const format::Record& record = *alarm.operation;
    Header(*record.trace, "alarm", alarm.title, kAlarmSeverity, line);
    PutEvent(FileEvent(record), line);
    Put("cnt", alarm.count, line);
    Put("msg", AlarmSentence(alarm), line);
    Put("cs1", std::to_string(alarm.rule), line);
    Put("cs1Label", "rule", line);
    if (!alarm.key.empty()) {
      Put("cs2", alarm.KeyValue(), line);
      Put("cs2Label", alarm.key, line);
    }
    PutCustom("cs3", "actions", JoinWords(alarm.actions, "; "), line);
    PutCustom("cs4", "cmdline", record.Text(Field::kCmdline), line);
    PutCustom("cs5", "ancestors",
              JoinWords(alarm.ancestors, "; ", &AncestorText), line);
    PutCustom("cs6", "touched", JoinWords(alarm.paths, "; "), line);
    PutCustom("flexString1", "exe", record.Text(Field::kExe), line);
    PutCustom("flexString2", "notKnown", JoinWords(alarm.not_known, "; "),
              line);
    PutHost(*record.trace, line);
  }
  void AppendLoss(const FeedLoss& loss, std::string* line) override {
    Header(*loss.trace, "loss", "operations were not recorded", 6, line);
    Put("rt", loss.real_ns / kNsPerMs, line);
    Put("externalId", ++sequence_, line);
    Put("cnt", loss.count, line);
    Put("reason", loss.reason, line);
    PutHost(*loss.trace, line);
  }

 private:
  void PutEvent(const FileEvent& event, std::string* line) {
    const format::Record& record = event.record;
    const std::string_view op = OpName(record.event.op);
    Put("rt", record.real_ns / kNsPerMs, line);
    Put("externalId", ++sequence_, line);
    Put("act", op, line);
    if (event.outcome != format::Outcome::kUnknown) {
      Put("outcome", event.failed() ? "failure" : "success", line);
    }
    if (!event.error.empty()) Put("reason", event.error, line);
    const bool moved = !event.path2.empty() && record.event.op == Op::rename_;
    const std::string_view path = moved ? event.path2 : event.path;
    if (!path.empty()) {
      Put("filePath", path, line);
      Put("fname", NameOfPath(path), line);
    }
    if (moved) {
      Put("oldFilePath", event.path, line);
      Put("oldFileName", NameOfPath(event.path), line);
    }
    PutField("fileId", event, Field::kInode, line);
    PutField("fsize", event, Field::kSize, line);
    if (event.Has(Field::kMode)) {
      std::array<char, 8> mode;
      std::snprintf(mode.data(), mode.size(), "%04o",
                    static_cast<unsigned>(event.Get(Field::kMode) & 07777));
      Put("filePermission", mode.data(), line);
    }
    PutField("suid", event, Field::kUid, line);
    PutField("spid", event, Field::kPid, line);
    if (record.HasText(Field::kComm)) {
      Put("sproc", record.Text(Field::kComm), line);
    }
    PutNumber(1, "offset", event, Field::kOffset, line);
    PutNumber(2, "length", event, Field::kLength, line);
    PutNumber(3, "durationNs", event, Field::kLatency, line);
  }

  static void Header(const format::TraceContext& trace, std::string_view id,
                     std::string_view name, int severity, std::string* line) {
    *line += "CEF:0|Tracefs|Tracefs|";
    Escape(trace.description.header.Get("tracefs.version"), '|', line);
    *line += '|';
    Escape(id, '|', line);
    *line += '|';
    Escape(name, '|', line);
    *line += '|' + std::to_string(severity) + '|';
  }

  static void Put(std::string_view key, std::string_view value,
                  std::string* line) {
    if (line->back() != '|') *line += ' ';
    *line += key;
    *line += '=';
    Escape(value, '=', line);
  }
  static void Put(std::string_view key, uint64_t value, std::string* line) {
    Put(key, std::to_string(value), line);
  }
  static void PutField(std::string_view key, const FileEvent& event, Field f,
                       std::string* line) {
    if (event.Has(f)) Put(key, event.Get(f), line);
  }
  // One of the dictionary's texts that users name, if there is one.
  static void PutCustom(const std::string& key, std::string_view label,
                        std::string_view value, std::string* line) {
    if (value.empty()) return;
    Put(key, value, line);
    Put(key + "Label", label, line);
  }
  // One of the dictionary's numbers that users name.
  static void PutNumber(int i, std::string_view label, const FileEvent& event,
                        Field f, std::string* line) {
    if (!event.Has(f)) return;
    const std::string key = "cn" + std::to_string(i);
    Put(key, event.Get(f), line);
    Put(key + "Label", label, line);
  }
  static void PutHost(const format::TraceContext& trace, std::string* line) {
    const std::string_view host = trace.description.header.Get("host.name");
    if (!host.empty()) Put("dvchost", host, line);
  }

  uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<FeedFormat> MakeCefFeed() { return std::make_unique<Cef>(); }

}  // namespace tracefs
