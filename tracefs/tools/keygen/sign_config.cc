#include "tracefs/tools/keygen/sign_config.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/replacement.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/signed/config_folder.h"

namespace tracefs {
namespace {

Result<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::System(errno, Printable(path));
  return ReadText(fd.get(), kMaxSignedConfigBytes + 1, Printable(path));
}

}  // namespace

Status SignConfigFile(const CommandLine& given,
                      const std::vector<std::string>& words) {
  if (words.size() != 3 || !given.Has("key") || !given.Has("config-version")) {
    return Status::Invalid(
        "usage: tracefs-keygen sign-config --key PRIVATE --config-version N "
        "[--expires DATE] [--rollout SHARE] CONFIG SIGNED");
  }
  const auto facts =
      ParseConfigFacts(given.Text("config-version"),
                       given.Has("expires") ? given.Text("expires") : "never",
                       given.Has("rollout") ? given.Text("rollout") : "100%");
  if (!facts.ok()) return facts.status();
  const auto source = ParseKeyArgument(given.Text("key"));
  if (!source.ok()) return source.status().Prefixed("--key");
  const auto key = ReadKey(*source, KeyKind::kSign);
  if (!key.ok()) return key.status().Prefixed("--key");
  const auto signer = Signer::Create(key->get());
  if (!signer.ok()) return signer.status();
  const auto config = ReadFile(words[1]);
  if (!config.ok()) return config.status();
  const auto text = SignConfig(*facts, *config, *signer);
  if (!text.ok()) return text.status().Prefixed(Printable(words[1]));
  return ReplaceFile(words[2], *text);
}

Status VerifyConfigFiles(const CommandLine& given,
                         const std::vector<std::string>& words) {
  if (words.size() < 2 || !given.Has("key")) {
    return Status::Invalid(
        "usage: tracefs-keygen verify-config --key PUBLIC SIGNED...");
  }
  const auto keys = ReadConfigKeys({given.Text("key")});
  if (!keys.ok()) return keys.status();
  size_t bad = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    const auto bytes = ReadFile(words[i]);
    if (!bytes.ok()) return bytes.status();
    ConfigRefusal why{};
    const auto config =
        VerifyConfig(*bytes, *keys, RealNs() / kNsPerSecond, &why);
    if (!config.ok()) {
      ++bad;
      std::printf("%s: %s: %s\n", Printable(words[i]).c_str(),
                  std::string(ConfigRefusalName(why)).c_str(),
                  config.status().message().c_str());
      continue;
    }
    std::printf("%s: version %u, %s\n", Printable(words[i]).c_str(),
                static_cast<unsigned>(config->facts.version),
                IsInRollout(HostName(), config->facts.rollout)
                    ? "for this host"
                    : "for others than this host");
  }
  return bad == 0 ? Status::Ok()
                  : Status::Corrupt(std::to_string(bad) + " of " +
                                    std::to_string(words.size() - 1) +
                                    " would not be taken");
}

}  // namespace tracefs
