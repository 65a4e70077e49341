// tracefs-keygen: makes the keys of checksum, encrypt and anonymisation. See
// docs/man/tracefs-keygen.1.
#include "tracefs/tools/keygen/main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/command/command_line.h"
#include "tracefs/command/front.h"
#include "tracefs/crypto/age.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/crypto/seal_state.h"
#include "tracefs/crypto/signature.h"
#include "tracefs/tools/keygen/derive.h"
#include "tracefs/tools/keygen/sign_config.h"

namespace tracefs {
namespace {

constexpr char kUsage[] =
    "Usage: tracefs-keygen secret KEY\n"
    "       tracefs-keygen seal STATE VERIFY\n"
    "       tracefs-keygen sign PRIVATE PUBLIC\n"
    "       tracefs-keygen age IDENTITY\n"
    "       tracefs-keygen sign-config --key PRIVATE --config-version N\n"
    "                      [--expires DATE] [--rollout SHARE] CONFIG SIGNED\n"
    "       tracefs-keygen verify-config --key PUBLIC SIGNED...\n"
    "       tracefs-keygen --derive DOMAIN --key MASTER [--day YYYY-MM-DD]\n"
    "                      [--subtree DIR --policy POLICY] [--recipient "
    "age1...]... KEY\n"
    "Make keys. Every file is new and can be read by its owner only; existing "
    "files are\nnever replaced. tracefs-dump, tracefs-verify and others read "
    "them with --key FILE.\n";

constexpr char kKindsText[] =
    "\nKinds:\n"
    "  secret  one secret, for whoever writes and whoever reads:\n"
    "            checksum key = file:KEY;  encrypt key = file:KEY;\n"
    "  seal    for checksum seal = forward key = file:STATE. Leave STATE on "
    "the "
    "traced\n          host, where it changes with every trace. Take VERIFY "
    "away "
    "from there: it\n          verifies all traces, and could forge them.\n"
    "  sign    for checksum sign = ed25519 sign_key = file:PRIVATE. PUBLIC may "
    "be given\n          to anyone; it can verify and nothing else.\n"
    "  age     prints a recipient, for encrypt recipient = age1... Keep "
    "IDENTITY away\n          from the traced host: it decrypts. Also for age "
    "-d "
    "-i IDENTITY.\n"
    "\n"
    "  sign-config    signs CONFIG for tracefs-mount --config-dir: N is larger "
    "with each\n          one; DATE (2027-01-01, or with T12:00:00Z; never) is "
    "when it ends to be taken;\n          SHARE, as 10%, is how many hosts it "
    "is for. SIGNED is replaced as a whole.\n"
    "  verify-config  says what the mounts would, without taking it.\n"
    "\n"
    "  --derive  a key for one domain of anonymised traces (uid, name, ...), "
    "from the secret\n          they were anonymised with: for one day, for "
    "the "
    "names below one\n          directory, wrapped for age recipients. "
    "tracefs-anon --reveal uses it.\n";

// Writes one key with a comment before it.
Status WriteKey(const std::string& path, const char* comment, KeyKind kind,
                KeySpan key) {
  std::string text;
  text.reserve(1024);  // never moves, so that no copy stays behind
  text += "# ";
  text += comment;
  text += "\n# key id ";
  text += KeyIdText(IdOfKey(key));
  text += '\n';
  std::string line = KeyLine(kind, key);
  text += line;
  text += '\n';
  Status status = CreateSecretFile(path, "key file '" + path + "'", text);
  for (std::string* s : {&text, &line}) {
    Wipe(std::as_writable_bytes(std::span(*s)));
  }
  return status;
}

Status MakeSecret(const std::vector<std::string>& paths, KeySpan key) {
  return WriteKey(paths[0], "Tracefs: a shared secret", KeyKind::kSecret, key);
}

Status MakeSeal(const std::vector<std::string>& paths, KeySpan key) {
  if (Status s = WriteKey(paths[1],
                          "Tracefs: verifies sealed traces; keep it away from "
                          "the traced host",
                          KeyKind::kSealVerify, key);
      !s.ok()) {
    return s;
  }
  Status status = SealState::Create(paths[0], key);
  if (!status.ok()) ::unlink(paths[1].c_str());  // of no use alone
  return status;
}

Status MakeSign(const std::vector<std::string>& paths, KeySpan key) {
  const Result<Signer> signer = Signer::Create(key);
  if (!signer.ok()) return signer.status();
  if (Status s =
          WriteKey(paths[0], "Tracefs: signs traces", KeyKind::kSign, key);
      !s.ok()) {
    return s;
  }
  Status status = WriteKey(paths[1], "Tracefs: verifies signed traces; public",
                           KeyKind::kSignPublic, signer->public_key());
  if (!status.ok()) ::unlink(paths[0].c_str());
  return status;
}

Status MakeAge(const std::vector<std::string>& paths, KeySpan key) {
  const Result<AgeRecipient> recipient = RecipientOfIdentity(key);
  if (!recipient.ok()) return recipient.status();
  const std::string text = AgeRecipientText(*recipient);
  if (Status s = WriteKey(paths[0], ("public key: " + text).c_str(),
                          KeyKind::kAgeIdentity, key);
      !s.ok()) {
    return s;
  }
  std::printf("%s\n", text.c_str());
  return Status::Ok();
}

struct Kind {
  std::string_view name;
  size_t files;
  Status (*make)(const std::vector<std::string>& paths, KeySpan key);
};

constexpr Kind kKinds[] = {
    {"secret", 1, &MakeSecret},
    {"seal", 2, &MakeSeal},
    {"sign", 2, &MakeSign},
    {"age", 1, &MakeAge},
};

constexpr char kSeeHelp[] = " (see tracefs-keygen --help)";

CommandOptions Rows() {
  return {{"key", "FILE",
           "sign-config: who signs; verify-config: who may; --derive: the "
           "secret that traces were anonymised with"},
          {"config-version", "N",
           "sign-config: larger with each one, so that no older one is taken"},
          {"expires", "DATE", "sign-config: when it ends to be taken"},
          {"rollout", "SHARE", "sign-config: how many hosts it is for"},
          {"derive", "", "make a key for a domain of anonymised traces"},
          {"day", "YYYY-MM-DD", "--derive: for what was anonymised that day"},
          {"subtree", "DIR", "--derive: for the names below it"},
          {"policy", "POLICY",
           "--derive --subtree: by which the traces were anonymised"},
          {.name = "recipient",
           .value = "age1...",
           .help = "--derive: for whom it is wrapped; may be given several "
                   "times",
           .repeated = true},
          HelpOption(),
          VersionOption()};
}

HelpPage Help() {
  return {.command = "tracefs-keygen",
          .begin = kUsage,
          .rows = Rows(),
          .details = kKindsText,
          .details_of = "what each kind of key is for",
          .end = "Exit status: 0 done; 2 wrong usage; 3 the system refused.\n"};
}

struct KeygenOptions {
  HelpWish help = {};
  bool version = false;
  CommandLine given = {};
};

Result<KeygenOptions> Parse(int argc, const char* const* argv) {
  Result<CommandLine> line =
      CommandLine::Parse(argc, argv, Rows(), "word", kSeeHelp);
  if (!line.ok()) return line.status();
  KeygenOptions result = {.help = line->Help(),
                          .version = line->Has("version")};
  result.given = *std::move(line);
  return result;
}

Status Run(const CommandLine& given) {
  const std::vector<std::string> words = given.Texts("word");
  if (given.Has("derive")) return DeriveKeyFile(given, words);
  if (!words.empty() &&
      (words[0] == "sign-config" || words[0] == "verify-config")) {
    return words[0] == "sign-config" ? SignConfigFile(given, words)
                                     : VerifyConfigFiles(given, words);
  }
  for (const char* option : kSignConfigOptions) {
    if (given.Has(option)) {
      return Status::Invalid("--" + std::string(option) +
                             " goes with sign-config" + kSeeHelp);
    }
  }
  for (const char* option : kDeriveOptions) {
    if (given.Has(option)) {
      return Status::Invalid("--" + std::string(option) +
                             " goes with --derive" + kSeeHelp);
    }
  }
  if (words.empty()) {
    return Status::Invalid(std::string("what kind of key?") + kSeeHelp);
  }
  const std::string name = words[0];
  const std::vector<std::string> paths(words.begin() + 1, words.end());
  for (const Kind& kind : kKinds) {
    if (name != kind.name) continue;
    if (paths.size() != kind.files) {
      return Status::Invalid(name + " takes " + std::to_string(kind.files) +
                             (kind.files == 1 ? " file" : " files") + kSeeHelp);
    }
    for (const std::string& path : paths) {
      if (path.empty() || path[0] == '-') {
        return Status::Invalid("'" + path +
                               "' is no name for a key file; write ./" + path);
      }
    }
    SecretKey key;
    if (Status s = RandomBytes(key.get()); !s.ok()) return s;
    return kind.make(paths, key.get());
  }
  return Status::Invalid("there is no kind of key '" + name +
                         "'; there are secret, seal, sign and age" + kSeeHelp);
}

}  // namespace
int KeygenMain(int argc, char** argv) {
  return RunCommand({"tracefs-keygen", &Help}, Parse(argc, argv),
                    [](const KeygenOptions& options) {
                      return Finish("tracefs-keygen", Run(options.given));
                    });
}

}  // namespace tracefs
