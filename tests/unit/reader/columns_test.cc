// Columns in Arrow's C structures, by time and by block.
#include <random>
#include <set>

#include "tests/support/random_event.h"
#include "tests/unit/reader/reading.h"

namespace tracefs {
namespace {

using namespace test;  // NOLINT: what this test is about

TEST(ColumnsTest, HaveTypesOfTheirOwn) {
  const std::string bytes = SampleBytes();
  MemoryReader reader(bytes);
  const Table table = ReadTable(
      reader.get(), "ts,op,dur,uid,result,errno,path,path_raw,inferred,ino");
  EXPECT_EQ(table.formats, (std::vector<std::string>{"tsn:", "i", "l", "I", "l",
                                                     "i", "i", "i", "b", "L"}));
  ASSERT_EQ(table.rows.size(), 10u);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{std::to_string(TimeOf(0)), "open", "1000",
                                      "1000", "0", "NULL", "/src/a.c",
                                      "/src/a.c", "NULL", "NULL"}));
  EXPECT_EQ(table.rows[9][4], "-1");
  EXPECT_EQ(table.rows[9][5], "EIO");
}

TEST(ColumnsTest, AreThoseOfJsonLinesByDefault) {
  const std::string bytes = SampleBytes();
  MemoryReader reader(bytes);
  const Table table = ReadTable(reader.get(), nullptr);
  const std::set<std::string> names(table.names.begin(), table.names.end());
  for (const char* name : {"ts", "dur", "op", "pid", "comm", "path", "ino",
                           "size", "result", "errno", "tracer"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(ColumnsTest, NamesThatAreNoneAreRefused) {
  const std::string bytes = SampleBytes();
  for (const char* columns : {"ts,nonsense", "uid_raw", "ts,,op"}) {
    MemoryReader reader(bytes);
    EXPECT_EQ(ReadTable(reader.get(), columns).error, -1) << columns;
    EXPECT_EQ(tracefs_reader_status(reader.get()), TRACEFS_BAD_USE);
  }
}

TEST(ColumnsTest, BatchesAreAsLongAsAskedFor) {
  const std::string bytes = SampleBytes(5);
  MemoryReader reader(bytes);
  tracefs_options_set(reader.options(), TRACEFS_BATCH_ROWS, 7);
  const Table table = ReadTable(reader.get(), "ts,op");
  EXPECT_EQ(table.rows.size(), 50u);
  EXPECT_EQ(table.batches, 8u);
  EXPECT_EQ(tracefs_reader_complete(reader.get()), 1);
}

TEST(ColumnsTest, BytesThatAreNoUtf8AreReplacedAndKeptRaw) {
  TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, TraceBuilder::kMonotonicNs);
  trace.Add(event, {.path = trace.DefinePath(root, "a\xff\xc3\xa4")});
  trace.EndBlock();
  trace.Finish();
  MemoryReader reader(trace.bytes());
  const Table table = ReadTable(reader.get(), "path,path_raw");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][0], "/a\xef\xbf\xbd\xc3\xa4");
  EXPECT_EQ(table.rows[0][1], "/a\xff\xc3\xa4");
}

