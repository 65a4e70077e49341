// What is kept comes back byte for byte, whoever asks for it how often; what
// does not is refused.
#include "tracefs/keep/kept_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/file_extent.h"
#include "tracefs/base/file_io.h"
#include "tracefs/keep/kept_reader.h"

namespace tracefs::keep {
namespace {

class KeptFolderTest : public testing::Test {
 protected:
  KeptFolderTest() {
    std::string name = testing::TempDir() + "keptXXXXXX";
    top_ = ::mkdtemp(name.data());
    ::mkdir((top_ + "/source").c_str(), 0755);
  }
  ~KeptFolderTest() override { std::filesystem::remove_all(top_); }

  std::unique_ptr<KeptFolder> Make(const std::string& name,
                                   uint64_t max_bytes = 1 << 20) {
    const UniqueFd source(::open((top_ + "/source").c_str(), O_PATH));
    auto made = KeptFolder::Make({.path = top_ + "/kept",
                                  .name = name,
                                  .max_bytes = max_bytes,
                                  .source = source.get()});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *std::move(made) : nullptr;
  }

  UniqueFd File(const std::string& text) {
    UniqueFd fd(::open((top_ + "/source").c_str(), O_TMPFILE | O_RDWR, 0600));
    EXPECT_TRUE(WriteAllAt(fd.get(), AsBytes(text), 0, "file").ok());
    return fd;
  }

  static KeptPart Keep(KeptFolder& folder, int fd, uint64_t begin,
                       uint64_t end) {
    struct stat st;
    EXPECT_EQ(::fstat(fd, &st), 0);
    KeptPart part;
    EXPECT_EQ(
        folder.Keep(fd, begin, end, static_cast<uint64_t>(st.st_size), &part),
        0);
    folder.Settle(part);
    return part;
  }

  // What the part holds, or why it is refused.
  static std::string Read(const std::string& path, const KeptPart& part) {
    KeptReader reader(path);
    const Result<int> fd = reader.Open(part);
    if (!fd.ok()) return "refused: " + fd.status().message();
    std::string text(part.length, '\0');
    EXPECT_EQ(
        ::pread(*fd, text.data(), text.size(), static_cast<off_t>(part.at)),
        static_cast<ssize_t>(text.size()));
    return text;
  }

