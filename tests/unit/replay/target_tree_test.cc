// The directory that a plan is replayed in: what each action does to it, told
// by the kernel, and what is not done.
#include "tracefs/replay/target_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/crc32c.h"

namespace tracefs::replay {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kNsPerS = 1'000'000'000;

class TargetTreeTest : public testing::Test {
 protected:
  TargetTreeTest() {
    EXPECT_EQ(::mkdir(At("").c_str(), 0755), 0);
    Open({});
  }

  std::string At(const std::string& name) const {
    return folder_.Path("root") + (name.empty() ? "" : "/" + name);
  }
  void Open(const TargetOptions& options) {
    PlanHeader header;
    header.dir_slots = 4;
    header.handle_slots = 4;
    tree_ =
        TargetTree::Open(UniqueFd(::open(At("").c_str(), O_PATH | O_DIRECTORY)),
                         header, options);
  }

  // In a thread of its own: it gives up capabilities and changes its umask.
  Done Do(const Action& action) {
    Done done;
    std::thread([&] {
      WorkerState worker;
      tree_->Do(action, worker, &done);
    }).join();
    return done;
  }
  static Action Of(Op op, std::string_view name) {
    Action a;
    a.op = op;
    a.place = Place::kName;
    a.dir = kRootSlot;
    a.name = name;
    a.uid = ::geteuid();
    a.gid = ::getegid();
    return a;
  }
  static Action Through(Op op, uint32_t handle) {
    Action a = Of(op, {});
    a.place = Place::kHandle;
    a.dir = kNoSlot;
    a.handle = handle;
    return a;
  }
  // Opens the file as that handle.
  void OpenAs(const std::string& name, uint32_t handle,
              uint32_t flags = O_RDWR) {
    Action a = Of(Op::open_, name);
    a.handle = handle;
    a.arg_flags = flags;
    ASSERT_EQ(Do(a).error, 0) << name;
  }
  std::string Write(const std::string& name, std::string_view text) const {
    return folder_.Write("root/" + name, text, 0644);
  }
  std::string Read(const std::string& name) const {
    return TempFolder::Read(At(name));
  }
  struct stat Stat(const std::string& name) const {
    struct stat st = {};
    EXPECT_EQ(::lstat(At(name).c_str(), &st), 0) << name;
    return st;
  }
  mode_t Mode(const std::string& name) const { return Stat(name).st_mode; }
  uint64_t LeftOut(Privilege privilege) const {
    return tree_->left_out()[static_cast<size_t>(privilege)];
  }

