// tracefs-keygen: makes the keys of checksum, encrypt and anonymisation. See
// docs/man/tracefs-keygen.1.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/crypto/age.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/crypto/seal_state.h"
#include "tracefs/crypto/signature.h"
#include "tracefs/tools/keygen/derive.h"

namespace tracefs {
namespace {

constexpr char kHelp[] =
    "Usage: tracefs-keygen secret KEY\n"
    "       tracefs-keygen seal STATE VERIFY\n"
    "       tracefs-keygen sign PRIVATE PUBLIC\n"
    "       tracefs-keygen age IDENTITY\n"
    "       tracefs-keygen --derive DOMAIN --key MASTER [--day YYYY-MM-DD]\n"
    "                      [--subtree DIR --policy POLICY] [--recipient "
    "age1...]... KEY\n"
    "Make keys. Every file is new and can be read by its owner only; existing "
    "files are\nnever replaced.\n"
    "\n"
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
    "  --derive  a key for one domain of anonymised traces (uid, name, ...), "
    "from the secret\n          they were anonymised with: for one day, for "
    "the "
    "names below one\n          directory, wrapped for age recipients. "
    "tracefs-anon --reveal uses it.\n"
    "\n"
    "  -h, --help   print this and exit\n"
    "  --version    print the version and exit\n"
    "\n"
    "Keys are read by tracefs-dump, tracefs-verify and others with --key "
    "FILE.\n"
    "\n"
    "Exit status: 0 done; 2 wrong usage; 3 the system refused.\n";

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
  Status status =
      CreateSecretFile(AT_FDCWD, path, "key file '" + path + "'", text);
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

Status Run(const std::vector<std::string>& arguments) {
  constexpr char kSeeHelp[] = " (see tracefs-keygen --help)";
  if (arguments.empty()) {
    return Status::Invalid(std::string("what kind of key?") + kSeeHelp);
  }
  if (arguments[0] == "--derive") {
    return DeriveKeyFile({arguments.begin() + 1, arguments.end()});
  }
  for (const Kind& kind : kKinds) {
    if (arguments[0] != kind.name) continue;
    const std::vector<std::string> paths(arguments.begin() + 1,
                                         arguments.end());
    if (paths.size() != kind.files) {
      return Status::Invalid(arguments[0] + " takes " +
                             std::to_string(kind.files) +
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
  return Status::Invalid("there is no kind of key '" + arguments[0] +
                         "'; there are secret, seal, sign and age" + kSeeHelp);
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (const std::string& argument : arguments) {
    if (argument == "-h" || argument == "--help") {
      std::fputs(tracefs::kHelp, stdout);
      return 0;
    }
    if (argument == "--version") {
      std::puts("tracefs-keygen " TRACEFS_VERSION);
      return 0;
    }
  }
  const tracefs::Status status = tracefs::Run(arguments);
  if (!status.ok()) {
    std::fprintf(stderr, "tracefs-keygen: %s\n", status.message().c_str());
  }
  return tracefs::ExitStatus(status);
}
