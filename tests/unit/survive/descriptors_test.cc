// Whose the descriptors of a dead daemon are: the next one has its own, and
// those of the records that say rightly what they are.
#include "tracefs/survive/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/survive/area.h"

namespace tracefs::survive {
namespace {

class DescriptorsTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Area>> made = Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
  }

  // Runs `life` in a process whose descriptors do not matter.
  static void InItsOwn(const std::function<void()>& life) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      life();
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }

  // A new file; which one a descriptor is of, 0 if of none.
  static int File() { return ::memfd_create("t", MFD_CLOEXEC); }
  static uint64_t Which(int fd) {
    struct stat st;
    return ::fstat(fd, &st) == 0 ? st.st_ino : 0;
  }
  static bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

  // Node `i` with that file.
  void SetNode(uint32_t i, uint64_t id, int fd) {
    struct stat st {};
    ::fstat(fd, &st);
    NodeRecord& node = area_->node(i);
    node.id.store(id);
    node.device = st.st_dev;
    node.inode = st.st_ino;
    node.fd.store(fd);
    area_->header().nodes_used.store(
        std::max(area_->header().nodes_used.load(), i + 1));
  }
  void SetOpen(uint32_t i, uint64_t node, int fd, int plain_fd) {
    area_->open(i).node.store(node);
    area_->open(i).fd.store(fd);
    area_->open(i).plain_fd.store(plain_fd);
    area_->header().opens_used.store(
        std::max(area_->header().opens_used.load(), i + 1));
  }

  std::unique_ptr<Area> area_;
};

TEST_F(DescriptorsTest, RecordsNameTheirs) {
  Header& header = area_->header();
  header.daemon.store(101);
  header.helpers.back().store(102);
  header.trace_helpers[63].store(103);
  header.orders[63].files[15].store(104);
  SetNode(0, 9, -1);
  area_->node(0).fd.store(105);
  area_->node(1).fd.store(777);  // free
  area_->node(2).id.store(9);    // beyond those that are used
  area_->node(2).fd.store(777);
  header.nodes_used.store(2);
  SetOpen(0, 9, 106, 107);
  SetOpen(1, 0, 777, 777);
  SetOpen(2, 9, 2, -1);  // a standard file
  area_->open(3).node.store(9);
  area_->open(3).fd.store(777);
  for (const auto& [trace, turns, ended, fd] : {std::tuple(0, 1u, 0u, 108),
                                                {63, 2u, 0u, 109},
                                                {5, 3u, 1u, 777},
                                                {6, 0u, 0u, 777},
                                                {7, 1u, 0u, 2}}) {
    TraceRecord& record = header.traces[static_cast<size_t>(trace)];
    record.turns.store(turns);
    record.states[turns % 2].ended = ended;
    record.states[turns % 2].output.fd = fd;
  }
  std::vector<int> numbers = NumbersIn(*area_);
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers,
            (std::vector<int>{101, 102, 103, 104, 105, 106, 107, 108, 109}));
}

TEST_F(DescriptorsTest, WhatWasOpenIsThereAgainAndNothingElse) {
  InItsOwn([&] {
    const int area = area_->file();
    const int one = File();
    const int two = File();
    const uint64_t first = Which(one);
    const uint64_t second = Which(two);
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    // A daemon closes one and gets its number for another.
    ::close(one);
    ASSERT_EQ(::dup2(two, one), one);
    ::close(two);
    const int opened = File();
    const int low = ::fcntl(one, F_DUPFD, 300);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(descriptors.Restore(*area_).ok());
      EXPECT_EQ(Which(one), first);
      EXPECT_EQ(Which(two), second);
      EXPECT_NE(::fcntl(one, F_GETFD) & FD_CLOEXEC, 0);
      EXPECT_TRUE(IsOpen(area));
      EXPECT_TRUE(opened == two || !IsOpen(opened));
      EXPECT_FALSE(IsOpen(low));
      ::close(two);
    }
  });
}

