// The file driver: one file, rotated files, and disks that are full.
#include "drivers/output/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "drivers/output/file_name.h"
#include "drivers/output/trace_file.h"
#include "tests/unit/drivers/output/driven_trace.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/writer_lock.h"
#include "tracefs/format/marks.h"
#include "tracefs/pipeline/wish.h"

namespace tracefs {
namespace {

class FileTest : public testing::Test {
 protected:
  std::unique_ptr<OutputDriver> Make(Rotation rotation,
                                     OutputFileChange changed = nullptr) {
    OutputFileId id;
    auto driver = FileDriver::Create({.path = folder_.Path("t"),
                                      .rotation = rotation,
                                      .changed = std::move(changed)},
                                     &id);
    EXPECT_TRUE(driver.ok()) << driver.status().message();
    return driver.ok() ? *std::move(driver) : nullptr;
  }
  // The files of the trace that are there, in order.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.Path(""))) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  TempFolder folder_;
};

TEST_F(FileTest, WithoutRotationTheFileIsTheTraceAndNothingElse) {
  const DrivenTrace trace(5, 3);
  trace.WriteAll(*Make({}));
  EXPECT_EQ(TempFolder::Read(folder_.Path("t")), trace.Bytes());
  struct stat st;
  ASSERT_EQ(::stat(folder_.Path("t").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
}

TEST(FileNameTest, PlaceholdersAreReplacedAndNothingElseIsGuessed) {
  format::Serial serial{};
  serial[0] = std::byte{0xab};
  constexpr uint64_t kTime = 1795318538'000'000'000;
  const auto expand = [&](std::string_view name) {
    const Result<std::string> text = ExpandFileName(name, kTime, serial);
    return text.ok() ? *text : "refused";
  };
  EXPECT_EQ(expand("/a/b.trace"), "/a/b.trace");
  EXPECT_EQ(expand("t-%date"), "t-20261122T033538Z");
  EXPECT_EQ(expand("%serial%%"), "ab" + std::string(30, '0') + "%");
  for (const char* bad : {"50%", "%", "%d", "%Date", "a%b"}) {
    EXPECT_EQ(expand(bad), "refused") << bad;
  }
  EXPECT_TRUE(IsTemplate("x%serial"));
  EXPECT_FALSE(IsTemplate("x%%"));
  EXPECT_FALSE(IsTemplate("x%%date"));
  EXPECT_EQ(ExpandDate("50%%-%date-%%date-%serial", kTime),
            "50%%-20261122T033538Z-%%date-%serial");
}

TEST_F(FileTest, AFileThatNeverBeganIsRemoved) {
  Make({}).reset();
  EXPECT_TRUE(Files().empty());
}

TEST_F(FileTest, NeverReplacesAFile) {
  folder_.Write("t", "precious");
  OutputFileId id;
  const auto driver = FileDriver::Create({.path = folder_.Path("t")}, &id);
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().error(), EEXIST);
  EXPECT_NE(driver.status().message().find("never replaces"), std::string::npos)
      << driver.status().message();
  EXPECT_EQ(TempFolder::Read(folder_.Path("t")), "precious");
}

// The paper's evaluation writes there.
TEST_F(FileTest, Device_NullTakesAnyTraceAndStays) {
  struct stat before;
  ASSERT_EQ(::stat("/dev/null", &before), 0);
  const DrivenTrace trace(5, 3);
  for (const bool sync : {false, true}) {
    OutputFileId id;
    EXPECT_TRUE(FileDriver::Probe({.path = "/dev/null", .sync = sync}).ok());
    auto driver = FileDriver::Create({.path = "/dev/null", .sync = sync}, &id);
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    EXPECT_EQ(id.inode, before.st_ino);
    trace.WriteAll(**driver);
    // One that never begins takes no device away.
    ASSERT_TRUE(FileDriver::Create({.path = "/dev/null"}, &id).ok());
    std::vector<UniqueFd> sent;
    sent.emplace_back(::open("/dev/null", O_WRONLY | O_DSYNC | O_CLOEXEC));
    driver = FileDriver::Adopt({.path = "x", .sync = sync}, Given(sent), &id);
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    trace.WriteAll(**driver);
  }
  struct stat after;
  ASSERT_EQ(::stat("/dev/null", &after), 0);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(after.st_mode, before.st_mode);
}

TEST_F(FileTest, Device_AFullOneRefusesAndSaysSo) {
  OutputFileId id;
  auto driver = FileDriver::Create({.path = "/dev/full"}, &id);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  EXPECT_EQ((*driver)->Initialize(DrivenTrace(1, 1).Identity()).error(),
            ENOSPC);
}

// A tape: bytes go behind those before, and there is no way back.
TEST_F(FileTest, Device_WithoutSeekingGetsTheTraceInOrder) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const DrivenTrace trace(5, 3);
  TraceFile file(UniqueFd(ends[1]), "tape");
  EXPECT_TRUE(file.Reserve(uint64_t{1} << 40));
  EXPECT_TRUE(file.Append({AsBytes(trace.preamble())}).ok());
  for (size_t i = 0; i < trace.size(); ++i) {
    EXPECT_TRUE(file.Append({AsBytes(trace.frame(i))}).ok());
  }
  EXPECT_EQ(file.size(), trace.Bytes().size());
  EXPECT_TRUE(file.Close(/*durable=*/true).ok());
  std::string read(trace.Bytes().size() + 1, '\0');
  const ssize_t n = ::read(reader.get(), read.data(), read.size());
  ASSERT_EQ(n, static_cast<ssize_t>(trace.Bytes().size()));
  read.pop_back();
  EXPECT_EQ(read, trace.Bytes());
}

TEST_F(FileTest, Lock_IsTakenWhenTheWriterBeforeHasGone) {
  const std::string path = folder_.Path("shared");
  const auto open = [&path] {
    return UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  };
  auto before = std::make_unique<TraceFile>(open(), "before");
  TraceFile after(open(), "after");
  const UniqueFd reader = open();
  EXPECT_TRUE(WriterLives(reader.get()));
  before.reset();
  EXPECT_FALSE(WriterLives(reader.get()));
  EXPECT_TRUE(after.Resume(0).ok());
  EXPECT_TRUE(WriterLives(reader.get()));
}

TEST_F(FileTest, Device_TerminalsAndRotationAreRefused) {
  OutputFileId id;
  const FileOptions rotated = {.path = "/dev/null", .rotation = {.events = 5}};
  EXPECT_EQ(ExitStatus(FileDriver::Create(rotated, &id).status()), 2);
  EXPECT_EQ(FileDriver::Create(rotated, &id).status().message(),
            FileDriver::Probe(rotated).message());
  const UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64];
  if (!master || ::grantpt(master.get()) != 0 ||
      ::unlockpt(master.get()) != 0 ||
      ::ptsname_r(master.get(), name, sizeof name) != 0) {
    GTEST_SKIP() << "no pseudo-terminals here";
  }
  const auto driver = FileDriver::Create({.path = name}, &id);
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.status().message().find("is a terminal"), std::string::npos)
      << driver.status().message();
  EXPECT_EQ(FileDriver::Probe({.path = name}).message(),
            driver.status().message());
}

