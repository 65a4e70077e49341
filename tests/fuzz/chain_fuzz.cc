// Fuzz target: undoing an output chain. The input is a chain text, a line end,
// and a payload; the reader has a key of each kind. After the word "sealed" the
// payload is what lies within the checksums and ciphers at the end of the
// chain, which are made here: else none that was changed would get past them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "filters/output/chain.h"
#include "filters/output/checksum.h"
#include "filters/output/encrypt.h"
#include "tests/fuzz/structured.h"
#include "tests/unit/filters/output/chain_end.h"

namespace tracefs {
namespace {

constexpr std::string_view kSealed = "sealed ";
constexpr int kSecretByte = 0x11;

SecretKey Secret() {
  SecretKey key;
  std::memset(key.get().data(), kSecretByte, kKeyBytes);
  return key;
}

// The stage that makes what `stage` says, before `*next`. False: it is neither
// a checksum nor a cipher.
bool PutSeal(const ChainStage& stage, std::unique_ptr<OutputFilter>* next) {
  if (stage.name == "checksum") {
    ChecksumOptions options;
    for (const ChecksumAlgorithm known :
         {ChecksumAlgorithm::kCrc32c, ChecksumAlgorithm::kHmacMd5,
          ChecksumAlgorithm::kHmacSha256}) {
      if (stage.Get("alg") == ChecksumName(known)) options.algorithm = known;
    }
    if (options.algorithm != ChecksumAlgorithm::kCrc32c) options.key = Secret();
    *next = MakeChecksum(std::move(options), std::move(*next));
    return true;
  }
  if (stage.name != "encrypt") return false;
  const CipherRow* const cipher = FindCipher(stage.Get("cipher"));
  if (cipher == nullptr) return false;
  EncryptOptions options;
  options.cipher = cipher->id;
  options.key = Secret();
  *next = MakeEncrypt(std::move(options), std::move(*next));
  return true;
}

// `payload` within the seals at the end of a chain.
std::string Sealed(std::string_view chain, const BlockId& id,
                   std::string_view payload) {
  ChainLog log;
  std::unique_ptr<OutputFilter> first = std::make_unique<ChainEnd>(&log);
  std::vector<ChainStage> stages = ParseChain(chain);
  if (!stages.empty()) stages.pop_back();  // the driver
  if (stages.size() > kMaxChainFilters) return std::string(payload);
  while (!stages.empty() && PutSeal(stages.back(), &first)) stages.pop_back();
  if (!first->Initialize({.tracer_id = 1, .serial = id.serial, .preamble = {}})
           .ok() ||
      !first->Write(AsBytes(payload), {.sequence = id.sequence}).ok() ||
      log.written.size() != 1) {
    std::abort();
  }
  std::string made = log.written.front().payload;
  if (!first->Release().ok()) std::abort();
  return made;
}

KeyRing AllKeys() {
  KeyRing keys;
  for (const auto& [kind, byte] :
       {std::pair<KeyKind, int>{KeyKind::kSecret, kSecretByte},
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
  std::string_view text = input.substr(0, end);
  const bool sealed = text.starts_with(kSealed);
  if (sealed) text.remove_prefix(kSealed.size());
  auto chain = ChainDecoder::Create(text, &keys);
  if (!chain.ok()) return;
  BlockId id{.sequence = 1};
  for (size_t i = 0; i < id.serial.size(); ++i) {
    id.serial[i] = std::byte(0x10 + i);
  }
  const std::string_view given = input.substr(end + 1);
  const std::string made = sealed ? Sealed(text, id, given) : std::string();
  const ByteSpan payload = AsBytes(sealed ? std::string_view(made) : given);
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
