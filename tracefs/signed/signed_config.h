// SignedConfig: a config that says by whom, which one and how long, so that it
// may come over any way. It stays a config: both lines are comments.
//
//   # tracefs-config 1 version=7 expires=2027-01-01T00:00:00Z rollout=10%
//   … the config …
//   # tracefs-signature HEX          Ed25519, of all bytes before this line
//
// Tested by tests/unit/signed/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/crypto/signature.h"

namespace tracefs {

inline constexpr size_t kMaxSignedConfigBytes = (size_t{1} << 20) + 4096;

// Why a config is not taken.
enum class ConfigRefusal : uint8_t {
  kUnreadable,  // no plain file, too large, not readable
  kUnsigned,
  kForged,  // by none of the keys, or changed since
  kExpired,
  kRolledBack,  // older than what was taken before
  kForked,      // another config of the same version
};
inline constexpr size_t kConfigRefusals = 6;
std::string_view ConfigRefusalName(ConfigRefusal refusal);  // "unsigned"

struct ConfigFacts {
  uint64_t version = 0;
  std::optional<uint64_t> expires_s;  // since 1970; none: never
  uint32_t rollout = 10'000;          // of ten thousand hosts
};

struct SignedConfig {
  ConfigFacts facts;
  std::string text;    // all of it: what is parsed
  std::string digest;  // SHA-256 of it but both lines, as HEX
};

// "7", "2027-01-01" or "2027-01-01T12:00:00Z" (UTC), "10%" or "0.5%".
// kInvalid with what is expected.
Result<ConfigFacts> ParseConfigFacts(std::string_view version,
                                     std::string_view expires,
                                     std::string_view rollout);

// kInvalid if it is signed already.
Result<std::string> SignConfig(const ConfigFacts& facts,
                               std::string_view config, const Signer& signer);

// What was signed by one of the keys and has not expired at `now_s`. Else
// `why` says which it is, and the status in words. `bytes` are whole: what
// happens to a file while it is read is found by its signature.
Result<SignedConfig> VerifyConfig(std::string_view bytes,
                                  std::span<const PublicKey> keys,
                                  uint64_t now_s, ConfigRefusal* why);

// Whether a config for that many of ten thousand hosts is for this one. Who is
// among 10 % is among 50 %, too.
bool IsInRollout(std::string_view host, uint32_t rollout);

}  // namespace tracefs
