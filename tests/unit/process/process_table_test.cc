// The process table against real processes that change under it.
#include "tracefs/process/process_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/unit/process/child.h"
#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<ProcessTable> MakeTable(
    const ProcessTable::Options& options = {}) {
  auto table = ProcessTable::Create(options);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return *std::move(table);
}

CallerInfo Get(ProcessTable& table, uint32_t tid) {
  const CallerInfo* info =
      table.Resolve(tid, MonotonicNs(), ProcessTable::kOther);
  EXPECT_NE(info, nullptr) << tid;
  return info != nullptr ? *info : CallerInfo();
}

// Whether `seen` of this task becomes true within `limit`.
bool Becomes(ProcessTable& table, uint32_t tid, milliseconds limit,
             const std::function<bool(const CallerInfo&)>& seen) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (seen(Get(table, tid))) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

// With events a change must show long before the entry's time is over; without,
// when it is over.
class ProcessTableTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ProcessTable::Options options;
    options.events = GetParam();
    // So long that only an event can be what made the difference.
    options.ttl_with_events_ns = 3600 * kNsPerSecond;
    table_ = MakeTable(options);
    table_->Start();
    if (GetParam() && !table_->GetStats().events) {
      GTEST_SKIP() << "no process events here";
    }
  }
  void TearDown() override { table_->Stop(); }

  std::unique_ptr<ProcessTable> table_;
};

INSTANTIATE_TEST_SUITE_P(, ProcessTableTest, testing::Bool(),
                         [](const auto& which) {
                           return which.param ? "WithEvents" : "WithoutEvents";
                         });

TEST_P(ProcessTableTest, ExecChangesTheName) {
  Child child;
  child.Rename("before");
  ASSERT_EQ(Get(*table_, child.pid()).comm(), "before");
  child.Exec();
  EXPECT_TRUE(Becomes(*table_, child.pid(), milliseconds(2000),
                      [](const CallerInfo& i) { return i.comm() == "sleep"; }));
}

TEST_P(ProcessTableTest, RenamingShows) {
  Child child;
  child.Rename("one");
  const CallerInfo one = Get(*table_, child.pid());
  EXPECT_EQ(one.comm(), "one");
  child.Rename("two");
  EXPECT_TRUE(Becomes(*table_, child.pid(), milliseconds(2000),
                      [](const CallerInfo& i) { return i.comm() == "two"; }));
  EXPECT_NE(Get(*table_, child.pid()).serial, one.serial);
  child.Rename("one");
  EXPECT_TRUE(Becomes(*table_, child.pid(), milliseconds(2000),
                      [](const CallerInfo& i) { return i.comm() == "one"; }));
  EXPECT_EQ(Get(*table_, child.pid()).serial, one.serial);
}

// The kernel's report is there before the process goes on.
TEST_P(ProcessTableTest, Race_NewNamesShowAtOnce) {
  if (!GetParam()) GTEST_SKIP() << "of events";
  Child child;
  for (int i = 0; i < 500; ++i) {
    const std::string name = "n" + std::to_string(i);
    child.Rename(name);
    ASSERT_EQ(Get(*table_, child.pid()).comm(), name);
  }
  child.Exec();
  // Its descriptors are closed just before it gets its name.
  EXPECT_TRUE(Becomes(*table_, child.pid(), milliseconds(2000),
                      [](const CallerInfo& i) { return i.comm() == "sleep"; }));
}

TEST_P(ProcessTableTest, NewSessionShows) {
  Child child;
  EXPECT_NE(Get(*table_, child.pid()).sid, child.pid());
  child.SetSid();
  EXPECT_TRUE(
      Becomes(*table_, child.pid(), milliseconds(2000),
              [&](const CallerInfo& i) { return i.sid == child.pid(); }));
  EXPECT_EQ(Get(*table_, child.pid()).pgid, child.pid());
}

TEST_P(ProcessTableTest, AReusedPidIsNotItsPredecessor) {
  const UniqueFd last_pid(
      ::open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC));
  if (!last_pid) GTEST_SKIP() << "needs root: chooses pids";
  for (int attempt = 0; attempt < 50; ++attempt) {
    auto first = std::make_unique<Child>();
    const uint32_t pid = first->pid();
    first->Rename("first");
    ASSERT_EQ(Get(*table_, pid).comm(), "first");
    const uint64_t serial = Get(*table_, pid).serial;
    first->Kill();
    const std::string wanted = std::to_string(pid - 1);
    if (::pwrite(last_pid.get(), wanted.data(), wanted.size(), 0) < 0) {
      GTEST_SKIP() << "cannot choose pids: " << std::strerror(errno);
    }
    Child second;
    if (second.pid() != pid) continue;  // somebody else was faster
    second.Rename("second");
    EXPECT_TRUE(
        Becomes(*table_, pid, milliseconds(2000),
                [](const CallerInfo& i) { return i.comm() == "second"; }));
    EXPECT_NE(Get(*table_, pid).serial, serial);
    return;
  }
  GTEST_SKIP() << "never got the pid again";
}

