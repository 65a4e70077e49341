// What --check says: the judgement of the mount, without making anything.
#include "tracefs/tracers/plan.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "tests/unit/mount/scratch_dir.h"
#include "tracefs/tracers/plan_facts.h"
#include "tracefs/tracers/warnings.h"

namespace tracefs {
namespace {

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    Write("secret.key", 0600,
          "tracefs-secret-1 " + std::string(64, 'a') + "\n");
    Write("open.key", 0644, "tracefs-secret-1 " + std::string(64, 'a') + "\n");
    Write("sign.key", 0600, "tracefs-sign-1 " + std::string(64, 'a') + "\n");
    Write("there.trace", 0600, "x");
    Write("bad.policy", 0600, "frobnicate\n");
  }

  std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  void Write(const std::string& name, mode_t mode, const std::string& text) {
    std::ofstream(Path(name)) << text;
    ::chmod(Path(name).c_str(), mode);
  }

  // "$/x" is x in the folder of the test; the section begins at 3:4.
  Status Judge(std::string output, bool probe) {
    for (size_t at = 0; (at = output.find("$/", at)) != output.npos;) {
      output.replace(at, 1, dir_.path());
    }
    const auto config = ParseConfig(
        "{\n { cuid = 0 }\n { } { " + output + " }\n}", "f", FullSchema());
    if (!config.ok()) return config.status();
    NameTable names;
    return PlanTracers(*config, names, {.probe = probe}).status();
  }

  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  ScratchDir dir_;
};

TEST_F(PlanTest, AProbeIsRefusedWhatTheMountIsWithThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      // Keys.
      {"encrypt; file = \"$/x\"", "f:3:8: encrypt: needs either key"},
      {"encrypt key = \"file:$/no.key\"; file = \"$/x\"",
       "f:3:8: encrypt: key file '"},
      {"async;\n  encrypt key = \"file:$/open.key\"; file = \"$/x\"",
       "f:4:3: encrypt: key file '"},
      {"encrypt key = \"file:$/sign.key\"; file = \"$/x\"",
       "does not hold a shared secret"},
      {"encrypt key = \"env:TRACEFS_NO_SUCH\"; file = \"$/x\"", "is not set"},
      {"checksum; file = \"$/x\"", "f:3:8: checksum: alg = hmac-sha256 needs"},
      {"checksum key = \"file:$/secret.key\" seal = forward; file = \"$/x\"",
       "is not one, or is damaged"},
      {"checksum alg = crc32c sign = ed25519; file = \"$/x\"",
       "f:3:8: checksum: sign = ed25519 and sign_key"},
      {"checksum key = \"file:$/secret.key\" anchor = \"file:$/no/a\"; "
       "file = \"$/x\"",
       "f:3:8: checksum: anchor file '"},
      {"anonymize policy = \"$/bad.policy\"; file = \"$/x\"",
       "f:3:8: anonymize: policy: "},
      {"anonymize policy = \"$/no.policy\"; file = \"$/x\"",
       "f:3:8: anonymize: policy: "},
      // What only looks like a filter.
      {"throttle; file = \"$/x\"", "f:3:8: throttle: needs ops = N/s"},
      {"compress level = 15; file = \"$/x\"", "f:3:8: compress: level 15"},
      // Folders and files.
      {"file = \"$/no/x\"", "f:3:8: the folder of '"},
      {"compress; file = \"$/there.trace\"", "f:3:18: trace file '"},
      {"fifo = \"$/there.trace\"", "not a FIFO"},
      {"fifo = \"$/no/x\"", "f:3:8: the folder of '"},
      {"flight = \"$/no/x\"", "f:3:8: the folder of '"},
      {"flight = \"$/x\" map = \"$/there.trace\"", "f:3:8: map: it may hold"},
      {"flight = \"$/x\" map = \"$/no/x\"", "f:3:8: the folder of '"},
      {"device = \"$/there.trace\"", "is no block device"},
      {"device = \"$/no\"", "f:3:8: device '"},
      {"unix = \"$/s\" when_full = spill \"$/no\" max = 8M",
       "f:3:8: spill directory '"},
      {"tls = \"h:1\" ca = \"$/no\" cert = \"$/no\" key = \"$/no\"", "f:3:8: "},
      {"syslog = \"tls:h:1\" ca = \"$/no\" cert = \"$/no\" key = \"$/no\"",
       "f:3:8: "},
  };
  for (const auto& [output, message] : cases) {
    const std::set<std::string> before = Files();
    const Status status = Judge(output, /*probe=*/true);
    ASSERT_FALSE(status.ok()) << output;
    EXPECT_EQ(status.message().substr(0, 2), "f:") << status.message();
    EXPECT_NE(status.message().find(message), std::string::npos)
        << output << "\n"
        << status.message();
    // One judge: the mount says the same, word for word.
    EXPECT_EQ(Judge(output, /*probe=*/false).message(), status.message());
    EXPECT_EQ(ExitStatus(Judge(output, /*probe=*/false)), ExitStatus(status));
    EXPECT_EQ(Files(), before) << output;
  }
}

