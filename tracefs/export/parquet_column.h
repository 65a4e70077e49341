// ParquetColumn: the values of one column of a row group, and the pages that
// they become: definition levels, then dictionary numbers or plain values,
// compressed with zstd. https://parquet.apache.org/docs/file-format/
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

enum class ParquetType : uint8_t {
  kFlag,  // BOOLEAN, never null
  kUnsigned32,
  kUnsigned64,
  kSigned64,
  kTimestamp,  // ns since 1970, no zone
  kText,       // UTF-8, with a dictionary as long as that is worth it
  kBytes,
};

// What a footer says of the column in one row group.
struct ParquetChunk {
  uint64_t values = 0;  // rows, nulls among them
  uint64_t nulls = 0;
  uint64_t plain_bytes = 0;  // with the headers of pages
  uint64_t file_bytes = 0;
  uint64_t dictionary_size = 0;  // bytes of its page; 0 = there is none
  bool has_range = false;
  std::string min, max;  // as in a page, but text without its length
  bool min_exact = true;
  bool max_exact = true;
};

// Used by one thread.
class ParquetColumn {
 public:
  ParquetColumn(std::string name, ParquetType type)
      : name_(std::move(name)), type_(type) {}

  const std::string& name() const { return name_; }
  ParquetType type() const { return type_; }
  bool required() const { return type_ == ParquetType::kFlag; }
  int physical_type() const;

  // Values of row number `row` of the group; rows that are passed over are
  // null, or false. Once a row.
  void Put(uint32_t row, uint64_t value) {
    Present(row);
    numbers_.push_back(value);
  }
  void PutText(uint32_t row, std::string_view text);

  size_t memory_bytes() const {
    return text_bytes_ + sizeof numbers_[0] * numbers_.size();
  }

  // The pages of `rows` rows, appended to `out`; the column is empty then.
  Status Flush(uint32_t rows, int level, std::string* out, ParquetChunk* chunk);

 private:
  void Present(uint32_t row) {
    const size_t word = row / 64;
    if (word >= present_.size()) [[unlikely]]
      present_.resize(word + 1, 0);
    present_[word] |= uint64_t{1} << row % 64;
  }
  uint32_t Lookup(std::string_view text);
  void GiveUpDictionary();
  void SetRange(ParquetChunk* chunk) const;
  // What pages hold, appended to `out`; `present` of the rows have a value.
  void AppendLevels(uint32_t rows, uint64_t present, std::string* out) const;
  void AppendValues(uint32_t rows, std::string* out) const;
  // `present_`, so many bytes of it.
  void AppendBits(size_t bytes, std::string* out) const;

  const std::string name_;
  const ParquetType type_;
  std::vector<uint64_t> present_;  // a bit a row, up to the last one present
  std::vector<uint64_t> numbers_;  // values, or numbers in the dictionary
  bool dictionary_ = true;         // of texts
  std::deque<std::string> words_;
  std::unordered_map<std::string_view, uint32_t> numbers_of_;
  // The numbers of recent texts, by address: most columns have few different
  // texts, and those stay where they are.
  std::array<uint32_t, 64> recent_{};
  size_t words_bytes_ = 0;
  std::string plain_;  // texts, once there is no dictionary any more
  std::string plain_min_, plain_max_;
  size_t text_bytes_ = 0;
};

}  // namespace tracefs
