#include "filters/input/program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "filters/input/filter.h"
#include "tests/support/filter_world.h"

namespace tracefs {
namespace {

using testing::FakeNames;
using testing::FilterWorld;

Node Terminal(NodeKind kind) {
  Node node;
  node.kind = kind;
  return node;
}

Node Range(Field field, uint64_t lo, uint64_t span, uint16_t yes, uint16_t no) {
  Node node;
  node.kind = NodeKind::kRange;
  node.field = static_cast<uint8_t>(field);
  node.mask = IntervalSet::kMax;
  node.lo = lo;
  node.span = span;
  node.yes = yes;
  node.no = no;
  return node;
}

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    auto data = std::make_shared<ProgramData>();
    data->tables.push_back(IntervalSet::OfAll({1, 3, 1000}));
    const auto list = [&](Field field) {
      data->texts.push_back(
          {TextMatcher::Make(field, {TextMatch::Kind::kAnyOf, {"a"}})});
    };
    list(Field::kName);
    list(Field::kPath);
    list(Field::kComm);
    list(Field::kPath);
    data->texts.back().push_back(
        TextMatcher::Make(Field::kNewPath, {TextMatch::Kind::kAnyOf, {"a"}}));
    data->texts.emplace_back();
    data_ = data;
    good_ = {Range(Field::kUid, 0, 0, 3, 1), Range(Field::kGid, 1, 0, 3, 2),
             Terminal(NodeKind::kDrop), Terminal(NodeKind::kKeep)};
    good_[0].falls = 0;
  }

  std::string Wrong(const std::vector<Node>& nodes) {
    return Program::Validate(nodes, *data_).message();
  }

  std::shared_ptr<const ProgramData> data_;
  std::vector<Node> good_;
};

TEST_F(ProgramTest, TakesWhatIsWellFormed) {
  EXPECT_EQ(Wrong(good_), "ok");
  EXPECT_EQ(Wrong({Terminal(NodeKind::kKeep)}), "ok");
  EXPECT_EQ(Wrong({Range(Field::kUid, 0, 0, 1, 1), Terminal(NodeKind::kDrop)}),
            "ok");
}

