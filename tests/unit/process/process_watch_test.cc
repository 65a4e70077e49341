// Process records of real processes, from each source.
#include "tracefs/process/process_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/daemon/tracepoints.h"

namespace tracefs {
namespace {

struct Kept {
  ProcessRecord record;
  std::string argv;
  std::string program;
  std::string comm;
};

class Sink final : public ProcessSink {
 public:
  ProcessNeeds Wanted() const override { return {.records = true}; }
  void HoldBack(uint64_t since_ns) override {
    std::lock_guard lock(mu_);
    if (since_ns == kNothingHeld) since_ns = 0;
    EXPECT_TRUE(since_ns == 0 || since_ns >= held_);
    held_ = since_ns;
  }
  void Take(const ProcessRecord& record) override {
    std::lock_guard lock(mu_);
    kept_.push_back({record, std::string(record.argv),
                     std::string(record.program), std::string(record.comm)});
  }
  void NoteOverrun(uint64_t count, uint64_t, uint64_t) override {
    std::lock_guard lock(mu_);
    lost_ += std::max<uint64_t>(count, 1);
  }
  std::vector<Kept> kept() const {
    std::lock_guard lock(mu_);
    return kept_;
  }
  uint64_t lost() const {
    std::lock_guard lock(mu_);
    return lost_;
  }

 private:
  mutable std::mutex mu_;
  uint64_t held_ = 0;
  uint64_t lost_ = 0;
  std::vector<Kept> kept_;
};

class ProcessWatchTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    proc_ = UniqueFd(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
    ProcessWatch::Options options;
    options.proc = proc_.get();
    if (GetParam()) {
      options.open = [](int processor) -> Result<ProcessWatch::Opened> {
        auto opened =
            OpenTracepointsOn(TracepointUse::kProcesses, processor, ::getpid());
        if (!opened.ok()) return opened.status();
        return ProcessWatch::Opened{std::move(opened->files),
                                    std::move(opened->layout)};
      };
    }
    auto connector = ProcConnector::Open(ProcConnector::kChangesAndForks);
    if (connector.ok()) options.connector = *std::move(connector);
    watch_ = std::make_unique<ProcessWatch>(std::move(options), sink_);
    if (Status s = watch_->Start(); !s.ok()) GTEST_SKIP() << s.message();
    started_ = true;
    if (GetParam() && watch_->GetStats().source != "tracepoints") {
      GTEST_SKIP() << watch_->GetStats().why;
    }
  }
  void TearDown() override {
    if (started_) watch_->End();
  }
  // Runs it to its end.
  static pid_t Run(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, words[0].c_str(), nullptr, nullptr,
                            argv.data(), environ),
              0);
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return pid;
  }
  // Of the process, in order of their times.
  std::vector<Kept> Of(pid_t pid) const {
    std::vector<Kept> found;
    for (const Kept& kept : sink_.kept()) {
      const bool made = kept.record.kind == ProcessRecord::Kind::kFork &&
                        kept.record.child.pid == static_cast<uint32_t>(pid);
      if (made || kept.record.process.pid == static_cast<uint32_t>(pid)) {
        found.push_back(kept);
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Kept& a, const Kept& b) {
                       return a.record.time_ns < b.record.time_ns;
                     });
    return found;
  }

  UniqueFd proc_;
  Sink sink_;
  std::unique_ptr<ProcessWatch> watch_;
  bool started_ = false;
};

TEST_P(ProcessWatchTest, AProcessFromItsBeginningToItsEnd) {
  const pid_t pid = Run({"/bin/sh", "-c", "sleep 0.1; exit 3"});
  watch_->End();
  const std::vector<Kept> records = Of(pid);
  ASSERT_GE(records.size(), 3u);
  const ProcessRecord& fork = records.front().record;
  EXPECT_EQ(fork.kind, ProcessRecord::Kind::kFork);
  EXPECT_EQ(fork.process.pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(fork.child.pid, static_cast<uint32_t>(pid));
  EXPECT_NE(fork.child.start_ticks, 0u);
  EXPECT_EQ(fork.clone_flags.has_value(), GetParam());
  const auto exec =
      std::find_if(records.begin(), records.end(), [](const Kept& kept) {
        return kept.record.kind == ProcessRecord::Kind::kExec;
      });
  ASSERT_NE(exec, records.end());
  EXPECT_EQ(exec->argv, std::string("/bin/sh\0-c\0sleep 0.1; exit 3\0", 29));
  EXPECT_EQ(exec->record.process, fork.child);
  EXPECT_TRUE(exec->record.late);
  EXPECT_EQ(exec->program, GetParam() ? "/bin/sh" : "");
  const ProcessRecord& exit = records.back().record;
  EXPECT_EQ(exit.kind, ProcessRecord::Kind::kExit);
  EXPECT_EQ(exit.process, fork.child);
  EXPECT_EQ(exit.exit_code, 3u);
}

TEST_P(ProcessWatchTest, TheSignalThatEndedIt) {
  const pid_t pid = Run({"/bin/sh", "-c", "kill -KILL $$"});
  watch_->End();
  const std::vector<Kept> records = Of(pid);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.back().record.signal, 9u);
  EXPECT_EQ(records.back().record.exit_code, std::nullopt);
}

TEST_P(ProcessWatchTest, WhoWasThereIsToldOnRequest) {
  watch_->TellWhoRuns();
  watch_->End();
  bool found = false;
  for (const Kept& kept : sink_.kept()) {
    if (kept.record.kind != ProcessRecord::Kind::kRunning) continue;
    found |= kept.record.process.pid == static_cast<uint32_t>(::getpid()) &&
             kept.record.process.start_ticks != 0;
  }
  EXPECT_TRUE(found);
}

TEST_P(ProcessWatchTest, Race_ManyShortLivedOnesAreAllThereOrCounted) {
  const int processes = std::getenv("TRACEFS_SOAK") != nullptr ? 10000 : 300;
  std::vector<pid_t> pids;
  for (int i = 0; i < processes; ++i) pids.push_back(Run({"/bin/true"}));
  watch_->End();
  std::map<uint32_t, int> forks;
  std::map<uint32_t, int> execs;
  std::map<uint32_t, int> exits;
  int whole = 0;  // programs whose arguments were there to be read
  for (const Kept& kept : sink_.kept()) {
    const ProcessRecord& r = kept.record;
    if (r.kind == ProcessRecord::Kind::kFork) ++forks[r.child.pid];
    if (r.kind == ProcessRecord::Kind::kExec) {
      ++execs[r.process.pid];
      whole += kept.argv == std::string("/bin/true\0", 10);
    }
    if (r.kind == ProcessRecord::Kind::kExit && !r.is_thread()) {
      ++exits[r.process.pid];
    }
  }
  uint64_t missing = 0;
  for (const pid_t pid : pids) {
    const auto id = static_cast<uint32_t>(pid);
    missing += forks[id] == 0;
    missing += execs[id] == 0;
    missing += exits[id] == 0;
  }
  EXPECT_LE(missing, sink_.lost());
  std::cout << processes << " processes, " << missing << " records missing, "
            << sink_.lost() << " counted as lost, arguments of " << whole
            << '\n';
}

INSTANTIATE_TEST_SUITE_P(Sources, ProcessWatchTest, testing::Bool(),
                         [](const auto& source) {
                           return source.param ? "Tracepoints" : "Connector";
                         });

}  // namespace
}  // namespace tracefs
