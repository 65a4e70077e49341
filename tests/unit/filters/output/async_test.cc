// The asynchronous filter: nothing lost, nothing reordered, nobody hung.
#include "filters/output/async.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/unit/filters/output/filter_chain.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// The rest of a chain, behind a gate that the test opens and closes.
class Gate {
 public:
  void Open() {
    std::lock_guard lock(mu_);
    open_ = true;
    changed_.notify_all();
  }
  void Close() {
    std::lock_guard lock(mu_);
    open_ = false;
  }
  void Pass() {
    std::unique_lock lock(mu_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --waiting_;
  }
  // Until the thread of the filter stands at the gate.
  void AwaitWaiter() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return waiting_ != 0; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = true;
  int waiting_ = 0;
};

class GatedEnd final : public OutputFilter {
 public:
  GatedEnd(ChainLog* log, Gate* gate) : end_(log), gate_(gate) {}
  Status Initialize(const TraceIdentity& identity) override {
    return end_.Initialize(identity);
  }
  Status Write(ByteSpan block, const BlockInfo& info) override {
    gate_->Pass();
    return end_.Write(block, info);
  }
  Status Flush() override { return end_.Flush(); }
  Status Release() override { return end_.Release(); }
  size_t PreferredBlockSize() const override { return 0; }

 private:
  ChainEnd end_;
  Gate* const gate_;
};

class AsyncTest : public testing::Test {
 protected:
  std::unique_ptr<OutputFilter> Make(size_t buffers, WhenFull when_full = {}) {
    auto filter = MakeAsync(
        {.buffers = buffers, .block_bytes = 4096, .when_full = when_full},
        std::make_unique<GatedEnd>(&log_, &gate_));
    TraceIdentity identity = TestIdentity();
    identity.lost = [this](const BlockInfo& info, const Status& why) {
      std::lock_guard lock(mu_);
      lost_.push_back(info.sequence);
      lost_reason_ = LossReasonOf(why);
    };
    EXPECT_TRUE(filter->Initialize(identity).ok());
    return filter;
  }

  static Status Put(OutputFilter& filter, uint64_t sequence,
                    bool last = false) {
    return filter.Write(AsBytes("block " + std::to_string(sequence)),
                        {.sequence = sequence, .events = 1, .last = last});
  }

  // The sequence numbers that came through, each with its contents.
  std::vector<uint64_t> Through() const {
    std::vector<uint64_t> all;
    for (const Written& w : log_.written) {
      EXPECT_EQ(w.payload, "block " + std::to_string(w.info.sequence));
      all.push_back(w.info.sequence);
    }
    return all;
  }

  ChainLog log_;
  Gate gate_;
  std::mutex mu_;
  std::vector<uint64_t> lost_;
  LossReason lost_reason_{};
};

TEST_F(AsyncTest, ManyBlocksGoThroughInOrder) {
  const auto filter = Make(3);
  std::vector<uint64_t> expected;
  for (uint64_t i = 0; i < 20000; ++i) {
    ASSERT_TRUE(Put(*filter, i).ok());
    expected.push_back(i);
  }
  ASSERT_TRUE(filter->Release().ok());
  EXPECT_EQ(Through(), expected);
  EXPECT_EQ(log_.calls, (std::vector<std::string>{"initialize", "release"}));
}

TEST_F(AsyncTest, WriteDoesNotWaitForTheOutput) {
  gate_.Close();
  const auto filter = Make(8);
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(Put(*filter, i).ok());
  EXPECT_EQ(filter->Queue()->limit_bytes, 8u * 4096);
  EXPECT_GE(filter->Queue()->blocks, 7u);
  gate_.Open();
  ASSERT_TRUE(filter->Release().ok());
  EXPECT_EQ(Through().size(), 8u);
}

TEST_F(AsyncTest, TheBlockMayBeReusedAtOnce) {
  gate_.Close();
  const auto filter = Make(4);
  std::string block = "first";
  ASSERT_TRUE(filter->Write(AsBytes(block), {}).ok());
  block = "other";
  gate_.Open();
  ASSERT_TRUE(filter->Release().ok());
  EXPECT_EQ(log_.written[0].payload, "first");
}

TEST_F(AsyncTest, FlushWaitsForAllThatWasWrittenAndGoesDown) {
  const auto filter = Make(4);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(Put(*filter, i).ok());
  ASSERT_TRUE(filter->Flush().ok());
  EXPECT_EQ(Through().size(), 4u);
  EXPECT_EQ(log_.calls.back(), "flush");
}

TEST_F(AsyncTest, DropLosesAtOnceAndSaysSo) {
  gate_.Close();
  const auto filter =
      Make(2, {.block = false, .deadline = std::chrono::seconds(60)});
  ASSERT_TRUE(Put(*filter, 0).ok());
  gate_.AwaitWaiter();
  ASSERT_TRUE(Put(*filter, 1).ok());
  const Clock::time_point begin = Clock::now();
  const Status status = Put(*filter, 2);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(LossReasonOf(status), LossReason::kQueueFull);
  gate_.Open();
  ASSERT_TRUE(filter->Flush().ok());
  EXPECT_TRUE(Put(*filter, 2).ok());
  ASSERT_TRUE(filter->Release().ok());
  EXPECT_EQ(Through(), (std::vector<uint64_t>{0, 1, 2}));
}

TEST_F(AsyncTest, BlockWaitsForABufferWithinTheDeadline) {
  gate_.Close();
  const auto filter = Make(2, {.deadline = std::chrono::seconds(30)});
  ASSERT_TRUE(Put(*filter, 0).ok());
  ASSERT_TRUE(Put(*filter, 1).ok());
  std::thread opener([this] {
    std::this_thread::sleep_for(milliseconds(50));
    gate_.Open();
  });
  EXPECT_TRUE(Put(*filter, 2).ok());
  opener.join();
  ASSERT_TRUE(filter->Release().ok());
  EXPECT_EQ(Through(), (std::vector<uint64_t>{0, 1, 2}));
}

TEST_F(AsyncTest, ADeadOutputCostsOneDeadlineNotOnePerBlock) {
  gate_.Close();
  const auto filter = Make(2, {.deadline = milliseconds(200)});
  ASSERT_TRUE(Put(*filter, 0).ok());
  ASSERT_TRUE(Put(*filter, 1).ok());
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 2; i < 100; ++i) {
    EXPECT_EQ(LossReasonOf(Put(*filter, i)), LossReason::kQueueFull);
  }
  const auto took = Clock::now() - begin;
  EXPECT_GE(took, milliseconds(200));
  // One for each of 98 blocks would be 19 s.
  EXPECT_LT(took, std::chrono::seconds(9));
  gate_.Open();
  ASSERT_TRUE(filter->Flush().ok());
  // And the output is waited for again once it lives.
  for (uint64_t i = 100; i < 200; ++i) EXPECT_TRUE(Put(*filter, i).ok());
  ASSERT_TRUE(filter->Release().ok());
}

