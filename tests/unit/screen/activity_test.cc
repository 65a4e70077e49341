// Activity and sheets: what is counted, in which order it is shown, bounded
// memory, totals that add up; terms that mean what the filter language says.
#include "tracefs/screen/activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numeric>
#include <random>

#include "tracefs/screen/records.h"
#include "tracefs/screen/sheet.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::screen {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
using NameList = std::vector<std::string>;

class ActivityTest : public ::testing::Test {
 protected:
  void Operation(Op op, std::string_view path, std::string_view comm,
                 uint64_t ns, int error = 0, uint64_t bytes = 0,
                 uint32_t pid = 42, uint32_t ppid = 1) {
    format::Record record;
    record.event.op = op;
    record.event.SetResult(static_cast<int64_t>(bytes), error);
    record.event.Set(Field::kLatency, ns);
    record.event.Set(Field::kPid, pid);
    record.event.Set(Field::kPpid, ppid);
    comm.copy(record.caller.comm_bytes.data(), comm.size());
    record.caller.comm_size = static_cast<uint8_t>(comm.size());
    record.caller.pid = pid;
    record.event.caller = &record.caller;
    record.text[format::Record::TextIndex(Field::kPath)] = path;
    record.text_present |= 1u << format::Record::TextIndex(Field::kPath);
    CountRecord(record, 0, &activity_);
  }
  Sheet Of(Group group, Column sort = Column::kCount, bool all = true) {
    options_.group = group;
    options_.sort = sort;
    return MakeSheet(activity_.table(all), options_);
  }
  static NameList Names(const Sheet& sheet) {
    NameList names;
    for (const Row& row : sheet.rows) {
      names.push_back(std::string(2 * row.depth, ' ') + row.name);
    }
    return names;
  }
  static uint64_t Sum(const Sheet& sheet) {
    return std::accumulate(
        sheet.rows.begin(), sheet.rows.end(), uint64_t{0},
        [](uint64_t sum, const Row& row) { return sum + row.counts.count; });
  }
  static const Row& Find(const Sheet& sheet, std::string_view name) {
    for (const Row& row : sheet.rows) {
      if (row.name == name) return row;
    }
    static const Row none;
    ADD_FAILURE() << name;
    return none;
  }

  Activity activity_;
  SheetOptions options_;
};

TEST_F(ActivityTest, EachOperationCountsForItsOpProcessFileAndDirectory) {
  Operation(Op::read_, "/a/b/c", "cat", 1000, 0, 4096, 40);
  Operation(Op::read_, "/a/b/c", "cat", 3000, EIO, 0, 40);
  Operation(Op::write_, "/a/d", "dd", 9000, 0, 100, 41);
  Operation(Op::readdir_, "/a", "ls", 500, 0, 800, 42);
  Operation(Op::lookup_, "/top", "ls", 1, 0, 0, 42);
  activity_.EndInterval(0, kSecond);
  const Sheet ops = Of(Group::kOp);
  EXPECT_EQ(ops.total.count, 5u);
  EXPECT_EQ(ops.total.errors, 1u);
  EXPECT_EQ(ops.total.bytes, 4196u);
  EXPECT_EQ(ops.total.time_ns, 13501u);
  EXPECT_EQ(Find(ops, "read").counts.bytes, 4096u);
  EXPECT_EQ(Find(ops, "read").counts.errors, 1u);
  EXPECT_EQ(Find(Of(Group::kProcess), "cat[40]").counts.count, 2u);
  EXPECT_EQ(Find(Of(Group::kFile), "/a/b/c").counts.time_ns, 4000u);
  const Sheet directories = Of(Group::kDirectory);
  EXPECT_EQ(Find(directories, "/a").counts.count, 1u);  // write
  EXPECT_EQ(Find(directories, "/").counts.count, 2u);   // readdir, lookup
  EXPECT_EQ(Find(directories, "/a/b").counts.count, 2u);
  EXPECT_EQ(Names(Of(Group::kError)), NameList{"EIO"});
  EXPECT_EQ(Find(Of(Group::kUser), "(not known)").counts.count, 5u);
}

