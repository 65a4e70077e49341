#include "tracefs/fs/inode_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/event/name_matcher.h"

namespace tracefs {
namespace {

struct stat Stat(ino_t number, mode_t type = S_IFREG) {
  struct stat st {};
  st.st_dev = 7;
  st.st_ino = number;
  st.st_mode = type | 0644;
  return st;
}

class InodeTableTest : public testing::Test {
 protected:
  InodeTableTest() { root_ = table_.InsertRoot(UniqueFd(), Stat(1, S_IFDIR)); }

  Inode* Add(ino_t number, Inode* parent, const std::string& name,
             mode_t type = S_IFREG) {
    Inode* inode = table_.AcquireOrInsert(BackingFile(), Stat(number, type));
    table_.Named(inode, parent, name);
    return inode;
  }
  std::string NameOf(const Inode* inode) {
    NodeLink link;
    if (!table_.LinkOf(inode->id(), &link)) return "?";
    return std::to_string(link.parent) + "/" + std::string(link.name.view());
  }
  std::vector<std::string> Names(const Inode* inode) {
    std::vector<std::string> names;
    table_.ForEachName(inode->id(), &names, [](void* to, std::string_view n) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(n);
    });
    return names;
  }

  BackingFiles backing_;
  InodeTable table_{backing_};
  Inode* root_;
};

TEST_F(InodeTableTest, RootHasIdOneAndNoName) {
  EXPECT_EQ(root_->id(), 1u);
  EXPECT_EQ(NameOf(root_), "0/");
}

TEST_F(InodeTableTest, SameKeyIsTheSameInodeUntilItsLookupsAreGivenBack) {
  Inode* a = Add(10, root_, "a");
  const uint64_t id = a->id();
  EXPECT_EQ(table_.Acquire(7, 10), a);
  table_.Release(a, 1);
  EXPECT_EQ(table_.Find(id), a);
  table_.Release(a, 1);
  EXPECT_EQ(table_.Find(id), nullptr);
  EXPECT_EQ(table_.Acquire(7, 10), nullptr);
}

TEST_F(InodeTableTest, IdsAreNeverReused) {
  Inode* a = Add(10, root_, "a");
  const uint64_t id = a->id();
  table_.Release(a, 1);
  EXPECT_GT(Add(10, root_, "a")->id(), id);
}

TEST_F(InodeTableTest, Malicious_ForgettingMoreThanWasLookedUpIsHarmless) {
  Inode* a = Add(10, root_, "a");
  table_.Release(a, UINT64_MAX);
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(InodeTableTest, DirectoryStaysWhileAFileHasItsNameThere) {
  Inode* dir = Add(20, root_, "dir", S_IFDIR);
  Inode* file = Add(21, dir, "file");
  const uint64_t dir_id = dir->id();
  table_.Release(dir, 1);
  EXPECT_NE(table_.Find(dir_id), nullptr);
  table_.Release(file, 1);
  EXPECT_EQ(table_.Find(dir_id), nullptr);
}

TEST_F(InodeTableTest, RenamedDirectoryHasOnlyItsNewName) {
  Inode* dir = Add(20, root_, "old", S_IFDIR);
  table_.Named(dir, root_, "new");
  EXPECT_EQ(Names(dir), (std::vector<std::string>{"new"}));
}

TEST_F(InodeTableTest, WhatWasSupersededCanBeLookedUpOnceMore) {
  Inode* file = Add(10, root_, "a");
  const uint64_t id = file->id();
  table_.CountLookup(*file);
  table_.Supersede(file);  // gives one back
  table_.CountLookup(*file);
  EXPECT_EQ(table_.Acquire(file->device(), file->number()), nullptr);
  table_.Release(file, 1);
  EXPECT_EQ(table_.Find(id), file);
  table_.Release(file, 1);
  EXPECT_EQ(table_.Find(id), nullptr);
}

TEST_F(InodeTableTest, WhatWasLookedUpBeforeARenameDoesNotBringTheOldNameBack) {
  Inode* dir = Add(20, root_, "dir", S_IFDIR);
  Inode* file = Add(10, dir, "a");
  const uint32_t seen_at = dir->names_gone();
  EXPECT_TRUE(table_.Named(file, dir, "a", seen_at));
  dir->NoteNameGone();
  table_.Renamed(file, dir, "a", root_, "b");
  EXPECT_FALSE(table_.Named(file, dir, "a", seen_at));
  EXPECT_EQ(Names(file), (std::vector<std::string>{"b"}));
  EXPECT_FALSE(table_.has_hard_links());
  // Nor does it keep the directory.
  const uint64_t dir_id = dir->id();
  table_.Release(dir, 1);
  EXPECT_EQ(table_.Find(dir_id), nullptr);
}

TEST_F(InodeTableTest, RenamedFileHasOnlyItsNewNameAndIsNoHardLink) {
  Inode* dir = Add(20, root_, "dir", S_IFDIR);
  Inode* file = Add(10, root_, "a");
  table_.Renamed(file, root_, "a", dir, "b");
  EXPECT_EQ(Names(file), (std::vector<std::string>{"b"}));
  EXPECT_EQ(NameOf(file), std::to_string(dir->id()) + "/b");
  EXPECT_FALSE(table_.has_hard_links());
}

TEST_F(InodeTableTest, RenamingOneOfSeveralNamesKeepsTheOthers) {
  Inode* file = Add(10, root_, "a");
  table_.Named(file, root_, "b");
  table_.Renamed(file, root_, "a", root_, "c");
  EXPECT_EQ(Names(file), (std::vector<std::string>{"c", "b"}));
}

TEST_F(InodeTableTest, HardLinksAreAllKnownAndTheLatestIsCurrent) {
  Inode* file = Add(10, root_, "a");
  EXPECT_FALSE(table_.has_hard_links());
  table_.Named(file, root_, "b");
  EXPECT_TRUE(table_.has_hard_links());
  EXPECT_EQ(NameOf(file), "1/b");
  EXPECT_EQ(Names(file), (std::vector<std::string>{"b", "a"}));
}

TEST_F(InodeTableTest, NameThatLinkMakesDoesNotTakeThePlaceOfTheCurrentOne) {
  Inode* file = Add(10, root_, "a");
  const uint32_t link_id = file->link_id();
  EXPECT_FALSE(file->may_have_several_names());
  table_.AlsoNamed(file, root_, "b");
  EXPECT_TRUE(file->may_have_several_names());
  EXPECT_EQ(NameOf(file), "1/a");
  EXPECT_EQ(file->link_id(), link_id);
  EXPECT_EQ(Names(file), (std::vector<std::string>{"a", "b"}));
}

TEST_F(InodeTableTest, UnlinkedNameOfSeveralIsForgotten) {
  Inode* file = Add(10, root_, "a");
  table_.Named(file, root_, "b");
  table_.Unnamed(file, root_, "b");
  EXPECT_EQ(NameOf(file), "1/a");
  EXPECT_EQ(Names(file), (std::vector<std::string>{"a"}));
}

TEST_F(InodeTableTest, LastNameIsKeptForFilesThatAreOpenThoughUnlinked) {
  Inode* file = Add(10, root_, "a");
  table_.Unnamed(file, root_, "a");
  EXPECT_EQ(NameOf(file), "1/a");
}

TEST_F(InodeTableTest, NamesThatVanishUnseenDoNotPileUp) {
  Inode* file = Add(10, root_, "n");
  for (int i = 0; i < 1000; ++i) {
    table_.Named(file, root_, "n" + std::to_string(i));
  }
  EXPECT_LE(Names(file).size(), 65u);
}

TEST_F(InodeTableTest, VersionChangesWithTheName) {
  Inode* file = Add(10, root_, "a");
  const uint32_t version = file->name_version();
  table_.Named(file, root_, "a");
  EXPECT_EQ(file->name_version(), version);
  table_.Named(file, root_, "b");
  EXPECT_NE(file->name_version(), version);
}

// Counts how often it is asked: the bits must be answered from the inode.
class CountingNames final : public NameMatcher {
 public:
  uint32_t generation() const override { return 1; }
  uint64_t Match(std::string_view name) const override {
    ++asked;
    return name == "a" ? 1 : name == "b" ? 2 : 0;
  }
  mutable int asked = 0;
};

TEST_F(InodeTableTest, NameBitsCoverAllNamesAndAreWorkedOutOnce) {
  CountingNames names;
  Inode* file = Add(10, root_, "a");
  EXPECT_EQ(table_.NameBits(*file, names, 1), 1u);
  EXPECT_EQ(table_.NameBits(*file, names, 1), 1u);
  EXPECT_EQ(names.asked, 1);
  table_.Named(file, root_, "b");
  EXPECT_EQ(table_.NameBits(*file, names, 1), 3u);
  table_.Unnamed(file, root_, "a");
  EXPECT_EQ(table_.NameBits(*file, names, 1), 2u);
  // Predicates came or went.
  const int asked = names.asked;
  EXPECT_EQ(table_.NameBits(*file, names, 2), 2u);
  EXPECT_GT(names.asked, asked);
}

TEST_F(InodeTableTest, OwnOutputsAreMarked) {
  table_.AddOutput(7, 30);
  EXPECT_TRUE(Add(30, root_, "trace")->is_output());
  EXPECT_FALSE(Add(31, root_, "other")->is_output());
}

// A table that has no descriptors to spare, and no handles, over real files.
class ByNameTest : public testing::Test {
 protected:
  ByNameTest() {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    UniqueFd fd(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat st {};
    ::fstat(fd.get(), &st);
    root_ = table_.InsertRoot(std::move(fd), st);
    EXPECT_EQ(::mkdir((path_ + "/d").c_str(), 0755), 0);
    std::ofstream(path_ + "/d/f") << "content";
    dir_ = Enter(root_, "d", "d");
    file_ = Enter(dir_, "d/f", "f");
  }
  ~ByNameTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  Inode* Enter(Inode* parent, const std::string& below, const char* name) {
    UniqueFd fd(
        ::open((path_ + "/" + below).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat st {};
    EXPECT_EQ(::fstat(fd.get(), &st), 0);
    Inode* inode = table_.AcquireOrInsert(table_.Hold(std::move(fd), true), st);
    table_.Named(inode, parent, name);
    return inode;
  }
  // The inode number of what the table opens for `inode`; 0 and errno: nothing.
  ino_t Opens(Inode* inode) {
    const BackingFd fd = table_.Open(*inode);
    struct stat st {};
    if (fd.get() < 0) {
      errno = LostFdError();
      return 0;
    }
    return ::fstat(fd.get(), &st) == 0 ? st.st_ino : 0;
  }
  void Move(const char* from, const char* to) {
    ASSERT_EQ(::rename((path_ + from).c_str(), (path_ + to).c_str()), 0);
  }

  std::string path_ = testing::TempDir() + "by_name.XXXXXX";
  BackingFiles backing_;
  InodeTable table_{backing_, 0};
  Inode* root_ = nullptr;
  Inode* dir_ = nullptr;
  Inode* file_ = nullptr;
};

TEST_F(ByNameTest, FileIsOpenedThroughTheDirectoriesAboveIt) {
  EXPECT_FALSE(file_->pinned());
  EXPECT_EQ(Opens(file_), file_->number());
  EXPECT_EQ(Opens(dir_), dir_->number());
  struct stat st {};
  EXPECT_TRUE(table_.Stat(file_->id(), &st));
  EXPECT_EQ(st.st_size, 7);
}

TEST_F(ByNameTest, FileIsFoundAfterADirectoryAboveItWasRenamed) {
  Move("/d", "/e");
  table_.Renamed(dir_, root_, "d", root_, "e");
  EXPECT_EQ(Opens(file_), file_->number());
}

TEST_F(ByNameTest, FileIsFoundWhenItsRenameIsNotedLate) {
  Move("/d/f", "/g");
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    table_.Renamed(file_, dir_, "f", root_, "g");
  });
  EXPECT_EQ(Opens(file_), file_->number());
  late.join();
}

TEST_F(ByNameTest, FileThatWasMovedBelowIsStale) {
  Move("/d/f", "/unseen");
  EXPECT_EQ(Opens(file_), 0u);
  EXPECT_EQ(errno, ESTALE);
}

TEST_F(ByNameTest, Malicious_AnotherFileOrALinkInItsPlaceIsStale) {
  Move("/d/f", "/unseen");
  std::ofstream(path_ + "/d/f") << "other";
  EXPECT_EQ(Opens(file_), 0u);
  EXPECT_EQ(errno, ESTALE);
  Move("/d", "/real");
  ASSERT_EQ(::symlink("real", (path_ + "/d").c_str()), 0);
  EXPECT_EQ(Opens(file_), 0u);
  EXPECT_EQ(errno, ESTALE);
}

// ext4 gives the number of a removed file to the next one that is made.
TEST_F(ByNameTest, Malicious_AnotherFileOfTheSameNumberIsStale) {
  std::ofstream(path_ + "/d/new") << "somebody's";
  struct stat st {};
  ASSERT_EQ(::stat((path_ + "/d/new").c_str(), &st), 0);
  UniqueFd old(::open((path_ + "/d/f").c_str(), O_PATH | O_CLOEXEC));
  BackingFile file;
  file.handle = CompactHandle::Of(old.get(), "");
  if (!file.handle) GTEST_SKIP() << "no file handles here";
  Inode* inode = table_.AcquireOrInsert(std::move(file), st);
  table_.Named(inode, dir_, "new");
  EXPECT_EQ(Opens(inode), 0u);
  EXPECT_EQ(errno, ESTALE);
  EXPECT_FALSE(table_.Stat(inode->id(), &st));
}

TEST_F(ByNameTest, PinnedFileIsThereWithoutAName) {
  table_.Pin(*file_);
  ASSERT_EQ(::unlink((path_ + "/d/f").c_str()), 0);
  EXPECT_EQ(Opens(file_), file_->number());
}

TEST_F(ByNameTest, FileWithoutANameKeepsItsDescriptor) {
  UniqueFd fd(::open((path_ + "/d/f").c_str(), O_PATH | O_CLOEXEC));
  EXPECT_TRUE(table_.Hold(std::move(fd), false).fd.valid());
}

TEST_F(InodeTableTest, Race_LookupsForgetsAndRenamesOfTheSameFiles) {
  constexpr int kRounds = 20000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const ino_t number = 100 + static_cast<ino_t>((i + t) % 5);
        Inode* inode = table_.Acquire(7, number);
        if (inode == nullptr) {
          inode = table_.AcquireOrInsert(BackingFile(), Stat(number));
        }
        ASSERT_EQ(inode->number(), number);
        table_.Named(inode, root_, "n" + std::to_string(i % 3));
        NodeLink link;
        ASSERT_TRUE(table_.LinkOf(inode->id(), &link));
        table_.Unnamed(inode, root_, "n" + std::to_string((i + 1) % 3));
        table_.Release(inode, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table_.size(), 1u);
}

}  // namespace
}  // namespace tracefs
