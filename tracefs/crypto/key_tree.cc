#include "tracefs/crypto/key_tree.h"

#include <bit>
#include <charconv>
#include <limits>
#include <span>

#include "tracefs/base/hex.h"

namespace tracefs {
namespace {

constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();

// The seed of the left (bit 0) or right (bit 1) child. `out` may be `parent`.
void Child(Mac& mac, KeySpan parent, unsigned bit, std::byte* out) {
  constexpr std::string_view kLabel = "tracefs-key-tree";
  const std::byte which{static_cast<uint8_t>(bit)};
  mac.Start(parent);
  mac.Update(AsBytes(kLabel));
  mac.Update({&which, 1});
  mac.Finish(out);
}

// Takes a number and what separates it from the next word off `line`.
bool TakeNumber(std::string_view& line, uint64_t* number) {
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), *number);
  if (error != std::errc() || end == line.data() + line.size() || *end != ' ') {
    return false;
  }
  line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

KeyTreeWriter::KeyTreeWriter()
    : memory_(kMaxNodes * sizeof(Node)), mac_(MakeHmacSha256()) {}

KeyTreeWriter::KeyTreeWriter(KeySpan root) : KeyTreeWriter() {
  Push(0, kHeight, root);
}

uint64_t KeyTreeWriter::LastOf(const Node& node) {
  if (node.height == kHeight) return kLast;
  return node.first + ((uint64_t{1} << node.height) - 1);
}

void KeyTreeWriter::Push(uint64_t first, uint32_t height, KeySpan seed) {
  Node& node = nodes()[count_++];
  node.first = first;
  node.height = height;
  CopySecret(seed, node.seed);
}

void KeyTreeWriter::Pop() {
  Wipe({reinterpret_cast<std::byte*>(&top()), sizeof(Node)});
  --count_;
}

void KeyTreeWriter::ForgetBelow(uint64_t number) {
  Descend(number);
  // It had a parent's seed, which leads to keys that are to be gone.
  mac_.ForgetKey();
}

void KeyTreeWriter::Descend(uint64_t number) {
  // The stack covers all from some number to the last of all without gaps, so
  // the top then has `number` in it.
  while (LastOf(top()) < number) Pop();
  while (top().first < number) {
    const Node& parent = top();
    const uint32_t height = parent.height - 1;
    const uint64_t middle = parent.first + (uint64_t{1} << height);
    const uint64_t first = parent.first;
    std::byte left[kKeyBytes];
    Child(mac_, KeySpan(parent.seed), 0, left);
    Child(mac_, KeySpan(parent.seed), 1, top().seed);
    top().first = middle;
    top().height = height;
    if (number < middle) Push(first, height, KeySpan(left));
    Wipe(left);
  }
}

std::optional<KeySpan> KeyTreeWriter::KeyOf(uint64_t number) {
  Descend(number);
  if (top().first != number) return std::nullopt;
  while (top().height != 0) {
    const uint32_t height = top().height - 1;
    std::byte left[kKeyBytes];
    Child(mac_, KeySpan(top().seed), 0, left);
    Child(mac_, KeySpan(top().seed), 1, top().seed);
    top().first = number + (uint64_t{1} << height);
    top().height = height;
    Push(number, height, KeySpan(left));
    Wipe(left);
  }
  mac_.ForgetKey();
  return KeySpan(top().seed);
}

uint64_t KeyTreeWriter::first() const { return nodes()[count_ - 1].first; }

void KeyTreeWriter::Save(std::string* text) const {
  for (size_t i = count_; i-- > 0;) {
    const Node& node = nodes()[i];
    *text += std::to_string(node.height) + ' ' + std::to_string(node.first);
    *text += ' ';
    AppendHex(KeySpan(node.seed), text);
    *text += '\n';
  }
}

std::optional<KeyTreeWriter> KeyTreeWriter::Load(std::string_view text) {
  KeyTreeWriter writer;
  // Lines go from the lowest number up: fill the stack from its bottom.
  Node* const nodes = writer.nodes();
  size_t count = 0;
  uint64_t next = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos || count == kMaxNodes) return {};
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    Node& node = nodes[kMaxNodes - 1 - count];
    uint64_t height;
    if (!TakeNumber(line, &height) || height > kHeight ||
        !TakeNumber(line, &node.first) || !FromHex(line, node.seed)) {
      return {};
    }
    node.height = static_cast<uint32_t>(height);
    const bool aligned =
        node.first == 0 ||
        static_cast<uint64_t>(std::countr_zero(node.first)) >= height;
    if (!aligned || (count != 0 && (node.first != next || next == 0))) {
      return {};
    }
    next = LastOf(node) + 1;  // 0 after the last number of all
    ++count;
  }
  if (count == 0 || next != 0) return {};
  CopySecret(std::as_bytes(std::span(nodes + (kMaxNodes - count), count)),
             reinterpret_cast<std::byte*>(nodes));
  if (count != kMaxNodes) {
    Wipe({reinterpret_cast<std::byte*>(nodes + count),
          (kMaxNodes - count) * sizeof(Node)});
  }
  writer.count_ = count;
  return writer;
}

KeyTreeReader::KeyTreeReader(KeySpan root)
    : path_((kHeight + 1) * kKeyBytes), mac_(MakeHmacSha256()) {
  CopySecret(root, path_.bytes().data());
}

KeySpan KeyTreeReader::KeyOf(uint64_t number) {
  // Path entry i is the seed of the node over the first i bits of the number.
  const size_t shared =
      any_ ? static_cast<size_t>(std::countl_zero(number ^ number_)) : 0;
  any_ = true;
  number_ = number;
  std::byte* const path = path_.bytes().data();
  for (size_t i = shared; i < kHeight; ++i) {
    Child(mac_, KeySpan(path + i * kKeyBytes, kKeyBytes),
          static_cast<unsigned>(number >> (kHeight - 1 - i)) & 1,
          path + (i + 1) * kKeyBytes);
  }
  return KeySpan(path + kHeight * kKeyBytes, kKeyBytes);
}

}  // namespace tracefs
