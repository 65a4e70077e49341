// What filters are compiled to, as text. That the programs answer right is
// oracle_test.cc's matter; here it is that they are small and well laid out.
#include "filters/input/compile.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "filters/input/filter.h"
#include "tests/support/filter_world.h"

namespace tracefs {
namespace {

class CompileTest : public ::testing::Test {
 protected:
  Filter Compile(const std::string& text) {
    auto filter = Filter::Compile(text, {}, names_, table_);
    EXPECT_TRUE(filter.ok()) << filter.status().message();
    return filter.ok() ? *filter : *Filter::Compile("", {}, names_, table_);
  }
  std::string General(const std::string& text) {
    return Compile(text).general().Dump();
  }
  std::string For(Op op, const std::string& text) {
    return Compile(text).program(op).Dump();
  }

  testing::FakeNames names_;
  NameTable table_;
};

TEST_F(CompileTest, OnePredicate) {
  EXPECT_EQ(General("op = write"),
            "0: op = write ? 2 : 1\n"
            "1: drop\n"
            "2: keep\n");
  EXPECT_EQ(General(""), "0: keep\n");
}

TEST_F(CompileTest, ThePapersSample) {
  EXPECT_EQ(General("cuid = 0 OR cgid = 1"),
            "0: cuid = 0 ? 3 : 1\n"
            "1: cgid = 1 ? 3 : 2\n"
            "2: drop\n"
            "3: keep\n");
}

TEST_F(CompileTest, OpPredicatesCostNothingOnceSpecialised) {
  const std::string text =
      "op IN { read write } AND cuid = 0 OR op = unlink OR op = rename AND "
      "name = a";
  EXPECT_EQ(For(Op::read_, text),
            "0: cuid = 0 ? 2 : 1\n"
            "1: drop\n"
            "2: keep\n");
  EXPECT_EQ(For(Op::unlink_, text), "0: keep\n");
  EXPECT_EQ(For(Op::mkdir_, text), "0: drop\n");
  EXPECT_EQ(For(Op::rename_, text),
            "0: name = a ? 2 : 1\n"
            "1: drop\n"
            "2: keep\n");
}

TEST_F(CompileTest, FieldsAnOperationNeverHasAreFoldedAway) {
  EXPECT_EQ(For(Op::unlink_, "offset != 5"), "0: drop\n");
  EXPECT_EQ(For(Op::unlink_, "NOT offset = 5"), "0: keep\n");
  EXPECT_EQ(For(Op::read_, "NOT offset = 5"),
            "0: offset = 5 ? 1 : 2\n"
            "1: drop\n"
            "2: keep\n");
}

TEST_F(CompileTest, PredicatesOnOneFieldBecomeOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"cuid = 0 OR cuid = 5 OR cuid IN { 1 6 }", "cuid in { 0..1 5..6 }"},
      {"cuid > 10 AND cuid < 20 AND cuid != 15", "cuid in { 11..14 16..19 }"},
      {"cuid > 10 AND NOT cuid >= 20", "cuid in { 11..19 }"},
      {"cuid != 5 AND cuid != 5", "cuid != 5"},
      {"cuid < 10 OR cuid > 3", "cuid is known"},
      {"cuid = 1 OR cuid > 1 AND cuid < 1000000000",
       "cuid in { 1..999999999 }"},
      {"result < 0 OR result = 0", "result <= 0"},
      {"result = -1 OR result = 4096", "result in { -1 4096 }"},
      {"op = read OR op = write OR op != mkdir", "op != mkdir"},
      {"op = read OR op != open", "op not in { open create tmpfile }"},
      {"op IN { read write } AND op != read", "op = write"},
      {"name = a OR ext = c OR name ~ x*",
       "any of { name = a, ext = c, name ~ x* }"},
      {"path = /a OR path ~ /b/**", "any of { path = /a, path ~ /b/** }"},
      {"cname = a OR cname = b", "any of { cname = a, cname = b }"},
      {"mode = 0644 OR mode = 0600", "mode in { 0600 0644 }"},
      {"flags ~ O_RDONLY OR flags ~ O_WRONLY", "flags & 0x3 <= 0x1"},
  };
  for (const auto& [text, test] : cases) {
    EXPECT_EQ(General(text),
              "0: " + std::string(test) + " ? 2 : 1\n1: drop\n2: keep\n")
        << text;
  }
}

TEST_F(CompileTest, ConstantsAreFolded) {
  for (const char* text :
       {"cuid = 0 AND cuid = 1", "op = read AND op = write",
        "op IN {read} AND NOT op IN {read write}",
        "name = a AND NOT (name = a OR ext = c)", "ctid = 1 AND NOT ctid = 1",
        "cuid < 5 AND NOT cuid < 10",
        "ctid = 1 AND (cuid = 0 AND cuid = 1 OR op = read AND op = open)"}) {
    EXPECT_EQ(General(text), "0: drop\n") << text;
  }
  for (const char* text :
       {"cuid = 0 OR NOT cuid = 0", "op != read OR op != write",
        "NOT (cuid = 0 AND cuid = 1)", "ext = c OR ext = h OR NOT ext = c",
        "NOT cuid = 0 OR NOT cuid = 1"}) {
    EXPECT_EQ(General(text), "0: keep\n") << text;
  }
  // Not so where the field may be absent: both sides are false then.
  EXPECT_EQ(General("offset = 5 OR offset != 5"),
            "0: offset is known ? 2 : 1\n"
            "1: drop\n"
            "2: keep\n");
}

