// Parts that share their blocks with the file, on a disk that is modelled: it
// clones as the kernel says that file systems with reflinks do, or refuses.
#include <errno.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/keep/kept_world.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/file_io.h"

namespace tracefs::keep {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kLeast = 1 << 20;  // of what is cloned

struct Disk {
  int error = 0;  // of each clone
  int asked = 0;  // clones
};
Disk* disk = nullptr;  // null: the one that there is

// FICLONERANGE, ioctl_ficlonerange(2): whole blocks, or up to the end.
int CloneRange(int to, const file_clone_range& range) {
  ++disk->asked;
  struct stat st;
  if (disk->error != 0) return disk->error;
  if (::fstat(static_cast<int>(range.src_fd), &st) != 0) return errno;
  const auto size = static_cast<uint64_t>(st.st_size);
  const uint64_t length =
      range.src_length == 0 ? size - range.src_offset : range.src_length;
  const uint64_t end = range.src_offset + length;
  if (range.src_offset % kBlock != 0 || range.dest_offset % kBlock != 0 ||
      end > size || (end % kBlock != 0 && end != size)) {
    return EINVAL;
  }
  std::vector<std::byte> bytes(length);
  if (!ReadAllAt(static_cast<int>(range.src_fd), bytes, range.src_offset) ||
      !WriteAllAt(to, bytes, range.dest_offset, "").ok()) {
    return EIO;
  }
  return 0;
}

}  // namespace
}  // namespace tracefs::keep

// Takes the place of the C library's.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request != FICLONERANGE || tracefs::keep::disk == nullptr) {
    return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
  }
  const int error = tracefs::keep::CloneRange(
      fd, *static_cast<const file_clone_range*>(argument));
  errno = error != 0 ? error : ENOMEM;  // says nothing after a success
  return error == 0 ? 0 : -1;
}

namespace tracefs::keep {
namespace {

class CloneTest : public KeptWorld {
 protected:
  CloneTest() { disk = &disk_; }
  ~CloneTest() override { disk = nullptr; }

  static std::string Text(size_t bytes) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) {
      text[i] = static_cast<char>(i * 2'654'435'761u >> 13);
    }
    return text;
  }
  // What is in the folder.
  static size_t Objects(const KeptFolder& folder) {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder.path()), {}));
  }

  Disk disk_;
};

TEST_F(CloneTest, RoundTrip_AnyRangeOfWholeBlocksAroundIt) {
  const auto folder = Make("a", uint64_t{1} << 30);
  for (const uint64_t size :
       {3 * kLeast, 3 * kLeast + 1, 3 * kLeast + kBlock - 1}) {
    const std::string text = Text(size);
    const UniqueFd fd = File(text);
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const uint64_t begin : {uint64_t{0}, uint64_t{1}, kBlock - 1, kBlock,
                                 kBlock + 1, 5 * kBlock, 100 * kBlock + 77}) {
      for (const uint64_t end :
           {begin + kLeast, 2 * kLeast - 1, 2 * kLeast, 2 * kLeast + 1,
            size - kBlock, size - 1, size}) {
        if (end - begin >= kLeast) ranges.emplace_back(begin, end);
      }
    }
    for (const auto& [begin, end] : ranges) {
      const KeptTotals before = folder->Totals();
      const KeptPart part = Keep(*folder, fd.get(), begin, end);
      ASSERT_FALSE(part.is_copy) << begin << " to " << end << " of " << size;
      ASSERT_EQ(part.length, end - begin);
      ASSERT_EQ(part.at, begin % kBlock);
      ASSERT_TRUE(Read(folder->path(), part) == text.substr(begin, end - begin))
          << begin << " to " << end << " of " << size;
      // No block more than those that the range is in.
      const uint64_t from = begin - begin % kBlock;
      const uint64_t until = end + (kBlock - end % kBlock) % kBlock;
      EXPECT_EQ(std::filesystem::file_size(ObjectOf(*folder, part)),
                std::min(until, size) - from);
      const KeptTotals after = folder->Totals();
      EXPECT_EQ(after.parts - before.parts, 1u);
      EXPECT_EQ(after.bytes - before.bytes, end - begin);
      EXPECT_EQ(after.cloned - before.cloned, end - begin);
      EXPECT_EQ(after.held - before.held, end - begin);
      folder->Drop(part);
      EXPECT_EQ(folder->Totals().held, before.held);
      EXPECT_EQ(Objects(*folder), 0u);
    }
  }
}

