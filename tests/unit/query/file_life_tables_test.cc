// What becomes of files: lifetimes, sharing, double writes and churn of a few
// operations whose answers are counted by hand.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tracefs/query/analyses.h"

namespace tracefs::query {
namespace {

using test::References;
using test::TraceBuilder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr uint64_t kSecond = 1'000'000'000;

// Operations on files of two folders, by processes of their own names.
class Told {
 public:
  Told() {
    root_ = trace_.DefinePath(0, "");
    folders_["a"] = trace_.DefinePath(root_, "a");
    folders_["b"] = trace_.DefinePath(root_, "b");
  }

  Told& By(const std::string& who) {
    auto [at, is_new] = processes_.try_emplace(who);
    if (is_new) {
      CallerInfo caller;
      caller.pid = caller.tid = static_cast<uint32_t>(processes_.size());
      caller.serial = caller.pid;
      who.copy(caller.comm_bytes.data(), who.size());
      caller.comm_size = static_cast<uint8_t>(who.size());
      at->second = trace_.DefineProcess(caller);
    }
    process_ = at->second;
    return *this;
  }
  Told& At(uint64_t seconds) {
    now_ = seconds * kSecond;
    return *this;
  }
  Told& Failing(int error) {
    error_ = error;
    return *this;
  }
  // "a/f": the name f in the folder a.
  Told& Create(const std::string& path, uint64_t inode) {
    Event e = Named(Op::create_, path, inode);
    e.Set(Field::kFh, inode);
    e.Set(Field::kFlags, O_RDWR);
    return Add(e, {.path = 0, .parent = Folder(path)});
  }
  Told& Open(const std::string& path, uint64_t inode) {
    Event e = Begun(Op::open_, inode);
    e.Set(Field::kFh, inode);
    return Add(e, {.path = Path(path)});
  }
  Told& Close(const std::string& path, uint64_t inode) {
    Event e = Begun(Op::release_, inode);
    e.Set(Field::kFh, inode);
    return Add(e, {.path = Path(path)});
  }
  Told& Read(const std::string& path, uint64_t inode, int64_t bytes) {
    return Move(Op::read_, path, inode, bytes);
  }
  Told& Write(const std::string& path, uint64_t inode, int64_t bytes) {
    return Move(Op::write_, path, inode, bytes);
  }
  Told& Unlink(const std::string& path, uint64_t inode,
               uint64_t links = 1) {  // before
    Event e = Named(Op::unlink_, path, inode);
    e.Set(Field::kNlink, links);
    return Add(e, {.path = 0, .parent = Folder(path)});
  }
  Told& Rename(const std::string& path, const std::string& to, uint64_t inode,
               uint32_t flags = 0) {
    Event e = Named(Op::rename_, path, inode);
    new_name_ = to.substr(2);
    e.new_name = new_name_;
    e.Set(Field::kFlags, flags);
    return Add(e,
               {.path = 0, .parent = Folder(path), .new_parent = Folder(to)});
  }
  Told& Link(const std::string& path, const std::string& to, uint64_t inode) {
    Event e = Begun(Op::link_, inode);
    new_name_ = to.substr(2);
    e.new_name = new_name_;
    return Add(e, {.path = Path(path), .parent = 0, .new_parent = Folder(to)});
  }

  std::vector<Table> Ask(
      std::unique_ptr<Analysis> (*make)(const AnalysisOptions&)) {
    if (!ended_) trace_.EndBlock();
    ended_ = true;
    const auto analysis = make({});
    test::ReadRecords(trace_.bytes(), [&](format::Record& record) {
      analysis->Take(record, 0);
    });
    return analysis->Finish();
  }

 private:
  uint32_t Folder(const std::string& path) {
    return folders_.at(path.substr(0, 1));
  }
  uint32_t Path(const std::string& path) {
    auto [at, is_new] = paths_.try_emplace(path);
    if (is_new) at->second = trace_.DefinePath(Folder(path), path.substr(2));
    return at->second;
  }
  Event Begun(Op op, uint64_t inode) {
    Event e;
    e.op = op;
    e.Set(Field::kTime, TraceBuilder::kMonotonicNs + now_ + ++steps_);
    e.Set(Field::kLatency, 1);
    e.Set(Field::kInode, inode);
    e.SetResult(error_ == 0 ? 0 : -1, error_);
    return e;
  }
  Event Named(Op op, const std::string& path, uint64_t inode) {
    Event e = Begun(op, inode);
    name_ = path.substr(2);
    e.name = name_;
    return e;
  }
  Told& Move(Op op, const std::string& path, uint64_t inode, int64_t bytes) {
    Event e = Begun(op, inode);
    e.Set(Field::kFh, inode);
    e.Set(Field::kOffset, 0);
    e.Set(Field::kLength, static_cast<uint64_t>(bytes));
    if (error_ == 0) e.SetResult(bytes, 0);
    return Add(e, {.path = Path(path)});
  }
  Told& Add(const Event& e, References references) {
    references.process = process_;
    trace_.Add(e, references);
    error_ = 0;
    return *this;
  }

