#include "anonymize/key_set.h"

#include <time.h>

#include <algorithm>

#include "anonymize/base64url.h"
#include "tracefs/base/date_text.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/join.h"
#include "tracefs/base/text.h"
#include "tracefs/crypto/hash.h"

namespace tracefs::anonymize {
namespace {

constexpr std::string_view kDerivationVersion = "tracefs-anon/1|";
constexpr std::string_view kLineWord = "tracefs-anon-key-1";
constexpr std::string_view kWrappedWord = "tracefs-anon-wrapped-1";

// Cuts the first word off.
std::string_view TakeWord(std::string_view& line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// "-", "day:2026-11-21", "tree:KEYID:PATH", "day:…,tree:…".
std::string ScopeText(const DerivedKey& key) {
  std::string scope;
  if (!key.day.empty()) scope = "day:" + key.day;
  if (!key.subtree.empty()) {
    AppendWord("tree:" + key.domain_key_id + ':', ",", &scope);
    AppendBase64url(AsBytes(key.subtree), &scope);
  }
  return scope.empty() ? "-" : scope;
}

bool ParseScope(std::string_view scope, DerivedKey* key) {
  if (scope == "-") return true;
  while (!scope.empty()) {
    std::string_view part = TakeUpTo(scope, ',');
    if (part.starts_with("day:")) {
      key->day = part.substr(4);
      if (!IsDay(key->day)) return false;
    } else if (part.starts_with("tree:")) {
      part.remove_prefix(5);
      const size_t colon = part.find(':');
      if (colon == part.npos) return false;
      key->domain_key_id = part.substr(0, colon);
      std::vector<std::byte> path;
      if (!FromBase64url(part.substr(colon + 1), &path)) return false;
      key->subtree = AsText(path);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

void DeriveInto(KeySpan key, std::string_view purpose,
                std::span<std::byte> out) {
  Hkdf(key, {}, std::string(kDerivationVersion) + std::string(purpose), out);
}

SecretKey DeriveKey(KeySpan key, std::string_view purpose) {
  SecretKey derived;
  DeriveInto(key, purpose, derived.get());
  return derived;
}

SecretKey DomainKey(KeySpan master, std::string_view domain,
                    std::string_view day) {
  std::string purpose = "domain|" + std::string(domain) + '|';
  if (!day.empty()) purpose += "day:" + std::string(day);
  return DeriveKey(master, purpose);
}

SecretKey TreeRootKey(KeySpan domain_key) {
  return DeriveKey(domain_key, "tree");
}

SecretKey TreeChildKey(KeySpan parent, std::string_view name) {
  SecretKey child;
  std::string message = std::string(kDerivationVersion) + "directory|";
  message += name;
  HmacSha256(parent, AsBytes(message), child.get());
  return child;
}

std::string DayOf(uint64_t real_ns) {
  return UtcText(static_cast<time_t>(real_ns / 1'000'000'000), "%Y-%m-%d");
}

bool IsDay(std::string_view text) {
  if (text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash != (text[i] == '-')) return false;
    if (!dash && (text[i] < '0' || text[i] > '9')) return false;
  }
  return true;
}

Result<std::string> DerivedKeyLine(const DerivedKey& key,
                                   std::span<const AgeRecipient> recipients) {
  const std::string rest = ' ' + key.domain + ' ' + ScopeText(key) + ' ';
  if (recipients.empty()) {
    return std::string(kLineWord) + rest + Hex(key.key.get());
  }
  const Result<std::string> wrapped = AgeWrapKey(recipients, key.key.get());
  if (!wrapped.ok()) return wrapped.status();
  std::string line = std::string(kWrappedWord) + rest;
  AppendBase64url(AsBytes(*wrapped), &line);
  return line;
}

Status KeySet::Add(const KeySource& source) {
  const Result<SecretMemory> text = ReadSecretText(source);
  if (!text.ok()) return text.status();
  std::string_view view = AsText(text->bytes());
  return AddText(view.substr(0, view.find('\0')), source.Text());
}

Status KeySet::AddText(std::string_view text, const std::string& what) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = Trim(TakeUpTo(text, '\n'));
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  }
  if (lines.empty()) {
    return Status::Invalid(what +
                           " holds no key; make one with 'tracefs-keygen "
                           "secret' or 'tracefs-keygen --derive'");
  }
  // Identities first: what comes before them may be wrapped for them.
  std::stable_partition(lines.begin(), lines.end(), [](std::string_view line) {
    return line.starts_with(kAgeIdentityPrefix);
  });
  for (const std::string_view line : lines) {
    if (Status s = AddLine(line, what); !s.ok()) return s;
  }
  return Status::Ok();
}

Status KeySet::AddLine(std::string_view line, const std::string& what) {
  const Status no_key =
      Status::Invalid(what +
                      ": a line is no key for anonymisation: neither a secret "
                      "of 'tracefs-keygen "
                      "secret', nor a derived key, nor an age identity");
  std::string_view rest = line;
  const std::string_view word = TakeWord(rest);
  if (word != kLineWord && word != kWrappedWord) {
    KeyEntry entry;
    if (!ParseKeyLine(line, &entry)) return no_key;
    if (entry.kind == KeyKind::kAgeIdentity) {
      identities_.push_back(std::move(entry.key));
      return Status::Ok();
    }
    if (entry.kind != KeyKind::kSecret) {
      return Status::Invalid(what + " holds " +
                             std::string(KeyKindText(entry.kind)) +
                             ", which does not serve here");
    }
    if (master_ && !EqualSecrets(master_->get(), entry.key.get())) {
      return Status::Invalid(what + ": there are two master secrets; give one");
    }
    master_ = std::move(entry.key);
    return Status::Ok();
  }
  DerivedKey key;
  key.domain = TakeWord(rest);
  if (key.domain.empty() || !ParseScope(TakeWord(rest), &key)) return no_key;
  const std::string_view value = Trim(rest);
  if (word == kLineWord) {
    if (!FromHex(value, key.key.get())) return no_key;
  } else {
    std::vector<std::byte> file;
    if (!FromBase64url(value, &file)) return no_key;
    if (identities_.empty()) {
      return Status::Invalid(what + ": the key of domain " + key.domain +
                             " is wrapped for an age recipient; give the "
                             "identity with --keys, too, before it");
    }
    Result<SecretKey> unwrapped = AgeUnwrapKey(file, identities_);
    if (!unwrapped.ok()) {
      return unwrapped.status().Prefixed(what + ": key of domain " +
                                         key.domain);
    }
    key.key = *std::move(unwrapped);
  }
  derived_.push_back(std::move(key));
  return Status::Ok();
}

std::optional<SecretKey> KeySet::Find(std::string_view domain,
                                      std::string_view day) const {
  if (master_) return DomainKey(master_->get(), domain, day);
  for (const DerivedKey& key : derived_) {
    if (key.domain == domain && key.subtree.empty() && key.day == day) {
      return key.key.Clone();
    }
  }
  return std::nullopt;
}

std::vector<const DerivedKey*> KeySet::Subtrees() const {
  std::vector<const DerivedKey*> found;
  for (const DerivedKey& key : derived_) {
    if (!key.subtree.empty()) found.push_back(&key);
  }
  return found;
}

}  // namespace tracefs::anonymize