TEST_F(CloneTest, LessThanAMegabyteIsCopied) {
  const auto folder = Make("a", 64 << 20);
  const UniqueFd fd = File(Text(kLeast));
  EXPECT_TRUE(Keep(*folder, fd.get(), 1, kLeast).is_copy);
  EXPECT_EQ(disk_.asked, 0);
  EXPECT_FALSE(Keep(*folder, fd.get(), 0, kLeast).is_copy);
  EXPECT_EQ(disk_.asked, 1);
}

TEST_F(CloneTest, ADiskThatNeverClonesIsAskedOnce) {
  const std::string text = Text(kLeast);
  const UniqueFd fd = File(text);
  for (const int error : {EXDEV, EOPNOTSUPP, ENOTTY}) {
    const auto folder = Make(std::to_string(error), 64 << 20);
    const uint64_t before = folder->Totals().held;  // of those before it
    disk_ = {.error = error};
    for (int i = 0; i < 2; ++i) {
      const KeptPart part = KeepAll(*folder, fd.get());
      EXPECT_TRUE(part.is_copy);
      EXPECT_TRUE(Read(folder->path(), part) == text);
    }
    EXPECT_EQ(disk_.asked, 1) << error;
    EXPECT_EQ(folder->Totals().cloned, 0u);
    EXPECT_EQ(folder->Totals().held - before, kLeast);
    EXPECT_EQ(Objects(*folder), 1u);
  }
}

TEST_F(CloneTest, WhatCannotBeClonedIsCopiedAndOthersAreTried) {
  const auto folder = Make("a", 64 << 20);
  const UniqueFd fd = File(Text(kLeast));
  disk_.error = EINVAL;
  EXPECT_TRUE(KeepAll(*folder, fd.get()).is_copy);
  disk_.error = 0;
  EXPECT_FALSE(KeepAll(*folder, fd.get()).is_copy);
  EXPECT_EQ(disk_.asked, 2);
}

TEST_F(CloneTest, AnErrorLeavesNothing) {
  const auto folder = Make("a", 64 << 20);
  const UniqueFd fd = File(Text(kLeast));
  for (const int error : {ENOSPC, EIO, EDQUOT}) {
    disk_.error = error;
    KeptPart part = {.object = 7, .at = 7, .length = 7};
    EXPECT_EQ(folder->Keep(fd.get(), 0, kLeast, kLeast, &part), error);
    EXPECT_EQ(part.object + part.at + part.length, 0u);
    EXPECT_EQ(folder->Totals().held, 0u);
    EXPECT_EQ(folder->Totals().parts, 0u);
    EXPECT_EQ(Objects(*folder), 0u);
  }
}

TEST_F(CloneTest, WhatWasNotDestroyedIsDropped) {
  const auto folder = Make("a", 64 << 20);
  const UniqueFd fd = File(Text(kLeast));
  const KeptPart copy = Keep(*folder, fd.get(), 0, 9);
  const KeptPart one = KeepAll(*folder, fd.get());
  const KeptPart two = KeepAll(*folder, fd.get());
  EXPECT_EQ(Objects(*folder), 3u);
  folder->Drop({});
  EXPECT_EQ(Objects(*folder), 3u);
  for (int i = 0; i < 2; ++i) {
    folder->Drop(one);
    EXPECT_EQ(Objects(*folder), 2u);
    EXPECT_EQ(folder->Totals().held, 9 + kLeast);
  }
  EXPECT_TRUE(Read(folder->path(), two) == Text(kLeast));
  EXPECT_EQ(Read(folder->path(), copy), Text(9));
}