// --check says what the mount says.
TEST_F(FileTest, AProbeIsRefusedWhatTheFileWouldBe) {
  folder_.Write("t", "precious");
  folder_.Write("r.000001", "another trace");
  for (const FileOptions& options :
       {FileOptions{.path = folder_.Path("t")},
        FileOptions{.path = folder_.Path("r"), .rotation = {.events = 5}},
        FileOptions{.path = folder_.Path("no/t")}}) {
    OutputFileId id;
    const Status made = FileDriver::Create(options, &id).status();
    const Status probed = FileDriver::Probe(options);
    EXPECT_FALSE(probed.ok()) << options.path;
    EXPECT_EQ(probed.message(), made.message());
  }
  EXPECT_TRUE(FileDriver::Probe({.path = folder_.Path("new")}).ok());
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(FileTest, Rotation_ByCountMakesPartsThatAreOneTrace) {
  const DrivenTrace trace(10, 4);  // 40 operations
  trace.WriteAll(*Make({.events = 10}));
  const std::vector<std::string> files = Files();
  // Two blocks of four a file.
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files[1], folder_.Path("t.000001"));
  const ReadBack all = ReadFiles(files);
  EXPECT_EQ(all.numbers, Range(1, 40));
  EXPECT_FALSE(all.stats.Bad()) << all.reports;
  EXPECT_EQ(all.reports, "");
}

