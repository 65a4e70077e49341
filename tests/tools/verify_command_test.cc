// tracefs-keygen, tracefs-verify and tracefs-dump --key as a user runs them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/tools/shell.h"
#include "tests/unit/filters/output/chain_end.h"
#include "tests/unit/filters/output/filter_chain.h"
#include "tests/unit/tools/sealed_trace.h"

namespace tracefs {
namespace {

class VerifyCommandTest : public testing::Test {
 protected:
  // Runs a shell command in the folder.
  Outcome Run(const std::string& command) {
    return RunInShell(folder_.Path(""), command);
  }
  Outcome Keygen(const std::string& arguments) {
    return Run(TRACEFS_KEYGEN " " + arguments);
  }
  Outcome Verify(const std::string& arguments) {
    return Run(TRACEFS_VERIFY " " + arguments);
  }

  TempFolder folder_;
};

TEST_F(VerifyCommandTest, MakesKeysThatOnlyTheOwnerCanRead) {
  EXPECT_EQ(Keygen("secret a").status, 0);
  EXPECT_EQ(Keygen("seal b c").status, 0);
  EXPECT_EQ(Keygen("sign d e").status, 0);
  const Outcome age = Keygen("age f");
  EXPECT_EQ(age.status, 0);
  EXPECT_EQ(age.output.substr(0, 4), "age1");
  EXPECT_EQ(age.output.size(), 63u);
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    struct stat st;
    ASSERT_EQ(::stat(folder_.Path(name).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0600u) << name;
  }
}

TEST_F(VerifyCommandTest, KeysAreDifferentEachTime) {
  ASSERT_EQ(Keygen("secret a").status, 0);
  ASSERT_EQ(Keygen("secret b").status, 0);
  EXPECT_NE(TempFolder::Read(folder_.Path("a")),
            TempFolder::Read(folder_.Path("b")));
}

TEST_F(VerifyCommandTest, KeysNeverReplaceAFile) {
  folder_.Write("a", "precious");
  const Outcome outcome = Keygen("secret a");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.output.find("never replace"), std::string::npos);
  EXPECT_EQ(TempFolder::Read(folder_.Path("a")), "precious");
  // Nor is one of a pair left alone.
  EXPECT_EQ(Keygen("seal a v").status, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("v")));
  EXPECT_EQ(Keygen("sign p a").status, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("p")));
  // Not through a link either.
  std::filesystem::create_symlink(folder_.Path("elsewhere"),
                                  folder_.Path("link"));
  EXPECT_EQ(Keygen("secret link").status, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("elsewhere")));
}

