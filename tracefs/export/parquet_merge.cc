#include "tracefs/export/parquet_merge.h"

#include <sys/stat.h>
#include <zstd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/file_io.h"
#include "tracefs/export/parquet_file.h"
#include "tracefs/export/thrift_reader.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

// A row group has 64 MB of values at most, and some text more.
constexpr uint64_t kMaxBytes = uint64_t{1} << 29;

Status Damaged(const char* what) {
  return Status::Corrupt(std::string("a Parquet file is damaged: ") + what);
}

Status ReadAt(int fd, uint64_t offset, uint64_t size, std::string* out) {
  if (size > kMaxBytes) return Damaged("it has a part of no sensible size");
  out->resize(size);
  if (ReadAllAt(fd, {reinterpret_cast<std::byte*>(out->data()), out->size()},
                offset)) {
    return Status::Ok();
  }
  return Damaged("it is cut off");
}

// Bits that AppendPacked wrote, or a run of equals (parquet_column.cc).
class PackedNumbers {
 public:
  // kCorrupt if there are less than `count`.
  static Status Read(std::string_view bytes, unsigned width, size_t count,
                     std::vector<uint32_t>* out) {
    uint64_t head = 0;
    unsigned shift = 0;
    size_t at = 0;
    for (;; shift += 7) {
      if (at >= bytes.size() || shift > 35) return Damaged("numbers");
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      head |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    bytes.remove_prefix(at);
    if ((head & 1) == 0) {
      if (head >> 1 < count || bytes.empty()) return Damaged("a run");
      out->assign(count, static_cast<uint8_t>(bytes[0]));
      return Status::Ok();
    }
    if (bytes.size() * 8 < count * width) return Damaged("packed numbers");
    out->clear();
    out->reserve(count);
    uint64_t bits = 0;
    unsigned have = 0;
    for (const char byte : bytes) {
      bits |= static_cast<uint64_t>(static_cast<uint8_t>(byte)) << have;
      for (have += 8; have >= width && out->size() < count; have -= width) {
        out->push_back(
            static_cast<uint32_t>(bits & ((uint64_t{1} << width) - 1)));
        bits >>= width;
      }
      if (out->size() == count) break;
    }
    return Status::Ok();
  }
};

// "LENGTH text" as often as there is any.
Status TakeText(std::string_view* bytes, std::string_view* out) {
  if (bytes->size() < 4) return Damaged("a text");
  const auto size = LoadLe<uint32_t>(bytes->data());
  bytes->remove_prefix(4);
  if (size > bytes->size()) return Damaged("a text");
  *out = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return Status::Ok();
}

class Input {
 public:
  using Columns = std::vector<std::pair<std::string, ParquetType>>;

  Status Open(int fd) {
    fd_ = fd;
    struct stat st;
    if (::fstat(fd, &st) != 0) return Status::System(errno, "a Parquet file");
    const auto size = static_cast<uint64_t>(st.st_size);
    std::string end;
    if (size < 12) return Damaged("it is cut off");
    if (Status s = ReadAt(fd, size - 8, 8, &end); !s.ok()) return s;
    const uint64_t footer = LoadLe<uint32_t>(end.data());
    if (end.substr(4) != kParquetMagic || footer > size - 12) {
      return Damaged("it has no footer");
    }
    if (Status s = ReadAt(fd, size - 8 - footer, footer, &footer_); !s.ok()) {
      return s;
    }
    if (!ReadThrift(footer_, &root_)) return Damaged("its footer");
    return TakeColumns();
  }

  const Columns& columns() const { return columns_; }
  std::string_view Property(std::string_view key) const {
    const ThriftValue* const all = root_.Find(5);
    for (const ThriftValue& one :
         all != nullptr ? all->elements : std::vector<ThriftValue>()) {
      const ThriftValue* const name = one.Find(1);
      const ThriftValue* const value = one.Find(2);
      if (name != nullptr && value != nullptr && name->text == key) {
        return value->text;
      }
    }
    return {};
  }
  size_t groups() const {
    const ThriftValue* const all = root_.Find(4);
    return all != nullptr ? all->elements.size() : 0;
  }
  // In order of `column`.
  bool Sorted(size_t group, size_t column) const {
    const ThriftValue* const order = Group(group).Find(4);
    return order != nullptr && order->elements.size() == 1 &&
           order->elements[0].Number(1, -1) == static_cast<int64_t>(column) &&
           order->elements[0].Number(2, 1) == 0;
  }

