// Columns by time, of blocks that threads decode: one thread is the oracle.
#include <algorithm>
#include <random>
#include <set>

#include "tests/unit/reader/reading.h"
#include "tracefs/event/process_record.h"
#include "tracefs/format/process_message.h"

namespace tracefs {
namespace {

using namespace test;  // NOLINT: what this test is about

constexpr char kColumns[] =
    "ts,op,uid,path,comm,result,errno,inferred,trace,fh,before";

// A trace of several workers, each with blocks of its own, which overlap, and
// some of whose operations begin at the same time.
std::string Overlapping(uint64_t seed, size_t workers, size_t blocks,
                        uint64_t begin_ns = TraceBuilder::kMonotonicNs) {
  constexpr size_t kOfABlock = 20;
  std::mt19937_64 random(seed);
  TraceBuilder trace;
  std::vector<std::vector<uint64_t>> held(workers);  // begin times
  uint64_t now = begin_ns;
  for (size_t ended = 0; ended < blocks;) {
    std::vector<uint64_t>& mine = held[random() % workers];
    mine.push_back(now += random() % 3);
    if (mine.size() < kOfABlock) continue;
    const uint32_t root = trace.DefinePath(0, "");
    for (const uint64_t time : mine) {
      Event event;
      event.op = random() % 2 == 0 ? Op::open_ : Op::read_;
      event.Set(Field::kTime, time);
      if (random() % 3 != 0) event.Set(Field::kUid, 1000 + random() % 2);
      if (random() % 4 == 0) event.Set(Field::kInferred, 1);
      event.SetResult(7, random() % 5 == 0 ? EIO : 0);
      const std::string name = "file" + std::to_string(random() % 30);
      trace.Add(event, {.path = trace.DefinePath(root, name)});
    }
    mine.clear();
    uint64_t watermark = now;
    for (const std::vector<uint64_t>& others : held) {
      if (!others.empty()) watermark = std::min(watermark, others.front());
    }
    trace.EndBlock(watermark);
    ++ended;
  }
  trace.Finish();
  return trace.bytes();
}

struct Read {
  Table table;
  uint64_t unordered = 0;
  bool complete = false;
  std::string message;
};

Read ReadAll(const std::vector<std::string>& traces, uint64_t threads,
             uint64_t batch_rows = 65536, uint64_t memory = 0,
             const char* filter = nullptr) {
  MemoryReader reader(traces.front());
  for (size_t i = 1; i < traces.size(); ++i) {
    tracefs_options_add_memory(reader.options(), traces[i].data(),
                               traces[i].size(), "another");
  }
  tracefs_options_set(reader.options(), TRACEFS_THREADS, threads);
  tracefs_options_set(reader.options(), TRACEFS_BATCH_ROWS, batch_rows);
  if (memory != 0) {
    tracefs_options_set(reader.options(), TRACEFS_MEMORY_BYTES, memory);
  }
  if (filter != nullptr) tracefs_options_set_filter(reader.options(), filter);
  Read read;
  read.table = ReadTable(reader.get(), kColumns);
  read.unordered = reader.count(TRACEFS_UNORDERED);
  read.complete = tracefs_reader_complete(reader.get()) == 1;
  read.message = reader.message();
  return read;
}

TEST(MergedColumnsTest, AreInTheOrderThatOneThreadFinds) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    const std::vector<std::string> traces = {Overlapping(seed, 3, 60)};
    const Read one = ReadAll(traces, 1);
    EXPECT_EQ(one.table.rows.size(), 1200u);
    for (const uint64_t batch_rows : {1, 7, 65536}) {
      const Read many = ReadAll(traces, 4, batch_rows);
      EXPECT_EQ(many.table.rows, one.table.rows) << seed << " " << batch_rows;
      EXPECT_EQ(many.table.batches, (1200 + batch_rows - 1) / batch_rows);
      EXPECT_EQ(many.unordered, 0u);
      EXPECT_TRUE(many.complete);
    }
  }
}

TEST(MergedColumnsTest, OfSeveralTracesAreMergedByRealTime) {
  const std::vector<std::string> traces = {
      Overlapping(1, 2, 30), Overlapping(2, 3, 40),
      Overlapping(3, 1, 10, TraceBuilder::kMonotonicNs + 100),
      Overlapping(4, 2, 5)};
  const Read one = ReadAll(traces, 1);
  const Read many = ReadAll(traces, 3, 100);
  EXPECT_EQ(one.table.rows.size(), 20u * 85);
  EXPECT_EQ(many.table.rows, one.table.rows);
  EXPECT_TRUE(std::ranges::is_sorted(many.table.rows, {},
                                     [](const auto& row) { return row[0]; }));
}