TEST_F(CompileTest, CheapPredicatesComeFirst) {
  EXPECT_EQ(General("path ~ /d/** AND size > 0 AND cname = sh AND result < 0 "
                    "AND name = a AND cuid = 0 AND op = read"),
            "0: op = read ? 1 : 7\n"
            "1: cuid = 0 ? 2 : 7\n"
            "2: name = a ? 3 : 7\n"
            "3: result <= -1 ? 4 : 7\n"
            "4: cname = sh ? 5 : 7\n"
            "5: size >= 1 ? 6 : 7\n"
            "6: path ~ /d/** ? 8 : 7\n"
            "7: drop\n"
            "8: keep\n");
}

TEST_F(CompileTest, EqualNodesAreShared) {
  EXPECT_EQ(General("(ctid = 1 AND offset = 2 OR cuid = 3 AND offset = 2) AND "
                    "length = 4"),
            "0: length = 4 ? 1 : 4\n"
            "1: ctid = 1 ? 3 : 2\n"
            "2: cuid = 3 ? 3 : 4\n"
            "3: offset = 2 ? 5 : 4\n"
            "4: drop\n"
            "5: keep\n");
}

// A test whose outcome an earlier one on the way decides is not made again.
TEST_F(CompileTest, JumpsAreThreaded) {
  EXPECT_EQ(General("ctid = 1 AND (ctid < 5 OR offset = 2) AND (ctid = 2 OR "
                    "cuid = 3)"),
            "0: ctid = 1 ? 1 : 2\n"
            "1: cuid = 3 ? 3 : 2\n"
            "2: drop\n"
            "3: keep\n");
  EXPECT_EQ(General("ctid = 1 AND offset = 2 OR ctid = 1 AND length = 3"),
            "0: ctid = 1 ? 1 : 3\n"
            "1: offset = 2 ? 4 : 2\n"
            "2: length = 3 ? 4 : 3\n"
            "3: drop\n"
            "4: keep\n");
  EXPECT_EQ(General("ctid < 5 AND offset = 2 OR ctid = 7 AND length = 3"),
            "0: ctid <= 4 ? 3 : 1\n"
            "1: ctid = 7 ? 2 : 4\n"
            "2: length = 3 ? 5 : 4\n"
            "3: offset = 2 ? 5 : 4\n"
            "4: drop\n"
            "5: keep\n");
}

TEST_F(CompileTest, EveryEdgeThatCanFallsThrough) {
  const Filter filter = Compile(
      "ctid = 1 AND offset = 2 AND cuid = 3 OR length = 4 AND cgid = 5");
  const auto nodes = filter.general().nodes();
  for (size_t i = 0; i + 2 < nodes.size(); ++i) {
    EXPECT_NE(nodes[i].falls, Node::kNoFall) << i;
  }
}

TEST_F(CompileTest, OperationsWithEqualProgramsShareOne) {
  const Filter filter = Compile("op = read AND cuid = 0 OR name = a");
  EXPECT_EQ(&filter.program(Op::write_), &filter.program(Op::mkdir_));
  EXPECT_NE(&filter.program(Op::write_), &filter.program(Op::read_));
}

TEST_F(CompileTest, OnlyWhatHasTwoEndsIsAskedForTheSecond) {
  const Filter path2 = Compile("path2 = /a");
  EXPECT_EQ(path2.program(Op::read_).Dump(), "0: drop\n");
  EXPECT_EQ(Compile("NOT path2 = /a").program(Op::read_).Dump(), "0: keep\n");
  for (const Op op : {Op::rename_, Op::link_, Op::copy_file_range_}) {
    EXPECT_EQ(path2.program(op).Dump(),
              "0: path2 = /a ? 2 : 1\n1: drop\n2: keep\n");
  }
  const Filter inode = Compile("inode = 5");
  EXPECT_EQ(inode.program(Op::read_).Dump(),
            "0: inode = 5 ? 2 : 1\n1: drop\n2: keep\n");
  EXPECT_EQ(inode.program(Op::copy_file_range_).Dump(),
            "0: inode = 5 ? 3 : 1\n1: inode2 = 5 ? 3 : 2\n"
            "2: drop\n3: keep\n");
}

