// The compiled filter against the slow evaluator: every expression up to a
// small size over small alphabets, and large random ones; on events of every
// operation; for the general and the specialised programs; when everything is
// known and while the operation has not run.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/filter.h"
#include "tests/support/filter_world.h"
#include "tests/support/slow_filter.h"

namespace tracefs {
namespace {

using testing::EvalSlowly;
using testing::FakeNames;
using testing::FilterWorld;

class OracleTest : public ::testing::Test {
 protected:
  // `per_op` events of each operation.
  void MakeEvents(size_t per_op) {
    for (size_t op = 0; op < kOpCount; ++op) {
      for (size_t i = 0; i < per_op; ++i) {
        events_.push_back(world_.Random(static_cast<Op>(op), random_));
        events_before_.push_back(world_.BeforeRun(events_.back(), random_));
      }
    }
  }

  // Compares all answers about `text` on all events.
  void Check(const std::string& text) {
    const auto ast = ParseFilter(text);
    ASSERT_TRUE(ast.ok()) << text << "\n" << ast.status().message();
    const auto filter = Filter::Compile(text, {}, names_, table_);
    ASSERT_TRUE(filter.ok()) << text << "\n" << filter.status().message();
    largest_ = std::max(largest_, filter->general().nodes().size());
    for (size_t i = 0; i < events_.size(); ++i) {
      const Op op = events_[i].op;
      const FilterNeeds needs = filter->Needs(op);
      Event oracle_event = events_[i];
      const bool expected = EvalSlowly(*ast, oracle_event, names_);
      const auto about = [&] {
        return text + "\non " + std::string(OpName(op)) + ", event " +
               std::to_string(i) + "\n" + filter->general().Dump() +
               "specialised:\n" + filter->program(op).Dump();
      };

      Event event = events_[i];
      if (i % 4 != 0) world_.SetNameBits(table_, event);  // else: ask names
      Event again = event;
      world_.callers_resolved = 0;
      ASSERT_EQ(filter->Keep(event), expected) << about();
      if (!needs.caller) {
        ASSERT_EQ(world_.callers_resolved, 0) << about();
      }
      ASSERT_EQ(filter->general().Keep(again), expected) << about();
      if (needs.constant != Verdict::kUndecided) {
        ASSERT_EQ(needs.constant == Verdict::kKeep, expected) << about();
      }

      Event before = events_before_[i];
      if (i % 4 != 0) world_.SetNameBits(table_, before);
      world_.attributes_resolved = 0;
      const Verdict early = filter->DecideEarly(before);
      ASSERT_EQ(world_.attributes_resolved, 0) << about();
      if (early == Verdict::kUndecided) {
        ASSERT_TRUE(needs.late) << about();
        ++undecided_;
      } else {
        ASSERT_EQ(early == Verdict::kKeep, expected) << about();
        ++decided_;
      }
      ++compared_;

      // What is said at open about all reads of a file holds for each, and of
      // copies for those from it and to it.
      if (op == Op::read_ || op == Op::copy_file_range_) {
        for (const uint64_t node :
             {events_[i].node, events_[i].second_file()}) {
          if (node == 0 || !events_[i].Has(Field::kType)) continue;
          Event file;
          file.op = op;
          file.resolver = &world_;
          file.node = node;
          file.Set(Field::kInode, node);
          file.Set(Field::kType, world_.TypeOf(node));
          if (i % 4 != 0) world_.SetNameBits(table_, file);
          const Verdict for_file = filter->DecideForFile(file);
          if (for_file != Verdict::kUndecided) {
            ASSERT_EQ(for_file == Verdict::kKeep, expected) << about();
          }
        }
      }
    }
  }

  // Every expression of exactly `leaves` predicates, each part of it plain or
  // negated.
  void ForEachExpression(const std::vector<std::string>& alphabet, int leaves,
                         const std::function<void(const std::string&)>& visit) {
    if (leaves == 1) {
      for (const std::string& predicate : alphabet) {
        visit(predicate);
        visit("NOT " + predicate);
      }
      return;
    }
    for (int left = 1; left < leaves; ++left) {
      ForEachExpression(alphabet, left, [&](const std::string& a) {
        ForEachExpression(alphabet, leaves - left, [&](const std::string& b) {
          for (const char* op : {" AND ", " OR "}) {
            const std::string both = "(" + a + op + b + ")";
            visit(both);
            if (leaves == 2) visit("NOT " + both);
          }
        });
      });
    }
  }

  void CheckAll(const std::vector<std::string>& alphabet, int max_leaves) {
    for (int leaves = 1; leaves <= max_leaves; ++leaves) {
      ForEachExpression(alphabet, leaves, [&](const std::string& text) {
        if (!HasFatalFailure()) Check(text);
      });
    }
  }

  void TearDown() override {
    RecordProperty("comparisons", static_cast<int>(compared_));
  }

