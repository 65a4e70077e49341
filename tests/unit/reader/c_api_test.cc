// The C interface on whole traces, and on those of a later writer.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/reader/reading.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/format/names.h"

namespace tracefs {
namespace {

using namespace test;  // NOLINT: what this test is about

TEST(CApiTest, GivesEventsInOrderOfTime) {
  const std::string bytes = SampleBytes(3);
  MemoryReader reader(bytes);
  const tracefs_event* event;
  uint64_t n = 0;
  while (tracefs_reader_next(reader.get(), &event) == TRACEFS_ITEM) {
    EXPECT_EQ(Number(event, TRACEFS_FIELD_TIME), TimeOf(n));
    EXPECT_STREQ(tracefs_event_op(event), n % 5 == 0 ? "open" : "read");
    EXPECT_EQ(Text(event, TRACEFS_FIELD_OP), n % 5 == 0 ? "open" : "read");
    EXPECT_EQ(Text(event, TRACEFS_FIELD_PATH),
              n % 2 == 0 ? "/src/a.c" : "/src/b.h");
    EXPECT_EQ(Text(event, TRACEFS_FIELD_COMM), "cc1");
    EXPECT_EQ(Number(event, TRACEFS_FIELD_PID), 50);
    EXPECT_EQ(Number(event, TRACEFS_FIELD_RESULT),
              n % 10 == 9 ? -1 : static_cast<int64_t>(10 * (n % 10)));
    EXPECT_EQ(Text(event, TRACEFS_FIELD_ERRNO), n % 10 == 9 ? "EIO" : "-");
    EXPECT_EQ(Number(event, TRACEFS_FIELD_INODE), -999);
    EXPECT_EQ(Text(event, TRACEFS_FIELD_TRACE), "input");
    ++n;
  }
  EXPECT_EQ(n, 30u);
  EXPECT_EQ(tracefs_reader_status(reader.get()), TRACEFS_END);
  EXPECT_EQ(tracefs_reader_complete(reader.get()), 1);
}

TEST(CApiTest, KnowsFieldsByTheNamesOfJsonLines) {
  EXPECT_EQ(tracefs_field_by_name("uid"), uint32_t{TRACEFS_FIELD_UID});
  EXPECT_EQ(tracefs_field_by_name("size"), uint32_t{TRACEFS_FIELD_SIZE});
  EXPECT_EQ(tracefs_field_by_name("nonsense"), 0u);
  EXPECT_STREQ(tracefs_field_name(TRACEFS_FIELD_TIME), "ts");
  EXPECT_EQ(tracefs_field_type(TRACEFS_FIELD_RESULT), TRACEFS_SIGNED);
  EXPECT_EQ(tracefs_field_type(TRACEFS_FIELD_PATH), TRACEFS_TEXT);
  size_t n = 0;
  for (uint32_t f = 0; (f = tracefs_field_after(f)) != 0; ++n) {
    ASSERT_NE(tracefs_field_name(f), nullptr);
    EXPECT_EQ(tracefs_field_by_name(tracefs_field_name(f)), f);
  }
  EXPECT_GT(n, 50u);
}

TEST(CApiTest, FiltersBeforeItDecodes) {
  const std::string bytes = SampleBytes(2);
  MemoryReader reader(bytes);
  ASSERT_EQ(
      tracefs_options_set_filter(reader.options(), "op = open AND cuid = 1000"),
      TRACEFS_ITEM);
  EXPECT_EQ(reader.Drain(), 2u);
  EXPECT_EQ(tracefs_reader_complete(reader.get()), 1);
}

TEST(CApiTest, SaysWhatIsWrongWithAFilter) {
  OptionsPtr options(tracefs_options_new());
  EXPECT_EQ(tracefs_options_set_filter(options.get(), "opp = read"),
            TRACEFS_BAD_USE);
  EXPECT_NE(std::string(tracefs_options_message(options.get())).find("opp"),
            std::string::npos);
}

TEST(CApiTest, OpensDescriptorsAndFolders) {
  char folder[] = "/tmp/tracefs-reader-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/a.trace";
  std::ofstream(path, std::ios::binary) << SampleBytes();
  OptionsPtr options(tracefs_options_new());
  const int fd = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(tracefs_options_add_fd(options.get(), fd, "given"), TRACEFS_ITEM);
  ::close(fd);
  ASSERT_EQ(tracefs_options_add_path(options.get(), folder), TRACEFS_ITEM);
  ReaderPtr reader(tracefs_reader_open(options.get()));
  ASSERT_EQ(tracefs_reader_status(reader.get()), TRACEFS_ITEM);
  EXPECT_EQ(tracefs_reader_traces(reader.get()), 2u);
  EXPECT_STREQ(tracefs_reader_trace_name(reader.get(), 0), "given");
  EXPECT_EQ(tracefs_reader_trace_name(reader.get(), 2), nullptr);
  const tracefs_event* event;
  uint64_t n = 0;
  while (tracefs_reader_next(reader.get(), &event) == TRACEFS_ITEM) ++n;
  EXPECT_EQ(n, 20u);
  std::filesystem::remove_all(folder);
}

TEST(CApiTest, NamesWhatCannotBeOpened) {
  OptionsPtr options(tracefs_options_new());
  tracefs_options_add_path(options.get(), "/nonexistent/trace");
  ReaderPtr reader(tracefs_reader_open(options.get()));
  EXPECT_EQ(tracefs_reader_status(reader.get()), TRACEFS_SYSTEM);
  EXPECT_NE(std::string(tracefs_reader_message(reader.get()))
                .find("/nonexistent/trace"),
            std::string::npos);
}

TEST(CApiTest, RefusesWhatIsNoTrace) {
  const std::string bytes = "This is a letter to somebody, and no trace.";
  MemoryReader reader(bytes);
  EXPECT_EQ(reader.Drain(), 0u);
  EXPECT_EQ(reader.code(), TRACEFS_BAD_DATA);
  EXPECT_EQ(reader.message().find("input: "), 0u);
}

TEST(CApiTest, GivesWhatATraceSaysOfItself) {
  const std::string bytes = SampleBytes();
  MemoryReader reader(bytes);
  const char* value;
  size_t size;
  ASSERT_EQ(
      tracefs_reader_property(reader.get(), 0, "host.name", &value, &size),
      TRACEFS_ITEM);
  EXPECT_EQ(std::string(value, size), "testbox");
  EXPECT_EQ(tracefs_reader_property(reader.get(), 0, "nothing", &value, &size),
            TRACEFS_END);
  unsigned version;
  unsigned least;
  ASSERT_EQ(tracefs_reader_format(reader.get(), 0, &version, &least),
            TRACEFS_ITEM);
  EXPECT_EQ(version, tracefs_reader_format_version());
  // The header was read ahead: nothing is missing afterwards.
  EXPECT_EQ(reader.Drain(), 10u);
  EXPECT_EQ(tracefs_reader_complete(reader.get()), 1);
}

TEST(CApiTest, ListsEveryMessageAndItsArguments) {
  const std::string bytes = SampleBytes();
  MemoryReader reader(bytes);
  tracefs_message message;
  std::map<std::string, int> names;
  uint64_t paths = 0;
  while (tracefs_reader_next_message(reader.get(), &message) == TRACEFS_ITEM) {
    ++names[message.name];
    size_t at = 0;
    tracefs_argument argument;
    int code;
    while ((code = tracefs_reader_next_argument(reader.get(), &at,
                                                &argument)) == TRACEFS_ITEM) {
      if (std::string(argument.name) == "ARG_PATH_ID") {
        EXPECT_TRUE(argument.is_number);
        paths += argument.number;
      }
    }
    EXPECT_EQ(code, TRACEFS_END);
  }
  EXPECT_EQ(names["MSG_START"], 1);
  EXPECT_EQ(names["MSG_BLOCK"], 2);
  EXPECT_EQ(names["MSG_DEF_PATH"], 4);
  EXPECT_EQ(names["MSG_OPEN"], 2);
  EXPECT_EQ(names["MSG_READ"], 8);
  EXPECT_EQ(names["MSG_FINAL"], 1);
  EXPECT_EQ(paths, 1 + 2 + 3 + 4 + 5 * 3 + 5 * 4u);
}

TEST(CApiTest, ListsWhatIsNoOperationAlone) {
  const std::string bytes = SampleBytes();
  MemoryReader reader(bytes);
  tracefs_options_set(reader.options(), TRACEFS_NO_OPERATIONS, 1);
  tracefs_message message;
  int n = 0;
  while (tracefs_reader_next_message(reader.get(), &message) == TRACEFS_ITEM) {
    EXPECT_LT(message.id, 256u);
    ++n;
  }
  EXPECT_EQ(n, 1 + 2 + 1 + 4 + 1);  // START, BLOCKs, process, paths, FINAL
}

TEST(CApiTest, CopiesBlocksByteForByte) {
  const std::string bytes = SampleBytes(4);
  for (const bool header_first : {false, true}) {
    MemoryReader reader(bytes);
    const char* value;
    size_t size;
    if (header_first) {
      tracefs_reader_property(reader.get(), 0, "host.name", &value, &size);
    }
    std::string copy;
    tracefs_block block;
    while (tracefs_reader_next_block(reader.get(), &block) == TRACEFS_ITEM) {
      copy.append(static_cast<const char*>(block.bytes), block.size);
    }
    EXPECT_EQ(copy, bytes) << header_first;
  }
}

TEST(CApiTest, IsReadInOneWay) {
  const std::string bytes = SampleBytes();
  MemoryReader reader(bytes);
  const tracefs_event* event;
  ASSERT_EQ(tracefs_reader_next(reader.get(), &event), TRACEFS_ITEM);
  tracefs_message message;
  EXPECT_EQ(tracefs_reader_next_message(reader.get(), &message),
            TRACEFS_BAD_USE);
}

TEST(CApiTest, ReplacesTexts) {
  const std::string bytes = SampleBytes();
  const auto hook = [](void*, uint32_t field, const char* text, size_t size,
                       const char** new_text, size_t* new_size) {
    static thread_local std::string other;
    if (field != TRACEFS_FIELD_PATH) return 0;
    other = "<" + std::string(text, size) + ">";
    *new_text = other.data();
    *new_size = other.size();
    return 1;
  };
  MemoryReader reader(bytes);
  tracefs_options_on_text(reader.options(), hook, nullptr);
  const tracefs_event* event;
  ASSERT_EQ(tracefs_reader_next(reader.get(), &event), TRACEFS_ITEM);
  EXPECT_EQ(Text(event, TRACEFS_FIELD_PATH), "</src/a.c>");
  EXPECT_EQ(Text(event, TRACEFS_FIELD_COMM), "cc1");
  for (const uint64_t file_order : {0, 1}) {
    MemoryReader columns(bytes);
    tracefs_options_on_text(columns.options(), hook, nullptr);
    tracefs_options_set(columns.options(), TRACEFS_FILE_ORDER, file_order);
    const Table table = ReadTable(columns.get(), "path,comm");
    ASSERT_EQ(table.rows.size(), 10u);
    EXPECT_EQ(table.rows[1], (std::vector<std::string>{"</src/b.h>", "cc1"}));
  }
}

TEST(CApiTest, CancelsFromAnotherThread) {
  const std::string bytes = SampleBytes(100);
  MemoryReader reader(bytes);
  const tracefs_event* event;
  ASSERT_EQ(tracefs_reader_next(reader.get(), &event), TRACEFS_ITEM);
  std::thread([&] { tracefs_reader_cancel(reader.get()); }).join();
  EXPECT_EQ(tracefs_reader_next(reader.get(), &event), TRACEFS_CANCELLED);
  EXPECT_EQ(tracefs_reader_status(reader.get()), TRACEFS_CANCELLED);
}

TEST(CApiTest, TellsProgress) {
  const std::string bytes = SampleBytes(3);
  MemoryReader reader(bytes);
  reader.Drain();
  uint64_t done;
  uint64_t total;
  tracefs_reader_progress(reader.get(), &done, &total);
  EXPECT_EQ(done, bytes.size());
  EXPECT_EQ(total, bytes.size());
}

TEST(CApiTest, TakesWrongCallsWithoutHarm) {
  EXPECT_EQ(tracefs_reader_open(nullptr), nullptr);
  EXPECT_EQ(tracefs_reader_next(nullptr, nullptr), TRACEFS_BAD_USE);
  EXPECT_EQ(tracefs_options_add_path(nullptr, "x"), TRACEFS_BAD_USE);
  tracefs_reader_close(nullptr);
  OptionsPtr options(tracefs_options_new());
  EXPECT_EQ(tracefs_options_set(options.get(), 999, 1), TRACEFS_BAD_USE);
  EXPECT_EQ(tracefs_options_add_path(options.get(), ""), TRACEFS_BAD_USE);
  EXPECT_EQ(tracefs_options_set_range(options.get(), 2, 1), TRACEFS_BAD_USE);
  ReaderPtr reader(tracefs_reader_open(options.get()));
  EXPECT_EQ(tracefs_reader_status(reader.get()), TRACEFS_BAD_USE);
}

// --- A trace of the writer after next: one message kind more, one argument
// more, and one whose format has changed against the rules, each once.

std::string FutureTrace(uint16_t min_reader = format::kMinReaderVersion) {
  using format::MessageWriter;
  TraceBuilder trace = Sample();
  CallerInfo caller;
  trace.AddRaw(0x31, [](MessageWriter& out) {
    out.PutText(uint16_t{1000}, "what nobody here knows");
  });
  const auto event = [&](auto write) {
    trace.AddRaw(format::OperationMessage(Op::read_, false),
                 [&](MessageWriter& out) {
                   out.Put<uint64_t>(uint16_t{1},
                                     TraceBuilder::kMonotonicNs + kStepNs * 20);
                   write(out);
                 });
    trace.CountEvent(TraceBuilder::kMonotonicNs + kStepNs * 20);
  };
  event([](MessageWriter& out) {  // an argument of later
    out.PutText(uint16_t{1001}, "more");
    out.Put<uint32_t>(uint16_t{24}, 7);
  });
  event([](MessageWriter& out) {  // without a length, and of no known width
    out.Put<uint32_t>(uint16_t{24}, 8);
    out.Put<uint32_t>(uint16_t{1002}, 9);
  });
  trace.EndBlock();
  trace.Finish();
  std::string bytes = trace.bytes();
  // Two versions later.
  std::string preamble =
      format::EncodePreamble({.format_version = format::kFormatVersion + 2,
                              .min_reader_version = min_reader,
                              .serial = trace.serial(),
                              .chain = "file"});
  return preamble + bytes.substr(preamble.size());
}

TEST(FutureWriterTest, AllElseIsDeliveredAndEachIsCountedOnce) {
  const std::string bytes = FutureTrace();
  MemoryReader reader(bytes);
  reader.Reporting();
  EXPECT_EQ(reader.Drain(), 12u);
  EXPECT_EQ(reader.count(TRACEFS_UNKNOWN_MESSAGE), 1u);
  EXPECT_EQ(reader.count(TRACEFS_UNKNOWN_ARGUMENT), 1u);
  EXPECT_EQ(reader.count(TRACEFS_BAD_ARGUMENT), 1u);
  EXPECT_EQ(reader.reports().kinds,
            (std::vector<int>{TRACEFS_UNKNOWN_MESSAGE, TRACEFS_UNKNOWN_ARGUMENT,
                              TRACEFS_BAD_ARGUMENT}));
  EXPECT_TRUE(reader.reports().texts.empty());  // nobody asked for any
}

TEST(FutureWriterTest, ReportsComeBeforeTheirEvent) {
  const std::string bytes = FutureTrace();
  MemoryReader reader(bytes);
  reader.Reporting();
  const tracefs_event* event;
  size_t reports_at_event = 0;
  while (tracefs_reader_next(reader.get(), &event) == TRACEFS_ITEM) {
    if (Number(event, TRACEFS_FIELD_UID) != 7) continue;
    reports_at_event = reader.reports().kinds.size();
    tracefs_argument extra;
    ASSERT_EQ(tracefs_event_extra(event, 0, &extra), TRACEFS_ITEM);
    EXPECT_EQ(extra.id, 1001u);
    EXPECT_STREQ(extra.name, "ARG_1001");
    EXPECT_EQ(std::string(static_cast<const char*>(extra.value), extra.size),
              "more");
    EXPECT_EQ(tracefs_event_extra(event, 1, &extra), TRACEFS_END);
  }
  EXPECT_EQ(reports_at_event, 2u);
}

TEST(FutureWriterTest, StrictKindsEndReadingAndNameThePlace) {
  const std::string bytes = FutureTrace();
  for (const int kind : {TRACEFS_UNKNOWN_MESSAGE, TRACEFS_UNKNOWN_ARGUMENT,
                         TRACEFS_BAD_ARGUMENT}) {
    MemoryReader reader(bytes);
    tracefs_options_set_strict(reader.options(), TRACEFS_KIND_BIT(kind));
    EXPECT_LT(reader.Drain(), 12u);
    EXPECT_EQ(reader.code(), TRACEFS_BAD_DATA) << kind;
    EXPECT_EQ(reader.message().find("input: "), 0u) << reader.message();
  }
}

TEST(FutureWriterTest, LenienceNeedsSomebodyToTell) {
  const std::string bytes = FutureTrace();
  MemoryReader reader(bytes);
  tracefs_options_set_lenient(reader.options(),
                              TRACEFS_KIND_BIT(TRACEFS_UNKNOWN_MESSAGE));
  EXPECT_EQ(reader.Drain(), 0u);
  EXPECT_EQ(reader.code(), TRACEFS_BAD_USE);
  MemoryReader told(bytes);
  told.Reporting();
  tracefs_options_set_lenient(told.options(),
                              TRACEFS_KIND_BIT(TRACEFS_UNKNOWN_MESSAGE));
  EXPECT_EQ(told.Drain(), 12u);
}

TEST(FutureWriterTest, TooNewATraceIsRefusedWithBothNumbers) {
  const std::string bytes = FutureTrace(format::kFormatVersion + 2);
  MemoryReader reader(bytes);
  EXPECT_EQ(reader.Drain(), 0u);
  EXPECT_LT(reader.code(), 0);
  EXPECT_NE(reader.message().find(std::to_string(format::kFormatVersion)),
            std::string::npos);
  EXPECT_NE(reader.message().find(std::to_string(format::kFormatVersion + 2)),
            std::string::npos)
      << reader.message();
}

TEST(FutureWriterTest, UnknownMessagesAreListedByTheirSyntax) {
  const std::string bytes = FutureTrace();
  MemoryReader reader(bytes);
  tracefs_message message;
  bool seen = false;
  while (tracefs_reader_next_message(reader.get(), &message) == TRACEFS_ITEM) {
    if (message.id != 0x31) continue;
    seen = true;
    size_t at = 0;
    tracefs_argument argument;
    ASSERT_EQ(tracefs_reader_next_argument(reader.get(), &at, &argument),
              TRACEFS_ITEM);
    EXPECT_EQ(argument.id, 1000u);
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace tracefs