  std::string top_;
};

TEST_F(KeptFolderTest, RoundTrip_AnyRange) {
  const auto folder = Make("a");
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i);
  const UniqueFd fd = File(text);
  for (const auto& [begin, end] :
       {std::pair(0, 1), {5, 4101}, {4096, 9000}, {99, 100'000}}) {
    const KeptPart part = Keep(*folder, fd.get(), begin, end);
    EXPECT_EQ(Read(folder->path(), part), text.substr(begin, end - begin));
  }
  const KeptPart rest = Keep(*folder, fd.get(), text.size() - 7, UINT64_MAX);
  EXPECT_EQ(Read(folder->path(), rest), text.substr(text.size() - 7));
  EXPECT_EQ(Keep(*folder, fd.get(), text.size(), UINT64_MAX).object, 0u);
}

TEST_F(KeptFolderTest, RoundTrip_HolesStayHoles) {
  const auto folder = Make("a", 64 << 20);
  const UniqueFd fd = File("x");
  constexpr uint64_t kFar = 5 << 20;
  ASSERT_TRUE(WriteAllAt(fd.get(), AsBytes("end"), kFar, "file").ok());
  const KeptPart part = Keep(*folder, fd.get(), 0, UINT64_MAX);
  std::string want(kFar, '\0');
  want[0] = 'x';
  EXPECT_EQ(Read(folder->path(), part), want + "end");
  KeptReader reader(folder->path());
  const Result<int> kept = reader.Open(part);
  ASSERT_TRUE(kept.ok());
  struct stat st;
  ASSERT_EQ(::fstat(*kept, &st), 0);
  EXPECT_LT(st.st_blocks * 512, 1 << 20);
}

TEST_F(KeptFolderTest, SameBytesAreKeptOnce) {
  const auto folder = Make("a");
  const UniqueFd one = File(std::string(5000, 'a'));
  const UniqueFd two = File(std::string(5000, 'a'));
  const KeptPart first = Keep(*folder, one.get(), 0, 5000);
  const KeptPart second = Keep(*folder, two.get(), 0, 5000);
  EXPECT_EQ(first.object, second.object);
  EXPECT_EQ(first.at, second.at);
  EXPECT_EQ(folder->Totals().held, 5000u);
  EXPECT_EQ(folder->Totals().same, 5000u);
}

TEST_F(KeptFolderTest, Budget_TheOldestGoesFirst) {
  const auto folder = Make("a");
  std::vector<KeptPart> parts;
  uint64_t first = 0;
  for (int i = 0; i < 40; ++i) {
    const UniqueFd fd = File(std::to_string(i) + std::string(60'000, 'x'));
    KeptPart part;
    ASSERT_EQ(folder->Keep(fd.get(), 0, 60'000, 60'000, &part), 0);
    first = std::max(first, folder->Settle(part));
    parts.push_back(part);
  }
  EXPECT_LE(folder->Totals().held, 1u << 20);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string read = Read(folder->path(), parts[i]);
    if (parts[i].object < first) {
      EXPECT_NE(read.find("keep_max"), std::string::npos) << read;
    } else {
      EXPECT_TRUE(read.starts_with(std::to_string(i) + "x"));
    }
  }
  EXPECT_LT(parts.front().object, first);
  EXPECT_GE(parts.back().object, first);
}

TEST_F(KeptFolderTest, Budget_WhatNeverFitsIsNotTaken) {
  const auto folder = Make("a");
  const UniqueFd fd = File(std::string(2 << 20, 'x'));
  KeptPart part;
  EXPECT_EQ(folder->Keep(fd.get(), 0, 2 << 20, 2 << 20, &part), EFBIG);
  EXPECT_EQ(part.object, 0u);
  EXPECT_EQ(folder->Totals().held, 0u);
}

TEST_F(KeptFolderTest, Budget_EarlierTracesGoUnlessTheyAreInUse) {
  const UniqueFd fd = File(std::string(600'000, 'x'));
  const auto living = Make("living");
  Keep(*living, fd.get(), 0, 600'000);
  {
    const auto dead = Make("dead");
    Keep(*dead, fd.get(), 0, 600'000);
  }
  const auto now = Make("now");
  Keep(*now, fd.get(), 0, 600'000);
  EXPECT_FALSE(std::filesystem::exists(top_ + "/kept/dead"));
  EXPECT_TRUE(std::filesystem::exists(top_ + "/kept/living/1"));
}

TEST_F(KeptFolderTest, Malicious_WhatWasChangedIsRefused) {
  const auto folder = Make("a");
  const UniqueFd fd = File("what it was");
  const KeptPart part = Keep(*folder, fd.get(), 0, 11);
  const std::string object = folder->path() + "/" + std::to_string(part.object);
  for (const auto& change : {"What", "wha"}) {
    const UniqueFd out(::open(object.c_str(), O_WRONLY | O_TRUNC));
    ASSERT_TRUE(
        WriteAll(out.get(), AsBytes(std::string_view(change)), "").ok());
    EXPECT_EQ(Read(folder->path(), part).substr(0, 7), "refused");
  }
  KeptPart beyond = part;
  beyond.at = UINT64_MAX - 3;
  EXPECT_EQ(Read(folder->path(), beyond).substr(0, 7), "refused");
  ASSERT_EQ(::unlink(object.c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", object.c_str()), 0);
  EXPECT_EQ(Read(folder->path(), part).substr(0, 7), "refused");
  ASSERT_EQ(::chmod(folder->path().c_str(), 0755), 0);
  EXPECT_EQ(Read(folder->path(), part).substr(0, 7), "refused");
  EXPECT_EQ(Read("", part).substr(0, 7), "refused");
}

TEST_F(KeptFolderTest, AFolderInTheSourceIsRefused) {
  const UniqueFd source(::open((top_ + "/source").c_str(), O_PATH));
  const auto made = KeptFolder::Make({.path = top_ + "/source/deep/kept",
                                      .name = "a",
                                      .max_bytes = 1 << 20,
                                      .source = source.get()});
  EXPECT_FALSE(made.ok());
}

}  // namespace
}  // namespace tracefs::keep