  TempFolder folder_;
  std::unique_ptr<TargetTree> tree_;
};

// --- The tree that was there before.

TEST_F(TargetTreeTest, EntriesAreMadeAsTheyWere) {
  TreeEntry entry;
  entry.name = "d";
  entry.mode = S_IFDIR | 0715;
  entry.slot = 2;
  ASSERT_TRUE(tree_->Place(entry, true).ok());
  EXPECT_EQ(Mode("d"), S_IFDIR | 0715u);
  const auto place = [&](const char* name, uint32_t mode) {
    entry = {};
    entry.parent = 2;
    entry.name = name;
    entry.mode = mode;
    if (S_ISREG(mode)) {
      entry.size = 12;
      entry.known = TreeEntry::kSize;
    }
    if (S_ISLNK(mode)) entry.target = "to there";
    EXPECT_TRUE(tree_->Place(entry, true).ok()) << name;
    EXPECT_EQ(Mode(std::string("d/") + name) & S_IFMT, mode & S_IFMT);
    if (!S_ISLNK(mode)) {
      EXPECT_EQ(Mode(std::string("d/") + name), mode);
    }
  };
  place("f", S_IFREG | 0640);
  place("l", S_IFLNK | 0777);
  place("p", S_IFIFO | 0604);
  place("s", S_IFSOCK | 0611);
  EXPECT_EQ(Stat("d/f").st_size, 12);
  EXPECT_EQ(fs::read_symlink(At("d/l")), "to there");
  // A further name of a file.
  entry = {};
  entry.name = "g";
  entry.mode = S_IFREG | 0640;
  entry.other_parent = 2;
  entry.other_name = "f";
  ASSERT_TRUE(tree_->Place(entry, true).ok());
  EXPECT_EQ(Stat("g").st_ino, Stat("d/f").st_ino);
  // A second one of that name is an error, which names it.
  const Status twice = tree_->Place(entry, true);
  EXPECT_EQ(twice.error(), EEXIST);
  EXPECT_THAT(twice.message(), testing::HasSubstr("initial tree: g"));
}

TEST_F(TargetTreeTest, WhatIsThereIsOnlyOpened) {
  ASSERT_EQ(::mkdir(At("d").c_str(), 0700), 0);
  TreeEntry entry;
  entry.name = "d";
  entry.mode = S_IFDIR | 0755;
  entry.slot = 1;
  ASSERT_TRUE(tree_->Place(entry, false).ok());
  EXPECT_EQ(Mode("d"), S_IFDIR | 0700u);
  EXPECT_GE(tree_->DirFd(1), 0);
  EXPECT_EQ(tree_->DirFd(2), -1);
  EXPECT_EQ(tree_->DirFd(4), -1);
  entry.name = "none";
  entry.slot = 2;
  const Status missing = tree_->Place(entry, false);
  EXPECT_EQ(missing.error(), ENOENT);
  EXPECT_THAT(missing.message(), testing::HasSubstr("none"));
  // A file needs no slot, and is not looked at.
  entry.slot = kNoSlot;
  EXPECT_TRUE(tree_->Place(entry, false).ok());
}

TEST_F(TargetTreeTest, ContentsGoWhereTheyWere) {
  Write("f", "0123456789");
  InitialData data;
  data.name = "f";
  data.offset = 8;
  data.bytes = AsBytes("abcd");
  ASSERT_TRUE(tree_->PlaceData(data).ok());
  EXPECT_EQ(Read("f"), "01234567abcd");
  EXPECT_EQ(tree_->bytes_written(), 4u);
  TreeEntry entry;
  entry.name = "f";
  const auto crc = tree_->ChecksumOf(entry);
  ASSERT_TRUE(crc.ok());
  EXPECT_EQ(*crc, Crc32c(AsBytes("01234567abcd")));
  data.name = "none";
  const Status missing = tree_->PlaceData(data);
  EXPECT_EQ(missing.error(), ENOENT);
  EXPECT_THAT(missing.message(), testing::HasSubstr("contents of none"));
  entry.name = "none";
  EXPECT_EQ(tree_->ChecksumOf(entry).status().error(), ENOENT);
}

TEST_F(TargetTreeTest, NoMoreIsMadeThanIsAllowed) {
  TargetOptions options;
  options.max_inodes = 2;
  options.max_bytes = 10;
  Open(options);
  TreeEntry entry;
  entry.name = "a";
  entry.mode = S_IFREG | 0644;
  ASSERT_TRUE(tree_->Place(entry, true).ok());
  EXPECT_EQ(Do(Of(Op::mkdir_, "d")).error, 0);
  EXPECT_FALSE(tree_->over_quota());
  entry.name = "b";
  EXPECT_EQ(tree_->Place(entry, true).error(), EDQUOT);
  EXPECT_TRUE(tree_->over_quota());
  for (const Op op : {Op::mkdir_, Op::mknod_, Op::symlink_, Op::create_}) {
    Action a = Of(op, "c");
    a.mode = S_IFIFO | 0644;
    a.text = "to";
    EXPECT_EQ(Do(a).error, EDQUOT) << OpName(op);
    EXPECT_FALSE(fs::exists(fs::symlink_status(At("c"))));
  }
  Open(options);
  OpenAs("a", 0);
  Action write = Through(Op::write_, 0);
  write.flags = kHasData;
  write.data = AsBytes("0123456789");
  write.length = 10;
  EXPECT_EQ(Do(write).result, 10);
  EXPECT_FALSE(tree_->over_quota());
  write.data = AsBytes("x");
  write.offset = 10;
  EXPECT_EQ(Do(write).error, EDQUOT);
  EXPECT_TRUE(tree_->over_quota());
  EXPECT_EQ(Read("a"), "0123456789");
  InitialData data;
  data.name = "a";
  data.bytes = AsBytes("y");
  EXPECT_EQ(tree_->PlaceData(data).error(), EDQUOT);
}

// --- Names.

TEST_F(TargetTreeTest, MakesWhatIsAskedFor) {
  Action a = Of(Op::mkdir_, "d");
  a.mode = 0777;
  a.umask = 027;
  a.made_dir = 1;
  EXPECT_EQ(Do(a).result, 0);
  EXPECT_EQ(Mode("d"), S_IFDIR | 0750u);
  EXPECT_EQ(Do(a).error, EEXIST);
  // What it made is the directory that others name by its slot.
  a = Of(Op::mknod_, "p");
  a.dir = 1;
  a.mode = S_IFIFO | 0666;
  a.umask = 02;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Mode("d/p"), S_IFIFO | 0664u);
  a = Of(Op::symlink_, "l");
  a.text = "where it leads";
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(fs::read_symlink(At("l")), "where it leads");
  a = Of(Op::create_, "f");
  a.mode = S_IFREG | 0666;
  a.umask = 022;
  a.arg_flags = O_RDWR;
  a.handle = 3;
  const Done made = Do(a);
  EXPECT_EQ(made.error, 0);
  EXPECT_EQ(made.result, 0);
  EXPECT_EQ(Mode("f"), S_IFREG | 0644u);
  EXPECT_GE(tree_->HandleFd(3), 0);
  EXPECT_EQ(Do(a).error, EEXIST);
  EXPECT_EQ(Do(Through(Op::release_, 3)).error, 0);
  EXPECT_EQ(tree_->HandleFd(3), -1);
  EXPECT_EQ(tree_->HandleFd(4), -1);
  a = Of(Op::tmpfile_, "");
  a.place = Place::kDir;
  a.mode = S_IFREG | 0600;
  a.arg_flags = O_RDWR;
  a.handle = 2;
  ASSERT_EQ(Do(a).error, 0);
  // It can be given a name, unless it was opened with O_EXCL.
  Action link = Through(Op::link_, 2);
  link.new_dir = kRootSlot;
  link.new_name = "named";
  EXPECT_EQ(Do(link).error, 0);
  EXPECT_EQ(Mode("named"), S_IFREG | 0600u);
  a.arg_flags = O_RDWR | O_EXCL;
  ASSERT_EQ(Do(a).error, 0);
  link.new_name = "another";
  EXPECT_EQ(Do(link).error, ENOENT);
}

