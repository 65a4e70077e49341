#include <algorithm>

#include "filters/output/checksum.h"
#include "filters/output/rows.h"
#include "tracefs/base/durable.h"
#include "tracefs/base/log_socket.h"

namespace tracefs {
namespace {

constexpr std::string_view kAlgorithms[] = {"hmac-sha256", "hmac-md5",
                                            "crc32c"};
constexpr std::string_view kSeals[] = {"forward"};
constexpr std::string_view kSignatures[] = {"ed25519"};
constexpr OptionRow kOptions[] = {
    {.name = "alg", .type = ValueType::kChoice, .words = kAlgorithms},
    {.name = "key", .type = ValueType::kText},
    {.name = "seal", .type = ValueType::kChoice, .words = kSeals},
    {.name = "sign", .type = ValueType::kChoice, .words = kSignatures},
    {.name = "sign_key", .type = ValueType::kText},
    {.name = "anchor", .type = ValueType::kText},
    {.name = "anchor_every",
     .type = ValueType::kCount,
     .min = 1,
     .max = 1'000'000},
    {.name = "heartbeat",
     .type = ValueType::kDuration,
     .min = uint64_t{1'000'000'000},
     .max = uint64_t{24 * 3600} * 1'000'000'000},
    kBlockOption,
};

constexpr std::string_view kFile = "file:";

std::string_view AlgorithmOf(const ConfigEntry& entry) {
  return entry.Text("alg", kAlgorithms[0]);
}

ChecksumAlgorithm AlgorithmNamed(std::string_view name) {
  for (const ChecksumAlgorithm known :
       {ChecksumAlgorithm::kCrc32c, ChecksumAlgorithm::kHmacMd5}) {
    if (name == ChecksumName(known)) return known;
  }
  return ChecksumAlgorithm::kHmacSha256;
}

bool IsCrc(const ConfigEntry& entry) {
  return AlgorithmNamed(AlgorithmOf(entry)) == ChecksumAlgorithm::kCrc32c;
}

Status CheckKeyAndSeal(const ConfigEntry& entry) {
  const bool seal = entry.Has("seal");
  const bool key = entry.Has("key");
  if (IsCrc(entry)) {
    if (!key && !seal) return Status::Ok();
    return Status::Invalid(
        "checksum: alg = crc32c has no key and cannot be sealed; use alg = "
        "hmac-sha256, or leave key and seal out");
  }
  if (!key) {
    return Status::Invalid(
        "checksum: alg = " + std::string(AlgorithmOf(entry)) +
        " needs a key: key = file:PATH, made with 'tracefs-keygen " +
        (seal ? "seal STATE VERIFY" : "secret PATH") +
        "'; alg = crc32c does without but only finds accidents");
  }
  if (Status s = CheckKey(entry, "key"); !s.ok()) return s;
  if (seal &&
      ParseKeySource(entry.Text("key"))->place != KeySource::Place::kFile) {
    return Status::Invalid(
        "checksum: seal = forward needs key = file:PATH: its key changes with "
        "every trace, and neither a variable nor the keyring can keep that");
  }
  return Status::Ok();
}

// The path of anchor = file:PATH; empty: it is none.
std::string AnchorFile(const ConfigEntry& entry) {
  const std::string_view where = entry.Text("anchor");
  return std::string(where.starts_with(kFile) ? where.substr(kFile.size())
                                              : std::string_view());
}

Status CheckAnchor(const ConfigEntry& entry) {
  if (!entry.Has("anchor")) {
    if (!entry.Has("anchor_every")) return Status::Ok();
    return Status::Invalid(
        "checksum: anchor_every without anchor = syslog or anchor = file:PATH");
  }
  if (IsCrc(entry) && !entry.Has("sign")) {
    return Status::Invalid(
        "checksum: an anchor of crc32c would fix nothing; use alg = "
        "hmac-sha256 or sign = ed25519");
  }
  const std::string_view where = entry.Text("anchor");
  if (where == "syslog" || !AnchorFile(entry).empty()) return Status::Ok();
  return Status::Invalid("checksum: anchor is syslog or file:PATH, not " +
                         Quoted(where));
}

Status Check(const ConfigEntry& entry) {
  if (Status s = CheckKeyAndSeal(entry); !s.ok()) return s;
  if (entry.Has("sign") != entry.Has("sign_key")) {
    return Status::Invalid(
        "checksum: sign = ed25519 and sign_key = file:PATH belong together; "
        "make the key with 'tracefs-keygen sign PRIVATE PUBLIC'");
  }
  if (Status s = CheckKey(entry, "sign_key"); !s.ok()) return s;
  return CheckAnchor(entry);
}

Status TakeKey(const ConfigEntry& entry, Given* given,
               ChecksumOptions* options) {
  if (!entry.Has("key")) return Status::Ok();
  if (entry.Has("seal")) {
    Result<SealState> state =
        SealState::Open(ParseKeySource(entry.Text("key"))->name, given->Take());
    if (!state.ok()) return state.status();
    options->seal = *std::move(state);
    return Status::Ok();
  }
  Result<SecretKey> secret =
      ReadKey(TakeKeySource(entry, "key", given), KeyKind::kSecret);
  if (!secret.ok()) return secret.status();
  options->key = *std::move(secret);
  return Status::Ok();
}

Status TakeSigner(const ConfigEntry& entry, Given* given,
                  ChecksumOptions* options) {
  if (!entry.Has("sign")) return Status::Ok();
  const Result<SecretKey> secret =
      ReadKey(TakeKeySource(entry, "sign_key", given), KeyKind::kSign);
  if (!secret.ok()) return secret.status();
  Result<Signer> signer = Signer::Create(secret->get());
  if (!signer.ok()) return signer.status();
  options->signer = *std::move(signer);
  return Status::Ok();
}

Status TakeAnchor(const ConfigEntry& entry, OutputFilterInputs* inputs,
                  ChecksumOptions* options) {
  if (!entry.Has("anchor")) return Status::Ok();
  options->anchor_every = entry.Number("anchor_every", options->anchor_every);
  const std::string path = AnchorFile(entry);
  if (!path.empty() && inputs->probe) return ProbeFileAnchors(path);
  // The socket that a probe has opened it closes again.
  Result<std::unique_ptr<AnchorSink>> sink =
      path.empty() ? MakeSyslogAnchors(inputs->given.Take())
                   : MakeFileAnchors(path, inputs->given.Take());
  if (!sink.ok()) {
    return path.empty() ? sink.status().Prefixed("anchor = syslog")
                        : sink.status();
  }
  options->anchor = *std::move(sink);
  return Status::Ok();
}

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterInputs inputs) {
  ChecksumOptions options;
  options.algorithm = AlgorithmNamed(AlgorithmOf(entry));
  Status status = TakeKey(entry, &inputs.given, &options);
  if (status.ok()) status = TakeSigner(entry, &inputs.given, &options);
  if (status.ok()) status = TakeAnchor(entry, &inputs, &options);
  if (!status.ok()) return status.Prefixed("checksum");
  options.block_bytes = entry.Number("block");
  options.heartbeat_ms =
      static_cast<uint32_t>(entry.Number("heartbeat") / 1'000'000);
  return MakeChecksum(std::move(options), std::move(next));
}

// In the order in which Make takes them.
std::vector<Wish> Wishes(const ConfigEntry& entry) {
  std::vector<Wish> wishes;
  if (entry.Has("seal")) {
    const std::string state = ParseKeySource(entry.Text("key"))->name;
    wishes.push_back(
        {.path = FolderOfPath(state), .kind = Wish::Kind::kDirectory});
  } else {
    WishKey(entry, "key", &wishes);
  }
  WishKey(entry, "sign_key", &wishes);
  if (const std::string path = AnchorFile(entry); !path.empty()) {
    wishes.push_back({.path = path, .kind = Wish::Kind::kAppend});
  } else if (entry.Has("anchor")) {
    wishes.push_back({.path = kSyslogSocket, .kind = Wish::Kind::kLog});
  }
  return wishes;
}

std::string Parameters(const ConfigEntry& entry) {
  std::string text = "alg=" + std::string(AlgorithmOf(entry));
  for (const std::string_view option : {"seal", "sign"}) {
    const std::string_view value = entry.Text(option);
    if (!value.empty()) {
      text += ' ' + std::string(option) + '=' + std::string(value);
    }
  }
  return text;
}

Result<std::unique_ptr<StageDecoder>> MakeDecoder(const ChainStage& stage,
                                                  const KeyRing* keys) {
  return MakeChecksumDecoder(stage.Get("alg"), keys);
}

bool NeedsKey(const ChainStage& stage) {
  return stage.Get("alg") != ChecksumName(ChecksumAlgorithm::kCrc32c) ||
         !stage.Get("sign").empty();
}

}  // namespace

OutputFilterRow ChecksumRow() {
  return {
      .entry = {.name = "checksum",
                .role = EntryRole::kFilter,
                .options = kOptions},
      .help = "shows changes: hmac-sha256, hmac-md5 or crc32c; seals, signs",
      .make = &Make,
      .parameters = &Parameters,
      .make_decoder = &MakeDecoder,
      .needs_key = &NeedsKey,
      .wishes = &Wishes,
      .check = &Check,
      .heartbeat_option = "heartbeat"};
}

}  // namespace tracefs
