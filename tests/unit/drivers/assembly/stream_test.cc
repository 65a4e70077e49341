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
  std::map<uint16_t, uint64_t> Numbers(uint32_t flags, Event event) {
    BlockBuilder block(4096);
    const size_t begin = block.writer().size();
    block.Mark();
    EXPECT_TRUE(MakeStream(flags)->Assemble(event, block));
    std::map<uint16_t, uint64_t> numbers;
    format::MessageCursor messages(block.writer().bytes().subspan(begin));
    format::Message message;
    while (messages.Next(&message)) {
      const format::ArgumentWidths widths;
      format::ArgumentCursor arguments(message.arguments, widths);
      format::Argument argument;
      while (arguments.Next(&argument)) {
        numbers[argument.id] = argument.is<uint64_t>()
                                   ? argument.As<uint64_t>()
                                   : argument.As<uint32_t>();
      }
    }
    return numbers;
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

}  // namespace
}  // namespace tracefs
