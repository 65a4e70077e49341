// The FIFO driver: readers that are there, late, slow, gone and back.
#include "drivers/output/fifo.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/unit/drivers/output/driven_trace.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class FifoTest : public testing::Test {
 protected:
  FifoTest() { ::signal(SIGPIPE, SIG_IGN); }

  std::unique_ptr<OutputDriver> Make(milliseconds deadline = {}) {
    auto folder = OutputFolder::Open(path_);
    EXPECT_TRUE(folder.ok());
    auto driver = FifoDriver::Create({.path = path_, .deadline = deadline},
                                     *std::move(folder));
    EXPECT_TRUE(driver.ok()) << driver.status().message();
    return driver.ok() ? *std::move(driver) : nullptr;
  }
  // Why the driver is not made.
  std::string Refusal() {
    auto folder = OutputFolder::Open(path_);
    EXPECT_TRUE(folder.ok());
    const auto driver = FifoDriver::Create({.path = path_}, *std::move(folder));
    EXPECT_FALSE(driver.ok());
    return driver.status().message();
  }
  UniqueFd OpenReader() const {
    return UniqueFd(::open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  }
  // All there is; to the end, if there will be one.
  static std::string Drain(int fd, bool to_end) {
    std::string text;
    char part[65536];
    const auto patience = Clock::now() + std::chrono::seconds(60);
    while (Clock::now() < patience) {
      const ssize_t n = ::read(fd, part, sizeof part);
      if (n > 0) {
        text.append(part, static_cast<size_t>(n));
      } else if (n == 0 || !to_end) {
        break;
      } else {
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    return text;
  }

  TempFolder folder_;
  const std::string path_ = folder_.Path("fifo");
};

TEST_F(FifoTest, AReaderThatIsThereGetsTheTrace) {
  const DrivenTrace trace(20, 10, "fifo");
  const auto driver = Make();
  const UniqueFd reader = OpenReader();
  trace.WriteAll(*driver);
  EXPECT_EQ(Drain(reader.get(), true), trace.Bytes());
}

TEST_F(FifoTest, WithoutAReaderBlocksAreDroppedAtOnceAndByPolicy) {
  const DrivenTrace trace(100, 10, "fifo");
  const auto driver = Make();
  const auto begin = Clock::now();
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  ASSERT_TRUE(trace.Write(*driver, 0).ok());
  for (size_t i = 1; i + 1 < trace.size(); ++i) {
    const Status status = trace.Write(*driver, i);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(LossReasonOf(status), LossReason::kQueueFull);
  }
  // The end of a trace that nobody reads is not a failure.
  EXPECT_TRUE(trace.Write(*driver, trace.size() - 1).ok());
  EXPECT_TRUE(driver->Flush().ok());
  EXPECT_TRUE(driver->Release().ok());
  // A tenth of a second for each of 98 blocks would be 10 s.
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(FifoTest, TheDeadlineIsWaitedForOnceNotForEachBlock) {
  const DrivenTrace trace(100, 1, "fifo");
  const auto driver = Make(milliseconds(200));
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  ASSERT_TRUE(trace.Write(*driver, 0).ok());
  const auto begin = Clock::now();
  for (size_t i = 1; i + 1 < trace.size(); ++i) {
    EXPECT_FALSE(trace.Write(*driver, i).ok());
  }
  EXPECT_GE(Clock::now() - begin, milliseconds(200));
  // One for each of 98 blocks would be 20 s.
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(FifoTest, WithinTheDeadlineAReaderIsWaitedFor) {
  const DrivenTrace trace(5, 3, "fifo");
  const auto driver = Make(std::chrono::seconds(10));
  UniqueFd reader;
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    reader = OpenReader();
  });
  trace.WriteAll(*driver);
  late.join();
  EXPECT_EQ(ReadBytes(Drain(reader.get(), true)).numbers, Range(1, 15));
}

TEST_F(FifoTest, ALateReaderGetsTheDescriptionAndWhatFollows) {
  const DrivenTrace trace(10, 3, "fifo");
  const auto driver = Make();
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(trace.Write(*driver, i).ok(), i == 0);
  }
  const UniqueFd reader = OpenReader();
  for (size_t i = 5; i < trace.size(); ++i) {
    EXPECT_TRUE(trace.Write(*driver, i).ok());
  }
  EXPECT_TRUE(driver->Release().ok());
  const ReadBack back = ReadBytes(Drain(reader.get(), true));
  EXPECT_EQ(back.numbers, Range(13, 30));
  EXPECT_FALSE(back.stats.Bad()) << back.reports;
  EXPECT_EQ(back.stats.first_part, 1u);
}

TEST_F(FifoTest, AReaderThatNeverReadsLosesBlocksAndIsNotWaitedFor) {
  const DrivenTrace trace(3000, 40, "fifo");  // some megabytes
  const auto driver = Make();
  const UniqueFd reader = OpenReader();
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  const auto begin = Clock::now();
  size_t dropped = 0;
  for (size_t i = 0; i + 1 < trace.size(); ++i) {
    if (!trace.Write(*driver, i).ok()) ++dropped;
  }
  // A hundredth of a second for each of 3,000 blocks would be 30 s.
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(15));
  ASSERT_GT(dropped, 0u);
  // What it reads in the end is whole blocks, and what is not there was told.
  std::string text = Drain(reader.get(), false);
  EXPECT_TRUE(trace.Write(*driver, trace.size() - 1).ok());
  EXPECT_TRUE(driver->Release().ok());
  text += Drain(reader.get(), true);
  const ReadBack back = ReadBytes(text);
  EXPECT_EQ(back.stats.damaged_bytes, 0u) << back.reports;
  EXPECT_EQ(back.stats.cut_bytes, 0u);
  EXPECT_EQ(back.stats.missing_blocks, dropped);
}

