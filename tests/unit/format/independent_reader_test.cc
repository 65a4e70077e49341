// The reading library against a reader written from FORMAT.md alone, in
// another language (tests/golden/independent_reader.py): both list the same
// messages with the same arguments, of whole traces and of damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/support/random_event.h"
#include "tests/support/trace_builder.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/record.h"

namespace tracefs::format {
namespace {

using test::RandomEvent;
using test::TraceBuilder;

std::string Hex(ByteSpan bytes) {
  std::string text;
  char digits[3];
  for (const std::byte b : bytes) {
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(b));
    text += digits;
  }
  return text;
}

std::string Show(const Argument& argument, const TraceContext& context) {
  std::string text = context.NameOfArgument(argument.id) + "=";
  const size_t width = argument.value.size();
  if (argument.has_length ||
      (width != 1 && width != 2 && width != 4 && width != 8)) {
    return text + "0x" + Hex(argument.value);
  }
  uint64_t number = 0;
  for (size_t i = width; i-- > 0;) {
    number = number << 8 | std::to_integer<uint64_t>(argument.value[i]);
  }
  const auto found = context.description.arguments.find(argument.id);
  const bool is_signed =
      found != context.description.arguments.end() && found->second.type == 1;
  return text + (is_signed ? std::to_string(static_cast<int64_t>(number))
                           : std::to_string(number));
}

// The listing of tests/golden/independent_reader.py, by the library.
std::string ListWithLibrary(const std::string& bytes) {
  std::string out;
  TraceContext context;
  context.report = [&out](const Report& r) {
    switch (r.kind) {
      case ReportKind::kDamaged:
      case ReportKind::kCut:
        out += "skipped " + std::to_string(r.count) + " bytes at " +
               std::to_string(r.offset) + "\n";
        break;
      case ReportKind::kDuplicate:
        out += "duplicate block " + std::to_string(r.number) + "\n";
        break;
      case ReportKind::kGap:
        out += "missing " + std::to_string(r.count) + " blocks from " +
               std::to_string(r.number) + "\n";
        break;
      default:
        ADD_FAILURE() << r.Text();
    }
  };
  FrameReader frames(std::make_unique<MemorySource>(AsBytes(bytes)), false,
                     &context.stats, &context.report);
  const Result<ReadStep> preamble = frames.ReadPreamble();
  if (!preamble.ok()) return "refused";
  out += "preamble serial=" + SerialText(frames.preamble().serial) +
         " chain=" + frames.preamble().chain + "\n";
  Frame frame;
  for (;;) {
    const Result<ReadStep> step = frames.Next(&frame);
    if (!step.ok() || *step != ReadStep::kItem) break;
    const std::string sequence = std::to_string(frame.header.sequence);
    if (frame.header.kind != 1) {
      out += sequence + " unknown kind " + std::to_string(frame.header.kind) +
             "\n";
      continue;
    }
    MessageCursor messages(frame.payload);
    Message message;
    while (messages.Next(&message)) {
      if (message.msg_id == 1) {
        ReadStart(message.arguments, &context.description);
        for (const auto& [id, argument] : context.description.arguments) {
          context.widths.Set(id, argument.width);
        }
      }
      out += sequence + " " + context.NameOfMessage(message.msg_id);
      ArgumentCursor in(message.arguments, context.widths);
      Argument argument;
      while (in.Next(&argument)) out += " " + Show(argument, context);
      if (in.malformed()) out += " UNREADABLE";
      out += "\n";
    }
    if (messages.malformed()) out += sequence + " UNREADABLE\n";
  }
  return out;
}

class IndependentReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (system("python3 -c pass 2>/dev/null") != 0) {
      GTEST_SKIP() << "python3 is not installed";
    }
    char path[] = "/tmp/tracefs-independent-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    path_ = path;
  }
  void TearDown() override {
    if (!path_.empty()) unlink(path_.c_str());
  }

  std::string ListWithPython(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    const std::string command =
        "python3 tests/golden/independent_reader.py " + path_ + " 2>/dev/null";
    FILE* pipe = popen(command.c_str(), "r");
    std::string out;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
      out.append(buffer, n);
    }
    const int status = pclose(pipe);
    if (out.empty() && WEXITSTATUS(status) == 1) return "refused";
    return out;
  }

  std::string path_;
};

