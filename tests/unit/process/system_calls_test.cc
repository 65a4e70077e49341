// Which call a thread is in, from rings that hold what the kernel would write,
// and from rings that hold anything.
#include "tracefs/process/system_calls.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tracefs/process/proc_text.h"

namespace tracefs {
namespace {

constexpr size_t kBytes = 1 << 16;
constexpr CallLayout kLayout = {.enter = 443, .signal = 200, .id = {8, 8}};

// A ring that is written backwards, as the kernel writes it.
class BackwardRing {
 public:
  void Write(ByteSpan record) {
    newest_ -= record.size();
    for (size_t i = 0; i < record.size(); ++i) {
      bytes_[(newest_ + i) % kBytes] = record[i];
    }
  }
  void Enter(uint32_t tid, uint64_t time, uint64_t call, uint64_t abi = 2) {
    Sample(tid, time, kLayout.enter, call, abi);
  }
  void Signal(uint32_t tid, uint64_t time) {
    Sample(tid, time, kLayout.signal, 0, 2);
  }
  CallRing ring() const { return {RingBytes(bytes_), newest_}; }
  std::vector<std::byte>& bytes() { return bytes_; }
  void SetNewest(uint64_t newest) { newest_ = newest; }

 private:
  void Sample(uint32_t tid, uint64_t time, uint16_t event, uint64_t call,
              uint64_t abi) {
    std::vector<std::byte> r(112);
    StoreLe<uint32_t>(r.data(), 9);
    StoreLe<uint16_t>(r.data() + 6, static_cast<uint16_t>(r.size()));
    StoreLe<uint32_t>(r.data() + 8, tid);
    StoreLe<uint32_t>(r.data() + 12, tid);
    StoreLe<uint64_t>(r.data() + 16, time);
    StoreLe<uint32_t>(r.data() + 24, 68);
    StoreLe<uint16_t>(r.data() + 28, event);
    StoreLe<uint64_t>(r.data() + 36, call);
    StoreLe<uint64_t>(r.data() + 96, abi);
    Write(r);
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  uint64_t newest_ = 0;
};

struct Answer {
  CallFound found;
  uint32_t call = 0;
};

template <typename... Rings>
Answer Find(uint32_t tid, const Rings&... of) {
  const std::array<CallRing, sizeof...(Rings)> rings = {of.ring()...};
  std::array<uint64_t, sizeof...(Rings)> checked{};
  Answer answer{};
  answer.found = FindCall(rings, kLayout, tid, 100000, &answer.call, checked);
  return answer;
}

TEST(SystemCallsTest, TheNewestCallOfTheThreadCounts) {
  BackwardRing ring;
  ring.Enter(7, 10, SYS_openat);
  ring.Enter(8, 11, SYS_read);
  ring.Enter(7, 12, SYS_close);
  ring.Enter(8, 13, SYS_write);
  EXPECT_EQ(Find(7, ring).call, static_cast<uint32_t>(SYS_close));
  EXPECT_EQ(Find(8, ring).call, static_cast<uint32_t>(SYS_write));
  EXPECT_EQ(Find(9, ring).found, CallFound::kNone);
}

TEST(SystemCallsTest, TheNewestOfAllProcessorsCounts) {
  BackwardRing one;
  BackwardRing two;
  one.Enter(7, 10, SYS_openat);
  two.Enter(7, 20, SYS_read);
  two.Enter(6, 21, SYS_stat);
  one.Enter(5, 30, SYS_fsync);
  EXPECT_EQ(Find(7, one, two).call, static_cast<uint32_t>(SYS_read));
  EXPECT_EQ(Find(7, two, one).call, static_cast<uint32_t>(SYS_read));
}

TEST(SystemCallsTest, WhatIsNotProvedIsUnknown) {
  BackwardRing ring;
  ring.Enter(7, 10, SYS_openat);
  ring.Signal(7, 11);
  EXPECT_EQ(Find(7, ring).found, CallFound::kSignal);
  ring.Enter(7, 12, 5, /*abi=*/1);
  EXPECT_EQ(Find(7, ring).found, CallFound::kCompat);
  ring.Enter(7, 13, 0x40000001);  // x32
  EXPECT_EQ(Find(7, ring).found, CallFound::kCompat);
}

TEST(SystemCallsTest, DataLoss_WhatARingHasForgottenMayHaveBeenNewer) {
  BackwardRing still;
  BackwardRing busy;
  still.Enter(7, 10, SYS_openat);
  busy.Enter(7, 20, SYS_read);
  for (uint64_t i = 0; i < 2 * kBytes / 112; ++i) {
    busy.Enter(99, 30 + i, SYS_write);
  }
  // It may be in openat, or in what is gone.
  EXPECT_EQ(Find(7, still, busy).found, CallFound::kTooOld);
  // The other's thread is there in any case.
  EXPECT_EQ(Find(99, still, busy).call, static_cast<uint32_t>(SYS_write));
  // Newer than anything that was lost.
  still.Enter(7, 100000, SYS_fsync);
  EXPECT_EQ(Find(7, still, busy).call, static_cast<uint32_t>(SYS_fsync));
}

TEST(SystemCallsTest, Malicious_AnyBytesEndTheSearch) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    BackwardRing ring;
    for (int i = 0; i < 50; ++i) {
      ring.Enter(static_cast<uint32_t>(i % 5), static_cast<uint64_t>(i),
                 SYS_read);
    }
    for (int i = 0; i < 40; ++i) {
      ring.bytes()[random() % kBytes] = static_cast<std::byte>(random());
      const size_t near = kBytes - 1 - random() % 5600;
      ring.bytes()[near] = static_cast<std::byte>(random());
    }
    if (round % 3 == 0) ring.SetNewest(random());
    Answer answer = Find(static_cast<uint32_t>(round % 6), ring);
    if (answer.found == CallFound::kCall) {
      EXPECT_LE(answer.call, 0xffffu);
    }
  }
}

TEST(SystemCallsTest, Malicious_ARingOfNothingIsNothing) {
  const CallRing nothing;
  uint32_t call = 0;
  uint64_t checked = 0;
  EXPECT_EQ(FindCall({&nothing, 1}, kLayout, 1, 10, &call, {&checked, 1}),
            CallFound::kNone);
}

TEST(TracepointLayoutTest, ReadsItsFieldsAndNothingElse) {
  const TracepointLayout layout = ParseTracepointLayout(
      "raw_syscalls/sys_enter 443 id:8:8 args:16:48\n"
      "nonsense\n\n x 1\nsignal/signal_deliver 200 sig:8:4\n"
      "task/task_rename 999999 pid:8:4\n");
  CallLayout found;
  ASSERT_TRUE(CallLayout::Find(layout, &found));
  EXPECT_EQ(found.enter, 443);
  EXPECT_EQ(found.signal, 200);
  EXPECT_EQ(found.id.offset, 8);
  EXPECT_FALSE(layout.contains("task/task_rename"));
  EXPECT_FALSE(CallLayout::Find(ParseTracepointLayout(""), &found));
}

TEST(TracepointLayoutTest, Malicious_TextsAndNumbersStayInsideTheRecord) {
  std::array<std::byte, 32> raw{};
  const std::string_view name = "/bin/sh";
  std::memcpy(raw.data() + 20, name.data(), name.size());
  StoreLe<uint32_t>(raw.data() + 8, 20 | (8u << 16));
  EXPECT_EQ(TracepointText(raw, {8, 4}), "/bin/sh");
  StoreLe<uint32_t>(raw.data() + 8, 20 | (13u << 16));
  EXPECT_EQ(TracepointText(raw, {8, 4}), std::nullopt);
  StoreLe<uint32_t>(raw.data() + 8, 0xffffffff);
  EXPECT_EQ(TracepointText(raw, {8, 4}), std::nullopt);
  EXPECT_EQ(TracepointValue(raw, {30, 4}), std::nullopt);
  EXPECT_EQ(TracepointValue(raw, {0xffff, 8}), std::nullopt);
  EXPECT_EQ(TracepointValue(raw, {0, 3}), std::nullopt);
  EXPECT_EQ(TracepointNumber({}), std::nullopt);
}

TEST(CallerDetailsTest, TheControlGroupOfEveryKindOfSystem) {
  EXPECT_EQ(CgroupOf("0::/user.slice/a.scope\n"), "/user.slice/a.scope");
  // Hybrid: the unified hierarchy is there and unused.
  EXPECT_EQ(CgroupOf("4:memory:/work/1\n1:cpu:/\n0::/\n"), "/work/1");
  EXPECT_EQ(CgroupOf("9:name=systemd:/\n4:memory:/docker/ab:c\n"),
            "/docker/ab:c");
  EXPECT_EQ(CgroupOf("0::/\n"), "/");
  EXPECT_EQ(CgroupOf(""), std::nullopt);
  EXPECT_EQ(CgroupOf("::\n:\nx\n0:\n"), std::nullopt);
}

TEST(CallerDetailsTest, TheTerminalByItsNumbers) {
  const auto of = [](const std::string& tty) {
    return TerminalOf("12 (a) b) S 1 2 3 " + tty + " -1 4194560 0");
  };
  EXPECT_EQ(of("0"), "none");
  EXPECT_EQ(of("34819"), "pts/3");
  EXPECT_EQ(of("1025"), "tty1");
  EXPECT_EQ(of("1088"), "ttyS0");
  EXPECT_EQ(of("1281"), "console");
  EXPECT_EQ(of("x"), std::nullopt);
  EXPECT_EQ(TerminalOf("no bracket"), std::nullopt);
}

TEST(CallerDetailsTest, ArgumentsAsOneLine) {
  using namespace std::string_view_literals;
  EXPECT_EQ(CommandLineOf("sh\0-c\0echo a\0"sv), "sh -c echo a");
  EXPECT_EQ(CommandLineOf("title\0\0\0\0"sv), "title");
  EXPECT_EQ(CommandLineOf(""sv), "");
}

}  // namespace
}  // namespace tracefs
