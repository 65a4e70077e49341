// Thrift's compact protocol, as far as footers of Parquet files need it: what
// is written, in order of the field ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tracefs {

class ThriftWriter {
 public:
  const std::string& bytes() const { return bytes_; }

  void I16(int id, int16_t value) { Number(id, 4, value); }
  void I32(int id, int32_t value) { Number(id, 5, value); }
  void I64(int id, int64_t value) { Number(id, 6, value); }
  void I8(int id, int8_t value) {
    Field(id, 3);
    bytes_ += static_cast<char>(value);
  }
  void Bool(int id, bool value) { Field(id, value ? 1 : 2); }
  void Binary(int id, std::string_view value) {
    Field(id, 8);
    Bytes(value);
  }
  void BeginStruct(int id) {
    Field(id, 12);
    Open();
  }
  void EndStruct() {
    bytes_ += '\0';
    last_ = opened_.back();
    opened_.pop_back();
  }
  void Empty(int id) {
    BeginStruct(id);
    EndStruct();
  }
  // The elements follow; those of structs between Open and EndStruct.
  void BeginStructs(int id, size_t size) { List(id, 12, size); }
  void BeginI32s(int id, size_t size) { List(id, 5, size); }
  void BeginBinaries(int id, size_t size) { List(id, 8, size); }
  void Open() {
    opened_.push_back(last_);
    last_ = 0;
  }
  void Element(int32_t value) { Varint(ZigZag(value)); }
  void Bytes(std::string_view value) {
    Varint(value.size());
    bytes_ += value;
  }
  // Of the outermost struct.
  void End() { bytes_ += '\0'; }

 private:
  static uint64_t ZigZag(int64_t value) {
    return static_cast<uint64_t>(value) << 1 ^
           static_cast<uint64_t>(value >> 63);
  }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      bytes_ += static_cast<char>(value | 0x80);
    }
    bytes_ += static_cast<char>(value);
  }
  void Field(int id, int type) {
    // No struct here skips more than 15 ids.
    bytes_ += static_cast<char>((id - last_) << 4 | type);
    last_ = id;
  }
  void Number(int id, int type, int64_t value) {
    Field(id, type);
    Varint(ZigZag(value));
  }
  void List(int id, int type, size_t size) {
    Field(id, 9);
    if (size < 15) {
      bytes_ += static_cast<char>(size << 4 | static_cast<size_t>(type));
    } else {
      bytes_ += static_cast<char>(0xf0 | type);
      Varint(size);
    }
  }

  std::string bytes_;
  int last_ = 0;
  std::vector<int> opened_;
};

}  // namespace tracefs
