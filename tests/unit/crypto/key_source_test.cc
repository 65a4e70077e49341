// Keys from files, variables and the keyring; and none of them ever repeated.
#include "tracefs/crypto/key_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/hex.h"
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

TEST(KeySourceTest, BlanksAroundALineAreNoPartOfIt) {
  KeyEntry entry;
  for (const std::string& line :
       {"  tracefs-secret-1 " + kDigits, "tracefs-secret-1   " + kDigits,
        "tracefs-secret-1 " + kDigits + " \r",
        "\ttracefs-secret-1 " + kDigits}) {
    EXPECT_TRUE(ParseKeyLine(line, &entry)) << line;
    EXPECT_EQ(entry.kind, KeyKind::kSecret);
  }
  EXPECT_FALSE(ParseKeyLine("tracefs-secret-1" + kDigits, &entry));
  EXPECT_FALSE(ParseKeyLine("tracefs-secret-2 " + kDigits, &entry));
}

TEST(KeySourceTest, AnArgumentIsAPlaceOrAFile) {
  const auto source = ParseKeyArgument("env:KEY");
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->place, KeySource::Place::kEnvironment);
  EXPECT_EQ(source->name, "KEY");
  for (const std::string& path :
       {std::string("a/file"), std::string("other:file")}) {
    const auto file = ParseKeyArgument(path);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->place, KeySource::Place::kFile);
    EXPECT_EQ(file->name, path);
  }
  EXPECT_FALSE(ParseKeyArgument("env:").ok());
}

TEST(KeySourceTest, EachBitForOthersMayHaveGivenItAway) {
  TempFolder folder;
  const std::string path = folder.Write("key", kLine);
  for (mode_t bit = 1; bit <= 040; bit <<= 1) {
    ASSERT_EQ(::chmod(path.c_str(), 0600 | bit), 0);
    EXPECT_NE(Message(ReadFile(path)).find("replace the key if somebody"),
              std::string::npos)
        << bit;
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

TEST(KeySourceTest, AFileOfSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners take root";
  TempFolder folder;
  const std::string path = folder.Path("key");
  folder.Write("key", kLine);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const KeySource source{KeySource::Place::kFile, path};
  EXPECT_TRUE(ReadKey(source, KeyKind::kSecret).ok());
  EXPECT_TRUE(ReadSecretText(source).ok());
  ASSERT_EQ(::chown(path.c_str(), 1234, 1234), 0);
  EXPECT_NE(Message(ReadKey(source, KeyKind::kSecret)).find("user 1234"),
            std::string::npos);
  EXPECT_FALSE(ReadSecretText(source).ok());
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

TEST(KeySourceTest, AnEmptyFileHoldsNoKey) {
  const TempFolder folder;
  EXPECT_NE(Message(ReadFile(folder.Write("k", ""))).find("holds no key"),
            std::string::npos);
  // As large as may be, and a byte more.
  std::string large = kLine;
  large.resize(kMaxKeyFileBytes - 1, '\n');
  EXPECT_TRUE(ReadFile(folder.Write("k", large)).ok());
  EXPECT_NE(Message(ReadFile(folder.Write("k", large + '\n'))).find("too long"),
            std::string::npos);
}

TEST(KeySourceTest, AVariableMayBeAsLongAsAFile) {
  const KeySource source{KeySource::Place::kEnvironment, "TRACEFS_TEST_KEY"};
  std::string large = kLine;
  large.resize(kMaxKeyFileBytes - 1, '\n');
  ::setenv("TRACEFS_TEST_KEY", large.c_str(), 1);
  EXPECT_TRUE(ReadKey(source, KeyKind::kSecret).ok());
  ::setenv("TRACEFS_TEST_KEY", (large + '\n').c_str(), 1);
  EXPECT_NE(Message(ReadKey(source, KeyKind::kSecret)).find("too long"),
            std::string::npos);
  ::unsetenv("TRACEFS_TEST_KEY");
}

// What somebody else has opened for a process that cannot.
TEST(KeySourceTest, ReadsWhatItIsGiven) {
  const TempFolder folder;
  const auto given = [&](mode_t mode) {
    const std::string path = folder.Write("k", kLine, mode);
    return std::make_shared<const UniqueFd>(
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  };
  KeySource source{KeySource::Place::kFile, "/nowhere", given(0600)};
  const auto key = ReadKey(source, KeyKind::kSecret);
  ASSERT_TRUE(key.ok()) << key.status().message();
  EXPECT_EQ(Hex(key->get()), kDigits);
  EXPECT_TRUE(ReadSecretText(source).ok());
  // Its mode counts as if it had been opened here.
  source.given = given(0640);
  EXPECT_NE(Message(ReadKey(source, KeyKind::kSecret)).find("chmod 600"),
            std::string::npos);
  EXPECT_FALSE(ReadSecretText(source).ok());
  // Anywhere else it is unknown text.
  source.place = KeySource::Place::kCredential;
  EXPECT_TRUE(ReadKey(source, KeyKind::kSecret).ok());
  EXPECT_TRUE(ReadSecretText(source).ok());
}

TEST(KeySourceTest, ReadsACredentialOfTheServiceManager) {
  const TempFolder folder;
  const auto read = [](const std::string& name) {
    return ReadKey({KeySource::Place::kCredential, name}, KeyKind::kSecret);
  };
  ::unsetenv("CREDENTIALS_DIRECTORY");
  EXPECT_NE(Message(read("k")).find("LoadCredential="), std::string::npos);
  ::setenv("CREDENTIALS_DIRECTORY", "relative", 1);
  EXPECT_NE(Message(read("k")).find("LoadCredential="), std::string::npos);
  ::setenv("CREDENTIALS_DIRECTORY", folder.Path("").c_str(), 1);
  EXPECT_EQ(read("missing").status().error(), ENOENT);
  for (const char* path : {"..", ".", "a/b", "/k"}) {
    EXPECT_NE(Message(read(path)).find("not a path"), std::string::npos);
  }
  // An ACL that lets the service read shows as a right of the group.
  for (const mode_t mode : {0400, 0600, 0440, 0640}) {
    folder.Write("k", kLine, mode);
    EXPECT_TRUE(read("k").ok()) << mode;
  }
  for (const mode_t mode : {0444, 0460, 0410, 0402, 0401}) {
    folder.Write("k", kLine, mode);
    EXPECT_FALSE(read("k").ok()) << mode;
  }
  ::unsetenv("CREDENTIALS_DIRECTORY");
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
