// Signed configs for tests.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/signed/signed_config.h"

namespace tracefs {

// The key whose bytes are `first`, `first` + 1, …
inline Signer SignerOf(int first) {
  SecretKey key;
  for (size_t i = 0; i < kKeyBytes; ++i) {
    key.get()[i] = static_cast<std::byte>(static_cast<size_t>(first) + i);
  }
  return *Signer::Create(key.get());
}

inline std::string SignedText(uint64_t version, std::string_view config,
                              int key = 0, uint32_t rollout = 10'000,
                              std::optional<uint64_t> expires_s = {}) {
  auto text = SignConfig(
      {.version = version, .expires_s = expires_s, .rollout = rollout}, config,
      SignerOf(key));
  return text.ok() ? *text : text.status().message();
}

}  // namespace tracefs
