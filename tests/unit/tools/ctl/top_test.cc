// top: what is counted, in which order it is shown, bounded memory, and
// pictures that fit and are safe.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <random>
#include <vector>

#include "tracefs/export/escape.h"
#include "tracefs/tools/ctl/top_model.h"
#include "tracefs/tools/ctl/top_picture.h"

namespace tracefs {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class TopTest : public ::testing::Test {
 protected:
  void Operation(Op op, std::string_view path, std::string_view comm,
                 uint64_t ns, int error = 0, uint64_t bytes = 0) {
    format::Record record;
    record.event.op = op;
    record.event.SetResult(static_cast<int64_t>(bytes), error);
    record.event.Set(Field::kLatency, ns);
    comm.copy(record.caller.comm_bytes.data(), comm.size());
    record.caller.comm_size = static_cast<uint8_t>(comm.size());
    record.caller.pid = 42;
    record.event.caller = &record.caller;
    record.text[format::Record::TextIndex(Field::kPath)] = path;
    record.text_present |= 1u << format::Record::TextIndex(Field::kPath);
    model_.Add(record);
  }

  std::vector<std::string> Names(TopModel::Kind kind, TopOrder order,
                                 bool all = false) const {
    std::vector<std::string> names;
    for (const TopTable::Row& row : model_.table(kind, all).Rows(order, 100)) {
      names.push_back(row.name);
    }
    return names;
  }
  const TopCount& Count(TopModel::Kind kind, std::string_view name) const {
    for (const TopTable::Row& row :
         model_.table(kind, false).Rows(TopOrder::kCount, 10000)) {
      if (row.name == name) return *row.count;
    }
    static const TopCount none;
    ADD_FAILURE() << name;
    return none;
  }

  TopModel model_;
};

using NameList = std::vector<std::string>;

TEST_F(TopTest, EachOperationCountsForItsOpProcessFileAndDirectory) {
  Operation(Op::read_, "/a/b/c", "cat", 1000, 0, 4096);
  Operation(Op::read_, "/a/b/c", "cat", 3000, EIO);
  Operation(Op::write_, "/a/d", "dd", 9000, 0, 100);
  Operation(Op::readdir_, "/a", "ls", 500, 0, 800);
  Operation(Op::lookup_, "/top", "ls", 1);
  model_.EndInterval(kSecond);
  EXPECT_EQ(model_.total(false).count, 5u);
  EXPECT_EQ(model_.total(false).errors, 1u);
  EXPECT_EQ(model_.total(false).bytes, 4196u);
  EXPECT_EQ(model_.total(false).ns, 13501u);
  EXPECT_EQ(Count(TopModel::kOps, "read").bytes, 4096u);
  EXPECT_EQ(Count(TopModel::kOps, "read").errors, 1u);
  EXPECT_EQ(Count(TopModel::kProcesses, "cat[42]").count, 2u);
  EXPECT_EQ(Count(TopModel::kFiles, "/a/b/c").ns, 4000u);
  EXPECT_EQ(Count(TopModel::kDirectories, "/a").count, 2u);  // write, readdir
  EXPECT_EQ(Count(TopModel::kDirectories, "/").count, 1u);
  EXPECT_EQ(Count(TopModel::kDirectories, "/a/b").count, 2u);
  EXPECT_EQ(Names(TopModel::kFiles, TopOrder::kCount).size(), 3u);
}

TEST_F(TopTest, RowsComeInTheOrderAskedFor) {
  for (int i = 0; i < 3; ++i) Operation(Op::lookup_, "/often", "p", 10);
  Operation(Op::read_, "/slow", "p", 99999);
  Operation(Op::open_, "/bad", "p", 20, ENOENT);
  Operation(Op::write_, "/big", "p", 30, 0, 1000);
  model_.EndInterval(kSecond);
  EXPECT_EQ(Names(TopModel::kOps, TopOrder::kCount)[0], "lookup");
  EXPECT_EQ(Names(TopModel::kOps, TopOrder::kTime)[0], "read");
  // Rows with nothing of what is asked for are left out.
  EXPECT_EQ(Names(TopModel::kOps, TopOrder::kErrors), NameList{"open"});
  EXPECT_EQ(Names(TopModel::kFiles, TopOrder::kBytes), NameList{"/big"});
}

TEST_F(TopTest, IntervalsBeginAnewAndAllIsKept) {
  Operation(Op::read_, "/one", "p", 1);
  model_.EndInterval(kSecond);
  Operation(Op::write_, "/two", "p", 1);
  EXPECT_EQ(Names(TopModel::kFiles, TopOrder::kCount), NameList{"/one"});
  model_.EndInterval(2 * kSecond);
  EXPECT_EQ(Names(TopModel::kFiles, TopOrder::kCount), NameList{"/two"});
  EXPECT_EQ(Names(TopModel::kFiles, TopOrder::kCount, true),
            (NameList{"/one", "/two"}));
  EXPECT_EQ(model_.duration_ns(false), 2 * kSecond);
  EXPECT_EQ(model_.duration_ns(true), 3 * kSecond);
  EXPECT_EQ(model_.total(true).count, 2u);
  model_.Reset();
  EXPECT_TRUE(Names(TopModel::kFiles, TopOrder::kCount, true).empty());
}

TEST_F(TopTest, ManyFilesTakeBoundedMemoryAndNothingIsForgotten) {
  constexpr int kFiles = 20000;
  for (int i = 0; i < kFiles; ++i) {
    Operation(Op::read_, "/cold/" + std::to_string(i), "p", 1);
    if (i % 4 == 0) Operation(Op::read_, "/hot", "p", 1);
  }
  model_.EndInterval(kSecond);
  const TopTable& files = model_.table(TopModel::kFiles, false);
  EXPECT_LE(files.size(), TopTable::kMaxNames);
  uint64_t sum = 0;
  for (const TopTable::Row& row : files.Rows(TopOrder::kCount, 100000)) {
    sum += row.count->count;
  }
  EXPECT_EQ(sum, kFiles + kFiles / 4u);
  const auto rows = files.Rows(TopOrder::kCount, 100000);
  EXPECT_EQ(rows.front().name, "/hot");
  EXPECT_EQ(rows.front().count->count, kFiles / 4u);
  EXPECT_EQ(rows.back().name, TopTable::kOther);
}

TEST_F(TopTest, PercentilesAreRightToAFewPercent) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> all;
  DurationHistogram<4> histogram;
  for (int i = 0; i < 20000; ++i) {
    const auto ns = static_cast<uint64_t>(
        std::exp(std::uniform_real_distribution<>(0, 23)(random)));
    all.push_back(ns);
    histogram.Add(ns);
  }
  std::sort(all.begin(), all.end());
  for (const unsigned p : {1u, 10u, 50u, 90u, 99u, 100u}) {
    const uint64_t exact = all[(all.size() * p + 99) / 100 - 1];
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(p)),
                static_cast<double>(exact), static_cast<double>(exact) / 31 + 1)
        << p;
  }
  EXPECT_EQ(histogram.max(), all.back());
}

