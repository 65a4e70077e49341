// The key tree: a forward-secure sequence of keys with random access (a
// "seekable sequential key generator").
//
// A root seed stands over 2^64 leaves, one key for each number. Each node's
// seed gives its two children's by HMAC-SHA256 (FORMAT.md, section 11.4), and
// nothing leads back up. A writer keeps only the seeds that stand over numbers
// still to come; whoever takes them learns no earlier key. A reader with the
// root computes any key in 64 steps, so that a hostile number costs no more
// than an honest one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/secret.h"

namespace tracefs {

// The keys from a number on; moves forward only.
class KeyTreeWriter {
 public:
  explicit KeyTreeWriter(KeySpan root);

  // Erases all keys below `number`, and gives the key of `number`; valid until
  // the next call. Nothing if it is erased already.
  std::optional<KeySpan> KeyOf(uint64_t number);
  // Erases all keys below `number`.
  void ForgetBelow(uint64_t number);
  // The lowest number whose key is left.
  uint64_t first() const;

  // Appends the seeds as text, at most kMaxSavedBytes: "height first hex" a
  // line; and back. Text that does not stand for such a writer gives nothing.
  static constexpr size_t kMaxSavedBytes = 65 * 128;
  void Save(std::string* text) const;
  static std::optional<KeyTreeWriter> Load(std::string_view text);

 private:
  static constexpr size_t kHeight = 64;
  static constexpr size_t kMaxNodes = kHeight + 1;
  struct Node {
    uint64_t first;
    uint32_t height;  // it stands over 2^height numbers
    std::byte seed[kKeyBytes];
  };

  KeyTreeWriter();
  // ForgetBelow, but for what the MAC still has.
  void Descend(uint64_t number);
  // The highest number below a node.
  static uint64_t LastOf(const Node& node);
  Node& top() { return nodes()[count_ - 1]; }
  Node* nodes() { return reinterpret_cast<Node*>(memory_.bytes().data()); }
  const Node* nodes() const {
    return reinterpret_cast<const Node*>(memory_.bytes().data());
  }
  void Push(uint64_t first, uint32_t height, KeySpan seed);
  void Pop();

  // A stack, the lowest numbers on top.
  SecretMemory memory_;
  size_t count_ = 0;
  Mac mac_;
};

// Any key, by a reader.
class KeyTreeReader {
 public:
  explicit KeyTreeReader(KeySpan root);
  // Valid until the next call.
  KeySpan KeyOf(uint64_t number);

 private:
  static constexpr size_t kHeight = 64;
  // The seeds on the way to the key asked for last: neighbours share most.
  SecretMemory path_;
  uint64_t number_ = 0;
  bool any_ = false;
  Mac mac_;
};

}  // namespace tracefs
