// The one config out of a folder that others fill.
#include "tracefs/signed/config_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "tests/unit/filters/output/temp_folder.h"
#include "tests/unit/signed/signing.h"
#include "tracefs/crypto/key_source.h"

namespace tracefs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfigFolderTest : public testing::Test {
 protected:
  ConfigFolderTest() {
    options_.folder = folder_.Path("configs");
    options_.keys = {SignerOf(0).public_key()};
    options_.host = "alpha";  // its place is 4496
    ::mkdir(options_.folder.c_str(), 0755);
  }

  void Put(const std::string& name, std::string_view text) {
    folder_.Write("configs/" + name, text);
  }

  // The version that is chosen; 0: none.
  uint64_t Chosen() {
    auto choice = ChooseConfig(options_);
    EXPECT_TRUE(choice.ok()) << choice.status().message();
    if (!choice.ok()) return 0;
    choice_ = *std::move(choice);
    return choice_.chosen ? choice_.chosen->config.facts.version : 0;
  }

  std::vector<std::string> Refused() const {
    std::vector<std::string> all;
    for (const RefusedConfig& one : choice_.refused) {
      all.push_back(one.file + " " + std::string(ConfigRefusalName(one.why)));
    }
    return all;
  }

  TempFolder folder_;
  ConfigFolderOptions options_;
  ConfigChoice choice_;
};

