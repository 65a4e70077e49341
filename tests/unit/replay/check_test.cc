// What a trace lacks for a replay: each thing alone is one finding, and tells
// whether it prevents a right replay.
#include "tracefs/replay/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tracefs/replay/outcome.h"

namespace tracefs::replay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A trace without a fault.
Checked Whole() {
  Checked checked;
  checked.from_trace = true;
  checked.lacks.operations = 10;
  checked.lacks.final_states = 1;
  return checked;
}

std::vector<std::string> Keys(const Checked& checked) {
  std::vector<std::string> keys;
  for (const Finding& f : FindLacks(checked)) {
    keys.push_back((f.fatal ? "!" : "") + f.key + " " +
                   std::to_string(f.count));
  }
  return keys;
}

TEST(CheckTest, AWholeTraceLacksNothing) {
  EXPECT_THAT(Keys(Whole()), IsEmpty());
  EXPECT_TRUE(IsReplayable(Whole(), FindLacks(Whole())));
  Checked plan;  // of a plan only the header is known
  EXPECT_THAT(Keys(plan), IsEmpty());
}

TEST(CheckTest, EachLackAloneIsOneFinding) {
  struct Row {
    uint64_t Lacks::*lack;
    const char* finding;
  };
  const std::vector<Row> rows = {
      {&Lacks::without_path, "!without_file 3"},
      {&Lacks::without_handle, "!without_handle 3"},
      {&Lacks::without_arguments, "!without_arguments 3"},
      {&Lacks::without_time, "without_time 3"},
      {&Lacks::without_duration, "without_duration 3"},
      {&Lacks::without_result, "without_result 3"},
      {&Lacks::without_thread, "without_thread 3"},
      {&Lacks::without_user, "without_user 3"},
      {&Lacks::without_inode, "without_inode 3"},
      {&Lacks::writes_without_data, "writes_without_data 3"},
      {&Lacks::reads_without_hash, "reads_without_hash 3"},
      {&Lacks::xattrs_without_value, "xattrs_without_value 3"},
      {&Lacks::states_late, "states_late 3"},
      {&Lacks::states_incomplete, "states_incomplete 3"},
      {&Lacks::entries_before, "entries_without_state 3"},
      {&Lacks::entries_without_attributes, "entries_without_attributes 3"},
      {&Lacks::handles_before, "handles_before 3"},
      {&Lacks::not_replayed, "not_replayed 3"},
      {&Lacks::unplaced_changes, "!unplaced_changes 3"},
      {&Lacks::unseen_changes, "!unseen_changes 3"},
      {&Lacks::unplaced, "unplaced 3"},
  };
  for (const auto& [lack, finding] : rows) {
    Checked checked = Whole();
    checked.lacks.*lack = 3;
    // Those are among the ones without a place.
    if (lack == &Lacks::unplaced_changes) checked.lacks.unplaced = 3;
    EXPECT_THAT(Keys(checked), ElementsAre(finding));
    EXPECT_EQ(IsReplayable(checked, FindLacks(checked)), finding[0] != '!');
    checked.lacks.*lack = 0;
  }
  Checked lost = Whole();
  lost.header.lost = 3;
  EXPECT_THAT(Keys(lost), ElementsAre("!lost 3"));
}

TEST(CheckTest, WhatIsKnownIsNoLack) {
  Checked checked = Whole();
  checked.lacks.entries_before = 5;
  checked.lacks.entries_known = 3;
  EXPECT_THAT(Keys(checked), ElementsAre("entries_without_state 2"));
  checked.lacks.entries_known = 6;
  EXPECT_THAT(Keys(checked), IsEmpty());
}

TEST(CheckTest, EmptyTracesAndTracesWithoutAnEnd) {
  Checked empty;
  empty.from_trace = true;
  EXPECT_THAT(Keys(empty), ElementsAre("!operations 0"));
  Checked endless = Whole();
  endless.lacks.final_states = 0;
  EXPECT_THAT(Keys(endless), ElementsAre("without_end 0"));
}

