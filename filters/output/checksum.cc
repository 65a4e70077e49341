#include "filters/output/checksum.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "filters/output/payload_filter.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

// Makes the tags of one algorithm.
class Tagger {
 public:
  static Result<Tagger> Create(ChecksumAlgorithm algorithm) {
    Tagger tagger;
    tagger.bytes_ = ChecksumTagBytes(algorithm);
    if (algorithm == ChecksumAlgorithm::kCrc32c) return tagger;
    Result<Mac> mac = Mac::Create(
        algorithm == ChecksumAlgorithm::kHmacMd5 ? "MD5" : "SHA256");
    if (!mac.ok()) return mac.status();
    tagger.mac_ = *std::move(mac);
    return tagger;
  }

  size_t bytes() const { return bytes_; }

  // `key` is not used by crc32c.
  void Tag(ByteSpan key, ByteSpan prefix, ByteSpan payload, std::byte* out) {
    if (!mac_) {
      StoreLe<uint32_t>(out, Crc32c(payload, Crc32c(prefix)));
      return;
    }
    mac_->Start(key);
    mac_->Update(prefix);
    mac_->Update(payload);
    mac_->Finish(out);
  }
  // The key that Tag had last.
  void ForgetKey() {
    if (mac_) mac_->ForgetKey();
  }

 private:
  std::optional<Mac> mac_;
  size_t bytes_ = 0;
};

// What a signature signs: `payload` reaches up to and with the tag.
Digest SignedDigest(const format::Serial& serial, uint64_t sequence,
                    ByteSpan payload) {
  Sha256 hash;
  hash.Update(BlockPrefix(kSignatureLabel, serial, sequence));
  hash.Update(payload);
  return hash.Finish();
}

class ChecksumFilter final : public PayloadFilter {
 public:
  ChecksumFilter(ChecksumOptions options, std::unique_ptr<OutputFilter> next)
      : PayloadFilter(options.block_bytes, std::move(next)),
        options_(std::move(options)) {}

 private:
  Status Begin(const TraceIdentity& identity) override {
    Result<Tagger> tagger = Tagger::Create(options_.algorithm);
    if (!tagger.ok()) return tagger.status();
    tagger_ = *std::move(tagger);
    serial_ = identity.serial;
    survives_ = identity.survives;
    head_.algorithm = options_.algorithm;
    head_.heartbeat_ms = options_.heartbeat_ms;
    head_.link = LinkOf(AsBytes(identity.preamble));
    if (options_.seal && identity.resumes) {
      // The epoch of the process before: another would not prove that these
      // blocks were written then.
      if (Status s = LoadKeys(); !s.ok()) return s;
    } else if (options_.seal) {
      const Result<SealState::Epoch> epoch = options_.seal->Take();
      if (!epoch.ok()) return epoch.status();
      head_.forward = true;
      head_.epoch = epoch->number;
      head_.key_id = epoch->verify_id;
      block_keys_.emplace(SealRoot(epoch->key.get(), serial_).get());
    } else if (options_.key) {
      head_.key_id = IdOfKey(std::as_const(*options_.key).get());
    }
    if (options_.signer) {
      head_.has_signature = true;
      head_.sign_id = IdOfKey(options_.signer->public_key());
    }
    hides_times_ = identity.hides_times;
    began_ns_ = identity.resumes ? survives_->sealed_from_ns : MonotonicNs();
    if (survives_ != nullptr) survives_->sealed_from_ns = began_ns_;
    if (identity.resumes) {
      head_.previous = survives_->previous;
      head_.link = survives_->hash;
      written_ = survives_->tagged;
      // It may have died before it had put this.
      if (AnchorDue(written_ - 1)) Anchor(head_.previous, /*last=*/false);
    }
    return Status::Ok();
  }

  Status LoadKeys() {
    std::optional<KeyTreeWriter> keys = KeyTreeWriter::Load(
        {survives_->keys.data(),
         std::min<size_t>(survives_->key_bytes, survives_->keys.size())});
    if (!keys) {
      return Status::SystemSaid(EUCLEAN,
                                "what the daemon before has left about the "
                                "keys of a seal is wrong");
    }
    block_keys_ = *std::move(keys);
    head_.forward = true;
    head_.epoch = survives_->epoch;
    std::copy_n(survives_->key_id.begin(), head_.key_id.size(),
                head_.key_id.begin());
    return Status::Ok();
  }