TEST_F(ConfigFolderTest, TakesTheHighestVersionWhateverItsName) {
  EXPECT_EQ(Chosen(), 0u);
  EXPECT_EQ(choice_.Text(), "there is none");
  Put("b.conf", SignedText(7, "{ }\n"));
  Put("c.conf", SignedText(3, "{ }\n"));
  EXPECT_EQ(Chosen(), 7u);
  Put("a.conf", SignedText(10, "{ x }\n"));
  EXPECT_EQ(Chosen(), 10u);
  EXPECT_EQ(choice_.chosen->file, options_.folder + "/a.conf");
  EXPECT_EQ(choice_.chosen->config.text, SignedText(10, "{ x }\n"));
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(ConfigFolderTest, LooksOnlyAtNamesOfConfigs) {
  Put("a.conf", SignedText(1, "{ }\n"));
  for (const char* name : {".hidden.conf", "b.conf.new", "conf", "b.con"}) {
    Put(name, SignedText(9, "{ }\n"));
  }
  EXPECT_EQ(Chosen(), 1u);
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(ConfigFolderTest, SaysWhatEachRefusedOneIs) {
  const std::string good = SignedText(1, "{ }\n");
  Put("a.conf", "{ }\n");
  Put("b.conf", SignedText(2, "{ }\n", 40));
  Put("c.conf", SignedText(3, "{ }\n", 0, 10'000, 1000));
  Put("d.conf", std::string(kMaxSignedConfigBytes + 1, '#'));
  Put("k.conf", good);
  ASSERT_EQ(::symlink("k.conf", (options_.folder + "/e.conf").c_str()), 0);
  ASSERT_EQ(::mkdir((options_.folder + "/f.conf").c_str(), 0755), 0);
  ASSERT_EQ(::mkfifo((options_.folder + "/g.conf").c_str(), 0600), 0);
  options_.now_s = 1000;
  EXPECT_EQ(Chosen(), 1u);
  EXPECT_THAT(Refused(),
              ElementsAre("a.conf unsigned", "b.conf forged", "c.conf expired",
                          "d.conf unreadable", "e.conf unreadable",
                          "f.conf unreadable", "g.conf unreadable"));
  EXPECT_THAT(choice_.refused[3].text, HasSubstr("larger than 1 MiB"));
  EXPECT_EQ(choice_.refused[4].text, "it is a link");
  EXPECT_EQ(choice_.refused[5].text, "it is no file");
  EXPECT_EQ(choice_.refused[6].text, "it is no file");
  options_.now_s = 999;
  EXPECT_EQ(Chosen(), 3u);
}

TEST_F(ConfigFolderTest, TextNamesEachRefusalAndTheOtherHosts) {
  Put("a\n.conf", "{ }\n");
  Put("b.conf", SignedText(2, "{ }\n", 40));
  Put("c.conf", SignedText(3, "{ }\n", 0, 4496));
  EXPECT_EQ(Chosen(), 0u);
  EXPECT_EQ(choice_.for_others, 1u);
  const std::string text = choice_.Text();
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("; b.conf: its signature is by none"));
  EXPECT_THAT(text, HasSubstr("; 1 config is rolled out to other hosts"));
  Put("d.conf", SignedText(4, "{ }\n", 0, 1));
  EXPECT_EQ(Chosen(), 0u);
  EXPECT_THAT(choice_.Text(),
              HasSubstr("; 2 configs are rolled out to other hosts"));
  choice_.refused.clear();
  EXPECT_EQ(choice_.Text(), "2 configs are rolled out to other hosts");
}

TEST_F(ConfigFolderTest, ARolloutIsForSomeHosts) {
  Put("a.conf", SignedText(1, "{ }\n"));
  Put("b.conf", SignedText(2, "{ }\n", 0, 4496));
  EXPECT_EQ(Chosen(), 1u);
  EXPECT_EQ(choice_.for_others, 1u);
  Put("b.conf", SignedText(2, "{ }\n", 0, 4497));
  EXPECT_EQ(Chosen(), 2u);
  EXPECT_EQ(choice_.for_others, 0u);
}

TEST_F(ConfigFolderTest, ALargeOneIsTakenToItsLastByte) {
  const size_t around = SignedText(1, "\n").size() - 1;
  std::string config(kMaxSignedConfigBytes - around, '#');
  config.back() = '\n';
  Put("a.conf", SignedText(1, config));
  EXPECT_EQ(Chosen(), 1u);
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(ConfigFolderTest, LookingLeavesNothingOpen) {
  Put("a.conf", SignedText(1, "{ }\n"));
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  EXPECT_EQ(Chosen(), 1u);
  const auto before = open_files();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Chosen(), 1u);
  EXPECT_EQ(open_files(), before);
}

TEST_F(ConfigFolderTest, TwoOfOneVersionAreAFork) {
  Put("a.conf", SignedText(5, "{ }\n"));
  Put("b.conf", SignedText(5, "{ other }\n"));
  EXPECT_EQ(Chosen(), 5u);
  EXPECT_EQ(choice_.chosen->file, options_.folder + "/a.conf");
  EXPECT_THAT(Refused(), ElementsAre("b.conf forked"));
  EXPECT_THAT(choice_.refused[0].text, HasSubstr("a.conf"));
  // The same config signed once more is the same config.
  Put("b.conf", SignedText(5, "{ }\n", 0, 10'000, 2'000'000'000));
  EXPECT_EQ(Chosen(), 5u);
  EXPECT_EQ(choice_.chosen->file, options_.folder + "/a.conf");
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(ConfigFolderTest, WhatWasTakenIsNotTakenBack) {
  Put("a.conf", SignedText(5, "{ }\n"));
  ASSERT_EQ(Chosen(), 5u);
  const std::string digest = choice_.chosen->config.digest;
  options_.taken = TakenConfig{5, digest};
  EXPECT_EQ(Chosen(), 5u);
  options_.taken = TakenConfig{4, "another"};
  EXPECT_EQ(Chosen(), 5u);
  options_.taken = TakenConfig{6, digest};
  EXPECT_EQ(Chosen(), 0u);
  EXPECT_THAT(Refused(), ElementsAre("a.conf rolled_back"));
  EXPECT_EQ(choice_.refused[0].text,
            "its version, 5, is older than 6, which was taken before");
  options_.taken = TakenConfig{5, "another"};
  EXPECT_EQ(Chosen(), 0u);
  EXPECT_THAT(Refused(), ElementsAre("a.conf forked"));
  EXPECT_EQ(choice_.refused[0].text,
            "it is another config of version 5, which was taken before");
}

TEST_F(ConfigFolderTest, WhatWasTakenMayBeGone) {
  options_.taken = TakenConfig{5, "digest"};
  EXPECT_EQ(Chosen(), 0u);
  EXPECT_THAT(Refused(), IsEmpty());
}

TEST_F(ConfigFolderTest, LooksAtSoManyAndNoMore) {
  const std::string text = SignedText(1, "{ }\n");
  for (size_t i = 0; i < kMaxConfigs - 1; ++i) {
    Put("b" + std::to_string(1000 + i) + ".conf", text);
  }
  Put("c.conf", SignedText(2, "{ }\n"));
  EXPECT_EQ(Chosen(), 2u);
  Put("a.conf", text);  // one more, before the last
  EXPECT_EQ(Chosen(), 1u);
}

TEST_F(ConfigFolderTest, AFolderThatIsNoneIsAnError) {
  options_.folder = folder_.Path("nowhere");
  auto choice = ChooseConfig(options_);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().code(), StatusCode::kSystem);
  EXPECT_EQ(choice.status().error(), ENOENT);
  EXPECT_THAT(choice.status().message(), HasSubstr(options_.folder));
}

class TakenTest : public testing::Test {
 protected:
  TempFolder folder_;
  const std::string digest_ = std::string(62, 'a') + "0f";
};

TEST_F(TakenTest, IsReadAsItWasWritten) {
  const std::string path = folder_.Path("some/where/taken");
  auto taken = ReadTaken(path);
  ASSERT_TRUE(taken.ok());
  EXPECT_FALSE(*taken);
  ASSERT_TRUE(WriteTaken(path, {42, digest_}).ok());
  EXPECT_EQ(TempFolder::Read(path),
            "tracefs-config-taken-1 42 " + digest_ + '\n');
  taken = ReadTaken(path);
  ASSERT_TRUE(taken.ok() && *taken);
  EXPECT_EQ((*taken)->version, 42u);
  EXPECT_EQ((*taken)->digest, digest_);
  ASSERT_TRUE(WriteTaken(path, {43, digest_}).ok());
  EXPECT_EQ((*ReadTaken(path))->version, 43u);
}

TEST_F(TakenTest, WhatSaysSomethingElseIsNotTakenForNothing) {
  const std::string path = folder_.Path("taken");
  for (const std::string& text :
       {std::string(), std::string("\n"), "tracefs-config-taken-2 1 " + digest_,
        "tracefs-config-taken-1 x " + digest_,
        "tracefs-config-taken-1 1 " + digest_.substr(2),
        "tracefs-config-taken-1 1 " + digest_ + "00",
        std::string("tracefs-config-taken-1 1")}) {
    folder_.Write("taken", text);
    const auto taken = ReadTaken(path);
    ASSERT_FALSE(taken.ok()) << text;
    EXPECT_EQ(taken.status().code(), StatusCode::kInvalid);
    EXPECT_THAT(taken.status().message(), HasSubstr(path));
  }
  // A link could lead to another's: it is not followed.
  const std::string link = folder_.Path("link");
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  const auto taken = ReadTaken(link);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.status().error(), ELOOP);
}

// "None was taken" would let an older config be taken again.
TEST_F(ConfigFolderTest, WhatWasTakenIsNotNothingWhereItCannotBeRead) {
  ASSERT_TRUE(std::filesystem::is_directory(options_.folder));
  const auto taken = ReadTaken(options_.folder);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.status().error(), EISDIR);
}

TEST_F(TakenTest, MakesFoldersThatOthersMayEnter) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(WriteTaken(folder_.Path("some/where/taken"), {1, digest_}).ok());
  ::umask(before);
  for (const char* name : {"some", "some/where"}) {
    struct stat st;
    ASSERT_EQ(::stat(folder_.Path(name).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0755u) << name;
  }
  // Below the working directory, too, by a name of one letter.
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder_.Path(""));
  EXPECT_TRUE(WriteTaken("a/taken", {2, digest_}).ok());
  std::filesystem::current_path(here);
  EXPECT_EQ((*ReadTaken(folder_.Path("a/taken")))->version, 2u);
}

