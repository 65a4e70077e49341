// A folder in which something was done, and a trace of it: the plan that is
// made of the trace, played in an empty folder, gives the same folder and the
// same results.
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

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tests/unit/replay/tree_listing.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/replay/digest.h"
#include "tracefs/replay/plan_builder.h"
#include "tracefs/replay/player.h"
#include "tracefs/replay/prepare.h"

namespace tracefs::replay {
namespace {

using format::Record;

constexpr uint64_t kRootInode = 1;

// Does it, and records it as a mount would.
class RecordedFolder {
 public:
  explicit RecordedFolder(std::string path) : path_(std::move(path)) {
    EXPECT_EQ(::mkdir(path_.c_str(), 0700), 0);
    root_ = trace_.DefinePath(0, "");
  }

  std::string At(const std::string& name) const { return path_ + '/' + name; }
  std::string Trace() {
    trace_.EndBlock();
    trace_.Finish();
    return trace_.bytes();
  }
  size_t operations() const { return operations_; }

  void Lookup(const std::string& name) {
    Event e = Named(Op::lookup_, name);
    struct stat st;
    Ended(&e, ::lstat(At(name).c_str(), &st));
    Add(e, name);
  }
  uint64_t Create(const std::string& name) {
    Event e = Named(Op::create_, name);
    e.Set(Field::kArgMode, S_IFREG | 0640);
    e.Set(Field::kFlags, O_RDWR);
    const int fd = ::open(At(name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0640);
    return Opened(e, fd, name);
  }
  uint64_t Open(const std::string& name, int flags) {
    Event e = OfFile(Op::open_, name);
    e.Set(Field::kFlags, static_cast<uint64_t>(flags));
    const int fd = ::open(At(name).c_str(), flags);
    return Opened(e, fd, name);
  }
  void Close(uint64_t fh, const std::string& name) {
    Event e = OfFile(Op::release_, name);
    e.Set(Field::kFh, fh);
    Ended(&e, ::close(static_cast<int>(fh)));
    Add(e, {});
  }
  void Write(uint64_t fh, const std::string& name, uint64_t offset,
             const std::string& bytes) {
    Event e = Moved(Op::write_, fh, name, offset, bytes.size());
    e.data = AsBytes(bytes);
    Ended(&e, ::pwrite(static_cast<int>(fh), bytes.data(), bytes.size(),
                       static_cast<off_t>(offset)));
    Add(e, {});
  }
  void Read(uint64_t fh, const std::string& name, uint64_t offset,
            uint64_t length) {
    Event e = Moved(Op::read_, fh, name, offset, length);
    std::string bytes(length, '\0');
    const ssize_t n = ::pread(static_cast<int>(fh), bytes.data(), length,
                              static_cast<off_t>(offset));
    bytes.resize(static_cast<size_t>(n));
    e.data = AsBytes(bytes);
    Ended(&e, n);
    Add(e, {});
  }
  void MakeDir(const std::string& name) {
    Event e = Named(Op::mkdir_, name);
    e.Set(Field::kArgMode, 0750);
    Ended(&e, ::mkdir(At(name).c_str(), 0750));
    Add(e, name);
  }
  void MakeNode(const std::string& name) {
    Event e = Named(Op::mknod_, name);
    e.Set(Field::kArgMode, S_IFIFO | 0604);
    Ended(&e, ::mkfifo(At(name).c_str(), 0604));
    Add(e, name);
  }
  void Symlink(const std::string& name, const std::string& to) {
    Event e = Named(Op::symlink_, name);
    e.target = to;
    Ended(&e, ::symlink(to.c_str(), At(name).c_str()));
    Add(e, name);
  }
  void Readlink(const std::string& name) {
    Event e = OfFile(Op::readlink_, name);
    std::string to(100, '\0');
    const ssize_t n = ::readlink(At(name).c_str(), to.data(), to.size());
    if (n > 0) to.resize(static_cast<size_t>(n));
    if (n > 0) e.target = to;
    Ended(&e, n);
    Add(e, {});
  }
  void Remove(const std::string& name, bool folder = false) {
    Event e = Named(folder ? Op::rmdir_ : Op::unlink_, name);
    e.Set(Field::kInode, InodeOf(name));
    Ended(&e, folder ? ::rmdir(At(name).c_str()) : ::unlink(At(name).c_str()));
    Add(e, {});
  }
  void Rename(const std::string& name, const std::string& other,
              uint32_t flags = 0) {
    Event e = Named(Op::rename_, name);
    Second(&e, other);
    e.Set(Field::kInode, InodeOf(name));
    e.Set(Field::kFlags, flags);
    Ended(&e, ::renameat2(AT_FDCWD, At(name).c_str(), AT_FDCWD,
                          At(other).c_str(), flags));
    Add(e, {});
  }
  void Link(const std::string& name, const std::string& other) {
    Event e = OfFile(Op::link_, name);
    Second(&e, other);
    Ended(&e, ::link(At(name).c_str(), At(other).c_str()));
    Add(e, name);
  }
  void Chmod(const std::string& name, mode_t mode) {
    Event e = OfFile(Op::setattr_, name);
    e.Set(Field::kValid, FATTR_MODE);
    e.Set(Field::kArgMode, mode);
    Ended(&e, ::chmod(At(name).c_str(), mode));
    Add(e, name);
  }
  void Resize(const std::string& name, uint64_t size) {
    Event e = OfFile(Op::setattr_, name);
    e.Set(Field::kValid, FATTR_SIZE);
    e.Set(Field::kNewSize, size);
    Ended(&e, ::truncate(At(name).c_str(), static_cast<off_t>(size)));
    Add(e, name);
  }
  void SetXattr(const std::string& name, const std::string& key,
                const std::string& value) {
    Event e = OfFile(Op::setxattr_, name);
    e.xattr_name = key;
    e.data = AsBytes(value);
    e.Set(Field::kLength, value.size());
    e.Set(Field::kFlags, 0);
    Ended(&e, ::lsetxattr(At(name).c_str(), key.c_str(), value.data(),
                          value.size(), 0));
    Add(e, {});
  }
  void Getattr(const std::string& name) {
    Event e = OfFile(Op::getattr_, name);
    struct stat st;
    Ended(&e, ::lstat(At(name).c_str(), &st));
    Add(e, name);
  }
  void Allocate(uint64_t fh, const std::string& name, int how, uint64_t offset,
                uint64_t length) {
    Event e = Moved(Op::fallocate_, fh, name, offset, length);
    e.Set(Field::kFlags, static_cast<uint64_t>(how));
    Ended(&e, ::fallocate(static_cast<int>(fh), how, static_cast<off_t>(offset),
                          static_cast<off_t>(length)));
    Add(e, name);
  }

 private:
  uint64_t InodeOf(const std::string& name) const {
    struct stat st;
    return ::lstat(At(name).c_str(), &st) == 0 ? st.st_ino : 0;
  }
  uint64_t FolderOf(const std::string& name) const {
    const size_t slash = name.rfind('/');
    return slash == name.npos ? kRootInode : InodeOf(name.substr(0, slash));
  }
  static std::string LastOf(const std::string& name) {
    return name.substr(name.rfind('/') + 1);
  }
  Event Begun(Op op) {
    Event e;
    e.op = op;
    time_ += 1000;
    e.Set(Field::kTime, time_);
    e.Set(Field::kLatency, 100);
    e.Set(Field::kTid, 7 + operations_ % 3);
    e.Set(Field::kUid, ::geteuid());
    e.Set(Field::kGid, ::getegid());
    return e;
  }
  Event Named(Op op, const std::string& name) {
    Event e = Begun(op);
    e.Set(Field::kParentInode, FolderOf(name));
    name_ = LastOf(name);
    e.name = name_;
    return e;
  }
  Event OfFile(Op op, const std::string& name) {
    Event e = Begun(op);
    e.Set(Field::kInode, InodeOf(name));
    return e;
  }
  void Second(Event* e, const std::string& name) {
    e->Set(Field::kNewParentInode, FolderOf(name));
    new_name_ = LastOf(name);
    e->new_name = new_name_;
  }
  Event Moved(Op op, uint64_t fh, const std::string& name, uint64_t offset,
              uint64_t length) {
    Event e = OfFile(op, name);
    e.Set(Field::kFh, fh);
    e.Set(Field::kOffset, offset);
    e.Set(Field::kLength, length);
    return e;
  }
  static void Ended(Event* e, int64_t result) {
    e->SetResult(result, result < 0 ? errno : 0);
  }
  uint64_t Opened(Event e, int fd, const std::string& name) {
    Ended(&e, fd < 0 ? -1 : 0);
    if (fd >= 0) e.Set(Field::kFh, static_cast<uint64_t>(fd));
    Add(e, name);
    return static_cast<uint64_t>(fd);
  }
  // `name`: of the file whose attributes come with the answer.
  void Add(Event e, const std::string& name) {
    struct stat st;
    const bool failed = e.Get(Field::kErrno) != 0;
    if (!name.empty() && !failed && ::lstat(At(name).c_str(), &st) == 0) {
      e.SetAttributes(st);
    }
    ++operations_;
    // What has the number of the root is found by its path.
    const auto path = [&](Field f) {
      return e.Has(f) && e.Get(f) == kRootInode ? root_ : 0;
    };
    trace_.Add(e, {.path = 0,
                   .parent = path(Field::kParentInode),
                   .new_parent = path(Field::kNewParentInode),
                   .process = 0});
  }

  const std::string path_;
  test::TraceBuilder trace_;
  uint32_t root_ = 0;
  uint64_t time_ = test::TraceBuilder::kMonotonicNs;
  size_t operations_ = 0;
  std::string name_;
  std::string new_name_;
};

class PlayTest : public testing::Test {
 protected:
  PlayTest() : was_(folder_.Path("was")) { ::umask(0); }

