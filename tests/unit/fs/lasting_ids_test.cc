// Ids that lead back to a file, against the file system that the temporary
// directory lies on.
#include "tracefs/fs/lasting_ids.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tracefs/base/unique_fd.h"
#include "tracefs/fs/backing_files.h"
#include "tracefs/fs/inode_table.h"

namespace tracefs {
namespace {

struct stat StatOf(int fd) {
  struct stat st {};
  EXPECT_EQ(::fstatat(fd, "", &st, AT_EMPTY_PATH), 0);
  return st;
}

UniqueFd Open(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

class LastingIdsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        std::filesystem::temp_directory_path() / "lasting-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    std::filesystem::create_directories(top_ + "/source/a/b");
    std::filesystem::create_directories(top_ + "/beside/a");
    Write("source/a/b/f");
    Write("source/top");
    Write("beside/f");
    root_ = Open(top_ + "/source");
    ids_ = LastingIds::Of(root_.get(), StatOf(root_.get()), /*whole=*/false);
    if (ids_ == nullptr) GTEST_SKIP() << "no such handles in " << top_;
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  void Write(const std::string& path) {
    UniqueFd(::open((top_ + "/" + path).c_str(), O_WRONLY | O_CREAT, 0600));
  }
  uint64_t IdOf(const std::string& path) {
    const UniqueFd fd = Open(top_ + "/" + path);
    return ids_->IdOf(CompactHandle::Of(fd.get(), ""), StatOf(fd.get()));
  }
  bool IsInside(const std::string& path, std::string* where) {
    const UniqueFd fd = Open(top_ + "/" + path);
    return ids_->IsInside(fd.get(), IdOf(path), StatOf(fd.get()), where);
  }

  std::string top_;
  UniqueFd root_;
  std::unique_ptr<LastingIds> ids_;
};

TEST_F(LastingIdsTest, EachFileHasOneOfItsOwnThatMakesItsHandleAgain) {
  std::set<uint64_t> seen = {0, 1};
  for (int i = 0; i < 100; ++i) {
    const std::string path = "source/n" + std::to_string(i);
    Write(path);
    const uint64_t id = IdOf(path);
    EXPECT_TRUE(seen.insert(id).second) << path;
    const UniqueFd fd = Open(top_ + "/" + path);
    EXPECT_TRUE(ids_->HandleOf(id) == CompactHandle::Of(fd.get(), ""));
    EXPECT_EQ(static_cast<uint32_t>(id), StatOf(fd.get()).st_ino);
    EXPECT_EQ(ids_->GenerationOf(id), 1u);
  }
}

TEST_F(LastingIdsTest, AFileElsewhereOrOfAnotherFormHasNone) {
  const UniqueFd fd = Open(top_ + "/source/top");
  struct stat st = StatOf(fd.get());
  const CompactHandle handle = CompactHandle::Of(fd.get(), "");
  ++st.st_dev;
  EXPECT_EQ(ids_->IdOf(handle, st), 0u);
  st = StatOf(fd.get());
  const uint8_t bytes[128] = {1, 2, 3};
  for (const size_t size : {4, 8, 12, 20, 128}) {
    const CompactHandle other = CompactHandle::From(0x77, bytes, size);
    EXPECT_EQ(ids_->IdOf(other, st), 0u) << size;
  }
  EXPECT_EQ(ids_->IdOf(CompactHandle(), st), 0u);
}

TEST_F(LastingIdsTest, APassingOneIsNoneThatLastsAndOfThisMountAlone) {
  const uint64_t one = ids_->PassingId();
  const uint64_t other = ids_->PassingId();
  EXPECT_NE(one, other);
  for (const uint64_t id : {one, other}) {
    EXPECT_FALSE(ids_->HandleOf(id));
    EXPECT_NE(ids_->GenerationOf(id), 1u);
  }
  const auto again =
      LastingIds::Of(root_.get(), StatOf(root_.get()), /*whole=*/false);
  EXPECT_NE(again->GenerationOf(one), ids_->GenerationOf(one));
}

TEST_F(LastingIdsTest, WhatLiesBesideTheSourceIsNotInside) {
  std::string where;
  EXPECT_TRUE(IsInside("source/a/b", &where));
  EXPECT_EQ(where, "a/b");
  EXPECT_TRUE(IsInside("source/a/b/f", &where));
  EXPECT_EQ(where, "a/b/f");
  EXPECT_TRUE(IsInside("source/top", &where));
  for (const char* const path : {"beside/f", "beside/a", "beside", ""}) {
    EXPECT_FALSE(IsInside(path, &where)) << path;
  }
  // A file with two names: one ends as if it were gone, and then one is.
  std::filesystem::create_hard_link(top_ + "/source/top",
                                    top_ + "/source/top (deleted)");
  const UniqueFd top = Open(top_ + "/source/top");
  const uint64_t id = IdOf("source/top");
  EXPECT_TRUE(IsInside("source/top (deleted)", &where));
  EXPECT_EQ(where, "top (deleted)");
  std::filesystem::rename(top_ + "/source/top (deleted)", top_ + "/source/now");
  std::filesystem::remove(top_ + "/source/top");
  ids_->IsInside(top.get(), id, StatOf(top.get()), &where);
  EXPECT_EQ(where, "");
  // A name that begins like the source's.
  std::filesystem::create_directories(top_ + "/sourcemore/a");
  Write("sourcemore/a/f");
  EXPECT_FALSE(IsInside("sourcemore/a/f", &where));
  EXPECT_FALSE(IsInside("sourcemore/a", &where));
}

TEST_F(LastingIdsTest, WhatWasGivenOutOrIsOfAWholeFileSystemIsInside) {
  std::string where;
  ids_->GaveOut(IdOf("beside/f"));
  EXPECT_TRUE(IsInside("beside/f", &where));
  EXPECT_FALSE(IsInside("beside/a", &where));
  Write("beside/g");
  EXPECT_FALSE(IsInside("beside/g", &where));
  ids_ = LastingIds::Of(root_.get(), StatOf(root_.get()), /*whole=*/true);
  EXPECT_TRUE(IsInside("beside/g", &where));
}

TEST_F(LastingIdsTest, OfTwoThatEnterAFileOneIsEnteredAndGivesNothingAway) {
  BackingFiles backing;
  InodeTable table(backing, /*max_fds=*/100);
  table.InsertRoot(Open(top_ + "/source"), StatOf(root_.get()));
  table.SetLastingIds(ids_.get());
  const int before = table.fds_left();
  const auto enter = [&] {
    UniqueFd fd = Open(top_ + "/source/top");
    const struct stat st = StatOf(fd.get());
    return table.AcquireOrInsert(table.Hold(std::move(fd), true), st);
  };
  Inode* const inode = enter();
  EXPECT_EQ(inode->id(), IdOf("source/top"));
  EXPECT_EQ(enter(), inode);
  EXPECT_EQ(table.fds_left(), before - 1);
  table.Release(inode, 2);
  EXPECT_EQ(table.fds_left(), before);
  EXPECT_EQ(table.Find(IdOf("source/top")), nullptr);
}

}  // namespace
}  // namespace tracefs