// What is said of a file at its open must hold for copies from it and to it.
TEST_F(CompileTest, AFilesCopiesAreUndecidedWhereTheOtherFileMayMatch) {
  testing::FilterWorld world;
  const auto decide = [&](const std::string& text) {
    Event event;
    event.op = Op::copy_file_range_;
    event.resolver = &world;
    event.node = 4;  // /d/Makefile
    event.Set(Field::kInode, 4);
    event.Set(Field::kType, 8);
    return Compile(text).DecideForFile(event);
  };
  EXPECT_EQ(decide("path = /d/Makefile"), Verdict::kKeep);
  EXPECT_EQ(decide("name = Makefile"), Verdict::kKeep);
  EXPECT_EQ(decide("path ~ /out/**"), Verdict::kUndecided);
  EXPECT_EQ(decide("NOT path ~ /out/**"), Verdict::kUndecided);
  EXPECT_EQ(decide("name = other"), Verdict::kUndecided);
  EXPECT_EQ(decide("ext = c"), Verdict::kUndecided);
  EXPECT_EQ(decide("inode = 4"), Verdict::kUndecided);
  EXPECT_EQ(decide("inode = 5"), Verdict::kUndecided);
  EXPECT_EQ(decide("path1 = /d/Makefile"), Verdict::kUndecided);
  EXPECT_EQ(decide("path2 = /d/Makefile"), Verdict::kUndecided);
  EXPECT_EQ(decide("op = read"), Verdict::kDrop);
}

TEST_F(CompileTest, DotIsAGraph) {
  EXPECT_EQ(Compile("name = \"a\\\"b\"").general().DumpDot("x.conf"),
            "digraph \"x.conf\" {\n"
            "  n0 [label=\"name = \\\"a\\\\\\\"b\\\"\", shape=ellipse];\n"
            "  n0 -> n2 [label=\"true\"];\n"
            "  n0 -> n1 [label=\"false\", style=dashed];\n"
            "  n1 [label=\"drop\", shape=box];\n"
            "  n2 [label=\"keep\", shape=box];\n"
            "}\n");
}

TEST_F(CompileTest, NeedsSayWhatIsRead) {
  struct Expected {
    const char* text;
    Op op;
    Verdict constant;
    bool caller, late, names;
  };
  constexpr Verdict kOpen = Verdict::kUndecided;
  const Expected cases[] = {
      {"", Op::read_, Verdict::kKeep, false, false, false},
      {"op = open", Op::read_, Verdict::kDrop, false, false, false},
      {"cuid = 0", Op::read_, kOpen, false, false, false},
      {"cpid = 1", Op::read_, kOpen, true, false, false},
      {"cname = sh", Op::read_, kOpen, true, false, false},
      {"csid IN {1 100}", Op::read_, kOpen, true, false, false},
      {"result < 0", Op::read_, kOpen, false, true, false},
      {"errno = EIO", Op::read_, kOpen, false, true, false},
      {"size > 5", Op::read_, kOpen, false, true, false},
      {"mode ~ 0111", Op::read_, kOpen, false, true, false},
      {"ext = c", Op::read_, kOpen, false, false, true},
      // A lookup finds the file, which may have other names.
      {"ext = c", Op::lookup_, kOpen, false, true, true},
      {"inode = 5", Op::read_, kOpen, false, false, false},
      {"inode = 5", Op::create_, kOpen, false, true, false},
      {"type = dir", Op::tmpfile_, kOpen, false, true, false},
      {"path = /a", Op::lookup_, kOpen, false, false, false},
      {"op = open AND cname = sh", Op::read_, Verdict::kDrop, false, false,
       false},
      {"op = open AND cname = sh OR result < 0", Op::read_, kOpen, false, true,
       false},
  };
  for (const Expected& e : cases) {
    const FilterNeeds needs = Compile(e.text).Needs(e.op);
    EXPECT_EQ(needs.constant, e.constant) << e.text;
    EXPECT_EQ(needs.caller, e.caller) << e.text;
    EXPECT_EQ(needs.late, e.late) << e.text;
    EXPECT_EQ(needs.names, e.names) << e.text;
  }
}

TEST_F(CompileTest, EarlyIsDecidedWhereLateFieldsDoNotMatter) {
  testing::FilterWorld world;
  Event event;
  event.op = Op::read_;
  event.resolver = &world;
  event.node = 3;
  event.Set(Field::kUid, 0);
  event.Set(Field::kTid, 1000);
  const std::pair<const char*, Verdict> cases[] = {
      {"cuid = 0 OR result < 0", Verdict::kKeep},
      {"cuid = 1 AND result < 0", Verdict::kDrop},
      {"cuid = 0 AND result < 0", Verdict::kUndecided},
      // The result comes before the caller in the program, and does not hide
      // that the caller decides.
      {"result < 0 AND cname = make", Verdict::kDrop},
      {"result < 0 OR cname = sh", Verdict::kKeep},
      {"(result < 0 OR cname = make) AND (size > 5 OR cname = sh)",
       Verdict::kUndecided},
      {"(result < 0 OR cname = sh) AND (size > 5 OR cname = make)",
       Verdict::kUndecided},
      {"(result < 0 OR cname = make) AND (size > 5 OR cname = make) AND "
       "path ~ /x**",
       Verdict::kDrop},
      {"size > 5 OR NOT size > 5", Verdict::kKeep},
  };
  for (const auto& [text, verdict] : cases) {
    Event before = event;
    EXPECT_EQ(Compile(text).DecideEarly(before), verdict) << text;
  }
}

}  // namespace
}  // namespace tracefs
