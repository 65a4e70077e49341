// Frames that wait, in memory and on disk.
#include "drivers/output/remote/backlog.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/net_world.h"

namespace tracefs {
namespace {

using test::FakeTrace;

size_t Files(const TempFolder& folder) {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(folder.Path(""))) {
    ++n;
  }
  return n;
}

Status Put(Backlog& backlog, const FakeTrace& trace, uint64_t sequence) {
  return backlog.Append(AsBytes(trace.Header(sequence)),
                        AsBytes(trace.Payload(sequence)),
                        {.sequence = sequence, .events = 1});
}

std::string Bytes(const Backlog::Frame& frame) {
  std::string bytes(frame.bytes, '\0');
  if (frame.memory != nullptr) {
    bytes.assign(reinterpret_cast<const char*>(frame.memory.get()),
                 frame.bytes);
  } else {
    EXPECT_EQ(::pread(frame.segment->fd.get(), bytes.data(), bytes.size(),
                      static_cast<off_t>(frame.offset)),
              static_cast<ssize_t>(bytes.size()));
  }
  return bytes;
}

class SpillTest : public testing::Test {
 protected:
  std::shared_ptr<const SpillDirectory> Open() const {
    auto directory = SpillDirectory::Open(folder_.Path(""));
    EXPECT_TRUE(directory.ok()) << directory.status().message();
    return *directory;
  }
  std::unique_ptr<Backlog> Make(const FakeTrace& trace) const {
    return MakeSpillBacklog(Open(), trace.preamble(), trace.serial(),
                            /*limit=*/uint64_t{8} << 20);
  }