TEST_F(FifoTest, WhatAReaderLeavesHalfReadIsCountedAsLost) {
  const DrivenTrace trace(3000, 40, "fifo");
  uint64_t late_blocks = 0;
  const auto driver = Make();
  ASSERT_TRUE(driver
                  ->Initialize(trace.Identity(
                      [&](const BlockInfo&, const Status&) { ++late_blocks; }))
                  .ok());
  size_t taken = 0;
  {
    const UniqueFd reader = OpenReader();
    for (size_t i = 0; i + 1 < trace.size(); ++i) {
      if (trace.Write(*driver, i).ok()) ++taken;
    }
  }
  ASSERT_LT(taken + 1, trace.size());
  // It went away with one block half in the pipe.
  EXPECT_FALSE(trace.Write(*driver, 2000).ok());
  EXPECT_EQ(late_blocks, 1u);
  // The next reader begins in good order.
  const UniqueFd next = OpenReader();
  EXPECT_TRUE(trace.Write(*driver, 2001).ok());
  EXPECT_TRUE(driver->Release().ok());
  const ReadBack back = ReadBytes(Drain(next.get(), true));
  EXPECT_EQ(back.numbers, Range(2000 * 40 + 1, 2001 * 40));
  EXPECT_EQ(back.stats.missing_blocks, 0u) << back.reports;
}

TEST_F(FifoTest, MakesTheFifoForItsOwnerOnly) {
  Make();
  struct stat st;
  ASSERT_EQ(::stat(path_.c_str(), &st), 0);
  EXPECT_TRUE(S_ISFIFO(st.st_mode));
  EXPECT_EQ(st.st_mode & 07777, 0600u);
}

TEST_F(FifoTest, WhatIsNoFifoIsRefused) {
  folder_.Write("fifo", "a file");
  auto folder = OutputFolder::Open(path_);
  ASSERT_TRUE(folder.ok());
  const auto driver = FifoDriver::Create({.path = path_}, *std::move(folder));
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.status().message().find("not a FIFO"), std::string::npos);
}

// --- Names that others had first.

TEST_F(FifoTest, AFifoOfOursIsUsed) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0640), 0);
  const DrivenTrace trace(5, 10, "fifo");
  const auto driver = Make();
  const UniqueFd reader = OpenReader();
  trace.WriteAll(*driver);
  EXPECT_EQ(Drain(reader.get(), true), trace.Bytes());
}

TEST_F(FifoTest, Malicious_AFifoThatOthersMayWriteToIsRefused) {
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_NE(Refusal().find("can be written by others"), std::string::npos);
    ASSERT_EQ(::unlink(path_.c_str()), 0);
  }
}

TEST_F(FifoTest, Malicious_AFifoOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  // Whatever fs.protected_fifos says: the driver makes no use of O_CREAT.
  ASSERT_EQ(::chmod(folder_.Path(".").c_str(), 01777), 0);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_NE(Refusal().find("belongs to user 65534"), std::string::npos);
}

TEST_F(FifoTest, Malicious_LinksAreRefused) {
  ASSERT_EQ(::mkfifo(folder_.Path("other").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("other", path_.c_str()), 0);
  EXPECT_NE(Refusal(), "ok");
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_EQ(::link(folder_.Path("other").c_str(), path_.c_str()), 0);
  EXPECT_NE(Refusal().find("2 names"), std::string::npos);
}

TEST_F(FifoTest, Race_AFifoThatWasExchangedGetsNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const DrivenTrace trace(10, 10, "fifo");
  const auto driver = Make();
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  const UniqueFd reader = OpenReader();
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  ASSERT_TRUE(trace.Write(*driver, 0).ok());
  const Status status = trace.Write(*driver, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(LossReasonOf(status), LossReason::kQueueFull);
  ASSERT_TRUE(driver->Release().ok());
  EXPECT_EQ(Drain(reader.get(), false), "");
}

}  // namespace
}  // namespace tracefs
