// Blocks of files, and the slowest operations, against models that keep all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tests/unit/query/told_operations.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::query {
namespace {

using test::TraceBuilder;

constexpr uint64_t kBlock = 4096;

struct Touch {
  enum Kind { kRead, kWrite, kTruncate, kFail } kind = kRead;
  uint64_t inode = 1;
  uint64_t offset = 0;  // or the new size
  uint64_t bytes = 0;
  uint64_t since_ns = 0;
};

std::map<std::string, uint64_t> SumsOf(const std::vector<Touch>& all) {
  TraceBuilder trace;
  for (const Touch& touch : all) {
    Event event;
    event.op = touch.kind == Touch::kTruncate ? Op::setattr_
               : touch.kind == Touch::kRead   ? Op::read_
                                              : Op::write_;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + touch.since_ns);
    event.Set(Field::kInode, touch.inode);
    if (touch.kind == Touch::kTruncate) {
      event.Set(Field::kNewSize, touch.offset);
    } else {
      event.Set(Field::kOffset, touch.offset);
    }
    if (touch.kind == Touch::kFail) {
      event.SetResult(-1, EIO);
    } else {
      event.SetResult(static_cast<int64_t>(touch.bytes), 0);
    }
    trace.Add(event);
  }
  trace.EndBlock();
  const auto blocks = MakeBlocks({});
  test::ReadRecords(trace.bytes(), [&](const format::Record& record) {
    blocks->Take(record, 0);
  });
  std::map<std::string, uint64_t> sums;
  const std::vector<Table> tables = blocks->Finish();
  for (const Row& row : tables.at(0).rows) {
    sums[row[0].text] = row[1].number;
  }
  return sums;
}

std::map<std::string, uint64_t> Model(const std::vector<Touch>& all) {
  struct State {
    bool read = false;
    bool written = false;
  };
  std::map<std::pair<uint64_t, uint64_t>, State> blocks;
  std::map<std::string, uint64_t> sums = {
      {"read first", 0},  {"read again", 0}, {"written first", 0},
      {"overwritten", 0}, {"cut off", 0},    {"removed with the file", 0}};
  for (const Touch& touch : all) {
    if (touch.kind == Touch::kFail) continue;
    if (touch.kind == Touch::kTruncate) {
      for (auto at = blocks.begin(); at != blocks.end();) {
        // A block whose begin is beyond the new end is gone.
        const bool gone = at->first.first == touch.inode &&
                          at->first.second * kBlock >= touch.offset;
        if (gone && at->second.written) sums["cut off"] += kBlock;
        at = gone ? blocks.erase(at) : std::next(at);
      }
      continue;
    }
    for (uint64_t byte = touch.offset; byte < touch.offset + touch.bytes;
         byte = (byte / kBlock + 1) * kBlock) {
      State& state = blocks[{touch.inode, byte / kBlock}];
      if (touch.kind == Touch::kRead) {
        const bool again = state.read || state.written;
        sums[again ? "read again" : "read first"] += kBlock;
        state.read = true;
      } else {
        sums[state.written ? "overwritten" : "written first"] += kBlock;
        state.written = true;
      }
    }
  }
  return sums;
}

TEST(BlocksTest, AreThoseOfASlowModel) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<Touch> all;
    for (int i = 0; i < 60; ++i) {
      Touch& touch = all.emplace_back();
      const uint64_t kind = random() % 10;
      touch.kind = kind < 4   ? Touch::kRead
                   : kind < 8 ? Touch::kWrite
                   : kind < 9 ? Touch::kTruncate
                              : Touch::kFail;
      touch.inode = 1 + random() % 3;
      // At the edges of blocks, a byte beside them, and anywhere.
      touch.offset = random() % 6 * kBlock;
      if (random() % 2 == 0) touch.offset += random() % 3;
      if (random() % 3 == 0 && touch.offset > 0) --touch.offset;
      touch.bytes =
          random() % 4 == 0 ? random() % 4 * kBlock : random() % (3 * kBlock);
      touch.since_ns = static_cast<uint64_t>(i) * 1000;
    }
    EXPECT_EQ(SumsOf(all), Model(all)) << round;
  }
}

TEST(BlocksTest, EdgesOfOneBlock) {
  for (const uint64_t offset : {uint64_t{0}, kBlock - 1, kBlock}) {
    for (const uint64_t bytes :
         {uint64_t{0}, uint64_t{1}, kBlock - 1, kBlock, kBlock + 1}) {
      const std::vector<Touch> all = {
          {.kind = Touch::kWrite, .offset = offset, .bytes = bytes},
          {.kind = Touch::kRead, .offset = 0, .bytes = 3 * kBlock},
          {.kind = Touch::kTruncate, .offset = bytes},
          {.kind = Touch::kRead, .offset = 0, .bytes = 3 * kBlock}};
      EXPECT_EQ(SumsOf(all), Model(all)) << offset << ' ' << bytes;
    }
  }
}

