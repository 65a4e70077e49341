#include "tracefs/export/parquet_column.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string_view>
#include <tuple>

#include "tracefs/base/append_le.h"
#include "tracefs/base/varint.h"
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

static_assert(std::endian::native == std::endian::little);
template <typename T>
void AppendNumbers(const std::vector<T>& numbers, std::string* out) {
  out->append(reinterpret_cast<const char*>(numbers.data()),
              sizeof(T) * numbers.size());
}
// `sign`: the bit that makes numbers negative; 0: none does.
template <typename T>
void AppendRange(const std::vector<T>& numbers, T sign, ParquetChunk* chunk) {
  T min = static_cast<T>(~T{0});
  T max = 0;
  for (const T number : numbers) {
    min = std::min<T>(min, number ^ sign);
    max = std::max<T>(max, number ^ sign);
  }
  AppendLe<T>(min ^ sign, &chunk->min);
  AppendLe<T>(max ^ sign, &chunk->max);
}

void AppendPlain(std::string_view text, std::string* out) {
  AppendLe(static_cast<uint32_t>(text.size()), out);
  *out += text;
}
// What they take in the page of a dictionary.
size_t WordsBytes(const TextDictionary& words) {
  return words.bytes().size() + sizeof(uint32_t) * words.size();
}

// So many groups of eight packed numbers follow.
void AppendPackedHead(size_t groups, std::string* out) {
  AppendVarint(groups << 1 | 1, out);
}