  void Build(const BuilderOptions& options = {}) {
    auto writer = PlanWriter::CreateUnnamed("/tmp");
    ASSERT_TRUE(writer.ok());
    PlanBuilder builder(options, &*writer);
    format::TraceMerger merger;
    bytes_ = was_.Trace();
    merger.Add(std::make_unique<format::TraceReader>(
        std::make_unique<format::MemorySource>(AsBytes(bytes_)),
        format::TraceReaderOptions{}));
    Record record;
    while (merger.Next(&record) == format::ReadStep::kItem) {
      ASSERT_TRUE(builder.Take(record, true).ok());
    }
    ASSERT_TRUE(builder.Finish().ok());
    header_ = builder.header();
    lacks_ = builder.lacks();
    auto plan = writer->Finish(header_);
    ASSERT_TRUE(plan.ok());
    plan_ = *std::move(plan);
    EXPECT_EQ(header_.unplaced, 0u);
    EXPECT_EQ(header_.operations, was_.operations());
  }

  // In a new folder of this name; what it came to.
  Outcome Play(const std::string& name, PlayOptions options = {}) {
    EXPECT_EQ(::mkdir(folder_.Path(name).c_str(), 0700), 0);
    TargetOptions target;
    if (::geteuid() == 0) target.grants.Add(Privilege::kOwner);
    options.verify.grants = target.grants;
    const auto tree = TargetTree::Open(
        UniqueFd(::open(folder_.Path(name).c_str(), O_PATH | O_DIRECTORY)),
        header_, target);
    const auto prepared = PrepareTree(plan_.get(), true, tree.get());
    EXPECT_TRUE(prepared.ok());
    EXPECT_THAT(prepared->errors, testing::IsEmpty());
    Player player(plan_.get(), header_, tree.get(), options);
    Outcome outcome;
    EXPECT_TRUE(player.Run(&outcome).ok());
    return outcome;
  }

