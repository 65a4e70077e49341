// Process events: the datagrams, hostile ones too, and the kernel's own.
#include "tracefs/process/proc_connector.h"

#include <gtest/gtest.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sys/prctl.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/process/child.h"

namespace tracefs {
namespace {

class Recorder final : public ProcConnector::Observer {
 public:
  void OnChange(uint32_t tid) override {
    std::lock_guard guard(mu_);
    changed_.insert(tid);
    told_.notify_all();
  }
  void OnLost() override {}

  bool WaitFor(uint32_t tid) {
    std::unique_lock lock(mu_);
    return told_.wait_for(lock, std::chrono::seconds(60),
                          [&] { return changed_.erase(tid) != 0; });
  }
  size_t size() {
    std::lock_guard guard(mu_);
    return changed_.size();
  }
  bool Has(uint32_t tid) {
    std::lock_guard guard(mu_);
    return changed_.count(tid) != 0;
  }

 private:
  std::mutex mu_;
  std::condition_variable told_;
  std::set<uint32_t> changed_;
};

std::string Datagram(uint32_t what, uint32_t first,
                     uint32_t idx = CN_IDX_PROC) {
  proc_event event = {};
  StoreLe<uint32_t>(&event, what);
  std::memcpy(&event.event_data, &first, sizeof first);
  nlmsghdr header = {};
  header.nlmsg_len = NLMSG_LENGTH(sizeof(cn_msg) + sizeof event);
  cn_msg cn = {};
  cn.id = {idx, CN_VAL_PROC};
  cn.len = sizeof event;
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out.append(reinterpret_cast<const char*>(&cn), sizeof cn);
  out.append(reinterpret_cast<const char*>(&event), sizeof event);
  out.resize(NLMSG_ALIGN(out.size()));
  return out;
}

TEST(ParseProcEventsTest, ReportsTheFourKindsAndNoOther) {
  Recorder recorder;
  int error = 77;
  const std::string all =
      Datagram(proc_event::PROC_EVENT_EXEC, 1) +
      Datagram(proc_event::PROC_EVENT_SID, 2) +
      Datagram(proc_event::PROC_EVENT_COMM, 3) +
      Datagram(proc_event::PROC_EVENT_EXIT, 4) +
      Datagram(proc_event::PROC_EVENT_FORK, 5) +
      Datagram(proc_event::PROC_EVENT_EXEC, 6, CN_IDX_PROC + 1);
  EXPECT_FALSE(ParseProcEvents(AsBytes(all), &recorder, &error));
  EXPECT_EQ(error, 77);
  EXPECT_EQ(recorder.size(), 4u);
  for (uint32_t tid = 1; tid <= 4; ++tid) EXPECT_TRUE(recorder.Has(tid));
}

TEST(ParseProcEventsTest, ReportsAnAcknowledgementWithItsError) {
  int error = 77;
  EXPECT_TRUE(ParseProcEvents(
      AsBytes(Datagram(proc_event::PROC_EVENT_NONE, EPERM)), nullptr, &error));
  EXPECT_EQ(error, EPERM);
}

TEST(ParseProcEventsTest, Malicious_CutOrChangedDatagramsNeverHarm) {
  const std::string good = Datagram(proc_event::PROC_EVENT_EXEC, 1) +
                           Datagram(proc_event::PROC_EVENT_EXIT, 2);
  for (size_t n = 0; n <= good.size(); ++n) {
    Recorder recorder;
    int error = 0;
    ParseProcEvents(AsBytes(good).first(n), &recorder, &error);
    EXPECT_LE(recorder.size(), 2u);
    for (const int value : {0, 1, 15, 16, 17, 127, 128, 255}) {
      std::string changed = good;
      if (n == good.size()) continue;
      changed[n] = static_cast<char>(value);
      // A copy of the right size, so that a sanitizer sees any overrun.
      const std::vector<char> exact(changed.begin(), changed.end());
      ParseProcEvents(AsBytes({exact.data(), exact.size()}), &recorder, &error);
    }
  }
}

class ProcConnectorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ProcConnector::Open();
    if (!opened.ok()) GTEST_SKIP() << opened.status().message();
    connector_ = *std::move(opened);
    const Status started = connector_->Start(&recorder_);
    if (!started.ok()) GTEST_SKIP() << started.message();
  }
  void TearDown() override {
    if (connector_ != nullptr) connector_->Stop();
  }

  Recorder recorder_;
  std::unique_ptr<ProcConnector> connector_;
};

TEST_F(ProcConnectorTest, TellsOfExecNameSessionAndExit) {
  Child child;
  const uint32_t pid = child.pid();
  child.Rename("renamed");
  EXPECT_TRUE(recorder_.WaitFor(pid));
  child.SetSid();
  EXPECT_TRUE(recorder_.WaitFor(pid));
  child.Exec();
  EXPECT_TRUE(recorder_.WaitFor(pid));
  child.Kill();
  EXPECT_TRUE(recorder_.WaitFor(pid));
}

// Changes itself whenever it is told of a change, in the thread that made it.
class Echo final : public ProcConnector::Observer {
 public:
  static constexpr size_t kAll = 5000;

  void OnChange(uint32_t /*tid*/) override {
    if (std::this_thread::get_id() != thread_ || told_ == kAll) return;
    ++told_;
    Rename();
  }
  void OnLost() override {}
  void Rename() { ::prctl(PR_SET_NAME, told_ % 2 != 0 ? "echo" : "oche"); }
  size_t told() const { return told_; }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  size_t told_ = 0;
};

TEST_F(ProcConnectorTest, Malicious_ManyChangesHoldUpNobody) {
  Echo echo;
  connector_->Stop();
  ASSERT_TRUE(connector_->Start(&echo).ok());
  // The connector's own thread may be first, and take it.
  bool all = true;
  while (echo.told() == 0) {
    echo.Rename();
    all = connector_->TakeReports();
  }
  EXPECT_FALSE(all);
  EXPECT_LT(echo.told(), Echo::kAll);
  connector_->Stop();
}

TEST_F(ProcConnectorTest, StopsAndStartsAgain) {
  Child child;
  connector_->Stop();
  child.Rename("unheard");
  ASSERT_TRUE(connector_->Start(&recorder_).ok());
  EXPECT_FALSE(recorder_.Has(child.pid()));
  child.Rename("heard");
  EXPECT_TRUE(recorder_.WaitFor(child.pid()));
}

}  // namespace
}  // namespace tracefs