// What could lose an operation that was done has no place before `fail`.
TEST_F(PlanTest, FailIsRefusedWhereItCouldNotBeKept) {
  const auto said = [](const std::string& text) {
    const auto config = ParseConfig(text, "f", FullSchema());
    if (!config.ok()) return config.status().message();
    NameTable names;
    return PlanTracers(*config, names, {.probe = true}).status().message();
  };
  const std::string fail = "file = \"" + dir_.Path("x") + "\" when_full = fail";
  const std::string drop = "file = \"" + dir_.Path("y") + "\"";
  EXPECT_EQ(said("a { {} {} { compress; " + fail + " } }"), "ok");
  EXPECT_EQ(said("{ {} { stream = { STR_ALL }; aggregate = { by op } } { " +
                 fail + " } }"),
            "ok");
  EXPECT_NE(said("{ {} {} { async; " + fail + " } }").find("f:1:11: 'async'"),
            std::string::npos);
  EXPECT_NE(said("{ {} {} { compress; throttle ops = 5/s; " + fail + " } }")
                .find("'throttle' holds blocks back"),
            std::string::npos);
  EXPECT_NE(said("{ {} { aggregate = { by op } } { " + fail + " } }")
                .find("only counts"),
            std::string::npos);
  EXPECT_NE(said("{ {} {} { " + fail + " feed = ocsf } }").find("a feed"),
            std::string::npos);
  const auto rule = [&](const std::string& action, const std::string& output) {
    return said(
        "a { {} {} { " + output +
        " } } b { {} { stream = { STR_ALL }; when seen(unlink) then { " +
        action + " } } { " + drop + " } }");
  };
  for (const char* action : {"stop a", "stop 1", "raise a for 1s",
                             "raise a to \"op = read\" for 1s"}) {
    EXPECT_NE(rule(action, fail).find("has when_full = fail"),
              std::string::npos)
        << action;
  }
  EXPECT_EQ(rule("start a", fail), "ok");
  EXPECT_EQ(rule("stop a", "file = \"" + dir_.Path("z") + "\""), "ok");
}

// A client opens what is wished only for a config that can be.
TEST_F(PlanTest, WhatFiltersSayOfTheirOptionsComesBeforeWishes) {
  for (const char* filter :
       {"throttle", "throttle ops = 5", "compress level = 15", "encrypt",
        "encrypt key = secret", "encrypt recipient = age1x", "checksum",
        "checksum alg = crc32c anchor = syslog", "checksum key = secret",
        "checksum alg = crc32c sign = ed25519",
        "checksum key = \"env:X\" seal = forward",
        "checksum key = \"env:X\" anchor = nowhere",
        "anonymize policy = public key = secret",
        "async when_full = drop deadline = 1s"}) {
    const auto config =
        ParseConfig("{\n { }\n { } { " + std::string(filter) + "; file = x } }",
                    "f", FullSchema());
    ASSERT_TRUE(config.ok()) << config.status().message();
    NameTable names;
    const auto wishes = WishedFiles(*config, SystemNameService(), names);
    ASSERT_FALSE(wishes.ok()) << filter;
    EXPECT_EQ(wishes.status().message().substr(0, 7), "f:3:8: ")
        << wishes.status().message();
  }
}

