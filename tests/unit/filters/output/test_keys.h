// TestKeys: one key file of each kind, and the key ring of a reader of all.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "filters/output/key_ring.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/crypto/age.h"
#include "tracefs/crypto/seal_state.h"

namespace tracefs {

inline SecretKey FilledKey(uint8_t byte) {
  SecretKey key;
  std::memset(key.get().data(), byte, kKeyBytes);
  return key;
}

struct TestKeys {
  TestKeys() {
    secret = folder.Write("secret",
                          KeyLine(KeyKind::kSecret, FilledKey(0x11).get()));
    sign = folder.Write("sign", KeyLine(KeyKind::kSign, FilledKey(0x33).get()));
    state = folder.Path("state");
    EXPECT_TRUE(SealState::Create(state, FilledKey(0x22).get()).ok());
    recipient = AgeRecipientText(*RecipientOfIdentity(FilledKey(0x44).get()));
    for (const auto& [kind, byte] :
         {std::pair<KeyKind, uint8_t>{KeyKind::kSecret, 0x11},
          {KeyKind::kSealVerify, 0x22},
          {KeyKind::kSign, 0x33},
          {KeyKind::kAgeIdentity, 0x44}}) {
      EXPECT_TRUE(all.Add({kind, FilledKey(byte)}).ok());
    }
  }

  std::string KeyOption() const { return " key = \"file:" + secret + "\" "; }
  std::string SealOption() const {
    return " seal = forward key = \"file:" + state + "\" ";
  }
  std::string SignOption() const {
    return " sign = ed25519 sign_key = \"file:" + sign + "\" ";
  }

  TempFolder folder;
  std::string secret, sign, state;  // paths
  std::string recipient;            // "age1…"
  KeyRing all;
};

}  // namespace tracefs