// Every field, any value: events one by one are the oracle.
TEST(ColumnsTest, SayWhatEventsSay) {
  std::mt19937_64 random(17);
  TraceBuilder trace;
  uint64_t time = TraceBuilder::kMonotonicNs;
  for (int block = 0; block < 20; ++block) {
    uint32_t path = trace.DefinePath(0, "");
    for (int i = 0; i < 50; ++i) {
      const test::RandomEvent event(
          random, static_cast<Op>(random() % kOpCount), time += 1000);
      trace.Add(event.event, {.path = path});
      if (i % 10 == 0) {
        path = trace.DefinePath(path, RandomBytes(random, 20, true));
      }
    }
    trace.EndBlock();
  }
  trace.Finish();

  std::string columns;
  std::vector<uint32_t> fields;
  for (uint32_t f = 0; (f = tracefs_field_after(f)) != 0;) {
    if (std::string(tracefs_field_name(f)) == "trace") continue;
    if (!columns.empty()) columns += ',';
    columns += tracefs_field_name(f);
    if (tracefs_field_type(f) == TRACEFS_TEXT &&
        std::string(tracefs_field_name(f)) != "data") {
      columns += "_raw";
    }
    fields.push_back(f);
  }
  for (const uint64_t file_order : {0, 1}) {
    MemoryReader by_column(trace.bytes());
    tracefs_options_set(by_column.options(), TRACEFS_FILE_ORDER, file_order);
    tracefs_options_set(by_column.options(), TRACEFS_THREADS, 3);
    const Table table = ReadTable(by_column.get(), columns.c_str());
    ASSERT_EQ(table.rows.size(), 1000u);
    EXPECT_EQ(tracefs_reader_complete(by_column.get()), 1);
    MemoryReader by_event(trace.bytes());
    const tracefs_event* event;
    for (size_t row = 0;
         tracefs_reader_next(by_event.get(), &event) == TRACEFS_ITEM; ++row) {
      for (size_t i = 0; i < fields.size(); ++i) {
        const std::string name = tracefs_field_name(fields[i]);
        const std::string& cell = table.rows[row][i];
        const char* text;
        size_t size;
        uint64_t number;
        if (name == "type" || name == "errno") continue;  // named below
        if (cell == "NULL") {
          EXPECT_FALSE(
              tracefs_event_text(event, fields[i], &text, &size) ||
              (tracefs_event_number(event, fields[i], &number) && number != 0))
              << name;
        } else if (tracefs_event_text(event, fields[i], &text, &size)) {
          EXPECT_EQ(cell, std::string(text, size)) << name;
        } else if (cell == "true") {
          EXPECT_EQ(Number(event, fields[i]) != 0, true) << name;
        } else if (cell[0] != '?') {
          ASSERT_TRUE(tracefs_event_number(event, fields[i], &number)) << name;
          EXPECT_EQ(cell, cell[0] == '-'
                              ? std::to_string(static_cast<int64_t>(number))
                              : std::to_string(number))
              << name;
        }
      }
    }
  }
}

// Who descends from whom stands in earlier blocks.
TEST(ColumnsTest, DescendantsAreTheSameInTheOrderOfTheFile) {
  TraceBuilder trace;
  for (uint64_t b = 0; b < 64; ++b) {
    CallerInfo caller;
    caller.pid = 50 + static_cast<uint32_t>(b);
    caller.ppid = b == 0 ? 1 : caller.pid - 1;
    const std::string_view comm = b == 0 ? "make" : "sh";
    memcpy(caller.comm_bytes.data(), comm.data(), comm.size());
    caller.comm_size = static_cast<uint8_t>(comm.size());
    const uint32_t process = trace.DefineProcess(caller);
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + b * kStepNs);
    trace.Add(event, {.process = process});
    trace.EndBlock();
  }
  trace.Finish();
  for (const uint64_t file_order : {0, 1}) {
    MemoryReader reader(trace.bytes());
    tracefs_options_set(reader.options(), TRACEFS_FILE_ORDER, file_order);
    tracefs_options_set(reader.options(), TRACEFS_THREADS, 4);
    tracefs_options_set_filter(reader.options(), "descendant of make");
    EXPECT_EQ(ReadTable(reader.get(), "pid").rows.size(), 63u) << file_order;
  }
}

