// What is read and written by a copy, in groups and in questions about files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/group_counted.h"
#include "tracefs/query/grouping.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

using test::References;
using test::TraceBuilder;

struct File {
  uint32_t path = 0;
  uint64_t inode = 0;
  uint64_t handle = 0;
};

// A trace of a few operations on files, as a tracer of now writes it.
class Workload {
 public:
  Workload() {
    const uint32_t root = trace_.DefinePath(0, "");
    a_ = trace_.DefinePath(root, "a");
    const uint32_t b = trace_.DefinePath(root, "b");
    in = {trace_.DefinePath(a_, "in"), 7, 1};
    twin = {trace_.DefinePath(a_, "twin"), 8, 2};
    out = {trace_.DefinePath(b, "out.o"), 9, 3};
    CallerInfo caller;
    caller.pid = caller.tid = 42;
    process_ = trace_.DefineProcess(caller);
  }

  void Do(Op op, const File& file, uint64_t offset, int64_t result) {
    trace_.Add(Make(op, file, offset, result, 0),
               {.path = file.path, .process = process_});
  }
  void Copy(const File& from, uint64_t offset, const File& to,
            uint64_t to_offset, int64_t result, int error = 0) {
    Event event = Make(Op::copy_file_range_, from, offset, result, error);
    event.Set(Field::kInodeOut, to.inode);
    event.Set(Field::kFhOut, to.handle);
    event.Set(Field::kOffsetOut, to_offset);
    trace_.Add(event,
               {.path = from.path, .new_parent = to.path, .process = process_});
  }

  void ForEach(const std::function<void(const format::Record&)>& use) {
    if (!ended_) trace_.EndBlock();
    ended_ = true;
    test::ReadRecords(trace_.bytes(), use);
  }

  File in, twin, out;

 private:
  Event Make(Op op, const File& file, uint64_t offset, int64_t result,
             int error) {
    Event event;
    event.op = op;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + ++now_);
    event.Set(Field::kLatency, 5);
    event.Set(Field::kInode, file.inode);
    event.Set(Field::kFh, file.handle);
    event.Set(Field::kOffset, offset);
    event.SetResult(error == 0 ? result : -1, error);
    return event;
  }

  TraceBuilder trace_;
  uint32_t a_ = 0;
  uint32_t process_ = 0;
  uint64_t now_ = 0;
  bool ended_ = false;
};

std::string Shown(const Value& value) {
  if (!value.present) return "-";
  return value.text.empty() ? std::to_string(value.number) : value.text;
}

using Rows = std::map<std::string, std::string>;

// By its first column: the others with blanks between.
Rows ByFirst(const Table& table, size_t from = 1, size_t to = SIZE_MAX) {
  Rows rows;
  for (const Row& row : table.rows) {
    std::string text;
    for (size_t i = from; i < std::min(to, row.size()); ++i) {
      text += (text.empty() ? "" : " ") + Shown(row[i]);
    }
    rows[Shown(row[0])] = text;
  }
  return rows;
}

Table Grouped(Workload& work, std::string_view keys,
              std::string_view values = "count,errors,bytes,read,written") {
  GroupSpec spec;
  spec.keys = *ParseGroupKeys(keys, "--by");
  spec.values = *ParseGroupValues(values, "--values");
  Grouping grouping(spec);
  work.ForEach(
      [&](const format::Record& record) { grouping.AddRecord(record, 0); });
  return grouping.Finish();
}

void Copies(Workload* work) {
  work->Do(Op::read_, work->in, 0, 10);
  work->Copy(work->in, 10, work->out, 0, 100);
  work->Copy(work->in, 110, work->twin, 0, 20);
  work->Copy(work->in, 0, work->out, 0, 0, EIO);
  work->Do(Op::write_, work->out, 100, 5);
}