  FakeNames names_;
  NameTable table_;
  FilterWorld world_;
  std::mt19937 random_{20040331};
  std::vector<Event> events_;
  std::vector<Event> events_before_;
  size_t largest_ = 0;  // nodes of a general program
  size_t compared_ = 0;
  size_t decided_ = 0;
  size_t undecided_ = 0;
};

// One of every kind, and of some kinds all the ways to write it.
const std::vector<std::string> kAlphabet = {
    "op = write",
    "op != lookup",
    "op IN {open, close read}",
    "cuid = 0",
    "cuid = root",
    "cuid != alice",
    "cuid < 6",
    "cuid IN { 0 1000 4294967295 }",
    "cgid >= staff",
    "ctid = 1001",
    "cpid > 100",
    "csid IN {10 20}",
    "cpgid <= 1",
    "cname = sh",
    "cname ~ k*",
    "cname != make",
    "name = a",
    "name != a",
    "name IN {a a.c Makefile}",
    "name ~ \"*.[ch]\"",
    "ext = c",
    "ext != gz",
    "ext ~ t*",
    "path = /d/e/a",
    "path ~ /d/**",
    "path ~ /d/*",
    "path != /d",
    "path1 = /d/e/a",
    "path2 ~ /d/**",
    "path2 != /d/e/a",
    "inode = 3",
    "inode != 3",
    "inode2 = 4",
    "inode IN {1 2 3 4 5 6 7 8 9}",
    "type = dir",
    "type != file",
    "type IN {link dir}",
    "fuid = alice",
    "fgid != 0",
    "mode = 0644",
    "mode ~ 0111",
    "mode != 0755",
    "mode IN {0644, 0600}",
    "size >= 4K",
    "size IN {1000 3000}",
    "nlink > 1",
    "offset = 0",
    "offset != 4096",
    "offset IN {0 4096 65536 18446744073709551615}",
    "offset > 4096",
    "length < 4097",
    "length >= 64",
    "new_size = 0",
    "new_size < 4K",
    "new_mode ~ 04000",
    "new_mode != 0644",
    "new_uid = alice",
    "new_gid IN {0 100}",
    "sets = size",
    "sets IN {mode uid gid}",
    "sets != mtime",
    "sets = mtime_now",
    "flags ~ O_CREAT | O_EXCL",
    "flags ~ O_WRONLY",
    "flags ~ O_RDONLY",
    "flags = 0x42",
    "result < 0",
    "result >= 4K",
    "result != -1",
    "result IN {-1 0}",
    "errno = ENOENT",
    "errno > 0",
    "errno IN {EIO EACCES}",
    "latency >= 1ms",
    "latency = 0",
};

TEST_F(OracleTest, EveryPredicateAlone) {
  MakeEvents(40);
  CheckAll(kAlphabet, 1);
  Check("");
  Check("# nothing");
}

TEST_F(OracleTest, EveryPair) {
  MakeEvents(2);
  CheckAll(kAlphabet, 2);
  EXPECT_GT(undecided_, compared_ / 20);
  EXPECT_GT(decided_, compared_ / 2);
}

TEST_F(OracleTest, EveryTripleOnOneField) {
  MakeEvents(3);
  CheckAll({"cuid = 0", "cuid != 5", "cuid < 6", "cuid IN {1 1000}"}, 3);
}

TEST_F(OracleTest, EveryTripleOnASignedLateField) {
  MakeEvents(3);
  CheckAll({"result < 0", "result = 4096", "result >= 0", "errno != EIO"}, 3);
}

TEST_F(OracleTest, EveryTripleOnNames) {
  MakeEvents(3);
  CheckAll({"name = a", "name != a", "ext = c", "name ~ *.*"}, 3);
}

TEST_F(OracleTest, EveryTripleOfManySources) {
  MakeEvents(3);
  CheckAll(
      {"op = lookup", "offset >= 1", "cname = sh", "size > 10", "path ~ /d/**"},
      3);
}

// The answer if the predicates have these outcomes.
bool Outcome(const Ast& ast, const std::map<std::string, bool>& outcomes) {
  const auto child = [&](const Ast& c) { return Outcome(c, outcomes); };
  switch (ast.kind) {
    case Ast::Kind::kAll:
      return true;
    case Ast::Kind::kPredicate:
      return outcomes.at(Dump(ast));
    case Ast::Kind::kNot:
      return !child(ast.children[0]);
    case Ast::Kind::kAnd:
      return std::all_of(ast.children.begin(), ast.children.end(), child);
    case Ast::Kind::kOr:
      return std::any_of(ast.children.begin(), ast.children.end(), child);
  }
  return false;
}

// DecideEarly says kUndecided only if the answer hangs on what is not known:
// with every outcome of the late predicates the answers are compared.
TEST_F(OracleTest, EarlyIsUndecidedOnlyIfItMustBe) {
  const std::vector<std::string> late = {"result < 0", "size > 10",
                                         "latency = 0"};
  const std::vector<std::string> early = {"cuid = 0", "cname = sh"};
  std::vector<std::string> alphabet = late;
  alphabet.insert(alphabet.end(), early.begin(), early.end());
  Event event = world_.BeforeRun(world_.Random(Op::read_, random_), random_);
  size_t undecided = 0;
  for (int leaves = 1; leaves <= 3; ++leaves) {
    ForEachExpression(alphabet, leaves, [&](const std::string& text) {
      const auto ast = ParseFilter(text);
      const auto filter = Filter::Compile(text, {}, names_, table_);
      ASSERT_TRUE(ast.ok() && filter.ok());
      for (unsigned known = 0; known < 4; ++known) {
        std::map<std::string, bool> outcomes;
        event.Set(Field::kUid, (known & 1) != 0 ? 0 : 1);
        event.Set(Field::kTid, (known & 2) != 0 ? 1000 : 1001);
        outcomes[early[0]] = (known & 1) != 0;
        outcomes[early[1]] = (known & 2) != 0;
        bool keep = false;
        bool drop = false;
        for (unsigned unknown = 0; unknown < 8; ++unknown) {
          for (size_t i = 0; i < 3; ++i) {
            outcomes[late[i]] = (unknown >> i & 1) != 0;
          }
          (Outcome(*ast, outcomes) ? keep : drop) = true;
        }
        Event before = event;
        before.caller_resolved = false;
        const Verdict verdict = filter->DecideEarly(before);
        if (keep && drop) {
          ASSERT_EQ(verdict, Verdict::kUndecided) << text;
          ++undecided;
        } else if (verdict == Verdict::kUndecided) {
          ADD_FAILURE() << text << "\n" << filter->general().Dump();
        } else {
          ASSERT_EQ(verdict == Verdict::kKeep, keep) << text;
        }
      }
    });
  }
  EXPECT_GT(undecided, 1000u);
}

// An expression of about `size` predicates and at most `depth` parentheses.
std::string RandomExpression(const std::vector<std::string>& alphabet,
                             std::mt19937& random, int size, int depth) {
  if (size <= 1 || depth == 0) return alphabet[random() % alphabet.size()];
  const size_t parts = 2 + random() % 4;
  std::string text = random() % 4 == 0 ? "NOT (" : "(";
  const char* op = random() % 2 == 0 ? " AND " : " OR ";
  for (size_t i = 0; i < parts; ++i) {
    if (i > 0) text += op;
    text += RandomExpression(alphabet, random, size / static_cast<int>(parts),
                             depth - 1);
  }
  return text + ")";
}

TEST_F(OracleTest, RandomExpressionsOfModerateSize) {
  MakeEvents(2);
  for (int i = 0; i < 2000 && !HasFatalFailure(); ++i) {
    Check(RandomExpression(kAlphabet, random_,
                           3 + static_cast<int>(random_() % 40), 8));
  }
}

// Few predicates, many times: all that is known from the way is used.
TEST_F(OracleTest, RandomExpressionsThatRepeatThemselves) {
  MakeEvents(2);
  const std::vector<std::string> few = {
      "cuid < 6",     "cuid IN {0 5}", "offset = 0", "name = a",
      "ext IN {c h}", "result < 0",    "op = read",  "cname = sh"};
  for (int i = 0; i < 2000 && !HasFatalFailure(); ++i) {
    Check(RandomExpression(few, random_, 3 + static_cast<int>(random_() % 60),
                           10));
  }
}

TEST_F(OracleTest, LargeRandomExpressions) {
  MakeEvents(3);
  const auto number = [&] { return std::to_string(random_() % 100000); };
  for (int i = 0; i < 6 && !HasFatalFailure(); ++i) {
    // Parts on several fields with numbers of their own, so that little can be
    // merged and most parts decide something.
    std::vector<std::string> parts = kAlphabet;
    for (int n = 0; n < 2000; ++n) {
      parts.push_back("(offset < " + number() + " AND length > " + number() +
                      ")");
      parts.push_back("(cpid = " + number() + " OR name = n" + number() + ")");
      parts.push_back("(offset = " + number() + " OR inode != " + number() +
                      " AND result > " + number() + ")");
    }
    std::string text;
    for (int n = 0; n < 400; ++n) {
      if (n > 0) text += n % 5 == 0 ? " OR " : " AND ";
      text += RandomExpression(parts, random_, 12, 6);
    }
    Check(text);
  }
  EXPECT_GT(largest_, 2000u);
}

TEST_F(OracleTest, DeepNestingUpToTheLimit) {
  MakeEvents(1);
  std::string deep = "cuid = 0";
  for (size_t i = 0; i < kMaxFilterNesting; ++i) {
    const std::string number = std::to_string(i * 7);
    deep = i % 2 == 0 ? "NOT (offset != " + number + " AND " + deep + ")"
                      : "(length = " + number + " OR " + deep + ")";
  }
  Check(deep);
}

}  // namespace
}  // namespace tracefs