TEST_F(ActivityTest, EveryColumnSorts) {
  for (int i = 0; i < 3; ++i) Operation(Op::lookup_, "/often", "p", 10);
  Operation(Op::read_, "/slow", "p", 99999);
  Operation(Op::open_, "/bad", "p", 20, ENOENT);
  Operation(Op::write_, "/big", "p", 30, 0, 1000);
  activity_.EndInterval(0, kSecond);
  EXPECT_EQ(Names(Of(Group::kFile, Column::kCount))[0], "/often");
  EXPECT_EQ(Names(Of(Group::kFile, Column::kTime))[0], "/slow");
  EXPECT_EQ(Names(Of(Group::kFile, Column::kErrors))[0], "/bad");
  EXPECT_EQ(Names(Of(Group::kFile, Column::kBytes))[0], "/big");
  for (const Column column : {Column::kMean, Column::kP50, Column::kP90,
                              Column::kP99, Column::kMax}) {
    options_.ascending = false;
    EXPECT_EQ(Names(Of(Group::kFile, column))[0], "/slow");
    options_.ascending = true;
    EXPECT_EQ(Names(Of(Group::kFile, column))[0], "/often");
  }
  options_.ascending = false;
  EXPECT_EQ(Names(Of(Group::kFile, Column::kName)),
            (NameList{"/bad", "/big", "/often", "/slow"}));
}

TEST_F(ActivityTest, ACopyIsWrittenToItsDestination) {
  format::Record record;
  record.event.op = Op::copy_file_range_;
  record.event.SetResult(100, 0);
  for (const auto& [field, path] : {std::pair{Field::kPath, "/a/in"},
                                    std::pair{Field::kNewPath, "/b/out"}}) {
    record.text[format::Record::TextIndex(field)] = path;
    record.text_present |= 1u << format::Record::TextIndex(field);
  }
  CountRecord(record, 0, &activity_);
  activity_.EndInterval(0, kSecond);
  const auto counts = [&](Group group, std::string_view name) {
    const Row row = Find(Of(group), name);
    return std::pair(row.counts.count, row.counts.bytes);
  };
  using Counts = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(counts(Group::kFile, "/a/in"), Counts(1, 100));
  EXPECT_EQ(counts(Group::kFile, "/b/out"), Counts(0, 100));
  EXPECT_EQ(counts(Group::kDirectory, "/b"), Counts(0, 100));
  EXPECT_EQ(counts(Group::kOp, "copy_file_range"), Counts(1, 100));
  EXPECT_EQ(Of(Group::kFile).total.bytes, 100u) << "moved once";
  options_.drill.terms = {{Group::kDirectory, 0, "/b"}};
  EXPECT_EQ(Of(Group::kOp).total.bytes, 100u);
}

TEST_F(ActivityTest, DrillsKeepWhatTheyName) {
  Operation(Op::read_, "/a/x", "cat", 1, 0, 0, 7);
  Operation(Op::read_, "/a/y", "cat", 1, 0, 0, 8);
  Operation(Op::write_, "/a/x", "cat", 1, EIO, 0, 7);
  Operation(Op::opendir_, "/a", "ls", 1, 0, 0, 9);
  Operation(Op::getattr_, "/ab", "ls", 1, 0, 0, 9);
  activity_.EndInterval(0, kSecond);
  const auto kept = [&](std::vector<Term> terms) {
    options_.drill.terms = std::move(terms);
    return Of(Group::kOp).total.count;
  };
  EXPECT_EQ(kept({{Group::kProcess, 7, ""}}), 2u);
  EXPECT_EQ(
      kept({{Group::kProcess, 7, ""}, {Group::kOp, Index(Op::read_), ""}}), 1u);
  EXPECT_EQ(kept({{Group::kCommand, 0, "cat"}}), 3u);
  EXPECT_EQ(kept({{Group::kFile, 0, "/a/x"}}), 2u);
  EXPECT_EQ(kept({{Group::kDirectory, 0, "/a"}}), 3u);  // not /a itself
  EXPECT_EQ(kept({{Group::kTree, 0, "/a"}}), 4u);       // not /ab
  EXPECT_EQ(kept({{Group::kTree, 0, "/"}}), 5u);
  EXPECT_EQ(kept({{Group::kError, EIO, ""}}), 1u);
}

