// tracefs-anon and tracefs-keygen --derive as a user runs them.
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include "tests/unit/tools/sealed_trace.h"

namespace tracefs {
namespace {

constexpr char kGolden[] = GOLDEN_FOLDER "/v1/";
// Those that are whole and hold nothing of a later version.
constexpr const char* kTraces[] = {"aggregates",     "awkward_names",
                                   "changed",        "every_operation",
                                   "worked_example", "order_and_resolution"};
constexpr const char* kProfiles[] = {"research", "public", "partner",
                                     "ids-share", "paper"};

struct Outcome {
  int status = -1;
  std::string output;  // both streams
};

class AnonCommandTest : public testing::Test {
 protected:
  AnonCommandTest() {
    EXPECT_EQ(Run(TRACEFS_KEYGEN " secret k").status, 0);
    EXPECT_EQ(Run(TRACEFS_KEYGEN " secret other").status, 0);
  }

  // Runs a shell command in the folder.
  Outcome Run(const std::string& command) {
    Outcome outcome;
    FILE* const pipe = ::popen(
        ("cd " + folder_.Path("") + " && { " + command + "; } 2>&1").c_str(),
        "re");
    char part[4096];
    while (const size_t n = ::fread(part, 1, sizeof part, pipe)) {
      outcome.output.append(part, n);
    }
    const int status = ::pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }
  Outcome Anon(const std::string& arguments) {
    return Run(TRACEFS_ANON " " + arguments);
  }
  // The command must fail so, say so, and leave no such file.
  void ExpectRefused(const std::string& arguments, int status,
                     const std::string& message, const char* output = "out") {
    const Outcome outcome = Anon(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << '\n' << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos)
        << arguments << '\n'
        << outcome.output;
    EXPECT_NE(Run("test -e " + std::string(output)).status, 0) << arguments;
  }
  static std::string Golden(const std::string& name) {
    return kGolden + name + ".trace";
  }