TEST_F(TargetTreeTest, NamesAreGivenAndTaken) {
  Write("f", "f");
  ASSERT_EQ(::mkdir(At("d").c_str(), 0755), 0);
  TreeEntry entry;
  entry.name = "d";
  entry.slot = 1;
  ASSERT_TRUE(tree_->Place(entry, false).ok());
  Action a = Of(Op::link_, "f");
  a.new_dir = 1;
  a.new_name = "g";
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Stat("d/g").st_ino, Stat("f").st_ino);
  Write("h", "h");
  a = Of(Op::rename_, "h");
  a.new_dir = 1;
  a.new_name = "g";
  a.arg_flags = RENAME_NOREPLACE;
  EXPECT_EQ(Do(a).error, EEXIST);
  a.arg_flags = RENAME_EXCHANGE;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Read("h") + Read("d/g"), "fh");
  a.arg_flags = 0;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Read("d/g"), "f");
  EXPECT_FALSE(fs::exists(At("h")));
  EXPECT_EQ(Do(Of(Op::unlink_, "d")).error, EISDIR);
  EXPECT_EQ(Do(Of(Op::rmdir_, "d")).error, ENOTEMPTY);
  EXPECT_GE(tree_->DirFd(1), 0);
  a = Of(Op::unlink_, "g");
  a.dir = 1;
  EXPECT_EQ(Do(a).error, 0);
  a = Of(Op::rmdir_, "d");
  a.made_dir = 1;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_FALSE(fs::exists(At("d")));
  EXPECT_EQ(tree_->DirFd(1), -1) << "its slot is free for another";
}

TEST_F(TargetTreeTest, LooksSayWhatTheKernelSays) {
  Write("f", "12345");
  ASSERT_EQ(::symlink("f", At("l").c_str()), 0);
  for (const Op op : {Op::lookup_, Op::getattr_, Op::statx_}) {
    Done done = Do(Of(op, "l"));
    EXPECT_TRUE(done.has_stat);
    EXPECT_TRUE(S_ISLNK(done.st.st_mode));
    done = Do(Of(op, "none"));
    EXPECT_EQ(done.error, ENOENT);
    EXPECT_FALSE(done.has_stat);
  }
  OpenAs("f", 1);
  Done done = Do(Through(Op::getattr_, 1));
  EXPECT_EQ(done.st.st_ino, Stat("f").st_ino);
  Action a = Of(Op::getattr_, {});
  a.place = Place::kDir;
  EXPECT_EQ(Do(a).st.st_ino, Stat("").st_ino);
  EXPECT_EQ(Do(Of(Op::readlink_, "l")).text, "f");
  EXPECT_EQ(Do(Of(Op::readlink_, "f")).error, ENOENT) << "it is no link";
  EXPECT_EQ(Do(Of(Op::readlink_, "none")).error, ENOENT);
  a = Of(Op::access_, "f");
  a.mode = R_OK | W_OK;
  EXPECT_EQ(Do(a).error, 0);
  a.mode = X_OK;
  EXPECT_EQ(Do(a).error, EACCES) << "nobody may run it";
  a = Of(Op::statfs_, {});
  a.place = Place::kNone;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Do(Through(Op::access_, 2)).error, EBADF) << "not open";
  for (const Op op : {Op::getlk_, Op::ioctl_, Op::poll_}) {
    EXPECT_TRUE(Do(Through(op, 1)).skipped);
  }
}