TEST(CheckTest, FilesWithUnknownContentsAreNamed) {
  Checked checked = Whole();
  checked.header.unknown_content = 2;
  checked.unknown_files = {"a", "b\n"};
  EXPECT_THAT(Keys(checked), ElementsAre("!files_without_content 2"));
  const auto findings = FindLacks(checked);
  EXPECT_THAT(findings[0].files, ElementsAre("a", "b\n"));
  EXPECT_THAT(LacksText(checked, findings, false),
              HasSubstr("(--existing)\n      a\n      b\\n\n"));
  checked.unknown_files.assign(150, "f");
  checked.header.unknown_content = 160;
  const std::string text = LacksText(checked, FindLacks(checked), false);
  EXPECT_THAT(text, HasSubstr("\n      ... and 60 more\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 1 + 100 + 1);
  EXPECT_THAT(LacksText(checked, FindLacks(checked), true),
              HasSubstr("\"files\": ["));
}

TEST(CheckTest, DamagePreventsARightReplay) {
  Checked checked = Whole();
  checked.damaged = true;
  EXPECT_FALSE(IsReplayable(checked, {}));
  EXPECT_THAT(LacksText(checked, {}, false),
              testing::StartsWith("not replayable as it was\n"));
  EXPECT_THAT(LacksText(checked, {}, false), HasSubstr("damaged, cut, or"));
  EXPECT_THAT(LacksText(checked, {}, true), HasSubstr("\"replayable\": false"));
}

TEST(CheckTest, TextAndJsonHaveTheSameNumbers) {
  Checked checked = Whole();
  checked.header.operations = 11;
  checked.header.lanes = 12;
  checked.header.initial_entries = 13;
  checked.header.initial_bytes = 14;
  checked.header.made_entries = 15;
  checked.header.written_bytes = 16;
  checked.visibility = "all";
  checked.lacks.without_time = 17;
  checked.lacks.privileges[0] = 18;
  const auto findings = FindLacks(checked);
  EXPECT_EQ(
      LacksText(checked, findings, false),
      "replayable\n"
      "11 operations of 12 threads, on 13 files that were there (14 bytes) and "
      "15 new ones; 16 bytes are written\n"
      "  17 operations have no time: order and --timing are not known; record "
      "with STR_TIMESTAMP\n"
      "  18 times set-user-ID and set-group-ID bits: left out without "
      "--set-id, and then the tree differs in them\n");
  const std::string json = LacksText(checked, findings, true);
  for (const char* part :
       {"\"replayable\": true", "\"damaged\": false", "\"operations\": 11",
        "\"threads\": 12", "\"initial_entries\": 13", "\"initial_bytes\": 14",
        "\"written_bytes\": 16", "\"made_entries\": 15",
        "\"visibility\": \"all\"", "\"set_id\": 18",
        "\"what\": \"without_time\"", "\"count\": 17", "\"prevents\": false"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
  EXPECT_EQ(json.find("\"files\""), json.npos);
}

TEST(PrivilegeTest, EachIsCountedForItself) {
  for (size_t i = 0; i < kPrivilegeCount; ++i) {
    Checked checked = Whole();
    checked.lacks.privileges[i] = 2;
    const auto found = FindPrivileges(checked);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].key, Info(static_cast<Privilege>(i)).key);
    EXPECT_EQ(found[0].count, 2u);
    EXPECT_FALSE(found[0].fatal);
    LeftOut left;
    left.Add(static_cast<Privilege>(i));
    for (size_t k = 0; k < kPrivilegeCount; ++k) {
      EXPECT_EQ(left.Counts()[k], k == i ? 1u : 0u);
      Grants grants;
      grants.Add(static_cast<Privilege>(i));
      EXPECT_EQ(grants.Has(static_cast<Privilege>(k)), k == i);
    }
  }
}

TEST(PrivilegeTest, WhatAnExtendedAttributeTakes) {
  const auto takes = [](std::string_view name, std::string_view value = "") {
    return PrivilegeOfXattr(name, AsBytes(value));
  };
  EXPECT_EQ(takes("user.a"), std::nullopt);
  EXPECT_EQ(takes("security.capability"), Privilege::kSecurityXattr);
  EXPECT_EQ(takes("trusted.a"), Privilege::kTrustedXattr);
  EXPECT_EQ(takes("system.other"), Privilege::kTrustedXattr);
  EXPECT_EQ(takes("a"), Privilege::kTrustedXattr);
  // posix_acl_xattr: a version, then entries of a tag, permissions and an id.
  const std::string version("\2\0\0\0", 4);
  const auto entry = [](char tag) {
    return std::string({tag, 0, 7, 0, 1, 0, 0, 0});
  };
  for (const char* acl :
       {"system.posix_acl_access", "system.posix_acl_default"}) {
    EXPECT_EQ(takes(acl), std::nullopt) << "removed";
    EXPECT_EQ(takes(acl, version), std::nullopt);
    EXPECT_EQ(takes(acl, version + entry(1) + entry(4) + entry(0x20)),
              std::nullopt);
    EXPECT_EQ(takes(acl, version + entry(1) + entry(2)), Privilege::kOwner);
    EXPECT_EQ(takes(acl, version + entry(8) + entry(4)), Privilege::kOwner);
    EXPECT_EQ(takes(acl, version + "x"), Privilege::kOwner) << "unreadable";
    EXPECT_EQ(takes(acl, "x"), Privilege::kOwner) << "unreadable";
  }
}

TEST(OutcomeTest, AddsUpWhatEachLaneCounted) {
  Outcome one;
  OpOutcome& read = one.ops[static_cast<size_t>(Op::read_)];
  read.count = 5;
  read.matched = 1;
  read.mismatched = 2;
  read.explained[0] = 1;
  read.explained[kExplainedCount - 1] = 1;
  read.errors[{1, 2}] = 3;
  one.untimed = 4;
  one.untimed_failed = 5;
  one.bytes_compared = 6;
  one.bytes_written = 7;
  one.bytes_read = 8;
  one.waits = 9;
  one.skipped = 10;
  one.elapsed_ns = 11;
  one.mismatches = {{3, "c"}, {1, "a"}};
  Outcome all;
  all.elapsed_ns = 12;
  all.mismatches = {{2, "b"}};
  all.Add(one);
  all.Add(one);
  EXPECT_EQ(all.operations(), 10u);
  EXPECT_EQ(all.matched(), 2u);
  EXPECT_EQ(all.mismatched(), 4u);
  EXPECT_EQ(all.explained(), 4u);
  EXPECT_EQ(all.ops[static_cast<size_t>(Op::read_)].errors.at({1, 2}), 6u);
  EXPECT_EQ(all.untimed, 8u);
  EXPECT_EQ(all.untimed_failed, 10u);
  EXPECT_EQ(all.bytes_compared, 12u);
  EXPECT_EQ(all.bytes_written, 14u);
  EXPECT_EQ(all.bytes_read, 16u);
  EXPECT_EQ(all.waits, 18u);
  EXPECT_EQ(all.skipped, 20u);
  EXPECT_EQ(all.elapsed_ns, 12u);
  std::string order;
  for (const Mismatch& m : all.mismatches) order += m.text;
  EXPECT_EQ(order, "aabcc");
  Outcome many;
  many.mismatches.assign(Outcome::kMostMismatches, {9, "z"});
  all.Add(many);
  EXPECT_EQ(all.mismatches.size(), Outcome::kMostMismatches);
  EXPECT_EQ(all.mismatches[4].text, "c");
}

TEST(HistogramTest, SharesAndCounts) {
  tally::Histogram low;
  tally::Histogram high;
  for (int i = 0; i < 4; ++i) low.Add(10);
  EXPECT_EQ(ShareDistance(low, high), 0) << "nothing to compare with";
  EXPECT_EQ(ShareDistance(high, low), 0);
  high.Add(10);
  high.Add(1000000);
  EXPECT_DOUBLE_EQ(ShareDistance(low, high), 0.5);
  EXPECT_DOUBLE_EQ(ShareDistance(high, low), 0.5);
  EXPECT_DOUBLE_EQ(ShareDistance(low, low), 0);
  EXPECT_EQ(CountUpTo(high, 9), 0u);
  EXPECT_EQ(CountUpTo(high, 10), 1u);
  EXPECT_EQ(CountUpTo(high, 1000000), 2u);
}

}  // namespace
}  // namespace tracefs::replay
