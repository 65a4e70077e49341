#include "tracefs/reader/columns.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/format/block_decoder.h"

namespace tracefs::reader {
namespace {

constexpr std::string_view kRaw = "_raw";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr size_t kMaxColumns = 256;
constexpr size_t kFirstRows = 1024;
// Numbers of kName below this are looked up once a batch.
constexpr size_t kNamedNumbers = 4096;

size_t DataBytes(const ColumnSpec& spec, size_t rows) {
  if (spec.is_dictionary()) return rows * 4;
  if (spec.field->shape == Shape::kFlag) return (rows + 7) / 8;
  return rows * spec.field->width;
}

// Bits `from` … `from + count` of `source`, lowest first, to those from `to`
// on, which are 0. How many are set.
size_t CopyBits(const uint8_t* source, size_t from, size_t count,
                uint8_t* target, size_t to) {
  size_t set = 0;
  while (count != 0) {
    const size_t n = std::min({count, 8 - from % 8, 8 - to % 8});
    const unsigned bits = source[from / 8] >> from % 8 & ((1u << n) - 1);
    target[to / 8] |= static_cast<uint8_t>(bits << to % 8);
    set += static_cast<size_t>(std::popcount(bits));
    from += n;
    to += n;
    count -= n;
  }
  return set;
}

void AppendUtf8(std::string_view text, std::string* out) {
  if (IsUtf8(text)) {
    *out += text;
    return;
  }
  while (!text.empty()) {
    const size_t size = FirstCodePoint(text).size;
    *out += size == 0 ? kReplacement : text.substr(0, size);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
}

}  // namespace

Result<std::vector<ColumnSpec>> ParseColumns(std::string_view names) {
  std::vector<ColumnSpec> specs;
  if (Trim(names).empty()) {
    for (const FieldRow& row : FieldRows()) {
      if (row.common) specs.push_back({.field = &row, .name = row.name});
    }
    return specs;
  }
  while (!names.empty()) {
    const std::string_view name = Trim(TakeUpTo(names, ','));
    ColumnSpec spec = {.field = FindField(name), .name = std::string(name)};
    if (spec.field == nullptr && name.ends_with(kRaw)) {
      spec.field = FindField(name.substr(0, name.size() - kRaw.size()));
      spec.raw = true;
      if (spec.field != nullptr && spec.field->shape != Shape::kText &&
          spec.field->shape != Shape::kBytes) {
        spec.field = nullptr;
      }
    }
    if (spec.field == nullptr) {
      return Status::Invalid("columns: there is no field " + Quoted(name) +
                             "; names are those of JSON Lines, or words of "
                             "filters");
    }
    specs.push_back(std::move(spec));
    if (specs.size() > kMaxColumns) {
      return Status::Invalid("columns: more than " +
                             std::to_string(kMaxColumns));
    }
  }
  return specs;
}

Batch::Batch(Specs specs) : specs_(std::move(specs)), columns_(specs_->size()) {
  Clear();
}

void Batch::Clear() {
  for (Column& column : columns_) {
    std::fill(column.data.begin(), column.data.end(), std::byte());
    std::fill(column.valid.begin(), column.valid.end(), 0);
    column.absent = 0;
    column.texts = TextDictionary();
    column.offsets.clear();
    column.bytes.clear();
  }
  rows_ = 0;
  full_ = false;
  order_ = {};
  memos_.assign(specs_->size(), {});
  last_texts_.assign(specs_->size(), kNone);
  name_numbers_.assign(specs_->size(), {});
  for (size_t i = 0; i < specs_->size(); ++i) {
    if ((*specs_)[i].field->shape == Shape::kName) {
      name_numbers_[i].assign(kNamedNumbers, kNone);
    }
  }
}

void Batch::Grow() {
  capacity_ = std::max(kFirstRows, 2 * capacity_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].data.resize(DataBytes((*specs_)[i], capacity_));
    columns_[i].valid.resize((capacity_ + 7) / 8);
  }
}

void Batch::PutIndex(size_t i, uint32_t number) {
  Column& column = columns_[i];
  StoreLe<uint32_t>(column.data.data() + 4 * rows_, number);
  column.valid[rows_ / 8] |= static_cast<uint8_t>(1u << rows_ % 8);
}

uint32_t* Batch::MemoOf(size_t i, const format::Record& record, size_t trace) {
  PathMemo& paths = memos_[i];
  if (paths.block != record.block || paths.trace != trace ||
      paths.sequence != record.block->sequence()) {
    paths.block = record.block;
    paths.trace = trace;
    paths.sequence = record.block->sequence();
    paths.numbers.clear();
    paths.named.resize(PathMemo::kNamed);
    ++paths.generation;
  }
  const Event& event = record.event;
  // Ids are checked: there are as many as the block defines.
  if (event.parent == 0) {
    if (event.node >= paths.numbers.size()) {
      paths.numbers.resize(event.node + 1, kNone);
    }
    return &paths.numbers[event.node];
  }
  const std::string_view name = event.name;
  const size_t hash =
      std::hash<std::string_view>()(name) + event.parent * size_t{31};
  PathMemo::Named& named = paths.named[hash % PathMemo::kNamed];
  if (named.generation != paths.generation || named.parent != event.parent ||
      named.name != name) {
    named = {
        .generation = paths.generation, .parent = event.parent, .name = name};
  }
  return &named.number;
}

void Batch::AddText(size_t i, const format::Record& record, size_t trace) {
  const FieldRow& field = *(*specs_)[i].field;
  Column& column = columns_[i];
  uint32_t* memo = nullptr;
  if (field.field == Field::kPath && !record.HasText(Field::kPath) &&
      (record.event.parent != 0 || record.event.node != 0)) {
    memo = MemoOf(i, record, trace);
    if (*memo != kNone) {
      PutIndex(i, *memo);
      return;
    }
  }
  PathBuffer buffer;
  std::string_view text;
  if (!TextOf(field, record, buffer, &text)) {
    ++column.absent;
    return;
  }
  // Most often the same process as before.
  uint32_t& number = last_texts_[i];
  if (number == kNone || column.texts.At(number) != text) {
    number = column.texts.Add(text);
    full_ = full_ || column.texts.bytes().size() >= kFullBytes;
  }
  if (memo != nullptr) *memo = number;
  PutIndex(i, number);
}

void Batch::Add(const format::Record& record, size_t trace) {
  if (rows_ == capacity_) Grow();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const ColumnSpec& spec = (*specs_)[i];
    const FieldRow& field = *spec.field;
    Column& column = columns_[i];
    if (field.shape == Shape::kText || field.shape == Shape::kBytes) {
      AddText(i, record, trace);
      continue;
    }
    uint64_t value;
    if (!NumberOf(field, record, trace, &value)) {
      ++column.absent;
      continue;
    }
    std::byte* const data = column.data.data();
    switch (field.shape) {
      case Shape::kName: {
        uint32_t number =
            value < kNamedNumbers ? name_numbers_[i][value] : kNone;
        if (number == kNone) {
          const std::string_view name = NameOf(field, value);
          if (name.empty() && (field.field == Field::kErrno && value == 0)) {
            ++column.absent;
            continue;
          }
          number = column.texts.Add(name.empty() ? std::to_string(value)
                                                 : std::string(name));
          if (value < kNamedNumbers) name_numbers_[i][value] = number;
        }
        PutIndex(i, number);
        continue;
      }
      case Shape::kFlag:
        if (value == 0) {
          ++column.absent;
          continue;
        }
        data[rows_ / 8] |= static_cast<std::byte>(1u << rows_ % 8);
        break;
      default:
        switch (field.width) {
          case 8:
            StoreLe<uint64_t>(data + 8 * rows_, value);
            break;
          case 4:
            StoreLe<uint32_t>(data + 4 * rows_, static_cast<uint32_t>(value));
            break;
          case 2:
            StoreLe<uint16_t>(data + 2 * rows_, static_cast<uint16_t>(value));
            break;
          default:
            data[rows_] = static_cast<std::byte>(value);
        }
    }
    column.valid[rows_ / 8] |= static_cast<uint8_t>(1u << rows_ % 8);
  }
  ++rows_;
}

