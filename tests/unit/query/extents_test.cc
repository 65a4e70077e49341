// Where files lie: the text that traces have of it, layouts, distances, and
// what lies about them.
#include "tracefs/event/extents.h"

#include <gtest/gtest.h>
#include <linux/fiemap.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tests/unit/query/told_operations.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/file_layout.h"

namespace tracefs::query {
namespace {

using test::TraceBuilder;

constexpr uint64_t kBlock = 4096;

TEST(ExtentTextTest, WhatIsWrittenIsRead) {
  const std::vector<Extent> all = {
      {0, 1052672, 4096, 0},
      {8192, 0, 10, FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_NOT_ALIGNED},
      {1 << 20, 77, 4096, FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_LAST},
      {uint64_t{1} << 62, uint64_t{1} << 63, 4096, 0x10000000}};
  std::string text;
  for (const Extent& extent : all) AppendExtent(extent, &text);
  EXPECT_EQ(text,
            "0+4096@1052672 8192+10@0:not-aligned,inline "
            "1048576+4096@77:last,unwritten "
            "4611686018427387904+4096@9223372036854775808:0x10000000");
  std::string_view left = text;
  for (const Extent& extent : all) {
    Extent taken;
    ASSERT_TRUE(TakeExtent(&left, &taken)) << left;
    EXPECT_EQ(taken, extent);
  }
  EXPECT_TRUE(left.empty());
}

TEST(ExtentTextTest, Malicious_WhatIsNoneIsNotTaken) {
  for (const std::string_view text : {"",
                                      " ",
                                      "0",
                                      "0+",
                                      "0+1",
                                      "0+1@",
                                      "+1@2",
                                      "-1+1@2",
                                      "0+1@2x",
                                      "0+1@2:nonsense",
                                      "0+1@2:0x",
                                      "0+1@2:0x100000000",
                                      "0+1@2:last,,",
                                      "0+1@2:,",
                                      "18446744073709551616+1@0",
                                      "18446744073709551615+1@0",
                                      "0+18446744073709551615@1",
                                      "1+18446744073709551615@0",
                                      "0 +1@2",
                                      "0x1+1@2",
                                      "0+1@2,last"}) {
    std::string_view left = text;
    Extent extent;
    EXPECT_FALSE(TakeExtent(&left, &extent)) << text;
    EXPECT_EQ(left, text);
  }
}

TEST(ExtentTextTest, Malicious_AnyBytesEnd) {
  std::mt19937 random(3);
  constexpr std::string_view kLetters = "0189+@:, lastx-\0\xff";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t i = random() % 30; i > 0; --i) {
      text += kLetters[random() % kLetters.size()];
    }
    std::string_view left = text;
    Extent extent;
    size_t taken = 0;
    while (TakeExtent(&left, &extent)) {
      ASSERT_LE(extent.logical, UINT64_MAX - extent.length);
      ASSERT_LE(extent.physical, UINT64_MAX - extent.length);
      ASSERT_LT(++taken, 31u);
    }
  }
}

TEST(SeekDistanceTest, ItIsTheWayFromTheEndInEitherDirection) {
  EXPECT_EQ(SeekDistance(100, 100), 0u);
  EXPECT_EQ(SeekDistance(100, 150), 50u);
  EXPECT_EQ(SeekDistance(150, 100), 50u);
  EXPECT_EQ(SeekDistance(0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(SeekDistance(UINT64_MAX, 0), UINT64_MAX);
}

TEST(FileLayoutTest, NeighboursThatLieSoAreOne) {
  FileLayout layout;
  layout.Add({0, 100 * kBlock, kBlock, 0});
  layout.Add({kBlock, 101 * kBlock, kBlock, FIEMAP_EXTENT_LAST});
  EXPECT_EQ(layout.Sums().extents, 1u);
  EXPECT_EQ(layout.Sums().jumps, 0u);
  layout.Add({2 * kBlock, 102 * kBlock, kBlock, FIEMAP_EXTENT_UNWRITTEN});
  EXPECT_EQ(layout.Sums().extents, 2u);
  EXPECT_EQ(layout.Sums().jumps, 0u);
  EXPECT_EQ(layout.Sums().unwritten, kBlock);
  layout.Add({3 * kBlock, 7 * kBlock, kBlock, 0});
  EXPECT_EQ(layout.Sums().extents, 3u);
  EXPECT_EQ(layout.Sums().jumps, 1u);
  EXPECT_EQ(layout.Sums().blocks, 4u);
}

TEST(FileLayoutTest, WhatIsToldLaterTakesThePlaceOfThatPart) {
  FileLayout layout;
  layout.Add({0, 100 * kBlock, 10 * kBlock, 0});
  layout.Add({4 * kBlock, 500 * kBlock, 2 * kBlock, 0});
  EXPECT_EQ(layout.pieces(), 3u);
  EXPECT_EQ(layout.Sums().bytes, 10 * kBlock);
  EXPECT_EQ(layout.Sums().jumps, 2u);
  layout.Add({4 * kBlock, 104 * kBlock, 2 * kBlock, 0});
  EXPECT_EQ(layout.Sums().extents, 1u);
  EXPECT_EQ(layout.Sums().jumps, 0u);
}

TEST(FileLayoutTest, ItHoldsWhatAMapOfBlocksHolds) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    FileLayout layout;
    std::map<uint64_t, uint64_t> blocks;
    for (int i = 0; i < 15; ++i) {
      const uint64_t begin = random() % 40;
      const uint64_t length = 1 + random() % 8;
      const uint64_t place = random() % 1000;
      const size_t before = layout.pieces();
      layout.Add({begin * kBlock, place * kBlock, length * kBlock, 0});
      ASSERT_LE(layout.pieces(), before + 2);
      for (uint64_t b = 0; b < length; ++b) blocks[begin + b] = place + b;
    }
    uint64_t jumps = 0;
    const uint64_t* last = nullptr;
    for (const auto& [logical, physical] : blocks) {
      if (last != nullptr && physical != *last + 1) ++jumps;
      last = &physical;
    }
    const LayoutSums sums = layout.Sums();
    ASSERT_EQ(sums.bytes, blocks.size() * kBlock);
    ASSERT_EQ(sums.blocks, blocks.size());
    ASSERT_EQ(sums.jumps, jumps);
  }
}

