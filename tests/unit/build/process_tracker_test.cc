#include "tracefs/build/process_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/build_scene.h"

namespace tracefs::build {
namespace {

// One line for each thing that was told.
class Listing : public TrackerListener {
 public:
  void ProcessBegan(const Process& p) override {
    Add("process " + Pid(p) + " of " + std::to_string(p.parent_pid));
  }
  void ExecutionBegan(const Process& p) override {
    Add("run " + Pid(p) + "." + std::to_string(p.now.index) + " " +
        std::string(p.now.image->Binary()));
  }
  void Did(const Process& p, const FileStep& step) override {
    Add("did " + Pid(p) + "." + std::to_string(p.now.index) + " " +
        std::string(step.path));
  }
  void DidWithout(ProcessId id, uint32_t, const FileStep& step) override {
    Add("left " + (id == kNobody ? "?" : std::to_string(id)) + " " +
        std::string(step.path));
  }
  void ExecutionEnded(const Process& p) override {
    Add("ran " + Pid(p) + "." + std::to_string(p.now.index) +
        (p.now.last ? " last" : ""));
  }
  void ProcessEnded(const Process& p) override {
    Add("ended " + Pid(p) + " " + std::to_string(p.ShellStatus().value_or(0)));
  }

  std::vector<std::string> lines;

 private:
  static std::string Pid(const Process& p) { return std::to_string(p.key.pid); }
  void Add(std::string line) { lines.push_back(std::move(line)); }
};

class ProcessTrackerTest : public ::testing::Test {
 protected:
  std::vector<std::string> Told() {
    tracker.Finish();
    return listing.lines;
  }

  Listing listing;
  ProcessTracker tracker{listing};
  test::BuildScene<ProcessTracker> scene{tracker};
};

using Lines = std::vector<std::string>;

TEST_F(ProcessTrackerTest, AnOperationBelongsToTheProgramThatRanThen) {
  scene.Running(1, "/bin/sh");
  scene.Fork(1, 2);
  scene.Open(2, "/a");
  scene.Exec(2, "/bin/cat /b");
  scene.Open(2, "/b");
  scene.Exit(2, 3);
  EXPECT_EQ(Told(), (Lines{"process 1 of 0", "run 1.0 ", "process 2 of 1",
                           "run 2.0 /bin/sh", "did 2.0 /a", "ran 2.0",
                           "run 2.1 /bin/cat", "did 2.1 /b", "ran 2.1 last",
                           "ended 2 3", "ran 1.0 last", "ended 1 0"}));
}

TEST_F(ProcessTrackerTest, ANumberThatIsUsedAgainIsAnotherProcess) {
  scene.Running(1, "/bin/sh");
  scene.Fork(1, 2);
  scene.Exit(2);
  ProcessRecord again;
  again.kind = ProcessRecord::Kind::kFork;
  again.time_ns = scene.now() + 10;
  again.process = scene.Key(1);
  again.child = {2, 999};
  tracker.Take(again);
  FileStep late = scene.Step(2, Op::release_, "/late");  // of the first one
  tracker.Take(late);
  FileStep step = scene.Step(2, Op::open_, "/new");
  step.process.start_ticks = 999;
  tracker.Take(step);
  const Lines lines = Told();
  EXPECT_NE(std::find(lines.begin(), lines.end(), "left ? /late"), lines.end());
  EXPECT_NE(std::find(lines.begin(), lines.end(), "did 2.0 /new"), lines.end());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "process 2 of 1"), 2);
}

TEST_F(ProcessTrackerTest, WhatIsClosedAfterTheEndIsStillOfThatProcess) {
  scene.Run(1, 2, "/bin/cat");
  scene.Exit(2);
  scene.Take(scene.Step(2, Op::release_, "/a"));
  const Lines lines = Told();
  EXPECT_NE(std::find(lines.begin(), lines.end(), "left 1 /a"), lines.end());
}

TEST_F(ProcessTrackerTest, ThreadsAreNoProcesses) {
  scene.Running(1, "/bin/x");
  scene.Fork(1, 1);  // CLONE_THREAD: the same thread group
  ProcessRecord exit;
  exit.kind = ProcessRecord::Kind::kExit;
  exit.process = scene.Key(1);
  exit.tid = 77;
  exit.exit_code = 0;
  tracker.Take(exit);
  scene.Open(1, "/a");
  const Lines lines = Told();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "did 1.0 /a"), 1);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "process 1 of 0"), 1);
}

TEST_F(ProcessTrackerTest, WithoutRecordsOperationsTellOfProcesses) {
  FileStep step = scene.Step(5, Op::open_, "/a");
  step.comm = "make";
  tracker.Take(step);
  FileStep child = scene.Step(6, Op::open_, "/b");
  child.ppid = 5;
  child.comm = "cc1";
  tracker.Take(child);
  EXPECT_FALSE(tracker.any_records());
  EXPECT_EQ(Told(),
            (Lines{"process 5 of 0", "run 5.0 ", "did 5.0 /a", "process 6 of 5",
                   "run 6.0 ", "did 6.0 /b", "ran 5.0 last", "ended 5 0",
                   "ran 6.0 last", "ended 6 0"}));
}

TEST_F(ProcessTrackerTest, ASignalIsAWaitStatus) {
  scene.Run(1, 2, "/bin/cat");
  scene.Kill(2, 9);
  const Lines lines = Told();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "ended 2 137"), 1);
}

}  // namespace
}  // namespace tracefs::build