size_t Batch::Append(const Batch& other, size_t begin, size_t count,
                     Numbers* numbers) {
  // Between pieces of that many rows texts may have become too many.
  constexpr size_t kPiece = 1024;
  numbers->resize(columns_.size());
  size_t done = 0;
  while (done < count && !full_) {
    const size_t piece = std::min(count - done, kPiece);
    while (rows_ + piece > capacity_) Grow();
    for (size_t i = 0; i < columns_.size(); ++i) {
      AppendColumn(i, other, begin + done, piece, &(*numbers)[i]);
    }
    rows_ += piece;
    done += piece;
  }
  return done;
}

void Batch::AppendColumn(size_t i, const Batch& other, size_t begin,
                         size_t count, std::vector<uint32_t>* numbers) {
  const ColumnSpec& spec = (*specs_)[i];
  const Column& from = other.columns_[i];
  Column& to = columns_[i];
  if (from.absent == other.rows_) {
    to.absent += count;
    return;
  }
  to.absent +=
      count - CopyBits(from.valid.data(), begin, count, to.valid.data(), rows_);
  if (spec.is_dictionary()) {
    if (numbers->empty()) numbers->assign(from.texts.size(), kNone);
    for (size_t row = begin; row < begin + count; ++row) {
      if ((from.valid[row / 8] >> row % 8 & 1) == 0) continue;
      const auto theirs = LoadLe<uint32_t>(from.data.data() + 4 * row);
      uint32_t& ours = (*numbers)[theirs];
      if (ours == kNone) {
        ours = to.texts.Add(from.texts.At(theirs));
        full_ = full_ || to.texts.bytes().size() >= kFullBytes;
      }
      StoreLe<uint32_t>(to.data.data() + 4 * (rows_ + row - begin), ours);
    }
  } else if (spec.field->shape == Shape::kFlag) {
    CopyBits(reinterpret_cast<const uint8_t*>(from.data.data()), begin, count,
             reinterpret_cast<uint8_t*>(to.data.data()), rows_);
  } else {
    const size_t width = spec.field->width;
    std::memcpy(to.data.data() + width * rows_,
                from.data.data() + width * begin, width * count);
  }
}