TEST_F(TakenTest, WritingSaysWhichFolderCannotBe) {
  folder_.Write("file", "x");
  const Status status =
      WriteTaken(folder_.Path("file/below/taken"), {1, digest_});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error(), ENOTDIR);
  EXPECT_THAT(status.message(), HasSubstr(folder_.Path("file/below")));
}

TEST_F(TakenTest, DefaultFileIsOfItsFolder) {
  // sha256sum of the folder's path, its first 16 digits.
  const std::string file = DefaultTakenFile("/etc/configs");
  if (::geteuid() == 0) {
    EXPECT_EQ(file, "/var/lib/tracefs/configs/413845f5463f0f05");
  } else {
    EXPECT_EQ(file, std::string(std::getenv("HOME")) +
                        "/.local/state/tracefs/configs/413845f5463f0f05");
  }
}

TEST_F(TakenTest, DefaultFileOfAUserIsBelowHisHome) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(1);
    ::unsetenv("STATE_DIRECTORY");
    ::unsetenv("XDG_STATE_HOME");
    ::setenv("HOME", "/home/u", 1);
    if (DefaultTakenFile("/etc/configs") !=
        "/home/u/.local/state/tracefs/configs/413845f5463f0f05") {
      ::_exit(2);
    }
    ::unsetenv("HOME");
    ::_exit(DefaultTakenFile("/etc/configs") ==
                    "/nonexistent/.local/state/tracefs/configs/413845f5463f0f05"
                ? 0
                : 3);
  }
  int status;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

class ConfigKeysTest : public testing::Test {
 protected:
  std::string Public(const std::string& name, int first) {
    SecretKey key;
    std::ranges::copy(SignerOf(first).public_key(), key.get().begin());
    return folder_.Write(name, KeyLine(KeyKind::kSignPublic, key.get()) + '\n');
  }

  TempFolder folder_;
};

TEST_F(ConfigKeysTest, AreAllPublicKeysOfAllSources) {
  const std::string one = Public("one", 0), two = Public("two", 40);
  const auto keys = ReadConfigKeys({one, "file:" + two});
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_THAT(*keys,
              ElementsAre(SignerOf(0).public_key(), SignerOf(40).public_key()));
}

TEST_F(ConfigKeysTest, AtLeastOneIsNeededAndNoSecret) {
  EXPECT_THAT(ReadConfigKeys({}).status().message(),
              HasSubstr("--config-dir needs --config-key"));
  EXPECT_THAT(ReadConfigKeys({folder_.Path("none")}).status().message(),
              HasSubstr("--config-key: "));
  EXPECT_THAT(ReadConfigKeys({"file:"}).status().message(),
              HasSubstr("--config-key: "));
  const std::string path = folder_.Write(
      "secret", KeyLine(KeyKind::kSign, SecretKey().get()) + '\n');
  const auto keys = ReadConfigKeys({Public("public", 0), path});
  ASSERT_FALSE(keys.ok());
  EXPECT_EQ(keys.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(keys.status().message(), HasSubstr("more than public keys"));
}

TEST(HostNameTest, IsTheKernels) {
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  EXPECT_EQ(HostName(), name);
}

}  // namespace
}  // namespace tracefs
