// What is kept comes back byte for byte, whoever asks for it how often; what
// does not is refused.
#include "tracefs/keep/kept_folder.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/keep/kept_world.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_io.h"
#include "tracefs/keep/kept_source.h"

namespace tracefs::keep {
namespace {

class KeptFolderTest : public KeptWorld {};

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
  EXPECT_FALSE(std::filesystem::exists(top_ + "/kept/" + SerialOf("dead")));
  EXPECT_TRUE(std::filesystem::exists(living->path() + "/1"));
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

TEST_F(KeptFolderTest, AFolderInTheSourceIsAsItWasBefore) {
  const auto refused = [&](const std::string& path) {
    const auto made = TryMake("a", path);
    return !made.ok() && made.status().message().find("lies in the source") !=
                             std::string::npos;
  };
  EXPECT_TRUE(refused(top_ + "/source"));
  EXPECT_TRUE(std::filesystem::exists(top_ + "/source"));
  EXPECT_TRUE(refused(top_ + "/source/deep/kept"));
  EXPECT_TRUE(std::filesystem::is_empty(top_ + "/source/deep"));
  ASSERT_EQ(::mkdir((top_ + "/source/mine").c_str(), 0700), 0);
  EXPECT_TRUE(refused(top_ + "/source/mine"));
  EXPECT_TRUE(std::filesystem::exists(top_ + "/source/mine"));
}

TEST_F(KeptFolderTest, WithoutASourceItMayLieAnywhere) {
  const auto made = KeptFolder::Make({.path = top_ + "/source/kept",
                                      .name = "a",
                                      .max_bytes = 1,
                                      .source = -1});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->path(), top_ + "/source/kept/a");
}

TEST_F(KeptFolderTest, ASourceThatCannotBeLookedAtIsAnError) {
  const int closed = File("").get();
  EXPECT_FALSE(KeptFolder::Make({.path = top_ + "/kept",
                                 .name = "a",
                                 .max_bytes = 1,
                                 .source = closed})
                   .ok());
}

TEST_F(KeptFolderTest, TheSourceMayBeAnyDescriptor) {
  const UniqueFd input(::dup(0));
  const UniqueFd source(::open((top_ + "/source").c_str(), O_PATH));
  ASSERT_EQ(::dup2(source.get(), 0), 0);
  EXPECT_FALSE(KeptFolder::Make({.path = top_ + "/source/kept",
                                 .name = "a",
                                 .max_bytes = 1,
                                 .source = 0})
                   .ok());
  if (input) {
    ::dup2(input.get(), 0);
  } else {
    ::close(0);
  }
}

TEST_F(KeptFolderTest, Malicious_NoDescriptorLeadsOutOfTheFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can enclose a folder";
  const auto open_ones = [] {
    std::set<int> found;
    for (int fd = 0; fd < 256; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) found.insert(fd);
    }
    return found;
  };
  const std::set<int> before = open_ones();
  const auto folder = Make("a");
  int looked_at = 0;
  for (const int fd : open_ones()) {
    if (before.contains(fd)) continue;
    ++looked_at;
    for (const char* const way : {"../source", "../../source"}) {
      EXPECT_NE(::faccessat(fd, way, F_OK, 0), 0) << way;
    }
  }
  EXPECT_GE(looked_at, 2);
}

TEST_F(KeptFolderTest, AFolderOfSomethingElseIsRefusedAndLeftAsItIs) {
  const std::string path = top_ + "/mine";
  const std::string letters = path + "/" + SerialOf("letters");
  // Whatever it is called, nothing says that a mount has made it.
  std::filesystem::create_directories(letters);
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  std::ofstream(letters + "/1") << std::string(3 << 20, 'x');
  std::ofstream(letters + "/letter") << "dear";
  const auto made = TryMake("a", path);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kInvalid);
  for (const char* const says : {"/mine", "Name a folder that is empty"}) {
    EXPECT_NE(made.status().message().find(says), std::string::npos)
        << made.status().message();
  }
  EXPECT_TRUE(std::filesystem::exists(letters + "/1"));
  EXPECT_TRUE(std::filesystem::exists(letters + "/letter"));
  std::filesystem::remove_all(letters);
  EXPECT_TRUE(std::filesystem::is_empty(path));
  EXPECT_TRUE(TryMake("a", path).ok());
}