// --- Open files.

TEST_F(TargetTreeTest, FilesAreOpenedAsTheyWere) {
  Write("f", "12345");
  ASSERT_EQ(::symlink("f", At("l").c_str()), 0);
  ASSERT_EQ(::mkfifo(At("p").c_str(), 0600), 0);
  Action a = Of(Op::open_, "l");
  a.handle = 0;
  EXPECT_EQ(Do(a).error, ELOOP);
  a = Of(Op::open_, "p");
  a.handle = 0;
  EXPECT_EQ(Do(a).error, 0) << "it waits for nobody";
  OpenAs("f", 0, O_RDONLY | O_APPEND | O_CREAT);
  EXPECT_EQ(::fcntl(tree_->HandleFd(0), F_GETFL) & (O_ACCMODE | O_APPEND), 0);
  EXPECT_NE(::fcntl(tree_->HandleFd(0), F_GETFD) & FD_CLOEXEC, 0);
  // What has no name is opened through another handle of it.
  ASSERT_EQ(::unlink(At("f").c_str()), 0);
  a = Through(Op::open_, 1);
  a.handle_out = 0;
  a.arg_flags = O_WRONLY | O_TRUNC;
  ASSERT_EQ(Do(a).error, 0);
  struct stat st;
  ASSERT_EQ(::fstat(tree_->HandleFd(0), &st), 0);
  EXPECT_EQ(st.st_size, 0);
  EXPECT_EQ(::fcntl(tree_->HandleFd(1), F_GETFL) & O_ACCMODE, O_WRONLY);
  // What failed when it was recorded leaves no handle.
  Write("g", "");
  a = Of(Op::open_, "g");
  a.handle = 2;
  a.error = EACCES;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(tree_->HandleFd(2), -1);
}

TEST_F(TargetTreeTest, FoldersAreListedFromTheirBegin) {
  std::set<std::string> names;
  for (int i = 0; i < 300; ++i) {
    names.insert(std::string(100, 'n') + std::to_string(i));
    Write(*names.rbegin(), "");
  }
  Action a = Of(Op::opendir_, {});
  a.place = Place::kDir;
  a.handle = 1;
  ASSERT_EQ(Do(a).error, 0);
  a = Through(Op::readdir_, 1);
  a.length = 100;
  const Done first = Do(a);
  EXPECT_GT(first.result, 1000);
  EXPECT_LE(first.result, 4096) << "not less than the kernel asks for";
  a.length = 1 << 16;
  a.offset = 5;
  const int64_t rest = Do(a).result;
  EXPECT_EQ(Do(a).result, 0) << "that was the last";
  a.offset = 0;
  EXPECT_EQ(Do(a).result, first.result + rest) << "all of it again";
}

TEST_F(TargetTreeTest, BytesAreMovedAndTheirChecksumIsTold) {
  Write("f", "0123456789");
  OpenAs("f", 0);
  Action a = Through(Op::read_, 0);
  a.offset = 2;
  a.length = 5;
  EXPECT_EQ(Do(a).hash, 0u);
  a.flags = kHasHash;
  Done done = Do(a);
  EXPECT_EQ(done.result, 5);
  EXPECT_EQ(done.hash, Crc32c(AsBytes("23456")));
  a.length = 100;
  EXPECT_EQ(Do(a).result, 8) << "to the end";
  OpenAs("f", 1, O_WRONLY);
  a = Through(Op::read_, 1);
  a.flags = kHasHash;
  a.length = 5;
  EXPECT_EQ(Do(a).error, EBADF);
  // A copy, longer than is read at once.
  const std::string much(3'000'001, 'm');
  Write("big", much);
  Write("out", "before");
  OpenAs("big", 2);
  OpenAs("out", 3);
  a = Through(Op::copy_file_range_, 2);
  a.handle_out = 3;
  a.offset = 1;
  a.offset_out = 6;
  a.length = 10'000'000;
  a.result = 3'000'000;
  a.flags = kHasHash;
  done = Do(a);
  EXPECT_EQ(done.result, 3'000'000);
  EXPECT_EQ(done.hash, Crc32c(AsBytes(much).subspan(1)));
  EXPECT_EQ(Read("out"), "before" + much.substr(1));
}