TEST_F(PlanTest, AProbeMakesNothing) {
  const std::set<std::string> before = Files();
  for (const char* output :
       {"file = \"$/x\"", "file = \"$/x\" rotate_size = 1M keep = 3",
        "fifo = \"$/pipe\"", "flight = \"$/x\" map = \"$/map\"",
        "encrypt key = \"file:$/secret.key\"; file = \"$/x\"",
        "async; checksum key = \"file:$/secret.key\" "
        "anchor = \"file:$/anchors\"; file = \"$/x\"",
        "async; compress; throttle ops = 5/s; file = \"$/x\"",
        "anonymize policy = public key = \"file:$/secret.key\"; file = \"$/x\"",
        "unix = \"$/socket\"", "tcp = \"receiver.example:9900\""}) {
    const Status status = Judge(output, /*probe=*/true);
    EXPECT_TRUE(status.ok()) << output << status.message();
    EXPECT_EQ(Files(), before) << output;
  }
}

// As root everything may be written to.
TEST_F(PlanTest, AFolderWithoutRightsIsSaid) {
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0555), 0);
    const uid_t root = ::geteuid();
    ASSERT_EQ(::seteuid(65534), 0);
    const Status status = Judge("file = \"$/x\"", /*probe=*/true);
    const Status mount = Judge("file = \"$/x\"", /*probe=*/false);
    ASSERT_EQ(::seteuid(root), 0);
    EXPECT_EQ(ExitStatus(status), 3) << status.message();
    EXPECT_EQ(ExitStatus(mount), 3);
    return;
  }
  GTEST_SKIP() << "needs root, to be somebody else";
}

class WarningsTest : public ::testing::Test {
 protected:
  std::string Said(const std::string& text, WarningFacts facts = {}) {
    const auto config = ParseConfig(text, "f", FullSchema());
    if (!config.ok()) return config.status().message();
    const auto plans = PlanTracers(*config, names_, {.probe = true});
    if (!plans.ok()) return plans.status().message();
    facts.forwards_locks |= !facts.mounted && NamesLocks(*plans);
    std::string said;
    for (const std::string& warning : WarningsOf(*plans, facts)) {
      said += warning.substr(0, 60) + "\n";
    }
    return said;
  }
  std::string SaidOfAudit(const std::string& filter, const char* visibility) {
    return Said("{ { " + filter + " } { } { file = \"/x\" when_full = fail } }",
                {.forwards_locks = true, .visibility = visibility});
  }
  bool Forwards(const std::string& filter, const std::string& rule = "",
                const std::string& output = "file = \"/x\"") {
    const auto config = ParseConfig(
        "{ { " + filter + " } { " + rule + " } { " + output + " } }", "f",
        FullSchema());
    EXPECT_TRUE(config.ok()) << config.status().message();
    const auto plans = PlanTracers(*config, names_, {.probe = true});
    EXPECT_TRUE(plans.ok()) << plans.status().message();
    return NamesLocks(*plans);
  }

  NameTable names_;
};

// An audit of what the kernel may answer by itself would have holes.
TEST_F(WarningsTest, AnAuditOfWhatTheKernelAnswersIsWarnedOf) {
  const char* const all = "op IN { lookup getattr readdir readlink mkdir }";
  EXPECT_EQ(SaidOfAudit(all, "exact"), "");
  EXPECT_THAT(SaidOfAudit(all, "auto"),
              testing::HasSubstr("not each lookup, getattr comes"));
  EXPECT_THAT(SaidOfAudit(all, "fast"),
              testing::HasSubstr("not each lookup, getattr, readdir"));
  EXPECT_EQ(SaidOfAudit("op IN { mkdir unlink write }", "fast"), "");
  EXPECT_EQ(
      Said("{ { op = lookup } { } { file = \"/x\" } }", {.visibility = "fast"}),
      "");
}