TEST_F(KeptFolderTest, WhatIsPutBesideKeptThingsIsRefusedAndStays) {
  Make("a");
  for (const char* const name : {"letter", "0123", "A"}) {
    const std::string path = top_ + "/kept/" + name;
    std::ofstream(path) << "dear";
    const auto made = TryMake("b", top_ + "/kept");
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.status().message().find(name), std::string::npos);
    EXPECT_TRUE(std::filesystem::remove(path));
    EXPECT_FALSE(std::filesystem::exists(top_ + "/kept/" + SerialOf("b")));
  }
  EXPECT_TRUE(TryMake("b", top_ + "/kept").ok());
}

TEST_F(KeptFolderTest, Budget_OfEarlierTracesOnlyObjectsGo) {
  const UniqueFd fd = File(std::string(30'000, 'x'));
  const std::string path = Make("old", 1 << 20)->path();
  std::ofstream(path + "/1") << std::string(30'000, 'x');
  std::ofstream(path + "/letter") << std::string(30'000, 'x');
  std::ofstream(path + "/1.bak") << "dear";
  const auto now = Make("now", 29'999);
  EXPECT_FALSE(std::filesystem::exists(path + "/1"));
  EXPECT_TRUE(std::filesystem::exists(path + "/letter"));
  EXPECT_TRUE(std::filesystem::exists(path + "/1.bak"));
  EXPECT_EQ(now->Totals().held, 0u);
}

TEST_F(KeptFolderTest, OnlyItsUserGetsAtWhatIsKept) {
  const mode_t usual = ::umask(0);
  const auto folder = Make("a");
  const UniqueFd fd = File("x");
  const KeptPart part = KeepAll(*folder, fd.get());
  ::umask(usual);
  struct stat st;
  for (const auto& [path, mode] : {std::pair(top_ + "/kept", 0700u),
                                   {folder->path(), 0700u},
                                   {ObjectOf(*folder, part), 0600u}}) {
    ASSERT_EQ(::stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, mode) << path;
  }
}

TEST_F(KeptFolderTest, AFolderThatOthersGetAtIsRefused) {
  for (const mode_t mode : {0701u, 0702u, 0704u, 0710u, 0720u, 0740u}) {
    const std::string path = top_ + "/open" + std::to_string(mode);
    ASSERT_EQ(::mkdir(path.c_str(), mode), 0);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto made = TryMake("a", path);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), StatusCode::kInvalid);
    EXPECT_TRUE(std::filesystem::is_empty(path));
  }
}

TEST_F(KeptFolderTest, NoFolderAndANameThatIsTakenAreErrors) {
  std::ofstream(top_ + "/file") << "x";
  EXPECT_EQ(TryMake("a", top_ + "/file").status().code(), StatusCode::kSystem);
  EXPECT_EQ(TryMake("a", top_ + "/file/below").status().code(),
            StatusCode::kSystem);
  ASSERT_EQ(::symlink("source", (top_ + "/link").c_str()), 0);
  EXPECT_EQ(TryMake("a", top_ + "/link").status().code(), StatusCode::kSystem);
  const auto folder = Make("a");
  const auto again = TryMake("a", top_ + "/kept");
  EXPECT_EQ(again.status().error(), EEXIST);
  const UniqueFd other(::open(folder->path().c_str(), O_RDONLY));
  EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0) << "it is not locked";
}

TEST_F(KeptFolderTest, RoundTrip_HolesAnywhereInTheRange) {
  const auto folder = Make("a", 64 << 20);
  constexpr uint64_t kBlocks = 6;
  // Which of the blocks have data, in every way.
  for (uint64_t data = 0; data < 1u << kBlocks; ++data) {
    const UniqueFd fd = Hole(kBlocks * 4096);
    std::string want(kBlocks * 4096, '\0');
    for (uint64_t i = 0; i < kBlocks; ++i) {
      if ((data >> i & 1) == 0) continue;
      want.replace(i * 4096, 4096, 4096, static_cast<char>('a' + i));
      ASSERT_TRUE(
          WriteAllAt(fd.get(),
                     AsBytes(std::string_view(want).substr(i * 4096, 4096)),
                     i * 4096, "")
              .ok());
    }
    for (const auto& [begin, end] :
         {std::pair(0ul, 24576ul), {0, 4096}, {1, 4097}, {4096, 8193}}) {
      const KeptPart part = Keep(*folder, fd.get(), begin, end);
      EXPECT_EQ(Read(folder->path(), part), want.substr(begin, end - begin))
          << data;
      EXPECT_EQ(part.length, end - begin);
    }
  }
}

TEST_F(KeptFolderTest, ABlockThatIsAHoleTakesNoRoom) {
  const auto folder = Make("a");
  const UniqueFd fd = Hole(4096 * 2);
  const KeptPart part = Keep(*folder, fd.get(), 4096, 8192);
  EXPECT_EQ(Read(folder->path(), part), std::string(4096, '\0'));
  // Its last byte is written, that the object may be as long as it is.
  EXPECT_EQ(std::filesystem::file_size(ObjectOf(*folder, part)), 4096u);
  EXPECT_LE(RoomOf(ObjectOf(*folder, part)), 4096u);
  const KeptPart two = KeepAll(*folder, fd.get());
  EXPECT_EQ(two.at, 4096u);
  EXPECT_LE(RoomOf(ObjectOf(*folder, part)), 8192u);
}

TEST_F(KeptFolderTest, WhatMayHaveAHoleIsNotComparedAndWhatMayNotIs) {
  const auto folder = Make("a", 64 << 20);
  const auto shared = [&](const UniqueFd& fd) {
    const KeptPart one = KeepAll(*folder, fd.get());
    const KeptPart two = KeepAll(*folder, fd.get());
    return one.object == two.object && one.at == two.at;
  };
  // First, as it may be tried to clone it, for which an object goes.
  EXPECT_FALSE(shared(File(std::string(kMostInMemory + 1, 'x'))));
  EXPECT_TRUE(shared(Hole(4095)));
  EXPECT_FALSE(shared(Hole(4096)));
  const UniqueFd at_its_begin = Hole(4096);
  ASSERT_TRUE(WriteAllAt(at_its_begin.get(), AsBytes("data"), 4096, "").ok());
  EXPECT_FALSE(shared(at_its_begin));
  const UniqueFd at_its_end = File(std::string(4096, 'y'));
  ASSERT_EQ(::ftruncate(at_its_end.get(), 8192), 0);
  EXPECT_FALSE(shared(at_its_end));
  EXPECT_TRUE(shared(File(std::string(4096, 'x'))));
  EXPECT_TRUE(shared(File(std::string(kMostInMemory, 'x'))));
}

TEST_F(KeptFolderTest, PartsLieOneAfterTheOther) {
  const auto folder = Make("a");
  const UniqueFd fd = File(std::string(10'000, 'x') + std::string(10'000, 'y'));
  // Short ones at once, whole blocks as they lay.
  const std::pair<uint64_t, uint64_t> parts[] = {
      {0, 1}, {1, 4096}, {5000, 9097}, {9096, 13'192}, {7, 9}};
  uint64_t end = 0;
  for (const auto& [first, last] : parts) {
    const KeptPart kept = Keep(*folder, fd.get(), first, last);
    EXPECT_EQ(kept.object, 1u);
    const uint64_t length = last - first;
    if (length < 4096) {
      EXPECT_EQ(kept.at, end);
    } else {
      EXPECT_GE(kept.at, end);
      EXPECT_LT(kept.at, end + 4096);
      EXPECT_EQ(kept.at % 4096, first % 4096);
    }
    end = kept.at + length;
  }
}

TEST_F(KeptFolderTest, ObjectsAreOfASixteenthOfTheBudgetWithinBounds) {
  struct {
    uint64_t budget, share;
  } const worlds[] = {{1 << 20, 64 << 10},  // no less than that
                      {4 << 20, 256 << 10},
                      {uint64_t{1} << 30, 16 << 20}};  // and no more
  for (const auto& world : worlds) {
    const auto folder = Make(std::to_string(world.budget), world.budget);
    // A hole is never the same as another.
    const UniqueFd half = Hole(world.share / 2);
    const uint64_t first = KeepAll(*folder, half.get()).object;
    EXPECT_EQ(KeepAll(*folder, half.get()).object, first) << world.budget;
    EXPECT_EQ(KeepAll(*folder, half.get()).object, first + 1) << world.budget;
    const UniqueFd more = Hole(world.share / 2 + 1);
    EXPECT_EQ(KeepAll(*folder, more.get()).object, first + 2) << world.budget;
  }
}

TEST_F(KeptFolderTest, TotalsAreWhatWasKept) {
  const auto folder = Make("a");
  const UniqueFd fd = File(std::string(6000, 'a') + std::string(4000, 'b'));
  KeptPart none = {.object = 9, .at = 9, .length = 9, .checksum = 9};
  ASSERT_EQ(folder->Keep(fd.get(), 3, 3, 10'000, &none), 0);
  EXPECT_EQ(none.object + none.length + none.at + none.checksum, 0u);
  EXPECT_EQ(folder->Settle(none), 0u);
  Keep(*folder, fd.get(), 0, 6000);
  Keep(*folder, fd.get(), 0, 6000);
  Keep(*folder, fd.get(), 6000, 10'000);
  const KeptTotals totals = folder->Totals();
  EXPECT_EQ(totals.parts, 3u);
  EXPECT_EQ(totals.bytes, 16'000u);
  EXPECT_EQ(totals.same, 6000u);
  EXPECT_EQ(totals.cloned, 0u);
  EXPECT_EQ(totals.held, 10'000u);
  EXPECT_EQ(totals.removed, 0u);
  EXPECT_EQ(totals.failed, 0u);
}

// Two texts with one length and one checksum: the bits of CRC-32C's polynomial
// are the difference.
TEST_F(KeptFolderTest, WhatOnlyLooksTheSameIsKept) {
  std::string one = "what it was, at first";
  std::string two = one;
  constexpr uint64_t kPolynomial = uint64_t{0x82F63B78} << 1 | 1;
  for (int i = 0; i < 5; ++i) {
    two[i] = static_cast<char>(two[i] ^ kPolynomial >> 8 * i);
  }
  ASSERT_NE(one, two);
  ASSERT_EQ(Crc32c(AsBytes(one)), Crc32c(AsBytes(two)));
  const auto folder = Make("a");
  const KeptPart first = KeepAll(*folder, File(one).get());
  const KeptPart second = KeepAll(*folder, File(two).get());
  EXPECT_NE(first.at, second.at);
  EXPECT_EQ(Read(folder->path(), first), one);
  EXPECT_EQ(Read(folder->path(), second), two);
}

TEST_F(KeptFolderTest, WhatWasChangedIsNotTheSame) {
  const auto folder = Make("a");
  const UniqueFd fd = File("what it was");
  const KeptPart first = KeepAll(*folder, fd.get());
  std::ofstream(ObjectOf(*folder, first)) << "What it was";
  EXPECT_NE(KeepAll(*folder, fd.get()).at, first.at);
  ASSERT_EQ(::truncate(ObjectOf(*folder, first).c_str(), 3), 0);
  const KeptPart third = KeepAll(*folder, fd.get());
  EXPECT_EQ(Read(folder->path(), third), "what it was");
  ASSERT_EQ(::unlink(ObjectOf(*folder, first).c_str()), 0);
  EXPECT_GT(KeepAll(*folder, fd.get()).at, third.at);
}

TEST_F(KeptFolderTest, WhatWouldGoSoonIsKeptAgain) {
  const auto folder = Make("a", 4 << 20);
  const UniqueFd fd = File("asked for again and again");
  const KeptPart first = KeepAll(*folder, fd.get());
  ASSERT_EQ(first.object, 1u);
  // Each makes an object of its own; the first half of them is old.
  for (uint64_t objects = 2; objects < 9; ++objects) {
    const UniqueFd large = Hole((256 << 10) + objects);
    ASSERT_EQ(KeepAll(*folder, large.get()).object, objects);
    const uint64_t oldest_taken = 1 + objects / 2;
    const KeptPart again = KeepAll(*folder, fd.get());
    if (oldest_taken <= first.object) {
      EXPECT_EQ(again.object, first.object) << objects;
    } else {
      EXPECT_GT(again.object, first.object) << objects;
      break;
    }
  }
}

TEST_F(KeptFolderTest, SoManyCopiesAreRemembered) {
  constexpr int kMost = 1 << 16;
  const auto folder = Make("a", 64 << 20);
  UniqueFd fd = File("....");
  const auto keep = [&](int number) {
    EXPECT_EQ(::pwrite(fd.get(), &number, sizeof number, 0), 4);
    KeptPart part;
    EXPECT_EQ(folder->Keep(fd.get(), 0, 4, 4, &part), 0);
    folder->Settle(part);
    return part;
  };
  for (int i = 0; i < kMost; ++i) keep(i);
  keep(0);
  keep(kMost - 1);
  EXPECT_EQ(folder->Totals().same, 8u);
  keep(kMost);  // they are forgotten
  keep(kMost);
  EXPECT_EQ(folder->Totals().same, 12u);
  keep(1);
  EXPECT_EQ(folder->Totals().same, 12u);
}

TEST_F(KeptFolderTest, Budget_ItMayBeUsedToTheLastByte) {
  const auto folder = Make("a", 100'000);
  const UniqueFd all = File(std::string(100'000, 'x'));
  KeptPart part;
  EXPECT_EQ(folder->Keep(all.get(), 0, 100'000, 100'000, &part), 0);
  EXPECT_EQ(folder->Settle(part), 0u);
  EXPECT_EQ(Read(folder->path(), part), std::string(100'000, 'x'));
  const UniqueFd more = File(std::string(100'001, 'x'));
  EXPECT_EQ(folder->Keep(more.get(), 0, 100'001, 100'001, &part), EFBIG);
}

TEST_F(KeptFolderTest, Budget_OfWhatGoesIsCountedAndTold) {
  const auto folder = Make("a", 200'000);
  std::vector<KeptPart> parts;
  for (int i = 0; i < 5; ++i) {
    KeptPart part;
    const UniqueFd fd = File(std::string(50'000, static_cast<char>('a' + i)));
    ASSERT_EQ(folder->Keep(fd.get(), 0, 50'000, 50'000, &part), 0);
    parts.push_back(part);
    if (i < 4) {
      EXPECT_EQ(folder->Settle(part), 0u);
    }
  }
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(folder->Settle(parts[4]), 2u);
  EXPECT_EQ(folder->Totals().removed, 1u);
  EXPECT_EQ(folder->Totals().held, 200'000u);
  EXPECT_EQ(folder->Settle(parts[4]), 0u);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("keep_max is used up"), std::string::npos);
  const UniqueFd all = File(std::string(200'000, 'x'));
  const KeptPart last = KeepAll(*folder, all.get());
  EXPECT_EQ(folder->Totals().removed, 5u);
  EXPECT_EQ(folder->Totals().held, 200'000u);
  EXPECT_EQ(notices_.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(ObjectOf(*folder, parts[4])));
  EXPECT_TRUE(std::filesystem::exists(ObjectOf(*folder, last)));
}

TEST_F(KeptFolderTest, Budget_TheOnlyObjectStays) {
  const auto folder = Make("a", 10'000);
  const KeptPart one = KeepAll(*folder, File(std::string(9000, 'x')).get());
  const UniqueFd fd = File(std::string(9000, 'y'));
  KeptPart two;
  ASSERT_EQ(folder->Keep(fd.get(), 0, 9000, 9000, &two), 0);
  EXPECT_EQ(two.object, one.object);
  EXPECT_EQ(folder->Settle(two), 0u);
  EXPECT_EQ(Read(folder->path(), two), std::string(9000, 'y'));
}

TEST_F(KeptFolderTest, Budget_WhatIsAddedToMayGo) {
  const auto folder = Make("a", 100'000);
  const UniqueFd small = File("small");
  const KeptPart open = KeepAll(*folder, small.get());
  ASSERT_EQ(open.object, 1u);
  // Too long for the first object, and nothing fits beside it.
  const KeptPart all = KeepAll(*folder, File(std::string(100'000, 'x')).get());
  EXPECT_EQ(all.object, 2u);
  const KeptPart next = KeepAll(*folder, File("next").get());
  EXPECT_EQ(next.object, 3u);
  EXPECT_EQ(Read(folder->path(), next), "next");
  EXPECT_EQ(folder->Totals().held, 4u);
}

TEST_F(KeptFolderTest, Budget_EarlierTracesCountAndTheOldestGoesFirst) {
  const UniqueFd fd = File(std::string(30'000, 'x'));
  for (const std::string name : {"b", "a", "c"}) {
    const auto folder = Make(name, 1 << 20);
    KeepAll(*folder, fd.get());
  }
  // The other way round than they are called, and listed.
  for (const auto& [name, second] : {std::pair("b", 1), {"a", 2}, {"c", 3}}) {
    const timespec times[2] = {{second, 0}, {second, 0}};
    const std::string path = top_ + "/kept/" + SerialOf(name);
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  const std::string link = top_ + "/kept/" + SerialOf("link");
  std::ofstream(top_ + "/kept/" + SerialOf("file")) << std::string(9, 'x');
  ASSERT_EQ(::symlink("a", link.c_str()), 0);
  const auto exists = [&](const std::string& name) {
    return std::filesystem::exists(top_ + "/kept/" + SerialOf(name));
  };
  const auto now = Make("now", 90'000);
  EXPECT_EQ(now->Totals().held, 90'000u);
  EXPECT_TRUE(exists("a") && exists("b") && exists("c"));
  KeepAll(*now, fd.get());
  EXPECT_EQ(now->Totals().held, 90'000u);
  EXPECT_TRUE(exists("a") && !exists("b") && exists("c"));
  Keep(*now, fd.get(), 1, 3);
  EXPECT_TRUE(!exists("a") && !exists("b") && exists("c"));
  EXPECT_EQ(now->Totals().held, 60'002u);
  EXPECT_EQ(now->Totals().removed, 0u);
  EXPECT_TRUE(exists("file") && std::filesystem::is_symlink(link));
  const auto later = Make("later", 29'999);
  EXPECT_FALSE(exists("c"));
  EXPECT_TRUE(std::filesystem::exists(now->path() + "/1"));
  EXPECT_EQ(later->Totals().held, 0u);
}

TEST_F(KeptFolderTest, WhatFailsIsCountedAndToldOnce) {
  const auto folder = Make("a");
  for (int i = 0; i < 3; ++i) folder->NoteFailure(i == 0 ? ENOSPC : EIO);
  EXPECT_EQ(folder->Totals().failed, 3u);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("No space left"), std::string::npos);
}

TEST_F(KeptFolderTest, DiskFull_WhatWasBegunTakesNoRoom) {
  // In memory, in pieces, and a hole at the end of which nothing can be
  // written.
  UniqueFd files[] = {File(std::string(60'000, 'x')),
                      File(std::string((1 << 20) + 1, 'x')), Hole(1 << 20)};
  const auto folder = Make("a", 64 << 20);
  const KeptPart first = KeepAll(*folder, File("first").get());
  const uint64_t before = RoomOf(ObjectOf(*folder, first));
  for (UniqueFd& file : files) {
    KeptPart part = {.object = 7, .at = 7, .length = 7};
    EXPECT_EQ(KeepOnSmallDisk(*folder, file.get(), 40'000, &part), EFBIG);
    EXPECT_EQ(part.object + part.at + part.length, 0u);
    EXPECT_EQ(folder->Totals().held, 5u);
    EXPECT_EQ(folder->Totals().parts, 1u);
    EXPECT_LE(RoomOf(ObjectOf(*folder, first)), before + 4096);
  }
  EXPECT_EQ(Read(folder->path(), first), "first");
  const KeptPart later = KeepAll(*folder, files[0].get());
  EXPECT_EQ(Read(folder->path(), later), std::string(60'000, 'x'));
}

TEST_F(KeptFolderTest, WhatGivesBackItsRoomAndGoesIsNotCountedTwice) {
  const auto folder = Make("a", 200'000);
  KeptPart part;
  const UniqueFd fd = File(std::string(60'000, 'x'));
  EXPECT_EQ(KeepOnSmallDisk(*folder, fd.get(), 10'000, &part), EFBIG);
  // The object that gave back is the first to go.
  for (char c : {'a', 'b', 'c', 'd'}) {
    KeepAll(*folder, File(std::string(65'000, c)).get());
  }
  EXPECT_EQ(folder->Totals().held, 195'000u);
}

// An operation that always fails does not use up the disk, nor the budget.
TEST_F(KeptFolderTest, WhatWasNotDestroyedTakesNoRoom) {
  const auto folder = Make("a", 4 << 20);
  const KeptPart kept = KeepAll(*folder, File("kept").get());
  const UniqueFd small = File(std::string(60'000, 'x'));
  const UniqueFd large = File(std::string((1 << 20) + 1, 'y'));
  for (int i = 0; i < 100; ++i) {
    for (const UniqueFd* fd : {&small, &large}) {
      KeptPart part;
      ASSERT_EQ(
          folder->Keep(fd->get(), i, UINT64_MAX, SizeOf(fd->get()), &part), 0);
      folder->Drop(part);
    }
  }
  EXPECT_EQ(folder->Totals().held, 4u);
  EXPECT_EQ(folder->Totals().parts, 1u);
  EXPECT_EQ(folder->Totals().removed, 0u);
  uint64_t room = 0;
  uint64_t objects = 0;
  for (const auto& object :
       std::filesystem::directory_iterator(folder->path())) {
    room += RoomOf(object.path());
    ++objects;
  }
  EXPECT_LE(room, 16u << 10);
  EXPECT_LE(objects, 3u);
  EXPECT_EQ(Read(folder->path(), kept), "kept");
}

// Others may have found it there, and refer to it.
TEST_F(KeptFolderTest, WhatWasThereAlreadyStaysWhenItIsDropped) {
  const auto folder = Make("a");
  const UniqueFd fd = File("the same");
  const KeptPart kept = KeepAll(*folder, fd.get());
  KeptPart again;
  ASSERT_EQ(folder->Keep(fd.get(), 0, 8, 8, &again), 0);
  EXPECT_EQ(again.at, kept.at);
  folder->Drop(again);
  EXPECT_EQ(Read(folder->path(), kept), "the same");
  EXPECT_EQ(folder->Totals().held, 8u);
  EXPECT_EQ(folder->Totals().same, 0u);
}

// What may yet be dropped is nobody else's.
TEST_F(KeptFolderTest, OnlyWhatIsSettledIsShared) {
  const auto folder = Make("a");
  const UniqueFd fd = File("the same");
  KeptPart first;
  KeptPart second;
  ASSERT_EQ(folder->Keep(fd.get(), 0, 8, 8, &first), 0);
  ASSERT_EQ(folder->Keep(fd.get(), 0, 8, 8, &second), 0);
  folder->Settle(second);
  folder->Drop(first);
  EXPECT_EQ(Read(folder->path(), second), "the same");
}

TEST_F(KeptFolderTest, AFileThatCannotBeReadIsAnError) {
  const auto folder = Make("a", 64 << 20);
  const UniqueFd fd(
      ::open((top_ + "/source").c_str(), O_TMPFILE | O_WRONLY, 0600));
  ASSERT_TRUE(
      WriteAllAt(fd.get(), AsBytes(std::string(2 << 20, 'x')), 0, "").ok());
  for (const uint64_t end : {1, 2 << 20}) {
    KeptPart part;
    EXPECT_EQ(folder->Keep(fd.get(), 0, end, 2 << 20, &part), EBADF);
    EXPECT_EQ(part.object, 0u);
    EXPECT_EQ(folder->Totals().held, 0u);
  }
}

TEST_F(KeptFolderTest, AFolderThatIsGoneIsAnError) {
  const auto folder = Make("a", 64 << 20);
  std::filesystem::remove_all(folder->path());
  for (const size_t bytes : {1, 2 << 20}) {
    KeptPart part;
    const UniqueFd fd = File(std::string(bytes, 'x'));
    EXPECT_EQ(folder->Keep(fd.get(), 0, bytes, bytes, &part), ENOENT);
    EXPECT_EQ(part.object, 0u);
  }
}

class KeptReaderTest : public KeptWorld {};

TEST_F(KeptReaderTest, OneReaderGoesFromObjectToObject) {
  const auto folder = Make("a");
  const KeptPart one = KeepAll(*folder, File(std::string(60'000, '1')).get());
  const KeptPart two = KeepAll(*folder, File(std::string(60'000, '2')).get());
  ASSERT_NE(one.object, two.object);
  KeptReader reader(folder->path());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Read(reader, one), std::string(60'000, '1'));
    EXPECT_EQ(Read(reader, two), std::string(60'000, '2'));
  }
}

TEST_F(KeptReaderTest, TheFolderIsOpenedOnce) {
  const auto folder = Make("a");
  const KeptPart one = KeepAll(*folder, File(std::string(60'000, '1')).get());
  const KeptPart two = KeepAll(*folder, File(std::string(60'000, '2')).get());
  KeptReader reader(folder->path());
  EXPECT_EQ(Read(reader, one), std::string(60'000, '1'));
  ASSERT_EQ(::rename(folder->path().c_str(), (top_ + "/moved").c_str()), 0);
  EXPECT_EQ(Read(reader, two), std::string(60'000, '2'));
}

TEST_F(KeptReaderTest, WhatWasGoneAndIsBackIsRead) {
  const auto folder = Make("a");
  const KeptPart part = KeepAll(*folder, File("what it was").get());
  KeptReader reader(folder->path());
  const std::string object = ObjectOf(*folder, part);
  ASSERT_EQ(::rename(object.c_str(), (top_ + "/away").c_str()), 0);
  EXPECT_NE(Read(reader, part).find("is gone (object 1)"), std::string::npos);
  ASSERT_EQ(::rename((top_ + "/away").c_str(), object.c_str()), 0);
  EXPECT_EQ(Read(reader, part), "what it was");
}

TEST_F(KeptReaderTest, SaysWhyAFolderIsRefused) {
  const auto folder = Make("a");
  const KeptPart part = KeepAll(*folder, File("what it was").get());
  const auto said = [&](const std::string& path) { return Read(path, part); };
  EXPECT_NE(said("").find("does not say where"), std::string::npos);
  EXPECT_NE(said(top_ + "/none").find("(--kept says where it is now)"),
            std::string::npos);
  ASSERT_EQ(::symlink(folder->path().c_str(), (top_ + "/link").c_str()), 0);
  EXPECT_NE(said(top_ + "/link").find("refused: the folder"),
            std::string::npos);
  for (const mode_t mode : {0701u, 0710u, 0740u, 0720u, 0702u}) {
    ASSERT_EQ(::chmod(folder->path().c_str(), mode), 0);
    EXPECT_NE(said(folder->path()).find("run chmod 700"), std::string::npos)
        << mode;
  }
}

TEST_F(KeptReaderTest, Malicious_AnObjectOfAnotherKindIsRefused) {
  const auto folder = Make("a");
  const KeptPart part = KeepAll(*folder, File("what it was").get());
  const std::string object = ObjectOf(*folder, part);
  const auto said = [&] { return Read(folder->path(), part); };
  ASSERT_EQ(::link(object.c_str(), (top_ + "/second").c_str()), 0);
  EXPECT_NE(said().find("has 2 names"), std::string::npos);
  ASSERT_EQ(::unlink((top_ + "/second").c_str()), 0);
  EXPECT_EQ(said(), "what it was");
  for (const mode_t mode : {0601u, 0602u, 0604u, 0610u, 0620u, 0640u}) {
    ASSERT_EQ(::chmod(object.c_str(), mode), 0);
    EXPECT_NE(said().find("run chmod 600"), std::string::npos) << mode;
  }
  ASSERT_EQ(::unlink(object.c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", object.c_str()), 0);
  EXPECT_NE(said().find("object 1: Too many levels"), std::string::npos);
  ASSERT_EQ(::unlink(object.c_str()), 0);
  ASSERT_EQ(::mkfifo(object.c_str(), 0600), 0);
  EXPECT_NE(said().find("changed since (object 1)"), std::string::npos);
}

TEST_F(KeptReaderTest, Malicious_EachByteOfACopyIsChecked) {
  const auto folder = Make("a");
  const std::string text = "what it was";
  const KeptPart part = KeepAll(*folder, File(text).get());
  const UniqueFd object(::open(ObjectOf(*folder, part).c_str(), O_RDWR));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    ASSERT_TRUE(WriteAllAt(object.get(), AsBytes(other), 0, "").ok());
    EXPECT_EQ(Read(folder->path(), part),
              "refused: what was kept of it was changed since (object 1)")
        << i;
  }
  ASSERT_TRUE(WriteAllAt(object.get(), AsBytes(text), 0, "").ok());
  EXPECT_EQ(Read(folder->path(), part), text);
}

TEST_F(KeptReaderTest, Malicious_APartBeyondTheObjectIsRefused) {
  const auto folder = Make("a");
  const KeptPart part = KeepAll(*folder, File("what it was").get());
  const auto read = [&](uint64_t at, uint64_t length, uint32_t checksum) {
    return Read(folder->path(), {.object = part.object,
                                 .at = at,
                                 .length = length,
                                 .is_copy = true,
                                 .checksum = checksum});
  };
  EXPECT_EQ(read(11, 0, 0), "");
  EXPECT_EQ(read(5, 6, Crc32c(AsBytes("it was"))), "it was");
  const std::string changed =
      "refused: what was kept of it was changed since (object 1)";
  EXPECT_EQ(read(12, 0, 0), changed);
  // A zero more than there is, as a hole would be.
  EXPECT_EQ(read(0, 12, Crc32c(AsBytes(std::string("what it was\0", 12)))),
            changed);
  EXPECT_EQ(read(11, 1, Crc32c(AsBytes(std::string(1, '\0')))), changed);
  EXPECT_EQ(read(UINT64_MAX, 1, 0), changed);
  EXPECT_EQ(read(0, UINT64_MAX, 0), changed);
}

}  // namespace
}  // namespace tracefs::keep