  // All rows of a group behind those that `out` has. `*last`: the greatest
  // value of `time` so far; `*ordered`: that it never went back.
  Status Copy(size_t group, size_t time, uint64_t* last, bool* ordered,
              ParquetFile* out) const {
    const int64_t rows_untrusted = Group(group).Number(3, -1);
    const ThriftValue* const chunks = Group(group).Find(1);
    if (rows_untrusted < 0 || rows_untrusted > 1'000'000 || chunks == nullptr ||
        chunks->elements.size() != columns_.size()) {
      return Damaged("a row group");
    }
    const auto rows = static_cast<uint32_t>(rows_untrusted);
    out->MakeRoom(rows);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const ThriftValue* const meta = chunks->elements[i].Find(3);
      if (meta == nullptr) return Damaged("a column");
      uint64_t* const followed = i == time ? last : nullptr;
      if (Status s = CopyColumn(*meta, columns_[i].second, rows, out->row(),
                                followed, ordered, &out->column(i));
          !s.ok()) {
        return s;
      }
    }
    out->EndRows(rows);
    return Status::Ok();
  }

 private:
  const ThriftValue& Group(size_t group) const {
    return root_.Find(4)->elements[group];
  }

  // What PutLogicalType made of a type (parquet_file.cc).
  static std::optional<ParquetType> TypeOf(const ThriftValue& column) {
    switch (column.Number(1, -1)) {
      case 0:
        return ParquetType::kFlag;
      case 1:
        return ParquetType::kUnsigned32;
      case 2:
        switch (column.Number(6, -1)) {
          case 14:
            return ParquetType::kUnsigned64;
          case 18:
            return ParquetType::kSigned64;
          default:
            return ParquetType::kTimestamp;
        }
      case 6:
        return column.Number(6, -1) == 0 ? ParquetType::kText
                                         : ParquetType::kBytes;
      default:
        return std::nullopt;
    }
  }
  Status TakeColumns() {
    const ThriftValue* const schema = root_.Find(2);
    if (schema == nullptr || schema->elements.empty()) {
      return Damaged("its schema");
    }
    for (size_t i = 1; i < schema->elements.size(); ++i) {
      const ThriftValue& column = schema->elements[i];
      const ThriftValue* const name = column.Find(4);
      const auto type = TypeOf(column);
      if (name == nullptr || !type) return Damaged("its schema");
      columns_.emplace_back(name->text, *type);
    }
    return Status::Ok();
  }

  static Status Unpack(std::string_view packed, uint64_t size,
                       std::string* out) {
    if (size > kMaxBytes) return Damaged("a page of no sensible size");
    out->resize(size);
    const size_t got =
        ZSTD_decompress(out->data(), out->size(), packed.data(), packed.size());
    return ZSTD_isError(got) == 0 && got == size ? Status::Ok()
                                                 : Damaged("a page");
  }

  Status CopyColumn(const ThriftValue& meta, ParquetType type, uint32_t rows,
                    uint32_t first, uint64_t* last, bool* ordered,
                    ParquetColumn* out) const {
    if (meta.Number(4, -1) != 6) return Damaged("it is not packed by zstd");
    const int64_t begin = meta.Number(11, meta.Number(9, -1));
    const int64_t size = meta.Number(7, -1);
    if (begin < 0 || size < 0) return Damaged("a column");
    std::string pages;
    if (Status s = ReadAt(fd_, static_cast<uint64_t>(begin),
                          static_cast<uint64_t>(size), &pages);
        !s.ok()) {
      return s;
    }
    std::string words_page;
    std::vector<std::string_view> words;
    std::string page;
    std::string_view rest = pages;
    for (;;) {
      ThriftValue head;
      const auto length = ReadThrift(rest, &head);
      const int64_t packed = head.Number(3, -1);
      if (!length || packed < 0 ||
          static_cast<uint64_t>(packed) > rest.size() - *length) {
        return Damaged("a page");
      }
      const bool dictionary = head.Number(1, -1) == 2;
      std::string* const to = dictionary ? &words_page : &page;
      if (Status s = Unpack(rest.substr(*length, static_cast<size_t>(packed)),
                            static_cast<uint64_t>(head.Number(2, 0)), to);
          !s.ok()) {
        return s;
      }
      rest.remove_prefix(*length + static_cast<size_t>(packed));
      if (!dictionary) break;
      for (std::string_view left = words_page; !left.empty();) {
        if (Status s = TakeText(&left, &words.emplace_back()); !s.ok()) {
          return s;
        }
      }
    }
    if (!rest.empty()) return Damaged("a column of several pages");
    return CopyValues(page, words, type, rows, first, last, ordered, out);
  }

