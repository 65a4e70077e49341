// JSON Lines, read back by a JSON library and compared with the records.
#include "tracefs/export/jsonl.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/random_event.h"
#include "tests/support/trace_builder.h"
#include "tracefs/event/system_call_names.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"

namespace tracefs {
namespace {

using format::ArgId;
using format::MessageWriter;
using format::Record;
using nlohmann::json;
using test::RandomEvent;
using test::TraceBuilder;

std::string Base64(std::string_view bytes) {
  std::string out(Base64Size(bytes.size()), '\0');
  PutBase64(out.data(), bytes);
  return out;
}

void PutText(json& object, const std::string& key, std::string_view text) {
  if (IsUtf8(text)) {
    object[key] = text;
  } else {
    object[key + "_b64"] = Base64(text);
  }
}

// What a line must say, the slow and obvious way.
json Expected(const Record& record) {
  const Event& event = record.event;
  json object;
  if (record.time_resolution_ns != 0) object["ts"] = record.real_ns;
  object["op"] = OpName(event.op);
  object["tracer"] = record.tracer_id;
  for (const FieldInfo& f : Fields()) {
    if (!IsNumeric(f.field) || !event.Has(f.field)) continue;
    const uint64_t value = event.Get(f.field);
    const std::string key(f.json_key);
    if (f.field == Field::kTime) continue;
    if (f.field == Field::kSyscall) {
      const std::string_view name =
          value <= UINT32_MAX ? SystemCallNameOf(static_cast<uint32_t>(value))
                              : std::string_view();
      object[key] = name.empty() ? std::to_string(value) : std::string(name);
    } else if (f.type == FieldType::kErrno) {
      if (value == 0) continue;
      const std::string_view name = ErrnoName(value);
      object[key] = name.empty() ? std::to_string(value) : std::string(name);
    } else if (f.field == Field::kType) {
      const std::string_view name = FileTypeName(value);
      object[key] = name.empty() ? std::to_string(value) : std::string(name);
    } else if (IsFlag(f.field)) {
      if (value != 0) object[key] = true;
    } else if (f.type == FieldType::kSigned) {
      object[key] = static_cast<int64_t>(value);
    } else {
      object[key] = value;
    }
  }
  PathBuffer buffer;
  const std::string_view path = format::PathOf(record, buffer);
  if (!path.empty()) PutText(object, "path", path);
  PathBuffer buffer2;
  const std::string_view path2 = format::NewPathOf(record, buffer2);
  if (!path2.empty()) PutText(object, "path2", path2);
  if (path.empty() && !event.name.empty()) PutText(object, "name", event.name);
  if (path2.empty() && !event.new_name.empty()) {
    PutText(object, "new_name", event.new_name);
  }
  for (const Field f : {Field::kComm, Field::kTarget, Field::kXattrName,
                        Field::kExt, Field::kExe, Field::kCgroup}) {
    if (record.HasText(f)) {
      PutText(object, std::string(Info(f).json_key), record.Text(f));
    }
  }
  if (record.HasText(Field::kData)) {
    object["data_b64"] = Base64(record.Text(Field::kData));
  }
  if (event.before) object["before"] = true;
  return object;
}

class JsonlTest : public testing::Test {
 protected:
  void Open(const std::string& bytes) {
    merger_.emplace();
    merger_->Add(std::make_unique<format::TraceReader>(
        std::make_unique<format::MemorySource>(AsBytes(bytes)),
        format::TraceReaderOptions{}));
  }
  // The next record's line, or "".
  std::string NextLine() {
    if (merger_->Next(&record_) != format::ReadStep::kItem) return "";
    exporter_->Write(record_);
    EXPECT_TRUE(out_.Flush().ok());
    const std::string line = out_.text();
    out_.Clear();
    return line;
  }

