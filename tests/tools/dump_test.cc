// tracefs-dump as a user runs it: the command itself, in processes, with files
// and pipes.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/base/writer_lock.h"

namespace tracefs {
namespace {

using test::TraceBuilder;

constexpr auto kDeadline = std::chrono::seconds(20);

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

class DumpTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/tracefs-dump-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string Read(const std::string& name) {
    std::ifstream in(folder_ + "/" + name, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }

  // Runs a shell command in which $DUMP is the command and $T the folder.
  Outcome Run(const std::string& command) {
    setenv("DUMP", TRACEFS_DUMP, 1);
    setenv("T", folder_.c_str(), 1);
    setenv("LC_ALL", "C", 1);
    const int status =
        system(("( " + command + " ) >$T/.out 2>$T/.err </dev/null").c_str());
    return {WEXITSTATUS(status), Read(".out"), Read(".err")};
  }

  std::string folder_;
};

// Ten reads by two users, of /src/a.c and /src/b.h.
TraceBuilder Sample() {
  TraceBuilder trace;
  CallerInfo caller;
  caller.pid = 50;
  memcpy(caller.comm_bytes.data(), "cc1", 3);
  caller.comm_size = 3;
  const uint32_t process = trace.DefineProcess(caller);
  const uint32_t src = trace.DefinePath(trace.DefinePath(0, ""), "src");
  const uint32_t files[] = {trace.DefinePath(src, "a.c"),
                            trace.DefinePath(src, "b.h")};
  for (uint64_t i = 0; i < 10; ++i) {
    Event event;
    event.op = i % 5 == 0 ? Op::open_ : Op::read_;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + i * 1'000'000);
    event.Set(Field::kLatency, 1000 + i);
    event.Set(Field::kUid, 1000 + i % 2);
    event.Set(Field::kFh, i);
    event.SetResult(static_cast<int64_t>(10 * i), i == 9 ? EIO : 0);
    trace.Add(event, {.path = files[i % 2], .process = process});
  }
  trace.EndBlock();
  return trace;
}

std::string SampleBytes() {
  TraceBuilder trace = Sample();
  trace.Finish();
  return trace.bytes();
}

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(DumpTest, HelpAndVersionAreForTheAsking) {
  const Outcome help = Run("$DUMP --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("Examples:"), std::string::npos);
  EXPECT_EQ(help.err, "");
  const Outcome version = Run("$DUMP --version");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out.substr(0, 13), "tracefs-dump ");
}

TEST_F(DumpTest, WrongUsageIsStatus2AndNamesTheNextStep) {
  Write("t", SampleBytes());
  for (const char* arguments :
       {"", "--formt text $T/t", "--format nonsense $T/t",
        "--utc --time-format epoch $T/t",
        "--time-format epoch --format jsonl $T/t", "--header --follow $T/t",
        "--header --filter 'op = read' $T/t", "- -", "--fol $T/t",
        "--format"}) {
    const Outcome outcome = Run(std::string("$DUMP ") + arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(outcome.err.substr(0, 14), "tracefs-dump: ") << arguments;
    EXPECT_EQ(Lines(outcome.err), 1u) << outcome.err;
  }
  EXPECT_NE(Run("$DUMP --format nonsense $T/t").err.find("text, jsonl"),
            std::string::npos);
}

TEST_F(DumpTest, AWrongFilterIsStatus2WithItsColumn) {
  Write("t", SampleBytes());
  const Outcome outcome = Run("$DUMP --filter 'op = raed' $T/t");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--filter:1:6"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("read"), std::string::npos) << outcome.err;
}

TEST_F(DumpTest, WhatTheSystemRefusesIsStatus3AndNamesTheFile) {
  const Outcome missing = Run("$DUMP $T/absent");
  EXPECT_EQ(missing.status, 3);
  EXPECT_NE(missing.err.find(folder_ + "/absent"), std::string::npos);
  EXPECT_NE(missing.err.find("No such file"), std::string::npos);
  const Outcome folder = Run("mkdir $T/empty && $DUMP $T/empty");
  EXPECT_EQ(folder.status, 2);
  EXPECT_NE(folder.err.find("no file"), std::string::npos);
  Write("t", SampleBytes());
  const Outcome full = Run("$DUMP $T/t >/dev/full");
  EXPECT_EQ(full.status, 3);
  EXPECT_NE(full.err.find("No space left"), std::string::npos);
}

TEST_F(DumpTest, OneThatCannotBeReadDoesNotHideTheOthers) {
  Write("t", SampleBytes());
  const Outcome outcome = Run("$DUMP $T/absent $T/t");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(Lines(outcome.out), 10u);
}

TEST_F(DumpTest, WhatIsNoTraceIsStatus1) {
  Write("t", "root:x:0:0:root:/root:/bin/sh\n");
  const Outcome outcome = Run("$DUMP $T/t");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("/t: not a Tracefs trace"), std::string::npos);
}

TEST_F(DumpTest, AWholeTraceIsListedWithoutAWordOnStandardError) {
  Write("t", SampleBytes());
  const Outcome outcome = Run("$DUMP --utc $T/t");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Lines(outcome.out), 10u);
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find('\n')),
            "03:04:05.000000 1.00 µs cc1[50]              u1000 open     "
            "/src/a.c fh=0 -> 0");
}

