// ConfigFolder: the one config, out of a directory that others fill, that this
// host is to trace by. What is there is hostile until it is verified: nothing
// of it is parsed before.
//
// Tested by tests/unit/signed/ and tests/mount/control/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/signed/signed_config.h"

namespace tracefs {

// What was taken last: kept in a file, so that an older one is not taken after
// a restart either.
struct TakenConfig {
  uint64_t version = 0;
  std::string digest;
};

// Nothing if there is no such file. kInvalid if it holds something else.
Result<std::optional<TakenConfig>> ReadTaken(const std::string& path);
// As a whole or not at all; makes the folder that it lies in.
Status WriteTaken(const std::string& path, const TakenConfig& taken);

struct RefusedConfig {
  std::string file;
  ConfigRefusal why{};
  std::string text;  // "it is not signed"
};

struct ChosenConfig {
  std::string file;  // its path
  SignedConfig config;
};

struct ConfigChoice {
  // The one of the highest version that is for this host.
  std::optional<ChosenConfig> chosen;
  std::vector<RefusedConfig> refused;
  size_t for_others = 0;  // of the roll-out

  // What was refused, a sentence each; printable.
  std::string Text() const;
};

struct ConfigFolderOptions {
  std::string folder;
  std::vector<PublicKey> keys;
  std::string host;
  uint64_t now_s = 0;
  std::optional<TakenConfig> taken;
};

// Looks at the files NAME.conf of the folder, at most kMaxConfigs of them; no
// links, no pipes, nothing larger than a config may be. kSystem if the folder
// cannot be read.
inline constexpr size_t kMaxConfigs = 256;
Result<ConfigChoice> ChooseConfig(const ConfigFolderOptions& options);

// The public keys of sources as --config-key has them: at least one.
Result<std::vector<PublicKey>> ReadConfigKeys(
    const std::vector<std::string>& sources);

// The name of this host, as roll-outs go by it.
std::string HostName();

// Where what was taken of that folder is remembered, unless it is said:
// /var/lib/tracefs/configs/…, of others than root below $HOME.
std::string DefaultTakenFile(const std::string& folder);

}  // namespace tracefs
