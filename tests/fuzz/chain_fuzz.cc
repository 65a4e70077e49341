// Fuzz target: undoing an output chain. The input is a chain text, a line end,
// and a payload; the reader has a key of each kind.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "filters/output/chain.h"
#include "tests/fuzz/structured.h"

namespace tracefs {
namespace {

KeyRing AllKeys() {
  KeyRing keys;
  for (const auto& [kind, byte] :
       {std::pair<KeyKind, int>{KeyKind::kSecret, 0x11},
        {KeyKind::kSealVerify, 0x22},
        {KeyKind::kSign, 0x33},
        {KeyKind::kAgeIdentity, 0x44}}) {
    KeyEntry entry{kind, SecretKey()};
    std::memset(entry.key.get().data(), byte, kKeyBytes);
    if (!keys.Add(std::move(entry)).ok()) std::abort();
  }
  return keys;
}

void DecodeOne(std::string_view input) {
  static const KeyRing keys = AllKeys();
  const size_t end = input.find('\n');
  if (end == input.npos) return;
  auto chain = ChainDecoder::Create(input.substr(0, end), &keys);
  if (!chain.ok()) return;
  BlockId id{.sequence = 1};
  for (size_t i = 0; i < id.serial.size(); ++i) {
    id.serial[i] = std::byte(0x10 + i);
  }
  const ByteSpan payload = AsBytes(input.substr(end + 1));
  BlockNotes notes;
  ByteSpan block;
  if (!chain->Decode(id, payload, &notes, &block).ok()) return;
  if (block.size() > format::kMaxPayloadBytes) std::abort();
  // Every byte of the result can be read.
  size_t sum = 0;
  for (const std::byte b : block) sum += static_cast<size_t>(b);
  volatile size_t sink = sum;
  static_cast<void>(sink);
}

}  // namespace
}  // namespace tracefs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tracefs::DecodeOne({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  // The chain by its words, or the payload.
  tracefs::fuzz::Dice dice(seed + 1);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\n');
  if (end == input.npos || tracefs::fuzz::Below(dice, 3) != 0) {
    return LLVMFuzzerMutate(data, size, max);
  }
  const std::string made =
      tracefs::fuzz::ChangedText(input.substr(0, end), dice) +
      std::string(input.substr(end));
  return tracefs::fuzz::PutBack(made, data, max);
}