TEST_F(CloneTest, Budget_ClonesCountAndGo) {
  const auto folder = Make("a", 2 * kLeast + 5);
  const UniqueFd fd = File(Text(kLeast));
  const KeptPart one = KeepAll(*folder, fd.get());
  const KeptPart two = KeepAll(*folder, fd.get());
  Keep(*folder, fd.get(), 0, 5);
  EXPECT_EQ(folder->Totals().removed, 0u);
  KeptPart last;
  ASSERT_EQ(folder->Keep(fd.get(), 10, 20, kLeast, &last), 0);
  EXPECT_EQ(folder->Settle(last), two.object);
  EXPECT_EQ(Read(folder->path(), one).substr(0, 7), "refused");
  EXPECT_TRUE(Read(folder->path(), two) == Text(kLeast));
  EXPECT_EQ(folder->Totals().held, kLeast + 15);
  folder->Drop(one);  // it is gone already
  EXPECT_EQ(folder->Totals().held, kLeast + 15);
}

TEST_F(CloneTest, Budget_WhatIsAddedToMayGo) {
  const auto folder = Make("a", 2 * kLeast);
  const UniqueFd fd = File(Text(kLeast));
  const KeptPart open = Keep(*folder, fd.get(), 0, 9);
  KeepAll(*folder, fd.get());
  EXPECT_EQ(Keep(*folder, fd.get(), 20, 30).object, open.object);
  KeepAll(*folder, fd.get());
  EXPECT_EQ(folder->Totals().removed, 1u);
  EXPECT_FALSE(std::filesystem::exists(ObjectOf(*folder, open)));
  const KeptPart next = Keep(*folder, fd.get(), 40, 50);
  EXPECT_GT(next.object, open.object);
  EXPECT_EQ(Read(folder->path(), next), Text(50).substr(40));
}

TEST_F(CloneTest, Budget_WhatIsAddedToStaysWhenAnotherGoes) {
  const auto folder = Make("a", 2 * kLeast);
  const UniqueFd fd = File(Text(kLeast));
  const KeptPart first = KeepAll(*folder, fd.get());
  const KeptPart open = Keep(*folder, fd.get(), 0, 9);
  KeepAll(*folder, fd.get());
  EXPECT_FALSE(std::filesystem::exists(ObjectOf(*folder, first)));
  EXPECT_EQ(Keep(*folder, fd.get(), 20, 30).object, open.object);
}

TEST_F(CloneTest, Malicious_AChangedCloneIsRefused) {
  const auto folder = Make("a", 64 << 20);
  const UniqueFd fd = File(Text(kLeast));
  const KeptPart part = KeepAll(*folder, fd.get());
  const std::string changed =
      "refused: what was kept of it was changed since (object 1)";
  KeptPart beyond = part;
  beyond.at = UINT64_MAX - 3;
  EXPECT_EQ(Read(folder->path(), beyond), changed);
  beyond = part;
  beyond.length += 1;
  EXPECT_EQ(Read(folder->path(), beyond), changed);
  beyond.at = 1;
  beyond.length = kLeast - 1;
  EXPECT_TRUE(Read(folder->path(), beyond) == Text(kLeast).substr(1));
  // The same bytes again: nobody has read them, and so it is another file.
  const UniqueFd out(::open(ObjectOf(*folder, part).c_str(), O_WRONLY));
  timespec before;
  ASSERT_EQ(::clock_gettime(CLOCK_REALTIME_COARSE, &before), 0);
  for (timespec now = before;
       now.tv_nsec == before.tv_nsec && now.tv_sec == before.tv_sec;) {
    ASSERT_EQ(::clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
  }
  ASSERT_TRUE(WriteAllAt(out.get(), AsBytes(Text(kLeast)), 0, "").ok());
  EXPECT_EQ(Read(folder->path(), part), changed);
}

}  // namespace
}  // namespace tracefs::keep