TEST_F(VerifyCommandTest, WrongUsageIsTold) {
  for (const char* arguments : {"", "potato a", "secret", "secret a b",
                                "seal a", "secret --fast", "secret ''"}) {
    const Outcome outcome = Keygen(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_FALSE(outcome.output.empty());
  }
  EXPECT_EQ(Keygen("--help").status, 0);
  EXPECT_EQ(Keygen("--version").status, 0);
  EXPECT_EQ(Verify("").status, 2);
  EXPECT_EQ(Verify("--help").status, 0);
  EXPECT_EQ(Verify("--version").status, 0);
  EXPECT_EQ(Verify("--key nothing-here x").status, 3);
}

TEST_F(VerifyCommandTest, FromKeygenToVerdicts) {
  ASSERT_EQ(Keygen("seal state verify").status, 0);
  ASSERT_EQ(Keygen("sign private public").status, 0);
  const Outcome age = Keygen("age identity");
  const std::string filters =
      "compress; encrypt recipient = " + age.output.substr(0, 62) +
      "; checksum seal = forward key = \"file:" + folder_.Path("state") +
      "\" sign = ed25519 sign_key = \"file:" + folder_.Path("private") +
      "\" anchor = \"file:" + folder_.Path("anchors") + "\";";
  SealedTrace trace = SealedTrace::Make(filters, 20, TestSerial());
  folder_.Write("t", trace.Bytes(), 0644);
  for (const char* arguments :
       {"--key verify t", "--key public t", "--key verify --key public t",
        "--key verify --anchors anchors t", "--key verify - < t",
        "--key file:verify t"}) {
    const Outcome outcome = Verify(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << ": " << outcome.output;
    EXPECT_EQ(outcome.output.substr(0, 3), "ok ") << arguments;
  }
  const Outcome dump =
      Run(TRACEFS_DUMP " --header --key identity t | grep filter.text");
  EXPECT_NE(dump.output.find("op = open"), std::string::npos) << dump.output;
  // Not readable with the key that verifies.
  EXPECT_NE(Run(TRACEFS_DUMP " --key verify t").status, 0);

  trace.frames.erase(trace.frames.begin() + 7);
  folder_.Write("t", trace.Bytes(), 0644);
  const Outcome outcome = Verify("--key verify t");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("missing  t  7 "), std::string::npos)
      << outcome.output;
}

TEST_F(VerifyCommandTest, ReadingSaysThatNoKeyGivenProvesWhatWasRead) {
  ASSERT_EQ(Keygen("secret k").status, 0);
  ASSERT_EQ(Keygen("secret other").status, 0);
  const std::string key = "key = \"file:" + folder_.Path("k") + "\";";
  folder_.Write("sealed",
                SealedTrace::Make("checksum " + key, 4, TestSerial()).Bytes(),
                0644);
  folder_.Write("plain", SealedTrace::Make("", 4, TestSerial()).Bytes(), 0644);
  for (const auto& [arguments, proven] : {std::pair{" --key k sealed", true},
                                          {" --key other sealed", false},
                                          {" --key k plain", false},
                                          {" plain", true},
                                          {" sealed", true}}) {
    for (const std::string how : {"", " --stats"}) {
      const Outcome outcome = Run(TRACEFS_DUMP + how + arguments);
      EXPECT_EQ(outcome.status, 0) << arguments << ": " << outcome.output;
      EXPECT_EQ(outcome.output.find("not all sealed") == std::string::npos,
                proven)
          << arguments << ": " << outcome.output;
    }
  }
}

// The next step is not cut off, whoever is asked.
TEST_F(VerifyCommandTest, AMissingOrWrongKeyIsNamedWithTheNextStep) {
  ASSERT_EQ(Keygen("secret k").status, 0);
  ASSERT_EQ(Keygen("secret other").status, 0);
  const SealedTrace trace = SealedTrace::Make(
      "encrypt key = \"file:" + folder_.Path("k") + "\";", 4, TestSerial());
  folder_.Write("t", trace.Bytes(), 0644);
  EXPECT_EQ(Run(TRACEFS_DUMP " --key k t").status, 0);
  for (const std::string command :
       {TRACEFS_DUMP " t", TRACEFS_DUMP " --key other t",
        TRACEFS_VERIFY " --key other t"}) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_NE(outcome.output.find("name the file that holds it with --key"),
              std::string::npos)
        << command << outcome.output;
  }
}

TEST_F(VerifyCommandTest, AKeyThatOthersCanReadIsRefused) {
  ASSERT_EQ(Keygen("secret k").status, 0);
  ::chmod(folder_.Path("k").c_str(), 0644);
  const Outcome outcome = Verify("--key k t");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.output.find("chmod 600"), std::string::npos);
}

TEST_F(VerifyCommandTest, KeysNeverShowInMessages) {
  ASSERT_EQ(Keygen("secret k").status, 0);
  std::string key = TempFolder::Read(folder_.Path("k"));
  key = key.substr(key.size() - 65, 64);
  const SealedTrace trace = SealedTrace::Make(
      "checksum key = \"file:" + folder_.Path("k") + "\";", 4, TestSerial());
  EXPECT_EQ(trace.Bytes().find(key), std::string::npos);
  folder_.Write("t", trace.Bytes().substr(0, 500));
  const Outcome outcome = Verify("--key k t");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output.find(key), std::string::npos);
}

}  // namespace
}  // namespace tracefs