  const TempFolder folder_;
  const FakeTrace trace_{1, 100'000};
};

TEST(MemoryBacklogTest, HoldsFramesUntilTheyAreDropped) {
  const FakeTrace trace;
  const auto backlog = MakeMemoryBacklog();
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(Put(*backlog, trace, i).ok());
  EXPECT_EQ(backlog->bytes(), 10 * trace.Frame(0).size());
  EXPECT_EQ(backlog->DropBefore(4), 4u);
  EXPECT_EQ(backlog->size(), 6u);
  EXPECT_EQ(Bytes(backlog->frame(0)), trace.Frame(4));
  backlog->Drop(1);
  EXPECT_EQ(Bytes(backlog->frame(1)), trace.Frame(6));
  EXPECT_EQ(backlog->bytes(), 5 * trace.Frame(0).size());
  EXPECT_EQ(backlog->DropBefore(100), 5u);
  EXPECT_EQ(backlog->bytes(), 0u);
}

TEST_F(SpillTest, FilesGoWithTheirLastFrame) {
  const auto backlog = Make(trace_);
  for (uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(Put(*backlog, trace_, i).ok());
  EXPECT_EQ(Files(folder_), 3u);
  const uint64_t full = backlog->bytes();
  for (uint64_t i = 0; i < 30; ++i) {
    EXPECT_TRUE(Bytes(backlog->frame(i)) == trace_.Frame(i));
  }
  EXPECT_EQ(backlog->DropBefore(15), 15u);
  EXPECT_EQ(Files(folder_), 2u);
  EXPECT_LT(backlog->bytes(), full);
  EXPECT_EQ(backlog->DropBefore(30), 15u);
  // One file is there for what comes, with nothing in it.
  EXPECT_EQ(Files(folder_), 1u);
  EXPECT_EQ(backlog->bytes(), trace_.preamble().size());
  // A second outage.
  for (uint64_t i = 30; i < 45; ++i) {
    ASSERT_TRUE(Put(*backlog, trace_, i).ok());
  }
  EXPECT_TRUE(Bytes(backlog->frame(14)) == trace_.Frame(44));
}

TEST_F(SpillTest, AnEmptyBacklogLeavesNothing) {
  {
    const auto backlog = Make(trace_);
    ASSERT_TRUE(Put(*backlog, trace_, 0).ok());
    backlog->DropBefore(1);
  }
  EXPECT_EQ(Files(folder_), 0u);
}

TEST_F(SpillTest, WhatAProcessLeftIsTakenUp) {
  {
    const auto backlog = Make(trace_);
    for (uint64_t i = 0; i < 25; ++i) {
      ASSERT_TRUE(Put(*backlog, trace_, i).ok());
    }
    backlog->DropBefore(3);
    // What somebody still uses is not.
    EXPECT_TRUE(Open()->TakeLeftovers().empty());
  }
  auto left = Open()->TakeLeftovers();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].serial, trace_.serial());
  EXPECT_EQ(left[0].preamble, trace_.preamble());
  Backlog& backlog = *left[0].backlog;
  // A file goes as a whole: frames of it that were delivered are still there.
  EXPECT_LE(backlog.frame(0).info.sequence, 3u);
  const uint64_t first = backlog.frame(0).info.sequence;
  ASSERT_EQ(backlog.size(), 25 - first);
  for (size_t i = 0; i < backlog.size(); ++i) {
    EXPECT_TRUE(Bytes(backlog.frame(i)) == trace_.Frame(first + i));
  }
  EXPECT_EQ(backlog.DropBefore(100), 25 - first);
  left.clear();
  EXPECT_EQ(Files(folder_), 0u);
}

TEST_F(SpillTest, ALeftFileCutAtAnyByteGivesItsWholeFrames) {
  const FakeTrace small(3, 20);
  const std::string file = small.File(3);
  const std::string name =
      format::SerialText(small.serial()) + ".00000001.spill";
  for (size_t n = 0; n <= file.size(); ++n) {
    folder_.Write(name, file.substr(0, n));
    const auto left = Open()->TakeLeftovers();
    uint64_t whole = 0;
    while (whole < 3 && small.File(whole + 1).size() <= n) ++whole;
    ASSERT_EQ(left.size(), whole == 0 ? 0u : 1u) << n;
    if (whole != 0) {
      ASSERT_EQ(left[0].backlog->size(), whole) << n;
    }
  }
}

TEST_F(SpillTest, DataLoss_ADamagedBlockCostsItselfAndItsFileStays) {
  const FakeTrace small(3, 20);
  const std::string file = small.File(5);
  const std::string name =
      format::SerialText(small.serial()) + ".00000001.spill";
  for (const uint64_t bad : {0u, 1u, 3u}) {
    const size_t begin = small.File(bad).size();
    for (size_t at = begin; at < small.File(bad + 1).size(); ++at) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      folder_.Write(name, damaged);
      auto left = Open()->TakeLeftovers();
      ASSERT_EQ(left.size(), 1u) << at;
      Backlog& backlog = *left[0].backlog;
      ASSERT_EQ(backlog.size(), 4u) << at;
      for (size_t i = 0; i < backlog.size(); ++i) {
        ASSERT_EQ(Bytes(backlog.frame(i)), small.Frame(i < bad ? i : i + 1));
      }
      // Who dies before all is sent finds it again.
      ASSERT_TRUE(folder_.Read(folder_.Path(name)) == damaged) << at;
      backlog.DropBefore(100);
      left.clear();
      ASSERT_EQ(Files(folder_), 1u) << at;
      ASSERT_TRUE(folder_.Read(folder_.Path(name + ".damaged")) == damaged);
      ASSERT_TRUE(Open()->TakeLeftovers().empty()) << at;
      std::filesystem::remove(folder_.Path(name + ".damaged"));
    }
  }
}

TEST_F(SpillTest, DataLoss_AFileWithoutAWholeBlockStaysIfItIsDamaged) {
  const FakeTrace small(3, 20);
  std::string file = small.File(1);
  file.back() = static_cast<char>(file.back() ^ 1);
  const std::string name =
      format::SerialText(small.serial()) + ".00000001.spill";
  folder_.Write(name, file);
  EXPECT_TRUE(Open()->TakeLeftovers().empty());
  EXPECT_EQ(folder_.Read(folder_.Path(name + ".damaged")), file);
}

