#include "filters/output/key_ring.h"

#include <cstring>

namespace tracefs {
namespace {

template <typename Key>
const Key* Find(const std::vector<std::pair<KeyId, Key>>& keys,
                const KeyId& id) {
  for (const auto& [id_of, key] : keys) {
    if (id_of == id) return &key;
  }
  return nullptr;
}

}  // namespace

Status KeyRing::Add(const KeySource& source) {
  Result<std::vector<KeyEntry>> entries = ReadKeys(source);
  if (!entries.ok()) return entries.status();
  for (KeyEntry& entry : *entries) {
    if (Status s = Add(std::move(entry)); !s.ok()) return s;
  }
  return Status::Ok();
}

Status KeyRing::Add(KeyEntry entry) {
  const KeyId id = IdOfKey(std::as_const(entry.key).get());
  switch (entry.kind) {
    case KeyKind::kSecret:
      secrets_.emplace_back(id, std::move(entry.key));
      break;
    case KeyKind::kSealVerify:
      verify_.emplace_back(id, std::move(entry.key));
      break;
    case KeyKind::kSign: {
      const Result<Signer> signer = Signer::Create(entry.key.get());
      if (!signer.ok()) return signer.status();
      signers_.emplace_back(IdOfKey(signer->public_key()),
                            signer->public_key());
      break;
    }
    case KeyKind::kSignPublic: {
      PublicKey key;
      std::memcpy(key.data(), entry.key.get().data(), key.size());
      signers_.emplace_back(id, key);
      break;
    }
    case KeyKind::kAgeIdentity:
      identities_.push_back(std::move(entry.key));
      break;
  }
  return Status::Ok();
}

const SecretKey* KeyRing::FindSecret(const KeyId& id) const {
  return Find(secrets_, id);
}

const SecretKey* KeyRing::FindVerifySecret(const KeyId& id) const {
  return Find(verify_, id);
}

const PublicKey* KeyRing::FindSigner(const KeyId& id) const {
  return Find(signers_, id);
}

}  // namespace tracefs
