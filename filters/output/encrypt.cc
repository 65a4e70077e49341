#include "filters/output/encrypt.h"

#include <cstring>

#include "filters/output/payload_filter.h"
#include "tracefs/crypto/key_tree.h"

namespace tracefs {
namespace {

constexpr std::string_view kLabel = "tracefs-encrypt1";

enum class KeyPlace : uint8_t { kShared = 1, kRecipients = 2 };
using Salt = std::array<std::byte, 16>;

struct EncryptHead {
  CipherId cipher{};
  KeyPlace place{};
  uint16_t wrapped_bytes = 0;
  KeyId key_id{};       // of the shared secret; zeros with recipients
  Salt salt{};          // random, of this filter in this trace
  uint64_t number = 0;  // of the block key
};

void EncodeHead(const EncryptHead& head, std::byte* out) {
  out[0] = static_cast<std::byte>(head.cipher);
  out[1] = static_cast<std::byte>(head.place);
  StoreLe<uint16_t>(out + 2, head.wrapped_bytes);
  StoreLe<uint32_t>(out + 4, 0);
  std::memcpy(out + 8, head.key_id.data(), 8);
  std::memcpy(out + 16, head.salt.data(), head.salt.size());
  StoreLe<uint64_t>(out + 32, head.number);
}

bool DecodeHead(ByteSpan bytes, EncryptHead* head) {
  if (bytes.size() < kEncryptHeadBytes) return false;
  const std::byte* p = bytes.data();
  head->cipher = static_cast<CipherId>(p[0]);
  head->place = static_cast<KeyPlace>(p[1]);
  head->wrapped_bytes = LoadLe<uint16_t>(p + 2);
  std::memcpy(head->key_id.data(), p + 8, 8);
  std::memcpy(head->salt.data(), p + 16, head->salt.size());
  head->number = LoadLe<uint64_t>(p + 32);
  return FindCipher(head->cipher) != nullptr &&
         (head->place == KeyPlace::kShared ||
          head->place == KeyPlace::kRecipients) &&
         bytes.size() - kEncryptHeadBytes >= head->wrapped_bytes;
}

// The root of the block keys of one filter in one trace.
SecretKey RootKey(KeySpan key, const format::Serial& serial, const Salt& salt) {
  std::array<std::byte, sizeof(format::Serial) + sizeof(Salt)> both;
  std::memcpy(both.data(), serial.data(), serial.size());
  std::memcpy(both.data() + serial.size(), salt.data(), salt.size());
  SecretKey root;
  Hkdf(key, both, "tracefs-encrypt-root", root.get());
  return root;
}

// Key and initialisation vector of one block.
class BlockKey {
 public:
  BlockKey(const CipherRow& row, KeySpan leaf)
      : key_bytes_(row.key_bytes), iv_bytes_(row.iv_bytes) {
    Hkdf(leaf, {}, "tracefs-encrypt " + std::string(row.name),
         std::span(bytes_).first(key_bytes_ + iv_bytes_));
  }
  BlockKey(const BlockKey&) = delete;
  BlockKey& operator=(const BlockKey&) = delete;
  ~BlockKey() { Wipe(bytes_); }

  ByteSpan key() const { return ByteSpan(bytes_).first(key_bytes_); }
  ByteSpan iv() const {
    return ByteSpan(bytes_).subspan(key_bytes_, iv_bytes_);
  }

 private:
  std::array<std::byte, Cipher::kMaxKeyBytes + Cipher::kMaxIvBytes> bytes_;
  const size_t key_bytes_;
  const size_t iv_bytes_;
};

// What is authenticated besides the contents.
std::vector<std::byte> Associated(const BlockId& id, ByteSpan head) {
  const std::array<std::byte, 40> prefix =
      BlockPrefix(kLabel, id.serial, id.sequence);
  std::vector<std::byte> all(prefix.size() + head.size());
  std::memcpy(all.data(), prefix.data(), prefix.size());
  std::memcpy(all.data() + prefix.size(), head.data(), head.size());
  return all;
}

class EncryptFilter final : public PayloadFilter {
 public:
  EncryptFilter(EncryptOptions options, std::unique_ptr<OutputFilter> next)
      : PayloadFilter(options.block_bytes, std::move(next)),
        options_(std::move(options)) {}

 private:
  Status Begin(const TraceIdentity& identity) override {
    serial_ = identity.serial;
    Result<Cipher> cipher = Cipher::Create(options_.cipher);
    if (!cipher.ok()) return cipher.status();
    cipher_.emplace(*std::move(cipher));
    head_.cipher = options_.cipher;
    if (Status s = RandomBytes(head_.salt); !s.ok()) return s;
    SecretKey data_key;
    if (options_.key) {
      head_.place = KeyPlace::kShared;
      head_.key_id = IdOfKey(std::as_const(*options_.key).get());
      data_key = std::move(*options_.key);
      options_.key.reset();
    } else {
      head_.place = KeyPlace::kRecipients;
      if (Status s = RandomBytes(data_key.get()); !s.ok()) return s;
      Result<std::string> wrapped =
          AgeWrapKey(options_.recipients, data_key.get());
      if (!wrapped.ok()) return wrapped.status();
      wrapped_ = *std::move(wrapped);
      head_.wrapped_bytes = static_cast<uint16_t>(wrapped_.size());
    }
    keys_.emplace(RootKey(data_key.get(), serial_, head_.salt).get());
    return Status::Ok();
  }

