// Properties of anonymised traces.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/read_records.h"
#include "tests/unit/anonymize/anon_world.h"
#include "tracefs/event/field.h"
#include "tracefs/format/names.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::anonymize {
namespace {

using format::ArgId;
using format::MessageId;

std::string ProfileText(std::string_view name) {
  for (const Profile& profile : Profiles()) {
    if (profile.name == name) return std::string(profile.text);
  }
  ADD_FAILURE() << name;
  return {};
}

// Calls `use` with each pair of values that stand in one place before and
// after.
template <typename Use>
void ForEachPair(const std::vector<Line>& before,
                 const std::vector<Line>& after, const std::string& name,
                 Use use) {
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string a = before[i].Get(name);
    const std::string b = after[i].Get(name);
    if (!a.empty() || !b.empty()) use(a, b);
  }
}

// Each value has one token and each token one value, over all these fields.
void ExpectOneToOne(const std::string& trace, const std::string& anonymised,
                    const std::vector<std::string>& fields) {
  std::map<std::string, std::string> to;
  std::map<std::string, std::string> from;
  const auto before = Lines(trace);
  const auto after = Lines(anonymised);
  size_t changed = 0;
  for (const std::string& field : fields) {
    ForEachPair(before, after, field,
                [&](const std::string& a, const std::string& b) {
                  EXPECT_EQ(to.try_emplace(a, b).first->second, b) << field;
                  EXPECT_EQ(from.try_emplace(b, a).first->second, a) << field;
                  EXPECT_EQ(a.size() == b.size() || field == "ARG_NAME", true);
                  changed += a != b;
                });
  }
  EXPECT_GT(changed, 0U) << fields[0];
}

TEST(Rewrite, KeepingEverythingChangesNoMessage) {
  const std::string trace = SampleTrace();
  std::vector<Line> expected = Lines(trace);
  // The one property of a CHANGE goes by "property * = drop".
  for (Line& line : expected) {
    std::erase_if(line.arguments,
                  [](const auto& a) { return a.first == "ARG_PROPERTY"; });
  }
  EXPECT_EQ(Lines(MustHide(trace, KeepAllBut(""))), expected);
}

TEST(Rewrite, EveryKindOfMappingOfNumbersIsOneToOne) {
  const std::string trace = SampleTrace();
  const std::vector<std::string> uids = {"ARG_UID", "ARG_NEW_UID",
                                         "ARG_INODE_UID"};
  for (const char* action : {"fpe", "fpe keep { 0 7 1000 }", "map",
                             "map keep { 2 3 }", "shift", "hmac"}) {
    ExpectOneToOne(
        trace,
        MustHide(trace, KeepAllBut("uid = " + std::string(action) + ";\n")),
        uids);
  }
  ExpectOneToOne(trace, MustHide(trace, KeepAllBut("inode = fpe;\n")),
                 {"ARG_INODE", "ARG_PARENT_INODE", "ARG_NEW_PARENT_INODE"});
}

TEST(Rewrite, NamesAreOneToOneWithinADomain) {
  const std::string trace = SampleTrace();
  for (const char* action :
       {"encrypt", "encrypt keep-dots keep-marks keep-digits ext { txt c }",
        "encrypt ext join pad 16", "hmac", "map", "hmac ext keep"}) {
    ExpectOneToOne(
        trace,
        MustHide(trace, KeepAllBut("name = " + std::string(action) + ";\n")),
        {"ARG_NAME"});
  }
}

TEST(Rewrite, DomainsAreNotLinked) {
  // The same numbers as uid and as gid.
  test::TraceBuilder trace;
  for (uint64_t i = 0; i < 50; ++i) {
    Event event;
    event.op = Op::open_;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs + i);
    event.Set(Field::kUid, 1000 + i);
    event.Set(Field::kGid, 1000 + i);
    event.Set(Field::kInode, i + 1);
    event.Set(Field::kFh, i + 1);
    trace.Add(event);
  }
  trace.EndBlock();
  trace.Finish();
  const auto lines = Lines(MustHide(
      trace.bytes(), KeepAllBut("uid = fpe;\ngid = fpe;\ninode = fpe;\n"
                                "handle = fpe;\n")));
  std::set<std::string> uids;
  for (const Line& line : lines) uids.insert(line.Get("ARG_UID"));
  for (const Line& line : lines) {
    if (line.Get("ARG_GID").empty()) continue;
    EXPECT_EQ(uids.count(line.Get("ARG_GID")), 0U);
    EXPECT_NE(line.Get("ARG_INODE"), line.Get("ARG_FH"));
  }
}