TEST(CopiesTest, ByFileWhatIsReadAndWrittenBelongsToEachFile) {
  Workload work;
  Copies(&work);
  EXPECT_EQ(ByFirst(Grouped(work, "path")),
            (Rows{{"/a/in", "4 1 130 130 0"},
                  {"/a/twin", "0 0 20 0 20"},
                  {"/b/out.o", "1 0 105 0 105"}}));
  EXPECT_EQ(ByFirst(Grouped(work, "inode")), (Rows{{"7", "4 1 130 130 0"},
                                                   {"8", "0 0 20 0 20"},
                                                   {"9", "1 0 105 0 105"}}));
  // What is copied within a directory is read and written there.
  EXPECT_EQ(ByFirst(Grouped(work, "dir")),
            (Rows{{"/a", "4 1 150 130 20"}, {"/b", "1 0 105 0 105"}}));
  EXPECT_EQ(ByFirst(Grouped(work, "ext")),
            (Rows{{"-", "4 1 150 130 20"}, {"o", "1 0 105 0 105"}}));
}

TEST(CopiesTest, ByOperationACopyCountsOnceAndMovesItsBytesOnce) {
  Workload work;
  Copies(&work);
  EXPECT_EQ(ByFirst(Grouped(work, "op")),
            (Rows{{"copy_file_range", "3 1 120 120 120"},
                  {"read", "1 0 10 10 0"},
                  {"write", "1 0 5 0 5"}}));
  EXPECT_EQ(ByFirst(Grouped(work, "cpid", "bytes,size_mean,size_max,time")),
            (Rows{{"42", "135 33 100 25"}}));
}

TEST(CopiesTest, KeysOfBothFilesKeepACopyInOneRow) {
  Workload work;
  work.Copy(work.in, 0, work.out, 0, 100);
  const Table table = Grouped(work, "path,path2", "count,bytes,read,written");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(Shown(table.rows[0][1]), "/b/out.o");
  EXPECT_EQ(ByFirst(table, 2), (Rows{{"/a/in", "1 100 100 100"}}));
}

TEST(CopiesTest, ADestinationThatIsNotTheSourcesDataIsSaidToBeUnknown) {
  Workload work;
  work.Copy(work.in, 0, {.inode = 9, .handle = 3}, 0, 100);  // as of before
  const Table table = Grouped(work, "path");
  EXPECT_EQ(ByFirst(table),
            (Rows{{"-", "0 0 100 0 100"}, {"/a/in", "1 0 100 100 0"}}));
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_TRUE(table.notes[0].starts_with("1 copies do not tell"))
      << table.notes[0];
  EXPECT_TRUE(Grouped(work, "op").notes.empty());
}

format::AggregateRecord CountedCopies(uint64_t count, uint64_t bytes,
                                      std::string_view folder) {
  format::AggregateRecord record;
  record.key.push_back({static_cast<uint16_t>(format::ArgId::kKeyOp),
                        Index(Op::copy_file_range_),
                        {}});
  if (!folder.empty()) {
    record.key.push_back(
        {static_cast<uint16_t>(format::ArgId::kDirectory), 0, folder});
  }
  record.count = count;
  record.bytes = bytes;
  record.size.present = true;
  record.size.sum = record.size.max = bytes;
  record.size.buckets.push_back({tally::HistogramBucket(bytes), 1});
  return record;
}

// What a driver by operation and directory has counted of two copies, of 7 and
// 9 bytes, one of which had no room for its directories.
Table GroupedCounts(std::string_view keys, std::string_view values) {
  std::vector<format::AggregateRecord> records = {CountedCopies(1, 7, "/a"),
                                                  CountedCopies(0, 7, "/b"),
                                                  CountedCopies(1, 18, "")};
  records.back().other = true;
  format::TraceHeader header;
  header.properties = {{"aggregate.copies", "both files"}};
  GroupSpec spec;
  spec.keys = *ParseGroupKeys(keys, "--by");
  spec.values = *ParseGroupValues(values, "--values");
  CountedChoice choice;
  for (const auto& record : records) choice.Take(0, record);
  choice.TakeHeader(0, header);
  EXPECT_TRUE(choice.Choose(spec).ok());
  Grouping grouping(spec);
  for (const auto& record : records) {
    const bool both = choice.CountsBothFiles(0, record);
    EXPECT_TRUE(grouping.AddCounted(record, both).ok());
  }
  return grouping.Finish();
}