// The keeper, which has the same descriptors, is at work meanwhile.
TEST_F(DescriptorsTest, WhatWasOpenIsThereAllTheTime) {
  InItsOwn([&] {
    const int file = File();
    const uint64_t which = Which(file);
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    std::atomic<bool> ended{false};
    std::atomic<uint64_t> looks{0};
    std::atomic<uint64_t> missed{0};
    std::thread keeper([&] {
      while (!ended.load()) {
        if (Which(file) != which) missed.fetch_add(1);
        looks.fetch_add(1);
      }
    });
    for (uint64_t seen = 0; seen < 20'000; seen = looks.load()) {
      ASSERT_TRUE(descriptors.Restore(*area_).ok());
    }
    ended.store(true);
    keeper.join();
    EXPECT_EQ(missed.load(), 0U);
  });
}

TEST_F(DescriptorsTest, FilesOfRecordsAreNotCopied) {
  InItsOwn([&] {
    const int fd = File();
    const auto copies = [] {
      int count = 0;
      for (int i = 64; i < 256; ++i) count += IsOpen(i);
      return count;
    };
    const int before = copies();
    int open = 0;
    for (int i = 3; i < 64; ++i) open += IsOpen(i);
    SetNode(0, 9, fd);
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    EXPECT_EQ(copies() - before, open - 1 + before);
  });
}