TEST_P(ProcessTableTest, ManyShortLivedProcesses) {
  for (int i = 0; i < 1000; ++i) {
    int gate[2];
    ASSERT_EQ(::pipe(gate), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(gate[1]);
      char byte;
      ::_exit(static_cast<int>(::read(gate[0], &byte, 1)));
    }
    ::close(gate[0]);
    const CallerInfo info = Get(*table_, static_cast<uint32_t>(child));
    EXPECT_EQ(info.pid, static_cast<uint32_t>(child));
    EXPECT_EQ(info.ppid, static_cast<uint32_t>(::getpid()));
    ::close(gate[1]);
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_EQ(table_->GetStats().gone, 0u);
}

TEST(ProcessTableTtlTest, NewProcessGroupShowsWhenTheEntryIsOld) {
  const auto table = MakeTable();  // no Start: 50 ms
  Child child;
  EXPECT_NE(Get(*table, child.pid()).pgid, child.pid());
  child.SetPgid();
  EXPECT_TRUE(
      Becomes(*table, child.pid(), milliseconds(2000),
              [&](const CallerInfo& i) { return i.pgid == child.pid(); }));
}

TEST(ProcessTableTtlTest, NewProcessGroupShowsWithinASecondOfEvents) {
  const auto table = MakeTable();
  table->Start();
  Child child;
  EXPECT_NE(Get(*table, child.pid()).pgid, child.pid());
  child.SetPgid();
  EXPECT_TRUE(
      Becomes(*table, child.pid(), milliseconds(5000),
              [&](const CallerInfo& i) { return i.pgid == child.pid(); }));
  table->Stop();
}

TEST(ProcessTableCacheTest, TimeIsWhatMakesAnEntryOld) {
  const auto table = MakeTable();
  Child child;
  uint64_t now = 1000;
  table->Resolve(child.pid(), now, ProcessTable::kOther);
  EXPECT_EQ(table->GetStats().reads, 1u);
  table->Resolve(child.pid(), now += 49'999'999, ProcessTable::kOther);
  EXPECT_EQ(table->GetStats().reads, 1u);
  table->Resolve(child.pid(), now += 1, ProcessTable::kOther);
  EXPECT_EQ(table->GetStats().reads, 2u);
}

TEST(ProcessTableCacheTest, InvalidateMakesItReadAgain) {
  const auto table = MakeTable();
  Child child;
  child.Rename("old");
  EXPECT_EQ(table->Resolve(child.pid(), 1, ProcessTable::kOther)->comm(),
            "old");
  child.Rename("new");
  EXPECT_EQ(table->Resolve(child.pid(), 1, ProcessTable::kOther)->comm(),
            "old");
  table->Invalidate(child.pid());
  EXPECT_EQ(table->Resolve(child.pid(), 1, ProcessTable::kOther)->comm(),
            "new");
}

TEST(ProcessTableCacheTest, WhoFollowsProcessesSaysWhenTheyChange) {
  TaskVersions versions;
  ProcessTable::Options options;
  options.versions = &versions;
  const auto table = MakeTable(options);
  Child child;
  child.Rename("old");
  EXPECT_EQ(table->Resolve(child.pid(), 1, ProcessTable::kOther)->comm(),
            "old");
  child.Rename("new");
  versions.Changed(child.pid());
  EXPECT_EQ(table->Resolve(child.pid(), 1, ProcessTable::kOther)->comm(),
            "new");
}

TEST(ProcessTableCacheTest, NothingIsKeptOfWhoIsAboutToRunAProgram) {
  ProcessTable::Options options;
  options.events = false;
  options.ttl_without_events_ns = 1000;
  const auto table = MakeTable(options);
  Child child;
  const auto name = [&](uint64_t now) {
    return std::string(
        table->Resolve(child.pid(), now, ProcessTable::kOther)->comm());
  };
  child.Rename("shell");
  EXPECT_EQ(name(1), "shell");
  table->NoteExec(child.pid(), 2);
  EXPECT_EQ(name(3), "shell");
  child.Rename("program");
  EXPECT_EQ(name(4), "program");
  // It was not run, as far as is known: after a while as before.
  EXPECT_EQ(name(1003), "program");
  child.Rename("other");
  EXPECT_EQ(name(1004), "program");
  EXPECT_EQ(name(2003), "other");
}

TEST(ProcessTableCacheTest, InvalidatingAProcessReachesItsThreads) {
  const auto table = MakeTable();
  std::promise<uint32_t> tid;
  std::promise<void> done;
  std::thread thread([&] {
    tid.set_value(static_cast<uint32_t>(::syscall(SYS_gettid)));
    done.get_future().wait();
  });
  const uint32_t id = tid.get_future().get();
  EXPECT_EQ(table->Resolve(id, 1, ProcessTable::kOther)->pid,
            static_cast<uint32_t>(::getpid()));
  const uint64_t reads = table->GetStats().reads;
  table->Resolve(id, 1, ProcessTable::kOther);
  EXPECT_EQ(table->GetStats().reads, reads);
  table->Invalidate(static_cast<uint32_t>(::getpid()));
  table->Resolve(id, 1, ProcessTable::kOther);
  EXPECT_GT(table->GetStats().reads, reads);
  done.set_value();
  thread.join();
}

TEST(ProcessTableCacheTest, ThreadsShareWhatOneOfThemRead) {
  const auto table = MakeTable();
  Child child;
  const uint64_t serial =
      table->Resolve(child.pid(), 1, ProcessTable::kOther)->serial;
  std::thread([&] {
    EXPECT_EQ(table->Resolve(child.pid(), 1, ProcessTable::kOther)->serial,
              serial);
  }).join();
  EXPECT_EQ(table->GetStats().reads, 1u);
}

TEST(ProcessTableCacheTest, ThreadsOfOneNameShareASerial) {
  const auto table = MakeTable();
  std::promise<uint32_t> tid;
  std::promise<void> done;
  std::thread thread([&] {
    tid.set_value(static_cast<uint32_t>(::syscall(SYS_gettid)));
    done.get_future().wait();
  });
  const uint32_t id = tid.get_future().get();
  const CallerInfo of_thread = Get(*table, id);
  const CallerInfo of_process = Get(*table, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(of_thread.serial, of_process.serial);
  EXPECT_NE(of_thread.tid, of_process.tid);
  done.set_value();
  thread.join();
}

TEST(ProcessTableExecTest, TheStartTimeIsFoundOutWhenThatIsSafe) {
  const auto table = MakeTable();
  Child child;
  const CallerInfo closing =
      *table->Resolve(child.pid(), 1, ProcessTable::kMayBeExec);
  EXPECT_EQ(closing.pid, child.pid());
  EXPECT_EQ(closing.start_time, 0u) << "must not have been asked for";
  const CallerInfo opening =
      *table->Resolve(child.pid(), 1, ProcessTable::kOther);
  EXPECT_GT(opening.start_time, 0u);
  // Once known it is kept, however the process changes.
  child.Rename("changed");
  table->Invalidate(child.pid());
  const CallerInfo again =
      *table->Resolve(child.pid(), 1, ProcessTable::kMayBeExec);
  EXPECT_EQ(again.start_time, opening.start_time);
  EXPECT_EQ(again.comm(), "changed");
  // Another thread knows it from this one.
  std::thread([&] {
    EXPECT_EQ(
        table->Resolve(child.pid(), 1, ProcessTable::kMayBeExec)->start_time,
        opening.start_time);
  }).join();
}

TEST(ProcessTableExecTest, WhateverAnExecSendsIsKnownToMaybeComeFromOne) {
  EXPECT_EQ(ProcessTable::RequestOf(Op::flush_), ProcessTable::kMayBeExec);
  EXPECT_EQ(ProcessTable::RequestOf(Op::open_), ProcessTable::kOther);
}

TEST(ProcessTableCacheTest, NobodyAndTheGoneAreNull) {
  const auto table = MakeTable();
  EXPECT_EQ(table->Resolve(0, 1, ProcessTable::kOther), nullptr);
  EXPECT_EQ(table->GetStats().gone, 0u);
  Child child;
  const uint32_t pid = child.pid();
  child.Kill();
  EXPECT_EQ(table->Resolve(pid, 1, ProcessTable::kOther), nullptr);
  EXPECT_EQ(table->GetStats().gone, 1u);
  EXPECT_EQ(table->Resolve(0xffffffff, 1, ProcessTable::kOther), nullptr);
}

TEST(ProcessTableCacheTest, TablesDoNotMix) {
  Child child;
  child.Rename("old");
  const auto one = MakeTable();
  EXPECT_EQ(one->Resolve(child.pid(), 1, ProcessTable::kOther)->comm(), "old");
  child.Rename("new");
  const auto two = MakeTable();
  EXPECT_EQ(two->Resolve(child.pid(), 1, ProcessTable::kOther)->comm(), "new");
}

TEST(ProcessTableCacheTest, EntriesThatCollideAreBothRight) {
  const auto table = MakeTable();
  // More processes than a thread's cache has places.
  std::deque<Child> children(300);
  for (int round = 0; round < 2; ++round) {
    for (Child& child : children) {
      const CallerInfo* info =
          table->Resolve(child.pid(), 1, ProcessTable::kOther);
      ASSERT_NE(info, nullptr);
      EXPECT_EQ(info->pid, child.pid());
    }
  }
}

TEST(ProcessTableStartTest, EveryUserCounts) {
  const auto table = MakeTable();
  table->Start();
  if (!table->GetStats().events) GTEST_SKIP() << "no process events here";
  table->Start();
  table->Stop();
  EXPECT_TRUE(table->GetStats().events);
  table->Stop();
  EXPECT_FALSE(table->GetStats().events);
  table->Start();
  EXPECT_TRUE(table->GetStats().events);
  table->Stop();
}

TEST(ProcessTableStartTest, Race_ResolversChangesAndRestarts) {
  const auto table = MakeTable();
  std::deque<Child> children(6);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<uint64_t> resolved{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        for (Child& child : children) {
          const CallerInfo* info =
              table->Resolve(child.pid(), MonotonicNs(), ProcessTable::kOther);
          ASSERT_NE(info, nullptr);
          ASSERT_EQ(info->pid, child.pid());
          ASSERT_TRUE(info->comm() == "even" || info->comm() == "odd" ||
                      info->comm() == "sleep" || info->ppid != 0);
          resolved.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    table->Start();
    for (Child& child : children) child.Rename(i % 2 == 0 ? "even" : "odd");
    table->Invalidate(children[0].pid());
    if (i % 10 == 9) std::this_thread::sleep_for(milliseconds(5));
    table->Stop();
  }
  for (Child& child : children) child.Exec();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(resolved.load(), 0u);
  for (Child& child : children) {
    table->Invalidate(child.pid());
    EXPECT_EQ(Get(*table, child.pid()).comm(), "sleep");
  }
}

// An alarm comes later than what it is about.
TEST(ProcessTableLaterTest, DetailsAreOfTheSameProcessUnderTheSameName) {
  const auto table = MakeTable();
  ASSERT_TRUE(table->KeepDetails(true).ok());
  const auto later = [&](const CallerInfo& then) {
    return table->DetailsLater(then, MonotonicNs());
  };
  Child child;
  child.Exec();
  const CallerInfo then = Get(*table, child.pid());
  const auto details = later(then);
  ASSERT_NE(details, nullptr);
  EXPECT_TRUE(details->cmdline && details->cmdline->starts_with("sleep"));
  CallerInfo another = then;
  ++another.start_time;
  EXPECT_EQ(later(another), nullptr) << "another process with its number";
  another = then;
  another.comm_bytes[0] = 'x';
  EXPECT_EQ(later(another), nullptr) << "it runs another program by now";
  another = then;
  another.start_time = 0;
  EXPECT_EQ(later(another), nullptr) << "which one it was is not known";
  child.Kill();
  EXPECT_EQ(later(then), nullptr) << "it is gone, and nobody had asked";

  Child asked;
  asked.Exec();
  const CallerInfo before = Get(*table, asked.pid());
  ASSERT_NE(table->DetailsOf(before, MonotonicNs(), ProcessTable::kOther),
            nullptr);
  asked.Kill();
  const auto kept = later(before);
  ASSERT_NE(kept, nullptr);
  EXPECT_TRUE(kept->cmdline && kept->cmdline->starts_with("sleep"));
  EXPECT_TRUE(table->KeepDetails(false).ok());
}

TEST(ProcessTableLaterTest, AncestorsAreKnownAlsoWhereNobodyKeepsThem) {
  const auto table = MakeTable();
  Child child;
  const CallerInfo caller = Get(*table, child.pid());
  std::vector<uint32_t> pids;
  EXPECT_TRUE(table->ForEachAncestor(
      caller, MonotonicNs(), &pids,
      [](void* context, uint32_t pid, std::string_view comm) {
        EXPECT_FALSE(comm.empty());
        static_cast<std::vector<uint32_t>*>(context)->push_back(pid);
        return true;
      }));
  ASSERT_GE(pids.size(), 2u);
  EXPECT_EQ(pids[0], static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(pids[1], static_cast<uint32_t>(::getppid()));
}

}  // namespace
}  // namespace tracefs