TEST_F(TargetTreeTest, BytesThatAreNotRecordedAreMadeUp) {
  const auto write = [&](DataMode mode, uint64_t offset, uint64_t length,
                         uint32_t hash, bool recorded = false) {
    Write("f", "");
    TargetOptions options;
    options.data = mode;
    Open(options);
    OpenAs("f", 0);
    Action a = Through(Op::write_, 0);
    a.offset = offset;
    a.length = length;
    a.hash = hash;
    a.flags = hash != 0 ? uint32_t{kHasHash} : 0;
    a.data = AsBytes("recorded");
    if (recorded) a.flags |= kHasData;
    Done done = Do(a);
    EXPECT_EQ(done.result, static_cast<int64_t>(length));
    return Read("f").substr(offset);
  };
  EXPECT_EQ(write(DataMode::kRecorded, 3, 8, 5, true), "recorded");
  EXPECT_EQ(write(DataMode::kZero, 3, 21, 5, true), std::string(21, '\0'));
  // Every eight bytes say where they are.
  const std::string pattern = write(DataMode::kPattern, 1000, 21, 5, true);
  for (const uint64_t i : {0, 8, 16}) {
    uint64_t word = 0;
    std::memcpy(&word, pattern.data() + i, std::min<size_t>(8, 21 - i));
    EXPECT_EQ(word, 1000 + i);
  }
  // One checksum gives the same bytes everywhere; half of them are zeros.
  for (const DataMode mode : {DataMode::kSynth, DataMode::kRecorded}) {
    const std::string one = write(mode, 0, 100, 7);
    EXPECT_EQ(one, write(mode, 4096, 100, 7));
    EXPECT_NE(one, write(mode, 0, 100, 8));
    EXPECT_EQ(one.substr(0, 37), write(mode, 0, 37, 7));
    for (size_t i = 0; i < 96; i += 16) {
      EXPECT_EQ(one.substr(i + 8, 8), std::string(8, '\0'));
      EXPECT_NE(one.substr(i, 8), one.substr((i + 16) % 96, 8));
    }
    // Without one it is where they are that counts.
    EXPECT_NE(write(mode, 0, 100, 0), write(mode, 4096, 100, 0));
  }
}

TEST_F(TargetTreeTest, FilesGrowAndHaveHolesAsTheyHad) {
  Write("f", "0123456789");
  OpenAs("f", 0);
  Action a = Through(Op::fallocate_, 0);
  a.offset = 2;
  a.length = 3;
  a.arg_flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Read("f"), std::string("01\0\0\00056789", 10));
  EXPECT_EQ(tree_->bytes_written(), 0u) << "a hole takes no room";
  a.arg_flags = 0;
  a.offset = 8;
  a.length = 12;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Stat("f").st_size, 20);
  EXPECT_EQ(tree_->bytes_written(), 12u);
  a = Through(Op::lseek_, 0);
  a.offset = 0;
  a.arg_flags = SEEK_DATA;
  EXPECT_EQ(Do(a).result, 0);
  a.offset = 21;
  EXPECT_EQ(Do(a).error, ENXIO);
  for (const uint32_t only_data : {0, 1}) {
    a = Through(Op::fsync_, 0);
    a.arg_flags = only_data;
    EXPECT_EQ(Do(a).error, 0);
    EXPECT_EQ(Do(Through(Op::fsync_, 2)).error, EBADF);
  }
  // What failed for want of room does not take it here.
  TargetOptions options;
  options.max_bytes = 5;
  Open(options);
  OpenAs("f", 0);
  a = Through(Op::fallocate_, 0);
  a.length = 6;
  a.error = ENOSPC;
  const Done full = Do(a);
  EXPECT_EQ(full.error, ENOSPC);
  EXPECT_EQ(full.result, -1);
  EXPECT_FALSE(tree_->over_quota());
  a.error = 0;
  EXPECT_EQ(Do(a).error, EDQUOT);
}