// Three files of which each claims half of all bytes there can be.
TEST(UsesTest, Malicious_SumsStopAtTheTop) {
  TraceBuilder trace;
  for (uint64_t inode = 1; inode <= 3; ++inode) {
    for (const Op op : {Op::read_, Op::write_}) {
      Event event;
      event.op = op;
      event.Set(Field::kTime, TraceBuilder::kMonotonicNs + inode);
      event.Set(Field::kInode, inode);
      event.SetResult(INT64_MAX, 0);
      trace.Add(event);
    }
  }
  trace.EndBlock();
  const auto uses = MakeUses({});
  test::ReadRecords(trace.bytes(), [&](const format::Record& record) {
    uses->Take(record, 0);
  });
  const std::vector<Table> tables = uses->Finish();
  const Table& sums = tables.at(1);
  EXPECT_EQ(sums.rows.at(2)[0].text, "both");
  EXPECT_EQ(NumberAt(sums, 2, "files"), 3u);
  EXPECT_EQ(NumberAt(sums, 2, "read"), UINT64_MAX);
  EXPECT_EQ(NumberAt(sums, 2, "written"), UINT64_MAX);
}

// One name is a part of the other.
TEST(DoubleWritesTest, EachWriterIsNamedOnce) {
  TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  uint64_t now = TraceBuilder::kMonotonicNs;
  const auto process = [&trace](uint32_t pid, std::string_view comm) {
    CallerInfo caller;
    caller.pid = caller.tid = pid;
    caller.comm_size = static_cast<uint8_t>(comm.size());
    std::ranges::copy(comm, caller.comm_bytes.begin());
    return trace.DefineProcess(caller);
  };
  const uint32_t writers[] = {process(1, "cc1plus"), process(2, "cc"),
                              process(3, "cc1plus")};
  uint64_t inode = 10;
  for (const uint32_t writer : writers) {
    for (const Op op : {Op::create_, Op::write_, Op::unlink_}) {
      Event event;
      event.op = op;
      event.Set(Field::kTime, ++now);
      event.Set(Field::kInode, inode);
      event.name = "out.o";
      event.SetResult(op == Op::write_ ? 100 : 0, 0);
      trace.Add(event, {.parent = root, .process = writer});
    }
    ++inode;
  }
  trace.EndBlock();
  const auto analysis = MakeDoubleWrites({});
  test::ReadRecords(trace.bytes(), [&](const format::Record& record) {
    analysis->Take(record, 0);
  });
  const std::vector<Table> tables = analysis->Finish();
  ASSERT_EQ(tables.at(0).rows.size(), 1u);
  const Row& row = tables[0].rows[0];
  EXPECT_EQ(row[0].text, "recreated");
  EXPECT_EQ(row[1].text, "/out.o");
  EXPECT_EQ(row[2].number, 2u);
  EXPECT_EQ(row[3].number, 300u);
  EXPECT_EQ(row[4].text, "cc1plus cc");
}

TEST(DistinctCountTest, TakesWhatItNeedsAndNoMore) {
  DistinctCount count;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < DistinctCount::kExact; ++i) count.Add(random());
  EXPECT_TRUE(count.exact());
  EXPECT_EQ(count.Estimate(), DistinctCount::kExact);
  count.Add(random());
  EXPECT_FALSE(count.exact());
  // A byte for each of the registers, and none for what was exact.
  EXPECT_EQ(count.bytes(), 1024u);
  for (size_t i = 0; i < 5000; ++i) count.Add(random());
  EXPECT_NEAR(static_cast<double>(count.Estimate()), 5129, 5 * 0.033 * 5129);
  EXPECT_EQ(count.bytes(), 1024u);
}

TEST(SlowestTest, AreTheFirstOfThoseThatTookLongest) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 40; ++round) {
    std::vector<ToldOperation> all;
    for (int i = 0; i < 80; ++i) {
      all.push_back({.since_ns = static_cast<uint64_t>(i) * 1000,
                     .ns = random() % 12,  // many are equal
                     .pid = static_cast<uint32_t>(1 + i),
                     .timed = random() % 9 != 0});
    }
    const size_t top = 1 + random() % 30;
    std::vector<ToldOperation> model;
    for (const ToldOperation& told : all) {
      if (told.timed) model.push_back(told);
    }
    uint64_t total = 0;
    for (const ToldOperation& told : model) total += told.ns;
    const size_t count = model.size();
    std::ranges::stable_sort(model, std::greater<>(), &ToldOperation::ns);
    model.resize(std::min(top, model.size()));
    const Table table = AskOf(MakeSlowest({.top = top}).get(), all).at(0);
    ASSERT_EQ(table.rows.size(), model.size());
    uint64_t shown = 0;
    for (size_t i = 0; i < model.size(); ++i) {
      EXPECT_EQ(NumberAt(table, i, "cpid"), model[i].pid) << round << ' ' << i;
      EXPECT_EQ(NumberAt(table, i, "latency"), model[i].ns);
      EXPECT_EQ(NumberAt(table, i, "time") - TraceBuilder::kRealNs,
                model[i].since_ns);
      shown += model[i].ns;
    }
    EXPECT_EQ(table.notes, std::vector{std::to_string(shown) + " ns of " +
                                       std::to_string(total) + " ns in these " +
                                       std::to_string(model.size()) + " of " +
                                       std::to_string(count) + " operations"});
  }
}

}  // namespace
}  // namespace tracefs::query
