// What was hidden comes back, to the byte, for those who have the key, and for
// nobody else.
#include <gtest/gtest.h>

#include "anonymize/header_rewriter.h"
#include "anonymize/session.h"
#include "tests/unit/anonymize/anon_world.h"

namespace tracefs::anonymize {
namespace {

std::string Profile_(std::string_view name) {
  for (const Profile& profile : Profiles()) {
    if (profile.name == name) return std::string(profile.text);
  }
  return {};
}

// Lines without what the policy cannot give back.
std::vector<Line> LinesWithout(const std::string& trace,
                               std::initializer_list<std::string> fields) {
  std::vector<Line> lines = Lines(trace);
  for (Line& line : lines) {
    std::erase_if(line.arguments, [&](const auto& a) {
      return std::find(fields.begin(), fields.end(), a.first) != fields.end();
    });
  }
  return lines;
}

TEST(Reveal, EveryReversibleActionGivesBackEveryByte) {
  const char* const policies[] = {
      "uid = fpe;\n",
      "uid = fpe keep { 0 1 2 3 1000 };\n",
      "uid = encrypt;\n",
      "uid = paper;\n",
      "inode = encrypt;\nhandle = fpe;\nlock-owner = shift;\n",
      "time = shift;\nclock = shift;\n",
      "time = paper;\nclock = paper;\n",
      "name = encrypt;\n",
      "name = encrypt keep-dots keep-marks keep-digits;\n",
      "name = encrypt keep-digits ext { txt c } keep { a Makefile };\n",
      "name = encrypt ext join pad 16;\n",
      "name = encrypt ext keep pad 64;\n",
      "name = encrypt tree;\n",
      "name = encrypt tree keep-digits ext keep keep { Makefile };\n",
      "name = paper;\n",
      "comm = encrypt pad 32;\nexe = encrypt;\ncgroup = encrypt;\n",
      "xattr = encrypt;\n",
      "xattr = encrypt keep-namespace;\n",
      "data = encrypt;\nchecksum = fpe;\n",
      "data = encrypt pad 100;\n",
      ("property config.text = encrypt;\nproperty filter.text = encrypt;\n"
       "property * = encrypt;\n"),
  };
  const std::string trace = SampleTrace();
  for (const char* statements : policies) {
    std::string policy = KeepAllBut(statements);
    const std::string hidden = MustHide(trace, policy);
    const std::string shown = MustReveal(hidden, {"all"}, TestKeys());
    const bool properties =
        std::string(statements).find("property *") != std::string::npos;
    EXPECT_EQ(LinesWithout(shown, {"ARG_PROPERTY"}),
              LinesWithout(trace, {"ARG_PROPERTY"}))
        << statements;
    if (properties) {
      EXPECT_EQ(Lines(shown), Lines(trace));
      EXPECT_EQ(HeaderOf(shown).Get("host.name"), "zeus.example.org");
    }
  }
}

TEST(Reveal, ProfilesComeBack) {
  const std::string trace = SampleTrace();
  EXPECT_EQ(Lines(MustReveal(MustHide(trace, Profile_("partner")), {"all"},
                             TestKeys())),
            Lines(trace));
  const auto rest = {std::string("ARG_DATA"), std::string("ARG_DATA_CRC32C"),
                     std::string("ARG_KEPT_CRC32C"),
                     std::string("ARG_PROPERTY")};
  EXPECT_EQ(LinesWithout(MustReveal(MustHide(trace, Profile_("research")),
                                    {"all"}, TestKeys()),
                         rest),
            LinesWithout(trace, rest));
  EXPECT_EQ(LinesWithout(MustReveal(MustHide(trace, Profile_("paper")), {"all"},
                                    TestKeys()),
                         rest),
            LinesWithout(trace, rest));
}

// A partner gets the key of one domain.
TEST(Reveal, OneDomainAtATime) {
  const std::string trace = SampleTrace();
  const std::string hidden = MustHide(trace, Profile_("research"));
  KeySet uid_only;
  DerivedKey key;
  key.domain = "uid";
  key.key = DomainKey(TestKeys().master(), "uid", "");
  ASSERT_TRUE(uid_only.AddText(*DerivedKeyLine(key, {}), "key file").ok());
  const std::string shown = MustReveal(hidden, {"uid"}, uid_only);
  const auto original = Lines(trace);
  const auto before = Lines(hidden);
  const auto after = Lines(shown);
  ASSERT_EQ(after.size(), original.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].Get("ARG_UID"), original[i].Get("ARG_UID"));
    EXPECT_EQ(after[i].Get("ARG_GID"), before[i].Get("ARG_GID"));
    EXPECT_EQ(after[i].Get("ARG_NAME"), before[i].Get("ARG_NAME"));
  }
  // Whoever has the rest of the keys can still reveal the rest.
  const auto rest = {std::string("ARG_DATA"), std::string("ARG_DATA_CRC32C"),
                     std::string("ARG_KEPT_CRC32C"),
                     std::string("ARG_PROPERTY")};
  EXPECT_EQ(LinesWithout(MustReveal(shown, {"all"}, TestKeys()), rest),
            LinesWithout(trace, rest));
}

