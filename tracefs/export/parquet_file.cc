#include "tracefs/export/parquet_file.h"

#include <system_error>
#include <utility>

#include "tracefs/base/bytes.h"
#include "tracefs/base/version.h"
#include "tracefs/export/thrift_compact.h"

namespace tracefs {
namespace {

constexpr uint32_t kLookAfter = 1024;  // rows, before memory is looked at
constexpr int32_t kZstd = 6;

// What kind of number or text a column has: once for old readers, once for all.
void PutLogicalType(ParquetType type, ThriftWriter* out) {
  const auto converted = [out](int32_t kind) { out->I32(6, kind); };
  const auto integer = [out](int8_t bits, bool is_signed) {
    out->BeginStruct(10);
    out->BeginStruct(10);
    out->I8(1, bits);
    out->Bool(2, is_signed);
    out->EndStruct();
    out->EndStruct();
  };
  switch (type) {
    case ParquetType::kFlag:
    case ParquetType::kBytes:
      return;
    case ParquetType::kUnsigned32:
      converted(13);
      integer(32, false);
      return;
    case ParquetType::kUnsigned64:
      converted(14);
      integer(64, false);
      return;
    case ParquetType::kSigned64:
      converted(18);
      integer(64, true);
      return;
    case ParquetType::kTimestamp:
      out->BeginStruct(10);
      out->BeginStruct(8);
      out->Bool(1, false);
      out->BeginStruct(2);
      out->Empty(3);
      out->EndStruct();
      out->EndStruct();
      out->EndStruct();
      return;
    case ParquetType::kText:
      converted(0);
      out->BeginStruct(10);
      out->Empty(1);
      out->EndStruct();
      return;
  }
}

void PutChunk(const ParquetColumn& column, const ParquetChunk& chunk,
              uint64_t offset, ThriftWriter* out) {
  out->Open();
  out->I64(2, static_cast<int64_t>(offset));
  out->BeginStruct(3);
  out->I32(1, column.physical_type());
  const bool words = chunk.dictionary_size != 0;
  out->BeginI32s(2, words ? 3 : 2);
  out->Element(0);
  out->Element(3);
  if (words) out->Element(8);
  out->BeginBinaries(3, 1);
  out->Bytes(column.name());
  out->I32(4, kZstd);
  out->I64(5, static_cast<int64_t>(chunk.values));
  out->I64(6, static_cast<int64_t>(chunk.plain_bytes));
  out->I64(7, static_cast<int64_t>(chunk.file_bytes));
  out->I64(9, static_cast<int64_t>(offset + chunk.dictionary_size));
  if (words) out->I64(11, static_cast<int64_t>(offset));
  out->BeginStruct(12);
  out->I64(3, static_cast<int64_t>(chunk.nulls));
  if (chunk.has_range) {
    out->Binary(5, chunk.max);
    out->Binary(6, chunk.min);
    out->Bool(7, chunk.max_exact);
    out->Bool(8, chunk.min_exact);
  }
  out->EndStruct();
  out->EndStruct();
  out->EndStruct();
}

}  // namespace

ParquetFile::ParquetFile(
    OutputBuffer& out, std::vector<std::pair<std::string, ParquetType>> columns,
    const ParquetOptions& options)
    : out_(out), options_(options) {
  columns_.reserve(columns.size());
  packed_.reserve(columns.size());
  for (auto& [name, type] : columns) {
    columns_.emplace_back(name, type);
    packed_.emplace_back(name, type);
  }
  Write(kParquetMagic);
}

size_t ParquetFile::memory_bytes() const {
  size_t bytes = 0;
  for (const ParquetColumn& column : columns_) bytes += column.memory_bytes();
  return bytes;
}

void ParquetFile::EndRow() {
  if (++rows_ >= options_.group_rows ||
      (rows_ % kLookAfter == 0 && memory_bytes() > options_.group_bytes)) {
    FlushGroup();
  }
}

void ParquetFile::MakeRoom(uint32_t rows) {
  if (uint64_t{rows_} + rows > options_.group_rows ||
      memory_bytes() > options_.group_bytes) {
    FlushGroup();
  }
}

ParquetFile::Pages ParquetFile::Pack(uint32_t rows) {
  // One for all files whose pages are made by who fills them.
  static thread_local ParquetPacker of_thread;
  ParquetPacker* const packer = options_.packs_beside ? &packer_ : &of_thread;
  Pages made;
  made.chunks.resize(packed_.size());
  for (size_t i = 0; i < packed_.size() && made.status.ok(); ++i) {
    made.status = packed_[i].Flush(rows, options_.level, packer, &made.bytes,
                                   &made.chunks[i]);
  }
  return made;
}

void ParquetFile::FlushGroup() {
  if (rows_ == 0) return;
  AwaitPages();
  groups_.emplace_back().rows = rows_;
  std::swap(columns_, packed_);
  const auto pack = [this, rows = rows_] { return Pack(rows); };
  all_rows_ += rows_;
  rows_ = 0;
  if (options_.packs_beside) {
    try {
      pages_ = std::async(std::launch::async, pack);
      return;
    } catch (const std::system_error&) {
      // The system has no more threads.
    }
  }
  pages_ = std::async(std::launch::deferred, pack);
  AwaitPages();
}

void ParquetFile::AwaitPages() {
  if (!pages_.valid()) return;
  Pages made = pages_.get();
  if (!made.status.ok()) status_ = std::move(made.status);
  Group& group = groups_.back();
  group.offset = offset_;
  group.chunks = std::move(made.chunks);
  Write(made.bytes);
}

void ParquetFile::Finish(
    const std::vector<std::pair<std::string, std::string>>& properties) {
  FlushGroup();
  AwaitPages();
  ThriftWriter out;
  out.I32(1, 2);
  out.BeginStructs(2, columns_.size() + 1);
  out.Open();
  out.Binary(4, "operations");
  out.I32(5, static_cast<int32_t>(columns_.size()));
  out.EndStruct();
  for (const ParquetColumn& column : columns_) {
    out.Open();
    out.I32(1, column.physical_type());
    out.I32(3, column.required() ? 0 : 1);
    out.Binary(4, column.name());
    PutLogicalType(column.type(), &out);
    out.EndStruct();
  }
  out.I64(3, static_cast<int64_t>(all_rows_));
  out.BeginStructs(4, groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    out.Open();
    out.BeginStructs(1, columns_.size());
    uint64_t offset = group.offset;
    uint64_t plain = 0;
    for (size_t i = 0; i < columns_.size(); ++i) {
      PutChunk(columns_[i], group.chunks[i], offset, &out);
      offset += group.chunks[i].file_bytes;
      plain += group.chunks[i].plain_bytes;
    }
    out.I64(2, static_cast<int64_t>(plain));
    out.I64(3, group.rows);
    if (sorted_ >= 0) {
      out.BeginStructs(4, 1);
      out.Open();
      out.I32(1, sorted_);
      out.Bool(2, false);
      out.Bool(3, false);
      out.EndStruct();
    }
    out.I64(5, static_cast<int64_t>(group.offset));
    out.I64(6, static_cast<int64_t>(offset - group.offset));
    // A number of 16 bits, which not all files do with.
    if (g <= INT16_MAX) out.I16(7, static_cast<int16_t>(g));
    out.EndStruct();
  }
  out.BeginStructs(5, properties.size());
  for (const auto& [key, value] : properties) {
    out.Open();
    out.Binary(1, key);
    out.Binary(2, value);
    out.EndStruct();
  }
  out.Binary(6, "tracefs version " + std::string(kVersion));
  out.BeginStructs(7, columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    out.Open();
    out.Empty(1);
    out.EndStruct();
  }
  out.End();
  Write(out.bytes());
  char size[4];
  StoreLe<uint32_t>(size, static_cast<uint32_t>(out.bytes().size()));
  Write({size, sizeof size});
  Write(kParquetMagic);
}

void ParquetFile::Write(std::string_view bytes) {
  out_.Append(bytes);
  offset_ += bytes.size();
}

}  // namespace tracefs