  Result<ByteSpan> Encode(ByteSpan block, const BlockInfo& info) override {
    const CipherRow& row = cipher_->row();
    const size_t head_bytes = kEncryptHeadBytes + wrapped_.size();
    const std::span<std::byte> payload =
        memory_.Get(head_bytes + block.size() + row.pad_bytes + row.tag_bytes);
    // Each attempt has a number, and so a key, of its own: what a stage behind
    // refuses may have left the machine all the same.
    head_.number = keys_->first();
    const std::optional<KeySpan> leaf = keys_->KeyOf(head_.number);
    if (!leaf) return Status::Invalid("no block keys are left");
    const BlockKey key(row, *leaf);
    keys_->ForgetBelow(head_.number + 1);
    EncodeHead(head_, payload.data());
    std::memcpy(payload.data() + kEncryptHeadBytes, wrapped_.data(),
                wrapped_.size());
    const std::vector<std::byte> associated =
        Associated({.serial = serial_, .sequence = info.sequence},
                   payload.first(head_bytes));
    const Result<size_t> size = cipher_->Seal(
        key.key(), key.iv(), associated, block, payload.subspan(head_bytes));
    if (!size.ok()) return size.status();
    return ByteSpan(payload.first(head_bytes + *size));
  }

  void End() override {
    keys_.reset();
    cipher_.reset();
  }

  EncryptOptions options_;
  std::optional<Cipher> cipher_;
  std::optional<KeyTreeWriter> keys_;
  format::Serial serial_{};
  EncryptHead head_;
  std::string wrapped_;
  Scratch memory_;
};

class EncryptDecoder final : public StageDecoder {
 public:
  EncryptDecoder(std::string_view cipher, const KeyRing* keys)
      : cipher_name_(cipher), keys_(keys) {}

  Status Decode(const BlockId& id, ByteSpan payload, DecodeMemory& memory,
                BlockNotes* notes, ByteSpan* out) override {
    EncryptHead head;
    if (!DecodeHead(payload, &head)) {
      return Status::Corrupt(
          "the head of the encryption is not one: changed, or of a newer "
          "Tracefs");
    }
    const CipherRow& row = *FindCipher(head.cipher);
    if (!cipher_name_.empty() && cipher_name_ != row.name) {
      return Status::Corrupt(
          "the block is encrypted with " + std::string(row.name) +
          " where the preamble announces another cipher: one of them was "
          "changed");
    }
    if (!cipher_ || cipher_->row().id != head.cipher) {
      Result<Cipher> made = Cipher::Create(head.cipher);
      if (!made.ok()) return made.status();
      cipher_.emplace(*std::move(made));
    }
    const size_t head_bytes = kEncryptHeadBytes + head.wrapped_bytes;
    if (Status s = FindBlockKeys(id, head, payload.first(head_bytes));
        !s.ok()) {
      notes->cipher_key_missing = s.code() == StatusCode::kInvalid;
      return s;
    }
    const BlockKey key(row, block_keys_->KeyOf(head.number));
    const ByteSpan body = payload.subspan(head_bytes);
    const std::span<std::byte> plain = memory.Get(body.size());
    const Result<size_t> size =
        cipher_->Open(key.key(), key.iv(),
                      Associated(id, payload.first(head_bytes)), body, plain);
    if (!size.ok()) return size.status();
    if (row.tag_bytes != 0 && head.place == KeyPlace::kShared) {
      notes->authentic_cipher = true;
    }
    if (head.place != KeyPlace::kShared) notes->opened_by_identity = true;
    *out = plain.first(*size);
    return Status::Ok();
  }

 private:
  // Makes block_keys_ those of the trace and filter that `head_bytes` name.
  Status FindBlockKeys(const BlockId& id, const EncryptHead& head,
                       ByteSpan head_bytes) {
    std::string name(AsText(head_bytes));
    name.resize(name.size() - 8 - head.wrapped_bytes);  // without the number
    name += AsText(head_bytes.last(head.wrapped_bytes));
    name += AsText(id.serial);
    if (block_keys_ && name == block_keys_of_) return Status::Ok();
    block_keys_.reset();
    if (head.place == KeyPlace::kShared) {
      const SecretKey* key = keys_->FindSecret(head.key_id);
      if (key == nullptr) {
        return Status::Invalid(
            "encrypted with the key " + KeyIdText(head.key_id) +
            ", which is not among those given; name the "
            "file that holds it with --key (of tracefs-anon: "
            "--trace-key)");
      }
      block_keys_.emplace(RootKey(key->get(), id.serial, head.salt).get());
    } else {
      const Result<SecretKey> key = AgeUnwrapKey(
          head_bytes.last(head.wrapped_bytes), keys_->identities());
      if (!key.ok()) return key.status();
      block_keys_.emplace(RootKey(key->get(), id.serial, head.salt).get());
    }
    block_keys_of_ = std::move(name);
    return Status::Ok();
  }

  const std::string cipher_name_;
  const KeyRing* const keys_;
  std::optional<Cipher> cipher_;
  std::optional<KeyTreeReader> block_keys_;
  std::string block_keys_of_;
};

}  // namespace

std::unique_ptr<OutputFilter> MakeEncrypt(EncryptOptions options,
                                          std::unique_ptr<OutputFilter> next) {
  return std::make_unique<EncryptFilter>(std::move(options), std::move(next));
}

std::unique_ptr<StageDecoder> MakeEncryptDecoder(std::string_view cipher,
                                                 const KeyRing* keys) {
  return std::make_unique<EncryptDecoder>(cipher, keys);
}

}  // namespace tracefs
