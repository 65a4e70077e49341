#include "anonymize/key_set.h"

#include <gtest/gtest.h>

#include "anonymize/session.h"
#include "tests/support/memory_scan.h"
#include "tests/unit/anonymize/anon_world.h"
#include "tracefs/base/hex.h"
#include "tracefs/crypto/hash.h"

namespace tracefs::anonymize {
namespace {

DerivedKey SampleKey() {
  DerivedKey key;
  key.domain = "name";
  key.day = "2026-11-21";
  key.subtree = "/with blank/\xff,:";
  key.domain_key_id = "0123456789abcdef";
  key.key = DomainKey(TestKeys().master(), "name", "");
  return key;
}

TEST(KeySet, DomainsDaysAndDirectoriesHaveKeysOfTheirOwn) {
  const KeySet keys = TestKeys();
  std::vector<SecretKey> all;
  all.push_back(DomainKey(keys.master(), "uid", ""));
  all.push_back(DomainKey(keys.master(), "gid", ""));
  all.push_back(DomainKey(keys.master(), "uid", "2026-11-21"));
  all.push_back(TreeRootKey(all[0].get()));
  all.push_back(TreeChildKey(all[3].get(), "home"));
  all.push_back(TreeChildKey(all[3].get(), "tmp"));
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(EqualSecrets(all[i].get(), all[j].get())) << i << ' ' << j;
    }
  }
}

// Whoever reads our memory later gets keys of single domains, not the one that
// opens every trace.
TEST(KeySet, TheMasterIsNowhereInMemoryOnceItIsForgotten) {
  const test::Masked master(test::KeyNumber(1).get());
  KeySet keys;
  keys.SetMaster(test::KeyNumber(1));
  EXPECT_GE(test::CopiesInMemory(master), 1U);
  const Result<Policy> policy = ParsePolicy(
      KeepAllBut("name = encrypt tree;\nuid = fpe;\ncomm = hmac;\n"), "p");
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  format::SelfDescription description;
  const std::vector<std::byte> start = format::EncodeStartBlock({});
  ASSERT_TRUE(format::ReadStart(
      ByteSpan(start).subspan(format::kMessageHeaderBytes), &description));
  const auto plan = MakeHidePlan(*policy, keys, description);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  keys.ForgetMaster();
  EXPECT_EQ(test::CopiesInMemory(master), 0U);
  EXPECT_FALSE(keys.has_master());
  // What was derived is still there.
  const SecretKey uid = DomainKey(test::KeyNumber(1).get(), "uid", "");
  EXPECT_EQ((*plan)->key_ids().at("uid"), KeyIdText(IdOfKey(uid.get())));
  EXPECT_GE(test::CopiesInMemory(test::Masked(uid.get())), 2U);
}

TEST(KeySet, LinesComeBack) {
  const DerivedKey key = SampleKey();
  KeySet keys;
  ASSERT_TRUE(
      keys.AddText("# comment\n" + *DerivedKeyLine(key, {}) + "\n", "f").ok());
  ASSERT_EQ(keys.derived().size(), 1U);
  const DerivedKey& back = keys.derived()[0];
  EXPECT_EQ(back.domain, key.domain);
  EXPECT_EQ(back.day, key.day);
  EXPECT_EQ(back.subtree, key.subtree);
  EXPECT_EQ(back.domain_key_id, key.domain_key_id);
  EXPECT_TRUE(EqualSecrets(back.key.get(), key.key.get()));
  // That of a subtree is not that of the domain.
  EXPECT_FALSE(keys.Find("name", "2026-11-21"));
}

TEST(KeySet, WrappedKeysNeedTheIdentity) {
  SecretKey identity;
  ASSERT_TRUE(RandomBytes(identity.get()).ok());
  const AgeRecipient recipients[] = {*RecipientOfIdentity(identity.get())};
  const DerivedKey key = SampleKey();
  const std::string line = *DerivedKeyLine(key, recipients);
  EXPECT_EQ(line.find(Hex(key.key.get())), std::string::npos);
  KeySet without;
  EXPECT_NE(without.AddText(line, "f").message().find("identity"),
            std::string::npos);
  KeySet with;
  // In whatever order.
  ASSERT_TRUE(
      with.AddText(line + "\n" + AgeIdentityText(identity.get()), "f").ok());
  EXPECT_TRUE(EqualSecrets(with.derived()[0].key.get(), key.key.get()));
}

TEST(KeySet, BadInput_NothingIsRepeatedInMessages) {
  for (const char* text :
       {"", "# only a comment", "tracefs-anon-key-1 uid - SECRETSECRET",
        "tracefs-anon-key-1 uid when:ever 00", "SECRETSECRET",
        "tracefs-anon-wrapped-1 uid - SECRETSECRET",
        "tracefs-anon-key-1 uid tree:SECRETSECRET 00"}) {
    KeySet keys;
    const Status status = keys.AddText(text, "the file");
    EXPECT_EQ(status.code(), StatusCode::kInvalid) << text;
    EXPECT_EQ(status.message().find("SECRET"), std::string::npos);
    EXPECT_NE(status.message().find("the file"), std::string::npos);
  }
}

TEST(KeySet, BadInput_AScopeThatIsNone) {
  const std::string key = ' ' + std::string(64, '0');
  for (const auto& [scope, good] : {std::pair("-", true),
                                    {"day:2026-11-21", true},
                                    {"day:2026", false},
                                    {"day:", false},
                                    {"tree:id", false},
                                    {"tree:id:L2E", true},
                                    {"tree:id:L2E*", false},
                                    {"day:2026-11-21,tree:id:L2E", true},
                                    {"day:2026-11-21,", true},
                                    {"day:2026-11-21,x", false},
                                    {"", false},
                                    {"x", false}}) {
    KeySet keys;
    const std::string line =
        "tracefs-anon-key-1 uid " + std::string(scope) + key;
    EXPECT_EQ(keys.AddText(line, "f").ok(), good) << line;
  }
}

TEST(KeySet, DaysAreThoseOfUtc) {
  EXPECT_EQ(DayOf(0), "1970-01-01");
  EXPECT_EQ(DayOf(1'767'323'045'000'000'000), "2026-01-02");
  EXPECT_TRUE(IsDay("2026-11-21"));
  EXPECT_FALSE(IsDay("2026-1-21"));
  EXPECT_FALSE(IsDay("2026/11/21"));
}

}  // namespace
}  // namespace tracefs::anonymize
