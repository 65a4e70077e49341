// Names that want to be something else: whatever a file, a process, a rule or a
// host is called, each format keeps it within its own field, on its own line,
// and shows nothing that a reader's screen would obey.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/base/printable.h"
#include "tracefs/export/table.h"
#include "tracefs/feed/feed.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {
namespace {

using nlohmann::json;
using test::TraceBuilder;

// Fields that a name may want to forge, in the spelling of each format.
constexpr std::string_view kForged[] = {
    " uid=0",      " u0 ",  " pid=1", "\",\"uid\":0", " suid=0",
    " act=forged", "[1/1]", " -> 0",  "\nforged"};

std::vector<std::string> HostileNames() {
  std::vector<std::string> names = {
      "x uid=0 pid=1",
      "x\",\"uid\":0,\"y\":\"",
      "x suid=0 act=forged",
      "x|0|a=b",
      "a[1/1] u0 ",
      "a -> 0",
      "a\nforged: line\r",
      "\x1b[2Jgone\x07",
      "\xc2\x9b"
      "31m",  // C1
      "a\xe2\x80\xae"
      "txt.exe",  // turned around
      "\xe2\x81\xa6"
      "b\xe2\x81\xa9",
      "\xe2\x80\xa8"
      "c\xe2\x80\xa9",
      "\xe2\x80\x8e"
      "d\xe2\x80\x8f\xd8\x9c",
      "\xef\xbb\xbf"
      "e\xc2\xad",
      "\xf3\xa0\x80\x81"
      "f",                    // a tag
      "g\xc2\xa0uid=0",       // a blank that is none
      "\xff\xfe uid=0 \x80",  // no UTF-8
      "\\x41\\n",
      "\x7f",
      "-",
      "\"",
      "'; rm -rf /",
  };
  return names;
}

// Code points that must not be there as they are.
void ExpectShown(std::string_view line, bool utf8 = true) {
  if (utf8) {
    ASSERT_TRUE(IsUtf8(line)) << line;
  }
  while (!line.empty()) {
    const CodePoint point = FirstCodePoint(line);
    // Tabs part the fields of some formats; none of the names has one.
    ASSERT_FALSE(point.size != 0 && IsHidden(point.value) &&
                 point.value != '\t')
        << std::hex << point.value << ": " << line;
    line.remove_prefix(std::max<size_t>(point.size, 1));
  }
}

// Without what stands in double quotes.
std::string Unquoted(std::string_view line) {
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      if (!inside) out += line.substr(i, 2);
      ++i;
      continue;
    }
    if (line[i] == '"') inside = !inside;
    if (!inside) out += line[i];
  }
  EXPECT_FALSE(inside) << line;
  return out;
}

