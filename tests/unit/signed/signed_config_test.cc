// Signed configs: their text, byte for byte, and each way in which one is none.
#include "tracefs/signed/signed_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/signed/signing.h"
#include "tracefs/base/hex.h"
#include "tracefs/crypto/hash.h"

namespace tracefs {
namespace {

using testing::HasSubstr;

constexpr std::string_view kConfig = "{ { op = read } }\n";
// Made by python3-cryptography with the key 00 01 … 1f.
constexpr std::string_view kSigned =
    "# tracefs-config 1 version=7 expires=2027-01-01T00:00:00Z rollout=10%\n"
    "{ { op = read } }\n"
    "# tracefs-signature f16d6bbec5da974bbf2149a492ccb509c306ae50658d22fe12a5cf"
    "4a894c3a336d73cfcb202c5afdb59b28034a68cf5939e5a5901fb315d4def407f3c2999401"
    "\n";
constexpr uint64_t kExpires = 1798761600;  // date -d 2027-01-01Z +%s

ConfigFacts Facts(uint64_t version) {
  ConfigFacts facts;
  facts.version = version;
  return facts;
}

class VerifyConfigTest : public testing::Test {
 protected:
  // What it is refused for, "" if it is taken.
  std::string Refusal(std::string_view bytes, uint64_t now_s = 0) {
    ConfigRefusal why{};
    const auto config = VerifyConfig(bytes, keys_, now_s, &why);
    if (!config.ok()) {
      EXPECT_EQ(config.status().code(), StatusCode::kInvalid);
      text_ = config.status().message();
      return std::string(ConfigRefusalName(why));
    }
    config_ = *config;
    return "";
  }

  // Text that is signed as it is, whatever it says.
  static std::string Sealed(std::string_view text) {
    const auto signature = SignerOf(0).Sign(AsBytes(text));
    return std::string(text) + "# tracefs-signature " + Hex(*signature) + '\n';
  }