  // For a later process.
  void NoteState() {
    survives_->previous = head_.previous;
    survives_->hash = head_.link;
    survives_->tagged = written_;
    survives_->epoch = head_.epoch;
    std::ranges::copy(head_.key_id, survives_->key_id.begin());
    if (!block_keys_) return;
    std::string text;
    text.reserve(KeyTreeWriter::kMaxSavedBytes);
    block_keys_->Save(&text);
    std::ranges::copy(text, survives_->keys.begin());
    survives_->key_bytes = text.size();
    ::explicit_bzero(text.data(), text.size());
  }

  bool AnchorDue(uint64_t block) const {
    return options_.anchor && block % options_.anchor_every == 0;
  }
  void Anchor(uint64_t block, bool last) {
    options_.anchor->Put(
        {.serial = serial_, .block = block, .last = last, .hash = head_.link});
  }

  Result<ByteSpan> Encode(ByteSpan block, const BlockInfo& info) override {
    const size_t tagged = kChecksumHeadBytes + block.size();
    const std::span<std::byte> payload = memory_.Get(
        tagged + tagger_->bytes() + (options_.signer ? kSignatureBytes : 0));
    head_.last = info.last;
    const ClockPair now = ClockPair::Now();
    head_.monotonic_ns = now.monotonic_ns - (hides_times_ ? began_ns_ : 0);
    head_.real_ns = hides_times_ ? 0 : now.real_ns;
    EncodeChecksumHead(head_, payload.data());
    if (!block.empty()) {
      std::memcpy(payload.data() + kChecksumHeadBytes, block.data(),
                  block.size());
    }

    ByteSpan key;
    if (block_keys_) {
      const std::optional<KeySpan> of_block = block_keys_->KeyOf(info.sequence);
      if (!of_block) {
        return Status::Invalid("the key of block " +
                               std::to_string(info.sequence) +
                               " is erased already");
      }
      key = *of_block;
    } else if (options_.key) {
      key = options_.key->get();
    }
    tagger_->Tag(key, BlockPrefix(kChecksumLabel, serial_, info.sequence),
                 payload.first(tagged), payload.data() + tagged);
    // Nothing that could seal this block once more stays.
    if (block_keys_) tagger_->ForgetKey();
    size_t end = tagged + tagger_->bytes();
    if (options_.signer) {
      const Result<Signature> signature = options_.signer->Sign(
          SignedDigest(serial_, info.sequence, payload.first(end)));
      if (!signature.ok()) return signature.status();
      std::memcpy(payload.data() + end, signature->data(), kSignatureBytes);
      end += kSignatureBytes;
    }
    own_link_ = LinkOf(payload.subspan(tagged));
    return ByteSpan(payload);
  }

  void Accepted(const BlockInfo& info) override {
    head_.previous = info.sequence;
    head_.link = own_link_;
    if (block_keys_) block_keys_->ForgetBelow(info.sequence + 1);
    anchor_last_ = options_.anchor && info.last;
    anchor_due_ = AnchorDue(written_) || anchor_last_;
    ++written_;
    if (survives_ == nullptr) {
      OnNoted();
    } else {
      NoteState();
    }
  }

  // The block will not be made once more: another would have another hash.
  void OnNoted() override {
    if (std::exchange(anchor_due_, false)) Anchor(head_.previous, anchor_last_);
  }

  void End() override {
    options_.key.reset();
    options_.signer.reset();
    block_keys_.reset();
    tagger_.reset();
  }

  ChecksumOptions options_;
  std::optional<Tagger> tagger_;
  std::optional<KeyTreeWriter> block_keys_;
  format::Serial serial_{};
  ChecksumHead head_;  // of the next block
  Digest own_link_{};  // of the block made last
  uint64_t written_ = 0;
  bool hides_times_ = false;
  uint64_t began_ns_ = 0;  // the trace
  bool anchor_due_ = false;
  bool anchor_last_ = false;
  survive::OutputState* survives_ = nullptr;  // may be null
  Scratch memory_;
};

class ChecksumDecoder final : public StageDecoder {
 public:
  ChecksumDecoder(std::string_view algorithm, const KeyRing* keys)
      : algorithm_(algorithm), keys_(keys) {}