TEST_F(ActivityTest, TextsOfDrillsAreFilters) {
  Drill drill;
  drill.base = "op = read OR op = write";
  EXPECT_EQ(drill.FilterText(), "op = read OR op = write");
  drill.terms = {{Group::kProcess, 7, ""},
                 {Group::kFile, 0, "/a \"b\"\n\x1b\xff*"},
                 {Group::kTree, 0, "/a[1]*"},
                 {Group::kError, ENOENT, ""},
                 {Group::kProcess, kUnknown, ""}};
  EXPECT_EQ(drill.FilterText(),
            "(op = read OR op = write) AND cpid = 7 AND "
            "path = \"/a \\\"b\\\"\\x0a\\x1b\\xff*\" AND "
            "(path = \"/a[1]*\" OR path ~ \"/a\\\\[1]\\\\*/**\") AND "
            "errno = ENOENT AND cpid = unknown");
}

TEST_F(ActivityTest, ProcessesStandBelowWhoBeganThem) {
  Operation(Op::read_, "/x", "make", 1, 0, 0, 10, 1);
  Operation(Op::read_, "/x", "cc", 1, 0, 0, 11, 10);
  for (int i = 0; i < 5; ++i) {
    Operation(Op::read_, "/x", "as", 1, 0, 0, 12, 10);
  }
  Operation(Op::read_, "/x", "sh", 1, 0, 0, 5, 4);
  Operation(Op::read_, "/x", "loop", 1, 0, 0, 20, 21);
  Operation(Op::read_, "/x", "loop", 1, 0, 0, 21, 20);
  activity_.EndInterval(0, kSecond);
  options_.tree = true;
  const Sheet sheet = Of(Group::kProcess);
  const NameList names = Names(sheet);
  const auto at = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_EQ(at("  as[12]"), at("make[10]") + 1);
  EXPECT_EQ(at("  cc[11]"), at("make[10]") + 2);
  EXPECT_LT(at("sh[5]"), static_cast<ptrdiff_t>(names.size()));
  EXPECT_EQ(names.size(), 6u);  // a ring of parents loses nobody
  EXPECT_EQ(Sum(sheet), sheet.total.count);
  options_.folded = {Find(sheet, "make[10]").id};
  EXPECT_EQ(Names(Of(Group::kProcess)).size(), 4u);
}

TEST_F(ActivityTest, DirectoriesAsATreeHaveWhatIsBelow) {
  Operation(Op::read_, "/a/b/c", "p", 1);
  Operation(Op::read_, "/a/d", "p", 1);
  Operation(Op::read_, "/e", "p", 1);
  activity_.EndInterval(0, kSecond);
  options_.tree = true;
  const Sheet sheet = Of(Group::kDirectory);
  EXPECT_EQ(Names(sheet), (NameList{"/", "  /a", "    /a/b"}));
  EXPECT_EQ(Find(sheet, "/").counts.count, 3u);
  EXPECT_EQ(Find(sheet, "/a").counts.count, 2u);
  EXPECT_EQ(sheet.total.count, 3u);
}

TEST_F(ActivityTest, OnlyRowsWithTheTextAreShownAndTheTotalStays) {
  Operation(Op::read_, "/src/Main.cc", "p", 1);
  Operation(Op::read_, "/src/other.h", "p", 1);
  activity_.EndInterval(0, kSecond);
  options_.find = "main";
  const Sheet sheet = Of(Group::kFile);
  EXPECT_EQ(Names(sheet), NameList{"/src/Main.cc"});
  EXPECT_EQ(sheet.total.count, 2u);
}

