#include "tracefs/export/parquet_column.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string_view>

#include "tracefs/base/append_le.h"
#include "tracefs/export/thrift_compact.h"

namespace tracefs {
namespace {

// A dictionary that is larger is not worth its page.
constexpr size_t kMaxWords = 65'536;
constexpr size_t kMaxWordsBytes = size_t{4} << 20;
constexpr size_t kMaxRangeBytes = 64;

constexpr int32_t kPlain = 0;
constexpr int32_t kRle = 3;
constexpr int32_t kRleDictionary = 8;

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

// So many groups of eight packed numbers follow.
void AppendPackedHead(size_t groups, std::string* out) {
  AppendVarint(groups << 1 | 1, out);
}

// All of them in one run of packed bits, filled up to a multiple of eight.
void AppendPacked(const std::vector<uint64_t>& numbers, unsigned width,
                  std::string* out) {
  const size_t groups = (numbers.size() + 7) / 8;
  AppendPackedHead(groups, out);
  const size_t begin = out->size();
  const size_t bytes = groups * width;
  // Words are stored whole: the last one may end after the last number.
  out->resize(begin + bytes + sizeof(uint64_t));
  char* at = out->data() + begin;
  uint64_t bits = 0;
  unsigned count = 0;  // below 32 at the start of each turn; width <= 17
  for (const uint64_t number : numbers) {
    bits |= number << count;
    count += width;
    if (count >= 32) {
      StoreLe<uint32_t>(at, static_cast<uint32_t>(bits));
      at += sizeof(uint32_t);
      bits >>= 32;
      count -= 32;
    }
  }
  StoreLe<uint64_t>(at, bits);
  out->resize(begin + bytes);
}

// A buffer that keeps its memory, and whose new bytes are not cleared.
class Scratch {
 public:
  char* Take(size_t bytes) {
    if (bytes > size_) {
      memory_ = std::make_unique_for_overwrite<char[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<char[]> memory_;
  size_t size_ = 0;
};

// `packed` is valid until the next call by this thread.
Status Compress(const std::string& page, int level, std::string_view* packed) {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  static thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(
      ZSTD_createCCtx());
  static thread_local Scratch scratch;
  const size_t most = ZSTD_compressBound(page.size());
  char* const out = scratch.Take(most);
  const size_t size = ZSTD_compressCCtx(context.get(), out, most, page.data(),
                                        page.size(), level);
  if (ZSTD_isError(size) != 0) {
    return Status::SystemSaid(0,
                              std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  *packed = {out, size};
  return {};
}

// The start of a long text that is no greater, and no smaller, than it.
std::string CutDown(std::string_view text, bool* exact) {
  if (text.size() <= kMaxRangeBytes) return std::string(text);
  *exact = false;
  size_t size = kMaxRangeBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
    --size;
  }
  return std::string(text.substr(0, size));
}
std::string CutUp(std::string_view text, bool* exact) {
  std::string cut = CutDown(text, exact);
  if (cut.size() == text.size()) return cut;
  while (!cut.empty()) {
    if (static_cast<unsigned char>(cut.back()) < 0x7e) {
      ++cut.back();
      return cut;
    }
    cut.pop_back();
  }
  return cut;  // empty: there is none
}

}  // namespace

int ParquetColumn::physical_type() const {
  switch (type_) {
    case ParquetType::kFlag:
      return 0;
    case ParquetType::kUnsigned32:
      return 1;
    case ParquetType::kUnsigned64:
    case ParquetType::kSigned64:
    case ParquetType::kTimestamp:
      return 2;
    case ParquetType::kText:
    case ParquetType::kBytes:
      break;
  }
  return 6;
}

void ParquetColumn::PutText(uint32_t row, std::string_view text) {
  Present(row);
  if (dictionary_ && type_ == ParquetType::kText) {
    numbers_.push_back(Lookup(text));
    if (words_.size() <= kMaxWords && words_bytes_ <= kMaxWordsBytes) return;
    GiveUpDictionary();
    return;
  }
  dictionary_ = false;
  AppendLe(static_cast<uint32_t>(text.size()), &plain_);
  plain_ += text;
  text_bytes_ = plain_.size();
  if (type_ != ParquetType::kText) return;
  if (plain_min_.empty() || text < plain_min_) plain_min_ = text;
  if (text > plain_max_) plain_max_ = text;
}

uint32_t ParquetColumn::Lookup(std::string_view text) {
  uint32_t& recent =
      recent_[reinterpret_cast<uintptr_t>(text.data()) / 8 % recent_.size()];
  if (recent < words_.size() && words_[recent] == text) return recent;
  const auto found = numbers_of_.find(text);
  if (found != numbers_of_.end()) return recent = found->second;
  const auto number = static_cast<uint32_t>(words_.size());
  numbers_of_.emplace(words_.emplace_back(text), number);
  words_bytes_ += text.size() + 4;
  text_bytes_ = words_bytes_ + 64 * words_.size();
  return recent = number;
}

void ParquetColumn::GiveUpDictionary() {
  dictionary_ = false;
  for (const uint64_t number : numbers_) {
    const std::string& word = words_[number];
    AppendLe(static_cast<uint32_t>(word.size()), &plain_);
    plain_ += word;
  }
  plain_min_ = *std::ranges::min_element(words_);
  plain_max_ = *std::ranges::max_element(words_);
  text_bytes_ = plain_.size();
  numbers_.clear();
  numbers_of_.clear();
  words_.clear();
}

void ParquetColumn::AppendLevels(uint32_t rows, uint64_t present,
                                 std::string* out) const {
  const size_t head = out->size();
  AppendLe(uint32_t{0}, out);
  if (present == rows || present == 0) {
    AppendVarint(uint64_t{rows} << 1, out);  // one run of equals
    *out += static_cast<char>(present == 0 ? 0 : 1);
  } else {
    const size_t groups = (rows + 7) / 8;
    AppendPackedHead(groups, out);
    AppendBits(groups, out);
  }
  const size_t bytes = out->size() - head - sizeof(uint32_t);
  StoreLe<uint32_t>(&(*out)[head], static_cast<uint32_t>(bytes));
}

void ParquetColumn::AppendBits(size_t bytes, std::string* out) const {
  const size_t begin = out->size();
  const size_t whole = std::min(bytes / sizeof(uint64_t), present_.size());
  out->resize(begin + bytes, 0);
  for (size_t i = 0; i < whole; ++i) {
    StoreLe<uint64_t>(&(*out)[begin + i * sizeof(uint64_t)], present_[i]);
  }
  if (whole == present_.size()) return;
  uint64_t last = present_[whole];
  for (size_t i = whole * sizeof(uint64_t); i < bytes; ++i, last >>= 8) {
    (*out)[begin + i] = static_cast<char>(last);
  }
}

void ParquetColumn::AppendValues(uint32_t rows, std::string* out) const {
  const size_t begin = out->size();
  switch (type_) {
    case ParquetType::kFlag:
      AppendBits((rows + 7) / 8, out);
      return;
    case ParquetType::kUnsigned32:
      out->resize(begin + sizeof(uint32_t) * numbers_.size());
      for (size_t i = 0; i < numbers_.size(); ++i) {
        StoreLe<uint32_t>(&(*out)[begin + sizeof(uint32_t) * i],
                          static_cast<uint32_t>(numbers_[i]));
      }
      return;
    case ParquetType::kUnsigned64:
    case ParquetType::kSigned64:
    case ParquetType::kTimestamp:
      out->resize(begin + sizeof(uint64_t) * numbers_.size());
      for (size_t i = 0; i < numbers_.size(); ++i) {
        StoreLe<uint64_t>(&(*out)[begin + sizeof(uint64_t) * i], numbers_[i]);
      }
      return;
    case ParquetType::kText:
    case ParquetType::kBytes: {
      if (!dictionary_ || words_.empty()) {
        *out += plain_;
        return;
      }
      const auto width = static_cast<unsigned>(
          std::max(1, static_cast<int>(std::bit_width(words_.size() - 1))));
      *out += static_cast<char>(width);
      AppendPacked(numbers_, width, out);
    }
  }
}

void ParquetColumn::SetRange(ParquetChunk* chunk) const {
  if (type_ == ParquetType::kFlag || type_ == ParquetType::kBytes) return;
  if (type_ == ParquetType::kText) {
    const bool words = dictionary_ && !words_.empty();
    if (!words && plain_.empty()) return;
    const std::string& min =
        words ? *std::ranges::min_element(words_) : plain_min_;
    const std::string& max =
        words ? *std::ranges::max_element(words_) : plain_max_;
    chunk->min = CutDown(min, &chunk->min_exact);
    chunk->max = CutUp(max, &chunk->max_exact);
    chunk->has_range = !chunk->max.empty();
    return;
  }
  if (numbers_.empty()) return;
  const bool is_signed =
      type_ != ParquetType::kUnsigned32 && type_ != ParquetType::kUnsigned64;
  const uint64_t bias = is_signed ? uint64_t{1} << 63 : 0;
  uint64_t min = UINT64_MAX;
  uint64_t max = 0;
  for (const uint64_t number : numbers_) {
    min = std::min(min, number ^ bias);
    max = std::max(max, number ^ bias);
  }
  min ^= bias;
  max ^= bias;
  chunk->has_range = true;
  if (type_ == ParquetType::kUnsigned32) {
    AppendLe(static_cast<uint32_t>(min), &chunk->min);
    AppendLe(static_cast<uint32_t>(max), &chunk->max);
  } else {
    AppendLe(min, &chunk->min);
    AppendLe(max, &chunk->max);
  }
}

Status ParquetColumn::Flush(uint32_t rows, int level, std::string* out,
                            ParquetChunk* chunk) {
  uint64_t present = 0;
  for (const uint64_t word : present_) {
    present += static_cast<uint64_t>(std::popcount(word));
  }
  *chunk = {};
  chunk->values = rows;
  chunk->nulls = required() ? 0 : rows - present;
  SetRange(chunk);
  const size_t begin = out->size();
  std::string_view packed;
  const auto put_page = [&](const std::string& page, int32_t kind,
                            int32_t encoding, uint64_t values) -> Status {
    if (Status s = Compress(page, level, &packed); !s.ok()) return s;
    ThriftWriter head;
    head.I32(1, kind);
    head.I32(2, static_cast<int32_t>(page.size()));
    head.I32(3, static_cast<int32_t>(packed.size()));
    head.BeginStruct(kind == 0 ? 5 : 7);
    head.I32(1, static_cast<int32_t>(values));
    head.I32(2, encoding);
    if (kind == 0) {
      head.I32(3, kRle);
      head.I32(4, kRle);
    }
    head.EndStruct();
    head.End();
    *out += head.bytes();
    *out += packed;
    chunk->plain_bytes += head.bytes().size() + page.size();
    return {};
  };
  const bool words =
      type_ == ParquetType::kText && dictionary_ && !words_.empty();
  if (words) {
    std::string dictionary;
    for (const std::string& word : words_) {
      AppendLe(static_cast<uint32_t>(word.size()), &dictionary);
      dictionary += word;
    }
    if (Status s = put_page(dictionary, 2, kPlain, words_.size()); !s.ok()) {
      return s;
    }
    chunk->dictionary_size = out->size() - begin;
  }
  std::string page;
  if (!required()) AppendLevels(rows, present, &page);
  AppendValues(rows, &page);
  if (Status s = put_page(page, 0, words ? kRleDictionary : kPlain, rows);
      !s.ok()) {
    return s;
  }
  chunk->file_bytes = out->size() - begin;
  present_.clear();
  numbers_.clear();
  numbers_of_.clear();
  words_.clear();
  plain_.clear();
  plain_min_.clear();
  plain_max_.clear();
  words_bytes_ = text_bytes_ = 0;
  dictionary_ = true;
  return {};
}

}  // namespace tracefs