TEST(MergedColumnsTest, OfWhatMatchesAFilterAreTheSame) {
  const std::vector<std::string> traces = {Overlapping(1, 3, 40),
                                           Overlapping(2, 2, 40)};
  for (const char* filter : {"op = read AND uid = 1001", "errno = EIO"}) {
    const Read one = ReadAll(traces, 1, 65536, 0, filter);
    const Read many = ReadAll(traces, 3, 65536, 0, filter);
    EXPECT_GT(one.table.rows.size(), 100u);
    EXPECT_EQ(many.table.rows, one.table.rows);
  }
}

TEST(MergedColumnsTest, AreAllThereWithoutMemoryForTheirOrder) {
  const std::vector<std::string> traces = {Overlapping(5, 4, 60)};
  const Read one = ReadAll(traces, 1);
  const Read many = ReadAll(traces, 3, 65536, /*memory=*/1);
  const auto sorted = [](const Table& table) {
    return std::multiset<std::vector<std::string>>(table.rows.begin(),
                                                   table.rows.end());
  };
  EXPECT_EQ(sorted(many.table), sorted(one.table));
  EXPECT_GT(many.unordered, 0u);
}

TEST(MergedColumnsTest, AreThereThoughAnotherTraceCannotBeRead) {
  const std::vector<std::string> traces = {
      std::string(100, 'x'), Overlapping(1, 2, 20), Overlapping(2, 2, 20)};
  const Read one = ReadAll(traces, 1);
  const Read many = ReadAll(traces, 3);
  EXPECT_EQ(many.table.rows.size(), 800u);
  EXPECT_EQ(many.table.rows, one.table.rows);
  EXPECT_NE(many.table.error, 0);
  EXPECT_EQ(many.message, one.message);
  EXPECT_FALSE(many.complete);
}

TEST(MergedColumnsTest, DamageCostsTheBlockThatHasIt) {
  TraceBuilder trace = Sample(40);
  trace.Finish();
  std::string bytes = trace.bytes();
  bytes[trace.frame_offsets()[7] + 100] ^= 1;
  bytes[trace.frame_offsets()[20] + 100] ^= 1;
  const Read one = ReadAll({bytes}, 1);
  const Read many = ReadAll({bytes}, 4);
  EXPECT_EQ(many.table.rows.size(), 380u);
  EXPECT_EQ(many.table.rows, one.table.rows);
  EXPECT_FALSE(many.complete);
}

// Of a trace that has lost block 0, the first block that is there is read
// before it is known what will be asked.
TEST(MergedColumnsTest, ProcessRecordsAreNoRows) {
  TraceBuilder trace;
  for (uint64_t b = 0; b < 3; ++b) {
    const auto add = [&](uint64_t time) {
      std::vector<std::byte> memory(4096);
      format::MessageWriter out(memory);
      ProcessRecord record;
      record.kind = ProcessRecord::Kind::kExit;
      record.process.pid = 50;
      record.time_ns = time;
      ASSERT_TRUE(format::WriteProcessRecord(out, record));
      trace.AddBytes(AsText(out.bytes()));
    };
    const uint64_t begin = TraceBuilder::kMonotonicNs + 100 * b;
    add(begin);
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, begin + 1);
    trace.Add(event);
    add(begin + 2);
    trace.EndBlock();
  }
  trace.Finish();
  std::string bytes = trace.bytes();
  bytes[trace.frame_offsets()[0] + 50] ^= 1;
  for (const uint64_t file_order : {0, 1}) {
    for (const uint64_t threads : {1, 3}) {
      MemoryReader reader(bytes);
      tracefs_options_set(reader.options(), TRACEFS_FILE_ORDER, file_order);
      tracefs_options_set(reader.options(), TRACEFS_THREADS, threads);
      EXPECT_EQ(ReadTable(reader.get(), "ts").rows.size(), 3u)
          << file_order << " " << threads;
    }
  }
}

TEST(MergedColumnsTest, FollowEventsThatWereReadBefore) {
  const std::string bytes = Overlapping(1, 3, 20);
  MemoryReader reader(bytes);
  tracefs_options_set(reader.options(), TRACEFS_THREADS, 3);
  const tracefs_event* event;
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(tracefs_reader_next(reader.get(), &event), TRACEFS_ITEM);
  }
  EXPECT_EQ(ReadTable(reader.get(), kColumns).rows.size(), 370u);
}

TEST(MergedColumnsTest, MayBeCancelledAndLeftInTheMiddle) {
  const std::string bytes = Overlapping(1, 3, 300);
  MemoryReader reader(bytes);
  tracefs_options_set(reader.options(), TRACEFS_THREADS, 3);
  tracefs_options_set(reader.options(), TRACEFS_BATCH_ROWS, 100);
  ArrowArrayStream stream;
  ASSERT_EQ(tracefs_reader_columns(reader.get(), kColumns, &stream),
            TRACEFS_ITEM);
  ArrowArray array;
  ASSERT_EQ(stream.get_next(&stream, &array), 0);
  array.release(&array);
  tracefs_reader_cancel(reader.get());
  EXPECT_NE(stream.get_next(&stream, &array), 0);
  stream.release(&stream);
}

}  // namespace
}  // namespace tracefs