TEST_F(DumpTest, ATraceThatIsBeingWrittenIsToldFromOneThatWasCut) {
  TraceBuilder trace = Sample();
  const std::string whole = SampleBytes();
  // Between blocks, and within one.
  for (const size_t more : {size_t{0}, size_t{20}}) {
    const std::string path =
        Write("open", whole.substr(0, trace.bytes().size() + more));
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_TRUE(LockAsWriter(fd));
    Outcome outcome = Run("$DUMP $T/open");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(Lines(outcome.out), 10u);
    EXPECT_NE(outcome.err.find("because it is still being written"),
              std::string::npos)
        << outcome.err;
    // What is written until the lock goes is read.
    std::thread writer([&] {
      const auto end = std::chrono::steady_clock::now() + kDeadline;
      while (Read(".err").find("waiting for its writer") == std::string::npos &&
             std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      EXPECT_EQ(::pwrite(fd, whole.data(), whole.size(), 0),
                static_cast<ssize_t>(whole.size()));
      ::close(fd);
    });
    outcome = Run("$DUMP --wait $T/open");
    writer.join();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("waiting for its writer"), std::string::npos);
  }
  EXPECT_EQ(Run("$DUMP --wait --follow $T/open").status, 2);
}

TEST_F(DumpTest, ACutTraceIsStatus1AndSaysSoAfterTheOperations) {
  TraceBuilder trace = Sample();
  const std::string whole = SampleBytes();
  Write("cut", whole.substr(0, trace.bytes().size() + 20));
  Outcome outcome = Run("$DUMP $T/cut");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(Lines(outcome.out), 10u);
  EXPECT_NE(outcome.err.find("cut within the block at byte"),
            std::string::npos);
  Write("open", trace.bytes());
  outcome = Run("$DUMP $T/open");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("without a FINAL message"), std::string::npos);
}

TEST_F(DumpTest, FilterSeesOperationsCallersNamesAndResults) {
  Write("t", SampleBytes());
  const auto count = [this](const std::string& filter) {
    const Outcome outcome = Run("$DUMP --filter '" + filter + "' $T/t");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Lines(outcome.out);
  };
  EXPECT_EQ(count("op = open"), 2u);
  EXPECT_EQ(count("cuid = 1000"), 5u);
  EXPECT_EQ(count("ext = c"), 5u);
  EXPECT_EQ(count("name = b.h AND op = read"), 4u);
  EXPECT_EQ(count("path ~ \"/src/*.h\""), 5u);
  EXPECT_EQ(count("cname = cc1"), 10u);
  EXPECT_EQ(count("cname = gcc"), 0u);
  EXPECT_EQ(count("cpid = 50"), 10u);
  EXPECT_EQ(count("errno = EIO"), 1u);
  EXPECT_EQ(count("result >= 50"), 4u);
  EXPECT_EQ(count("latency > 1005"), 4u);
  EXPECT_EQ(count(""), 10u);
}

TEST_F(DumpTest, JsonLinesAndStandardInput) {
  Write("t", SampleBytes());
  const Outcome outcome =
      Run("cat $T/t | $DUMP --format jsonl --filter 'errno = EIO' -");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out,
            "{\"ts\":1767323045009000000,\"dur\":1009,\"op\":\"read\","
            "\"pid\":50,\"uid\":1001,\"comm\":\"cc1\",\"path\":\"/src/b.h\","
            "\"fh\":9,\"result\":-1,\"errno\":\"EIO\",\"tracer\":1,"
            "\"ppid\":0,\"sid\":0,\"pgid\":0}\n");
}

TEST_F(DumpTest, SeveralTracesAreMergedByTime) {
  TraceBuilder other = Sample();
  Write("a", SampleBytes());
  TraceBuilder late;
  Event event;
  event.op = Op::statfs_;
  event.Set(Field::kTime, TraceBuilder::kMonotonicNs + 4'500'000);
  late.Add(event);
  late.EndBlock();
  late.Finish();
  Write("b", late.bytes());
  const Outcome outcome = Run("$DUMP $T/a $T/b | sed -n 6p");
  EXPECT_NE(outcome.out.find("statfs"), std::string::npos) << outcome.out;
}

