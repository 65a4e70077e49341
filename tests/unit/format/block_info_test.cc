// BLOCK, LOSS and FINAL come back as written and fit where they must.
#include "tracefs/format/block_info.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/definitions.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"

namespace tracefs::format {
namespace {

Message Only(ByteSpan bytes) {
  MessageCursor in(bytes);
  Message message;
  EXPECT_TRUE(in.Next(&message));
  Message none;
  EXPECT_FALSE(in.Next(&none));
  EXPECT_FALSE(in.malformed());
  return message;
}

TEST(BlockHeadTest, RoundTripInExactlyItsSize) {
  const BlockHead head = {.tracer_id = 2,
                          .clock = {.monotonic_ns = 3, .real_ns = 4},
                          .first_ns = 5,
                          .last_ns = 6,
                          .watermark_ns = 7,
                          .events = 8};
  std::vector<std::byte> memory(kBlockInfoBytes);
  MessageWriter out(memory);
  ASSERT_TRUE(WriteBlockHead(out, head));
  EXPECT_EQ(out.left(), 0u);
  BlockHead read;
  ASSERT_TRUE(ReadBlockHead(Only(out.bytes()).arguments, &read));
  EXPECT_EQ(read.tracer_id, 2u);
  EXPECT_EQ(read.clock.monotonic_ns, 3u);
  EXPECT_EQ(read.clock.real_ns, 4u);
  EXPECT_EQ(read.first_ns, 5u);
  EXPECT_EQ(read.last_ns, 6u);
  EXPECT_EQ(read.watermark_ns, 7u);
  EXPECT_EQ(read.events, 8u);
}

TEST(LossTest, RoundTrip) {
  std::vector<std::byte> memory(100);
  MessageWriter out(memory);
  ASSERT_TRUE(WriteLoss(
      out, {.reason = "queue_full", .count = 10, .first_ns = 1, .last_ns = 2}));
  LossRecord read;
  ReadLoss(Only(out.bytes()).arguments, &read);
  EXPECT_EQ(read.reason, "queue_full");
  EXPECT_EQ(read.count, 10u);
  EXPECT_EQ(read.first_ns, 1u);
  EXPECT_EQ(read.last_ns, 2u);
}

TEST(FinalTest, RoundTripOfTheLargestFitsInItsReserve) {
  FinalRecord final_record;
  final_record.tracer_id = 7;
  final_record.clock = {.monotonic_ns = 8, .real_ns = 9};
  final_record.events = 100;
  final_record.blocks = 5;
  final_record.end_reason = std::string(64, 'r');
  for (const uint16_t id : BuiltInMessages()) {
    final_record.op_totals.push_back({id, uint64_t{id} * 3});
  }
  for (const char* reason :
       {"output_error", "too_large", "queue_full", "throttled"}) {
    final_record.loss_totals.push_back({reason, 9});
  }
  std::vector<std::byte> memory(kFinalMaxBytes);
  MessageWriter out(memory);
  ASSERT_TRUE(WriteFinal(out, final_record));
  FinalRecord read;
  ReadFinal(Only(out.bytes()).arguments, &read);
  EXPECT_EQ(read.tracer_id, 7u);
  EXPECT_EQ(read.clock.monotonic_ns, 8u);
  EXPECT_EQ(read.clock.real_ns, 9u);
  EXPECT_EQ(read.events, 100u);
  EXPECT_EQ(read.blocks, 5u);
  EXPECT_EQ(read.end_reason, final_record.end_reason);
  ASSERT_EQ(read.op_totals.size(), final_record.op_totals.size());
  for (size_t i = 0; i < read.op_totals.size(); ++i) {
    EXPECT_EQ(read.op_totals[i].msg_id, final_record.op_totals[i].msg_id);
    EXPECT_EQ(read.op_totals[i].count, final_record.op_totals[i].count);
  }
  ASSERT_EQ(read.loss_totals.size(), 4u);
  EXPECT_EQ(read.loss_totals[2].reason, "queue_full");
  EXPECT_EQ(read.loss_totals[2].count, 9u);
}

TEST(DefinitionsTest, RootHasNeitherParentNorName) {
  std::vector<std::byte> memory(100);
  MessageWriter out(memory);
  ASSERT_TRUE(WriteDefPath(out, 1, 0, ""));
  EXPECT_EQ(out.size(), kMessageHeaderBytes + 2 + 4);
  ASSERT_TRUE(WriteDefPath(out, 2, 1, "usr"));
  EXPECT_EQ(out.size(), 2 * (kMessageHeaderBytes + 2 + 4) + 6 + 6 + 3);
}

}  // namespace
}  // namespace tracefs::format
