// The keys of anonymisation. One master secret (tracefs-keygen secret) stands
// over a key for each identity domain, and those over the keys of the single
// algorithms; a key for a domain, for a domain on one day, or for the names of
// one subtree can be handed out alone (POLICY.md, "Keys").
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/crypto/age.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/crypto/secret.h"

namespace tracefs::anonymize {

// The key of a domain. `day` is "2026-11-21", or empty where keys are not
// daily.
SecretKey DomainKey(KeySpan master, std::string_view domain,
                    std::string_view day);

// A key under `key` for one purpose: `out` may have any length up to 64.
void DeriveInto(KeySpan key, std::string_view purpose,
                std::span<std::byte> out);
SecretKey DeriveKey(KeySpan key, std::string_view purpose);

// The key under which the names in a directory are encrypted with `tree`: of
// the root of the mount, and of a directory by its name in its parent.
SecretKey TreeRootKey(KeySpan domain_key);
SecretKey TreeChildKey(KeySpan parent, std::string_view name);

// The day of a time since the epoch, UTC: "2026-11-21".
std::string DayOf(uint64_t real_ns);
bool IsDay(std::string_view text);

// A key that was derived from a master.
struct DerivedKey {
  std::string domain;
  std::string day;  // empty: of any
  // For a subtree: its path as it appears in the anonymised trace, and the id
  // of the domain's key, which this is not.
  std::string subtree;
  std::string domain_key_id;
  SecretKey key;
};

// One line of a key file, without its end. With recipients the key in it is
// wrapped: only the holder of an age identity can use it.
Result<std::string> DerivedKeyLine(const DerivedKey& key,
                                   std::span<const AgeRecipient> recipients);

// Filled once, then read by any thread. Holds no longer than it must what opens
// everything: see ForgetMaster.
class KeySet {
 public:
  // All keys of a source: a master, derived keys, age identities. Identities
  // must come before what is wrapped for them, or in the same source.
  Status Add(const KeySource& source);
  // The same from text, for tests and tools; `what` is for messages.
  Status AddText(std::string_view text, const std::string& what);
  void SetMaster(SecretKey master) { master_ = std::move(master); }
  // Wipes the master and the identities once everything was derived from them
  // that will be needed. Plans have keys of their own; derived keys stay.
  void ForgetMaster() {
    master_.reset();
    identities_.clear();
  }

  bool has_master() const { return master_.has_value(); }
  KeySpan master() const { return master_->get(); }

  // The key of a domain: from the master or as it was given. Nothing if there
  // is none for that day.
  std::optional<SecretKey> Find(std::string_view domain,
                                std::string_view day) const;
  // The subtree keys that were given.
  std::vector<const DerivedKey*> Subtrees() const;
  std::span<const DerivedKey> derived() const { return derived_; }

 private:
  Status AddLine(std::string_view line, const std::string& what);

  std::optional<SecretKey> master_;
  std::vector<DerivedKey> derived_;
  std::vector<SecretKey> identities_;
};

}  // namespace tracefs::anonymize