TEST_F(DumpTest, HeaderPrintsWhatTheTraceSaysOfItself) {
  TraceBuilder trace;
  trace.header().Set("filter.dag", "0: load\n1: keep");
  trace.header().Set("evil", "\x1b[2J");
  trace.Finish();
  Write("t", trace.bytes());
  const Outcome text = Run("$DUMP --header --utc $T/t");
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("host.name               testbox\n"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("2026-01-02 03:04:05 +0000"), std::string::npos);
  EXPECT_NE(text.out.find("\n    0: load\n    1: keep\n"), std::string::npos);
  EXPECT_NE(text.out.find("\\x1b[2J"), std::string::npos);
  const Outcome json = Run("$DUMP --header --format jsonl $T/t");
  EXPECT_NE(json.out.find("\"host.name\":\"testbox\""), std::string::npos);
  EXPECT_NE(json.out.find("\"serial\":\"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\""),
            std::string::npos);
}

TEST_F(DumpTest, StatsCountsOperationsAndLosses) {
  TraceBuilder trace = Sample();
  trace.AddLoss({.reason = "queue_full", .count = 3});
  trace.EndBlock();
  trace.Finish();
  Write("t", trace.bytes());
  const Outcome text = Run("$DUMP --stats $T/t");
  EXPECT_EQ(text.status, 1);  // something was lost
  EXPECT_NE(text.out.find("read                       8           1"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("not recorded: queue_full 3"), std::string::npos);
  EXPECT_NE(text.err.find("3 operations were not recorded (queue_full)"),
            std::string::npos);
  const Outcome json = Run("$DUMP --stats --format jsonl $T/t");
  EXPECT_NE(json.out.find("{\"op\":\"open\",\"count\":2,"), std::string::npos);
  EXPECT_NE(json.out.find("{\"lost\":{\"queue_full\":3}"), std::string::npos);
}

TEST_F(DumpTest, AReaderThatGoesAwayIsNoError) {
  TraceBuilder trace;
  Event event;
  event.op = Op::read_;
  for (uint64_t i = 0; i < 100'000; ++i) {
    event.Set(Field::kTime, 100 + i);
    trace.Add(event);
    if (i % 1000 == 0) trace.EndBlock();
  }
  trace.EndBlock();
  trace.Finish();
  Write("t", trace.bytes());
  const Outcome outcome =
      Run("{ $DUMP $T/t; echo $? >$T/status; } | head -n 1");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Lines(outcome.out), 1u);
  EXPECT_EQ(Read("status"), "0\n");
}

TEST_F(DumpTest, DoesNotLinkLibfuse) {
  EXPECT_EQ(Run("ldd $DUMP").out.find("fuse"), std::string::npos);
}

// A tracefs-dump whose output is read while it runs.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments,
                   int standard_input = -1) {
    int out[2];
    int err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      if (standard_input >= 0) dup2(standard_input, STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      std::vector<char*> argv = {const_cast<char*>(TRACEFS_DUMP)};
      for (const std::string& a : arguments) {
        argv.push_back(const_cast<char*>(a.c_str()));
      }
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }
  ~Running() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(out_);
    close(err_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Waits until so many lines have come.
  bool WaitForLines(size_t n) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (Lines(text_) < n && std::chrono::steady_clock::now() < end) {
      pollfd ready = {.fd = out_, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, 100) <= 0) continue;
      char buffer[65536];
      const ssize_t got = read(out_, buffer, sizeof buffer);
      if (got <= 0) break;
      text_.append(buffer, static_cast<size_t>(got));
    }
    return Lines(text_) >= n;
  }
  void Signal(int number) { kill(pid_, number); }
  // Its exit status, or -1 if it does not end.
  int Wait() {
    WaitForLines(SIZE_MAX);
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    char buffer[65536];
    const ssize_t got = read(err_, buffer, sizeof buffer);
    if (got > 0) errors_.assign(buffer, static_cast<size_t>(got));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& text() const { return text_; }
  const std::string& errors() const { return errors_; }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string text_;
  std::string errors_;
};