  std::vector<PublicKey> keys_ = {SignerOf(0).public_key()};
  SignedConfig config_;
  std::string text_;
};

TEST(SignConfigTest, WritesWhatAnotherProgramSigns) {
  const auto text =
      SignConfig({.version = 7, .expires_s = kExpires, .rollout = 1000},
                 kConfig, SignerOf(0));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, kSigned);
  // A last line without an end gets one, so that the signature stands alone.
  const auto open =
      SignConfig({.version = 7, .expires_s = kExpires, .rollout = 1000},
                 kConfig.substr(0, kConfig.size() - 1), SignerOf(0));
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(*open, kSigned);
}

TEST(SignConfigTest, FirstLineSaysTheShareWithoutNeedlessDigits) {
  const auto first_line = [](uint32_t rollout) {
    const std::string text = SignedText(1, kConfig, 0, rollout);
    return text.substr(0, text.find('\n'));
  };
  const std::string front =
      "# tracefs-config 1 version=1 expires=never rollout=";
  EXPECT_EQ(first_line(10'000), front + "100%");
  EXPECT_EQ(first_line(0), front + "0%");
  EXPECT_EQ(first_line(50), front + "0.5%");
  EXPECT_EQ(first_line(5), front + "0.05%");
  EXPECT_EQ(first_line(1234), front + "12.34%");
  EXPECT_EQ(first_line(9990), front + "99.9%");
}

TEST(SignConfigTest, RefusesASignedOneAndOneTooLarge) {
  const auto twice = SignConfig(Facts(8), kSigned, SignerOf(0));
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(twice.status().message(), HasSubstr("signed already"));

  // Exactly as large as may be is signed and taken; a byte more is neither.
  const size_t around = SignedText(1, "\n").size() - 1;
  std::string config(kMaxSignedConfigBytes - around, '#');
  config.back() = '\n';
  const auto largest = SignConfig(Facts(1), config, SignerOf(0));
  ASSERT_TRUE(largest.ok()) << largest.status().message();
  EXPECT_EQ(largest->size(), kMaxSignedConfigBytes);
  ConfigRefusal why{};
  const std::vector<PublicKey> keys = {SignerOf(0).public_key()};
  EXPECT_TRUE(VerifyConfig(*largest, keys, 0, &why).ok());
  const auto larger = SignConfig(Facts(1), '#' + config, SignerOf(0));
  ASSERT_FALSE(larger.ok());
  EXPECT_THAT(larger.status().message(), HasSubstr("1 MiB"));
}

TEST_F(VerifyConfigTest, TakesWhatAnotherProgramSigned) {
  ASSERT_EQ(Refusal(kSigned), "") << text_;
  EXPECT_EQ(config_.facts.version, 7u);
  EXPECT_EQ(config_.facts.expires_s, kExpires);
  EXPECT_EQ(config_.facts.rollout, 1000u);
  EXPECT_EQ(config_.text, kSigned);
  // sha256sum of the config alone: the same however often it is signed.
  EXPECT_EQ(config_.digest,
            "5648d817ff91642e48d5abee3ee15b4f0f4df492c254b5e922fdb9b6fbe17461");
}

TEST_F(VerifyConfigTest, AnyOfTheKeysWillDoAndNoneDoesNot) {
  const std::string text = SignedText(1, kConfig, 40);
  EXPECT_EQ(Refusal(text), "forged");
  keys_ = {SignerOf(0).public_key(), SignerOf(40).public_key()};
  EXPECT_EQ(Refusal(text), "");
  keys_ = {SignerOf(40).public_key(), SignerOf(0).public_key()};
  EXPECT_EQ(Refusal(text), "");
  keys_.clear();
  EXPECT_EQ(Refusal(text), "forged");
}

TEST_F(VerifyConfigTest, NoByteMayChange) {
  for (size_t i = 0; i < kSigned.size(); ++i) {
    std::string changed(kSigned);
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const std::string refused = Refusal(changed);
    EXPECT_TRUE(refused == "forged" || refused == "unsigned") << i;
  }
}

TEST_F(VerifyConfigTest, NothingMayFollowOrLack) {
  const std::string whole(kSigned);
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string refused = Refusal(whole.substr(0, size));
    EXPECT_TRUE(refused == "forged" || refused == "unsigned") << size;
  }
  EXPECT_EQ(Refusal(whole + "{ }\n"), "unsigned");
  EXPECT_EQ(Refusal(whole + "\n"), "unsigned");
  EXPECT_EQ(Refusal('\n' + whole), "unsigned");
  EXPECT_EQ(Refusal(whole.substr(0, whole.size() - 1) + "00\n"), "forged");
  // Two signatures: the second is of all before it, or of nothing.
  EXPECT_EQ(Refusal(whole + whole.substr(whole.rfind("# "))), "forged");
}

TEST_F(VerifyConfigTest, WhatNobodySignedIsUnsigned) {
  for (const char* text : {"", "\n", "x", "{ }\n", "# tracefs-config 1 \n",
                           "# tracefs-signature 00\n"}) {
    EXPECT_EQ(Refusal(text), "unsigned") << text;
    EXPECT_THAT(text_, HasSubstr("tracefs-keygen sign-config"));
  }
  EXPECT_EQ(Refusal("# tracefs-config 1 version=1 expires=never "
                    "rollout=1%\n# tracefs-signature \n"),
            "forged");
}

TEST_F(VerifyConfigTest, TooLargeIsNotEvenLookedAt) {
  EXPECT_EQ(Refusal(std::string(kMaxSignedConfigBytes, 'x')), "unsigned");
  EXPECT_EQ(Refusal(std::string(kMaxSignedConfigBytes + 1, 'x')), "unreadable");
}

TEST_F(VerifyConfigTest, ExpiresWithTheSecondItNames) {
  EXPECT_EQ(Refusal(kSigned, kExpires - 1), "");
  EXPECT_EQ(Refusal(kSigned, kExpires), "expired");
  EXPECT_THAT(text_, HasSubstr("2027-01-01T00:00:00Z"));
  EXPECT_EQ(Refusal(kSigned, kExpires + 1), "expired");
  // Who changed it is the graver matter.
  std::string forged(kSigned);
  forged[70] ^= 1;
  EXPECT_EQ(Refusal(forged, kExpires), "forged");
  EXPECT_EQ(Refusal(SignedText(1, kConfig), UINT64_MAX), "");
}

TEST_F(VerifyConfigTest, FirstLineHasThreeWordsInTheirOrder) {
  const auto sealed = [this](const std::string& words) {
    return Refusal(Sealed("# tracefs-config 1 " + words + "\n{ }\n"));
  };
  EXPECT_EQ(sealed("version=1 expires=never rollout=1%"), "");
  EXPECT_EQ(sealed("version=1 expires=never"), "unsigned");
  EXPECT_THAT(text_, HasSubstr("rollout="));
  EXPECT_EQ(sealed("version=1 rollout=1% expires=never"), "unsigned");
  EXPECT_THAT(text_, HasSubstr("expires="));
  EXPECT_EQ(sealed("expires=never version=1 rollout=1%"), "unsigned");
  EXPECT_THAT(text_, HasSubstr("version="));
  EXPECT_EQ(sealed("version=1 expires=never rollout=1% x"), "unsigned");
  EXPECT_THAT(text_, HasSubstr("too long"));
  EXPECT_EQ(sealed("version=0 expires=never rollout=1%"), "unsigned");
}

TEST(ConfigFactsTest, VersionsAreNumbersFromOneOn) {
  const auto version = [](std::string_view text) -> uint64_t {
    const auto facts = ParseConfigFacts(text, "never", "100%");
    return facts.ok() ? facts->version : 0;
  };
  EXPECT_EQ(version("1"), 1u);
  EXPECT_EQ(version("4294967295"), 4294967295u);
  for (const char* bad : {"0", "4294967296", "", "-1", "+1", " 1", "1 ", "x"}) {
    EXPECT_EQ(version(bad), 0u) << bad;
  }
}

TEST(ConfigFactsTest, DatesAreDaysOrSecondsOfUtc) {
  static constexpr uint64_t kNone = 1;  // no date that is tried here
  const auto date = [](std::string_view text) -> std::optional<uint64_t> {
    const auto facts = ParseConfigFacts("1", text, "100%");
    return facts.ok() ? facts->expires_s : kNone;
  };
  EXPECT_EQ(date("1970-01-01"), 0u);
  EXPECT_EQ(date("2027-01-01"), kExpires);
  EXPECT_EQ(date("2027-01-01T12:34:56Z"), 1798806896u);
  EXPECT_EQ(date("1970-01-02"), 86400u);
  EXPECT_EQ(date("never"), std::nullopt);
  for (const char* bad :
       {"", "Never", "2027", "2027-01-01T12:34:56", "2027-01-01 12:34:56Z",
        " 2027-01-01", "2027-01-01 ", "2027-13-01", "2027-01-32", "1969-12-31",
        "2027-01-01x", "2027-01-01T00:00:00Zx", "tomorrow"}) {
    EXPECT_EQ(date(bad), kNone) << bad;
  }
}

TEST(ConfigFactsTest, DaysThatNoCalendarHasAreRefused) {
  for (const char* bad : {"2027-02-29", "2027-02-31", "2027-04-31",
                          "2027-02-30T00:00:00Z", "2027-01-01T23:59:60Z"}) {
    EXPECT_FALSE(ParseConfigFacts("1", bad, "100%").ok()) << bad;
  }
  EXPECT_TRUE(ParseConfigFacts("1", "2028-02-29", "100%").ok());
}

TEST(ConfigFactsTest, SharesAreOfTenThousand) {
  const auto share = [](std::string_view text) -> uint32_t {
    const auto facts = ParseConfigFacts("1", "never", text);
    return facts.ok() ? facts->rollout : 99'999;
  };
  EXPECT_EQ(share("100%"), 10'000u);
  EXPECT_EQ(share("100.00%"), 10'000u);
  EXPECT_EQ(share("0%"), 0u);
  EXPECT_EQ(share("10%"), 1000u);
  EXPECT_EQ(share("0.5%"), 50u);
  EXPECT_EQ(share("0.05%"), 5u);
  EXPECT_EQ(share("12.34%"), 1234u);
  EXPECT_EQ(share("99.99%"), 9999u);
  for (const char* bad : {"", "%", "10", "101%", "100.01%", "100.1%", "1.%",
                          ".5%", "0.123%", "1.x%", "1./%", "1.:%", "-1%", "1%%",
                          "1.5.5%", "184467440737095517%"}) {
    EXPECT_EQ(share(bad), 99'999u) << bad;
  }
}

TEST(RolloutTest, PlacesOfHostsAreThoseOfAnotherProgram) {
  // int.from_bytes(sha256(b"tracefs-rollout\n" + host)[:8]) % 10000
  const std::pair<const char*, uint32_t> places[] = {
      {"alpha", 4496}, {"beta", 6576},  {"gamma", 8967},
      {"web-1", 9105}, {"web-2", 3711}, {"", 5067}};
  for (const auto& [host, place] : places) {
    EXPECT_FALSE(IsInRollout(host, place)) << host;
    EXPECT_TRUE(IsInRollout(host, place + 1)) << host;
    EXPECT_FALSE(IsInRollout(host, 0)) << host;
    EXPECT_TRUE(IsInRollout(host, 10'000)) << host;
  }
}

TEST(ConfigRefusalTest, HasANameEach) {
  EXPECT_EQ(ConfigRefusalName(ConfigRefusal::kUnreadable), "unreadable");
  EXPECT_EQ(ConfigRefusalName(ConfigRefusal::kUnsigned), "unsigned");
  EXPECT_EQ(ConfigRefusalName(ConfigRefusal::kForged), "forged");
  EXPECT_EQ(ConfigRefusalName(ConfigRefusal::kExpired), "expired");
  EXPECT_EQ(ConfigRefusalName(ConfigRefusal::kRolledBack), "rolled_back");
  EXPECT_EQ(ConfigRefusalName(ConfigRefusal::kForked), "forked");
}

}  // namespace
}  // namespace tracefs
