#include "filters/input/words.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <vector>

#include "tracefs/base/spelling.h"
#include "tracefs/event/op.h"
#include "tracefs/event/set_attributes.h"
#include "tracefs/event/system_call_names.h"

namespace tracefs {
namespace {

struct Flag {
  std::string_view word;
  FlagBits value;
};

constexpr Flag Bit(std::string_view word, uint64_t bits) {
  return {word, {bits, bits}};
}
constexpr Flag Access(std::string_view word, uint64_t bits) {
  return {word, {bits, O_ACCMODE}};
}

// What `flags` of the operations can hold. O_LARGEFILE is left out: its number
// differs between machines and the C library says 0.
constexpr Flag kFlags[] = {
    Access("O_RDONLY", O_RDONLY),
    Access("O_WRONLY", O_WRONLY),
    Access("O_RDWR", O_RDWR),
    Bit("O_APPEND", O_APPEND),
    Bit("O_ASYNC", O_ASYNC),
    Bit("O_CLOEXEC", O_CLOEXEC),
    Bit("O_CREAT", O_CREAT),
    Bit("O_DIRECT", O_DIRECT),
    Bit("O_DIRECTORY", O_DIRECTORY),
    Bit("O_DSYNC", O_DSYNC),
    Bit("O_EXCL", O_EXCL),
    Bit("O_NOATIME", O_NOATIME),
    Bit("O_NOCTTY", O_NOCTTY),
    Bit("O_NOFOLLOW", O_NOFOLLOW),
    Bit("O_NONBLOCK", O_NONBLOCK),
    Bit("O_PATH", O_PATH),
    Bit("O_SYNC", O_SYNC),
    Bit("O_TMPFILE", O_TMPFILE),
    Bit("O_TRUNC", O_TRUNC),
    Bit("RENAME_NOREPLACE", RENAME_NOREPLACE),
    Bit("RENAME_EXCHANGE", RENAME_EXCHANGE),
    Bit("RENAME_WHITEOUT", RENAME_WHITEOUT),
    Bit("XATTR_CREATE", XATTR_CREATE),
    Bit("XATTR_REPLACE", XATTR_REPLACE),
    Bit("FALLOC_FL_KEEP_SIZE", FALLOC_FL_KEEP_SIZE),
    Bit("FALLOC_FL_PUNCH_HOLE", FALLOC_FL_PUNCH_HOLE),
    Bit("FALLOC_FL_COLLAPSE_RANGE", FALLOC_FL_COLLAPSE_RANGE),
    Bit("FALLOC_FL_ZERO_RANGE", FALLOC_FL_ZERO_RANGE),
    Bit("FALLOC_FL_INSERT_RANGE", FALLOC_FL_INSERT_RANGE),
    Bit("FALLOC_FL_UNSHARE_RANGE", FALLOC_FL_UNSHARE_RANGE),
};

struct FileType {
  std::string_view word;
  uint64_t value;
};

// The S_IFMT constants, shifted.
constexpr FileType kFileTypes[] = {
    {"file", 8},  {"dir", 4},  {"link", 10}, {"fifo", 1},
    {"sock", 12}, {"char", 2}, {"block", 6},
};

constexpr int kMaxErrno = 4095;

std::string Hex(uint64_t value) {
  std::array<char, 18> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return "0x" + std::string(digits.data(), end.ptr);
}

}  // namespace

std::span<const std::string_view> PredicateWords() {
  static const auto words = [] {
    std::vector<std::string_view> list;
    for (const FieldInfo& f : Fields()) {
      if (!f.predicate.empty()) list.push_back(f.predicate);
    }
    return list;
  }();
  return words;
}

std::span<const std::string_view> OpWords() {
  static const auto words = [] {
    std::vector<std::string_view> list;
    for (size_t i = 0; i < kOpCount; ++i) {
      list.push_back(OpName(static_cast<Op>(i)));
    }
    list.push_back("close");
    return list;
  }();
  return words;
}

std::span<const std::string_view> ErrnoWords() {
  static const auto words = [] {
    std::vector<std::string_view> list;
    for (int i = 1; i <= kMaxErrno; ++i) {
      if (const char* name = strerrorname_np(i)) list.push_back(name);
    }
    return list;
  }();
  return words;
}

std::span<const std::string_view> FlagWords() {
  static const auto words = [] {
    std::vector<std::string_view> list;
    for (const Flag& flag : kFlags) list.push_back(flag.word);
    return list;
  }();
  return words;
}

std::span<const std::string_view> FileTypeWords() {
  static const auto words = [] {
    std::vector<std::string_view> list;
    for (const FileType& type : kFileTypes) list.push_back(type.word);
    return list;
  }();
  return words;
}

std::span<const std::string_view> SystemCallWords() {
  static const auto words = [] {
    std::vector<std::string_view> list;
    for (const SystemCallName& call : SystemCallNames()) {
      list.push_back(call.name);
    }
    return list;
  }();
  return words;
}

std::span<const std::string_view> SetAttributeWords() {
  static const auto words = [] {
    std::vector<std::string_view> list;
    for (const SetAttribute& attribute : kSettableAttributes) {
      if (attribute.about != SetAttribute::About::kRequest) {
        list.push_back(attribute.name);
      }
    }
    return list;
  }();
  return words;
}

std::optional<uint64_t> SetAttributeFromWord(std::string_view word) {
  for (const SetAttribute& attribute : kSettableAttributes) {
    if (attribute.about != SetAttribute::About::kRequest &&
        SameButForCase(attribute.name, word)) {
      return attribute.bits;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> SystemCallFromWord(std::string_view word) {
  return SystemCallNumber(word);
}

std::optional<uint64_t> ErrnoFromWord(std::string_view word) {
  // Second names of the same numbers; strerrorname_np knows the first only.
  if (SameButForCase(word, "EWOULDBLOCK")) return EAGAIN;
  if (SameButForCase(word, "EOPNOTSUPP") || SameButForCase(word, "ENOTSUP")) {
    return EOPNOTSUPP;
  }
  if (SameButForCase(word, "EDEADLOCK")) return EDEADLK;
  for (int i = 1; i <= kMaxErrno; ++i) {
    const char* name = strerrorname_np(i);
    if (name != nullptr && SameButForCase(word, name))
      return static_cast<uint64_t>(i);
  }
  return std::nullopt;
}

std::optional<FlagBits> FlagFromWord(std::string_view word) {
  for (const Flag& flag : kFlags) {
    if (SameButForCase(flag.word, word)) return flag.value;
  }
  return std::nullopt;
}

std::optional<uint64_t> FileTypeFromWord(std::string_view word) {
  for (const FileType& type : kFileTypes) {
    if (SameButForCase(type.word, word)) return type.value;
  }
  return std::nullopt;
}

std::string ValueText(Field field, uint64_t value) {
  if (field == Field::kSyscall && value <= UINT32_MAX) {
    const std::string_view name =
        SystemCallNameOf(static_cast<uint32_t>(value));
    if (!name.empty()) return std::string(name);
  }
  switch (Info(field).type) {
    case FieldType::kSigned:
      return std::to_string(static_cast<int64_t>(value));
    case FieldType::kErrno:
      if (value > 0 && value <= kMaxErrno) {
        const char* name = strerrorname_np(static_cast<int>(value));
        if (name != nullptr) return name;
      }
      break;
    case FieldType::kFileType:
      for (const FileType& type : kFileTypes) {
        if (type.value == value) return std::string(type.word);
      }
      break;
    case FieldType::kOp:
      if (const auto op = OpFromNumber(value)) return std::string(OpName(*op));
      break;
    case FieldType::kOctal: {
      std::array<char, 24> digits{};
      const auto end =
          std::to_chars(digits.data(), digits.data() + digits.size(), value, 8);
      return "0" + std::string(digits.data(), end.ptr);
    }
    case FieldType::kHex:
    case FieldType::kOpenFlags:
      return Hex(value);
    default:
      break;
  }
  return std::to_string(value);
}

}  // namespace tracefs
