// A folder that is kept, and files whose bytes go there, for the tests of this
// folder.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/keep/kept_folder.h"
#include "tracefs/keep/kept_reader.h"

namespace tracefs::keep {

class KeptWorld : public testing::Test {
 protected:
  KeptWorld() {
    std::string name = testing::TempDir() + "keptXXXXXX";
    top_ = ::mkdtemp(name.data());
    ::mkdir((top_ + "/source").c_str(), 0700);
    SetNoticeSink([this](NoticeId, const std::string& text) {
      notices_.push_back(text);
    });
  }
  ~KeptWorld() override {
    SetNoticeSink({});
    std::filesystem::remove_all(top_);
  }

  // A trace's, which is a serial number: the same word gives the same one.
  static std::string SerialOf(std::string_view word) {
    std::string serial = Hex(AsBytes(word));
    serial.resize(32, '0');
    return serial;
  }

  // `name`: any word.
  Result<std::unique_ptr<KeptFolder>> TryMake(const std::string& name,
                                              const std::string& path,
                                              uint64_t max_bytes = 1 << 20) {
    const UniqueFd source(::open((top_ + "/source").c_str(), O_PATH));
    return KeptFolder::Make({.path = path,
                             .name = SerialOf(name),
                             .max_bytes = max_bytes,
                             .source = source.get()});
  }

  std::unique_ptr<KeptFolder> Make(const std::string& name,
                                   uint64_t max_bytes = 1 << 20) {
    auto made = TryMake(name, top_ + "/kept", max_bytes);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *std::move(made) : nullptr;
  }

  UniqueFd File(std::string_view text) {
    UniqueFd fd(::open((top_ + "/source").c_str(), O_TMPFILE | O_RDWR, 0600));
    EXPECT_TRUE(WriteAllAt(fd.get(), AsBytes(text), 0, "file").ok());
    return fd;
  }
  // A hole of `bytes` bytes.
  UniqueFd Hole(uint64_t bytes) {
    UniqueFd fd = File("");
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    return fd;
  }

  static uint64_t SizeOf(int fd) {
    struct stat st;
    EXPECT_EQ(::fstat(fd, &st), 0);
    return static_cast<uint64_t>(st.st_size);
  }

  static KeptPart Keep(KeptFolder& folder, int fd, uint64_t begin,
                       uint64_t end) {
    KeptPart part;
    errno = EIO;  // of something that was long ago
    EXPECT_EQ(folder.Keep(fd, begin, end, SizeOf(fd), &part), 0);
    folder.Settle(part);
    return part;
  }
  static KeptPart KeepAll(KeptFolder& folder, int fd) {
    return Keep(folder, fd, 0, UINT64_MAX);
  }

  // What the part holds, or why it is refused.
  static std::string Read(KeptReader& reader, const KeptPart& part) {
    const Result<int> fd = reader.Open(part);
    if (!fd.ok()) return "refused: " + fd.status().message();
    std::string text(part.length, '\0');
    EXPECT_EQ(
        ::pread(*fd, text.data(), text.size(), static_cast<off_t>(part.at)),
        static_cast<ssize_t>(text.size()));
    return text;
  }
  static std::string Read(const std::string& path, const KeptPart& part) {
    KeptReader reader(path);
    return Read(reader, part);
  }

  static std::string ObjectOf(const KeptFolder& folder, const KeptPart& part) {
    return folder.path() + "/" + std::to_string(part.object);
  }
  // What a file takes of the disk.
  static uint64_t RoomOf(const std::string& path) {
    struct stat st;
    EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
    return static_cast<uint64_t>(st.st_blocks) * 512;
  }

  // As Keep() on a disk on which no file can grow beyond `bytes`.
  static int KeepOnSmallDisk(KeptFolder& folder, int fd, uint64_t bytes,
                             KeptPart* part) {
    rlimit usual;
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
    const rlimit small = {.rlim_cur = bytes, .rlim_max = usual.rlim_max};
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const int error = folder.Keep(fd, 0, UINT64_MAX, SizeOf(fd), part);
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
    std::signal(SIGXFSZ, before);
    return error;
  }

  std::string top_;
  std::vector<std::string> notices_;
};

}  // namespace tracefs::keep