TEST_F(DumpTest, Follow_ShowsOperationsAsTheyComeUntilFinal) {
  TraceBuilder trace = Sample();
  const std::string path = Write("t", "");
  Running dump({"--follow", path});
  std::ofstream out(path, std::ios::binary | std::ios::app);
  // In pieces that respect nothing.
  const std::string first = trace.bytes();
  for (size_t at = 0; at < first.size(); at += 1000) {
    out << first.substr(at, 1000) << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(dump.WaitForLines(10)) << dump.text();
  Event event;
  event.op = Op::statfs_;
  event.Set(Field::kTime, TraceBuilder::kMonotonicNs + 20'000'000);
  trace.Add(event);
  trace.EndBlock();
  out << trace.bytes().substr(first.size()) << std::flush;
  EXPECT_TRUE(dump.WaitForLines(11)) << dump.text();
  const size_t written = trace.bytes().size();
  trace.Finish();
  out << trace.bytes().substr(written) << std::flush;
  EXPECT_EQ(dump.Wait(), 0);
  EXPECT_EQ(Lines(dump.text()), 11u);
  EXPECT_EQ(dump.errors(), "");
}

TEST_F(DumpTest, Follow_InterruptedEndsInOrder) {
  TraceBuilder trace = Sample();
  const std::string path = Write("t", trace.bytes());
  for (const int signal : {SIGINT, SIGTERM}) {
    Running dump({"--follow", "--format", "jsonl", path});
    EXPECT_TRUE(dump.WaitForLines(10));
    dump.Signal(signal);
    EXPECT_EQ(dump.Wait(), 0);
    EXPECT_EQ(dump.errors(), "");
  }
}

TEST_F(DumpTest, Follow_DoesNotWaitForeverForAStuckOperation) {
  // The watermark stays behind: some operation began long ago and runs still.
  TraceBuilder trace;
  Event event;
  event.op = Op::read_;
  event.Set(Field::kTime, 2'000'000'000);
  trace.Add(event);
  trace.EndBlock(/*watermark_ns=*/1);
  Running dump({"--follow", Write("t", trace.bytes())});
  EXPECT_TRUE(dump.WaitForLines(1));
  dump.Signal(SIGINT);
  EXPECT_EQ(dump.Wait(), 0);
}

TEST_F(DumpTest, Follow_APipeEndsTheListing) {
  const std::string bytes = SampleBytes();
  const std::string half = bytes.substr(0, bytes.size() - 50);
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  Running dump({"--follow", "-"}, input[0]);
  close(input[0]);
  ASSERT_EQ(write(input[1], half.data(), half.size()),
            static_cast<ssize_t>(half.size()));
  EXPECT_TRUE(dump.WaitForLines(10));
  close(input[1]);
  EXPECT_EQ(dump.Wait(), 1);  // cut
  EXPECT_NE(dump.errors().find("cut within"), std::string::npos);
}

TEST_F(DumpTest, APipeIsReadWhileItIsWritten) {
  const std::string bytes = SampleBytes();
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  Running dump({"-"}, input[0]);
  close(input[0]);
  for (const char c : bytes) ASSERT_EQ(write(input[1], &c, 1), 1);
  close(input[1]);
  EXPECT_EQ(dump.Wait(), 0);
  EXPECT_EQ(Lines(dump.text()), 10u);
}

TEST_F(DumpTest, BlocksThatCannotBeReadForWantOfAKeyAreOneLine) {
  TraceBuilder trace("encrypt cipher=aes-256-gcm; file");
  for (int block = 0; block < 30; ++block) {
    Event event;
    event.op = Op::unlink_;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + 1);
    trace.Add(event);
    trace.EndBlock();
  }
  trace.Finish();
  Write("secret", trace.bytes());
  for (const char* option : {"", "--stats "}) {
    const Outcome run = Run("$DUMP " + std::string(option) + "$T/secret");
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_NE(run.err.find(" blocks from block 0 on cannot be decoded: "),
              std::string::npos)
        << run.err;
  }
  EXPECT_NE(Run("$DUMP --stats $T/secret").out.find("unreadable blocks"),
            std::string::npos);
}

TEST_F(DumpTest, ALineTellsWhereTheDayChangesAndDateStandsBeforeEachTime) {
  constexpr uint64_t kDay = 86'400'000'000'000;
  TraceBuilder trace;
  for (const uint64_t days : {0, 0, 1, 3}) {
    Event event;
    event.op = Op::unlink_;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + days * kDay);
    event.name = "x";
    trace.Add(event);
  }
  trace.EndBlock();
  trace.Finish();
  Write("days", trace.bytes());
  const Outcome plain = Run("$DUMP --utc $T/days | cut -c 1-16");
  EXPECT_EQ(plain.out,
            "03:04:05.000000 \n03:04:05.000000 \n=== 2026-01-03 +\n"
            "03:04:05.000000 \n=== 2026-01-05 +\n03:04:05.000000 \n");
  const Outcome dated =
      Run("$DUMP --utc --time-format date $T/days | cut -c 1-26");
  EXPECT_EQ(dated.out,
            "2026-01-02 03:04:05.000000\n2026-01-02 03:04:05.000000\n"
            "2026-01-03 03:04:05.000000\n2026-01-05 03:04:05.000000\n");
  // Other names of what there is are no options.
  for (const char* const alias : {"--date", "--epoch", "--root-pid 1"}) {
    EXPECT_EQ(Run(std::string("$DUMP ") + alias + " $T/days").status, 2);
  }
}

}  // namespace
}  // namespace tracefs