TEST_F(TargetTreeTest, LocksAreOfAnOwnerAndAFile) {
  Write("f", "0123456789");
  OpenAs("f", 0);
  OpenAs("f", 1);
  const auto lock = [&](uint64_t owner, uint64_t file, uint32_t type,
                        uint64_t offset, uint64_t length) {
    Action a = Through(Op::setlk_, static_cast<uint32_t>(owner & 1));
    a.lock_owner = owner;
    a.rdev = file;
    a.lock_type = type;
    a.offset = offset;
    a.length = length;
    return Do(a).error;
  };
  EXPECT_EQ(lock(2, 5, F_WRLCK, 2, 3), 0);
  EXPECT_EQ(lock(2, 5, F_WRLCK, 0, 10), 0) << "it is his own";
  EXPECT_EQ(lock(3, 5, F_RDLCK, 9, 1), EAGAIN);
  EXPECT_EQ(lock(3, 5, F_RDLCK, 10, 1), 0);
  EXPECT_EQ(lock(2, 5, F_UNLCK, 5, 5), 0);
  EXPECT_EQ(lock(3, 5, F_RDLCK, 9, 1), 0);
  EXPECT_EQ(lock(4, 5, F_RDLCK, 9, 1), 0) << "several may read";
  EXPECT_EQ(lock(3, 5, F_RDLCK, 4, 1), EAGAIN);
  // What is closed unlocks all of its owner in that file.
  Action flush = Through(Op::flush_, 0);
  flush.lock_owner = 2;
  flush.rdev = 6;
  EXPECT_EQ(Do(flush).error, 0);
  EXPECT_EQ(lock(3, 5, F_RDLCK, 4, 1), EAGAIN) << "another file";
  flush.rdev = 5;
  EXPECT_EQ(Do(flush).error, 0);
  EXPECT_EQ(lock(3, 5, F_RDLCK, 4, 1), 0);
  // A file that can be read alone can be locked, too.
  ASSERT_EQ(::chmod(At("f").c_str(), 0444), 0);
  EXPECT_EQ(lock(8, 9, F_RDLCK, 100, 1), 0);
  // Those of flock(2) are of the open file.
  const auto flock = [&](uint32_t handle, uint32_t type) {
    Action a = Through(Op::flock_, handle);
    a.lock_type = type;
    return Do(a).error;
  };
  EXPECT_EQ(flock(0, F_RDLCK), 0);
  EXPECT_EQ(flock(1, F_RDLCK), 0);
  EXPECT_EQ(flock(1, F_WRLCK), EAGAIN);
  EXPECT_EQ(flock(0, F_UNLCK), 0);
  EXPECT_EQ(flock(1, F_WRLCK), 0);
  EXPECT_EQ(flock(0, F_RDLCK), EAGAIN);
}

// --- Attributes.

TEST_F(TargetTreeTest, AttributesAreSetOneByOne) {
  Write("f", "0123456789");
  Action a = Of(Op::setattr_, "f");
  a.new_atime_ns = 3 * static_cast<int64_t>(kNsPerS) + 4;
  a.new_mtime_ns = -1;
  a.mode = S_IFREG | 0604;
  a.new_size = 4;
  a.valid = FATTR_ATIME;
  const struct stat before = Stat("f");
  Done done = Do(a);
  EXPECT_EQ(done.error, 0);
  EXPECT_TRUE(done.has_stat);
  struct stat st = Stat("f");
  EXPECT_EQ(st.st_atim.tv_sec, 3);
  EXPECT_EQ(st.st_atim.tv_nsec, 4);
  EXPECT_EQ(st.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  EXPECT_EQ(st.st_mode, S_IFREG | 0644u);
  a.valid = FATTR_MTIME | FATTR_MODE;
  done = Do(a);
  EXPECT_EQ(done.st.st_mode, S_IFREG | 0604u);
  st = Stat("f");
  EXPECT_EQ(st.st_atim.tv_nsec, 4);
  EXPECT_EQ(st.st_mtim.tv_sec, -1) << "a nanosecond before 1970";
  EXPECT_EQ(st.st_mtim.tv_nsec, 999'999'999);
  EXPECT_EQ(st.st_size, 10);
  a.valid = FATTR_ATIME | FATTR_ATIME_NOW | FATTR_MTIME | FATTR_MTIME_NOW;
  Do(a);
  st = Stat("f");
  EXPECT_GT(st.st_atim.tv_sec, 1000);
  EXPECT_GT(st.st_mtim.tv_sec, 1000);
  a.valid = FATTR_SIZE;
  EXPECT_EQ(Do(a).st.st_size, 4);
  EXPECT_EQ(Read("f"), "0123");
  OpenAs("f", 1);
  Action through = Through(Op::setattr_, 1);
  through.valid = FATTR_SIZE;
  through.new_size = 7;
  EXPECT_EQ(Do(through).error, 0);
  EXPECT_EQ(Read("f"), std::string("0123\0\0\0", 7));
  OpenAs("f", 2, O_RDONLY);
  through.handle = 2;
  EXPECT_EQ(Do(through).error, EINVAL) << "it may only be read";
  EXPECT_EQ(Do(Of(Op::setattr_, "none")).error, ENOENT);
  a = Of(Op::setattr_, {});
  a.place = Place::kDir;
  a.valid = FATTR_MODE;
  a.mode = 0711;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Mode(""), S_IFDIR | 0711u);
}

