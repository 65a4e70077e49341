// age (age-encryption.org/v1) with X25519 recipients: wraps a data key so that
// only the holders of the identities can unwrap it. What WrapKey makes is a
// complete age file with the data key as its contents: `age -d -i IDENTITY`
// unwraps it, too, with whatever plugins it has.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/crypto/secret.h"

namespace tracefs {

inline constexpr std::string_view kAgeIdentityPrefix = "AGE-SECRET-KEY-1";
using AgeRecipient = std::array<std::byte, 32>;
// Each costs a reader an X25519 operation and a block about a hundred bytes.
inline constexpr size_t kMaxAgeRecipients = 16;

// "AGE-SECRET-KEY-1…" and back.
std::string AgeIdentityText(KeySpan identity);
bool ParseAgeIdentity(std::string_view text, SecretKey* identity);
// "age1…" and back.
std::string AgeRecipientText(const AgeRecipient& recipient);
bool ParseAgeRecipient(std::string_view text, AgeRecipient* recipient);
// The recipient that an identity belongs to.
Result<AgeRecipient> RecipientOfIdentity(KeySpan identity);

// An age file for all of `recipients` (1 to kMaxAgeRecipients).
Result<std::string> AgeWrapKey(std::span<const AgeRecipient> recipients,
                               KeySpan key);

// The key in such a file, by the first of `identities` that fits. kInvalid if
// none does; kCorrupt if the file is damaged. `file` may be hostile.
Result<SecretKey> AgeUnwrapKey(ByteSpan file,
                               std::span<const SecretKey> identities);

}  // namespace tracefs
