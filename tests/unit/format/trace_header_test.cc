// START: what is written describes this version fully, and comes back.
#include "tracefs/format/trace_header.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

TraceHeader SomeHeader() {
  TraceHeader header;
  header.tracer_id = 3;
  header.clock = {.monotonic_ns = 1000, .real_ns = 1'700'000'000'000'000'000};
  header.Set("host.name", "box");
  header.Set("filter.text", "cuid = 0\nOR cgid = 1");
  header.Set("empty", "");
  return header;
}

SelfDescription Read(ByteSpan block) {
  MessageCursor messages(block);
  Message message;
  EXPECT_TRUE(messages.Next(&message));
  EXPECT_EQ(message.msg_id, 1);
  SelfDescription description;
  EXPECT_TRUE(ReadStart(message.arguments, &description));
  EXPECT_FALSE(messages.Next(&message));
  EXPECT_FALSE(messages.malformed());
  return description;
}

TEST(TraceHeaderTest, RoundTrip) {
  const TraceHeader header = SomeHeader();
  const std::vector<std::byte> block = EncodeStartBlock(header);
  const SelfDescription read = Read(block);
  EXPECT_EQ(read.header.tracer_id, 3u);
  EXPECT_TRUE(read.has_clock);
  EXPECT_EQ(read.header.clock.monotonic_ns, header.clock.monotonic_ns);
  EXPECT_EQ(read.header.clock.real_ns, header.clock.real_ns);
  EXPECT_EQ(read.header.properties, header.properties);
  EXPECT_EQ(read.header.Get("host.name"), "box");
  EXPECT_EQ(read.header.Get("absent"), "");
}

TEST(TraceHeaderTest, NamesEveryMessageAndArgument) {
  const SelfDescription read = Read(EncodeStartBlock(SomeHeader()));
  EXPECT_EQ(read.messages.at(1), "MSG_START");
  EXPECT_EQ(read.messages.at(0x100 + 11), "MSG_OPEN");
  EXPECT_EQ(read.messages.at(0x200 + 34), "MSG_BEFORE_COPY_FILE_RANGE");
  EXPECT_EQ(read.messages.size(), 8 + 2 * kOpCount);
  EXPECT_EQ(read.arguments.at(24).name, "ARG_UID");
  EXPECT_EQ(read.arguments.at(24).width, 4);
  EXPECT_EQ(read.arguments.at(24).type, 8);
  EXPECT_EQ(read.arguments.at(162).name, "ARG_PROPERTY");
  EXPECT_EQ(read.arguments.size(), BuiltInArguments().size());
  for (const FieldInfo& f : Fields()) {
    if (f.field == Field::kOp) continue;
    EXPECT_EQ(read.arguments.at(f.arg_id).name, f.trace_name);
    EXPECT_EQ(read.arguments.at(f.arg_id).width, f.width);
  }
}

TEST(TraceHeaderTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  std::set<uint16_t> ids;
  for (const ArgumentInfo& argument : BuiltInArguments()) {
    EXPECT_TRUE(names.insert(argument.name).second) << argument.name;
    EXPECT_TRUE(ids.insert(argument.arg_id).second) << argument.arg_id;
  }
}

TEST(TraceHeaderTest, NeedsExactlyStartBytes) {
  const TraceHeader header = SomeHeader();
  std::vector<std::byte> memory(StartBytes(header));
  MessageWriter exact(memory);
  EXPECT_TRUE(WriteStart(exact, header));
  EXPECT_EQ(exact.left(), 0u);
  MessageWriter small(std::span<std::byte>(memory).first(memory.size() - 1));
  EXPECT_FALSE(WriteStart(small, header));
  EXPECT_EQ(small.size(), 0u);
}

TEST(TraceHeaderTest, Malicious_CutAnywhereReadsWhatCameBefore) {
  const std::vector<std::byte> block = EncodeStartBlock(SomeHeader());
  const ByteSpan arguments = ByteSpan(block).subspan(kMessageHeaderBytes);
  for (size_t size = 0; size < arguments.size(); ++size) {
    SelfDescription read;
    ReadStart(arguments.first(size), &read);
    EXPECT_LE(read.messages.size(), 8 + 2 * kOpCount);
  }
}

TEST(MessageNameTest, UnknownIdsHaveTheirNumber) {
  EXPECT_EQ(MessageName(0x100 + kOpCount),
            "MSG_" + std::to_string(0x100 + kOpCount));
  EXPECT_EQ(MessageName(0xffff), "MSG_65535");
  EXPECT_EQ(MessageName(0), "MSG_0");
}

TEST(OperationOfTest, IsTheInverseOfOperationMessage) {
  size_t operations = 0;
  for (uint32_t id = 0; id <= 0xffff; ++id) {
    bool before = false;
    const auto op = OperationOf(static_cast<uint16_t>(id), &before);
    if (!op) continue;
    EXPECT_EQ(OperationMessage(*op, before), id);
    ++operations;
  }
  EXPECT_EQ(operations, 2 * kOpCount);
}

}  // namespace
}  // namespace tracefs::format