TEST_F(TargetTreeTest, ExtendedAttributesAreThoseOfTheKernel) {
  Write("f", "");
  OpenAs("f", 1);
  Action a = Of(Op::setxattr_, "f");
  a.text = "user.a";
  a.flags = kHasData;
  a.data = AsBytes("value");
  a.length = 5;
  if (const int error = Do(a).error; error == EOPNOTSUPP) GTEST_SKIP();
  std::array<char, 100> value;
  EXPECT_EQ(::getxattr(At("f").c_str(), "user.a", value.data(), 100), 5);
  EXPECT_EQ(std::string_view(value.data(), 5), "value");
  a.arg_flags = XATTR_CREATE;
  EXPECT_EQ(Do(a).error, EEXIST);
  a.arg_flags = XATTR_REPLACE;
  a.text = "user.b";
  EXPECT_EQ(Do(a).error, ENODATA);
  // A value that is not known has the right length, and no more.
  a.arg_flags = 0;
  a.flags = 0;
  a.length = 9;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(::getxattr(At("f").c_str(), "user.b", value.data(), 100), 9);
  for (Action get : {Of(Op::getxattr_, "f"), Through(Op::getxattr_, 1)}) {
    get.text = "user.a";
    get.length = 100;
    EXPECT_EQ(Do(get).result, 5);
    get.length = 4;
    EXPECT_EQ(Do(get).error, ERANGE);
    get.length = 0;
    EXPECT_EQ(Do(get).result, 5) << "how long it is";
    get.op = Op::listxattr_;
    get.length = 100;
    EXPECT_GE(Do(get).result, 14);
    get.op = Op::removexattr_;
    get.text = "user.c";
    EXPECT_EQ(Do(get).error, ENODATA);
  }
  Action remove = Of(Op::removexattr_, "f");
  remove.text = "user.a";
  EXPECT_EQ(Do(remove).error, 0);
  EXPECT_EQ(::getxattr(At("f").c_str(), "user.a", value.data(), 100), -1);
  EXPECT_EQ(Do(Of(Op::getxattr_, "none")).error, ENOENT);
  EXPECT_EQ(Do(Through(Op::getxattr_, 3)).error, EBADF);
}

// --- What nobody asked for.

TEST_F(TargetTreeTest, Malicious_RightsThatNobodyAskedForAreLeftOut) {
  Action a = Of(Op::mkdir_, "d");
  a.mode = 02777;
  Do(a);
  a = Of(Op::create_, "f");
  a.mode = S_IFREG | 06755;
  a.arg_flags = O_RDWR;
  a.handle = 0;
  Do(a);
  a = Of(Op::setattr_, "f");
  a.valid = FATTR_MODE;
  a.mode = 04711;
  Do(a);
  TreeEntry entry;
  entry.name = "e";
  entry.mode = S_IFREG | 04755;
  ASSERT_TRUE(tree_->Place(entry, true).ok());
  EXPECT_EQ(LeftOut(Privilege::kSetId), 4u);
  EXPECT_EQ(Mode("d") & 07777, 0777u);
  EXPECT_EQ(Mode("f") & 07777, 0711u);
  EXPECT_EQ(Mode("e") & 07777, 0755u);

  a = Of(Op::mknod_, "n");
  for (const uint32_t type : {S_IFCHR, S_IFBLK}) {
    a.mode = type | 0640;
    a.rdev = 0x103;
    const Done done = Do(a);
    EXPECT_TRUE(done.skipped);
    EXPECT_EQ(done.left_out, Privilege::kDevice);
    EXPECT_EQ(Mode("n"), S_IFREG | 0640u) << "something bears the name";
    ASSERT_EQ(::unlink(At("n").c_str()), 0);
  }
  a.error = EPERM;
  EXPECT_EQ(Do(a).left_out, std::nullopt) << "it had failed";
  EXPECT_FALSE(fs::exists(At("n")));
  EXPECT_EQ(LeftOut(Privilege::kDevice), 2u);

  a = Of(Op::setxattr_, "f");
  a.flags = kHasData;
  a.data = AsBytes("1");
  for (const auto& [name, privilege] :
       {std::pair("trusted.a", Privilege::kTrustedXattr),
        {"security.a", Privilege::kSecurityXattr}}) {
    for (const Op op : {Op::setxattr_, Op::removexattr_}) {
      a.op = op;
      a.text = name;
      const Done done = Do(a);
      EXPECT_TRUE(done.skipped);
      EXPECT_EQ(done.left_out, privilege);
    }
    EXPECT_EQ(LeftOut(privilege), 2u);
    EXPECT_LT(::getxattr(At("f").c_str(), name, nullptr, 0), 0);
    a.error = EPERM;
    EXPECT_EQ(Do(a).left_out, std::nullopt);
    a.error = 0;
    EXPECT_EQ(LeftOut(privilege), 2u);
  }
}

