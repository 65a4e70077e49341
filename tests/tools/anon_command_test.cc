// tracefs-anon and tracefs-keygen --derive as a user runs them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <map>
#include <sstream>

#include "tests/tools/shell.h"
#include "tests/unit/filters/output/chain_end.h"
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

class AnonCommandTest : public testing::Test {
 protected:
  AnonCommandTest() {
    EXPECT_EQ(Run(TRACEFS_KEYGEN " secret k").status, 0);
    EXPECT_EQ(Run(TRACEFS_KEYGEN " secret other").status, 0);
  }

  // Runs a shell command in the folder.
  Outcome Run(const std::string& command) {
    return RunInShell(folder_.Path(""), command);
  }
  Outcome Anon(const std::string& arguments) {
    return Run(TRACEFS_ANON " " + arguments);
  }
  // Names, sizes, times and contents of all that is in the folder.
  std::string Everything() {
    return Run("ls -lAR --full-time . && find . -type f -exec sha256sum {} +")
        .output;
  }
  // The command, in a shell, must fail so, say so, change nothing that is there
  // and leave nothing behind, under whatever name.
  void ExpectFailure(const std::string& command, int status,
                     const std::string& message) {
    const std::string before = Everything();
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.status, status) << command << '\n' << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos)
        << command << '\n'
        << outcome.output;
    EXPECT_EQ(Everything(), before) << command;
  }
  void ExpectRefused(const std::string& arguments, int status,
                     const std::string& message) {
    ExpectFailure(TRACEFS_ANON " " + arguments, status, message);
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

// Pipes are recognised by the numbers of their inodes.
TEST_F(AnonCommandTest, InodesOfPipesAreHiddenAsThoseOfFiles) {
  const std::string trace = Golden("processes");
  const auto pipes = [&](const std::string& name) {
    return Run(TRACEFS_DUMP " --format jsonl " + name +
               " 2>/dev/null | grep -o '\"fd\":[0-9]*,\"inode\":[0-9]*'")
        .output;
  };
  const std::string original = pipes(trace);
  ASSERT_NE(original, "");
  for (const std::string profile : {"research", "public", "partner"}) {
    ASSERT_EQ(
        Anon("-q --policy " + profile + " --keys k " + trace + " " + profile)
            .status,
        0);
    std::istringstream before(original);
    std::istringstream after(pipes(profile));
    std::map<std::string, std::string> tokens;  // of inodes
    for (std::string a, b; std::getline(before, a);) {
      ASSERT_TRUE(std::getline(after, b)) << profile;
      const size_t inode = a.find("inode");
      EXPECT_EQ(a.substr(0, inode), b.substr(0, inode)) << profile;
      EXPECT_NE(a, b) << profile;
      EXPECT_EQ(tokens.emplace(a.substr(inode), b.substr(inode)).first->second,
                b.substr(inode))
          << profile << ": one pipe, two tokens";
    }
  }
  ASSERT_EQ(Anon("-q --reveal all --keys k partner back").status, 0);
  EXPECT_EQ(pipes("back"), original);
  // Opaque bytes are no number: nothing stands there.
  folder_.Write("p", "use research;\ninode = encrypt;\n");
  ASSERT_EQ(Anon("-q --policy p --keys k " + trace + " opaque").status, 0);
  EXPECT_EQ(pipes("opaque"), "");
}

// Encrypted numbers are numbers no longer. They are shown all the same, and
// what cannot be answered of them is told.
TEST_F(AnonCommandTest, NumbersThatBecameOpaqueAreShownAndAskedForInVain) {
  const std::string trace = Golden("every_operation");
  folder_.Write("p", "use research;\nuid, pid, inode, result = encrypt;\n");
  ASSERT_EQ(Anon("-q --policy p --keys k " + trace + " t").status, 0);
  // One value, one text, in the place of its field, which comes back as one.
  const auto column = [&](const std::string& name, const std::string& of) {
    return Run(TRACEFS_DUMP " --format csv --columns " + name + " " + of +
               " 2>/dev/null | tail -n +2 | sort | uniq -c | "
               "awk '{print $1}' | sort -n")
        .output;
  };
  for (const std::string name : {"cuid", "cpid", "inode", "result"}) {
    EXPECT_EQ(column(name, "t"), column(name, trace)) << name;
    const std::string csv =
        Run(TRACEFS_DUMP " --format csv --columns " + name + " t 2>/dev/null")
            .output;
    EXPECT_NE(csv.find("\nb64:"), std::string::npos) << name << '\n' << csv;
  }
  for (const std::string key : {"ARG_UID", "ARG_PID", "ARG_INODE"}) {
    for (const std::string format : {"text", "jsonl", "xml"}) {
      EXPECT_NE(Run(TRACEFS_DUMP " --format " + format + " t | grep -c " + key)
                    .output,
                "0\n")
          << format << key;
    }
  }
  for (const std::string format : {"ocsf", "ecs"}) {
    EXPECT_NE(
        Run(TRACEFS_DUMP " --format " + format + " t | grep -c uid_b64").output,
        "0\n")
        << format;
  }
  // What is asked of them.
  const std::string told = ": opaque bytes, with which nothing can be compared";
  for (const std::string command :
       {"--filter 'cuid = 0'", "--filter 'op = read AND NOT cuid != 0'",
        "--stats --filter 'cuid = 0'", "--by op --filter 'cuid = 0'"}) {
    const std::string all = Run(TRACEFS_DUMP " " + command + " t 2>&1").output;
    EXPECT_NE(all.find("t: --filter: cuid" + told), std::string::npos)
        << command << '\n'
        << all;
  }
  EXPECT_EQ(Run(TRACEFS_DUMP " --filter 'cgid = 0' t 2>&1").output, "");
  const std::string by = Run(TRACEFS_DUMP " --by inode t 2>&1").output;
  EXPECT_NE(by.find("t: inode, inode2, result" + told), std::string::npos)
      << by;
  EXPECT_EQ(
      Run(TRACEFS_DUMP " --by inode " + trace + " 2>&1").output.find(told),
      std::string::npos);
}

// No foreign format is told that all went well where that is not known.
TEST_F(AnonCommandTest, HiddenErrorsAreNoSuccess) {
  const std::string trace = Golden("every_operation");
  const auto count = [&](const std::string& of, const std::string& format,
                         const std::string& words) {
    return Run(TRACEFS_DUMP " --format " + format + " " + of +
               " 2>/dev/null | grep -c '" + words + "'")
        .output;
  };
  const std::vector<std::pair<std::string, std::string>> policies = {
      {"opaque", "request = encrypt;"},  // there is an errno
      {"dropped", "request = drop;"},    // there is a result of -1
  };
  const std::string failures = count(trace, "ocsf", "\"Failure\"");
  ASSERT_NE(failures, "0\n");
  for (const auto& [name, policy] : policies) {
    folder_.Write("p", "use research;\n" + policy + "\n");
    ASSERT_EQ(Anon("-q --policy p --keys k " + trace + " " + name).status, 0);
    EXPECT_EQ(count(name, "ocsf", "\"Failure\""), failures) << name;
    EXPECT_EQ(count(name, "ecs", "\"failure\""), failures) << name;
    EXPECT_EQ(count(name, "cef", "outcome=failure"), failures) << name;
  }
  folder_.Write("p", "use research;\nrequest, result = drop;\n");
  ASSERT_EQ(Anon("-q --policy p --keys k " + trace + " neither").status, 0);
  EXPECT_EQ(count("neither", "ocsf", "\"Success\""), "0\n");
  EXPECT_EQ(count("neither", "ecs", "\"success\""), "0\n");
  EXPECT_EQ(count("neither", "cef", "outcome="), "0\n");
}

TEST_F(AnonCommandTest, CompressesAsItsInputWas) {
  const auto make = [&](const std::string& name, const std::string& filters) {
    folder_.Write(name, SealedTrace::Make(filters, 6, TestSerial()).Bytes());
    const Outcome outcome =
        Anon("--policy research --keys k " + name + " " + name + ".hidden");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome.output;
  };
  const auto chain = [&](const std::string& name) {
    return Run(TRACEFS_DUMP " --header " + name +
               ".hidden | sed -n 's/^ *chain  *//p'")
        .output;
  };
  make("plain", "");
  EXPECT_EQ(chain("plain"), "file\n");
  for (const std::string alg : {"zlib", "zstd"}) {
    const std::string said =
        make(alg, "compress alg = " + alg + "; checksum alg = crc32c;");
    EXPECT_NE(said.find("without the checksum"), std::string::npos) << said;
    EXPECT_EQ(chain(alg), "compress alg=" + alg + "; file\n");
    EXPECT_EQ(Run(TRACEFS_DUMP " " + alg + ".hidden").status, 0);
    EXPECT_EQ(Run(TRACEFS_VERIFY " " + alg + ".hidden").status, 0);
    EXPECT_EQ(Anon("--audit " + alg + ".hidden --against " + alg +
                   " --policy research")
                  .status,
              0);
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

// --- Bad input: a clear error, the input untouched, nothing left behind.

TEST_F(AnonCommandTest, BadInput_KeysThatAreWrongOrMissing) {
  const std::string trace = Golden("every_operation");
  ASSERT_EQ(Anon("-q --policy research --keys k " + trace + " a").status, 0);
  ExpectRefused("--policy research " + trace + " out", 2, "needs the key");
  ExpectRefused("--policy research --keys none " + trace + " out", 3, "none");
  ExpectRefused("--reveal uid a out", 2, "key");
  ExpectRefused("--reveal uid --keys other a out", 2,
                "the key for domain uid is wrong");
  ExpectRefused("--reveal all --keys other a out", 2, "is wrong");
  ExpectRefused("--reveal nothing --keys k a out", 2, "nothing hidden");
  ExpectFailure("chmod 644 other; " TRACEFS_ANON
                " --reveal uid --keys other a out; s=$?; chmod 600 other; "
                "(exit $s)",
                2, "can be read by others");
  // One derived for something else, or for another day.
  ASSERT_EQ(
      Run(TRACEFS_KEYGEN " --derive gid --key k gid.key && " TRACEFS_KEYGEN
                         " --derive uid --key k --day 1999-12-31 old.key")
          .status,
      0);
  ExpectRefused("--reveal uid --keys gid.key a out", 2,
                "no key for domain uid");
  ASSERT_EQ(Anon("-q --policy partner --keys k " + trace + " daily").status, 0);
  ExpectRefused("--reveal uid --keys old.key daily out", 2, "day");
}

TEST_F(AnonCommandTest, BadInput_EncryptedTracesNeedTheirOwnKey) {
  folder_.Write(
      "t", SealedTrace::Make(
               "encrypt key = \"file:" + folder_.Path("k") +
                   "\"; checksum key = \"file:" + folder_.Path("k") + "\";",
               4, TestSerial())
               .Bytes());
  const std::string hide = "--policy research --keys k ";
  ASSERT_EQ(Anon(hide + "--trace-key k t good").status, 0);
  ExpectRefused(hide + "t out", 2, "--trace-key");
  ExpectRefused(hide + "--trace-key other t out", 2, "key");
  ExpectRefused(hide + "--trace-key none t out", 3, "none");
  ExpectRefused(hide + "--salvage --trace-key other t out", 2, "key");
  ExpectRefused("--audit good --policy research --against t", 2, "key");
  ExpectRefused("--explain --policy research t", 2, "key");
}

TEST_F(AnonCommandTest, BadInput_DamagedAndUnknownTraces) {
  const std::string trace = Golden("every_operation");
  const std::string hide = "--policy research --keys k ";
  ASSERT_EQ(Run("cp " + trace +
                " t && head -c 9000 t > cut && head -c 20 t > "
                "start && : > empty && head -c 5000 /dev/zero > zeros && cp " +
                trace + " tail && echo more >> tail")
                .status,
            0);
  ExpectRefused(hide + Golden("damaged") + " out", 1, "--salvage");
  ExpectRefused(hide + "cut out", 1, "--salvage");
  ExpectRefused(hide + "start out", 1, "preamble");
  ExpectRefused(hide + "empty out", 1, "empty");
  ExpectRefused(hide + "zeros out", 1, "zeros");
  ExpectRefused(hide + "tail out", 1, "--salvage");
  ExpectFailure("head -c 9000 t | " TRACEFS_ANON " " + hide + "- out", 1,
                "--salvage");
  // From a version to come: fields that no policy of today can know.
  ExpectRefused(hide + Golden("too_new") + " out", 2, "newer");
  ExpectRefused(hide + Golden("later_version") + " out", 2,
                "does not say what becomes of");
  ASSERT_EQ(Anon("-q " + hide + "t a").status, 0);
  ExpectRefused(hide + "a out", 2, "anonymised before");
  ExpectRefused(hide + "none out", 3, "none");
  ExpectRefused(hide + ". out", 3, "directory");
  ExpectRefused("--reveal uid --keys k t out", 2, "there is nothing to reveal");
}

TEST_F(AnonCommandTest, BadInput_PoliciesThatMakeNoSense) {
  const std::string trace = Golden("every_operation");
  const std::pair<const char*, const char*> policies[] = {
      {"uid = keep;", "does not say what becomes of"},
      {"use research;\nARG_UIDD = keep;",
       "p:2: no trace has a field 'ARG_UIDD'"},
      {"use research;\nuid = hmak;", "p:2:"},
      {"use research;\nuid = hmac;\nuid = keep;", "p:3:"},
      {"use research;\nARG_UID = hmac;\nARG_UID = fpe;", "p:3:"},
      {"use research;\ntime = fpe;", "would destroy the order"},
      {"use research;\ntime = quantise 1ms;", "so must be durations"},
      {"use research;\nstructure = drop;", "can only be kept"},
      {"use research;\nname = fpe;", "needs an integer"},
      {"use research;\nproperty * = keep;", "must be named one by one"},
      {"use reserch;", "p:1:"},
      {"use research", "p:1:"},
      {"", "does not say what becomes of"},
  };
  for (const auto& [text, message] : policies) {
    folder_.Write("p", text);
    ExpectRefused("--policy p --keys k " + trace + " out", 2, message);
  }
  ExpectRefused("--policy nosuch --keys k " + trace + " out", 3,
                "there are the profiles");
}

TEST_F(AnonCommandTest, BadInput_OutputsThatAreInTheWay) {
  const std::string hide = "--policy research --keys k ";
  ASSERT_EQ(Run("cp " + Golden("every_operation") +
                " t && mkdir d && cp t d/t && ln -s t soft && ln t hard && ln "
                "-s nowhere dangling && cp t other.trace")
                .status,
            0);
  for (const char* same : {"t", "./t", "d/../t", "soft", "hard", ". "}) {
    ExpectRefused(hide + "t " + same, 2, "is the input");
  }
  ExpectRefused(hide + "soft t", 2, "is the input");
  ExpectRefused(hide + "d/t d", 2, "is the input");
  ExpectRefused(hide + "t other.trace", 2, "exists");
  ExpectRefused(hide + "t dangling", 2, "exists");
  ExpectRefused(hide + "t no/out", 3, "no/out");
  ExpectRefused(hide + "t ''", 2, "empty name");
  // By way of standard input and output.
  const std::string anon = TRACEFS_ANON " " + hide;
  ExpectFailure(anon + "t - 2>&2 >> t", 2, "is the input");
  ExpectFailure(anon + "- - < t 2>&2 >> t", 2, "is the input");
  ExpectFailure(anon + "- t < t", 2, "exists");
}

TEST_F(AnonCommandTest, BadInput_FullDisks) {
  const std::string trace = Golden("every_operation");
  const std::string anon =
      TRACEFS_ANON " --policy research --keys k " + trace + " ";
  // A limit, which is a signal to a program that does not look out for it.
  ExpectFailure("ulimit -f 4; " + anon + "out", 3, "out: File too large");
  ExpectFailure(anon + "- > /dev/full", 3, "No space left");
  // Reports can be lost on the way, too.
  ExpectFailure(TRACEFS_ANON " --explain --policy research > /dev/full", 3,
                "No space left");
  ASSERT_EQ(Run(anon + "a").status, 0);
  ExpectFailure(TRACEFS_ANON " --audit a > /dev/full", 3, "No space left");
  // A real one. The folder of the output is empty afterwards.
  const std::string disk = folder_.Path("disk");
  ASSERT_EQ(::mkdir(disk.c_str(), 0700), 0);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=8k") != 0) {
    GTEST_SKIP() << "mounting a tmpfs needs root";
  }
  ExpectFailure(anon + "disk/out", 3, "disk/out: No space left");
  EXPECT_EQ(Run("ls -A disk").output, "");
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST_F(AnonCommandTest, KilledItLeavesNothing) {
  const std::string trace = Golden("every_operation");
  ASSERT_EQ(Run("mkdir d && head -c 9000 " + trace + " > t").status, 0);
  // While the rest of the trace is still to come, once the output is open.
  const auto kill = [&](const std::string& signal) {
    return Run("rm -f f && mkfifo f && { " TRACEFS_ANON
               " --policy research --keys k f d/out & p=$!; exec 3> f; cat t "
               ">&3; n=0; until ls -l /proc/$p/fd 2>&1 | grep -q /d/ || "
               "[ $n = 400 ]; do sleep 0.05; n=$((n+1)); done; kill -" +
               signal + " $p; wait $p; }")
        .status;
  };
  EXPECT_EQ(kill("KILL"), 128 + SIGKILL);
  EXPECT_EQ(Run("ls -A d").output, "");
  // A file system on which a file needs a name from the beginning.
  if (Run("mkdir below && bindfs below d").status != 0) {
    GTEST_SKIP() << "no bindfs";
  }
  EXPECT_EQ(kill("TERM"), 128 + SIGTERM);
  EXPECT_EQ(Run("ls -A d").output, "");
  const std::string hide = TRACEFS_ANON " -q --policy research --keys k ";
  EXPECT_EQ(Run(hide + "t d/out").status, 1);
  EXPECT_EQ(Run("ls -A d").output, "");
  EXPECT_EQ(Run(hide + trace + " d/out").status, 0);
  EXPECT_EQ(Run("ls -A d").output, "out\n");
  EXPECT_EQ(Run("umount d").output, "");
}

}  // namespace
}  // namespace tracefs