TEST(Rewrite, OtherKeysGiveOtherTokens) {
  const std::string trace = SampleTrace();
  const std::string policy = KeepAllBut("comm = encrypt;\n");
  const Outcome one = HideTrace(trace, policy, TestKeys('a'));
  const Outcome two = HideTrace(trace, policy, TestKeys('b'));
  ForEachPair(
      Lines(one.bytes), Lines(two.bytes), "ARG_COMM",
      [](const std::string& a, const std::string& b) { EXPECT_NE(a, b); });
}

TEST(Rewrite, RandomValuesCannotBeLinked) {
  const std::string trace = SampleTrace();
  const auto lines =
      Lines(MustHide(trace, KeepAllBut("inode = random;\nname = random;\n")));
  std::set<std::string> seen;
  size_t count = 0;
  for (const Line& line : lines) {
    const std::string inode = line.Get("ARG_INODE");
    if (inode.empty()) continue;
    ++count;
    seen.insert(inode);
  }
  EXPECT_EQ(seen.size(), count);
}

TEST(Rewrite, OutputDoesNotDependOnThreadsOrCaches) {
  const std::string trace = SampleTrace();
  for (const Profile& profile : Profiles()) {
    const std::string policy(profile.text);
    const std::string expected = MustHide(trace, policy);
    for (const unsigned threads : {1U, 2U, 3U, 8U}) {
      for (const size_t cache : {size_t{0}, size_t{1}, size_t{4096}}) {
        EXPECT_EQ(MustHide(trace, policy,
                           {.threads = threads, .cache_entries = cache}),
                  expected)
            << profile.name << ", " << threads << " threads, cache " << cache;
      }
    }
  }
  const std::string policy = KeepAllBut("name = random;\nuid = random;\n");
  EXPECT_EQ(MustHide(trace, policy, {.threads = 4}), MustHide(trace, policy));
}

struct Op4 {
  uint64_t begin;
  uint64_t end;
  Op op;
};
std::vector<Op4> Operations(const std::string& trace) {
  std::vector<Op4> operations;
  const format::ReadStats stats =
      test::ReadRecords(trace, [&](const format::Record& record) {
        const uint64_t begin = record.event.Get(Field::kTime);
        operations.push_back({begin, begin + record.event.Get(Field::kLatency),
                              record.event.op});
      });
  EXPECT_EQ(stats.malformed_messages, 0U);
  EXPECT_EQ(stats.bad_definitions, 0U);
  EXPECT_EQ(stats.MissingEvents(), 0U);
  return operations;
}

TEST(Rewrite, OrderNestingAndTotalsSurvive) {
  const std::string trace = SampleTrace();
  const auto before = Operations(trace);
  for (const char* policy :
       {"time = shift;\nclock = shift;\n",
        "time = quantise 1ms;\nduration = quantise 1ms;\n",
        "time = shift quantise 1us;\nduration = quantise 1us;\n"}) {
    const auto after = Operations(MustHide(trace, KeepAllBut(policy)));
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i].op, before[i].op);
      for (size_t j = 0; j < before.size(); ++j) {
        // What was before or around something still is, or is at once.
        if (before[i].end <= before[j].begin) {
          EXPECT_LE(after[i].end, after[j].begin);
        }
        if (before[i].begin <= before[j].begin &&
            before[j].end <= before[i].end) {
          EXPECT_LE(after[i].begin, after[j].begin);
          EXPECT_LE(after[j].end, after[i].end);
        }
      }
    }
  }
}

TEST(Rewrite, NoNameIsLongerThanANameMayBe) {
  for (const char* action :
       {"encrypt", "hmac", "encrypt keep-dots keep-digits ext keep", "map",
        "encrypt pad 128", "encrypt tree"}) {
    for (const Line& line :
         Lines(MustHide(SampleTrace(),
                        KeepAllBut("name = " + std::string(action) + ";\n")))) {
      EXPECT_LE(line.Get("ARG_NAME").size(), 255U) << action;
      EXPECT_EQ(line.Get("ARG_NAME").find('/'), std::string::npos);
    }
  }
}