TEST_F(FileTest, Rotation_EachPartIsCompleteByItself) {
  const DrivenTrace trace(10, 4);
  trace.WriteAll(*Make({.events = 10}));
  for (size_t part = 0; part < 5; ++part) {
    const ReadBack one = ReadFiles({Files()[part]});
    EXPECT_EQ(one.numbers, Range(8 * part + 1, 8 * part + 8)) << part;
    EXPECT_FALSE(one.stats.Bad()) << part << ": " << one.reports;
    EXPECT_EQ(one.stats.first_part, part);
    EXPECT_EQ(one.stats.goes_on, part == 4 ? 0 : part + 1);
    EXPECT_FALSE(one.stats.no_header);
  }
}

TEST_F(FileTest, Rotation_ConcatenatedFilesAreReadAsOne) {
  const DrivenTrace trace(10, 4);
  trace.WriteAll(*Make({.events = 10}));
  std::string bytes;
  for (const std::string& file : Files()) bytes += TempFolder::Read(file);
  const ReadBack all = ReadBytes(bytes);
  EXPECT_EQ(all.numbers, Range(1, 40));
  EXPECT_FALSE(all.stats.Bad()) << all.reports;
}

TEST_F(FileTest, Rotation_AMissingPartIsAGap) {
  const DrivenTrace trace(10, 4);
  trace.WriteAll(*Make({.events = 10}));
  std::vector<std::string> files = Files();
  files.erase(files.begin() + 2);
  const ReadBack rest = ReadFiles(files);
  EXPECT_TRUE(rest.stats.Bad());
  EXPECT_EQ(rest.stats.missing_blocks, 2u) << rest.reports;
  EXPECT_EQ(rest.numbers.size(), 32u);
}

TEST_F(FileTest, Rotation_BySizeKeepsFilesBelowTheLimit) {
  const DrivenTrace trace(200, 40);
  trace.WriteAll(*Make({.bytes = 64 << 10}));
  const std::vector<std::string> files = Files();
  ASSERT_GT(files.size(), 3u);
  for (const std::string& file : files) {
    // The mark at the end comes on top.
    EXPECT_LE(std::filesystem::file_size(file), (64u << 10) + 64) << file;
  }
  EXPECT_EQ(ReadFiles(files).numbers, Range(1, 8000));
}

TEST_F(FileTest, Rotation_ByTimeStartsAFileWhenTheNextBlockComes) {
  const DrivenTrace trace(4, 2);
  const auto driver = Make({.age_ns = 50'000'000});
  ASSERT_TRUE(driver->Initialize(trace.Identity()).ok());
  for (size_t i = 0; i < trace.size(); ++i) {
    const size_t before = Files().size();
    if (i == 3) {
      ::usleep(60'000);
      EXPECT_EQ(Files().size(), before);
    }
    EXPECT_TRUE(trace.Write(*driver, i).ok());
    // A machine that is busy may take that long for the others, too.
    EXPECT_GE(Files().size(), before + (i == 3 ? 1 : 0));
  }
  EXPECT_TRUE(driver->Release().ok());
  EXPECT_EQ(ReadFiles(Files()).numbers, Range(1, 8));
}

TEST_F(FileTest, Rotation_ByTimeStartsNoFileBefore) {
  const DrivenTrace trace(4, 2);
  trace.WriteAll(*Make({.age_ns = 3'600'000'000'000}));
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(FileTest, Rotation_ALimitBelowTheHeaderStillMakesProgress) {
  const DrivenTrace trace(5, 2);
  trace.WriteAll(*Make({.bytes = 1}));
  EXPECT_EQ(Files().size(), 5u);
  EXPECT_EQ(ReadFiles(Files()).numbers, Range(1, 10));
}

TEST_F(FileTest, Rotation_KeepRemovesTheOldest) {
  const DrivenTrace trace(10, 4);
  std::vector<std::pair<OutputFileId, bool>> changes;
  trace.WriteAll(*Make({.events = 4, .keep = 3},
                       [&](const OutputFileId& id, bool written) {
                         changes.emplace_back(id, written);
                       }));
  const std::vector<std::string> files = Files();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0], folder_.Path("t.000007"));
  const ReadBack rest = ReadFiles(files);
  EXPECT_EQ(rest.numbers, Range(29, 40));
  EXPECT_FALSE(rest.stats.Bad()) << rest.reports;
  EXPECT_EQ(rest.reports,
            "part 7 of a rotated trace: blocks 1 to 7 are in parts before "
            "it\n");
  // Nine times a new file, and the one before is written no more.
  EXPECT_EQ(changes.size(), 18u);
}