TEST_F(ProgramTest, Malicious_RefusesWhatIsNot) {
  using Change = std::function<void(std::vector<Node>&)>;
  const std::pair<const char*, Change> cases[] = {
      {"a program without nodes", [](auto& n) { n.clear(); }},
      {"node 2 is no terminal", [](auto& n) { n.resize(3), n[2] = n[1]; }},
      {"node 2 cannot be reached", [](auto& n) { n[1].no = 3; }},
      {"node 1 cannot be reached",
       [](auto& n) { n[0].no = 2, n[0].falls = 2; }},
      {"node 0 has an edge that leads back", [](auto& n) { n[0].yes = 0; }},
      {"node 1 has an edge that leads back", [](auto& n) { n[1].no = 0; }},
      {"node 1 has an edge that leads back", [](auto& n) { n[1].yes = 1; }},
      {"node 0 has an edge that leads out", [](auto& n) { n[0].yes = 4; }},
      {"node 0 has an edge that leads out", [](auto& n) { n[0].yes = 65535; }},
      {"node 0 is on no numeric field", [](auto& n) { n[0].field = 255; }},
      {"node 0 is on no numeric field",
       [](auto& n) { n[0].field = kNumericFieldCount; }},
      {"node 0 is on a field that is no predicate",
       [](auto& n) { n[0].field = static_cast<uint8_t>(Field::kTime); }},
      {"node 0 is on a field that is no predicate",
       [](auto& n) { n[0].field = static_cast<uint8_t>(Field::kFh); }},
      {"node 0 does not fetch its field as it should",
       [](auto& n) { n[0].field = static_cast<uint8_t>(Field::kPid); }},
      {"node 0 does not fetch its field as it should",
       [](auto& n) { n[0].fetched = 1; }},
      {"node 0 falls through to a node that is not the next",
       [](auto& n) { n[0].falls = 1; }},
      {"node 0 cannot fall through so", [](auto& n) { n[0].falls = 3; }},
      {"node 0 cannot fall through so",
       [](auto& n) { n[0].kind = NodeKind::kBitmap; }},
      {"node 0 is of no known kind",
       [](auto& n) {
         n[0].kind = static_cast<NodeKind>(77);
         n[0].field = 0;
       }},
      {"node 0 names no interval table",
       [](auto& n) {
         n[0].kind = NodeKind::kTable;
         n[0].lo = 1;
       }},
      {"node 0 has a field", [](auto& n) { n[0].kind = NodeKind::kNames; }},
      {"node 0 names no list of name predicates",
       [](auto& n) {
         n[0] = n[1];
         n[0].kind = NodeKind::kNames;
         n[0].field = 0;
         n[0].span = 5;
       }},
      {"node 0 names no list of name predicates",
       [](auto& n) {
         n[0].kind = NodeKind::kNameList;
         n[0].field = 0;
         n[0].span = 1;
       }},
      {"node 0 names no list of path predicates",
       [](auto& n) {
         n[0].kind = NodeKind::kPath;
         n[0].field = 0;
         n[0].span = 2;
       }},
      // Of two ends, and of none.
      {"node 0 names no list of path predicates",
       [](auto& n) {
         n[0].kind = NodeKind::kPath;
         n[0].field = 0;
         n[0].span = 3;
       }},
      {"node 0 names no list of path predicates",
       [](auto& n) {
         n[0].kind = NodeKind::kPath;
         n[0].field = 0;
         n[0].span = 4;
       }},
      {"node 0 names no list of caller name predicates",
       [](auto& n) {
         n[0].kind = NodeKind::kCallerName;
         n[0].field = 0;
         n[0].span = 1;
       }},
      {"node 0 is a terminal before the end",
       [](auto& n) { n[0].kind = NodeKind::kKeep; }},
      {"node 3 is one terminal too many",
       [](auto& n) { n[3].kind = NodeKind::kDrop; }},
      {"node 3 is one terminal too many",
       [](auto& n) { n[1].kind = NodeKind::kKeep; }},
      {"node 2 is a terminal with a test", [](auto& n) { n[2].field = 200; }},
      {"node 3 is a terminal with a test", [](auto& n) { n[3].falls = 1; }},
  };
  for (const auto& [message, change] : cases) {
    std::vector<Node> nodes = good_;
    change(nodes);
    EXPECT_EQ(Wrong(nodes), message);
  }
  EXPECT_EQ(Wrong(std::vector<Node>(Program::kMaxNodes + 1)),
            "a program of more than 65535 nodes");
}

// Any bytes: Validate decides, and what it lets through runs to an end.
TEST_F(ProgramTest, Malicious_MutatedArraysNeverHarm) {
  FakeNames names;
  NameTable table;
  FilterWorld world;
  std::mt19937 random(7);
  const auto filter = Filter::Compile(
      "cuid = 0 AND (offset > 5 OR result < 0) OR cuid = 5 AND (length IN {1 "
      "1000 5000} OR errno IN {EIO ENOENT})",
      {}, names, table);
  ASSERT_TRUE(filter.ok());
  std::vector<Event> events;
  for (size_t op = 0; op < kOpCount; ++op) {
    events.push_back(world.Random(static_cast<Op>(op), random));
  }
  std::vector<Node> start(filter->general().nodes().begin(),
                          filter->general().nodes().end());
  // The first list of the fixture's data stands in for the filter's own.
  for (Node& node : start) {
    if (node.kind == NodeKind::kTable) node.lo = 0;
  }
  ASSERT_EQ(Wrong(start), "ok");
  int taken = 0;
  for (int round = 0; round < 200000; ++round) {
    std::vector<Node> nodes = start;
    for (size_t n = 1 + random() % 3; n > 0; --n) {
      auto* bytes = reinterpret_cast<unsigned char*>(nodes.data());
      const size_t at = random() % (nodes.size() * sizeof(Node));
      bytes[at] = static_cast<unsigned char>(random() % 2 == 0 ? random() % 12
                                                               : random());
    }
    if (random() % 8 == 0) nodes.resize(random() % (nodes.size() + 1));
    const auto program = Program::Make(nodes, data_);
    if (!program.ok()) continue;
    ++taken;
    Event event = events[round % events.size()];
    const bool keep = program->Keep(event);
    Event before = events[round % events.size()];
    const Verdict early = program->DecideEarly(before);
    if (program->Needs(event.op).constant != Verdict::kUndecided) {
      EXPECT_EQ(early == Verdict::kKeep, keep);
    }
    EXPECT_FALSE(program->Dump().empty());
    EXPECT_FALSE(program->DumpDot("x").empty());
  }
  EXPECT_GT(taken, 1000);
}