TEST(CopiesTest, WhatWasCountedOfBothFilesIsMovedOnceByOperation) {
  const Table table = GroupedCounts("op", "bytes,read,written,size_mean");
  EXPECT_EQ(ByFirst(table), (Rows{{"copy_file_range", "7 7 7 7"}}));
  ASSERT_TRUE(table.other);
  EXPECT_EQ(Shown((*table.other)[1]), "9");
  EXPECT_EQ(Shown((*table.other)[2]), "9");
}

TEST(CopiesTest, WhatWasCountedOfBothFilesIsOfEachByDirectory) {
  const Table table = GroupedCounts("dir", "bytes,written");
  EXPECT_EQ(ByFirst(table), (Rows{{"/a", "7 -"}, {"/b", "7 7"}}));
  ASSERT_TRUE(table.other);
  EXPECT_EQ(Shown((*table.other)[1]), "18");
  EXPECT_EQ(Shown((*table.other)[2]), "-");  // or read
}

TEST(CopiesTest, Malicious_TooManyDriversAreRefusedAndNotLeftOut) {
  CountedChoice choice;
  format::AggregateRecord record = CountedCopies(1, 1, "");
  GroupSpec spec;
  spec.keys = *ParseGroupKeys("op", "--by");
  for (record.tracer_id = 0; record.tracer_id < 1000; ++record.tracer_id) {
    choice.Take(0, record);
  }
  EXPECT_TRUE(choice.Choose(spec).ok());
  choice.Take(0, record);
  EXPECT_FALSE(choice.Choose(spec).ok());
}

std::vector<Table> Answer(
    Workload& work, std::unique_ptr<Analysis> (*make)(const AnalysisOptions&),
    AnalysisOptions options = {}) {
  const auto analysis = make(options);
  work.ForEach(
      [&](const format::Record& record) { analysis->Take(record, 0); });
  return analysis->Finish();
}

TEST(CopiesTest, QuestionsAboutFilesKnowReadersFromWriters) {
  Workload work;
  Copies(&work);
  EXPECT_EQ(ByFirst(Answer(work, &MakeUses)[0], 1, 6),
            (Rows{{"/a/in", "read only 3 130 0 0"},
                  {"/a/twin", "write only 0 0 1 20"},
                  {"/b/out.o", "write only 0 0 2 105"}}));
  EXPECT_TRUE(Answer(work, &MakeDoubleWrites)[0].rows.empty());
  EXPECT_TRUE(Answer(work, &MakeSharing)[0].rows.empty());
}

TEST(CopiesTest, BothEndsOfACopyHaveAnAccessPattern) {
  Workload work;
  Copies(&work);
  std::map<std::string, std::string> steps;
  const std::vector<Table> tables = Answer(work, &MakeAccess);
  for (const Row& row : tables[0].rows) {
    steps[Shown(row[0]) + " " + Shown(row[1])] =
        Shown(row[2]) + " " + Shown(row[3]);
  }
  EXPECT_EQ(steps["read first"], "1 10");
  EXPECT_EQ(steps["read consecutive"], "2 120");
  EXPECT_EQ(steps["write first"], "2 120");
  EXPECT_EQ(steps["write consecutive"], "1 5");
}

TEST(CopiesTest, BlocksAreReadOfTheSourceAndWrittenToTheDestination) {
  Workload work;
  work.Copy(work.in, 0, work.out, 8192, 8192);
  const Rows blocks = ByFirst(Answer(work, &MakeBlocks)[0]);
  EXPECT_EQ(blocks.at("read first"), "8192");
  EXPECT_EQ(blocks.at("written first"), "8192");
  EXPECT_EQ(blocks.at("overwritten"), "0");
}

TEST(CopiesTest, WhoCopiedFromAFileDidNotWriteIt) {
  Workload work;
  Copies(&work);
  const auto of = [&](std::string path) {
    const Table users = Answer(work, &MakeWho, {.path = std::move(path)})[0];
    std::string text;
    for (size_t i = 3; i < 7; ++i) text += Shown(users.rows.at(0)[i]) + " ";
    return text;
  };
  EXPECT_EQ(of("/a/in"), "4 1 130 0 ");
  EXPECT_EQ(of("/b/out.o"), "3 1 0 105 ");
}

}  // namespace
}  // namespace tracefs::query
