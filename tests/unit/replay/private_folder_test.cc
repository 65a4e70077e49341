// Folders to work in: private, empty, gone with all that is in them, and who
// else may change what is done there.
#include "tracefs/replay/private_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/unit/filters/output/temp_folder.h"

namespace tracefs::replay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() {
    EXPECT_EQ(::mkdir(top_.c_str(), 0700), 0);
    fd_.Reset(::open(top_.c_str(), O_PATH | O_DIRECTORY));
  }
  void Fill(const std::string& at) const {
    fs::create_directories(at + "/a/b/c");
    fs::create_directories(at + "/lost+found");
    ASSERT_EQ(::symlink(outside_.c_str(), (at + "/a/link").c_str()), 0);
    ASSERT_EQ(::mkfifo((at + "/a/b/pipe").c_str(), 0600), 0);
    folder_.Write("top/a/b/c/file", "text");
  }

  TempFolder folder_;
  const std::string top_ = folder_.Path("top");
  const std::string outside_ = folder_.Write("outside", "stays");
  UniqueFd fd_;
};

TEST_F(PrivateFolderTest, ATreeIsClearedAndNothingElse) {
  Fill(top_);
  ASSERT_TRUE(ClearTree(fd_.get()).ok());
  EXPECT_FALSE(fs::exists(top_ + "/a"));
  EXPECT_TRUE(fs::exists(top_ + "/lost+found")) << "which mkfs has made";
  EXPECT_EQ(TempFolder::Read(outside_), "stays");
  EXPECT_TRUE(ClearTree(fd_.get()).ok());
  EXPECT_FALSE(ClearTree(-1).ok());
  // Further down it is as any other.
  fs::create_directories(top_ + "/x/lost+found");
  ASSERT_TRUE(ClearTree(fd_.get()).ok());
  EXPECT_FALSE(fs::exists(top_ + "/x"));
}

TEST_F(PrivateFolderTest, OnlyItsOwnerEntersAndItIsGoneInTheEnd) {
  std::string path;
  {
    Result<PrivateFolder> made = PrivateFolder::Make(fd_.get(), ".work-");
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_THAT(made->name(), StartsWith(".work-"));
    EXPECT_GT(made->name().size(), std::string(".work-").size() + 8);
    path = top_ + "/" + made->name();
    struct stat st;
    ASSERT_EQ(::stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode, S_IFDIR | 0700u);
    struct stat same;
    ASSERT_EQ(::fstat(made->fd(), &same), 0);
    EXPECT_EQ(same.st_ino, st.st_ino);
    fs::create_directories(path + "/a/b");
    const Result<PrivateFolder> other =
        PrivateFolder::Make(fd_.get(), ".work-");
    ASSERT_TRUE(other.ok());
    EXPECT_NE(other->name(), made->name());
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::is_empty(top_));
  {
    Result<PrivateFolder> made = PrivateFolder::Make(fd_.get(), "kept-");
    ASSERT_TRUE(made.ok());
    path = top_ + "/" + made->name();
    PrivateFolder moved = *std::move(made);
    moved.Keep();
  }
  EXPECT_TRUE(fs::exists(path));
  ::rmdir(path.c_str());
  // Removed before its time, it is so once; what stands in the way is said.
  Result<PrivateFolder> made = PrivateFolder::Make(fd_.get(), "now-");
  ASSERT_TRUE(made.ok());
  path = top_ + "/" + made->name();
  EXPECT_TRUE(made->Remove().ok());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(made->Remove().ok());
  Result<PrivateFolder> gone = PrivateFolder::Make(fd_.get(), "gone-");
  ASSERT_TRUE(gone.ok());
  ASSERT_EQ(::rmdir((top_ + "/" + gone->name()).c_str()), 0);
  const Status failed = gone->Remove();
  EXPECT_EQ(failed.error(), ENOENT);
  EXPECT_THAT(failed.message(), HasSubstr("gone-"));
  EXPECT_FALSE(PrivateFolder::Make(-1, "x").ok());
}

TEST_F(PrivateFolderTest, EmptyIsButForWhatMkfsLeaves) {
  EXPECT_TRUE(*IsEmptyFolder(fd_.get()));
  fs::create_directory(top_ + "/lost+found");
  EXPECT_TRUE(*IsEmptyFolder(fd_.get()));
  folder_.Write("top/.hidden", "");
  EXPECT_FALSE(*IsEmptyFolder(fd_.get()));
  EXPECT_EQ(IsEmptyFolder(-1).status().error(), EBADF);
}

TEST_F(PrivateFolderTest, Malicious_WhoElseMayChangeItIsSaid) {
  // None of the folders above shuts others out.
  ASSERT_EQ(::chmod(folder_.Path("").c_str(), 0755), 0);
  fs::create_directories(top_ + "/a/b\n");
  fs::permissions(top_, fs::perms(0755));
  fs::permissions(top_ + "/a", fs::perms(0755));
  fs::permissions(top_ + "/a/b\n", fs::perms(0755));
  EXPECT_TRUE(CheckNobodyElse(fd_.get(), false).ok());
  EXPECT_THAT(CheckNobodyElse(fd_.get(), true).message(),
              StartsWith("files are given away in it"));
  for (const unsigned mode : {0775u, 0757u}) {
    fs::permissions(top_ + "/a/b\n", fs::perms(mode));
    EXPECT_THAT(CheckNobodyElse(fd_.get(), false).message(),
                StartsWith("others can change ./a/b\\n in it"));
  }
  fs::permissions(top_, fs::perms(0775));
  EXPECT_THAT(CheckNobodyElse(fd_.get(), false).message(),
              StartsWith("others can change . in it"));
  // It does not matter which folder shuts others out, this one or one above.
  for (const std::string& shut : {top_, folder_.Path("")}) {
    fs::permissions(shut, fs::perms(0700));
    EXPECT_TRUE(CheckNobodyElse(fd_.get(), false).ok());
    EXPECT_TRUE(CheckNobodyElse(fd_.get(), true).ok());
    fs::permissions(shut, fs::perms(0710));
    EXPECT_FALSE(CheckNobodyElse(fd_.get(), true).ok());
    fs::permissions(shut, fs::perms(0775));
  }
  EXPECT_FALSE(CheckNobodyElse(-1, false).ok());
  if (::geteuid() != 0) return;
  fs::permissions(top_, fs::perms(0755));
  fs::permissions(top_ + "/a/b\n", fs::perms(0755));
  ASSERT_EQ(::chown((top_ + "/a").c_str(), 4321, 0), 0);
  EXPECT_THAT(CheckNobodyElse(fd_.get(), false).message(),
              StartsWith("others can change ./a in it"));
  // One of another user lets him in, whatever its mode.
  ASSERT_EQ(::chown(top_.c_str(), 4321, 0), 0);
  fs::permissions(top_, fs::perms(0700));
  EXPECT_FALSE(CheckNobodyElse(fd_.get(), true).ok());
}

}  // namespace
}  // namespace tracefs::replay
