#include "filters/output/checksum_head.h"

#include <cstring>

namespace tracefs {
namespace {

constexpr uint8_t kLastFlag = 1;
constexpr uint8_t kForwardFlag = 2;
constexpr uint8_t kSignedFlag = 4;

}  // namespace

std::string_view ChecksumName(ChecksumAlgorithm algorithm) {
  switch (algorithm) {
    case ChecksumAlgorithm::kCrc32c:
      return "crc32c";
    case ChecksumAlgorithm::kHmacMd5:
      return "hmac-md5";
    case ChecksumAlgorithm::kHmacSha256:
      return "hmac-sha256";
  }
  return "";
}

size_t ChecksumTagBytes(ChecksumAlgorithm algorithm) {
  switch (algorithm) {
    case ChecksumAlgorithm::kCrc32c:
      return 4;
    case ChecksumAlgorithm::kHmacMd5:
      return 16;
    case ChecksumAlgorithm::kHmacSha256:
      return 32;
  }
  return 0;
}

void EncodeChecksumHead(const ChecksumHead& head, std::byte* out) {
  out[0] = static_cast<std::byte>(head.algorithm);
  out[1] = static_cast<std::byte>((head.last ? kLastFlag : 0) |
                                  (head.forward ? kForwardFlag : 0) |
                                  (head.has_signature ? kSignedFlag : 0));
  StoreLe<uint16_t>(out + 2, kChecksumHeadBytes);
  StoreLe<uint32_t>(out + 4, head.heartbeat_ms);
  std::memcpy(out + 8, head.key_id.data(), 8);
  std::memcpy(out + 16, head.sign_id.data(), 8);
  StoreLe<uint64_t>(out + 24, head.epoch);
  StoreLe<uint64_t>(out + 32, head.previous);
  StoreLe<uint64_t>(out + 40, head.monotonic_ns);
  StoreLe<uint64_t>(out + 48, head.real_ns);
  std::memcpy(out + 56, head.link.data(), head.link.size());
}

bool DecodeChecksumHead(ByteSpan bytes, ChecksumHead* head) {
  if (bytes.size() < kChecksumHeadBytes) return false;
  const std::byte* p = bytes.data();
  head->algorithm = static_cast<ChecksumAlgorithm>(p[0]);
  const auto flags = static_cast<uint8_t>(p[1]);
  head->last = (flags & kLastFlag) != 0;
  head->forward = (flags & kForwardFlag) != 0;
  head->has_signature = (flags & kSignedFlag) != 0;
  head->heartbeat_ms = LoadLe<uint32_t>(p + 4);
  std::memcpy(head->key_id.data(), p + 8, 8);
  std::memcpy(head->sign_id.data(), p + 16, 8);
  head->epoch = LoadLe<uint64_t>(p + 24);
  head->previous = LoadLe<uint64_t>(p + 32);
  head->monotonic_ns = LoadLe<uint64_t>(p + 40);
  head->real_ns = LoadLe<uint64_t>(p + 48);
  std::memcpy(head->link.data(), p + 56, head->link.size());
  return ChecksumTagBytes(head->algorithm) != 0 &&
         (flags & ~(kLastFlag | kForwardFlag | kSignedFlag)) == 0 &&
         LoadLe<uint16_t>(p + 2) == kChecksumHeadBytes;
}

std::array<std::byte, 40> BlockPrefix(std::string_view label,
                                      const format::Serial& serial,
                                      uint64_t sequence) {
  std::array<std::byte, 40> prefix;
  std::memcpy(prefix.data(), label.data(), 16);
  std::memcpy(prefix.data() + 16, serial.data(), serial.size());
  StoreLe<uint64_t>(prefix.data() + 32, sequence);
  return prefix;
}

Digest LinkOf(ByteSpan bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

SecretKey SealRoot(KeySpan epoch_key, const format::Serial& serial) {
  SecretKey root;
  Hkdf(epoch_key, serial, "tracefs-seal-root", root.get());
  return root;
}

}  // namespace tracefs
