#include "tracefs/crypto/key_source.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tracefs/base/choice.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/text.h"
#include "tracefs/crypto/age.h"
#include "tracefs/crypto/hash.h"

namespace tracefs {
namespace {

struct KindRow {
  KeyKind kind;
  std::string_view word;
  std::string_view text;
  bool secret;
};

constexpr KindRow kKinds[] = {
    {KeyKind::kSecret, "tracefs-secret-1",
     "a shared secret (tracefs-keygen secret)", true},
    {KeyKind::kSealVerify, "tracefs-seal-verify-1",
     "a verify secret (tracefs-keygen seal)", true},
    {KeyKind::kSign, "tracefs-sign-1", "a signing key (tracefs-keygen sign)",
     true},
    {KeyKind::kSignPublic, "tracefs-sign-public-1",
     "a public signing key (tracefs-keygen sign)", false},
    {KeyKind::kAgeIdentity, "", "an age identity (age-keygen)", true},
};

const KindRow& RowOf(KeyKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const KindRow& row) { return row.kind == kind; });
}

constexpr Choice<KeySource::Place> kPlacePrefixes[] = {
    {"file:", KeySource::Place::kFile},
    {"env:", KeySource::Place::kEnvironment},
    {"keyring:", KeySource::Place::kKeyring},
    {"credential:", KeySource::Place::kCredential},
};

Result<SecretMemory> ReadKeyring(const std::string& name) {
  const std::string what = KeySource{KeySource::Place::kKeyring, name}.Text();
  const long id = ::syscall(SYS_request_key, "user", name.c_str(), nullptr, 0);
  if (id < 0) return Status::System(errno, what);
  SecretMemory text(kMaxKeyFileBytes);
  const long n = ::syscall(SYS_keyctl, KEYCTL_READ, id, text.bytes().data(),
                           text.bytes().size());
  // A key of type "user" has 32767 bytes at most.
  if (n < 0) return Status::System(errno, what);
  return text;
}

Result<SecretMemory> ReadEnvironment(const std::string& name) {
  const char* value = ::getenv(name.c_str());
  const std::string what =
      KeySource{KeySource::Place::kEnvironment, name}.Text();
  if (value == nullptr) {
    return Status::Invalid(what +
                           " is not set; put a line of a key file in it");
  }
  const size_t size = std::strlen(value);
  if (size >= kMaxKeyFileBytes) {
    return Status::Invalid(what + " is too long for a key");
  }
  SecretMemory text(kMaxKeyFileBytes);
  std::memcpy(text.bytes().data(), value, size);
  return text;
}

// What LoadCredential= of systemd.exec(5) has put into a folder that only the
// service can enter. Newer ones leave the file to root and let the service read
// it by an ACL, whose mask shows as a right of the group.
Result<SecretMemory> ReadCredential(const KeySource& source) {
  const std::string what = source.Text();
  if (source.name.find('/') != std::string::npos || source.name == "." ||
      source.name == "..") {
    return Status::Invalid(what + ": give its name, not a path");
  }
  const char* const folder = ::getenv("CREDENTIALS_DIRECTORY");
  if (folder == nullptr || folder[0] != '/') {
    return Status::Invalid(
        what +
        ": no service manager has handed over credentials; say LoadCredential= "
        "in the unit");
  }
  const UniqueFd fd(::open((std::string(folder) + '/' + source.name).c_str(),
                           O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return Status::System(errno, what);
  if (Status s = CheckOwnership(fd.get(), {.forbidden = 037}, what); !s.ok()) {
    return s;
  }
  return ReadSecretFile(fd, what);
}

Status ParseKeyText(std::string_view text, const std::string& what,
                    std::vector<KeyEntry>* entries, bool* any_secret) {
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::string_view line = Trim(TakeUpTo(text, '\n'));
    if (line.empty() || line.front() == '#') continue;
    if (line.substr(0, line.find(' ')) == "tracefs-seal-state-1") {
      return Status::Invalid(
          what +
          " is the sealing state of a host; it only serves checksum with seal "
          "= forward, and is verified with the file that tracefs-keygen made "
          "beside it");
    }
    KeyEntry entry;
    if (!ParseKeyLine(line, &entry)) {
      return Status::Invalid(what + ": line " + std::to_string(number) +
                             " is no key; make one with tracefs-keygen");
    }
    *any_secret |= RowOf(entry.kind).secret;
    entries->push_back(std::move(entry));
  }
  if (entries->empty()) {
    return Status::Invalid(what +
                           " holds no key; make one with "
                           "tracefs-keygen");
  }
  return Status::Ok();
}

}  // namespace

std::string_view KeyKindText(KeyKind kind) { return RowOf(kind).text; }

std::string KeySource::Text() const {
  switch (place) {
    case Place::kFile:
      return "key file '" + name + "'";
    case Place::kEnvironment:
      return "environment variable '" + name + "'";
    case Place::kKeyring:
      return "key '" + name + "' of the kernel's keyring";
    case Place::kCredential:
      return "credential '" + name + "'";
  }
  return {};
}

Result<KeySource> ParseKeyArgument(std::string_view text) {
  for (const auto& prefix : kPlacePrefixes) {
    if (text.starts_with(prefix.word)) return ParseKeySource(text);
  }
  return KeySource{KeySource::Place::kFile, std::string(text)};
}

