#include <algorithm>

#include "filters/output/checksum.h"
#include "filters/output/rows.h"
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

Status TakeKey(const ConfigEntry& entry, Given* given,
               ChecksumOptions* options) {
  const bool seal = entry.Has("seal");
  const ConfigOption* key = entry.Find("key");
  if (options->algorithm == ChecksumAlgorithm::kCrc32c) {
    if (key == nullptr && !seal) return Status::Ok();
    return Status::Invalid(
        "checksum: alg = crc32c has no key and cannot be sealed; use alg = "
        "hmac-sha256, or leave key and seal out");
  }
  if (key == nullptr) {
    return Status::Invalid(
        "checksum: alg = " + std::string(AlgorithmOf(entry)) +
        " needs a key: key = file:PATH, made with 'tracefs-keygen " +
        (seal ? "seal STATE VERIFY" : "secret PATH") +
        "'; alg = crc32c does without but only finds accidents");
  }
  const Result<KeySource> parsed = ParseKeySource(key->value.text);
  if (!parsed.ok()) return parsed.status().Prefixed("checksum: key");
  if (!seal) {
    const Result<KeySource> source = TakeKeySource(*key, given);
    if (!source.ok()) return source.status().Prefixed("checksum: key");
    Result<SecretKey> secret = ReadKey(*source, KeyKind::kSecret);
    if (!secret.ok()) return secret.status().Prefixed("checksum");
    options->key = *std::move(secret);
    return Status::Ok();
  }
  if (parsed->place != KeySource::Place::kFile) {
    return Status::Invalid(
        "checksum: seal = forward needs key = file:PATH: its key changes with "
        "every trace, and neither a variable nor the keyring can keep that");
  }
  Result<SealState> state = SealState::Open(parsed->name, given->Take());
  if (!state.ok()) return state.status().Prefixed("checksum");
  options->seal = *std::move(state);
  return Status::Ok();
}

Status TakeSigner(const ConfigEntry& entry, Given* given,
                  ChecksumOptions* options) {
  const ConfigOption* key = entry.Find("sign_key");
  if (entry.Has("sign") != (key != nullptr)) {
    return Status::Invalid(
        "checksum: sign = ed25519 and sign_key = file:PATH belong together; "
        "make the key with 'tracefs-keygen sign PRIVATE PUBLIC'");
  }
  if (key == nullptr) return Status::Ok();
  const Result<KeySource> source = TakeKeySource(*key, given);
  if (!source.ok()) return source.status().Prefixed("checksum: sign_key");
  const Result<SecretKey> secret = ReadKey(*source, KeyKind::kSign);
  if (!secret.ok()) return secret.status().Prefixed("checksum");
  Result<Signer> signer = Signer::Create(secret->get());
  if (!signer.ok()) return signer.status().Prefixed("checksum");
  options->signer = *std::move(signer);
  return Status::Ok();
}

Status TakeAnchor(const ConfigEntry& entry, OutputFilterFacts* facts,
                  ChecksumOptions* options) {
  const std::string_view where = entry.Text("anchor");
  if (where.empty()) {
    if (!entry.Has("anchor_every")) return Status::Ok();
    return Status::Invalid(
        "checksum: anchor_every without anchor = syslog or anchor = file:PATH");
  }
  if (options->algorithm == ChecksumAlgorithm::kCrc32c && !options->signer) {
    return Status::Invalid(
        "checksum: an anchor of crc32c would fix nothing; use alg = "
        "hmac-sha256 or sign = ed25519");
  }
  options->anchor_every = entry.Number("anchor_every", options->anchor_every);
  if (where == "syslog") {
    Result<std::unique_ptr<AnchorSink>> sink =
        MakeSyslogAnchors(facts->given.Take());
    if (!sink.ok()) {
      return sink.status().Prefixed("checksum: anchor = syslog");
    }
    // What a probe has opened it closes again.
    options->anchor = *std::move(sink);
    return Status::Ok();
  }
  if (where.substr(0, kFile.size()) != kFile || where == kFile) {
    return Status::Invalid("checksum: anchor is syslog or file:PATH, not " +
                           Quoted(where));
  }
  const std::string path(where.substr(kFile.size()));
  if (facts->probe) return ProbeFileAnchors(path).Prefixed("checksum");
  Result<std::unique_ptr<AnchorSink>> sink =
      MakeFileAnchors(path, facts->given.Take());
  if (!sink.ok()) return sink.status().Prefixed("checksum");
  options->anchor = *std::move(sink);
  return Status::Ok();
}

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterFacts* facts) {
  ChecksumOptions options;
  const std::string_view algorithm = AlgorithmOf(entry);
  for (const ChecksumAlgorithm known :
       {ChecksumAlgorithm::kCrc32c, ChecksumAlgorithm::kHmacMd5,
        ChecksumAlgorithm::kHmacSha256}) {
    if (algorithm == ChecksumName(known)) options.algorithm = known;
  }
  if (Status s = TakeKey(entry, &facts->given, &options); !s.ok()) return s;
  if (Status s = TakeSigner(entry, &facts->given, &options); !s.ok()) return s;
  if (Status s = TakeAnchor(entry, facts, &options); !s.ok()) return s;
  options.block_bytes = entry.Number("block");
  if (const uint64_t ns = entry.Number("heartbeat"); ns != 0) {
    options.heartbeat_ms = static_cast<uint32_t>(ns / 1'000'000);
    facts->heartbeat_ns =
        facts->heartbeat_ns == 0 ? ns : std::min(facts->heartbeat_ns, ns);
  }
  return MakeChecksum(std::move(options), std::move(next));
}

// In the order in which Make takes them.
std::vector<Wish> Wishes(const ConfigEntry& entry) {
  std::vector<Wish> wishes;
  if (!entry.Has("seal")) {
    WishKey(entry, "key", &wishes);
  } else if (const Result<KeySource> state = ParseKeySource(entry.Text("key"));
             state.ok() && state->place == KeySource::Place::kFile) {
    wishes.push_back({.path = SealState::FolderOf(state->name),
                      .kind = Wish::Kind::kDirectory});
  }
  WishKey(entry, "sign_key", &wishes);
  const std::string_view anchor = entry.Text("anchor");
  if (anchor == "syslog") {
    wishes.push_back({.path = kSyslogSocket, .kind = Wish::Kind::kLog});
  } else if (anchor.starts_with(kFile) && anchor != kFile) {
    wishes.push_back({.path = std::string(anchor.substr(kFile.size())),
                      .kind = Wish::Kind::kAppend});
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
      .wishes = &Wishes};
}

}  // namespace tracefs