TEST_F(FileTest, Rotation_PartsOfAnotherTraceAreInTheWay) {
  folder_.Write("t.000001", "another trace");
  OutputFileId id;
  const auto driver = FileDriver::Create(
      {.path = folder_.Path("t"), .rotation = {.events = 5}}, &id);
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.status().message().find("earlier trace"), std::string::npos);
}

TEST_F(FileTest, Rotation_ANumberThatIsTakenIsLeftOut) {
  const DrivenTrace trace(6, 4);
  const auto driver = Make({.events = 8});
  folder_.Write("t.000001", "somebody was faster");
  trace.WriteAll(*driver);
  EXPECT_EQ(TempFolder::Read(folder_.Path("t.000001")), "somebody was faster");
  EXPECT_EQ(ReadFiles({folder_.Path("t"), folder_.Path("t.000002"),
                       folder_.Path("t.000003")})
                .numbers,
            Range(1, 24));
}

TEST_F(FileTest, Rotation_WhereNoFileCanBeMadeTheTraceGoesOn) {
  const DrivenTrace trace(6, 4);
  ASSERT_EQ(::mkdir(folder_.Path("d").c_str(), 0700), 0);
  OutputFileId id;
  auto driver = FileDriver::Create(
      {.path = folder_.Path("d/t"), .rotation = {.events = 4}}, &id);
  ASSERT_TRUE(driver.ok());
  const UniqueFd kept(::open(folder_.Path("d/t").c_str(), O_RDONLY));
  // A folder that is gone takes no more files, not even root's.
  std::filesystem::remove_all(folder_.Path("d"));
  trace.WriteAll(**driver);
  std::string bytes(1 << 20, '\0');
  const ssize_t n = ::read(kept.get(), bytes.data(), bytes.size());
  ASSERT_GT(n, 0);
  bytes.resize(static_cast<size_t>(n));
  const ReadBack all = ReadBytes(bytes);
  EXPECT_EQ(all.numbers, Range(1, 24));
  EXPECT_FALSE(all.stats.Bad()) << all.reports;
}

TEST_F(FileTest, Rotation_LinksAreThoseOfTheFrames) {
  const DrivenTrace trace(6, 4);
  trace.WriteAll(*Make({.events = 8}));
  uint32_t link = 0;
  for (const std::string& file : Files()) {
    const std::string text = TempFolder::Read(file);
    ByteSpan rest = AsBytes(text);
    rest = rest.subspan(*format::PreambleLength(rest));
    uint32_t crc = 0;
    while (!rest.empty()) {
      format::FrameHeader header;
      ASSERT_TRUE(format::DecodeFrameHeader(
          rest.first<format::kFrameHeaderBytes>(), &header));
      const auto mark = format::DecodePartMark(
          rest.subspan(format::kFrameHeaderBytes, header.payload_bytes));
      if (header.kind == 16) {
        EXPECT_EQ(mark->link, link);
      }
      if (header.kind == 17) {
        EXPECT_EQ(mark->link, crc);
        link = crc;
      }
      // CRC-32C goes on where it stopped: by hand, from FORMAT.md.
      std::byte bytes[4];
      StoreLe<uint32_t>(bytes, header.crc);
      uint32_t sum = ~crc;
      for (const std::byte b : bytes) {
        sum ^= static_cast<uint8_t>(b);
        for (int i = 0; i < 8; ++i) {
          sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78u : 0);
        }
      }
      crc = ~sum;
      rest = rest.subspan(format::kFrameHeaderBytes + header.payload_bytes);
    }
  }
}

// --- Files that somebody else has opened.