size_t Batch::footprint() const {
  size_t bytes = sizeof *this + order_.times.capacity() * sizeof(uint64_t);
  for (const Column& column : columns_) {
    bytes += sizeof column + column.data.capacity() + column.valid.capacity() +
             column.texts.footprint();
  }
  return bytes;
}

void Batch::Finish(const TextHook& hook) {
  order_ = {};
  memos_.clear();
  name_numbers_.clear();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const ColumnSpec& spec = (*specs_)[i];
    if (!spec.is_dictionary()) continue;
    Column& column = columns_[i];
    column.offsets.reserve(column.texts.size() + 1);
    column.offsets.push_back(0);
    for (size_t n = 0; n < column.texts.size(); ++n) {
      std::string_view text = column.texts.At(n);
      std::string_view other;
      if (hook && spec.field->shape != Shape::kName &&
          hook(spec.field->id, text, &other)) {
        text = other;
      }
      // A hook that makes texts longer without end does not get its way.
      if (column.bytes.size() + 3 * text.size() > INT32_MAX) text = {};
      if (spec.is_bytes()) {
        column.bytes += text;
      } else {
        AppendUtf8(text, &column.bytes);
      }
      column.offsets.push_back(static_cast<int32_t>(column.bytes.size()));
    }
    column.texts = TextDictionary();
  }
}

}  // namespace tracefs::reader