TEST_F(ProgramTest, TheLongestProgramRuns) {
  std::vector<Node> nodes;
  const size_t tests = Program::kMaxNodes - 2;
  for (size_t i = 0; i < tests; ++i) {
    nodes.push_back(Range(Field::kUid, i, 0, static_cast<uint16_t>(tests + 1),
                          static_cast<uint16_t>(i + 1)));
    nodes.back().falls = i % 2 == 0 ? 0 : Node::kNoFall;
  }
  nodes.push_back(Terminal(NodeKind::kDrop));
  nodes.push_back(Terminal(NodeKind::kKeep));
  const auto program = Program::Make(nodes, data_);
  ASSERT_TRUE(program.ok()) << program.status().message();
  Event event;
  event.Set(Field::kTime, 1);
  for (const auto& [uid, keep] : {std::pair<uint64_t, bool>{0, true},
                                  {tests - 1, true},
                                  {tests, false}}) {
    event.Set(Field::kUid, uid);
    EXPECT_EQ(program->Keep(event), keep) << uid;
    EXPECT_EQ(program->DecideEarly(event),
              keep ? Verdict::kKeep : Verdict::kDrop);
  }
}

// What costs something is fetched when a node that needs it is reached.
TEST_F(ProgramTest, FetchesOnlyWhatItNeeds) {
  FakeNames names;
  NameTable table;
  FilterWorld world;
  const auto filter =
      Filter::Compile("cuid = 0 AND cname = sh AND size > 5", {}, names, table);
  ASSERT_TRUE(filter.ok());
  const auto keep = [&](uint64_t uid, uint64_t tid) {
    world.callers_resolved = world.attributes_resolved = 0;
    Event event;
    event.op = Op::read_;
    event.resolver = &world;
    event.node = 3;
    event.Set(Field::kUid, uid);
    event.Set(Field::kTid, tid);
    return filter->Keep(event);
  };
  EXPECT_FALSE(keep(1, 1000));
  EXPECT_EQ(world.callers_resolved + world.attributes_resolved, 0);
  EXPECT_FALSE(keep(0, 1001));
  EXPECT_EQ(world.callers_resolved, 1);
  EXPECT_EQ(world.attributes_resolved, 0);
  EXPECT_TRUE(keep(0, 1000));
  EXPECT_EQ(world.callers_resolved, 1);
  EXPECT_EQ(world.attributes_resolved, 1);
  EXPECT_FALSE(keep(0, 5000));  // a caller that is gone
}

// A set within 64 numbers is a bitmap: what lies outside is not wrapped into
// it, and neither is its border.
TEST_F(ProgramTest, ASetWithinSixtyFourNumbersEndsWhereItEnds) {
  FakeNames names;
  NameTable table;
  const auto filter =
      Filter::Compile("cuid IN { 1000 1003 1063 }", {}, names, table);
  ASSERT_TRUE(filter.ok());
  ASSERT_EQ(filter->general().nodes()[0].kind, NodeKind::kBitmap);
  for (uint64_t uid = 0; uid < 5000; ++uid) {
    Event event;
    event.op = Op::unlink_;
    event.Set(Field::kTime, 1);
    event.Set(Field::kUid, uid);
    EXPECT_EQ(filter->Keep(event), uid == 1000 || uid == 1003 || uid == 1063)
        << uid;
  }
}

