// Parquet files that are merged are, byte for byte, the file that the same rows
// would have made at once.
#include "tracefs/export/parquet_merge.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/export/parquet_file.h"

namespace tracefs {
namespace {

using Columns = std::vector<std::pair<std::string, ParquetType>>;
using Properties = std::vector<std::pair<std::string, std::string>>;

const Columns kColumns = {{"time", ParquetType::kSigned64},
                          {"timestamp", ParquetType::kTimestamp},
                          {"latency", ParquetType::kUnsigned64},
                          {"ctid", ParquetType::kUnsigned32},
                          {"op", ParquetType::kText},
                          {"path", ParquetType::kText},
                          {"path_raw", ParquetType::kBytes},
                          {"inferred", ParquetType::kFlag},
                          {"never", ParquetType::kText}};

// Row `n` of all; the same each time.
void PutRow(int n, ParquetFile* out) {
  std::mt19937 draw(static_cast<unsigned>(n));
  const uint32_t row = out->row();
  out->column(0).Put(row, static_cast<uint64_t>(n) * 1000);
  out->column(1).Put(row, static_cast<uint64_t>(n) * 1000);
  if (draw() % 3 != 0) out->column(2).Put(row, draw());
  if (draw() % 7 == 0) out->column(3).Put(row, draw());
  constexpr std::string_view kOps[] = {"read", "write", "", "rename"};
  out->column(4).PutText(row, kOps[draw() % 4]);
  // Some thousands of long ones are too much for a dictionary.
  if (draw() % 2 == 0) {
    out->column(5).PutText(
        row, std::string(draw() % 1500, 'x') + std::to_string(draw()));
  }
  if (draw() % 50 == 0) {
    out->column(6).PutText(row, std::string("\xff\0\x01", 3));
  }
  if (draw() % 5 == 0) out->column(7).Put(row, 1);
  out->EndRow();
}

std::string TracesText(int operations, int lost, bool bad = false) {
  nlohmann::ordered_json trace = {{"name", "part"},
                                  {"tracer", 0},
                                  {"bad", bad},
                                  {"operations", operations},
                                  {"lost", nlohmann::ordered_json::object()},
                                  {"properties", {{"host.name", "web1"}}}};
  if (lost != 0) trace["lost"]["queue_full"] = lost;
  return nlohmann::ordered_json::array({trace}).dump();
}

std::string FileOf(int first, int end, const std::string& traces,
                   const Columns& columns = kColumns) {
  StringOutput out;
  ParquetFile file(out, columns, {});
  file.SetSorted(0);
  for (int n = first; n < end; ++n) PutRow(n, &file);
  file.Finish({{"tracefs.version", "1"}, {"tracefs.traces", traces}});
  EXPECT_TRUE(out.Flush().ok());
  return out.text();
}

UniqueFd Stored(const std::string& bytes) {
  UniqueFd fd(::memfd_create("parquet", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAllAt(fd.get(), AsBytes(bytes), 0, "memory").ok());
  return fd;
}

Status Merge(const std::vector<std::string>& files, std::string* merged) {
  std::vector<UniqueFd> stored;
  std::vector<int> fds;
  for (const std::string& bytes : files) {
    stored.push_back(Stored(bytes));
    fds.push_back(stored.back().get());
  }
  StringOutput out;
  Status status = MergeParquet(fds, "merged", out);
  *merged = out.text();
  return status;
}

std::string Named(std::string traces) {
  return traces.replace(traces.find("\"part\""), 6, "\"merged\"");
}

TEST(ParquetMergeTest, IsTheFileThatTheRowsWouldHaveMadeAtOnce) {
  std::string merged;
  ASSERT_TRUE(
      Merge({FileOf(0, 1, TracesText(1, 2)), FileOf(1, 700, TracesText(699, 0)),
             FileOf(700, 700, TracesText(0, 0)),
             FileOf(700, 1500, TracesText(800, 3))},
            &merged)
          .ok());
  EXPECT_EQ(merged, FileOf(0, 1500, Named(TracesText(1500, 5))));
}

// The path column gives up its dictionary in the first file, and in the merged
// one in the middle of the second.
TEST(ParquetMergeTest, TextsWithoutADictionaryAreTheSame) {
  std::string merged;
  ASSERT_TRUE(Merge({FileOf(0, 14'000, TracesText(14'000, 0)),
                     FileOf(14'000, 16'000, TracesText(2000, 0)),
                     FileOf(16'000, 24'000, TracesText(8000, 0))},
                    &merged)
                  .ok());
  EXPECT_EQ(merged, FileOf(0, 24'000, Named(TracesText(24'000, 0))));
}

TEST(ParquetMergeTest, OneThatIsBadMakesAllOfItBad) {
  std::string merged;
  ASSERT_TRUE(Merge({FileOf(0, 5, TracesText(5, 0)),
                     FileOf(5, 9, TracesText(4, 0, true))},
                    &merged)
                  .ok());
  EXPECT_EQ(merged, FileOf(0, 9, Named(TracesText(9, 0, true))));
}

TEST(ParquetMergeTest, RowsThatGoBackInTimeAreNotSaidToBeSorted) {
  const std::string first = FileOf(50, 90, TracesText(40, 0));
  const std::string second = FileOf(0, 50, TracesText(50, 0));
  std::string forth;
  std::string back;
  ASSERT_TRUE(Merge({second, first}, &forth).ok());
  ASSERT_TRUE(Merge({first, second}, &back).ok());
  // The statement is five bytes of each group.
  EXPECT_LT(back.size(), forth.size() + 64);
  EXPECT_NE(forth, back);
  std::string again;
  ASSERT_TRUE(Merge({back, FileOf(90, 91, TracesText(1, 0))}, &again).ok());
}

TEST(ParquetMergeTest, OtherColumnsAreNotMerged) {
  Columns others = kColumns;
  others.back().first = "other";
  std::string merged;
  EXPECT_EQ(Merge({FileOf(0, 5, TracesText(5, 0)),
                   FileOf(5, 9, TracesText(4, 0), others)},
                  &merged)
                .code(),
            StatusCode::kInvalid);
}

TEST(ParquetMergeTest, Malicious_WhatIsCutOffAnywhereIsRefused) {
  const std::string whole = FileOf(0, 40, TracesText(40, 0));
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string merged;
    ASSERT_EQ(Merge({whole.substr(0, size)}, &merged).code(),
              StatusCode::kCorrupt)
        << size;
  }
}

TEST(ParquetMergeTest, Malicious_ChangedBytesAreSurvived) {
  const std::string whole = FileOf(0, 40, TracesText(40, 0));
  std::mt19937 draw(21);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = whole;
    for (int n = 0; n < 3; ++n) {
      changed[draw() % changed.size()] = static_cast<char>(draw());
    }
    std::string merged;
    if (!Merge({whole, changed}, &merged).ok()) ++refused;
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace tracefs
