// MessageCursor and ArgumentCursor: the syntax of messages and nothing else, on
// bytes that may hold anything. FORMAT.md section 4.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "tracefs/base/bytes.h"
#include "tracefs/format/constants.h"

namespace tracefs::format {

struct Message {
  uint16_t msg_id = 0;
  ByteSpan arguments;  // without the six bytes of the head
  size_t offset = 0;   // of the message in its block
};

// Walks the messages of a block.
class MessageCursor {
 public:
  explicit MessageCursor(ByteSpan block) : in_(block) {}

  // False at the end of the block or before a message whose length is a lie;
  // malformed() tells which.
  bool Next(Message* message) {
    if (in_.left() < kMessageHeaderBytes) {
      malformed_ = in_.left() != 0;
      return false;
    }
    const std::byte* head = in_.rest().data();
    const uint32_t length_untrusted = LoadLe<uint32_t>(head + 2);
    if (length_untrusted < kMessageHeaderBytes ||
        length_untrusted > in_.left()) {
      malformed_ = true;
      return false;
    }
    message->msg_id = LoadLe<uint16_t>(head);
    message->offset = in_.offset();
    message->arguments =
        in_.Take(length_untrusted)->subspan(kMessageHeaderBytes);
    return true;
  }

  bool malformed() const { return malformed_; }
  size_t offset() const { return in_.offset(); }
  size_t left() const { return in_.left(); }

 private:
  ByteCursor in_;
  bool malformed_ = false;
};

// The constant widths of arguments, by id.
class ArgumentWidths {
 public:
  // Those of this version.
  ArgumentWidths();

  static constexpr int kUndescribed = -1;

  // Bytes; 0 = variable; kUndescribed where nobody said.
  int Of(uint16_t arg_id) const {
    if (arg_id < low_.size()) return low_[arg_id];
    const auto found = high_.find(arg_id);
    return found == high_.end() ? kUndescribed : found->second;
  }
  void Set(uint16_t arg_id, uint16_t width);

 private:
  std::array<int32_t, 256> low_;
  std::unordered_map<uint16_t, int32_t> high_;
};

struct Argument {
  uint16_t id = 0;  // without kHasLength
  bool has_length = false;
  ByteSpan value;

  // The value as a number; 0 if it is not of the width of T or opaque.
  template <typename T>
  T As() const {
    return is<T>() ? LoadLe<T>(value.data()) : T{};
  }
  template <typename T>
  bool is() const {
    return !has_length && value.size() == sizeof(T);
  }
};

// A number of any width a number can have; false for other widths.
inline bool LoadNumber(ByteSpan value, bool is_signed, uint64_t* number) {
  switch (value.size()) {
    case 8:
      *number = LoadLe<uint64_t>(value.data());
      return true;
    case 4:
      *number = is_signed ? static_cast<uint64_t>(LoadLe<int32_t>(value.data()))
                          : LoadLe<uint32_t>(value.data());
      return true;
    case 2:
      *number = is_signed ? static_cast<uint64_t>(LoadLe<int16_t>(value.data()))
                          : LoadLe<uint16_t>(value.data());
      return true;
    case 1:
      *number = is_signed ? static_cast<uint64_t>(LoadLe<int8_t>(value.data()))
                          : LoadLe<uint8_t>(value.data());
      return true;
    default:
      return false;
  }
}

// Walks the arguments of a message. The innermost loop of every reader, hence
// plain pointers.
class ArgumentCursor {
 public:
  ArgumentCursor(ByteSpan arguments, const ArgumentWidths& widths)
      : at_(arguments.data()), end_(at_ + arguments.size()), widths_(widths) {}

  // False at the end or before an argument that cannot be read; malformed()
  // tells which.
  bool Next(Argument* argument) {
    const std::byte* at = at_;
    if (left(at) < 2) return Stop(at);
    const auto id = LoadLe<uint16_t>(at);
    at += 2;
    argument->id = id & ~kHasLength;
    argument->has_length = (id & kHasLength) != 0;
    size_t size;
    if (argument->has_length) {
      if (left(at) < 4) return Stop(at_);
      size = LoadLe<uint32_t>(at);
      at += 4;
    } else {
      const int width = widths_.Of(argument->id);
      if (width <= 0) return Stop(at_);
      size = static_cast<size_t>(width);
    }
    if (left(at) < size) return Stop(at_);
    argument->value = {at, size};
    at_ = at + size;
    return true;
  }

  bool malformed() const { return malformed_; }

 private:
  size_t left(const std::byte* at) const {
    return static_cast<size_t>(end_ - at);
  }
  bool Stop(const std::byte* at) {
    malformed_ = at != end_;
    return false;
  }

  const std::byte* at_;
  const std::byte* const end_;
  const ArgumentWidths& widths_;
  bool malformed_ = false;
};

// The widths of this version, made once.
const ArgumentWidths& BuiltInWidths();

}  // namespace tracefs::format