  TempFolder folder_;
};

// Traces of the first format version stay readable, and what is made of them
// is a trace for every reader.
TEST_F(AnonCommandTest, GoldenTracesCanBeHiddenReadVerifiedAndAudited) {
  for (const std::string trace : kTraces) {
    for (const std::string profile : kProfiles) {
      const std::string out = trace + "." + profile;
      const Outcome hidden = Anon("--policy " + profile + " --keys k " +
                                  Golden(trace) + " " + out);
      ASSERT_EQ(hidden.status, 0) << out << '\n' << hidden.output;
      // The original may tell of losses, and so does what is made of it.
      const int before = Run(TRACEFS_DUMP " " + Golden(trace)).status;
      EXPECT_EQ(Run(TRACEFS_DUMP " " + out).status, before) << out;
      const Outcome verified = Run(TRACEFS_VERIFY " --accept-unsealed " + out);
      EXPECT_EQ(
          verified.status,
          Run(TRACEFS_VERIFY " --accept-unsealed " + Golden(trace)).status)
          << out << verified.output;
      const Outcome python =
          Run("python3 " GOLDEN_FOLDER "/independent_reader.py " + out +
              " | wc -l");
      EXPECT_EQ(python.output,
                Run("python3 " GOLDEN_FOLDER "/independent_reader.py " +
                    Golden(trace) + " | wc -l")
                    .output)
          << out;
    }
  }
}

TEST_F(AnonCommandTest, WhatIsRevealedIsListedAsTheOriginal) {
  for (const std::string trace : kTraces) {
    const Outcome outcome =
        Run(TRACEFS_ANON " -q --policy partner --keys k " + Golden(trace) +
            " a." + trace + " && " TRACEFS_ANON " -q --reveal all --keys k a." +
            trace + " b." + trace);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(
        Run(TRACEFS_DUMP " --format jsonl b." + trace + " 2>/dev/null").output,
        Run(TRACEFS_DUMP " --format jsonl " + Golden(trace) + " 2>/dev/null")
            .output)
        << trace;
  }
}

TEST_F(AnonCommandTest, WorksInAPipe) {
  const std::string trace = Golden("every_operation");
  ASSERT_EQ(Anon("-q --policy research --keys k " + trace + " file").status, 0);
  const Outcome piped = Run("cat " + trace +
                            " | " TRACEFS_ANON
                            " --policy research --keys k - - 2>/dev/null | cmp "
                            "- file");
  EXPECT_EQ(piped.status, 0) << piped.output;
}

TEST_F(AnonCommandTest, SeveralInputsGoToAFolderWithTheSameTokens) {
  ASSERT_EQ(
      Run("mkdir d && cp " + Golden("every_operation") + " one && cp one two")
          .status,
      0);
  const Outcome outcome = Anon("--policy research --keys k one two d");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(Run("cmp d/one d/two").status, 0);
  ExpectRefused("--policy research --keys k one two out", 2, "need a folder");
}

TEST_F(AnonCommandTest, DerivedKeysRevealWhatTheyAreFor) {
  const std::string trace = Golden("every_operation");
  ASSERT_EQ(Anon("-q --policy research --keys k " + trace + " a").status, 0);
  ASSERT_EQ(Run(TRACEFS_KEYGEN " --derive uid --key k uid.key").status, 0);
  const Outcome revealed = Anon("-q --reveal uid --keys uid.key a b");
  EXPECT_EQ(revealed.status, 0) << revealed.output;
  const std::string uids =
      " --format jsonl 2>/dev/null | grep -o "
      "'\"uid\":[0-9]*'";
  EXPECT_EQ(Run(TRACEFS_DUMP " b" + uids).output,
            Run(TRACEFS_DUMP " " + trace + uids).output);
  EXPECT_NE(Run(TRACEFS_DUMP " a" + uids).output,
            Run(TRACEFS_DUMP " " + trace + uids).output);
  ExpectRefused("--reveal gid --keys uid.key a out", 2,
                "no key for domain gid");
}

TEST_F(AnonCommandTest, WrappedKeysNeedTheAgeIdentity) {
  const std::string trace = Golden("every_operation");
  ASSERT_EQ(Anon("-q --policy research --keys k " + trace + " a").status, 0);
  const Outcome derived =
      Run("r=$(" TRACEFS_KEYGEN " age id) && " TRACEFS_KEYGEN
          " --derive uid --key k --recipient $r uid.key");
  ASSERT_EQ(derived.status, 0) << derived.output;
  ExpectRefused("--reveal uid --keys uid.key a out", 2, "identity");
  const Outcome revealed =
      Anon("-q --reveal uid --keys id --keys uid.key a out");
  EXPECT_EQ(revealed.status, 0) << revealed.output;
}

TEST_F(AnonCommandTest, ExplainNamesEveryField) {
  for (const std::string profile : kProfiles) {
    const Outcome outcome = Anon("--explain --policy " + profile);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("ARG_UID"), std::string::npos);
    EXPECT_EQ(outcome.output.find("not covered"), std::string::npos)
        << outcome.output;
  }
}

TEST_F(AnonCommandTest, TheAuditExitsWithOneOnALeak) {
  const std::string trace = Golden("every_operation");
  ASSERT_EQ(Anon("-q --policy research --keys k " + trace + " a").status, 0);
  const Outcome clean = Anon(
      // A file is called "name", and so is a word of the header's prose.
      "--audit a --policy research --ok name --against " + trace);
  EXPECT_EQ(clean.status, 0) << clean.output;
  // As if the paths had been kept by mistake.
  folder_.Write("p", "use research; ARG_NAME = keep;");
  ASSERT_EQ(Anon("-q --policy p --keys k " + trace + " b").status, 0);
  const Outcome leak = Anon("--audit b --policy research --against " + trace);
  EXPECT_EQ(leak.status, 1) << leak.output;
  EXPECT_NE(leak.output.find("LEAK  ARG_NAME"), std::string::npos);
}

TEST_F(AnonCommandTest, BadInput_IsRefusedAndLeavesNothing) {
  const std::string trace = Golden("every_operation");
  folder_.Write("bad.policy", "uid = keep;");
  folder_.Write("typo.policy", "use research;\nARG_UIDD = keep;");
  ASSERT_EQ(Anon("-q --policy research --keys k " + trace + " a").status, 0);
  ExpectRefused("--policy research " + trace + " out", 2, "needs the key");
  ExpectRefused("--policy research --keys none " + trace + " out", 3, "none");
  ExpectRefused("--policy ./bad.policy --keys k " + trace + " out", 2,
                "does not say what becomes of");
  ExpectRefused("--policy typo.policy --keys k " + trace + " out", 2,
                "typo.policy:2: no trace has a field 'ARG_UIDD'");
  ExpectRefused("--policy nosuch --keys k " + trace + " out", 3,
                "there are the profiles");
  ExpectRefused("--policy research --keys k " + Golden("damaged") + " out", 1,
                "--salvage");
  ExpectRefused("--policy research --keys k " + Golden("too_new") + " out", 2,
                "newer");
  ExpectRefused(
      "--policy research --keys k " + Golden("later_version") + " out", 2,
      "does not say what becomes of");
  ExpectRefused("--reveal uid --keys other a out", 2,
                "the key for domain uid is wrong");
  ExpectRefused("--reveal nothing --keys k a out", 2, "nothing hidden");
  ExpectRefused("--policy research --keys k a out", 2, "anonymised before");
  ExpectRefused("--policy research --keys k " + trace + " no/out", 3, "no/out");
  const Outcome same = Run("cp " + trace +
                           " t && " TRACEFS_ANON
                           " --policy research --keys k t t; s=$?; cmp t " +
                           trace + " && exit $s");
  EXPECT_EQ(same.status, 2);
  EXPECT_NE(same.output.find("is the input"), std::string::npos);
  const Outcome exists = Anon("--policy research --keys k " + trace + " a");
  EXPECT_EQ(exists.status, 2);
  EXPECT_NE(exists.output.find("exists"), std::string::npos);
  // A full disk.
  const Outcome full = Run("ulimit -f 4; trap '' XFSZ; " TRACEFS_ANON
                           " --policy research --keys k " +
                           trace + " out");
  EXPECT_EQ(full.status, 3) << full.output;
  EXPECT_NE(Run("test -e out").status, 0);
  EXPECT_EQ(Run("ls | grep -c '^out'").output, "0\n");
}

}  // namespace
}  // namespace tracefs
