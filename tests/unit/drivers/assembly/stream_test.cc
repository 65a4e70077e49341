// What the stream driver asks for and puts into its messages.
#include "drivers/assembly/stream.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/filter_world.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/pipeline/block_builder.h"

namespace tracefs {
namespace {

using testing::FilterWorld;

class StreamTest : public ::testing::Test {
 protected:
  // The numbers of the one message that an event becomes, by argument.
  std::map<uint16_t, uint64_t> Numbers(uint64_t flags, Event event) {
    std::map<uint16_t, uint64_t> numbers;
    ForEachArgument(flags, event, [&](const format::Argument& argument) {
      if (argument.has_length) return;
      numbers[argument.id] = argument.is<uint64_t>()   ? argument.As<uint64_t>()
                             : argument.is<uint32_t>() ? argument.As<uint32_t>()
                                                       : argument.As<uint8_t>();
    });
    return numbers;
  }

  // Likewise the texts.
  std::map<uint16_t, std::string> Texts(uint64_t flags, Event event) {
    std::map<uint16_t, std::string> texts;
    ForEachArgument(flags, event, [&](const format::Argument& argument) {
      if (argument.has_length) texts[argument.id] = AsText(argument.value);
    });
    return texts;
  }

  // Of the operation's message, not of the definitions before it.
  template <typename Use>
  void ForEachArgument(uint64_t flags, Event& event, Use use) {
    BlockBuilder block(4096);
    const size_t begin = block.writer().size();
    block.Mark();
    EXPECT_TRUE(MakeStream(flags)->Assemble(event, block));
    format::MessageCursor messages(block.writer().bytes().subspan(begin));
    format::Message message;
    while (messages.Next(&message)) {
      if (message.msg_id != format::OperationMessage(event.op, event.before)) {
        continue;
      }
      const format::ArgumentWidths widths;
      format::ArgumentCursor arguments(message.arguments, widths);
      format::Argument argument;
      while (arguments.Next(&argument)) use(argument);
    }
  }

  // A read of 100 bytes of node 4, which has attributes below.
  Event Read() {
    Event event;
    event.op = Op::read_;
    event.resolver = &world_;
    event.node = 4;
    event.Set(Field::kTime, 1);
    event.Set(Field::kInode, 4);
    event.SetResult(100, 0);
    return event;
  }

  // A copy from node 4 (/d/Makefile) to node 6 (/d/e/a).
  Event Copy() {
    Event event = Read();
    event.op = Op::copy_file_range_;
    event.new_parent = 6;
    event.Set(Field::kInodeOut, 6);
    event.Set(Field::kFhOut, 21);
    event.Set(Field::kOffsetOut, 8192);
    return event;
  }

  FilterWorld world_;
  static constexpr uint16_t kNlink = 43;
  static constexpr uint16_t kSize = 44;
};

// The paper's "fields of VFS objects: inode number, link count, and size".
TEST_F(StreamTest, AReadCarriesTheFilesAttributesWhereTheyAreAskedFor) {
  const auto numbers =
      Numbers(StreamFlagBits("STR_ALL") | StreamFlagBits("STR_ATTR"), Read());
  EXPECT_EQ(numbers.at(kSize), 4000u);
  EXPECT_EQ(numbers.count(kNlink), 1u);
  EXPECT_EQ(numbers.at(40), 100u);
  EXPECT_EQ(world_.attributes_resolved, 1);
  // The flag alone asks for the inode as well.
  EXPECT_EQ(Numbers(StreamFlagBits("STR_ATTR"), Read()).at(10), 4u);
}

TEST_F(StreamTest, WithoutTheFlagNobodyPaysForThem) {
  const auto numbers = Numbers(StreamFlagBits("STR_ALL"), Read());
  EXPECT_EQ(numbers.count(kNlink), 0u);
  EXPECT_EQ(numbers.count(kSize), 0u);
  EXPECT_EQ(world_.attributes_resolved, 0);
  // What the operation returned itself is there all the same.
  Event with = Read();
  with.Set(Field::kSize, 7);
  EXPECT_EQ(Numbers(StreamFlagBits("STR_ALL"), with).at(kSize), 7u);
}

TEST_F(StreamTest, AMessageBeforeTheOperationHasNone) {
  Event before = Read();
  before.before = true;
  const uint32_t flags = StreamFlagBits("STR_ALL") |
                         StreamFlagBits("STR_PRE_OP") |
                         StreamFlagBits("STR_ATTR");
  EXPECT_EQ(Numbers(flags, before).count(kSize), 0u);
  EXPECT_EQ(world_.attributes_resolved, 0);
}

TEST_F(StreamTest, ACopyCarriesBothEnds) {
  const auto numbers = Numbers(StreamFlagBits("STR_ALL"), Copy());
  EXPECT_EQ(numbers.at(15), 6u);      // ARG_INODE_OUT
  EXPECT_EQ(numbers.at(14), 21u);     // ARG_FH_OUT
  EXPECT_EQ(numbers.at(17), 8192u);   // ARG_OFFSET_OUT
  EXPECT_EQ(numbers.count(130), 1u);  // ARG_PATH_ID
  EXPECT_EQ(numbers.count(132), 1u);  // ARG_NEW_PARENT_PATH_ID
  EXPECT_EQ(numbers.count(65), 0u);   // ARG_NEW_NAME
}

TEST_F(StreamTest, WithoutPathsACopyNamesItsDestination) {
  const uint64_t flags = StreamFlagBits("STR_FNAME");
  EXPECT_EQ(Texts(flags, Copy()),
            (std::map<uint16_t, std::string>{{64, "Makefile"}, {65, "a"}}));
}

TEST_F(StreamTest, ACopySaysWhereItsBytesAreLeftOut) {
  constexpr uint16_t kLeftOut = 51;
  for (const char* flag : {"STR_DATA", "STR_DATA_CKSUM"}) {
    const uint64_t flags = StreamFlagBits("STR_ALL") | StreamFlagBits(flag);
    EXPECT_TRUE(MakeStream(flags)->Needs(Op::copy_file_range_).data);
    Event copy = Copy();
    copy.data = AsBytes("bytes");
    EXPECT_EQ(Numbers(flags, copy).count(kLeftOut), 0u);
    copy = Copy();
    copy.Set(Field::kDataLeftOut, 1);
    EXPECT_EQ(Numbers(flags, copy).at(kLeftOut), 1u);
  }
  Event copy = Copy();
  copy.Set(Field::kDataLeftOut, 1);
  EXPECT_EQ(Numbers(StreamFlagBits("STR_ALL"), copy).count(kLeftOut), 0u)
      << "a tracer that keeps no data leaves none out";
  EXPECT_FALSE(
      MakeStream(StreamFlagBits("STR_ALL"))->Needs(Op::copy_file_range_).data);
}

}  // namespace
}  // namespace tracefs