TEST_F(ActivityTest, IntervalsBeginAnewAndAllIsKept) {
  Operation(Op::read_, "/one", "p", 1);
  activity_.EndInterval(0, kSecond);
  Operation(Op::write_, "/two", "p", 1);
  EXPECT_EQ(Names(Of(Group::kFile, Column::kCount, false)), NameList{"/one"});
  activity_.EndInterval(0, 2 * kSecond);
  EXPECT_EQ(Names(Of(Group::kFile, Column::kCount, false)), NameList{"/two"});
  EXPECT_EQ(Names(Of(Group::kFile, Column::kName)), (NameList{"/one", "/two"}));
  EXPECT_EQ(activity_.duration_ns(false), 2 * kSecond);
  EXPECT_EQ(activity_.duration_ns(true), 3 * kSecond);
  ASSERT_EQ(activity_.past().size(), 2u);
  EXPECT_EQ(activity_.past()[1].count, 1u);
  activity_.Reset();
  EXPECT_TRUE(Of(Group::kFile).rows.empty());
}

TEST_F(ActivityTest, EachMountHasItsOwnIntervals) {
  ActivityKey key;
  key.op = Op::read_;
  activity_.At(key).count = 3;
  key.source = 1;
  activity_.At(key).count = 5;
  activity_.EndInterval(0, kSecond);
  EXPECT_EQ(Of(Group::kOp, Column::kCount, false).total.count, 3u);
  activity_.EndInterval(1, kSecond);
  activity_.EndInterval(0, kSecond);  // nothing
  EXPECT_EQ(Of(Group::kOp, Column::kCount, false).total.count, 5u);
  options_.sources = {"/one", "/two"};
  const Sheet mounts = Of(Group::kSource);
  EXPECT_EQ(Names(mounts), (NameList{"/two", "/one"}));
}

TEST_F(ActivityTest, ManyFilesTakeBoundedMemoryAndTotalsAddUp) {
  constexpr int kFiles = 60000;
  for (int i = 0; i < kFiles; ++i) {
    Operation(Op::read_, "/cold/" + std::to_string(i), "p", 1);
    if (i % 4 == 0) Operation(Op::read_, "/hot", "p", 1);
    if (i % 10000 == 0) activity_.EndInterval(0, kSecond);
  }
  activity_.EndInterval(0, kSecond);
  EXPECT_LE(activity_.table(true).cells().size(), ActivityTable::kMaxCells + 1);
  const Sheet files = Of(Group::kFile);
  EXPECT_EQ(Sum(files), kFiles + kFiles / 4u);
  EXPECT_EQ(files.total.count, kFiles + kFiles / 4u);
  EXPECT_EQ(files.rows.front().name, "/hot");
  EXPECT_EQ(files.rows.front().counts.count, kFiles / 4u);
  EXPECT_EQ(files.rows.back().name, "(other)");
  EXPECT_TRUE(files.rows.back().other);
  // What they do, and who, is told all the same.
  EXPECT_EQ(Names(Of(Group::kOp)), NameList{"read"});
  EXPECT_EQ(Of(Group::kCommand).rows.front().counts.count,
            kFiles + kFiles / 4u);
}

TEST_F(ActivityTest, Malicious_CountsOfAMountMayHoldAnything) {
  format::AggregateRecord record;
  record.count = 7;
  record.key = {{static_cast<uint16_t>(0x7777), 1, "x"},
                {Info(Field::kPath).arg_id, 0, "/p"}};
  CountAggregate(record, 0, &activity_);  // no operation
  record.latency.buckets = {{65535, 1}, {3, 2}};
  CountAggregate(record, 0, &activity_);
  activity_.EndInterval(0, 0);
  const Sheet sheet = Of(Group::kFile);
  EXPECT_EQ(Names(sheet), NameList{"(other)"});
  EXPECT_EQ(sheet.total.count, 14u);
}

}  // namespace
}  // namespace tracefs::screen