  // The same folder and the same results, in each order that keeps them.
  void ExpectSame() {
    Build();
    for (const OrderMode order : {OrderMode::kRoot, OrderMode::kGlobal}) {
      const std::string name = order == OrderMode::kRoot ? "root" : "global";
      PlayOptions options;
      options.order = order;
      const Outcome outcome = Play(name, options);
      EXPECT_EQ(outcome.matched(), was_.operations());
      for (const Mismatch& m : outcome.mismatches) {
        ADD_FAILURE() << m.sequence << ": " << m.text;
      }
      EXPECT_EQ(Listing(folder_.Path(name)), Listing(folder_.Path("was")));
      const UniqueFd root(::open(folder_.Path(name).c_str(), O_PATH));
      const auto digest = DigestTree(root.get(), {});
      ASSERT_TRUE(digest.ok());
      const auto compared =
          CompareWithPlan(plan_.get(), *digest, {}, false, 10);
      ASSERT_TRUE(compared.ok());
      EXPECT_THAT(compared->differences, testing::IsEmpty());
      EXPECT_THAT(compared->made_up, testing::IsEmpty());
    }
  }

  TempFolder folder_;
  RecordedFolder was_;
  std::string bytes_;
  PlanHeader header_;
  Lacks lacks_;
  UniqueFd plan_;
};

TEST_F(PlayTest, WhatWasMadeIsMade) {
  was_.MakeDir("d");
  was_.MakeDir("d");  // EEXIST
  const uint64_t f = was_.Create("d/f");
  was_.Write(f, "d/f", 0, "0123456789");
  was_.Write(f, "d/f", 20, "after a hole");
  was_.Read(f, "d/f", 5, 100);
  was_.Allocate(f, "d/f", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 4);
  was_.Allocate(f, "d/f", 0, 40, 10);
  was_.Close(f, "d/f");
  was_.Symlink("l", "d/f");
  was_.Readlink("l");
  was_.MakeNode("pipe");
  was_.Link("d/f", "g");
  was_.Chmod("g", 0604);
  was_.SetXattr("g", "user.a", "value");
  was_.Resize("d/f", 45);
  was_.Getattr("g");
  was_.Getattr("d");
  was_.Remove("nothing");  // ENOENT
  was_.Remove("d", true);  // ENOTEMPTY
  was_.Rename("d/f", "g2");
  was_.Rename("g", "g2");  // one file: nothing happens
  ExpectSame();
  EXPECT_EQ(header_.made_entries, 4u);
  EXPECT_EQ(header_.initial_entries, 0u);
  EXPECT_EQ(header_.written_bytes, 10u + 12u);
}

TEST_F(PlayTest, WhatWasThereIsThereBefore) {
  ASSERT_EQ(::mkdir(was_.At("d").c_str(), 0711), 0);
  ASSERT_EQ(::mkdir(was_.At("d/e").c_str(), 0700), 0);
  {
    const UniqueFd fd(::open(was_.At("d/f").c_str(), O_WRONLY | O_CREAT, 0644));
    ASSERT_EQ(::write(fd.get(), "it was there", 12), 12);
  }
  ASSERT_EQ(::symlink("d", was_.At("l").c_str()), 0);
  was_.Lookup("d");
  was_.Lookup("d/e");
  was_.Lookup("d/f");
  was_.Lookup("d/none");
  was_.Lookup("l");
  was_.Readlink("l");
  const uint64_t f = was_.Open("d/f", O_RDONLY);
  was_.Read(f, "d/f", 0, 4096);
  was_.Close(f, "d/f");
  was_.Rename("d/f", "d/e/f");
  was_.Rename("d/e", "e");
  ExpectSame();
  EXPECT_EQ(header_.initial_entries, 4u);
  EXPECT_EQ(header_.initial_bytes, 12u);
}

TEST_F(PlayTest, ContentsThatTheTraceDoesNotTellAreZerosAndNamed) {
  {
    const UniqueFd fd(::open(was_.At("f").c_str(), O_WRONLY | O_CREAT, 0644));
    ASSERT_EQ(::write(fd.get(), "not told", 8), 8);
  }
  was_.Lookup("f");
  const uint64_t f = was_.Open("f", O_RDWR);
  was_.Write(f, "f", 4, "abcd");
  was_.Close(f, "f");
  Build();
  EXPECT_EQ(header_.unknown_content, 1u);
  EXPECT_EQ(Play("again").mismatched(), 0u);
  EXPECT_EQ(TempFolder::Read(folder_.Path("again/f")),
            std::string(4, '\0') + "abcd");
}

TEST_F(PlayTest, StopsWhereItIsTold) {
  was_.MakeDir("a");
  was_.MakeDir("b");
  was_.MakeDir("c");
  Build();
  PlayOptions until;
  until.until_sequence = 2;
  EXPECT_EQ(Play("sequence", until).operations(), 2u);
  EXPECT_EQ(Listing(folder_.Path("sequence")).size(), 2u);
  PlayOptions asked;
  asked.order = OrderMode::kGlobal;
  std::vector<uint64_t> before;
  asked.before = [&](const Action& action) {
    before.push_back(action.sequence);
    return action.sequence < 2;
  };
  (void)Play("asked", asked);
  EXPECT_THAT(before, testing::ElementsAre(1u, 2u));
  EXPECT_EQ(Listing(folder_.Path("asked")).size(), 1u);
}

TEST_F(PlayTest, MismatchesAreCountedAndTold) {
  was_.MakeDir("a");
  was_.Remove("a", true);
  const uint64_t f = was_.Create("f");
  was_.Write(f, "f", 0, "abc");
  Build();
  // Somebody else has made it meanwhile.
  ASSERT_EQ(::mkdir(folder_.Path("x").c_str(), 0700), 0);
  PlayOptions options;
  std::vector<std::string> told;
  options.on_mismatch = OnMismatch::kWarn;
  options.order = OrderMode::kGlobal;
  options.warn = [&](const Mismatch& m) {
    told.push_back(std::to_string(m.sequence) + " " + m.text);
  };
  options.before = [&](const Action& action) {
    if (action.sequence == 1) {
      EXPECT_EQ(::mkdir(folder_.Path("y/a").c_str(), 0700), 0);
    }
    return true;
  };
  const Outcome outcome = Play("y", options);
  EXPECT_THAT(told, testing::ElementsAre(
                        "1 mkdir of a: result success then, EEXIST now"));
  EXPECT_EQ(outcome.mismatched(), 1u);
  EXPECT_EQ(outcome.bytes_written, 3u);
  options.on_mismatch = OnMismatch::kCount;
  options.before = [&](const Action& action) {
    if (action.sequence == 1) {
      EXPECT_EQ(::mkdir(folder_.Path("z/a").c_str(), 0700), 0);
    }
    return true;
  };
  EXPECT_EQ(Play("z", options).mismatched(), 1u);
  EXPECT_EQ(told.size(), 1u) << "counted, and not told";
}

class RandomPlay : public PlayTest, public testing::WithParamInterface<int> {};

TEST_P(RandomPlay, GivesTheSameFolder) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto roll = [&](uint32_t n) { return random() % n; };
  const auto name = [&] {
    const char* const folders[] = {"", "x/", "x/y/"};
    return folders[roll(3)] + std::string(1, static_cast<char>('a' + roll(5)));
  };
  const auto bytes = [&] {
    return std::string(1 + roll(50), static_cast<char>('A' + roll(26)));
  };
  const auto is_file = [&](const std::string& at) {
    struct stat st;
    return ::lstat(was_.At(at).c_str(), &st) == 0 && S_ISREG(st.st_mode);
  };
  was_.MakeDir("x");
  was_.MakeDir("x/y");
  for (int i = 0; i < 120; ++i) {
    const std::string one = name();
    const std::string two = name();
    switch (roll(12)) {
      case 0:
        was_.Remove(one);
        break;
      case 1:
        was_.Rename(one, two);
        break;
      case 2:
        if (is_file(one) && is_file(two)) {
          was_.Rename(one, two, RENAME_EXCHANGE);
        }
        break;
      case 3:
        if (is_file(one)) was_.Link(one, two);
        break;
      case 4:
        was_.Lookup(one);
        break;
      case 5:
        if (is_file(one)) was_.Resize(one, roll(80));
        break;
      case 6:
        if (is_file(one)) was_.Chmod(one, 0600 | roll(0100));
        break;
      case 7:
        if (is_file(one)) was_.SetXattr(one, "user.x", bytes());
        break;
      case 8: {
        if (!is_file(one)) break;
        const uint64_t f =
            was_.Open(one, O_RDWR | (roll(3) == 0 ? O_TRUNC : 0));
        was_.Write(f, one, roll(60), bytes());
        was_.Read(f, one, roll(60), roll(60) + 1);
        was_.Close(f, one);
        break;
      }
      default: {
        const uint64_t f = was_.Create(one);
        if (static_cast<int>(f) < 0) break;
        was_.Write(f, one, 0, bytes());
        was_.Close(f, one);
      }
    }
  }
  ExpectSame();
}

INSTANTIATE_TEST_SUITE_P(Play, RandomPlay, testing::Range(1, 9));

}  // namespace
}  // namespace tracefs::replay
