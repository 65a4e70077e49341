// ParquetColumn: the values of one column of a row group, and the pages that
// they become: definition levels, then dictionary numbers or plain values,
// compressed with zstd. https://parquet.apache.org/docs/file-format/
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/text_dictionary.h"

struct ZSTD_CCtx_s;

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

// What making pages needs, kept from one to the next. Used by one thread at a
// time.
class ParquetPacker {
 public:
  ParquetPacker();

  // `level`: of zstd. `packed` is good until the next call.
  Status Compress(std::string_view page, int level, std::string_view* packed);
  // Empty; one page at a time is made in it.
  std::string& Page() {
    page_.clear();
    return page_;
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::string page_;
  std::unique_ptr<char[]> memory_;  // its new bytes are not cleared
  size_t size_ = 0;
};

// Used by one thread.
class ParquetColumn {
 public:
  ParquetColumn(std::string name, ParquetType type)
      : name_(std::move(name)),
        type_(type),
        wide_(type == ParquetType::kUnsigned64 ||
              type == ParquetType::kSigned64 ||
              type == ParquetType::kTimestamp) {}

  const std::string& name() const { return name_; }
  ParquetType type() const { return type_; }
  bool required() const { return type_ == ParquetType::kFlag; }
  int physical_type() const;

  // Values of row number `row` of the group; rows that are passed over are
  // null, or false. Once a row.
  void Put(uint32_t row, uint64_t value) {
    Present(row);
    if (wide_) {
      numbers_.push_back(value);
    } else {
      narrow_.push_back(static_cast<uint32_t>(value));
    }
  }
  // A text's number in the dictionary of the group, or kNoNumber: it has none.
  static constexpr uint32_t kNoNumber = UINT32_MAX;
  uint32_t PutText(uint32_t row, std::string_view text);
  // The text of that number again, while the group has_dictionary().
  void PutNumber(uint32_t row, uint32_t number) { Put(row, number); }
  bool has_dictionary() const { return dictionary_; }

  size_t memory_bytes() const {
    return text_bytes_ + sizeof(uint64_t) * (numbers_.size() + narrow_.size());
  }

  // The pages of `rows` rows, appended to `out`; the column is empty then.
  Status Flush(uint32_t rows, int level, ParquetPacker* packer,
               std::string* out, ParquetChunk* chunk);

 private:
  void Present(uint32_t row) {
    // Most columns have a value in each row, or in none.
    if (present_.empty() && values_ == row) {
      ++values_;
    } else {
      PresentAfterGap(row);
    }
  }
  void PresentAfterGap(uint32_t row);
  void MarkAll();
  uint32_t Lookup(std::string_view text);
  void GiveUpDictionary();
  // The dictionary must not be empty.
  std::pair<std::string_view, std::string_view> WordRange() const;
  void SetRange(ParquetChunk* chunk) const;
  // What pages hold, appended to `out`.
  void AppendLevels(uint32_t rows, std::string* out) const;
  void AppendValues(uint32_t rows, std::string* out) const;
  // `present_`, so many bytes of it.
  void AppendBits(size_t bytes, std::string* out) const;

  const std::string name_;
  const ParquetType type_;
  uint32_t values_ = 0;
  // A bit a row, up to the last one present; empty: the first `values_` rows.
  std::vector<uint64_t> present_;
  const bool wide_;                // values have 64 bits
  std::vector<uint64_t> numbers_;  // if they do
  std::vector<uint32_t> narrow_;   // others, or numbers in the dictionary
  bool dictionary_ = true;         // of texts
  TextDictionary words_;
  // The numbers of recent texts, by address: most columns have few different
  // texts, and those stay where they are.
  std::array<uint32_t, 64> recent_{};
  std::string plain_;  // texts, once there is no dictionary any more
  std::string plain_min_, plain_max_;
  size_t text_bytes_ = 0;
};

}  // namespace tracefs
