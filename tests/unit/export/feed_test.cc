// Feeds: every operation with random contents becomes one line that has what
// the schemas require; hostile names stay inside their quotes.
#include "tracefs/feed/feed.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/support/golden_traces.h"
#include "tests/support/random_event.h"
#include "tests/support/trace_builder.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs {
namespace {

using nlohmann::json;
using test::TraceBuilder;

template <typename Use>
void ForEachRecord(const std::string& trace, Use use) {
  format::TraceReader reader(
      std::make_unique<format::MemorySource>(AsBytes(trace)),
      format::TraceReaderOptions{});
  std::unique_ptr<format::BlockDecoder> block;
  for (;;) {
    const auto step = reader.NextBlock(&block);
    ASSERT_TRUE(step.ok());
    if (*step != format::ReadStep::kItem) break;
    while (!block->at_end()) {
      format::Record record;
      block->Next(&record);
      use(record);
    }
  }
}

// Golden traces: every operation, awkward names, records without path or time.
std::vector<std::string> Traces() {
  auto all = test::MakeGoldenTraces();
  return {all.at("every_operation"), all.at("awkward_names"),
          all.at("order_and_resolution"), all.at("later_version")};
}

void CheckLine(const std::string& line) {
  for (const char c : line) {
    ASSERT_GE(static_cast<unsigned char>(c), 0x20) << line;
  }
}

void CheckOcsf(const json& e) {
  for (const char* key : {"activity_id", "category_uid", "class_uid",
                          "type_uid", "time", "severity_id"}) {
    ASSERT_TRUE(e.at(key).is_number_unsigned()) << key;
  }
  ASSERT_EQ(e.at("type_uid"), e.at("class_uid").get<int>() * 100 +
                                  e.at("activity_id").get<int>());
  ASSERT_EQ(e.at("metadata").at("version"), "1.3.0");
  ASSERT_TRUE(e.at("metadata").at("product").contains("vendor_name"));
  ASSERT_TRUE(e.at("device").contains("type_id"));
  ASSERT_TRUE(e.at("device").contains("hostname"));
}

TEST(FeedTest, OcsfHasAllThatIsRequired) {
  size_t events = 0;
  for (const std::string& trace : Traces()) {
    const auto feed = MakeFeedFormat("ocsf");
    ForEachRecord(trace, [&](const format::Record& record) {
      std::string line;
      feed->Append(record, &line);
      CheckLine(line);
      const json e = json::parse(line);
      CheckOcsf(e);
      ASSERT_EQ(e.at("class_uid"), 1001);
      ASSERT_FALSE(e.at("file").at("name").get<std::string>().empty());
      ASSERT_TRUE(e.at("file").at("type_id").is_number());
      ASSERT_TRUE(e.at("actor").is_object());
      ASSERT_FALSE(e.at("actor").empty());
      ++events;
    });
  }
  EXPECT_GT(events, 60u);
}

TEST(FeedTest, OcsfNamesTheActivityOfEachOperation) {
  const std::map<std::string, int> wanted = {
      {"create", 1},  {"mkdir", 1},    {"symlink", 1}, {"link", 1},
      {"mknod", 1},   {"read", 2},     {"readdir", 2}, {"write", 3},
      {"unlink", 4},  {"rmdir", 4},    {"rename", 5},  {"setxattr", 6},
      {"getattr", 8}, {"getxattr", 8}, {"lookup", 8},  {"open", 14},
      {"flush", 99},  {"release", 99}};
  std::map<std::string, int> found;
  const auto feed = MakeFeedFormat("ocsf");
  ForEachRecord(Traces()[0], [&](const format::Record& record) {
    std::string line;
    feed->Append(record, &line);
    const json e = json::parse(line);
    found[std::string(OpName(record.event.op))] =
        e.at("activity_id").get<int>();
  });
  for (const auto& [op, activity] : wanted) {
    EXPECT_EQ(found.at(op), activity) << op;
  }
}

TEST(FeedTest, EcsHasItsFieldsInTheRightTypes) {
  for (const std::string& trace : Traces()) {
    const auto feed = MakeFeedFormat("ecs");
    uint64_t sequence = 0;
    ForEachRecord(trace, [&](const format::Record& record) {
      std::string line;
      feed->Append(record, &line);
      CheckLine(line);
      const json e = json::parse(line);
      ASSERT_EQ(e.at("@timestamp").get<std::string>().size(), 30u);
      ASSERT_TRUE(e.at("ecs").at("version").is_string());
      ASSERT_EQ(e.at("event").at("category"), json::array({"file"}));
      ASSERT_EQ(e.at("event").at("type").size(), 1u);
      ASSERT_EQ(e.at("event").at("sequence"), ++sequence);
      ASSERT_EQ(e.at("event").at("action"), OpName(record.event.op));
      const bool failed = record.event.Has(Field::kErrno) &&
                          record.event.Get(Field::kErrno) != 0;
      ASSERT_EQ(e.contains("error"), failed);
    });
  }
}

TEST(FeedTest, CefEscapesWhatItSeparatesWith) {
  for (const std::string& trace : Traces()) {
    const auto feed = MakeFeedFormat("cef");
    ForEachRecord(trace, [&](const format::Record& record) {
      std::string line;
      feed->Append(record, &line);
      CheckLine(line);
      ASSERT_TRUE(line.starts_with("CEF:0|Tracefs|Tracefs|"));
    });
  }
  TraceBuilder trace;
  Event event;
  event.op = Op::unlink_;
  event.Set(Field::kTime, TraceBuilder::kMonotonicNs);
  event.SetResult(0, 0);
  event.name = "a=b|c\\d\ne";
  trace.Add(event, {.parent = trace.DefinePath(0, "")});
  trace.EndBlock();
  trace.Finish();
  ForEachRecord(trace.bytes(), [&](const format::Record& record) {
    std::string line;
    MakeFeedFormat("cef")->Append(record, &line);
    EXPECT_NE(line.find("filePath=/a\\=b|c\\\\d\\ne fname="), std::string::npos)
        << line;
  });
}

TEST(FeedTest, LossesAreEventsToo) {
  format::TraceContext trace;
  const FeedLoss loss{.real_ns = TraceBuilder::kRealNs,
                      .count = 17,
                      .reason = "queue_full",
                      .trace = &trace};
  std::string line;
  MakeFeedFormat("ocsf")->AppendLoss(loss, &line);
  const json ocsf = json::parse(line);
  CheckOcsf(ocsf);
  EXPECT_EQ(ocsf.at("count"), 17);
  line.clear();
  MakeFeedFormat("ecs")->AppendLoss(loss, &line);
  const json ecs = json::parse(line);
  EXPECT_EQ(ecs.at("event").at("kind"), "pipeline_error");
  EXPECT_EQ(ecs.at("tracefs").at("lost"), 17);
  line.clear();
  MakeFeedFormat("cef")->AppendLoss(loss, &line);
  EXPECT_NE(line.find("|loss|"), std::string::npos);
  EXPECT_NE(line.find(" cnt=17 reason=queue_full"), std::string::npos) << line;
}

TEST(FeedTest, UnknownFeedsAreNone) {
  EXPECT_EQ(MakeFeedFormat("leef"), nullptr);
  for (const FeedRow& feed : kFeeds) {
    EXPECT_NE(MakeFeedFormat(feed.name), nullptr);
  }
}

}  // namespace
}  // namespace tracefs