// Blocks of any operations, with unknown messages and arguments among them.
// `start` becomes the offset of the first of them.
std::string RandomTrace(std::mt19937_64& random, size_t* start) {
  TraceBuilder trace;
  uint64_t time = 1000;
  const size_t blocks = 1 + random() % 4;
  for (size_t b = 0; b < blocks; ++b) {
    const uint32_t root = trace.DefinePath(0, "");
    const uint32_t process = trace.DefineProcess(test::RandomCaller(random));
    for (int i = 0; i < 20; ++i) {
      const RandomEvent event(random, static_cast<Op>(random() % kOpCount),
                              ++time);
      trace.Add(event.event, {.path = root, .process = process});
      if (random() % 10 == 0) {
        trace.AddRaw(
            static_cast<uint16_t>(random() | 0x4000), [&](MessageWriter& out) {
              out.PutText(static_cast<uint16_t>(random()), "something new");
            });
      }
    }
    trace.AddLoss({.reason = "queue_full", .count = random() % 100});
    trace.EndBlock();
    if (random() % 5 == 0) trace.AppendFrame("of another kind", 9);
    if (random() % 5 == 0) trace.SkipSequence();
  }
  trace.Finish();
  *start = trace.frame_offsets()[1];
  return trace.bytes();
}

TEST_F(IndependentReaderTest, AgreesOnWholeTraces) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 10; ++round) {
    size_t start;
    const std::string bytes = RandomTrace(random, &start);
    const std::string expected = ListWithPython(bytes);
    EXPECT_GT(expected.size(), 10'000u);
    ASSERT_EQ(ListWithLibrary(bytes), expected);
  }
}

// The other reader knows no message but by the syntax, and what the trace says
// of itself.
TEST_F(IndependentReaderTest, ListsEveryMessageOfNewerWriters) {
  std::ifstream file("tests/golden/v1/later_version.trace", std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  const std::string listed = ListWithPython(golden);
  EXPECT_EQ(listed, ListWithLibrary(golden));
  EXPECT_THAT(listed, testing::HasSubstr(" MSG_NAP ARG_MOOD="));

  std::mt19937_64 random(8);
  size_t start;
  std::string bytes = RandomTrace(random, &start);
  const std::string expected = ListWithPython(bytes);
  const Result<size_t> length = PreambleLength(AsBytes(bytes));
  ASSERT_TRUE(length.ok());
  Result<Preamble> later = DecodePreamble(AsBytes(bytes).first(*length));
  ASSERT_TRUE(later.ok());
  later->format_version = kFormatVersion + 2;
  bytes.replace(0, *length, EncodePreamble(*later));
  // Nothing is left out for being new.
  EXPECT_EQ(ListWithPython(bytes), expected);
  EXPECT_EQ(ListWithLibrary(bytes), expected);
  const auto lines =
      static_cast<size_t>(std::count(expected.begin(), expected.end(), '\n'));
  EXPECT_GT(lines, 40u);
}

TEST_F(IndependentReaderTest, AgreesOnDamagedTraces) {
  std::mt19937_64 random(7);
  // Preamble and START stay whole: without them the library falls back on what
  // it knows, which the other reader does not.
  size_t start;
  const std::string whole = RandomTrace(random, &start);
  const auto any_place = [&](const std::string& bytes) {
    return start + random() % (bytes.size() - start);
  };
  for (int round = 0; round < 25; ++round) {
    std::string bytes = whole;
    for (uint64_t i = random() % 3; i > 0; --i) {
      bytes[any_place(bytes)] = static_cast<char>(random());
    }
    if (random() % 3 == 0) {
      bytes.insert(any_place(bytes),
                   whole.substr(any_place(whole), random() % 3000));
    }
    if (random() % 3 == 0) bytes.resize(any_place(bytes));
    ASSERT_EQ(ListWithLibrary(bytes), ListWithPython(bytes));
  }
}

}  // namespace
}  // namespace tracefs::format
