// Processes of the page: whose node an operation is added to, and that folding
// keeps sums and forgets what is gone.
#include "tracefs/report/processes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tracefs::report {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kBegin = 1'700'000'000 * kSecond;

// One that takes operations and records of made-up processes.
class World {
 public:
  NodeId Do(uint32_t pid, uint64_t start = 0, uint32_t ppid = 0,
            size_t trace = 0) {
    format::Record record;
    record.caller.pid = record.caller.tid = pid;
    record.caller.start_time = start;
    record.caller.ppid = ppid;
    Event& event = record.event;
    event.op = Op::read_;
    event.caller = &record.caller;
    event.Set(Field::kTime, ++now_ * kSecond);
    event.Set(Field::kPid, pid);
    event.Set(Field::kLatency, 7);
    constexpr size_t kComm = format::Record::TextIndex(Field::kComm);
    record.text_present = 1u << kComm;
    record.text[kComm] = "sh";
    const NodeId node = all_->Of(record, kBegin + now_ * kSecond, trace);
    all_->Add(node, {.count = 1});
    all_->KeepBounded();
    return node;
  }
  ProcessRecord Record(ProcessRecord::Kind kind, uint32_t pid, uint64_t start) {
    ProcessRecord record;
    record.kind = kind;
    record.time_ns = ++now_ * kSecond;
    record.real_ns = kBegin + record.time_ns;
    record.process = {pid, start};
    record.tid = pid;
    return record;
  }
  void Fork(uint32_t pid, uint64_t start, uint32_t child,
            uint64_t child_start) {
    ProcessRecord record = Record(ProcessRecord::Kind::kFork, pid, start);
    record.child = {child, child_start};
    record.child_tid = child;
    Take(record);
  }
  void Exit(uint32_t pid, uint64_t start, uint32_t code) {
    ProcessRecord record = Record(ProcessRecord::Kind::kExit, pid, start);
    record.exit_code = code;
    Take(record);
  }
  void Take(const ProcessRecord& record) {
    all_->Take(record, 0);
    all_->KeepBounded();
  }

  const Processes::Facts& facts(NodeId node) const { return all_->facts(node); }
  NodeId parent(NodeId node) const { return all_->tree().at(node).parent; }
  const Processes& all() const { return *all_; }

 private:
  const std::unique_ptr<Processes> all_ = std::make_unique<Processes>();
  uint64_t now_ = 0;
};

TEST(ProcessesTest, PidsOfTwoTracesAreTwoProcesses) {
  World world;
  const NodeId one = world.Do(5, 1, 0, 0);
  EXPECT_NE(world.Do(5, 1, 0, 1), one);
  EXPECT_EQ(world.Do(5, 1, 0, 0), one);
  EXPECT_EQ(world.facts(one).pid, 5u);
  EXPECT_EQ(world.facts(one).name, "sh");
}

TEST(ProcessesTest, APidThatIsUsedAgainIsAnotherOne) {
  World world;
  world.Fork(1, 1, 2, 10);
  const NodeId first = world.Do(2, 10);
  world.Exit(2, 10, 3);
  EXPECT_EQ(world.Do(2, 10), first);  // files are closed for it
  world.Fork(1, 1, 2, 20);
  const NodeId second = world.Do(2, 20);
  EXPECT_NE(second, first);
  world.Exit(2, 20, 4);
  EXPECT_EQ(world.facts(first).exit_code, 3u);
  EXPECT_EQ(world.facts(second).exit_code, 4u);
  EXPECT_TRUE(world.facts(second).begun && world.facts(second).ended);
  // Nobody who is there: what the first one did is told late.
  EXPECT_EQ(world.Do(2, 10), world.all().unknown());
  EXPECT_EQ(world.parent(first), world.parent(second));
  EXPECT_EQ(world.facts(world.parent(first)).pid, 1u);
}

TEST(ProcessesTest, AForkThatIsToldLateGivesTheParent) {
  World world;
  const NodeId parent = world.Do(1, 1);
  const NodeId child = world.Do(2, 10);
  EXPECT_EQ(world.parent(child), 0u);
  world.Fork(1, 1, 2, 10);
  EXPECT_EQ(world.Do(2, 10), child);
  EXPECT_EQ(world.parent(child), parent);
  EXPECT_EQ(world.facts(child).ppid, 1u);
}

TEST(ProcessesTest, Malicious_ManyAreFoldedAndNoOperationIsLost) {
  World world;
  constexpr uint32_t kMany = 200'000;
  for (uint32_t pid = 1; pid <= kMany; ++pid) world.Do(pid, pid, pid / 2);
  EXPECT_LT(world.all().tree().size(), size_t{1} << 17);
  uint64_t count = 0;
  const NameTree& tree = world.all().tree();
  for (NodeId node = 0; node < tree.size(); ++node) {
    count += tree.at(node).own.count + tree.at(node).folded.count;
    ASSERT_TRUE(node == 0 || tree.at(node).parent < node);
  }
  EXPECT_EQ(count, kMany);
  // One that was folded begins again; the last ones are known.
  const NodeId last = world.Do(kMany, kMany);
  EXPECT_EQ(world.Do(kMany, kMany), last);
  EXPECT_EQ(world.facts(last).pid, kMany);
}

}  // namespace
}  // namespace tracefs::report