TEST_F(WarningsTest, LocksAreForwardedWhereAnOperationIsNamedNotAWord) {
  EXPECT_TRUE(Forwards("op = flock"));
  EXPECT_TRUE(Forwards("op IN { read setlk }"));
  EXPECT_TRUE(Forwards("OP = GETLK OR uid = 0"));
  EXPECT_FALSE(Forwards("op != flock"));  // setlk is kept, but not named
  EXPECT_FALSE(Forwards(""));
  EXPECT_FALSE(Forwards("name = flock"));
  EXPECT_FALSE(Forwards("path = /flock OR cname = setlk"));
  EXPECT_FALSE(Forwards("uid = 0 # flock\n"));
  EXPECT_FALSE(Forwards("NOT op IN { getlk setlk flock }"));
  // Rules look at operations, too, and raise tracers to other filters.
  EXPECT_TRUE(Forwards("op = read", "when seen(flock) then { }"));
  EXPECT_TRUE(
      Forwards("op = read",
               "when seen(read) then { raise 1 to \"op = flock\" for 1m }"));
  // A trigger looks at what its tracer records, and at nothing else.
  const std::string trigger = "flight = \"/x\" trigger = \"op = flock\"";
  EXPECT_TRUE(Forwards("", "", trigger));
  EXPECT_FALSE(Forwards("op = read", "", trigger));
}

TEST_F(WarningsTest, WhatIsAskedForInVainIsSaidWithItsPlace) {
  EXPECT_EQ(Said("{ { op = access } { } { file = \"/x\" } }"),
            "f:1:4: no operation is ever 'access': the kernel checks perm\n");
  EXPECT_EQ(Said("{ { op != access AND op = read } { } { file = \"/x\" } }"),
            "");
  // Locks stay with the kernel, but nobody asked for them.
  EXPECT_EQ(Said("{ { } { } { file = \"/x\" } }"), "");
  EXPECT_EQ(Said("{ { op = read } { } { file = \"/x\" } }"), "");
  EXPECT_EQ(Said("{ { } { } { file = \"/x\" } }\n"
                 "{ { op = flock } { } { file = \"/y\" } }"),
            "");
  EXPECT_EQ(Said("{ { op = flock } { } { file = \"/x\" } }", {.mounted = true}),
            "f:1:4: it names lock operations, which the kernel has kept t\n");
  EXPECT_EQ(Said("{ { op = read AND path ~ *.c } { } { file = \"/x\" } }"),
            "f:1:26: '*.c' matches no path: a path begins with '/', which\n");
  EXPECT_EQ(Said("{ { op = read } { when seen(op = read AND latency > 5) then "
                 "{ } } { file = \"/x\" } }"),
            "f:1:53: '5' has no unit and means nanoseconds; did you mean \n");
  EXPECT_EQ(Said("{ { op = read } { } { flight = \"/x\" trigger = \"errno = 5 "
                 "AND errno = 6\" } }")
                .substr(0, 7),
            "f:1:37:");
}

TEST_F(WarningsTest, TheHeaderHasThem) {
  const auto config = ParseConfig(
      "{ { op = access } { } { file = \"/x\" } }\n"
      "{ { op = read } { } { file = \"/y\" } }",
      "f", FullSchema());
  ASSERT_TRUE(config.ok());
  auto plans = PlanTracers(*config, names_, {.probe = true});
  ASSERT_TRUE(plans.ok()) << plans.status().message();
  for (TracerPlan& plan : *plans) PutWarnings({}, &plan);
  EXPECT_EQ((*plans)[0].parts.header.Get(kWarningsProperty).substr(0, 17),
            "f:1:4: no operati");
  EXPECT_EQ((*plans)[1].parts.header.Get(kWarningsProperty), "");
}

}  // namespace
}  // namespace tracefs
