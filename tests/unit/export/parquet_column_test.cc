// Pages of Parquet columns, against a model that puts them together bit by bit.
// https://parquet.apache.org/docs/file-format/data-pages/encodings/
#include "tracefs/export/parquet_column.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tracefs {
namespace {

using Bits = std::vector<bool>;

void AddBits(uint64_t value, unsigned width, Bits* bits) {
  for (unsigned i = 0; i < width; ++i) bits->push_back((value >> i & 1) != 0);
}

// The first bit is the lowest of the first byte.
std::string Bytes(const Bits& bits) {
  std::string bytes((bits.size() + 7) / 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << i % 8);
  }
  return bytes;
}

std::string Little(uint64_t value, unsigned bytes) {
  Bits bits;
  AddBits(value, 8 * bytes, &bits);
  return Bytes(bits);
}

std::string Varint(uint64_t value) {
  std::string out;
  while (value >= 128) {
    out += static_cast<char>(value % 128 + 128);
    value /= 128;
  }
  return out + static_cast<char>(value);
}

// A run of packed numbers: filled up to eight.
std::string Packed(std::vector<uint64_t> numbers, unsigned width) {
  numbers.resize((numbers.size() + 7) / 8 * 8);
  Bits bits;
  for (const uint64_t number : numbers) AddBits(number, width, &bits);
  return Varint(numbers.size() / 8 * 2 + 1) + Bytes(bits);
}

using Rows = std::vector<std::optional<uint64_t>>;

std::string Levels(const Rows& rows) {
  std::vector<uint64_t> there;
  size_t count = 0;
  for (const auto& row : rows) {
    there.push_back(row ? 1 : 0);
    count += row ? 1 : 0;
  }
  const std::string runs =
      count == 0 || count == rows.size()
          ? Varint(rows.size() * 2) + Little(count == 0 ? 0 : 1, 1)
          : Packed(there, 1);
  return Little(runs.size(), 4) + runs;
}

std::string Compressed(const std::string& page) {
  std::string out(ZSTD_compressBound(page.size()), '\0');
  out.resize(
      ZSTD_compress(out.data(), out.size(), page.data(), page.size(), 1));
  return out;
}

Rows Draw(size_t count, unsigned one_in, uint64_t below, unsigned seed) {
  std::mt19937_64 draw(seed);
  Rows rows(count);
  for (auto& row : rows) {
    if (draw() % one_in == 0) row = draw() % below;
  }
  return rows;
}

// All of what Flush made after the head of its last page.
void ExpectLastPage(ParquetColumn* column, const Rows& rows,
                    const std::string& page) {
  size_t nulls = 0;
  for (const auto& row : rows) nulls += row ? 0 : 1;
  std::string out;
  ParquetChunk chunk;
  ParquetPacker packer;
  ASSERT_TRUE(
      column
          ->Flush(static_cast<uint32_t>(rows.size()), 1, &packer, &out, &chunk)
          .ok());
  EXPECT_TRUE(out.ends_with(Compressed(page))) << rows.size() << " rows";
  EXPECT_EQ(chunk.values, rows.size());
  EXPECT_EQ(chunk.nulls, column->required() ? 0 : nulls);
}

const size_t kCounts[] = {1, 7, 8, 9, 63, 64, 65, 127, 128, 200, 1000};

TEST(ParquetColumnTest, NumbersThatAreThereNowAndThen) {
  ParquetColumn wide("size", ParquetType::kUnsigned64);
  ParquetColumn narrow("uid", ParquetType::kUnsigned32);
  for (const size_t count : kCounts) {
    for (const unsigned one_in : {1U, 2U, 70U, 100000U}) {
      const Rows rows = Draw(count, one_in, uint64_t{1} << 32, one_in);
      std::string wide_page = Levels(rows);
      std::string narrow_page = wide_page;
      for (uint32_t i = 0; i < rows.size(); ++i) {
        if (!rows[i]) continue;
        wide.Put(i, *rows[i]);
        narrow.Put(i, *rows[i]);
        wide_page += Little(*rows[i], 8);
        narrow_page += Little(*rows[i], 4);
      }
      ExpectLastPage(&wide, rows, wide_page);
      ExpectLastPage(&narrow, rows, narrow_page);
    }
  }
}

TEST(ParquetColumnTest, FlagsAreABitARow) {
  ParquetColumn flags("mapped", ParquetType::kFlag);
  for (const size_t count : kCounts) {
    const Rows rows = Draw(count, 3, 2, 5);
    Bits bits;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      bits.push_back(rows[i].has_value());
      if (rows[i]) flags.Put(i, 1);
    }
    ExpectLastPage(&flags, rows, Bytes(bits));
  }
}

// With so many words that their numbers have 1 to 14 bits.
TEST(ParquetColumnTest, TextsAreNumbersOfWords) {
  ParquetColumn texts("path", ParquetType::kText);
  for (const uint64_t words : {1, 2, 3, 5, 100, 1000, 10000}) {
    const Rows rows = Draw(12345, 2, words, 9);
    // Words are numbered as they come.
    std::vector<uint64_t> number_of(words, UINT64_MAX);
    uint64_t last = 0;
    std::vector<uint64_t> numbers;
    // The same text at other places, and others at the same place.
    std::string here;
    std::string there;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      if (!rows[i]) continue;
      std::string& text = i % 3 == 0 ? here : there;
      text = "/file/" + std::to_string(*rows[i]);
      texts.PutText(i, text);
      uint64_t& number = number_of[*rows[i]];
      if (number == UINT64_MAX) number = last++;
      numbers.push_back(number);
    }
    unsigned width = 1;
    while (last - 1 >= uint64_t{1} << width) ++width;
    ExpectLastPage(&texts, rows,
                   Levels(rows) + Little(width, 1) + Packed(numbers, width));
  }
}

}  // namespace
}  // namespace tracefs
