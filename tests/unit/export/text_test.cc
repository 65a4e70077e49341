// The text format: lines a person would expect.
#include "tracefs/export/text.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <optional>
#include <string>

#include "tests/support/random_event.h"
#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"

namespace tracefs {
namespace {

using format::ArgId;
using format::MessageWriter;
using test::RandomEvent;
using test::References;
using test::TraceBuilder;

class TextTest : public testing::Test {
 protected:
  TextTest() {
    CallerInfo caller;
    caller.pid = 812;
    std::memcpy(caller.comm_bytes.data(), "cc1", 3);
    caller.comm_size = 3;
    process_ = trace_.DefineProcess(caller);
    root_ = trace_.DefinePath(0, "");
    src_ = trace_.DefinePath(root_, "src");
    file_ = trace_.DefinePath(src_, "a.c");
    event_.Set(Field::kTime, TraceBuilder::kMonotonicNs + 123'456'789);
    event_.Set(Field::kLatency, 12'400);
    event_.Set(Field::kTid, 813);
    event_.Set(Field::kUid, 1000);
  }
  std::string Line(const References& references,
                   ExportOptions options = {.time = TimeStyle::kUtc}) {
    trace_.Add(event_, references);
    return LineOfBlock(options);
  }
  std::string LineOfBlock(ExportOptions options = {.time = TimeStyle::kUtc}) {
    trace_.EndBlock();
    StringOutput out;
    const auto exporter = MakeTextExporter(out, options);
    test::ReadRecords(trace_.bytes(), [&](const format::Record& record) {
      exporter->Write(record);
    });
    EXPECT_TRUE(out.Flush().ok());
    return out.text();
  }

  TraceBuilder trace_;
  Event event_;
  uint32_t process_, root_, src_, file_;
};

constexpr std::string_view kStart =
    "03:04:05.123456 12.4 µs cc1[812/813]         u1000 ";

TEST_F(TextTest, Open) {
  event_.op = Op::open_;
  event_.Set(Field::kFlags, O_RDONLY | O_CLOEXEC);
  event_.Set(Field::kFh, 12);
  event_.SetResult(0, 0);
  EXPECT_EQ(Line({.path = file_, .process = process_}),
            std::string(kStart) +
                "open     /src/a.c O_RDONLY|O_CLOEXEC fh=12 -> 0\n");
}

TEST_F(TextTest, AFailureHasTheNameOfItsError) {
  event_.op = Op::lookup_;
  event_.name = "no such\nfile";
  event_.SetResult(0, ENOENT);
  EXPECT_EQ(
      Line({.parent = src_, .process = process_}),
      std::string(kStart) + "lookup   \"/src/no such\\nfile\" -> ENOENT\n");
}

TEST_F(TextTest, AWriteHasItsRange) {
  event_.op = Op::write_;
  event_.Set(Field::kOffset, 8192);
  event_.Set(Field::kLength, 4096);
  event_.Set(Field::kFh, 3);
  event_.SetResult(4096, 0);
  EXPECT_EQ(Line({.path = file_, .process = process_}),
            std::string(kStart) +
                "write    /src/a.c offset=8192 size=4096 fh=3 -> 4096\n");
}

TEST_F(TextTest, ModesAreOctalAndAttributesAsInLs) {
  event_.op = Op::mkdir_;
  event_.name = "new";
  event_.Set(Field::kArgMode, 0755);
  event_.Set(Field::kUmask, 022);
  event_.Set(Field::kMode, S_IFDIR | 0755);
  event_.Set(Field::kNlink, 2);
  event_.Set(Field::kFuid, 0);
  event_.Set(Field::kFgid, 5);
  event_.Set(Field::kSize, 40);
  event_.SetResult(0, 0);
  EXPECT_EQ(Line({.parent = src_, .process = process_}),
            std::string(kStart) +
                "mkdir    /src/new mode=0755 umask=022 -> 0 "
                "[drwxr-xr-x 2 0:5 40 B]\n");
}

TEST_F(TextTest, ATimeBefore1970HasItsSign) {
  event_.op = Op::setattr_;
  event_.Set(Field::kNewAtime, static_cast<uint64_t>(int64_t{-1}));
  event_.Set(Field::kNewMtime, static_cast<uint64_t>(int64_t{-2'500'000'000}));
  event_.SetResult(0, 0);
  EXPECT_EQ(Line({.path = file_, .process = process_}),
            std::string(kStart) +
                "setattr  /src/a.c new_atime=-0.000000001 "
                "new_mtime=-2.500000000 -> 0\n");
}

TEST_F(TextTest, ACopyHasBothPathsAndSaysWhatIsLeftOut) {
  event_.op = Op::copy_file_range_;
  event_.Set(Field::kDataLeftOut, 1);
  event_.SetResult(5, 0);
  EXPECT_EQ(Line({.path = file_, .new_parent = src_, .process = process_}),
            std::string(kStart) +
                "copy_file_range /src/a.c => /src "
                "data_left_out -> 5\n");
}

TEST_F(TextTest, RenameHasBothPaths) {
  event_.op = Op::rename_;
  event_.name = "a";
  event_.new_name = "b";
  event_.Set(Field::kFlags, 1);
  event_.SetResult(0, 0);
  EXPECT_EQ(
      Line({.parent = src_, .new_parent = root_, .process = process_}),
      std::string(kStart) + "rename   /src/a => /b RENAME_NOREPLACE -> 0\n");
}

TEST_F(TextTest, AnOperationAboutToRunHasNoResult) {
  event_.op = Op::unlink_;
  event_.before = true;
  event_.present &= ~Bit(Field::kLatency);
  event_.Set(Field::kInferred, 1);
  EXPECT_EQ(Line({.path = file_, .process = process_}),
            "03:04:05.123456       - ~cc1[812/813]        u1000 unlink   "
            "/src/a.c ...\n");
}

TEST_F(TextTest, SymlinkAndReadlinkHaveTheirTarget) {
  event_.op = Op::symlink_;
  event_.name = "ln";
  event_.target = "../x y";
  event_.SetResult(0, 0);
  EXPECT_EQ(Line({.parent = root_, .process = process_}),
            std::string(kStart) + "symlink  /ln => \"../x y\" -> 0\n");
}

TEST_F(TextTest, WithoutDetailsThereIsStillALine) {
  trace_.AddRaw(0x10b, [](MessageWriter&) {});
  EXPECT_EQ(LineOfBlock(),
            "--:--:--              - -                    -     open\n");
}

TEST_F(TextTest, TimesHaveTheDigitsTheTraceHas) {
  trace_.AddRaw(
      0x10b, [](MessageWriter& out) { out.Put<uint32_t>(ArgId::kTimeSec, 2); });
  EXPECT_EQ(LineOfBlock().substr(0, 9), "03:04:06 ");
}

TEST_F(TextTest, EpochAndLocalTimes) {
  event_.op = Op::statfs_;
  EXPECT_EQ(Line({}, {.time = TimeStyle::kEpoch}).substr(0, 21),
            "1767323045.123456789 ");
  setenv("TZ", "XYZ-05:30", 1);
  tzset();
  EXPECT_EQ(Line({}, {.time = TimeStyle::kLocal}).substr(0, 15),
            "08:34:05.123456");
  unsetenv("TZ");
  tzset();
}

TEST_F(TextTest, DurationsHaveThreeDigits) {
  const auto duration = [this](uint64_t ns) {
    event_.op = Op::statfs_;
    event_.Set(Field::kLatency, ns);
    trace_ = TraceBuilder();
    // µ is two bytes.
    const std::string line = Line({});
    const bool micro = line.substr(16, 8).find("µ") != std::string::npos;
    return line.substr(16, micro ? 8 : 7);
  };
  EXPECT_EQ(duration(0), "   0 ns");
  EXPECT_EQ(duration(999), " 999 ns");
  EXPECT_EQ(duration(1'234), "1.23 µs");
  EXPECT_EQ(duration(12'345), "12.3 µs");
  EXPECT_EQ(duration(123'456), " 123 µs");
  EXPECT_EQ(duration(1'234'567), "1.23 ms");
  EXPECT_EQ(duration(59'900'000'000), " 59.9 s");
}

TEST_F(TextTest, AnyRecordIsOnePrintableLine) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    trace_ = TraceBuilder();
    const uint32_t process = trace_.DefineProcess(test::RandomCaller(random));
    const RandomEvent event(random, static_cast<Op>(random() % kOpCount), 7);
    trace_.Add(event.event, {.process = process});
    const std::string line = LineOfBlock();
    ASSERT_EQ(line.find('\n'), line.size() - 1);
    for (const char c : line.substr(0, line.size() - 1)) {
      ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << line;
    }
  }
}

}  // namespace
}  // namespace tracefs
