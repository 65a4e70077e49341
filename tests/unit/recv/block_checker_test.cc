// Which blocks a receiver of a fleet takes, which it refuses, and which it
// leaves to one with other keys.
#include <gmock/gmock.h>

#include "filters/output/checksum_head.h"
#include "tests/support/trace_builder.h"
#include "tests/unit/filters/output/filter_chain.h"
#include "tests/unit/filters/output/test_keys.h"
#include "tracefs/recv/fleet/block.h"

namespace tracefs {
namespace {

enum class Fate { kTaken, kLeft, kRefused };

class BlockCheckerTest : public testing::Test {
 protected:
  // As a courier sends it.
  static Delivery Made(const std::string& chain, const std::string& payload) {
    test::TraceBuilder trace(chain);
    trace.DefinePath(0, "f");
    trace.EndBlock();
    return {.body = trace.bytes().substr(0, trace.frame_offsets()[0]) +
                    trace.Frame(0, payload),
            .host = "victim",
            .number = 1};
  }
  static Delivery Sealed(const std::string& filters) {
    TraceIdentity identity = TestIdentity();
    identity.serial = test::TraceBuilder().serial();
    const auto written = RunChain(filters + " file = x", {"block"}, identity);
    return Made(ChainTextOf(filters + " file = x"), written[0].payload);
  }
  static std::shared_ptr<KeyRing> Ring(
      const std::vector<std::pair<KeyKind, uint8_t>>& keys) {
    auto ring = std::make_shared<KeyRing>();
    for (const auto& [kind, byte] : keys) {
      EXPECT_TRUE(ring->Add({kind, FilledKey(byte)}).ok());
    }
    return ring;
  }
  static Fate FateOf(const Delivery& delivery, std::shared_ptr<KeyRing> keys,
                     bool decodes = false) {
    BlockChecker checker(std::move(keys), decodes);
    const Result<FleetBlock> block = checker.Check(delivery);
    if (!block.ok()) {
      EXPECT_EQ(block.status().code(), StatusCode::kCorrupt)
          << block.status().message();
      return Fate::kRefused;
    }
    return block->key_missing.empty() ? Fate::kTaken : Fate::kLeft;
  }

