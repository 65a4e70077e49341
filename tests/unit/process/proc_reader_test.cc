// /proc texts, honest and hostile, and what is read of real processes.
#include "tracefs/process/proc_reader.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "tests/unit/process/child.h"

namespace tracefs {
namespace {

const std::string kTail =
    " S 11 22 33 34816 22 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 5\n";

TEST(ParseStatTest, TakesTheFieldsByPosition) {
  CallerInfo info;
  ASSERT_TRUE(ParseStat("4711 (cat)" + kTail, &info));
  EXPECT_EQ(info.comm(), "cat");
  EXPECT_EQ(info.ppid, 11u);
  EXPECT_EQ(info.pgid, 22u);
  EXPECT_EQ(info.sid, 33u);
  EXPECT_EQ(info.start_time, 987654u);
}

TEST(ParseStatTest, Malicious_NamesCannotPretend) {
  for (const std::string name :
       {"a) R 1 2 (", "", ")", "(", " ", "\n", ") S 1 1 1", "x\n1 (y)",
        "))))))))))))))", "\xff\xfe\x01"}) {
    CallerInfo info;
    ASSERT_TRUE(ParseStat("1 (" + name + ")" + kTail, &info)) << name;
    EXPECT_EQ(info.comm(), name);
    EXPECT_EQ(info.ppid, 11u) << name;
    EXPECT_EQ(info.start_time, 987654u) << name;
  }
}

TEST(ParseStatTest, LongKernelThreadNamesAreCut) {
  CallerInfo info;
  ASSERT_TRUE(ParseStat("1 (" + std::string(100, 'k') + ")" + kTail, &info));
  EXPECT_EQ(info.comm(), std::string(64, 'k'));
}

TEST(ParseStatTest, NegativeIdsAreNone) {
  CallerInfo info;
  ASSERT_TRUE(ParseStat(
      "1 (k) S 0 -1 -1 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0", &info));
  EXPECT_EQ(info.ppid, 0u);
  EXPECT_EQ(info.pgid, 0u);
  EXPECT_EQ(info.sid, 0u);
  EXPECT_EQ(info.start_time, 5u);
}

TEST(ParseStatTest, Malicious_CutOrChangedTextNeverHarms) {
  const std::string good = "4711 (a) R (b)" + kTail;
  const size_t start_ends = good.find("987654") + 6;
  for (size_t n = 0; n < good.size(); ++n) {
    CallerInfo info;
    const bool parsed = ParseStat(good.substr(0, n), &info);
    // A cut inside the last number wanted leaves a number.
    if (n >= start_ends || n + 6 <= start_ends) {
      EXPECT_EQ(parsed, n >= start_ends) << n;
    }
    for (const char c : {'\0', ')', '(', ' ', '-', '9', '\xff'}) {
      std::string changed = good;
      changed[n] = c;
      ParseStat(changed, &info);
      EXPECT_LE(info.comm_size, 64);
    }
  }
  CallerInfo info;
  EXPECT_FALSE(ParseStat("1 (x) S 99999999999999999999 1 1", &info));
}

TEST(ParseTgidTest, TakesItsOwnLineOnly) {
  EXPECT_EQ(ParseTgid("Name:\tx\nUmask:\t0022\nTgid:\t42\nNgid:\t0\n"), 42u);
  // The kernel escapes a newline in a name, so that this is one line.
  EXPECT_EQ(ParseTgid("Name:\t\\nTgid:\t1\nTgid:\t42\n"), 42u);
  EXPECT_FALSE(ParseTgid(""));
  EXPECT_FALSE(ParseTgid("Name:\tx\nTgid:\t"));
  EXPECT_FALSE(ParseTgid("Name:\tx\nTgid:\tx"));
}

TEST(ProcReaderTest, ReadsThisProcess) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  CallerInfo info;
  const auto self = static_cast<uint32_t>(::getpid());
  ASSERT_TRUE(reader->Read(self, &info));
  EXPECT_EQ(info.tid, self);
  EXPECT_EQ(info.pid, self);
  EXPECT_EQ(info.ppid, static_cast<uint32_t>(::getppid()));
  EXPECT_EQ(info.pgid, static_cast<uint32_t>(::getpgrp()));
  EXPECT_EQ(info.sid, static_cast<uint32_t>(::getsid(0)));
  EXPECT_GT(info.start_time, 0u);
}

TEST(ProcReaderTest, AThreadHasItsProcessAndItsOwnName) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok());
  CallerInfo process;
  ASSERT_TRUE(reader->Read(static_cast<uint32_t>(::getpid()), &process));
  // The thread's own start must not show: another tick.
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  std::promise<uint32_t> tid;
  std::promise<void> done;
  std::thread thread([&] {
    ::prctl(PR_SET_NAME, "worker-7");
    tid.set_value(static_cast<uint32_t>(::syscall(SYS_gettid)));
    done.get_future().wait();
  });
  CallerInfo info;
  const uint32_t thread_id = tid.get_future().get();
  EXPECT_TRUE(reader->Read(thread_id, &info));
  EXPECT_EQ(info.tid, thread_id);
  EXPECT_EQ(info.pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(info.comm(), "worker-7");
  EXPECT_EQ(info.start_time, process.start_time);
  done.set_value();
  thread.join();
}

TEST(ProcReaderTest, Malicious_NamesOfRealProcesses) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok());
  Child child;
  for (const std::string name : {"a) R 1 2 (", "\n) S 1 (", "x", "Tgid:\t1"}) {
    child.Rename(name);
    CallerInfo info;
    ASSERT_TRUE(reader->Read(child.pid(), &info));
    EXPECT_EQ(info.comm(), name);
    EXPECT_EQ(info.pid, child.pid());
    EXPECT_EQ(info.ppid, static_cast<uint32_t>(::getpid()));
  }
}

TEST(ProcReaderTest, TasksThatAreGoneAreNotFound) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok());
  Child child;
  const uint32_t pid = child.pid();
  child.Kill();
  CallerInfo info;
  EXPECT_FALSE(reader->Read(pid, &info));
  EXPECT_FALSE(reader->Read(0, &info));
  EXPECT_FALSE(reader->Read(0xffffffff, &info));
}

TEST(ProcReaderTest, AFolderThatIsNoProcIsRefused) {
  EXPECT_FALSE(ProcReader::Open("/nonexistent").ok());
  const Result<ProcReader> reader = ProcReader::Open("/tmp");
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(ExitStatus(reader.status()), 3);
  EXPECT_NE(reader.status().message().find("/tmp"), std::string::npos);
}

}  // namespace
}  // namespace tracefs