TEST_F(TopTest, ExtremeDurationsHaveAPlace) {
  DurationHistogram<4> histogram;
  EXPECT_EQ(histogram.Percentile(50), 0u);
  for (int i = 0; i < 64; ++i) histogram.Add(uint64_t{1} << i);
  histogram.Add(0);
  histogram.Add(UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
  EXPECT_EQ(histogram.Percentile(1), 0u);
  EXPECT_GT(histogram.Percentile(100), uint64_t{1} << 39);
}

TEST_F(TopTest, NumbersAreShort) {
  EXPECT_EQ(ShortDuration(0), "0ns");
  EXPECT_EQ(ShortDuration(999), "999ns");
  EXPECT_EQ(ShortDuration(1234), "1.23us");
  EXPECT_EQ(ShortDuration(45'600'000), "45.6ms");
  EXPECT_EQ(ShortDuration(999'999), "1.00ms");
  EXPECT_EQ(ShortDuration(3'600 * kSecond), "3600s");
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(0.5), "0.50");
  EXPECT_EQ(ShortNumber(12345), "12.3k");
  EXPECT_EQ(ShortNumber(4.56e6), "4.56M");
}

TEST_F(TopTest, PictureFitsTheTerminal) {
  for (int i = 0; i < 300; ++i) {
    const std::string n = std::to_string(i);
    Operation(static_cast<Op>(i % 30),
              "/a/rather/long/path/of/directories/" + n, "p" + n,
              static_cast<uint64_t>(i) * 1000, i % 7 == 0 ? EIO : 0);
  }
  model_.AddLost(5);
  model_.EndInterval(kSecond);
  for (const size_t width : {20u, 80u, 200u}) {
    for (const size_t height : {3u, 24u, 60u}) {
      TopView view;
      view.mount = "/data";
      view.width = width;
      view.height = height;
      view.keys = true;
      const std::vector<std::string> lines = TopPicture(model_, view);
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(line.size(), width);
      if (height == 60u) {
        EXPECT_GE(lines.size(), 50u);
      }
    }
  }
  TopView view;
  view.mount = "/data";
  const std::vector<std::string> lines = TopPicture(model_, view);
  EXPECT_NE(lines[0].find("/data: 300 operations/s"), std::string::npos);
  EXPECT_NE(lines[0].find("5 not seen"), std::string::npos);
}

TEST_F(TopTest, Malicious_NamesCannotDriveTheTerminal) {
  Operation(Op::open_, "/\x1b[2Jevil\n\r\t\xff", "\x1b]0;x\x07", 1);
  model_.EndInterval(kSecond);
  TopView view;
  view.mount = "\x1b[31m";
  for (const std::string& line : TopPicture(model_, view)) {
    for (const char c : line) {
      EXPECT_TRUE(c >= ' ' && c != 0x7f) << static_cast<int>(c);
    }
  }
}

TEST_F(TopTest, EmptyPictureHasItsTitles) {
  TopView view;
  view.mount = "/data";
  view.height = 24;
  std::string all;
  for (const std::string& line : TopPicture(model_, view)) all += line + '\n';
  for (const char* title : {"OPERATION", "PROCESS", "FILE", "DIRECTORY"}) {
    EXPECT_NE(all.find(title), std::string::npos) << title;
  }
}

}  // namespace
}  // namespace tracefs