// Where a node of another kind is met first, and in an event that lacks fields,
// the same test stands in other loops.
TEST_F(ProgramTest, ASetEndsWhereItEndsInEveryLoop) {
  FakeNames names;
  NameTable table;
  FilterWorld world;
  const auto with_caller =
      Filter::Compile("cuid IN { 1000 1003 } AND cname = sh", {}, names, table);
  const auto alone = Filter::Compile("cuid IN { 1000 1003 }", {}, names, table);
  const auto of_attributes =
      Filter::Compile("nlink IN { 1000 1003 }", {}, names, table);
  ASSERT_TRUE(with_caller.ok() && alone.ok() && of_attributes.ok());
  for (const uint64_t uid : {936, 939, 999, 1001, 1064, 1067, 1128}) {
    Event event;
    event.op = Op::unlink_;
    event.resolver = &world;
    event.Set(Field::kTime, 1);
    event.Set(Field::kTid, 1000);
    event.Set(Field::kUid, uid);
    event.Set(Field::kNlink, uid);
    EXPECT_FALSE(with_caller->Keep(event)) << uid;
    EXPECT_FALSE(of_attributes->Keep(event)) << uid;
    event.present &= ~Bit(Field::kTime);  // slot 0
    EXPECT_FALSE(alone->Keep(event)) << uid;
    EXPECT_EQ(alone->DecideEarly(event), Verdict::kDrop) << uid;
  }
}

// Whoever waits for the reply must know: by then the caller may be gone, and
// the file may have another path.
TEST_F(ProgramTest, SaysWhatItLooksAt) {
  FakeNames names;
  NameTable table;
  struct Case {
    const char* text;
    Op op;
    bool caller, late, names, paths;
  };
  const Case cases[] = {
      {"path ~ /d/**", Op::unlink_, false, false, false, true},
      {"path ~ /d/**", Op::read_, false, false, false, true},
      {"path ~ /d/** AND cuid = 0", Op::write_, false, false, false, true},
      {"path = /a AND result < 0", Op::read_, false, true, false, true},
      {"path = /a AND cname = sh", Op::read_, true, false, false, true},
      {"name = a", Op::unlink_, false, true, true, false},
      {"name = a", Op::read_, false, false, true, false},
      {"cname = sh", Op::read_, true, false, false, false},
      {"cpid = 5", Op::read_, true, false, false, false},
      {"size > 5", Op::read_, false, true, false, false},
      {"inode = 5", Op::lookup_, false, true, false, false},
      {"inode = 5", Op::read_, false, false, false, false},
      {"cuid = 0", Op::read_, false, false, false, false},
  };
  for (const Case& c : cases) {
    const auto filter = Filter::Compile(c.text, {}, names, table);
    ASSERT_TRUE(filter.ok());
    const FilterNeeds needs = filter->Needs(c.op);
    const std::string what =
        std::string(c.text) + ' ' + std::string(OpName(c.op));
    EXPECT_EQ(needs.caller, c.caller) << what;
    EXPECT_EQ(needs.late, c.late) << what;
    EXPECT_EQ(needs.names, c.names) << what;
    EXPECT_EQ(needs.paths, c.paths) << what;
  }
}

TEST_F(ProgramTest, AnEventWithoutResolverHasNoCallerAndNoPath) {
  FakeNames names;
  NameTable table;
  for (const char* text : {"cname ~ *", "cpid >= 0", "path ~ /**", "size >= 0",
                           "name ~ *", "ext ~ *"}) {
    const auto filter = Filter::Compile(text, {}, names, table);
    ASSERT_TRUE(filter.ok());
    Event event;
    event.op = Op::read_;
    event.node = 3;
    event.parent = 1;
    EXPECT_FALSE(filter->Keep(event)) << text;
  }
}

}  // namespace
}  // namespace tracefs
