#include "tracefs/export/thrift_reader.h"

namespace tracefs {
namespace {

constexpr int kMaxDepth = 16;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  size_t at() const { return at_; }

  bool Struct(ThriftValue* out, int depth) {
    if (depth > kMaxDepth) return false;
    int id = 0;
    for (;;) {
      uint8_t head;
      if (!Byte(&head)) return false;
      if (head == 0) return true;
      const int type = head & 15;
      if ((head >> 4) != 0) {
        id += head >> 4;
      } else {
        int64_t given;
        if (!ZigZag(&given) || given < 0 || given > INT16_MAX) return false;
        id = static_cast<int>(given);
      }
      ThriftValue value;
      if (!Value(type, &value, depth)) return false;
      out->fields.push_back({id, std::move(value)});
    }
  }

 private:
  bool Byte(uint8_t* out) {
    if (at_ >= bytes_.size()) return false;
    *out = static_cast<uint8_t>(bytes_[at_++]);
    return true;
  }
  bool Varint(uint64_t* out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      uint8_t byte;
      if (!Byte(&byte)) return false;
      *out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool ZigZag(int64_t* out) {
    uint64_t value;
    if (!Varint(&value)) return false;
    *out = static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    return true;
  }
  // The value of a field; lists encode booleans otherwise, and ours have none.
  bool Value(int type, ThriftValue* out, int depth) {
    switch (type) {
      case 1:
      case 2:
        out->number = type == 1 ? 1 : 0;
        return true;
      case 3: {
        uint8_t byte;
        if (!Byte(&byte)) return false;
        out->number = static_cast<int8_t>(byte);
        return true;
      }
      case 4:
      case 5:
      case 6:
        return ZigZag(&out->number);
      case 8:
        return Text(out);
      case 9:
        return List(out, depth + 1);
      case 12:
        return Struct(out, depth + 1);
      default:
        return false;
    }
  }
  bool Text(ThriftValue* out) {
    uint64_t size;
    if (!Varint(&size) || size > bytes_.size() - at_) return false;
    out->text = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }
  bool List(ThriftValue* out, int depth) {
    uint8_t head;
    if (depth > kMaxDepth || !Byte(&head)) return false;
    uint64_t size = head >> 4;
    if (size == 15 && !Varint(&size)) return false;
    // Each element has a byte at least.
    const int type = head & 15;
    if (type < 3 || size > bytes_.size() - at_) return false;
    for (uint64_t i = 0; i < size; ++i) {
      if (!Value(type, &out->elements.emplace_back(), depth)) return false;
    }
    return true;
  }

  const std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace

std::optional<size_t> ReadThrift(std::string_view bytes, ThriftValue* out) {
  Reader reader(bytes);
  if (!reader.Struct(out, 0)) return std::nullopt;
  return reader.at();
}

}  // namespace tracefs