// A token grows by steps, and so does what stands beside it.
TEST(Rewrite, NamesOfEveryLengthStayNames) {
  test::TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  for (size_t length = 1; length <= 255; ++length) {
    trace.DefinePath(root, std::string(length, 'n'));
    if (length > 3) trace.DefinePath(root, std::string(length - 2, 'n') + ".c");
    if (length % 64 == 0) trace.EndBlock();
  }
  trace.EndBlock();
  trace.Finish();
  for (const char* action : {"encrypt", "encrypt ext { c }"}) {
    size_t longest = 0;
    for (const Line& line :
         Lines(MustHide(trace.bytes(),
                        KeepAllBut("name = " + std::string(action) + ";\n")))) {
      longest = std::max(longest, line.Get("ARG_NAME").size());
    }
    EXPECT_LE(longest, 255U) << action;
    EXPECT_GT(longest, 250U) << action;
  }
}

// With `tree` one word tells nothing about another directory, in targets of
// links either.
TEST(Rewrite, TreeNamesInTargetsDependOnWhereTheyLead) {
  test::TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  Event event;
  event.op = Op::symlink_;
  event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
  event.name = "link";
  event.target = "/one/word/two/word";
  trace.Add(event, {.path = 0, .parent = root, .new_parent = 0, .process = 0});
  trace.EndBlock();
  trace.Finish();
  std::string target;
  for (const Line& line :
       Lines(MustHide(trace.bytes(), KeepAllBut("name = encrypt tree;\n")))) {
    if (!line.Get("ARG_TARGET").empty()) target = line.Get("ARG_TARGET") + "/";
  }
  std::vector<std::string> words;
  for (size_t at = 1; at < target.size();) {
    const size_t end = target.find('/', at);
    words.push_back(target.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(words.size(), 4U) << target;
  EXPECT_NE(words[1], words[3]);
}

// The same component in a name, a path and a symlink target has one token; "."
// ".." and empty components mean something and stay.
TEST(Rewrite, TreesAndTargetsKeepTheirShape) {
  test::TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  const uint32_t etc = trace.DefinePath(root, "etc");
  Event event;
  event.op = Op::symlink_;
  event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
  event.name = "etc";
  event.target = "/etc/..//./etc";
  trace.Add(event, {.path = 0, .parent = etc, .new_parent = 0, .process = 0});
  trace.EndBlock();
  trace.Finish();
  const auto lines =
      Lines(MustHide(trace.bytes(), KeepAllBut("name = encrypt;\n")));
  const std::string token = lines[2].Get("ARG_NAME");
  EXPECT_EQ(token.size(), 26U);  // 16 bytes of tag, 3 of name
  EXPECT_EQ(lines[3].Get("ARG_NAME"), token);
  EXPECT_EQ(lines[3].Get("ARG_TARGET"), "/" + token + "/..//./" + token);
}

TEST(Rewrite, WhatIsAskedForStaysInNames) {
  test::TraceBuilder trace;
  const uint32_t root = trace.DefinePath(0, "");
  for (const char* name : {"..rc.conf~", "log007.c", "lib", "x.tmp"}) {
    trace.DefinePath(root, name);
  }
  trace.EndBlock();
  trace.Finish();
  const auto lines = Lines(MustHide(
      trace.bytes(), KeepAllBut("name = encrypt keep-dots keep-marks "
                                "keep-digits ext { c } keep { lib };\n")));
  const auto name = [&](size_t i) { return lines[i].Get("ARG_NAME"); };
  EXPECT_EQ(name(2).substr(0, 2), "..");
  EXPECT_EQ(name(2).back(), '~');
  EXPECT_EQ(name(2).find("conf"), std::string::npos);
  EXPECT_TRUE(name(3).ends_with("+007.c")) << name(3);
  EXPECT_EQ(name(4), "lib");
  EXPECT_TRUE(name(5).ends_with(".tmp"));
}

// Attributes by name, hidden by `policy`.
std::vector<std::string> HiddenXattrs(const std::vector<std::string>& names,
                                      const std::string& policy) {
  test::TraceBuilder trace;
  for (const std::string& name : names) {
    Event event;
    event.op = Op::setxattr_;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
    event.xattr_name = name;
    trace.Add(event);
  }
  trace.EndBlock();
  trace.Finish();
  std::vector<std::string> hidden;
  for (const Line& line : Lines(MustHide(trace.bytes(), KeepAllBut(policy)))) {
    if (const std::string name = line.Get("ARG_XATTR_NAME"); !name.empty()) {
      hidden.push_back(name);
    }
  }
  return hidden;
}

// What stands before the first dot is a namespace only if the kernel knows it.
TEST(Rewrite, OnlyNamespacesOfTheKernelAreKept) {
  const std::vector<std::string> known = {
      "user.clearance",   "trusted.clearance", "system.posix_acl_access",
      "security.selinux", "btrfs.one.two",     "os2.clearance",
      "osx.clearance",    "hurd.clearance"};
  const std::vector<std::string> unknown = {"payroll-2026.draft",
                                            "alice.user.a",
                                            "User.a",
                                            "users.a",
                                            "user",
                                            ".user.a",
                                            "user_a.b",
                                            "xuser.a"};
  for (const char* action : {"encrypt", "hmac", "random"}) {
    const std::string policy =
        "xattr = " + std::string(action) + " keep-namespace;\n";
    const auto kept = HiddenXattrs(known, policy);
    ASSERT_EQ(kept.size(), known.size());
    for (size_t i = 0; i < known.size(); ++i) {
      const size_t dot = known[i].find('.') + 1;
      EXPECT_EQ(kept[i].substr(0, dot), known[i].substr(0, dot));
      EXPECT_EQ(kept[i].find(known[i].substr(dot), dot), std::string::npos)
          << kept[i];
      EXPECT_EQ(kept[i].find('.', dot), std::string::npos) << kept[i];
    }
    for (const std::string& name : HiddenXattrs(unknown, policy)) {
      EXPECT_EQ(name.find('.'), std::string::npos) << name;
    }
  }
  // As they were written by whichever version, they come back.
  test::TraceBuilder trace;
  Event event;
  event.op = Op::setxattr_;
  event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
  event.xattr_name = "payroll-2026.draft";
  trace.Add(event);
  trace.EndBlock();
  trace.Finish();
  const std::string hidden =
      MustHide(trace.bytes(), KeepAllBut("xattr = encrypt keep-namespace;\n"));
  EXPECT_EQ(Lines(MustReveal(hidden, {"xattr"}, TestKeys())),
            Lines(trace.bytes()));
}

// Else whoever knows one extension would find it among the stems.
TEST(Rewrite, AStemAndAnExtensionOfTheSameLettersHaveTokensApart) {
  for (const char* action : {"encrypt flat", "encrypt tree", "hmac"}) {
    test::TraceBuilder trace;
    const uint32_t root = trace.DefinePath(0, "");
    trace.DefinePath(root, "secret.secret");
    trace.EndBlock();
    trace.Finish();
    const auto lines = Lines(MustHide(
        trace.bytes(), KeepAllBut("name = " + std::string(action) + ";\n")));
    const std::string name = lines[2].Get("ARG_NAME");
    const size_t dot = name.find('.');
    ASSERT_NE(dot, std::string::npos) << action << ": " << name;
    ASSERT_EQ(name.find("secret"), std::string::npos);
    EXPECT_NE(name.substr(0, dot), name.substr(dot + 1)) << action;
    EXPECT_EQ(dot, name.size() - dot - 1) << action;
  }
}

// Headers are checked before anything is written; a change comes later.
TEST(Rewrite, APropertyThatThePolicyDoesNotNameIsLeftOut) {
  test::TraceBuilder trace;
  std::string policy = KeepAllBut("");
  if (const size_t at = policy.find("property *"); at != policy.npos) {
    policy.erase(at, policy.find(';', at) + 1 - at);
  }
  for (const auto& [key, value] : trace.header().properties) {
    policy += "property " + key + " = keep;\n";
  }
  trace.AddRaw(static_cast<uint16_t>(format::MessageId::kChange),
               [&](format::MessageWriter& out) {
                 out.Put<uint64_t>(format::ArgId::kFirstTime,
                                   test::TraceBuilder::kMonotonicNs);
                 out.PutText(format::ArgId::kProperty,
                             "later.version=payroll of 2026");
               });
  trace.EndBlock();
  trace.Finish();
  const std::string hidden = MustHide(trace.bytes(), policy);
  EXPECT_EQ(hidden.find("payroll"), std::string::npos);
  EXPECT_EQ(hidden.find("later.version"), std::string::npos);
}

TEST(Rewrite, KeepValuesDropsAllOthers) {
  const std::string trace = SampleTrace();
  const auto before = Lines(trace);
  const auto after =
      Lines(MustHide(trace, KeepAllBut("request = keep-values { 1 2 };\n")));
  ForEachPair(before, after, "ARG_LOCK_TYPE",
              [](const std::string& a, const std::string& b) {
                const bool listed = a == std::string("\1\0\0\0", 4) ||
                                    a == std::string("\2\0\0\0", 4);
                EXPECT_EQ(b, listed ? a : "");
              });
}

TEST(Rewrite, BucketsAndStepsRoundDownAndKeepFailures) {
  test::TraceBuilder trace;
  for (const int64_t result : {-1, 0, 1, 1000, 4096, 4097}) {
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
    event.SetResult(result, 0);
    trace.Add(event);
  }
  trace.EndBlock();
  trace.Finish();
  const auto results = [&](const char* action) {
    std::vector<int64_t> values;
    for (const Line& line : Lines(
             MustHide(trace.bytes(),
                      KeepAllBut("result = " + std::string(action) + ";\n")))) {
      const std::string value = line.Get("ARG_RESULT");
      if (value.size() == 8) values.push_back(LoadLe<int64_t>(value.data()));
    }
    return values;
  };
  EXPECT_EQ(results("bucket"),
            (std::vector<int64_t>{-1, 0, 1, 512, 4096, 4096}));
  EXPECT_EQ(results("quantise 1000"),
            (std::vector<int64_t>{-1, 0, 0, 1000, 4000, 4000}));
}

// A file of 12,345 bytes, read to its end, in every field that tells of it.
std::string TraceOfOneSize() {
  constexpr uint64_t kBytes = 12'345;
  test::TraceBuilder trace;
  const auto add = [&](Op op, uint64_t offset, uint64_t length,
                       int64_t result) {
    Event event;
    event.op = op;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
    event.Set(Field::kOffset, offset);
    event.Set(Field::kLength, length);
    event.Set(Field::kSize, kBytes);
    event.SetResult(result, 0);
    trace.Add(event);
  };
  add(Op::read_, 0, kBytes, kBytes);
  add(Op::read_, kBytes, 4096, 0);
  add(Op::lseek_, -kBytes, 0, 0);
  const auto raw = [&](MessageId id, auto fill) {
    trace.AddRaw(static_cast<uint16_t>(id), fill);
  };
  raw(MessageId::kAggregate, [](format::MessageWriter& out) {
    out.Put<uint32_t>(ArgId::kAggregate, 1);
    out.Put<uint64_t>(ArgId::kCount, 3);
    out.Put<uint64_t>(ArgId::kByteCount, kBytes);
    out.Put<uint64_t>(ArgId::kSizeMax, kBytes);
    std::string histogram;
    for (const uint64_t value : {uint64_t{3}, uint64_t{9'000}, kBytes}) {
      std::byte pair[format::kHistogramPairBytes];
      StoreLe<uint16_t>(pair, tally::HistogramBucket(value));
      StoreLe<uint64_t>(pair + 2, 1);
      histogram += AsText(pair);
    }
    out.PutText(ArgId::kSizeHistogram, histogram);
  });
  raw(MessageId::kState, [](format::MessageWriter& out) {
    out.Put<uint8_t>(ArgId::kStateKind, 1);
    std::byte range[16] = {};
    StoreLe<uint64_t>(range + 8, kBytes);
    out.PutText(ArgId::kDataRanges, AsText(range));
  });
  trace.EndBlock();
  trace.Finish();
  return trace.bytes();
}

TEST(Rewrite, WhatATraceEmbedsIsLeftOutWhateverThePolicySays) {
  test::TraceBuilder trace;
  Event event;
  event.op = Op::open_;
  event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs);
  trace.Add(event);
  for (const MessageId id : {MessageId::kFile, MessageId::kIndex}) {
    trace.AddRaw(static_cast<uint16_t>(id), [](format::MessageWriter& out) {
      out.PutText(ArgId::kContent, "swordfish");
      out.PutText(ArgId::kIndexData, "swordfish");
    });
  }
  trace.EndBlock();
  trace.Finish();
  ASSERT_NE(trace.bytes().find("swordfish"), std::string::npos);
  const std::string hidden = MustHide(trace.bytes(), KeepAllBut(""));
  EXPECT_EQ(hidden.find("swordfish"), std::string::npos);
  size_t operations = 0;
  for (const Line& line : Lines(hidden)) {
    EXPECT_NE(line.msg_id, static_cast<uint16_t>(MessageId::kFile));
    EXPECT_NE(line.msg_id, static_cast<uint16_t>(MessageId::kIndex));
    operations += line.msg_id >= 256 ? 1 : 0;
  }
  EXPECT_EQ(operations, 1u);
}

// Nothing says how long the file is, and everything how long it may be.
TEST(Rewrite, NoFieldTellsASizeThatIsHidden) {
  const std::string trace = TraceOfOneSize();
  const std::string hidden =
      MustHide(trace, KeepAllBut("size = bucket;\nio = bucket;\n"
                                 "result = bucket;\ndata = drop;\n"
                                 "ARG_TARGET = drop;\n"));
  const auto number = [](const std::string& value) {
    return value.size() == 8 ? LoadLe<uint64_t>(AsBytes(value).data()) : 0;
  };
  bool sums = false;
  for (const Line& line : Lines(hidden)) {
    for (const char* name : {"ARG_INODE_SIZE", "ARG_OFFSET", "ARG_LENGTH",
                             "ARG_RESULT", "ARG_BYTE_COUNT", "ARG_SIZE_MAX"}) {
      const uint64_t value = number(line.Get(name));
      EXPECT_TRUE(value == 0 || value == 8192 || value == 4096 ||
                  value == uint64_t(-8192))
          << name << ' ' << value;
    }
    EXPECT_EQ(line.Get("ARG_DATA_RANGES"), "");
    const std::string histogram = line.Get("ARG_SIZE_HISTOGRAM");
    if (histogram.empty()) continue;
    sums = true;
    ASSERT_EQ(histogram.size(), 2 * format::kHistogramPairBytes);
    const ByteSpan bytes = AsBytes(histogram);
    EXPECT_EQ(LoadLe<uint16_t>(bytes.data()), 2);
    EXPECT_EQ(LoadLe<uint64_t>(bytes.data() + 2), 1u);
    EXPECT_EQ(tally::HistogramLow(LoadLe<uint16_t>(bytes.data() + 10)), 8192u);
    EXPECT_EQ(LoadLe<uint64_t>(bytes.data() + 12), 2u);
    EXPECT_EQ(number(line.Get("ARG_BYTE_COUNT")), 8192u);
  }
  EXPECT_TRUE(sums);
  // Sums of permuted numbers would be sums of nothing.
  for (const Line& line : Lines(MustHide(trace, KeepAllBut("io = fpe;\n")))) {
    for (const char* name : {"ARG_BYTE_COUNT", "ARG_SIZE_MAX",
                             "ARG_SIZE_HISTOGRAM", "ARG_DATA_RANGES"}) {
      EXPECT_EQ(line.Get(name), "") << name;
    }
  }
}

TEST(Rewrite, HeaderIsWrittenFromScratch) {
  const std::string out = MustHide(SampleTrace(), ProfileText("research"));
  const format::TraceHeader header = HeaderOf(out);
  EXPECT_EQ(header.Get("host.name"), "");
  EXPECT_EQ(header.Get("config.text"), "");
  EXPECT_EQ(header.Get("visibility"), "exact");
  for (const char* secret : {"zeus", "alice", "\xa0\xa1\xa2\xa3\xa4\xa5"}) {
    EXPECT_EQ(out.find(secret), std::string::npos) << secret;
  }
}

// A zero means "none"; shifted it would tell the shift.
TEST(Rewrite, ShiftsDoNotShowThroughZeros) {
  const std::string out =
      MustHide(SampleTrace(), KeepAllBut("time = shift;\nclock = shift;\n"));
  for (const Line& line : Lines(out)) {
    if (line.msg_id != 2) continue;
    const std::string first = line.Get("ARG_FIRST_TIME");
    const uint64_t count = LoadLe<uint64_t>(line.Get("ARG_EVENT_COUNT").data());
    EXPECT_EQ(LoadLe<uint64_t>(first.data()) == 0, count == 0);
  }
}

// --- Bad input.

TEST(Rewrite, BadInput_DamageIsAnErrorThatSalvageLeavesOut) {
  const std::string trace = SampleTrace();
  const std::string policy = ProfileText("research");
  std::string damaged = trace;
  damaged[damaged.size() / 2] ^= 1;
  const Outcome refused = HideTrace(damaged, policy, TestKeys());
  EXPECT_EQ(refused.status.code(), StatusCode::kCorrupt);
  EXPECT_NE(refused.status.message().find("--salvage"), std::string::npos);
  const Outcome salvaged =
      HideTrace(damaged, policy, TestKeys(), {.salvage = true});
  EXPECT_TRUE(salvaged.status.ok()) << salvaged.status.message();
  EXPECT_LT(Lines(salvaged.bytes).size(), Lines(trace).size());
  EXPECT_GT(Lines(salvaged.bytes).size(), Lines(trace).size() / 2);
}

TEST(Rewrite, BadInput_EveryCutIsNoticedOrSalvaged) {
  const std::string trace = SampleTrace();
  const std::string policy = ProfileText("research");
  for (size_t size = 0; size < trace.size(); size += 997) {
    const std::string cut = trace.substr(0, size);
    EXPECT_EQ(HideTrace(cut, policy, TestKeys(), {.threads = 2}).status.code(),
              StatusCode::kCorrupt)
        << size;
    (void)HideTrace(cut, policy, TestKeys(), {.threads = 2, .salvage = true});
  }
}

TEST(Rewrite, BadInput_UnknownArgumentsAndMessagesAreErrors) {
  const auto with = [](uint16_t msg_id, uint16_t arg_id) {
    test::TraceBuilder trace;
    trace.AddRaw(msg_id, [&](format::MessageWriter& out) {
      out.PutText(arg_id, "secret");
    });
    trace.EndBlock();
    trace.Finish();
    return trace.bytes();
  };
  const std::string policy = KeepAllBut("");
  const Outcome argument =
      HideTrace(with(format::OperationMessage(Op::open_, false), 7000), policy,
                TestKeys());
  EXPECT_NE(argument.status.message().find("argument 7000"), std::string::npos)
      << argument.status.message();
  const Outcome message = HideTrace(with(77, 64), policy, TestKeys());
  EXPECT_NE(message.status.message().find("MSG_77"), std::string::npos)
      << message.status.message();
}

TEST(Rewrite, BadInput_AnonymisedTwiceIsRefused) {
  const std::string policy = ProfileText("research");
  const Outcome twice =
      HideTrace(MustHide(SampleTrace(), policy), policy, TestKeys());
  EXPECT_NE(twice.status.message().find("before"), std::string::npos);
}

TEST(Rewrite, BadInput_LyingDescriptionIsRefused) {
  // ARG_UID: id 24, width 4.
  const std::string entry(
      "\x18\0\4\0\x08"
      "ARG_UID",
      12);
  test::TraceBuilder lie;
  std::vector<std::byte> start = format::EncodeStartBlock(lie.header());
  std::string text(AsText(start));
  text[text.find(entry) + 2] = 8;
  std::string made =
      format::EncodePreamble({.serial = lie.serial(), .chain = "file"});
  made += lie.Frame(0, text);
  const Outcome outcome = HideTrace(made, KeepAllBut(""), TestKeys());
  EXPECT_EQ(outcome.status.code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace tracefs::anonymize