  Status Decode(const BlockId& id, ByteSpan payload, DecodeMemory&,
                BlockNotes* notes, ByteSpan* out) override {
    ChecksumNote note;
    const ChecksumHead& head = note.head;
    if (!DecodeChecksumHead(payload, &note.head)) {
      return Status::Corrupt(
          "the head of the checksum is not one: changed, or of a newer "
          "Tracefs");
    }
    if (!algorithm_.empty() && algorithm_ != ChecksumName(head.algorithm)) {
      return Status::Corrupt(
          "the block has a checksum of " +
          std::string(ChecksumName(head.algorithm)) +
          " where the preamble announces another: one of them was changed");
    }
    Tagger* tagger = TaggerOf(head.algorithm);
    if (tagger == nullptr) {
      return Status::System(ENOTSUP, std::string(ChecksumName(head.algorithm)));
    }
    const size_t behind =
        tagger->bytes() + (head.has_signature ? kSignatureBytes : 0);
    if (payload.size() < kChecksumHeadBytes + behind) {
      return Status::Corrupt("too short for its checksum");
    }
    const size_t tagged = payload.size() - behind;
    const ByteSpan tag = payload.subspan(tagged, tagger->bytes());

    ByteSpan key;
    bool can_check = true;
    if (head.algorithm != ChecksumAlgorithm::kCrc32c) {
      key = FindKey(head, id);
      can_check = !key.empty();
    }
    if (can_check) {
      std::array<std::byte, Mac::kMaxBytes> expected;
      tagger->Tag(key, BlockPrefix(kChecksumLabel, id.serial, id.sequence),
                  payload.first(tagged), expected.data());
      if (!EqualSecrets(ByteSpan(expected).first(tag.size()), tag)) {
        return Status::Corrupt(
            "the checksum is wrong: the block was changed, or moved here from "
            "elsewhere");
      }
      note.tag_checked = true;
      note.keyed = !key.empty();
    }
    if (head.has_signature) {
      if (const PublicKey* signer = keys_->FindSigner(head.sign_id)) {
        if (!VerifySignature(
                *signer,
                SignedDigest(id.serial, id.sequence,
                             payload.first(tagged + tagger->bytes())),
                payload.subspan(tagged + tagger->bytes()))) {
          return Status::Corrupt(
              "the signature is wrong: the block was changed");
        }
        note.signature_checked = true;
      }
    }
    note.own_link = LinkOf(payload.subspan(tagged));
    notes->checksums.push_back(note);
    *out = payload.subspan(kChecksumHeadBytes, tagged - kChecksumHeadBytes);
    return Status::Ok();
  }

 private:
  Tagger* TaggerOf(ChecksumAlgorithm algorithm) {
    std::optional<Tagger>& tagger = taggers_[static_cast<size_t>(algorithm)];
    if (!tagger) {
      Result<Tagger> made = Tagger::Create(algorithm);
      if (!made.ok()) return nullptr;
      tagger = *std::move(made);
    }
    return &*tagger;
  }

  // Empty if we do not have it.
  ByteSpan FindKey(const ChecksumHead& head, const BlockId& id) {
    if (!head.forward) {
      const SecretKey* key = keys_->FindSecret(head.key_id);
      return key == nullptr ? ByteSpan() : key->get();
    }
    if (!block_keys_ || head.key_id != block_keys_of_ || head.epoch != epoch_ ||
        id.serial != serial_) {
      const SecretKey* verify = keys_->FindVerifySecret(head.key_id);
      if (verify == nullptr) return {};
      KeyTreeReader epochs(verify->get());
      block_keys_.emplace(SealRoot(epochs.KeyOf(head.epoch), id.serial).get());
      block_keys_of_ = head.key_id;
      epoch_ = head.epoch;
      serial_ = id.serial;
    }
    return block_keys_->KeyOf(id.sequence);
  }

  const std::string algorithm_;
  const KeyRing* const keys_;
  std::array<std::optional<Tagger>, 4> taggers_;
  // The keys of the trace seen last.
  std::optional<KeyTreeReader> block_keys_;
  KeyId block_keys_of_{};
  uint64_t epoch_ = 0;
  format::Serial serial_{};
};

}  // namespace

std::unique_ptr<OutputFilter> MakeChecksum(ChecksumOptions options,
                                           std::unique_ptr<OutputFilter> next) {
  return std::make_unique<ChecksumFilter>(std::move(options), std::move(next));
}

std::unique_ptr<StageDecoder> MakeChecksumDecoder(std::string_view algorithm,
                                                  const KeyRing* keys) {
  return std::make_unique<ChecksumDecoder>(algorithm, keys);
}

}  // namespace tracefs