  TraceBuilder trace_;
  bool ended_ = false;
  uint32_t root_ = 0;
  std::map<std::string, uint32_t> folders_;
  std::map<std::string, uint32_t> paths_;
  std::map<std::string, uint32_t> processes_;
  uint32_t process_ = 0;
  uint64_t now_ = 0;
  uint64_t steps_ = 0;
  int error_ = 0;
  std::string name_;
  std::string new_name_;
};

// Rows as "key: number number …", keys being their texts.
std::vector<std::string> Rows(const Table& table) {
  std::vector<std::string> rows;
  for (const Row& row : table.rows) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i != 0) text += ' ';
      const bool is_text = table.columns[i].unit == Unit::kText;
      text += !row[i].present ? "-"
              : is_text       ? row[i].text
                              : std::to_string(row[i].number);
    }
    rows.push_back(text);
  }
  return rows;
}
std::vector<std::string> Front(const Table& table, size_t columns) {
  Table front = table;
  front.columns.resize(columns);
  for (Row& row : front.rows) row.resize(columns);
  return Rows(front);
}

TEST(LifetimesTest, FilesThatWereMadeAreCountedByWhoMadeThem) {
  Told told;
  told.By("cc").Create("a/1", 11).Write("a/1", 11, 100).Close("a/1", 11);
  told.Create("a/2", 12).Write("a/2", 12, 20).Write("a/2", 12, 30);
  told.Close("a/2", 12);
  told.By("as").At(4).Unlink("a/1", 11);
  told.By("sh").Create("b/3", 13).Close("b/3", 13);
  told.By("mv").At(10).Rename("a/2", "b/3", 12);
  // One that was there before, and one that could not be made.
  told.By("cat").Read("b/old", 14, 5).Unlink("b/old", 14);
  told.By("cc").Failing(EEXIST).Create("a/4", 15);
  const std::vector<Table> tables = told.Ask(&MakeLifetimes);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_THAT(Front(tables[0], 7),
              UnorderedElementsAre("cc 2 1 0 0 150 100", "sh 1 0 1 0 0 0"));
  ASSERT_FALSE(tables[0].notes.empty());
  EXPECT_THAT(tables[0].notes[0], HasSubstr("3 created, 2 gone again"));
  // The first lived for four seconds, what was replaced for six.
  for (const Row& row : tables[0].rows) {
    const uint64_t oldest = row[9].number;
    const uint64_t expected = row[0].text == "cc" ? 4 : 6;
    EXPECT_EQ(oldest / kSecond, expected) << row[0].text;
    EXPECT_NEAR(static_cast<double>(row[7].number), static_cast<double>(oldest),
                0.2 * kSecond);
  }
}

TEST(LifetimesTest, AFileWithoutANameIsGoneWhenItIsClosed) {
  Told told;
  told.By("cc").Create("a/1", 11).Link("a/1", "b/2", 11).Close("a/1", 11);
  told.At(1).Unlink("a/1", 11, 2);
  EXPECT_THAT(Front(told.Ask(&MakeLifetimes)[0], 5), ElementsAre("cc 1 0 0 0"))
      << "it has another name";
  Told gone;
  gone.By("cc").Create("a/1", 11).Link("a/1", "b/2", 11).Close("a/1", 11);
  gone.At(1).Unlink("a/1", 11, 2).Unlink("b/2", 11, 1);
  EXPECT_THAT(Front(gone.Ask(&MakeLifetimes)[0], 5), ElementsAre("cc 1 1 0 0"));
  Told open;
  open.By("cc").Create("a/1", 11).At(1).Unlink("a/1", 11).At(3);
  open.Write("a/1", 11, 7).Close("a/1", 11);
  EXPECT_THAT(Front(open.Ask(&MakeLifetimes)[0], 7),
              ElementsAre("cc 1 1 0 1 7 7"))
      << "what is written until the close is thrown away";
}

