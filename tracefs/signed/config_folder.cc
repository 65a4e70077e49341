#include "tracefs/signed/config_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>

#include "tracefs/base/durable.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/join.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/replacement.h"
#include "tracefs/base/state_folder.h"
#include "tracefs/base/text.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/key_source.h"

namespace tracefs {
namespace {

constexpr std::string_view kTaken = "tracefs-config-taken-1";
constexpr size_t kMaxTakenBytes = 4096;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// Names, sorted. More than there may be are left out, the last ones.
Result<std::vector<std::string>> NamesIn(const std::string& folder, int fd) {
  const std::unique_ptr<DIR, CloseDirectory> directory(
      ::fdopendir(::fcntl(fd, F_DUPFD_CLOEXEC, 0)));
  if (directory == nullptr) return Status::System(errno, folder);
  std::vector<std::string> names;
  // A folder without end is not read to it.
  for (size_t seen = 0; seen < 100 * kMaxConfigs; ++seen) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) {
      if (errno != 0) return Status::System(errno, folder);
      break;
    }
    const std::string_view name = entry->d_name;
    // Those that begin with a dot are of who is writing them.
    if (name.ends_with(".conf") && name[0] != '.') names.emplace_back(name);
  }
  std::ranges::sort(names);
  if (names.size() > kMaxConfigs) names.resize(kMaxConfigs);
  return names;
}

Result<std::string> ReadConfig(int folder, const std::string& name) {
  // Not held up by a pipe that nobody writes.
  const UniqueFd fd(::openat(folder, name.c_str(),
                             O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    return errno == ELOOP ? Status::Invalid("it is a link")
                          : Status::System(errno, "it cannot be opened");
  }
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return Status::System(errno, "fstat");
  if (!S_ISREG(st.st_mode)) return Status::Invalid("it is no file");
  auto text = ReadText(fd.get(), kMaxSignedConfigBytes + 1, "it");
  if (!text.ok()) return text.status();
  if (text->size() > kMaxSignedConfigBytes) {
    return Status::Invalid("it is larger than 1 MiB");
  }
  return text;
}

}  // namespace

Result<std::optional<TakenConfig>> ReadTaken(const std::string& path) {
  const UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return std::optional<TakenConfig>();
    return Status::System(errno, path);
  }
  const auto text = ReadText(fd.get(), kMaxTakenBytes, path);
  if (!text.ok()) return text.status();
  std::string_view rest = *text;
  const std::string_view word = TakeUpTo(rest, ' ');
  const auto version = ParseUnsigned(TakeUpTo(rest, ' '));
  const std::string_view digest = Trim(rest);
  Digest bytes;
  if (word != kTaken || !version || !FromHex(digest, bytes)) {
    return Status::Invalid(path +
                           ": it does not tell which config was taken last; "
                           "see what became of it before you remove it");
  }
  return std::optional(TakenConfig{*version, std::string(digest)});
}

Status WriteTaken(const std::string& path, const TakenConfig& taken) {
  const std::string folder = path.substr(0, path.rfind('/'));
  if (Status s = MakeFolders(folder, 0755); !s.ok()) return s;
  return ReplaceFile(path, std::string(kTaken) + ' ' +
                               std::to_string(taken.version) + ' ' +
                               taken.digest + '\n');
}

std::string ConfigChoice::Text() const {
  std::string text = JoinWords(refused, "; ", [](const RefusedConfig& one) {
    return Printable(one.file) + ": " + Printable(one.text);
  });
  if (for_others != 0) {
    AppendWord(std::to_string(for_others) +
                   (for_others == 1 ? " config is" : " configs are") +
                   " rolled out to other hosts",
               "; ", &text);
  }
  return text.empty() ? "there is none" : text;
}

Result<ConfigChoice> ChooseConfig(const ConfigFolderOptions& options) {
  const UniqueFd folder(
      ::open(options.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Status::System(errno, options.folder);
  const auto names = NamesIn(options.folder, folder.get());
  if (!names.ok()) return names.status();
  ConfigChoice choice;
  for (const std::string& name : *names) {
    const auto refuse = [&](ConfigRefusal why, const std::string& text) {
      choice.refused.push_back({name, why, text});
    };
    const auto bytes = ReadConfig(folder.get(), name);
    if (!bytes.ok()) {
      refuse(ConfigRefusal::kUnreadable, bytes.status().message());
      continue;
    }
    ConfigRefusal why{};
    auto config = VerifyConfig(*bytes, options.keys, options.now_s, &why);
    if (!config.ok()) {
      refuse(why, config.status().message());
      continue;
    }
    if (!IsInRollout(options.host, config->facts.rollout)) {
      ++choice.for_others;
      continue;
    }
    if (choice.chosen &&
        choice.chosen->config.facts.version == config->facts.version &&
        choice.chosen->config.digest != config->digest) {
      refuse(ConfigRefusal::kForked,
             "it is another config of the version of " + choice.chosen->file);
      continue;
    }
    if (!choice.chosen ||
        choice.chosen->config.facts.version < config->facts.version) {
      choice.chosen =
          ChosenConfig{options.folder + "/" + name, *std::move(config)};
    }
  }
  if (!choice.chosen || !options.taken) return choice;
  const ConfigFacts& facts = choice.chosen->config.facts;
  const bool older = facts.version < options.taken->version;
  const bool other = facts.version == options.taken->version &&
                     choice.chosen->config.digest != options.taken->digest;
  if (older || other) {
    choice.refused.push_back(
        {choice.chosen->file.substr(options.folder.size() + 1),
         older ? ConfigRefusal::kRolledBack : ConfigRefusal::kForked,
         older
             ? "its version, " + std::to_string(facts.version) +
                   ", is older than " + std::to_string(options.taken->version) +
                   ", which was taken before"
             : "it is another config of version " +
                   std::to_string(facts.version) + ", which was taken before"});
    choice.chosen.reset();
  }
  return choice;
}

Result<std::vector<PublicKey>> ReadConfigKeys(
    const std::vector<std::string>& sources) {
  std::vector<PublicKey> keys;
  for (const std::string& source : sources) {
    const auto parsed = ParseKeyArgument(source);
    if (!parsed.ok()) return parsed.status().Prefixed("--config-key");
    const auto entries = ReadKeys(*parsed);
    if (!entries.ok()) return entries.status().Prefixed("--config-key");
    for (const KeyEntry& entry : *entries) {
      if (entry.kind != KeyKind::kSignPublic) {
        return Status::Invalid("--config-key: " + parsed->Text() +
                               " holds more than public keys; a host needs no "
                               "more than the PUBLIC of tracefs-keygen sign");
      }
      PublicKey key;
      std::ranges::copy(entry.key.get(), key.begin());
      keys.push_back(key);
    }
  }
  if (keys.empty()) {
    return Status::Invalid("--config-dir needs --config-key PUBLIC");
  }
  return keys;
}

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string DefaultTakenFile(const std::string& folder) {
  Sha256 hash;
  hash.Update(AsBytes(folder));
  const std::string name = Hex(hash.Finish()).substr(0, 16);
  const std::string state = StateFolder();
  return (state.empty() ? "/nonexistent/.local/state/tracefs" : state) +
         "/configs/" + name;
}

}  // namespace tracefs
