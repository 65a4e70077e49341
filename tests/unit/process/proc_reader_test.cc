// /proc texts, honest and hostile, and what is read of real processes.
#include "tracefs/process/proc_reader.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "tests/unit/process/child.h"

namespace tracefs {
namespace {

std::string Status(const std::string& escaped_name) {
  return "Name:\t" + escaped_name +
         "\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t42\nNgid:\t0\n"
         "Pid:\t43\nPPid:\t7\nTracerPid:\t0\n";
}

std::string Stat(const std::string& name) {
  return "43 (" + name +
         ") S 11 22 33 34816 22 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 "
         "5\n";
}

TEST(ParseStatusTest, TakesItsLines) {
  CallerInfo info;
  ASSERT_TRUE(ParseStatus(Status("cat"), &info));
  EXPECT_EQ(info.comm(), "cat");
  EXPECT_EQ(info.pid, 42u);
  EXPECT_EQ(info.ppid, 7u);
}

TEST(ParseStatusTest, Malicious_NamesAreUnescapedAndCannotPretend) {
  const std::pair<const char*, std::string> kNames[] = {
      {"a) R 1 2 (", "a) R 1 2 ("},
      {"", ""},
      {"\\nTgid:\t1", "\nTgid:\t1"},
      {"\\\\n", "\\n"},
      {"\\", "\\"},
      {"Tgid:\t1", "Tgid:\t1"},
      {"\\134\\012", "\\\n"},
      {"\xff\xfe\x01", "\xff\xfe\x01"},
  };
  for (const auto& [escaped, name] : kNames) {
    CallerInfo info;
    ASSERT_TRUE(ParseStatus(Status(escaped), &info)) << escaped;
    EXPECT_EQ(info.comm(), name);
    EXPECT_EQ(info.pid, 42u) << escaped;
    EXPECT_EQ(info.ppid, 7u) << escaped;
  }
}

TEST(ParseStatusTest, LongKernelThreadNamesAreCut) {
  CallerInfo info;
  ASSERT_TRUE(ParseStatus(Status(std::string(100, 'k')), &info));
  EXPECT_EQ(info.comm(), std::string(64, 'k'));
}

TEST(ParseStatusTest, Malicious_CutOrChangedTextNeverHarms) {
  const std::string good = Status("a\\nb\\\\c");
  const size_t wanted = good.find("PPid:\t7") + 7;
  for (size_t n = 0; n < good.size(); ++n) {
    CallerInfo info;
    EXPECT_EQ(ParseStatus(good.substr(0, n), &info), n >= wanted) << n;
    for (const char c : {'\0', '\\', '\n', '\t', ' ', '-', '9', '\xff'}) {
      std::string changed = good;
      changed[n] = c;
      ParseStatus(changed, &info);
      EXPECT_LE(info.comm_size, 64);
    }
  }
}

TEST(ParseStartTimeTest, TakesField22WhateverTheName) {
  for (const std::string name :
       {"cat", "a) R 1 2 (", "", ")", "(", " ", "\n", ") S 1 1 1", "x\n1 (y)",
        "))))))))))))))", "\xff\xfe\x01"}) {
    EXPECT_EQ(ParseStartTime(Stat(name)), 987654u) << name;
  }
}

TEST(ParseStartTimeTest, Malicious_CutOrChangedTextNeverHarms) {
  const std::string good = Stat("a) R (b");
  const size_t begins = good.find("987654");
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_EQ(ParseStartTime(good.substr(0, n)).has_value(), n > begins) << n;
    for (const char c : {'\0', ')', '(', ' ', '-', '9', '\xff'}) {
      std::string changed = good;
      changed[n] = c;
      ParseStartTime(changed);
    }
  }
  EXPECT_FALSE(
      ParseStartTime("1 (x) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
                     "99999999999999999999"));
}

TEST(ProcReaderTest, ReadsThisProcess) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ProcessReading reading;
  CallerInfo& info = reading.caller;
  const auto self = static_cast<uint32_t>(::getpid());
  ASSERT_TRUE(reader->Read(self, false, &reading));
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
  ProcessReading process;
  ASSERT_TRUE(reader->Read(static_cast<uint32_t>(::getpid()), false, &process));
  // The thread's own start must not show: another tick.
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  std::promise<uint32_t> tid;
  std::promise<void> done;
  std::thread thread([&] {
    ::prctl(PR_SET_NAME, "worker-7");
    tid.set_value(static_cast<uint32_t>(::syscall(SYS_gettid)));
    done.get_future().wait();
  });
  ProcessReading reading;
  const CallerInfo& info = reading.caller;
  const uint32_t thread_id = tid.get_future().get();
  EXPECT_TRUE(reader->Read(thread_id, false, &reading));
  EXPECT_EQ(info.tid, thread_id);
  EXPECT_EQ(info.pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(info.comm(), "worker-7");
  EXPECT_EQ(info.start_time, process.caller.start_time);
  done.set_value();
  thread.join();
}

TEST(ProcReaderTest, Malicious_NamesOfRealProcesses) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok());
  Child child;
  for (const std::string name : {"a) R 1 2 (", "\n) S 1 (", "x", "Tgid:\t1"}) {
    child.Rename(name);
    ProcessReading reading;
    const CallerInfo& info = reading.caller;
    ASSERT_TRUE(reader->Read(child.pid(), false, &reading));
    EXPECT_EQ(info.comm(), name);
    EXPECT_EQ(info.pid, child.pid());
    EXPECT_EQ(info.ppid, static_cast<uint32_t>(::getpid()));
  }
}

TEST(ProcReaderTest, TheStartTimeBelongsToTheProcessNotToThePid) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok());
  Child child;
  ProcessReading reading;
  ASSERT_TRUE(reader->Read(child.pid(), false, &reading));
  if (reading.process_number == 0) GTEST_SKIP() << "needs Linux 6.9";
  EXPECT_GT(reading.caller.start_time, 0u);
  const uint64_t start_time = reading.caller.start_time;
  ASSERT_TRUE(reader->Read(child.pid(), true, &reading));
  EXPECT_EQ(reading.caller.start_time, start_time);
  // As if it had been another process of that pid.
  ++reading.process_number;
  ASSERT_TRUE(reader->Read(child.pid(), true, &reading));
  EXPECT_EQ(reading.caller.start_time, 0u);
}

TEST(ProcReaderTest, TasksThatAreGoneAreNotFound) {
  const Result<ProcReader> reader = ProcReader::Open();
  ASSERT_TRUE(reader.ok());
  Child child;
  const uint32_t pid = child.pid();
  child.Kill();
  ProcessReading reading;
  EXPECT_FALSE(reader->Read(pid, false, &reading));
  EXPECT_FALSE(reader->Read(0, false, &reading));
  EXPECT_FALSE(reader->Read(0xffffffff, false, &reading));
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
