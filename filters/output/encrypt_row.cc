#include "filters/output/encrypt.h"
#include "filters/output/rows.h"

namespace tracefs {
namespace {

constexpr std::string_view kCipherNames[] = {"aes-256-gcm", "chacha20-poly1305",
                                             "aes-128-ctr", "bf-cbc"};
constexpr OptionRow kOptions[] = {
    {.name = "cipher", .type = ValueType::kChoice, .words = kCipherNames},
    {.name = "key", .type = ValueType::kText},
    {.name = "recipient", .type = ValueType::kText},
    kBlockOption,
};

std::string_view CipherOf(const ConfigEntry& entry) {
  return entry.Text("cipher", kCipherNames[0]);
}

// "age1…" or several of them with commas between; none where none are given.
Result<std::vector<AgeRecipient>> RecipientsOf(const ConfigEntry& entry) {
  std::vector<AgeRecipient> recipients;
  if (!entry.Has("recipient")) return recipients;
  std::string_view text = entry.Text("recipient");
  for (;;) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    AgeRecipient recipient;
    if (!ParseAgeRecipient(word, &recipient)) {
      // An identity in this place is a secret: do not repeat it.
      const bool is_public = word.substr(0, 4) == "age1";
      return Status::Invalid(
          "encrypt: recipient " + (is_public ? Quoted(word) + ' ' : "") +
          "is no age recipient (age1… with 62 characters, as age-keygen -y "
          "prints it)");
    }
    recipients.push_back(recipient);
    if (recipients.size() > kMaxAgeRecipients) {
      return Status::Invalid("encrypt: more than " +
                             std::to_string(kMaxAgeRecipients) + " recipients");
    }
    if (end == text.size()) return recipients;
    text.remove_prefix(end + 1);
  }
}

Status Check(const ConfigEntry& entry) {
  if (entry.Has("key") == entry.Has("recipient")) {
    return Status::Invalid(
        "encrypt: needs either key = file:PATH, made with 'tracefs-keygen "
        "secret PATH', or recipient = age1…, made with 'tracefs-keygen age "
        "PATH' or age-keygen");
  }
  if (Status s = CheckKey(entry, "key"); !s.ok()) return s;
  return RecipientsOf(entry).status();
}

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterInputs inputs) {
  EncryptOptions options;
  options.cipher = FindCipher(CipherOf(entry))->id;
  options.recipients = *RecipientsOf(entry);
  if (entry.Has("key")) {
    Result<SecretKey> secret =
        ReadKey(TakeKeySource(entry, "key", &inputs.given), KeyKind::kSecret);
    if (!secret.ok()) return secret.status().Prefixed("encrypt");
    options.key = *std::move(secret);
  }
  // Better now than after the mount.
  if (const Result<Cipher> cipher = Cipher::Create(options.cipher);
      !cipher.ok()) {
    return cipher.status().Prefixed("encrypt");
  }
  options.block_bytes = entry.Number("block");
  return MakeEncrypt(std::move(options), std::move(next));
}

std::vector<Wish> Wishes(const ConfigEntry& entry) {
  std::vector<Wish> wishes;
  WishKey(entry, "key", &wishes);
  return wishes;
}

std::string Parameters(const ConfigEntry& entry) {
  return "cipher=" + std::string(CipherOf(entry));
}

Result<std::unique_ptr<StageDecoder>> MakeDecoder(const ChainStage& stage,
                                                  const KeyRing* keys) {
  return MakeEncryptDecoder(stage.Get("cipher"), keys);
}

}  // namespace

OutputFilterRow EncryptRow() {
  return {.entry = {.name = "encrypt",
                    .role = EntryRole::kFilter,
                    .options = kOptions},
          .help =
              "hides contents: from all without a key, or but for age "
              "recipients",
          .make = &Make,
          .parameters = &Parameters,
          .make_decoder = &MakeDecoder,
          .needs_key = [](const ChainStage&) { return true; },
          .wishes = &Wishes,
          .check = &Check};
}

}  // namespace tracefs