Result<KeySource> ParseKeySource(std::string_view text) {
  for (const auto& prefix : kPlacePrefixes) {
    if (!text.starts_with(prefix.word)) continue;
    text.remove_prefix(prefix.word.size());
    if (text.empty()) break;
    return KeySource{prefix.value, std::string(text)};
  }
  return Status::Invalid(
      "a key is named by where it is: file:PATH, env:NAME, "
      "keyring:DESCRIPTION or credential:NAME; it never stands in a config "
      "itself");
}

std::string KeyLine(KeyKind kind, KeySpan key) {
  if (kind == KeyKind::kAgeIdentity) return AgeIdentityText(key);
  return std::string(RowOf(kind).word) + ' ' + Hex(key);
}

bool ParseKeyLine(std::string_view line, KeyEntry* entry) {
  line = Trim(line);
  if (line.substr(0, kAgeIdentityPrefix.size()) == kAgeIdentityPrefix) {
    entry->kind = KeyKind::kAgeIdentity;
    return ParseAgeIdentity(line, &entry->key);
  }
  const size_t end = line.find(' ');
  if (end == line.npos) return false;
  for (const KindRow& row : kKinds) {
    if (line.substr(0, end) != row.word) continue;
    entry->kind = row.kind;
    return FromHex(Trim(line.substr(end)), entry->key.get());
  }
  return false;
}

Status CheckSecretFile(const UniqueFd& fd, const std::string& what) {
  const Status status = CheckOwnership(fd.get(), {.forbidden = 077}, what);
  struct stat st;
  if (!status.ok() && ::fstat(fd.get(), &st) == 0 && (st.st_mode & 077) != 0) {
    return Status::Invalid(status.message() +
                           "; replace the key if somebody may have read it");
  }
  return status;
}

Result<SecretMemory> ReadSecretFile(const UniqueFd& fd,
                                    const std::string& what) {
  SecretMemory text(kMaxKeyFileBytes);
  const ssize_t size = ReadAt(fd.get(), text.bytes(), 0);
  if (size < 0) return Status::System(errno, what);
  if (size == static_cast<ssize_t>(kMaxKeyFileBytes)) {
    return Status::Invalid(what + " is too long for a key file");
  }
  return text;
}

namespace {

// `*fd`: the file, if it is one; its mode is not checked.
Result<SecretMemory> ReadText(const KeySource& source, UniqueFd* fd) {
  const std::string what = source.Text();
  if (source.given != nullptr) {
    if (source.place != KeySource::Place::kFile) {
      return ReadSecretFile(*source.given, what);
    }
    fd->Reset(::fcntl(source.given->get(), F_DUPFD_CLOEXEC, 0));
    if (!*fd) return Status::System(errno, what);
    return ReadSecretFile(*fd, what);
  }
  switch (source.place) {
    case KeySource::Place::kFile:
      // Not to hang on a fifo.
      fd->Reset(::open(source.name.c_str(),
                       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
      if (!*fd) return Status::System(errno, what);
      return ReadSecretFile(*fd, what);
    case KeySource::Place::kEnvironment:
      return ReadEnvironment(source.name);
    case KeySource::Place::kKeyring:
      return ReadKeyring(source.name);
    case KeySource::Place::kCredential:
      return ReadCredential(source);
  }
  return SecretMemory();
}

}  // namespace

Result<SecretMemory> ReadSecretText(const KeySource& source) {
  UniqueFd fd;
  Result<SecretMemory> text = ReadText(source, &fd);
  if (!text.ok() || !fd) return text;
  if (Status s = CheckSecretFile(fd, source.Text()); !s.ok()) return s;
  return text;
}

Result<std::vector<KeyEntry>> ReadKeys(const KeySource& source) {
  const std::string what = source.Text();
  UniqueFd fd;
  const Result<SecretMemory> text = ReadText(source, &fd);
  if (!text.ok()) return text.status();
  // The rest of the memory is zeros.
  std::string_view view = AsText(text->bytes());
  view = view.substr(0, view.find('\0'));
  std::vector<KeyEntry> entries;
  bool any_secret = false;
  const Status parsed = ParseKeyText(view, what, &entries, &any_secret);
  // For a file with secrets its mode is the graver matter.
  if (fd && (any_secret || !parsed.ok())) {
    if (Status s = CheckSecretFile(fd, what); !s.ok()) return s;
  }
  if (!parsed.ok()) return parsed;
  return entries;
}

Result<SecretKey> ReadKey(const KeySource& source, KeyKind kind) {
  Result<std::vector<KeyEntry>> entries = ReadKeys(source);
  if (!entries.ok()) return entries.status();
  KeyEntry* found = nullptr;
  for (KeyEntry& entry : *entries) {
    if (entry.kind != kind) continue;
    if (found != nullptr) {
      return Status::Invalid(source.Text() + " holds more than one key");
    }
    found = &entry;
  }
  if (found == nullptr) {
    return Status::Invalid(source.Text() + " does not hold " +
                           std::string(KeyKindText(kind)) + " but " +
                           std::string(KeyKindText(entries->front().kind)));
  }
  return std::move(found->key);
}

}  // namespace tracefs