TEST(SharingTest, WhatFollowsWhatIsCounted) {
  Told told;
  told.By("cc").Create("a/1", 11).Write("a/1", 11, 10).Read("a/1", 11, 4);
  told.By("as").Open("a/1", 11).Read("a/1", 11, 10).Read("a/1", 11, 10);
  told.By("cc").Write("a/1", 11, 3);
  told.By("as").Write("a/1", 11, 2).Failing(EIO).Write("a/1", 11, 50);
  // A file of one process alone is not shared.
  told.By("cc").Create("b/2", 12).Write("b/2", 12, 1).Write("b/2", 12, 1);
  const std::vector<Table> tables = told.Ask(&MakeSharing);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_THAT(Rows(tables[0]), ElementsAre("/a/1 cc as cc as 1 0 1 1 24 15"));
  EXPECT_THAT(Rows(tables[1]),
              ElementsAre("rar 1 1", "raw 1 0", "war 0 1", "waw 1 1"));
}

TEST(DoubleWritesTest, WhatIsWrittenAgainIsNamed) {
  Told told;
  // By two processes; replaced by another; made again after it was removed.
  told.By("cc").Create("a/1", 11).Write("a/1", 11, 10).Close("a/1", 11);
  told.By("as").Open("a/1", 11).Write("a/1", 11, 5).Close("a/1", 11);
  told.By("cc").Create("a/2", 12).Write("a/2", 12, 7).Close("a/2", 12);
  told.By("ld").Create("a/3", 13).Write("a/3", 13, 8).Close("a/3", 13);
  told.Rename("a/3", "a/2", 13);
  told.By("sh").Create("b/4", 14).Write("b/4", 14, 1).Close("b/4", 14);
  told.Unlink("b/4", 14);
  told.By("sh").Create("b/4", 15).Write("b/4", 15, 2).Close("b/4", 15);
  // Nothing was written into the first of these.
  told.Create("b/5", 16).Close("b/5", 16).Unlink("b/5", 16);
  told.Create("b/5", 17).Write("b/5", 17, 2).Close("b/5", 17);
  const Table table = told.Ask(&MakeDoubleWrites)[0];
  EXPECT_THAT(Rows(table), UnorderedElementsAre("rewritten /a/1 1 15 cc as",
                                                "replaced /a/2 1 7 cc ld",
                                                "recreated /b/4 1 3 sh"));
  EXPECT_THAT(table.notes, ElementsAre("recreated 1, replaced 1, rewritten 1"));
}

TEST(ChurnTest, FoldersAndMakersHaveTheirOwnSums) {
  Told told;
  told.By("cc").Create("a/1", 11).Write("a/1", 11, 10).Close("a/1", 11);
  told.Unlink("a/1", 11);
  told.Create("a/2", 12).Write("a/2", 12, 4).Read("a/2", 12, 4);
  told.Close("a/2", 12).Unlink("a/2", 12);
  told.Create("b/3", 13).Close("b/3", 13).Unlink("b/3", 13);
  told.By("sh").Create("a/4", 14).Write("a/4", 14, 9).Close("a/4", 14);
  EXPECT_THAT(Rows(told.Ask(&MakeChurn)[0]),
              UnorderedElementsAre("/a cc 2 2 0 1 14 14", "/b cc 1 1 1 1 0 0",
                                   "/a sh 1 0 0 0 9 0"));
}

TEST(ChurnTest, AMovedFileIsOfTheFolderThatItWasMadeIn) {
  Told told;
  told.By("cc").Create("a/1", 11).Write("a/1", 11, 10).Close("a/1", 11);
  told.Rename("a/1", "b/2", 11).Unlink("b/2", 11);
  EXPECT_THAT(Rows(told.Ask(&MakeChurn)[0]),
              ElementsAre("/a cc 1 1 0 1 10 10"));
  // Two that are exchanged are still there.
  Told two;
  two.By("cc").Create("a/1", 11).Close("a/1", 11);
  two.Create("b/2", 12).Write("b/2", 12, 6).Close("b/2", 12);
  two.Rename("a/1", "b/2", 11, RENAME_EXCHANGE).Unlink("a/1", 12);
  EXPECT_THAT(Rows(two.Ask(&MakeChurn)[0]),
              UnorderedElementsAre("/a cc 1 0 0 0 0 0", "/b cc 1 1 0 1 6 6"));
}

}  // namespace
}  // namespace tracefs::query
