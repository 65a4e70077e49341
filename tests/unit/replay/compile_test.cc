// From files to plans: what of a trace is taken, what a plan as input may be
// asked, and why changes may be missing.
#include "tracefs/replay/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tests/unit/replay/told_plan.h"
#include "tracefs/replay/undo_rooms.h"

namespace tracefs::replay {
namespace {

using namespace test;  // NOLINT: what this test is about
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CompileTest : public testing::Test {
 protected:
  // A trace of a file made once a second, by processes 1, 2, …
  void Write(int count, const std::function<void(TraceBuilder&)>& before = {}) {
    TraceBuilder trace;
    if (before) before(trace);
    const uint32_t root = trace.DefinePath(0, "");
    for (int i = 0; i < count; ++i) {
      names_.push_back("f" + std::to_string(i));
      CallerInfo caller;
      caller.pid = caller.tid = static_cast<uint32_t>(i + 1);
      caller.serial = static_cast<uint64_t>(i + 1);
      Event e = Create(names_.back().c_str(), static_cast<uint64_t>(i + 5),
                       static_cast<uint64_t>(i) * 1'000'000, 10);
      trace.Add(e, {.path = 0,
                    .parent = root,
                    .new_parent = 0,
                    .process = trace.DefineProcess(caller)});
    }
    trace.EndBlock();
    trace.Finish();
    options_.traces = {folder_.Write("t.trace", trace.bytes())};
  }
  std::vector<std::string> Actions(bool marked = false) {
    const auto compiled = Compile(options_, false);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    std::vector<std::string> names;
    if (!compiled.ok()) return names;
    std::vector<std::vector<std::byte>> chunks;
    ForEachIn(compiled->plan.get(), ChunkKind::kActions, &chunks,
              [&](ByteSpan chunk, size_t* size) {
                Action a;
                EXPECT_TRUE(DecodeAction(chunk, &a, size).ok());
                if (!marked || a.Has(kMarked)) names.emplace_back(a.name);
              });
    return names;
  }
  std::string LeftOut(
      const std::function<void(format::TraceHeader&)>& change = {}) {
    Write(2, [&](TraceBuilder& trace) {
      if (change) change(trace.header());
    });
    const auto compiled = Compile(options_, true);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    return compiled.ok() ? compiled->left_out : "";
  }
  std::string Refused() {
    const auto compiled = Compile(options_, false);
    EXPECT_FALSE(compiled.ok());
    return compiled.status().message();
  }

  TempFolder folder_;
  std::vector<std::string> names_;
  CompileOptions options_;
};

TEST_F(CompileTest, PartsOfATraceAreBySequenceOrByTime) {
  names_.reserve(100);
  Write(5);
  options_.builder.closure = Closure::kNone;
  EXPECT_THAT(Actions(), ElementsAre("f0", "f1", "f2", "f3", "f4"));
  options_.from = TracePoint{.sequence = 2, .time = {}};
  EXPECT_THAT(Actions(), ElementsAre("f1", "f2", "f3", "f4"));
  options_.to = TracePoint{.sequence = 4, .time = {}};
  EXPECT_THAT(Actions(), ElementsAre("f1", "f2"));
  options_.from.reset();
  EXPECT_THAT(Actions(), ElementsAre("f0", "f1", "f2"));
  const auto after = [](const char* text) {
    const auto spec = ParseTimeSpec("--to", text, true);
    EXPECT_TRUE(spec.ok());
    return TracePoint{.sequence = {}, .time = *spec};
  };
  options_.to = after("+2s");
  EXPECT_THAT(Actions(), ElementsAre("f0", "f1"));
  options_.to.reset();
  options_.from = after("+3s");
  EXPECT_THAT(Actions(), ElementsAre("f3", "f4"));
  options_.from.reset();
  options_.filter = "name ~ \"f[13]\"";
  EXPECT_THAT(Actions(), ElementsAre("f1", "f3"));
  options_.filter = "name ~";
  EXPECT_THAT(Refused(), HasSubstr("--filter"));
}

TEST_F(CompileTest, WhatEndedLaterIsLeftOutOfATraceThatGoesOn) {
  names_.reserve(100);
  Write(3);
  const uint64_t begin = TraceBuilder::kRealNs;
  // The second is made a second later, for ten microseconds.
  options_.ended_by_ns = begin + 1'000'000'000 + 10'000;
  EXPECT_THAT(Actions(), ElementsAre("f0", "f1"));
  options_.ended_by_ns -= 1;
  EXPECT_THAT(Actions(), ElementsAre("f0"));
}

TEST_F(CompileTest, WhatIsToBeUndoneIsMarked) {
  names_.reserve(100);
  Write(3);
  EXPECT_THAT(Actions(true), IsEmpty());
  options_.undo = "name = \"f1\"";
  EXPECT_THAT(Actions(true), ElementsAre("f1"));
  options_.undo = "cpid = 3";
  EXPECT_THAT(Actions(true), ElementsAre("f2"));
  options_.undo = "cexe = \"x\"";
  options_.undo_origin = "--only";
  EXPECT_THAT(Refused(), HasSubstr("--only: no operation of the trace tells"));
  options_.undo = "cpid =";
  EXPECT_THAT(Refused(), HasSubstr("--only"));
}

// One was killed, whose room is there; it had taken back one that was killed
// before. A third has ended in order.
TEST_F(CompileTest, WhatKilledUndosDidIsTakenBackAsWell) {
  const std::string room(kUndoRoom);
  const std::vector<std::string> rooms = {room + "one", room + "two",
                                          room + "three"};
  TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  uint64_t at = 0;
  std::vector<std::string> files = {"a", "b", "c"};
  const auto add = [&](Event e, uint32_t pid) {
    CallerInfo caller;
    caller.pid = caller.tid = pid;
    caller.serial = pid;
    trace.Add(e, {.path = 0,
                  .parent = root,
                  .new_parent = e.Has(Field::kNewParentInode) ? root : 0,
                  .process = trace.DefineProcess(caller)});
  };
  const auto make = [&](uint32_t pid, size_t i) {
    Event e = Named(Op::mkdir_, rooms[i].c_str(), 10 + i, at += 10);
    e.Set(Field::kArgMode, 0700);
    add(e, pid);
    add(Create(files[i].c_str(), 20 + i, at += 10), pid);
  };
  make(1, 0);
  make(2, 1);
  Event move = Moved(rooms[0].c_str(), "moved", 10, at += 10);
  add(move, 2);
  make(3, 2);
  Event nobody = Create("of nobody", 30, at += 10);
  nobody.present &= ~Bit(Field::kTid);
  trace.Add(nobody, {.path = 0, .parent = root, .new_parent = 0, .process = 0});
  trace.EndBlock();
  trace.Finish();
  options_.traces = {folder_.Write("t.trace", trace.bytes())};
  options_.undo = "name = \"none\"";
  EXPECT_THAT(Actions(true), IsEmpty());
  options_.left_rooms = {rooms[0]};
  EXPECT_THAT(Actions(true), ElementsAre(rooms[0], "a"));
  options_.left_rooms = {rooms[1]};
  EXPECT_THAT(Actions(true),
              ElementsAre(rooms[0], "a", rooms[1], "b", rooms[0]));
  options_.left_rooms = {room + "of nobody"};
  EXPECT_THAT(Actions(true), IsEmpty());
}

TEST_F(CompileTest, WhyChangesMayBeMissing) {
  names_.reserve(100);
  EXPECT_EQ(LeftOut(), "");
  const auto filter = [&](const char* text) {
    return LeftOut(
        [&](format::TraceHeader& header) { header.Set("filter.text", text); });
  };
  EXPECT_EQ(filter(" \n"), "");
  EXPECT_EQ(filter("op = write"), "its filter leaves some out: { op = write }");
  EXPECT_EQ(filter(" cuid = 0"), "its filter leaves some out: { cuid = 0 }");
  EXPECT_EQ(filter("op != read"), "");
  EXPECT_EQ(filter("no filter"), "its filter leaves some out: { no filter }");
}

TEST_F(CompileTest, HeadersTellWhereThingsWere) {
  names_.reserve(100);
  Write(1, [](TraceBuilder& trace) {
    trace.header().Set("keep.folder", "/kept");
    trace.header().Set("mount.point", "/mnt");
  });
  const auto compiled = Compile(options_, true);
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->kept, "/kept");
  EXPECT_EQ(compiled->mount_point, "/mnt");
  EXPECT_FALSE(compiled->plan) << "it was only looked at";
  EXPECT_EQ(compiled->header.operations, 1u);
  EXPECT_TRUE(compiled->from_trace);
}

TEST_F(CompileTest, APlanIsTakenAsItIs) {
  names_.reserve(100);
  Write(3);
  options_.plan = folder_.Path("plan");
  ASSERT_TRUE(Compile(options_, false).ok());
  CompileOptions of_plan;
  of_plan.traces = {options_.plan};
  auto again = Compile(of_plan, false);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->header.operations, 3u);
  EXPECT_FALSE(again->from_trace);
  EXPECT_TRUE(again->plan);
  options_.plan.clear();
  const auto refused = [&](const std::function<void(CompileOptions&)>& change) {
    CompileOptions asked = of_plan;
    change(asked);
    return Compile(asked, false).status().message();
  };
  EXPECT_THAT(refused([](auto& o) { o.filter = "op = read"; }),
              HasSubstr("is a plan: select when it is made"));
  EXPECT_THAT(
      refused([](auto& o) { o.from = TracePoint{.sequence = 1, .time = {}}; }),
      HasSubstr("is a plan"));
  EXPECT_THAT(
      refused([](auto& o) { o.to = TracePoint{.sequence = 1, .time = {}}; }),
      HasSubstr("is a plan"));
  EXPECT_EQ(refused([](auto& o) { o.undo = "op = read"; }),
            "--undo takes a trace, not a plan");
  ASSERT_EQ(::truncate(of_plan.traces[0].c_str(), 100), 0);
  EXPECT_THAT(Compile(of_plan, false).status().message(), HasSubstr("plan"));
  of_plan.traces = {folder_.Path("none")};
  EXPECT_EQ(Compile(of_plan, false).status().error(), ENOENT);
  of_plan.traces = {folder_.Write("short", "TFP")};
  EXPECT_FALSE(Compile(of_plan, false).ok());
}

TEST_F(CompileTest, EachPartOfARotatedTraceIsTakenOnce) {
  const std::string one = folder_.Write("a.trace", "");
  const std::string other = folder_.Write("b.trace", "");
  EXPECT_THAT(WithAllParts({one, other, one}), ElementsAre(one, other));
  ::setenv("TMPDIR", "/some/where", 1);
  EXPECT_EQ(TemporaryFolder(), "/some/where");
  ::setenv("TMPDIR", "", 1);
  EXPECT_EQ(TemporaryFolder(), "/tmp");
  ::unsetenv("TMPDIR");
  EXPECT_EQ(TemporaryFolder(), "/tmp");
}

}  // namespace
}  // namespace tracefs::replay
