#include "tracefs/signed/signed_config.h"

#include <time.h>

#include <array>

#include "tracefs/base/date_text.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/text.h"
#include "tracefs/base/units.h"
#include "tracefs/crypto/hash.h"

namespace tracefs {
namespace {

constexpr std::string_view kFirst = "# tracefs-config 1 ";
constexpr std::string_view kLast = "# tracefs-signature ";

Digest DigestOf(std::string_view text) {
  Sha256 hash;
  hash.Update(AsBytes(text));
  return hash.Finish();
}

std::string DateText(uint64_t seconds) {
  return UtcText(static_cast<time_t>(seconds), "%Y-%m-%dT%H:%M:%SZ");
}

// A date as DateText writes it, or its first half.
std::optional<uint64_t> ParseDate(std::string_view text) {
  const std::string copy(text);
  struct tm tm = {};
  const char* const format =
      copy.size() == 10 ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ";
  if (::strptime(copy.c_str(), format, &tm) == nullptr) return {};
  const time_t seconds = ::timegm(&tm);
  if (seconds < 0) return {};
  // strptime skips blanks, and to timegm February 30 is March 2.
  const auto date = static_cast<uint64_t>(seconds);
  if (!DateText(date).starts_with(copy)) return {};
  return date;
}

// "10%", "0.05%": of ten thousand.
std::optional<uint32_t> ParseShare(std::string_view text) {
  if (!text.ends_with('%')) return {};
  text.remove_suffix(1);
  const size_t dot = text.find('.');
  const auto whole = ParseUnsigned(text.substr(0, dot));
  if (!whole || *whole > 100) return {};
  uint64_t share = *whole * 100;
  if (dot != std::string_view::npos) {
    const std::string_view rest = text.substr(dot + 1);
    if (rest.empty() || rest.size() > 2) return {};
    for (size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] < '0' || rest[i] > '9') return {};
      share += static_cast<uint64_t>(rest[i] - '0') * (i == 0 ? 10 : 1);
    }
  }
  if (share > 10'000) return {};
  return static_cast<uint32_t>(share);
}

std::string ShareText(uint32_t share) {
  std::string text = std::to_string(share / 100);
  if (share % 100 != 0) {
    const uint32_t rest = share % 100;
    text += '.';
    text += static_cast<char>('0' + rest / 10);
    if (rest % 10 != 0) text += static_cast<char>('0' + rest % 10);
  }
  return text + '%';
}

// The three words of the first line.
Result<ConfigFacts> ParseFirstLine(std::string_view line) {
  line.remove_prefix(kFirst.size());
  std::array<std::string_view, 3> words;
  for (const auto& [word, name] :
       {std::pair{&words[0], std::string_view("version=")},
        std::pair{&words[1], std::string_view("expires=")},
        std::pair{&words[2], std::string_view("rollout=")}}) {
    const std::string_view given = TakeUpTo(line, ' ');
    if (!given.starts_with(name)) {
      return Status::Invalid("its first line lacks " + std::string(name));
    }
    *word = given.substr(name.size());
  }
  if (!line.empty()) return Status::Invalid("its first line is too long");
  return ParseConfigFacts(words[0], words[1], words[2]);
}

}  // namespace

std::string_view ConfigRefusalName(ConfigRefusal refusal) {
  constexpr std::array<std::string_view, kConfigRefusals> kNames = {
      "unreadable", "unsigned", "forged", "expired", "rolled_back", "forked"};
  return kNames[static_cast<size_t>(refusal)];
}

Result<ConfigFacts> ParseConfigFacts(std::string_view version,
                                     std::string_view expires,
                                     std::string_view rollout) {
  ConfigFacts facts;
  const auto number = ParseUnsigned(version);
  if (!number || *number == 0 || *number > UINT32_MAX) {
    return Status::Invalid("a version is a number from 1 on, not '" +
                           std::string(version) + "'");
  }
  facts.version = *number;
  if (expires != "never") {
    facts.expires_s = ParseDate(expires);
    if (!facts.expires_s) {
      return Status::Invalid(
          "a config expires at a date, as 2027-01-01 or 2027-01-01T12:00:00Z, "
          "or never, not '" +
          std::string(expires) + "'");
    }
  }
  const auto share = ParseShare(rollout);
  if (!share) {
    return Status::Invalid(
        "a roll-out is a share of hosts, as 10% or 0.5%, "
        "not '" +
        std::string(rollout) + "'");
  }
  facts.rollout = *share;
  return facts;
}

Result<std::string> SignConfig(const ConfigFacts& facts,
                               std::string_view config, const Signer& signer) {
  if (config.starts_with(kFirst)) {
    return Status::Invalid("it is signed already: sign the config it was");
  }
  std::string text(kFirst);
  text += "version=" + std::to_string(facts.version);
  text += " expires=" +
          (facts.expires_s ? DateText(*facts.expires_s) : std::string("never"));
  text += " rollout=" + ShareText(facts.rollout) + '\n';
  text += config;
  if (!text.ends_with('\n')) text += '\n';
  const auto signature = signer.Sign(AsBytes(text));
  if (!signature.ok()) return signature.status();
  text += kLast;
  text += Hex(*signature) + '\n';
  if (text.size() > kMaxSignedConfigBytes) {
    return Status::Invalid("a config has 1 MiB at most");
  }
  return text;
}

Result<SignedConfig> VerifyConfig(std::string_view bytes,
                                  std::span<const PublicKey> keys,
                                  uint64_t now_s, ConfigRefusal* why) {
  const auto refuse = [why](ConfigRefusal what, const std::string& text) {
    *why = what;
    return Status::Invalid(text);
  };
  if (bytes.size() > kMaxSignedConfigBytes) {
    return refuse(ConfigRefusal::kUnreadable, "it is larger than 1 MiB");
  }
  const size_t last =
      bytes.rfind('\n', bytes.size() < 2 ? 0 : bytes.size() - 2);
  if (!bytes.starts_with(kFirst) || !bytes.ends_with('\n') ||
      !bytes.substr(last + 1).starts_with(kLast)) {
    return refuse(ConfigRefusal::kUnsigned,
                  "it is not signed (tracefs-keygen sign-config)");
  }
  const std::string_view signed_part = bytes.substr(0, last + 1);
  const std::string_view hex = bytes.substr(
      last + 1 + kLast.size(), bytes.size() - last - 2 - kLast.size());
  Signature signature;
  bool good = false;
  if (FromHex(hex, signature)) {
    for (const PublicKey& key : keys) {
      good = good || VerifySignature(key, AsBytes(signed_part), signature);
    }
  }
  if (!good) {
    return refuse(ConfigRefusal::kForged,
                  "its signature is by none of the keys, or it was changed");
  }
  // From here on it is what the holder of the key wrote.
  const size_t first = bytes.find('\n');
  auto facts = ParseFirstLine(bytes.substr(0, first));
  if (!facts.ok()) {
    return refuse(ConfigRefusal::kUnsigned, facts.status().message());
  }
  if (facts->expires_s && *facts->expires_s <= now_s) {
    return refuse(ConfigRefusal::kExpired,
                  "it expired at " + DateText(*facts->expires_s));
  }
  SignedConfig config;
  config.facts = *facts;
  config.text = bytes;
  config.digest = Hex(DigestOf(signed_part.substr(first + 1)));
  return config;
}

bool IsInRollout(std::string_view host, uint32_t rollout) {
  const Digest digest = DigestOf("tracefs-rollout\n" + std::string(host));
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) {
    number = number << 8 | static_cast<uint64_t>(digest[i]);
  }
  return number % 10'000 < rollout;
}

}  // namespace tracefs
