// KeyRing: the keys a reader was given, found by what a trace says of them.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tracefs/crypto/key_source.h"
#include "tracefs/crypto/signature.h"

namespace tracefs {

// Filled once, then read by any thread.
class KeyRing {
 public:
  // Adds all keys of a source, of whatever kind.
  Status Add(const KeySource& source);
  Status Add(KeyEntry entry);

  // Null if there is none of that id.
  const SecretKey* FindSecret(const KeyId& id) const;
  const SecretKey* FindVerifySecret(const KeyId& id) const;
  const PublicKey* FindSigner(const KeyId& id) const;
  std::span<const SecretKey> identities() const { return identities_; }
  bool has_verify_secrets() const { return !verify_.empty(); }
  // It holds a key that can tell whether a trace is authentic.
  bool can_verify() const {
    return !secrets_.empty() || !verify_.empty() || !signers_.empty();
  }

 private:
  std::vector<std::pair<KeyId, SecretKey>> secrets_;
  std::vector<std::pair<KeyId, SecretKey>> verify_;
  std::vector<std::pair<KeyId, PublicKey>> signers_;
  std::vector<SecretKey> identities_;
};

}  // namespace tracefs