TEST_F(DescriptorsTest, ARecordWhoseFileIsInTheWayIsMoved) {
  InItsOwn([&] {
    const int low = File();
    const uint64_t lows = Which(low);
    // The highest that is kept, and the number after it is free.
    const int high = ::fcntl(low, F_DUPFD_CLOEXEC, 200);
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    const int node = File();
    const uint64_t nodes = Which(node);
    ASSERT_EQ(::dup2(node, low), low);
    ::close(high);
    SetNode(0, 9, low);
    const int open = ::fcntl(node, F_DUPFD_CLOEXEC, 210);
    SetOpen(0, 9, open, -1);
    ::close(node);
    ASSERT_TRUE(descriptors.Restore(*area_).ok());
    EXPECT_EQ(Which(low), lows);
    EXPECT_EQ(Which(high), lows);
    const int moved = area_->node(0).fd.load();
    EXPECT_GT(moved, high);
    EXPECT_EQ(Which(moved), nodes);
    EXPECT_NE(::fcntl(moved, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(area_->open(0).fd, open) << "it was not in the way";
    EXPECT_EQ(Which(open), nodes);
  });
}

TEST_F(DescriptorsTest, TracesThatGoOnKeepTheirPart) {
  InItsOwn([&] {
    Header& header = area_->header();
    const int kept = File();
    const uint64_t keeps = Which(kept);
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    const auto part = [&](size_t trace, int fd, uint64_t ended) {
      header.traces[trace].turns.store(1);
      header.traces[trace].states[1].ended = ended;
      header.traces[trace].states[1].output.fd = fd;
      return Which(fd);
    };
    const int in_the_way = File();
    const uint64_t moves = part(0, in_the_way, 0);
    ASSERT_EQ(::dup2(in_the_way, kept), kept);
    header.traces[0].states[1].output.fd = kept;
    const int goes_on = File();
    const uint64_t stays = part(1, goes_on, 0);
    const int has_ended = File();
    part(2, has_ended, 1);
    ASSERT_TRUE(descriptors.Restore(*area_).ok());
    EXPECT_EQ(Which(kept), keeps);
    EXPECT_EQ(Which(header.traces[0].states[1].output.fd), moves);
    EXPECT_EQ(header.traces[1].states[1].output.fd, goes_on);
    EXPECT_EQ(Which(goes_on), stays);
    EXPECT_FALSE(IsOpen(has_ended));
  });
}

TEST_F(DescriptorsTest, ARecordThatIsNotRightIsForgotten) {
  InItsOwn([&] {
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    Header& header = area_->header();
    const int files[] = {File(), File(), File(), File(), File(), File()};
    SetNode(0, 10, files[0]);
    SetNode(1, 11, files[1]);
    ++area_->node(1).inode;
    SetNode(2, 12, files[2]);
    ++area_->node(2).device;
    SetNode(3, 13, files[0]);  // another's
    SetNode(4, 14, files[3]);
    area_->node(4).fd.store(2);
    SetNode(5, 15, 9999);
    SetNode(6, 0, files[4]);  // free
    SetOpen(0, 10, ::dup(files[0]), ::dup(files[0]));
    SetOpen(1, 10, files[3], -1);         // of another file
    SetOpen(2, 99, ::dup(files[0]), -1);  // of no node
    SetOpen(3, 1, ::dup(files[5]), -1);   // of the root, which has no record
    SetOpen(4, 11, ::dup(files[1]), 0);
    ASSERT_TRUE(descriptors.Restore(*area_).ok());
    EXPECT_EQ(area_->node(0).fd, files[0]);
    EXPECT_TRUE(IsOpen(files[0]));
    for (const uint32_t i : {1, 2, 3, 4, 5}) {
      EXPECT_EQ(area_->node(i).fd, -1) << i;
    }
    for (const int i : {1, 2, 3, 4}) EXPECT_FALSE(IsOpen(files[i])) << i;
    EXPECT_TRUE(IsOpen(area_->open(0).fd));
    EXPECT_TRUE(IsOpen(area_->open(0).plain_fd));
    EXPECT_EQ(area_->open(1).fd, -1);
    EXPECT_EQ(area_->open(2).fd, -1);
    EXPECT_TRUE(IsOpen(area_->open(3).fd));
    EXPECT_EQ(area_->open(4).fd, -1);
    EXPECT_EQ(area_->open(4).plain_fd, -1);
    EXPECT_EQ(header.daemon, -1);
  });
}

TEST_F(DescriptorsTest, HelpersAndFilesOfTracesThatWereAddedStay) {
  InItsOwn([&] {
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    Header& header = area_->header();
    const auto set = [](std::atomic<int32_t>& fd) { fd.store(File()); };
    set(header.daemon);
    set(header.helpers[0]);
    set(header.helpers[255]);
    for (const size_t trace : {0, 1, 63}) {
      set(header.trace_helpers[trace]);
      set(header.orders[trace].files[0]);
      set(header.orders[trace].files[15]);
    }
    const int forgotten = header.trace_helpers[1].load();
    header.added.store(uint64_t{1} << 63 | 1);
    ASSERT_TRUE(descriptors.Restore(*area_).ok());
    EXPECT_TRUE(IsOpen(header.daemon));
    EXPECT_TRUE(IsOpen(header.helpers[0]));
    EXPECT_TRUE(IsOpen(header.helpers[255]));
    for (const size_t trace : {0, 1, 63}) {
      for (const auto* fd :
           {&header.trace_helpers[trace], &header.orders[trace].files[0],
            &header.orders[trace].files[15]}) {
        EXPECT_EQ(IsOpen(*fd), trace != 1);
      }
    }
    EXPECT_FALSE(IsOpen(forgotten));
    EXPECT_EQ(header.trace_helpers[1], -1);
  });
}

TEST_F(DescriptorsTest, Malicious_NothingBeyondTheRecordsIsLookedAt) {
  InItsOwn([&] {
    Descriptors descriptors;
    ASSERT_TRUE(descriptors.Keep(*area_).ok());
    const int fd = File();
    SetNode(1, 10, fd);
    SetOpen(1, 1, ::dup(fd), -1);
    area_->header().nodes_used.store(1);
    area_->header().opens_used.store(1);
    const int open = area_->open(1).fd.load();
    ASSERT_TRUE(descriptors.Restore(*area_).ok());
    EXPECT_FALSE(IsOpen(fd));
    EXPECT_FALSE(IsOpen(open));
  });
}

}  // namespace
}  // namespace tracefs::survive
