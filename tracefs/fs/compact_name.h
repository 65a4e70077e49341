// CompactName: a file name in 24 bytes, on the heap only beyond 22 characters.
// A million of them are held at a time (tracefs/fs/inode_table.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace tracefs {

class CompactName {
 public:
  CompactName() { std::memset(bytes_, 0, sizeof bytes_); }
  // Names over 65535 bytes are cut; Linux knows none over 255.
  explicit CompactName(std::string_view name) : CompactName() {
    const size_t size = name.size() < 0xffff ? name.size() : 0xffff;
    if (size <= kInline) {
      std::memcpy(bytes_, name.data(), size);
      bytes_[kTag] = static_cast<char>(size);
      return;
    }
    char* heap = new char[size];
    std::memcpy(heap, name.data(), size);
    const auto heap_size = static_cast<uint16_t>(size);
    std::memcpy(bytes_, &heap, sizeof heap);
    std::memcpy(bytes_ + sizeof heap, &heap_size, sizeof heap_size);
    bytes_[kTag] = kOnHeap;
  }
  CompactName(CompactName&& other) noexcept {
    std::memcpy(bytes_, other.bytes_, sizeof bytes_);
    other.bytes_[kTag] = 0;
  }
  CompactName& operator=(CompactName&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~CompactName() {
    if (bytes_[kTag] == kOnHeap) delete[] Heap();
  }

  std::string_view view() const {
    if (bytes_[kTag] != kOnHeap) {
      return {bytes_, static_cast<size_t>(bytes_[kTag])};
    }
    uint16_t size;
    std::memcpy(&size, bytes_ + sizeof(char*), sizeof size);
    return {Heap(), size};
  }

 private:
  static constexpr size_t kInline = 22;
  static constexpr size_t kTag = 23;
  static constexpr char kOnHeap = 127;

  char* Heap() const {
    char* heap;
    std::memcpy(&heap, bytes_, sizeof heap);
    return heap;
  }

  alignas(8) char bytes_[24];
};
static_assert(sizeof(CompactName) == 24);

}  // namespace tracefs