  static Status CopyValues(std::string_view page,
                           const std::vector<std::string_view>& words,
                           ParquetType type, uint32_t rows, uint32_t first,
                           uint64_t* last, bool* ordered, ParquetColumn* out) {
    std::vector<uint32_t> present;
    if (type == ParquetType::kFlag) {
      // Only those that are set are put.
      if (page.size() < (uint64_t{rows} + 7) / 8) return Damaged("flags");
      for (uint32_t i = 0; i < rows; ++i) {
        if ((static_cast<uint8_t>(page[i / 8]) >> i % 8 & 1) != 0) {
          out->Put(first + i, 1);
        }
      }
      return Status::Ok();
    }
    if (page.size() < 4) return Damaged("a page");
    const auto levels = LoadLe<uint32_t>(page.data());
    if (levels > page.size() - 4) return Damaged("a page");
    if (Status s =
            PackedNumbers::Read(page.substr(4, levels), 1, rows, &present);
        !s.ok()) {
      return s;
    }
    page.remove_prefix(4 + levels);
    size_t count = 0;
    for (const uint32_t one : present) count += one;
    if (count == 0) return Status::Ok();
    std::vector<uint32_t> numbers;
    if (!words.empty()) {
      const unsigned width = page.empty() ? 0 : static_cast<uint8_t>(page[0]);
      if (width == 0 || width > 32) return Damaged("a dictionary");
      if (Status s =
              PackedNumbers::Read(page.substr(1), width, count, &numbers);
          !s.ok()) {
        return s;
      }
    }
    const bool text = type == ParquetType::kText || type == ParquetType::kBytes;
    const size_t each = type == ParquetType::kUnsigned32 ? 4 : 8;
    if (!text && page.size() < count * each) return Damaged("a page");
    size_t at = 0;
    for (uint32_t i = 0; i < rows; ++i) {
      if (present[i] == 0) continue;
      if (!text) {
        const char* const value = page.data() + at++ * each;
        const uint64_t number =
            each == 4 ? LoadLe<uint32_t>(value) : LoadLe<uint64_t>(value);
        if (last != nullptr) {
          if (number < *last) *ordered = false;
          *last = number;
        }
        out->Put(first + i, number);
        continue;
      }
      std::string_view word;
      if (!words.empty()) {
        if (numbers[at] >= words.size()) return Damaged("a dictionary");
        word = words[numbers[at++]];
      } else if (Status s = TakeText(&page, &word); !s.ok()) {
        return s;
      }
      out->PutText(first + i, word);
    }
    return Status::Ok();
  }

  int fd_ = -1;
  std::string footer_;  // what root_ points into
  ThriftValue root_;
  Columns columns_;
};

// What several files say of one trace.
std::string TogetherAsJson(const std::vector<Input>& inputs,
                           const std::string& name) {
  Json all;
  for (const Input& input : inputs) {
    Json traces = Json::parse(input.Property("tracefs.traces"), nullptr,
                              /*allow_exceptions=*/false);
    if (!traces.is_array()) continue;
    if (!all.is_array()) {
      all = std::move(traces);
      continue;
    }
    if (traces.size() != 1 || all.size() != 1 || !all[0].is_object() ||
        !traces[0].is_object()) {
      // A file of several traces, which a receiver never writes.
      for (Json& trace : traces) all.push_back(std::move(trace));
      continue;
    }
    Json& sum = all[0];
    Json& more = traces[0];
    if (more.value("bad", false)) sum["bad"] = true;
    sum["operations"] = sum.value("operations", uint64_t{0}) +
                        more.value("operations", uint64_t{0});
    for (const auto& [reason, lost] : more["lost"].items()) {
      sum["lost"][reason] =
          sum["lost"].value(reason, uint64_t{0}) + lost.get<uint64_t>();
    }
  }
  if (all.is_array() && all.size() == 1 && all[0].is_object()) {
    all[0]["name"] = name;
  }
  return all.is_array() ? all.dump() : "[]";
}

}  // namespace

Status MergeParquet(std::span<const int> files, const std::string& name,
                    OutputBuffer& out) {
  std::vector<Input> inputs(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    if (Status s = inputs[i].Open(files[i]); !s.ok()) return s;
    if (inputs[i].columns() != inputs[0].columns()) {
      return Status::Invalid("Parquet files of other columns");
    }
  }
  if (inputs.empty()) return Status::Invalid("no Parquet files");
  const Input::Columns& columns = inputs[0].columns();
  size_t time = 0;
  while (time < columns.size() && columns[time].first != "time") ++time;
  ParquetFile merged(out, columns, {});
  bool ordered = time < columns.size();
  uint64_t last = 0;
  for (const Input& input : inputs) {
    for (size_t group = 0; group < input.groups(); ++group) {
      ordered = ordered && input.Sorted(group, time);
      if (Status s = input.Copy(group, time, &last, &ordered, &merged);
          !s.ok()) {
        return s;
      }
    }
  }
  if (ordered) merged.SetSorted(time);
  std::vector<std::pair<std::string, std::string>> properties;
  for (const char* key : {"tracefs.version", "tracefs.filter"}) {
    const std::string_view value = inputs[0].Property(key);
    if (!value.empty()) properties.emplace_back(key, value);
  }
  try {
    properties.emplace_back("tracefs.traces", TogetherAsJson(inputs, name));
  } catch (const Json::exception&) {
    return Damaged("what it says of its traces");
  }
  merged.Finish(properties);
  if (!merged.status().ok()) return merged.status();
  return out.Flush();
}

}  // namespace tracefs