  TestKeys keys_;
  const std::pair<KeyKind, uint8_t> secret_{KeyKind::kSecret, 0x11};
  const std::pair<KeyKind, uint8_t> other_{KeyKind::kSecret, 0x12};
  const std::pair<KeyKind, uint8_t> verify_{KeyKind::kSealVerify, 0x22};
  const std::pair<KeyKind, uint8_t> sign_{KeyKind::kSign, 0x33};
  const std::pair<KeyKind, uint8_t> identity_{KeyKind::kAgeIdentity, 0x44};
};

TEST_F(BlockCheckerTest, WhatOneOfTheKeysHasMadeIsTaken) {
  const std::string encrypt = "encrypt" + keys_.KeyOption() + ";";
  const std::string seal = "checksum" + keys_.KeyOption() + ";";
  const std::string forward = "checksum" + keys_.SealOption() + ";";
  const std::string recipient = "encrypt recipient = " + keys_.recipient + ";";
  EXPECT_EQ(FateOf(Sealed(seal), Ring({secret_})), Fate::kTaken);
  EXPECT_EQ(FateOf(Sealed(encrypt), Ring({other_, secret_})), Fate::kTaken);
  EXPECT_EQ(FateOf(Sealed("compress;" + seal), Ring({secret_}), true),
            Fate::kTaken);
  EXPECT_EQ(FateOf(Sealed(forward), Ring({verify_})), Fate::kTaken);
  EXPECT_EQ(FateOf(Sealed("checksum alg = crc32c" + keys_.SignOption() + ";"),
                   Ring({sign_})),
            Fate::kTaken);
  EXPECT_EQ(FateOf(Sealed(recipient), Ring({identity_}), true), Fate::kTaken);
  // What is not opened need not be, for traces.
  EXPECT_EQ(FateOf(Sealed(recipient + seal), Ring({secret_})), Fate::kTaken);
}

TEST_F(BlockCheckerTest, Malicious_AChainThatOnlyClaimsASealIsRefused) {
  for (const std::string chain :
       {"checksum", "encrypt", "file", "checksum; file", "",
        "checksum alg=hmac-sha256", "compress; checksum"}) {
    for (const bool decodes : {false, true}) {
      EXPECT_EQ(FateOf(Made(chain, "anything"), Ring({secret_}), decodes),
                Fate::kRefused)
          << chain;
    }
  }
  // Nobody needs a key for it.
  EXPECT_EQ(FateOf(Sealed("checksum alg = crc32c;"), Ring({secret_})),
            Fate::kRefused);
}

TEST_F(BlockCheckerTest, Malicious_ASealUnderAKeyThatNobodyHasIsNotTaken) {
  ChecksumHead head;
  std::ranges::fill(head.key_id, std::byte{'E'});
  std::string payload(kChecksumHeadBytes, '\0');
  EncodeChecksumHead(head, reinterpret_cast<std::byte*>(payload.data()));
  payload += "the block" + std::string(32, '\0');
  const Delivery forged = Made("checksum alg=hmac-sha256; file", payload);
  EXPECT_EQ(FateOf(forged, Ring({secret_})), Fate::kLeft);
  EXPECT_EQ(FateOf(forged, Ring({verify_, sign_})), Fate::kLeft);
}

TEST_F(BlockCheckerTest, Malicious_AChangedBlockIsRefused) {
  for (const std::string filter : {"checksum", "encrypt"}) {
    const std::string filters = filter + keys_.KeyOption() + ";";
    TraceIdentity identity = TestIdentity();
    identity.serial = test::TraceBuilder().serial();
    std::string payload =
        RunChain(filters + " file = x", {"block"}, identity)[0].payload;
    payload.back() ^= 1;
    EXPECT_EQ(FateOf(Made(ChainTextOf(filters + " file = x"), payload),
                     Ring({secret_})),
              Fate::kRefused);
  }
}

TEST_F(BlockCheckerTest, WhatAnotherKeyHasMadeIsLeftToWhoHasIt) {
  const std::string seal = "checksum" + keys_.KeyOption() + ";";
  const std::string recipient = "encrypt recipient = " + keys_.recipient + ";";
  for (const bool decodes : {false, true}) {
    EXPECT_EQ(FateOf(Sealed(seal), Ring({other_}), decodes), Fate::kLeft);
    EXPECT_EQ(FateOf(Sealed("encrypt" + keys_.KeyOption() + ";"),
                     Ring({other_}), decodes),
              Fate::kLeft);
    EXPECT_EQ(FateOf(Sealed(recipient), Ring({secret_}), decodes), Fate::kLeft);
  }
  // Tables need what is in it.
  EXPECT_EQ(FateOf(Sealed(recipient + seal), Ring({secret_}), true),
            Fate::kLeft);
  EXPECT_EQ(FateOf(Sealed(seal), nullptr, true), Fate::kLeft);
  EXPECT_EQ(FateOf(Sealed(seal), nullptr, false), Fate::kTaken);
}

// Its public half is enough to encrypt.
TEST_F(BlockCheckerTest, AnIdentityProvesNothingToWhoHasAKeyThatDoes) {
  const Delivery made = Sealed("encrypt recipient = " + keys_.recipient + ";");
  EXPECT_EQ(FateOf(made, Ring({identity_, secret_})), Fate::kLeft);
  EXPECT_EQ(FateOf(made, Ring({identity_, verify_})), Fate::kLeft);
}

TEST_F(BlockCheckerTest, AKeyThatTheHostKeptIsNoProofBesideOneThatItErases) {
  const Delivery made = Sealed("checksum" + keys_.KeyOption() + ";");
  EXPECT_EQ(FateOf(made, Ring({secret_, verify_})), Fate::kRefused);
}

}  // namespace
}  // namespace tracefs