// One operation, one alarm and one loss in which every name is `name`.
std::string TraceWith(const std::string& name) {
  TraceBuilder trace;
  trace.header().Set("host.name", name);
  trace.header().Set("tracefs.version", name);
  CallerInfo caller;
  caller.pid = 812;
  caller.comm_size = static_cast<uint8_t>(
      name.copy(caller.comm_bytes.data(), caller.comm_bytes.size()));
  const uint32_t process = trace.DefineProcess(caller);
  const uint32_t root = trace.DefinePath(0, "");
  const uint32_t folder = trace.DefinePath(root, name);
  Event event;
  event.op = Op::rename_;
  event.Set(Field::kTime, TraceBuilder::kMonotonicNs);
  event.Set(Field::kTid, 813);
  event.Set(Field::kUid, 1000);
  event.SetResult(-1, EPERM);
  event.name = event.new_name = event.target = event.xattr_name = name;
  trace.Add(event,
            {.parent = folder, .new_parent = folder, .process = process});
  // Nobody knows in which directory.
  trace.Add(event, {.process = process});
  const auto arg = [](Field field) { return Info(field).arg_id; };
  trace.AddRaw(
      static_cast<uint16_t>(format::MessageId::kAlarm),
      [&](format::MessageWriter& out) {
        using format::ArgId;
        out.Put<uint64_t>(arg(Field::kTime), TraceBuilder::kMonotonicNs);
        out.Put<uint32_t>(arg(Field::kUid), 1000);
        out.PutText(arg(Field::kComm), name);
        out.PutText(arg(Field::kPath), "/" + name);
        out.PutText(arg(Field::kNewPath), "/" + name);
        out.Put<uint8_t>(ArgId::kKeyOp, static_cast<uint8_t>(Op::rename_));
        out.Put<uint32_t>(ArgId::kRule, 3);
        out.PutText(ArgId::kRuleTitle, name);
        out.PutText(ArgId::kRuleKey, "cname");
        out.Put<uint64_t>(ArgId::kCount, 12);
        out.Put<uint64_t>(ArgId::kRuleLimit, 10);
        out.Put<uint64_t>(ArgId::kRuleWindow, 1'000'000'000);
        out.PutText(ArgId::kRuleAction, "snapshot 2: open " + name);
      });
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

// All lines of a format: two operations, then the alarm.
std::vector<std::string> LinesOf(std::string_view format,
                                 const std::string& trace) {
  StringOutput out;
  const auto exporter =
      FindExportFormat(format)->make(out, {.time = TimeStyle::kUtc});
  std::string alarms;
  format::TraceReaderOptions options;
  options.alarm = [&](const format::AlarmRecord& alarm) {
    alarms += exporter->AlarmLine(alarm);
  };
  format::TraceReader reader(
      std::make_unique<format::MemorySource>(AsBytes(trace)),
      std::move(options));
  std::unique_ptr<format::BlockDecoder> block;
  for (;;) {
    const auto step = reader.NextBlock(&block);
    EXPECT_TRUE(step.ok());
    if (!step.ok() || *step != format::ReadStep::kItem) break;
    while (!block->at_end()) {
      format::Record record;
      block->Next(&record);
      exporter->Write(record);
    }
  }
  exporter->Finish();
  EXPECT_TRUE(out.Flush().ok());
  const std::string text = out.text() + alarms;
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_NE(end, std::string::npos);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  EXPECT_EQ(lines.size(), 3u) << format << ": " << text;
  return lines;
}

TEST(HostileNamesTest, EveryFormatShowsThemOnOneLine) {
  for (const std::string& name : HostileNames()) {
    const std::string trace = TraceWith(name);
    for (const ExportFormat& format : ExportFormats()) {
      if (format.kind != ExportKind::kLines) continue;
      for (const std::string& line : LinesOf(format.name, trace)) {
        SCOPED_TRACE(format.name);
        ExpectShown(line);
      }
    }
  }
}

TEST(HostileNamesTest, InTextTheyForgeNoField) {
  for (const std::string& name : HostileNames()) {
    for (const std::string& line : LinesOf("text", TraceWith(name))) {
      const std::string bare = Unquoted(line);
      for (const std::string_view forged : kForged) {
        // The user and the process of the operation are others.
        EXPECT_EQ(bare.find(forged), std::string::npos)
            << forged << ": " << line;
      }
    }
  }
}

TEST(HostileNamesTest, InJsonTheyComeBackAsTheyAre) {
  for (const std::string& name : HostileNames()) {
    for (const std::string_view format : {"jsonl", "ocsf", "ecs"}) {
      const std::vector<std::string> lines = LinesOf(format, TraceWith(name));
      ASSERT_EQ(lines.size(), 3u);
      for (const std::string& line : lines) {
        const json event = json::parse(line, nullptr, false);
        ASSERT_TRUE(event.is_object()) << line;
        if (format != "jsonl") continue;
        EXPECT_EQ(event.at("uid"), 1000);
        EXPECT_EQ(event.contains("y"), false);
        if (IsUtf8(name)) {
          EXPECT_EQ(event.at("comm"), name.substr(0, 64)) << line;
        } else {
          EXPECT_TRUE(event.contains("comm_b64")) << line;
        }
      }
      if (!IsUtf8(name)) continue;
      const json alarm = json::parse(lines[2]);
      if (format == "jsonl") {
        EXPECT_EQ(alarm.at("alarm"), name);
        EXPECT_EQ(alarm.at("key"), name);
        EXPECT_EQ(alarm.at("path"), "/" + name);
        EXPECT_EQ(alarm.at("actions").at(0), "snapshot 2: open " + name);
      } else if (format == "ocsf") {
        EXPECT_EQ(alarm.at("class_uid"), 2004);
        EXPECT_EQ(alarm.at("finding_info").at("title"), name);
        EXPECT_EQ(alarm.at("unmapped").at("key"), name);
      } else {
        EXPECT_EQ(alarm.at("event").at("kind"), "alert");
        EXPECT_EQ(alarm.at("rule").at("name"), name);
        EXPECT_EQ(alarm.at("process").at("name"), name);
      }
    }
  }
}

// The seven fields of a header and the pairs, as a receiver takes them apart.
TEST(HostileNamesTest, InCefTheyStayInTheirFields) {
  for (const std::string& name : HostileNames()) {
    for (const std::string& line : LinesOf("cef", TraceWith(name))) {
      std::vector<std::string> header(1);
      size_t at = 0;
      for (; at < line.size() && header.size() < 8; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) {
          header.back() += line[++at];
        } else if (line[at] == '|') {
          header.emplace_back();
        } else {
          header.back() += line[at];
        }
      }
      ASSERT_EQ(header.size(), 8u) << line;
      EXPECT_EQ(header[1], "Tracefs");
      std::map<std::string, int> keys;
      const std::string pairs = " " + line.substr(at);
      for (size_t i = 0; i < pairs.size(); ++i) {
        if (pairs[i] == '\\') {
          ++i;
        } else if (pairs[i] == '=') {
          const size_t blank = pairs.rfind(' ', i);
          ++keys[pairs.substr(blank + 1, i - blank - 1)];
        }
      }
      for (const auto& [key, count] : keys) EXPECT_EQ(count, 1) << key << line;
      EXPECT_EQ(keys.contains("suid"), true);
      EXPECT_EQ(keys.contains("uid"), false) << line;
      EXPECT_EQ(keys.contains("a"), false) << line;
    }
  }
}

TEST(HostileNamesTest, LossesTellTheirReasonOnOneLine) {
  for (const std::string& name : HostileNames()) {
    format::TraceContext trace;
    trace.description.header.Set("host.name", name);
    for (const FeedRow& feed : kFeeds) {
      std::string line;
      feed.make()->AppendLoss({.real_ns = TraceBuilder::kRealNs,
                               .count = 1,
                               .reason = name,
                               .trace = &trace},
                              &line);
      ExpectShown(line);
    }
  }
}

}  // namespace
}  // namespace tracefs