TEST(ColumnsTest, ByBlockWithThreadsFindTheSameAsByTime) {
  TraceBuilder trace = Sample(40);
  trace.Finish();
  std::string bytes = trace.bytes();
  bytes[trace.frame_offsets()[7] + 100] ^= 1;  // one block lost
  std::multiset<std::string> seen[2];
  for (const uint64_t file_order : {0, 1}) {
    MemoryReader reader(bytes);
    reader.Reporting();
    tracefs_options_set(reader.options(), TRACEFS_FILE_ORDER, file_order);
    tracefs_options_set(reader.options(), TRACEFS_THREADS, 4);
    tracefs_options_set_filter(reader.options(), "op = read");
    for (const auto& row : ReadTable(reader.get(), "ts,path").rows) {
      seen[file_order].insert(row[0] + row[1]);
    }
    EXPECT_EQ(reader.count(TRACEFS_DAMAGED_BLOCK), 1u);
    EXPECT_EQ(reader.count(TRACEFS_MISSING_BLOCK), 1u);
    EXPECT_EQ(reader.count(TRACEFS_CUT_FILE), 0u);
    EXPECT_EQ(reader.reports().kinds,
              (std::vector<int>{TRACEFS_DAMAGED_BLOCK, TRACEFS_MISSING_BLOCK}));
    EXPECT_EQ(tracefs_reader_complete(reader.get()), 0);
  }
  EXPECT_EQ(seen[0].size(), 39u * 8);
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(ColumnsTest, OutliveTheirReader) {
  const std::string bytes = SampleBytes(3);
  auto reader = std::make_unique<MemoryReader>(bytes);
  ArrowArrayStream stream;
  ASSERT_EQ(tracefs_reader_columns(reader->get(), "ts,path", &stream),
            TRACEFS_ITEM);
  reader.reset();
  ArrowArray array;
  ASSERT_EQ(stream.get_next(&stream, &array), 0);
  stream.release(&stream);
  // A child may be taken out, and live longer than all the rest.
  ArrowArray child = *array.children[1];
  array.children[1]->release = nullptr;
  array.release(&array);
  EXPECT_EQ(child.length, 30);
  EXPECT_EQ(child.dictionary->length, 2);
  child.release(&child);
}

TEST(ColumnsTest, MayBeLeftInTheMiddle) {
  const std::string bytes = SampleBytes(200);
  MemoryReader reader(bytes);
  tracefs_options_set(reader.options(), TRACEFS_FILE_ORDER, 1);
  tracefs_options_set(reader.options(), TRACEFS_THREADS, 3);
  ArrowArrayStream stream;
  ASSERT_EQ(tracefs_reader_columns(reader.get(), "ts,path", &stream),
            TRACEFS_ITEM);
  ArrowArray array;
  ASSERT_EQ(stream.get_next(&stream, &array), 0);
  array.release(&array);
  stream.release(&stream);
}

// Long paths made of few bytes: a block of a megabyte says gigabytes.
TEST(ColumnsTest, TextsThatGrowAreBatchedAndBounded) {
  TraceBuilder trace;
  uint32_t path = trace.DefinePath(0, "");
  for (int i = 0; i < 16; ++i) {
    path = trace.DefinePath(path, std::string(250, 'x'));
  }
  constexpr uint64_t kEvents = 20'000;
  for (uint64_t i = 0; i < kEvents; ++i) {
    Event event;
    event.op = Op::lookup_;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + i);
    const std::string name = std::to_string(i);
    event.name = name;
    trace.Add(event, {.parent = path});
  }
  trace.EndBlock();
  trace.Finish();
  for (const uint64_t file_order : {0, 1}) {
    MemoryReader reader(trace.bytes());
    tracefs_options_set(reader.options(), TRACEFS_FILE_ORDER, file_order);
    ArrowArrayStream stream;
    ASSERT_EQ(tracefs_reader_columns(reader.get(), "path", &stream),
              TRACEFS_ITEM);
    ArrowArray array;
    int64_t rows = 0;
    while (stream.get_next(&stream, &array) == 0 && array.release != nullptr) {
      rows += array.length;
      EXPECT_LT(array.length, 10'000);
      array.release(&array);
    }
    EXPECT_EQ(rows, static_cast<int64_t>(kEvents));
    stream.release(&stream);
  }
}

}  // namespace
}  // namespace tracefs