  std::optional<format::TraceMerger> merger_;
  Record record_;
  StringOutput out_;
  std::unique_ptr<Exporter> exporter_ = MakeJsonlExporter(out_, {});
};

TEST_F(JsonlTest, EveryFieldOfEveryOperationIsInItsLine) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    TraceBuilder trace;
    const uint32_t root = trace.DefinePath(0, "");
    const uint32_t dir =
        trace.DefinePath(root, test::RandomBytes(random, 20, true));
    const uint32_t process = trace.DefineProcess(test::RandomCaller(random));
    for (size_t op = 0; op < kOpCount; ++op) {
      const RandomEvent event(random, static_cast<Op>(op), 100 + op);
      trace.Add(event.event, {.path = random() % 2 ? dir : 0,
                              .parent = random() % 2 ? root : 0,
                              .new_parent = random() % 2 ? dir : 0,
                              .process = random() % 2 ? process : 0});
    }
    trace.EndBlock();
    Open(trace.bytes());
    for (size_t op = 0; op < kOpCount; ++op) {
      const std::string line = NextLine();
      ASSERT_EQ(line.find('\n'), line.size() - 1);
      const json parsed = json::parse(line, nullptr, false);
      ASSERT_TRUE(parsed.is_object()) << line;
      ASSERT_EQ(parsed, Expected(record_)) << line;
    }
    ASSERT_EQ(NextLine(), "");
  }
}

TEST_F(JsonlTest, KeysComeInTheDocumentedOrder) {
  TraceBuilder trace;
  CallerInfo caller;
  caller.pid = 12;
  std::memcpy(caller.comm_bytes.data(), "cc1", 3);
  caller.comm_size = 3;
  const uint32_t process = trace.DefineProcess(caller);
  const uint32_t root = trace.DefinePath(0, "");
  Event event;
  event.op = Op::rename_;
  event.name = "a";
  event.new_name = "b";
  event.Set(Field::kTime, TraceBuilder::kMonotonicNs + 5);
  event.Set(Field::kLatency, 250);
  event.Set(Field::kTid, 13);
  event.Set(Field::kUid, 1000);
  event.Set(Field::kGid, 100);
  event.Set(Field::kInode, 77);
  event.Set(Field::kFlags, 1);
  event.Set(Field::kInferred, 1);
  event.SetResult(0, EEXIST);
  trace.Add(event, {.parent = root, .new_parent = root, .process = process});
  trace.EndBlock();
  Open(trace.bytes());
  EXPECT_EQ(NextLine(),
            "{\"ts\":1767323045000000005,\"dur\":250,\"op\":\"rename\","
            "\"tid\":13,\"pid\":12,\"uid\":1000,\"gid\":100,\"comm\":\"cc1\","
            "\"path\":\"/a\",\"path2\":\"/b\",\"ino\":77,\"flags\":1,"
            "\"result\":-1,\"errno\":\"EEXIST\",\"inferred\":true,"
            "\"tracer\":1,\"ppid\":0,\"sid\":0,\"pgid\":0}\n");
}

TEST_F(JsonlTest, UnknownArgumentsHaveTheirNamesFromTheTrace) {
  TraceBuilder trace;
  trace.AddRaw(0x10b, [](MessageWriter& out) {
    out.PutText(30000, "x");
    out.PutText(Info(Field::kUid).arg_id, std::string("\x01\x02", 2));
  });
  trace.EndBlock();
  Open(trace.bytes());
  EXPECT_EQ(json::parse(NextLine()), json({{"op", "open"},
                                           {"tracer", 1},
                                           {"ARG_30000_b64", "eA=="},
                                           {"ARG_UID_b64", "AQI="}}));
}

TEST_F(JsonlTest, Malicious_HugeTextsFitTheirLine) {
  for (const char c : {'a', '\x01', '\xff'}) {
    TraceBuilder trace;
    const std::string huge(500'000, c);
    trace.AddRaw(0x10b, [&](MessageWriter& out) {
      out.PutText(Info(Field::kName).arg_id, huge);
      out.PutText(Info(Field::kComm).arg_id, huge);
    });
    trace.EndBlock();
    Open(trace.bytes());
    const std::string line = NextLine();
    EXPECT_EQ(json::parse(line), Expected(record_));
  }
}

}  // namespace
}  // namespace tracefs