TEST_F(FileTest, Adopt_TakesWhatCreateWouldHaveMade) {
  const DrivenTrace trace(6, 4);
  std::vector<UniqueFd> files;
  files.emplace_back(
      ::open(folder_.Path("t").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
  files.emplace_back(::open(folder_.Path("").c_str(), O_PATH | O_DIRECTORY));
  OutputFileId id;
  auto driver = FileDriver::Adopt(
      {.path = "/elsewhere/t", .rotation = {.events = 8}}, Given(files), &id);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  trace.WriteAll(**driver);
  EXPECT_EQ(Files().size(), 3u);
  EXPECT_EQ(ReadFiles(Files()).numbers, Range(1, 24));
}

TEST_F(FileTest, Malicious_Adopt_RefusesFilesOfOthers) {
  const auto refusal = [&](const std::string& name) {
    std::vector<UniqueFd> files;
    files.emplace_back(::open(name.c_str(), O_WRONLY | O_CLOEXEC));
    OutputFileId id;
    return FileDriver::Adopt({.path = "t"}, Given(files), &id)
        .status()
        .message();
  };
  EXPECT_EQ(refusal(folder_.Write("ours", "")), "ok");
  EXPECT_NE(refusal(folder_.Write("group", "", 0620)), "ok");
  EXPECT_NE(refusal(folder_.Write("all", "", 0602)), "ok");
  const std::string linked = folder_.Write("linked", "");
  ASSERT_EQ(::link(linked.c_str(), folder_.Path("second").c_str()), 0);
  EXPECT_NE(refusal(linked).find("2 names"), std::string::npos);
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  const std::string theirs = folder_.Write("theirs", "");
  ASSERT_EQ(::chown(theirs.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal(theirs).find("belongs to user 65534"), std::string::npos);
}

TEST_F(FileTest, Adopt_RefusesWhatIsNoNewFile) {
  OutputFileId id;
  const auto refused = [&](std::vector<UniqueFd> files, Rotation rotation) {
    return !FileDriver::Adopt({.path = "t", .rotation = rotation}, Given(files),
                              &id)
                .ok();
  };
  const auto one = [](UniqueFd fd) {
    std::vector<UniqueFd> files;
    files.push_back(std::move(fd));
    return files;
  };
  const std::string old = folder_.Write("old", "x");
  EXPECT_TRUE(refused(one(UniqueFd(::open(old.c_str(), O_WRONLY))), {}));
  EXPECT_TRUE(refused(one(UniqueFd(::open("/dev/null", O_RDONLY))), {}));
  const std::string fresh = folder_.Write("new", "");
  EXPECT_TRUE(refused(one(UniqueFd(::open(fresh.c_str(), O_RDONLY))), {}));
  EXPECT_TRUE(
      refused(one(UniqueFd(::open(fresh.c_str(), O_WRONLY))), {.events = 1}));
}

// --- A full disk.

// A file system of its own with little room; needs root.
class FullDiskTest : public FileTest {
 protected:
  void SetUp() override {
    disk_ = folder_.Path("disk");
    ASSERT_EQ(::mkdir(disk_.c_str(), 0700), 0);
    if (::mount("none", disk_.c_str(), "tmpfs", 0, "size=512k") != 0) {
      disk_.clear();
      GTEST_SKIP() << "mounting a tmpfs needs root";
    }
  }
  void TearDown() override {
    if (disk_.empty()) return;
    EXPECT_EQ(::umount2(disk_.c_str(), MNT_DETACH), 0);
  }

  std::string disk_;
};

TEST_F(FullDiskTest, DataLoss_WhatDoesNotFitIsRefusedAndTheTraceEndsWell) {
  const DrivenTrace trace(2000, 40);
  OutputFileId id;
  auto driver = FileDriver::Create({.path = disk_ + "/t"}, &id);
  ASSERT_TRUE(driver.ok());
  ASSERT_TRUE((*driver)->Initialize(trace.Identity()).ok());
  size_t kept = 0;
  size_t refused = 0;
  for (size_t i = 0; i + 1 < trace.size(); ++i) {
    const Status status = trace.Write(**driver, i);
    if (status.ok()) {
      ++kept;
      continue;
    }
    ++refused;
    EXPECT_EQ(status.error(), ENOSPC);
    EXPECT_NE(status.message().find(disk_), std::string::npos);
  }
  ASSERT_GT(refused, 0u);
  // There is room for FINAL, in what was kept in reserve.
  EXPECT_TRUE(trace.Write(**driver, trace.size() - 1).ok());
  EXPECT_TRUE((*driver)->Release().ok());
  const ReadBack back = ReadFiles({disk_ + "/t"});
  EXPECT_EQ(back.stats.blocks, kept + 1);
  EXPECT_TRUE(back.stats.final_record.has_value());
  EXPECT_EQ(back.stats.damaged_bytes, 0u);
  EXPECT_EQ(back.stats.cut_bytes, 0u);
}

TEST_F(FullDiskTest, DataLoss_RoomThatComesBackIsUsed) {
  const DrivenTrace trace(2000, 40);
  OutputFileId id;
  auto driver = FileDriver::Create({.path = disk_ + "/t"}, &id);
  ASSERT_TRUE(driver.ok());
  ASSERT_TRUE((*driver)->Initialize(trace.Identity()).ok());
  // Somebody else fills the disk.
  {
    const UniqueFd other(
        ::open((disk_ + "/other").c_str(), O_WRONLY | O_CREAT, 0600));
    const std::string much(1 << 20, 'x');
    ASSERT_GT(::write(other.get(), much.data(), much.size()), 0);
  }
  size_t i = 0;
  while (i + 2 < trace.size() && trace.Write(**driver, i).ok()) ++i;
  ASSERT_LT(i + 2, trace.size()) << "the disk did not fill";
  std::filesystem::remove(disk_ + "/other");
  EXPECT_TRUE(trace.Write(**driver, i + 1).ok());
  EXPECT_TRUE((*driver)->Release().ok());
  const ReadBack back = ReadFiles({disk_ + "/t"});
  EXPECT_EQ(back.stats.blocks, i + 1);
  EXPECT_EQ(back.stats.missing_blocks, 1u);
}

TEST_F(FullDiskTest, Rotation_OnAFullDiskTheTraceGoesOnInTheFileBefore) {
  const DrivenTrace trace(400, 40);
  OutputFileId id;
  auto driver = FileDriver::Create(
      {.path = disk_ + "/t", .rotation = {.bytes = 100 << 10, .keep = 2}}, &id);
  ASSERT_TRUE(driver.ok());
  trace.WriteAll(**driver);
  // With two files kept there was always room for the next one.
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(disk_)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 2u);
  const ReadBack back = ReadFiles(files);
  EXPECT_FALSE(back.stats.Bad()) << back.reports;
  EXPECT_EQ(back.numbers.back(), 16000u);
}

TEST_F(FullDiskTest, Rotation_ThatFailedLeavesNoGapInTheNumbersOfParts) {
  const DrivenTrace trace(60, 40);
  OutputFileId id;
  auto driver = FileDriver::Create(
      {.path = disk_ + "/t", .rotation = {.events = 400}}, &id);
  ASSERT_TRUE(driver.ok());
  ASSERT_TRUE((*driver)->Initialize(trace.Identity()).ok());
  size_t i = 0;
  for (; i < 10; ++i) ASSERT_TRUE(trace.Write(**driver, i).ok());
  const auto fill = [&] {
    const UniqueFd other(
        ::open((disk_ + "/other").c_str(), O_WRONLY | O_CREAT, 0600));
    const std::string much(1 << 20, 'x');
    ASSERT_GT(::write(other.get(), much.data(), much.size()), 0);
  };
  fill();
  // The rotation fails, and with it most of what follows.
  size_t refused = 0;
  for (; i < 14; ++i) refused += trace.Write(**driver, i).ok() ? 0 : 1;
  EXPECT_FALSE(std::filesystem::exists(disk_ + "/t.000001"));
  std::filesystem::remove(disk_ + "/other");
  // A rotation that failed is tried again after a second.
  ::usleep(1'100'000);
  for (; i < trace.size(); ++i) {
    ASSERT_TRUE(trace.Write(**driver, i).ok()) << i;
  }
  ASSERT_TRUE((*driver)->Release().ok());
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(disk_)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 3u);
  EXPECT_EQ(ReadFiles(files).numbers.size(), 2400 - 40 * refused);
  for (size_t part = 0; part + 1 < files.size(); ++part) {
    const ReadBack one = ReadFiles({files[part]});
    EXPECT_EQ(one.stats.first_part, part);
    EXPECT_EQ(one.stats.goes_on, part + 1) << one.reports;
  }
}

// A block of which only a part could be written leaves nothing behind. The
// kernel's limit on the size of files stops a write in its middle.
TEST_F(FileTest, DataLoss_AFrameCutByTheSystemIsTakenBack) {
  const DrivenTrace trace(3, 400);
  const std::string path = folder_.Path("t");
  // In a process of its own, which has the limit.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    OutputFileId id;
    auto driver = FileDriver::Create({.path = path}, &id);
    if (!driver.ok() || !(*driver)->Initialize(trace.Identity()).ok() ||
        !trace.Write(**driver, 0).ok() || !trace.Write(**driver, 1).ok()) {
      ::_exit(1);
    }
    const size_t so_far =
        trace.preamble().size() + trace.frame(0).size() + trace.frame(1).size();
    const rlimit limit = {so_far + 100, so_far + 100};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    // The next frame needs more than the 100 bytes that are left.
    if (trace.Write(**driver, 2).ok()) ::_exit(3);
    if (!(*driver)->Release().ok()) ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(TempFolder::Read(path),
            trace.preamble() + trace.frame(0) + trace.frame(1));
}

}  // namespace
}  // namespace tracefs
