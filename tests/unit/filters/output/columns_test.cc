// Sorting blocks by columns: whatever is a block comes back byte for byte, and
// columns that lie are refused.
#include "filters/output/columns.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tracefs/format/message_cursor.h"
#include "tracefs/format/names.h"

namespace tracefs {
namespace {

template <typename T>
void Append(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

class RandomBlock {
 public:
  explicit RandomBlock(unsigned seed) : random_(seed) {}

  // Messages of some shapes in any order, with any of this version's arguments.
  std::string Make(size_t shapes, size_t messages) {
    std::vector<std::pair<uint16_t, std::vector<uint16_t>>> kinds;
    const auto& known = format::BuiltInArguments();
    for (size_t i = 0; i < shapes; ++i) {
      std::vector<uint16_t> ids(Below(9));
      for (uint16_t& id : ids) {
        const format::ArgumentInfo& argument = known[Below(known.size())];
        const bool sized = argument.width == 0 || Below(9) == 0;
        id = argument.arg_id | (sized ? format::kHasLength : 0);
      }
      kinds.emplace_back(Below(5) * 77, std::move(ids));
    }
    std::string block;
    for (size_t i = 0; i < messages; ++i) {
      const auto& [msg_id, ids] = kinds[Below(kinds.size())];
      std::string arguments;
      for (const uint16_t id : ids) AppendArgument(id, &arguments);
      Append<uint16_t>(&block, msg_id);
      Append<uint32_t>(&block, static_cast<uint32_t>(arguments.size() + 6));
      block += arguments;
    }
    return block;
  }

  size_t Below(size_t n) { return random_() % n; }

 private:
  void AppendArgument(uint16_t id, std::string* out) {
    Append<uint16_t>(out, id);
    size_t size;
    if ((id & format::kHasLength) != 0) {
      size = Below(20);
      Append<uint32_t>(out, static_cast<uint32_t>(size));
    } else {
      size = static_cast<size_t>(format::BuiltInWidths().Of(id));
    }
    for (size_t i = 0; i < size; ++i) {
      out->push_back(static_cast<char>(Below(3) == 0 ? random_() : 0));
    }
  }

  std::mt19937_64 random_;
};

std::string Merge(ByteSpan columns, size_t size) {
  std::string block(size, '\x55');
  const Status status = MergeColumns(
      columns, std::as_writable_bytes(std::span(block.data(), block.size())));
  EXPECT_TRUE(status.ok()) << status.message();
  return block;
}

TEST(ColumnsTest, BlocksComeBackByteForByte) {
  ColumnSorter sorter;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomBlock random(seed);
    const std::string block = random.Make(1 + random.Below(12), 400);
    const ByteSpan columns = sorter.Sort(AsBytes(block));
    ASSERT_FALSE(columns.empty()) << seed;
    EXPECT_LE(columns.size(), block.size());
    ASSERT_TRUE(Merge(columns, block.size()) == block) << seed;
  }
}

TEST(ColumnsTest, WhatIsNoBlockIsLeftAlone) {
  ColumnSorter sorter;
  EXPECT_TRUE(sorter.Sort({}).empty());
  EXPECT_TRUE(sorter.Sort(AsBytes("no messages at all")).empty());
  std::string block = RandomBlock(1).Make(3, 100);
  EXPECT_TRUE(sorter.Sort(AsBytes(block + '\x01')).empty());
  EXPECT_TRUE(sorter.Sort(AsBytes(block).first(block.size() - 1)).empty());
  std::string undescribed;
  Append<uint16_t>(&undescribed, 300);
  Append<uint32_t>(&undescribed, 6 + 4);
  Append<uint32_t>(&undescribed, 999);  // an argument no one has described
  EXPECT_TRUE(sorter.Sort(AsBytes(block + undescribed)).empty());
}

TEST(ColumnsTest, ASortedBlockThatWouldGrowIsLeftAlone) {
  // Every message has a shape of its own.
  std::string block;
  for (uint16_t i = 0; i < 200; ++i) {
    Append<uint16_t>(&block, i);
    Append<uint32_t>(&block, 6);
  }
  ColumnSorter sorter;
  EXPECT_TRUE(sorter.Sort(AsBytes(block)).empty());
}

TEST(ColumnsTest, ChangedColumnsAreRefusedOrMakeABlockOfTheSameSize) {
  ColumnSorter sorter;
  for (unsigned seed = 0; seed < 8; ++seed) {
    RandomBlock random(seed);
    const std::string block = random.Make(4, 20);
    const std::string columns(AsText(sorter.Sort(AsBytes(block))));
    std::string out(block.size(), '\0');
    const auto merge = [&out](std::string_view from) {
      // Exactly as long as it is, so that ASan sees a read behind it.
      const std::unique_ptr<std::byte[]> copy(new std::byte[from.size()]);
      std::memcpy(copy.get(), from.data(), from.size());
      return MergeColumns(
          {copy.get(), from.size()},
          std::as_writable_bytes(std::span(out.data(), out.size())));
    };
    for (size_t cut = 0; cut < columns.size(); ++cut) {
      EXPECT_FALSE(merge(std::string_view(columns).substr(0, cut)).ok()) << cut;
    }
    EXPECT_FALSE(merge(columns + '\0').ok());
    for (size_t at = 0; at < columns.size(); ++at) {
      for (const char bits : {'\x01', '\x80', '\xff'}) {
        std::string changed = columns;
        changed[at] = static_cast<char>(changed[at] ^ bits);
        static_cast<void>(
            merge(changed));  // any verdict, but within its bounds
      }
    }
    out.resize(block.size() + 1);
    EXPECT_FALSE(merge(columns).ok());
    out.resize(block.size() - 1);
    EXPECT_FALSE(merge(columns).ok());
  }
}

TEST(ColumnsTest, ManyMessagesFromNothingAreRefused) {
  std::string columns;
  Append<uint32_t>(&columns, 1);
  Append<uint32_t>(&columns, 0xffffffff);  // messages
  Append<uint16_t>(&columns, 300);
  Append<uint16_t>(&columns, 0);
  std::vector<std::byte> block(1 << 20);
  EXPECT_FALSE(MergeColumns(AsBytes(columns), block).ok());
}

}  // namespace
}  // namespace tracefs
