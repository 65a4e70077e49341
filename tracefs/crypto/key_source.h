// Where keys come from: a file only its owner can read, a credential of the
// service manager, an environment variable or the kernel's keyring. Never a
// config's text, never a command line, and no message ever holds what was read.
//
// A key file is text: one key a line, lines with '#' are comments. Variables
// and keyring entries hold the same text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/crypto/secret.h"

namespace tracefs {

enum class KeyKind : uint8_t {
  kSecret,       // "tracefs-secret-1 HEX": for checksum, encrypt, anonymise
  kSealVerify,   // "tracefs-seal-verify-1 HEX": checks seal = forward
  kSign,         // "tracefs-sign-1 HEX": an Ed25519 private key
  kSignPublic,   // "tracefs-sign-public-1 HEX": its public half
  kAgeIdentity,  // "AGE-SECRET-KEY-1…"
};
// "a shared secret (tracefs-keygen secret)", for messages.
std::string_view KeyKindText(KeyKind kind);

struct KeySource {
  enum class Place : uint8_t { kFile, kEnvironment, kKeyring, kCredential };
  Place place = Place::kFile;
  std::string name;
  // What it holds, opened by somebody else for a process that cannot: the file
  // itself, or a file with the text. Null: it is opened here.
  std::shared_ptr<const UniqueFd> given = nullptr;

  // "key file '/etc/…'", for messages.
  std::string Text() const;
};

// "file:PATH", "env:NAME", "keyring:DESCRIPTION" (a key of type "user") or
// "credential:NAME" (of systemd, below $CREDENTIALS_DIRECTORY).
// Anything else is refused without repeating it: it may be a key.
Result<KeySource> ParseKeySource(std::string_view text);

// The same from a command line, where a path alone is a file.
Result<KeySource> ParseKeyArgument(std::string_view text);

struct KeyEntry {
  KeyKind kind;
  SecretKey key;
};

// What a source holds, as text that ends with zeros: for keys that are none of
// KeyKind. kSystem if it cannot be read, kInvalid if others can read the file.
Result<SecretMemory> ReadSecretText(const KeySource& source);

// All keys of a source, at least one. kSystem if it cannot be read, kInvalid if
// it holds something else, or secrets that others can read.
Result<std::vector<KeyEntry>> ReadKeys(const KeySource& source);
// The one key of that kind in a source.
Result<SecretKey> ReadKey(const KeySource& source, KeyKind kind);

// Adds what the arguments of a command's `option` name to `keys`, which has an
// Add(KeySource); `option` is for messages.
template <typename Keys>
Status AddKeyArguments(std::span<const std::string> arguments,
                       std::string_view option, Keys* keys) {
  for (const std::string& argument : arguments) {
    const Result<KeySource> source = ParseKeyArgument(argument);
    const Status added = source.ok() ? keys->Add(*source) : source.status();
    if (!added.ok()) return added.Prefixed(option);
  }
  return Status::Ok();
}

// One line of key text, its end left out.
std::string KeyLine(KeyKind kind, KeySpan key);
// The same line read; nothing if it is none.
bool ParseKeyLine(std::string_view line, KeyEntry* entry);

inline constexpr size_t kMaxKeyFileBytes = size_t{64} << 10;

// What every file that holds a secret must be: regular, of this user or of
// root, and closed to everyone else. `what` is for the message.
Status CheckSecretFile(const UniqueFd& fd, const std::string& what);
// Reads at most kMaxKeyFileBytes from the beginning.
Result<SecretMemory> ReadSecretFile(const UniqueFd& fd,
                                    const std::string& what);

}  // namespace tracefs