TEST_F(AsyncTest, FlushOfADeadOutputGivesUp) {
  gate_.Close();
  const auto filter = Make(2, {.deadline = milliseconds(10)});
  ASSERT_TRUE(Put(*filter, 0).ok());
  const Status status = filter->Flush();
  EXPECT_EQ(status.error(), ETIMEDOUT);
  gate_.Open();
  EXPECT_TRUE(filter->Release().ok());
}

TEST_F(AsyncTest, TheLastBlockIsNotDropped) {
  gate_.Close();
  const auto filter = Make(2, {.block = false});
  ASSERT_TRUE(Put(*filter, 0).ok());
  ASSERT_TRUE(Put(*filter, 1).ok());
  std::thread opener([this] {
    std::this_thread::sleep_for(milliseconds(50));
    gate_.Open();
  });
  EXPECT_TRUE(Put(*filter, 2, /*last=*/true).ok());
  opener.join();
  ASSERT_TRUE(filter->Release().ok());
  EXPECT_EQ(Through().back(), 2u);
}

TEST_F(AsyncTest, WhatTheOutputRefusesLaterIsReportedAndFailsTheNextFlush) {
  const auto filter = Make(4);
  log_.fail_writes = 1;
  EXPECT_TRUE(Put(*filter, 0).ok());
  EXPECT_EQ(filter->Flush().error(), ENOSPC);
  EXPECT_TRUE(Put(*filter, 1).ok());
  EXPECT_TRUE(filter->Flush().ok());
  ASSERT_TRUE(filter->Release().ok());
  EXPECT_EQ(lost_, (std::vector<uint64_t>{0}));
  EXPECT_EQ(lost_reason_, LossReason::kOutputError);
  EXPECT_EQ(Through(), (std::vector<uint64_t>{1}));
}

TEST_F(AsyncTest, DataLoss_WhatTheOutputRefusesAfterTheLastFlushFailsTheEnd) {
  const auto filter = Make(4);
  ASSERT_TRUE(Put(*filter, 0).ok());
  ASSERT_TRUE(filter->Flush().ok());
  log_.fail_writes = 1;
  ASSERT_TRUE(Put(*filter, 1, /*last=*/true).ok());
  const Status released = filter->Release();
  EXPECT_EQ(released.error(), ENOSPC) << released.message();
}

TEST_F(AsyncTest, AFilterThatWasNeverReleasedEndsItsThread) {
  auto filter = Make(4);
  ASSERT_TRUE(Put(*filter, 0).ok());
  filter.reset();
  EXPECT_EQ(Through().size(), 1u);
}

TEST_F(AsyncTest, OptionsComeFromTheConfig) {
  ChainLog log;
  EXPECT_EQ(MustMakeFilters("async buffers = 4 block = 8K; file = x", &log)
                ->PreferredBlockSize(),
            8192u);
  EXPECT_EQ(MustMakeFilters("async; compress block = 64K; file = x", &log)
                ->PreferredBlockSize(),
            65536u);
  const std::pair<const char*, const char*> bad[] = {
      {"async buffers = 4096 block = 16M; file = x", "more than 4 GiB"},
      {"async when_full = drop deadline = 1s; file = x", "waits for nothing"},
  };
  for (const auto& [output, expected] : bad) {
    const auto tracer = ParseOutput(output);
    ASSERT_TRUE(tracer.ok()) << tracer.status().message();
    const auto made = MakeFilters(*tracer, &log);
    ASSERT_FALSE(made.ok()) << output;
    EXPECT_NE(made.status().message().find(expected), std::string::npos)
        << made.status().message();
  }
}

}  // namespace
}  // namespace tracefs