TEST(Reveal, AWrongKeyIsNamedAsWrong) {
  const std::string hidden = MustHide(SampleTrace(), Profile_("research"));
  const Outcome wrong = RevealTrace(hidden, {"uid"}, TestKeys('x'));
  EXPECT_EQ(wrong.status.code(), StatusCode::kInvalid);
  EXPECT_NE(wrong.status.message().find("the key for domain uid is wrong"),
            std::string::npos)
      << wrong.status.message();
}

TEST(Reveal, AMissingKeyOrDomainIsNamed) {
  const std::string hidden = MustHide(SampleTrace(), Profile_("research"));
  const Outcome missing = RevealTrace(hidden, {"gid"}, KeySet());
  EXPECT_NE(missing.status.message().find("no key for domain gid"),
            std::string::npos)
      << missing.status.message();
  const Outcome unknown = RevealTrace(hidden, {"guid"}, TestKeys());
  EXPECT_NE(unknown.status.message().find("did you mean"), std::string::npos);
  const Outcome plain = RevealTrace(SampleTrace(), {"uid"}, TestKeys());
  EXPECT_NE(plain.status.message().find("nothing to reveal"),
            std::string::npos);
}

TEST(Reveal, OneWayIsOneWay) {
  const std::string hidden =
      MustHide(SampleTrace(), KeepAllBut("uid = hmac;\n"));
  const Outcome outcome = RevealTrace(hidden, {"uid"}, TestKeys());
  EXPECT_NE(outcome.status.message().find("one way"), std::string::npos)
      << outcome.status.message();
}

// --- A key for each directory.

// /home/alice/{diary.txt,tax/2025.pdf}, /home/bob/diary.txt
std::string Homes() {
  test::TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  const uint32_t home = trace.DefinePath(root, "home");
  const uint32_t alice = trace.DefinePath(home, "alice");
  trace.DefinePath(alice, "diary.txt");
  const uint32_t tax = trace.DefinePath(alice, "tax");
  trace.DefinePath(tax, "2025.pdf");
  const uint32_t bob = trace.DefinePath(home, "bob");
  trace.DefinePath(bob, "diary.txt");
  Event event;
  event.op = Op::unlink_;
  event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
  event.name = "diary.txt";
  trace.Add(event, {.path = 0, .parent = alice, .new_parent = 0, .process = 0});
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

TEST(Reveal, TreeNamesAreNotLinkedBetweenDirectories) {
  const auto lines =
      Lines(MustHide(Homes(), KeepAllBut("name = encrypt tree;\n")));
  EXPECT_NE(lines[4].Get("ARG_NAME"), lines[8].Get("ARG_NAME"));
  EXPECT_EQ(lines[4].Get("ARG_NAME"), lines[9].Get("ARG_NAME"));
}

TEST(Reveal, ASubtreeKeyOpensThatSubtreeAlone) {
  const std::string policy = KeepAllBut("name = encrypt tree;\n");
  const std::string hidden = MustHide(Homes(), policy);
  const auto before = Lines(hidden);
  const KeySet master = TestKeys();
  const Result<Policy> parsed = ParsePolicy(policy, "p");
  ASSERT_TRUE(parsed.ok());
  auto key = MakeSubtreeKey(*parsed, master, "", "/home/alice");
  ASSERT_TRUE(key.ok()) << key.status().message();
  EXPECT_EQ(key->subtree,
            "/" + before[2].Get("ARG_NAME") + "/" + before[3].Get("ARG_NAME"));
  KeySet partner;
  ASSERT_TRUE(partner.AddText(*DerivedKeyLine(*key, {}), "key file").ok());
  const auto after = Lines(MustReveal(hidden, {"name"}, partner));
  EXPECT_EQ(after[2], before[2]);  // home
  EXPECT_EQ(after[3], before[3]);  // alice
  EXPECT_EQ(after[4].Get("ARG_NAME"), "diary.txt");
  EXPECT_EQ(after[5].Get("ARG_NAME"), "tax");
  EXPECT_EQ(after[6].Get("ARG_NAME"), "2025.pdf");
  EXPECT_EQ(after[7], before[7]);  // bob
  EXPECT_EQ(after[8], before[8]);  // his diary
  EXPECT_EQ(after[9].Get("ARG_NAME"), "diary.txt");
}

// --- Keys of a day.

TEST(Reveal, KeysOfADayDoNotOpenAnother) {
  const std::string trace = SampleTrace();
  const std::string hidden =
      MustHide(trace, "keys daily;\n" + KeepAllBut("uid = fpe;\n"));
  const auto with = [&](const std::string& day) {
    KeySet keys;
    DerivedKey key;
    key.domain = "uid";
    key.day = day;
    key.key = DomainKey(TestKeys().master(), "uid", day);
    EXPECT_TRUE(keys.AddText(*DerivedKeyLine(key, {}), "key file").ok());
    return RevealTrace(hidden, {"uid"}, keys);
  };
  // TraceBuilder's traces are of that day.
  EXPECT_TRUE(with("2026-01-02").status.ok());
  EXPECT_FALSE(with("2026-01-03").status.ok());
  EXPECT_FALSE(with("").status.ok());
  EXPECT_EQ(Lines(MustReveal(hidden, {"uid"}, TestKeys())).size(),
            Lines(trace).size());
}

}  // namespace
}  // namespace tracefs::anonymize
