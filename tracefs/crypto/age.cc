#include "tracefs/crypto/age.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "tracefs/crypto/bech32.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/openssl_bytes.h"

namespace tracefs {
namespace {

constexpr std::string_view kVersionLine = "age-encryption.org/v1\n";
constexpr std::string_view kStanzaStart = "-> ";
constexpr std::string_view kX25519Start = "-> X25519 ";
constexpr std::string_view kMacStart = "---";
constexpr std::string_view kX25519Info = "age-encryption.org/v1/X25519";
constexpr size_t kFileKeyBytes = 16;
constexpr size_t kNonceBytes = 16;
constexpr size_t kTagBytes = 16;
constexpr size_t kMaxStanzas = 2 * kMaxAgeRecipients;
constexpr std::array<std::byte, 12> kNoNonce{};
// The nonce of a payload's first chunk if it is also its last.
constexpr std::array<std::byte, 12> kOnlyChunk = {
    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}};

using PKey = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using PKeyContext = std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)>;

PKey PrivateKey(KeySpan key) {
  return {::EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr,
                                         OpenSslBytes(key), key.size()),
          &::EVP_PKEY_free};
}

// X25519 of a private and a public key. False for points that would make a
// secret anyone knows.
bool Agree(KeySpan private_key, ByteSpan public_key, SecretKey* shared) {
  const PKey mine = PrivateKey(private_key);
  const PKey theirs(::EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr,
                                                  OpenSslBytes(public_key),
                                                  public_key.size()),
                    &::EVP_PKEY_free);
  if (mine == nullptr || theirs == nullptr) return false;
  const PKeyContext context(::EVP_PKEY_CTX_new(mine.get(), nullptr),
                            &::EVP_PKEY_CTX_free);
  size_t size = kKeyBytes;
  const bool agreed =
      context != nullptr && ::EVP_PKEY_derive_init(context.get()) == 1 &&
      ::EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1 &&
      ::EVP_PKEY_derive(context.get(),
                        reinterpret_cast<unsigned char*>(shared->get().data()),
                        &size) == 1 &&
      size == kKeyBytes;
  if (!agreed) (void)CryptoError("");
  return agreed;
}

// The key that a stanza wraps the file key with.
bool WrapKey(KeySpan private_key, ByteSpan other, ByteSpan ephemeral,
             ByteSpan recipient, SecretKey* key) {
  SecretKey shared;
  if (!Agree(private_key, other, &shared)) return false;
  std::array<std::byte, 64> salt;
  std::memcpy(salt.data(), ephemeral.data(), 32);
  std::memcpy(salt.data() + 32, recipient.data(), 32);
  Hkdf(shared.get(), salt, kX25519Info, key->get());
  return true;
}

std::string Base64(ByteSpan bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int n =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                        OpenSslBytes(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(n));
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

// Canonical base64 without padding, of exactly out.size() bytes.
bool FromBase64(std::string_view text, std::span<std::byte> out) {
  std::string padded(text);
  while (padded.size() % 4 != 0) padded += '=';
  if (padded.size() != 4 * ((out.size() + 2) / 3)) return false;
  std::string bytes(padded.size(), '\0');
  if (::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(padded.data()),
                        static_cast<int>(padded.size())) < 0) {
    return false;
  }
  std::memcpy(out.data(), bytes.data(), out.size());
  return Base64(out) == text;
}

// The tag at the end of a header, up to and with its "---".
void HeaderMac(ByteSpan file_key, std::string_view header,
               std::span<std::byte, 32> out) {
  SecretKey key;
  Hkdf(file_key, {}, "header", key.get());
  HmacSha256(key.get(), AsBytes(header), out);
}

// Takes a line off `text`, without its end; nothing if there is no end.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

struct Stanza {
  std::array<std::byte, 32> ephemeral;
  std::array<std::byte, kFileKeyBytes + kTagBytes> body;
};

// A parsed file. Stanzas of other types are left out.
struct Parsed {
  std::vector<Stanza> stanzas;
  std::string_view header;  // what the tag covers
  std::array<std::byte, 32> tag;
  std::string_view payload;
};

bool Parse(std::string_view file, Parsed* parsed) {
  const std::string_view whole = file;
  if (file.substr(0, kVersionLine.size()) != kVersionLine) return false;
  file.remove_prefix(kVersionLine.size());
  for (size_t count = 0;; ++count) {
    const std::optional<std::string_view> line = TakeLine(file);
    if (!line || count > kMaxStanzas) return false;
    if (line->substr(0, kMacStart.size()) == kMacStart) {
      const size_t start = static_cast<size_t>(line->data() - whole.data());
      parsed->header = whole.substr(0, start + kMacStart.size());
      parsed->payload = file;
      return line->size() > kMacStart.size() &&
             (*line)[kMacStart.size()] == ' ' &&
             FromBase64(line->substr(kMacStart.size() + 1), parsed->tag);
    }
    if (line->substr(0, kStanzaStart.size()) != kStanzaStart) return false;
    Stanza stanza;
    const bool ours = line->substr(0, kX25519Start.size()) == kX25519Start;
    if (ours &&
        !FromBase64(line->substr(kX25519Start.size()), stanza.ephemeral)) {
      return false;
    }
    // The body: full lines of 64 digits, then one that is shorter.
    std::string_view body;
    size_t lines = 0;
    do {
      const std::optional<std::string_view> part = TakeLine(file);
      if (!part || part->size() > 64) return false;
      body = *part;
      ++lines;
    } while (body.size() == 64);
    if (!ours) continue;
    if (lines != 1 || !FromBase64(body, stanza.body)) return false;
    parsed->stanzas.push_back(stanza);
  }
}

}  // namespace

