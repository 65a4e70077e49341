// What a question asks of who did something, against what a trace tells.
#include "tracefs/replay/caller_words.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/format/record.h"

namespace tracefs::replay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The ancestors of a process: known, or not.
class Above final : public EventResolver {
 public:
  explicit Above(bool known) : known_(known) {}
  void ResolveCaller(Event&) override {}
  void ResolveAttributes(Event&) override {}
  bool ForEachAncestor(Event&, void*,
                       bool (*)(void*, uint32_t, std::string_view)) override {
    return known_;
  }
  bool LinkOf(uint64_t, NodeLink*) override { return false; }
  void ForEachName(uint64_t, void*,
                   void (*)(void*, std::string_view)) override {}

 private:
  const bool known_;
};

void Told(format::Record* record, Op op, uint64_t pid) {
  record->event.op = op;
  record->event.present = 0;
  if (pid != 0) record->event.Set(Field::kPid, pid);
}

TEST(CallerWordsTest, WordsAreLookedForOutsideOfQuotationMarks) {
  const auto missing = [](std::string_view question) {
    return CallerWords(question).Missing(false);
  };
  EXPECT_EQ(missing(""), "");
  EXPECT_EQ(missing("name = \"x\" AND op = write"), "");
  EXPECT_THAT(missing("cuid = 0"), HasSubstr("no operation of the trace tells "
                                             "cuid"));
  EXPECT_THAT(missing("cuid = 0"), HasSubstr("or anything else of who did it"));
  EXPECT_THAT(missing("size>5&&(cpid=1)"), HasSubstr("tells cpid"));
  EXPECT_EQ(missing("name = \"cuid = 0\""), "");
  EXPECT_EQ(missing("name = 'cuid' OR name = \"it's cpid\""), "");
  EXPECT_THAT(missing("name = 'a' OR cgid = 1"), HasSubstr("tells cgid"));
  EXPECT_THAT(missing("\"\" cname"), HasSubstr("tells cname"));
  EXPECT_EQ(missing("name = \"no end cuid"), "");
  EXPECT_EQ(missing("'"), "");
  EXPECT_EQ(missing("xcuid = 0 OR cuid_ = 1 OR cuidZ = 3"), "")
      << "other words";
  for (const char* around : {"[]", "{}", "@@", "``", "09", "()", "<>"}) {
    EXPECT_NE(missing(around[0] + std::string("cuid") + around[1]), "")
        << around;
  }
}

TEST(CallerWordsTest, WhatOneOperationTellsIsTold) {
  CallerWords words("cuid = 0 OR cname = \"sh\"");
  format::Record record;
  Told(&record, Op::read_, 5);
  words.See(record, false);
  EXPECT_THAT(words.Missing(false), HasSubstr("tells cuid; of who did it they "
                                              "tell cpid"));
  record.event.Set(Field::kUid, 0);
  words.See(record, false);
  EXPECT_THAT(words.Missing(false), HasSubstr("tells cname; of who did it they "
                                              "tell cpid, cuid"));
  Told(&record, Op::read_, 0);
  record.text_present |= 1u << format::Record::TextIndex(Field::kComm);
  words.See(record, false);
  EXPECT_EQ(words.Missing(false), "");
}

TEST(CallerWordsTest, AncestorsTakeProcessesOrParents) {
  CallerWords words("descendant = \"make\"");
  CallerWords under("under 5");
  format::Record record;
  Told(&record, Op::read_, 5);
  for (CallerWords* const each : {&words, &under}) {
    EXPECT_THAT(each->Missing(false),
                StartsWith("the trace does not tell whose child"));
    EXPECT_EQ(CallerWords("under 5").Missing(true), "");
    each->See(record, false);
    EXPECT_THAT(each->Missing(false),
                HasSubstr("of who did it they tell cpid"));
  }
  record.event.Set(Field::kPpid, 4);
  under.See(record, false);
  EXPECT_EQ(under.Missing(false), "");
}

TEST(CallerWordsTest, WhoChangedSomethingMayBeMeant) {
  const auto doubtful = [](std::string_view question, Op op, uint64_t pid,
                           bool known, bool is_answer, uint64_t error = 0,
                           uint64_t flags = 0) {
    CallerWords words(question);
    Above above(known);
    format::Record record;
    Told(&record, op, pid);
    record.event.resolver = &above;
    record.event.Set(Field::kErrno, error);
    record.event.Set(Field::kFlags, flags);
    words.See(record, is_answer);
    words.See(record, is_answer);  // it is one process
    return words.doubtful();
  };
  EXPECT_EQ(doubtful("under 5", Op::write_, 7, false, false), 1u);
  EXPECT_EQ(doubtful("under 5", Op::unlink_, 7, false, false), 1u);
  EXPECT_EQ(doubtful("under 5", Op::write_, 7, true, false), 0u);
  EXPECT_EQ(doubtful("under 5", Op::write_, 7, false, true), 0u);
  EXPECT_EQ(doubtful("under 5", Op::write_, 0, false, false), 0u)
      << "the kernel by itself";
  EXPECT_EQ(doubtful("under 5", Op::write_, 7, false, false, EIO), 0u);
  EXPECT_EQ(doubtful("under 5", Op::read_, 7, false, false), 0u);
  EXPECT_EQ(doubtful("under 5", Op::open_, 7, false, false, 0, O_RDWR), 0u);
  EXPECT_EQ(doubtful("under 5", Op::open_, 7, false, false, 0, O_TRUNC), 1u);
  EXPECT_EQ(doubtful("cuid = 5", Op::write_, 7, false, false), 0u)
      << "nobody asks for those above";
  format::Record alone;
  Told(&alone, Op::write_, 7);
  CallerWords words("under 5");
  words.See(alone, false);
  EXPECT_EQ(words.doubtful(), 1u);
}

}  // namespace
}  // namespace tracefs::replay