TEST_F(TargetTreeTest, OwnersCountWhereTheyMatter) {
  Write("f", "");
  TargetOptions options;
  for (const bool matter : {false, true}) {
    options.owners_matter = matter;
    Open(options);
    Action a = Of(Op::setattr_, "f");
    a.valid = FATTR_UID;
    a.new_uid = ::geteuid() + 1;
    EXPECT_EQ(Do(a).error, 0);
    EXPECT_EQ(Stat("f").st_uid, ::geteuid()) << "it is not given away";
    EXPECT_EQ(LeftOut(Privilege::kOwner), matter ? 1u : 0u);
    a.error = EPERM;
    Do(a);
    EXPECT_EQ(LeftOut(Privilege::kOwner), matter ? 1u : 0u);
    for (const bool group : {false, true}) {
      Action make = Of(Op::mkdir_, "d");
      (group ? make.gid : make.uid) += 1;
      Do(make);
      make.op = Op::create_;
      make.name = "c";
      Do(make);
      EXPECT_EQ(::rmdir(At("d").c_str()), 0);
      EXPECT_EQ(::unlink(At("c").c_str()), 0);
    }
    EXPECT_EQ(LeftOut(Privilege::kOwner), matter ? 5u : 0u);
  }
}

TEST_F(TargetTreeTest, WithTheRightToGiveAwayEachIsWhoHeWas) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chmod(folder_.Path("").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(At("").c_str(), 0777), 0);
  TargetOptions options;
  options.grants.Add(Privilege::kOwner);
  Open(options);
  Action a = Of(Op::mkdir_, "d");
  a.uid = 1234;
  a.gid = 2345;
  a.mode = 0755;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Stat("d").st_uid, 1234u);
  EXPECT_EQ(Stat("d").st_gid, 2345u);
  Write("f", "");
  a = Of(Op::setattr_, "f");
  a.valid = FATTR_UID;
  a.new_uid = 7;
  a.new_gid = 8;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Stat("f").st_uid, 7u);
  EXPECT_EQ(Stat("f").st_gid, 0u);
  a.valid = FATTR_GID;
  EXPECT_EQ(Do(a).error, 0);
  EXPECT_EQ(Stat("f").st_gid, 8u);
  a.uid = 1234;
  EXPECT_EQ(Do(a).error, EPERM) << "it is not his";
  ASSERT_EQ(::chmod(At("f").c_str(), 0600), 0);
  Action open = Of(Op::open_, "f");
  open.uid = 1234;
  open.handle = 0;
  EXPECT_EQ(Do(open).error, EACCES);
  // Unless it is known that it was allowed.
  options.only_what_was_done = true;
  Open(options);
  EXPECT_EQ(Do(open).error, 0);
  EXPECT_EQ(Do(a).error, 0);
  TreeEntry entry;
  entry.name = "theirs";
  entry.mode = S_IFREG | 0600;
  entry.uid = 5;
  entry.gid = 6;
  ASSERT_TRUE(tree_->Place(entry, true).ok());
  EXPECT_EQ(Stat("theirs").st_uid, 0u) << "nothing tells whose it was";
  entry.name = "theirs too";
  entry.known = TreeEntry::kOwner;
  ASSERT_TRUE(tree_->Place(entry, true).ok());
  EXPECT_EQ(Stat("theirs too").st_uid, 5u);
  EXPECT_EQ(Stat("theirs too").st_gid, 6u);
}

TEST_F(TargetTreeTest, WhereOnlyWhatWasDoneIsDoneFailuresFail) {
  TargetOptions options;
  options.only_what_was_done = true;
  Open(options);
  Action a = Of(Op::mkdir_, "d");
  a.error = ENOSPC;
  const Done failed = Do(a);
  EXPECT_EQ(failed.error, ENOSPC);
  EXPECT_EQ(failed.result, -1);
  EXPECT_FALSE(fs::exists(At("d")));
  // Whether a name is there is looked at again.
  Write("f", "");
  a = Of(Op::lookup_, "f");
  a.error = ENOENT;
  EXPECT_EQ(Do(a).error, 0);
  a.error = EIO;
  EXPECT_EQ(Do(a).error, EIO);
  OpenAs("f", 0);
  a = Through(Op::write_, 0);
  a.flags = kHasData;
  a.data = AsBytes("0123456789");
  a.result = 4;
  EXPECT_EQ(Do(a).result, 4);
  EXPECT_EQ(Read("f"), "0123") << "as much as was written then";
  Open({});
  OpenAs("f", 0);
  a.error = ENOSPC;
  EXPECT_EQ(Do(a).result, 10) << "else it is tried";
}

}  // namespace
}  // namespace tracefs::replay