std::string AgeIdentityText(KeySpan identity) {
  std::string text = Bech32Encode("age-secret-key-", identity);
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

bool ParseAgeIdentity(std::string_view text, SecretKey* identity) {
  return Bech32Decode(text, "age-secret-key-", identity->get());
}

std::string AgeRecipientText(const AgeRecipient& recipient) {
  return Bech32Encode("age", recipient);
}

bool ParseAgeRecipient(std::string_view text, AgeRecipient* recipient) {
  return Bech32Decode(text, "age", *recipient);
}

Result<AgeRecipient> RecipientOfIdentity(KeySpan identity) {
  const PKey key = PrivateKey(identity);
  AgeRecipient recipient;
  size_t size = recipient.size();
  if (key == nullptr ||
      ::EVP_PKEY_get_raw_public_key(
          key.get(), reinterpret_cast<unsigned char*>(recipient.data()),
          &size) != 1) {
    return CryptoError("X25519");
  }
  return recipient;
}

Result<std::string> AgeWrapKey(std::span<const AgeRecipient> recipients,
                               KeySpan key) {
  Result<Cipher> cipher = Cipher::Create(CipherId::kChaCha20Poly1305);
  if (!cipher.ok()) return cipher.status();
  SecretMemory file_key(kFileKeyBytes);
  if (Status s = RandomBytes(file_key.bytes()); !s.ok()) return s;
  std::string file(kVersionLine);
  for (const AgeRecipient& recipient : recipients) {
    SecretKey ephemeral;
    if (Status s = RandomBytes(ephemeral.get()); !s.ok()) return s;
    const Result<AgeRecipient> share = RecipientOfIdentity(ephemeral.get());
    if (!share.ok()) return share.status();
    SecretKey wrap;
    if (!WrapKey(ephemeral.get(), recipient, *share, recipient, &wrap)) {
      return Status::Invalid("recipient " + AgeRecipientText(recipient) +
                             " is not a usable X25519 key");
    }
    std::array<std::byte, kFileKeyBytes + kTagBytes> body;
    const Result<size_t> sealed =
        cipher->Seal(wrap.get(), kNoNonce, {}, file_key.bytes(), body);
    if (!sealed.ok()) return sealed.status();
    file +=
        std::string(kX25519Start) + Base64(*share) + '\n' + Base64(body) + '\n';
  }
  file += kMacStart;
  std::array<std::byte, 32> tag;
  HeaderMac(file_key.bytes(), file, tag);
  file += ' ' + Base64(tag) + '\n';

  std::array<std::byte, kNonceBytes> nonce;
  if (Status s = RandomBytes(nonce); !s.ok()) return s;
  SecretKey payload_key;
  Hkdf(file_key.bytes(), nonce, "payload", payload_key.get());
  std::array<std::byte, kKeyBytes + kTagBytes> payload;
  const Result<size_t> sealed =
      cipher->Seal(payload_key.get(), kOnlyChunk, {}, key, payload);
  if (!sealed.ok()) return sealed.status();
  file += AsText(nonce);
  file += AsText(payload);
  return file;
}

Result<SecretKey> AgeUnwrapKey(ByteSpan file,
                               std::span<const SecretKey> identities) {
  const Status damaged =
      Status::Corrupt("the wrapped key is damaged: it is no age file");
  Parsed parsed;
  if (!Parse(AsText(file), &parsed)) return damaged;
  if (parsed.payload.size() != kNonceBytes + kKeyBytes + kTagBytes) {
    return damaged;
  }
  Result<Cipher> cipher = Cipher::Create(CipherId::kChaCha20Poly1305);
  if (!cipher.ok()) return cipher.status();
  for (const SecretKey& identity : identities) {
    const Result<AgeRecipient> recipient = RecipientOfIdentity(identity.get());
    if (!recipient.ok()) return recipient.status();
    for (const Stanza& stanza : parsed.stanzas) {
      SecretKey wrap;
      if (!WrapKey(identity.get(), stanza.ephemeral, stanza.ephemeral,
                   *recipient, &wrap)) {
        continue;
      }
      SecretMemory file_key(kFileKeyBytes + kTagBytes);
      const Result<size_t> opened =
          cipher->Open(wrap.get(), kNoNonce, {}, stanza.body, file_key.bytes());
      if (!opened.ok()) continue;  // of another recipient
      const ByteSpan key = file_key.bytes().first(kFileKeyBytes);
      std::array<std::byte, 32> tag;
      HeaderMac(key, parsed.header, tag);
      if (!EqualSecrets(tag, parsed.tag)) return damaged;
      const ByteSpan payload = AsBytes(parsed.payload);
      SecretKey payload_key;
      Hkdf(key, payload.first(kNonceBytes), "payload", payload_key.get());
      SecretMemory out(kKeyBytes + kTagBytes);
      const Result<size_t> unwrapped =
          cipher->Open(payload_key.get(), kOnlyChunk, {},
                       payload.subspan(kNonceBytes), out.bytes());
      if (!unwrapped.ok()) return damaged;
      return SecretKey(KeySpan(out.bytes().data(), kKeyBytes));
    }
  }
  return Status::Invalid(
      identities.empty()
          ? "the trace is encrypted for age recipients; give the file with an "
            "identity (AGE-SECRET-KEY-1…) of one of them"
          : "none of the identities given is one that the trace was encrypted "
            "for");
}

}  // namespace tracefs