// No file of this process grows beyond `bytes`: a write gets as far as that.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(SpillTest, DataLoss_AFrameThatHasNoRoomLeavesNoPartOfItself) {
  const std::string name =
      format::SerialText(trace_.serial()) + ".00000001.spill";
  {
    const auto backlog = Make(trace_);
    for (uint64_t i = 0; i < 2; ++i) ASSERT_TRUE(Put(*backlog, trace_, i).ok());
    const uint64_t before = backlog->bytes();
    for (const size_t room : {1U, 30U, 50'000U}) {
      const FileSizeLimit limit(trace_.File(2).size() + room);
      const Status status = Put(*backlog, trace_, 2);
      ASSERT_FALSE(status.ok()) << room;
      EXPECT_NE(status.message().find("free some space"), std::string::npos);
    }
    EXPECT_EQ(backlog->bytes(), before);
    EXPECT_TRUE(TempFolder::Read(folder_.Path(name)) == trace_.File(2));
    // With room again it goes on behind the last whole frame.
    ASSERT_TRUE(Put(*backlog, trace_, 2).ok());
    EXPECT_TRUE(Bytes(backlog->frame(2)) == trace_.Frame(2));
    EXPECT_TRUE(TempFolder::Read(folder_.Path(name)) == trace_.File(3));
  }
  const auto left = Open()->TakeLeftovers();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].backlog->size(), 3u);
}

TEST_F(SpillTest, Malicious_ADirectoryThatOthersCanWriteToIsRefused) {
  ::chmod(folder_.Path("").c_str(), 0777);
  const auto directory = SpillDirectory::Open(folder_.Path(""));
  ASSERT_FALSE(directory.ok());
  EXPECT_NE(directory.status().message().find("chmod 700"), std::string::npos);
}

TEST_F(SpillTest, ADirectoryThatIsNotThereIsNamed) {
  const auto directory = SpillDirectory::Open(folder_.Path("no"));
  ASSERT_FALSE(directory.ok());
  EXPECT_NE(directory.status().message().find("make it first"),
            std::string::npos);
}

// --- Directories and files of others.

TEST_F(SpillTest, Malicious_ADirectoryOfOthersIsRefused) {
  for (const mode_t mode : {0720, 0702, 0777, 01777}) {
    ASSERT_EQ(::chmod(folder_.Path("").c_str(), mode), 0);
    const auto directory = SpillDirectory::Open(folder_.Path(""));
    EXPECT_NE(directory.status().message().find("can be written by others"),
              std::string::npos)
        << mode;
  }
  ASSERT_EQ(::chmod(folder_.Path("").c_str(), 0755), 0);
  EXPECT_TRUE(SpillDirectory::Open(folder_.Path("")).ok());
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  ASSERT_EQ(::chown(folder_.Path("").c_str(), 65534, 65534), 0);
  EXPECT_NE(SpillDirectory::Open(folder_.Path(""))
                .status()
                .message()
                .find("belongs to user 65534"),
            std::string::npos);
}

TEST_F(SpillTest, Malicious_FilesThatOthersLeftAreNotTaken) {
  {
    const auto backlog = Make(trace_);
    ASSERT_TRUE(Put(*backlog, trace_, 1).ok());
  }
  const std::string path =
      std::filesystem::directory_iterator(folder_.Path(""))->path();
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_TRUE(Open()->TakeLeftovers().empty());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const std::string second = folder_.Path("second");
  ASSERT_EQ(::link(path.c_str(), second.c_str()), 0);
  EXPECT_TRUE(Open()->TakeLeftovers().empty());
  ASSERT_EQ(::unlink(second.c_str()), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    EXPECT_TRUE(Open()->TakeLeftovers().empty());
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(Open()->TakeLeftovers().size(), 1u);
}

}  // namespace
}  // namespace tracefs
