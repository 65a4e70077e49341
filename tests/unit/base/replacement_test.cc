// A file or folder that takes the place of another when it is whole.
#include "tracefs/base/replacement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/file_io.h"

namespace tracefs {
namespace {

namespace fs = std::filesystem;

mode_t ModeOf(const std::string& path) {
  struct stat st = {};
  EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

class ReplacementTest : public testing::Test {
 protected:
  ~ReplacementTest() override { ::umask(umask_); }

  size_t Names() const {
    return static_cast<size_t>(std::distance(
        fs::directory_iterator(folder_.Path("")), fs::directory_iterator()));
  }
  // What `work` says in a process of somebody who is not root.
  template <typename Work>
  static std::string AsSomebody(const Work& work) {
    int said[2];
    if (::pipe2(said, O_CLOEXEC) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
      const std::string text = work().message();
      const Status ignored = WriteAll(said[1], AsBytes(text), {});
      ::_exit(ignored.ok() ? 0 : 1);
    }
    ::close(said[1]);
    const auto text = ReadText(said[0], 4096, "pipe");
    ::close(said[0]);
    ::waitpid(child, nullptr, 0);
    return text.ok() ? *text : text.status().message();
  }

  TempFolder folder_;
  const mode_t umask_ = ::umask(022);
};

TEST_F(ReplacementTest, WhatIsNotCommittedLeavesNoTrace) {
  const std::string path = folder_.Write("f", "old");
  {
    auto made = Replacement::Begin(path, Replacement::Kind::kFile);
    ASSERT_TRUE(made.ok());
    ASSERT_TRUE(WriteAll(made->fd(), AsBytes("new"), "f").ok());
    EXPECT_EQ(TempFolder::Read(path), "old");
  }
  EXPECT_EQ(TempFolder::Read(path), "old");
  EXPECT_EQ(Names(), 1u);
}

TEST_F(ReplacementTest, TheLongestNameThatAFileCanHave) {
  const std::string path = folder_.Path(std::string(NAME_MAX, 'l'));
  for (const char* const text : {"first", "second"}) {
    const Status replaced = ReplaceFile(path, text);
    EXPECT_TRUE(replaced.ok()) << replaced.message();
    EXPECT_EQ(TempFolder::Read(path), text);
  }
  EXPECT_EQ(Names(), 1u);
  EXPECT_EQ(NameBeside("/a/b.c", ".x"), "/a/b.c.x");
  EXPECT_EQ(NameBeside("b/", ".x"), "b.x");
  EXPECT_EQ(NameBeside("a/" + std::string(NAME_MAX, 'l'), ".x"),
            "a/" + std::string(NAME_MAX - 2, 'l') + ".x");
}

TEST_F(ReplacementTest, AFileKeepsItsModeAndANewOneHasThatOfTheUmask) {
  const std::string secret = folder_.Write("secret", "old", 0600);
  ASSERT_TRUE(ReplaceFile(secret, "new").ok());
  EXPECT_EQ(TempFolder::Read(secret), "new");
  EXPECT_EQ(ModeOf(secret), 0600u);
  ::umask(077);
  ASSERT_TRUE(ReplaceFile(folder_.Path("own"), "x").ok());
  EXPECT_EQ(ModeOf(folder_.Path("own")), 0600u);
  ::umask(022);
  ASSERT_TRUE(ReplaceFile(folder_.Path("open"), "x").ok());
  EXPECT_EQ(ModeOf(folder_.Path("open")), 0644u);
}

// Nobody may look into it before it is as closed as what it replaces.
TEST_F(ReplacementTest, WhatIsBeingMadeCanBeReadByNobodyElse) {
  const std::string path = folder_.Write("secret", "old", 0600);
  auto made = Replacement::Begin(path, Replacement::Kind::kFile);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(ModeOf(made->path()), 0600u);
}

TEST_F(ReplacementTest, AFileOfAnotherStaysHis) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string path = folder_.Write("f", "old", 0640);
  ASSERT_EQ(::chown(path.c_str(), 12345, 23456), 0);
  ASSERT_TRUE(ReplaceFile(path, "new").ok());
  struct stat st = {};
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 12345u);
  EXPECT_EQ(st.st_gid, 23456u);
  EXPECT_EQ(ModeOf(path), 0640u);
}

TEST_F(ReplacementTest, LinksAreFollowedAndDevicesWrittenTo) {
  const std::string path = folder_.Write("f", "old");
  fs::create_symlink("f", folder_.Path("link"));
  ASSERT_TRUE(ReplaceFile(folder_.Path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder_.Path("link")));
  EXPECT_EQ(TempFolder::Read(path), "new");
  ASSERT_EQ(::mkfifo(folder_.Path("fifo").c_str(), 0600), 0);
  const UniqueFd reader(
      ::open(folder_.Path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(ReplaceFile(folder_.Path("fifo"), "told").ok());
  char text[8] = {};
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 4);
  EXPECT_TRUE(fs::is_fifo(folder_.Path("fifo")));
  EXPECT_FALSE(ReplaceFile(folder_.Path(""), "x").ok());
}

// A file that can only be written, in a folder that cannot be listed.
TEST_F(ReplacementTest, NeedsNoRightToRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chmod(folder_.Path("").c_str(), 0711), 0);
  fs::create_directory(folder_.Path("box"));
  ASSERT_EQ(::chmod(folder_.Path("box").c_str(), 0333), 0);
  const std::string path = folder_.Path("box/f");
  folder_.Write("box/f", "old", 0222);
  EXPECT_EQ(AsSomebody([&] { return ReplaceFile(path, "new"); }), "ok");
  EXPECT_EQ(TempFolder::Read(path), "new");
}

TEST_F(ReplacementTest, AFolderGivesWayOnlyIfItWasMadeSo) {
  const std::string path = folder_.Path("d");
  for (const char* text : {"one", "two"}) {
    auto made = Replacement::Begin(path, Replacement::Kind::kFolder);
    ASSERT_TRUE(made.ok()) << made.status().message();
    fs::create_directories(made->path() + "/in");
    ASSERT_TRUE(ReplaceFile(made->path() + "/in/f", text).ok());
    ASSERT_TRUE(made->Commit().ok());
    EXPECT_EQ(TempFolder::Read(path + "/in/f"), text);
  }
  EXPECT_EQ(Names(), 1u);
  fs::create_directory(folder_.Path("mine"));
  folder_.Write("mine/thesis", "years");
  EXPECT_FALSE(
      Replacement::Begin(folder_.Path("mine"), Replacement::Kind::kFolder)
          .ok());
  EXPECT_EQ(TempFolder::Read(folder_.Path("mine/thesis")), "years");
}

}  // namespace
}  // namespace tracefs
