// Keys from files, variables and the keyring; and none of them ever repeated.
#include "tracefs/crypto/key_source.h"

#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/crypto/hash.h"

namespace tracefs {
namespace {

const std::string kDigits =
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const std::string kLine = "tracefs-secret-1 " + kDigits + "\n";

Result<SecretKey> ReadFile(const std::string& path,
                           KeyKind kind = KeyKind::kSecret) {
  return ReadKey({KeySource::Place::kFile, path}, kind);
}

// The message of a failure, which must not hold any of the key.
std::string Message(const Result<SecretKey>& result) {
  if (result.ok()) return "(ok)";
  EXPECT_EQ(result.status().message().find("33445566"), std::string::npos);
  return result.status().message();
}

TEST(KeySourceTest, NamesAPlace) {
  EXPECT_EQ(ParseKeySource("file:/a/b")->name, "/a/b");
  EXPECT_EQ(ParseKeySource("env:NAME")->place, KeySource::Place::kEnvironment);
  EXPECT_EQ(ParseKeySource("keyring:tracefs:a")->name, "tracefs:a");
}

TEST(KeySourceTest, AKeyInTheConfigIsRefusedAndNotRepeated) {
  for (const std::string& text :
       {kDigits, kLine, std::string("file:"), std::string("/etc/key"),
        std::string("AGE-SECRET-KEY-133445566")}) {
    const auto source = ParseKeySource(text);
    ASSERT_FALSE(source.ok());
    EXPECT_EQ(source.status().code(), StatusCode::kInvalid);
    EXPECT_EQ(source.status().message().find("33445566"), std::string::npos);
  }
}

TEST(KeySourceTest, ReadsAFile) {
  const TempFolder folder;
  const auto key = ReadFile(
      folder.Write("k", "# made for a test\n\n  " + kLine + "# end", 0400));
  ASSERT_TRUE(key.ok()) << key.status().message();
  EXPECT_EQ(Hex(key->get()), kDigits);
}

TEST(KeySourceTest, EveryKindOfLineRoundTrips) {
  SecretKey key;
  ASSERT_TRUE(FromHex(kDigits, key.get()));
  for (const KeyKind kind :
       {KeyKind::kSecret, KeyKind::kSealVerify, KeyKind::kSign,
        KeyKind::kSignPublic, KeyKind::kAgeIdentity}) {
    KeyEntry entry;
    ASSERT_TRUE(ParseKeyLine(KeyLine(kind, key.get()), &entry));
    EXPECT_EQ(entry.kind, kind);
    EXPECT_EQ(Hex(std::as_const(entry.key).get()), kDigits);
  }
}

TEST(KeySourceTest, AFileThatOthersCanReadIsRefused) {
  const TempFolder folder;
  for (const mode_t mode : {0640, 0604, 0660, 0601, 0777}) {
    const std::string message =
        Message(ReadFile(folder.Write("k", kLine, mode)));
    EXPECT_NE(message.find("chmod 600"), std::string::npos) << message;
  }
}

TEST(KeySourceTest, APublicKeyMayBePublic) {
  const TempFolder folder;
  EXPECT_TRUE(
      ReadFile(folder.Write("k", "tracefs-sign-public-1 " + kDigits, 0644),
               KeyKind::kSignPublic)
          .ok());
}

TEST(KeySourceTest, ShortLongAndForeignKeysAreRefused) {
  const TempFolder folder;
  const std::string identity(
      "AGE-SECRET-KEY-1XGNK0ZWATSLQ6JU5A5ANTWYSX2UKDS5CM2EP4ZY82MND3VMR7MHSQ5E"
      "0GQ");  // its last digit is wrong
  for (const std::string& text :
       {"tracefs-secret-1 " + kDigits.substr(2),
        "tracefs-secret-1 " + kDigits + "00", std::string("tracefs-secret-1"),
        kDigits, "tracefs-secret-2 " + kDigits,
        std::string("-----BEGIN PRIVATE KEY-----"), identity}) {
    const std::string message = Message(ReadFile(folder.Write("k", text)));
    EXPECT_NE(message.find("line 1 is no key"), std::string::npos) << message;
  }
  EXPECT_NE(Message(ReadFile(folder.Write("k", "# nothing\n"))).find("no key"),
            std::string::npos);
  EXPECT_NE(
      Message(ReadFile(folder.Write("k", kLine + kLine))).find("more than one"),
      std::string::npos);
  EXPECT_NE(Message(ReadFile(folder.Write("k", kLine), KeyKind::kSign))
                .find("not hold a signing key"),
            std::string::npos);
}

TEST(KeySourceTest, WhatIsNoFileIsRefused) {
  const TempFolder folder;
  EXPECT_EQ(ReadFile(folder.Path("missing")).status().code(),
            StatusCode::kSystem);
  EXPECT_FALSE(ReadFile(folder.Path("")).ok());
  EXPECT_FALSE(ReadFile("/dev/null").ok());
  ASSERT_EQ(::mkfifo(folder.Path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ReadFile(folder.Path("fifo")).ok());  // and does not hang
  EXPECT_FALSE(
      ReadFile(folder.Write("big", std::string(kMaxKeyFileBytes, '#'))).ok());
}

TEST(KeySourceTest, ReadsAVariable) {
  const KeySource source{KeySource::Place::kEnvironment, "TRACEFS_TEST_KEY"};
  ::unsetenv("TRACEFS_TEST_KEY");
  EXPECT_NE(Message(ReadKey(source, KeyKind::kSecret)).find("is not set"),
            std::string::npos);
  ::setenv("TRACEFS_TEST_KEY", kLine.c_str(), 1);
  const auto key = ReadKey(source, KeyKind::kSecret);
  ::unsetenv("TRACEFS_TEST_KEY");
  ASSERT_TRUE(key.ok()) << key.status().message();
  EXPECT_EQ(Hex(key->get()), kDigits);
}

TEST(KeySourceTest, ReadsTheKeyring) {
  const std::string name = "tracefs-test-" + std::to_string(::getpid());
  const long id = ::syscall(SYS_add_key, "user", name.c_str(), kLine.data(),
                            kLine.size(), KEY_SPEC_PROCESS_KEYRING);
  if (id < 0) GTEST_SKIP() << "no kernel keyring here: errno " << errno;
  const auto key =
      ReadKey({KeySource::Place::kKeyring, name}, KeyKind::kSecret);
  ::syscall(SYS_keyctl, KEYCTL_UNLINK, id, KEY_SPEC_PROCESS_KEYRING);
  ASSERT_TRUE(key.ok()) << key.status().message();
  EXPECT_EQ(Hex(key->get()), kDigits);
}

}  // namespace
}  // namespace tracefs
