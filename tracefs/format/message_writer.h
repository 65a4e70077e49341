// MessageWriter: appends messages to a fixed piece of memory. No allocation;
// what does not fit is refused whole, so that a block never holds half a
// message. FORMAT.md section "Messages".
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/format/constants.h"

namespace tracefs::format {

class MessageWriter {
 public:
  explicit MessageWriter(std::span<std::byte> memory)
      : begin_(memory.data()),
        end_(memory.data() + memory.size()),
        at_(begin_) {}

  size_t size() const { return static_cast<size_t>(at_ - begin_); }
  size_t capacity() const { return static_cast<size_t>(end_ - begin_); }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  ByteSpan bytes() const { return {begin_, size()}; }
  void Clear() { at_ = begin_; }
  // Goes back to an earlier size(): whole messages only.
  void Truncate(size_t size) { at_ = begin_ + size; }

  // Starts a message. Its arguments follow; Put… calls on a full writer mark
  // the message as refused.
  void Begin(uint16_t msg_id) {
    start_ = at_;
    refused_ = left() < kMessageHeaderBytes;
    if (refused_) return;
    StoreLe<uint16_t>(at_, msg_id);
    at_ += kMessageHeaderBytes;
  }

  template <typename T>
  void Put(uint16_t arg_id, T value) {
    if (left() < 2 + sizeof(T)) {
      refused_ = true;
      return;
    }
    StoreLe<uint16_t>(at_, arg_id);
    StoreLe<T>(at_ + 2, value);
    at_ += 2 + sizeof(T);
  }
  template <typename T>
  void Put(ArgId arg_id, T value) {
    Put<T>(static_cast<uint16_t>(arg_id), value);
  }

  void PutBytes(uint16_t arg_id, ByteSpan value) {
    if (left() < 6 || left() - 6 < value.size()) {
      refused_ = true;
      return;
    }
    StoreLe<uint16_t>(at_, static_cast<uint16_t>(arg_id | kHasLength));
    StoreLe<uint32_t>(at_ + 2, static_cast<uint32_t>(value.size()));
    if (!value.empty()) std::memcpy(at_ + 6, value.data(), value.size());
    at_ += 6 + value.size();
  }
  void PutText(uint16_t arg_id, std::string_view value) {
    PutBytes(arg_id, AsBytes(value));
  }
  void PutText(ArgId arg_id, std::string_view value) {
    PutBytes(static_cast<uint16_t>(arg_id), AsBytes(value));
  }

  // Whole messages that were made elsewhere: all of them, or none.
  bool PutMessages(ByteSpan messages) {
    if (left() < messages.size()) return false;
    if (!messages.empty()) {
      std::memcpy(at_, messages.data(), messages.size());
    }
    at_ += messages.size();
    return true;
  }

  // Finishes the message: true if it is in, false if it did not fit and
  // nothing of it was kept. Until the next one begins, arguments may be added
  // to it, if it is finished once more then.
  bool End() {
    if (refused_) {
      at_ = start_;
      return false;
    }
    StoreLe<uint32_t>(start_ + 2, static_cast<uint32_t>(at_ - start_));
    return true;
  }

  // For encoders with a plan: at least `n` bytes of raw room, or nullptr; what
  // was used of it is then given by Advance. Only between Begin and End.
  std::byte* Room(size_t n) {
    if (left() < n) {
      refused_ = true;
      return nullptr;
    }
    return at_;
  }
  void Advance(size_t n) { at_ += n; }

 private:
  std::byte* begin_;
  std::byte* end_;
  std::byte* at_;
  std::byte* start_ = nullptr;
  bool refused_ = false;
};

}  // namespace tracefs::format