struct Told {
  std::string_view of = {};  // empty: it says nothing of that
  std::string extents = {};
  uint64_t left_out = 0;
  uint32_t error = 0;
  Op op = Op::fsync_;
  bool passed = false;  // it is not asked about
};

std::vector<Table> Ask(const std::vector<Told>& all) {
  TraceBuilder trace;
  uint64_t now = TraceBuilder::kMonotonicNs;
  for (const Told& told : all) {
    trace.AddRaw(format::OperationMessage(told.op, false),
                 [&](format::MessageWriter& out) {
                   out.Put<uint64_t>(Info(Field::kTime).arg_id, now);
                   out.Put<uint64_t>(Info(Field::kInode).arg_id, 5);
                   out.PutText(Info(Field::kPath).arg_id, "/f");
                   if (told.of.empty()) return;
                   out.Put<uint64_t>(Info(Field::kExtentsDevice).arg_id, 0x801);
                   if (told.left_out != 0) {
                     out.Put<uint64_t>(Info(Field::kExtentsLeftOut).arg_id,
                                       told.left_out);
                   }
                   if (told.error != 0) {
                     out.Put<uint32_t>(Info(Field::kExtentsErrno).arg_id,
                                       told.error);
                   }
                   out.PutText(Info(Field::kExtentsOf).arg_id, told.of);
                   out.PutText(Info(Field::kExtents).arg_id, told.extents);
                 });
    trace.CountEvent(now++);
  }
  trace.EndBlock();
  const auto extents = MakeExtents({});
  auto told = all.begin();
  test::ReadRecords(trace.bytes(), [&](const format::Record& record) {
    if ((told++)->passed) {
      extents->Pass(record, 0);
    } else {
      extents->Take(record, 0);
    }
  });
  return extents->Finish();
}

TEST(ExtentsTest, StepsAreFromTheEndOfOneAccessToTheNext) {
  const auto tables = Ask({{"written", "0+4096@40960 8192+4096@45056"},
                           {"read", "4096+4096@49152"},
                           {"read", "0+4096@40960"}});
  EXPECT_EQ(NumberAt(tables[1], 0, "accesses"), 4u);
  EXPECT_EQ(NumberAt(tables[1], 0, "distance_max"), 12288u);
  EXPECT_EQ(NumberAt(tables[1], 0, "distance_p50"), 0u);
  EXPECT_NEAR(tables[1].rows[0][3].share, 2.0 / 3, 1e-9);
  EXPECT_TRUE(tables[2].rows.empty());
}

TEST(ExtentsTest, WhatIsNotKnownIsSaidAndNoAccess) {
  const auto tables = Ask({{"file", "0+4096@40960"},
                           {"written", "0+4096@0:delalloc", 100},
                           {"written", "", 0, 95},
                           {"cold-unknown", "", 0, 38},
                           {"written,widened", "0+4096@4096"},
                           {"read", "0+8192@4096:encoded"}});
  EXPECT_EQ(NumberAt(tables[1], 0, "accesses"), 1u);
  EXPECT_EQ(tables[2].rows.size(), 7u);
}

// A file that gets the number of an earlier one does not get its extents,
// whichever of them is asked about.
TEST(ExtentsTest, WhatIsNotAskedAboutStillEndsAFile) {
  EXPECT_TRUE(MakeExtents({})->follows_files());
  for (const bool passed : {false, true}) {
    const Told unlink = {.of = "", .op = Op::unlink_, .passed = passed};
    const Told create = {.of = "", .op = Op::create_, .passed = passed};
    const auto tables = Ask({create,
                             {"written", "0+4096@40960"},
                             unlink,
                             create,
                             {"written", "4096+4096@81920"}});
    ASSERT_EQ(tables[0].rows.size(), 2u) << passed;
    EXPECT_EQ(NumberAt(tables[0], 0, "bytes"), 4096u);
    EXPECT_EQ(NumberAt(tables[0], 1, "bytes"), 4096u);
    EXPECT_EQ(NumberAt(tables[1], 0, "accesses"), 2u);
  }
}

TEST(ExtentsTest, Malicious_ListsThatLie) {
  std::string many;
  for (uint64_t i = 0; i < 10000; ++i) {
    AppendExtent({i * 8192, (i * 7919) % 100000 * 4096, 4096, 0}, &many);
  }
  const auto tables =
      Ask({{"read", many},
           {"read", "0+18446744073709551615@0"},
           {"read", "18446744073709551615+0@18446744073709551615"},
           {"read", "0+4096@8192 garbage 5+5@5"},
           {"read", "0+0@0 0+0@0"}});
  // No more than a tracer writes are taken of any operation.
  EXPECT_LE(NumberAt(tables[1], 0, "accesses"), 64u + 1 + 1 + 1 + 2);
  EXPECT_LE(NumberAt(tables[0], 0, "extents"), 64u + 4);
  bool said = false;
  for (const Row& row : tables[2].rows) {
    said |= row[0].text == "extents that cannot be read";
  }
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace tracefs::query