// All of them in one run of packed bits, filled up to a multiple of eight.
void AppendPacked(const std::vector<uint32_t>& numbers, unsigned width,
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

void ParquetPacker::Free::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

ParquetPacker::ParquetPacker() : context_(ZSTD_createCCtx()) {}

Status ParquetPacker::Compress(std::string_view page, int level,
                               std::string_view* packed) {
  const size_t most = ZSTD_compressBound(page.size());
  if (most > size_) {
    memory_ = std::make_unique_for_overwrite<char[]>(most);
    size_ = most;
  }
  const size_t size = ZSTD_compressCCtx(context_.get(), memory_.get(), most,
                                        page.data(), page.size(), level);
  if (ZSTD_isError(size) != 0) {
    return Status::SystemSaid(0,
                              std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  *packed = {memory_.get(), size};
  return {};
}

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

// A bit for each row that has none yet.
void ParquetColumn::MarkAll() {
  present_.assign(values_ / 64, UINT64_MAX);
  present_.push_back((uint64_t{1} << values_ % 64) - 1);
}

void ParquetColumn::PresentAfterGap(uint32_t row) {
  if (present_.empty()) MarkAll();
  const size_t word = row / 64;
  if (word >= present_.size()) present_.resize(word + 1, 0);
  present_[word] |= uint64_t{1} << row % 64;
  ++values_;
}

uint32_t ParquetColumn::PutText(uint32_t row, std::string_view text) {
  Present(row);
  if (dictionary_ && type_ == ParquetType::kText) {
    const uint32_t number = Lookup(text);
    narrow_.push_back(number);
    const size_t bytes = WordsBytes(words_);
    if (words_.size() <= kMaxWords && bytes <= kMaxWordsBytes) return number;
    GiveUpDictionary();
    return kNoNumber;
  }
  dictionary_ = false;
  AppendPlain(text, &plain_);
  text_bytes_ = plain_.size();
  if (type_ != ParquetType::kText) return kNoNumber;
  if (plain_min_.empty() || text < plain_min_) plain_min_ = text;
  if (text > plain_max_) plain_max_ = text;
  return kNoNumber;
}

uint32_t ParquetColumn::Lookup(std::string_view text) {
  uint32_t& recent =
      recent_[reinterpret_cast<uintptr_t>(text.data()) / 8 % recent_.size()];
  const size_t words = words_.size();
  if (recent < words && words_.At(recent) == text) return recent;
  recent = words_.Add(text);
  if (words_.size() != words) {
    text_bytes_ = WordsBytes(words_) + 64 * words_.size();
  }
  return recent;
}

void ParquetColumn::GiveUpDictionary() {
  dictionary_ = false;
  for (const uint32_t number : narrow_) {
    AppendPlain(words_.At(number), &plain_);
  }
  std::tie(plain_min_, plain_max_) = WordRange();
  text_bytes_ = plain_.size();
  narrow_.clear();
  words_ = TextDictionary();
}

std::pair<std::string_view, std::string_view> ParquetColumn::WordRange() const {
  std::string_view min = words_.At(0);
  std::string_view max = min;
  for (size_t i = 1; i < words_.size(); ++i) {
    min = std::min(min, words_.At(i));
    max = std::max(max, words_.At(i));
  }
  return {min, max};
}

void ParquetColumn::AppendLevels(uint32_t rows, std::string* out) const {
  const size_t head = out->size();
  AppendLe(uint32_t{0}, out);
  if (values_ == rows || values_ == 0) {
    AppendVarint(uint64_t{rows} << 1, out);  // one run of equals
    *out += static_cast<char>(values_ == 0 ? 0 : 1);
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
  switch (type_) {
    case ParquetType::kFlag:
      AppendBits((rows + 7) / 8, out);
      return;
    case ParquetType::kUnsigned32:
      AppendNumbers(narrow_, out);
      return;
    case ParquetType::kUnsigned64:
    case ParquetType::kSigned64:
    case ParquetType::kTimestamp:
      AppendNumbers(numbers_, out);
      return;
    case ParquetType::kText:
    case ParquetType::kBytes: {
      if (!dictionary_ || words_.size() == 0) {
        *out += plain_;
        return;
      }
      const auto width = static_cast<unsigned>(
          std::max(1, static_cast<int>(std::bit_width(words_.size() - 1))));
      *out += static_cast<char>(width);
      AppendPacked(narrow_, width, out);
    }
  }
}

void ParquetColumn::SetRange(ParquetChunk* chunk) const {
  if (type_ == ParquetType::kFlag || type_ == ParquetType::kBytes) return;
  if (type_ == ParquetType::kText) {
    const bool words = dictionary_ && words_.size() != 0;
    if (!words && plain_.empty()) return;
    std::pair<std::string_view, std::string_view> range = {plain_min_,
                                                           plain_max_};
    if (words) range = WordRange();
    const auto& [min, max] = range;
    chunk->min = CutDown(min, &chunk->min_exact);
    chunk->max = CutUp(max, &chunk->max_exact);
    chunk->has_range = !chunk->max.empty();
    return;
  }
  if (values_ == 0) return;
  chunk->has_range = true;
  if (!wide_) {
    AppendRange(narrow_, uint32_t{0}, chunk);
  } else {
    const bool is_signed = type_ != ParquetType::kUnsigned64;
    AppendRange(numbers_, uint64_t{is_signed} << 63, chunk);
  }
}

Status ParquetColumn::Flush(uint32_t rows, int level, ParquetPacker* packer,
                            std::string* out, ParquetChunk* chunk) {
  if (present_.empty()) MarkAll();
  *chunk = {};
  chunk->values = rows;
  chunk->nulls = required() ? 0 : rows - values_;
  SetRange(chunk);
  const size_t begin = out->size();
  std::string_view packed;
  const auto put_page = [&](const std::string& page, int32_t kind,
                            int32_t encoding, uint64_t values) -> Status {
    if (Status s = packer->Compress(page, level, &packed); !s.ok()) return s;
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
      type_ == ParquetType::kText && dictionary_ && words_.size() != 0;
  if (words) {
    std::string& dictionary = packer->Page();
    for (size_t i = 0; i < words_.size(); ++i) {
      AppendPlain(words_.At(i), &dictionary);
    }
    if (Status s = put_page(dictionary, 2, kPlain, words_.size()); !s.ok()) {
      return s;
    }
    chunk->dictionary_size = out->size() - begin;
  }
  std::string& page = packer->Page();
  if (!required()) AppendLevels(rows, &page);
  AppendValues(rows, &page);
  if (Status s = put_page(page, 0, words ? kRleDictionary : kPlain, rows);
      !s.ok()) {
    return s;
  }
  chunk->file_bytes = out->size() - begin;
  values_ = 0;
  present_.clear();
  numbers_.clear();
  narrow_.clear();
  words_ = TextDictionary();
  plain_.clear();
  plain_min_.clear();
  plain_max_.clear();
  text_bytes_ = 0;
  dictionary_ = true;
  return {};
}

}  // namespace tracefs
