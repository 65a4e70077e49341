// What readers say: each finding in a line, with its numbers where they belong.
#include "tracefs/format/report.h"

#include <gtest/gtest.h>

#include <string>

namespace tracefs::format {
namespace {

std::string Text(ReportKind kind, uint64_t count = 3,
                 std::string_view detail = "why") {
  return Report{
      .kind = kind, .offset = 11, .number = 7, .count = count, .detail = detail}
      .Text();
}

TEST(ReportTest, EachKindNamesItsPlaceAndItsNumbers) {
  using K = ReportKind;
  EXPECT_EQ(Text(K::kDamaged), "damaged at byte 11: 3 bytes skipped (why)");
  EXPECT_EQ(Text(K::kDamaged, 1), "damaged at byte 11: 1 byte skipped (why)");
  EXPECT_EQ(Text(K::kCut),
            "cut within the block at byte 11: its 3 bytes are not usable");
  EXPECT_TRUE(Text(K::kNoFinal).starts_with("ends at byte 11 without a FINAL"));
  EXPECT_TRUE(Text(K::kUnfinished).starts_with("ends at byte 11 without a"));
  EXPECT_NE(Text(K::kUnfinished).find("--wait"), std::string::npos);
  EXPECT_NE(Text(K::kNoHeader).find("block 0 is lost"), std::string::npos);
  EXPECT_EQ(Text(K::kGap, 1), "block 7 is missing before byte 11: why");
  EXPECT_EQ(Text(K::kGap, 2),
            "2 blocks from block 7 on are missing before byte 11: why");
  EXPECT_EQ(Text(K::kDuplicate), "block 7 at byte 11 was seen before: skipped");
  EXPECT_EQ(Text(K::kUnknownFrame),
            "a block of unknown kind 7 at byte 11 was skipped");
  EXPECT_EQ(Text(K::kUndecodable), "block 7 at byte 11 cannot be decoded: why");
  for (const K kind :
       {K::kMalformedBlock, K::kMalformedMessage, K::kBadDefinition}) {
    EXPECT_TRUE(Text(kind).starts_with("block 7 at byte 11 "));
    EXPECT_TRUE(Text(kind).ends_with("skipped"));
  }
  EXPECT_EQ(Text(K::kUnknownMessage), "unknown message why (id 7) skipped");
  EXPECT_EQ(Text(K::kUnknownArgument), "unknown argument why (id 7)");
  EXPECT_EQ(Text(K::kLoss), "3 operations were not recorded: why");
  EXPECT_EQ(Text(K::kLoss, 1), "1 operation was not recorded: why");
  EXPECT_EQ(Text(K::kLoss, 0), "0 operations were not recorded: why");
  EXPECT_EQ(Text(K::kChange), "the tracer was changed: why");
  EXPECT_EQ(Text(K::kPart),
            "part 7 of a rotated trace: blocks 1 to 2 are in parts before it");
  EXPECT_EQ(Text(K::kGoesOn), "the trace goes on in part 7");
  EXPECT_EQ(Text(K::kSnapshot),
            "a snapshot of a flight recorder (why): 7 operations, and 3 before "
            "them that were overwritten");
  EXPECT_NE(Text(K::kUnordered).find("order"), std::string::npos);
}

// It comes from the trace: a terminal is not to obey it.
TEST(ReportTest, Malicious_DetailsArePrintableAndShort) {
  EXPECT_EQ(Text(ReportKind::kChange, 0, " a~\x1b[2J\n\x7f\xc3\xa9"),
            "the tracer was changed:  a~?[2J; ???");
  EXPECT_EQ(Text(ReportKind::kChange, 0, "filter.dag=0: a?1:2\n1: drop\n"),
            "the tracer was changed: filter.dag=0: a?1:2; 1: drop");
  const auto shown = [](ReportKind kind, size_t bytes) {
    const std::string text = Text(kind, 0, std::string(bytes, 'x'));
    return text.substr(text.find('x'));
  };
  for (const auto& [kind, most] : {std::pair{ReportKind::kChange, size_t{80}},
                                   {ReportKind::kUndecodable, size_t{240}}}) {
    EXPECT_EQ(shown(kind, most), std::string(most, 'x'));
    EXPECT_EQ(shown(kind, most + 1), std::string(most, 'x') + "...");
  }
}

TEST(ReadStatsTest, AddBlocksAddsEachNumberToItself) {
  // Each has a value that no sum of the others is.
  constexpr uint64_t ReadStats::*kNumbers[] = {&ReadStats::blocks,
                                               &ReadStats::events,
                                               &ReadStats::undecodable_blocks,
                                               &ReadStats::malformed_blocks,
                                               &ReadStats::malformed_messages,
                                               &ReadStats::bad_definitions,
                                               &ReadStats::aggregates,
                                               &ReadStats::states,
                                               &ReadStats::alarms,
                                               &ReadStats::process_records,
                                               &ReadStats::lost_events};
  ReadStats one;
  ReadStats sum;
  uint64_t bit = 1;
  for (const auto number : kNumbers) {
    one.*number = bit;
    sum.*number = bit << 20;
    bit *= 2;
  }
  sum.AddBlocks(one);
  bit = 1;
  for (const auto number : kNumbers) {
    EXPECT_EQ(sum.*number, bit + (bit << 20));
    bit *= 2;
  }
  // The end is that of whoever has it.
  EXPECT_FALSE(sum.final_record);
  one.final_record.emplace();
  one.final_record->events = 9;
  sum.AddBlocks(one);
  ASSERT_TRUE(sum.final_record);
  sum.AddBlocks(ReadStats());
  ASSERT_TRUE(sum.final_record);
  EXPECT_EQ(sum.final_record->events, 9u);
}

// A message that is known already counts on when there is no room for others.
TEST(ReadStatsTest, KnownReasonsCountOnWhenTheyAreTooMany) {
  ReadStats sum;
  for (size_t i = 0; i < ReadStats::kMaxReasons; ++i) {
    ReadStats one;
    one.losses["r" + std::to_string(i)] = 1;
    one.lost_messages[static_cast<uint16_t>(i)] = 1;
    sum.AddBlocks(one);
  }
  EXPECT_FALSE(sum.losses.contains("other"));
  ReadStats again;
  again.losses["r0"] = 5;
  again.losses["new"] = 7;
  again.lost_messages[0] = 5;
  again.lost_messages[999] = 7;
  sum.AddBlocks(again);
  EXPECT_EQ(sum.losses["r0"], 6u);
  EXPECT_EQ(sum.losses["other"], 7u);
  EXPECT_FALSE(sum.losses.contains("new"));
  EXPECT_EQ(sum.lost_messages[0], 6u);
  EXPECT_FALSE(sum.lost_messages.contains(999));
}

}  // namespace
}  // namespace tracefs::format
